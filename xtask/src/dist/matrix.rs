//! The platforms of `dist.toml`, and the commands that build for them.

use crate::{place, setup, tool};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::process::Command;

/// The platform whose job also packs what is the same for all.
const FIRST: &str = "linux-x64-gnu";
/// The features with which a quick build of a binding shares code with others.
const SHARED: [&str; 2] = ["--features", "workspace"];

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum By {
    Zig,
    Mingw,
    Host,
}

/// A way to use the packages of a platform on this machine.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Tried {
    Here,
    Musl,
    Qemu,
    Wine,
}

impl Tried {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Musl => "musl",
            Self::Qemu => "qemu",
            Self::Wine => "wine",
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    target: String,
    wheel: Option<String>,
    glibc: Option<String>,
    by: By,
    tried: Option<Tried>,
    module: Option<u64>,
    command: Option<u64>,
}

enum Tools {
    /// Those of the machine.
    Own,
    Zig(setup::Zig),
    Windows(setup::Windows),
}

/// A platform, and the tools for it.
pub(super) struct Plan {
    pub(super) name: &'static str,
    /// Rust's name of what is built.
    pub(super) target: &'static str,
    pub(super) tried: Option<Tried>,
    /// The most bytes that the native module may have.
    pub(super) module: Option<u64>,
    /// The most bytes that the command may have.
    pub(super) command: Option<u64>,
    wheel: Option<String>,
    glibc: Option<String>,
    quick: bool,
    tools: Tools,
}

fn read() -> Result<BTreeMap<String, Platform>> {
    let text = std::fs::read_to_string(place::root().join("dist.toml")).context("cannot read dist.toml")?;
    toml::from_str(&text).context("dist.toml")
}

/// The platforms that are asked for, with their tools set up.
pub(super) fn plans(asked: &[String], all: bool, quick: bool) -> Result<Vec<Plan>> {
    let known = read()?;
    let host = host()?;
    let is_host = |platform: &Platform| platform.target == host;
    let names = known.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&String> = if all {
        let can = |platform: &&Platform| is_host(platform) || (cfg!(target_os = "linux") && platform.by != By::Host);
        known.iter().filter(|(_, platform)| can(platform)).map(|(name, _)| name).collect()
    } else if asked.is_empty() {
        known.iter().filter(|(_, platform)| is_host(platform)).map(|(name, _)| name).collect()
    } else {
        asked.iter().collect()
    };
    if chosen.is_empty() {
        bail!("{host} is no platform of the packages: expected one of {names}");
    }
    let plan = |name: &String| match known.get(name) {
        Some(platform) => Plan::new(name, platform, is_host(platform), quick),
        None => bail!("{name} is no platform of the packages: expected one of {names}"),
    };
    chosen.into_iter().map(plan).collect()
}

fn host() -> Result<String> {
    let mut command = tool::command("rustc");
    command.arg("-vV");
    let said = tool::ask(command).context("rustc does not run")?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc names no host")
}

impl Plan {
    fn new(name: &str, platform: &Platform, is_host: bool, quick: bool) -> Result<Self> {
        // A plan lives as long as the task.
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let target: &'static str = Box::leak(platform.target.clone().into_boxed_str());
        let got = match platform.by {
            By::Zig if cfg!(target_os = "linux") && !(quick && is_host) => setup::zig(target)?.map(Tools::Zig),
            By::Mingw if cfg!(target_os = "linux") => setup::windows()?.map(Tools::Windows),
            _ => Ok(Tools::Own),
        };
        let tools = match got {
            Ok(tools) => tools,
            Err(why) => bail!("{name} cannot be built here: {why}"),
        };
        let target = if matches!(tools, Tools::Windows(_)) { setup::WINDOWS } else { target };
        Ok(Self {
            name,
            target,
            tried: platform.tried.filter(|how| *how != Tried::Here || is_host),
            module: platform.module.filter(|_| !quick),
            command: platform.command.filter(|_| !quick),
            wheel: platform.wheel.clone(),
            glibc: platform.glibc.clone(),
            quick,
            tools,
        })
    }

    pub(super) fn is_first(&self) -> bool {
        self.name == FIRST
    }

    /// With the code of the checkout's other builds, where it is the same.
    fn profile(&self, command: &mut Command, shared: &[&str]) {
        if self.quick {
            command.arg("--release").args(shared);
        } else {
            command.args(["--profile", "dist"]);
        }
    }

    /// Paths of this machine in messages and symbols, as they are named everywhere.
    fn flags() -> Vec<String> {
        let home = |name: &str, below: &str| {
            let set = std::env::var_os(name).map(std::path::PathBuf::from);
            set.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(below)))
        };
        let mut flags = Vec::new();
        let mut map = |from: Option<std::path::PathBuf>, to: &str| {
            if let Some(from) = from {
                flags.push(format!("--remap-path-prefix={}={to}", from.display()));
            }
        };
        map(home("CARGO_HOME", ".cargo"), "cargo");
        map(home("RUSTUP_HOME", ".rustup"), "rustup");
        map(Some(place::root().to_owned()), "tricorn");
        flags
    }

    fn environment(&self, command: &mut Command) -> Result<()> {
        if !self.quick {
            command.env("SOURCE_DATE_EPOCH", "315532800").env("TRICORN_SYMBOLS", "1");
        }
        match &self.tools {
            Tools::Own if self.quick => {}
            Tools::Own => {
                command.env("CARGO_ENCODED_RUSTFLAGS", Self::flags().join("\u{1f}"));
            }
            Tools::Zig(zig) => zig.environment(command, &Self::flags())?,
            Tools::Windows(windows) => {
                windows.environment(command)?;
                command.env("CARGO_ENCODED_RUSTFLAGS", Self::flags().join("\u{1f}"));
            }
        }
        Ok(())
    }

    /// Arguments of `maturin build`.
    pub(super) fn wheel(&self, command: &mut Command) -> Result<()> {
        self.profile(command, &SHARED);
        if !self.quick || !matches!(self.tools, Tools::Own) {
            command.args(["--target", self.target]);
        }
        if let Tools::Zig(_) = self.tools {
            command.arg("--zig");
            if let Some(tag) = &self.wheel {
                command.args(["--compatibility", tag]);
            }
        }
        self.environment(command)
    }

    /// `cargo build` of a binding, or what stands in for it.
    pub(super) fn cargo(&self, package: &str) -> Result<Command> {
        self.build(package, &SHARED)
    }

    /// The same of the command's package, which is published and so cannot depend on `tricorn-features`.
    pub(super) fn program(&self) -> Result<Command> {
        let features = "tricorn/otel,tricorn/redis,tricorn/tracing";
        self.build("tricorn-cli", &["--package", "tricorn-features", "--features", features])
    }

    fn build(&self, package: &str, shared: &[&str]) -> Result<Command> {
        let mut command = match &self.tools {
            Tools::Zig(_) => {
                let mut command = tool::command(setup::packer("cargo-zigbuild")?);
                command.arg("zigbuild");
                command
            }
            _ => tool::cargo(&["build"]),
        };
        command.args(["--package", package]);
        self.profile(&mut command, shared);
        match (&self.tools, &self.glibc) {
            (Tools::Own, _) if self.quick => {}
            (Tools::Zig(_), Some(glibc)) => {
                command.args(["--target", &format!("{}.{glibc}", self.target)]);
            }
            _ => {
                command.args(["--target", self.target]);
            }
        }
        self.environment(&mut command)?;
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platforms_are_those_of_the_node_package() {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let text =
            std::fs::read_to_string(place::root().join("bindings-node/lib/bridge/platforms.json")).expect("it is read");
        let node: Vec<Named> = serde_json::from_str(&text).expect("it is a list");
        let mut node: Vec<_> = node.into_iter().map(|one| one.name).collect();
        node.sort();
        let ours: Vec<_> = read().expect("it is a matrix").into_keys().collect();
        assert_eq!(ours, node);
    }

    #[test]
    fn an_unknown_platform_is_refused_with_the_known_ones() {
        let error = plans(&["linux-x32".to_owned()], false, true).err().expect("it is refused");
        let text = error.to_string();
        assert!(text.contains("linux-x32") && text.contains("linux-arm64-musl"), "{text}");
    }
}
