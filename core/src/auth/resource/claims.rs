//! Claims of a token, and the check that it is for this server now: RFC 7519, section 4.1; RFC 9068, section 4; RFC
//! 8707.

use serde_json::{Map, Value};

use crate::model::Principal;
use crate::model::times::from_unix;

/// Expectations of a token.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    /// Its permitted issuers; `None` where the issuer is known otherwise.
    pub(crate) issuer: Option<&'a str>,
    /// One of these has to be its audience.
    pub(crate) audiences: &'a [String],
    /// By how many seconds the clocks may differ.
    pub(crate) skew: u64,
    /// It has to say when it expires.
    pub(crate) expires: bool,
}

/// Returns true if a header's `typ` is an access token's: `at+jwt` (RFC 9068), the older `JWT`, or nothing, as some
/// authorization servers have it. An identity token of OpenID Connect looks the same; its audience tells it apart.
pub(crate) fn is_access_token(typ: Option<&str>) -> bool {
    let is = |other: &str| typ.is_some_and(|typ| typ.eq_ignore_ascii_case(other));
    typ.is_none() || is("at+jwt") || is("application/at+jwt") || is("JWT")
}

/// Checks claims whose origin is known, at a time in seconds since 1970.
///
/// # Errors
/// The fault of the token, in words that may be sent to its bearer.
pub(crate) fn check(claims: Map<String, Value>, expected: &Expected<'_>, now: u64) -> Result<Principal, &'static str> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if let Some(issuer) = expected.issuer
        && text("iss") != Some(issuer)
    {
        return Err("the token is of another issuer");
    }
    let is_ours = |own: &str| !own.is_empty() && expected.audiences.iter().any(|audience| audience == own);
    let is_for_us = |audience: &Value| audience.as_str().is_some_and(is_ours);
    let for_us = match claims.get("aud") {
        None => return Err("the token does not say for whom it is (aud)"),
        Some(Value::Array(all)) => all.iter().any(is_for_us),
        Some(one) => is_for_us(one),
    };
    if !for_us {
        return Err("the token is for another resource (aud)");
    }
    let expires_at = time(&claims, "exp")?;
    match expires_at {
        None if expected.expires => return Err("the token does not say when it expires (exp)"),
        Some(end) if end.saturating_add(expected.skew) <= now => return Err("the token has expired"),
        _ => {}
    }
    let latest = now.saturating_add(expected.skew);
    if time(&claims, "nbf")?.is_some_and(|start| start > latest) {
        return Err("the token is not valid yet (nbf)");
    }
    if time(&claims, "iat")?.is_some_and(|issued| issued > latest) {
        return Err("the token is of the future (iat)");
    }
    if claims.get("cnf").is_some_and(|cnf| !cnf.is_null()) {
        // Whoever has stolen it could use it as an ordinary one.
        return Err("the token is bound to a key (cnf), and nothing here shows that its sender has that");
    }
    let client = client(&claims)?;
    // RFC 7662 §2.2: an authorization server may say who it is by the second alone.
    let subject = match name(&claims, "sub")? {
        Some(subject) => Some(subject),
        None => name(&claims, "username")?,
    };
    let mut principal = match (subject, client) {
        (Some(subject), None) => Principal::new(subject),
        (Some(subject), Some(client)) => Principal::new(subject).client_id(client),
        (None, Some(client)) => Principal::of_client(client),
        (None, None) => return Err("the token names neither a subject nor a client"),
    };
    principal.issuer = name(&claims, "iss")?.map(str::to_owned);
    principal.scopes = scopes(&claims);
    principal.expires_at = expires_at.map(from_unix);
    principal.claims = claims;
    Ok(principal)
}

/// Returns the name in a claim: a text that is not empty (RFC 7519, section 4.1; RFC 9068, section 2.2). Only an absent
/// claim may be replaced by another: else all users of a client would be one.
fn name<'a>(claims: &'a Map<String, Value>, claim: &str) -> Result<Option<&'a str>, &'static str> {
    match (claims.get(claim), claim) {
        (None, _) => Ok(None),
        (Some(Value::String(name)), _) if !name.is_empty() => Ok(Some(name)),
        (_, "sub") => Err("the token's subject is no text, or empty (sub)"),
        (_, "username") => Err("the token's user is no text, or empty (username)"),
        (_, "iss") => Err("the token's issuer is no text, or empty (iss)"),
        _ => Err("the token's client is no text, or empty (client_id)"),
    }
}

/// The client, by the names that authorization servers give it. One that is `null` is none.
fn client(claims: &Map<String, Value>) -> Result<Option<&str>, &'static str> {
    for claim in ["client_id", "azp", "cid"] {
        if claims.get(claim).is_some_and(|client| !client.is_null()) {
            return name(claims, claim);
        }
    }
    Ok(None)
}

/// A `NumericDate` in whole seconds, which may have a fraction.
fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, &'static str> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => match (number.as_u64(), number.as_f64()) {
            (Some(seconds), _) => Ok(Some(seconds)),
            // Beyond that there is no such second.
            (None, Some(seconds)) if (0.0..9.0e15).contains(&seconds) => Ok(Some(seconds as u64)),
            _ => Err("a time of the token is out of range"),
        },
        Some(_) => Err("a time of the token is no number"),
    }
}

/// The most scopes of a token that count; no request needs more.
const MAX_SCOPES: usize = 1000;

/// `scope` (RFC 8693, section 4.2), or `scp`, as some authorization servers call it: words in a text, or an array.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in ["scope", "scp"].into_iter().filter_map(|name| claims.get(name)) {
        let words: Vec<&str> = match value {
            Value::String(text) => text.split(' ').collect(),
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            if found.len() >= MAX_SCOPES {
                break;
            }
            if !found.iter().any(|known| known == word) {
                found.push(word.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: u64 = 1_000_000;

    fn checked(change: &Value) -> Result<Principal, &'static str> {
        let mut claims = json!({"iss": "https://as", "aud": "https://h/mcp", "sub": "ada", "exp": NOW + 60});
        let all = claims.as_object_mut().expect("object");
        for (name, value) in change.as_object().expect("object") {
            match value {
                Value::Null => drop(all.remove(name)),
                value => drop(all.insert(name.clone(), value.clone())),
            }
        }
        let audiences = ["https://h/mcp".to_owned(), "api://h".to_owned(), String::new()];
        let expected = Expected { issuer: Some("https://as"), audiences: &audiences, skew: 60, expires: true };
        check(all.clone(), &expected, NOW)
    }

    #[test]
    fn what_is_not_for_this_server_now_is_refused() {
        for (change, why) in [
            (json!({"iss": "https://as/"}), "another issuer"),
            (json!({"iss": null}), "another issuer"),
            (json!({"iss": ["https://as"]}), "another issuer"),
            (json!({"aud": "https://h/mcp/"}), "another resource"),
            (json!({"aud": "https://H/mcp"}), "another resource"),
            (json!({"aud": ["https://other", 1]}), "another resource"),
            (json!({"aud": []}), "another resource"),
            (json!({"aud": ""}), "another resource"),
            (json!({"aud": {"https://h/mcp": 1}}), "another resource"),
            (json!({"aud": null}), "for whom"),
            (json!({"exp": null}), "when it expires"),
            (json!({"exp": NOW - 60}), "has expired"),
            (json!({"exp": 0}), "has expired"),
            (json!({"exp": -1}), "out of range"),
            (json!({"exp": 1e300}), "out of range"),
            (json!({"exp": "9999999999"}), "no number"),
            (json!({"nbf": NOW + 61}), "not valid yet"),
            (json!({"nbf": true}), "no number"),
            (json!({"iat": NOW + 61}), "of the future"),
            (json!({"cnf": {"jkt": "x"}}), "bound to a key"),
            (json!({"sub": null}), "neither a subject nor a client"),
            (json!({"sub": "", "client_id": "app"}), "subject is no text"),
            (json!({"sub": 1, "client_id": "app"}), "subject is no text"),
            (json!({"sub": 1.5, "username": "ada"}), "subject is no text"),
            (json!({"sub": true}), "subject is no text"),
            (json!({"sub": ["ada"], "azp": "app"}), "subject is no text"),
            (json!({"sub": {"id": "ada"}, "cid": "app"}), "subject is no text"),
            (json!({"sub": null, "username": 7, "client_id": "app"}), "user is no text"),
            (json!({"sub": null, "username": "", "client_id": "app"}), "user is no text"),
            (json!({"client_id": 7}), "client is no text"),
            (json!({"sub": null, "client_id": ""}), "client is no text"),
            (json!({"sub": null, "azp": ["app"]}), "client is no text"),
        ] {
            let error = checked(&change).err();
            assert!(error.is_some_and(|error| error.contains(why)), "{change}: {error:?}");
        }
    }

    #[test]
    fn a_null_is_no_name() {
        let told = |claims: Value| {
            let Value::Object(mut claims) = claims else { panic!("an object") };
            claims.insert("aud".into(), "a".into());
            let audiences = ["a".to_owned()];
            let expected = Expected { issuer: None, audiences: &audiences, skew: 60, expires: false };
            check(claims, &expected, NOW).map(|principal| principal.subject)
        };
        assert!(told(json!({"sub": null, "client_id": "app"})).is_err_and(|why| why.contains("subject")));
        assert!(told(json!({"username": null, "client_id": "app"})).is_err_and(|why| why.contains("user")));
        for issuer in [json!(null), json!(1), json!(""), json!(["https://as"])] {
            assert!(told(json!({"iss": issuer, "sub": "ada"})).is_err_and(|why| why.contains("issuer")), "{issuer}");
        }
        assert_eq!(told(json!({"sub": "ada", "client_id": null, "azp": null})), Ok("ada".to_owned()));
        assert_eq!(told(json!({"client_id": null, "azp": "app"})), Ok("app".to_owned()));
    }

    #[test]
    fn what_is_for_it_is_taken() {
        for change in [
            json!({}),
            json!({"aud": ["https://other", "https://h/mcp"]}),
            json!({"aud": "api://h"}),
            json!({"exp": NOW - 59}),
            json!({"exp": NOW as f64 + 0.5}),
            json!({"exp": u64::MAX}),
            json!({"nbf": NOW + 60, "iat": NOW + 60}),
        ] {
            let outcome = checked(&change);
            assert!(outcome.is_ok(), "{change}: {outcome:?}");
        }
        let principal = checked(&json!({"client_id": "c", "scope": "a  b a", "scp": ["b", "c"]})).expect("a principal");
        assert_eq!((principal.subject.as_str(), principal.client_id.as_deref()), ("ada", Some("c")));
        assert_eq!(principal.scopes, ["a", "b", "c"]);
        assert_eq!(
            (principal.issuer.as_deref(), principal.expires_at),
            (Some("https://as"), Some(from_unix(NOW + 60)))
        );
        let client = checked(&json!({"sub": null, "azp": "c"})).expect("a client");
        assert_eq!((client.subject.as_str(), client.client_id.as_deref()), ("c", Some("c")));
        assert!(!client.is(&checked(&json!({"sub": "c"})).expect("a user")));
        for (own, subject) in [(json!({"sub": null, "username": "bob"}), "bob"), (json!({"username": "bob"}), "ada")] {
            assert_eq!(checked(&own).expect("a user").subject, subject);
        }
    }

    #[test]
    fn a_type_says_what_a_token_is_for() {
        for (typ, is) in [
            (None, true),
            (Some("at+jwt"), true),
            (Some("application/at+JWT"), true),
            (Some("JWT"), true),
            (Some("dpop+jwt"), false),
            (Some("logout+jwt"), false),
            (Some("oauth-id-jag+jwt"), false),
            (Some(""), false),
        ] {
            assert_eq!(is_access_token(typ), is, "{typ:?}");
        }
    }
}
