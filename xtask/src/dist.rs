//! `cargo xtask dist`: packages as they are published, in `target/dist`.
//!
//! The native modules and the command are compiled with link-time optimization, or with `--quick` as everything here is.
//! `dist.toml` says which platforms there are, and with which tools they are built. Symbols are split off into files of
//! their own, and the licences of the crates inside go into every package.

mod command;
mod inventory;
mod matrix;
mod symbols;
mod table;
mod wheel;

use crate::{place, process, report, setup, tool};
use anyhow::{Context, Result, bail};
use inventory::Inventory;
use matrix::Plan;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(60 * 60);
const PACK: Duration = Duration::from_secs(10 * 60);

/// Choice of packages.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// python, node, command, swift; all but the last by default
    parts: Vec<Part>,
    /// One of `dist.toml`, or several, each after its own `--platform`; that of this machine by default
    #[arg(long)]
    platform: Vec<String>,
    /// All platforms that this machine can build for
    #[arg(long, conflicts_with = "platform")]
    all: bool,
    /// Without link-time optimization, and for this machine's own C library
    #[arg(long)]
    quick: bool,
    /// Installs and uses the packages on each platform that this machine can run: itself, musl, qemu, wine
    #[arg(long = "try", conflicts_with = "quick")]
    tried: bool,
}

/// A package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Python,
    Node,
    Command,
    Swift,
}

/// The task.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let plans = matrix::plans(&options.platform, options.all, options.quick)?;
    let parts =
        if options.parts.is_empty() { vec![Part::Python, Part::Node, Part::Command] } else { options.parts.clone() };
    for part in parts {
        match part {
            Part::Python => python(&plans)?,
            Part::Node => node(&plans)?,
            Part::Command => command(&plans)?,
            Part::Swift => swift(options.quick)?,
        }
    }
    sums()?;
    report::clear();
    table::print(&plans, options.tried)
}

fn dist(part: &str) -> Result<PathBuf> {
    let folder = place::target("dist").join(part);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The files of a folder that end so.
fn found(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let all = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let mut all: Vec<_> = all.into_iter().filter(|path| path.to_string_lossy().ends_with(end)).collect();
    all.sort();
    if all.is_empty() {
        bail!("there is no file *{end} in {}", place::short(folder));
    }
    Ok(all)
}

/// An empty folder for products on their way.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = place::target("dist/tmp").join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Removes what earlier runs left of one part.
fn clear(part: &str, is_old: impl Fn(&str) -> bool) -> Result<()> {
    let files = found(&dist(part)?, "").unwrap_or_default();
    let named = |path: &Path| path.file_name().is_some_and(|name| is_old(&name.to_string_lossy()));
    files.into_iter().filter(|path| named(path)).try_for_each(|path| Ok(std::fs::remove_file(path)?))
}

/// The wheels, and with that of the first platform the sources.
fn python(plans: &[Plan]) -> Result<()> {
    setup::python_tools()?;
    let folder = dist("python")?;
    clear("python", |_| true)?;
    clear("symbols", |name| name.contains("._core."))?;
    let log = place::log("dist python");
    for plan in plans {
        report::step(format!("building the wheel for {}", plan.name));
        let made = empty("wheel")?;
        let mut maturin = tool::command(tool::venv("maturin"));
        maturin.args(["build", "--locked", "--out"]).arg(&made);
        plan.wheel(&mut maturin)?;
        process::must("maturin build", maturin, BUILD, &log)?;
        for wheel in found(&made, ".whl")? {
            let inventory = Inventory::of("tricorn-python", plan)?;
            wheel::finish(&wheel, &folder, &inventory, plan)?;
        }
    }
    if plans.iter().any(Plan::is_first) {
        report::step("packing the sources of the Python package");
        let mut sources = tool::command(tool::venv("maturin"));
        sources.args(["sdist", "--out"]).arg(&folder);
        process::must("maturin sdist", sources, PACK, &log)?;
    }
    Ok(())
}

/// A message of cargo about a library or a program that it has built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The files of a target that cargo says it has built.
fn built(said: &str, name: &str, kind: &str) -> Vec<PathBuf> {
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let is_asked = |message: &Message| {
        let target = message.target.as_ref();
        message.reason == "compiler-artifact"
            && target.is_some_and(|one| one.name == name && one.kind.iter().any(|known| known == kind))
    };
    messages.filter(is_asked).flat_map(|message| message.filenames).collect()
}

/// The compiled module, and beside it the crates in it.
fn addon(plan: &Plan) -> Result<PathBuf> {
    report::step(format!("building the Node addon for {}", plan.name));
    let mut build = plan.cargo("tricorn-node")?;
    build.args(["--locked", "--message-format=json"]);
    let done = process::must("cargo build", build, BUILD, &place::log("dist node"))?;
    let library = built(&done.stdout, "tricorn_node", "cdylib")
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| ["so", "dylib", "dll"].iter().any(|known| end == *known)));
    let library = library.context("cargo built no library")?;
    let folder = empty(plan.name)?;
    let addon = folder.join(format!("tricorn.{}.node", plan.name));
    std::fs::copy(&library, &addon).with_context(|| format!("cannot copy {}", library.display()))?;
    symbols::split(&addon, plan, plan.module)?;
    let inventory = Inventory::of("tricorn-node", plan)?;
    inventory.write(&folder)?;
    std::fs::copy(folder.join(inventory::SBOM), dist("sbom")?.join(format!("tricorn-{}.cdx.json", plan.name)))?;
    Ok(addon)
}

/// The packages of the platforms, and that of all.
fn node(plans: &[Plan]) -> Result<()> {
    setup::node_modules()?;
    clear("symbols", |name| name.ends_with(".node.debug"))?;
    clear("sbom", |name| !command::is_materials(name))?;
    let addons = plans.iter().map(addon).collect::<Result<Vec<_>>>()?;
    report::step("packing the Node packages");
    let log = place::log("dist node");
    process::must("npm run build:ts", tool::npm(&["run", "build:ts"]), PACK, &log)?;
    let mut pack = tool::command("node");
    pack.arg("bindings-node/scripts/pack.mjs").arg("--out").arg(dist("npm")?).args(&addons);
    process::must("pack.mjs", pack, PACK, &log).map(drop)
}

/// The archives of the command.
fn command(plans: &[Plan]) -> Result<()> {
    clear("command", |_| true)?;
    clear("symbols", command::is_symbols)?;
    clear("sbom", command::is_materials)?;
    plans.iter().try_for_each(command::pack)
}

/// The XCFramework. Apple's own tools make it: it has been run on no machine yet.
fn swift(quick: bool) -> Result<()> {
    const APPLE: [(&str, &[&str]); 3] = [
        ("macos", &["aarch64-apple-darwin", "x86_64-apple-darwin"]),
        ("ios", &["aarch64-apple-ios"]),
        ("ios-simulator", &["aarch64-apple-ios-sim", "x86_64-apple-ios"]),
    ];
    if !cfg!(target_os = "macos") {
        bail!("the XCFramework is made with xcodebuild and lipo, on macOS");
    }
    let (folder, log) = (dist("swift")?, place::log("dist swift"));
    let mut create = tool::command("xcodebuild");
    create.arg("-create-xcframework");
    let profile = if quick { "release" } else { "dist" };
    for (name, targets) in APPLE {
        let mut join = tool::command("lipo");
        join.arg("-create");
        for target in targets {
            report::step(format!("building the library of Swift for {target}"));
            let build = ["build", "--locked", "--package", "tricorn-swift", "--profile", profile, "--target", target];
            process::must("cargo build", tool::cargo(&build), BUILD, &log)?;
            join.arg(place::target(target).join(profile).join("libtricorn_swift.a"));
        }
        let library = folder.join(name).join("libtricorn_swift.a");
        std::fs::create_dir_all(folder.join(name))?;
        join.arg("-output").arg(&library);
        process::must("lipo", join, PACK, &log)?;
        create.arg("-library").arg(&library).arg("-headers").arg("bindings-swift/Sources/CTricornCore");
    }
    let framework = folder.join("TricornCore.xcframework");
    let _ = std::fs::remove_dir_all(&framework);
    create.arg("-output").arg(&framework);
    process::must("xcodebuild", create, PACK, &log)?;
    let mut zip = Command::new("ditto");
    zip.args(["-c", "-k", "--keepParent"]).arg(&framework).arg(folder.join("TricornCore.xcframework.zip"));
    process::must("ditto", zip, PACK, &log).map(drop)
}

/// Everything that is published, by the folder that it is in.
fn published() -> Vec<(&'static str, PathBuf)> {
    let ends = [
        ("python", ".whl"),
        ("python", ".tar.gz"),
        ("npm", ".tgz"),
        ("command", ".tar.gz"),
        ("command", ".zip"),
        ("swift", ".zip"),
        ("sbom", ".cdx.json"),
        ("symbols", ".debug"),
    ];
    let folder = place::target("dist");
    let of = |(part, end): (&'static str, &str)| {
        let files = found(&folder.join(part), end).unwrap_or_default();
        files.into_iter().map(move |path| (part, path))
    };
    ends.into_iter().flat_map(of).collect()
}

/// Writes the checksums of all of them.
fn sums() -> Result<()> {
    let folder = place::target("dist");
    let mut text = String::new();
    for (_, path) in published() {
        let sum = Sha256::digest(std::fs::read(&path)?);
        let hex = sum.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let name = path.strip_prefix(&folder).unwrap_or(&path);
        writeln!(text, "{hex}  {}", name.display())?;
    }
    std::fs::write(folder.join("SHA256SUMS"), text).context("cannot write SHA256SUMS")
}
