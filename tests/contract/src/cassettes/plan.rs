//! The data: `tests/cassettes/plan.json`, as the README beside it describes it.

use crate::Outcome;
use crate::cases::file::{self, Case};
use crate::pattern::Captures;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    secrets: BTreeMap<String, String>,
    texts: BTreeMap<String, String>,
    servers: Vec<Entry>,
}

/// A server that every language has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// Its launcher, with `{language}` in it.
    program: String,
    /// Arguments with which it speaks over its standard streams.
    arguments: Vec<String>,
    cases: Vec<Map<String, Value>>,
}

pub(super) struct Plan {
    /// Secrets of the recorded connection: one in the environment or the header of authorization, one that is an argument
    /// or another header, and one that is told by its name alone.
    pub(super) secrets: BTreeMap<String, String>,
    /// Values of the steps: the secrets, and texts with them inside.
    pub(super) values: Captures,
    pub(super) servers: Vec<Server>,
}

pub(super) struct Server {
    pub(super) name: String,
    program: String,
    pub(super) arguments: Vec<String>,
    pub(super) scripts: Vec<Script>,
}

/// A case in one revision.
pub(super) struct Script {
    pub(super) case: Case,
    /// Clients of all languages record it, and not that of the server's alone: each start of a server takes time.
    pub(super) by_all: bool,
    /// `tricorn record` records it, too.
    pub(super) by_command: bool,
    /// It asks for the same each time: a task is asked for as often as it takes.
    pub(super) is_strict: bool,
}

impl Server {
    /// Its launcher in a language.
    pub(super) fn program(&self, root: &Path, language: &str) -> Outcome<String> {
        let program = root.join(self.program.replace("{language}", language));
        if program.exists() {
            return Ok(program.to_string_lossy().into_owned());
        }
        Err(format!("{} is not there: run cargo xtask setup", program.display()))
    }
}

impl Plan {
    pub(super) fn read(path: &Path) -> Outcome<Self> {
        let wrong = |reason: String| format!("{}: {reason}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let file: File = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let values = file.secrets.iter().chain(&file.texts);
        let values = values.map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let servers = file.servers.into_iter().map(server).collect::<Outcome<_>>().map_err(wrong)?;
        Ok(Self { secrets: file.secrets, values, servers })
    }

    pub(super) fn secret(&self, name: &str) -> Outcome<&str> {
        self.secrets.get(name).map(String::as_str).ok_or_else(|| format!("the plan has no secret {name:?}"))
    }
}

fn server(entry: Entry) -> Outcome<Server> {
    let mut scripts = Vec::new();
    for mut case in entry.cases {
        let revisions = strings(case.shift_remove("revisions").as_ref()).ok_or("a case without \"revisions\"")?;
        let by_all = case.shift_remove("recorded_by_all") == Some(true.into());
        let by_command = case.shift_remove("command") == Some(true.into());
        let is_strict = case.shift_remove("strict") != Some(false.into());
        for revision in revisions {
            let whole = json!({"cases": [of_revision(&case, &revision)?]});
            let cases = file::cases(&entry.name, &whole)?;
            scripts.extend(cases.into_iter().map(|case| Script { case, by_all, by_command, is_strict }));
        }
    }
    let connects = |script: &&Script| script.case.steps.first().is_some_and(|step| step.command == "connect");
    if let Some(script) = scripts.iter().find(|script| !connects(script)) {
        return Err(format!("{}: the first step is to connect", script.case.name));
    }
    Ok(Server { name: entry.name, program: entry.program, arguments: entry.arguments, scripts })
}

/// The case in one revision, in the form of a case file.
fn of_revision(case: &Map<String, Value>, revision: &str) -> Outcome<Value> {
    let mut case = case.clone();
    let name = case.get("name").and_then(Value::as_str).ok_or("a case without \"name\"")?;
    case.insert("name".into(), format!("{name}, {revision}").into());
    let mut options = case.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
    options.insert("revision".into(), revision.into());
    case.insert("options".into(), options.into());
    let steps = case.get_mut("steps").and_then(Value::as_array_mut).ok_or("\"steps\" is missing")?;
    steps.retain(|step| strings(step.get("in")).is_none_or(|all| all.iter().any(|one| one == revision)));
    for step in steps.iter_mut().filter_map(Value::as_object_mut) {
        step.shift_remove("in");
    }
    Ok(case.into())
}

fn strings(list: Option<&Value>) -> Option<Vec<String>> {
    list?.as_array().map(|all| all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn the_plan_is_read_and_its_cases_have_their_revisions() {
        let root = crate::launch::root().unwrap();
        let plan = Plan::read(&root.join("tests/cassettes/plan.json")).unwrap();
        assert!(plan.secrets.keys().all(|name| plan.values.contains_key(name)));
        for server in &plan.servers {
            assert!(crate::options::LANGUAGES.iter().all(|language| server.program(&root, language).is_ok()));
            for revision in ["2025-11-25", "2026-07-28"] {
                let mut all = server.scripts.iter().map(|script| &script.case.options);
                assert!(all.any(|options| options["revision"] == revision), "{}", server.name);
            }
        }
    }

    #[test]
    fn steps_of_another_revision_are_left_out() {
        let case = json!({"name": "a", "steps": [{"do": "ping", "in": ["2"]}, {"do": "info"}]});
        let case = of_revision(case.as_object().unwrap(), "1").unwrap();
        assert_eq!(case, json!({"name": "a, 1", "options": {"revision": "1"}, "steps": [{"do": "info"}]}));
    }
}
