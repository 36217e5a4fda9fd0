//! Process groups, and pipes that the reactor watches.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};

use crate::error::shortened;
use crate::streams::{duplicate, occupy};

/// The output of a child.
pub(in crate::endpoint) type Receiver = tokio::net::unix::pipe::Receiver;

/// A process group: the child that leads it, and what that has started.
#[derive(Clone)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// Returns true if somebody is in it.
    pub(super) fn exists(&self) -> bool {
        test_kill_process_group(self.0).is_ok()
    }

    /// Tells all of it to end. True if it may do so.
    pub(super) fn ask_to_end(&self) -> bool {
        let _ = kill_process_group(self.0, Signal::TERM);
        true
    }

    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// A pipe to a child: its end, and ours.
pub(super) fn input() -> io::Result<(PipeReader, PipeWriter)> {
    occupy();
    io::pipe()
}

/// A pipe from a child: our end, and its.
pub(super) fn output() -> io::Result<(Receiver, PipeWriter)> {
    let (near, far) = io::pipe()?;
    Ok((Receiver::from_owned_fd(near.into())?, far))
}

/// A duplicate, as the runtimes of some languages close the original where another program begins.
pub(super) fn standard_error() -> Option<File> {
    duplicate(rustix::stdio::stderr()).ok()
}

/// The command that starts a program.
pub(super) fn command(program: &str, _env: &BTreeMap<String, Option<String>>, _cwd: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0);
    command
}

/// Starts it, in a group of its own.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Option<Group>)> {
    let child = command.spawn()?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw).map(Group);
    Ok((child, group))
}

/// Returns the error of a folder that exists and cannot be a working directory.
pub(super) fn not_enterable(folder: &str) -> Option<io::Error> {
    rustix::fs::access(folder, rustix::fs::Access::EXEC_OK).err().map(io::Error::from)
}

/// Reasons that the system leaves out of an error.
pub(super) fn reason(
    error: &io::Error,
    command: &str,
    env: &BTreeMap<String, Option<String>>,
    cwd: Option<&str>,
) -> Option<String> {
    if error.kind() != io::ErrorKind::NotFound {
        return None;
    }
    let Some(file) = found(command, env, cwd) else { return Some(missing(command, env, cwd)) };
    Some(match interpreter(&file) {
        Some(interpreter) if interpreter.ends_with('\r') => {
            "the file is there, but its first line ends as on Windows (CR LF)".to_owned()
        }
        Some(interpreter) => {
            format!("the file is there, but its interpreter {interpreter:?} (its first line) is not")
        }
        None => "the file is there, but not the loader that it needs (made for another system?)".to_owned(),
    })
}

/// The longest list of folders that a message repeats.
const MAX_PATH: usize = 300;

/// Says where a command was looked for, and what to do.
fn missing(command: &str, env: &BTreeMap<String, Option<String>>, cwd: Option<&str>) -> String {
    if command.contains('/') {
        let file = Path::new(cwd.unwrap_or_default()).join(command);
        return format!("there is no file {}", std::path::absolute(&file).unwrap_or(file).display());
    }
    match search_path(env) {
        // Programs with windows often have a shorter one than a terminal.
        Some(path) if !path.is_empty() => {
            let path = path.to_string_lossy();
            format!(
                "it is in none of the folders of PATH ({}): install it, or give its full path",
                shortened(&path, MAX_PATH)
            )
        }
        _ => "there is no PATH to look for it in: give its full path".to_owned(),
    }
}

fn search_path(env: &BTreeMap<String, Option<String>>) -> Option<OsString> {
    match env.get("PATH") {
        Some(own) => own.clone().map(OsString::from),
        None => std::env::var_os("PATH"),
    }
}

/// Returns true if a command has a file.
pub(super) fn is_there(command: &str, env: &BTreeMap<String, Option<String>>, cwd: Option<&str>) -> bool {
    found(command, env, cwd).is_some()
}

/// The file of a command, as the system looks for it.
fn found(command: &str, env: &BTreeMap<String, Option<String>>, cwd: Option<&str>) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(Path::new(cwd.unwrap_or_default()).join(command)).filter(|file| file.is_file());
    }
    std::env::split_paths(&search_path(env)?).map(|folder| folder.join(command)).find(|file| file.is_file())
}

/// The program that a script names in its first line.
fn interpreter(file: &Path) -> Option<String> {
    let mut line = String::new();
    let head = File::open(file).ok()?.take(256);
    BufReader::new(head).read_line(&mut line).ok()?;
    let named = line.strip_prefix("#!")?.trim_start_matches([' ', '\t']).split([' ', '\t', '\n']).next()?.to_owned();
    Some(named)
}
