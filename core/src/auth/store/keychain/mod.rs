//! The key that seals logins, in the operating system's keychain.
//!
//! The logins themselves stay in files: a keychain's entries are short (2,560 bytes on Windows), cannot be listed, and
//! know no lock between two processes.
#![cfg_attr(
    not(any(
        target_os = "macos",
        windows,
        all(feature = "keychain", unix, not(target_vendor = "apple"), not(target_os = "android"))
    )),
    allow(dead_code, reason = "for the builds that have one")
)]

#[cfg_attr(any(target_os = "macos", windows), path = "native.rs")]
#[cfg_attr(
    all(feature = "keychain", unix, not(target_vendor = "apple"), not(target_os = "android")),
    path = "secret_service.rs"
)]
mod system;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use super::keys::Keys;
use super::place;

/// True if this build knows the keychain of its platform.
pub(super) use system::KNOWN;

/// Name of the key there.
const NAMES: (&str, &str) = ("tricorn", "token store");
/// A keychain may ask its user, who may not be there. Together with the wait for another process that asks already
/// (a minute) it is shorter than the patience of whoever wants a login.
const PATIENCE: Duration = Duration::from_secs(45);

/// The keychain of this platform.
pub(super) struct Keychain {
    /// Somebody wants this one, and is told when there is none. Else that is as it is on any server.
    pub(super) is_wanted: bool,
}

/// Reason why there is no key.
#[derive(Debug)]
struct NoKey {
    why: String,
    /// There is no keychain.
    is_absent: bool,
}

impl NoKey {
    #[cfg(not(any(target_os = "macos", windows)))]
    fn absent(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), is_absent: true }
    }

    fn refused(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), is_absent: false }
    }

    fn late(patience: Duration) -> Self {
        Self::refused(format_args!("it has not answered for {patience:?}"))
    }
}

/// The key among what a keychain has under our names.
fn key_of(secret: Vec<u8>) -> Result<[u8; 32], NoKey> {
    secret.try_into().map_err(|_| NoKey::refused("its entry for this library is damaged"))
}

fn new_key() -> Result<[u8; 32], NoKey> {
    let mut key = [0; 32];
    crate::random::fill(&mut key).map_err(NoKey::refused)?;
    Ok(key)
}

impl Keys for Keychain {
    fn key(&self, dir: &Path) -> Result<[u8; 32], Option<String>> {
        match place::only_one(dir, || system::key(PATIENCE)).map_err(Some)? {
            Ok(key) => Ok(key),
            Err(none) if none.is_absent && !self.is_wanted => Err(None),
            Err(none) => Err(Some(none.why)),
        }
    }
}
