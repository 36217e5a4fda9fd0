//! Compilers and linkers for platforms that this machine is not: a Rust compiler with a standard library that links, and
//! zig, which links for every Linux and for its older C libraries.
//!
//! The machine's own compiler is taken where it has the platform's library. Elsewhere it is that of a Debian, unpacked,
//! with the library made from the compiler's sources, under `target/across`.

use super::suite::texts;
use super::{platforms, python};
use crate::{place, process, report, stamp, tool};
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MAKING: Duration = Duration::from_secs(30 * 60);
/// zig, as a linker and C compiler; what gives it to cargo; and the tool that packs wheels anew.
const TOOLS: [&str; 3] = ["cargo-zigbuild==0.24.1", "wheel==0.48.0", "ziglang==0.17.1"];

/// The compiler of `$1`, whose libraries are added to below.
const COMPILER: &str = r#"
rm -rf rust
mkdir -p bin
cp -al "$1/rust" rust
usr=$PWD/rust/usr
cat > bin/rustc <<END
#!/bin/sh
export LD_LIBRARY_PATH="$(echo "$usr"/lib/*-linux-gnu)\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
exec "$usr/bin/rustc" "\$@"
END
chmod +x bin/rustc
"#;

/// The standard library for the platform `$1`, in a form that links. Link-time optimization wants the code.
const STD: &str = r#"
usr=$PWD/rust/usr
library=$usr/lib/rustlib/$1/lib
seed=$PWD/seed-$1
# What was compiled with another library fits this one no more.
rm -rf "$usr/lib/rustlib/$1" "$seed" "target/$1"
mkdir -p "$seed/src"
cat > "$seed/Cargo.toml" <<END
[workspace]
[package]
name = "seed"
version = "0.0.0"
edition = "2024"
END
echo '#![no_std]' > "$seed/src/lib.rs"
export RUSTC="$PWD/bin/rustc" RUSTC_BOOTSTRAP=1
cd "$seed"
CARGO_TARGET_DIR=$PWD/target RUSTFLAGS=-Cembed-bitcode=yes \
    "$CARGO" build --release --target "$1" -Zbuild-std=std,panic_unwind,panic_abort,proc_macro
mkdir -p "$library"
cp target/"$1"/release/deps/*.rlib "$library"
rm -f "$library"/libseed*
case $1 in
*-windows-gnu)
    for one in rsbegin rsend; do
        "$RUSTC" --target "$1" --emit obj -o "$library/$one.o" "$usr/lib/rustlib/src/rust/library/rtstartup/$one.rs"
    done
    ;;
esac
cd ..
rm -rf "$seed"
touch "$library/ready"
"#;

fn folder() -> PathBuf {
    place::target("across")
}

/// The folder of what is compiled with these compilers.
pub(super) fn products() -> PathBuf {
    folder().join("target")
}

fn script(text: &str, argument: &str) -> Command {
    let mut command = tool::command("nice");
    command.args(["-n", "19", "sh", "-e", "-c", text, "sh", argument]);
    command.current_dir(folder()).env("CARGO", tool::cargo(&[]).get_program());
    command
}

/// True if the machine's own compiler links for a platform.
pub(super) fn has_std(target: &str) -> bool {
    let mut command = tool::command("rustc");
    command.args(["--print", "target-libdir", "--target", target]);
    let libraries = tool::ask(command).and_then(|folder| std::fs::read_dir(folder.trim()).ok());
    let is_std = |name: &str| name.starts_with("libstd-") && name.ends_with(".rlib");
    libraries.is_some_and(|all| all.flatten().any(|entry| is_std(&entry.file_name().to_string_lossy())))
}

/// The compiler for a platform, `None` where the machine's own has its library. `path` comes before the machine's `PATH`.
/// `Err`: this machine cannot have it.
pub(super) fn rustc(target: &str, path: Option<&Path>) -> Result<Result<Option<PathBuf>, String>> {
    if has_std(target) {
        return Ok(Ok(None));
    }
    let compiler = match platforms::compiler()? {
        Ok(compiler) => compiler,
        Err(why) => return Ok(Err(why)),
    };
    std::fs::create_dir_all(folder())?;
    let mut version = tool::command(compiler.join("bin/rustc"));
    version.arg("-vV");
    let version = tool::ask(version).context("the compiler for other platforms does not run")?;
    let rustc = folder().join("bin/rustc");
    stamp::once("across-compiler", &texts(&[COMPILER, &version]), &rustc, || {
        let log = place::log("setup across compiler");
        process::must("cp", script(COMPILER, &compiler.to_string_lossy()), MAKING, &log).map(drop)
    })?;
    let ready = folder().join(format!("rust/usr/lib/rustlib/{target}/lib/ready"));
    let name = format!("across-std-{target}");
    stamp::once(&name, &texts(&[COMPILER, STD, &version]), &ready, || {
        report::step(format!("making the standard library for {target}"));
        let mut command = script(STD, target);
        if let Some(path) = path {
            command.env("PATH", before(path)?);
        }
        process::must("cargo build of std", command, MAKING, &place::log(&format!("setup {name}"))).map(drop)
    })?;
    Ok(Ok(Some(rustc)))
}

/// `PATH` with a folder before all others.
pub(super) fn before(folder: &Path) -> Result<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path)))?)
}

/// A program among the tools that come from PyPI.
pub(crate) fn packer(program: &str) -> Result<PathBuf> {
    let venv = folder().join("venv");
    let (python, version) = tool::python().context("no python3 >= 3.10 with its venv module")?;
    let inputs = TOOLS.iter().fold(texts(&[&version]), |inputs, tool| inputs.text(tool));
    stamp::once("across-tools", &inputs, &venv.join("bin/cargo-zigbuild"), || {
        report::step("getting zig");
        std::fs::create_dir_all(folder())?;
        python::environment(&python, &venv, "setup across venv")?;
        python::install(&venv, &TOOLS, "setup across tools")
    })?;
    Ok(venv.join("bin").join(program))
}

/// A toolchain for a Linux that this machine is not, or for an older C library.
#[derive(Clone, Debug)]
pub(crate) struct Zig {
    target: &'static str,
    rustc: Option<PathBuf>,
}

/// Makes it be there. `Err`: this machine cannot have it.
pub(crate) fn zig(target: &'static str) -> Result<Result<Zig, String>> {
    packer("cargo-zigbuild")?;
    Ok(rustc(target, None)?.map(|rustc| Zig { target, rustc }))
}

impl Zig {
    /// Lets cargo-zigbuild, or a program that calls it, build for the platform. Another compiler has a folder of its own.
    pub(crate) fn environment(&self, command: &mut Command, flags: &[String]) -> Result<()> {
        command.env("PATH", before(&folder().join("venv/bin"))?);
        let mut flags = flags.to_vec();
        if self.target.ends_with("-musl") {
            // Modules are loaded by a program with a C library of its own; zig has the objects to start with.
            flags.extend(["-Ctarget-feature=-crt-static".into(), "-Clink-self-contained=no".into()]);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
        if let Some(rustc) = &self.rustc {
            command.env("RUSTC", rustc).env("CARGO_TARGET_DIR", products());
        }
        Ok(())
    }
}
