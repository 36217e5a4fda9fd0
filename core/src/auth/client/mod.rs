//! Options of a client for servers that are protected. Without any, it discovers everything.

mod asked;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

pub(crate) use asked::Source;
pub use asked::{Browser, Callback, Redirect, Wanted};

use super::flow::AuthStep;
#[cfg(doc)]
use super::store::MemoryStore;
use super::store::{TokenStore, default_store};
use super::url::is_safe;
use super::url::{is_document_url, is_redirect_uri};
use crate::call::BoxFuture;
use crate::error::{Error, Result, shown_url};
use crate::idiom::named;
use crate::options::setters;

/// The most steps of past logins that are remembered.
const MAX_TRACED: usize = 128;

/// Way in which a client gets its access tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Grant {
    /// A user logs in with a browser (RFC 6749 §4.1).
    AuthorizationCode,
    /// The program is let in as itself (RFC 6749 §4.4).
    ClientCredentials,
    /// A workload's own JWT is the grant (RFC 7523 §2.1).
    JwtBearer,
    /// An identity provider answers for the user: RFC 8693, then RFC 7523 (enterprise-managed authorization).
    IdJag,
}

/// The identity provider of an enterprise, which answers for its users.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Identity {
    /// Its token endpoint, an https URL.
    pub token_endpoint: String,
    /// The client id of this program there.
    pub client_id: String,
    /// Its secret there, if it has one.
    #[serde(default)]
    pub client_secret: Option<String>,
    /// The ID token that it has issued for the user; or a function gives it ([`Auth::assertion_from`]).
    #[serde(default)]
    pub token: Option<String>,
    /// The token's type. Default `urn:ietf:params:oauth:token-type:id_token`.
    #[serde(default)]
    pub token_type: Option<String>,
}

impl Identity {
    /// The identity provider with this token endpoint, and the ID token that it gave to `client_id`.
    pub fn new(token_endpoint: impl Into<String>, client_id: impl Into<String>, token: impl Into<String>) -> Self {
        let (token_endpoint, client_id) = (token_endpoint.into(), client_id.into());
        Self { token_endpoint, client_id, client_secret: None, token: Some(token.into()), token_type: None }
    }

    pub(crate) fn subject_token_type(&self) -> &str {
        self.token_type.as_deref().unwrap_or("urn:ietf:params:oauth:token-type:id_token")
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({} at {})", self.client_id, shown_url(&self.token_endpoint))
    }
}

/// Authorization of a client at a protected server. `Auth::new()` discovers everything. The same names in every
/// language.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::client::Auth;
/// use tricorn::prelude::*;
///
/// // A user logs in with the browser, at the place that the server names; the login is kept for the next time.
/// let user = Auth::new().client_name("Notes").scopes(["notes:read"]);
/// // A program without a user has an id and a secret of its own.
/// let job = Auth::client_credentials("nightly", std::env::var("SECRET").unwrap_or_default());
///
/// let options = ClientOptions::new().auth(user);
/// let client = Client::connect(&"https://notes.example.com/mcp".parse()?, &options).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Auth {
    /// Way of getting tokens. Default: by what else is given, and a user's login otherwise.
    pub grant: Option<Grant>,
    /// The program's id at the authorization server, where it is registered already.
    pub client_id: Option<String>,
    /// Its secret there.
    pub client_secret: Option<String>,
    /// Its private key there, PEM; it proves itself with `private_key_jwt` (RFC 7523) then.
    pub private_key: Option<String>,
    /// The key's algorithm. Default `ES256`.
    pub signing_algorithm: Option<String>,
    /// The key's id (`kid`), where the server needs it.
    pub key_id: Option<String>,
    /// The issuer that `client_id` belongs to; of the authorization servers that a server lists, this one is taken. For
    /// servers without metadata, the one that is asked. Say it beside a secret: what a server lists is its own choice.
    pub issuer: Option<String>,
    /// The URL of the program's own Client ID Metadata Document: its id at servers that understand that.
    pub client_metadata_url: Option<String>,
    /// The program's name for people, where it registers itself. Default: the client's own name.
    pub client_name: Option<String>,
    /// Web page about the program.
    pub client_uri: Option<String>,
    /// `native` or `web` (OpenID Connect). Default: `native` where the browser comes back to this machine.
    pub application_type: Option<String>,
    /// The user, where one program has several: the login of one is not shown for another. Default: the one user of the
    /// program.
    pub user: Option<String>,
    /// Scopes that are always asked for, besides what the server wants.
    pub scopes: Vec<String>,
    /// Tokens bound to a key (RFC 9449): `true` wherever the authorization server can, `false` never. Default: where the
    /// MCP server asks for it.
    pub dpop: Option<bool>,
    /// The identity provider that answers for the user.
    pub identity: Option<Identity>,
    /// A workload's JWT, which is the grant.
    pub assertion: Option<String>,
    /// An access token: nothing else is done then.
    pub token: Option<String>,
    /// Longest time that a user may take to log in, in seconds. Default 300.
    pub login_timeout: f64,
    /// Says the login page's address on standard error instead of opening it, where no other browser is given.
    pub no_browser: bool,
    /// The port of this machine that the browser comes back to, at `/callback`, where nothing else is given. Default: one
    /// that is free; a client that was registered by hand may need its own.
    pub redirect_port: Option<u16>,
    #[serde(skip)]
    pub(crate) browser: Option<Arc<dyn Browser>>,
    #[serde(skip)]
    pub(crate) redirect: Option<Arc<dyn Redirect>>,
    #[serde(skip)]
    pub(crate) tokens: Option<Source>,
    #[serde(skip)]
    pub(crate) assertions: Option<Source>,
    #[serde(skip)]
    store: Option<Arc<dyn TokenStore>>,
    #[serde(skip)]
    traced: Arc<Mutex<VecDeque<AuthStep>>>,
    /// Number of users that are logging in.
    #[serde(skip)]
    users: Arc<watch::Sender<usize>>,
}

/// A user is logging in as long as this is there.
pub(crate) struct AtLogin(Arc<watch::Sender<usize>>);

impl Drop for AtLogin {
    fn drop(&mut self) {
        self.0.send_modify(|users| *users = users.saturating_sub(1));
    }
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            grant: None,
            client_id: None,
            client_secret: None,
            private_key: None,
            signing_algorithm: None,
            key_id: None,
            issuer: None,
            client_metadata_url: None,
            client_name: None,
            client_uri: None,
            application_type: None,
            user: None,
            scopes: Vec::new(),
            dpop: None,
            identity: None,
            assertion: None,
            token: None,
            login_timeout: 300.0,
            no_browser: false,
            redirect_port: None,
            browser: None,
            redirect: None,
            tokens: None,
            assertions: None,
            store: None,
            traced: Arc::default(),
            users: Arc::default(),
        }
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("grant", &self.granted())
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("client_metadata_url", &self.client_metadata_url)
            .field("scopes", &self.scopes)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl Auth {
    /// Discovers everything, registers the program where that is possible, and lets the user log in.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The program as itself, with a secret (RFC 6749 §4.4).
    pub fn client_credentials(client_id: impl Into<String>, client_secret: impl Into<String>) -> Self {
        Self::new().grant(Grant::ClientCredentials).client_id(client_id).client_secret(client_secret)
    }

    /// The program as itself, with a private key in PEM and its algorithm, such as `ES256` (RFC 7523 §2.2).
    pub fn private_key_jwt(
        client_id: impl Into<String>,
        private_key: impl Into<String>,
        signing_algorithm: impl Into<String>,
    ) -> Self {
        let auth = Self::new().grant(Grant::ClientCredentials).client_id(client_id);
        auth.private_key(private_key).signing_algorithm(signing_algorithm)
    }

    /// The user as their identity provider knows them (enterprise-managed authorization).
    #[must_use]
    pub fn identity_assertion(identity: Identity) -> Self {
        Self { identity: Some(identity), ..Self::new() }
    }

    /// An access token that is there already.
    pub fn bearer(token: impl Into<String>) -> Self {
        Self::new().token(token)
    }

    /// Access tokens from a function. It is asked again when the server refuses one.
    pub fn bearer_from<F>(tokens: impl Fn(Wanted) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        Self::new().tokens_from(move |wanted| Box::pin(tokens(wanted)))
    }

    pub(crate) fn tokens_from(
        self,
        tokens: impl Fn(Wanted) -> BoxFuture<Result<String>> + Send + Sync + 'static,
    ) -> Self {
        Self { tokens: Some(Arc::new(tokens)), ..self }
    }

    /// A workload, whose platform gives it JWTs: the function is asked for one each time (RFC 7523 §2.1).
    pub fn workload<F>(client_id: impl Into<String>, assertions: impl Fn(Wanted) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        Self::new().grant(Grant::JwtBearer).client_id(client_id).assertion_from(assertions)
    }

    setters! {
        grant: some Grant;
        client_id: some text;
        client_secret: some text;
        private_key: some text;
        signing_algorithm: some text;
        key_id: some text;
        issuer: some text;
        client_metadata_url: some text;
        client_name: some text;
        client_uri: some text;
        application_type: some text;
        user: some text;
        dpop: some bool;
        identity: some Identity;
        assertion: some text;
        token: some text;
        login_timeout: f64;
        no_browser: bool;
        redirect_port: some u16;
    }

    /// Sets [`scopes`](Self#structfield.scopes).
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Gives the workload's JWT, or what the identity provider has said, when it is wanted.
    #[must_use]
    pub fn assertion_from<F>(mut self, assertions: impl Fn(Wanted) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String>> + Send + 'static,
    {
        self.assertions = Some(Arc::new(move |wanted| Box::pin(assertions(wanted))));
        self
    }

    /// Sets the browser that shows the login to the user. Default: the system's browser.
    #[must_use]
    pub fn browser(mut self, browser: impl Browser) -> Self {
        self.browser = Some(Arc::new(browser));
        self
    }

    /// Sets the address that the browser comes back to afterwards. Default: a port of this machine.
    #[must_use]
    pub fn redirect(mut self, redirect: impl Redirect) -> Self {
        self.redirect = Some(Arc::new(redirect));
        self
    }

    /// Sets the store of logins. Default: files that only the user can read, sealed with a key of the system's keychain
    /// where there is one ([`FileStore::with_keychain`](crate::auth::FileStore::with_keychain)); [`MemoryStore`] keeps
    /// nothing beyond the process.
    #[must_use]
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    pub(crate) fn kept_with(self, store: Arc<dyn TokenStore>) -> Self {
        Self { store: Some(store), ..self }
    }

    /// Returns the store of logins.
    pub(crate) fn kept_in(&self) -> Arc<dyn TokenStore> {
        self.store.clone().unwrap_or_else(default_store)
    }

    /// Returns the questions, answers and decisions of the last logins of all clients with these options, oldest first:
    /// 128 steps at most. There are no secrets in it.
    #[must_use]
    pub fn trace(&self) -> Vec<AuthStep> {
        self.traced.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn traced(&self, steps: Vec<AuthStep>) {
        let mut traced = self.traced.lock().unwrap_or_else(PoisonError::into_inner);
        traced.extend(steps);
        let excess = traced.len().saturating_sub(MAX_TRACED);
        traced.drain(..excess);
    }

    /// Returns the same options for one connection, and the number of its users that are logging in: it tells a caller
    /// that waits for the connection whether it waits for users.
    pub(crate) fn watched(&self) -> (Self, watch::Receiver<usize>) {
        let (users, watched) = watch::channel(0);
        (Self { users: Arc::new(users), ..self.clone() }, watched)
    }

    pub(crate) fn at_login(&self) -> AtLogin {
        self.users.send_modify(|users| *users += 1);
        AtLogin(self.users.clone())
    }

    pub(crate) fn granted(&self) -> Grant {
        self.grant.unwrap_or_else(|| match () {
            () if self.identity.is_some() => Grant::IdJag,
            () if self.assertion.is_some() => Grant::JwtBearer,
            () => Grant::AuthorizationCode,
        })
    }

    /// URLs that the program itself was given.
    pub(crate) fn named_urls(&self) -> impl Iterator<Item = &str> {
        self.issuer
            .as_deref()
            .into_iter()
            .chain(self.identity.as_ref().map(|identity| identity.token_endpoint.as_str()))
    }

    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is missing or wrong.
    pub(crate) fn check(&self) -> Result<()> {
        let wrong = |name: &str, why: &str| Err(Error::misuse(format!("option \"auth\": {:?}: {why}", named(name))));
        crate::options::seconds("login_timeout", self.login_timeout)?;
        crate::options::check_scopes("auth: scopes", &self.scopes)?;
        if self.client_metadata_url.as_deref().is_some_and(|url| !is_document_url(url)) {
            return wrong("client_metadata_url", "expected an https URL with a path");
        }
        if self.application_type.as_deref().is_some_and(|kind| !["native", "web"].contains(&kind)) {
            return wrong("application_type", "expected \"native\" or \"web\"");
        }
        if self.issuer.as_deref().is_some_and(|url| !is_safe(url)) {
            return wrong("issuer", "expected an https URL");
        }
        if self.identity.as_ref().is_some_and(|identity| !is_safe(&identity.token_endpoint)) {
            return wrong("identity", "expected an https URL as its token_endpoint");
        }
        let algorithm = self.signing_algorithm.as_deref();
        if algorithm.is_some_and(|name| super::jose::Algorithm::parse(name).is_none()) {
            return wrong("signing_algorithm", "expected one that signs with a private key, such as \"ES256\"");
        }
        let header = |text: &String| !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte));
        if self.token.as_ref().is_some_and(|token| !header(token)) {
            return wrong("token", "expected visible ASCII without spaces");
        }
        if self.client_secret.is_some() && self.client_id.is_none() {
            return wrong("client_id", &format!("a {} belongs to a {}", named("client_secret"), named("client_id")));
        }
        let assertion = self.assertions.is_some();
        match self.granted() {
            _ if self.token.is_some() || self.tokens.is_some() => Ok(()),
            Grant::AuthorizationCode => Ok(()),
            _ if self.client_id.is_none() => wrong("client_id", "this grant needs one"),
            Grant::ClientCredentials if self.client_secret.is_none() && self.private_key.is_none() => {
                wrong("client_secret", "client credentials need one, or a private_key")
            }
            Grant::JwtBearer if self.assertion.is_none() && !assertion => {
                wrong("assertion", "this grant needs one, or a function that gives it")
            }
            Grant::IdJag if self.identity.is_none() => wrong("identity", "this grant needs one"),
            Grant::IdJag if self.identity.as_ref().is_some_and(|own| own.token.is_none()) && !assertion => {
                wrong("identity", "expected its token, or a function that gives it")
            }
            _ => Ok(()),
        }
    }
}

/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for an address that no browser may be sent back to.
pub(crate) fn check_redirect(uri: &str) -> Result<()> {
    if is_redirect_uri(uri) {
        return Ok(());
    }
    Err(Error::misuse(format!(
        "redirect_uri: expected an https URL, or an http one on this machine, and no fragment, got {}",
        shown_url(uri)
    )))
}

#[cfg(test)]
mod tests;
