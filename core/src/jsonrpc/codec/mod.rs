use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use bytestring::ByteString;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ErrorObject, Id, MAX_ID_BYTES, Message, Outline, RawJson, code, scan};
use crate::idiom::{named, shortened};

/// Limits of one message, checked before it is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest message in bytes. Default 4 MiB.
    pub max_message_bytes: usize,
    /// The deepest nesting of arrays and objects. Default 128.
    pub max_nesting: usize,
    /// The most memory that its values may take once they are decoded, in bytes and by estimate: many small values take
    /// a hundred times what their text does. Default 64 MiB.
    pub max_decoded_bytes: usize,
    /// The most messages in a batch; 0 for a revision without batches. Default 256.
    pub max_batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_message_bytes: 4 << 20, max_nesting: 128, max_decoded_bytes: 64 << 20, max_batch: 256 }
    }
}

/// Content of one frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// One message.
    One(Message),
    /// A batch: each element is a message or the reason why it is none. Never empty.
    Batch(Vec<Result<Message, DecodeError>>),
}

/// Reason why a frame is not a message. It holds what the error response needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// The id to refuse it with, when it could be read.
    pub id: Option<Id>,
    /// The request of this side that it was meant to answer.
    pub answers: Option<Id>,
    /// Further ones, in an array that is refused as a whole.
    pub answers_too: Vec<Id>,
    /// −32700 or −32600.
    pub code: i64,
    /// Names the member that is wrong and what is expected.
    pub message: String,
    /// The option whose limit is exceeded; the message names it in brackets, as the peer is told.
    pub(crate) limit: Option<&'static str>,
}

impl DecodeError {
    fn parse(message: impl Into<String>) -> Self {
        Self { code: code::PARSE_ERROR, ..Self::invalid(None, message) }
    }

    pub(crate) fn invalid(id: Option<Id>, message: impl Into<String>) -> Self {
        let (answers, answers_too, limit) = (None, Vec::new(), None);
        Self { id, answers, answers_too, code: code::INVALID_REQUEST, message: message.into(), limit }
    }

    /// The limit of this option is exceeded, which the message names in brackets.
    #[must_use]
    pub(crate) fn beyond(self, limit: &'static str) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// The message for this side, with the option as the host's language writes it.
    pub(crate) fn told(&self) -> Cow<'_, str> {
        let Some(limit) = self.limit else { return Cow::Borrowed(&self.message) };
        match self.message.rsplit_once(&format!("({limit})")) {
            Some((before, after)) => Cow::Owned(format!("{before}({}){after}", named(limit))),
            None => Cow::Borrowed(&self.message),
        }
    }

    /// A batch in a revision that has none.
    pub(crate) fn no_batches() -> Self {
        Self::invalid(None, "batches are not part of this revision: send one message at a time")
    }

    /// A batch of more messages than may be in flight.
    pub(crate) fn long_batch(count: usize, max: usize) -> Self {
        let message = format!("batch of {count} messages is longer than the limit of {max} (max_in_flight)");
        Self::invalid(None, message).beyond("max_in_flight")
    }

    /// A malformed response. It is refused without its id, which would name a request of the other side.
    fn response(answers: Option<Id>, message: impl Into<String>) -> Self {
        Self { answers, ..Self::invalid(None, message) }
    }

    /// Returns the error of a message that was not read: its outline says whom it concerns.
    pub(crate) fn of(outline: &Outline, message: impl Into<String>) -> Self {
        Self::invalid(None, message).concerning(outline)
    }

    fn concerning(self, outline: &Outline) -> Self {
        let id = outline.id().cloned();
        if outline.answers() {
            Self { answers: id, ..self }
        } else {
            Self { id: id.filter(|_| outline.has_method()), ..self }
        }
    }

    /// The error object for the response.
    #[must_use]
    pub fn to_object(&self) -> ErrorObject {
        ErrorObject { code: self.code, message: self.message.clone(), data: None }
    }
}

/// The members of a message as they stand in its text.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// `null` is a value here, not an absence.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Decodes one frame (a line, an HTTP body, an SSE event's data).
///
/// # Errors
/// A [`DecodeError`] for what is not JSON, too long, too deep or no JSON-RPC message.
pub fn decode(frame: &Bytes, limits: &Limits) -> Result<Decoded, DecodeError> {
    if frame.len() > limits.max_message_bytes {
        let (len, max) = (frame.len(), limits.max_message_bytes);
        let message = format!("message of {len} bytes is longer than the limit of {max} (max_message_bytes)");
        return Err(DecodeError::of(&Outline::of(frame), message).beyond("max_message_bytes"));
    }
    if frame.trim_ascii_start().first() == Some(&b'[') {
        check_batch(frame, limits.max_batch)?;
    }
    if let Some(heavy) = scan::heavier_than(frame, limits.max_decoded_bytes) {
        return Err(DecodeError::of(&Outline::of(frame), too_heavy(heavy, limits)).beyond("max_decoded_bytes"));
    }
    let frame = ByteString::try_from(frame.clone()).map_err(|e| {
        let message = format!("message is not UTF-8: invalid byte at offset {}", e.valid_up_to());
        DecodeError::parse(message).concerning(&Outline::of(frame))
    })?;
    let text: &str = &frame;
    if is_deeper_than(text, limits.max_nesting) {
        let message = format!("message is nested deeper than {} levels (max_nesting)", limits.max_nesting);
        return Err(DecodeError::parse(message).concerning(&Outline::of(text.as_bytes())).beyond("max_nesting"));
    }
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_some() {
        // A pretty-printed body. Parts of it may be sent on over a line-based transport, so it becomes one line. It
        // has to be JSON before that: a raw line break inside a string must not turn into a space.
        serde_json::from_str::<&RawValue>(text).map_err(|e| no_json(&e, text))?;
        let spaced = text.replace(['\n', '\r'], " ");
        let frame = Bytes::from(spaced);
        return decode(&frame, limits);
    }
    match text.as_bytes().first() {
        Some(b'{') => one(&frame, text).map(Decoded::One),
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| no_json(&e, text))?;
            if elements.is_empty() {
                return Err(DecodeError::invalid(None, "batch is empty: expected at least one message"));
            }
            Ok(Decoded::Batch(elements.into_iter().map(|raw| one(&frame, raw.get())).collect()))
        }
        None => Err(DecodeError::parse("message is empty: expected a JSON object")),
        Some(_) => match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Err(DecodeError::invalid(None, "message is not an object")),
            Err(e) => Err(no_json(&e, text)),
        },
    }
}

/// Refuses an array that is too long without decoding its elements, but notes the requests that they answer.
fn check_batch(frame: &[u8], max: usize) -> Result<(), DecodeError> {
    if max > 0 && scan::elements(frame).nth(max).is_none() {
        return Ok(());
    }
    let (mut count, mut answers) = (0, Vec::new());
    for element in scan::elements(frame) {
        count += 1;
        if element.first() == Some(&b'{') && answers.len() < MOST_ANSWERS {
            let outline = Outline::of(element);
            answers.extend(outline.id().filter(|_| outline.answers()).cloned());
        }
    }
    let refused = match max {
        0 => DecodeError::no_batches(),
        _ => DecodeError::long_batch(count, max),
    };
    Err(DecodeError { answers_too: answers, ..refused })
}

/// The most requests of which it is looked for whether an array answers them that is refused.
const MOST_ANSWERS: usize = 4096;

/// Returns the refusal of a message whose values would take so much memory.
pub(crate) fn too_heavy(bytes: usize, limits: &Limits) -> String {
    let (mib, max) = (bytes >> 20, limits.max_decoded_bytes);
    format!(
        "the values of this message would take about {mib} MiB of memory, more than {max} bytes (max_decoded_bytes)"
    )
}

fn no_json(e: &serde_json::Error, text: &str) -> DecodeError {
    DecodeError::parse(format!("message is not JSON: {}", shortened(&e.to_string(), 300)))
        .concerning(&Outline::of(text.as_bytes()))
}

fn one(frame: &ByteString, text: &str) -> Result<Message, DecodeError> {
    // An array would be read by the order of its elements.
    if text.trim_ascii_start().starts_with('[') {
        let outline = Outline::of(text.as_bytes());
        return Err(DecodeError::of(
            &outline,
            format!("message is not valid: expected an object, got {}", shown(text)),
        ));
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|e| match e.classify() {
        serde_json::error::Category::Data => DecodeError::of(
            &Outline::of(text.as_bytes()),
            format!("message is not valid: {}", shortened(&e.to_string(), 300)),
        ),
        _ => no_json(&e, text),
    })?;
    message(frame, &envelope)
}

fn message(frame: &ByteString, e: &Envelope<'_>) -> Result<Message, DecodeError> {
    let [jsonrpc, id, method, params, result, error] =
        [e.jsonrpc, e.id, e.method, e.params, e.result, e.error].map(|member| member.map(RawValue::get));
    let raw = |text: &str| RawJson::part(frame.slice_ref(text));
    // Many a writer of responses writes all members that there are, and `null` for what is not there.
    let (method, result, error) = match (method, result, error) {
        (Some("null"), result, error) if result.is_some() || error.is_some() => (None, result, error),
        all => all,
    };
    let (result, error) = match (result, error) {
        (Some(result), Some("null")) => (Some(result), None),
        (Some("null"), Some(error)) => (None, Some(error)),
        both => both,
    };
    let responds = method.is_none() && (result.is_some() || error.is_some());
    // A response names a request of the other side, and is refused without its id.
    let invalid = |id: Option<Id>, message: String| match responds {
        true => DecodeError::response(id, message),
        false => DecodeError::invalid(id, message),
    };
    let id = match id {
        None => None,
        Some(r) => match Id::read(r).or_else(|| Id::real(r)) {
            Some(id) => Some(id),
            None if r == "null" && error.is_some() && method.is_none() => None,
            None => {
                let wrong = match r.len() {
                    bytes if bytes > MAX_ID_BYTES => format!("\"id\": {bytes} bytes, longer than {MAX_ID_BYTES}"),
                    _ => format!("\"id\": expected a string or an integer, got {}", shown(r)),
                };
                return Err(invalid(None, wrong));
            }
        },
    };
    match jsonrpc {
        Some("\"2.0\"") => {}
        Some(v) => return Err(invalid(id, format!("\"jsonrpc\": expected \"2.0\", got {}", shown(v)))),
        None => {
            let message = "\"jsonrpc\": missing, expected \"2.0\"";
            // A program that logs as JSON may well write an id and an error.
            let meant = result.or(error).is_some_and(|value| value.starts_with('{'));
            return Err(if meant { invalid(id, message.into()) } else { DecodeError::invalid(id, message) });
        }
    }
    // Many a library writes what is not there as `null`.
    let (result, error) = match (result, error) {
        (Some("null"), Some("null")) if method.is_some() => (None, None),
        (Some("null"), error) if method.is_some() || error.is_some() => (None, error),
        (result, Some("null")) if method.is_some() || result.is_some() => (result, None),
        members => members,
    };
    if let Some(method) = method {
        if result.is_some() || error.is_some() {
            return Err(DecodeError::invalid(
                id,
                "message has \"method\" and \"result\" or \"error\": expected one of them",
            ));
        }
        let Some(name) = super::unquoted(method) else {
            let got = shown(method);
            return Err(DecodeError::invalid(id, format!("\"method\": expected a string, got {got}")));
        };
        let params = match params {
            // Many a library writes what is not there as `null`, and PHP an empty object as `[]`.
            Some("null" | "[]") => None,
            Some(p) if !p.starts_with('{') => {
                let got = shown(p);
                return Err(DecodeError::invalid(id, format!("\"params\": expected an object, got {got}")));
            }
            p => p.map(raw),
        };
        let method = name.into_owned();
        return Ok(match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        });
    }
    match (result, error) {
        (Some(_), Some(_)) => {
            Err(DecodeError::response(id, "message has \"result\" and \"error\": expected one of them"))
        }
        (Some(result), None) => {
            let Some(id) = id else {
                return Err(DecodeError::response(None, "response has no \"id\""));
            };
            if !result.starts_with('{') {
                let got = shown(result);
                return Err(DecodeError::response(Some(id), format!("\"result\": expected an object, got {got}")));
            }
            Ok(Message::Response { id, result: raw(result) })
        }
        // An array would be read by the order of its elements.
        (None, Some(error)) if !error.starts_with('{') => {
            Err(DecodeError::response(id, format!("\"error\": expected an object, got {}", shown(error))))
        }
        (None, Some(error)) => match serde_json::from_str::<ErrorObject>(error) {
            Ok(error) => Ok(Message::Error { id, error }),
            Err(e) => Err(DecodeError::response(id, format!("\"error\": {}", shortened(&e.to_string(), 200)))),
        },
        (None, None) => Err(DecodeError::invalid(id, "message has no \"method\", \"result\" or \"error\"")),
    }
}

fn shown(text: &str) -> Cow<'_, str> {
    shortened(text, 40)
}

/// Returns true if arrays and objects are nested deeper than `max`. Where there are not so many brackets in all,
/// strings need no looking at, and counting is ten times as quick.
pub(crate) fn is_deeper_than(text: &str, max: usize) -> bool {
    // Each level has two brackets.
    if text.len() / 2 <= max {
        return false;
    }
    let brackets = |part: &[u8]| part.iter().map(|byte| u8::from(matches!(byte, b'{' | b'['))).sum::<u8>();
    let all: usize = text.as_bytes().chunks(usize::from(u8::MAX)).map(|part| usize::from(brackets(part))).sum();
    all > max && nesting(text) > max
}

/// The deepest nesting of brackets, skipping strings. Linear, allocates nothing.
pub(crate) fn nesting(text: &str) -> usize {
    let text = text.as_bytes();
    let (mut depth, mut deepest, mut at) = (0usize, 0usize, 0usize);
    while at < text.len() {
        match text[at] {
            b'"' => {
                at += 1;
                loop {
                    let Some(found) = memchr::memchr2(b'"', b'\\', &text[at.min(text.len())..]) else {
                        return deepest;
                    };
                    at += found;
                    if text[at] == b'"' {
                        break;
                    }
                    at += 2;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

fn put_id(out: &mut BytesMut, id: &Id) {
    match id {
        Id::Number(n) => out.put_slice(itoa::Buffer::new().format(*n).as_bytes()),
        Id::String(s) => put_string(out, s),
    }
}

fn put_string(out: &mut BytesMut, s: &str) {
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(out.writer(), s);
}

fn frame(capacity: usize) -> BytesMut {
    let mut out = BytesMut::with_capacity(capacity + 64);
    out.put_slice(br#"{"jsonrpc":"2.0","#);
    out
}

fn put_call(out: &mut BytesMut, method: &str, params: Option<&RawJson>) {
    out.put_slice(br#""method":"#);
    put_string(out, method);
    if let Some(params) = params {
        out.put_slice(br#","params":"#);
        out.put_slice(params.bytes());
    }
    out.put_u8(b'}');
}

/// The text of a request.
#[must_use]
pub fn encode_request(id: &Id, method: &str, params: Option<&RawJson>) -> Bytes {
    let mut out = frame(method.len() + params.map_or(0, |p| p.bytes().len()));
    out.put_slice(br#""id":"#);
    put_id(&mut out, id);
    out.put_u8(b',');
    put_call(&mut out, method, params);
    out.freeze()
}

/// The text of a notification.
#[must_use]
pub fn encode_notification(method: &str, params: Option<&RawJson>) -> Bytes {
    let mut out = frame(method.len() + params.map_or(0, |p| p.bytes().len()));
    put_call(&mut out, method, params);
    out.freeze()
}

/// The text of a response up to its result; the result and a closing brace follow.
pub(crate) fn start_result(id: &Id, capacity: usize) -> String {
    let mut out = String::with_capacity(capacity + 48);
    out.push_str(r#"{"jsonrpc":"2.0","id":"#);
    match id {
        Id::Number(n) => out.push_str(itoa::Buffer::new().format(*n)),
        Id::String(s) => out.push_str(&serde_json::to_string(&**s).unwrap_or_default()),
    }
    out.push_str(r#","result":"#);
    out
}

/// The text of a response.
#[must_use]
pub fn encode_result(id: &Id, result: &RawJson) -> Bytes {
    let mut out = frame(result.bytes().len());
    out.put_slice(br#""id":"#);
    put_id(&mut out, id);
    out.put_slice(br#","result":"#);
    out.put_slice(result.bytes());
    out.put_u8(b'}');
    out.freeze()
}

/// The text of an error response. Without an id, `null_id` decides between `"id":null` and no member at all.
#[must_use]
pub fn encode_error(id: Option<&Id>, error: &ErrorObject, null_id: bool) -> Bytes {
    let mut out = frame(error.message.len() + error.data.as_ref().map_or(0, |d| d.bytes().len()));
    if let Some(id) = id {
        out.put_slice(br#""id":"#);
        put_id(&mut out, id);
        out.put_u8(b',');
    } else if null_id {
        out.put_slice(br#""id":null,"#);
    }
    out.put_slice(br#""error":"#);
    let _ = serde_json::to_writer((&mut out).writer(), error);
    out.put_u8(b'}');
    out.freeze()
}

impl Message {
    /// The text of this message: one line, no line break.
    #[must_use]
    pub fn encode(&self) -> RawJson {
        RawJson::trusted(match self {
            Self::Request { id, method, params } => encode_request(id, method, params.as_ref()),
            Self::Notification { method, params } => encode_notification(method, params.as_ref()),
            Self::Response { id, result } => encode_result(id, result),
            Self::Error { id, error } => encode_error(id.as_ref(), error, false),
        })
    }
}

#[cfg(test)]
mod tests;
