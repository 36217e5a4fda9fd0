//! What others wrote, from the registries: the official conformance suite, SDKs, servers.

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
const NPM_SDK: [&str; 4] = [
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/node@2.1.2",
    "zod@4.6.7",
];
const PYTHON_SDK: [&str; 1] = ["mcp==2.3.0"];
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

/// Where others' programs are.
pub(crate) struct Peers {
    /// Folder whose `node_modules` has the npm servers.
    pub(crate) npm_servers: PathBuf,
    /// Folder whose `node_modules` has the official TypeScript SDK, with our small programs beside it.
    pub(crate) npm_sdk: PathBuf,
    /// `bin` of the environment with the official Python SDK.
    pub(crate) python_sdk: PathBuf,
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
            python_sdk: at("python-sdk/bin"),
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
    let inputs = texts(&NPM_SDK).path("tests/interop/typescript")?;
    once("interop-npm-sdk", &inputs, &peers.npm_sdk.join("node_modules"), || {
        report::step("getting the official TypeScript SDK");
        node::install(&peers.npm_sdk, &NPM_SDK)?;
        // Module resolution starts at the program's own folder.
        copy_programs("tests/interop/typescript", &peers.npm_sdk)
    })?;
    pip("python-sdk", &PYTHON_SDK)?;
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

fn texts(all: &[&str]) -> Inputs {
    all.iter().fold(Inputs::new(), |inputs, text| inputs.text(text))
}

fn pip(name: &str, packages: &[&str]) -> Result<()> {
    let (path, version) = tool::python().context("no python3 >= 3.10 with its venv module")?;
    let dir = place::target("interop").join(name);
    let stamp = format!("interop-{name}");
    once(&stamp, &texts(packages).text(&version), &dir.join("bin/python"), || {
        report::step(format!("getting {} from PyPI", packages.join(", ")));
        python::environment(&path, &dir, &stamp)?;
        python::install(&dir, packages, &stamp)
    })
}

fn copy_programs(from: &str, to: &std::path::Path) -> Result<()> {
    for file in crate::stamp::sources(&place::root().join(from))? {
        if let Some(name) = file.file_name() {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}
