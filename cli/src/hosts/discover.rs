//! The servers that hosts have configured.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::edit::{self, Format, Trouble};
use super::entry::{Entry, Kind, is_disabled};
use super::file::Contents;
use super::host::{Host, Source};
use super::places::Places;

/// A server that was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// `None`: that of no host, `mcp.json` of the current folder.
    pub(super) host: Option<Host>,
    pub(super) entry: Entry,
    pub(super) file: PathBuf,
    pub(super) scope: &'static str,
    /// The folder of the project, for what Claude Code keeps for it in the user's file.
    pub(super) project: Option<String>,
    pub(super) is_disabled: bool,
}

/// A file that could not be read, or an entry of one that is no server.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) host: Option<Host>,
    pub(super) file: PathBuf,
    pub(super) line: Option<usize>,
    pub(super) column: Option<usize>,
    pub(super) message: String,
}

/// All servers of these hosts, and what is broken in their files.
pub(super) fn all(hosts: &[Host], places: &Places) -> (Vec<Found>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut seen = BTreeSet::new();
    for host in hosts {
        for source in host.sources(places) {
            // Both editions of VS Code read the same file of a project.
            if source.scope == "project" && *host == Host::VsCodeInsiders && !host.folder(places).is_dir() {
                continue;
            }
            if !seen.insert((source.file.clone(), host.id(), source.root)) {
                continue;
            }
            match read(&source) {
                Ok(None) => {}
                Ok(Some(whole)) => of_file(Some(*host), &source, &whole, places, (&mut found, &mut problems)),
                Err((line, column, message)) => {
                    problems.push(Problem { host: Some(*host), file: source.file, line, column, message });
                }
            }
        }
    }
    (found, problems)
}

/// The servers of `mcp.json` in the current folder, which commands take as a target, and what is wrong with it.
pub(super) fn here(places: &Places) -> (Vec<Found>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let file = places.folder.join("mcp.json");
    let mut source = Source { file, format: Format::Json, root: &["mcpServers"], scope: "folder" };
    match read(&source) {
        Ok(None) => {}
        Ok(Some(whole)) => {
            if whole.get("mcpServers").is_none() {
                source.root = &["servers"];
            }
            of_file(None, &source, &whole, places, (&mut found, &mut problems));
        }
        Err((line, column, message)) => {
            problems.push(Problem { host: None, file: source.file, line, column, message });
        }
    }
    (found, problems)
}

type Fault = (Option<usize>, Option<usize>, String);

fn read(source: &Source) -> Result<Option<Value>, Fault> {
    let plain = |message: String| {
        let prefix = format!("{}: ", source.file.display());
        let message = message.strip_prefix(&prefix).unwrap_or(&message);
        // The rest is about edits.
        let ends = ["; nothing was changed", "; it is left as it is"];
        let message = ends.iter().fold(message, |message, end| message.split(end).next().unwrap_or(message));
        (None, None, message.to_owned())
    };
    let contents = Contents::read(&source.file).map_err(plain)?;
    if !contents.exists() {
        return Ok(None);
    }
    source.format.read(contents.text()).map(Some).map_err(|trouble| match trouble {
        Trouble::Broken { line, column, message } => (Some(line), Some(column), message),
        Trouble::Refused(message) => (None, None, message),
    })
}

fn of_file(
    host: Option<Host>,
    source: &Source,
    whole: &Value,
    places: &Places,
    (found, problems): (&mut Vec<Found>, &mut Vec<Problem>),
) {
    let mut wrong = |message: String| {
        problems.push(Problem { host, file: source.file.clone(), line: None, column: None, message });
    };
    if !whole.is_object() && !whole.is_null() {
        return wrong(format!("the file holds {}, not a table", edit::kind(whole)));
    }
    let names = |value: Option<&Value>| -> BTreeSet<String> {
        let all = value.and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|name| Some(name.as_str()?.to_owned())).collect()
    };
    // Gemini CLI switches servers off by a list beside them.
    let mut off = names(whole.pointer("/mcp/excluded").filter(|_| host == Some(Host::Gemini)));
    if host == Some(Host::ClaudeCode) && source.scope == "project" {
        off.extend(rejected(source.file.parent(), places).iter().flat_map(|value| names(Some(value))));
    }
    // Extensions of these hosts themselves have no command and no URL.
    let has_own = matches!(host, Some(Host::Goose | Host::Zed));
    let mut add = |entries: Option<&Value>, off: &BTreeSet<String>, project: Option<&str>| {
        let Some(entries) = entries.filter(|entries| !entries.is_null()) else { return };
        let Some(all) = entries.as_object() else {
            return wrong(format!("{} is {}, not a table of servers", source.root.join("."), edit::kind(entries)));
        };
        for (name, value) in all {
            let Some(kind) = Kind::read(value) else {
                match value.is_object() {
                    false => wrong(format!("{name:?} is {}, not a server", edit::kind(value))),
                    true if !has_own => wrong(format!("{name:?} has neither a command nor a URL")),
                    true => {}
                }
                continue;
            };
            found.push(Found {
                host,
                entry: Entry { name: name.clone(), kind },
                file: source.file.clone(),
                scope: if project.is_some() { "local" } else { source.scope },
                project: project.map(str::to_owned),
                is_disabled: is_disabled(value) || off.contains(name),
            });
        }
    };
    let entries = source.root.iter().try_fold(whole, |value, name| value.get(name));
    add(entries, &off, None);
    if host == Some(Host::ClaudeCode) && source.scope == "user" {
        for (project, value) in whole.get("projects").and_then(Value::as_object).into_iter().flatten() {
            let off = names(value.get("disabledMcpServers"));
            add(value.get("mcpServers"), &off, Some(project));
        }
    }
}

/// The servers of a project's file that the user said no to, which Claude Code keeps in its own file.
fn rejected(project: Option<&Path>, places: &Places) -> Option<Value> {
    let contents = Contents::read(&Host::ClaudeCode.file(places)).ok()?;
    let whole = Host::ClaudeCode.format().read(contents.text()).ok()?;
    whole.get("projects")?.get(project?.to_str()?)?.get("disabledMcpjsonServers").cloned()
}

/// Owner of the file, for people.
pub(super) fn title(host: Option<Host>) -> &'static str {
    host.map_or("This folder", Host::title)
}

impl Found {
    /// Returns true if a file of the user names it, and not one of a folder, which may be a stranger's.
    pub(super) fn is_of_user(&self) -> bool {
        !matches!(self.scope, "project" | "folder")
    }

    /// The entry with the folder that its host would start it in, as far as anybody knows: the home folder for a program of
    /// the user's own files. In the current one a stranger's modules and programs may be found first.
    pub(super) fn placed(&self, places: &Places) -> Entry {
        let mut entry = self.entry.clone();
        let base = match (&self.project, self.is_of_user()) {
            (Some(project), _) => PathBuf::from(project),
            (None, true) => places.home.clone(),
            (None, false) => self.folder(),
        };
        if let Kind::Stdio { cwd, .. } = &mut entry.kind {
            *cwd = match cwd.take() {
                Some(own) if own.starts_with("${") || own.starts_with('~') => Some(own),
                Some(own) => Some(base.join(own).to_string_lossy().into_owned()),
                None => Some(base.to_string_lossy().into_owned()),
            };
        }
        entry
    }

    /// The folder of a project: the one with the file, or with the folder of its host.
    fn folder(&self) -> PathBuf {
        let folder = self.file.parent().unwrap_or(&self.file);
        let is_of_host = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        folder.parent().filter(|_| is_of_host).unwrap_or(folder).to_owned()
    }

    pub(super) fn json(&self, check: Option<&Result<String, String>>) -> Value {
        let names = |all: &[(String, String)]| all.iter().map(|(name, _)| name.as_str()).collect::<Value>();
        let mut value = json!({
            "host": self.host.map(Host::id),
            "name": self.entry.name,
            "scope": self.scope,
            "file": self.file.to_string_lossy(),
            "enabled": !self.is_disabled,
        });
        if let Some(project) = &self.project {
            value["project"] = project.as_str().into();
        }
        match &self.entry.kind {
            Kind::Stdio { command, args, env, cwd } => {
                value["type"] = "stdio".into();
                value["command"] = command.as_str().into();
                value["args"] = super::diff::arguments(args).into();
                value["env"] = names(env);
                if let Some(cwd) = cwd {
                    value["cwd"] = cwd.as_str().into();
                }
            }
            Kind::Http { url, headers } => {
                value["type"] = "http".into();
                value["url"] = super::diff::url(url).into();
                value["headers"] = names(headers);
            }
        }
        match check {
            Some(Ok(said)) => value["check"] = json!({"ok": true, "message": said}),
            Some(Err(said)) => value["check"] = json!({"ok": false, "message": said}),
            None => {}
        }
        value
    }
}

impl Problem {
    pub(super) fn json(&self) -> Value {
        json!({
            "host": self.host.map(Host::id),
            "file": self.file.to_string_lossy(),
            "line": self.line,
            "column": self.column,
            "message": self.message,
        })
    }

    /// The line for people, with a remedy.
    pub(super) fn warning(&self) -> String {
        format!("{}; it is left as it is, mend it or name other hosts", self.line())
    }

    pub(super) fn line(&self) -> String {
        let number = |number: Option<usize>| number.map(|number| format!(":{number}")).unwrap_or_default();
        format!(
            "{}{}{}: {} ({})",
            self.file.display(),
            number(self.line),
            number(self.column),
            self.message,
            title(self.host)
        )
    }
}
