//! Who takes part, and how each is started.

use super::check::{Call, Said};
use crate::place::{self, Lang};
use crate::process::{self, Background};
use crate::setup::Peers;
use crate::tool;
use anyhow::Result;
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
    PythonSdk,
    TypeScriptSdk,
    RustSdk,
}

pub(super) const PEERS: [Party; 3] = [Party::PythonSdk, Party::TypeScriptSdk, Party::RustSdk];

impl Party {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours(lang) => lang.name(),
            Self::PythonSdk => "mcp (PyPI)",
            Self::TypeScriptSdk => "@modelcontextprotocol (npm)",
            Self::RustSdk => "rmcp (crates)",
        }
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

/// How a peer's program starts: `server` or `client`.
fn theirs(party: Party, which: &str, peers: &Peers) -> Vec<String> {
    let ours = |file: String| path(place::root().join("tests/interop").join(file));
    match party {
        Party::PythonSdk => vec![path(peers.python_sdk.join("python")), ours(format!("python/{which}.py"))],
        Party::TypeScriptSdk => vec!["node".to_owned(), path(peers.npm_sdk.join(format!("{which}.mjs")))],
        Party::RustSdk => vec![path(peers.rmcp.join(format!("rmcp-{which}")))],
        Party::Ours(_) => Vec::new(),
    }
}

/// A server program.
pub(super) struct Server {
    pub(super) party: Party,
    words: Vec<String>,
}

impl Server {
    pub(super) fn ours(lang: Lang) -> Self {
        let run = place::root().join(format!("examples/everything/{lang}/run"));
        Self { party: Party::Ours(lang), words: vec![path(run)] }
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

/// Where a client goes.
#[derive(Clone)]
pub(crate) enum Target {
    Url(String),
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

    /// Connects, lists, calls; what it reported, or why there is none.
    pub(crate) fn call(&self, target: &Target, revision: Option<&str>, calls: &[Call]) -> Result<Said, String> {
        let mut command = command(&self.words);
        command.arg(match (target, self.party) {
            (Target::Url(url), _) => url.clone(),
            // Ours takes one command line, which it splits as a shell would.
            (Target::Words(words), Party::Ours(_)) => {
                words.iter().map(|w| process::quote(w)).collect::<Vec<_>>().join(" ")
            }
            (Target::Words(words), _) => serde_json::json!(words).to_string(),
        });
        if let Some(revision) = revision {
            command.args(["--revision", revision]);
        }
        for call in calls {
            command.arg(&call.name).arg(call.arguments.to_string());
        }
        let done = process::run_with(command, CLIENT_LIMIT, None, |_| {}).map_err(|e| format!("{e:#}"))?;
        if !done.ok() {
            return Err(done.why());
        }
        let line = done.stdout.lines().rfind(|l| l.starts_with('{')).unwrap_or_default();
        serde_json::from_str(line).map_err(|e| format!("no report ({e}): {line:.200}"))
    }
}
