//! The keys of request states, in the store.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use redis::Pipeline;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::health::{Ill, Work};
use super::scripts::keys::{READ, SWAP};
use super::{Redis, Trouble};
use crate::error::{Error, Result};
use crate::store::ring::Ring;

const VERSION: u8 = 1;
/// Longest text that is read.
const MAX_BYTES: usize = 64 * 1024;
/// Attempts to write what somebody else writes at the same time.
const ATTEMPTS: usize = 5;
const NONCE: usize = 24;

/// The secret that seals what is kept, each under its key.
pub(crate) struct Sealed(XChaCha20Poly1305);

impl Sealed {
    pub(crate) fn new(secret: &str) -> Self {
        let key = Sha256::new().chain_update("tricorn store secret\0").chain_update(secret).finalize();
        Self(XChaCha20Poly1305::new(&key))
    }

    /// Returns nonce and text, in Base64.
    ///
    /// # Errors
    /// No randomness.
    pub(crate) fn seal(&self, key: &str, text: &[u8]) -> Result<String> {
        let mut nonce = [0; NONCE];
        crate::random::fill(&mut nonce)?;
        let payload = Payload { msg: text, aad: key.as_bytes() };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| Error::misuse("what is kept in a store is too long to be sealed"))?;
        Ok(STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Returns what was sealed under this key. `None`: with another secret, or not at all.
    pub(crate) fn open(&self, key: &str, sealed: &str) -> Option<Vec<u8>> {
        let bytes = STANDARD_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE>()?;
        self.0.decrypt(&XNonce::from(*nonce), Payload { msg: text, aad: key.as_bytes() }).ok()
    }
}

/// The value in the store. One of the two is there.
#[derive(Serialize, Deserialize)]
struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Ring>,
    /// Nonce and text, in Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

impl Redis {
    /// Puts the keys of this process and those in the store together, and makes new ones where it is time: of all
    /// processes that do that at once one succeeds, and all have the same afterwards. Gives the keys and the store's
    /// time in milliseconds since 1970. `ttl` is the time in milliseconds that a state lives.
    ///
    /// # Errors
    /// As `Redis::ask`; what is kept cannot be read, which leaves it as it is.
    pub(crate) async fn ring(self: &Arc<Self>, own: &Ring, ttl: u64) -> Result<(Ring, u64), Trouble> {
        let outcome = self.joined(own, ttl).await;
        self.done(Work::Keys, outcome)
    }

    async fn joined(self: &Arc<Self>, own: &Ring, ttl: u64) -> Result<(Ring, u64), Trouble> {
        let key = self.key("state-keys", VERSION);
        let lives = 7 * 24 * 60 * 60 * 1000 + ttl.saturating_mul(4).min(1 << 45);
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(READ).arg(1).arg(&key).arg(lives);
        let ((now, mut kept),): ((u64, Vec<u8>),) = self.ask(&pipe).await?;
        for _ in 0..ATTEMPTS {
            let theirs = if kept.is_empty() { Ring::default() } else { self.opened(&key, &kept)? };
            let ring = theirs.with(own).at(now, ttl, fresh).map_err(|e| Trouble::new(Ill::Garbled, e.message()))?;
            if ring == theirs {
                return Ok((ring, now));
            }
            let text = self.sealed(&key, &ring)?;
            let mut pipe = Pipeline::with_capacity(1);
            pipe.cmd("EVAL").arg(SWAP).arg(1).arg(&key).arg(&kept).arg(&text).arg(lives);
            let (after,): (Vec<u8>,) = self.ask(&pipe).await?;
            if after == text {
                return Ok((ring, now));
            }
            kept = after;
        }
        Err(Trouble::new(Ill::Garbled, format!("the key {key} is written by others all the time")))
    }

    fn sealed(&self, key: &str, ring: &Ring) -> Result<Vec<u8>, Trouble> {
        let failed = |_| Trouble::new(Ill::Garbled, "keys cannot be written");
        let kept = match &self.secret {
            None => Kept { keys: Some(ring.clone()), sealed: None },
            Some(secret) => {
                let sealed = secret.seal(key, &serde_json::to_vec(ring).map_err(failed)?);
                Kept { keys: None, sealed: Some(sealed.map_err(|e| Trouble::new(Ill::Garbled, e.message()))?) }
            }
        };
        serde_json::to_vec(&kept).map_err(failed)
    }

    fn opened(&self, key: &str, text: &[u8]) -> Result<Ring, Trouble> {
        let wrong = |why: &str| Trouble::new(Ill::Garbled, format!("the key {key} {why}"));
        let foreign = || wrong("holds what is not ours: choose another \"prefix\", or delete it");
        if text.len() > MAX_BYTES {
            return Err(foreign());
        }
        match (serde_json::from_slice(text), &self.secret) {
            (Ok(Kept { keys: Some(ring), sealed: None }), None) => Ok(ring),
            (Ok(Kept { keys: None, sealed: Some(text) }), Some(secret)) => {
                let opened = secret.open(key, &text).ok_or_else(|| {
                    wrong("is sealed with another secret: give all processes the same \"secret\", or delete it")
                })?;
                serde_json::from_slice(&opened).map_err(|_| foreign())
            }
            (Ok(Kept { keys: None, sealed: Some(_) }), None) => {
                Err(wrong("is sealed: give this process the \"secret\" of the others"))
            }
            (Ok(Kept { keys: Some(_), sealed: None }), Some(_)) => {
                Err(wrong("is not sealed, and this process has a \"secret\": give all the same, or delete it"))
            }
            _ => Err(foreign()),
        }
    }
}

/// Makes a key.
fn fresh() -> Result<String> {
    let mut bytes = [0; 32];
    crate::random::fill(&mut bytes)?;
    Ok(STANDARD_NO_PAD.encode(bytes))
}
