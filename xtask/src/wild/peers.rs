//! The peers, as `tests/wild/peers.toml` lists them, and how they get here.

use crate::stamp::{Inputs, once};
use crate::{place, process, setup, tool};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// On which side of the wire a peer is, and what of ours it meets.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A client or a framework, against our servers.
    Client,
    /// Stands between a client and our servers.
    Bridge,
    /// A server, called by our clients.
    Server,
    /// A web framework that our server is mounted in.
    Web,
    /// Makes one file of our server.
    Bundler,
    /// Runs our server.
    Runtime,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Registry {
    Npm,
    Pypi,
}

/// A call of a peer's tool, and what its answer has.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: toml::Table,
    /// A part of the answer's text.
    #[serde(default)]
    pub(super) has: String,
    #[serde(default)]
    pub(super) error: bool,
    /// Is called 50 times at once, too.
    #[serde(default)]
    pub(super) many: bool,
}

/// A check that fails, and why that is no fault of ours.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) checks: Vec<String>,
    /// Only in cells whose id has this in it.
    #[serde(default)]
    pub(super) on: String,
    pub(super) why: String,
    /// Fails now and then, as what it depends on is a race.
    #[serde(default)]
    pub(super) sometimes: bool,
    /// The way round.
    #[serde(default)]
    pub(super) instead: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Peer {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) registry: Registry,
    pub(super) packages: Vec<String>,
    /// The folder below `target/wild`, where several peers share one.
    #[serde(default)]
    folder: String,
    /// The file below `tests/wild/drivers`.
    #[serde(default)]
    pub(super) driver: String,
    /// The peers whose drivers call it, where it is none of the clients.
    #[serde(default)]
    pub(super) by: Vec<String>,
    #[serde(default = "both")]
    pub(super) transports: Vec<String>,
    /// How a server of theirs, a mount or a bridge starts.
    #[serde(default)]
    pub(super) start: Vec<String>,
    /// What its output says when it listens; without it `ready URL`, as ours do.
    #[serde(default)]
    pub(super) ready: String,
    #[serde(default)]
    pub(super) url: String,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// What is done once after the installation.
    #[serde(default)]
    pub(super) prepare: Vec<String>,
    #[serde(default)]
    pub(super) tools: Vec<String>,
    #[serde(default)]
    pub(super) calls: Vec<Call>,
    #[serde(default)]
    pub(super) resources: bool,
    #[serde(default)]
    pub(super) prompts: bool,
    /// Checks that cannot be asked of it.
    #[serde(default)]
    pub(super) without: Vec<String>,
    /// Is in every run.
    #[serde(default)]
    pub(super) core: bool,
    #[serde(default)]
    pub(super) known: Vec<Known>,
    #[serde(skip)]
    loose: bool,
}

fn both() -> Vec<String> {
    vec!["stdio".to_owned(), "http".to_owned()]
}

#[derive(Deserialize)]
struct File {
    peer: Vec<Peer>,
}

/// All of them, in the order of the file.
pub(super) fn read() -> Result<Vec<Peer>> {
    let text = std::fs::read_to_string(place::root().join("tests/wild/peers.toml"))?;
    let file: File = toml::from_str(&text).context("tests/wild/peers.toml")?;
    Ok(file.peer)
}

/// Sources of a package without its version: `@scope/name`, `name`.
fn bare(package: &str) -> &str {
    let package = package.split("==").next().unwrap_or(package);
    match package.get(1..).and_then(|rest| rest.find('@')) {
        Some(at) => &package[..=at],
        None => package,
    }
}

impl Peer {
    /// Its drivers are used for others.
    pub(super) fn is_base(&self) -> bool {
        ["mcp 1.x", "mcp 2.x"].contains(&self.name.as_str())
    }

    /// From now on the newest versions, in a folder of their own.
    pub(super) fn loosen(&mut self) {
        self.loose = true;
    }

    fn slug(&self) -> String {
        let name = if self.folder.is_empty() { &self.name } else { &self.folder };
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        if self.loose { format!("newest/{name}") } else { name }
    }

    /// Where it is installed.
    pub(super) fn dir(&self) -> PathBuf {
        place::target("wild").join(self.slug())
    }

    /// Where its programs are.
    pub(super) fn bin(&self) -> PathBuf {
        self.dir().join(if self.registry == Registry::Npm { "node_modules/.bin" } else { "bin" })
    }

    /// What runs its driver.
    pub(super) fn interpreter(&self) -> String {
        let python = self.dir().join("bin/python");
        if self.registry == Registry::Npm { "node".to_owned() } else { python.to_string_lossy().into_owned() }
    }

    /// Packages of the registry, with the programs of ours that run beside them.
    pub(super) fn install(&self) -> Result<()> {
        let dir = self.dir();
        let packages: Vec<&str> = self.packages.iter().map(|p| if self.loose { bare(p) } else { p }).collect();
        let stamp = format!("wild-{}", self.slug().replace('/', "-"));
        // Peers that share a folder name their own package first.
        let mut sorted = packages.clone();
        sorted.sort_unstable();
        let inputs = sorted.iter().fold(Inputs::new(), |inputs, p| inputs.text(p));
        match self.registry {
            Registry::Npm => {
                once(&stamp, &inputs, &dir.join("node_modules"), || setup::npm_packages(&dir, &packages))?;
                for (from, ending) in [("drivers", "mjs"), ("mounts", "mjs"), ("bundles", "mjs")] {
                    copy(from, ending, &dir)?;
                }
                let ours = dir.join("node_modules/tricorn");
                if !ours.exists() {
                    std::os::unix::fs::symlink(place::root(), &ours)?;
                }
            }
            Registry::Pypi => {
                once(&stamp, &inputs, &dir.join("bin/python"), || setup::pip_packages(&dir, &packages, &stamp))?
            }
        }
        if let Some((program, words)) = self.prepare.split_first() {
            let mut command = tool::command(program);
            let place = |w: &String| w.replace("{dir}", &dir.to_string_lossy());
            command.args(words.iter().map(place)).current_dir(&dir);
            process::must("the preparation", command, Duration::from_secs(120), &place::log(&stamp))?;
        }
        Ok(())
    }

    /// The version that is installed of its first package.
    pub(super) fn version(&self) -> String {
        let package = self.packages.first().map_or("", |p| p);
        let name = package.split('[').next().map(bare).unwrap_or_default();
        let found = match self.registry {
            Registry::Npm => self.npm_version(name.split("@npm:").next().unwrap_or(name)),
            Registry::Pypi => self.pypi_version(name),
        };
        found.unwrap_or_else(|| "?".to_owned())
    }

    fn npm_version(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.dir().join("node_modules").join(name).join("package.json")).ok()?;
        let manifest: serde_json::Value = serde_json::from_str(&text).ok()?;
        manifest["version"].as_str().map(str::to_owned)
    }

    fn pypi_version(&self, name: &str) -> Option<String> {
        let lib = std::fs::read_dir(self.dir().join("lib")).ok()?.flatten().next()?.path().join("site-packages");
        let prefix = format!("{}-", name.replace(['-', '.'], "_").to_lowercase());
        std::fs::read_dir(lib).ok()?.flatten().find_map(|entry| {
            let file = entry.file_name().to_string_lossy().replace('.', "_").to_lowercase();
            let whole = entry.file_name().to_string_lossy().into_owned();
            let version = file.starts_with(&prefix) && file.ends_with("_dist-info");
            version.then(|| whole[prefix.len()..].trim_end_matches(".dist-info").to_owned())
        })
    }

    /// What the newest version differs in from the pinned one.
    pub(super) fn changes(&self) -> Vec<String> {
        let pinned = self.packages.first().map_or("", |p| p);
        let pinned = pinned.rsplit(['=', '@']).next().unwrap_or_default();
        let newest = self.version();
        if newest == pinned {
            Vec::new()
        } else {
            vec![format!("{}: {pinned} is pinned, the newest is {newest}", self.name)]
        }
    }
}

fn copy(from: &str, ending: &str, to: &std::path::Path) -> Result<()> {
    for file in crate::stamp::sources(&place::root().join("tests/wild").join(from))? {
        if let Some(name) = file.file_name()
            && file.extension().is_some_and(|e| e == ending)
        {
            std::fs::copy(&file, to.join(name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_without_its_version() {
        let names = ["@a/b@1.2", "c@3", "d==4.0", "e[x]==5", "f"].map(bare);
        assert_eq!(names, ["@a/b", "c", "d", "e[x]", "f"]);
    }

    #[test]
    fn the_file_is_as_it_should_be() {
        let peers = read().expect("tests/wild/peers.toml");
        for peer in &peers {
            assert!(peer.packages.iter().all(|p| bare(p) != p), "{}: no version is pinned", peer.name);
            assert_eq!(peers.iter().filter(|p| p.name == peer.name).count(), 1, "{} is there twice", peer.name);
            assert!(peer.by.iter().all(|b| peers.iter().any(|p| p.name == *b)), "{}: no such driver", peer.name);
        }
    }
}
