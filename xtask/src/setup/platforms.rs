//! A compiler for platforms that this machine is not, to see that the code compiles there: that of the machine where it
//! has their standard libraries, else the packages of a Debian, unpacked and not installed, with the libraries made
//! from its sources. Nothing is linked: of a library only what the compiler reads is made, and nobody needs a C
//! compiler.

use super::nginx;
use super::suite::texts;
use crate::{place, process, report, stamp, tool};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// One platform, and what is checked for it.
pub(crate) struct Platform {
    pub(crate) name: &'static str,
    /// The packages beside the core.
    bindings: &'static [&'static str],
    /// The core without features alone: there are no threads, sockets or processes.
    bare: bool,
}

impl Platform {
    const fn with(name: &'static str, bindings: &'static [&'static str]) -> Self {
        Self { name, bindings, bare: false }
    }
}

const BINDINGS: &[&str] = &["tricorn-python", "tricorn-node", "tricorn-swift"];

pub(crate) const PLATFORMS: [Platform; 5] = [
    Platform::with("aarch64-apple-darwin", BINDINGS),
    Platform::with("aarch64-unknown-linux-gnu", BINDINGS),
    Platform::with("x86_64-unknown-linux-musl", BINDINGS),
    // The Swift package is for no Windows.
    Platform::with(super::windows::TARGET, &["tricorn-python", "tricorn-node"]),
    Platform { name: "wasm32-unknown-unknown", bindings: &[], bare: true },
];

const GETTING: Duration = Duration::from_secs(10 * 60);
const MAKING: Duration = Duration::from_secs(20 * 60);

/// Stand-ins for a C compiler and its librarian, and for the library that Node's modules link on Windows: their
/// products are empty, and nobody reads them.
const STAND_INS: &str = r#"
mkdir -p bin libnode
: > libnode/libnode.dll
cat > bin/cc <<'END'
#!/bin/sh
while [ $# -gt 1 ]; do [ "$1" != -o ] || : > "$2"; shift; done
END
cat > bin/ar <<'END'
#!/bin/sh
for one in "$@"; do case $one in *.a) : > "$one" ;; esac; done
END
chmod +x bin/cc bin/ar
"#;

/// The compiler and its sources. Cargo asks for whole libraries of std even where it only checks: `rustc-metadata` leaves
/// out what a check does not read.
const GET: &str = r#"
rm -rf rust packages
mkdir -p rust bin packages
cd packages
std=$(apt-cache depends libstd-rust-web-dev | grep -oE 'libstd-rust-web-[0-9][^ ]*' | sort -u)
llvm=$(apt-cache depends $std | grep -oE 'libllvm[0-9]+' | sort -u)
apt-get download rustc-web rust-web-src libstd-rust-web-dev $std $llvm
for package in *.deb; do dpkg-deb --extract "$package" ../rust; done
cd ..
rm -rf packages
rust=$PWD/rust/usr
cat > bin/rustc <<END
#!/bin/sh
export LD_LIBRARY_PATH=$(echo "$rust"/lib/*-linux-gnu)\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
exec $rust/bin/rustc "\$@"
END
cat > bin/rustc-metadata <<'END'
#!/bin/sh
case " $* " in *" --target "*) ;; *) exec "${0%-metadata}" "$@" ;; esac
for one; do
    shift
    case $one in
    --emit=dep-info,metadata,link) one=--emit=dep-info,metadata ;;
    *.rlib) one=${one%.rlib}.rmeta ;;
    esac
    set -- "$@" "$one"
done
exec "${0%-metadata}" "$@"
END
chmod +x bin/rustc bin/rustc-metadata
bin/rustc --version
"#;

/// Script that makes the parts of the standard library that the compiler reads, for all platforms at once; without
/// those that print backtraces.
const STD: &str = r#"
rm -rf seed
mkdir -p seed/src
printf '[workspace]\n[package]\nname = "seed"\nversion = "0.0.0"\nedition = "2024"\n' > seed/Cargo.toml
echo '#![no_std]' > seed/src/lib.rs
cd seed
platforms=$*
for platform in $platforms; do set -- "$@" --target "$platform"; shift; done
CARGO_TARGET_DIR=$PWD/target RUSTC=$PWD/../bin/rustc-metadata RUSTC_BOOTSTRAP=1 CARGO_PROFILE_DEV_DEBUG=0 \
    "$CARGO" check "$@" -Zbuild-std=std,panic_unwind,panic_abort,proc_macro -Zbuild-std-features=panic-unwind
for platform in $platforms; do
    place=$PWD/../rust/usr/lib/rustlib/$platform/lib
    mkdir -p "$place"
    cp target/"$platform"/debug/deps/*.rmeta "$place"
    rm -f "$place"/libseed*
done
cd ..
rm -rf seed
"#;

fn folder() -> PathBuf {
    place::target("platforms")
}

/// Returns true if this machine's own compiler will do.
fn has_all() -> bool {
    let mut command = tool::command("rustc");
    command.args(["--print", "sysroot"]);
    let sysroot = tool::ask(command).unwrap_or_default();
    let libraries = std::path::Path::new(sysroot.trim()).join("lib/rustlib");
    PLATFORMS.iter().all(|platform| libraries.join(platform.name).is_dir())
}

fn script(text: &str) -> Command {
    let mut command = tool::command("nice");
    command.args(["-n", "19", "sh", "-e", "-c", text, "sh"]).args(PLATFORMS.iter().map(|platform| platform.name));
    command.current_dir(folder()).env("CARGO", tool::cargo(&[]).get_program());
    command
}

/// The folder of a Debian's compiler and its sources, unpacked: `rust/usr`. `Err`: this machine cannot have it.
pub(super) fn compiler() -> Result<Result<PathBuf, String>> {
    if let Err(why) = nginx::can_unpack() {
        return Ok(Err(format!("{why:#}, and no \"rustup target\" for other platforms")));
    }
    std::fs::create_dir_all(folder())?;
    let mut unavailable = None;
    let made = stamp::once("platforms-compiler", &texts(&[GET]), &folder().join("bin/rustc"), || {
        report::step("getting a compiler for other platforms");
        let log = place::log("setup platforms");
        if let Err(error) = process::must("apt-get download rustc-web", script(GET), GETTING, &log) {
            unavailable = Some(format!("no compiler for other platforms: {error:#}"));
            anyhow::bail!("unavailable");
        }
        Ok(())
    });
    match (unavailable, made) {
        (Some(why), _) => Ok(Err(why)),
        (None, made) => made.map(|()| Ok(folder())),
    }
}

/// Makes it be there. `Ok` with a reason: this machine cannot have it.
pub(crate) fn platforms() -> Result<Option<String>> {
    std::fs::create_dir_all(folder())?;
    process::must("sh", script(STAND_INS), GETTING, &place::log("setup platforms stand-ins"))?;
    if has_all() {
        return Ok(None);
    }
    if let Err(why) = compiler()? {
        return Ok(Some(why));
    }
    // It goes with a compiler that is replaced.
    let ready = folder().join("rust/ready");
    let names: Vec<&str> = PLATFORMS.iter().map(|platform| platform.name).collect();
    let inputs = texts(&[GET, STD]).text(&names.join(" "));
    stamp::once("platforms", &inputs, &ready, || {
        report::step("making the standard library of other platforms");
        process::must("cargo check of std", script(STD), MAKING, &place::log("setup platforms std"))?;
        std::fs::write(&ready, "").context("cannot write")
    })?;
    Ok(None)
}

/// `cargo check` of what there is for a platform.
pub(crate) fn check(platform: &Platform) -> Command {
    let mut command = tool::command("nice");
    command.args(["-n", "19"]).arg(tool::cargo(&[]).get_program());
    command.args(["check", "--target", platform.name, "--package", "tricorn"]);
    if platform.bare {
        command.arg("--no-default-features");
    }
    for package in platform.bindings {
        command.args(["--package", package]);
    }
    command.env("RUSTFLAGS", "-D warnings").env("CARGO_PROFILE_DEV_DEBUG", "0");
    let bin = folder().join("bin");
    if !has_all() {
        command.env("RUSTC", bin.join("rustc"));
    }
    for (tool, program) in [("CC", "cc"), ("AR", "ar")] {
        command.env(format!("{tool}_{}", platform.name.replace('-', "_")), bin.join(program));
    }
    // Else a program of Apple's is asked for it.
    command.env("SDKROOT", folder());
    command.env("LIBNODE_PATH", folder().join("libnode"));
    command.env("CARGO_TARGET_DIR", folder().join("target"));
    command
}
