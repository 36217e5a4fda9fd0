//! Result of a login, and the part of it that is kept.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::{Auth, Grant};
use super::registration::{Client, KnownBy};
use super::secret::Secret;
use super::token::Token;
use crate::error::{Error, ErrorKind, Result, shortened, shown_url};

/// The session of one client with one authorization server, for one MCP server. There is nothing of another issuer in
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) issuer: String,
    /// The `resource` that tokens are asked for (RFC 8707), as the server's metadata has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource: Option<String>,
    /// Address where that metadata was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resource_metadata: Option<String>,
    pub(crate) token_endpoint: String,
    /// The server's `token_endpoint_auth_methods_supported`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) methods: Option<Vec<String>>,
    pub(crate) client: Client,
    /// Grant that the token came by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) grant: Option<Grant>,
    /// User of the login, as the program names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// Requested scopes.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<Token>,
    /// Time of the token's arrival, Unix seconds.
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

/// Stored logins of one issuer and one server, of all programs and users, each as it is written there. Programs have
/// other versions of this library, and a login that one cannot read is no less a login.
#[derive(Default)]
struct Logins {
    all: Vec<Value>,
    /// Members beside them.
    members: Map<String, Value>,
}

const LOGINS: &str = "logins";

impl Logins {
    /// `None` for what is no such list.
    fn read(kept: &Secret) -> Option<Self> {
        let mut members: Map<String, Value> = serde_json::from_str(kept.expose()).ok()?;
        match members.get_mut(LOGINS)?.take() {
            Value::Array(all) => Some(Self { all, members }),
            _ => None,
        }
    }

    fn written(mut self) -> serde_json::Result<Secret> {
        self.members.insert(LOGINS.to_owned(), self.all.into());
        serde_json::to_string(&self.members).map(Secret::new)
    }
}

/// A login, if this version can read it.
fn one(kept: &Value) -> Option<Session> {
    // Members by their order would do for serde.
    let is_one =
        kept.is_object() && kept["client"].is_object() && matches!(kept["token"], Value::Object(_) | Value::Null);
    is_one.then(|| Session::deserialize(kept).ok()).flatten()
}

/// All stored logins of this issuer that this version can read.
pub(crate) fn all(kept: &Secret, issuer: &str) -> Vec<Session> {
    let all = Logins::read(kept).map(|logins| logins.all).unwrap_or_default();
    all.iter().filter_map(one).filter(|session| session.issuer == issuer).collect()
}

/// Names the owner of a login, for people.
fn named(kept: &Value) -> String {
    let text = |value: &Value| value.as_str().map(|text| shortened(text, 100).into_owned());
    let client = text(&kept["client"]["client_id"]).map(|id| format!("client_id {id:?}"));
    let user = text(&kept["user"]).map(|user| format!(", user {user:?}"));
    format!("{}{}", client.as_deref().unwrap_or("a client"), user.unwrap_or_default())
}

impl Session {
    /// Returns true if it belongs to the program and the user of these options: tokens of others are not shown for
    /// them.
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

    /// Returns true if all these scopes were asked for, or granted for another reason.
    pub(crate) fn has_asked(&self, wanted: &str) -> bool {
        let was_asked = |scope: &str| self.scopes.iter().any(|own| own == scope);
        wanted.split_whitespace().all(|scope| was_asked(scope) || self.has_scopes(scope))
    }

    pub(crate) fn refresh_token(&self) -> Option<&str> {
        self.token.as_ref()?.refresh_token.as_deref()
    }

    /// As it is kept, beside what others keep there: `kept` is what there was. Of too many the oldest go. With it what is
    /// thrown away, for people.
    ///
    /// # Errors
    /// Never, as all of it can be written.
    pub(crate) fn to_kept(&self, auth: &Auth, kept: Option<&Secret>) -> Result<(Secret, Option<String>)> {
        let before = kept.map(Logins::read);
        let mut note = matches!(before, Some(None)).then(|| {
            let at = shown_url(&self.issuer);
            format!("what was kept of logins at {at} cannot be read, and makes room for this one")
        });
        let mut logins = before.flatten().unwrap_or_default();
        logins.all.retain(|other| !one(other).is_some_and(|other| other.is_of(auth)));
        logins.all.sort_by_key(|other| other["since"].as_u64().unwrap_or_default());
        let excess = (logins.all.len() + 1).saturating_sub(MAX_LOGINS);
        let dropped: Vec<String> = logins.all.drain(..excess).map(|other| named(&other)).collect();
        if !dropped.is_empty() {
            let (at, whose) = (shown_url(&self.issuer), dropped.join("; "));
            note =
                Some(format!("no more than {MAX_LOGINS} logins at {at} are kept: the oldest is thrown away ({whose})"));
        }
        let failed = |e: serde_json::Error| Error::new(ErrorKind::Auth, format!("a login cannot be written: {e}"));
        logins.all.push(serde_json::to_value(self).map_err(failed)?);
        Ok((logins.written().map_err(failed)?, note))
    }

    /// Returns the stored login that these options mean; `None` when there is none of this issuer, or another version
    /// of this library has written it otherwise.
    pub(crate) fn from_kept(kept: &Secret, issuer: &str, auth: &Auth) -> Option<Self> {
        let logins = Logins::read(kept)?.all;
        logins.iter().filter_map(one).find(|session| session.issuer == issuer && session.is_of(auth))
    }
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
        let mut kept = None;
        for (session, auth) in [
            (session("mine", KnownBy::Registration, 1), &one),
            (session("other", KnownBy::Preregistration, 2), &other),
            (of("ada"), &ada),
            (of("bob"), &bob),
            (session("mine", KnownBy::Registration, 9), &one),
        ] {
            let (next, note) = session.to_kept(auth, kept.as_ref()).expect("written");
            assert_eq!(note, None);
            kept = Some(next);
        }
        let kept = kept.expect("something");
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
        let (mut kept, mut notes) = (None, Vec::new());
        for n in 0..MAX_LOGINS as u64 + 6 {
            let auth = Auth::new().user(n.to_string());
            let own = Session { user: auth.user.clone(), ..session("c", KnownBy::Registration, n) };
            let (next, note) = own.to_kept(&auth, kept.as_ref()).expect("written");
            kept = Some(next);
            notes.extend(note);
        }
        let kept = kept.expect("something");
        assert_eq!((Logins::read(&kept).expect("a list").all.len(), notes.len()), (MAX_LOGINS, 6));
        let said = "no more than 64 logins at \"https://as\" are kept: the oldest is thrown away (client_id \"c\", user \"5\")";
        assert_eq!(notes[5], said);
        assert_eq!(Session::from_kept(&kept, "https://as", &Auth::new().user("5")), None);
        assert!(Session::from_kept(&kept, "https://as", &Auth::new().user("6")).is_some());
    }

    #[test]
    fn what_another_version_has_written_stays_as_it_is() {
        let (ada, bob) = (Auth::new().user("ada"), Auth::new().user("bob"));
        let of = |user: &str| Session { user: Some(user.into()), ..session(user, KnownBy::Registration, 3) };
        let (kept, _) = of("ada").to_kept(&ada, None).expect("written");
        let mut text: Value = serde_json::from_str(kept.expose()).expect("JSON");
        text["by"] = "a newer one".into();
        text["logins"][0]["more"] = serde_json::json!({"a": 1});
        let mut unknown = text["logins"][0].clone();
        unknown["client"]["known_by"] = "telepathy".into();
        let strange = [unknown, serde_json::json!(5), serde_json::json!({"since": "today"})];
        text["logins"].as_array_mut().expect("a list").extend(strange.clone());
        let kept = Secret::new(text.to_string());
        assert!(Session::from_kept(&kept, "https://as", &ada).is_some());
        let (kept, note) = of("bob").to_kept(&bob, Some(&kept)).expect("written");
        assert_eq!(note, None);
        assert!([&ada, &bob].iter().all(|auth| Session::from_kept(&kept, "https://as", auth).is_some()));
        let after: Value = serde_json::from_str(kept.expose()).expect("JSON");
        let all = after["logins"].as_array().expect("a list");
        assert_eq!((all.len(), &after["by"]), (5, &text["by"]));
        assert!(strange.iter().chain([&text["logins"][0]]).all(|login| all.contains(login)), "{after}");
        // One's own is replaced.
        let (kept, _) = of("ada").to_kept(&ada, Some(&kept)).expect("written");
        assert_eq!(Logins::read(&kept).expect("a list").all.len(), 5);
    }

    #[test]
    fn what_cannot_be_read_at_all_is_not_thrown_away_without_a_word() {
        let own = session("mine", KnownBy::Registration, 1);
        for text in ["no JSON", "{}", "{\"logins\": {}}", "[]"] {
            let (kept, note) = own.to_kept(&Auth::new(), Some(&text.into())).expect("written");
            let said = "what was kept of logins at \"https://as\" cannot be read, and makes room for this one";
            assert_eq!(note.as_deref(), Some(said), "{text}");
            assert_eq!(Session::from_kept(&kept, "https://as", &Auth::new()), Some(own.clone()));
        }
    }
}
