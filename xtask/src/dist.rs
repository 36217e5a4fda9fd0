//! `cargo xtask dist`: packages as they are published, in `target/dist`.
//!
//! The native modules are compiled with link-time optimization, or with `--quick` as everything here is. They are for
//! the platform that is named, for which the machine needs Rust's standard library and a linker. Linux on x86-64 gets
//! both for Windows by itself; the files have the names of those that Microsoft's linker makes.

use crate::{place, process, report, setup, tool};
use anyhow::{Context, Result, bail};
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
    /// python, node, swift; the first two by default
    parts: Vec<Part>,
    /// One of `bindings-node/lib/platforms.json`; that of this machine by default
    #[arg(long)]
    platform: Option<String>,
    /// Without link-time optimization
    #[arg(long)]
    quick: bool,
}

/// A package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Python,
    Node,
    Swift,
}

/// A platform as the Node package names it, and as Rust does.
const TARGETS: [(&str, &str); 8] = [
    ("linux-x64-gnu", "x86_64-unknown-linux-gnu"),
    ("linux-x64-musl", "x86_64-unknown-linux-musl"),
    ("linux-arm64-gnu", "aarch64-unknown-linux-gnu"),
    ("linux-arm64-musl", "aarch64-unknown-linux-musl"),
    ("darwin-x64", "x86_64-apple-darwin"),
    ("darwin-arm64", "aarch64-apple-darwin"),
    ("win32-x64-msvc", "x86_64-pc-windows-msvc"),
    ("win32-arm64-msvc", "aarch64-pc-windows-msvc"),
];
/// The one whose job also packs what is the same for all.
const FIRST: &str = "linux-x64-gnu";
/// The one that Linux makes, too.
const WINDOWS: &str = "win32-x64-msvc";

#[derive(Clone, Copy)]
struct Plan {
    platform: &'static str,
    target: &'static str,
    quick: bool,
    /// For Windows, by what is set up for it here.
    across: bool,
}

/// The task.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let plan = plan(options)?;
    let parts = if options.parts.is_empty() { vec![Part::Python, Part::Node] } else { options.parts.clone() };
    for part in parts {
        let made = match part {
            Part::Python => python(plan)?,
            Part::Node => node(plan)?,
            Part::Swift => swift(plan)?,
        };
        report::clear();
        for path in made {
            let bytes = std::fs::metadata(&path).map(|facts| facts.len()).unwrap_or_default();
            report::line(format!("{} ({}.{} MB)", place::short(&path), bytes / 1_000_000, bytes / 100_000 % 10));
        }
    }
    sums()?;
    Ok(true)
}

fn plan(options: &Options) -> Result<Plan> {
    let host = host()?;
    let known = |&(name, target): &(&str, &str)| match &options.platform {
        Some(asked) => name == asked,
        None => target == host,
    };
    match TARGETS.into_iter().find(known) {
        Some((platform, target)) => {
            let across = platform == WINDOWS && cfg!(target_os = "linux");
            let target = if across { setup::WINDOWS } else { target };
            Ok(Plan { platform, target, quick: options.quick, across })
        }
        None => {
            let names = TARGETS.map(|(name, _)| name).join(", ");
            let asked = options.platform.as_deref().unwrap_or(&host);
            bail!("{asked} is no platform of the packages: expected one of {names}")
        }
    }
}

fn host() -> Result<String> {
    let mut command = tool::command("rustc");
    command.arg("-vV");
    let said = tool::ask(command).context("rustc does not run")?;
    let line = said.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc names no host")
}

fn dist(part: &str) -> Result<PathBuf> {
    let folder = place::target("dist").join(part);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// With the code of the checkout's other builds, where it is the same.
fn profile(plan: Plan) -> Vec<&'static str> {
    let mut args = if plan.quick { vec!["--release", "--features", "workspace"] } else { vec!["--profile", "dist"] };
    if !plan.quick || plan.across {
        args.extend(["--target", plan.target]);
    }
    args
}

/// Lets a command build for a platform that this machine is not, where it can.
fn across(plan: Plan, command: &mut Command) -> Result<()> {
    if !plan.across {
        return Ok(());
    }
    match setup::windows()? {
        Ok(windows) => windows.environment(command),
        Err(why) => bail!("{} cannot be built here: {why}", plan.platform),
    }
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

/// The wheel, and with that of the first platform the sources.
fn python(plan: Plan) -> Result<Vec<PathBuf>> {
    setup::python_tools()?;
    let folder = dist("python")?;
    for old in found(&folder, "").unwrap_or_default() {
        std::fs::remove_file(old)?;
    }
    report::step(format!("building the wheel for {}", plan.platform));
    let log = place::log("dist python");
    let mut wheel = tool::command(tool::venv("maturin"));
    wheel.args(["build", "--locked", "--out"]).arg(&folder).args(profile(plan));
    across(plan, &mut wheel)?;
    process::must("maturin build", wheel, BUILD, &log)?;
    let mut made = found(&folder, ".whl")?;
    if plan.platform == FIRST {
        report::step("packing the sources of the Python package");
        let mut sources = tool::command(tool::venv("maturin"));
        sources.args(["sdist", "--out"]).arg(&folder);
        process::must("maturin sdist", sources, PACK, &log)?;
        made.extend(found(&folder, ".tar.gz")?);
    }
    Ok(made)
}

/// A message of cargo about a library that it has built.
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

/// The compiled module.
fn addon(plan: Plan) -> Result<PathBuf> {
    report::step(format!("building the Node addon for {}", plan.platform));
    let mut build = tool::cargo(&["build", "--locked", "--package", "tricorn-node", "--message-format=json"]);
    build.args(profile(plan));
    across(plan, &mut build)?;
    let done = process::must("cargo build", build, BUILD, &place::log("dist node"))?;
    let messages = done.stdout.lines().filter_map(|line| serde_json::from_str::<Message>(line).ok());
    let is_ours = |message: &Message| {
        let target = message.target.as_ref();
        message.reason == "compiler-artifact"
            && target.is_some_and(|t| t.name == "tricorn_node" && t.kind.iter().any(|kind| kind == "cdylib"))
    };
    let library = messages
        .filter(is_ours)
        .flat_map(|message| message.filenames)
        .find(|path| path.extension().is_some_and(|end| ["so", "dylib", "dll"].iter().any(|known| end == *known)));
    let library = library.context("cargo built no library")?;
    let addon = dist("addons")?.join(format!("tricorn.{}.node", plan.platform));
    std::fs::copy(&library, &addon).with_context(|| format!("cannot copy {}", library.display()))?;
    // The linker leaves its tables of symbols in, whatever the profile says.
    let strip = match (plan.quick, plan.platform) {
        (false, platform) if cfg!(target_os = "linux") && platform.starts_with("linux-x64") => Some("strip"),
        (false, "win32-x64-msvc") if cfg!(target_os = "linux") => Some("x86_64-w64-mingw32-strip"),
        _ => None,
    };
    if let Some(strip) = strip {
        let mut command = tool::command(strip);
        across(plan, &mut command)?;
        process::must(
            strip,
            {
                command.arg(&addon);
                command
            },
            PACK,
            &place::log("dist node"),
        )?;
    }
    Ok(addon)
}

/// The package of the platform, and with the first one that of all.
fn node(plan: Plan) -> Result<Vec<PathBuf>> {
    setup::node_modules()?;
    let addon = addon(plan)?;
    report::step("packing the Node packages");
    let log = place::log("dist node");
    process::must("npm run build:ts", tool::npm(&["run", "build:ts"]), PACK, &log)?;
    let folder = dist("npm")?;
    let mut pack = tool::command("node");
    pack.arg("bindings-node/scripts/pack.mjs").arg("--out").arg(&folder).arg(&addon);
    process::must("pack.mjs", pack, PACK, &log)?;
    found(&folder, ".tgz")
}

/// The XCFramework. Apple's own tools make it: it has been run on no machine yet.
fn swift(plan: Plan) -> Result<Vec<PathBuf>> {
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
    let profile = if plan.quick { "release" } else { "dist" };
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
    process::must("ditto", zip, PACK, &log)?;
    found(&folder, ".zip")
}

/// Writes the checksums of all packages.
fn sums() -> Result<()> {
    let folder = place::target("dist");
    let mut text = String::new();
    for (part, ends) in [("python", [".whl", ".tar.gz"]), ("npm", [".tgz", ".tgz"]), ("swift", [".zip", ".zip"])] {
        let mut all: Vec<_> = ends.iter().flat_map(|end| found(&folder.join(part), end).unwrap_or_default()).collect();
        all.sort();
        all.dedup();
        for path in all {
            let sum = Sha256::digest(std::fs::read(&path)?);
            let hex = sum.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let name = path.strip_prefix(&folder).unwrap_or(&path);
            writeln!(text, "{hex}  {}", name.display())?;
        }
    }
    std::fs::write(folder.join("SHA256SUMS"), text).context("cannot write SHA256SUMS")
}
