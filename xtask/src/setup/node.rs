//! The npm packages of the repository, the Node package built from it, and Node itself where a newer one is needed.

use crate::stamp::{Inputs, once};
use crate::{place, process, report, tool};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

const MINUTES: Duration = Duration::from_secs(60);

/// Root `node_modules`.
pub(super) fn modules() -> Result<Inputs> {
    let root = place::root();
    if !root.join("package.json").is_file() {
        bail!("there is no package.json");
    }
    let inputs = Inputs::new().path("package.json")?.path("package-lock.json")?;
    once("node-modules", &inputs, &root.join("node_modules"), || {
        report::step("installing the npm packages");
        // Not `ci`: it wants an entry for every platform, also for those whose package a registry does not have.
        // The build has its own step, which also runs when only sources have changed.
        let command = tool::npm(&["install", "--ignore-scripts"]);
        process::must("npm install", command, 15 * MINUTES, &place::log("setup npm")).map(drop)
    })?;
    Ok(inputs)
}

/// Root `node_modules` and the built package.
pub(super) fn make() -> Result<()> {
    let root = place::root();
    let inputs = modules()?
        .path("Cargo.toml")?
        .path("Cargo.lock")?
        .path("core/Cargo.toml")?
        .path("core/src")?
        .path("bindings-node")?;
    once("node-package", &inputs, &root.join("bindings-node/dist"), || {
        report::step("building the Node package");
        let log = place::log("setup node package");
        let native = tool::npm(&["run", "build:native", "--", "--features", "workspace"]);
        process::must("npm run build:native", native, 30 * MINUTES, &log)?;
        process::must("npm run build:ts", tool::npm(&["run", "build:ts"]), 10 * MINUTES, &log).map(drop)
    })
}

/// The checkers that come from npm, in `target/tools`.
pub(crate) fn checkers() -> Result<()> {
    let inputs = Inputs::new().path("xtask/tools/package-lock.json")?;
    let dir = place::target("tools");
    once("tools", &inputs, &dir.join("node_modules/.bin"), || {
        report::step("installing the checkers");
        std::fs::create_dir_all(&dir)?;
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(place::root().join("xtask/tools").join(file), dir.join(file))?;
        }
        let command = tool::npm(&["ci", "--prefix", &dir.to_string_lossy()]);
        process::must("npm ci", command, 10 * MINUTES, &place::log("setup tools")).map(drop)
    })
}

/// A Node of at least 22, which the conformance suite needs: the machine's own, or one from npm.
pub(crate) fn newest() -> Result<PathBuf> {
    if let (Some(path), Some((major, _))) = (process::which("node"), tool::node(Path::new("node")))
        && major >= 22
    {
        return Ok(path);
    }
    let (os, arch) = match (std::env::consts::OS, std::env::consts::ARCH) {
        (os, "x86_64") => (if os == "macos" { "darwin" } else { os }, "x64"),
        (os, _) => (if os == "macos" { "darwin" } else { os }, "arm64"),
    };
    let package = format!("node-{os}-{arch}");
    let program = place::target("node22/node_modules").join(&package).join("bin/node");
    once("node22", &Inputs::new().text(&package), &program, || {
        report::step("getting Node 22");
        install(&place::target("node22"), &[&format!("{package}@22")])
    })?;
    Ok(program)
}

/// npm packages in a folder of their own.
pub(crate) fn install(dir: &Path, packages: &[&str]) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let name = dir.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut command = tool::npm(&["install", "--no-save", "--no-package-lock", "--prefix"]);
    command.arg(dir).args(packages);
    // Browsers are Debian's.
    command.env("PUPPETEER_SKIP_DOWNLOAD", "1").env("PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD", "1");
    process::must(
        &format!("npm install {}", packages.join(" ")),
        command,
        15 * MINUTES,
        &place::log(&format!("npm {name}")),
    )
    .map(drop)
}
