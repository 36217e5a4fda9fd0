//! Python files.

use std::path::{Path, PathBuf};

use tricorn::client::Target;

use super::program::in_path;
use super::{Script, Way, absolute};
use crate::failure::{Failure, Outcome, UNREACHABLE};
use crate::launcher::Launcher;

/// Runs a file, and the server that is in it.
pub(crate) const SERVE: &str = include_str!("serve.py");

pub(super) fn target(script: &Script<'_>, way: &Way, launcher: &Launcher) -> Outcome<Target> {
    let interpreter = interpreter(script.path, launcher)?;
    let http = match way {
        Way::Streams => "",
        Way::Http(address) => address,
    };
    let arguments = ["-c", SERVE, &absolute(script.path), script.name.unwrap_or_default(), http];
    Ok(Target::command(interpreter.to_string_lossy(), arguments))
}

/// The interpreter of the active virtual environment, of the nearest one above the file, that of the command itself, or
/// one of `PATH`.
pub(super) fn interpreter(path: &Path, launcher: &Launcher) -> Outcome<PathBuf> {
    let active = std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if let Some(found) = active.as_deref().and_then(of_environment) {
        return Ok(found);
    }
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let nearest = file.ancestors().skip(1).find_map(|folder| of_environment(&folder.join(".venv")));
    let own = || launcher.python.clone().filter(|path| path.is_file());
    let names: &[&str] = if cfg!(windows) { &["python3", "python", "py"] } else { &["python3", "python"] };
    let found = nearest.or_else(own).or_else(|| names.iter().find_map(|name| in_path(name)));
    found.ok_or_else(|| {
        let lost = active.filter(|folder| !folder.is_dir());
        let lost = lost.map(|folder| format!("; VIRTUAL_ENV names {}, which is not there", folder.display()));
        Failure::new(
            UNREACHABLE,
            format!(
                "{}: no Python: looked for a virtual environment (VIRTUAL_ENV, .venv in the folders above the file) and for {} in PATH{}; install Python, or give the command line after --",
                path.display(),
                names.join(", "),
                lost.unwrap_or_default(),
            ),
        )
    })
}

fn of_environment(folder: &Path) -> Option<PathBuf> {
    let names: &[&str] = if cfg!(windows) { &["Scripts/python.exe"] } else { &["bin/python3", "bin/python"] };
    names.iter().map(|name| folder.join(name)).find(|path| path.is_file())
}
