//! Documents and headers of authorization servers, and of those who pretend to be ones.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{SLOWEST, Target, mutate, run, shown, sort};
use crate::auth::challenge::{self, Challenge};
use crate::auth::fetch::object;
use crate::auth::jose::{self, Algorithm, KeySet, MAX_TOKEN_BYTES};
use crate::auth::server_metadata::{self, ServerMetadata};
use crate::auth::url::{Parts, covers, is_safe, is_same_issuer};
use crate::auth::{ResourceMetadata, resource_metadata};

const CHALLENGES: &[&str] = &[
    "Bearer",
    "Bearer ",
    "DPoP algs=\"ES256\"",
    "Basic realm=\"x\"",
    "Negotiate YII+/a==",
    "error=\"invalid_token\"",
    "error_description=",
    "scope=\"a b\"",
    "resource_metadata=\"https://h/.well-known/x\"",
    ", ",
    ",",
    "=",
    " = ",
    "\"",
    "\\\"",
    "\\",
    "\t",
    "é",
    "a=b",
];

#[test]
fn challenges() {
    let words = CHALLENGES;
    run(&Target { name: "challenges", property: challenged, mutate: mutate::bytes, words, slowest: SLOWEST });
}

/// Challenges read from `WWW-Authenticate` are bounded, and read the same once written. Each line is a header.
fn challenged(input: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.split('\n').take(64).collect();
    let found = challenge::parse(&lines);
    assert!(found.len() <= 32, "{} challenges", found.len());
    for one in &found {
        assert!(one.params.len() <= 32, "{} parameters", one.params.len());
        let header = one.header();
        assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{header:?}");
        let written =
            |text: &str| text.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect::<String>();
        let params = one.params.iter().map(|(name, value)| (name.clone(), written(value))).collect::<Vec<_>>();
        let expected = Challenge { scheme: one.scheme.clone(), params };
        assert_eq!(challenge::parse(&[&header]), [expected], "{header}");
    }
    let counts = found.iter().take(4).map(|one| ["none ", "one ", "two ", "more "][one.params.len().min(3)]);
    sort(&counts.collect::<String>())
}

const METADATA: &[&str] = &[
    "issuer",
    "https://as.example",
    "https://as.example/",
    "https://as.example/t/1",
    "http://as.example",
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "jwks_uri",
    "scopes_supported",
    "code_challenge_methods_supported",
    "S256",
    "plain",
    "grant_types_supported",
    "client_id_metadata_document_supported",
    "authorization_response_iss_parameter_supported",
    "dpop_signing_alg_values_supported",
    "resource",
    "authorization_servers",
    "bearer_methods_supported",
    "resource_name",
    "dpop_bound_access_tokens_required",
    "\u{feff}",
];

#[test]
fn metadata() {
    let words = METADATA;
    run(&Target { name: "metadata", property: described, mutate: mutate::json_text, words, slowest: SLOWEST });
}

/// Metadata that is taken is of the issuer that was asked for, and has no endpoint to which no secret may be sent.
fn described(input: &[u8]) -> u64 {
    const ISSUER: &str = "https://as.example";
    for issuer in [Some(ISSUER), None] {
        match ServerMetadata::parse(input, issuer) {
            Ok(metadata) => {
                assert!(issuer.is_none_or(|issuer| is_same_issuer(&metadata.issuer, issuer)), "{}", shown(input));
                let endpoints = [&metadata.authorization_endpoint, &metadata.token_endpoint];
                assert!(endpoints.into_iter().flatten().all(|url| is_safe(url)), "{}", shown(input));
                assert!(metadata.check_pkce(false).is_err() || metadata.check_pkce(true).is_ok());
                same_origin(&metadata.issuer, &server_metadata::well_known(&metadata.issuer));
            }
            Err(why) => assert!((1..=5000).contains(&why.len()), "{}", shown(why.as_bytes())),
        }
    }
    let resource = object::<ResourceMetadata>(input);
    if let Ok(metadata) = &resource {
        let text = serde_json::to_vec(metadata).expect("metadata can be written");
        assert_eq!(object::<ResourceMetadata>(&text).as_ref(), Ok(metadata), "{}", shown(&text));
        same_origin(&metadata.resource, &resource_metadata::well_known(&metadata.resource));
        let server = "https://h.example/mcp";
        if covers(&metadata.resource, server) {
            let parts = Parts::of(server).zip(Parts::of(&metadata.resource));
            assert!(parts.is_some_and(|(one, other)| one.is_same_origin(&other)), "{}", metadata.resource);
        }
    }
    let server = ServerMetadata::parse(input, None);
    let text = |outcome: Result<(), &String>| outcome.map_or_else(String::clone, |()| "taken".to_owned());
    sort(&[text(server.as_ref().map(|_| ())), text(resource.as_ref().map(|_| ()))].join(" "))
}

/// Well-known documents are asked of the URL's own origin.
fn same_origin(url: &str, others: &[String]) {
    let own = Parts::of(url);
    assert_eq!(own.is_none(), others.is_empty(), "{url:?}: {others:?}");
    for other in others {
        let is_same = own.zip(Parts::of(other)).is_some_and(|(own, other)| own.is_same_origin(&other));
        assert!(is_same, "{url:?}: {other:?}");
    }
}

const KEYS: &[&str] = &[
    "keys",
    "kty",
    "RSA",
    "EC",
    "OKP",
    "oct",
    "crv",
    "P-256",
    "P-384",
    "Ed25519",
    "alg",
    "none",
    "HS256",
    "ES256",
    "RS256",
    "use",
    "sig",
    "enc",
    "key_ops",
    "verify",
    "kid",
    "n",
    "e",
    "x",
    "y",
    "AQAB",
    "AAAA",
    "token",
    "jwks",
    ".",
    "eyJhbGciOiJub25lIn0",
    "eyJhbGciOiJIUzI1NiJ9",
    "eyJhbGciOiJFUzI1NiIsImNyaXQiOlsieCJdfQ",
];

/// The keys of the examples in RFC 7515, sections A.2 and A.3.
const KNOWN: &str = concat!(
    r#"{"keys": [{"kty": "RSA", "kid": "rsa", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoT"#,
    r#"bji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ4"#,
    r#"7soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZl"#,
    r#"xvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"#,
    r#""},{"kty": "EC", "kid": "ec", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y"#,
    r#"": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#,
);
/// The claims that are signed there.
const CLAIMS: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

#[test]
fn tokens() {
    run(&Target { name: "tokens", property: verified, mutate: mutate::json_text, words: KEYS, slowest: SLOWEST });
}

/// A key set has as many keys as it has, and nothing is verified that its owner has not signed.
fn verified(input: &[u8]) -> u64 {
    #[derive(Deserialize)]
    struct Both<'a> {
        #[serde(borrow)]
        jwks: &'a RawValue,
        token: String,
    }
    let known = KeySet::parse(KNOWN.as_bytes()).expect("a key set");
    let Ok(Both { jwks, token }) = serde_json::from_slice(input) else {
        let own = KeySet::parse(input);
        return sort(&own.map_or_else(|why| why, |keys| keys.len().to_string()));
    };
    let own = KeySet::parse(jwks.get().as_bytes());
    if let Ok(keys) = &own {
        let listed = serde_json::from_str::<Value>(jwks.get()).ok().and_then(|set| Some(set["keys"].as_array()?.len()));
        assert_eq!(Some(keys.len() + keys.skipped()), listed, "{}", shown(input));
        assert!(keys.len() <= 100, "{} keys", keys.len());
    }
    let header = jose::header(&token);
    assert!(header.is_err() || token.len() <= MAX_TOKEN_BYTES, "{} bytes", token.len());
    let verified = jose::verify(&token, &known, &Algorithm::ALL);
    if verified.is_ok() {
        let signed = token.rsplit_once('.').map_or("", |(signed, _)| signed);
        let is_known = ["eyJhbGciOiJSUzI1NiJ9", "eyJhbGciOiJFUzI1NiJ9"]
            .iter()
            .any(|header| signed.strip_prefix(header).and_then(|rest| rest.strip_prefix('.')) == Some(CLAIMS));
        assert!(is_known, "nobody has signed {token}");
    }
    let other = own.as_ref().map(|keys| jose::verify(&token, keys, &[Algorithm::Es256, Algorithm::Rs256]));
    if let Ok(Ok(_)) = &other {
        assert!(header.is_ok(), "{token}");
    }
    let said = match (&verified, &other) {
        (Err(one), Ok(Err(other))) => format!("{one} {other}"),
        (Err(one), Err(why)) => format!("{one} {why}"),
        (one, other) => format!("{} {}", one.is_ok(), other.is_ok()),
    };
    sort(&said)
}
