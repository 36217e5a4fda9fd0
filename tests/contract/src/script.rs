//! The transcript format: one file, one conversation. `tests/transcripts/README.md` describes
//! it for authors; this module turns the text into [`Script`]s, one per revision it names.

use crate::Outcome;
use crate::pattern::{MODERN, Strictness};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every released revision, oldest first.
pub const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

/// Where a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Lines over the standard streams of a child process.
    Stdio,
    /// Streamable HTTP.
    Http,
}

impl Transport {
    /// The name used in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// One conversation, for one revision.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file, relative to the transcripts folder, without `.txt`.
    pub name: String,
    /// The revision that is spoken.
    pub revision: String,
    /// Environment of the server process, from `@env`.
    pub environment: Vec<(String, String)>,
    /// Whether the legacy handshake precedes the first step.
    pub open: bool,
    /// Whether the script waits for a clean end (stdio: exit code 0 after EOF).
    pub ends: bool,
    /// Whether a valid call must work after every answer.
    pub alive: bool,
    /// Known gaps: language and reason.
    pub skips: Vec<(String, String)>,
    /// The transport it is limited to.
    pub only: Option<Transport>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line number, from 1.
    pub line: usize,
    /// The transport the line is limited to.
    pub on: Option<Transport>,
    /// What to do.
    pub action: Action,
}

/// What a line asks for. `label` names the exchange it belongs to; none is the latest one.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the line before each variant names its parts")]
pub enum Action {
    /// `> …`: send; with a label, go on without waiting for the answer.
    Send { payload: Payload, label: Option<String> },
    /// `^ Name: value` sets, `^ -Name` leaves out a header of the next HTTP request.
    Header { name: String, value: Option<String> },
    /// `>get`, `>delete`, `>http METHOD [PATH]`.
    Request {
        method: String,
        path: Option<String>,
        label: Option<String>,
    },
    /// `< …`: the next message.
    Expect {
        pattern: Value,
        how: Strictness,
        label: Option<String>,
    },
    /// `<{ … <}`: the next messages, in any order.
    Group {
        patterns: Vec<(Value, Strictness)>,
        label: Option<String>,
    },
    /// `<none`: no further message in this answer.
    Nothing { label: Option<String> },
    /// `>until …` and the `<` line after it: ask again until the answer fits.
    Until {
        message: Value,
        pattern: Value,
        how: Strictness,
    },
    /// `= 400` or `= 200 202`.
    Status { codes: Vec<u16>, label: Option<String> },
    /// `= header Name: pattern`.
    ResponseHeader {
        name: String,
        pattern: Value,
        label: Option<String>,
    },
    /// `! close LABEL`: hang up on that exchange.
    Close { label: String },
    /// `! end LABEL`: that exchange ends with no further message.
    End { label: String },
    /// `! eof`: close standard input and wait for the end.
    Eof,
}

/// What is sent.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the line before each variant names its parts")]
pub enum Payload {
    /// A message; `jsonrpc` and (modern) the envelope are added unless the script says no.
    Message { value: Value, envelope: bool },
    /// Exactly these bytes, as a line or as a body.
    Raw(String),
}

struct Reader<'a> {
    revision: &'a str,
    script: Script,
    on: Option<Transport>,
    applies: bool,
    narrows: bool,
    envelope: bool,
    group: Option<(Vec<(Value, Strictness)>, Option<String>)>,
    until: Option<Value>,
}

/// Read every script below `folder`, in order of their names.
pub fn read_all(folder: &Path) -> Outcome<Vec<Script>> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    let mut scripts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file
            .strip_prefix(folder)
            .unwrap_or(&file)
            .with_extension("")
            .to_string_lossy()
            .into_owned();
        scripts.extend(parse(&name, &text).map_err(|reason| format!("{name}.txt: {reason}"))?);
    }
    Ok(scripts)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Outcome {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    Ok(())
}

/// Read one file: one script for each revision it applies to.
pub fn parse(name: &str, text: &str) -> Outcome<Vec<Script>> {
    let folder = name.split('/').next().unwrap_or_default();
    let mut revisions: Vec<&str> = REVISIONS.into_iter().filter(|revision| *revision == folder).collect();
    if let Some(list) = text.lines().find_map(|line| line.strip_prefix("@revisions ")) {
        revisions = match list.trim() {
            "all" => REVISIONS.to_vec(),
            "legacy" => REVISIONS[..4].to_vec(),
            list => {
                let named: Vec<&str> = list.split_whitespace().collect();
                if let Some(unknown) = named.iter().find(|name| !REVISIONS.contains(name)) {
                    return Err(format!("unknown revision {unknown}"));
                }
                named
            }
        };
    }
    if revisions.is_empty() {
        return Err("no revision: neither the folder nor @revisions names one".into());
    }
    revisions
        .into_iter()
        .map(|revision| parse_for(name, text, revision))
        .collect()
}

fn parse_for(name: &str, text: &str, revision: &str) -> Outcome<Script> {
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
        reader
            .line(number, &line)
            .map_err(|reason| format!("line {number}: {reason}"))?;
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
            return self.directive(directive);
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
            self.script.steps.push(Step {
                line: number,
                on: self.on,
                action,
            });
        }
        Ok(())
    }

    fn directive(&mut self, directive: &str) -> Outcome {
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
            if let Some(label) = rest
                .strip_prefix(word)
                .filter(|rest| rest.is_empty() || rest.starts_with(' '))
            {
                return Ok(Some(Action::Request {
                    method: method.into(),
                    path: None,
                    label: Some(label.trim().trim_start_matches('&').to_owned()).filter(|label| !label.is_empty()),
                }));
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
            Payload::Message {
                value: json(rest)?,
                envelope: self.envelope,
            }
        };
        Ok(Some(Action::Send { payload, label }))
    }

    fn expecting(&mut self, rest: &str) -> Outcome<Option<Action>> {
        if let Some(rest) = rest
            .strip_prefix('{')
            .filter(|rest| rest.is_empty() || rest.starts_with(" &"))
        {
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

fn known(revision: &str) -> Outcome<&str> {
    if REVISIONS.contains(&revision) {
        Ok(revision)
    } else {
        Err(format!("unknown revision {revision:?}"))
    }
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
        return Ok(Action::Header {
            name: name.trim().to_owned(),
            value: None,
        });
    }
    let (name, value) = text.split_once(':').ok_or("^ Name: value")?;
    Ok(Action::Header {
        name: name.to_owned(),
        value: Some(value.strip_prefix(' ').unwrap_or(value).to_owned()),
    })
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
        (Some("close"), Some(label)) => Ok(Action::Close { label }),
        (Some("end"), Some(label)) => Ok(Action::End { label }),
        _ => Err(format!("! eof, ! close LABEL or ! end LABEL, not {text:?}")),
    }
}

/// The bytes of a `>raw` line: `{{fill N TEXT}}` repeats, `{{nest N}}` is N arrays inside each
/// other, `{{hex FF 00}}` bytes; everything else is itself.
pub fn raw_bytes(text: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("{{") {
        let end = rest[start..].find("}}").ok_or("unclosed {{")? + start;
        bytes.extend_from_slice(&rest.as_bytes()[..start]);
        let mut words = rest[start + 2..end].split_whitespace();
        let kind = words.next().unwrap_or_default();
        let number = |word: Option<&str>| {
            word.and_then(|word| word.parse::<usize>().ok())
                .ok_or_else(|| format!("{{{{{kind} NUMBER …}}}}"))
        };
        match kind {
            "fill" => {
                let count = number(words.next())?;
                bytes.extend_from_slice(words.next().unwrap_or("x").repeat(count).as_bytes());
            }
            "nest" => {
                let depth = number(words.next())?;
                bytes.extend(std::iter::repeat_n(b'[', depth));
                bytes.extend(std::iter::repeat_n(b']', depth));
            }
            "hex" => {
                for word in words {
                    bytes.push(u8::from_str_radix(word, 16).map_err(|_| format!("not hex: {word:?}"))?);
                }
            }
            _ => return Err(format!("unknown {{{{{kind}}}}}")),
        }
        rest = &rest[end + 2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_script_per_revision_with_its_own_lines() {
        let text = "@revisions all\n# note\n> {\"id\":1,\"method\":\"ping\"}\n@since 2025-03-26\n@until 2025-06-18\n< {\"id\":1,\n  \"result\":{}}\n@modern\n= 404\n@always\n! eof\n";
        let scripts = parse("all/ping", text).expect("parses");
        assert_eq!(scripts.len(), 5);
        assert!(matches!(scripts[0].steps[1].action, Action::Eof));
        assert!(matches!(scripts[1].steps[1].action, Action::Expect { .. }));
        assert!(matches!(scripts[4].steps[1].action, Action::Status { .. }));
        assert_eq!(scripts[4].steps.len(), 3);
    }

    #[test]
    fn labels_groups_and_headers() {
        let text = "^ Mcp-Name:  x \n^ -Accept\n>&a {\"id\":1,\"method\":\"m\"}\n<{\n< {\"id\":1}\n<~ {\"id\":2}\n<}\n<~&a {\"id\":1}\n=&a 200 202\n= header X-Y: $string\n! end a\n";
        let scripts = parse("2025-06-18/x", text).expect("parses");
        let steps = &scripts[0].steps;
        assert!(matches!(&steps[0].action, Action::Header { value: Some(value), .. } if value == " x"));
        assert!(matches!(&steps[2].action, Action::Send { label: Some(label), .. } if label == "a"));
        assert!(matches!(&steps[3].action, Action::Group { patterns, .. } if patterns.len() == 2));
        assert!(matches!(&steps[4].action, Action::Expect { label: Some(label), .. } if label == "a"));
        assert!(matches!(&steps[5].action, Action::Status { codes, .. } if codes == &[200, 202]));
        assert!(matches!(&steps[7].action, Action::End { .. }));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parse("2025-06-18/x", "? what").is_err());
        assert!(parse("elsewhere/x", "> {}").is_err());
        assert!(parse("2025-06-18/x", "<{\n").is_err());
        assert!(parse("2025-06-18/x", "@revisions 2025-01-01\n").is_err());
    }

    #[test]
    fn raw_bytes_expand() {
        assert_eq!(raw_bytes("a{{fill 3 bc}}d").expect("expands"), b"abcbcbcd");
        assert_eq!(raw_bytes("{{nest 2}}").expect("expands"), b"[[]]");
        assert_eq!(raw_bytes("{{hex ff 0}}").expect("expands"), [255, 0]);
        assert!(raw_bytes("{{what}}").is_err());
    }
}
