//! The Swift toolchain and what is built with it.

use super::State;
use crate::{place, process, report, tool};
use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

const MINUTES: Duration = Duration::from_secs(60);
/// Exit status of `with-swift.sh` when this machine cannot have Swift.
const CANNOT: i32 = 77;

/// A command that runs with `swift` on its path. What it builds has no warnings, as far as Package.swift says: the same
/// in every command, or everything would be made anew.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = tool::command(place::root().join("xtask/with-swift.sh"));
    command.args(args);
    command.env("TRICORN_STRICT", "1");
    command.env("SWIFT_CACHE", cache()).env("WITH_SWIFT_REPO", place::root());
    command.env("LIBRARY_PATH", place::target("release"));
    command
}

/// Returns the folder of the toolchain: one that is there already, else the target folder.
fn cache() -> PathBuf {
    if let Some(dir) = std::env::var_os("SWIFT_CACHE").filter(|d| !d.is_empty()) {
        return dir.into();
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let shared = cache.join("swift-toolchain");
    if shared.is_dir() { shared } else { place::target("swift-toolchain") }
}

/// Gets the toolchain. Runs beside other steps, so it never touches the progress line.
pub(super) fn provision() -> Result<State> {
    if !place::root().join("xtask/with-swift.sh").is_file() {
        bail!("there is no xtask/with-swift.sh");
    }
    let log = place::log("setup swift toolchain");
    let done = process::run_with(command(&["--provision"]), 30 * MINUTES, Some(&log), |_| {})?;
    Ok(match done.code {
        Some(0) => State::Ready,
        Some(CANNOT) => State::Skipped(done.stderr.trim().lines().last().unwrap_or("no toolchain").to_owned()),
        _ => State::Failed(done.why()),
    })
}

/// The static library that the Swift package links.
pub(super) fn library() -> Result<()> {
    if !place::root().join("Package.swift").is_file() {
        bail!("there is no Package.swift");
    }
    super::rust::binding("tricorn-swift")
}

/// The Swift package and its examples, in profile release.
pub(super) fn make() -> Result<()> {
    forget_stale_products()?;
    report::step("building the Swift package");
    let command = command(&["swift", "build", "-c", "release"]);
    process::must("swift build", command, 30 * MINUTES, &place::log("setup swift package")).map(drop)
}

/// The command that builds the package's tests: in profile release, too, so that the package is compiled once.
pub(crate) fn build_of_tests() -> Command {
    command(&["swift", "build", "-c", "release", "--build-tests"])
}

/// The package's tests, without running them.
pub(crate) fn tests() -> Result<()> {
    forget_stale_products()?;
    report::step("building the tests of the Swift package");
    process::must("swift build", build_of_tests(), 30 * MINUTES, &place::log("setup swift tests")).map(drop)
}

/// SwiftPM does not link again when only the Rust library has changed: remove what an older one went into.
fn forget_stale_products() -> Result<()> {
    let changed = |path: PathBuf| std::fs::metadata(path).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let library = changed(place::built("libtricorn_swift.a"));
    for profile in ["debug", "release"] {
        let Ok(entries) = std::fs::read_dir(place::root().join(".build").join(profile)) else {
            continue;
        };
        for path in entries.flatten().map(|e| e.path()) {
            let program =
                path.is_file() && (path.extension().is_none() || path.extension().is_some_and(|e| e == "xctest"));
            if program && changed(path.clone()) < library {
                std::fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}
