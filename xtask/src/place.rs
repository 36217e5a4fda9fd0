//! Places of files. Everything made by a task lives under the target folder.

use anyhow::{Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The repository.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let manifest = manifest.filter(|m| m.ends_with("xtask"));
        let from_cargo = manifest.as_deref().and_then(Path::parent).map(Path::to_owned);
        let here = std::env::current_dir().unwrap_or_default();
        let upward = here.ancestors().find(|d| d.join("xtask/Cargo.toml").is_file()).map(Path::to_owned);
        from_cargo.or(upward).unwrap_or(here)
    });
    &ROOT
}

/// `target/…`
pub(crate) fn target(rest: &str) -> PathBuf {
    root().join("target").join(rest)
}

/// A built program or library of the one profile.
pub(crate) fn built(name: &str) -> PathBuf {
    target("release").join(name)
}

/// The full output of a step.
pub(crate) fn log(step: &str) -> PathBuf {
    target("logs").join(format!("{}.log", step.replace(['/', ' '], "-")))
}

/// The path as seen from the repository.
pub(crate) fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The languages that Tricorn has a package for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lang {
    Rust,
    Python,
    Node,
    Swift,
}

impl Lang {
    pub(crate) const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Node, Self::Swift];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Node => "node",
            Self::Swift => "swift",
        }
    }

    /// `rust`, `python`, `node`, `swift`; an empty list means all of them.
    pub(crate) fn list(names: &[String]) -> Result<Vec<Self>> {
        if names.is_empty() {
            return Ok(Self::ALL.to_vec());
        }
        names.iter().map(|n| n.parse()).collect()
    }
}

impl std::str::FromStr for Lang {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|l| l.name() == name) {
            Some(lang) => Ok(lang),
            None => bail!("no language {name:?}: rust, python, node or swift"),
        }
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
