//! Access tokens on the requests of one connection: gets them, shows them, and gets others when they will not do.
//!
//! All that is decided about OAuth is decided in `auth/`. Here is the waiting: however many requests need a token, one
//! login is on its way, in a task of its own, so that it survives the request that began it.

mod login;
mod refused;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use http::Method;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use tokio::runtime::Handle;
use tokio::sync::watch;

pub(super) use refused::Trial;

use super::pool::{Pool, Shown};
use crate::auth::challenge::Challenge;
use crate::auth::client::{Auth, Grant};
use crate::auth::dpop::Proofs;
use crate::auth::session::Session;
use crate::auth::store::TokenStore;
use crate::auth::token::TokenType;
use crate::auth::url::Parts;
use crate::client::ClientOptions;
use crate::driver::{Peer, runtime};
use crate::endpoint::http::fetch::FetchPolicy;
use crate::endpoint::http::network::Network;
use crate::error::{Error, ErrorKind, Result, shown_url};
use crate::protocol::Input;
use crate::signal::Signal;

/// A connection that ends waits so long for a login: one exchange, and what is kept of it.
const LAST: Duration = Duration::from_secs(15);

const DPOP: HeaderName = HeaderName::from_static("dpop");

/// Token and proof of one request.
#[derive(Clone)]
pub(super) struct Access {
    token: Arc<str>,
    /// The token is bound to this key.
    proofs: Option<Proofs>,
    /// The newest nonce of the MCP server (RFC 9449 §9).
    nonce: Option<Arc<str>>,
    /// Counts the tokens.
    generation: u64,
}

impl Access {
    pub(super) fn shown(&self) -> Shown {
        Shown { number: self.generation, token: self.token.clone() }
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Adds it to a request to `url`. Each proof is a fresh one.
    pub(super) fn put(&self, headers: &mut HeaderMap, verb: &Method, url: &str) {
        let value = match &self.proofs {
            None => format!("Bearer {}", self.token),
            Some(_) => format!("DPoP {}", self.token),
        };
        let proof = self.proofs.as_ref().and_then(|proofs| {
            let jti = crate::random::new_id().ok()?;
            proofs.proof(verb.as_str(), url, Some(&self.token), self.nonce.as_deref(), now(), &jti).ok()
        });
        for (name, value) in [(AUTHORIZATION, Some(value)), (DPOP, proof)] {
            if let Some(Ok(mut value)) = value.map(HeaderValue::try_from) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
    }
}

/// Reason for getting another token.
#[derive(Clone)]
enum Why {
    /// There is none, or it is about to end.
    Ahead,
    Refused(Vec<Challenge>),
    /// It was refused, and has just come by a refresh: another refresh brings no better one.
    Useless(Vec<Challenge>),
    /// Its scopes are too few.
    Insufficient(Vec<Challenge>),
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    access: Option<Access>,
    nonce: Option<Arc<str>>,
    /// The refresh token that was refused last.
    spent: Option<String>,
    /// The refresh token with which a refresh has failed for no reason that says so.
    doubted: Option<String>,
    /// The token that somebody else had got: it was taken from the store.
    taken_over: u64,
    /// The token that came by a refresh, of whoever's login.
    refreshed: u64,
    /// Scopes that were asked for, and not granted, since users were asked last for another reason.
    declined: BTreeSet<String>,
    generation: u64,
    /// The login that is on its way.
    flight: Option<Flight>,
}

impl State {
    /// Returns true if there is a refresh token that nobody has refused.
    fn may_refresh(&self) -> bool {
        let refresh_token = self.session.as_ref().and_then(Session::refresh_token);
        refresh_token.is_some_and(|token| self.spent.as_deref() != Some(token))
    }
}

/// A login that is on its way.
struct Flight {
    /// The token that it is to replace.
    replaces: u64,
    /// Nobody has refused that yet, so no user is asked.
    ahead: bool,
    told: watch::Receiver<Option<Result<()>>>,
}

/// The same for one that waits for it.
struct Flying {
    /// It is one ahead of the token's end, and was begun by somebody else.
    ahead: bool,
    /// The waiting request has begun it.
    own: bool,
    told: watch::Receiver<Option<Result<()>>>,
}

/// The tokens of one connection.
pub(super) struct Authorizer {
    auth: Auth,
    store: Arc<dyn TokenStore>,
    server_url: String,
    peer: Weak<Peer>,
    runtime: Handle,
    policy: FetchPolicy,
    /// See [`Given`](crate::auth::flow::Given).
    needs_metadata: bool,
    state: Mutex<State>,
    /// The stored login has been looked at.
    looked: tokio::sync::OnceCell<()>,
    /// Told of every token.
    news: watch::Sender<()>,
    over: Signal,
}

impl Authorizer {
    /// For the server at `url`, which `pool` connects to, and a client with these options; `shown`: its requests have an
    /// `Authorization` already.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for that, for wrong options, or a URL that no token should be sent to.
    pub(super) fn new(
        auth: &Auth,
        url: &str,
        pool: &Arc<Pool>,
        network: Network,
        options: &ClientOptions,
        shown: bool,
    ) -> Result<Self> {
        auth.check()?;
        let pinned = options.pinned()?;
        if shown {
            let message = "option \"auth\": the headers or the URL hold an Authorization already: give one of them";
            return Err(Error::misuse(message));
        }
        let bad = || Error::misuse(format!("target \"url\": expected http:// or https://, got {}", shown_url(url)));
        let parts = Parts::of(url).ok_or_else(bad)?;
        if !parts.is_https() && !parts.is_loopback() {
            let message = format!("option \"auth\": {} is not https: tokens are not sent in the clear", shown_url(url));
            return Err(Error::misuse(message));
        }
        let server_url = parts.server();
        let mut auth = auth.clone();
        auth.client_name.get_or_insert_with(|| options.name.clone());
        let policy = FetchPolicy::of_server(&server_url, Arc::new(pool.clone()), auth.named_urls()).over(network);
        Ok(Self {
            store: auth.kept_in(),
            auth,
            server_url,
            peer: Weak::new(),
            runtime: runtime::handle(),
            policy,
            needs_metadata: pinned.is_some_and(|revision| revision.rules().resource_metadata),
            state: Mutex::default(),
            looked: tokio::sync::OnceCell::new(),
            news: watch::Sender::new(()),
            over: Signal::default(),
        })
    }

    /// The same, of this connection.
    pub(super) fn of(self, peer: &Weak<Peer>) -> Arc<Self> {
        Arc::new(Self { peer: peer.clone(), ..self })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the token for the next request, if there is one. A token that is about to end is renewed first.
    ///
    /// # Errors
    /// The reason why it could not be renewed.
    pub(super) async fn access(self: &Arc<Self>) -> Result<Option<Access>> {
        self.looked.get_or_init(|| self.look()).await;
        let (stale, ended, generation) = {
            let state = self.lock();
            let token = state.session.as_ref().and_then(|session| session.token.as_ref());
            let renewable = state.may_refresh() || self.auth.granted() != Grant::AuthorizationCode;
            let stale = renewable && state.access.is_some() && token.is_some_and(|token| token.is_stale(now()));
            let first = state.access.is_none() && self.auth.tokens.is_some();
            let ended = token.and_then(|token| token.expires_at).is_none_or(|at| at <= now());
            (stale || first, ended, state.generation)
        };
        if stale && !self.over.is_set() {
            let renewed = self.fly(Why::Ahead, generation).await;
            // It may still do for a while; else the server says what it wants instead.
            if ended && self.auth.tokens.is_some() {
                renewed?;
            }
        }
        let state = self.lock();
        Ok(state.access.clone().map(|access| Access { nonce: state.nonce.clone(), ..access }))
    }

    /// Takes over what is kept of an earlier login.
    async fn look(&self) {
        if let Some(token) = &self.auth.token {
            let access = Access { token: token.as_str().into(), proofs: None, nonce: None, generation: 0 };
            self.lock().access = Some(access);
            return;
        }
        if self.auth.tokens.is_some() {
            return;
        }
        match self.store.find(&self.server_url).await {
            Ok(found) => {
                let sessions = found.iter().filter_map(|(key, kept)| Session::from_kept(kept, &key.issuer, &self.auth));
                match sessions.max_by_key(|session| session.since) {
                    Some(session) if session.has_asked(&self.auth.scopes.join(" ")) => self.take(session),
                    // Its token is not shown: the server's refusal begins a login with the scopes that it lacks.
                    other => self.lock().session = other,
                }
            }
            Err(error) => self.warn(&format!("what is kept of earlier logins cannot be read: {}", error.message())),
        }
    }

    fn warn(&self, message: &str) {
        if let Some(peer) = self.peer.upgrade() {
            peer.warn(message);
        }
    }

    /// From now on requests show this session's token.
    fn take(&self, session: Session) {
        let mut state = self.lock();
        state.generation += 1;
        let generation = state.generation;
        state.access = session.token.as_ref().and_then(|token| {
            let proofs = match token.token_type {
                TokenType::Bearer => None,
                TokenType::Dpop => Some(Proofs::restore(session.dpop.as_ref()?).ok()?),
            };
            Some(Access { token: token.access_token.as_str().into(), proofs, nonce: None, generation })
        });
        state.session = Some(session);
        drop(state);
        self.news.send_replace(());
    }

    /// Returns true if nobody but a user can get a token that has no refresh token.
    fn needs_user(&self) -> bool {
        self.auth.tokens.is_none() && self.auth.granted() == Grant::AuthorizationCode
    }

    /// Returns a future that waits for the next token, where only a user can get one.
    pub(super) fn renewal(&self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let mut news = self.needs_user().then(|| self.news.subscribe())?;
        Some(async move {
            // The other end is gone with the connection.
            let _ = news.changed().await;
        })
    }

    /// Another token than that of `generation`: one that came meanwhile, or that of the login which is on its way, or
    /// of one that begins now. `true`: it began here, for this reason.
    async fn fly(self: &Arc<Self>, why: Why, generation: u64) -> Result<bool> {
        let _patience = Patience::new(&self.peer);
        loop {
            let Some(Flying { ahead, own, mut told }) = self.flight(&why, generation) else { return Ok(false) };
            let outcome = told.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
            match outcome {
                // It has asked nobody, as the server had refused nothing then. Now it has.
                Some(Err(_)) if ahead && !matches!(why, Why::Ahead) => {}
                Some(outcome) => return outcome.map(|()| own),
                None => return Err(Error::closed("authorization: the connection was closed during the login")),
            }
        }
    }

    /// The login that replaces the token of `generation`; `None`: there is another token already.
    fn flight(self: &Arc<Self>, why: &Why, generation: u64) -> Option<Flying> {
        let mut state = self.lock();
        if state.generation != generation {
            return None;
        }
        if let Some(flight) = state.flight.as_ref().filter(|flight| flight.replaces == generation) {
            return Some(Flying { ahead: flight.ahead, own: false, told: flight.told.clone() });
        }
        let (tell, told) = watch::channel(None);
        let (this, own, ahead) = (self.clone(), why.clone(), matches!(why, Why::Ahead));
        // To its end, whoever goes away: a refresh token that is used up has to be replaced in the store.
        self.runtime.spawn(async move {
            let outcome = AssertUnwindSafe(this.another(own)).catch_unwind().await;
            let panicked = |_| Error::new(ErrorKind::Auth, "authorization: a function of the program's own panicked");
            let outcome = outcome.unwrap_or_else(|panic| Err(panicked(panic)));
            let mut state = this.lock();
            state.flight = state.flight.take().filter(|flight| flight.replaces != generation);
            drop(state);
            tell.send_replace(Some(outcome));
        });
        state.flight = Some(Flight { replaces: generation, ahead, told: told.clone() });
        Some(Flying { ahead: false, own: true, told })
    }

    /// Returns true if a login is on its way.
    pub(super) fn is_busy(&self) -> bool {
        self.lock().flight.is_some()
    }

    /// Waits for the login that is on its way: a refresh token that is used up has to be replaced in the store, which may
    /// go away with whoever closes the connection.
    pub(super) async fn ended(&self) {
        let told = self.lock().flight.as_ref().map(|flight| flight.told.clone());
        if let Some(mut told) = told {
            let _ = tokio::time::timeout(LAST, told.wait_for(Option::is_some)).await;
        }
    }

    /// The connection ends: nobody waits for a user any more.
    pub(super) fn stop(&self) {
        self.over.set();
    }
}

/// While it lives, the time of the connection's requests does not run: people log in at their own pace.
struct Patience(Weak<Peer>);

impl Patience {
    fn new(peer: &Weak<Peer>) -> Self {
        if let Some(peer) = peer.upgrade() {
            peer.handle(Input::Authorizing(true));
        }
        Self(peer.clone())
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        if let Some(peer) = self.0.upgrade() {
            peer.handle(Input::Authorizing(false));
        }
    }
}

/// Unix seconds.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
