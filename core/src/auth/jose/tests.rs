use jsonwebtoken::EncodingKey;
use jsonwebtoken::jwk::Jwk;
use serde_json::{Value, json};

use super::*;

const RSA: &str = include_str!("testdata/rsa.pem");
const RSA_PKCS1: &str = include_str!("testdata/rsa_pkcs1.pem");
const P256: &str = include_str!("testdata/p256.pem");
const P384: &str = include_str!("testdata/p384.pem");
const ED25519: &str = include_str!("testdata/ed25519.pem");
const SEC1: &str = include_str!("testdata/sec1.pem");

/// The examples of RFC 7515 §A.2 (RS256) and §A.3 (ES256): the keys, what both sign, and the signatures.
const RFC_KEYS: &str = r#"{"keys": [
    {"kty": "RSA", "kid": "rsa", "e": "AQAB", "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"},
    {"kty": "EC", "kid": "ec", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}
]}"#;
const RFC_CLAIMS: &str =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
const RFC_RS256: &str = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
const RFC_ES256: &str = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

fn pem_of(alg: Algorithm) -> &'static str {
    match alg {
        Algorithm::Es256 => P256,
        Algorithm::Es384 => P384,
        Algorithm::EdDsa => ED25519,
        _ => RSA,
    }
}

fn key(alg: Algorithm) -> SigningKey {
    SigningKey::from_pem(pem_of(alg), alg).expect("a key")
}

/// The public half, without a word on what it is for.
fn public(alg: Algorithm) -> Value {
    let der = key(alg);
    let der = der.der();
    let private = match alg {
        Algorithm::Es256 | Algorithm::Es384 => EncodingKey::from_ec_der(der),
        Algorithm::EdDsa => EncodingKey::from_ed_der(der),
        _ => EncodingKey::from_rsa_der(der),
    };
    let jwk = Jwk::from_encoding_key(&private, alg.inner()).expect("a public key");
    let mut jwk = serde_json::to_value(jwk).expect("JSON");
    jwk.as_object_mut().expect("an object").remove("alg");
    jwk
}

fn with(mut jwk: Value, more: Value) -> Value {
    let more = more.as_object().expect("an object").clone();
    jwk.as_object_mut().expect("an object").extend(more);
    jwk
}

fn set(keys: impl IntoIterator<Item = Value>) -> KeySet {
    let keys: Vec<Value> = keys.into_iter().collect();
    KeySet::parse(json!({"keys": keys}).to_string().as_bytes()).expect("a key set")
}

#[test]
fn the_examples_of_the_rfc_are_verified() {
    let keys = KeySet::parse(RFC_KEYS.as_bytes()).expect("a key set");
    for (header, signature) in [(r#"{"alg":"RS256"}"#, RFC_RS256), (r#"{"alg":"ES256"}"#, RFC_ES256)] {
        let token = format!("{}.{RFC_CLAIMS}.{signature}", base64(header));
        let claims = verify(&token, &keys, &Algorithm::ALL).expect(header);
        assert_eq!(Value::Object(claims), json!({"iss": "joe", "exp": 1300819380, "http://example.com/is_root": true}));
        let damaged = token.replacen(&signature[..4], "AAAA", 1);
        assert_eq!(verify(&damaged, &keys, &Algorithm::ALL), Err(Refused::Signature));
    }
}

#[test]
fn what_is_signed_is_verified_with_every_algorithm() {
    for alg in Algorithm::ALL {
        assert_eq!(Algorithm::parse(alg.as_str()), Some(alg));
        let token = key(alg).with_kid(Some("k")).sign("at+jwt", &json!({"sub": "ada", "exp": 1})).expect("signed");
        assert_eq!(header(&token), Ok(Header { alg, kid: Some("k".into()), typ: Some("at+jwt".into()) }));
        for more in [json!({"kid": "k"}), json!({"kid": "k", "alg": alg.as_str(), "use": "sig", "key_ops": ["verify"]})]
        {
            let keys = set([with(public(alg), more)]);
            // The time of expiry has passed: that is not looked at here.
            let claims = verify(&token, &keys, &[alg]).expect("verified");
            assert_eq!(claims.get("sub"), Some(&json!("ada")), "{alg}");
            assert_eq!(verify(&token, &keys, &[]), Err(Refused::Algorithm), "{alg}");
        }
    }
}

#[test]
fn each_attack_is_refused_with_its_reason() {
    let alg = Algorithm::Rs256;
    let all = &Algorithm::ALL;
    let keys = set([with(public(alg), json!({"kid": "k"})), with(public(Algorithm::Es256), json!({"kid": "e"}))]);
    let good = key(alg).with_kid(Some("k")).sign("JWT", &json!({"sub": "ada"})).expect("signed");
    let (_, rest) = good.split_once('.').expect("a token");
    let (claims, signature) = rest.split_once('.').expect("a token");
    let headed = |header: Value| format!("{}.{claims}.{signature}", base64(header.to_string()));
    let public_pem = public(alg).to_string();
    let hmac = {
        let header =
            jsonwebtoken::Header { kid: Some("k".into()), ..jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256) };
        jsonwebtoken::encode(&header, &json!({"sub": "eve"}), &EncodingKey::from_secret(public_pem.as_bytes()))
            .expect("signed")
    };
    let unsigned = |alg: &str| format!("{}.{claims}.", base64(json!({"alg": alg, "kid": "k"}).to_string()));
    let other =
        |kid: Option<&str>| SigningKey::p256().expect("a key").with_kid(kid).sign("JWT", &json!({})).expect("signed");
    let list = key(alg).with_kid(Some("k")).sign("JWT", &json!(["sub"])).expect("signed");

    let table: Vec<(&str, String, Refused)> = vec![
        ("none", unsigned("none"), Refused::Algorithm),
        ("None", unsigned("None"), Refused::Algorithm),
        ("no alg", headed(json!({"kid": "k"})), Refused::Algorithm),
        ("an empty signature", unsigned("RS256"), Refused::Signature),
        ("the public key as a secret", hmac, Refused::Algorithm),
        ("an algorithm that we do not know", headed(json!({"alg": "ES512", "kid": "k"})), Refused::Algorithm),
        ("another padding", headed(json!({"alg": "PS256", "kid": "k"})), Refused::Signature),
        ("another family with that kid", headed(json!({"alg": "ES256", "kid": "k"})), Refused::KeyMismatch),
        ("an unknown kid", headed(json!({"alg": "RS256", "kid": "K"})), Refused::UnknownKey),
        ("a kid that is a path", headed(json!({"alg": "RS256", "kid": "../k"})), Refused::UnknownKey),
        ("a key of its own", headed(json!({"alg": "RS256", "kid": "x", "jwk": public(alg)})), Refused::UnknownKey),
        ("an extension", headed(json!({"alg": "RS256", "kid": "k", "crit": ["b64"], "b64": false})), Refused::Critical),
        ("somebody else's key", other(Some("e")), Refused::Signature),
        ("somebody else's key without a name", other(None), Refused::Signature),
        ("no object", list, Refused::Claims),
        ("two parts", format!("{claims}.{signature}"), Refused::NotAJwt),
        ("four parts", format!("{good}.x"), Refused::NotAJwt),
        ("five parts", "a.b.c.d.e".into(), Refused::NotAJwt),
        ("opaque", "2YotnFZFEjr1zCsicMWpAA".into(), Refused::NotAJwt),
        ("empty", String::new(), Refused::NotAJwt),
        ("no base64", good.replacen('e', "=", 1), Refused::NotAJwt),
        ("not ASCII", "é.é.é".into(), Refused::NotAJwt),
        ("too long", format!("{good}{}", "A".repeat(MAX_TOKEN_BYTES)), Refused::TooLong),
    ];
    for (name, token, refused) in table {
        assert_eq!(verify(&token, &keys, all), Err(refused), "{name}");
    }
    assert!(verify(&good, &keys, all).is_ok());
    assert_eq!(verify(&good, &KeySet::default(), all), Err(Refused::UnknownKey));
}

#[test]
fn a_key_is_used_for_what_its_owner_says() {
    let alg = Algorithm::Rs256;
    let token = key(alg).with_kid(Some("k")).sign("JWT", &json!({})).expect("signed");
    let mut secret = json!({"kty": "oct", "k": base64("secret")});
    let table = [
        (json!({"alg": "RS512"}), Some(Refused::KeyMismatch)),
        (json!({"alg": "HS256"}), Some(Refused::KeyMismatch)),
        (json!({"alg": "RSA-OAEP"}), Some(Refused::KeyMismatch)),
        (json!({"alg": "strange"}), Some(Refused::KeyMismatch)),
        (json!({"use": "enc"}), Some(Refused::UnknownKey)),
        (json!({"key_ops": ["encrypt"]}), Some(Refused::UnknownKey)),
        (json!({"x5t": "x", "strange": {"a": [1]}}), None),
    ];
    for (more, refused) in table {
        let keys = set([with(with(public(alg), json!({"kid": "k"})), more.clone())]);
        assert_eq!(verify(&token, &keys, &Algorithm::ALL).err(), refused, "{more}");
    }
    secret["kid"] = json!("k");
    let keys = set([secret, json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}), json!(7), public(alg)]);
    assert_eq!((keys.len(), keys.skipped(), keys.has("k")), (1, 3, false));
}

#[test]
fn of_a_token_that_names_no_key_those_that_fit_are_tried() {
    let token = key(Algorithm::Es256).sign("JWT", &json!({"sub": "ada"})).expect("signed");
    let fresh = || serde_json::to_value(SigningKey::p256().and_then(|key| key.jwk()).expect("a key")).expect("JSON");
    let others = |n: usize| (0..n).map(|_| fresh()).chain([public(Algorithm::Rs256), public(Algorithm::Es256)]);
    assert!(verify(&token, &set(others(MAX_TRIED - 1)), &Algorithm::ALL).is_ok());
    assert_eq!(verify(&token, &set(others(MAX_TRIED)), &Algorithm::ALL), Err(Refused::TooManyKeys));
}

#[test]
fn what_is_no_key_set_is_said() {
    let many = json!({"keys": vec![json!({}); keys::MAX_KEYS + 1]}).to_string();
    for (text, part) in [
        ("<html>", "no JSON"),
        ("[]", "no array \"keys\""),
        (r#"{"keys": {}}"#, "no array \"keys\""),
        (many.as_str(), "101 keys"),
    ] {
        let error = KeySet::parse(text.as_bytes()).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
    let most = json!({"keys": vec![json!({}); keys::MAX_KEYS]}).to_string();
    assert_eq!(KeySet::parse(most.as_bytes()).map(|keys| keys.skipped()), Ok(keys::MAX_KEYS));
}

#[test]
fn a_private_key_that_does_not_do_is_refused_without_showing_it() {
    let encrypted = P256.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    for (pem, alg, part) in [
        ("", Algorithm::Es256, "no PEM"),
        ("secret", Algorithm::Es256, "no PEM"),
        (encrypted.as_str(), Algorithm::Es256, "not encrypted"),
        (SEC1, Algorithm::Es256, "openssl pkcs8"),
        (RSA_PKCS1, Algorithm::Es256, "openssl pkcs8"),
        (RSA, Algorithm::Es256, "a P-256 key"),
        (P384, Algorithm::Es256, "a P-256 key"),
        (P256, Algorithm::EdDsa, "an Ed25519 key"),
        (ED25519, Algorithm::Ps384, "an RSA key"),
    ] {
        let error = SigningKey::from_pem(pem, alg).expect_err(part);
        assert_eq!(error.kind(), crate::ErrorKind::Misuse);
        assert!(error.message().contains(part) && !error.message().contains("MI"), "{error}");
    }
    assert!(SigningKey::from_pem(RSA_PKCS1, Algorithm::Rs256).is_ok());
    let shown = format!("{:?} {:?}", key(Algorithm::Es256), set([public(Algorithm::Es256)]));
    assert_eq!(shown, "SigningKey(ES256) KeySet(1 keys, 0 passed over)");
}

#[test]
fn a_key_has_its_thumbprint() {
    // Computed with `openssl` and `sha256sum` from the fixture, as RFC 7638 §3 has it.
    assert_eq!(
        key(Algorithm::Es256).thumbprint().expect("a thumbprint"),
        "XnBfketean7eHsd8gzdZIP-ktQJAcskChTpKMt6Kfmc"
    );
    assert!(key(Algorithm::Rs256).thumbprint().is_err());
    let fresh = SigningKey::p256().expect("a key");
    let restored = SigningKey::from_pkcs8(fresh.der(), Algorithm::Es256).expect("a key");
    assert_eq!(fresh.thumbprint().expect("a thumbprint"), restored.thumbprint().expect("a thumbprint"));
}
