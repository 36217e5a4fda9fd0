//! Folders, variables and programs of the machine, as a value: tests show other systems than their own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The operating system whose layout of folders is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and its like: the folders of the XDG specification.
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program was compiled for.
    #[must_use]
    pub fn own() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::Mac
        } else {
            Self::Linux
        }
    }
}

/// Everything that is asked of the machine.
#[derive(Debug, Clone)]
pub struct Places {
    /// The system that decides where hosts have their files.
    pub system: System,
    /// The user's home folder.
    pub home: PathBuf,
    /// The current folder: relative paths start here, and project files are looked for from here upwards.
    pub folder: PathBuf,
    /// The environment: `PATH`, `VIRTUAL_ENV`, `XDG_CONFIG_HOME`, `APPDATA`, `CODEX_HOME` and the like.
    pub variables: BTreeMap<String, OsString>,
    /// The words that start this very command, for hosts that know programs only; the first one is an absolute path.
    pub tricorn: Vec<String>,
    /// The Python that this command is a part of, for files that are in no virtual environment.
    pub python: Option<PathBuf>,
    /// The time that backups are named by.
    pub now: SystemTime,
}

impl Places {
    /// Those of this process.
    ///
    /// # Errors
    ///
    /// A sentence, if there is no home folder or no current folder.
    pub fn of_this_process(tricorn: Vec<String>) -> Result<Self, String> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.ok_or("no home folder: set HOME")?;
        let folder = std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Ok(Self {
            system: System::own(),
            home,
            folder,
            variables: variables.collect(),
            tricorn,
            python: None,
            now: SystemTime::now(),
        })
    }

    /// A variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// A folder that a variable names, which has to be absolute to count.
    pub(super) fn named(&self, variable: &str) -> Option<PathBuf> {
        self.variable(variable).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// The virtual environment that is active.
    pub(super) fn environment(&self) -> Option<PathBuf> {
        self.variable("VIRTUAL_ENV").map(|folder| self.absolute(&folder.to_string_lossy()))
    }

    /// Folders of programs that every program finds.
    pub(super) fn system_folders(&self) -> &'static [&'static str] {
        match self.system {
            System::Linux => &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"],
            // Homebrew's are not among them.
            System::Mac => &["/usr/bin", "/bin", "/usr/sbin", "/sbin"],
            System::Windows => &[],
        }
    }

    /// True for one of them, and what is below the system's own on Windows.
    pub(super) fn is_of_system(&self, folder: &str) -> bool {
        let own = self.variable("SystemRoot").filter(|_| self.system == System::Windows);
        self.system_folders().contains(&folder) || own.is_some_and(|own| Path::new(folder).starts_with(own))
    }

    /// The folder for configurations: XDG's on Linux, `Application Support` on macOS, the roaming one on Windows.
    pub(super) fn config(&self) -> PathBuf {
        match self.system {
            System::Linux => self.xdg(),
            System::Mac => self.home.join("Library/Application Support"),
            System::Windows => self.named("APPDATA").unwrap_or_else(|| self.home.join("AppData").join("Roaming")),
        }
    }

    /// XDG's folder for configurations, which some programs have on macOS, too.
    pub(super) fn xdg(&self) -> PathBuf {
        self.named("XDG_CONFIG_HOME").unwrap_or_else(|| self.home.join(".config"))
    }

    /// A path as it is from the current folder.
    pub(super) fn absolute(&self, path: &str) -> PathBuf {
        self.absolute_from(&self.folder, path)
    }

    /// A path as it is from this folder, which is absolute or below the current one.
    pub(super) fn absolute_from(&self, folder: &Path, path: &str) -> PathBuf {
        let path = Path::new(path);
        if path.is_absolute() {
            return path.to_owned();
        }
        let parts = self.folder.join(folder).join(path);
        // Dots are taken out by their letters, so that a link on the way stays one.
        let mut clean = PathBuf::new();
        for part in parts.components() {
            match part {
                std::path::Component::CurDir => {}
                std::path::Component::ParentDir => {
                    clean.pop();
                }
                part => clean.push(part),
            }
        }
        clean
    }

    /// The program of this name in `PATH`.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        self.first(name, self.variable("PATH").into_iter().flat_map(std::env::split_paths))
    }

    /// The same where it stays: what is in an environment that is thrown away is looked for behind that.
    pub(super) fn lasting_program(&self, name: &str) -> Option<PathBuf> {
        self.first(name, self.lasting_folders())
    }

    /// The folders of `PATH` that stay.
    pub(super) fn lasting_folders(&self) -> impl Iterator<Item = PathBuf> {
        self.variable("PATH").into_iter().flat_map(std::env::split_paths).filter_map(lasting)
    }

    fn first(&self, name: &str, folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
        let endings: &[&str] = if self.system == System::Windows { &[".exe", ".cmd", ".bat"] } else { &[""] };
        folders
            .flat_map(|folder| endings.iter().map(move |ending| folder.join(format!("{name}{ending}"))))
            .find(|path| std::fs::metadata(path).is_ok_and(|metadata| runs(&metadata)))
    }
}

/// A folder, if it stays; else the one that it is a link to, as those of fnm are, if that does.
fn lasting(folder: PathBuf) -> Option<PathBuf> {
    if !is_thrown_away(&folder) {
        return Some(folder);
    }
    let real = std::fs::canonicalize(&folder).ok().filter(|real| !is_thrown_away(real))?;
    // Windows marks such a path, which not every program takes.
    let plain = real.to_str().and_then(|real| real.strip_prefix(r"\\?\")).map(PathBuf::from);
    Some(plain.unwrap_or(real))
}

/// True for a folder of an environment that is made for one run or one shell: those of uv, npx and fnm.
fn is_thrown_away(folder: &Path) -> bool {
    let names = folder.components().filter_map(|part| part.as_os_str().to_str());
    let mut uv = names.clone().filter(|name| name.starts_with("archive-v") || name.starts_with("environments-v"));
    uv.any(|name| name.ends_with(|last: char| last.is_ascii_digit()))
        || names.clone().any(|name| matches!(name, "fnm_multishells" | "_npx"))
}

#[cfg(unix)]
fn runs(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn runs(metadata: &std::fs::Metadata) -> bool {
    metadata.is_file()
}
