//! The edge of what a server asks a client: the neutral (newest) form of questions becomes what a revision can carry,
//! and so do a client's answers. Answers need nothing on their way to the server's handler: what an older revision
//! sends, the newest allows, too.

use serde_json::{Map, Value, json};

use super::Rules;
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::form;
use crate::model::sampling::{blocks, check_sampled, check_sampling};

/// A question as it goes out under `rules`, and what the client must have declared for it.
///
/// # Errors
/// [`Misuse`](ErrorKind::Misuse) for a form or messages that are wrong, and as [`question`].
pub(crate) fn prepared(rules: &Rules, method: &str, params: &RawJson) -> Result<(RawJson, Vec<&'static str>)> {
    let read: Value = params.to().map_err(|e| Error::misuse(format!("{method}: {e}")))?;
    let wrong = |why: String| Error::misuse(format!("{method}: {why}"));
    match method {
        "elicitation/create" => {
            let mode = mode_of(&read).map_err(wrong)?;
            if !read["message"].is_string() {
                return Err(wrong("\"message\": expected a string".into()));
            }
            match mode {
                Mode::Form => form::check_form(&read["requestedSchema"]).map_err(wrong)?,
                Mode::Url => check_url(&read["url"]).map_err(wrong)?,
            }
        }
        "sampling/createMessage" => check_sampling(&read).map_err(wrong)?,
        _ => {}
    }
    Ok((question(rules, method, params)?, needed(rules, method, &read)))
}

/// How the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Form,
    Url,
}

/// The mode of an elicitation.
///
/// # Errors
/// What there is instead.
pub(crate) fn mode_of(params: &Value) -> Result<Mode, String> {
    match &params["mode"] {
        Value::Null => Ok(Mode::Form),
        Value::String(mode) if mode == "form" => Ok(Mode::Form),
        Value::String(mode) if mode == "url" => Ok(Mode::Url),
        other => Err(format!("\"mode\": expected form or url, got {}", shortened(&other.to_string(), 60))),
    }
}

pub(crate) fn check_url(url: &Value) -> Result<(), String> {
    let text = url.as_str().unwrap_or_default().to_ascii_lowercase();
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match host {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(()),
        _ => Err(format!("\"url\": expected an http or https URL, got {}", shortened(&url.to_string(), 100))),
    }
}

/// Whether `result` is a `ListRootsResult`.
///
/// # Errors
/// The member and what it should be.
fn check_roots(result: &Value) -> Result<(), String> {
    let shown = |value: &Value| shortened(&value.to_string(), 60).into_owned();
    let Value::Array(roots) = &result["roots"] else {
        return Err(format!("\"roots\": expected an array, got {}", shown(&result["roots"])));
    };
    for (place, root) in roots.iter().enumerate() {
        let (member, expected, got) = if !root["uri"].as_str().is_some_and(|uri| uri.starts_with("file://")) {
            ("uri", "a file:// URI", &root["uri"])
        } else if !root["name"].is_null() && !root["name"].is_string() {
            ("name", "a string", &root["name"])
        } else {
            continue;
        };
        return Err(format!("roots[{place}].{member}: expected {expected}, got {}", shown(got)));
    }
    Ok(())
}

/// What a client answered to the question `params`, checked. Where forms have defaults that an older revision's client
/// is not told of, they stand for the answers that are left out.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) saying what does not fit.
pub(crate) fn received(rules: &Rules, method: &str, params: Option<&RawJson>, result: RawJson) -> Result<RawJson> {
    let wrong = |why: String| Error::new(ErrorKind::PeerMisbehaved, format!("the client's answer to {method}: {why}"));
    match method {
        "elicitation/create" => {
            let asked: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
            let mut read: Value = result.to().map_err(|e| wrong(e.to_string()))?;
            // It has become a task, whose result comes later.
            if asked["task"].is_object() && read["task"].is_object() {
                return Ok(result);
            }
            if asked["mode"] == "url" {
                form::check_result(None, &read).map_err(wrong)?;
                return Ok(result);
            }
            let schema = &asked["requestedSchema"];
            if read["action"] != "accept" {
                form::check_result(Some(schema), &read).map_err(wrong)?;
                return Ok(result);
            }
            if rules.elicitation_modes {
                form::check_result(Some(schema), &read).map_err(wrong)?;
                return Ok(result);
            }
            let given = read["content"].take();
            let filled = form::with_defaults(schema, given.clone());
            let changed = filled != given;
            read["content"] = filled;
            form::check_result(Some(schema), &read).map_err(wrong)?;
            Ok(if changed { RawJson::from_value(&read) } else { result })
        }
        "sampling/createMessage" => {
            let read: Value = result.to().map_err(|e| wrong(e.to_string()))?;
            let asks_for_task = || params.and_then(|p| p.to::<Value>().ok()).is_some_and(|p| p["task"].is_object());
            if read["task"].is_object() && asks_for_task() {
                return Ok(result);
            }
            check_sampled(&read).map_err(wrong)?;
            Ok(result)
        }
        "roots/list" => {
            check_roots(&result.to().map_err(|e| wrong(e.to_string()))?).map_err(wrong)?;
            Ok(result)
        }
        _ => Ok(result),
    }
}

/// The capabilities, as dotted paths, that a client must have declared to be asked this. The more general come first.
pub(crate) fn needed(rules: &Rules, method: &str, params: &Value) -> Vec<&'static str> {
    match method {
        "roots/list" => vec!["roots"],
        "elicitation/create" => match params["mode"].as_str() {
            Some("url") => vec!["elicitation.url"],
            _ if rules.elicitation_modes => vec!["elicitation.form"],
            _ => vec!["elicitation"],
        },
        "sampling/createMessage" => {
            let mut needed = vec!["sampling"];
            if ["tools", "toolChoice"].iter().any(|key| !params[*key].is_null()) {
                needed.push("sampling.tools");
            }
            let context = params["includeContext"].as_str().unwrap_or("none");
            if rules.sampling_context && context != "none" {
                needed.push("sampling.context");
            }
            needed
        }
        _ => Vec::new(),
    }
}

/// The parameters of a question as `rules` can carry them; parameters that need no change pass as the text they are.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) naming what the revision cannot say, [`Misuse`](ErrorKind::Misuse) for
/// parameters that no revision has.
pub(crate) fn question(rules: &Rules, method: &str, params: &RawJson) -> Result<RawJson> {
    match method {
        "elicitation/create" => elicitation(rules, params),
        "sampling/createMessage" if !rules.sampling_tools => sampling(rules, params),
        _ => Ok(params.clone()),
    }
}

/// A client's result as `rules` can carry it.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) naming what the revision cannot say.
pub(crate) fn answer(rules: &Rules, method: &str, result: &RawJson) -> Result<RawJson> {
    match method {
        "elicitation/create" if !rules.elicitation_modes => {
            let members = object("result", result)?;
            let list = members.get("content").and_then(Value::as_object);
            if let Some((name, _)) = list.into_iter().flatten().find(|(_, value)| value.is_array()) {
                return Err(unsupported(rules, &format!("answer {:?}: several choices", shortened(name, 100))));
            }
            Ok(result.clone())
        }
        "sampling/createMessage" if !rules.sampling_tools => {
            let mut members = object("result", result)?;
            let content = members.get("content").cloned().unwrap_or_default();
            for block in blocks(&content) {
                check_block(rules, block).map_err(|what| unsupported(rules, &format!("\"content\": {what}")))?;
            }
            let Value::Array(mut several) = content else { return Ok(result.clone()) };
            let one = if several.len() == 1 {
                several.remove(0)
            } else {
                let texts: Option<Vec<&str>> = several.iter().map(text_of).collect();
                let texts = texts.filter(|texts| !texts.is_empty());
                let texts =
                    texts.ok_or_else(|| unsupported(rules, "\"content\": several blocks that are not all text"))?;
                json!({"type": "text", "text": texts.join("\n")})
            };
            members.insert("content".to_owned(), one);
            Ok(RawJson::from_value(&members))
        }
        _ => Ok(result.clone()),
    }
}

fn unsupported(rules: &Rules, what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what}: not in revision {}, which the client speaks", rules.name))
}

fn object(what: &str, raw: &RawJson) -> Result<Map<String, Value>> {
    raw.to().map_err(|_| Error::misuse(format!("{what}: expected an object")))
}

fn elicitation(rules: &Rules, params: &RawJson) -> Result<RawJson> {
    let mut members = object("params", params)?;
    match members.get("mode").map(|mode| mode.as_str().unwrap_or_default()) {
        None | Some("form") if rules.elicitation_modes => return Ok(params.clone()),
        None | Some("form") => {
            members.shift_remove("mode");
            if let Some(form) = members.get_mut("requestedSchema") {
                older_form(form).map_err(|what| unsupported(rules, &what))?;
            }
        }
        Some("url") if !rules.elicitation_modes => return Err(unsupported(rules, "mode \"url\"")),
        Some("url") => match (rules.elicitation_id, members.contains_key("elicitationId")) {
            (true, false) => {
                return Err(Error::misuse("\"elicitationId\": missing, every URL elicitation has its own"));
            }
            (false, true) => drop(members.shift_remove("elicitationId")),
            _ => return Ok(params.clone()),
        },
        Some(other) => {
            let other = shortened(other, 60);
            return Err(Error::misuse(format!("\"mode\": expected form or url, got \"{other}\"")));
        }
    }
    Ok(RawJson::from_value(&members))
}

/// A form without what came with the modes: titles become `enumNames`, defaults go (a boolean's has always been there).
///
/// # Errors
/// The property that is a choice of several.
fn older_form(form: &mut Value) -> Result<(), String> {
    let Some(form) = form.as_object_mut() else { return Ok(()) };
    form.shift_remove("$schema");
    let Some(Value::Object(properties)) = form.get_mut("properties") else { return Ok(()) };
    for (name, property) in properties {
        let Some(property) = property.as_object_mut() else { continue };
        let kind = property.get("type").and_then(Value::as_str);
        if kind == Some("array") {
            return Err(format!("property \"{}\": several choices", shortened(name, 100)));
        }
        if kind != Some("boolean") {
            property.shift_remove("default");
        }
        if let Some(Value::Array(choices)) = property.shift_remove("oneOf") {
            let all = |key: &str| choices.iter().map(|choice| choice[key].clone()).collect::<Vec<_>>();
            let (values, titles) = (all("const"), all("title"));
            property.insert("enum".to_owned(), values.into());
            property.insert("enumNames".to_owned(), titles.into());
        }
    }
    Ok(())
}

/// Sampling without tools: each message has one block, so one with several becomes several of the same role.
fn sampling(rules: &Rules, params: &RawJson) -> Result<RawJson> {
    let mut members = object("params", params)?;
    if let Some(key) = ["tools", "toolChoice"].into_iter().find(|key| members.contains_key(*key)) {
        return Err(unsupported(rules, &format!("{key:?}")));
    }
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        let mut single = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate() {
            if blocks(&message["content"]).is_empty() {
                return Err(unsupported(rules, &format!("messages[{at}]: \"content\": no block")));
            }
            for block in blocks(&message["content"]) {
                check_block(rules, block).map_err(|what| unsupported(rules, &format!("messages[{at}]: {what}")))?;
                let mut block = block.clone();
                if let Some(members) = block.as_object_mut().filter(|_| !rules.structured) {
                    members.shift_remove("_meta");
                }
                single.push(json!({"role": message["role"], "content": block}));
            }
        }
        *messages = single;
    }
    Ok(RawJson::from_value(&members))
}

fn check_block(rules: &Rules, block: &Value) -> Result<(), String> {
    match block["type"].as_str() {
        Some("audio") if !rules.audio => Err("audio".to_owned()),
        Some(tool @ ("tool_use" | "tool_result")) if !rules.sampling_tools => Err(tool.to_owned()),
        _ => Ok(()),
    }
}

fn text_of(block: &Value) -> Option<&str> {
    block["text"].as_str().filter(|_| block["type"] == "text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::revision::Revision;

    const FORM: &str = "elicitation/create";
    const SAMPLE: &str = "sampling/createMessage";

    fn rules(name: &str) -> &'static Rules {
        Revision::parse(name).expect("known").rules()
    }

    fn shaped(revision: &str, method: &str, params: Value) -> Result<Value, String> {
        let raw = question(rules(revision), method, &RawJson::from_value(&params));
        raw.map(|raw| raw.to().expect("json")).map_err(|e| format!("{}: {}", e.kind().as_str(), e.message()))
    }

    fn answered(revision: &str, method: &str, result: Value) -> Result<Value, String> {
        let raw = answer(rules(revision), method, &RawJson::from_value(&result));
        raw.map(|raw| raw.to().expect("json")).map_err(|e| format!("{}: {}", e.kind().as_str(), e.message()))
    }

    #[test]
    fn a_form_loses_what_an_older_revision_lacks() {
        let params = json!({"mode": "form", "message": "m", "requestedSchema": {"$schema": "s", "type": "object",
            "properties": {
                "a": {"type": "string", "title": "A", "minLength": 1, "default": "x"},
                "b": {"type": "boolean", "default": true},
                "c": {"type": "string", "oneOf": [{"const": "1", "title": "One"}, {"const": "2", "title": "Two"}], "default": "1"},
                "d": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
            }, "required": ["a"]}});
        for revision in ["2025-11-25", "2026-07-28"] {
            assert_eq!(shaped(revision, FORM, params.clone()), Ok(params.clone()));
        }
        let older = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
            "a": {"type": "string", "title": "A", "minLength": 1},
            "b": {"type": "boolean", "default": true},
            "c": {"type": "string", "enum": ["1", "2"], "enumNames": ["One", "Two"]},
            "d": {"type": "string", "enum": ["x"], "enumNames": ["X"]},
        }, "required": ["a"]}});
        assert_eq!(shaped("2025-06-18", FORM, params), Ok(older));
        let several = json!({"message": "m", "requestedSchema": {"type": "object", "properties": {
            "s": {"type": "array", "items": {"type": "string", "enum": ["a"]}}}}});
        assert_eq!(shaped("2025-11-25", FORM, several.clone()), Ok(several.clone()));
        let error = "unsupported: property \"s\": several choices: not in revision 2025-06-18, which the client speaks";
        assert_eq!(shaped("2025-06-18", FORM, several), Err(error.to_owned()));
        assert!(shaped("2025-11-25", FORM, json!({"mode": "voice"})).expect_err("unknown").contains("form or url"));
        let asked = |params: Value| {
            let error = prepared(rules("2025-11-25"), FORM, &RawJson::from_value(&params)).expect_err("wrong");
            format!("{}: {}", error.kind().as_str(), error.message())
        };
        for (params, why) in [
            (json!({"mode": "voice", "message": "m"}), "\"mode\": expected form or url, got \"voice\""),
            (json!({"mode": 1}), "\"mode\": expected form or url, got 1"),
            (json!({"mode": "url", "url": "https://h/"}), "\"message\": expected a string"),
            (json!({"mode": "url", "message": "m"}), "\"url\": expected an http or https URL, got null"),
            (json!({"mode": "url", "message": "m", "url": "javascript:1"}), "\"url\": expected an http"),
        ] {
            assert!(asked(params).starts_with(&format!("misuse: {FORM}: {why}")), "{why}");
        }
        assert!(shaped("2025-11-25", FORM, json!([])).is_err());
    }

    #[test]
    fn a_url_has_an_id_in_one_revision() {
        let with = json!({"mode": "url", "message": "m", "url": "https://h/", "elicitationId": "1"});
        let without = json!({"mode": "url", "message": "m", "url": "https://h/"});
        assert_eq!(shaped("2025-11-25", FORM, with.clone()), Ok(with.clone()));
        assert_eq!(shaped("2026-07-28", FORM, with.clone()), Ok(without.clone()));
        assert_eq!(shaped("2026-07-28", FORM, without.clone()), Ok(without.clone()));
        assert!(
            shaped("2025-11-25", FORM, without).expect_err("no id").starts_with("misuse: \"elicitationId\": missing")
        );
        assert!(shaped("2025-06-18", FORM, with).expect_err("no modes").starts_with("unsupported: mode \"url\""));
    }

    #[test]
    fn messages_have_one_block_before_tools_came() {
        let text = |text: &str| json!({"type": "text", "text": text, "_meta": {}});
        let params = json!({"maxTokens": 1, "includeContext": "thisServer", "messages": [
            {"role": "user", "content": [text("a")], "_meta": {}},
            {"role": "user", "content": [text("b"), text("c")]},
            {"role": "assistant", "content": text("d")},
        ]});
        for revision in ["2025-11-25", "2026-07-28"] {
            assert_eq!(shaped(revision, SAMPLE, params.clone()), Ok(params.clone()));
        }
        let one = |role: &str, block: Value| json!({"role": role, "content": block});
        let older = json!({"maxTokens": 1, "includeContext": "thisServer", "messages": [
            one("user", text("a")), one("user", text("b")), one("user", text("c")), one("assistant", text("d"))]});
        assert_eq!(shaped("2025-06-18", SAMPLE, params.clone()), Ok(older));
        let oldest = shaped("2024-11-05", SAMPLE, params).expect("shaped");
        assert_eq!(oldest["messages"][0], json!({"role": "user", "content": {"type": "text", "text": "a"}}));

        let audio =
            json!({"messages": [{"role": "user", "content": {"type": "audio", "data": "", "mimeType": "audio/wav"}}]});
        assert_eq!(shaped("2025-03-26", SAMPLE, audio.clone()), Ok(audio.clone()));
        assert!(
            shaped("2024-11-05", SAMPLE, audio).expect_err("no audio").starts_with("unsupported: messages[0]: audio")
        );
        for (params, why) in [
            (json!({"messages": [], "tools": []}), "unsupported: \"tools\": not in revision 2025-06-18"),
            (json!({"messages": [], "toolChoice": {}}), "unsupported: \"toolChoice\""),
            (
                json!({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}),
                "unsupported: messages[0]: tool_use",
            ),
        ] {
            assert!(shaped("2025-06-18", SAMPLE, params).expect_err(why).starts_with(why));
        }
    }

    #[test]
    fn a_clients_answer_is_what_the_revision_can_say() {
        let several = json!({"action": "accept", "content": {"s": ["a"]}});
        assert_eq!(answered("2025-11-25", FORM, several.clone()), Ok(several.clone()));
        assert!(
            answered("2025-06-18", FORM, several)
                .expect_err("a list")
                .starts_with("unsupported: answer \"s\": several")
        );
        let plain = json!({"action": "accept", "content": {"s": "a", "n": 1.5}});
        assert_eq!(answered("2025-06-18", FORM, plain.clone()), Ok(plain));

        let result = |content: Value| json!({"role": "assistant", "model": "m", "content": content});
        let (a, b) = (json!({"type": "text", "text": "a"}), json!({"type": "text", "text": "b"}));
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        let two = result(json!([a, b]));
        assert_eq!(answered("2025-11-25", SAMPLE, two.clone()), Ok(two.clone()));
        assert_eq!(answered("2025-06-18", SAMPLE, two), Ok(result(json!({"type": "text", "text": "a\nb"}))));
        assert_eq!(answered("2025-06-18", SAMPLE, result(json!([image]))), Ok(result(image.clone())));
        assert_eq!(answered("2025-06-18", SAMPLE, result(a.clone())), Ok(result(a.clone())));
        for content in [json!([a, image]), json!([]), json!([{"type": "tool_use"}]), json!({"type": "tool_use"})] {
            assert!(
                answered("2025-06-18", SAMPLE, result(content))
                    .expect_err("no")
                    .starts_with("unsupported: \"content\"")
            );
        }
    }

    #[test]
    fn defaults_stand_for_answers_where_clients_are_not_told_of_them() {
        let asked = RawJson::from_value(&json!({"message": "m", "requestedSchema": {"type": "object",
            "properties": {"name": {"type": "string", "default": "x"}}}}));
        let given = json!({"action": "accept", "content": {}});
        let heard = |revision: &str| -> Value {
            let result = received(rules(revision), FORM, Some(&asked), RawJson::from_value(&given));
            result.expect("fits").to().expect("json")
        };
        assert_eq!(heard("2025-11-25"), given, "the client left it out");
        assert_eq!(heard("2025-06-18")["content"], json!({"name": "x"}));
    }

    #[test]
    fn roots_that_are_none_are_named() {
        let heard = |result: Value| {
            let result = received(rules("2025-11-25"), "roots/list", None, RawJson::from_value(&result));
            result.map(drop).map_err(|e| e.to_string())
        };
        heard(json!({"roots": [{"uri": "file:///a", "name": "A", "_meta": {}}, {"uri": "file:///b"}]})).expect("fits");
        for (result, why) in [
            (json!({}), "\"roots\": expected an array, got null"),
            (json!({"roots": ["file:///a"]}), "roots[0].uri: expected a file:// URI, got null"),
            (json!({"roots": [{"uri": "file:///a"}, {"uri": "https://a"}]}), "roots[1].uri: expected a file:// URI"),
            (json!({"roots": [{"uri": "file:///a", "name": 7}]}), "roots[0].name: expected a string, got 7"),
        ] {
            let said = heard(result).expect_err("none");
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_question_names_the_capabilities_it_needs() {
        let needs = |revision: &str, method: &str, params: Value| needed(rules(revision), method, &params);
        assert_eq!(needs("2025-11-25", "roots/list", Value::Null), ["roots"]);
        assert_eq!(needs("2025-11-25", FORM, json!({})), ["elicitation.form"]);
        assert_eq!(needs("2026-07-28", FORM, json!({"mode": "form"})), ["elicitation.form"]);
        assert_eq!(needs("2026-07-28", FORM, json!({"mode": "url"})), ["elicitation.url"]);
        assert_eq!(needs("2025-06-18", FORM, json!({})), ["elicitation"]);
        assert_eq!(needs("2025-11-25", SAMPLE, json!({"includeContext": "none"})), ["sampling"]);
        assert_eq!(needs("2025-11-25", SAMPLE, json!({"tools": []})), ["sampling", "sampling.tools"]);
        let all = json!({"toolChoice": {}, "includeContext": "allServers"});
        assert_eq!(needs("2026-07-28", SAMPLE, all), ["sampling", "sampling.tools", "sampling.context"]);
        assert_eq!(needs("2025-06-18", SAMPLE, json!({"includeContext": "thisServer"})), ["sampling"]);
        assert!(needs("2025-11-25", "ping", json!({})).is_empty());
    }
}
