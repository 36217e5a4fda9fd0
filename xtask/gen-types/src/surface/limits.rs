//! docs/limits.md.

use std::path::Path;

use anyhow::Result;

use super::options::Options;

pub(super) fn emit(root: &Path, _: &Options) -> Result<String> {
    Ok(std::fs::read_to_string(root.join("docs/limits.md"))?)
}
