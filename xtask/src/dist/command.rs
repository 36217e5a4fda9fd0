//! The command: its program, the licences and the bill of materials, in an archive for each platform.

use super::inventory::{self, Inventory};
use super::matrix::Plan;
use super::{BUILD, PACK, built, dist, empty, symbols};
use crate::{place, process, report, tool};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Files of the repository that go into each archive.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
const ARCHIVE: &str = include_str!("archive.py");

/// Tells whether a file holds symbols of the program.
pub(super) fn is_symbols(name: &str) -> bool {
    [".tricorn.debug", ".tricorn.exe.debug"].iter().any(|end| name.ends_with(end))
}

/// Tells whether a file is the bill of materials of an archive.
pub(super) fn is_materials(name: &str) -> bool {
    name.starts_with("tricorn-cli-")
}

/// Builds the program for a platform, and packs it.
pub(super) fn pack(plan: &Plan) -> Result<()> {
    let built = program(plan)?;
    let inventory = Inventory::of("tricorn-cli", plan)?;
    let name = format!("tricorn-{}-{}", inventory.version(), plan.name);
    let folder = empty(&name)?;
    let program = folder.join(built.file_name().context("a program has a name")?);
    std::fs::copy(&built, &program).with_context(|| format!("cannot copy {}", built.display()))?;
    symbols::split(&program, plan, plan.command)?;
    inventory.write(&folder)?;
    let materials = dist("sbom")?.join(format!("tricorn-cli-{}.cdx.json", plan.name));
    std::fs::copy(folder.join(inventory::SBOM), materials)?;
    for licence in LICENCES {
        std::fs::copy(place::root().join(licence), folder.join(licence))
            .with_context(|| format!("cannot copy {licence}"))?;
    }
    std::fs::write(folder.join("README.md"), readme(inventory.version(), plan))?;
    let end = if plan.target.contains("-windows-") { "zip" } else { "tar.gz" };
    archive(&folder, &dist("command")?.join(format!("{name}.{end}")))
}

/// The compiled program.
fn program(plan: &Plan) -> Result<PathBuf> {
    report::step(format!("building the command for {}", plan.name));
    let mut build = plan.program()?;
    build.args(["--locked", "--bin", "tricorn", "--message-format=json"]);
    let done = process::must("cargo build", build, BUILD, &place::log("dist command"))?;
    let is_program = |path: &PathBuf| path.extension().is_none_or(|end| end == "exe");
    built(&done.stdout, "tricorn", "bin").into_iter().find(is_program).context("cargo built no program")
}

fn readme(version: &str, plan: &Plan) -> String {
    format!(
        "# tricorn {version}\n\n\
         The command `tricorn` for {}: lists, calls and runs servers of the Model Context Protocol. It is one program: \
         move it to a folder of `PATH`. `tricorn --help` shows its commands, `tricorn COMMAND --help` one of them with \
         examples, and `tricorn completions SHELL` prints completions for a shell.\n\n\
         `{}` has the terms of the crates in it, `{}` names them.\n",
        plan.name,
        inventory::LICENCES,
        inventory::SBOM
    )
}

fn archive(folder: &Path, archive: &Path) -> Result<()> {
    let (python, _) = tool::python().context("no python3 >= 3.10, which packs the archive")?;
    let mut pack = tool::command(python);
    pack.args(["-c", ARCHIVE]).arg(folder).arg(archive);
    process::must("archive.py", pack, PACK, &place::log("dist command")).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_has_the_program_as_one_and_is_the_same_each_time() {
        const LOOK: &str = "
import sys, tarfile, zipfile
tar, archive = tarfile.open(sys.argv[1]), zipfile.ZipFile(sys.argv[2])
print(*(f'{one.name} {one.mode:o}' for one in tar), *(f'{one.filename} {one.external_attr >> 16:o}' for one in archive.infolist()), sep='\\n')
";
        let work = std::env::temp_dir().join(format!("tricorn-archive-{}", std::process::id()));
        let folder = work.join("tricorn-1.2.3-any");
        std::fs::create_dir_all(&folder).expect("a new folder");
        std::fs::write(folder.join("README.md"), "read").expect("it is written");
        std::fs::write(folder.join("tricorn"), "run").expect("it is written");
        let (tar, zip) = (work.join("a.tar.gz"), work.join("a.zip"));
        let made = [&tar, &zip].map(|path| {
            let once = || {
                archive(&folder, path).expect("it is packed");
                std::fs::read(path).expect("it is there")
            };
            once() == once()
        });
        assert_eq!(made, [true, true]);
        let (python, _) = tool::python().expect("a python");
        let mut look = tool::command(python);
        look.args(["-c", LOOK]).arg(&tar).arg(&zip);
        let said = tool::ask(look).expect("they are read");
        drop(std::fs::remove_dir_all(&work));
        let named =
            |read: &str, run: &str| format!("tricorn-1.2.3-any/README.md {read}\ntricorn-1.2.3-any/tricorn {run}");
        assert_eq!(said, format!("{}\n{}", named("644", "755"), named("100644", "100755")));
    }

    #[test]
    fn files_of_the_command_are_told_from_those_of_the_packages() {
        assert!(is_symbols("linux-x64-gnu.tricorn.debug") && is_symbols("win32-x64-msvc.tricorn.exe.debug"));
        assert!(!is_symbols("linux-x64-gnu.tricorn.linux-x64-gnu.node.debug"));
        assert!(!is_symbols("linux-x64-gnu._core.abi3.so.debug"));
        assert!(is_materials("tricorn-cli-linux-x64-gnu.cdx.json") && !is_materials("tricorn-linux-x64-gnu.cdx.json"));
    }
}
