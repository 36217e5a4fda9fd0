//! Keychain Services of macOS, Credential Manager of Windows.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
use keyring_core::api::CredentialStoreApi;
use keyring_core::error::Error;
#[cfg(windows)]
use windows_native_keyring_store::Store;

use super::{NAMES, NoKey, key_of, new_key};

pub(in super::super) const KNOWN: bool = true;

/// The key, made if there is none. The platform's functions come back when the user has answered, and no sooner: they
/// have a thread of their own, which ends then, whoever still waits.
pub(super) fn key(patience: Duration) -> Result<[u8; 32], NoKey> {
    let (answer, answered) = channel();
    let asking = move || {
        let _ = answer.send(ask());
    };
    thread::Builder::new().name("tricorn keychain".into()).spawn(asking).map_err(NoKey::refused)?;
    answered.recv_timeout(patience).unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => NoKey::late(patience),
            RecvTimeoutError::Disconnected => NoKey::refused("it broke off"),
        })
    })
}

fn ask() -> Result<[u8; 32], NoKey> {
    let entry = Store::new().and_then(|store| store.build(NAMES.0, NAMES.1, None)).map_err(NoKey::refused)?;
    match entry.get_secret() {
        Ok(secret) => key_of(secret),
        Err(Error::NoEntry) => {
            entry.set_secret(&new_key()?).map_err(NoKey::refused)?;
            // The stored key counts: a process with another directory may have been faster.
            key_of(entry.get_secret().map_err(NoKey::refused)?)
        }
        Err(error) => Err(NoKey::refused(error)),
    }
}
