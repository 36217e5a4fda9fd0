//! A set of public keys (RFC 7517 §5).

use std::fmt;

use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;

use super::{Algorithm, MAX_TRIED, Refused};

/// The most keys that a set may have.
pub(crate) const MAX_KEYS: usize = 100;

/// The public keys of an issuer, as far as tokens can be verified with them.
#[derive(Clone, Default)]
pub(crate) struct KeySet {
    keys: Vec<Key>,
    skipped: usize,
}

#[derive(Clone)]
struct Key {
    kid: Option<String>,
    /// Kind of the key, whatever it is meant for.
    kind: Kind,
    /// The one algorithm that its owner uses it with, where the owner says so; `Some(None)` is one that we do not know.
    alg: Option<Option<Algorithm>>,
    decoding: DecodingKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl Kind {
    fn of(parameters: &AlgorithmParameters) -> Option<Self> {
        match parameters {
            AlgorithmParameters::RSA(_) => Some(Self::Rsa),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Some(Self::P256),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => Some(Self::P384),
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => Some(Self::Ed25519),
            _ => None,
        }
    }

    fn fits(self, algorithm: Algorithm) -> bool {
        let needed = match algorithm {
            Algorithm::Es256 => Self::P256,
            Algorithm::Es384 => Self::P384,
            Algorithm::EdDsa => Self::Ed25519,
            _ => Self::Rsa,
        };
        self == needed
    }
}

impl Key {
    /// `None` for what no token can be verified with: secrets, keys for encryption, curves that nobody here knows.
    fn of(jwk: Value) -> Option<Self> {
        let jwk = Jwk::deserialize(jwk).ok()?;
        let kind = Kind::of(&jwk.algorithm)?;
        let common = jwk.common;
        let verifies = common.public_key_use.is_none_or(|r#use| r#use == PublicKeyUse::Signature)
            && common.key_operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        let alg = common.key_algorithm.map(|alg: KeyAlgorithm| Algorithm::parse(&alg.to_string()));
        let decoding = Jwk { common: Default::default(), algorithm: jwk.algorithm };
        let decoding = DecodingKey::from_jwk(&decoding).ok()?;
        verifies.then_some(Self { kid: common.key_id, kind, alg, decoding })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.kind.fits(algorithm) && self.alg.is_none_or(|alg| alg == Some(algorithm))
    }
}

impl KeySet {
    /// Reads a key set (`{"keys": [...]}`). Keys that no token can be verified with are passed over.
    ///
    /// # Errors
    /// When the text is no key set, or has more than 100 keys; the error says so, for people.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let set: Value = serde_json::from_slice(json).map_err(|error| format!("the key set is no JSON: {error}"))?;
        let Some(Value::Array(keys)) = set.as_object().and_then(|set| set.get("keys")) else {
            return Err("the key set has no array \"keys\" (RFC 7517 §5)".into());
        };
        if keys.len() > MAX_KEYS {
            return Err(format!("the key set has {} keys, and {MAX_KEYS} are the most that are read", keys.len()));
        }
        let found: Vec<Key> = keys.iter().cloned().filter_map(Key::of).collect();
        Ok(Self { skipped: keys.len() - found.len(), keys: found })
    }

    /// Returns the number of keys that tokens can be verified with.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the number of keys that were passed over.
    #[cfg(test)]
    pub(crate) fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns true if a key has this `kid`. If not, the set may be an old one.
    #[cfg(test)]
    pub(crate) fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid.as_deref() == Some(kid))
    }

    /// The keys that a token with this header can have been signed with, at least one.
    pub(super) fn candidates(&self, kid: Option<&str>, alg: Algorithm) -> Result<Vec<&DecodingKey>, Refused> {
        let named = || self.keys.iter().filter(|key| kid.is_none() || key.kid.as_deref() == kid);
        let fitting: Vec<_> = named().filter(|key| key.fits(alg)).map(|key| &key.decoding).collect();
        match fitting.len() {
            0 if kid.is_some() && named().next().is_some() => Err(Refused::KeyMismatch),
            0 => Err(Refused::UnknownKey),
            1..=MAX_TRIED => Ok(fitting),
            _ => Err(Refused::TooManyKeys),
        }
    }
}

impl fmt::Debug for KeySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeySet({} keys, {} passed over)", self.keys.len(), self.skipped)
    }
}
