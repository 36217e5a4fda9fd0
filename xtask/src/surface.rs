//! The public surface of the packages, compared with its snapshots in `tests/surface`.

use crate::place::Lang;
use crate::{place, setup, tool};
use anyhow::Context as _;
use std::ffi::OsStr;
use std::process::Command;

/// Compares the surfaces, or writes their snapshots. True if nothing differs.
pub(crate) fn main(write: bool) -> anyhow::Result<bool> {
    setup::languages(&[Lang::Node]).all_ready()?;
    let mut same = true;
    for mut command in [python(write)?, node(write)] {
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

fn command(program: impl AsRef<OsStr>, script: &str, write: bool) -> Command {
    let mut command = Command::new(program);
    command.arg(script).arg(if write { "--write" } else { "--check" }).current_dir(place::root());
    command
}
