use serde_json::{Map, Value};
use tricorn::protocol::Kind;

use super::{listed, text};
use crate::arguments::Complete;
use crate::connection::Session;
use crate::failure::{Failure, Outcome, instead};
use crate::schema::pair;

/// Completes an argument.
pub(super) async fn complete(session: &Session, complete: &Complete) -> Outcome<u8> {
    let (argument, beginning) = pair(&complete.argument)?;
    let mut known = Map::new();
    for word in &complete.others {
        let (name, value) = pair(word)?;
        known.insert(name.to_owned(), value.into());
    }
    let reference = &complete.reference;
    let kind = if reference.contains("://") || reference.contains('{') { Kind::ResourceTemplate } else { Kind::Prompt };
    if kind == Kind::Prompt {
        let prompts = listed(session, Kind::Prompt).await?;
        let Some(prompt) = prompts.iter().find(|prompt| text(prompt, "name") == reference) else {
            let names = prompts.iter().map(|prompt| text(prompt, "name"));
            let hint = instead(reference, "prompts", names);
            return Err(Failure::misuse(format!("there is no prompt {reference:?}{hint}")));
        };
        let arguments = prompt.get("arguments").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let names = arguments.iter().filter_map(|argument| argument["name"].as_str());
        if !names.clone().any(|name| name == argument) {
            let hint = instead(argument, "arguments", names);
            return Err(Failure::misuse(format!("{reference} has no argument {argument:?}{hint}")));
        }
    }
    let context = (!known.is_empty()).then_some(&known);
    let outcome = session.client.complete(kind, reference, argument, beginning, context).await;
    let result = outcome.map_err(|error| Failure::requesting(reference, &error))?;
    let screen = &session.screen;
    if complete.json {
        screen.json(&result);
        return Ok(0);
    }
    let completion = serde_json::to_value(&result.completion).unwrap_or_default();
    let values: Vec<_> = completion["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !values.is_empty() {
        screen.print(&screen.for_output(&values.join("\n")));
    }
    if completion["hasMore"] == true {
        screen.line(&screen.error_style().dim("(there are more)"));
    }
    Ok(0)
}
