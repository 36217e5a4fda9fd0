//! Keys that seal kept logins.

use std::path::Path;

use crate::error::Result;

/// Source of the key that seals files.
pub(super) trait Keys: Send + Sync + 'static {
    /// The key, made if there is none. May wait, and ask the user.
    ///
    /// # Errors
    /// The reason why there is none, for people; `None` where nobody expects one.
    fn key(&self, dir: &Path) -> Result<[u8; 32], Option<String>>;
}
