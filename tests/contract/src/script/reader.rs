//! One file for one revision, line by line.

use super::{Action, Payload, REVISIONS, Script, Step, Transport};
use crate::Outcome;
use crate::pattern::{MODERN, Strictness};
use serde_json::Value;

/// Messages that may come in any order, and the title of the group.
type Group = (Vec<(Value, Strictness)>, Option<String>);

struct Reader<'a> {
    revision: &'a str,
    script: Script,
    on: Option<Transport>,
    applies: bool,
    narrows: bool,
    envelope: bool,
    group: Option<Group>,
    until: Option<Value>,
}

/// Read the lines that are for `revision`.
pub(super) fn read(name: &str, text: &str, revision: &str) -> Outcome<Script> {
    let mut reader = Reader {
        revision,
        script: Script {
            name: name.to_owned(),
            revision: revision.to_owned(),
            environment: Vec::new(),
            open: true,
            ends: true,
            alive: false,
            skips: Vec::new(),
            only: None,
            steps: Vec::new(),
        },
        on: None,
        applies: true,
        narrows: false,
        envelope: revision == MODERN,
        group: None,
        until: None,
    };
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match lines.last_mut() {
            Some((_, previous)) if line.starts_with("  ") && !line.trim().is_empty() => {
                previous.push_str(line.trim());
            }
            _ => lines.push((index + 1, line.trim_end().to_owned())),
        }
    }
    for (number, line) in lines {
        reader.line(number, &line).map_err(|reason| format!("line {number}: {reason}"))?;
    }
    if reader.group.is_some() {
        return Err("a <{ is never closed".into());
    }
    Ok(reader.script)
}

impl Reader<'_> {
    fn line(&mut self, number: usize, line: &str) -> Outcome {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(directive) = line.strip_prefix('@') {
            return self.directive(number, directive);
        }
        self.narrows = false;
        if !self.applies {
            return Ok(());
        }
        let action = match line.as_bytes()[0] {
            b'>' => self.sending(&line[1..])?,
            b'<' => self.expecting(&line[1..])?,
            b'^' => Some(header(line[1..].trim())?),
            b'=' => Some(answer(&line[1..])?),
            b'!' => Some(ending(&line[1..])?),
            _ => return Err(format!("what is {line:?}?")),
        };
        if let Some(action) = action {
            self.push(number, action);
        }
        Ok(())
    }

    fn push(&mut self, line: usize, action: Action) {
        self.script.steps.push(Step { line, on: self.on, action });
    }

    fn directive(&mut self, number: usize, directive: &str) -> Outcome {
        let (name, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let rest = rest.trim();
        match name {
            "revisions" => {}
            "stdio" => self.on = Some(Transport::Stdio),
            "http" => self.on = Some(Transport::Http),
            "both" => self.on = None,
            "always" | "since" | "until" | "legacy" | "modern" => {
                let applies = match name {
                    "since" => self.revision >= known(rest)?,
                    "until" => self.revision <= known(rest)?,
                    "legacy" => self.revision != MODERN,
                    "modern" => self.revision == MODERN,
                    _ => true,
                };
                self.applies = applies && (self.applies || !self.narrows);
                self.narrows = true;
            }
            "sse" if self.applies => {
                let on = yes(rest)?;
                self.push(number, Action::Stream(on));
            }
            "process" if self.applies => self.push(number, Action::NextProcess),
            "sse" | "process" => {}
            "transport" => {
                self.script.only = Some(match rest {
                    "stdio" => Transport::Stdio,
                    "http" => Transport::Http,
                    _ => return Err(format!("unknown transport {rest:?}")),
                });
            }
            "open" => self.script.open = yes(rest)?,
            "alive" => self.script.alive = yes(rest)?,
            "title" => {}
            "ends" => self.script.ends = yes(rest)?,
            "envelope" => self.envelope = yes(rest)? && self.revision == MODERN,
            "env" => {
                let (key, value) = rest.split_once('=').ok_or("@env NAME=VALUE")?;
                self.script.environment.push((key.into(), value.into()));
            }
            "skip" => {
                let (language, reason) = rest.split_once(' ').ok_or("@skip LANGUAGE reason")?;
                self.script.skips.push((language.into(), reason.into()));
            }
            _ => return Err(format!("unknown directive @{name}")),
        }
        Ok(())
    }

    fn sending(&mut self, rest: &str) -> Outcome<Option<Action>> {
        if let Some(rest) = rest.strip_prefix("until ") {
            self.until = Some(json(rest)?);
            return Ok(None);
        }
        for (word, method) in [("get", "GET"), ("delete", "DELETE")] {
            if let Some(label) = after_word(rest, word) {
                return Ok(Some(Action::Request { method: method.into(), path: None, label }));
            }
        }
        if let Some(rest) = rest.strip_prefix("http ") {
            let (method, path) = rest.split_once(' ').unwrap_or((rest, ""));
            return Ok(Some(Action::Request {
                method: method.to_owned(),
                path: Some(path.trim().to_owned()).filter(|path| !path.is_empty()),
                label: None,
            }));
        }
        let (rest, raw) = match rest.strip_prefix("raw") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let (label, rest) = labelled(rest);
        let payload = if raw {
            Payload::Raw(rest.to_owned())
        } else {
            Payload::Message { value: json(rest)?, envelope: self.envelope }
        };
        Ok(Some(Action::Send { payload, label }))
    }

    fn expecting(&mut self, rest: &str) -> Outcome<Option<Action>> {
        if let Some(rest) = rest.strip_prefix('{').filter(|rest| rest.is_empty() || rest.starts_with(" &")) {
            let (label, _) = labelled(&format!("{} ", rest.trim()));
            self.group = Some((Vec::new(), label));
            return Ok(None);
        }
        if rest == "}" {
            let (patterns, label) = self.group.take().ok_or("<} without <{")?;
            return Ok(Some(Action::Group { patterns, label }));
        }
        if let Some(rest) = rest.strip_prefix("none") {
            let (label, _) = labelled(&format!("{} ", rest.trim()));
            return Ok(Some(Action::Nothing { label }));
        }
        for (word, method) in [("get", "GET"), ("delete", "DELETE")] {
            if let Some(label) = after_word(rest, word) {
                return Ok(Some(Action::Await { method: method.into(), label }));
            }
        }
        let (how, rest) = match rest.strip_prefix('~') {
            Some(rest) => (Strictness::Subset, rest),
            None => (Strictness::Exact, rest),
        };
        let (label, rest) = labelled(rest);
        let mut pattern = json(rest)?;
        if let Some(members) = pattern.as_object_mut()
            && !members.contains_key("jsonrpc")
            && !members.contains_key("$oneOf")
        {
            members.insert("jsonrpc".into(), "2.0".into());
        }
        if let Some(message) = self.until.take() {
            return Ok(Some(Action::Until { message, pattern, how }));
        }
        if let Some((patterns, _)) = &mut self.group {
            patterns.push((pattern, how));
            return Ok(None);
        }
        Ok(Some(Action::Expect { pattern, how, label }))
    }
}

/// `get`, `get &label` → the label, if any.
fn after_word(text: &str, word: &str) -> Option<Option<String>> {
    let rest = text.strip_prefix(word).filter(|rest| rest.is_empty() || rest.starts_with(' '))?;
    Some(Some(rest.trim().trim_start_matches('&').to_owned()).filter(|label| !label.is_empty()))
}

fn known(revision: &str) -> Outcome<&str> {
    if REVISIONS.contains(&revision) { Ok(revision) } else { Err(format!("unknown revision {revision:?}")) }
}

fn yes(word: &str) -> Outcome<bool> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("yes or no, not {word:?}")),
    }
}

fn json(text: &str) -> Outcome<Value> {
    serde_json::from_str(text.trim()).map_err(|error| format!("not JSON: {error}"))
}

/// `&label rest` → the label and the rest.
fn labelled(text: &str) -> (Option<String>, &str) {
    match text.trim_start().strip_prefix('&') {
        Some(text) => {
            let (label, rest) = text.split_once(' ').unwrap_or((text, ""));
            (Some(label.to_owned()), rest.trim_start())
        }
        None => (None, text.trim_start()),
    }
}

fn header(text: &str) -> Outcome<Action> {
    if let Some(name) = text.strip_prefix('-') {
        return Ok(Action::Header { name: name.trim().to_owned(), value: None });
    }
    let (name, value) = text.split_once(':').ok_or("^ Name: value")?;
    Ok(Action::Header { name: name.to_owned(), value: Some(value.strip_prefix(' ').unwrap_or(value).to_owned()) })
}

fn answer(text: &str) -> Outcome<Action> {
    let (label, rest) = labelled(text);
    if let Some(header) = rest.strip_prefix("header ") {
        let (name, pattern) = header.split_once(':').ok_or("= header Name: pattern")?;
        return Ok(Action::ResponseHeader {
            name: name.trim().to_ascii_lowercase(),
            pattern: pattern.trim().into(),
            label,
        });
    }
    let codes = rest
        .split_whitespace()
        .map(|code| code.parse().map_err(|_| format!("not a status: {code:?}")))
        .collect::<Outcome<Vec<u16>>>()?;
    Ok(Action::Status { codes, label })
}

fn ending(text: &str) -> Outcome<Action> {
    let mut words = text.split_whitespace();
    let named = |label: Option<&str>| label.map(|label| label.trim_start_matches('&').to_owned());
    match (words.next(), named(words.next())) {
        (Some("eof"), None) => Ok(Action::Eof),
        (Some("exit"), None) => Ok(Action::Exit),
        (Some("close"), Some(label)) => Ok(Action::Close { label }),
        (Some("end"), Some(label)) => Ok(Action::End { label }),
        _ => Err(format!("! eof, ! close LABEL or ! end LABEL, not {text:?}")),
    }
}
