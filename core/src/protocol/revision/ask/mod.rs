//! The edge of what a server asks a client: the neutral (newest) form of questions becomes what a revision can carry,
//! and so do a client's answers. Answers need nothing on their way to the server's handler: what an older revision
//! sends, the newest allows, too.

use serde_json::{Map, Value, json};

use super::Rules;
use super::shape::known_block;
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

/// Way of asking the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Form,
    Url,
}

/// Returns the mode of an elicitation.
///
/// # Errors
/// The mode that is there instead.
pub(crate) fn mode_of(params: &Value) -> Result<Mode, String> {
    match &params["mode"] {
        Value::Null => Ok(Mode::Form),
        Value::String(mode) if mode == "form" => Ok(Mode::Form),
        Value::String(mode) if mode == "url" => Ok(Mode::Url),
        other => Err(format!("\"mode\": expected form or url, got {}", shortened(&other.to_string(), 60))),
    }
}

/// Checks that it is a page that a user may be sent to.
///
/// # Errors
/// The value that is there instead; also for a user or a password in it, which the specification forbids (elicitation).
pub(crate) fn check_url(url: &Value) -> Result<(), String> {
    let text = url.as_str().unwrap_or_default().to_ascii_lowercase();
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split(['/', '\\', '?', '#']).next());
    if authority.is_some_and(|authority| authority.contains('@')) {
        return Err("\"url\": expected a URL without a user and a password in it".into());
    }
    match rest {
        Some(rest)
            if !rest.is_empty() && !rest.starts_with(['/', '?', '#', ':']) && !rest.contains(char::is_whitespace) =>
        {
            Ok(())
        }
        _ => Err(format!("\"url\": expected an http or https URL, got {}", shortened(&url.to_string(), 100))),
    }
}

/// Checks that `result` is a `ListRootsResult`.
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

/// Returns a client's answer to the question `params`, checked. Where forms have defaults that an older revision's
/// client is not told of, they stand for the answers that are left out.
///
/// `judged`: the library that made a form judges its fields; they are not looked at here.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) saying what does not fit.
pub(crate) fn received(
    rules: &Rules,
    method: &str,
    params: Option<&RawJson>,
    result: RawJson,
    judged: bool,
) -> Result<RawJson> {
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
            let checked = (!judged).then_some(schema);
            if read["action"] != "accept" || rules.elicitation_modes {
                form::check_result(checked, &read).map_err(wrong)?;
                return Ok(result);
            }
            let given = read["content"].take();
            let filled = form::with_defaults(schema, given.clone());
            let changed = filled != given;
            read["content"] = filled;
            form::check_result(checked, &read).map_err(wrong)?;
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
            let mut one = match content {
                Value::Array(mut several) if several.len() == 1 => several.remove(0),
                Value::Array(several) => {
                    let texts: Option<Vec<&str>> = several.iter().map(text_of).collect();
                    let texts = texts.filter(|texts| !texts.is_empty());
                    let texts =
                        texts.ok_or_else(|| unsupported(rules, "\"content\": several blocks that are not all text"))?;
                    json!({"type": "text", "text": texts.join("\n")})
                }
                one if one.is_object() => one,
                _ => return Ok(result.clone()),
            };
            known_block(rules, &mut one);
            members.insert("content".to_owned(), one);
            Ok(RawJson::from_value(&members))
        }
        "roots/list" if !rules.structured => {
            let mut members = object("result", result)?;
            let roots = members.get_mut("roots").and_then(Value::as_array_mut);
            for root in roots.into_iter().flatten().filter_map(Value::as_object_mut) {
                root.shift_remove("_meta");
            }
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
                known_block(rules, &mut block);
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
mod tests;
