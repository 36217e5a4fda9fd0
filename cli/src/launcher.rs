use std::path::PathBuf;

/// Program that started the command: the binary itself, or a script of a language's package.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Launcher {
    /// The name that the command was started by, for usage and completions. Default `tricorn`.
    pub name: Option<String>,
    /// The words that start it again, for the configurations of hosts, the first one an absolute path. Default: the program
    /// of this process.
    pub command: Vec<String>,
    /// The package that it is a part of, for `--version`: `binary`, `python`, `node`.
    pub package: Option<String>,
    /// The Python interpreter that runs it.
    pub python: Option<PathBuf>,
    /// The Node.js that runs it.
    pub node: Option<PathBuf>,
}

impl Launcher {
    /// Nothing is known.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("tricorn")
    }
}
