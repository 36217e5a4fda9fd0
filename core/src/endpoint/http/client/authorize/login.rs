//! Carries out a login: fetches, loads, asks, opens and waits as the flow says.

use std::sync::Arc;
use std::time::Duration;

use crate::auth::client::{Grant, Source, Wanted};
use crate::auth::flow::{Flow, Given, Step};
use crate::auth::secret::Secret;
use crate::auth::session::Session;
use crate::auth::store::{Reservation, TokenKey};
use crate::call::BoxFuture;
use crate::endpoint::http::client::authorize::{Access, Authorizer, Why, now};
use crate::endpoint::http::fetch::fetch;
use crate::endpoint::http::login::browser;
use crate::endpoint::http::login::callback::Callback as Own;
use crate::error::{Error, ErrorKind, Result, shown_url};
use crate::protocol::revision::Revision;

/// The longest that a login waits for another process that changes what is kept.
const RESERVE: Duration = Duration::from_secs(60);
/// Number of steps that no login has.
const MAX_STEPS: usize = 64;

/// Receiver that waits for the browser.
enum Waiting {
    Own(Own),
    Given(BoxFuture<Result<String>>),
}

/// End of carrying out a login, if not with an error.
enum Ended {
    LoggedIn,
    /// Somebody else has had the user log in: it begins anew, with what is kept now.
    Again,
}

/// The turn to ask the user, which one has at a time.
#[derive(Default)]
enum Turn {
    #[default]
    Nobodys,
    /// Until it is dropped. `None`: the store has no such thing.
    Own(#[expect(dead_code, reason = "it is held")] Option<Box<dyn Reservation>>),
}

impl Turn {
    fn is_taken(&self) -> bool {
        matches!(self, Self::Own(_))
    }
}

/// The parameter `state` of a query.
fn state_of(query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == "state").map(|(_, state)| state.into_owned())
}

impl Authorizer {
    /// Gets another token.
    pub(super) async fn another(self: &Arc<Self>, why: Why) -> Result<()> {
        if let Some(tokens) = &self.auth.tokens {
            return self.asked(tokens).await;
        }
        let (used, spent, doubted, stored) = {
            let state = self.lock();
            let used = state.access.as_ref().map(|access| access.token.to_string());
            (used, state.spent.clone(), state.doubted.clone(), state.session.clone())
        };
        let (steps_up, useless) = (matches!(why, Why::Insufficient(_)), matches!(why, Why::Useless(_)));
        let refused = !matches!(why, Why::Ahead);
        let challenges = match why {
            Why::Ahead => Vec::new(),
            Why::Refused(challenges) | Why::Useless(challenges) | Why::Insufficient(challenges) => challenges,
        };
        let revision = self.peer.upgrade().and_then(|peer| peer.revision()).unwrap_or(Revision::NEWEST);
        let given = || Given {
            server_url: self.server_url.clone(),
            challenges: challenges.clone(),
            refused,
            used: used.clone(),
            spent: spent.clone(),
            doubted: doubted.clone(),
            useless,
            steps_up,
            auth: self.auth.clone(),
            stored: stored.clone(),
            needs_metadata: self.needs_metadata,
            protocol_version: Some(revision.to_string()),
        };
        let mut turn = Turn::default();
        let (mut flow, outcome) = loop {
            let (mut flow, step) = Flow::start(given());
            match self.carried_out(&mut flow, step, &mut turn).await {
                Ok(Ended::Again) => self.auth.traced(flow.take_trace()),
                Ok(Ended::LoggedIn) => break (flow, Ok(())),
                Err(error) => break (flow, Err(error)),
            }
        };
        drop(turn);
        self.auth.traced(flow.take_trace());
        {
            let mut state = self.lock();
            if let Some(spent) = flow.take_spent() {
                state.spent = Some(spent);
            }
            state.doubted = flow.take_doubted().or_else(|| state.doubted.take());
            match outcome.is_ok() {
                true if flow.took_over() => state.taken_over = state.generation,
                true if flow.has_refreshed() => state.refreshed = state.generation,
                _ => {}
            }
        }
        if let (Err(_), Some(client_id)) = (&outcome, flow.take_forgotten()) {
            self.forget_client(flow.issuer(), &client_id).await;
        }
        let notes = flow.take_notes();
        notes.iter().for_each(|note| self.warn(note));
        // Whoever is logged in now may see other things, and more of them.
        if outcome.is_ok() && (refused || !notes.is_empty()) {
            self.forget();
        }
        outcome
    }

    /// Forgets the cached answers of the server, which were for another token.
    fn forget(&self) {
        if let Some(peer) = self.peer.upgrade() {
            peer.logged_in();
        }
    }

    /// A client whose registration the server may have forgotten is not used for another login. Its tokens stay.
    async fn forget_client(&self, issuer: &str, client_id: &str) {
        let key = TokenKey::new(issuer, &self.server_url);
        let forgotten = async {
            let mut reservation = self.store.reserve(&key, RESERVE).await?;
            let Some(kept) = reservation.load().await? else { return Ok(()) };
            match Session::from_kept(&kept, issuer, &self.auth) {
                Some(mut session) if session.client.client_id == client_id => {
                    session.client.expire();
                    let (kept, note) = session.to_kept(&self.auth, Some(&kept))?;
                    reservation.save(&kept).await?;
                    note.iter().for_each(|note| self.warn(note));
                    Ok(())
                }
                _ => Ok(()),
            }
        };
        let forgotten: Result<()> = forgotten.await;
        if let Err(error) = forgotten {
            self.warn(&format!("that the client has to be registered anew cannot be kept: {}", error.message()));
        }
        let mut state = self.lock();
        let session = state.session.as_mut().filter(|session| session.client.client_id == client_id);
        session.into_iter().for_each(|session| session.client.expire());
    }

    /// A token of the user's own function.
    async fn asked(&self, tokens: &Source) -> Result<()> {
        let wanted = Wanted { issuer: String::new(), resource: Some(self.server_url.clone()) };
        let token = tokens(wanted).await?;
        if token.is_empty() || !token.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
            return Err(Error::misuse("option \"auth\": the function gave a token that no header can carry"));
        }
        let mut state = self.lock();
        if state.access.as_ref().is_some_and(|access| *access.token == *token) {
            drop(state);
            return Err(self.refused("the token, and the function has no other", &[], None));
        }
        state.generation += 1;
        let generation = state.generation;
        let is_first = state.access.is_none();
        state.access = Some(Access { token: token.into(), proofs: None, nonce: None, generation });
        drop(state);
        self.news.send_replace(());
        if !is_first {
            self.forget();
        }
        Ok(())
    }

    async fn carried_out(&self, flow: &mut Flow, mut step: Step, turn: &mut Turn) -> Result<Ended> {
        let mut reserved: Option<Box<dyn Reservation>> = None;
        let (mut callback, mut registered, mut seen) = (None, None, None);
        for _ in 0..MAX_STEPS {
            step = match step {
                Step::Fetch(wanted) => {
                    let outcome = fetch(&wanted, &self.policy).await;
                    flow.fetched(outcome, now())
                }
                Step::Load { issuer } => {
                    let (session, kept) = self.loaded(&issuer, &mut reserved).await?;
                    seen = kept;
                    registered = session.as_ref().and_then(|session| session.client.redirect_uri.clone());
                    flow.loaded(session, now())
                }
                Step::Assert(wanted) => {
                    let assertion = match &self.auth.assertions {
                        Some(assertions) => assertions(wanted).await,
                        None => Err(Error::misuse("option \"auth\": there is no assertion")),
                    };
                    flow.asserted(assertion, now())
                }
                Step::Listen => {
                    // People take their time: others may change what is kept meanwhile.
                    reserved = None;
                    if self.others_log_in(flow.issuer(), seen.as_ref(), turn).await {
                        return Ok(Ended::Again);
                    }
                    let listened = self.listened(registered.as_deref()).await;
                    let redirect_uri = listened.map(|(redirect_uri, waiting)| {
                        callback = Some(waiting);
                        redirect_uri
                    });
                    flow.listening(redirect_uri, now())
                }
                Step::Open { url } => {
                    let query = self.over.unless(self.opened(&url, callback.take())).await;
                    let query = query.unwrap_or_else(|| Err(Error::closed("the connection was closed")));
                    flow.called_back(query, now())
                }
                Step::Done(session) => return self.keep(*session, reserved).await.map(|()| Ended::LoggedIn),
                Step::Failed(error) => return Err(error),
            };
        }
        Err(Error::new(ErrorKind::Auth, format!("authorization: no end after {MAX_STEPS} steps")))
    }

    /// Takes the turn to ask a user. `true`: somebody else had it, and has logged in meanwhile or given up, so that it is to
    /// be looked at once more what is kept. `seen` is what was kept when that was looked at last.
    async fn others_log_in(&self, issuer: &str, seen: Option<&Secret>, turn: &mut Turn) -> bool {
        if turn.is_taken() {
            return false;
        }
        let key = TokenKey::new(issuer, &self.server_url);
        match self.store.reserve_login(&key, Duration::ZERO).await {
            Ok(reserved) => {
                *turn = Turn::Own(reserved);
                // Another may have logged in since then, and given it back.
                let now = async { self.store.reserve(&key, RESERVE).await?.load().await };
                now.await.is_ok_and(|now: Option<Secret>| now.as_ref() != seen)
            }
            Err(error) if error.kind() == ErrorKind::Timeout => {
                let server = shown_url(&self.server_url);
                self.warn(&format!("somebody else is logging in at {server}: waiting for that"));
                // It began before, and has all the time that it gives its user.
                let patience = Duration::try_from_secs_f64(self.auth.login_timeout).unwrap_or_default() + RESERVE;
                let waited = self.over.unless(self.store.reserve_login(&key, patience)).await;
                match waited {
                    Some(Ok(_)) => true,
                    // It takes too long, or cannot be told.
                    _ => {
                        *turn = Turn::Own(None);
                        false
                    }
                }
            }
            Err(_) => {
                *turn = Turn::Own(None);
                false
            }
        }
    }

    /// The login that is kept, and all that is kept there.
    async fn loaded(
        &self,
        issuer: &str,
        reserved: &mut Option<Box<dyn Reservation>>,
    ) -> Result<(Option<Session>, Option<Secret>)> {
        let key = TokenKey::new(issuer, &self.server_url);
        // One after the other: whoever holds one and waits for another may wait for ever.
        *reserved = None;
        let loaded = async {
            let mut reservation = self.store.reserve(&key, RESERVE).await?;
            let kept = reservation.load().await?;
            Ok::<_, Error>((reservation, kept))
        };
        let (mut reservation, kept) = match loaded.await {
            Ok(loaded) => loaded,
            // A store of the program's own that is wrong: the program has to know.
            Err(error) if error.kind() == ErrorKind::Misuse => return Err(error),
            Err(error) if self.needs_store(&error) => return Err(Error::new(ErrorKind::Auth, error.message())),
            Err(error) => {
                self.warn(&format!("logins are not kept: {}", error.message()));
                return Ok((None, None));
            }
        };
        let session = kept.as_ref().and_then(|kept| Session::from_kept(kept, issuer, &self.auth));
        if session.as_ref().is_some_and(|session| session.refresh_token().is_some()) {
            // It is spent by being used: first there has to be a place for the next one.
            let room = reservation.make_room().await;
            room.map_err(|error| Error::new(ErrorKind::Auth, format!("{}: nothing was refreshed", error.message())))?;
        }
        *reserved = Some(reservation);
        Ok((session, kept))
    }

    /// Returns true if there is something that would be lost without the store: a refresh token that is known, or one
    /// that somebody else is changing.
    fn needs_store(&self, error: &Error) -> bool {
        let known = self.lock().session.as_ref().is_some_and(|session| session.refresh_token().is_some());
        known || (error.kind() == ErrorKind::Timeout && self.auth.granted() == Grant::AuthorizationCode)
    }

    /// Waits for the browser: where it was to come back to before, if that may be. The registration is good still then.
    async fn listened(&self, registered: Option<&str>) -> Result<(String, Waiting)> {
        match &self.auth.redirect {
            Some(redirect) => {
                let callback = redirect.listen().await?;
                Ok((callback.redirect_uri, Waiting::Given(callback.query)))
            }
            None => {
                let before = registered
                    .and_then(|uri| uri.strip_prefix("http://127.0.0.1:")?.strip_suffix("/callback")?.parse().ok());
                let own = match (self.auth.redirect_port, before) {
                    (None, Some(port)) => Own::bind(Some(port), "/callback").await.ok(),
                    _ => None,
                };
                let own = match own {
                    Some(own) => own,
                    None => Own::bind(self.auth.redirect_port, "/callback").await?,
                };
                Ok((own.redirect_uri(), Waiting::Own(own)))
            }
        }
    }

    async fn opened(&self, url: &str, waiting: Option<Waiting>) -> Result<String> {
        let nobody = |why: String| Error::new(ErrorKind::Auth, why);
        browser::check(url)?;
        let _here = self.auth.at_login();
        let patience = crate::options::seconds("login_timeout", self.auth.login_timeout)?;
        let late = || {
            nobody(format!(
                "nobody has logged in within {} ({})",
                crate::idiom::time(patience),
                crate::idiom::named("login_timeout")
            ))
        };
        let opening = async {
            match &self.auth.browser {
                Some(browser) => browser.open(url).await,
                None => browser::open(url, self.auth.no_browser).await,
            }
        };
        let answered = async {
            match waiting {
                // Others may knock, too.
                Some(Waiting::Own(own)) => {
                    let state = url.split_once('?').and_then(|(_, query)| state_of(query));
                    own.query(patience, move |query| state.is_some() && state_of(query) == state).await
                }
                Some(Waiting::Given(query)) => {
                    tokio::time::timeout(patience, query).await.unwrap_or_else(|_| Err(late()))
                }
                None => Err(nobody("nobody waits for the browser".into())),
            }
        };
        // At the same time: what opens the page may follow it to its end.
        let both = async {
            let (mut opening, mut answered) = (std::pin::pin!(opening), std::pin::pin!(answered));
            tokio::select! {
                answer = &mut answered => answer,
                opened = &mut opening => {
                    opened?;
                    answered.await
                }
            }
        };
        both.await
    }

    /// Keeps what a login has brought, before anybody uses it.
    async fn keep(&self, mut session: Session, reserved: Option<Box<dyn Reservation>>) -> Result<()> {
        let kept = async {
            let mut reservation = match reserved {
                Some(reservation) => reservation,
                None => self.store.reserve(&TokenKey::new(&session.issuer, &self.server_url), RESERVE).await?,
            };
            let before = match reservation.load().await {
                Ok(before) => before,
                // A damaged login is put aside, and its error comes once; anything else is not written over.
                Err(error) => {
                    let before = reservation.load().await?;
                    self.warn(error.message());
                    before
                }
            };
            let (kept, note) = session.to_kept(&self.auth, before.as_ref())?;
            reservation.save(&kept).await?;
            note.iter().for_each(|note| self.warn(note));
            Ok::<_, Error>(())
        };
        if let Err(error) = kept.await {
            self.warn(&format!("the login is used, and cannot be kept: {}", error.message()));
            session.unsaved = true;
        }
        self.take(session);
        Ok(())
    }
}
