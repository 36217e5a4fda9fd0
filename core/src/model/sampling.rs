//! Checks of a `sampling/createMessage` that hold in every revision (specification, "Sampling"). Errors are texts: the
//! caller knows which side is at fault.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::shortened;

/// Checks that the parameters can be sent to a model: `messages` whose tool uses are answered at once and in full,
/// `maxTokens` above 0, priorities from 0 to 1.
///
/// # Errors
/// The member and what it should be, such as `messages[1]: …`.
pub(crate) fn check_sampling(params: &Value) -> Result<(), String> {
    let members = params.as_object().ok_or("params: expected an object")?;
    let messages = members.get("messages").and_then(Value::as_array).ok_or("\"messages\": expected a list")?;
    let read: Vec<Message<'_>> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| Message::read(message).map_err(|why| format!("messages[{at}]: {why}")))
        .collect::<Result<_, _>>()?;
    for (at, message) in read.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| &read[at]);
        message.follows(before).map_err(|why| format!("messages[{at}]: {why}"))?;
    }
    if let Some(last) = read.last().filter(|last| !last.uses.is_empty()) {
        return Err(format!("messages[{}]: {}", read.len() - 1, last.unanswered()));
    }
    match members.get("maxTokens") {
        // Programs in Go send 0 for no limit of theirs.
        Some(count) if count.as_f64().is_some_and(|n| n.fract() == 0.0) => {}
        Some(count) => return Err(format!("\"maxTokens\": expected a whole number, got {}", shown(count))),
        None => return Err("\"maxTokens\": missing (required)".to_owned()),
    }
    check_options(members)
}

fn check_options(members: &Map<String, Value>) -> Result<(), String> {
    let all_strings = |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let named = |value: &Value| value.get("name").is_some_and(Value::is_string);
    let fits = |key: &str, what: &str, fits: &dyn Fn(&Value) -> bool| match members.get(key) {
        Some(value) if !fits(value) => Err(format!("{key:?}: expected {what}, got {}", shown(value))),
        _ => Ok(()),
    };
    let one_of = |names: &'static [&str]| move |value: &Value| value.as_str().is_some_and(|name| names.contains(&name));
    fits("systemPrompt", "a string", &Value::is_string)?;
    fits("temperature", "a number", &Value::is_number)?;
    fits("stopSequences", "a list of strings", &all_strings)?;
    fits("metadata", "an object", &Value::is_object)?;
    fits("includeContext", "none, thisServer or allServers", &one_of(&["none", "thisServer", "allServers"]))?;
    fits("tools", "a list of tools", &|tools| tools.as_array().is_some_and(|tools| tools.iter().all(named)))?;
    let mode = one_of(&["auto", "required", "none"]);
    fits("toolChoice", "{\"mode\": auto, required or none}", &|choice| {
        choice.is_object() && choice.get("mode").is_none_or(&mode)
    })?;
    fits("modelPreferences", "an object", &Value::is_object)?;
    let Some(preferences) = members.get("modelPreferences") else { return Ok(()) };
    for key in ["costPriority", "speedPriority", "intelligencePriority"] {
        if let Some(priority) = preferences.get(key)
            && !priority.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority))
        {
            return Err(format!("modelPreferences.{key}: expected a number from 0 to 1, got {}", shown(priority)));
        }
    }
    let is_hint = |hint: &Value| hint.is_object() && hint.get("name").is_none_or(Value::is_string);
    match preferences.get("hints") {
        Some(hints) if !hints.as_array().is_some_and(|hints| hints.iter().all(is_hint)) => {
            Err(format!("modelPreferences.hints: expected a list of {{\"name\": string}}, got {}", shown(hints)))
        }
        _ => Ok(()),
    }
}

/// Checks that `result` is a `CreateMessageResult`; its `content` may be one block or a list of them.
///
/// # Errors
/// The member and what it should be.
pub(crate) fn check_sampled(result: &Value) -> Result<(), String> {
    let read = Message::read(result)?;
    if !read.results.is_empty() {
        return Err("\"content\": a model gives no tool_result".to_owned());
    }
    match result.get("model") {
        Some(Value::String(_)) => Ok(()),
        Some(other) => Err(format!("\"model\": expected a string, got {}", shown(other))),
        None => Err("\"model\": missing (required)".to_owned()),
    }
}

/// The blocks of a message or a result: one, or those of a list.
pub(crate) fn blocks(content: &Value) -> &[Value] {
    content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice)
}

/// Tool uses and tool results of one message.
struct Message<'a> {
    uses: BTreeSet<&'a str>,
    results: BTreeSet<&'a str>,
}

impl<'a> Message<'a> {
    fn read(message: &'a Value) -> Result<Self, String> {
        let Some(role @ ("user" | "assistant")) = message["role"].as_str() else {
            return Err(format!("\"role\": expected user or assistant, got {}", shown(&message["role"])));
        };
        let content = message.get("content").ok_or("\"content\": missing (required)")?;
        let blocks = blocks(content);
        let (mut uses, mut results) = (BTreeSet::new(), BTreeSet::new());
        for block in blocks {
            let text = |key: &str| {
                let text = block.get(key).and_then(Value::as_str);
                text.ok_or_else(|| format!("\"content\": a {} block needs {key:?}, a string", shown(&block["type"])))
            };
            match block.get("type").and_then(Value::as_str) {
                Some("text") => drop(text("text")?),
                Some("image" | "audio") => drop((text("data")?, text("mimeType")?)),
                Some("tool_use") => {
                    if role != "assistant" {
                        return Err("a tool_use is the assistant's, not the user's".to_owned());
                    }
                    text("name")?;
                    if !block["input"].is_object() {
                        return Err("\"content\": a tool_use needs \"input\", an object".to_owned());
                    }
                    let id = text("id")?;
                    if !uses.insert(id) {
                        return Err(format!("two tool_use blocks with the id {:?}", shortened(id, 60)));
                    }
                }
                Some("tool_result") => {
                    if role != "user" {
                        return Err("a tool_result is the user's, not the assistant's".to_owned());
                    }
                    if !block["content"].is_array() {
                        return Err("\"content\": a tool_result needs \"content\", a list of blocks".to_owned());
                    }
                    let id = text("toolUseId")?;
                    if !results.insert(id) {
                        return Err(format!("two tool_result blocks for {:?}", shortened(id, 60)));
                    }
                }
                _ => {
                    return Err(format!(
                        "\"content\": expected text, image, audio, tool_use or tool_result, got {}",
                        shown(block)
                    ));
                }
            }
        }
        if !results.is_empty() && results.len() != blocks.len() {
            return Err("a message with a tool_result has nothing else in it".to_owned());
        }
        Ok(Self { uses, results })
    }

    fn follows(&self, before: Option<&Self>) -> Result<(), String> {
        let none = BTreeSet::new();
        let asked = before.map_or(&none, |before| &before.uses);
        if let Some(id) = self.results.difference(asked).next() {
            return Err(format!("a tool_result for {:?}, which the message before does not use", shortened(id, 60)));
        }
        match asked.difference(&self.results).next() {
            Some(id) => Err(format!("expected a tool_result for {:?} of the message before", shortened(id, 60))),
            None => Ok(()),
        }
    }

    fn unanswered(&self) -> String {
        let id = self.uses.first().copied().unwrap_or_default();
        format!("the tool_use {:?} must be followed by a user message with its tool_result", shortened(id, 60))
    }
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 60).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(role: &str) -> Value {
        json!({"role": role, "content": {"type": "text", "text": "x"}})
    }

    fn uses(ids: &[&str]) -> Value {
        let block = |id: &&str| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
        json!({"role": "assistant", "content": ids.iter().map(block).collect::<Vec<_>>()})
    }

    fn results(ids: &[&str]) -> Value {
        let block = |id: &&str| json!({"type": "tool_result", "toolUseId": id, "content": []});
        json!({"role": "user", "content": ids.iter().map(block).collect::<Vec<_>>()})
    }

    fn check(messages: &[Value]) -> Result<(), String> {
        check_sampling(&json!({"messages": messages, "maxTokens": 10}))
    }

    #[test]
    fn tool_uses_are_answered_at_once_and_in_full() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[json!({"role": "user", "content": []})]), Ok(()));
        assert_eq!(check(&[text("user"), uses(&["1", "2"]), results(&["2", "1"]), text("assistant")]), Ok(()));
        let mut mixed = uses(&["1"]);
        mixed["content"].as_array_mut().expect("a list").insert(0, json!({"type": "text", "text": "x"}));
        assert_eq!(check(&[mixed, results(&["1"])]), Ok(()));
        let mut crowded = results(&["1"]);
        crowded["content"].as_array_mut().expect("a list").push(json!({"type": "text", "text": "x"}));
        for (messages, why) in [
            (vec![uses(&["1"])], "messages[0]: the tool_use \"1\" must be followed by"),
            (vec![uses(&["1"]), text("user")], "messages[1]: expected a tool_result for \"1\""),
            (vec![uses(&["1", "2"]), results(&["1"])], "messages[1]: expected a tool_result for \"2\""),
            (
                vec![uses(&["1"]), results(&["1", "2"])],
                "messages[1]: a tool_result for \"2\", which the message before",
            ),
            (vec![results(&["1"])], "messages[0]: a tool_result for \"1\""),
            (vec![uses(&["1", "1"])], "messages[0]: two tool_use blocks with the id \"1\""),
            (vec![uses(&["1"]), results(&["1", "1"])], "messages[1]: two tool_result blocks for \"1\""),
            (vec![uses(&["1"]), crowded], "messages[1]: a message with a tool_result has nothing else in it"),
            (
                vec![json!({"role": "user", "content": uses(&["1"])["content"]})],
                "messages[0]: a tool_use is the assist",
            ),
            (
                vec![json!({"role": "assistant", "content": results(&["1"])["content"]})],
                "messages[0]: a tool_result is",
            ),
            (
                vec![json!({"role": "system", "content": []})],
                "messages[0]: \"role\": expected user or assistant, got \"s",
            ),
            (vec![json!({"role": "user"})], "messages[0]: \"content\": missing"),
            (vec![json!({"role": "user", "content": "x"})], "messages[0]: \"content\": expected text, image"),
            (
                vec![json!({"role": "user", "content": {"type": "text"}})],
                "messages[0]: \"content\": a \"text\" block needs",
            ),
            (
                vec![json!({"role": "user", "content": {"type": "image", "data": ""}})],
                "messages[0]: \"content\": a \"image\"",
            ),
            (vec![json!(1)], "messages[0]: \"role\": expected"),
        ] {
            let error = check(&messages).expect_err(why);
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn options_have_their_ranges() {
        let with = |key: &str, value: Value| {
            let mut params = json!({"messages": [text("user")], "maxTokens": 10});
            params[key] = value;
            check_sampling(&params)
        };
        for (key, value) in [
            ("maxTokens", json!(1)),
            ("includeContext", json!("allServers")),
            ("modelPreferences", json!({"costPriority": 0, "speedPriority": 1, "hints": [{"name": "a"}, {}]})),
            ("toolChoice", json!({"mode": "required"})),
            ("toolChoice", json!({})),
            ("tools", json!([{"name": "t", "inputSchema": {"type": "object"}}])),
            ("temperature", json!(0.3)),
            ("maxTokens", json!(0)),
        ] {
            assert_eq!(with(key, value), Ok(()), "{key}");
        }
        for (key, value, why) in [
            ("maxTokens", json!(1.5), "\"maxTokens\": expected a whole number, got 1.5"),
            ("maxTokens", json!("1"), "\"maxTokens\": expected a whole number, got \"1\""),
            ("messages", json!({}), "\"messages\": expected a list"),
            (
                "includeContext",
                json!("all"),
                "\"includeContext\": expected none, thisServer or allServers, got \"all\"",
            ),
            (
                "modelPreferences",
                json!({"costPriority": 1.1}),
                "modelPreferences.costPriority: expected a number from 0",
            ),
            ("modelPreferences", json!({"hints": ["a"]}), "modelPreferences.hints: expected a list of"),
            ("toolChoice", json!({"mode": "any"}), "\"toolChoice\": expected {\"mode\""),
            ("tools", json!([{}]), "\"tools\": expected a list of tools"),
            ("stopSequences", json!([1]), "\"stopSequences\": expected a list of strings, got [1]"),
        ] {
            let error = with(key, value).expect_err(key);
            assert!(error.starts_with(why), "{error}");
        }
        assert_eq!(check_sampling(&json!({"messages": []})), Err("\"maxTokens\": missing (required)".to_owned()));
        assert!(check_sampling(&json!([])).is_err());
    }

    #[test]
    fn a_result_has_a_role_a_model_and_content() {
        let mut result = text("assistant");
        assert_eq!(check_sampled(&result), Err("\"model\": missing (required)".to_owned()));
        result["model"] = json!("m");
        assert_eq!(check_sampled(&result), Ok(()));
        let mut several = uses(&["1", "2"]);
        several["model"] = json!("m");
        assert_eq!(check_sampled(&several), Ok(()));
        assert!(check_sampled(&json!({"role": "user", "model": "m", "content": results(&["1"])["content"]})).is_err());
    }
}
