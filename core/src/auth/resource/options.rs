use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::scopes::is_scope;
use crate::auth::resource_metadata::ResourceMetadata;
use crate::auth::secret::Secret;
use crate::auth::url::{Parts, is_safe};
use crate::call::BoxFuture;
use crate::error::{Error, Result, shown_url};
use crate::idiom::{named, time, unit};
use crate::model::Principal;
use crate::options::check_scopes;

/// The most seconds that clocks may differ by.
const MAX_CLOCK_SKEW: u64 = 10 * 60;

/// Access tokens that a server takes over HTTP: it is an OAuth 2.1 resource server then, and each of its requests needs
/// a token in its `Authorization` header.
///
/// ```
/// use tricorn::Server;
/// use tricorn::server::Auth;
///
/// let auth = Auth::issuer("https://login.example.com")
///     .resource("https://mcp.example.com/mcp")
///     .required_scopes(["mcp"]);
/// let server = Server::new("notes").auth(auth);
/// ```
///
/// A request without a token, or with one that is not for this server now, is answered with 401 and a challenge that
/// says where the protected-resource metadata is (RFC 9728), which is served, too; one whose token lacks scopes with 403
/// and a challenge that names all that it needs; one whose token cannot be checked now with 503. Handlers learn who
/// asks by [`Context::principal`](crate::Context::principal), and never see the token.
#[derive(Clone)]
pub struct Auth {
    pub(crate) source: Source,
    pub(crate) resource: Option<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) required_scopes: Vec<String>,
    scopes_supported: Vec<String>,
    authorization_servers: Vec<String>,
    resource_name: Option<String>,
    resource_documentation: Option<String>,
    pub(crate) clock_skew: u64,
    pub(crate) implications: Vec<(String, Vec<String>)>,
    pub(crate) fetcher: Option<Arc<Fetcher>>,
    pub(crate) timeout: Duration,
}

/// Source of the verdict on a token.
#[derive(Clone)]
pub(crate) enum Source {
    /// Its signature, by the keys that its issuer publishes.
    Issuer {
        issuer: String,
        jwks_uri: Option<String>,
    },
    /// RFC 7662.
    Introspection {
        url: String,
        client_id: String,
        client_secret: Secret,
    },
    Verifier(Arc<Verifier>),
}

/// The program's own word on a token.
pub(crate) type Verifier = dyn Fn(String) -> BoxFuture<Result<Principal>> + Send + Sync;

/// Function that carries out an exchange with the authorization server in place of this crate.
pub(crate) type Fetcher =
    dyn Fn(http::Request<Bytes>) -> BoxFuture<Result<http::Response<Bytes>, String>> + Send + Sync;

impl Auth {
    fn of(source: Source, authorization_servers: Vec<String>) -> Self {
        Self {
            source,
            resource: None,
            audiences: Vec::new(),
            required_scopes: Vec::new(),
            scopes_supported: Vec::new(),
            authorization_servers,
            resource_name: None,
            resource_documentation: None,
            clock_skew: 60,
            implications: Vec::new(),
            fetcher: None,
            timeout: Duration::from_secs(10),
        }
    }

    /// Takes JSON Web Tokens (RFC 9068) of this issuer: the text that their `iss` has, byte for byte. Its keys are found
    /// by its metadata (RFC 8414, OpenID Connect Discovery), kept, and fetched again when they are an hour old or a token
    /// is signed with another, once in 30 s at most; those that are known are used for a day while there are no others. Signatures
    /// are RS, PS, ES or EdDSA.
    pub fn issuer(issuer: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self::of(Source::Issuer { issuer: issuer.clone(), jwks_uri: None }, vec![issuer])
    }

    /// Asks the authorization server about each token (RFC 7662), as this client of it (`client_secret_basic`). An
    /// active token has to name its audience (`aud`). An answer is believed for 30 s. Say
    /// [`authorization_servers`](Self::authorization_servers), too.
    pub fn introspection(
        url: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<Secret>,
    ) -> Self {
        let (url, client_id, client_secret) = (url.into(), client_id.into(), client_secret.into());
        Self::of(Source::Introspection { url, client_id, client_secret }, Vec::new())
    }

    /// Asks a function about each token. It has to make sure that the token is for this server; what it says of the
    /// expiry is checked. An error of the kinds [`Transport`](crate::ErrorKind::Transport) and
    /// [`Timeout`](crate::ErrorKind::Timeout) means that nobody can tell now, any other that the token is refused; the
    /// client is told neither's message. Say [`authorization_servers`](Self::authorization_servers), too.
    ///
    /// ```
    /// # use tricorn::{Error, ErrorKind, model::Principal, server::Auth};
    /// let auth = Auth::verifier(|token| async move {
    ///     match token.strip_prefix("user-") {
    ///         Some(name) => Ok(Principal::new(name).scopes(["mcp"])),
    ///         None => Err(Error::new(ErrorKind::Auth, "unknown token")),
    ///     }
    /// })
    /// .authorization_servers(["https://login.example.com"]);
    /// ```
    pub fn verifier<F, R>(verify: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Principal>> + Send + 'static,
    {
        Self::of(Source::Verifier(Arc::new(move |token| Box::pin(verify(token)))), Vec::new())
    }

    /// Sets the address of the issuer's keys, for an issuer that publishes no metadata. It has no effect without an
    /// issuer.
    #[must_use]
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Self {
        if let Source::Issuer { jwks_uri, .. } = &mut self.source {
            *jwks_uri = Some(url.into());
        }
        self
    }

    /// The server's own URL, as its clients write it: `https://mcp.example.com/mcp`, with `https` also where a proxy ends
    /// TLS; `http` only on this machine. Tokens have to be for it (RFC 8707).
    /// Needed unless the server listens on the loopback interface with its default `allowed_hosts`: there it is the URL
    /// that the request was sent to.
    #[must_use]
    pub fn resource(mut self, url: impl Into<String>) -> Self {
        self.resource = Some(url.into());
        self
    }

    /// The audiences of which a token needs one, for authorization servers that have names of their own for resources.
    /// They replace the [`resource`](Self::resource): name that, too, where it may come. No other server may have them.
    #[must_use]
    pub fn audiences(mut self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.audiences = owned(audiences);
        self
    }

    /// The scopes that every request needs, all of them. Default: none.
    #[must_use]
    pub fn required_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.required_scopes = owned(scopes);
        self
    }

    /// The scopes that the metadata lists: those that a client should ask for at first, and no more. Default: the
    /// required ones.
    #[must_use]
    pub fn scopes_supported(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes_supported = owned(scopes);
        self
    }

    /// Adds scopes that `scope` implies: whoever was granted it has the `narrower` ones, too. May be called several
    /// times.
    #[must_use]
    pub fn scope_implies(
        mut self,
        scope: impl Into<String>,
        narrower: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.implications.push((scope.into(), owned(narrower)));
        self
    }

    /// The issuers that clients may get tokens from, as the metadata lists them. Default: the issuer.
    #[must_use]
    pub fn authorization_servers(mut self, issuers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.authorization_servers = owned(issuers);
        self
    }

    /// The server's name for people, in the metadata.
    #[must_use]
    pub fn resource_name(mut self, name: impl Into<String>) -> Self {
        self.resource_name = Some(name.into());
        self
    }

    /// Sets the page where developers can read about the server, in the metadata: an http or https URL.
    #[must_use]
    pub fn resource_documentation(mut self, url: impl Into<String>) -> Self {
        self.resource_documentation = Some(url.into());
        self
    }

    /// By how much the clocks of issuer and server may differ, in whole seconds. Default 60 s, at most 10 min.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.clock_skew = skew.as_secs();
        self
    }

    /// Sets the longest time that the authorization server, or the function, may take over one question; for keys,
    /// metadata and all. Default 10 s. Longer it is 503.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Carries out the exchanges with the authorization server in place of this crate, where they have to go through a
    /// proxy or need certificates. An error says why there is no answer; one that is longer than 1 MiB counts as none.
    #[must_use]
    pub fn fetch_with<F, R>(mut self, fetch: F) -> Self
    where
        F: Fn(http::Request<Bytes>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<http::Response<Bytes>, String>> + Send + 'static,
    {
        self.fetcher = Some(Arc::new(move |request| Box::pin(fetch(request))));
        self
    }

    /// Checks what is there. `derived`: without a `resource` it can be known from the request.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong or missing.
    pub(crate) fn check(&self, derived: bool) -> Result<()> {
        let wrong = |name: &str, why: String| Err(Error::misuse(format!("option \"auth\": {:?}: {why}", named(name))));
        let plain = |url: &str| is_safe(url) && !url.contains('#') && Parts::of(url).is_some_and(|url| !url.has_user());
        let url = |name: &str, url: &str| match plain(url) {
            true => Ok(()),
            false => wrong(
                name,
                format!(
                    "expected an https URL (http on this machine) without a user's name and a fragment, got {}",
                    shown_url(url)
                ),
            ),
        };
        // RFC 8414, section 2.
        let issuer_url = |name: &str, issuer: &str| match issuer.contains('?') {
            true => wrong(name, format!("expected an issuer, which has no query, got {}", shown_url(issuer))),
            false => url(name, issuer),
        };
        match &self.source {
            Source::Issuer { issuer, jwks_uri } => {
                issuer_url("issuer", issuer)?;
                jwks_uri.iter().try_for_each(|uri| url("jwks_uri", uri))?;
            }
            Source::Introspection { url: endpoint, .. } => url("introspection", endpoint)?,
            Source::Verifier(_) => {}
        }
        match self.resource.as_deref() {
            None if derived => {}
            None => {
                return wrong(
                    "resource",
                    "missing; say the server's URL, as https://mcp.example.com/mcp: only a server that listens on the \
                     loopback interface, with no allowed_hosts, knows its own"
                        .into(),
                );
            }
            // Tokens for a server that is reached in the clear, clients do not send; what a proxy that ends TLS passes on to
            // is no part of it.
            Some(resource) => {
                if !plain(resource) || resource.contains('?') {
                    let why = "expected the server's URL as its clients write it: https (http on this machine), without a \
                               user's name, query and fragment";
                    return wrong("resource", format!("{why}, got {}", shown_url(resource)));
                }
            }
        }
        if self.audiences.iter().any(|audience| audience.trim().is_empty()) {
            return wrong("audiences", "expected names of this server, got an empty one".into());
        }
        if self.clock_skew > MAX_CLOCK_SKEW {
            let why = format!(
                "expected at most {}, got {}",
                time(Duration::from_secs(MAX_CLOCK_SKEW)),
                time(Duration::from_secs(self.clock_skew))
            );
            return wrong("clock_skew", format!("{why}: so long a token is taken after its end"));
        }
        if let Some(page) = self.resource_documentation.as_deref().filter(|page| Parts::of(page).is_none()) {
            return wrong("resource_documentation", format!("expected an http or https URL, got {}", shown_url(page)));
        }
        if self.authorization_servers.is_empty() {
            return wrong("authorization_servers", "missing; say the issuers that clients may get tokens from".into());
        }
        self.authorization_servers.iter().try_for_each(|issuer| issuer_url("authorization_servers", issuer))?;
        for (name, scopes) in [("required_scopes", &self.required_scopes), ("scopes_supported", &self.scopes_supported)]
        {
            if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
                return wrong(name, format!("{scope:?} is no scope: expected visible ASCII without spaces, \" and \\"));
            }
            if scopes.iter().any(|scope| scope == "offline_access") {
                let why = "\"offline_access\" is between clients and their authorization server; leave it out";
                return wrong(name, why.into());
            }
        }
        for (scope, narrower) in &self.implications {
            let option = format!("auth: {}", named("scope_implies"));
            check_scopes(&option, std::slice::from_ref(scope))?;
            check_scopes(&format!("{option}: {scope}"), narrower)?;
        }
        if self.timeout.is_zero() {
            return wrong("timeout", format!("expected more than 0 {}", unit()));
        }
        Ok(())
    }

    /// The metadata of the server at `resource`.
    pub(crate) fn metadata(&self, resource: &str) -> ResourceMetadata {
        let scopes = if self.scopes_supported.is_empty() { &self.required_scopes } else { &self.scopes_supported };
        let mut metadata = ResourceMetadata::new(resource, &self.authorization_servers);
        metadata.scopes_supported = (!scopes.is_empty()).then(|| scopes.clone());
        metadata.bearer_methods_supported = Some(vec!["header".into()]);
        metadata.resource_name.clone_from(&self.resource_name);
        metadata.resource_documentation.clone_from(&self.resource_documentation);
        metadata
    }
}

fn owned(texts: impl IntoIterator<Item = impl Into<String>>) -> Vec<String> {
    texts.into_iter().map(Into::into).collect()
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match &self.source {
            Source::Issuer { issuer, .. } => format!("issuer {}", shown_url(issuer)),
            // Its query may hold a key.
            Source::Introspection { .. } => "introspection".to_owned(),
            Source::Verifier(_) => "verifier".to_owned(),
        };
        f.debug_struct("Auth")
            .field("source", &source)
            .field("resource", &self.resource.as_deref().map(|url| shown_url(url).trim_matches('"').to_owned()))
            .field("required_scopes", &self.required_scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_wrong_is_named() {
        let auth = || Auth::issuer("https://as").resource("https://h/mcp");
        let unused = |_: String| async { Ok(Principal::new("")) };
        for (auth, derived, why) in [
            (Auth::issuer("https://as"), false, "\"resource\": missing"),
            (Auth::issuer("http://as"), true, "\"issuer\""),
            (Auth::issuer("as"), true, "\"issuer\""),
            (auth().jwks_uri("http://as/keys"), false, "\"jwks_uri\""),
            (auth().resource("h/mcp"), false, "\"resource\""),
            (auth().resource("https://h/mcp?x"), false, "\"resource\""),
            (auth().resource("https://h/mcp#x"), false, "\"resource\""),
            (auth().resource("https://u:secret@h/mcp"), false, "\"resource\""),
            (auth().resource("http://h/mcp"), false, "\"resource\": expected the server's URL as its clients write it"),
            (Auth::issuer("https://u:secret@as"), true, "\"issuer\""),
            (Auth::issuer("https://as?x"), true, "\"issuer\": expected an issuer, which has no query"),
            (Auth::issuer("https://as#x"), true, "\"issuer\""),
            (auth().authorization_servers(["https://as?x"]), false, "\"authorization_servers\""),
            (auth().audiences(["api://h", ""]), false, "\"audiences\""),
            (auth().clock_skew(Duration::from_secs(601)), false, "\"clock_skew\": expected at most 600 s, got 601 s"),
            (auth().resource_documentation("javascript:1"), false, "\"resource_documentation\""),
            (Auth::introspection("http://as/i", "c", "secret"), true, "\"introspection\""),
            (Auth::introspection("https://as/i", "c", "secret"), true, "\"authorization_servers\": missing"),
            (Auth::verifier(unused), true, "\"authorization_servers\": missing"),
            (auth().authorization_servers(["javascript:x"]), false, "\"authorization_servers\""),
            (auth().required_scopes(["a b"]), false, "\"required_scopes\""),
            (auth().scopes_supported(["offline_access"]), false, "\"scopes_supported\""),
            (
                auth().scope_implies("a", ["b c"]),
                false,
                "scope_implies: a: expected one scope in each string, got \"b c\"",
            ),
            (auth().timeout(Duration::ZERO), false, "\"timeout\""),
        ] {
            let error = auth.check(derived).expect_err(why);
            assert!(error.message().contains(why), "{error}");
            assert!(!format!("{auth:?}").contains("secret"));
        }
        assert!(auth().check(false).is_ok());
        let allowed = auth().clock_skew(Duration::from_secs(600)).resource_documentation("http://h/docs");
        assert!(allowed.resource("http://localhost:8000/mcp").check(false).is_ok());
        assert!(Auth::issuer("http://localhost:1").check(true).is_ok());
    }

    #[test]
    fn the_metadata_says_how_to_get_in() {
        let auth = Auth::issuer("https://as/t").required_scopes(["a"]).resource_name("Notes");
        let written = serde_json::to_value(auth.metadata("https://h/mcp")).expect("json");
        assert_eq!(
            written,
            json!({"resource": "https://h/mcp", "authorization_servers": ["https://as/t"], "scopes_supported": ["a"],
                "bearer_methods_supported": ["header"], "resource_name": "Notes"})
        );
        let written = serde_json::to_value(auth.scopes_supported(["b"]).metadata("https://h")).expect("json");
        assert_eq!(written["scopes_supported"], json!(["b"]));
    }
}
