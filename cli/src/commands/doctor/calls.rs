//! Calls of tools: of those that say that they only read, or of all.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::time::Instant;
use tricorn::model::PeerSchema;

use super::catalogue::Area;
use super::lists::Listing;
use super::opening::shape;
use super::report::Report;
use super::samples::{Size, has_number, sample};
use super::wire::{PATIENCE, SOON, Said, Wire};
use crate::output::one_line;

const MOST_TOOLS: usize = 40;
const MOST_RESOURCES: usize = 5;
/// Time for all calls together.
const ALTOGETHER: Duration = Duration::from_secs(40);
/// Tools whose calls are cancelled.
const MOST_CANCELLED: usize = 2;
const BEFORE_CANCEL: Duration = Duration::from_millis(100);
/// Time after which a cancelled call should say nothing more; what it reports until then may be on its way.
const SETTLES: Duration = Duration::from_millis(500);
const REPORTS: Duration = Duration::from_secs(1);
const AFTER_CANCEL: Duration = Duration::from_secs(2);

/// Calls what may be called.
pub(super) async fn all(wire: &mut Wire, listing: &Listing, every: bool) {
    let began = Instant::now();
    if wire.has("tools") {
        unknown(wire).await;
        if wire.report.has("dies") {
            return;
        }
    }
    let may = |tool: &&(usize, Value)| every || tool.1["annotations"]["readOnlyHint"] == Value::Bool(true);
    let (called, left): (Vec<_>, Vec<_>) = listing.tools.iter().partition(may);
    if !left.is_empty() {
        let why = format!("{} tools do not say readOnlyHint: --call calls them too", left.len());
        wire.report.skip(Area::Calls, why);
    }
    if called.len() > MOST_TOOLS {
        wire.report.skip(Area::Calls, format!("{} tools after the first {MOST_TOOLS}", called.len() - MOST_TOOLS));
    }
    let (mut slow, mut answered) = (Vec::new(), Vec::new());
    for (_, tool) in called.iter().copied().take(MOST_TOOLS) {
        if began.elapsed() > ALTOGETHER {
            wire.report.skip(Area::Calls, format!("tools after {} s of calls", ALTOGETHER.as_secs()));
            break;
        }
        match one(wire, tool).await {
            Ok(Some(reports)) => slow.push((reports == 0, tool)),
            Ok(None) => {}
            Err(()) => return,
        }
        answered.push((tool, Instant::now()));
    }
    late(wire, &answered).await;
    resources(wire, listing).await;
    // Tools that report progress take time; others may have waited for the machine.
    slow.sort_by_key(|(is_quiet, _)| *is_quiet);
    for (_, tool) in slow.into_iter().take(MOST_CANCELLED) {
        cancel(wire, tool).await;
    }
}

async fn unknown(wire: &mut Wire) {
    wire.report.ran(&["unknown-tool-ok"]);
    let said = wire.ask("tools/call", json!({"name": "no-such-tool", "arguments": {}})).await;
    if let Some(result) = said.result()
        && result["isError"] != Value::Bool(true)
    {
        wire.report.find("unknown-tool-ok", format!("no-such-tool: {}", one_line(&result.to_string())));
    }
    traces(&wire.report, "no-such-tool", &said);
}

async fn call(wire: &mut Wire, name: &str, arguments: Value, limit: Duration) -> Said {
    wire.request_within("tools/call", json!({"name": name, "arguments": arguments}), limit).await
}

/// Calls one tool. Gives the number of its reports if it takes time; an error: the server has ended.
async fn one(wire: &mut Wire, tool: &Value) -> Result<Option<usize>, ()> {
    let name = tool["name"].as_str().unwrap_or_default();
    let (schema, report) = (&tool["inputSchema"], wire.report.clone());
    let is_required = schema["required"].as_array().is_some_and(|names| !names.is_empty());
    report.ran(&["trace-leaks", "bad-base64"]);
    if is_required {
        report.ran(&["bad-args-crash"]);
        let said = call(wire, name, json!({}), PATIENCE).await;
        match &said {
            Said::Ended(how) => {
                report.find("bad-args-crash", format!("{name} without arguments: {how}"));
                return Err(());
            }
            said if said.code() == Some(-32603) => {
                report.find("bad-args-crash", format!("{name} without arguments: {}", one_line(&said.shown())));
            }
            _ => {}
        }
        traces(&report, name, &said);
    }
    let Some(arguments) = sample(schema, Size::Little) else {
        report.skip(Area::Calls, format!("{name}: no arguments could be made of its schema"));
        return Ok(None);
    };
    let (id, token) = (wire.id(), format!("doctor-{name}"));
    let params = json!({"name": name, "arguments": &arguments, "_meta": {"progressToken": token}});
    report.ran(&["dies"]);
    let began = Instant::now();
    let said = match wire.begin(&id, "tools/call", params).await {
        Some(said) => said,
        None => wire.answer(&id, PATIENCE).await,
    };
    let took = began.elapsed();
    traces(&report, name, &said);
    let reports = progress(wire, name, &token);
    match &said {
        Said::Ended(_) => {
            wire.died(&format!("tools/call {name} {arguments}"), &said);
            return Err(());
        }
        Said::Silent => {
            wire.cancel(&id).await;
            report.skip(Area::Calls, format!("{name}: no answer in {} s", PATIENCE.as_secs()));
            return Ok(Some(reports));
        }
        _ => {}
    }
    if let Some(result) = said.result() {
        if wire.is_modern {
            shape(&report, "tools/call", result);
        }
        content(&report, name, &result["content"]);
        structured(&report, tool, result);
    }
    let is_error = said.result().is_none_or(|result| result["isError"] == Value::Bool(true));
    Ok((!is_error && (reports > 0 || took > BEFORE_CANCEL * 3)).then_some(reports))
}

/// Looks at the progress of a call, and gives the number of its reports.
fn progress(wire: &mut Wire, name: &str, token: &str) -> usize {
    let (mut last, mut count) = (f64::NEG_INFINITY, 0);
    let report = wire.report.clone();
    report.ran(&["progress-back"]);
    for (_, message) in wire.heard.iter().filter(|(_, message)| message["method"] == "notifications/progress") {
        let params = &message["params"];
        if params["progressToken"] != token {
            if !params["progressToken"].as_str().is_some_and(|other| other.starts_with("doctor-")) {
                report.find("progress-back", format!("{name}: under the token {}", params["progressToken"]));
            }
            continue;
        }
        count += 1;
        let Some(value) = params["progress"].as_f64() else { continue };
        if value < last {
            report.find("progress-back", format!("{name}: {value} after {last}"));
        }
        last = value;
    }
    count
}

/// Looks for progress of calls that were answered. Over HTTP it may come on another stream, and late by that.
async fn late(wire: &mut Wire, answered: &[(&Value, Instant)]) {
    if wire.is_http() || answered.is_empty() {
        return;
    }
    // Messages from before this answer are heard, however busy the machine is.
    wire.request_within("x/none", json!({}), SOON).await;
    if wire.listen(BEFORE_CANCEL).await {
        return;
    }
    for (tool, since) in answered {
        let name = tool["name"].as_str().unwrap_or_default();
        let token = format!("doctor-{name}");
        if wire.heard.iter().any(|(at, message)| at > since && message["params"]["progressToken"] == token.as_str()) {
            wire.report.find("progress-back", format!("{name}: progress after its answer"));
        }
    }
}

/// Cancels a call of a tool that takes time.
async fn cancel(wire: &mut Wire, tool: &Value) {
    // Over HTTP the newer revisions cancel by closing: then nothing can be heard any more.
    if wire.is_modern && wire.is_http() {
        return;
    }
    let name = tool["name"].as_str().unwrap_or_default();
    let size = if has_number(&tool["inputSchema"]) { Size::Much } else { Size::Little };
    let Some(arguments) = sample(&tool["inputSchema"], size) else { return };
    let (id, token) = (wire.id(), format!("doctor-cancelled-{name}"));
    let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}});
    if wire.begin(&id, "tools/call", params).await.is_some() || wire.listen(BEFORE_CANCEL).await {
        return;
    }
    let is_answer = |message: &Value| message["id"] == id && message.get("method").is_none();
    if wire.heard.iter().any(|(_, message)| is_answer(message)) {
        return;
    }
    wire.report.ran(&["cancel-ignored"]);
    wire.cancel(&id).await;
    let cancelled = Instant::now();
    wire.listen(AFTER_CANCEL).await;
    for (at, message) in &wire.heard {
        let after = at.saturating_duration_since(cancelled);
        if after < SETTLES {
            continue;
        }
        if is_answer(message) && message.get("result").is_some() {
            let after = after.as_millis();
            wire.report.find("cancel-ignored", format!("{name}: its answer {after} ms after it was cancelled"));
        } else if after >= REPORTS && message["params"]["progressToken"] == token.as_str() {
            wire.report.find("cancel-ignored", format!("{name}: progress goes on after it was cancelled"));
        }
    }
}

/// Images, sounds and embedded resources.
fn content(report: &Report, name: &str, content: &Value) {
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some(kind @ ("image" | "audio")) => {
                data(report, &format!("{name}: {kind}"), &block["data"]);
                if !block["mimeType"].as_str().is_some_and(|kind| kind.contains('/')) {
                    report.find("bad-base64", format!("{name}: {kind}: mimeType {}", block["mimeType"]));
                }
            }
            Some("resource") if block["resource"].get("blob").is_some() => {
                data(report, &format!("{name}: resource"), &block["resource"]["blob"]);
            }
            _ => {}
        }
    }
}

fn data(report: &Report, what: &str, data: &Value) {
    let text = data.as_str();
    if text.is_none_or(|text| STANDARD.decode(text).is_err()) {
        let begin: String = text.unwrap_or("nothing").chars().take(40).collect();
        report.find("bad-base64", format!("{what}: {begin:?}"));
    }
}

fn structured(report: &Report, tool: &Value, result: &Value) {
    let (name, schema) = (tool["name"].as_str().unwrap_or_default(), &tool["outputSchema"]);
    let is_over = result["resultType"].as_str().is_none_or(|kind| kind == "complete");
    if schema.is_null() || result["isError"] == Value::Bool(true) || !is_over || result.get("task").is_some() {
        return;
    }
    report.ran(&["output-unfit"]);
    let Some(value) = result.get("structuredContent") else {
        report.find("output-unfit", format!("{name}: no structuredContent"));
        return;
    };
    // Faults of the schema itself were reported before.
    let Ok(schema) = PeerSchema::read(&schema.to_string()) else { return };
    if let Err(error) = schema.check(&value.to_string()) {
        report.find("output-unfit", format!("{name}: {}", error.message()));
    }
}

/// Looks for the program's insides in an error.
fn traces(report: &Report, name: &str, said: &Said) {
    let text = match said {
        Said::Answer(answer) => match answer.get("error") {
            Some(error) => format!("{}\n{}", error["message"].as_str().unwrap_or_default(), shown(&error["data"])),
            None if answer["result"]["isError"] == Value::Bool(true) => {
                let blocks = answer["result"]["content"].as_array();
                let texts = blocks.into_iter().flatten().filter_map(|block| block["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
            None => return,
        },
        Said::Status(_, body) => body.clone(),
        _ => return,
    };
    if let Some(line) = text.lines().find(|line| is_inside(line)) {
        report.find("trace-leaks", format!("{name}: {}", one_line(line)));
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        value => value.to_string().replace("\\n", "\n"),
    }
}

/// True for a line of a trace, as Python, Node.js, Rust, Go and Java write them.
fn is_inside(line: &str) -> bool {
    let trimmed = line.trim_start();
    let is_indented = trimmed.len() < line.len();
    let numbered = |text: &str| {
        let end = text.trim_end_matches(')').rsplit_once(':').map(|(_, number)| number);
        end.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    line.contains("Traceback (most recent call last)")
        || (trimmed.starts_with("File \"") && line.contains(", line "))
        || (is_indented && trimmed.starts_with("at ") && numbered(trimmed))
        || (line.contains("panicked at ") && line.contains(".rs:"))
        || (trimmed.starts_with("goroutine ") && line.ends_with("[running]:"))
}

/// Reads a few resources: their blobs are to be base64.
async fn resources(wire: &mut Wire, listing: &Listing) {
    let uris = listing.resources.iter().filter_map(|(_, resource)| resource["uri"].as_str());
    for uri in uris.take(MOST_RESOURCES) {
        let said = wire.ask("resources/read", json!({"uri": uri})).await;
        traces(&wire.report, uri, &said);
        let Some(result) = said.result() else { continue };
        wire.report.ran(&["bad-base64"]);
        if wire.is_modern {
            shape(&wire.report, "resources/read", result);
        }
        for entry in result["contents"].as_array().into_iter().flatten().filter(|entry| entry.get("blob").is_some()) {
            data(&wire.report, uri, &entry["blob"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_traces_are_known() {
        for line in [
            "Traceback (most recent call last):",
            "  File \"/srv/app.py\", line 3, in run",
            "    at Object.run (/srv/app.js:3:7)",
            "thread 'main' panicked at src/main.rs:3:5:",
        ] {
            assert!(is_inside(line), "{line}");
        }
        for line in ["no such file: /srv/a.txt", "at noon: 12", "File not found", "looked at src/main.rs"] {
            assert!(!is_inside(line), "{line}");
        }
    }
}
