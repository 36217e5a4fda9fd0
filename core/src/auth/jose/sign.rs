//! Private keys, and what is signed with them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{
    AlgorithmParameters, CommonParameters, EllipticCurveKeyParameters, EllipticCurveKeyType, Jwk, ThumbprintHash,
};
use jsonwebtoken::{EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Serialize;

use super::{Algorithm, provider};
use crate::error::{Error, ErrorKind, Result};

/// A private key and the one algorithm that it signs with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct SigningKey {
    key: EncodingKey,
    alg: Algorithm,
    kid: Option<Arc<str>>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.alg)
    }
}

impl SigningKey {
    /// A key in PEM: PKCS#8 (`PRIVATE KEY`), for RSA also PKCS#1 (`RSA PRIVATE KEY`).
    ///
    /// # Errors
    /// `Misuse` when it is no such key, or not one for this algorithm. Nothing of the key is in the message.
    pub(crate) fn from_pem(pem: &str, alg: Algorithm) -> Result<Self> {
        let der = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
            Error::misuse("the private key is no PEM with a section \"PRIVATE KEY\" (PKCS#8, not encrypted)")
        })?;
        let rsa = matches!(alg.inner().family(), jsonwebtoken::AlgorithmFamily::Rsa);
        match &der {
            PrivateKeyDer::Pkcs8(der) => Self::from_pkcs8(der.secret_pkcs8_der(), alg),
            PrivateKeyDer::Pkcs1(der) if rsa => Self::checked(EncodingKey::from_rsa_der(der.secret_pkcs1_der()), alg),
            _ => Err(Error::misuse(format!(
                "the private key is not in the form that {alg} needs: `openssl pkcs8 -topk8 -nocrypt` converts it"
            ))),
        }
    }

    /// A key in PKCS#8, as DER.
    ///
    /// # Errors
    /// `Misuse` when it is no such key, or not one for this algorithm.
    pub(crate) fn from_pkcs8(der: &[u8], alg: Algorithm) -> Result<Self> {
        use jsonwebtoken::AlgorithmFamily;

        let key = match alg.inner().family() {
            AlgorithmFamily::Rsa => EncodingKey::from_rsa_der(der),
            AlgorithmFamily::Ec => EncodingKey::from_ec_der(der),
            _ => EncodingKey::from_ed_der(der),
        };
        Self::checked(key, alg)
    }

    /// A fresh P-256 key for ES256.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn p256() -> Result<Self> {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
            .map_err(|_| Error::new(ErrorKind::Auth, "a new P-256 key: the operating system gives no randomness"))?;
        Self::from_pkcs8(pkcs8.as_ref(), Algorithm::Es256)
    }

    /// Signs once, so that a key that does not do is found where it is given.
    fn checked(key: EncodingKey, alg: Algorithm) -> Result<Self> {
        provider::install();
        jsonwebtoken::crypto::sign(b"", &key, alg.inner()).map_err(|_| {
            Error::misuse(format!(
                "the private key is not one for {alg}: it needs {}",
                match alg {
                    Algorithm::Es256 => "a P-256 key whose PKCS#8 has the public key, too",
                    Algorithm::Es384 => "a P-384 key whose PKCS#8 has the public key, too",
                    Algorithm::EdDsa => "an Ed25519 key",
                    _ => "an RSA key of 2048 to 4096 bits",
                }
            ))
        })?;
        Ok(Self { key, alg, kid: None })
    }

    /// The same key, which says in each header that this is its name.
    #[must_use]
    pub(crate) fn with_kid(mut self, kid: Option<&str>) -> Self {
        self.kid = kid.map(Into::into);
        self
    }

    /// The key itself, to be kept where nobody else reads it.
    pub(crate) fn der(&self) -> &[u8] {
        self.key.as_bytes()
    }

    /// A JWT with these claims, and with this `typ`.
    ///
    /// # Errors
    /// When the claims are no JSON object, or the operating system has no randomness.
    pub(crate) fn sign(&self, typ: &str, claims: &impl Serialize) -> Result<String> {
        self.sign_with(self.header(typ), claims)
    }

    /// The same, with the public key in the header.
    pub(crate) fn sign_with_jwk(&self, typ: &str, claims: &impl Serialize) -> Result<String> {
        self.sign_with(Header { jwk: Some(self.jwk()?), ..self.header(typ) }, claims)
    }

    fn header(&self, typ: &str) -> Header {
        let kid = self.kid.as_deref().map(Into::into);
        Header { typ: Some(typ.into()), kid, ..Header::new(self.alg.inner()) }
    }

    fn sign_with(&self, header: Header, claims: &impl Serialize) -> Result<String> {
        jsonwebtoken::encode(&header, claims, &self.key)
            .map_err(|_| Error::new(ErrorKind::Auth, format!("a JWT could not be signed with {}", self.alg)))
    }

    /// The public half of an elliptic curve's key.
    ///
    /// # Errors
    /// `Misuse` for other keys.
    pub(crate) fn jwk(&self) -> Result<Jwk> {
        let (curve, x, y) = provider::ec_public(self.der(), self.alg.inner())
            .map_err(|_| Error::misuse(format!("the key for {} is not on an elliptic curve with a JWK", self.alg)))?;
        let parameters = EllipticCurveKeyParameters {
            key_type: EllipticCurveKeyType::EC,
            curve,
            x: URL_SAFE_NO_PAD.encode(x),
            y: URL_SAFE_NO_PAD.encode(y),
        };
        Ok(Jwk { common: CommonParameters::default(), algorithm: AlgorithmParameters::EllipticCurve(parameters) })
    }

    /// The SHA-256 thumbprint of the public half (RFC 7638).
    ///
    /// # Errors
    /// `Misuse` for a key that is not on an elliptic curve.
    pub(crate) fn thumbprint(&self) -> Result<String> {
        self.jwk()?
            .thumbprint(ThumbprintHash::SHA256)
            .map_err(|_| Error::new(ErrorKind::Auth, "the thumbprint of a key could not be computed"))
    }
}
