//! Logins that are kept, for people and for programs that log in and out.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::Value;

use super::client::Auth;
use super::registration::KnownBy;
use super::secret::Secret;
use super::session::{self, Session};
use super::store::TokenStore;
use super::token::TokenType;
use super::url::Parts;
use crate::error::{Error, Result, shown_url};
use crate::model::times;

/// Somebody else may be refreshing it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A kept login at one server. Its secrets are neither serialized nor shown by `Debug`. In JSON, times are
/// seconds since 1970.
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct Login {
    /// The MCP server's URL.
    pub server: String,
    /// The authorization server's issuer identifier.
    pub issuer: String,
    /// The program's id there.
    pub client_id: String,
    /// The user, where the program names its users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user as the authorization server names them: `sub` of an access token that is a JSON Web Token. Nobody has checked
    /// its signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The scopes that were granted; those that were asked for, where the server has not said.
    pub scopes: Vec<String>,
    /// Time of the token's arrival.
    #[serde(serialize_with = "times::since_1970")]
    pub since: SystemTime,
    /// End of the access token, if the server has said.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::since_1970_if_any")]
    pub expires_at: Option<SystemTime>,
    /// There is a refresh token.
    pub refreshes: bool,
    /// The token is bound to a key (RFC 9449), and of no use without it.
    pub is_bound: bool,
    #[serde(skip)]
    token: Option<Secret>,
    #[serde(skip)]
    renew_at: Option<u64>,
    #[serde(skip)]
    auth: Option<Auth>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({} at {})", self.client_id, shown_url(&self.server))
    }
}

impl Login {
    fn of(server: &str, session: Session, store: &Arc<dyn TokenStore>) -> Self {
        let mut auth = Auth::new().issuer(&session.issuer).kept_with(store.clone());
        auth.user.clone_from(&session.user);
        auth.grant = session.grant;
        match session.client.known_by {
            KnownBy::Preregistration => {
                auth.client_id = Some(session.client.client_id.clone());
                auth.client_secret.clone_from(&session.client.client_secret);
            }
            KnownBy::MetadataDocument => auth.client_metadata_url = Some(session.client.client_id.clone()),
            KnownBy::Registration => {}
        }
        let token = session.token.as_ref();
        let granted = token.and_then(|token| token.scope.as_deref());
        let scopes = granted
            .map_or_else(|| session.scopes.clone(), |granted| granted.split_whitespace().map(str::to_owned).collect());
        Self {
            server: server.to_owned(),
            subject: token.and_then(|token| subject_of(&token.access_token)),
            scopes,
            since: times::from_unix(session.since),
            expires_at: token.and_then(|token| token.expires_at).map(times::from_unix),
            refreshes: session.refresh_token().is_some(),
            is_bound: token.is_some_and(|token| token.token_type == TokenType::Dpop),
            token: token.map(|token| token.access_token.as_str().into()),
            renew_at: token.and_then(|token| token.renew_at),
            client_id: session.client.client_id,
            issuer: session.issuer,
            user: session.user,
            auth: auth.check().is_ok().then_some(auth),
        }
    }

    /// The access token, for the header `Authorization`; it may have expired.
    #[must_use]
    pub fn access_token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// Returns true if a client would renew the access token before it uses it at this time.
    #[must_use]
    pub fn is_stale(&self, now: SystemTime) -> bool {
        self.renew_at.is_some_and(|at| at <= times::unix(now))
    }

    /// Options of a client that uses this login: the same program at the same authorization server, the same user, the same
    /// store. `None` where more is needed than is kept with a login: a private key, or what an identity provider says.
    #[must_use]
    pub fn auth(&self) -> Option<Auth> {
        self.auth.clone()
    }
}

/// The subject of a JSON Web Token; `None` for another text.
fn subject_of(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims.get("sub")?.as_str().map(|subject| crate::error::shortened(subject, 200).into_owned())
}

/// The name of a server in a token store.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for what is no http or https URL.
fn server_of(url: &str) -> Result<String> {
    let bad = || Error::misuse(format!("expected http:// or https://, got {}", shown_url(url)));
    Parts::of(url).map(|parts| parts.server()).ok_or_else(bad)
}

impl Auth {
    /// Returns the logins of all programs and users that the store of these options keeps for the server at `url`, the
    /// newest first. No server is asked.
    ///
    /// # Errors
    /// Those of the store; [`Misuse`](crate::ErrorKind::Misuse) for what is no URL.
    pub async fn logins(&self, url: &str) -> Result<Vec<Login>> {
        let (server, store) = (server_of(url)?, self.kept_in());
        let found = store.find(&server).await?;
        let sessions = found.iter().flat_map(|(key, kept)| session::all(kept, &key.issuer));
        let mut logins: Vec<_> = sessions.map(|session| Login::of(&server, session, &store)).collect();
        logins.sort_by_key(|login| std::cmp::Reverse(login.since));
        Ok(logins)
    }

    /// Forgets all that the store of these options keeps of logins at the server at `url`, of all programs and users.
    /// Returns true if there was something. Authorization servers are not told: tokens that somebody else has are good until
    /// they expire.
    ///
    /// # Errors
    /// As of [`logins`](Self::logins).
    pub async fn log_out(&self, url: &str) -> Result<bool> {
        let (server, store) = (server_of(url)?, self.kept_in());
        let found = store.find(&server).await?;
        for (key, _) in &found {
            store.reserve(key, PATIENCE).await?.remove().await?;
        }
        Ok(!found.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::{MemoryStore, TokenKey};
    use super::*;

    #[test]
    fn only_tokens_that_can_be_read_have_a_subject() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(subject_of(&token(r#"{"sub":"ada"}"#)).as_deref(), Some("ada"));
        for text in [token("{}"), token("no JSON"), token(r#"{"sub":5}"#), "opaque".into(), "a.b.c".into()] {
            assert_eq!(subject_of(&text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn logins_are_found_by_the_url_used_and_forgotten() {
        let store = MemoryStore::new();
        let auth = Auth::new().store(store.clone());
        let kept = |client: &str, known_by: &str, since: u64| {
            serde_json::json!({
                "issuer": "https://as", "token_endpoint": "https://as/token", "since": since, "scopes": ["a", "b"],
                "client": {"client_id": client, "known_by": known_by, "client_secret": "hidden"},
                "token": {"access_token": "at-secret", "token_type": "Bearer", "expires_at": 90, "renew_at": 60,
                    "refresh_token": "rt-secret", "scope": "a"},
            })
        };
        let logins = serde_json::json!({"logins": [
            kept("one", "registration", 1), kept("two", "preregistration", 2), {"strange": true},
        ]});
        let key = TokenKey::new("https://as", "https://h/mcp?tenant=1");
        let mut reserved = store.reserve(&key, PATIENCE).await.expect("reserved");
        reserved.save(&logins.to_string().into()).await.expect("saved");
        drop(reserved);
        for url in ["https://h/mcp", "https://h/mcp?tenant=2", "http://h/mcp?tenant=1"] {
            assert!(auth.logins(url).await.expect("found").is_empty(), "{url}");
        }
        let found = auth.logins("https://me:pw@h/mcp?tenant=1#top").await.expect("found");
        let names: Vec<_> = found.iter().map(|login| login.client_id.as_str()).collect();
        assert_eq!(names, ["two", "one"]);
        assert_eq!((&*found[0].scopes, found[0].refreshes, found[0].is_bound), (&["a".to_owned()][..], true, false));
        let is_stale = |at| found[0].is_stale(times::from_unix(at));
        assert_eq!((is_stale(59), is_stale(60)), (false, true));
        assert_eq!((found[0].since, found[0].expires_at), (times::from_unix(2), Some(times::from_unix(90))));
        assert_eq!(found[0].access_token().map(Secret::expose), Some("at-secret"));
        let shown = format!("{found:?}{}", serde_json::to_string(&found).expect("JSON"));
        assert!(!shown.contains("secret") && !shown.contains("hidden"), "{shown}");
        assert!(shown.contains(r#""since":2,"expires_at":90"#), "{shown}");
        let kept = store.load(&key).await.expect("loaded").expect("something");
        for login in &found {
            let own = Session::from_kept(&kept, "https://as", &login.auth().expect("options")).expect("its own");
            assert_eq!(own.client.client_id, login.client_id);
        }
        assert!(auth.log_out("https://h/mcp?tenant=1").await.expect("forgotten"));
        assert!(!auth.log_out("https://h/mcp?tenant=1").await.expect("nothing left"));
        assert!(auth.logins("here").await.is_err());
    }
}
