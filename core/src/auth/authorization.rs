//! The authorization request and what the browser brings back: RFC 6749 §4.1, with RFC 7636, RFC 8707 and RFC 9207.

use std::collections::HashSet;
use std::fmt;

use super::pkce::Pkce;
use super::url::{is_safe, with_query};
use crate::error::{Result, shortened, shown_url};

/// State that is remembered while the user is in the browser.
#[derive(Clone)]
pub(crate) struct Authorization {
    state: String,
    pub(crate) pkce: Pkce,
    /// As it was before the browser went.
    issuer: String,
    /// The server has said that it names itself in its answer.
    names_itself: bool,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: Vec<String>,
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization")
            .field("issuer", &self.issuer)
            .field("redirect_uri", &self.redirect_uri)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// Parameters of an authorization request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) endpoint: &'a str,
    pub(crate) issuer: &'a str,
    pub(crate) names_itself: bool,
    pub(crate) client_id: &'a str,
    pub(crate) redirect_uri: &'a str,
    pub(crate) resource: Option<&'a str>,
    pub(crate) scopes: Vec<String>,
}

impl Authorization {
    /// The URL to open, and what to remember.
    ///
    /// # Errors
    /// [`Auth`](crate::ErrorKind::Auth) for a URL that no browser should be sent to.
    pub(crate) fn begin(asked: Asked<'_>) -> Result<(Self, String)> {
        let Asked { endpoint, issuer, names_itself, client_id, redirect_uri, resource, scopes } = asked;
        if !is_safe(endpoint) {
            let message = format!(
                "authorization: the authorization endpoint is {}, and only https URLs (or http on this machine) are opened",
                shown_url(endpoint)
            );
            return Err(crate::Error::new(crate::ErrorKind::Auth, message));
        }
        let pkce = Pkce::new()?;
        let state = crate::random::new_id()?.to_string();
        let (challenge, scope) = (pkce.challenge(), scopes.join(" "));
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", client_id),
            ("redirect_uri", redirect_uri),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &state),
        ];
        query.extend(resource.map(|resource| ("resource", resource)));
        query.extend((!scope.is_empty()).then_some(("scope", &*scope)));
        // OpenID Connect Core §11: without consent there is no offline access.
        query.extend(scopes.iter().any(|scope| scope == "offline_access").then_some(("prompt", "consent")));
        let url = with_query(endpoint, query);
        let (issuer, redirect_uri) = (issuer.to_owned(), redirect_uri.to_owned());
        Ok((Self { state, pkce, issuer, names_itself, redirect_uri, scopes }, url))
    }

    /// Returns the code of the query that the browser has brought back.
    ///
    /// # Errors
    /// The reason why there is none, for people. For an answer that is not this server's, that is the only reason
    /// given.
    pub(crate) fn finish(&self, query: &str) -> Result<String, NoCode> {
        let query = query.strip_prefix('?').unwrap_or(query);
        let value = |name: &str| -> Result<Option<String>, String> {
            let mut found = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == name);
            let first = found.next().map(|(_, value)| value.into_owned());
            match found.next() {
                Some(_) => Err(format!("it has {name:?} twice")),
                None => Ok(first),
            }
        };
        if value("state")?.is_none_or(|state| !is_equal(&state, &self.state)) {
            let why = "its state is not the one that was sent: it belongs to another login, or to nobody";
            return Err(NoCode::from(why.to_owned()));
        }
        // RFC 9207 §2.4: the text as it was decoded, without any normalization, and before anything else in the answer is
        // believed. The issuer that it must be is the one that the metadata document names.
        match value("iss")? {
            Some(issuer) if issuer != self.issuer => {
                return Err(NoCode::from(format!(
                    "it names the issuer {}, expected {}: the code was not used",
                    shown_url(&issuer),
                    shown_url(&self.issuer)
                )));
            }
            None if self.names_itself => {
                return Err(NoCode::from(format!(
                    "it names no issuer (iss), although {} says that it always does: the code was not used",
                    shown_url(&self.issuer)
                )));
            }
            _ => {}
        }
        if let Some(error) = value("error")? {
            let why = match (error.as_str(), value("error_description")?) {
                (error, Some(description)) => {
                    format!("{:?}: {:?}", shortened(error, 60), shortened(&description, 200))
                }
                ("access_denied", None) => "\"access_denied\": the user said no".into(),
                (error, None) => format!("{:?}", shortened(error, 60)),
            };
            return Err(NoCode { why, error: Some(error) });
        }
        let code = value("code")?.filter(|code| !code.is_empty());
        code.ok_or_else(|| NoCode::from("it holds neither a code nor an error".to_owned()))
    }
}

/// The reason why an answer holds no code.
#[derive(Debug)]
pub(crate) struct NoCode {
    /// For people.
    pub(crate) why: String,
    /// OAuth's own word for it, from the server.
    pub(crate) error: Option<String>,
}

impl From<String> for NoCode {
    fn from(why: String) -> Self {
        Self { why, error: None }
    }
}

/// Returns true if two secrets are the same, in a time that does not tell where they differ.
fn is_equal(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// More scopes than this would fit no request anyway.
const MAX_SCOPES: usize = 1000;

/// The scopes to ask for (2026-07-28, scope selection): what the challenge names, else all that the resource lists; then
/// what was asked before, so that nothing is lost.
///
/// At most [`MAX_SCOPES`] of the names that a server gives are taken.
pub(crate) fn scopes(challenged: Option<&str>, listed: Option<&[String]>, before: &[String]) -> Vec<String> {
    let named: Vec<&str> = match (challenged, listed) {
        (Some(text), _) if !text.trim().is_empty() => text.split_whitespace().take(MAX_SCOPES).collect(),
        (_, Some(listed)) => listed.iter().take(MAX_SCOPES).map(String::as_str).collect(),
        (_, None) => Vec::new(),
    };
    let mut seen = HashSet::new();
    let all = before.iter().map(String::as_str).chain(named);
    all.filter(|scope| !scope.is_empty() && seen.insert(*scope)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(names_itself: bool) -> (Authorization, String) {
        Authorization::begin(Asked {
            endpoint: "https://as/authorize?tenant=1",
            issuer: "https://as",
            names_itself,
            client_id: "me & you",
            redirect_uri: "http://127.0.0.1:1/callback",
            resource: Some("https://h/mcp/"),
            scopes: vec!["a".into(), "b".into()],
        })
        .expect("a URL")
    }

    #[test]
    fn the_request_carries_everything() {
        let (authorization, url) = begun(true);
        let expected = format!(
            "https://as/authorize?tenant=1&response_type=code&client_id=me+%26+you\
             &redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2Fcallback&code_challenge={}&code_challenge_method=S256&state={}\
             &resource=https%3A%2F%2Fh%2Fmcp%2F&scope=a+b",
            authorization.pkce.challenge(),
            authorization.state
        );
        assert_eq!(url, expected);
        let shown = format!("{authorization:?}");
        assert!(!shown.contains(&authorization.state) && !shown.contains(authorization.pkce.verifier()), "{shown}");
        for endpoint in ["http://as/authorize", "javascript:alert(1)", "file:///x", "-n https://as"] {
            let asked = Asked {
                endpoint,
                issuer: "https://as",
                names_itself: false,
                client_id: "x",
                redirect_uri: "http://127.0.0.1:1/",
                resource: None,
                scopes: Vec::new(),
            };
            assert!(Authorization::begin(asked).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn an_answer_is_believed_by_its_state_and_its_issuer() {
        for (names_itself, query, expected) in [
            (true, "code=c&state=S&iss=https%3A%2F%2Fas", Ok("c")),
            (true, "?code=c&state=S&iss=https://as", Ok("c")),
            (false, "code=c&state=S&iss=https%3A%2F%2Fas", Ok("c")),
            (false, "code=a%2Bb+c&state=S", Ok("a+b c")),
            (true, "code=c&state=S", Err("names no issuer (iss)")),
            (true, "code=c&state=S&iss=https%3A%2F%2Fas%2F", Err("expected \"https://as\"")),
            (true, "code=c&state=S&iss=https%3A%2F%2Fas%2Ft", Err("expected \"https://as\"")),
            (false, "code=c&state=S&iss=https%3A%2F%2Fevil.example.com", Err("expected \"https://as\"")),
            (false, "code=c&state=S&iss=https%3A%2F%2FAS", Err("expected \"https://as\"")),
            (false, "code=c&state=S&iss=https%3A%2F%2Fas%3A443", Err("expected \"https://as\"")),
            (false, "code=c&state=other", Err("its state")),
            (false, "code=c", Err("its state")),
            (false, "code=c&state=S&state=S", Err("twice")),
            (false, "code=c&code=d&state=S", Err("twice")),
            (false, "state=S", Err("neither a code nor an error")),
            (false, "error=access_denied&state=S", Err("the user said no")),
            (false, "error=server_error&error_description=down%0A&state=S", Err(r#""server_error": "down\n""#)),
            (true, "error=x&error_description=secret&state=S&iss=https%3A%2F%2Fevil", Err("names the issuer")),
        ] {
            let (authorization, _) = begun(names_itself);
            let outcome = authorization.finish(&query.replace("state=S", &format!("state={}", authorization.state)));
            match (outcome, expected) {
                (Ok(code), Ok(expected)) => assert_eq!(code, expected, "{query}"),
                (Err(NoCode { why, .. }), Err(expected)) => {
                    assert!(why.contains(expected) && !why.contains("secret"), "{query}: {why}");
                }
                (outcome, _) => panic!("{query}: {outcome:?}"),
            }
        }
    }

    #[test]
    fn scopes_come_from_the_challenge_before_the_metadata() {
        let text = |scopes: &[&str]| scopes.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        for (challenged, listed, before, expected) in [
            (Some("a b"), Some(&["c"][..]), &[][..], &["a", "b"][..]),
            (None, Some(&["c", "d"]), &[], &["c", "d"]),
            (Some(" "), Some(&["c"]), &[], &["c"]),
            (None, None, &[], &[]),
            (Some("w"), None, &["r"], &["r", "w"]),
            (Some("w r"), None, &["r"], &["r", "w"]),
        ] {
            let listed = listed.map(text);
            assert_eq!(scopes(challenged, listed.as_deref(), &text(before)), text(expected));
        }
        let many: Vec<String> = (0..60_000).map(|n| format!("s{n}")).collect();
        assert_eq!(scopes(None, Some(&many), &["mine".to_owned()]).len(), 1 + MAX_SCOPES);
        assert_eq!(scopes(Some(&many.join(" ")), None, &[]).len(), MAX_SCOPES);
    }
}
