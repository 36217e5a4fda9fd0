//! Steps of the features, and the answers that have to come back: `tests/interop/features.json`.

use crate::{place, process, tool};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Kind of a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// Negotiated newest first.
    Modern,
    /// With a handshake.
    Legacy,
    /// The oldest transport.
    Sse,
    /// Behind a proxy that cuts connections.
    Cut,
}

/// The features and what is known not to be there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) answers: Value,
    features: Vec<Feature>,
    pub(super) exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    name: String,
    on: Vec<Kind>,
    #[serde(default)]
    rules: Vec<Value>,
    steps: Vec<Value>,
}

/// Exception for an SDK of this version that lacks a feature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exception {
    pub(super) client: Option<String>,
    pub(super) server: Option<String>,
    /// The version that it is true of: another one has to be looked at anew.
    pub(super) version: String,
    pub(super) on: Vec<Kind>,
    /// These are done and have to fail; without them the pair does not meet there at all.
    #[serde(default)]
    pub(super) features: Vec<String>,
    pub(super) why: String,
}

impl Exception {
    /// Returns the reason why a pair does not meet, for the reader of a summary.
    pub(super) fn reason(&self) -> String {
        let name = |name: &Option<String>, side: &str| name.as_ref().map(|name| format!("{side} {name}"));
        let name = name(&self.client, "client").or_else(|| name(&self.server, "server")).unwrap_or_default();
        format!("{name} {}: {}", self.version, self.why)
    }
}

impl Plan {
    pub(super) fn read() -> Result<Self> {
        let path = place::root().join("tests/interop/features.json");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| place::short(&path))
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Feature> {
        // HTTP+SSE has what the handshake revisions have.
        let like = if kind == Kind::Sse { Kind::Legacy } else { kind };
        self.features.iter().filter(move |feature| feature.on.contains(&like))
    }

    /// Returns the steps of a client.
    pub(super) fn steps(&self, kind: Kind) -> Vec<Value> {
        self.of(kind).flat_map(|feature| &feature.steps).cloned().map(without_expect).collect()
    }

    /// Returns the rules of the proxy.
    pub(super) fn rules(&self, kind: Kind) -> Vec<Value> {
        self.of(kind).flat_map(|feature| &feature.rules).cloned().collect()
    }

    /// The features that failed, with the reason.
    pub(super) fn failures(&self, kind: Kind, said: &Said) -> Vec<(&str, String)> {
        let mut answers = said.steps.iter();
        let mut failures = Vec::new();
        for feature in self.of(kind) {
            // All of its steps are taken from the answers, also after the first that failed.
            let wrong: Vec<String> =
                feature.steps.iter().filter_map(|step| wrong(step, answers.next()).err()).collect();
            if let Some(first) = wrong.into_iter().next() {
                failures.push((feature.name.as_str(), first));
            }
        }
        failures
    }

    /// The exceptions for a pair.
    pub(super) fn exceptions(&self, client: &str, server: &str, kind: Kind) -> Vec<&Exception> {
        let named = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
        let fits = |e: &&Exception| named(&e.client, client) && named(&e.server, server) && e.on.contains(&kind);
        self.exceptions.iter().filter(fits).collect()
    }
}

fn without_expect(mut step: Value) -> Value {
    if let Some(members) = step.as_object_mut() {
        members.remove("expect");
    }
    step
}

fn wrong(step: &Value, answer: Option<&Step>) -> Result<(), String> {
    let what = format!("{} {}", text(&step["do"]), text(&step["name"]));
    match answer {
        None => Err(format!("{}: no answer", what.trim())),
        Some(Step::Error(error)) => Err(format!("{}: {error:.300}", what.trim())),
        Some(Step::Result(result)) => match step.get("expect") {
            Some(expected) if !fits(expected, result) => {
                Err(format!("{}: {:.300}, not {expected}", what.trim(), result.to_string()))
            }
            _ => Ok(()),
        },
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns true if a value is as expected: objects may have more members, `{"$has": […]}` is a part of a list or a
/// text.
fn fits(expected: &Value, value: &Value) -> bool {
    match (expected, value) {
        (Value::Object(members), _) if members.contains_key("$has") => {
            let parts = members["$has"].as_array().map_or(&[][..], Vec::as_slice);
            parts.iter().all(|part| match value {
                Value::Array(list) => list.contains(part),
                _ => text(value).contains(text(part)),
            })
        }
        (Value::Object(members), Value::Object(_)) => members.iter().all(|(name, e)| fits(e, &value[name])),
        (Value::Array(all), Value::Array(list)) => {
            all.len() == list.len() && all.iter().zip(list).all(|(e, v)| fits(e, v))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => expected == value,
    }
}

/// Report of a client.
#[derive(Debug, Deserialize)]
pub(crate) struct Said {
    #[serde(rename = "protocolVersion")]
    pub(crate) protocol_version: String,
    pub(crate) steps: Vec<Step>,
}

/// Outcome of one step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    Result(Value),
    Error(String),
}

impl Said {
    /// The tools, of a client that listed them first.
    pub(crate) fn tools(&self) -> Vec<String> {
        match self.steps.first() {
            Some(Step::Result(result)) => serde_json::from_value(result["names"].clone()).unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The texts of the calls after that; an error as text where it is none.
    pub(crate) fn texts(&self) -> Vec<Result<&str, String>> {
        let answers = self.steps.iter().skip(1);
        answers
            .map(|step| match step {
                Step::Result(result) if result["error"] == false => Ok(text(&result["text"])),
                Step::Result(result) => Err(result.to_string()),
                Step::Error(error) => Err(error.clone()),
            })
            .collect()
    }
}

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

    pub(super) fn step(&self) -> Value {
        json!({ "do": "call", "name": self.name, "arguments": self.arguments })
    }
}

/// Answers that a published server has to give.
pub(super) struct Expect {
    texts: Vec<&'static str>,
}

impl Expect {
    /// Each call's text contains this.
    pub(super) fn texts(texts: &[&'static str]) -> Self {
        Self { texts: texts.to_vec() }
    }

    pub(super) fn check(&self, said: &Said) -> Result<(), String> {
        if said.tools().is_empty() {
            return Err(format!("no tools: {:?}", said.steps.first()));
        }
        let answers = said.texts();
        if answers.len() != self.texts.len() {
            return Err(format!("{} of {} calls were answered", answers.len(), self.texts.len()));
        }
        for (answer, want) in answers.into_iter().zip(&self.texts) {
            let text = answer?;
            if !text.contains(want) {
                return Err(format!("{want:?} is not in {text:?}"));
            }
        }
        Ok(())
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

    fn said(add: &str) -> Said {
        let steps = json!([
            { "result": { "names": ["add", "echo"] } },
            { "result": { "error": false, "text": add, "progress": [[50.0, 100]] } },
            { "error": "gone" },
        ]);
        serde_json::from_value(json!({ "protocolVersion": "2025-11-25", "steps": steps })).expect("a report")
    }

    #[test]
    fn answers_are_checked_feature_by_feature() {
        let plan = json!({ "answers": {}, "exceptions": [], "features": [
            { "name": "one", "on": ["legacy"], "steps": [
                { "do": "tools", "expect": { "names": { "$has": ["add"] } } },
                { "do": "call", "name": "add", "expect": { "text": "42", "progress": [[50, 100]] } },
            ] },
            { "name": "other", "on": ["legacy", "cut"], "steps": [{ "do": "level" }] },
            { "name": "elsewhere", "on": ["modern"], "steps": [{ "do": "level" }] },
        ] });
        let plan: Plan = serde_json::from_value(plan).expect("a plan");
        let names = |said: &Said| plan.failures(Kind::Sse, said).iter().map(|f| f.0.to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&said("42")), ["other"]);
        assert_eq!(names(&said("41")), ["one", "other"]);
        assert_eq!(plan.steps(Kind::Cut), [json!({ "do": "level" })]);
    }

    #[test]
    fn the_plan_of_the_repository_is_readable() {
        let plan = Plan::read().expect("a plan");
        for kind in [Kind::Modern, Kind::Legacy, Kind::Sse, Kind::Cut] {
            assert!(!plan.steps(kind).is_empty(), "{kind:?}");
        }
    }

    #[test]
    fn a_published_server_has_to_answer_every_call() {
        assert!(Expect::texts(&["42", ""]).check(&said("42")).is_err(), "an answer that is an error");
        assert!(Expect::texts(&["42"]).check(&said("42")).is_err(), "too many answers");
    }
}
