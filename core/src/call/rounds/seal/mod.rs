//! `requestState`: a server's memory between two rounds, kept by the client, which cannot read or change it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};

/// The format of what is sealed.
const VERSION: u8 = 1;
/// Greatest difference between the clocks of two servers, in seconds.
const MAX_SKEW: u64 = 60;
const NONCE: usize = 24;
const KEY_ID: usize = 4;
/// Version, key id, nonce.
const HEAD: usize = 1 + KEY_ID + NONCE;
/// The least length of a secret.
const MIN_SECRET: usize = 32;

/// Options of the state between two rounds: specification, "Multi Round-Trip Requests".
pub(crate) struct SealOptions<'a> {
    /// The server's name: one of another name does not open what this one has sealed, whatever secrets they share.
    pub(crate) server: &'a str,
    /// Secrets; the first one seals, all of them open. None: one of this process alone.
    pub(crate) keys: Option<&'a [String]>,
    pub(crate) ttl: Duration,
    pub(crate) max_bytes: usize,
}

/// Seals and opens.
pub(crate) struct Sealer {
    /// A digest of its name.
    server: [u8; 32],
    /// The first one seals. None: those of a store that did not answer yet.
    keys: RwLock<Vec<Key>>,
    /// They were given by the program.
    #[cfg(feature = "redis")]
    is_given: bool,
    /// Seconds.
    ttl: u64,
    max_bytes: usize,
    /// Seconds since 1970.
    now: fn() -> u64,
    /// Seconds by which the store's clock is ahead.
    ahead: AtomicI64,
}

#[derive(Clone)]
struct Key {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
}

impl Key {
    fn of(secret: &[u8]) -> Self {
        let key = Sha256::new().chain_update("tricorn requestState key\0").chain_update(secret).finalize();
        let name = Sha256::new().chain_update("tricorn requestState key id\0").chain_update(key).finalize();
        let mut id = [0; KEY_ID];
        id.copy_from_slice(&name[..KEY_ID]);
        Self { id, cipher: XChaCha20Poly1305::new(&key) }
    }
}

impl Sealer {
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for no secrets and one that is too short; no randomness.
    pub(crate) fn new(options: &SealOptions<'_>) -> Result<Self> {
        let wrong =
            |why: &str| Err(Error::misuse(format!("option {:?}: {why}", crate::idiom::named("request_state_keys"))));
        let keys = match options.keys {
            None => vec![Key::of(&random::<32>()?)],
            // A setting that was lost: each process would make up a secret of its own.
            Some([]) => {
                return wrong(&format!(
                    "expected secrets of at least {MIN_SECRET} bytes, got none; without the option this process makes up one of its own"
                ));
            }
            Some(keys) => {
                if let Some(at) = keys.iter().position(|key| key.len() < MIN_SECRET) {
                    return wrong(&format!("key {at}: expected at least {MIN_SECRET} bytes"));
                }
                keys.iter().map(|secret| Key::of(secret.as_bytes())).collect()
            }
        };
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let server = Sha256::new().chain_update("tricorn requestState server\0").chain_update(options.server);
        // In whole seconds, and those that have begun.
        let ttl = options.ttl.as_secs() + u64::from(options.ttl.subsec_nanos() > 0);
        Ok(Self {
            server: server.finalize().into(),
            keys: RwLock::new(keys),
            #[cfg(feature = "redis")]
            is_given: options.keys.is_some(),
            ttl,
            max_bytes: options.max_bytes,
            now,
            ahead: AtomicI64::new(0),
        })
    }

    /// Seconds for which a state holds, if its keys are to be those of the store: the program gave none.
    #[cfg(feature = "redis")]
    pub(crate) fn shares(&self) -> Option<u64> {
        (!self.is_given).then_some(self.ttl)
    }

    /// Takes the keys of the store, of which the first one seals, instead of what was there, and its time in seconds
    /// since 1970. Without keys nothing is sealed or opened until there are some.
    #[cfg(feature = "redis")]
    pub(crate) fn share<'a>(&self, secrets: impl Iterator<Item = &'a str>, now: Option<u64>) {
        let keys: Vec<Key> = secrets.map(|secret| Key::of(secret.as_bytes())).collect();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        if let Some(now) = now {
            let signed = |seconds| i64::try_from(seconds).unwrap_or(i64::MAX);
            self.ahead.store(signed(now) - signed((self.now)()), Ordering::Relaxed);
        }
    }

    /// Seconds since 1970, as all processes that share the keys have it.
    fn time(&self) -> u64 {
        (self.now)().saturating_add_signed(self.ahead.load(Ordering::Relaxed))
    }

    /// Returns the additional authenticated data: version and key, the server, the request that it is bound to.
    fn beside(&self, named: &[u8], bound: &[u8]) -> Vec<u8> {
        [named, &self.server, bound].concat()
    }

    /// `body`, which only this server and those with the same key can read again, and only together with `bound`.
    ///
    /// # Errors
    /// When it would be too long, or there is no randomness.
    pub(super) fn seal(&self, bound: &[u8], body: &[u8]) -> Result<String> {
        let key = self.keys.read().unwrap_or_else(PoisonError::into_inner).first().cloned();
        let key = key.ok_or_else(unavailable)?;
        let nonce = random::<NONCE>()?;
        let mut sealed = Vec::with_capacity(HEAD + 8 + body.len() + 16);
        sealed.push(VERSION);
        sealed.extend_from_slice(&key.id);
        sealed.extend_from_slice(&nonce);
        let mut plain = self.time().to_be_bytes().to_vec();
        plain.extend_from_slice(body);
        let aad = self.beside(&sealed[..1 + KEY_ID], bound);
        let nonce: XNonce = nonce.into();
        let text = key.cipher.encrypt(&nonce, Payload { msg: &plain, aad: &aad });
        sealed.extend(text.map_err(|_| Error::misuse("the state of a question cannot be sealed"))?);
        let text = URL_SAFE_NO_PAD.encode(sealed);
        if text.len() > self.max_bytes {
            return Err(Error::misuse(format!(
                "requestState would be {} bytes long, at most {} (max_request_state_bytes): answers and steps are kept \
                 in it, so ask for less or keep what is large elsewhere",
                text.len(),
                self.max_bytes
            )));
        }
        Ok(text)
    }

    /// Opens a sealed text.
    ///
    /// # Errors
    /// −32602: it is not this server's, was changed, belongs to another request, or has expired.
    pub(super) fn open(&self, bound: &[u8], text: &str) -> Result<Vec<u8>> {
        let wrong =
            |why: &str| Error::invalid_params(format!("\"requestState\": {why}: send the request anew without it"));
        let foreign = || wrong("not what this server gave for this request");
        if text.len() > self.max_bytes {
            return Err(foreign());
        }
        let sealed = URL_SAFE_NO_PAD.decode(text).map_err(|_| foreign())?;
        if sealed.len() < HEAD || sealed[0] != VERSION {
            return Err(foreign());
        }
        let (head, text) = sealed.split_at(HEAD);
        let (named, nonce) = head.split_at(1 + KEY_ID);
        let mut array = [0; NONCE];
        array.copy_from_slice(nonce);
        let nonce: XNonce = array.into();
        let aad = self.beside(named, bound);
        let all = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return Err(unavailable());
        }
        let keys = all.iter().filter(|key| key.id[..] == named[1..]);
        let opened = keys.filter_map(|key| key.cipher.decrypt(&nonce, Payload { msg: text, aad: &aad }).ok()).next();
        let mut plain = opened.ok_or_else(foreign)?;
        if plain.len() < 8 {
            return Err(foreign());
        }
        let body = plain.split_off(8);
        let mut issued = [0; 8];
        issued.copy_from_slice(&plain);
        let (issued, now) = (u64::from_be_bytes(issued), self.time());
        // Servers that share a key need not share a clock.
        if issued > now.saturating_add(MAX_SKEW) || now.saturating_sub(issued) > self.ttl {
            return Err(wrong("expired"));
        }
        Ok(body)
    }
}

/// The store that has the keys did not answer yet.
fn unavailable() -> Error {
    let message = "the store of this server does not answer, and a call that asks needs it: try again later";
    Error::rpc(code::UNAVAILABLE, message).with_data(RawJson::from_value(&serde_json::json!({"retryAfter": 1})))
}

fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    crate::random::fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns a digest of a value: equal values have equal digests, however they are written.
pub(super) fn digest(value: &Value) -> [u8; 32] {
    let mut hash = Sha256::new();
    feed(&mut hash, value);
    hash.finalize().into()
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            hash.update(b"{");
            for (key, value) in sorted {
                hash.update(Value::String(key.clone()).to_string());
                hash.update(b":");
                feed(hash, value);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        other => hash.update(other.to_string()),
    }
}

/// The integers of a JSON text that no [`Value`] tells apart, as they are written and in this order.
pub(super) fn long_integers(text: &str) -> Vec<&str> {
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let begin = at;
        at += 1;
        match bytes[begin] {
            b'"' => {
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                while at < bytes.len() && matches!(bytes[at], b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') {
                    at += 1;
                }
                let number = &text[begin..at];
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
                    found.push(number);
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;
