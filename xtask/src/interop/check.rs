//! What is called, and what has to come back.

use crate::{place, process, tool};
use anyhow::{Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// One `tools/call`.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Call {
    pub(super) fn new(name: &str, arguments: Value) -> Self {
        Self { name: name.to_owned(), arguments }
    }
}

/// What a client reports.
#[derive(Debug, Deserialize)]
pub(crate) struct Said {
    #[serde(rename = "protocolVersion")]
    pub(crate) protocol_version: String,
    pub(crate) tools: Vec<String>,
    pub(crate) calls: Vec<Answer>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) error: bool,
    pub(crate) text: String,
    pub(crate) types: Vec<String>,
    pub(crate) structured: Option<Value>,
}

/// Text that every encoding on the way has to leave alone.
const ECHOED: &str = "caf\u{e9} \u{1f980} \"quoted\" \\ line\nnext\ttab";

/// The calls made against every fixture server.
pub(super) static FIXTURE_CALLS: LazyLock<Vec<Call>> = LazyLock::new(|| {
    vec![
        Call::new("add", json!({ "a": 2, "b": 40 })),
        Call::new("echo", json!({ "text": ECHOED })),
        Call::new("structured", json!({ "city": "Oslo" })),
        Call::new("fail", json!({ "kind": "tool" })),
    ]
});

/// Checks the answers to [`FIXTURE_CALLS`].
pub(super) fn fixture(said: &Said, revision: &str) -> Result<(), String> {
    if said.protocol_version != revision {
        return Err(format!("{} was negotiated", said.protocol_version));
    }
    for name in ["add", "echo", "structured", "fail"] {
        if !said.tools.iter().any(|t| t == name) {
            return Err(format!("{name} is not among the tools {:?}", said.tools));
        }
    }
    let [add, echo, structured, fail] = said.calls.as_slice() else {
        return Err(format!("{} calls were answered, not 4", said.calls.len()));
    };
    let weather = json!({ "city": "Oslo", "temperature": 22.5, "conditions": "sunny" });
    let all = [
        ("add", !add.error && add.text == "42", add),
        ("echo", !echo.error && echo.text == ECHOED && echo.types == ["text"], echo),
        ("structured", !structured.error && structured.structured.as_ref() == Some(&weather), structured),
        ("fail", fail.error && fail.text.contains("the tool says no"), fail),
    ];
    match all.iter().find(|(_, good, _)| !good) {
        Some((name, _, answer)) => Err(format!("{name} answered {answer:?}")),
        None => Ok(()),
    }
}

/// What a published server has to answer.
pub(super) struct Expect {
    texts: Vec<&'static str>,
}

impl Expect {
    /// Each call's text contains this.
    pub(super) fn texts(texts: &[&'static str]) -> Self {
        Self { texts: texts.to_vec() }
    }

    pub(super) fn check(&self, said: &Said) -> Result<(), String> {
        if said.tools.is_empty() {
            return Err("no tools".to_owned());
        }
        if said.calls.len() != self.texts.len() {
            return Err(format!("{} of {} calls were answered", said.calls.len(), self.texts.len()));
        }
        let wrong = said.calls.iter().zip(&self.texts).find(|(a, want)| a.error || !a.text.contains(**want));
        match wrong {
            Some((answer, want)) => Err(format!("{want:?} is not in {answer:?}")),
            None => Ok(()),
        }
    }
}

/// A small repository with one file, for the servers that read files and history.
pub(super) fn playground() -> Result<PathBuf> {
    let dir = place::target("interop/playground");
    if dir.join(".git/HEAD").is_file() && dir.join("hello.txt").is_file() {
        return Ok(dir);
    }
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join("hello.txt"), "hello, file\n")?;
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "hello.txt"],
        &["-c", "user.name=Tricorn", "-c", "user.email=tricorn@example.com", "commit", "--quiet", "-m", "Say hello"],
    ] {
        let mut command = tool::command("git");
        command.args(args).current_dir(&dir);
        let done = process::run_with(command, Duration::from_secs(60), None, |_| {})?;
        if !done.ok() {
            bail!("git {}: {}", args[0], done.why());
        }
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(add: &str, version: &str) -> Said {
        let text = json!({
            "protocolVersion": version,
            "tools": ["add", "echo", "structured", "fail", "more"],
            "calls": [
                { "error": false, "text": add, "types": ["text"], "structured": 42 },
                { "error": false, "text": ECHOED, "types": ["text"], "structured": null },
                { "error": false, "text": "{}", "types": ["text"],
                  "structured": { "conditions": "sunny", "temperature": 22.5, "city": "Oslo" } },
                { "error": true, "text": "Error: the tool says no", "types": ["text"], "structured": null },
            ],
        });
        serde_json::from_value(text).expect("a report")
    }

    #[test]
    fn the_fixture_answers_are_checked() {
        assert_eq!(fixture(&said("42", "2026-07-28"), "2026-07-28"), Ok(()));
        let wrong = fixture(&said("41", "2026-07-28"), "2026-07-28");
        assert!(wrong.is_err_and(|e| e.starts_with("add answered")));
        let older = fixture(&said("42", "2025-11-25"), "2026-07-28");
        assert_eq!(older, Err("2025-11-25 was negotiated".to_owned()));
    }

    #[test]
    fn a_published_server_has_to_answer_every_call() {
        let good = Expect::texts(&["42", "caf", "", "no"]);
        assert!(good.check(&said("42", "")).is_err(), "an answer that is an error");
        assert!(Expect::texts(&["42"]).check(&said("42", "")).is_err(), "too many answers");
    }
}
