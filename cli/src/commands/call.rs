use serde_json::{Value, json};
use tricorn::protocol::Kind;

use super::{Entry, listed, text};
use crate::arguments::Call;
use crate::connection::Session;
use crate::failure::{FAILED, Failure, Outcome, instead};
use crate::output::{Place, Progress, Screen, Table, blocks, one_line, plain, pretty, shown, wrapped};
use crate::schema::{self, Given, Schema, describe};

/// Beginning of the name of a task that is none, as its request was answered.
const ANSWERED: &str = "tricorn/answered-";

/// The schema of a tool that has none.
const EMPTY: &Value = &Value::Null;

/// Calls a tool, or tells of it.
pub(super) async fn call(session: &Session, name: &str, given: Given, call: &Call) -> Outcome<u8> {
    let tools = listed(session, Kind::Tool).await?;
    let Some(tool) = tools.iter().find(|tool| text(tool, "name") == name) else {
        let known = tools.iter().map(|tool| text(tool, "name"));
        return Err(Failure::misuse(format!("there is no tool {name:?}{}", instead(name, "tools", known))));
    };
    if call.help {
        session.screen.print(&help(&session.screen, tool));
        return Ok(0);
    }
    if let Some(path) = call.output.as_ref().filter(|path| path.exists() && !path.is_dir()) {
        return Err(Failure::misuse(format!("--output {}: expected a folder, and a file is there", path.display())));
    }
    let place = call.output.clone().map_or(Place::Temporary, Place::Folder);
    let arguments = schema::arguments(name, tool.get("inputSchema").unwrap_or(EMPTY), given)?;
    let progress = Progress::new(&session.screen);
    let options = session.patient().on_progress(progress.listener());
    if call.task {
        let started = session.client.call_tool_task(name, &arguments, None, &options).await;
        let started = match started {
            Ok(started) => started,
            Err(error) => return Err(session.failed(name, &error).await),
        };
        if started.id().starts_with(ANSWERED) {
            let result = started.result().await;
            drop(progress);
            session.screen.line("the server answered at once: there is no task");
            return match result {
                Ok(result) => finish(&session.screen, name, &json!(result), &place, call.json),
                Err(error) => Err(session.failed(name, &error).await),
            };
        }
        drop(progress);
        match call.json {
            true => session.screen.json(&json!({"taskId": started.id()})),
            false => session.screen.print(&one_line(started.id())),
        }
        return Ok(0);
    }
    let params = json!({"name": name, "arguments": arguments});
    let result = session.request(name, "tools/call", &params, &options).await?;
    drop(progress);
    let result: Value = result.to().map_err(|error| Failure::new(FAILED, format!("{name}: {error}")))?;
    finish(&session.screen, name, &result, &place, call.json)
}

/// Prints a tool's result.
pub(super) fn finish(screen: &Screen, name: &str, result: &Value, place: &Place, as_json: bool) -> Outcome<u8> {
    let failed = result["isError"] == true;
    if as_json {
        screen.json(&result);
        return if failed { Err(Failure::silent(FAILED)) } else { Ok(0) };
    }
    let content = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    if failed {
        let data = result.get("structuredContent").filter(|data| !data.is_null() && content.is_empty());
        if data.is_some() || content.iter().any(|block| block["type"] != "text") {
            screen.error(&format!("{name} failed:"));
            screen.line(&data.map_or_else(|| plain(place, content), |data| shown(&shown_data(data)).into_owned()));
            return Err(Failure::silent(FAILED));
        }
        let said: Vec<_> = content.iter().filter_map(|block| block["text"].as_str()).collect();
        let said = said.join("\n");
        if said.trim().lines().count() <= 1 {
            let said = if said.trim().is_empty() { "no reason was given" } else { said.trim() };
            return Err(Failure::new(FAILED, format!("{name} failed: {said}")));
        }
        screen.error(&format!("{name} failed:"));
        screen.line(&shown(said.trim_end()));
        return Err(Failure::silent(FAILED));
    }
    let data = result.get("structuredContent").filter(|data| !data.is_null());
    match (content, data) {
        // Its content says the same, on one line.
        ([only], Some(data)) if only["type"] == "text" && is_same(&only["text"], data) => {
            screen.print(&screen.for_output(&shown_data(data)));
        }
        ([], Some(data)) => screen.print(&screen.for_output(&shown_data(data))),
        ([], None) => screen.line(&screen.error_style().dim("(no content)")),
        (content, _) => screen.print(&blocks(screen, place, content)),
    }
    Ok(0)
}

fn is_same(text: &Value, data: &Value) -> bool {
    let parsed = text.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    data.is_object() && parsed.is_some_and(|parsed| parsed == *data)
}

/// Data for people: an object that only wraps a value is that value.
fn shown_data(data: &Value) -> String {
    match data {
        Value::String(text) => text.clone(),
        Value::Object(_) | Value::Array(_) => pretty(data),
        other => other.to_string(),
    }
}

/// Describes a tool and its arguments.
fn help(screen: &Screen, tool: &Entry) -> String {
    let style = screen.style();
    let name = text(tool, "name");
    let input = tool.get("inputSchema").unwrap_or(EMPTY);
    let title = tool.get("title").or_else(|| tool.get("annotations")?.get("title")).and_then(Value::as_str);
    let title = title.map(|title| format!("  {}", style.dim(&shown(title)))).unwrap_or_default();
    let mut page = format!("{}{title}\n", style.bold(&shown(name)));
    if !text(tool, "description").is_empty() {
        page.push_str(&format!("{}\n", wrapped(screen, text(tool, "description"), "  ")));
    }
    let hints = hints(tool);
    if !hints.is_empty() {
        page.push_str(&format!("  {}\n", style.dim(&hints)));
    }
    let schema = Schema::new(input);
    let (properties, required) = (schema.properties(), schema.required());
    if properties.is_empty() {
        page.push_str("\nIt takes no arguments.\n");
        return page;
    }
    let mut table = Table::new(screen);
    for (argument, property) in &properties {
        let mut notes = describe(*property);
        if let Some(default) = property.default().filter(|default| !default.is_null()) {
            notes.push_str(&format!(", default {default}"));
        }
        let optional = if required.contains(argument) { "" } else { "(optional) " };
        let described = property.text("description").or_else(|| property.text("title")).unwrap_or_default();
        table.row([argument, &notes, &format!("{optional}{described}")]);
    }
    page.push_str(&format!("\n{}\n{}", style.bold("Arguments"), table.text()));
    if let Some(output) = tool.get("outputSchema") {
        let output = Schema::new(output);
        let mut table = Table::new(screen);
        for (member, property) in output.properties() {
            table.row([member, &describe(property), property.text("description").unwrap_or_default()]);
        }
        if !table.is_empty() {
            page.push_str(&format!("\n{}\n{}", style.bold("Result"), table.text()));
        }
    }
    page
}

/// Puts its annotations into words.
fn hints(tool: &Entry) -> String {
    let said = |name: &str| tool.get("annotations").and_then(|all| all.get(name)).and_then(Value::as_bool);
    let hints = [
        (said("readOnlyHint") == Some(true), "changes nothing"),
        (said("destructiveHint") == Some(true), "may destroy something"),
        (said("idempotentHint") == Some(true), "may be repeated"),
        (said("openWorldHint") == Some(true), "reaches outside"),
    ];
    hints.iter().filter(|(is_so, _)| *is_so).map(|(_, words)| *words).collect::<Vec<_>>().join(", ")
}
