//! Principal: the sender of a request.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::options::check_scopes;

/// Sender of a request, as its access token says: found out by the server's authorization before anything runs, and on
/// the request's context as [`Context::principal`](crate::Context::principal).
///
/// Sessions, tasks and the state between rounds of questions belong to the issuer and the subject: a new token of the
/// same subject, with other scopes, is the same principal.
///
/// ```
/// use tricorn::prelude::*;
/// use tricorn::server::Auth;
///
/// let whoami = async |cx: Context| {
///     let Some(principal) = cx.principal() else { return Ok("nobody".to_owned()) };
///     let role = if principal.has_scope("notes:write") { "author" } else { "reader" };
///     Ok(format!("{}, {role}", principal.subject))
/// };
/// let auth = Auth::issuer("https://login.example.com").resource("https://notes.example.com/mcp");
/// Server::new("notes").auth(auth).tool("whoami", "Say who asks", whoami);
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Principal {
    /// The token's `sub`: a user, or a client that acts for itself. Where a token has none it is the client's id.
    pub subject: String,
    /// Issuer of the token (`iss`).
    pub issuer: Option<String>,
    /// The client that the token was issued to (`client_id`).
    pub client_id: Option<String>,
    /// Scopes that the token was granted. [`has_scope`](Self::has_scope) knows those that they imply, too.
    pub scopes: Vec<String>,
    /// All that the token or its introspection says. The token itself is not in it.
    pub claims: Map<String, Value>,
    /// Expiry of the token, in seconds since 1970. `None`: nobody says so.
    pub expires_at: Option<u64>,
    /// Scopes that the granted ones imply.
    implied: Vec<String>,
    /// The subject is a client's id, which another's `sub` may happen to be.
    is_client: bool,
}

impl Principal {
    /// The principal called `subject`: a name that its issuer gives to nobody else.
    pub fn new(subject: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            issuer: None,
            client_id: None,
            scopes: Vec::new(),
            claims: Map::new(),
            expires_at: None,
            implied: Vec::new(),
            is_client: false,
        }
    }

    /// A client that acts for itself, by a token that names no subject.
    pub(crate) fn of_client(client_id: &str) -> Self {
        Self { client_id: Some(client_id.to_owned()), is_client: true, ..Self::new(client_id) }
    }

    /// Sets [`issuer`](Self#structfield.issuer).
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets [`client_id`](Self#structfield.client_id).
    #[must_use]
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.client_id = Some(client_id.into());
        self
    }

    /// Sets [`scopes`](Self#structfield.scopes). Empty strings are left out: they are what splitting an empty list gives.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).filter(|scope| !scope.is_empty()).collect();
        self
    }

    /// Sets [`claims`](Self#structfield.claims).
    #[must_use]
    pub fn claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = claims;
        self
    }

    /// Sets [`expires_at`](Self#structfield.expires_at): seconds since 1970.
    #[must_use]
    pub fn expires_at(mut self, seconds: u64) -> Self {
        self.expires_at = Some(seconds);
        self
    }

    /// Returns true if a scope was granted, or follows from one that was
    /// (`Auth::scope_implies`).
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().chain(&self.implied).any(|own| own == scope)
    }

    /// Checks its names and scopes. A server refuses the token whose principal does not pass.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a subject or an issuer that is empty, as it would be of many, and for
    /// several scopes in one string. An empty one is none.
    pub fn check(&self) -> Result<()> {
        for (name, text) in [("subject", Some(&self.subject)), ("issuer", self.issuer.as_ref())] {
            if text.is_some_and(String::is_empty) {
                let why = "expected a string that is not empty: it tells one principal from another";
                return Err(Error::misuse(format!("Principal: {name}: {why}")));
            }
        }
        let mut scopes = self.scopes.iter().filter(|scope| !scope.is_empty());
        scopes.try_for_each(|scope| check_scopes("Principal: scopes", std::slice::from_ref(scope)))
    }

    /// Sets the scopes that the granted ones imply, besides themselves.
    pub(crate) fn set_implied(&mut self, scopes: Vec<String>) {
        self.implied = scopes;
    }

    /// Tells it from all others. Forms of different kinds are never equal.
    pub(crate) fn identity(&self) -> Value {
        let kind = if self.is_client { "client" } else { "sub" };
        json!({"iss": self.issuer, kind: self.subject})
    }

    /// Returns true if both are the same, whatever their tokens are.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.is_client == other.is_client && self.subject == other.subject && self.issuer == other.issuer
    }

    /// Returns the key of a principal: issuer, subject, and true if that is a client's id.
    pub(crate) fn key(&self) -> (Option<String>, String, bool) {
        (self.issuer.clone(), self.subject.clone(), self.is_client)
    }

    /// As JSON, for other processes of the server.
    #[cfg(feature = "redis")]
    pub(crate) fn to_shared(&self) -> Value {
        let mut value = self.to_value();
        value["isClient"] = self.is_client.into();
        value
    }

    /// Reverses [`to_shared`](Self::to_shared).
    #[cfg(feature = "redis")]
    pub(crate) fn from_shared(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let texts = |name: &str| -> Option<Vec<String>> {
            value[name].as_array()?.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        };
        Some(Self {
            subject: text("subject")?,
            issuer: text("issuer"),
            client_id: text("clientId"),
            scopes: texts("scopes")?,
            claims: value["claims"].as_object()?.clone(),
            expires_at: value["expiresAt"].as_u64(),
            implied: texts("impliedScopes")?,
            is_client: value["isClient"].as_bool()?,
        })
    }

    /// As JSON, for other languages.
    pub(crate) fn to_value(&self) -> Value {
        json!({
            "subject": self.subject,
            "issuer": self.issuer,
            "clientId": self.client_id,
            "scopes": self.scopes,
            "impliedScopes": self.implied,
            "claims": self.claims,
            "expiresAt": self.expires_at,
        })
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Claims hold what is nobody's business.
        f.debug_struct("Principal")
            .field("subject", &self.subject)
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_scope_is_none() {
        let mut principal = Principal::new("ada").scopes("".split(' '));
        assert!(principal.scopes.is_empty());
        principal.scopes.push(String::new());
        principal.check().expect("an empty scope passes");
        assert_eq!(Principal::new("ada").scopes("a  b".split(' ')).scopes, ["a", "b"]);
        for scope in ["a b", " ", "a\t"] {
            let refused = Principal::new("ada").scopes(["a", scope]).check().expect_err(scope);
            assert!(refused.message().contains("expected one scope in each string"), "{refused}");
        }
    }

    #[test]
    fn a_principal_is_its_issuer_and_subject() {
        let one = Principal::new("ada").issuer("https://a.example");
        for (other, same) in [
            (one.clone().scopes(["x"]).expires_at(7).client_id("c"), true),
            (Principal::new("ada"), false),
            (Principal::new("ada").issuer("https://b.example"), false),
            (Principal::new("bob").issuer("https://a.example"), false),
            (Principal::of_client("ada").issuer("https://a.example"), false),
        ] {
            assert_eq!((one.is(&other), one.identity() == other.identity()), (same, same), "{other:?}");
        }
    }
}
