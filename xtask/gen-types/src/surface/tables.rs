//! Tables of the engine and of the host packages that follow from the options.

use anyhow::Result;

use super::options::Options;

pub(super) fn emit(_: &Options) -> Result<Vec<(String, String)>> {
    Ok(Vec::new())
}
