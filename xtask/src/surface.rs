//! The public surface of the packages, compared with its snapshots in `tests/surface`.

use crate::place::Lang;
use crate::{place, setup, tool};
use anyhow::Context as _;
use std::ffi::OsStr;
use std::process::Command;

/// Compares the surfaces, or writes their snapshots. True if nothing differs.
pub(crate) fn main(write: bool) -> anyhow::Result<bool> {
    setup::languages(&[Lang::Node, Lang::Swift]).all_ready()?;
    let mut same = true;
    let mut docs = tool::cargo(&DOCUMENTATION);
    anyhow::ensure!(
        docs.status().context("cannot start cargo")?.success(),
        "the documentation of the crate was not made"
    );
    setup::swift_tests()?;
    for mut command in [python(write)?, node(write), rust(write)?, swift_graph()?, swift(write)?] {
        same &= command.status().with_context(|| format!("cannot start {:?}", command.get_program()))?.success();
    }
    Ok(same)
}

/// The command for Python, which reads the sources.
pub(crate) fn python(write: bool) -> anyhow::Result<Command> {
    let (path, _) = tool::python().context("no python3 >= 3.10")?;
    Ok(command(path, "tests/surface/python.py", write))
}

/// The command for Node, which reads what the package's build has written.
pub(crate) fn node(write: bool) -> Command {
    command("node", "tests/surface/node.mjs", write)
}

/// The documentation of the crate, whose pages are read.
pub(crate) const DOCUMENTATION: [&str; 5] = ["doc", "--release", "--no-deps", "--package", "tricorn"];

/// The command for Rust, which reads what [`DOCUMENTATION`] makes.
pub(crate) fn rust(write: bool) -> anyhow::Result<Command> {
    let (path, _) = tool::python().context("no python3 >= 3.10")?;
    Ok(command(path, "tests/surface/rust.py", write))
}

/// The command that writes the symbol graph of the Swift package, from what the build of its tests has made.
pub(crate) fn swift_graph() -> anyhow::Result<Command> {
    anyhow::ensure!(cfg!(target_os = "linux"), "the snapshot is of Linux");
    let folder = place::target("surface");
    std::fs::create_dir_all(&folder)?;
    let mut extract = setup::swift_command(&["swift", "symbolgraph-extract", "-module-name", "Tricorn"]);
    extract.args(["-minimum-access-level", "public", "-I", ".build/release/Modules"]);
    extract.args(["-I", "bindings-swift/Sources/CTricornCore", "-target", TRIPLE, "-output-dir"]).arg(folder);
    Ok(extract)
}

/// The command for Swift, which reads what [`swift_graph`] writes.
pub(crate) fn swift(write: bool) -> anyhow::Result<Command> {
    let (path, _) = tool::python().context("no python3 >= 3.10")?;
    let mut command = command(path, "tests/surface/swift.py", write);
    command.arg(place::target("surface").join("Tricorn.symbols.json"));
    Ok(command)
}

/// The platform as Debian's toolchain names it.
const TRIPLE: &str = if cfg!(target_arch = "aarch64") { "aarch64-pc-linux-gnu" } else { "x86_64-pc-linux-gnu" };

fn command(program: impl AsRef<OsStr>, script: &str, write: bool) -> Command {
    let mut command = Command::new(program);
    command.arg(script).arg(if write { "--write" } else { "--check" }).current_dir(place::root());
    command
}
