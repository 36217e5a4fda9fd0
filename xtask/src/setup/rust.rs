//! The core and the programs written in Rust.

use crate::{place, process, report, tool};
use anyhow::Result;
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(30 * 60);

/// Packages that are built by their own language's step, or are this program.
const NOT_HERE: [&str; 4] = ["xtask", "tricorn-python", "tricorn-node", "tricorn-bindgen"];

pub(super) fn make() -> Result<()> {
    report::step("building the core and the Rust examples");
    let mut command = tool::cargo(&["build", "--release", "--workspace"]);
    for package in NOT_HERE {
        command.args(["--exclude", package]);
    }
    process::must("cargo build", command, BUILD, &place::log("setup rust")).map(drop)
}

/// One binding of the workspace, with what the others have compiled already.
pub(super) fn binding(name: &str) -> Result<()> {
    report::step(format!("building {name}"));
    let command = tool::cargo(&["build", "--release", "--package", name, "--features", "workspace"]);
    process::must("cargo build", command, BUILD, &place::log(&format!("setup {name}"))).map(drop)
}
