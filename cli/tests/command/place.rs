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
