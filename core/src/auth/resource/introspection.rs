//! RFC 7662, OAuth 2.0 Token Introspection: tokens that only their issuer can read.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::auth::fetch::{Fetch, Fetched};
use crate::auth::url::form;
use crate::model::Principal;

/// Longest time that an answer is believed without asking again: so long a revoked token may still be taken.
const FRESH: Duration = Duration::from_secs(30);
/// Longest time that the answer "not active" is believed.
const FRESH_INACTIVE: Duration = Duration::from_secs(5);
/// The most answers that are kept.
const MOST: usize = 1000;

/// Asks what a token is worth (section 2.1), as this client (RFC 6749, section 2.3.1).
pub(crate) fn request(url: &str, client_id: &str, client_secret: &str, token: &str) -> Fetch {
    let body = form([("token", token), ("token_type_hint", "access_token")]);
    let mut fetch = Fetch::post(url, "application/x-www-form-urlencoded", body);
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let credentials = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(client_secret)));
    fetch.headers.push(("authorization", format!("Basic {credentials}")));
    fetch
}

/// Reads the answer's claims of the token; `None` when the token is not worth anything (section 2.2).
///
/// # Errors
/// The fault of the answer, for the server's operator.
pub(crate) fn read(answer: &Fetched) -> Result<Option<Map<String, Value>>, String> {
    match answer.status {
        200 => {}
        401 | 403 => return Err(format!("answered {}: it does not take the client's credentials", answer.status)),
        status => return Err(format!("answered {status}, expected 200")),
    }
    let claims: Map<String, Value> = serde_json::from_slice(&answer.body)
        .map_err(|_| "answered with something that is no JSON object".to_owned())?;
    match claims.get("active") {
        Some(Value::Bool(true)) => Ok(Some(claims)),
        Some(Value::Bool(false)) => Ok(None),
        _ => Err("answered without \"active\"".into()),
    }
}

/// Answers of the last moments, known by digests of their tokens. The time is a clock's that never goes back.
#[derive(Debug, Default)]
pub(crate) struct Known {
    active: HashMap<[u8; 32], (Arc<Principal>, Duration)>,
    /// Tokens that are not active, which nobody is asked about again at once.
    inactive: HashMap<[u8; 32], Duration>,
}

/// Returns the digest that stands for a token where the token itself is not to be kept.
pub(crate) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl Known {
    pub(crate) fn get(&mut self, token: &[u8; 32], now: Duration) -> Option<Arc<Principal>> {
        let (principal, until) = self.active.get(token)?;
        if *until > now {
            return Some(principal.clone());
        }
        self.active.remove(token);
        None
    }

    pub(crate) fn put(&mut self, token: [u8; 32], principal: Arc<Principal>, now: Duration) {
        if self.active.len() >= MOST {
            self.active.retain(|_, (_, until)| *until > now);
        }
        if self.active.len() < MOST {
            self.active.insert(token, (principal, now + FRESH));
        }
    }

    /// Returns true if a token was not active a moment ago.
    pub(crate) fn is_inactive(&mut self, token: &[u8; 32], now: Duration) -> bool {
        let Some(until) = self.inactive.get(token) else { return false };
        let still = *until > now;
        if !still {
            self.inactive.remove(token);
        }
        still
    }

    pub(crate) fn put_inactive(&mut self, token: [u8; 32], now: Duration) {
        if self.inactive.len() >= MOST {
            self.inactive.retain(|_, until| *until > now);
        }
        if self.inactive.len() < MOST {
            self.inactive.insert(token, now + FRESH_INACTIVE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_about_in_a_form() {
        let fetch = request("https://as/introspect", "a:b", "p+ä", "t/1");
        assert_eq!(fetch.url, "https://as/introspect");
        assert_eq!(fetch.body.expect("a body").1, "token=t%2F1&token_type_hint=access_token");
        let (_, basic) = fetch.headers.iter().find(|(name, _)| *name == "authorization").expect("credentials");
        let decoded = STANDARD.decode(basic.strip_prefix("Basic ").expect("basic")).expect("base64");
        assert_eq!(decoded, b"a%3Ab:p%2B%C3%A4");
    }

    #[test]
    fn only_what_is_active_counts() {
        let answer = |status, body: &str| read(&Fetched { status, headers: Vec::new(), body: body.to_owned().into() });
        assert!(answer(200, r#"{"active":true,"sub":"ada"}"#).expect("an answer").is_some());
        assert!(answer(200, r#"{"active":false,"sub":"ada"}"#).expect("an answer").is_none());
        for (status, body, why) in [
            (200, "{}", "without \"active\""),
            (200, r#"{"active":"true"}"#, "without \"active\""),
            (200, "<html>", "no JSON object"),
            (401, r#"{"active":true}"#, "credentials"),
            (500, r#"{"active":true}"#, "answered 500"),
        ] {
            assert!(answer(status, body).is_err_and(|error| error.contains(why)), "{status} {body}");
        }
    }

    #[test]
    fn answers_are_believed_for_a_moment() {
        let (mut known, ada) = (Known::default(), Arc::new(Principal::new("ada")));
        let at = Duration::from_secs;
        known.put(digest("a"), ada.clone(), at(0));
        assert!(known.get(&digest("a"), at(29)).is_some());
        assert!(known.get(&digest("b"), at(29)).is_none());
        assert!(known.get(&digest("a"), at(30)).is_none());
        for n in 0..2 * MOST {
            known.put(digest(&n.to_string()), ada.clone(), at(1));
        }
        assert_eq!(known.active.len(), MOST);
        known.put(digest("new"), ada, at(40));
        assert_eq!(known.active.len(), 1);
        known.put_inactive(digest("bad"), at(40));
        assert!(known.is_inactive(&digest("bad"), at(44)) && !known.is_inactive(&digest("new"), at(44)));
        assert!(!known.is_inactive(&digest("bad"), at(45)) && known.inactive.is_empty());
    }
}
