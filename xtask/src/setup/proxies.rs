//! Proxies that others wrote, for `cargo xtask proxies`: squid and tinyproxy, the machine's own or the packages of a Debian
//! or Ubuntu, unpacked and not installed, with the libraries that the machine lacks; mitmproxy of PyPI.

use super::nginx;
use super::suite::{pip_packages_of, texts};
use crate::{place, process, report, stamp, tool};
use anyhow::{Context, Result};
use std::path::PathBuf;

const MITMPROXY: [&str; 1] = ["mitmproxy==11.0.2"];

/// Packages for maintenance scripts and helpers alone are left out.
const GET: &str = r#"
rm -rf packages usr etc var lib
mkdir packages usr
cd packages
for program in squid tinyproxy-bin; do
    apt-get -s install --no-install-recommends "$program" | awk '/^Inst/ {print $2}'
done | grep -vE '^(perl|libperl|libdbi|libpopt|logrotate)' > list || true
if [ -s list ]; then
    apt-get download squid-langpack $(sort -u list)
    for package in *.deb; do dpkg-deb --extract "$package" ..; done
fi
cd ..
rm -rf packages
LD_LIBRARY_PATH=$(echo "$PWD"/usr/lib/*-linux-*)
export LD_LIBRARY_PATH
for program in usr/sbin/squid usr/bin/tinyproxy; do
    [ ! -e "$program" ] || "./$program" -v
done
"#;

/// Places of the programs.
pub(crate) struct Proxies {
    /// The interpreter of the environment with mitmproxy, and with what makes certificates.
    pub(crate) python: PathBuf,
    /// The folder of the unpacked packages; empty where none can be had.
    pub(crate) debian: PathBuf,
}

/// Makes them be there; says which of the packages are not, and why.
pub(crate) fn proxies() -> Result<Proxies> {
    let (debian, environment) = (place::target("proxies/debian"), place::target("proxies/mitmproxy"));
    let unpacked = nginx::can_unpack().and_then(|()| {
        stamp::once("proxies-debian", &stamp::Inputs::new().text(GET), &debian.join("usr"), || {
            report::step("getting squid and tinyproxy");
            std::fs::create_dir_all(&debian)?;
            let mut command = tool::command("sh");
            command.args(["-e", "-c", GET]).current_dir(&debian);
            let done = process::must("apt-get download squid", command, nginx::LIMIT, &place::log("setup proxies"));
            if done.is_err() {
                let _ = std::fs::remove_dir_all(&debian);
            }
            done.map(drop)
        })
    });
    if let Err(error) = unpacked {
        report::note(format!("no squid or tinyproxy but the machine's own: {error:#}"));
    }
    let (_, version) = tool::python().context("no python3 >= 3.10 with its venv module")?;
    let python = environment.join("bin/python");
    stamp::once("proxies-mitmproxy", &texts(&MITMPROXY).text(&version), &python, || {
        pip_packages_of(None, &environment, &MITMPROXY, "setup mitmproxy")
    })?;
    Ok(Proxies { python, debian })
}
