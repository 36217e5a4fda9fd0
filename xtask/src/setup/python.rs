//! The Python environment, with the package installed in it as editable.

use crate::stamp::{Inputs, once};
use crate::{place, process, report, tool};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(60);
const REQUIREMENTS: &str = "xtask/requirements.txt";

/// `target/venv` with the package and what its tests need.
pub(super) fn make() -> Result<()> {
    venv()?;
    let inputs = Inputs::new()
        .path("Cargo.toml")?
        .path("Cargo.lock")?
        .path("core/Cargo.toml")?
        .path("core/src")?
        .path("bindings-python/Cargo.toml")?
        .path("bindings-python/src")?
        .path("pyproject.toml")?
        .text(&tool::python().map(|p| p.1).unwrap_or_default());
    let module = place::root().join("bindings-python/python/tricorn/_core.abi3.so");
    once("python-package", &inputs, &module, || {
        report::step("building the Python package");
        let mut command = tool::command(tool::venv("maturin"));
        command.args(["develop", "--release"]);
        command.env("VIRTUAL_ENV", place::target("venv"));
        process::must("maturin develop", command, 30 * MINUTES, &place::log("setup python package")).map(drop)
    })
}

/// `target/venv` with the tools alone.
pub(super) fn venv() -> Result<()> {
    let (python, version) = tool::python().context("no python3 >= 3.10 with its venv module")?;
    let inputs = Inputs::new().path(REQUIREMENTS)?.text(&version).text(&python.to_string_lossy());
    once("python-venv", &inputs, &tool::venv("maturin"), || {
        report::step("making the Python environment");
        let dir = place::target("venv");
        environment(&python, &dir, "setup python venv")?;
        report::step("installing the Python tools");
        install(&dir, &["-r", REQUIREMENTS], "setup python packages")
    })
}

/// A new virtual environment, unless a working one of the same Python stands there.
pub(super) fn environment(python: &Path, dir: &Path, log: &str) -> Result<()> {
    let mut probe = tool::command(dir.join("bin/python"));
    probe.args(["-c", "import sys; print(sys.version.split()[0])"]);
    let there = tool::ask(probe);
    if there.is_some() && there == tool::python().map(|p| p.1) {
        return Ok(());
    }
    let mut command = tool::command(python);
    command.args(["-m", "venv", "--clear"]).arg(dir);
    process::must("python3 -m venv", command, 5 * MINUTES, &place::log(log)).map(drop)
}

/// `pip install` into an environment.
pub(super) fn install(dir: &Path, what: &[&str], log: &str) -> Result<()> {
    let mut command = tool::command(dir.join("bin/python"));
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(what);
    process::must("pip install", command, 15 * MINUTES, &place::log(log)).map(drop)
}
