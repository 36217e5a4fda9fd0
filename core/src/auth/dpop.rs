//! Proofs that whoever shows a token has its key (RFC 9449): the client's half.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use serde::Serialize;

use super::jose::{Algorithm, SigningKey};
use super::secret::Secret;
use crate::error::{Error, ErrorKind, Result};

/// The algorithm of the proofs, to be looked for in `dpop_signing_alg_values_supported`.
pub(crate) const ALGORITHM: Algorithm = Algorithm::Es256;

/// Claims of a proof (RFC 9449 §4.2).
#[derive(Serialize)]
struct Claims<'a> {
    jti: &'a str,
    htm: &'a str,
    htu: &'a str,
    iat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ath: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
}

/// Makes proofs with one key, to which the tokens are bound that are got with them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Proofs {
    key: SigningKey,
    jkt: String,
}

impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proofs({})", self.jkt)
    }
}

impl Proofs {
    /// With a fresh P-256 key.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn new() -> Result<Self> {
        Self::of(SigningKey::p256()?)
    }

    /// With the key of [`to_kept`](Self::to_kept).
    ///
    /// # Errors
    /// When the text is no such key. Nothing of it is in the message.
    pub(crate) fn restore(kept: &Secret) -> Result<Self> {
        STANDARD.decode(kept.expose()).ok().and_then(|der| SigningKey::from_pkcs8(&der, ALGORITHM).ok()).map_or_else(
            || {
                Err(Error::new(
                    ErrorKind::Auth,
                    "the kept DPoP key is damaged: the tokens that are bound to it are lost, log in again",
                ))
            },
            Self::of,
        )
    }

    fn of(key: SigningKey) -> Result<Self> {
        let jkt = key.thumbprint()?;
        Ok(Self { key, jkt })
    }

    /// The private key, PKCS#8 in base64, to be kept beside the tokens that are bound to it.
    pub(crate) fn to_kept(&self) -> Secret {
        Secret::new(STANDARD.encode(self.key.der()))
    }

    /// The thumbprint of the key (RFC 7638), as in a token's `cnf.jkt` and in the parameter `dpop_jkt`.
    #[cfg(test)]
    pub(crate) fn jkt(&self) -> &str {
        &self.jkt
    }

    /// One proof: the value of the header `DPoP` for one request, and for no other.
    ///
    /// - `htm`: the request's method, in upper case.
    /// - `htu`: the request's URL; its query and fragment are left out (RFC 9449 §4.2), the rest is as given.
    /// - `ath`: of a request to a resource, the access token that goes with it; its digest is in the proof.
    /// - `nonce`: the newest that this server has given.
    /// - `iat`: the time, in seconds since 1970.
    /// - `jti`: what nobody can guess, another one each time.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn proof(
        &self,
        htm: &str,
        htu: &str,
        ath: Option<&str>,
        nonce: Option<&str>,
        iat: u64,
        jti: &str,
    ) -> Result<String> {
        let htu = htu.split(['?', '#']).next().unwrap_or_default();
        let ath = ath.map(|token| URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes())));
        self.key.sign_with_jwk("dpop+jwt", &Claims { jti, htm, htu, iat, ath, nonce })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Header and claims of a proof, whose signature is that of the key in its header.
    fn read(proof: &str) -> (Value, Value) {
        let part = |n: usize| URL_SAFE_NO_PAD.decode(proof.split('.').nth(n).expect("a part")).expect("base64");
        let header: Value = serde_json::from_slice(&part(0)).expect("JSON");
        let keys = json!({"keys": [header["jwk"]]}).to_string();
        let keys = super::super::jose::KeySet::parse(keys.as_bytes()).expect("keys");
        let claims = super::super::jose::verify(proof, &keys, &[ALGORITHM]).expect("verified");
        (header, Value::Object(claims))
    }

    #[test]
    fn a_proof_is_for_one_request() {
        let proofs = Proofs::new().expect("a key");
        // RFC 9449 §4.2: the URL is without query and fragment, and otherwise nobody touches it.
        let table = [
            ("https://mcp.example/mcp", "https://mcp.example/mcp"),
            ("https://mcp.example", "https://mcp.example"),
            ("https://MCP.example:443/a/../b%2f/?q=1#f", "https://MCP.example:443/a/../b%2f/"),
            ("http://127.0.0.1:3000/?", "http://127.0.0.1:3000/"),
            ("https://mcp.example/#?", "https://mcp.example/"),
        ];
        for (url, htu) in table {
            let proof = proofs.proof("POST", url, None, None, 1_700_000_000, "id").expect("signed");
            let (header, claims) = read(&proof);
            assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
            let members: Vec<_> = header["jwk"].as_object().expect("a key").keys().collect();
            assert_eq!(members.len(), 4, "no private part: {members:?}");
            assert_eq!(claims, json!({"jti": "id", "htm": "POST", "htu": htu, "iat": 1_700_000_000}));
        }
    }

    #[test]
    fn a_proof_for_a_resource_names_the_token_by_its_digest() {
        let proofs = Proofs::new().expect("a key");
        // Token and digest are those of RFC 9449 §7.1.
        let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
        let proof = proofs.proof("GET", "https://r.example/p", Some(token), Some("n-1"), 1, "id").expect("signed");
        let (_, claims) = read(&proof);
        assert_eq!(claims["ath"], "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
        assert_eq!(claims["nonce"], "n-1");
    }

    #[test]
    fn the_key_is_kept_and_restored_and_never_shown() {
        let proofs = Proofs::new().expect("a key");
        let kept = proofs.to_kept();
        let restored = Proofs::restore(&kept).expect("the key");
        assert_eq!(restored.jkt(), proofs.jkt());
        assert_ne!(Proofs::new().expect("a key").jkt(), proofs.jkt());
        let shown = format!("{proofs:?} {kept:?}");
        assert_eq!(shown, format!("Proofs({}) [secret]", proofs.jkt()));
        for damaged in ["", "?", &kept.expose()[4..], "AAAA"] {
            let error = Proofs::restore(&damaged.into()).expect_err("damaged");
            assert!(error.message().contains("log in again"));
        }
    }
}
