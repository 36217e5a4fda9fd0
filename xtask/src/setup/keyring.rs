//! GNOME Keyring, for the contract's desktop: what the machine has, else the package of a Debian or Ubuntu, unpacked and
//! not installed, as nginx is.

use super::nginx;
use crate::{place, process, report, tool};
use anyhow::{Result, bail};
use std::path::Path;

const PROGRAM: &str = "gnome-keyring-daemon";

/// Makes it be there, if it can; says why not on the way.
pub(crate) fn keyring() {
    let unpacked = place::target("gnome-keyring");
    if process::which(PROGRAM).is_some() || runs(&unpacked) {
        return;
    }
    report::step("getting gnome-keyring");
    if let Err(error) = unpack(&unpacked) {
        report::note(format!("no gnome-keyring, so no test keeps a login sealed: {error:#}"));
    }
}

/// But for what comes with it, its libraries are those of the machine, which may be others.
fn runs(unpacked: &Path) -> bool {
    let mut command = tool::command(unpacked.join(PROGRAM));
    command.arg("--version");
    process::run(command, nginx::LIMIT, None).is_ok_and(|done| done.ok())
}

/// With the libraries that nobody else has, and a script that starts it with them.
const SCRIPT: &str = r#"
apt-get download gnome-keyring $(apt-cache depends gnome-keyring | grep -oE 'libgc[kr]-[^ ]+')
for package in *.deb; do dpkg-deb --extract "$package" .; done
cat > gnome-keyring-daemon <<'END'
#!/bin/sh
here=${0%/*}
LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-*) exec "$here/usr/bin/gnome-keyring-daemon" "$@"
END
chmod +x gnome-keyring-daemon
"#;

fn unpack(unpacked: &Path) -> Result<()> {
    nginx::can_unpack()?;
    let _ = std::fs::remove_dir_all(unpacked);
    std::fs::create_dir_all(unpacked)?;
    let mut command = tool::command("sh");
    command.args(["-e", "-c", SCRIPT]).current_dir(unpacked);
    process::must("apt-get download gnome-keyring", command, nginx::LIMIT, &place::log("setup gnome-keyring"))?;
    if !runs(unpacked) {
        let _ = std::fs::remove_dir_all(unpacked);
        bail!("the package's program does not run here");
    }
    Ok(())
}
