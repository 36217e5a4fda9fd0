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
use super::{Redis, Trouble};
use crate::error::Result;
use crate::store::ring::Ring;

const VERSION: u8 = 1;
/// Longest text that is read.
const MAX_BYTES: usize = 64 * 1024;
/// Attempts to write what somebody else writes at the same time.
const ATTEMPTS: usize = 5;
const NONCE: usize = 24;

/// Gives the time in milliseconds and what is kept, which lives on.
pub(super) const READ: &str = "local t = redis.call('TIME')
local kept = redis.call('GET', KEYS[1])
if kept then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return {t[1] * 1000 + math.floor(t[2] / 1000), kept or ''}";

/// Writes, if what is kept is still what the writer knows. Gives what is kept then.
pub(super) const SWAP: &str = "local kept = redis.call('GET', KEYS[1]) or ''
if kept ~= ARGV[1] then return kept end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return ARGV[2]";

/// The secret that seals what is kept.
pub(super) struct Secret(XChaCha20Poly1305);

impl Secret {
    pub(super) fn new(secret: &str) -> Self {
        let key = Sha256::new().chain_update("tricorn store secret\0").chain_update(secret).finalize();
        Self(XChaCha20Poly1305::new(&key))
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
        let failed = |_| Trouble::new(Ill::Garbled, "keys cannot be sealed");
        let kept = match &self.secret {
            None => Kept { keys: Some(ring.clone()), sealed: None },
            Some(Secret(cipher)) => {
                let mut nonce = [0; NONCE];
                crate::random::fill(&mut nonce).map_err(|e| Trouble::new(Ill::Garbled, e.message()))?;
                let text = serde_json::to_vec(ring).map_err(|_| failed(chacha20poly1305::Error))?;
                let payload = Payload { msg: &text, aad: key.as_bytes() };
                let text = cipher.encrypt(&XNonce::from(nonce), payload).map_err(failed)?;
                Kept { keys: None, sealed: Some(STANDARD_NO_PAD.encode([&nonce[..], &text].concat())) }
            }
        };
        serde_json::to_vec(&kept).map_err(|_| failed(chacha20poly1305::Error))
    }

    fn opened(&self, key: &str, text: &[u8]) -> Result<Ring, Trouble> {
        let wrong = |why: &str| Trouble::new(Ill::Garbled, format!("the key {key} {why}"));
        let foreign = || wrong("holds what is not ours: choose another \"prefix\", or delete it");
        if text.len() > MAX_BYTES {
            return Err(foreign());
        }
        match (serde_json::from_slice(text), &self.secret) {
            (Ok(Kept { keys: Some(ring), sealed: None }), None) => Ok(ring),
            (Ok(Kept { keys: None, sealed: Some(text) }), Some(Secret(cipher))) => {
                let bytes = STANDARD_NO_PAD.decode(text).map_err(|_| foreign())?;
                let (nonce, text) = bytes.split_first_chunk::<NONCE>().ok_or_else(foreign)?;
                let payload = Payload { msg: text, aad: key.as_bytes() };
                let opened = cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| {
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
