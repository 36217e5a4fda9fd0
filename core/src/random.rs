//! Random values that nobody can guess.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};

/// An id that cannot be guessed: 144 random bits as visible ASCII.
///
/// # Errors
/// When the operating system has no randomness.
#[cfg(feature = "runtime")]
pub(crate) fn new_id() -> Result<Arc<str>> {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let mut random = [0u8; 18];
    fill(&mut random)?;
    // A letter comes first: what begins with a hyphen is an option to programs that are given it.
    random[0] &= 0x7f;
    Ok(URL_SAFE_NO_PAD.encode(random).into())
}

/// Fills `bytes` with what nobody can guess.
///
/// # Errors
/// When the operating system has no randomness.
#[cfg(feature = "runtime")]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    #[cfg(all(test, feature = "redis"))]
    if crate::simulated::fill(bytes) {
        return Ok(());
    }
    getrandom::fill(bytes).map_err(|e| Error::new(ErrorKind::Transport, format!("random numbers: {e}")).caused_by(e))
}

/// There is nothing to ask for randomness.
#[cfg(not(feature = "runtime"))]
pub(crate) fn new_id() -> Result<Arc<str>> {
    Err(Error::new(ErrorKind::Unsupported, "random numbers: this build has none, enable the feature \"runtime\""))
}

#[cfg(all(test, feature = "runtime"))]
mod tests {
    use super::*;

    #[test]
    fn ids_are_long_visible_and_different() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| new_id().expect("randomness")).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 24 && id.bytes().all(|b| (0x21..0x7f).contains(&b))));
        assert!(ids.iter().all(|id| id.starts_with(|first: char| first.is_ascii_alphabetic())));
    }
}
