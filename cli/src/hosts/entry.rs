//! An entry of a configuration: the name of a server, and the way to it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::edit::Format;
use super::host::Host;
use super::places::{Places, System};

/// A server as a host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name that the host shows.
    pub name: String,
    /// The way to it.
    pub kind: Kind,
}

/// The way to a server. Values are as they stand in the file: placeholders such as `${input:key}` are not filled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A program that speaks over its standard streams.
    Stdio {
        /// The program: a name to be looked up in `PATH`, or a path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables, in the order of the file.
        env: Vec<(String, String)>,
        /// The folder that it is started in.
        cwd: Option<String>,
    },
    /// A server over HTTP.
    Http {
        /// Its URL.
        url: String,
        /// Headers of every request, in the order of the file.
        headers: Vec<(String, String)>,
    },
}

/// The words that say which server is meant.
#[derive(Debug, Clone, Copy, Default)]
pub struct Given<'a> {
    /// A URL, a file (`server.py`, `server.mjs`, `mcp.json#name`, a program) or a server of a host (`cursor:weather`).
    pub target: Option<&'a str>,
    /// A command line, in the place of the target.
    pub command: &'a [String],
    /// The name; else it is taken from the target.
    pub name: Option<&'a str>,
    /// Environment variables that are added.
    pub env: &'a [(String, String)],
    /// Headers that are added.
    pub headers: &'a [(String, String)],
}

impl Entry {
    /// The entry that these words mean, with absolute paths, as hosts start programs in folders of their own. The second
    /// part is what has to be said of it.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the words.
    pub fn from_given(given: &Given<'_>, places: &Places) -> Result<(Self, Vec<String>), String> {
        let mut notes = Vec::new();
        let mut entry = match (given.target, given.command) {
            (Some(_), [_, ..]) => return Err("give a target or a command line after --, not both".to_owned()),
            (None, []) => return Err("a target is missing: a URL, a file, or a command line after --".to_owned()),
            (None, words) => command(words, places, &mut notes)?,
            (Some(target), []) => target_entry(target, places, &mut notes)?,
        };
        match &mut entry.kind {
            Kind::Stdio { env, .. } => {
                if let Some((name, _)) = given.headers.first() {
                    return Err(format!("--header {name}: a program has no headers"));
                }
                merge(env, given.env, |a, b| a == b);
            }
            Kind::Http { headers, .. } => {
                if let Some((name, _)) = given.env.first() {
                    return Err(format!("--env {name}: a URL has no environment"));
                }
                merge(headers, given.headers, |a, b| a.eq_ignore_ascii_case(b));
            }
        }
        if let Some(name) = given.name {
            name.clone_into(&mut entry.name);
        }
        if entry.name.trim().is_empty() || entry.name.chars().any(char::is_control) {
            return Err("a name is missing: give one with --name".to_owned());
        }
        if entry.name.starts_with('-') {
            return Err(format!(
                "a name that begins with - is an option to others, got {}: give another with --name",
                entry.name
            ));
        }
        Ok((entry, notes))
    }
}

fn merge(all: &mut Vec<(String, String)>, new: &[(String, String)], same: impl Fn(&str, &str) -> bool) {
    for (name, value) in new {
        match all.iter_mut().find(|(other, _)| same(other, name)) {
            Some((_, old)) => value.clone_into(old),
            None => all.push((name.clone(), value.clone())),
        }
    }
}

fn target_entry(target: &str, places: &Places, notes: &mut Vec<String>) -> Result<Entry, String> {
    if target.trim().is_empty() {
        return Err("the target is empty".to_owned());
    }
    if let Some((scheme, rest)) = target.split_once("://") {
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") || rest.is_empty() {
            return Err(format!("{target}: hosts take http:// and https:// alone"));
        }
        return Ok(Entry { name: name_of_url(rest), kind: Kind::Http { url: target.to_owned(), headers: Vec::new() } });
    }
    if let Some(cassette) = target.strip_prefix("replay:") {
        return recorded(cassette, places);
    }
    if let Some((path, name)) = configuration(target) {
        return from_configuration(path, name, places, notes);
    }
    if !places.absolute(target).exists() && super::named_host(target).is_some() {
        return super::find(target, places);
    }
    file(target, places, notes)
}

/// The path of an `mcp.json` and the name after it.
fn configuration(target: &str) -> Option<(&str, Option<&str>)> {
    let (path, name) = target.split_once('#').map_or((target, None), |(path, name)| (path, Some(name)));
    let ending = Path::new(path).extension()?;
    (ending.eq_ignore_ascii_case("json") || ending.eq_ignore_ascii_case("jsonc")).then_some((path, name))
}

fn from_configuration(
    path: &str,
    name: Option<&str>,
    places: &Places,
    notes: &mut Vec<String>,
) -> Result<Entry, String> {
    let text = std::fs::read_to_string(places.absolute(path)).map_err(|error| format!("{path}: {error}"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let whole = Format::Json.read(text).map_err(|trouble| trouble.at(Path::new(path)))?;
    let roots = ["/mcpServers", "/servers", "/context_servers", "/mcp/servers"];
    let all = roots.iter().find_map(|root| whole.pointer(root)?.as_object());
    let all = all.ok_or_else(|| format!("{path}: no mcpServers or servers in it"))?;
    let (name, value) = match name {
        Some(name) => {
            let value = all.get(name).ok_or_else(|| {
                format!("{path}: no server {name}{}", super::nearest(name, all.keys().map(String::as_str)))
            })?;
            (name, value)
        }
        None => match all.iter().next() {
            Some((name, value)) if all.len() == 1 => (name.as_str(), value),
            Some(_) => {
                let names: Vec<_> = all.keys().map(String::as_str).collect();
                return Err(format!("{path}: say which server is meant, {path}#NAME: {}", names.join(", ")));
            }
            None => return Err(format!("{path}: there is no server in it")),
        },
    };
    let mut kind = Kind::read(value).ok_or_else(|| format!("{path}#{name}: neither a command nor a URL"))?;
    if let Some(folder) = places.absolute(path).parent() {
        kind.stay_at(folder, places, notes);
    }
    Ok(Entry { name: name.to_owned(), kind })
}

/// A word that is the path of something in this folder, as an absolute one.
fn rooted(word: &str, folder: &Path, places: &Places) -> Option<String> {
    let is_path = word.contains(['/', '\\', '.']) && !word.starts_with('-') && !word.contains("://");
    if !is_path || Path::new(word).is_absolute() {
        return None;
    }
    let path = places.absolute_from(folder, word);
    path.exists().then(|| path.to_string_lossy().into_owned())
}

fn rooted_note(word: &str, path: &str) -> String {
    format!("{word} is written as {path}: hosts start programs in other folders")
}

fn file(target: &str, places: &Places, notes: &mut Vec<String>) -> Result<Entry, String> {
    let mut path = places.absolute(target);
    let mut after = None;
    if !path.exists()
        && let Some((before, name)) = target.rsplit_once(':')
        && !name.contains(['/', '\\'])
        && places.absolute(before).exists()
    {
        path = places.absolute(before);
        after = Some(name);
    }
    if !path.exists() {
        let quotes = if target.split_whitespace().count() > 1 { ", without quotes around it" } else { "" };
        return Err(format!("{target}: there is no such file; a command line stands after --{quotes}"));
    }
    let shown = path.to_string_lossy().into_owned();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let stdio = |command: String, args: Vec<String>| Kind::Stdio { command, args, env: Vec::new(), cwd: None };
    let kind = match ending.as_str() {
        _ if path.is_dir()
            || matches!(path.file_name().and_then(|name| name.to_str()), Some("Cargo.toml" | "Package.swift")) =>
        {
            return Err(format!("{target}: hosts do not build packages: build it, and give the path of its program"));
        }
        "py" | "pyw" => match after {
            None if serves(&path) => stdio(python(&path, places)?, vec![shown]),
            // A server that has to be looked for in the file: this command does that.
            _ => {
                if after.is_none() {
                    notes.push(format!("{target} starts no server by itself: this command looks for the one in it"));
                }
                let served = after.map_or_else(|| shown.clone(), |name| format!("{shown}:{name}"));
                let (command, args) = own(places, &["run", &served])?;
                // The command looks for the interpreter when the host starts it, in an environment that is not active.
                let active = places.named("VIRTUAL_ENV").map(|folder| folder.to_string_lossy().into_owned());
                let env = active.map(|folder| ("VIRTUAL_ENV".to_owned(), folder)).into_iter().collect();
                Kind::Stdio { command, args, env, cwd: None }
            }
        },
        "mjs" | "js" | "cjs" | "ts" | "mts" | "cts" => {
            let node = places.program("node").ok_or_else(|| {
                format!("{target}: no Node.js: looked for node in PATH; install it, or give the command line after --")
            })?;
            stdio(node.to_string_lossy().into_owned(), vec![shown])
        }
        _ if is_program(&path, places) => stdio(shown, Vec::new()),
        _ => {
            if crate::targets::is_not_executable(&path) {
                let hint = "chmod +x makes it so; or give the command line after --";
                return Err(format!("{target:?} is not executable: {hint}"));
            }
            let hint = "expected .py, .mjs, .js, .ts, .json or a program";
            return Err(format!("{target}: no idea how to run this file: {hint}; or give the command line after --"));
        }
    };
    Ok(Entry { name: name_of_file(&path), kind })
}

/// An entry that serves a cassette.
fn recorded(cassette: &str, places: &Places) -> Result<Entry, String> {
    let (file, option) = match cassette.strip_suffix("?strict") {
        Some(file) => (file, Some("--strict")),
        None => (cassette, None),
    };
    let path = places.absolute(file);
    tricorn::cassette::Cassette::read(&path).map_err(|error| error.message().to_owned())?;
    let shown = path.to_string_lossy();
    let words: Vec<_> = ["replay", &shown].into_iter().chain(option).collect();
    let (command, args) = own(places, &words)?;
    Ok(Entry { name: name_of_file(&path), kind: Kind::Stdio { command, args, env: Vec::new(), cwd: None } })
}

/// This command with these arguments, as a program and its arguments.
fn own(places: &Places, words: &[&str]) -> Result<(String, Vec<String>), String> {
    let (program, first) =
        places.tricorn.split_first().ok_or("no path of this command is known: give a command line after --")?;
    Ok((program.clone(), first.iter().cloned().chain(words.iter().map(|word| (*word).to_owned())).collect()))
}

/// True if a Python file looks like one that starts its server.
fn serves(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default().replace("subprocess.run(", "");
    text.is_empty() || ["__main__", "run(", "run_async(", "serve("].iter().any(|part| text.contains(part))
}

/// The interpreter of the active environment, of the nearest one above the file, or that of `PATH`.
fn python(file: &Path, places: &Places) -> Result<String, String> {
    let windows = places.system == System::Windows;
    let inside: &[&str] = if windows { &["Scripts/python.exe"] } else { &["bin/python", "bin/python3"] };
    let of = |folder: PathBuf| inside.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    let active = places.environment().and_then(of);
    let nearest = || file.ancestors().skip(1).find_map(|folder| of(folder.join(".venv")));
    let names: &[&str] = if windows { &["python", "py"] } else { &["python3", "python"] };
    let own = || places.python.clone().filter(|path| path.is_file());
    let found = active.or_else(nearest).or_else(own).or_else(|| names.iter().find_map(|name| places.program(name)));
    found.map(|path| path.to_string_lossy().into_owned()).ok_or_else(|| {
        format!(
            "{}: no Python: looked for a virtual environment (VIRTUAL_ENV, .venv in the folders above the file) and for {} in PATH; install it, or give the command line after --",
            file.display(),
            names.join(", "),
        )
    })
}

#[cfg(unix)]
fn is_program(path: &Path, _places: &Places) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path, _places: &Places) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    path.is_file() && matches!(ending.as_str(), "exe" | "cmd" | "bat" | "com")
}

fn command(words: &[String], places: &Places, notes: &mut Vec<String>) -> Result<Entry, String> {
    let Some((program, args)) = words.split_first().filter(|(program, _)| !program.trim().is_empty()) else {
        return Err("after -- a program is expected, and its arguments".to_owned());
    };
    let name = name_of_command(program, args);
    let first = program.split_whitespace().next().unwrap_or_default();
    if first != program && !first.contains(['/', '\\']) && !places.absolute(program).exists() {
        return Err(format!("no program {program:?}: leave out the quotes around the command line"));
    }
    if let Some(word) = args.iter().find(|word| is_pair(word)) {
        notes.push(format!("{word:?} is one argument: leave out its quotes if it is two"));
    }
    // A path is said relative to the current folder, which is not the one that a host starts programs in.
    let mut own = |word: &String| {
        let Some(path) = rooted(word, &places.folder, places) else { return word.clone() };
        notes.push(rooted_note(word, &path));
        path
    };
    let mut args: Vec<_> = args.iter().map(&mut own).collect();
    let mut command = if program.contains(['/', '\\']) { own(program) } else { program.clone() };
    let stem = program.strip_suffix(".cmd").unwrap_or(program);
    // Scripts of npm are no programs on Windows: spawning them fails without a shell.
    if places.system == System::Windows && matches!(stem, "npx" | "npm" | "pnpm" | "yarn" | "bunx") {
        args.splice(0..0, ["/c".to_owned(), std::mem::replace(&mut command, "cmd".to_owned())]);
    }
    Ok(Entry { name, kind: Kind::Stdio { command, args, env: Vec::new(), cwd: None } })
}

/// True for an option and a value without `=`, `-y some-server`.
fn is_pair(word: &str) -> bool {
    let option = word.split_once(' ').map(|(option, _)| option.trim_start_matches('-'));
    word.starts_with('-')
        && option.is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// A name out of letters, digits, `-` and `_`, which all hosts take.
fn plain(text: &str) -> String {
    let name: String =
        text.chars().map(|letter| if letter.is_alphanumeric() || letter == '_' { letter } else { '-' }).collect();
    name.trim_matches('-').to_owned()
}

fn name_of_url(rest: &str) -> String {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    let labels: Vec<_> = host.split('.').filter(|label| !label.is_empty()).collect();
    let is_number = labels.iter().all(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    if labels.len() < 2 || is_number || authority.starts_with('[') {
        return plain(authority);
    }
    let first = labels.iter().take(labels.len() - 1).find(|label| !matches!(**label, "mcp" | "api" | "www" | "app"));
    plain(first.or_else(|| labels.first()).copied().unwrap_or_default())
}

fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    // A file that is called as most are says less than its folder.
    let is_common = matches!(stem, "server" | "main" | "index" | "app" | "mcp" | "__main__");
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    plain(folder.filter(|_| is_common).unwrap_or(stem))
}

fn name_of_command(program: &str, args: &[String]) -> String {
    let stem = Path::new(program).file_stem().and_then(|stem| stem.to_str()).unwrap_or(program);
    let words = || args.iter().filter(|word| !word.starts_with('-')).map(String::as_str);
    let package = |word: &str| {
        let word = word.rsplit('/').next().unwrap_or(word);
        plain(word.split(['@', '=', '<', '>', '[']).next().unwrap_or(word))
    };
    let name = match stem {
        "npx" | "uvx" | "bunx" | "pipx" | "pnpm" | "npm" | "yarn" | "uv" | "deno" | "bun" => {
            words().find(|word| !matches!(*word, "run" | "exec" | "dlx" | "tool" | "x" | "fastmcp")).map(package)
        }
        "docker" | "podman" => {
            args.iter().rev().find(|word| word.contains('/') && !word.starts_with('-')).map(|word| package(word))
        }
        "python" | "python3" | "py" | "node" => match args.iter().position(|word| word == "-m") {
            Some(at) => args.get(at + 1).map(|module| plain(module)),
            None => words().next().map(|file| name_of_file(Path::new(file))),
        },
        _ => None,
    };
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| plain(stem))
}

impl Entry {
    /// Writes the path of a program that the host would not find: one with windows does not know the `PATH` of shells, and
    /// nobody else a virtual environment that is active here. Returns what has to be said of it.
    pub(super) fn locate(&mut self, host: Host, places: &Places) -> Option<String> {
        let Kind::Stdio { command, args, env, .. } = &mut self.kind else { return None };
        let is_windows = places.system == System::Windows;
        let title = host.title();
        let by_itself = |name: &str| {
            let note = format!("{title} looks for {name} in its own PATH: start it anew when that has changed");
            host.has_windows().then_some(note)
        };
        if let [option, script, ..] = args.as_slice()
            && is_windows
            && command == "cmd"
            && option == "/c"
        {
            return by_itself(script);
        }
        // With placeholders, and with a PATH of its own, it is the host's affair.
        if command.contains(['/', '\\', '$']) || env.iter().any(|(name, _)| name.eq_ignore_ascii_case("PATH")) {
            return None;
        }
        places.variable("PATH")?;
        let Some(path) = places.lasting_program(command) else {
            let place = match places.program(command) {
                Some(_) => "in PATH here only in an environment that is thrown away",
                None => "not in PATH here",
            };
            return Some(format!("{command} is {place}: {title} has to find it"));
        };
        let path = places.absolute(&path.to_string_lossy());
        let is_active = places.environment().is_some_and(|folder| path.starts_with(folder));
        let folder = path.parent().map(Path::to_string_lossy).unwrap_or_default().into_owned();
        if !is_active && (!host.has_windows() || places.is_of_system(&folder)) {
            return None;
        }
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        if is_windows && matches!(ending.as_str(), "cmd" | "bat") {
            return by_itself(command);
        }
        let name = std::mem::replace(command, path.to_string_lossy().into_owned());
        let why = format!("{title} does not look in the folders of your shell");
        let mut note = format!("{name} is written as {command}: {why}");
        if !is_windows && is_found_by_env(&path) {
            // Programs that the script starts may be in any folder of the shell, but not in a relative one.
            let others = places.lasting_folders().filter(|folder| folder.is_absolute());
            let others = others.filter_map(|folder| folder.into_os_string().into_string().ok());
            let system = places.system_folders().iter().map(|folder| (*folder).to_owned());
            let mut folders = vec![folder];
            for folder in others.chain(system) {
                if !folders.contains(&folder) {
                    folders.push(folder);
                }
            }
            env.push(("PATH".to_owned(), folders.join(":")));
            note.push_str("; with a PATH, as it is a script");
        }
        Some(note)
    }
}

/// True for a script whose interpreter is looked for in `PATH`.
fn is_found_by_env(path: &Path) -> bool {
    use std::io::Read as _;
    let mut first = [0; 14];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"#!/usr/bin/env"
}

impl Kind {
    /// Reads an entry in the form of any host.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let value = value.as_object()?;
        let text = |names: &[&str]| names.iter().find_map(|name| value.get(*name)?.as_str().map(str::to_owned));
        if let Some(url) = text(&["url", "serverUrl", "httpUrl", "uri"]) {
            let headers = pairs(value.get("headers").or_else(|| value.get("http_headers")));
            return Some(Self::Http { url, headers });
        }
        // Older versions of Zed have a table as the command.
        let inner = value.get("command").and_then(Value::as_object).unwrap_or(value);
        let command = inner.get("path").filter(|_| inner.len() != value.len() || !value.contains_key("command"));
        let command = command.and_then(Value::as_str).map(str::to_owned).or_else(|| text(&["command", "cmd"]))?;
        let args = inner.get("args").and_then(Value::as_array).into_iter().flatten();
        let args = args.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect();
        let env = pairs(inner.get("env").or_else(|| inner.get("envs")));
        Some(Self::Stdio { command, args, env, cwd: text(&["cwd"]) })
    }

    /// Makes paths absolute that are there from `folder`, or from the folder of the entry itself, as a host starts the
    /// program elsewhere.
    fn stay_at(&mut self, folder: &Path, places: &Places, notes: &mut Vec<String>) {
        let Self::Stdio { command, args, cwd, .. } = self else { return };
        let mut start = folder.to_owned();
        if let Some(cwd) = cwd {
            start = places.absolute_from(folder, cwd);
            if !Path::new(cwd.as_str()).is_absolute() && start.is_dir() {
                let path = start.to_string_lossy().into_owned();
                notes.push(rooted_note(cwd, &path));
                *cwd = path;
            }
        }
        let is_path = command.contains(['/', '\\']);
        for word in is_path.then_some(command).into_iter().chain(args) {
            if let Some(path) = rooted(word, &start, places) {
                notes.push(rooted_note(word, &path));
                *word = path;
            }
        }
    }

    /// True if both mean the same server: the order of variables and headers is nothing.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let sorted = |kind: &Self| {
            let mut kind = kind.clone();
            match &mut kind {
                Self::Stdio { env, .. } => env.sort(),
                Self::Http { headers, .. } => headers.sort(),
            }
            kind
        };
        sorted(self) == sorted(other)
    }

    /// One line for people, without values that are secret.
    pub(super) fn line(&self) -> String {
        match self {
            Self::Http { url, .. } => super::diff::url(url),
            Self::Stdio { command, args, .. } => {
                let words = std::iter::once(command.clone()).chain(super::diff::arguments(args));
                let words: Vec<_> = words.collect();
                let words = words.iter().map(String::as_str);
                shlex::try_join(words.clone()).unwrap_or_else(|_| words.collect::<Vec<_>>().join(" "))
            }
        }
    }
}

/// The texts of a table, with numbers and booleans as texts.
fn pairs(value: Option<&Value>) -> Vec<(String, String)> {
    let all = value.and_then(Value::as_object).into_iter().flatten();
    all.map(|(name, value)| (name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))).collect()
}

/// True if the entry is switched off in itself.
pub(super) fn is_disabled(value: &Value) -> bool {
    let is = |name: &str, wanted: bool| value.get(name).and_then(Value::as_bool) == Some(wanted);
    is("disabled", true) || is("enabled", false)
}

/// A table of texts.
pub(super) fn texts(all: &[(String, String)]) -> Value {
    Value::Object(all.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect::<Map<_, _>>())
}
