//! JSON Web Signatures (RFC 7515), Keys (RFC 7517) and Algorithms (RFC 7518) for tokens (RFC 7519), over
//! `jsonwebtoken` and ring.
//!
//! Only the signature is verified here: issuer, audience and times are claims, and their owner's business.

mod keys;
mod provider;
mod sign;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value};

pub(crate) use keys::KeySet;
pub(crate) use sign::SigningKey;

/// The longest token that is looked at, in bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// Most keys that are tried for a token that names none: each costs an operation with a public key.
const MAX_TRIED: usize = 8;

/// An asymmetric signature algorithm (RFC 7518 §3.1, RFC 8037 §3.1). There is no `none` and no `HS*`: with keys that
/// anybody may read both mean that anybody may sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// ECDSA with P-384 and SHA-384.
    Es384,
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512,
    /// RSASSA-PSS with SHA-256.
    Ps256,
    /// RSASSA-PSS with SHA-384.
    Ps384,
    /// RSASSA-PSS with SHA-512.
    Ps512,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// Its name in a header: `ES256`, `EdDSA`, …
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of this name, spelt exactly so.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    const fn inner(self) -> jsonwebtoken::Algorithm {
        use jsonwebtoken::Algorithm as Inner;
        match self {
            Self::Es256 => Inner::ES256,
            Self::Es384 => Inner::ES384,
            Self::Rs256 => Inner::RS256,
            Self::Rs384 => Inner::RS384,
            Self::Rs512 => Inner::RS512,
            Self::Ps256 => Inner::PS256,
            Self::Ps384 => Inner::PS384,
            Self::Ps512 => Inner::PS512,
            Self::EdDsa => Inner::EdDSA,
        }
    }

    fn of(inner: jsonwebtoken::Algorithm) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.inner() == inner)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Header of a token, before anybody has verified it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) alg: Algorithm,
    pub(crate) kid: Option<String>,
    pub(crate) typ: Option<String>,
}

/// Reason for refusing a token. Nothing of the token is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum Refused {
    /// Over [`MAX_TOKEN_BYTES`].
    TooLong,
    /// No signed JWT at all: an opaque token, an encrypted one, or damaged.
    NotAJwt,
    /// Its algorithm is `none`, `HS*`, unknown or not allowed here.
    Algorithm,
    /// Its header names extensions that have to be understood (`crit`), and none is.
    Critical,
    /// No key of the set has its `kid`, or none can be its own. The set may be an old one.
    UnknownKey,
    /// The key that it names is for another algorithm or another use.
    KeyMismatch,
    /// It names no key, and too many could be its own.
    TooManyKeys,
    /// The signature is not that of the key.
    Signature,
    /// The signed payload is no JSON object.
    Claims,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the token is longer than 16 KiB",
            Self::NotAJwt => "the token is no signed JWT (RFC 7519)",
            Self::Algorithm => "the token's alg is not allowed; none and HS* never are",
            Self::Critical => "the token's header has a crit that is not understood",
            Self::UnknownKey => "the key set has no key for the token",
            Self::KeyMismatch => "the key that the token names is not for its alg",
            Self::TooManyKeys => "the token names no key, and the key set has too many to try",
            Self::Signature => "the token's signature is wrong",
            Self::Claims => "the token's claims are no JSON object",
        })
    }
}

impl std::error::Error for Refused {}

/// Reads the header of a token; nothing of it is verified.
pub(crate) fn header(token: &str) -> Result<Header, Refused> {
    use jsonwebtoken::errors::ErrorKind;

    if token.len() > MAX_TOKEN_BYTES {
        return Err(Refused::TooLong);
    }
    let header = jsonwebtoken::decode_header(token).map_err(|error| match error.kind() {
        // The header is JSON, but not of the shape that it has: `alg` is what is strange in practice.
        ErrorKind::Json(error) if error.is_data() => Refused::Algorithm,
        _ => Refused::NotAJwt,
    })?;
    if header.crit.is_some() {
        return Err(Refused::Critical);
    }
    let alg = Algorithm::of(header.alg).ok_or(Refused::Algorithm)?;
    Ok(Header { alg, kid: header.kid, typ: header.typ })
}

/// The claims of a token whose signature is one of these keys', with one of these algorithms. No claim is looked at.
///
/// A token that names a key (`kid`) is verified with that one; of one that names none every key that fits is tried.
pub(crate) fn verify(token: &str, keys: &KeySet, allowed: &[Algorithm]) -> Result<Map<String, Value>, Refused> {
    let Header { alg, kid, .. } = header(token)?;
    if !allowed.contains(&alg) {
        return Err(Refused::Algorithm);
    }
    let candidates = keys.candidates(kid.as_deref(), alg)?;
    provider::install();
    let mut validation = jsonwebtoken::Validation::new(alg.inner());
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    let mut refused = Refused::Signature;
    for key in candidates {
        match jsonwebtoken::decode::<Map<String, Value>>(token, key, &validation) {
            Ok(verified) => return Ok(verified.claims),
            Err(error) => refused = refused_by(&error),
        }
        if refused != Refused::Signature {
            break;
        }
    }
    Err(refused)
}

fn refused_by(error: &jsonwebtoken::errors::Error) -> Refused {
    use jsonwebtoken::errors::ErrorKind;

    match error.kind() {
        // The header was read before: what is left are the claims, and they are read after the signature has been
        // verified.
        ErrorKind::Json(_) | ErrorKind::Utf8(_) => Refused::Claims,
        ErrorKind::InvalidToken | ErrorKind::Base64(_) => Refused::NotAJwt,
        ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Refused::Algorithm,
        _ => Refused::Signature,
    }
}
