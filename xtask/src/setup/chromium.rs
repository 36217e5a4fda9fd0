//! Chromium, for servers of others that drive a browser: what the machine has, else the packages of a Debian, unpacked and
//! not installed, with the libraries that the machine lacks.

use super::nginx;
use crate::{place, process, report, stamp, tool};
use std::path::PathBuf;
use std::time::Duration;

const GETTING: Duration = Duration::from_secs(10 * 60);

const GET: &str = r#"
rm -rf packages usr
mkdir packages
cd packages
apt-get download $(apt-get -s install --no-install-recommends chromium | awk '/^Inst/ {print $2}')
for package in *.deb; do dpkg-deb --extract "$package" ..; done
cd ..
rm -rf packages
cat > chromium <<'END'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-*):$(echo "$here"/usr/lib/*-linux-*/pulseaudio) exec "$here/usr/lib/chromium/chromium" "$@"
END
chmod +x chromium
./chromium --version
"#;

/// The program; none where it cannot be had.
pub(crate) fn chromium() -> Option<PathBuf> {
    if let Some(there) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(process::which) {
        return Some(there);
    }
    let dir = place::target("chromium");
    let program = dir.join("chromium");
    let made = nginx::can_unpack().and_then(|()| {
        stamp::once("chromium", &stamp::Inputs::new().text(GET), &program, || {
            report::step("getting Chromium");
            std::fs::create_dir_all(&dir)?;
            let mut command = tool::command("sh");
            command.args(["-e", "-c", GET]).current_dir(&dir);
            process::must("apt-get download chromium", command, GETTING, &place::log("setup chromium")).map(drop)
        })
    });
    match made {
        Ok(()) => Some(program),
        Err(error) => {
            report::note(format!("no Chromium: {error:#}"));
            None
        }
    }
}
