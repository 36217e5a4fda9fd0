//! PostgreSQL, for the tests of stores of a program's own: what the machine has, else the packages of a Debian or Ubuntu,
//! unpacked and not installed, with the libraries that the machine lacks.

use super::nginx;
use crate::{place, process, report, stamp, tool};
use std::time::Duration;

const GETTING: Duration = Duration::from_secs(5 * 60);

/// LLVM would make long queries faster, and is longer than all the rest.
const GET: &str = r#"
rm -rf packages usr bin
mkdir packages
cd packages
apt-get download $(apt-get -s install --no-install-recommends postgresql | awk '/^Inst/ && $2 !~ /llvm/ {print $2}')
for package in *.deb; do dpkg-deb --extract "$package" ..; done
cd ..
rm -rf packages
ln -s usr/lib/postgresql/*/bin bin
LD_LIBRARY_PATH=$(echo usr/lib/*-linux-*) ./bin/postgres --version
"#;

/// Makes it be there, if it can; says why not on the way.
pub(crate) fn postgres() {
    // Debian has it beside the path, since there may be several versions.
    let mut beside = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    if process::which("initdb").is_some() || beside.any(|it| it.path().join("bin/postgres").is_file()) {
        return;
    }
    let dir = place::target("postgres");
    let made = nginx::can_unpack().and_then(|()| {
        stamp::once("postgres", &stamp::Inputs::new().text(GET), &dir.join("bin/postgres"), || {
            report::step("getting PostgreSQL");
            std::fs::create_dir_all(&dir)?;
            let mut command = tool::command("sh");
            command.args(["-e", "-c", GET]).current_dir(&dir);
            process::must("apt-get download postgresql", command, GETTING, &place::log("setup postgres")).map(drop)
        })
    });
    if let Err(error) = made {
        report::note(format!("no PostgreSQL, so the tests of a store in it are left out, or fail in CI: {error:#}"));
    }
}
