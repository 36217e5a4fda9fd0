//! The text of a login's file: the owner in the clear, and the login, sealed where there is a key.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

use super::TokenKey;
use crate::auth::secret::Secret;
use crate::error::Result;

/// The format that is written, and the newest that is read.
const VERSION: u32 = 1;
const NONCE: usize = 24;

#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    issuer: String,
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    login: Option<Secret>,
    /// Nonce and ciphertext, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

/// Member that every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Cipher that seals logins. Its key is somewhere that other programs do not read.
#[derive(Clone)]
pub(super) struct Seal(XChaCha20Poly1305);

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(XChaCha20Poly1305::new(&key.into()))
    }

    /// Returns the owner, which is authenticated with the login: one cannot be taken for another's.
    fn beside(key: &TokenKey) -> Vec<u8> {
        format!("tricorn login {VERSION}\0{}\0{}{}", key.issuer.len(), key.issuer, key.server).into_bytes()
    }

    fn seal(&self, key: &TokenKey, login: &Secret) -> Result<Option<String>> {
        let mut nonce = [0; NONCE];
        crate::random::fill(&mut nonce)?;
        let payload = Payload { msg: login.expose().as_bytes(), aad: &Self::beside(key) };
        let text = self.0.encrypt(&XNonce::from(nonce), payload).ok();
        Ok(text.map(|text| STANDARD.encode([&nonce[..], &text].concat())))
    }

    fn open(&self, key: &TokenKey, sealed: &str) -> Option<Secret> {
        let sealed = STANDARD.decode(sealed).ok()?;
        let (nonce, text) = sealed.split_first_chunk::<NONCE>()?;
        let payload = Payload { msg: text, aad: &Self::beside(key) };
        let login = self.0.decrypt(&XNonce::from(*nonce), payload).ok()?;
        String::from_utf8(login).ok().map(Secret::from)
    }
}

/// Reason for not reading a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is not what was written.
    Damaged(&'static str),
    /// A newer version of this library has written it.
    Newer,
    /// It is sealed, and there is no key.
    Locked,
}

/// The text for a file. `None` when the login cannot be sealed.
pub(super) fn write(key: &TokenKey, login: &Secret, seal: Option<&Seal>) -> Result<Option<String>> {
    let (login, sealed) = match seal {
        None => (Some(login.clone()), None),
        Some(seal) => match seal.seal(key, login)? {
            Some(sealed) => (None, Some(sealed)),
            None => return Ok(None),
        },
    };
    let (issuer, server) = (key.issuer.clone(), key.server.clone());
    Ok(serde_json::to_string(&Envelope { version: VERSION, issuer, server, login, sealed }).ok())
}

/// Reads the key and the login of a file.
pub(super) fn read(text: &[u8], seal: Option<&Seal>) -> Result<(TokenKey, Secret), Unread> {
    let Versioned { version } = serde_json::from_slice(text).map_err(|_| Unread::Damaged("it is no login's file"))?;
    if version > VERSION {
        return Err(Unread::Newer);
    }
    let envelope: Envelope = serde_json::from_slice(text).map_err(|_| Unread::Damaged("it is no login's file"))?;
    let key = TokenKey { issuer: envelope.issuer, server: envelope.server };
    match (envelope.login, envelope.sealed, seal) {
        (Some(login), None, _) => Ok((key, login)),
        (None, Some(_), None) => Err(Unread::Locked),
        (None, Some(sealed), Some(seal)) => match seal.open(&key, &sealed) {
            Some(login) => Ok((key, login)),
            None => Err(Unread::Damaged("the keychain's key does not open it")),
        },
        _ => Err(Unread::Damaged("it has no login")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> TokenKey {
        TokenKey::new("https://as.example/t/", "https://mcp.example/mcp")
    }

    #[test]
    fn what_is_written_is_read_with_the_same_key_alone() {
        let login = Secret::from("{\"token\":\"sécret\"}");
        let (one, other) = (Seal::new([1; 32]), Seal::new([2; 32]));
        let open = write(&key(), &login, None).expect("written").expect("a text");
        let sealed = write(&key(), &login, Some(&one)).expect("written").expect("a text");
        assert!(open.contains("cret") && !sealed.contains("cret") && sealed.contains("mcp.example"));
        let moved = sealed.replace("mcp.example", "mcp.example.org");
        let foreign = Err(Unread::Damaged("the keychain's key does not open it"));
        for (text, seal, expected) in [
            (&open, None, Ok((key(), login.clone()))),
            (&open, Some(&one), Ok((key(), login.clone()))),
            (&sealed, Some(&one), Ok((key(), login.clone()))),
            (&sealed, None, Err(Unread::Locked)),
            (&sealed, Some(&other), Err(Unread::Damaged("the keychain's key does not open it"))),
            (&moved, Some(&one), foreign),
        ] {
            assert_eq!(read(text.as_bytes(), seal), expected);
        }
        let again = write(&key(), &login, Some(&one)).expect("written").expect("a text");
        assert_ne!(again, sealed, "no nonce is used twice");
    }

    #[test]
    fn what_was_not_written_is_not_read() {
        let table: [(&str, Unread); 7] = [
            ("", Unread::Damaged("it is no login's file")),
            ("{\"version\":1,\"issuer\":\"i\",\"ser", Unread::Damaged("it is no login's file")),
            ("\0\0\0\0", Unread::Damaged("it is no login's file")),
            ("{\"version\":1}", Unread::Damaged("it is no login's file")),
            ("{\"version\":1,\"issuer\":\"i\",\"server\":\"s\"}", Unread::Damaged("it has no login")),
            ("{\"version\":2,\"strange\":[]}", Unread::Newer),
            ("{\"version\":1,\"issuer\":\"i\",\"server\":\"s\",\"sealed\":\"?\"}", Unread::Locked),
        ];
        for (text, unread) in table {
            assert_eq!(read(text.as_bytes(), None), Err(unread), "{text}");
        }
    }
}
