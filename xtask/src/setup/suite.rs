//! Programs of others, from the registries: the official conformance suite, SDKs, servers.

use super::{node, python};
use crate::stamp::{Inputs, once};
use crate::{place, process, report, tool};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// The version of the official suite. Reconcile `tests/conformance/*.toml` in the same change.
const CONFORMANCE: &str = "0.2.0-alpha.12";

const NPM_SERVERS: [&str; 2] =
    ["@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"];
const NPM_SDK: [&str; 5] = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/node@2.1.2",
    "@modelcontextprotocol/server-legacy@2.3.1",
    "zod@4.6.7",
];
/// The SDK that most servers and clients out there are built on.
const NPM_SDK1: [&str; 2] = ["@modelcontextprotocol/sdk@1.32.2", "zod@4.6.7"];
/// A certified authorization server, for `contract logins`.
const NPM_PROVIDER: [&str; 1] = ["oidc-provider@9.13.3"];
const PYTHON_SDK: [&str; 1] = ["mcp==2.3.0"];
/// The same in Python.
const PYTHON_SDK1: [&str; 1] = ["mcp==1.30.0"];
const PYTHON_SERVERS: [&str; 2] = ["mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19"];

/// The entry file of the conformance suite.
pub(crate) fn conformance() -> Result<PathBuf> {
    let dir = place::target("conformance").join(CONFORMANCE);
    let entry = dir.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    once("conformance", &Inputs::new().text(CONFORMANCE), &entry, || {
        report::step(format!("getting the conformance suite {CONFORMANCE}"));
        node::install(&dir, &[&format!("@modelcontextprotocol/conformance@{CONFORMANCE}")])
    })?;
    Ok(entry)
}

/// Folders of others' programs.
pub(crate) struct Peers {
    /// Folder whose `node_modules` has the npm servers.
    pub(crate) npm_servers: PathBuf,
    /// Folder whose `node_modules` has the official TypeScript SDK, with our small programs beside it.
    pub(crate) npm_sdk: PathBuf,
    /// The same with the SDK before 2.0.
    pub(crate) npm_sdk1: PathBuf,
    /// `bin` of the environment with the official Python SDK.
    pub(crate) python_sdk: PathBuf,
    /// The same with the SDK before 2.0.
    pub(crate) python_sdk1: PathBuf,
    /// `bin` of the environment with the Python servers, which may need another version of the SDK.
    pub(crate) python_servers: PathBuf,
    /// The folder of the programs on the official Rust SDK.
    pub(crate) rmcp: PathBuf,
}

impl Peers {
    fn here() -> Self {
        let at = |name: &str| place::target("interop").join(name);
        Self {
            npm_servers: at("npm-servers"),
            npm_sdk: at("npm-sdk"),
            npm_sdk1: at("npm-sdk1"),
            python_sdk: at("python-sdk/bin"),
            python_sdk1: at("python-sdk1/bin"),
            python_servers: at("python-servers/bin"),
            rmcp: at("rmcp/release"),
        }
    }
}

/// The servers of others, for the demo.
pub(crate) fn servers() -> Result<Peers> {
    let peers = Peers::here();
    once("interop-npm-servers", &texts(&NPM_SERVERS), &peers.npm_servers.join("node_modules"), || {
        report::step("getting servers that others wrote, from npm");
        node::install(&peers.npm_servers, &NPM_SERVERS)
    })?;
    pip("python-servers", &PYTHON_SERVERS)?;
    Ok(peers)
}

/// Servers and official SDKs.
pub(crate) fn peers() -> Result<Peers> {
    let peers = servers()?;
    for (name, packages, dir) in
        [("interop-npm-sdk", &NPM_SDK[..], &peers.npm_sdk), ("interop-npm-sdk1", &NPM_SDK1, &peers.npm_sdk1)]
    {
        let inputs = texts(packages).path("tests/interop/typescript")?;
        once(name, &inputs, &dir.join("node_modules"), || {
            report::step(format!("getting {}", packages[0]));
            node::install(dir, packages)?;
            // Module resolution starts at the program's own folder.
            copy_programs("tests/interop/typescript", dir)
        })?;
    }
    let dir = place::target("interop/npm-provider");
    let inputs = texts(&NPM_PROVIDER).path("tests/auth/provider")?;
    once("interop-npm-provider", &inputs, &dir.join("node_modules"), || {
        report::step(format!("getting {}", NPM_PROVIDER[0]));
        node::install(&dir, &NPM_PROVIDER)?;
        copy_programs("tests/auth/provider", &dir)
    })?;
    pip("python-sdk", &PYTHON_SDK)?;
    pip("python-sdk1", &PYTHON_SDK1)?;
    let inputs = Inputs::new().path("tests/interop/rmcp")?;
    once("interop-rmcp", &inputs, &peers.rmcp.join("rmcp-client"), || {
        report::step("building the peers on the official Rust SDK");
        let mut command =
            tool::cargo(&["build", "--release", "--locked", "--manifest-path", "tests/interop/rmcp/Cargo.toml"]);
        command.arg("--target-dir").arg(place::target("interop/rmcp"));
        process::must("cargo build", command, Duration::from_secs(30 * 60), &place::log("interop rmcp")).map(drop)
    })?;
    Ok(peers)
}

/// The version of a package: of PyPI by its name, `mcp 1` before 2.0; of npm by its name; `rmcp`.
pub(crate) fn pinned(name: &str) -> Result<String> {
    let manifest = std::fs::read_to_string(place::root().join("tests/interop/rmcp/Cargo.toml"))?;
    let manifest: toml::Table = manifest.parse()?;
    let rmcp = manifest["dependencies"]["rmcp"].get("version").and_then(toml::Value::as_str).unwrap_or_default();
    let npm = NPM_SDK.iter().chain(&NPM_SDK1).find_map(|package| package.strip_prefix(name)?.strip_prefix('@'));
    let found = match name {
        "rmcp" => rmcp.strip_prefix('='),
        "mcp" => PYTHON_SDK[0].strip_prefix("mcp=="),
        "mcp 1" => PYTHON_SDK1[0].strip_prefix("mcp=="),
        _ => npm,
    };
    found.map(str::to_owned).with_context(|| format!("no version of {name} is pinned"))
}

pub(super) fn texts(all: &[&str]) -> Inputs {
    all.iter().fold(Inputs::new(), |inputs, text| inputs.text(text))
}

fn pip(name: &str, packages: &[&str]) -> Result<()> {
    let (_, version) = tool::python().context("no python3 >= 3.10 with its venv module")?;
    let dir = place::target("interop").join(name);
    let stamp = format!("interop-{name}");
    once(&stamp, &texts(packages).text(&version), &dir.join("bin/python"), || pip_packages(&dir, packages, &stamp))
}

fn pip_packages(dir: &std::path::Path, packages: &[&str], log: &str) -> Result<()> {
    pip_packages_of(None, dir, packages, log)
}

/// Packages of PyPI in an environment of their own, of this interpreter or the usual one.
pub(crate) fn pip_packages_of(
    named: Option<PathBuf>,
    dir: &std::path::Path,
    packages: &[&str],
    log: &str,
) -> Result<()> {
    let path = match named {
        Some(named) => named,
        None => tool::python().context("no python3 >= 3.10 with its venv module")?.0,
    };
    report::step(format!("getting {} from PyPI", packages.join(", ")));
    python::environment(&path, dir, log)?;
    python::install(dir, packages, log)
}

fn copy_programs(from: &str, to: &std::path::Path) -> Result<()> {
    for file in crate::stamp::sources(&place::root().join(from))? {
        if let Some(name) = file.file_name() {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}
