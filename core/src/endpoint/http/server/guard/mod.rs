//! Guard at the entrance: the access token of every request, before its body is read, and the challenge to those
//! without.

mod carried;
mod introspection;
mod issuer;

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use http::header::{AUTHORIZATION, HOST};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::headers::Single;
use super::holder::Holder;
use super::options::HttpOptions;
use super::origin::is_local;
use super::reply::Refusal;
use super::shares::Counted;
use crate::auth::fetch::{Fetch, Fetched};
use crate::auth::jose::{KeySet, MAX_TOKEN_BYTES, Refused};
use crate::auth::resource::bearer::{self, Brought};
use crate::auth::resource::claims::{self, Expected};
use crate::auth::resource::introspection::{Known, digest, request};
use crate::auth::resource::keys::Keys;
use crate::auth::resource::scopes::{challenge, implied, lacking};
use crate::auth::resource::{Auth, Source};
use crate::auth::resource_metadata;
use crate::auth::url::{Parts as Url, covers};
use crate::driver::now;
use crate::endpoint::http::fetch::FetchPolicy;
use crate::error::{ErrorKind, Result};
use crate::model::Principal;
use crate::model::times::unix;
use crate::report;
use crate::server::Server;

/// The most requests that wait for the authorization server.
const MAX_WAITING: usize = 1024;
/// Most of them from one address.
const MAX_WAITING_EACH: usize = 256;
/// The most questions about tokens that are asked at once.
const MAX_ASKING: usize = 32;
/// The least time between two complaints about the authorization server.
const COMPLAINTS: Duration = Duration::from_secs(30);

/// Options that the server was given.
struct Given(Auth);

impl Server {
    /// Takes only requests with an access token, over HTTP; other transports have none. See [`Auth`]. The last one that is
    /// said counts, and a mistake in it is reported when serving starts.
    #[must_use]
    pub fn auth(self, auth: Auth) -> Self {
        self.state(Given(auth))
    }
}

/// Reason why a token does not let in.
enum Denied {
    /// It is not good, and why, in words for its bearer.
    Invalid(String),
    /// Nobody can tell now.
    Unavailable,
}

impl From<Refused> for Denied {
    fn from(refused: Refused) -> Self {
        Self::Invalid(refused.to_string())
    }
}

/// Checks the tokens of one endpoint.
pub(super) struct Guard {
    auth: Auth,
    /// Host and path of a server that knows its own URL by its requests.
    own: Option<(String, String)>,
    scheme: &'static str,
    /// The paths of the endpoint and of the stream of the oldest transport, where that is listened on.
    paths: Option<(String, String)>,
    keys: Mutex<Keys<KeySet>>,
    /// One fetch of keys at a time.
    fetching: Arc<tokio::sync::Mutex<()>>,
    known: Mutex<Known>,
    asking: Semaphore,
    waiting: Counted,
    policy: FetchPolicy,
    complained: Mutex<Option<Duration>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    /// The one that the server wants, if it wants one. `port` is the one listened on.
    ///
    /// # Errors
    /// A mistake in the options.
    pub(super) fn of(server: &Server, options: &HttpOptions, port: Option<u16>) -> Result<Option<Arc<Self>>> {
        let given = server.shared.router.states.read().unwrap_or_else(PoisonError::into_inner).find::<Given>();
        let Some(given) = given else { return Ok(None) };
        let own = port.filter(|_| is_local(&options.host) && options.allowed_hosts.is_empty());
        let own = own.map(|port| (format!("127.0.0.1:{port}"), options.path.clone()));
        given.0.check(own.is_some())?;
        let paths = port.filter(|_| options.sse).map(|_| (options.path.clone(), options.sse_path.clone()));
        Ok(Some(Arc::new(Self {
            auth: given.0.clone(),
            own,
            scheme: if options.cert.is_some() { "https" } else { "http" },
            paths,
            keys: Mutex::default(),
            fetching: Arc::default(),
            known: Mutex::default(),
            asking: Semaphore::new(MAX_ASKING),
            waiting: Counted::new(MAX_WAITING).with_each(MAX_WAITING_EACH),
            policy: FetchPolicy::named(),
            complained: Mutex::default(),
        })))
    }

    /// Returns the name of this server for those who send it requests. `host` has been checked.
    pub(super) fn resource(&self, host: Option<&str>) -> Option<String> {
        match (&self.auth.resource, &self.own) {
            (Some(resource), _) => Some(resource.clone()),
            (None, Some((own, path))) => Some(format!("{}://{}{path}", self.scheme, host.unwrap_or(own))),
            (None, None) => None,
        }
    }

    /// Returns the name of this server for clients of the oldest transport, where that is not below its other name.
    pub(super) fn pair_resource(&self, host: Option<&str>) -> Option<String> {
        let (path, sse_path) = self.paths.as_ref()?;
        let resource = self.resource(host)?;
        let url = Url::of(&resource)?;
        // Both may have something in front of them outside.
        let front = url.path.trim_end_matches('/').strip_suffix(path.trim_end_matches('/'))?;
        let own = format!("{}{front}{sse_path}", url.origin());
        (!covers(&resource, &own)).then_some(own)
    }

    /// Returns the time that a principal's token is still good; `None`: nobody says so.
    pub(super) fn time_left(&self, principal: &Principal) -> Option<Duration> {
        let end = unix(principal.expires_at?).saturating_add(self.auth.clock_skew);
        Some(Duration::from_secs(end.saturating_sub(seconds())))
    }

    /// The protected-resource metadata as JSON.
    pub(super) fn metadata(&self, resource: &str) -> String {
        serde_json::to_string(&self.auth.metadata(resource)).unwrap_or_default()
    }

    /// Finds the sender of a request, and takes the token out of it: nobody else needs it.
    ///
    /// # Errors
    /// 401 or 400 with a challenge, or 503.
    pub(super) async fn admit(
        self: &Arc<Self>,
        head: &mut Parts,
        host: Option<&str>,
        at_pair: bool,
        from: Option<IpAddr>,
    ) -> Result<Arc<Principal>, Refusal> {
        let main = self.resource(host).unwrap_or_default();
        let resource = at_pair.then(|| self.pair_resource(host)).flatten().unwrap_or_else(|| main.clone());
        let authorization: Vec<_> = head.headers.get_all(AUTHORIZATION).iter().map(|v| v.to_str().ok()).collect();
        let token = match bearer::read(&authorization, head.uri.query()) {
            Brought::Token(token) => token.to_owned(),
            Brought::Nothing => {
                let why = "an access token is needed: header Authorization: missing, or no Bearer";
                return Err(self.refusal(StatusCode::UNAUTHORIZED, &resource, None, why));
            }
            Brought::Malformed(why) => {
                return Err(self.refusal(StatusCode::BAD_REQUEST, &resource, Some("invalid_request"), why));
            }
        };
        head.headers.remove(AUTHORIZATION);
        match self.checked(token, &resource, &main, &Holder::of(None, from)).await {
            Ok(principal) => Ok(principal),
            Err(Denied::Invalid(why)) => {
                Err(self.refusal(StatusCode::UNAUTHORIZED, &resource, Some("invalid_token"), &why))
            }
            Err(Denied::Unavailable) => {
                let why = "the access token cannot be checked now: the authorization server does not answer";
                Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, why).retry_after(5))
            }
        }
    }

    /// Checks that the token of a request has the scopes that the server needs, and the operation besides.
    ///
    /// # Errors
    /// 403 with a challenge that names all of them.
    pub(super) fn permit(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
        at_pair: bool,
        needed: &[String],
    ) -> Result<(), Refusal> {
        let Some(scopes) = lacking(principal, &self.auth.required_scopes, needed) else { return Ok(()) };
        let why = "the access token does not have all scopes that this needs";
        let host = Single::of(headers, &HOST).text();
        let pair = at_pair.then(|| self.pair_resource(host)).flatten();
        let resource = pair.or_else(|| self.resource(host)).unwrap_or_default();
        let url = resource_metadata::well_known(&resource).into_iter().next();
        let challenge = challenge(Some(("insufficient_scope", why)), &scopes, url.as_deref());
        let message = format!("{why}: {}", scopes.join(" "));
        Err(Refusal::new(StatusCode::FORBIDDEN, message).challenge(&challenge.header()))
    }

    fn refusal(&self, status: StatusCode, resource: &str, error: Option<&str>, why: &str) -> Refusal {
        let url = resource_metadata::well_known(resource).into_iter().next();
        let challenge = challenge(error.map(|error| (error, why)), &self.auth.required_scopes, url.as_deref());
        Refusal::new(status, why).challenge(&challenge.header())
    }

    /// `main` is what the token may be for, too.
    async fn checked(
        self: &Arc<Self>,
        token: String,
        resource: &str,
        main: &str,
        holder: &Holder,
    ) -> Result<Arc<Principal>, Denied> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(Refused::TooLong.into());
        }
        let audiences = match self.auth.audiences.as_slice() {
            [] if main == resource => vec![resource.to_owned()],
            [] => vec![resource.to_owned(), main.to_owned()],
            audiences => audiences.to_vec(),
        };
        let mut expected = Expected { issuer: None, audiences: &audiences, skew: self.auth.clock_skew, expires: false };
        match &self.auth.source {
            Source::Issuer { issuer, .. } => {
                (expected.issuer, expected.expires) = (Some(issuer.as_str()), true);
                let claims = self.verified(&token).await?;
                let principal = claims::check(claims, &expected, seconds()).map_err(invalid)?;
                Ok(Arc::new(self.completed(principal)))
            }
            Source::Introspection { url, client_id, client_secret } => {
                // An answer is good for the resource that it was checked for.
                let key = digest(&format!("{resource}\n{token}"));
                let fetch = || request(url, client_id, client_secret.expose(), &token);
                let principal = self.introspected(key, fetch, &expected, holder).await?;
                self.in_time(&principal)?;
                Ok(principal)
            }
            Source::Verifier(verify) => {
                let _waiting = self.waits(holder)?;
                let asked = AssertUnwindSafe(async { verify(token).await }).catch_unwind();
                let principal = match timeout(self.auth.timeout, asked).await {
                    Ok(Ok(Ok(principal))) => principal,
                    Ok(Ok(Err(error))) if matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout) => {
                        return Err(self.unavailable("the function that checks tokens cannot tell"));
                    }
                    Ok(Ok(Err(error))) => {
                        if error.kind() == ErrorKind::Misuse {
                            // A mistake of the function's, and of no bearer.
                            self.complain(error.message());
                        }
                        return Err(invalid("the token is not accepted"));
                    }
                    Ok(Err(_)) => return Err(self.unavailable("the function that checks tokens panicked")),
                    Err(_) => return Err(self.unavailable("the function that checks tokens took too long")),
                };
                if let Err(error) = principal.check() {
                    self.complain(error.message());
                    return Err(invalid("the token is not accepted"));
                }
                self.in_time(&principal)?;
                Ok(Arc::new(self.completed(principal)))
            }
        }
    }

    fn completed(&self, mut principal: Principal) -> Principal {
        principal.scopes.retain(|scope| !scope.is_empty());
        let implied = implied(&principal.scopes, &self.auth.implications);
        principal.set_implied(implied);
        principal
    }

    fn in_time(&self, principal: &Principal) -> Result<(), Denied> {
        match principal.expires_at {
            Some(end) if unix(end).saturating_add(self.auth.clock_skew) <= seconds() => {
                Err(invalid("the token has expired"))
            }
            _ => Ok(()),
        }
    }

    async fn fetched(&self, fetch: &Fetch) -> Result<Fetched, String> {
        match &self.auth.fetcher {
            Some(fetcher) => carried::carried_out(&**fetcher, fetch).await,
            None => crate::endpoint::http::fetch::fetch(fetch, &self.policy).await.map_err(|unfetched| unfetched.why),
        }
    }

    /// Room for one more of this holder's that waits.
    fn waits<'a>(&'a self, holder: &'a Holder) -> Result<Waiting<'a>, Denied> {
        self.waiting.take(holder).then(|| Waiting(&self.waiting, holder)).ok_or(Denied::Unavailable)
    }

    fn unavailable(&self, why: &str) -> Denied {
        self.complain(why);
        Denied::Unavailable
    }

    /// Tells the server's operator, who is the one that can do something about it, now and then.
    fn complain(&self, why: &str) {
        let mut last = lock(&self.complained);
        let due = last.is_none_or(|last| now().saturating_sub(last) >= COMPLAINTS);
        if due {
            *last = Some(now());
            drop(last);
            report::say(format_args!("access tokens cannot be checked: {why}"));
        }
    }
}

/// One that waits for the authorization server.
struct Waiting<'a>(&'a Counted, &'a Holder);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.give_back(self.1);
    }
}

fn invalid(why: &'static str) -> Denied {
    Denied::Invalid(why.into())
}

/// Seconds since 1970.
fn seconds() -> u64 {
    unix(SystemTime::now())
}
