//! What a login leaves behind, and what is kept of it.

use serde::{Deserialize, Serialize};

use super::client::{Auth, Grant};
use super::registration::{Client, KnownBy};
use super::secret::Secret;
use super::token::Token;
use crate::error::{Error, ErrorKind, Result};

/// What one client has at one authorization server, for one MCP server. There is nothing of another issuer in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) issuer: String,
    /// What tokens are asked for (RFC 8707), as the server's metadata has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// Where that metadata was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_metadata: Option<String>,
    pub(crate) token_endpoint: String,
    /// The server's `token_endpoint_auth_methods_supported`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    pub(crate) client: Client,
    /// How the token was got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
    /// Whose login it is, by the program's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// What was asked for.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Token>,
    /// When it came, Unix seconds.
    #[serde(default)]
    pub(crate) since: u64,
    /// The key that the token is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) dpop: Option<Secret>,
    /// It could not be kept: what is kept is older.
    #[serde(skip)]
    pub(crate) unsaved: bool,
}

/// The most logins of different programs and users that are kept together.
const MAX_LOGINS: usize = 64;

/// What is kept for one issuer and one server: the logins of all programs and users.
#[derive(Default, Serialize, Deserialize)]
struct Logins {
    logins: Vec<Session>,
}

impl Session {
    /// Whether it belongs to who is meant by these options: what another program or user has got is not shown for them.
    pub(crate) fn is_of(&self, auth: &Auth) -> bool {
        let client_id = &self.client.client_id;
        let client = match self.client.known_by {
            KnownBy::Preregistration => auth.client_id.as_ref() == Some(client_id),
            KnownBy::MetadataDocument => auth.client_metadata_url.as_ref() == Some(client_id),
            KnownBy::Registration => auth.client_id.is_none(),
        };
        client
            && self.user == auth.user
            && self.grant.is_none_or(|grant| grant == auth.granted())
            && auth.issuer.as_ref().is_none_or(|issuer| *issuer == self.issuer)
    }

    /// The scopes that the token is good for: what was granted, or all that was asked for.
    pub(crate) fn has_scopes(&self, wanted: &str) -> bool {
        let granted = self.token.as_ref().and_then(|token| token.scope.as_deref());
        wanted.split_whitespace().all(|scope| match granted {
            Some(granted) => granted.split_whitespace().any(|own| own == scope),
            None => self.scopes.iter().any(|own| own == scope),
        })
    }

    pub(crate) fn refresh_token(&self) -> Option<&str> {
        self.token.as_ref()?.refresh_token.as_deref()
    }

    /// As it is kept, beside what others keep there: `kept` is what there was. Of too many the oldest go.
    ///
    /// # Errors
    /// Never, as all of it can be written.
    pub(crate) fn to_kept(&self, auth: &Auth, kept: Option<&Secret>) -> Result<Secret> {
        let mut logins = kept.map(read).unwrap_or_default();
        logins.retain(|other| !other.is_of(auth));
        logins.sort_by_key(|other| other.since);
        let excess = (logins.len() + 1).saturating_sub(MAX_LOGINS);
        logins.drain(..excess);
        logins.push(self.clone());
        serde_json::to_string(&Logins { logins })
            .map(Secret::new)
            .map_err(|e| Error::new(ErrorKind::Auth, format!("a login cannot be written: {e}")))
    }

    /// What was kept for whom these options mean; `None` when there is none of this issuer, or another version of this
    /// library has written it otherwise.
    pub(crate) fn from_kept(kept: &Secret, issuer: &str, auth: &Auth) -> Option<Self> {
        read(kept).into_iter().find(|session| session.issuer == issuer && session.is_of(auth))
    }
}

fn read(kept: &Secret) -> Vec<Session> {
    serde_json::from_str::<Logins>(kept.expose()).unwrap_or_default().logins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(client_id: &str, known_by: KnownBy, since: u64) -> Session {
        let client = Client {
            client_id: client_id.into(),
            client_secret: None,
            client_secret_expires_at: None,
            token_endpoint_auth_method: None,
            redirect_uri: None,
            known_by,
        };
        Session {
            issuer: "https://as".into(),
            resource: None,
            resource_metadata: None,
            token_endpoint: "https://as/token".into(),
            methods: None,
            client,
            grant: None,
            user: None,
            scopes: Vec::new(),
            token: None,
            since,
            dpop: None,
            unsaved: false,
        }
    }

    #[test]
    fn programs_and_users_keep_their_logins_side_by_side() {
        let (one, other) = (Auth::new(), Auth::new().client_id("other"));
        let (ada, bob) = (Auth::new().user("ada"), Auth::new().user("bob"));
        let of = |user: &str| Session { user: Some(user.into()), ..session(user, KnownBy::Registration, 3) };
        let mut kept = session("mine", KnownBy::Registration, 1).to_kept(&one, None).expect("written");
        kept = session("other", KnownBy::Preregistration, 2).to_kept(&other, Some(&kept)).expect("written");
        kept = of("ada").to_kept(&ada, Some(&kept)).expect("written");
        kept = of("bob").to_kept(&bob, Some(&kept)).expect("written");
        kept = session("mine", KnownBy::Registration, 9).to_kept(&one, Some(&kept)).expect("written");
        let found = |auth: &Auth| {
            let found = Session::from_kept(&kept, "https://as", auth);
            found.map(|session| (session.client.client_id, session.since))
        };
        assert_eq!(found(&one), Some(("mine".into(), 9)));
        assert_eq!(found(&other), Some(("other".into(), 2)));
        assert_eq!((found(&ada), found(&bob)), (Some(("ada".into(), 3)), Some(("bob".into(), 3))));
        assert_eq!(found(&Auth::new().client_id("nobody")), None);
        assert_eq!(Session::from_kept(&kept, "https://elsewhere", &one), None);
        assert_eq!(Session::from_kept(&"no JSON".into(), "https://as", &one), None);
    }

    #[test]
    fn of_too_many_the_oldest_go() {
        let mut kept = None;
        for n in 0..MAX_LOGINS as u64 + 6 {
            let auth = Auth::new().user(n.to_string());
            let own = Session { user: auth.user.clone(), ..session("c", KnownBy::Registration, n) };
            kept = Some(own.to_kept(&auth, kept.as_ref()).expect("written"));
        }
        let kept = kept.expect("something");
        assert_eq!(read(&kept).len(), MAX_LOGINS);
        assert_eq!(Session::from_kept(&kept, "https://as", &Auth::new().user("5")), None);
        assert!(Session::from_kept(&kept, "https://as", &Auth::new().user("6")).is_some());
    }
}
