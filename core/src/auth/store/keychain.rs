//! The key that seals logins, in the operating system's keychain.
//!
//! The logins themselves stay in files: a keychain's entries are short (2,560 bytes on Windows), cannot be listed, and
//! know no lock between two processes.

use std::path::Path;

use super::file::Keys;

const SERVICE: &str = "tricorn";
const NAME: &str = "token store";

/// The keychain of this platform.
pub(super) struct Keychain;

fn said(error: keyring::v1::Error) -> String {
    // "There is no store" has a reason, which is elsewhere.
    match keyring::v1::Entry::store_status() {
        Err(why) => why.to_string(),
        Ok(()) => error.to_string(),
    }
}

impl Keys for Keychain {
    fn key(&self, dir: &Path) -> Result<[u8; 32], String> {
        let entry = keyring::v1::Entry::new(SERVICE, NAME).map_err(said)?;
        super::place::only_one(dir, || match entry.get_secret() {
            Ok(secret) => secret.try_into().map_err(|_| "its entry for this library is damaged".into()),
            Err(keyring::v1::Error::NoEntry) => {
                let mut key = [0; 32];
                crate::random::fill(&mut key).map_err(|error| error.to_string())?;
                entry.set_secret(&key).map_err(said)?;
                // What counts is what is there: a process with another directory may have been faster.
                let secret = entry.get_secret().map_err(said)?;
                secret.try_into().map_err(|_| "it keeps something else than it was given".into())
            }
            Err(error) => Err(said(error)),
        })
    }
}
