//! The Python environment, with the package installed in it as editable.

use crate::stamp::{Inputs, once};
use crate::{place, process, report, tool};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(60);
const REQUIREMENTS: &str = "xtask/requirements.txt";
/// Installs in a second what takes pip half a minute, most of it computing.
const UV: &str = "uv==0.13.9";

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
        command.args(["develop", "--release", "--features", "workspace"]);
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
    let version = |python: &Path| {
        let mut probe = tool::command(python);
        probe.args(["-c", "import sys; print(sys.version.split()[0])"]);
        tool::ask(probe)
    };
    let there = version(&dir.join("bin/python"));
    if there.is_some() && there == version(python) {
        return Ok(());
    }
    if let Some(mut command) = uv() {
        command.args(["venv", "--quiet", "--seed", "--clear", "--python"]).arg(python).arg(dir);
        if process::must("uv venv", command, 5 * MINUTES, &place::log(log)).is_ok() {
            return Ok(());
        }
    }
    plain(python, dir, log)
}

fn plain(python: &Path, dir: &Path, log: &str) -> Result<()> {
    let mut command = tool::command(python);
    command.args(["-m", "venv", "--clear"]).arg(dir);
    process::must("python3 -m venv", command, 5 * MINUTES, &place::log(log)).map(drop)
}

/// Packages into an environment: by uv, else by pip, which also says what is wrong.
pub(super) fn install(dir: &Path, what: &[&str], log: &str) -> Result<()> {
    if let Some(mut command) = uv() {
        command.args(["pip", "install", "--quiet", "--python"]).arg(dir.join("bin/python")).args(what);
        if process::must("uv pip install", command, 15 * MINUTES, &place::log(log)).is_ok() {
            return Ok(());
        }
    }
    pip(dir, what, log)
}

fn pip(dir: &Path, what: &[&str], log: &str) -> Result<()> {
    let mut command = tool::command(dir.join("bin/python"));
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(what);
    process::must("pip install", command, 15 * MINUTES, &place::log(log)).map(drop)
}

/// The interpreter of this version, such as `3.12`: on the path, or one of pyenv's.
pub(crate) fn of(version: &str) -> Option<PathBuf> {
    let works = |python: &PathBuf| {
        let mut command = tool::command(python);
        command.args(["-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]);
        tool::ask(command).is_some_and(|said| said == version)
    };
    let root = std::env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".pyenv")))?;
    let kept = std::fs::read_dir(root.join("versions")).into_iter().flatten().flatten();
    let kept = kept.map(|entry| entry.path().join("bin/python"));
    process::which(&format!("python{version}")).into_iter().chain(kept).find(works)
}

struct Uv {
    program: PathBuf,
    /// Names and values of its environment.
    settings: Vec<(&'static str, String)>,
}

/// A command of uv, which is got once: with pip's settings of this machine, as far as uv has them. None where there is no
/// uv for it.
fn uv() -> Option<Command> {
    static UV_HERE: OnceLock<Option<Uv>> = OnceLock::new();
    let look = || {
        let (python, version) = tool::python()?;
        let dir = place::target("uv");
        let program = dir.join("bin/uv");
        once("uv", &Inputs::new().text(UV).text(&version), &program, || {
            report::step("getting uv from PyPI");
            plain(&python, &dir, "setup uv")?;
            pip(&dir, &[UV], "setup uv")
        })
        .ok()?;
        let mut command = tool::command(dir.join("bin/python"));
        command.args(["-m", "pip", "config", "list"]);
        let mut settings = vec![("UV_CACHE_DIR", place::target("uv/cache").to_string_lossy().into_owned())];
        // `global.index-url='…'`, `:env:.index-url='…'`: what the environment says comes first.
        for line in tool::ask(command).unwrap_or_default().lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            let name = match key.rsplit('.').next().unwrap_or_default() {
                "index-url" => "UV_DEFAULT_INDEX",
                "extra-index-url" => "UV_INDEX",
                "find-links" => "UV_FIND_LINKS",
                "cert" => "SSL_CERT_FILE",
                "default-timeout" | "timeout" => "UV_HTTP_TIMEOUT",
                _ => continue,
            };
            if std::env::var_os(name).is_none() && settings.iter().all(|(known, _)| *known != name) {
                settings.push((name, value.trim_matches(['\'', '"']).replace("\\n", " ")));
            }
        }
        Some(Uv { program, settings })
    };
    let uv = UV_HERE.get_or_init(look).as_ref()?;
    let mut command = tool::command(&uv.program);
    command.envs(uv.settings.iter().map(|(name, value)| (name, value)));
    Some(command)
}
