//! The programs of the machine that the tasks call, and one line of help for each that is missing.

use crate::place::{self, Lang};
use crate::process;
use anyhow::{Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// A look at a version takes no longer than this.
const QUICK: Duration = Duration::from_secs(60);

/// A command that runs at the root of the repository, without what `cargo run` put into the environment.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(place::root());
    for (key, value) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") || name == "CARGO_BIN_NAME" {
            command.env_remove(&key);
        } else if name == "LD_LIBRARY_PATH" || name == "DYLD_FALLBACK_LIBRARY_PATH" {
            let ours = |dir: &PathBuf| dir.starts_with(place::root()) || dir.to_string_lossy().contains("rustlib");
            let toolchain = |dir: &PathBuf| dir.to_string_lossy().contains("toolchains");
            let rest = std::env::split_paths(&value).filter(|d| !ours(d) && !toolchain(d));
            match std::env::join_paths(rest) {
                Ok(rest) if !rest.is_empty() => command.env(&key, rest),
                _ => command.env_remove(&key),
            };
        }
    }
    command
}

/// Cargo itself.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args);
    command
}

/// npm, quiet about everything but errors.
pub(crate) fn npm(args: &[&str]) -> Command {
    let mut command = command("npm");
    command.args(args).env("npm_config_update_notifier", "false").env("npm_config_loglevel", "error");
    command.env("npm_config_audit", "false").env("npm_config_fund", "false");
    command
}

/// A program of the Python environment.
pub(crate) fn venv(program: &str) -> PathBuf {
    place::target("venv/bin").join(program)
}

/// A program of the checkers installed from npm.
pub(crate) fn checker(program: &str) -> PathBuf {
    place::target("tools/node_modules/.bin").join(program)
}

/// Runs a command; returns its output, without space around it, if it succeeds.
pub(crate) fn ask(command: Command) -> Option<String> {
    let done = process::run_with(command, QUICK, None, |_| {}).ok()?;
    done.ok().then(|| done.stdout.trim().to_owned())
}

/// The newest Python of at least 3.10, `PYTHON` first.
pub(crate) fn python() -> Option<(PathBuf, String)> {
    static FOUND: OnceLock<Option<(PathBuf, String)>> = OnceLock::new();
    let look = || {
        let named = std::env::var("PYTHON").ok();
        let names = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"];
        let version = "import sys, venv, ensurepip; assert sys.version_info >= (3, 10); print(sys.executable, sys.version.split()[0])";
        named.iter().map(String::as_str).chain(names).find_map(|name| {
            let mut probe = command(name);
            probe.args(["-c", version]);
            let said = ask(probe)?;
            let (path, version) = said.rsplit_once(' ')?;
            Some((PathBuf::from(path), version.to_owned()))
        })
    };
    FOUND.get_or_init(look).clone()
}

/// The version of Node as (major, whole text).
pub(crate) fn node(program: &Path) -> Option<(u32, String)> {
    let mut probe = command(program);
    probe.arg("--version");
    let said = ask(probe)?;
    let major = said.trim_start_matches('v').split('.').next()?.parse().ok()?;
    Some((major, said))
}

/// One line for each tool that these languages need and this machine has not.
pub(crate) fn missing(langs: &[Lang]) -> Vec<String> {
    let mut lines = Vec::new();
    if process::which("cc").is_none() {
        lines.push("cc is missing (a C compiler, which Rust links with): apt-get install build-essential".to_owned());
    }
    if langs.contains(&Lang::Python) && python().is_none() {
        let how = "apt-get install python3 python3-venv, or set PYTHON";
        lines.push(format!("python3 >= 3.10 with its venv module is missing: {how}"));
    }
    // The Swift, Python and Rust parts of some tasks run npm packages too.
    match node(Path::new("node")) {
        Some((major, _)) if major >= 20 && process::which("npm").is_some() => {}
        found => {
            let have = found.map_or_else(|| "missing".to_owned(), |(_, v)| format!("{v}, or npm is missing"));
            let how = "apt-get install nodejs npm, or a release of nodejs.org on PATH";
            if langs.contains(&Lang::Node) {
                lines.push(format!("node >= 20 with npm is needed, it is {have}: {how}"));
            }
        }
    }
    lines
}

/// Fails with one line per missing tool.
pub(crate) fn need(langs: &[Lang]) -> Result<()> {
    let lines = missing(langs);
    if !lines.is_empty() {
        bail!("{}", lines.join("\n"));
    }
    Ok(())
}
