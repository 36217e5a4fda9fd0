//! Parties of the meetings, and the way to start each of them.

use super::check::{Call, Said};
use crate::place::{self, Lang};
use crate::process::{self, Background};
use crate::setup::{self, Peers};
use crate::tool;
use anyhow::Result;
use serde_json::{Value, json};
use std::fmt;
use std::process::Command;
use std::time::Duration;

/// A client has to list, call and leave within this.
const CLIENT_LIMIT: Duration = Duration::from_secs(60);
const SERVER_LIMIT: Duration = Duration::from_secs(60);

/// Ours by language, or one of the official SDKs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    Ours(Lang),
    Python,
    PythonBefore2,
    TypeScript,
    TypeScriptBefore2,
    Rust,
}

pub(super) const PEERS: [Party; 5] =
    [Party::Python, Party::PythonBefore2, Party::TypeScript, Party::TypeScriptBefore2, Party::Rust];

impl Party {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours(lang) => lang.name(),
            Self::Python => "mcp (PyPI)",
            Self::PythonBefore2 => "mcp 1.x (PyPI)",
            Self::TypeScript => "sdk (npm)",
            Self::TypeScriptBefore2 => "sdk 1.x (npm)",
            Self::Rust => "rmcp (crates)",
        }
    }

    /// The version that is pinned; ours has none.
    pub(super) fn version(self) -> Result<String> {
        setup::pinned(match self {
            Self::Ours(_) => "",
            Self::Python => "mcp",
            Self::PythonBefore2 => "mcp 1",
            Self::TypeScript => "@modelcontextprotocol/server",
            Self::TypeScriptBefore2 => "@modelcontextprotocol/sdk",
            Self::Rust => "rmcp",
        })
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn path(path: std::path::PathBuf) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns the command of a peer's program: `server` or `client`.
fn theirs(party: Party, which: &str, peers: &Peers) -> Vec<String> {
    let python = |bin: &std::path::Path, file: String| {
        vec![path(bin.join("python")), path(place::root().join("tests/interop/python").join(file))]
    };
    match party {
        Party::Python => python(&peers.python_sdk, format!("{which}.py")),
        Party::PythonBefore2 => python(&peers.python_sdk1, format!("{which}1.py")),
        Party::TypeScript => vec!["node".to_owned(), path(peers.npm_sdk.join(format!("{which}.mjs")))],
        Party::TypeScriptBefore2 => vec!["node".to_owned(), path(peers.npm_sdk1.join(format!("{which}1.mjs")))],
        Party::Rust => vec![path(peers.rmcp.join(format!("rmcp-{which}")))],
        Party::Ours(_) => Vec::new(),
    }
}

/// Settings of our fixture servers, so that they can be met everywhere and have everything that is tried.
const SETTINGS: [(&str, &str); 5] = [
    ("EVERYTHING_SSE", "yes"),
    ("EVERYTHING_SSE_RETRY", "0.05"),
    ("EVERYTHING_ALLOWED_HOSTS", "*"),
    ("EVERYTHING_CACHE", r#"{"tools":{"ttl":60,"scope":"public"}}"#),
    ("EVERYTHING_TASKS", "60"),
];

/// A server program.
pub(super) struct Server {
    pub(super) party: Party,
    words: Vec<String>,
}

impl Server {
    pub(super) fn ours(lang: Lang) -> Self {
        // Of stdio the client starts it, which may not pass on an environment.
        let settings = SETTINGS.iter().map(|(name, value)| format!("{name}={value}"));
        let run = path(place::root().join(format!("examples/everything/{lang}/run")));
        Self {
            party: Party::Ours(lang),
            words: std::iter::once("env".to_owned()).chain(settings).chain([run]).collect(),
        }
    }

    pub(super) fn theirs(party: Party, peers: &Peers) -> Self {
        Self { party, words: theirs(party, "server", peers) }
    }

    /// The command line that serves stdio.
    pub(super) fn stdio(&self) -> Vec<String> {
        let mut words = self.words.clone();
        words.push("--stdio".to_owned());
        words
    }

    /// Starts it on a free port.
    pub(super) fn serve(&self) -> Result<(Background, String)> {
        let mut command = command(&self.words);
        command.args(["--http", "127.0.0.1:0"]);
        Background::start(command, SERVER_LIMIT, |line| line.strip_prefix("ready ").map(str::to_owned))
    }
}

fn command(words: &[String]) -> Command {
    let mut command = tool::command(words.first().map_or("", String::as_str));
    command.args(words.get(1..).unwrap_or_default());
    command
}

/// Target of a client.
#[derive(Clone)]
pub(crate) enum Target {
    Url(String),
    /// The stream of HTTP+SSE.
    Sse(String),
    /// There by a proxy with these rules.
    Cut(String, Value),
    Words(Vec<String>),
}

/// A client program.
pub(crate) struct Client {
    pub(crate) party: Party,
    words: Vec<String>,
}

impl Client {
    pub(crate) fn ours(lang: Lang) -> Self {
        let run = place::root().join(format!("tests/interop/ours/{lang}/run"));
        Self { party: Party::Ours(lang), words: vec![path(run)] }
    }

    pub(super) fn theirs(party: Party, peers: &Peers) -> Self {
        Self { party, words: theirs(party, "client", peers) }
    }

    /// Connects, lists the tools, calls; what it reported, or why there is none.
    pub(crate) fn call(&self, target: &Target, revision: Option<&str>, calls: &[Call]) -> Result<Said, String> {
        let steps = std::iter::once(json!({ "do": "tools" })).chain(calls.iter().map(Call::step));
        self.play(target, revision, &json!({ "elicitation": {}, "roots": [] }), &steps.collect::<Vec<_>>())
    }

    /// Connects and does these steps; what it reported, or why there is no report.
    pub(super) fn play(
        &self,
        target: &Target,
        revision: Option<&str>,
        answers: &Value,
        steps: &[Value],
    ) -> Result<Said, String> {
        let (place, sse) = match target {
            Target::Url(url) => (json!(url), false),
            Target::Sse(url) => (json!(url), true),
            Target::Cut(..) => (json!("{proxy}"), false),
            Target::Words(words) => (json!(words), false),
        };
        let plan = json!({ "target": place, "sse": sse, "revision": revision, "answers": answers, "steps": steps });
        let mut words = self.words.clone();
        words.push(plan.to_string());
        if let Target::Cut(url, rules) = target {
            let proxy = [path(place::built("contract")), "proxy".to_owned(), rules.to_string(), url.clone()];
            words = proxy.into_iter().chain(words).collect();
        }
        let done = process::run_with(command(&words), CLIENT_LIMIT, None, |_| {}).map_err(|e| format!("{e:#}"))?;
        if !done.ok() {
            return Err(done.why());
        }
        let line = done.stdout.lines().rfind(|l| l.starts_with('{')).unwrap_or_default();
        serde_json::from_str(line).map_err(|e| format!("no report ({e}): {line:.200}"))
    }
}
