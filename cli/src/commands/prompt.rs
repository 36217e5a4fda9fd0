use serde_json::{Map, Value, json};
use tricorn::protocol::Kind;

use super::{Entry, listed, text};
use crate::arguments::Prompt;
use crate::connection::Session;
use crate::failure::{FAILED, Failure, Outcome, instead};
use crate::output::{Place, Progress, blocks};

/// Gets a prompt.
pub(super) async fn prompt(session: &Session, given: Map<String, Value>, prompt: &Prompt) -> Outcome<u8> {
    let (screen, name) = (&session.screen, &prompt.name);
    let prompts = listed(session, Kind::Prompt).await?;
    let Some(listed) = prompts.iter().find(|entry| text(entry, "name") == name) else {
        let known = prompts.iter().map(|entry| text(entry, "name"));
        return Err(Failure::misuse(format!("there is no prompt {name:?}{}", instead(name, "prompts", known))));
    };
    check(name, listed, &given)?;
    let progress = Progress::new(screen);
    let options = session.patient().on_progress(progress.listener());
    let params = json!({"name": name, "arguments": given});
    let result = session.request(name, "prompts/get", &params, &options).await?;
    drop(progress);
    let result: Value = result.to().map_err(|error| Failure::new(FAILED, format!("{name}: {error}")))?;
    if prompt.json {
        screen.json(&result);
        return Ok(0);
    }
    let messages = result["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let shown = messages.iter().map(|message| {
        let role = screen.for_output(message["role"].as_str().unwrap_or("user"));
        let content = match &message["content"] {
            Value::Array(several) => blocks(screen, &Place::Temporary, several),
            one => blocks(screen, &Place::Temporary, std::slice::from_ref(one)),
        };
        format!("{}\n{content}", screen.style().bold(&format!("{role}:")))
    });
    screen.print(&shown.collect::<Vec<_>>().join("\n\n"));
    Ok(0)
}

/// Holds what was given against what the prompt was listed with.
fn check(name: &str, listed: &Entry, given: &Map<String, Value>) -> Outcome<()> {
    let known = listed.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = known.iter().filter_map(|argument| argument["name"].as_str());
    if let Some(unknown) = given.keys().find(|key| !names.clone().any(|known| known == key.as_str())) {
        let hint = if known.is_empty() { "; it takes none".to_owned() } else { instead(unknown, "arguments", names) };
        return Err(Failure::misuse(format!("{name} has no argument {unknown:?}{hint}")));
    }
    let required = known.iter().filter(|argument| argument["required"] == true);
    let mut missing = required.filter_map(|argument| argument["name"].as_str()).filter(|key| !given.contains_key(*key));
    match missing.next() {
        Some(missing) => Err(Failure::misuse(format!("{name}: the argument {missing:?} is missing: add {missing}=…"))),
        None => Ok(()),
    }
}
