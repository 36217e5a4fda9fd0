//! RFC 7636, Proof Key for Code Exchange: S256 alone.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::error::Result;

/// One login's proof.
#[derive(Clone)]
pub(crate) struct Pkce {
    verifier: String,
}

impl Pkce {
    /// 256 random bits, as §4.1 recommends.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn new() -> Result<Self> {
        let mut random = [0_u8; 32];
        crate::random::fill(&mut random)?;
        Ok(Self { verifier: URL_SAFE_NO_PAD.encode(random) })
    }

    /// Returns the verifier, for the token endpoint.
    pub(crate) fn verifier(&self) -> &str {
        &self.verifier
    }

    /// Returns the S256 challenge, for the authorization endpoint.
    pub(crate) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()))
    }
}

impl fmt::Debug for Pkce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pkce(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_appendix_b() {
        let pkce = Pkce { verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".into() };
        assert_eq!(pkce.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(format!("{pkce:?}"), "Pkce(…)");
    }

    #[test]
    fn verifiers_are_long_and_different() {
        let (one, other) = (Pkce::new().expect("randomness"), Pkce::new().expect("randomness"));
        assert_eq!(one.verifier().len(), 43);
        assert_ne!(one.verifier(), other.verifier());
    }
}
