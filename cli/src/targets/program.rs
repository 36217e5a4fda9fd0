//! Programs by their names.

use std::path::{Path, PathBuf};

use tokio::process::Command;
use tricorn::client::Target;

/// The command of a target that is a program, with its arguments, environment and folder. Standard streams are inherited.
pub(crate) fn command_of(target: &Target) -> Option<Command> {
    let Target::Command { command, args, env, cwd, .. } = target else { return None };
    let mut program = Command::new(command);
    program.args(args);
    for (name, value) in env {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    if let Some(cwd) = cwd {
        program.current_dir(cwd);
    }
    Some(program)
}

/// The program of this name in `PATH`.
pub(super) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names: Vec<String> =
        if cfg!(windows) { vec![format!("{name}.exe"), format!("{name}.cmd")] } else { vec![name.to_owned()] };
    std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        .find(|path| std::fs::metadata(path).is_ok_and(|metadata| is_executable(path, &metadata)))
}

/// True for a script or a program that nobody has made executable.
pub(crate) fn is_not_executable(path: &Path) -> bool {
    use std::io::Read as _;
    const SHELLS: [&str; 4] = ["sh", "bash", "zsh", "fish"];
    let Ok(metadata) = std::fs::metadata(path) else { return false };
    if cfg!(not(unix)) || !metadata.is_file() || is_executable(path, &metadata) {
        return false;
    }
    let mut first = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(4).read_to_end(&mut first));
    let is_shell = path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| SHELLS.contains(&ending));
    is_shell || (read.is_ok() && (first.starts_with(b"#!") || first == b"\x7fELF"))
}

/// True if the system runs this file.
#[cfg(unix)]
pub(super) fn is_executable(_path: &Path, metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
}

/// True if the system runs this file.
#[cfg(not(unix))]
pub(super) fn is_executable(path: &Path, metadata: &std::fs::Metadata) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    metadata.is_file() && matches!(ending.as_str(), "exe" | "cmd" | "bat" | "com")
}
