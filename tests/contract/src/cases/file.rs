//! The case files; `tests/cases/README.md` describes them for authors.

use crate::Outcome;
use crate::script::Transport;
use serde_json::{Map, Value};
use std::path::Path;

/// One case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) transports: Vec<Transport>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) options: Map<String, Value>,
    pub(crate) peer: Option<String>,
    /// The rules of a proxy in between.
    pub(crate) proxy: Option<Value>,
    /// The path of the server's URL, instead of the one it announced.
    pub(crate) path: Option<String>,
    pub(crate) skips: Vec<(String, String)>,
    pub(crate) steps: Vec<Step>,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) command: String,
    /// Arguments that go to the runner as they stand.
    pub(crate) arguments: Value,
    pub(crate) call: Option<String>,
    pub(crate) start: Option<String>,
    pub(crate) repeat: bool,
    pub(crate) exact: bool,
    pub(crate) expected: Expected,
}

/// Answer that has to come back.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Any success.
    Nothing,
    /// A result like this.
    Result(Value),
    /// An error like this.
    Error(Value),
}

impl Step {
    pub(crate) fn connect() -> Self {
        Self {
            command: "connect".into(),
            arguments: Value::Object(Map::new()),
            call: None,
            start: None,
            repeat: false,
            exact: false,
            expected: Expected::Nothing,
        }
    }
}

/// The commands of the steps; `wait` and `progress` never reach the runner.
const COMMANDS: [&str; 24] = [
    "connect",
    "info",
    "list_tools",
    "list_tools_page",
    "list",
    "list_page",
    "call_tool",
    "read_resource",
    "subscribe",
    "unsubscribe",
    "get_prompt",
    "complete",
    "set_log_level",
    "set_roots",
    "roots_changed",
    "wait_for_task",
    "ping",
    "request",
    "notify",
    "close",
    "metrics",
    "cancel",
    "wait",
    "progress",
];

/// Every case of every file in `folder`, in order of their names.
pub(crate) fn read_all(folder: &Path) -> Outcome<Vec<Case>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        // Wrong uses have a form and checks of their own.
        .filter(|path| !path.ends_with("misuse.json"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for path in files {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        cases.extend(read(&file, &text).map_err(|reason| format!("{file}.json: {reason}"))?);
    }
    Ok(cases)
}

fn read(file: &str, text: &str) -> Outcome<Vec<Case>> {
    let whole: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    cases(file, &whole)
}

/// The cases of an object that has what a case file has.
pub(crate) fn cases(file: &str, whole: &Value) -> Outcome<Vec<Case>> {
    only(whole, &["about", "on", "environment", "options", "cases"])?;
    let cases = whole.get("cases").and_then(Value::as_array).ok_or("\"cases\" is missing")?;
    cases
        .iter()
        .map(|case| {
            let name = case.get("name").and_then(Value::as_str).ok_or("a case without \"name\"")?;
            one(file, name, whole, case).map_err(|reason| format!("{name}: {reason}"))
        })
        .collect()
}

fn one(file: &str, name: &str, whole: &Value, case: &Value) -> Outcome<Case> {
    only(case, &["name", "about", "on", "environment", "options", "peer", "proxy", "path", "skip", "steps"])?;
    let both = |key: &str| case.get(key).or_else(|| whole.get(key));
    let mut options = whole.get("options").and_then(Value::as_object).cloned().unwrap_or_default();
    options.extend(case.get("options").and_then(Value::as_object).cloned().unwrap_or_default());
    let pairs = |value: Option<&Value>| {
        value
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect::<Vec<_>>()
    };
    let text = |key: &str| case.get(key).and_then(Value::as_str).map(str::to_owned);
    let on = both("on").and_then(Value::as_str);
    let by_url = ["proxy", "path"].into_iter().find(|key| case.get(key).is_some());
    if let Some(key) = by_url.filter(|_| on != Some("http") || case.get("peer").is_some()) {
        return Err(format!("{key:?} needs a fixture server over HTTP"));
    }
    Ok(Case {
        file: file.to_owned(),
        name: name.to_owned(),
        transports: match on {
            None => vec![Transport::Stdio, Transport::Http],
            Some("stdio") => vec![Transport::Stdio],
            Some("http") => vec![Transport::Http],
            Some(other) => return Err(format!("\"on\": {other:?}")),
        },
        environment: pairs(both("environment")),
        options,
        peer: text("peer"),
        proxy: case.get("proxy").cloned(),
        path: text("path"),
        skips: pairs(case.get("skip")),
        steps: case
            .get("steps")
            .and_then(Value::as_array)
            .ok_or("\"steps\" is missing")?
            .iter()
            .map(step)
            .collect::<Outcome<_>>()?,
    })
}

fn step(step: &Value) -> Outcome<Step> {
    let mut arguments = step.as_object().cloned().ok_or("a step is an object")?;
    let command = take(&mut arguments, "do").ok_or("a step without \"do\"")?;
    if !COMMANDS.contains(&command.as_str()) {
        return Err(format!("unknown step {command:?}"));
    }
    let flag = |arguments: &mut Map<String, Value>, name: &str| arguments.shift_remove(name) == Some(Value::Bool(true));
    let expected = match (arguments.shift_remove("expect"), arguments.shift_remove("error")) {
        (Some(_), Some(_)) => return Err("expect or error, not both".into()),
        (Some(pattern), None) => Expected::Result(pattern),
        (None, Some(pattern)) => Expected::Error(pattern),
        (None, None) => Expected::Nothing,
    };
    Ok(Step {
        call: take(&mut arguments, "call"),
        start: take(&mut arguments, "start"),
        repeat: flag(&mut arguments, "repeat"),
        exact: flag(&mut arguments, "exact"),
        expected,
        command,
        arguments: Value::Object(arguments),
    })
}

fn take(members: &mut Map<String, Value>, name: &str) -> Option<String> {
    members.shift_remove(name)?.as_str().map(str::to_owned)
}

fn only(value: &Value, known: &[&str]) -> Outcome {
    let members = value.as_object().ok_or("not an object")?;
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("unknown member {unknown:?}")),
        None => Ok(()),
    }
}
