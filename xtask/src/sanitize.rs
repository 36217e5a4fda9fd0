//! `cargo xtask sanitize`: the tests of the core, and of the packages of Python and Node, with LLVM's address sanitizer
//! in our code.
//!
//! The core's tests are programs, into which the compiler links its own runtime; they look for leaks as well. The native
//! modules are loaded by interpreters that know nothing of it: there the runtime of a Debian is loaded before them.
//! The thread sanitizer would need a standard library made with it: without, each lock is a finding.

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::setup;
use crate::test::{Reader, read};
use crate::{process, tool};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(60 * 60);
const GETTING: Duration = Duration::from_secs(10 * 60);
const TESTS: Duration = Duration::from_secs(60 * 60);
/// The one that the runtimes are for.
const TARGET: &str = "x86_64-unknown-linux-gnu";
const RUNTIME: &str = "libclang_rt.asan-x86_64.so";

/// Choice of parts.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// core, python, node; all of them by default
    parts: Vec<Part>,
}

/// A part of the code.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Core,
    Python,
    Node,
}

/// The task. False when a test failed or the sanitizer found something.
pub(crate) fn main(options: &Options) -> Result<bool> {
    anyhow::ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "the sanitizer is for {TARGET} alone");
    let parts =
        if options.parts.is_empty() { vec![Part::Core, Part::Python, Part::Node] } else { options.parts.clone() };
    let mut needed = vec![Lang::Rust];
    needed.extend(parts.contains(&Part::Python).then_some(Lang::Python));
    needed.extend(parts.contains(&Part::Node).then_some(Lang::Node));
    tool::need(&needed)?;
    setup::languages(&needed).all_ready()?;
    let mut counts = Counts::default();
    for part in parts {
        let (name, command, reader) = match part {
            Part::Core => ("core", core(), Reader::Cargo),
            Part::Python => ("python", python()?, Reader::Pytest),
            Part::Node => ("node", node()?, Reader::Tap),
        };
        report::step(format!("{name} with the address sanitizer"));
        let log = place::log(&format!("sanitize {name}"));
        let done = process::run(command, TESTS, Some(&log))?;
        let mut result = read(reader, &done);
        report::clear();
        for failure in result.failures {
            report::line(format!("failed: {name}: {failure}"));
        }
        for finding in done.text().lines().filter(|line| line.contains("Sanitizer: ")) {
            report::line(format!("found: {name}: {finding} (all of it: {})", place::short(&log)));
            result.counts += Counts::of(false);
        }
        report::line(format!("{name}: {}", result.counts));
        counts += result.counts;
    }
    Ok(counts.failed == 0 && !counts.is_empty())
}

fn folder() -> PathBuf {
    place::target("sanitize")
}

/// Cargo, for our code with the sanitizer in it. The flag is an unstable one; the compiler and its runtime are not.
fn cargo(args: &[&str]) -> Command {
    let mut command = tool::cargo(args);
    command.args(["--target", TARGET, "--target-dir"]).arg(folder().join("target"));
    command.args(["--config", "profile.dev.opt-level=1", "--config", "profile.dev.debug=\"line-tables-only\""]);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes");
    command
}

fn core() -> Command {
    let mut tests = cargo(&["test", "--package", "tricorn", "--no-fail-fast"]);
    // The sanitizer's shadow is no memory of the program, and its allocator keeps what was freed.
    tests.env("TRICORN_FUZZ_SECONDS", "7").env("ASAN_OPTIONS", "detect_leaks=1:quarantine_size_mb=16");
    tests
}

/// A native module with the sanitizer in it.
fn library(package: &str) -> Result<PathBuf> {
    report::step(format!("building {package} with the address sanitizer"));
    let log = place::log(&format!("sanitize {package}"));
    process::must("cargo build", cargo(&["build", "--package", package]), BUILD, &log)?;
    Ok(folder().join("target").join(TARGET).join("debug").join(format!("lib{}.so", package.replace('-', "_"))))
}

/// The interpreter's tests, with the runtime loaded before everything else.
fn under(mut command: Command) -> Result<Command> {
    command.env("LD_PRELOAD", runtime()?);
    // Interpreters free nothing at their end.
    command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
    Ok(command)
}

fn python() -> Result<Command> {
    let place = folder().join("python");
    let source = place::root().join("bindings-python/python/tricorn");
    let mut copy = tool::command("sh");
    copy.args(["-e", "-c", "rm -rf \"$1\"; mkdir -p \"$1\"; cp -r \"$0\" \"$1\""]).arg(&source).arg(&place);
    process::must("cp", copy, GETTING, &place::log("sanitize python"))?;
    put(&built_python()?, &place.join("tricorn/_core.abi3.so"))?;
    let mut tests = tool::command(tool::venv("pytest"));
    tests.args(["-q", "-ra", "--color=no", "-p", "no:cacheprovider"]);
    tests.env("PYTHONPATH", &place).env("PYTHONMALLOC", "malloc").env("PYTHONDONTWRITEBYTECODE", "1");
    under(tests)
}

fn built_python() -> Result<PathBuf> {
    // Its library has the name of the module.
    let library = library("tricorn-python")?;
    Ok(library.with_file_name("lib_core.so"))
}

fn node() -> Result<Command> {
    let addon = folder().join("tricorn.node");
    put(&library("tricorn-node")?, &addon)?;
    let mut tests = tool::command("node");
    tests.args(["--test", "--test-reporter=tap"]).args(crate::test::node_tests());
    tests.env("TRICORN_ADDON", addon);
    under(tests)
}

fn put(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// The runtime as a library of its own: that of a Debian's compiler, unpacked and not installed.
fn runtime() -> Result<PathBuf> {
    const SCRIPT: &str = r#"
mkdir -p runtime
cd runtime
version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
newest=$(apt-cache search --names-only '^libclang-rt-[0-9]*-dev$' | grep -oE '[0-9]+' | sort -n | awk -v most="$version" '$1 <= most' | tail -n 1)
apt-get download "libclang-rt-$newest-dev"
dpkg-deb --extract libclang-rt-*.deb .
rm libclang-rt-*.deb
"#;
    let found = || find(&folder().join("runtime"));
    if let Some(found) = found() {
        return Ok(found);
    }
    std::fs::create_dir_all(folder())?;
    let mut command = tool::command("sh");
    command.args(["-e", "-c", SCRIPT]).current_dir(folder());
    report::step("getting the runtime of the address sanitizer");
    process::must("apt-get download libclang-rt", command, GETTING, &place::log("sanitize runtime"))?;
    found().with_context(|| format!("no {RUNTIME} in Debian's package of it"))
}

fn find(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() { find(&path) } else { path.ends_with(RUNTIME).then_some(path) }
    })
}
