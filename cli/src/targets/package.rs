//! Packages of Rust and Swift: built first, so that connecting does not wait for a compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use tricorn::client::Target;

use super::program::in_path;
use super::{Script, Way};
use crate::failure::{Failure, Outcome, UNREACHABLE};
use crate::output::Screen;

pub(super) fn cargo(script: &Script<'_>, way: &Way, is_for_others: bool, screen: &Screen) -> Outcome<Target> {
    #[derive(Deserialize)]
    struct Artifact {
        reason: String,
        #[serde(default)]
        executable: Option<PathBuf>,
        #[serde(default)]
        target: Value,
    }
    let manifest = if script.path.is_dir() { script.path.join("Cargo.toml") } else { script.path.to_owned() };
    let mut build = tool("cargo", script.path, "Rust")?;
    build.args(["build", "--quiet", "--message-format=json-render-diagnostics", "--manifest-path"]).arg(&manifest);
    if let Some(name) = script.name {
        build.args(["--bin", name]);
    }
    if is_for_others {
        build.arg("--release");
    }
    let said = output(build, script.path, "cargo build", screen)?;
    let built = said.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let is_program = |artifact: &Artifact| {
        let kinds = artifact.target["kind"].as_array();
        artifact.reason == "compiler-artifact" && kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "bin"))
    };
    let programs = built.filter(is_program).filter_map(|artifact| artifact.executable).collect();
    one(script, programs, way)
}

pub(super) fn swift(script: &Script<'_>, way: &Way, is_for_others: bool, screen: &Screen) -> Outcome<Target> {
    #[derive(Deserialize)]
    struct Package {
        products: Vec<Value>,
    }
    let folder = if script.path.is_dir() { Some(script.path) } else { script.path.parent() };
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let swift = |arguments: &[&str]| {
        let mut swift = tool("swift", script.path, "Swift")?;
        swift.args(arguments).arg("--package-path").arg(folder);
        if is_for_others && arguments.first() == Some(&"build") {
            swift.args(["-c", "release"]);
        }
        Ok(swift)
    };
    // What it says of its progress is no answer.
    for line in output(swift(&["build"])?, script.path, "swift build", screen)?.lines() {
        if line.contains("error:") {
            screen.line(line);
        }
    }
    let place = output(swift(&["build", "--show-bin-path"])?, script.path, "swift build --show-bin-path", screen)?;
    let described =
        output(swift(&["package", "describe", "--type", "json"])?, script.path, "swift package describe", screen)?;
    let package: Package = serde_json::from_str(&described).map_err(|error| {
        Failure::new(UNREACHABLE, format!("{}: swift package describe: {error}", script.path.display()))
    })?;
    let is_program = |product: &&Value| product["type"].get("executable").is_some();
    let names = package.products.iter().filter(is_program).filter_map(|product| product["name"].as_str());
    let named = names.filter(|name| script.name.is_none_or(|wanted| wanted == *name));
    one(script, named.map(|name| Path::new(place.trim()).join(name)).collect(), way)
}

fn tool(name: &str, path: &Path, language: &str) -> Outcome<Command> {
    in_path(name).map(Command::new).ok_or_else(|| {
        Failure::new(
            UNREACHABLE,
            format!(
                "{}: no {language}: looked for {name} in PATH; install it, or give the command line after --",
                path.display()
            ),
        )
    })
}

/// Runs a tool, whose messages go to standard error.
fn output(mut command: Command, path: &Path, what: &str, screen: &Screen) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let failed = |why: String| Failure::new(UNREACHABLE, format!("{}: {what}: {why}", path.display()));
    let output = output.map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    if !said.trim_start().starts_with('{') {
        said.lines().for_each(|line| screen.line(line));
    }
    Err(failed(format!("failed ({})", output.status)))
}

fn one(script: &Script<'_>, programs: Vec<PathBuf>, way: &Way) -> Outcome<Target> {
    let path = script.path.display();
    match programs.as_slice() {
        [program] => {
            let mut arguments = Vec::new();
            way.arguments(&mut arguments);
            Ok(Target::command(program.to_string_lossy(), arguments))
        }
        [] => Err(Failure::misuse(format!("{path}: the package has no program"))),
        several => {
            let names: Vec<_> = several.iter().filter_map(|path| path.file_stem()?.to_str()).collect();
            Err(Failure::misuse(format!("{path}: say which program is meant, {path}:NAME: {}", names.join(", "))))
        }
    }
}
