//! Places of the programs and files.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The command and the arguments that come first.
pub(crate) fn command() -> Vec<String> {
    match std::env::var("TRICORN_COMMAND") {
        Ok(given) => shlex::split(&given).filter(|words| !words.is_empty()).expect("TRICORN_COMMAND: a command line"),
        Err(_) => vec![env!("CARGO_BIN_EXE_tricorn").to_owned()],
    }
}

/// The fixture server.
pub(crate) fn everything() -> String {
    if let Ok(given) = std::env::var("TRICORN_EVERYTHING") {
        return given;
    }
    let name = format!("example-everything{}", std::env::consts::EXE_SUFFIX);
    let own = Path::new(env!("CARGO_BIN_EXE_tricorn")).parent().unwrap();
    let places =
        [own.join(&name), own.with_file_name("release").join(&name), root().join("target/release").join(&name)];
    let found = places.iter().find(|path| path.is_file());
    let found = found.expect("the fixture server: cargo build -p example-everything, or TRICORN_EVERYTHING");
    found.to_str().unwrap().to_owned()
}

/// The authorization server of `tests/auth/provider`, where `cargo xtask setup` has put it.
pub(crate) fn provider() -> Option<PathBuf> {
    let given = std::env::var_os("TRICORN_PROVIDER").map(PathBuf::from);
    let own = root().join("target/interop/npm-provider/provider.mjs");
    given.or_else(|| own.is_file().then_some(own))
}

/// A Python that has our package.
pub(crate) fn python() -> Option<String> {
    let given = std::env::var("TRICORN_PYTHON").ok();
    let own = root().join("target/venv/bin/python");
    given.or_else(|| own.is_file().then(|| own.to_str().unwrap().to_owned()))
}

/// `PATH`, with the folder of `TRICORN_NODE` first.
pub(crate) fn node_path() -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::var_os("TRICORN_NODE").map(PathBuf::from);
    std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).unwrap()
}

/// A folder with our package for Node.js and zod, and true if Node.js runs TypeScript.
pub(crate) fn node_modules() -> Option<(PathBuf, bool)> {
    let given = std::env::var_os("TRICORN_NODE_MODULES").map(PathBuf::from);
    let own = root().join("target/packages/node-suite/node_modules");
    let modules = given.or_else(|| own.join("tricorn").is_dir().then_some(own))?;
    let said = std::process::Command::new("node").arg("--version").env("PATH", node_path()).output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let mut parts = said.trim().trim_start_matches('v').split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (parts.next()?, parts.next()?);
    Some((modules, version >= (23, 6) || (version.0 == 22 && version.1 >= 18)))
}
