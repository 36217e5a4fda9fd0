//! A wheel of maturin's, with its symbols split off and the licences of the crates in it.

use super::inventory::{Inventory, LICENCES};
use super::matrix::Plan;
use super::{PACK, empty, found, symbols};
use crate::{place, process, setup, tool};
use anyhow::{Context, Result};
use std::path::Path;

/// Packs the wheel anew into a folder.
pub(super) fn finish(wheel: &Path, folder: &Path, inventory: &Inventory, plan: &Plan) -> Result<()> {
    let log = place::log("dist python");
    let work = empty("unpacked")?;
    let program = setup::packer("wheel")?;
    let mut unpack = tool::command(&program);
    unpack.args(["unpack", "--dest"]).arg(&work).arg(wheel);
    process::must("wheel unpack", unpack, PACK, &log)?;
    let root = found(&work, "")?.pop().context("the wheel is empty")?;
    for end in [".so", ".pyd"] {
        for module in found(&root.join("tricorn"), end).unwrap_or_default() {
            symbols::split(&module, plan, plan.module)?;
        }
    }
    let info = found(&root, ".dist-info")?.pop().context("the wheel has no dist-info")?;
    std::fs::write(info.join("licenses").join(LICENCES), inventory.licences())?;
    let metadata = info.join("METADATA");
    let text = std::fs::read_to_string(&metadata)?;
    let (before, after) = text.split_once("License-File: LICENSE-MIT\n").context("METADATA names no LICENSE-MIT")?;
    let named = format!("{before}License-File: LICENSE-MIT\nLicense-File: {LICENCES}\n{after}");
    std::fs::write(&metadata, named)?;
    let mut pack = tool::command(&program);
    pack.args(["pack", "--dest-dir"]).arg(folder).arg(&root);
    // Times of files are no part of a package: the first that an archive can name.
    pack.env("SOURCE_DATE_EPOCH", "315532800");
    process::must("wheel pack", pack, PACK, &log).map(drop)
}
