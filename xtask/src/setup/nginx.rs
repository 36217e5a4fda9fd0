//! nginx, for the contract's proxy: what the machine has, else the package of a Debian or Ubuntu, unpacked and not
//! installed. Where neither can be had, the contract has a proxy of its own.

use crate::{place, process, report, tool};
use anyhow::{Result, bail};
use std::path::Path;
use std::time::Duration;

pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// Makes it be there, if it can; says why not on the way.
pub(crate) fn nginx() {
    let unpacked = place::target("nginx");
    let there = process::which("nginx").is_some() || Path::new("/usr/sbin/nginx").is_file();
    if there || runs(&unpacked) {
        return;
    }
    report::step("getting nginx");
    if let Err(error) = unpack(&unpacked) {
        report::note(format!("no nginx, so the contract's own proxy stands in: {error:#}"));
    }
}

/// Its libraries are those of the machine, which may be others.
fn runs(unpacked: &Path) -> bool {
    let mut command = tool::command(unpacked.join("usr/sbin/nginx"));
    command.arg("-v");
    process::run(command, LIMIT, None).is_ok_and(|done| done.ok())
}

/// Checks that packages can be had, and unpacked.
pub(super) fn can_unpack() -> Result<()> {
    for program in ["apt-get", "dpkg-deb"] {
        if process::which(program).is_none() {
            bail!("there is no {program}");
        }
    }
    Ok(())
}

fn unpack(unpacked: &Path) -> Result<()> {
    can_unpack()?;
    let _ = std::fs::remove_dir_all(unpacked);
    std::fs::create_dir_all(unpacked)?;
    let script = "apt-get download nginx && dpkg-deb --extract nginx_*.deb .";
    let mut command = tool::command("sh");
    command.args(["-c", script]).current_dir(unpacked);
    process::must("apt-get download nginx", command, LIMIT, &place::log("setup nginx"))?;
    if !runs(unpacked) {
        let _ = std::fs::remove_dir_all(unpacked);
        bail!("the package's program does not run here");
    }
    Ok(())
}
