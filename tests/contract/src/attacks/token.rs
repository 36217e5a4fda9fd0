//! Tokens as the data describes them, good ones and others, and the keys that they are signed with.

use crate::Outcome;
use crate::pattern::{self, Captures};
use crate::replay::outgoing::base64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use ring::{digest, hmac};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Base64 as URLs have it.
pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    base64(bytes.as_ref()).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}

/// A key of the authorization server's, or of somebody else.
pub(super) struct Key {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl Key {
    pub(super) fn new() -> Outcome<Self> {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let document = document.map_err(|error| error.to_string())?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Ok(Self { pair: pair.map_err(|error| error.to_string())?, random })
    }

    /// The public half as the authorization server publishes it.
    pub(super) fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "one", "x": x, "y": y})
    }

    /// The public half as a file: what a careless library takes for a secret.
    fn pem(&self) -> String {
        const PREFIX: [u8; 26] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
            0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
        ];
        let text = base64(&[&PREFIX[..], self.pair.public_key().as_ref()].concat());
        let lines: Vec<&str> = text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }

    fn sign(&self, text: &str) -> Outcome<Vec<u8>> {
        let signature = self.pair.sign(&self.random, text.as_bytes());
        signature.map(|bytes| bytes.as_ref().to_vec()).map_err(|error| error.to_string())
    }
}

/// The key that is published, and one that is not.
pub(super) struct Keys {
    pub(super) own: Key,
    pub(super) strange: Key,
}

impl Keys {
    pub(super) fn new() -> Outcome<Self> {
        Ok(Self { own: Key::new()?, strange: Key::new()? })
    }

    /// A token by its description.
    pub(super) fn token(&self, recipe: &Value, captures: &Captures) -> Outcome<String> {
        if let Some(text) = recipe.get("text").and_then(Value::as_str) {
            return pattern::fill_text(text, captures);
        }
        let mut header = json!({"alg": "ES256", "typ": "at+jwt", "kid": "one"});
        change(&mut header, recipe.get("header"), captures)?;
        let mut claims = json!({"iss": "$issuer", "aud": "$resource", "sub": "ada", "client_id": "app",
            "scope": "mcp", "iat": now(), "exp": now() + 600});
        claims = pattern::fill(&claims, captures)?;
        change(&mut claims, recipe.get("claims"), captures)?;
        let claims = recipe.get("payload").and_then(Value::as_str).map_or_else(|| claims.to_string(), str::to_owned);
        let text = format!("{}.{}", encoded(header.to_string()), encoded(claims));
        let hs256 =
            |secret: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes()).as_ref().to_vec();
        let signature = match recipe.get("sign").and_then(Value::as_str).unwrap_or("own key") {
            "own key" => self.own.sign(&text)?,
            "strange key" => self.strange.sign(&text)?,
            "nothing" => Vec::new(),
            "zeros" => vec![0; 64],
            "digest" => digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec(),
            "HMAC of the point" => hs256(self.own.pair.public_key().as_ref()),
            "HMAC of the JWK" => hs256(self.own.jwk().to_string().as_bytes()),
            "HMAC of the PEM" => hs256(self.own.pem().as_bytes()),
            other => return Err(format!("\"sign\": {other:?}")),
        };
        Ok(format!("{text}.{}", encoded(signature)))
    }
}

/// Members that are others; null takes one away.
fn change(members: &mut Value, changes: Option<&Value>, captures: &Captures) -> Outcome {
    let Some(all) = members.as_object_mut() else { return Ok(()) };
    for (name, value) in changes.and_then(Value::as_object).into_iter().flatten() {
        match value {
            Value::Null => drop(all.shift_remove(name)),
            value => drop(all.insert(name.clone(), pattern::fill(&expanded(value), captures)?)),
        }
    }
    Ok(())
}

/// `{"$now": -120}` is a time, `{"$repeat": 9}` a text of so many bytes.
fn expanded(value: &Value) -> Value {
    if let Some(seconds) = value.get("$now").and_then(Value::as_i64) {
        return (now() + seconds).into();
    }
    if let Some(count) = value.get("$repeat").and_then(Value::as_u64) {
        return "x".repeat(usize::try_from(count).unwrap_or_default()).into();
    }
    value.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    #[test]
    fn a_good_token_is_good_and_another_key_shows() {
        let keys = Keys::new().expect("keys");
        let captures = Captures::from([("issuer".into(), "i".into()), ("resource".into(), "r".into())]);
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, keys.own.pair.public_key().as_ref());
        for (recipe, good) in [(json!({}), true), (json!({"sign": "strange key"}), false)] {
            let token = keys.token(&recipe, &captures).expect("a token");
            let (text, signature) = token.rsplit_once('.').expect("three parts");
            let bytes = decoded(signature);
            assert_eq!(public.verify(text.as_bytes(), &bytes).is_ok(), good, "{recipe}");
        }
    }

    fn decoded(text: &str) -> Vec<u8> {
        const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut bits = 0u32;
        let mut held = 0;
        let mut bytes = Vec::new();
        for letter in text.chars() {
            bits = bits << 6 | u32::try_from(ALPHABET.find(letter).expect("a letter")).expect("small");
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push(u8::try_from(bits >> held & 0xff).expect("a byte"));
            }
        }
        bytes
    }
}
