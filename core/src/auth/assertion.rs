//! A client that authenticates with a JWT that it signs (RFC 7523 §2.2; `private_key_jwt`).

use serde::Serialize;

use super::jose::SigningKey;
use crate::error::Result;

/// The value of the parameter `client_assertion_type`.
pub(crate) const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// For how long an assertion is good, in seconds.
const LIFETIME: u64 = 300;

/// Claims of an assertion (RFC 7523 §3).
#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    jti: &'a str,
    iat: u64,
    exp: u64,
}

/// The value of the parameter `client_assertion` of one request: the client says who it is, to this authorization
/// server and to no other, for five minutes.
///
/// - `issuer`: the authorization server's issuer, as its metadata spells it. It is the audience, and a text, not a list.
/// - `now`: the time, in seconds since 1970.
/// - `jti`: what nobody can guess, another one each time.
///
/// # Errors
/// When the operating system has no randomness.
pub(crate) fn client_assertion(key: &SigningKey, client_id: &str, issuer: &str, now: u64, jti: &str) -> Result<String> {
    let claims =
        Claims { iss: client_id, sub: client_id, aud: issuer, jti, iat: now, exp: now.saturating_add(LIFETIME) };
    key.sign("JWT", &claims)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::jose::{Algorithm, KeySet, header, verify};
    use super::*;

    #[test]
    fn an_assertion_is_for_one_server_and_five_minutes() {
        let key = SigningKey::p256().expect("a key").with_kid(Some("2026"));
        let keys = json!({"keys": [key.jwk().expect("a key")]}).to_string();
        let keys = KeySet::parse(keys.as_bytes()).expect("keys");
        let assertion = client_assertion(&key, "client", "https://as.example/t/", 1_700_000_000, "id").expect("signed");
        let header = header(&assertion).expect("a header");
        assert_eq!(
            (header.alg, header.kid.as_deref(), header.typ.as_deref()),
            (Algorithm::Es256, Some("2026"), Some("JWT"))
        );
        // Named, but the set does not say the name.
        assert!(verify(&assertion, &keys, &Algorithm::ALL).is_err());
        let unnamed = key.with_kid(None);
        let assertion =
            client_assertion(&unnamed, "client", "https://as.example/t/", 1_700_000_000, "id").expect("signed");
        let claims = verify(&assertion, &keys, &Algorithm::ALL).expect("verified");
        assert_eq!(
            Value::Object(claims),
            json!({
                "iss": "client", "sub": "client", "aud": "https://as.example/t/",
                "jti": "id", "iat": 1_700_000_000, "exp": 1_700_000_300
            })
        );
    }
}
