//! Symbols of native modules and of the command, in files of their own: `target/dist/symbols/<module>.debug`, for
//! `addr2line` and debuggers.

use super::matrix::Plan;
use super::{PACK, dist};
use crate::{place, process, tool};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// LLVM's objcopy as rustup has it, for all formats; else that of the machine, for its own.
fn objcopy() -> Command {
    let asked = |what: &str| {
        let mut command = tool::command("rustc");
        command.args(["--print", what]);
        tool::ask(command).map(|said| PathBuf::from(said.trim()))
    };
    let rust = asked("target-libdir").and_then(|folder| Some(folder.parent()?.join("bin/rust-objcopy")));
    let Some(rust) = rust.filter(|path| path.is_file()) else { return tool::command("objcopy") };
    let mut command = tool::command(rust);
    if let (true, Some(sysroot)) = (cfg!(target_os = "linux"), asked("sysroot")) {
        command.env("LD_LIBRARY_PATH", sysroot.join("lib"));
    }
    command
}

/// Takes the symbols out of a module or a program, and compares what is left with the most bytes that it may have. Those of
/// Apple's are signed with them, and keep them.
pub(super) fn split(module: &Path, plan: &Plan, most: Option<u64>) -> Result<()> {
    if plan.target.contains("-apple-") {
        return Ok(());
    }
    let name = module.file_name().context("a module has a name")?.to_string_lossy();
    let symbols = dist("symbols")?.join(format!("{}.{name}.debug", plan.name));
    let log = place::log("dist symbols");
    let mut keep = objcopy();
    keep.args(["--only-keep-debug", "--compress-debug-sections=zlib"]).arg(module).arg(&symbols);
    process::must("objcopy --only-keep-debug", keep, PACK, &log)?;
    let mut strip = objcopy();
    strip.arg("--strip-all");
    if !plan.target.contains("-windows-") {
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&symbols);
        strip.arg(link);
    }
    strip.arg(module);
    process::must("objcopy --strip-all", strip, PACK, &log)?;
    let bytes = std::fs::metadata(module)?.len();
    match most {
        Some(most) if bytes > most => {
            bail!("{name} for {} has {bytes} bytes, more than the {most} of dist.toml", plan.name)
        }
        _ => Ok(()),
    }
}
