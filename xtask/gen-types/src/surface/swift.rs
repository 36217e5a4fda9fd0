//! Structures with their initializers, and the engine's text of them.

use anyhow::Result;

use super::options::{File, Options};

pub(super) fn emit(_: &Options, _: &File) -> Result<String> {
    Ok(String::new())
}
