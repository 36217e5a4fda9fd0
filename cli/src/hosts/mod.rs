//! Servers put into the configurations of hosts, taken out of them, and found there: `install`, `uninstall`, `discover`.
//!
//! A host's file is its user's: only the entry is written, and everything else stays as it was, to the byte. What cannot be
//! read or edited without a risk is left alone, and said.

mod claude_code;
mod diff;
mod discover;
mod edit;
mod entry;
mod file;
mod host;
mod places;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum as _, ValueHint};
use serde_json::{Value, json};

use edit::{Format, Trouble};
use file::{Contents, Lock};

pub use entry::{Entry, Given, Kind};
pub use host::{Host, Scope};
pub use places::{Places, System};

const FAILED: u8 = 1;
const MISUSE: u8 = 2;

/// Tells of each server if it starts: a sentence of what it is, or of what is wrong.
pub type Check<'a> = &'a dyn Fn(&[Entry]) -> Vec<Result<String, String>>;

/// The commands that deal with hosts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Adds a server to the configuration of a host
    ///
    /// Edits the host's own file after a backup, and leaves everything else in it as it is.
    #[command(after_help = "\
A target is one of
  https://example.com/mcp   a URL
  server.py, server.py:app  a file or a package, as for the other commands
  mcp.json#weather          a server of a configuration file
  cursor:weather            a server that another host has
  replay:session.jsonl      a recorded server
  … -- program argument …   a command line, after everything else; one that begins
                            with npx, uvx, docker and the like needs no --

Exit status: 0 done, or it was there already, 1 not done and the file left as it is, 2 misuse

Examples:
  tricorn install cursor server.py
  tricorn install claude-desktop https://example.com/mcp --name example
  tricorn install vscode --env API_KEY='${input:key}' -- npx -y some-server
  tricorn install claude-code mcp.json#weather --scope project --dry-run")]
    Install(Install),
    /// Removes a server from the configuration of a host
    #[command(after_help = "\
Exit status: 0 done, 1 not done and the file left as it is, 2 misuse

Example:
  tricorn uninstall cursor weather")]
    Uninstall(Uninstall),
    /// Lists the servers that hosts have configured, or mcp.json here, and says which start
    ///
    /// Starts or calls each server of the user's files that is not switched off, and with --check those of the current
    /// folder and its projects as well.
    #[command(after_help = "\
Exit status: 0 done, 1 a server does not start, 2 misuse

Examples:
  tricorn discover
  tricorn discover cursor --json
  tricorn discover --no-check")]
    Discover(Discover),
}

/// `tricorn install`
#[derive(Debug, Args)]
pub struct Install {
    /// The program that gets the server
    #[arg(value_enum, ignore_case = true)]
    pub host: Host,
    /// The server: a URL, a file, mcp.json#name or HOST:NAME; left out where a command line follows after --
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub target: Option<String>,
    /// The name that the host shows; default: by the target
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Sets a variable, NAME=VALUE, in the server's environment; the host's file has it as it stands
    #[arg(long, short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub env: Vec<(String, String)>,
    /// Sends an HTTP header, "NAME: VALUE", with every request; the host's file has it as it stands
    #[arg(long, short = 'H', value_name = "HEADER", value_parser = header)]
    pub header: Vec<(String, String)>,
    /// Owner of the file
    #[arg(long, value_enum, default_value_t = Scope::User)]
    pub scope: Scope,
    /// Prints the difference, and changes nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Replaces another server of the same name, and writes for a host that seems not to be installed
    #[arg(long)]
    pub force: bool,
    /// The command line of the server
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl Install {
    /// The part of an entry that the user wrote on the command line, and may see again: not what another file said.
    fn given(&self, value: &Value) -> Value {
        match &self.target {
            Some(target) if !target.contains("://") => {
                json!({"env": entry::texts(&self.env), "headers": entry::texts(&self.header)})
            }
            _ => value.clone(),
        }
    }
}

/// `tricorn uninstall`
#[derive(Debug, Args)]
pub struct Uninstall {
    /// The host
    #[arg(value_enum, ignore_case = true)]
    pub host: Host,
    /// The name of the server in the host
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Owner of the file
    #[arg(long, value_enum, default_value_t = Scope::User)]
    pub scope: Scope,
    /// Prints the difference, and changes nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `tricorn discover`
#[derive(Debug, Args)]
pub struct Discover {
    /// The hosts; else all of them
    #[arg(value_enum, ignore_case = true, value_name = "HOST")]
    pub hosts: Vec<Host>,
    /// Lists the servers without starting them
    #[arg(long)]
    pub no_check: bool,
    /// Starts the servers of the current folder and its projects as well
    #[arg(long, conflicts_with = "no_check")]
    pub check: bool,
    /// Prints JSON
    #[arg(long)]
    pub json: bool,
}

/// Programs that run others, which a command line of a server often begins with.
const RUNNERS: [&str; 16] = [
    "npx", "npm", "pnpm", "yarn", "bunx", "bun", "deno", "node", "uvx", "uv", "pipx", "python", "python3", "py",
    "docker", "podman",
];

/// True for the name of a program that runs others, if it is not that of a file here.
pub(crate) fn is_runner(word: &str) -> bool {
    RUNNERS.contains(&word) && !Path::new(word).exists()
}

/// Puts `--` before the command line that the arguments of `install` end with, where a program that runs others stands in
/// the place of the target.
pub(crate) fn with_dashes(mut arguments: Vec<OsString>) -> Result<Vec<OsString>, String> {
    // Options with a value, which is the next word if they are of this length.
    const VALUED: [&str; 6] = ["--name", "--env", "--header", "--scope", "-e", "-H"];
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (mut at, mut places) = (0, 0);
    while let Some(word) = words.get(at).filter(|word| *word != "--") {
        if word.starts_with('-') {
            at += if VALUED.contains(&word.as_str()) { 2 } else { 1 };
            continue;
        }
        // After the name of the command and the host.
        if places == 2 {
            break;
        }
        (places, at) = (places + 1, at + 1);
    }
    let Some((program, rest)) = words.get(at..).and_then(<[String]>::split_first) else { return Ok(arguments) };
    if !is_runner(program) || rest.is_empty() || rest.iter().any(|word| word == "--") {
        return Ok(arguments);
    }
    let is_container = matches!(program.as_str(), "docker" | "podman");
    let is_own = |word: &&String| {
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        matches!(name, "--dry-run" | "--force") || (VALUED.contains(&name) && (name == "--scope" || !is_container))
    };
    if let Some(word) = rest.iter().find(is_own) {
        return Err(format!(
            "{word} stands after {program}: give it before, or -- before {program} if it is meant for that"
        ));
    }
    arguments.insert(at, "--".into());
    Ok(arguments)
}

fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    parts.map(|(name, value)| (name.to_owned(), value.to_owned())).ok_or_else(|| "expected NAME=VALUE".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').filter(|(name, _)| !name.trim().is_empty() && !name.contains(char::is_whitespace));
    let (name, value) = parts.ok_or("expected \"NAME: VALUE\"")?;
    if value.chars().any(|letter| letter.is_control() && letter != '\t') {
        return Err("a header is one line".to_owned());
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// Does what the command says, and gives the status to end with: 0, 1 where it was not done, 2 for misuse.
///
/// The answer goes to `out`, everything else to `err`. Without `check` no server is started, and `--check` is misuse.
pub fn run(
    command: &Command,
    places: &Places,
    check: Option<Check<'_>>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let mut said = Said { out, err };
    let done = match command {
        Command::Install(install) => said.install(install, places),
        Command::Uninstall(uninstall) => said.uninstall(uninstall, places),
        Command::Discover(discover) => said.discover(discover, places, check),
    };
    match done {
        Ok(status) => status,
        Err(Failure { status, message }) => {
            said.tell(&format!("error: {message}"));
            status
        }
    }
}

/// The server that `host:name` means, as it is configured there.
///
/// # Errors
///
/// A sentence, with the names that come near.
pub fn find(name: &str, places: &Places) -> Result<Entry, String> {
    let (host, name) = named_host(name).ok_or_else(|| {
        let hosts: Vec<_> = Host::value_variants().iter().map(|host| host.id()).collect();
        format!("{name}: expected HOST:NAME, with one of {}", hosts.join(", "))
    })?;
    let (found, problems) = discover::all(&[host], places);
    let same = || found.iter().filter(|found| found.entry.name == name);
    if let Some(found) = same().find(|found| !found.is_disabled).or_else(|| same().next()) {
        return Ok(found.entry.clone());
    }
    let names = found.iter().map(|found| found.entry.name.as_str());
    let broken = problems.first().map(|problem| format!("; {}", problem.line())).unwrap_or_default();
    Err(format!("{} has no server \"{name}\"{}{broken}", host.title(), nearest(name, names)))
}

/// True for `host:name` with a known host.
#[must_use]
pub fn is_of_host(text: &str) -> bool {
    named_host(text).is_some()
}

/// The parts of `host:name`.
fn named_host(text: &str) -> Option<(Host, &str)> {
    let (host, name) = text.split_once(':')?;
    Some((Host::from_str(host, true).ok()?, name))
}

/// The names that come near, else all, as the end of a sentence.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names.dedup();
    let mut near = tricorn::bridge::meant(name, &names);
    near.truncate(3);
    let text = match (near.as_slice(), names.as_slice()) {
        (_, []) => "; it has none".to_owned(),
        ([], all) if all.len() <= 10 => format!("; it has {}", all.join(", ")),
        ([], all) => format!("; it has {} others", all.len()),
        (near, _) => format!("; did you mean {}?", near.join(" or ")),
    };
    diff::shown(&text)
}

struct Failure {
    status: u8,
    message: String,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { status: FAILED, message }
    }
}

fn misuse(message: String) -> Failure {
    Failure { status: MISUSE, message }
}

type Outcome<T> = Result<T, Failure>;

impl Trouble {
    /// The sentence about a file.
    fn at(&self, path: &Path) -> String {
        match self {
            Self::Broken { line, column, message } => format!("{}:{line}:{column}: {message}", path.display()),
            Self::Refused(why) => format!("{}: {why}", path.display()),
        }
    }
}

/// The file that an entry goes into, and the names on the way.
struct Place {
    host: Host,
    scope: Scope,
    path: PathBuf,
    format: Format,
    root: &'static str,
}

impl Place {
    fn of(host: Host, scope: Scope, places: &Places) -> Outcome<Self> {
        let path = match scope {
            Scope::User => host.file(places),
            Scope::Project => match host.project_file() {
                Some(file) => places.folder.join(file),
                None => {
                    return Err(misuse(format!(
                        "{} has no file for a project; leave out --scope project",
                        host.title()
                    )));
                }
            },
        };
        Ok(Self { host, scope, path, format: host.format(), root: host.root() })
    }

    /// Says no where the host was never there.
    fn check_installed(&self, places: &Places) -> Outcome<()> {
        let mut folder = self.host.folder(places);
        if self.is_claude_codes() && folder == places.home {
            // The home of the user is there without it.
            folder.push(".claude");
        }
        if self.scope == Scope::Project || folder.is_dir() || self.path.is_file() {
            return Ok(());
        }
        let title = self.host.title();
        let missing = if self.is_claude_codes() { &self.path } else { &folder };
        Err(format!("{title} seems not to be installed: there is no {}; --force creates it", missing.display()).into())
    }

    /// True for the file that sessions of Claude Code write, too.
    fn is_claude_codes(&self) -> bool {
        self.host == Host::ClaudeCode && self.scope == Scope::User
    }

    /// Waits until no other command edits the file. A dry run has no need to.
    fn lock(&self, is_dry: bool) -> Outcome<Option<Lock>> {
        if is_dry { Ok(None) } else { Ok(Lock::of(&self.path)?) }
    }

    fn left(&self, trouble: &Trouble) -> String {
        let what = match trouble {
            Trouble::Broken { .. } => "mend it first",
            Trouble::Refused(_) => "edit it by hand",
        };
        format!("{}; the file is left as it is: {what}", trouble.at(&self.path))
    }
}

/// The two ways to say something.
struct Said<'a> {
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
}

impl Said<'_> {
    /// Writes a line of the answer; one that nobody reads is no failure.
    fn answer(&mut self, line: &str) {
        let _gone = writeln!(self.out, "{line}");
    }

    fn tell(&mut self, line: &str) {
        let _gone = writeln!(self.err, "{}", diff::shown(line));
    }

    fn install(&mut self, install: &Install, places: &Places) -> Outcome<u8> {
        let given = Given {
            target: install.target.as_deref(),
            command: &install.command,
            name: install.name.as_deref(),
            env: &install.env,
            headers: &install.header,
        };
        let host = install.host;
        let (mut entry, mut notes) = Entry::from_given(&given, places).map_err(misuse)?;
        host.check_name(&entry.name).map_err(misuse)?;
        // The file of a project is of many machines.
        if install.scope == Scope::User {
            notes.extend(entry.locate(host, places));
        }
        notes.iter().for_each(|note| self.tell(&format!("note: {note}")));
        let (value, note) = host.value(&entry, places)?;
        if let Some(note) = note {
            self.tell(&format!("note: {note}"));
        }
        let place = Place::of(host, install.scope, places)?;
        if place.is_claude_codes() && places.program("claude").is_some() {
            return self.add_to_claude_code(install, &entry, &value, &place, places);
        }
        if !install.force {
            place.check_installed(places)?;
        }
        let _turn = place.lock(install.dry_run)?;
        let contents = Contents::read(&place.path)?;
        let entries = place.format.entries(contents.text(), place.root).map_err(|trouble| place.left(&trouble))?;
        let key = host.key(&entry.name);
        let quoted = format!("\"{}\"", entry.name);
        if let Some(old) = entries.get(&key).filter(|old| is_same(old, &value)) {
            let off = if entry::is_disabled(old) { ", but switched off there" } else { "" };
            self.answer(&format!("{quoted} is already installed in {}{off}: {}", host.title(), place.path.display()));
            return Ok(0);
        }
        let text = match place.format.put(contents.text(), place.root, &key, &value) {
            Ok(text) => text,
            Err(trouble) => {
                let example = place.format.example(place.root, &key, &value);
                return Err(format!("{}. What belongs into it:\n{}", place.left(&trouble), example.trim_end()).into());
            }
        };
        let known: Vec<_> = entries.values().chain([&value]).cloned().collect();
        let given = install.given(&value);
        let diff = || diff::unified(&place.path.display().to_string(), contents.text(), &text, &known, &given);
        if entries.contains_key(&key) && !install.force {
            let _gone = write!(self.err, "{}", diff());
            let title = host.title();
            return Err(format!(
                "{title} has another server {quoted}; --force replaces it, --name gives this one another name"
            )
            .into());
        }
        self.warn_of_comments(&place, &contents);
        self.warn_of_sessions(&place);
        if install.dry_run {
            let _gone = write!(self.out, "{}", diff());
            return Ok(0);
        }
        let backup = contents.write(&text, places.now, install.scope == Scope::User)?;
        self.answer(&format!("Installed {quoted} in {}: {}", host.title(), place.path.display()));
        self.ended(host, backup.as_deref());
        Ok(0)
    }

    fn uninstall(&mut self, uninstall: &Uninstall, places: &Places) -> Outcome<u8> {
        let (host, name) = (uninstall.host, &uninstall.name);
        let place = Place::of(host, uninstall.scope, places)?;
        let is_own = place.is_claude_codes() && places.program("claude").is_some();
        let _turn = place.lock(uninstall.dry_run || is_own || !place.path.exists())?;
        let contents = Contents::read(&place.path)?;
        if !contents.exists() {
            return Err(
                format!("{} has no server \"{name}\": there is no {}", host.title(), place.path.display()).into()
            );
        }
        let entries = place.format.entries(contents.text(), place.root).map_err(|trouble| place.left(&trouble))?;
        let key = if entries.contains_key(name) { name.clone() } else { host.key(name) };
        let Some(old) = entries.get(&key) else {
            let near = nearest(name, entries.keys().map(String::as_str));
            return Err(format!("{} has no server \"{name}\" in {}{near}", host.title(), place.path.display()).into());
        };
        if is_own {
            return self.remove_from_claude_code(uninstall, &place, places);
        }
        self.warn_of_sessions(&place);
        let without = place.format.take(contents.text(), place.root, &key).map_err(|trouble| place.left(&trouble))?;
        // A file that is what it was and our entry becomes what it was, down to an empty one.
        let undone = contents.backups().into_iter().find(|older| {
            let lacks = place.format.entries(older, place.root).is_ok_and(|entries| !entries.contains_key(&key));
            lacks && place.format.put(older, place.root, &key, old).is_ok_and(|text| text == contents.text())
        });
        let text = undone.unwrap_or(without);
        if uninstall.dry_run {
            let known: Vec<_> = entries.values().cloned().collect();
            let path = place.path.display().to_string();
            let _gone = write!(self.out, "{}", diff::unified(&path, contents.text(), &text, &known, &Value::Null));
            return Ok(0);
        }
        let backup = contents.write(&text, places.now, uninstall.scope == Scope::User)?;
        self.answer(&format!("Removed \"{name}\" from {}: {}", host.title(), place.path.display()));
        self.ended(host, backup.as_deref());
        Ok(0)
    }

    fn ended(&mut self, host: Host, backup: Option<&Path>) {
        if let Some(backup) = backup {
            self.tell(&format!("note: the file as it was: {}", backup.display()));
        }
        if let Some(hint) = host.hint() {
            self.tell(&format!("note: {hint}"));
        }
    }

    /// Says that the host will not read the file, and was not going to.
    fn warn_of_comments(&mut self, place: &Place, contents: &Contents) {
        if !place.host.is_strict() || contents.text().trim().is_empty() {
            return;
        }
        let title = place.host.title();
        let path = place.path.display();
        if contents.whole().starts_with('\u{feff}') {
            self.tell(&format!("warning: {path} begins with a byte order mark, which {title} does not read"));
        } else if let Err(error) = serde_json::from_str::<Value>(contents.text()) {
            let at = format!("{}:{}", error.line(), error.column());
            self.tell(&format!("warning: {path}:{at}: {title} reads neither comments nor commas at the end"));
        }
    }

    /// Says that Claude Code may undo what is done without its own command.
    fn warn_of_sessions(&mut self, place: &Place) {
        if place.is_claude_codes() {
            let path = place.path.display();
            let what = "a session of Claude Code that is running may write over it: restart that session";
            self.tell(&format!("warning: claude is not in PATH, so {path} itself is edited; {what}"));
        }
    }

    fn discover(&mut self, discover: &Discover, places: &Places, check: Option<Check<'_>>) -> Outcome<u8> {
        if discover.check && check.is_none() {
            return Err(misuse("--check is not to be had here".to_owned()));
        }
        let check = check.filter(|_| !discover.no_check);
        let hosts = if discover.hosts.is_empty() { Host::value_variants() } else { &discover.hosts };
        let (mut found, mut problems) = discover::all(hosts, places);
        if discover.hosts.is_empty() {
            let (mut others, wrong) = discover::here(places);
            // A host's own folder may be the current one.
            others.retain(|other| found.iter().all(|known| known.file != other.file));
            found.extend(others);
            problems.extend(wrong);
        }
        let is_started = |found: &discover::Found| !found.is_disabled && (discover.check || found.is_of_user());
        let results = check.map_or_else(|| vec![None; found.len()], |check| checked(&found, is_started, places, check));
        let is_left =
            |(found, result): (&discover::Found, &Option<_>)| check.is_some() && result.is_none() && !found.is_disabled;
        let status = if results.iter().flatten().all(Result::is_ok) { 0 } else { FAILED };
        if discover.json {
            let servers: Vec<_> =
                found.iter().zip(&results).map(|(found, result)| found.json(result.as_ref())).collect();
            let problems: Vec<_> = problems.iter().map(discover::Problem::json).collect();
            self.answer(&format!("{:#}", json!({"servers": servers, "problems": problems})));
            return Ok(status);
        }
        problems.iter().for_each(|problem| self.tell(&format!("warning: {}", problem.warning())));
        if found.is_empty() {
            self.tell("note: neither a host nor mcp.json here has a server configured");
        }
        self.table(&found, &results);
        if found.iter().zip(&results).any(is_left) {
            self.tell("note: servers that files of this folder name were not started; --check starts them as well");
        }
        Ok(status)
    }

    /// Lists servers for people, below the files that have them.
    fn table(&mut self, found: &[discover::Found], results: &[Option<Result<String, String>>]) {
        let mut heading = None;
        let names = found.iter().map(|found| unicode_width::UnicodeWidthStr::width(found.entry.name.as_str()));
        let width = names.max().unwrap_or_default().min(32);
        for (found, result) in found.iter().zip(results) {
            let next = (found.host, &found.file, &found.project);
            if heading != Some(next) {
                let gap = if heading.is_some() { "\n" } else { "" };
                let scope = match &found.project {
                    Some(project) => format!(" ({})", diff::one_line(project)),
                    None if matches!(found.scope, "user" | "folder") => String::new(),
                    None => format!(" ({})", found.scope),
                };
                let file = diff::one_line(&found.file.display().to_string());
                self.answer(&format!("{gap}{}{}: {file}", discover::title(found.host), scope));
                heading = Some(next);
            }
            let name = diff::one_line(&found.entry.name);
            let blanks = " ".repeat(width.saturating_sub(unicode_width::UnicodeWidthStr::width(name.as_str())));
            let off = if found.is_disabled { "  (disabled)" } else { "" };
            self.answer(&format!("  {name}{blanks}  {}{off}", diff::one_line(&found.entry.kind.line())));
            match result {
                Some(Ok(said)) => self.answer(&format!("  {}  ok: {}", " ".repeat(width), diff::one_line(said))),
                Some(Err(said)) => self.answer(&format!("  {}  failed: {}", " ".repeat(width), diff::one_line(said))),
                None => {}
            }
        }
    }
}

/// Checks servers, those that several files have once.
fn checked(
    found: &[discover::Found],
    is_started: impl Fn(&discover::Found) -> bool,
    places: &Places,
    check: Check<'_>,
) -> Vec<Option<Result<String, String>>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut place = |found: &discover::Found| {
        if !is_started(found) {
            return None;
        }
        let placed = found.placed(places);
        let known = entries.iter().position(|entry| *entry == placed);
        known.or_else(|| {
            entries.push(placed);
            Some(entries.len() - 1)
        })
    };
    let all: Vec<_> = found.iter().map(&mut place).collect();
    let results = check(&entries);
    all.into_iter().map(|at| results.get(at?).cloned()).collect()
}

/// True if an entry of a file means what would be written.
fn is_same(old: &Value, new: &Value) -> bool {
    match (Kind::read(old), Kind::read(new)) {
        (Some(old), Some(new)) => old.is_same(&new),
        _ => false,
    }
}
