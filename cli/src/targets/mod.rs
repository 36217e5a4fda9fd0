//! From what the user calls a target to what the client connects to.

mod elsewhere;
mod node;
mod package;
mod program;
mod python;

pub(crate) use elsewhere::{Elsewhere, is_loopback, own_url};
pub(crate) use program::{command_of, is_not_executable};
pub(crate) use python::SERVE;

use std::path::{Path, PathBuf};

use tricorn::bridge::Reason;
use tricorn::client::{Servers, Stderr, Target};

use crate::arguments::Connection;
use crate::commands::{places, target_of};
use crate::failure::{Failure, Outcome, UNREACHABLE};
use crate::hosts;
use crate::launcher::Launcher;
use crate::output::Screen;

/// The ways to serve a file.
#[derive(Debug, Clone, Default)]
pub(crate) enum Way {
    /// Over its standard streams.
    #[default]
    Streams,
    /// Over HTTP, by its own means, at this address.
    Http(String),
}

/// Result of looking for a target.
#[derive(Clone)]
pub(crate) struct Found {
    /// Its name for people.
    pub(crate) name: String,
    pub(crate) reach: Reach,
    pub(crate) kind: Kind,
}

/// The servers that a target is.
#[derive(Clone)]
pub(crate) enum Reach {
    One(Target),
    /// All of a configuration file.
    Many(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Url,
    Command,
    /// A file that a known interpreter or tool runs, which takes `--http` as our servers do.
    File,
    Configuration,
}

/// A target that can be packed, and its code.
pub(crate) struct Source {
    pub(crate) found: Found,
    pub(crate) code: Code,
}

/// The code of a server.
pub(crate) enum Code {
    Python {
        interpreter: PathBuf,
        file: PathBuf,
        name: Option<String>,
    },
    Node {
        node: PathBuf,
        file: PathBuf,
    },
    /// A program, and the file of the package that it was built from.
    Program {
        program: PathBuf,
        manifest: Option<PathBuf>,
    },
    Remote(String),
}

/// A file that is run.
struct Script<'a> {
    path: &'a Path,
    /// The part after the colon.
    name: Option<&'a str>,
}

/// Finds out what is meant by `text`.
pub(crate) fn find(
    text: &str,
    connection: &Connection,
    way: &Way,
    launcher: &Launcher,
    screen: &Screen,
) -> Outcome<Found> {
    let mut found =
        if Connection::is_command(text) { command(connection)? } else { named(text, way, launcher, screen)? };
    match &mut found.reach {
        Reach::Many(_) if !connection.header.is_empty() || !connection.env.is_empty() => {
            return Err(Failure::misuse(format!(
                "--header and --env are for one server: say which, {}#NAME",
                found.name
            )));
        }
        Reach::Many(_) => {}
        Reach::One(Target::Command { env, stderr, .. }) => {
            if let Some((name, _)) = connection.header.first() {
                return Err(Failure::misuse(format!(
                    "--header {name}: {} is a program, which has no headers",
                    found.name
                )));
            }
            env.extend(connection.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
            if *stderr == Stderr::Inherit {
                *stderr = Stderr::Event;
            }
        }
        _ => {
            if let Some((name, _)) = connection.env.first() {
                return Err(Failure::misuse(format!("--env {name}: {} is not started here", found.name)));
            }
        }
    }
    Ok(found)
}

fn command(connection: &Connection) -> Outcome<Found> {
    let Some((program, arguments)) = connection.command.split_first() else {
        return Err(Failure::misuse("after -- a program is expected, and its arguments"));
    };
    if program.trim().is_empty() {
        return Err(Failure::misuse("after -- a program is expected, got an empty word"));
    }
    let is_path = program.contains('/') || (cfg!(windows) && program.contains('\\'));
    if is_path && !cfg!(windows) {
        let about = std::fs::metadata(program).ok();
        if about.is_some_and(|about| about.is_file() && !program::is_executable(Path::new(program), &about)) {
            let hint = "chmod +x makes it so; or give the program that runs it before it";
            return Err(Failure::new(UNREACHABLE, format!("{program:?} is not executable: {hint}")));
        }
    }
    if is_path && let Some(failure) = closed(Path::new(program)) {
        return Err(Failure::new(UNREACHABLE, failure.message));
    }
    let is_found = if is_path { Path::new(program).exists() } else { program::in_path(program).is_some() };
    // With another PATH it may be there.
    let is_known = connection.env.iter().all(|(name, _)| name != "PATH");
    if !is_found && is_known && !cfg!(windows) {
        let place = if is_path { "there is no such file" } else { "looked for it in PATH" };
        let hint = if program.contains(char::is_whitespace) {
            "leave out the quotes around the command line"
        } else {
            "install it, or give its path"
        };
        return Err(Failure::new(UNREACHABLE, format!("no program {program:?}: {place}; {hint}")));
    }
    let target = Target::command(program, arguments);
    Ok(Found { name: program.clone(), reach: Reach::One(target), kind: Kind::Command })
}

/// Finds the code of a server. A package is built for those who get it.
pub(crate) fn source(text: &str, connection: &Connection, launcher: &Launcher, screen: &Screen) -> Outcome<Source> {
    if Connection::is_command(text) {
        return Err(Failure::misuse("a command line cannot be packed: name the file or the package of the server"));
    }
    let script = Script::of(text);
    let about = std::fs::metadata(script.path).ok();
    let kind = about.as_ref().and_then(|about| script.kind(about));
    let mut found = match kind {
        Some(Runner::Cargo) => {
            let target = package::cargo(&script, &Way::Streams, true, screen)?;
            Found { name: text.to_owned(), reach: Reach::One(target), kind: Kind::File }
        }
        Some(Runner::Swift) => {
            let target = package::swift(&script, &Way::Streams, true, screen)?;
            Found { name: text.to_owned(), reach: Reach::One(target), kind: Kind::File }
        }
        _ => find(text, connection, &Way::Streams, launcher, screen)?,
    };
    let file = std::path::absolute(script.path).unwrap_or_else(|_| script.path.to_owned());
    let code = match (kind, &mut found.reach) {
        (_, Reach::One(Target::Url { url, .. })) => Code::Remote(url.clone()),
        (Some(Runner::Python), _) => Code::Python {
            interpreter: python::interpreter(script.path, launcher)?,
            file,
            name: script.name.map(str::to_owned),
        },
        (Some(Runner::Node), Reach::One(Target::Command { command, .. })) => {
            Code::Node { node: PathBuf::from(&*command), file }
        }
        (Some(kind), Reach::One(Target::Command { command, env, stderr, .. })) => {
            if matches!(kind, Runner::Cargo | Runner::Swift) {
                env.extend(connection.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))));
                *stderr = Stderr::Event;
            }
            let manifest =
                matches!(kind, Runner::Cargo).then(|| if file.is_dir() { file.join("Cargo.toml") } else { file });
            Code::Program { program: PathBuf::from(&*command), manifest }
        }
        _ => {
            let hint = "name the file or the package of one server";
            return Err(Failure::misuse(format!("{}: a configuration cannot be packed: {hint}", found.name)));
        }
    };
    Ok(Source { found, code })
}

fn named(text: &str, way: &Way, launcher: &Launcher, screen: &Screen) -> Outcome<Found> {
    if text.trim().is_empty() {
        return Err(Failure::misuse("the target is empty"));
    }
    if text.split_once("://").is_some_and(|(scheme, _)| scheme.contains(char::is_whitespace)) {
        let line = without_secrets(text);
        return Err(Failure::misuse(format!("{line:?} is no URL; a command line comes after everything else: … --")));
    }
    if text.contains("://") || text.starts_with("unix:") {
        let said = |error: &tricorn::Error| error.message().replace(text.trim(), &without_secrets(text.trim()));
        let target = Target::from_text(text).map_err(|error| Failure::misuse(said(&error)))?;
        return Ok(Found { name: without_secrets(text), reach: Reach::One(target), kind: Kind::Url });
    }
    if text.starts_with("replay:") {
        let target = Target::from_text(text).map_err(|error| Failure::misuse(error.message()))?;
        return Ok(Found { name: text.to_owned(), reach: Reach::One(target), kind: Kind::Url });
    }
    if let Some((path, name)) = configuration(text) {
        if !Path::new(path).is_file() {
            return Err(missing(path));
        }
        let reach = match Target::from_file(path, name) {
            Ok(target) => Reach::One(target),
            Err(error) if error.reason() == Some(Reason::NoServerNamed) => group(path)?,
            Err(error) => return Err(Failure::misuse(error.message())),
        };
        return Ok(Found { name: text.to_owned(), reach, kind: Kind::Configuration });
    }
    if let Some(found) = of_host(text, launcher)? {
        return Ok(found);
    }
    let script = Script::of(text);
    let Some(metadata) = std::fs::metadata(script.path).ok() else {
        return Err(unknown(text, &script));
    };
    let target = match script.kind(&metadata) {
        Some(Runner::Python) => python::target(&script, way, launcher)?,
        Some(Runner::Node) => node::target(&script, way, launcher)?,
        Some(Runner::Cargo) => package::cargo(&script, way, false, screen)?,
        Some(Runner::Swift) => package::swift(&script, way, false, screen)?,
        Some(Runner::Program) => {
            let mut arguments = Vec::new();
            way.arguments(&mut arguments);
            Target::command(absolute(script.path), arguments)
        }
        None if metadata.is_dir() => {
            let hint = "a folder needs a Cargo.toml or a Package.swift; name the file of the server";
            return Err(Failure::misuse(format!("{text}: {hint}")));
        }
        None if is_not_executable(script.path) => {
            let hint = "chmod +x makes it so; or give the command line after --";
            return Err(Failure::new(UNREACHABLE, format!("{text:?} is not executable: {hint}")));
        }
        None => {
            let hint = "expected .py, .mjs, .js, .ts, .json, Cargo.toml, Package.swift or a program";
            return Err(Failure::misuse(format!("{text}: no idea how to run this file: {hint}")));
        }
    };
    Ok(Found { name: text.to_owned(), reach: Reach::One(target), kind: Kind::File })
}

/// All servers of a configuration file.
fn group(path: &str) -> Outcome<Reach> {
    let servers = Servers::from_file(path).map_err(|error| Failure::misuse(error.message()))?;
    if servers.is_empty() {
        return Err(Failure::misuse(format!("{path}: there is no server in it, or none that is switched on")));
    }
    Ok(Reach::Many(PathBuf::from(path)))
}

/// A server at a URL: the URL itself, or what a configuration has by a name.
pub(crate) fn remote(text: &str, launcher: &Launcher) -> Outcome<(String, Target)> {
    let text = text.trim();
    let found = if text.contains("://") || configuration(text).is_some() {
        Some(named(text, &Way::Streams, launcher, &Screen::new())?)
    } else {
        of_host(text, launcher)?
    };
    match found {
        Some(Found { name, reach: Reach::One(target @ Target::Url { .. }), .. }) => Ok((name, target)),
        Some(Found { name, .. }) => Err(Failure::misuse(format!(
            "{name}: only a server at a URL has a login; others trust whoever starts them"
        ))),
        None => Err(Failure::misuse(format!("{text:?} is no URL: expected https://…, mcp.json#NAME or HOST:NAME"))),
    }
}

/// A server of an installed host, `cursor:weather`.
fn of_host(text: &str, launcher: &Launcher) -> Outcome<Option<Found>> {
    if !hosts::is_of_host(text) || Path::new(text).exists() {
        return Ok(None);
    }
    let entry = hosts::find(text, &places(launcher)?).map_err(Failure::misuse)?;
    let reach = Reach::One(target_of(&entry));
    Ok(Some(Found { name: text.to_owned(), reach, kind: Kind::Configuration }))
}

#[derive(Clone, Copy)]
enum Runner {
    Python,
    Node,
    Cargo,
    Swift,
    Program,
}

impl<'a> Script<'a> {
    /// The path, and what stands after a colon that is no part of it.
    fn of(text: &'a str) -> Self {
        if !Path::new(text).exists()
            && let Some((path, name)) = text.rsplit_once(':')
            && !name.is_empty()
            && !name.contains(['/', '\\'])
            // A drive of Windows.
            && path.len() > 1
        {
            return Self { path: Path::new(path), name: Some(name) };
        }
        Self { path: Path::new(text), name: None }
    }

    fn extension(&self) -> String {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_ascii_lowercase()
    }

    fn kind(&self, metadata: &std::fs::Metadata) -> Option<Runner> {
        if metadata.is_dir() {
            let has = |name: &str| self.path.join(name).is_file();
            return match (has("Cargo.toml"), has("Package.swift")) {
                (true, _) => Some(Runner::Cargo),
                (false, true) => Some(Runner::Swift),
                _ => None,
            };
        }
        match self.path.file_name().and_then(|name| name.to_str()) {
            Some("Cargo.toml") => return Some(Runner::Cargo),
            Some("Package.swift") => return Some(Runner::Swift),
            _ => {}
        }
        match self.extension().as_str() {
            "py" | "pyw" => Some(Runner::Python),
            "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => Some(Runner::Node),
            _ => program::is_executable(self.path, metadata).then_some(Runner::Program),
        }
    }
}

impl Way {
    /// Adds what our servers are told by.
    fn arguments(&self, arguments: &mut Vec<String>) {
        if let Self::Http(address) = self {
            arguments.extend(["--http".to_owned(), address.clone()]);
        }
    }
}

/// The path of a file, and what stands after a colon that is no part of it. A configuration's name is none.
pub(crate) fn parts(text: &str) -> (&Path, Option<&str>) {
    if let Some((path, _)) = configuration(text) {
        return (Path::new(path), None);
    }
    let script = Script::of(text);
    (script.path, script.name)
}

/// The path of a configuration file and the name of one of its servers.
fn configuration(text: &str) -> Option<(&str, Option<&str>)> {
    let is_json = |path: &str| Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json(text) {
        return Some((text, None));
    }
    let (path, name) = text.rsplit_once('#')?;
    (is_json(path) && !name.is_empty()).then_some((path, Some(name)))
}

/// The failure of a file that may be there, in a folder that this user may not look into.
fn closed(path: &Path) -> Option<Failure> {
    let error = std::fs::metadata(path).err()?;
    let hint = "change the permissions of its folder, or run this as the folder's owner";
    let is_closed = error.kind() == std::io::ErrorKind::PermissionDenied;
    is_closed.then(|| Failure::misuse(format!("{}: {error}; {hint}", path.display())))
}

fn missing(path: &str) -> Failure {
    if let Some(failure) = closed(Path::new(path)) {
        return failure;
    }
    let folder = std::env::current_dir().map(|folder| format!(" in {}", folder.display())).unwrap_or_default();
    let folder = if Path::new(path).is_absolute() { String::new() } else { folder };
    Failure::misuse(format!("there is no file {path:?}{folder}"))
}

fn unknown(text: &str, script: &Script<'_>) -> Failure {
    if let Some(failure) = closed(script.path) {
        return failure;
    }
    let is_path = text.contains(['/', '\\']) || script.path.extension().is_some();
    let after = text.split_once(':').map(|(_, after)| after.split('/').next().unwrap_or_default());
    if after.is_some_and(|port| port.parse::<u16>().is_ok()) {
        return Failure::misuse(format!("{text:?} is no URL: did you mean \"http://{text}\"?"));
    }
    if text.contains(char::is_whitespace) {
        return Failure::misuse(format!(
            "there is no file {text:?}; a command line comes after everything else: … -- {text}"
        ));
    }
    if is_path {
        return missing(&script.path.to_string_lossy());
    }
    Failure::misuse(format!(
        "{text:?} is no target: expected a URL, a file (server.py, server.mjs, Cargo.toml, mcp.json#name) or a command line after --"
    ))
}

/// A URL without what may be a secret.
pub(crate) fn without_secrets(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = bare.split_once("://") else { return bare.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// The path from the root, as the program may look at its own.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path)).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said() {
        for (text, part) in [
            ("localhost:8000/mcp", "did you mean \"http://localhost:8000/mcp\"?"),
            ("nothing.py", "there is no file \"nothing.py\""),
            ("nothing.py:app", "there is no file \"nothing.py\""),
            ("nothing.json#one", "there is no file \"nothing.json\""),
            ("python server.py", "… -- python server.py"),
            ("weather", "is no target"),
            ("ftp://example.com", "the scheme is"),
        ] {
            let failure = named(text, &Way::Streams, &Launcher::new(), &Screen::new()).err();
            let message = failure.map(|failure| failure.message).unwrap_or_default();
            assert!(message.contains(part), "{text}: {message}");
        }
        assert_eq!(without_secrets("https://me:secret@example.com/mcp?token=x"), "https://example.com/mcp");
        assert_eq!(configuration("a.json#b"), Some(("a.json", Some("b"))));
        assert_eq!(configuration("a.py#b"), None);
    }
}
