//! The other side: a scripted server, for clients. The lines mean what they mean in transcripts
//! (`>` is what we send, `<` what has to come); `tests/cases/README.md` has the differences.

pub mod over_http;
mod over_stdio;

use crate::Outcome;
use crate::pattern::Captures;
use crate::script::{self, Action, Payload, Script, Step};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Longest time that a peer waits for a message that has to come.
const LIMIT: Duration = Duration::from_secs(30);

/// Read a peer's script.
pub fn read(path: &Path) -> Outcome<Script> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let scripts = script::parse(&name, &text).map_err(|reason| format!("{}: {reason}", path.display()))?;
    scripts.into_iter().next().ok_or_else(|| "no script".into())
}

/// `contract peer SCRIPT --stdio [--state FILE] [--report FILE]` or `--http HOST:PORT`.
///
/// The state file counts starts, for scripts with several `@process` parts; the report file
/// gets `ok` or what went wrong.
pub fn main(mut arguments: impl Iterator<Item = String>) -> Outcome<ExitCode> {
    let script = read(Path::new(&arguments.next().ok_or("which script?")?))?;
    let (mut state, mut report, mut address) = (None, None, None);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--stdio" => {}
            "--http" => address = Some(value()?),
            "--state" => state = Some(PathBuf::from(value()?)),
            "--report" => report = Some(PathBuf::from(value()?)),
            _ => return Err(format!("unknown option {argument}")),
        }
    }
    let outcome = match address {
        Some(address) => {
            let serving = over_http::Serving::start(script, &address)?;
            eprintln!("ready {}", serving.url());
            serving.finish()
        }
        None => over_stdio::play(part(&script, state.as_deref())?),
    };
    if let Some(report) = report {
        let text = outcome.as_ref().err().map_or("ok", String::as_str);
        std::fs::write(&report, text).map_err(|error| error.to_string())?;
    }
    outcome.map(|()| ExitCode::SUCCESS)
}

/// The steps of this start of the process.
fn part<'a>(script: &'a Script, state: Option<&Path>) -> Outcome<&'a [Step]> {
    let mut parts = script.steps.split(|step| matches!(step.action, Action::NextProcess));
    let Some(state) = state else {
        return Ok(parts.next().unwrap_or_default());
    };
    let started: usize = std::fs::read_to_string(state).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    std::fs::write(state, (started + 1).to_string()).map_err(|error| error.to_string())?;
    parts.nth(started).ok_or_else(|| format!("started {} times, once too often", started + 1))
}

/// A peer says exactly what its script says: no envelope of ours.
fn bytes(payload: &Payload, captures: &Captures) -> Outcome<(Vec<u8>, Option<Value>)> {
    let plain = match payload {
        Payload::Message { value, .. } => Payload::Message { value: value.clone(), envelope: false },
        raw @ Payload::Raw(_) => raw.clone(),
    };
    let outgoing = crate::replay::outgoing::compose(&plain, captures)?;
    Ok((outgoing.bytes, outgoing.value))
}

fn at(step: &Step, reason: String) -> String {
    format!("line {} of the peer's script: {reason}", step.line)
}
