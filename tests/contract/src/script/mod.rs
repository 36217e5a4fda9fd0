//! The transcript format: one file, one conversation. `tests/transcripts/README.md` describes
//! it for authors; this module turns the text into [`Script`]s, one per revision it names.

mod raw;
mod reader;

pub use raw::raw_bytes;

use crate::Outcome;
use crate::pattern::{MODERN, Strictness};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every released revision, oldest first.
pub const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN];

/// Transport of a script.
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
    /// True if the legacy handshake precedes the first step.
    pub open: bool,
    /// True if the script waits for a clean end (stdio: exit code 0 after EOF).
    pub ends: bool,
    /// True if a valid call must work after every answer.
    pub alive: bool,
    /// Known gaps: language and reason.
    pub skips: Vec<(String, String)>,
    /// The transport it is limited to.
    pub only: Option<Transport>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Step {
    /// Line number, from 1.
    pub line: usize,
    /// The transport the line is limited to.
    pub on: Option<Transport>,
    /// The action of the line.
    pub action: Action,
}

/// Action of a line. `label` names the exchange it belongs to; none is the latest one.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the line before each variant names its parts")]
pub enum Action {
    /// `> …`: send; with a label, go on without waiting for the answer.
    Send { payload: Payload, label: Option<String> },
    /// `^ Name: value` sets, `^ -Name` leaves out a header of the next HTTP request.
    Header { name: String, value: Option<String> },
    /// `>get`, `>delete`, `>http METHOD [PATH]`.
    Request { method: String, path: Option<String>, label: Option<String> },
    /// `< …`: the next message.
    Expect { pattern: Value, how: Strictness, label: Option<String> },
    /// `<{ … <}`: the next messages, in any order.
    Group { patterns: Vec<(Value, Strictness)>, label: Option<String> },
    /// `<none`: no further message in this answer.
    Nothing { label: Option<String> },
    /// `>until …` and the `<` line after it: ask again until the answer fits.
    Until { message: Value, pattern: Value, how: Strictness },
    /// `= 400` or `= 200 202`.
    Status { codes: Vec<u16>, label: Option<String> },
    /// `= header Name: pattern`.
    ResponseHeader { name: String, pattern: Value, label: Option<String> },
    /// `! close LABEL`: hang up on that exchange.
    Close { label: String },
    /// `! end LABEL`: that exchange ends with no further message.
    End { label: String },
    /// `! eof`: close standard input and wait for the end. For a peer: wait for it.
    Eof,
    /// `<get`, `<delete`: a peer waits for this HTTP request.
    Await { method: String, label: Option<String> },
    /// `@sse yes`: a peer answers with event streams from here on.
    Stream(bool),
    /// `@process`: a peer that is started again goes on here.
    NextProcess,
    /// `! exit`: a peer dies.
    Exit,
}

/// Text that is sent.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the line before each variant names its parts")]
pub enum Payload {
    /// A message; `jsonrpc` and (modern) the envelope are added unless the script says no.
    Message { value: Value, envelope: bool },
    /// Exactly these bytes, as a line or as a body.
    Raw(String),
}

/// Read every script below `folder`, in order of their names.
pub fn read_all(folder: &Path) -> Outcome<Vec<Script>> {
    let mut files = Vec::new();
    find(folder, &mut files)?;
    files.sort();
    let mut scripts = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(folder).unwrap_or(&file).with_extension("").to_string_lossy().into_owned();
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
    revisions.into_iter().map(|revision| reader::read(name, text, revision)).collect()
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
