//! ring as what `jsonwebtoken` computes with: one row for each algorithm, and no arithmetic of our own.

use std::sync::Once;

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result, new_error};
use jsonwebtoken::jwk::{EllipticCurve, ThumbprintHash};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{self as sig, KeyPair, RsaPublicKeyComponents};
use ring::{digest, hmac};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils {
        rsa_pub_components_from_private_key: rsa_public,
        rsa_pub_components_from_public_key: |_| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
        ec_pub_components_from_private_key: ec_public,
        ed_pub_components_from_private_key: ed_public,
        compute_digest: |data, hash| Ok(digest::digest(hash_of(&hash)?, data).as_ref().to_vec()),
    },
};

/// Makes ring the process's provider, unless the program has chosen one: `jsonwebtoken` knows one for a process, and
/// whoever comes first decides. For that reason this one can all that the others can, `HS*` included.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = RING.install_default();
    });
}

fn hash_of(hash: &ThumbprintHash) -> Result<&'static digest::Algorithm> {
    match hash {
        ThumbprintHash::SHA256 => Ok(&digest::SHA256),
        ThumbprintHash::SHA384 => Ok(&digest::SHA384),
        ThumbprintHash::SHA512 => Ok(&digest::SHA512),
        _ => Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    }
}

/// Private key of ring for an algorithm.
enum Private {
    Hmac(hmac::Key),
    Rsa(sig::RsaKeyPair, &'static dyn sig::RsaEncoding),
    Ec(sig::EcdsaKeyPair),
    Ed(sig::Ed25519KeyPair),
}

struct RingSigner(Algorithm, Private);

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let random = SystemRandom::new();
        match &self.1 {
            Private::Hmac(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            Private::Ed(key) => Ok(key.sign(message).as_ref().to_vec()),
            Private::Ec(key) => Ok(key.sign(&random, message).map_err(|_| Error::new())?.as_ref().to_vec()),
            Private::Rsa(key, encoding) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &random, message, &mut signature).map_err(|_| Error::new())?;
                Ok(signature)
            }
        }
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        self.0
    }
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    let bytes = key.as_bytes();
    let private = match algorithm {
        Algorithm::HS256 => Private::Hmac(hmac::Key::new(hmac::HMAC_SHA256, bytes)),
        Algorithm::HS384 => Private::Hmac(hmac::Key::new(hmac::HMAC_SHA384, bytes)),
        Algorithm::HS512 => Private::Hmac(hmac::Key::new(hmac::HMAC_SHA512, bytes)),
        Algorithm::RS256 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PKCS1_SHA256),
        Algorithm::RS384 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PKCS1_SHA384),
        Algorithm::RS512 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PKCS1_SHA512),
        Algorithm::PS256 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PSS_SHA256),
        Algorithm::PS384 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PSS_SHA384),
        Algorithm::PS512 => Private::Rsa(rsa_pair(bytes)?, &sig::RSA_PSS_SHA512),
        Algorithm::ES256 | Algorithm::ES384 => Private::Ec(ec_pair(bytes, *algorithm)?.0),
        Algorithm::EdDSA => Private::Ed(ed_pair(bytes)?),
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    Ok(Box::new(RingSigner(*algorithm, private)))
}

/// PKCS#8, or the PKCS#1 that is in it.
fn rsa_pair(der: &[u8]) -> Result<sig::RsaKeyPair> {
    sig::RsaKeyPair::from_pkcs8(der)
        .or_else(|_| sig::RsaKeyPair::from_der(der))
        .map_err(|error| new_error(ErrorKind::InvalidRsaKey(error.to_string())))
}

fn ec_pair(pkcs8: &[u8], algorithm: Algorithm) -> Result<(sig::EcdsaKeyPair, EllipticCurve, usize)> {
    let (signing, curve, bytes) = match algorithm {
        Algorithm::ES256 => (&sig::ECDSA_P256_SHA256_FIXED_SIGNING, EllipticCurve::P256, 32),
        Algorithm::ES384 => (&sig::ECDSA_P384_SHA384_FIXED_SIGNING, EllipticCurve::P384, 48),
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    let pair = sig::EcdsaKeyPair::from_pkcs8(signing, pkcs8, &SystemRandom::new())
        .map_err(|_| new_error(ErrorKind::InvalidEcdsaKey))?;
    Ok((pair, curve, bytes))
}

/// Most programs write Ed25519 keys without the public half; ring calls that unchecked.
fn ed_pair(pkcs8: &[u8]) -> Result<sig::Ed25519KeyPair> {
    sig::Ed25519KeyPair::from_pkcs8_maybe_unchecked(pkcs8).map_err(|_| new_error(ErrorKind::InvalidEddsaKey))
}

fn rsa_public(der: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let parts = RsaPublicKeyComponents::<Vec<u8>>::from(rsa_pair(der)?.public());
    Ok((parts.n, parts.e))
}

/// Both coordinates of the point, which ring gives uncompressed (SEC 1 §2.3.3).
pub(super) fn ec_public(pkcs8: &[u8], algorithm: Algorithm) -> Result<(EllipticCurve, Vec<u8>, Vec<u8>)> {
    let (pair, curve, bytes) = ec_pair(pkcs8, algorithm)?;
    match pair.public_key().as_ref() {
        [4, point @ ..] if point.len() == 2 * bytes => {
            let (x, y) = point.split_at(bytes);
            Ok((curve, x.to_vec(), y.to_vec()))
        }
        _ => Err(new_error(ErrorKind::InvalidEcdsaKey)),
    }
}

fn ed_public(pkcs8: &[u8], curve: &EllipticCurve) -> Result<Vec<u8>> {
    if *curve != EllipticCurve::Ed25519 {
        return Err(new_error(ErrorKind::InvalidEddsaKey));
    }
    Ok(ed_pair(pkcs8)?.public_key().as_ref().to_vec())
}

/// Public key of ring for an algorithm.
enum Public {
    Hmac(hmac::Algorithm),
    Rsa(&'static sig::RsaParameters),
    Plain(&'static dyn sig::VerificationAlgorithm),
}

struct RingVerifier(Algorithm, Public, DecodingKey);

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let outcome = match (&self.1, self.2.kind()) {
            (Public::Hmac(algorithm), DecodingKeyKind::SecretOrDer(secret)) => {
                hmac::verify(&hmac::Key::new(*algorithm, secret), message, signature)
            }
            (Public::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Public::Rsa(parameters), DecodingKeyKind::SecretOrDer(der)) => {
                sig::UnparsedPublicKey::new(*parameters, der).verify(message, signature)
            }
            (Public::Plain(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                sig::UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            (Public::Hmac(_) | Public::Plain(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                return Err(Error::new());
            }
        };
        outcome.map_err(|_| Error::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.0
    }
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // A public key that is taken for a secret is the oldest of the attacks (RFC 8725 §2.1).
    if key.family() != algorithm.family() {
        return Err(new_error(ErrorKind::InvalidKeyFormat));
    }
    let public = match algorithm {
        Algorithm::HS256 => Public::Hmac(hmac::HMAC_SHA256),
        Algorithm::HS384 => Public::Hmac(hmac::HMAC_SHA384),
        Algorithm::HS512 => Public::Hmac(hmac::HMAC_SHA512),
        Algorithm::RS256 => Public::Rsa(&sig::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Public::Rsa(&sig::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Public::Rsa(&sig::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Public::Rsa(&sig::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Public::Rsa(&sig::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Public::Rsa(&sig::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Public::Plain(&sig::ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Public::Plain(&sig::ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Public::Plain(&sig::ED25519),
        _ => return Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    };
    Ok(Box::new(RingVerifier(*algorithm, public, key.clone())))
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::AlgorithmFamily;

    use super::*;

    #[test]
    fn secrets_are_for_hmac_alone() {
        let secret = DecodingKey::from_secret(b"secret");
        for algorithm in AlgorithmFamily::Hmac.algorithms() {
            let key = EncodingKey::from_secret(b"secret");
            let signature = signer(algorithm, &key).and_then(|s| Ok(s.try_sign(b"message")?)).expect("signed");
            let verifier = verifier(algorithm, &secret).expect("a verifier");
            assert!(verifier.verify(b"message", &signature).is_ok(), "{algorithm:?}");
            assert!(verifier.verify(b"massage", &signature).is_err(), "{algorithm:?}");
        }
        for family in [AlgorithmFamily::Rsa, AlgorithmFamily::Ec, AlgorithmFamily::Ed] {
            for algorithm in family.algorithms() {
                assert!(
                    verifier(algorithm, &secret).is_err()
                        && signer(algorithm, &EncodingKey::from_secret(b"x")).is_err()
                );
            }
        }
    }
}
