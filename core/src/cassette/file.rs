//! Cassettes as they are read.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::{FORMAT, MAX_BYTES, MAX_LINE, MAX_LINES};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{Decoded, Limits, Message, RawJson, decode};
use crate::model::meta::{CLIENT_CAPABILITIES, PROTOCOL_VERSION};

/// A recorded connection.
#[derive(Debug, Clone)]
pub struct Cassette {
    name: String,
    head: Map<String, Value>,
    entries: Vec<Entry>,
}

/// A line of a cassette.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Number of its line in the file; the first line has 1.
    pub line: usize,
    /// Time since the recording began.
    pub time: Duration,
    /// Message or event.
    pub what: What,
}

/// Content of a line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum What {
    /// A message, or a batch of them.
    Message {
        /// True if the client sent it.
        by_client: bool,
        /// The stream: `stdio`, `memory`, or the kind and number of an HTTP exchange, `post:3`.
        on: String,
        /// Its JSON.
        text: RawJson,
    },
    /// Text that came in the place of a message.
    Text {
        /// True if the client sent it.
        by_client: bool,
        /// The stream.
        on: String,
        /// The text.
        text: String,
    },
    /// Something else that happened: a line of standard error, a warning, an end.
    Event {
        /// Its kind: `stderr`, `warning`, `closed`, `http`.
        name: String,
        /// Its text.
        text: String,
    },
}

/// A question of the server, and the client's answer to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
    /// Its method: `elicitation/create`, `sampling/createMessage`, `roots/list`.
    pub method: String,
    /// Its parameters, an object.
    pub params: Value,
    /// The answer's result.
    pub answer: RawJson,
}

#[derive(Deserialize)]
struct Line<'a> {
    /// Milliseconds.
    #[serde(default)]
    t: f64,
    from: Option<String>,
    #[serde(default)]
    on: String,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    text: Option<String>,
    event: Option<String>,
}

impl Cassette {
    /// Reads a file: at most 256 MiB, 100,000 lines, 64 MiB each.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the file, the line, and what is wrong with it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let wrong = |why: &str| Error::misuse(format!("cassette {name:?}: {why}"));
        let file = std::fs::File::open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                wrong(&format!("there is no such file; tricorn record TARGET -o {name} makes one"))
            }
            _ => wrong(&format!("cannot be read: {error}")),
        })?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        if bytes.len() > MAX_BYTES {
            return Err(wrong(&format!("longer than {} MiB, which is the most that is read", MAX_BYTES >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            wrong(&format!("line {line}: not UTF-8"))
        })?;
        Self::parse(&name, &text)
    }

    /// Reads the text of a cassette; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let wrong = |line: usize, why: &str| Error::misuse(format!("cassette {name:?}, line {line}: {why}"));
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, l)| !l.trim().is_empty());
        let Some((at, first)) = lines.next() else {
            return Err(Error::misuse(format!("cassette {name:?}: empty; tricorn record TARGET -o {name} fills it")));
        };
        let head = match serde_json::from_str::<Value>(first) {
            Ok(Value::Object(head)) if head.contains_key("cassette") => head,
            _ => {
                let got = shortened(first, 40);
                return Err(wrong(
                    at,
                    &format!("expected {{\"cassette\":{FORMAT},…}}, got {got}: this is no cassette"),
                ));
            }
        };
        if head["cassette"] != FORMAT {
            let got = shortened(&head["cassette"].to_string(), 40).into_owned();
            return Err(wrong(at, &format!("format {got}, where this version of tricorn reads {FORMAT}")));
        }
        let mut entries = Vec::new();
        for (at, line) in lines {
            if at > MAX_LINES {
                return Err(wrong(at, &format!("more than {MAX_LINES} lines: record less")));
            }
            if line.len() > MAX_LINE {
                return Err(wrong(at, &format!("longer than {} MiB", MAX_LINE >> 20)));
            }
            let read: Line<'_> = serde_json::from_str(line).map_err(|error| {
                let said = error.to_string();
                let said = said.split(" at line ").next().unwrap_or_default();
                wrong(at, &format!("column {}: {said}", error.column()))
            })?;
            // One that is no time is not worth the cassette.
            let time = Duration::try_from_secs_f64(read.t / 1e3).unwrap_or_default();
            entries.push(Entry { line: at, time, what: what(read).map_err(|why| wrong(at, why))? });
        }
        Ok(Self { name: name.to_owned(), head, entries })
    }

    /// Its name: the path of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its first line: `cassette`, and as far as known `by`, `at`, `transport`, `target`, `revision`.
    #[must_use]
    pub const fn head(&self) -> &Map<String, Value> {
        &self.head
    }

    /// Its other lines, in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The messages in order, batches as their parts: line, true if by the client, stream, message. Messages that cannot be
    /// read are left out.
    pub(super) fn messages(&self) -> impl Iterator<Item = (usize, bool, &str, Message)> {
        self.entries.iter().flat_map(|entry| {
            let (by_client, on, text) = match &entry.what {
                What::Message { by_client, on, text } => (*by_client, on.as_str(), Some(text)),
                _ => (false, "", None),
            };
            let decoded = text.map(decoded).unwrap_or_default();
            decoded.into_iter().map(move |message| (entry.line, by_client, on, message))
        })
    }

    /// Requests of the client in order, with their line, method and parameters.
    pub fn requests(&self) -> Vec<(usize, String, Option<RawJson>)> {
        let asked = self.messages().filter(|(_, by_client, ..)| *by_client);
        asked
            .filter_map(|(line, _, _, message)| match message {
                Message::Request { method, params, .. } => Some((line, method, params)),
                _ => None,
            })
            .collect()
    }

    /// Questions of the server that were answered, in order: requests of their own, and those that a result asks.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        let (mut asked, mut inputs, mut questions) = (Vec::new(), Map::new(), Vec::new());
        for (_, by_client, _, message) in self.messages() {
            match (message, by_client) {
                (Message::Request { id, method, params }, false) => asked.push((id, method, params)),
                (Message::Response { id, result }, true) => {
                    let Some(at) = asked.iter().position(|(known, ..)| *known == id) else { continue };
                    let (_, method, params) = asked.swap_remove(at);
                    let params = params.and_then(|params| params.to().ok()).unwrap_or_default();
                    questions.push(Question { method, params, answer: result });
                }
                (Message::Response { result, .. }, false) => {
                    if let Ok(Value::Object(mut result)) = result.to()
                        && let Some(Value::Object(requests)) = result.shift_remove("inputRequests")
                    {
                        inputs = requests;
                    }
                }
                (Message::Request { params: Some(params), .. }, true) => {
                    let params: Value = params.to().unwrap_or_default();
                    let answers = params["inputResponses"].as_object().into_iter().flatten();
                    questions.extend(answers.filter_map(|(key, answer)| {
                        let asked = inputs.get(key)?;
                        let (method, params) = (asked["method"].as_str()?.to_owned(), asked["params"].clone());
                        Some(Question { method, params, answer: RawJson::from_value(answer) })
                    }));
                }
                _ => {}
            }
        }
        questions
    }

    /// The capabilities that the client declared, an object.
    #[must_use]
    pub fn client_capabilities(&self) -> Option<Value> {
        self.requests().into_iter().find_map(|(_, method, params)| {
            let params: Value = params?.to().ok()?;
            let found = match method.as_str() {
                "initialize" => params.get("capabilities"),
                _ => params.get("_meta")?.get(CLIENT_CAPABILITIES),
            };
            found.cloned()
        })
    }

    /// True if the connection began with `initialize`, without a question for newer revisions before it.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.requests().first().is_some_and(|(_, method, _)| method == "initialize")
    }

    /// The revision that was spoken, as far as the messages say: `2025-11-25`.
    #[must_use]
    pub fn revision(&self) -> Option<String> {
        let mut last = None;
        for (_, by_client, _, message) in self.messages() {
            let value = match (&message, by_client) {
                (Message::Request { method, params: Some(params), .. }, true) if method != "initialize" => {
                    let params: Value = params.to().unwrap_or_default();
                    params["_meta"][PROTOCOL_VERSION].as_str().map(str::to_owned)
                }
                (Message::Response { result, .. }, false) => {
                    let result: Value = result.to().unwrap_or_default();
                    result["protocolVersion"].as_str().map(str::to_owned)
                }
                _ => None,
            };
            last = value.or(last);
        }
        last
    }
}

/// The messages of a text; none where it is not to be read.
pub(super) fn decoded(text: &RawJson) -> Vec<Message> {
    let limits = Limits { max_message_bytes: MAX_LINE, max_decoded_bytes: usize::MAX, ..Limits::default() };
    match decode(text.bytes(), &limits) {
        Ok(Decoded::One(message)) => vec![message],
        Ok(Decoded::Batch(parts)) => parts.into_iter().filter_map(Result::ok).collect(),
        Err(_) => Vec::new(),
    }
}

fn what(line: Line<'_>) -> Result<What, &'static str> {
    let text = line.text.unwrap_or_default();
    if let Some(name) = line.event {
        return Ok(What::Event { name, text });
    }
    let by_client = match line.from.as_deref() {
        Some("client") => true,
        Some("server") => false,
        _ => return Err("expected a message with \"from\":\"client\" or \"server\", or an \"event\""),
    };
    let on = line.on;
    match line.msg {
        Some(raw) => Ok(What::Message { by_client, on, text: RawJson::trusted(raw.get().to_owned()) }),
        None => Ok(What::Text { by_client, on, text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"cassette":1,"by":"tricorn"}"#;

    #[test]
    fn lines_are_read() {
        let text = format!(
            "{HEAD}\n{}\n\n{}\n{}\n{}\n",
            r#"{"t":1.5,"from":"client","on":"stdio","msg":{"jsonrpc":"2.0","id":1,"method":"initialize"}}"#,
            r#"{"t":2,"from":"server","on":"stdio","msg":{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}}"#,
            r#"{"t":3,"from":"server","on":"stdio","text":"hello"}"#,
            r#"{"t":4,"event":"stderr","text":"bye"}"#
        );
        let cassette = Cassette::parse("a.jsonl", &text).expect("a cassette");
        assert_eq!(cassette.entries().iter().map(|entry| entry.line).collect::<Vec<_>>(), [2, 4, 5, 6]);
        assert_eq!(cassette.entries()[0].time, Duration::from_micros(1500));
        assert_eq!((cassette.is_legacy(), cassette.revision().as_deref()), (true, Some("2025-06-18")));
        assert_eq!(cassette.head()["by"], "tricorn");
    }

    #[test]
    fn an_error_names_file_and_line() {
        for (text, part) in [
            (String::new(), "cassette \"a.jsonl\": empty"),
            ("{}".to_owned(), "line 1: expected {\"cassette\":1,…}, got {}"),
            (r#"{"cassette":9}"#.to_owned(), "line 1: format 9, where this version of tricorn reads 1"),
            (format!("{HEAD}\n{{\"t\":"), "cassette \"a.jsonl\", line 2: column 5: EOF while parsing"),
            (format!("{HEAD}\n\n{{\"t\":1}}"), "line 3: expected a message with \"from\""),
        ] {
            let error = Cassette::parse("a.jsonl", &text).expect_err(part);
            assert!(error.message().contains(part), "{error}");
        }
        let error = Cassette::read("no/such.jsonl").expect_err("no file");
        assert!(error.message().contains("tricorn record TARGET -o no/such.jsonl"), "{error}");
    }
}
