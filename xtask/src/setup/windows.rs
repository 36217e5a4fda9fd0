//! A compiler that makes Windows programs on Linux, and wine, which runs them: what the machine has, else the packages
//! of a Debian, unpacked and not installed, under `target/windows`. Rust's compiler is that of `across`.

use super::suite::texts;
use super::{across, nginx};
use crate::stamp::Inputs;
use crate::{place, process, report, stamp, tool};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub(crate) const TARGET: &str = "x86_64-pc-windows-gnu";

const GETTING: Duration = Duration::from_secs(15 * 60);
/// A first start of wine takes seconds; one that hangs takes for ever.
const STARTING: Duration = Duration::from_secs(5 * 60);

/// Packages into a folder: `$1`, with those of its dependencies whose names fit `$2`.
const GET: &str = r#"
rm -rf "$1" "packages-$1"
mkdir -p "packages-$1"
cd "packages-$1"
alone="--no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances"
apt-get download $(apt-cache depends --recurse $alone "$1" | grep -xE "$1|$2" | sort -u)
for package in *.deb; do dpkg-deb --extract "$package" "../$1"; done
cd ..
rm -rf "packages-$1"
"#;

const MINGW: &str = "gcc-mingw-w64-x86-64-posix";
/// The libraries besides that a machine may lack.
const MINGW_NEEDS: &str = "[a-z0-9-]*mingw-w64[a-z0-9-]*|libgmp10|libisl[0-9]+|libmpc[0-9]+|libmpfr[0-9]+";

/// Programs of mingw under their usual names in `bin`: `$1` is the machine's gcc, or empty. Unpacked ones believe that
/// they are in `/usr`. An empty library stands in for Node's, of which nothing is linked.
const TOOLS: &str = r#"
rm -rf bin libnode
mkdir -p bin libnode
if [ -n "$1" ]; then
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" > bin/x86_64-w64-mingw32-gcc
    chmod +x bin/x86_64-w64-mingw32-gcc
else
    usr=$PWD/gcc-mingw-w64-x86-64-posix/usr
    for program in "$usr"/bin/x86_64-w64-mingw32-*; do
        name=$(basename "$program")
        cat > "bin/${name%-posix}" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$(echo "$usr"/lib/*-linux-gnu)\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
export COMPILER_PATH="$usr/x86_64-w64-mingw32/bin"
exec "$program" "\$@"
END
        chmod +x "bin/${name%-posix}"
    done
fi
PATH=$PWD/bin:$PATH
x86_64-w64-mingw32-gcc -shared -o libnode/libnode.dll -x c /dev/null
x86_64-w64-mingw32-dlltool --version
x86_64-w64-mingw32-ar --version
"#;

const WINE: &str = "wine64";
const WINE_NEEDS: &str = "libwine|libunwind8|libz-mingw-w64";

/// A wine that needs no installation: `$1` is the machine's, or empty. A package that is installed copies zlib to where
/// wine is, with a mark of wine's own programs in it.
///
/// The prefix is that of a Windows 10. `$2` is the source of a library that an older wine has not.
const PREFIX: &str = r#"
mkdir -p home
wine=$1
server=$(dirname "$wine")/wineserver
[ -x "$server" ] || server=wineserver
libraries=
if [ -z "$wine" ]; then
    usr=$PWD/wine64/usr
    wine=$usr/lib/wine/wine64
    # A script beside it looks for it in /usr.
    server=$usr/lib/wine/wineserver64
    if [ -f "$server" ]; then ln -sf wineserver64 "$usr/lib/wine/wineserver"; fi
    libraries=$(echo "$usr"/lib/*-linux-gnu)
    for pair in i686:i386 x86_64:x86_64; do
        from=$usr/${pair%:*}-w64-mingw32/lib/zlib1.dll
        to=$libraries/wine/${pair#*:}-windows
        [ -f "$from" ] && [ -d "$to" ] || continue
        { head -c 64 "$from"; printf 'Wine builtin DLL'; head -c 16 /dev/zero; tail -c +97 "$from"; } > "$to/zlib1.dll"
    done
fi
for program in "$wine:wine64" "$server:wineserver"; do
    name=${program##*:}
    cat > "bin/$name" <<END
#!/bin/sh
export HOME="$PWD/home" WINEPREFIX="$PWD/wine" WINEDEBUG="\${WINEDEBUG:--all}"
export WINEDLLOVERRIDES="mscoree,mshtml,winemenubuilder.exe="
libraries="$libraries"
if [ -n "\$libraries" ]; then
    export WINESERVER="$server" LD_LIBRARY_PATH="\$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
fi
exec "${program%:*}" "\$@"
END
    chmod +x "bin/$name"
done
PATH=$PWD/bin:$PATH
# Whatever happens, nothing of it runs on.
trap 'wineserver -k || :' EXIT
rm -rf wine
wine64 wineboot --init
wine64 reg add 'HKCU\Software\Wine' /v Version /d win10 /f
system=wine/drive_c/windows/system32
if [ ! -e $system/bcryptprimitives.dll ]; then
    x86_64-w64-mingw32-gcc -O2 -shared -o $system/bcryptprimitives.dll "$2" -ladvapi32
fi
wine64 cmd /c ver | grep 'Windows 10'
timeout 60 wineserver -w
touch wine/ready
"#;

fn folder() -> PathBuf {
    place::target("windows")
}

fn script(text: &str, args: &[&str]) -> Command {
    let mut command = tool::command("nice");
    command.args(["-n", "19", "sh", "-e", "-c", text, "sh"]).args(args);
    command.current_dir(folder()).env("CARGO", tool::cargo(&[]).get_program());
    command
}

/// The first of these programs that the machine has, by its path or on `PATH`.
fn first(names: &[&str]) -> Option<PathBuf> {
    // A path that is joined to a folder is that path.
    names.iter().copied().find_map(process::which)
}

/// The machine's gcc for Windows, with the programs beside it that Rust asks for.
fn gcc() -> Option<PathBuf> {
    let beside = ["x86_64-w64-mingw32-dlltool", "x86_64-w64-mingw32-ar"];
    let all = beside.into_iter().all(|name| process::which(name).is_some());
    all.then(|| first(&["x86_64-w64-mingw32-gcc-posix", "x86_64-w64-mingw32-gcc"])).flatten()
}

/// Packages, unpacked into a folder of their name. `Err`: they cannot be had.
fn get(package: &str, needs: &str) -> Result<Result<(), String>> {
    if let Err(why) = nginx::can_unpack() {
        return Ok(Err(format!("no {package}: {why:#}")));
    }
    let mut unavailable = None;
    let name = format!("windows-{package}");
    let made = stamp::once(&name, &texts(&[GET, needs]), &folder().join(package), || {
        report::step(format!("getting {package}"));
        let log = place::log(&format!("setup {name}"));
        if let Err(error) = process::must("apt-get download", script(GET, &[package, needs]), GETTING, &log) {
            let _ = std::fs::remove_dir_all(folder().join(package));
            unavailable = Some(format!("no {package}: {error:#}"));
            anyhow::bail!("unavailable");
        }
        Ok(())
    });
    match (unavailable, made) {
        (Some(why), _) => Ok(Err(why)),
        (None, made) => made.map(Ok),
    }
}

fn said(path: Option<&PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// A toolchain for Windows programs.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// None where the machine's own will do.
    rustc: Option<PathBuf>,
}

/// Makes it be there. `Err`: this machine cannot have it.
pub(crate) fn windows() -> Result<Result<Windows, String>> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Err("Windows programs are made on Linux, and for x86-64 alone".into()));
    }
    std::fs::create_dir_all(folder())?;
    let gcc = gcc();
    if gcc.is_none()
        && let Err(why) = get(MINGW, MINGW_NEEDS)?
    {
        return Ok(Err(why));
    }
    let gcc = said(gcc.as_ref());
    let tools = texts(&[TOOLS, GET, MINGW_NEEDS, &gcc]);
    stamp::once("windows-tools", &tools, &folder().join("libnode/libnode.dll"), || {
        let log = place::log("setup windows tools");
        process::must("mingw's gcc", script(TOOLS, &[&gcc]), STARTING, &log).map(drop)
    })?;
    Ok(across::rustc(TARGET, Some(&folder().join("bin")))?.map(|rustc| Windows { rustc }))
}

/// The machine's wine: a program that does without the 32-bit half, which says on every start that it is missing.
fn machine_wine() -> Option<PathBuf> {
    first(&["/usr/lib/wine/wine64", "wine64", "wine"])
}

impl Windows {
    /// Lets cargo, or a program that calls it, build for Windows, in a folder of its own: the compiler is another one.
    pub(crate) fn environment(&self, command: &mut Command) -> Result<()> {
        command.env("PATH", across::before(&folder().join("bin"))?);
        command.env("LIBNODE_PATH", folder().join("libnode"));
        command.env("CARGO_TARGET_DIR", across::products());
        if let Some(rustc) = &self.rustc {
            command.env("RUSTC", rustc);
        }
        Ok(())
    }

    /// A command of cargo for Windows, without what only debuggers read, beside other work.
    pub(crate) fn cargo(&self, task: &str, packages: &[&str]) -> Result<Command> {
        let mut command = tool::command("nice");
        command.args(["-n", "19"]).arg(tool::cargo(&[]).get_program());
        command.args([task, "--locked", "--target", TARGET]);
        for package in packages {
            command.args(["--package", package]);
        }
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        self.environment(&mut command)?;
        Ok(command)
    }

    /// The folder of the programs that `build` makes.
    pub(crate) fn programs() -> PathBuf {
        across::products().join(TARGET).join("debug")
    }

    /// A program that runs Windows programs: wine, with a prefix of its own. `Err`: this machine cannot have it.
    pub(crate) fn wine(&self) -> Result<Result<PathBuf, String>> {
        const SOURCE: &str = "tests/windows/bcryptprimitives.c";
        let wine = machine_wine();
        if wine.is_none()
            && let Err(why) = get(WINE, WINE_NEEDS)?
        {
            return Ok(Err(why));
        }
        let wine = said(wine.as_ref());
        let program = folder().join("bin/wine64");
        let ready = if program.exists() { folder().join("wine/ready") } else { program.clone() };
        let mut unavailable = None;
        let inputs: Inputs = texts(&[PREFIX, GET, WINE_NEEDS, &wine]).path(SOURCE)?;
        let made = stamp::once("windows-wine", &inputs, &ready, || {
            report::step("preparing wine");
            let source = place::root().join(SOURCE);
            let command = script(PREFIX, &[&wine, &source.to_string_lossy()]);
            if let Err(error) = process::must("wine", command, STARTING, &place::log("setup windows wine")) {
                unavailable = Some(format!("wine does not run here: {error:#}"));
                anyhow::bail!("unavailable");
            }
            Ok(())
        });
        match (unavailable, made) {
            (Some(why), _) => Ok(Err(why)),
            (None, made) => made.map(|()| Ok(program)),
        }
    }
}
