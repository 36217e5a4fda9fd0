//! Mending of a server's text that is nearly a message, as most clients read it.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{DecodeError, Decoded, Limits, Message, decode};

/// Most beginnings of objects within one line that are tried, and most times that its length is read for those that are
/// none.
const MAX_TRIES: usize = 32;
const MAX_READ: usize = 2;

/// As [`decode`], of what a server wrote: a byte order mark is passed over, and bytes that are no UTF-8 become U+FFFD.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_leniently(frame: &Bytes, limits: &Limits) -> Result<Decoded, DecodeError> {
    decode(frame, limits).or_else(|error| mend(frame, limits, error))
}

/// The same of a text that [`decode`] has refused with this error.
///
/// # Errors
/// The error, where there is nothing to mend, or that of the mended text.
#[cold]
pub(crate) fn mend(frame: &Bytes, limits: &Limits, error: DecodeError) -> Result<Decoded, DecodeError> {
    if frame.len() > limits.max_message_bytes {
        return Err(error);
    }
    match readable(frame) {
        Some(text) => decode(&text, limits),
        None => Err(error),
    }
}

/// The text without byte order marks and bytes that are no UTF-8; none where it has none of both.
fn readable(frame: &Bytes) -> Option<Bytes> {
    let (mut rest, mut marked) = (frame.trim_ascii_start(), false);
    while let Some(unmarked) = rest.strip_prefix(b"\xef\xbb\xbf") {
        (rest, marked) = (unmarked.trim_ascii_start(), true);
    }
    match String::from_utf8_lossy(rest) {
        Cow::Borrowed(_) if !marked => None,
        Cow::Borrowed(text) => Some(frame.slice_ref(text.as_bytes())),
        Cow::Owned(text) => Some(text.into()),
    }
}

/// The messages in a line that has other text before, between or behind them. Beside text that is no blank only answers
/// count: what a server writes of requests into a log is not meant.
#[cold]
pub(crate) fn within(frame: &Bytes, limits: &Limits) -> Vec<Message> {
    let text = String::from_utf8_lossy(frame);
    let (mut rest, mut found, mut is_mixed) = (&*text, Vec::new(), false);
    let mut left = text.len() * MAX_READ;
    for _ in 0..MAX_TRIES {
        let Some(at) = rest.find('{') else { break };
        is_mixed |= !rest[..at].trim().is_empty();
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = match values.next() {
            Some(Ok(value)) => value,
            broken => {
                // Anything in a broken object is a part of it.
                if rest.len() == text.len() {
                    break;
                }
                let read = broken.and_then(Result::err).filter(|error| error.line() == 1).map(|error| error.column());
                let Some(more) = left.checked_sub(read.unwrap_or(rest.len())) else { break };
                left = more;
                rest = &rest[1..];
                is_mixed = true;
                continue;
            }
        };
        let end = values.byte_offset();
        match decode(&Bytes::copy_from_slice(value.get().as_bytes()), limits) {
            Ok(Decoded::One(message)) => found.push(message),
            _ => is_mixed = true,
        }
        rest = &rest[end..];
    }
    is_mixed |= !rest.trim().is_empty();
    if is_mixed {
        found.retain(|message| matches!(message, Message::Response { .. } | Message::Error { id: Some(_), .. }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Id;
    use super::*;

    fn read(text: &[u8]) -> Result<Decoded, DecodeError> {
        decode_leniently(&Bytes::copy_from_slice(text), &Limits::default())
    }

    #[test]
    fn marks_and_bytes_that_are_no_text_are_read_as_elsewhere() {
        for (text, result) in [
            (&b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}"[..], r#"{"a":1}"#),
            (b" \xef\xbb\xbf\xef\xbb\xbf {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":1}}", r#"{"a":1}"#),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff x \xc3\"}}", "{\"a\":\"\u{fffd} x \u{fffd}\"}"),
            (b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xe9\"}}", "{\"a\":\"\u{fffd}\"}"),
        ] {
            let shown = String::from_utf8_lossy(text);
            let Ok(Decoded::One(Message::Response { id, result: read })) = read(text) else { panic!("{shown}") };
            assert_eq!((id, read.get()), (Id::from(1), result), "{shown}");
        }
        for text in [&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xff{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"] {
            assert!(read(text).is_err(), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn answers_are_found_beside_other_text() {
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let request = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for (line, count) in [
            (format!("[info] ready {answer}"), 1),
            (format!("{answer}ready"), 1),
            (format!("(x) {{\"a\":{{}}}} {{y}} {answer} {answer}"), 2),
            (format!("{{\"a\":NaN,\"b\":{answer}}}"), 0),
            (format!("{answer}{request}"), 2),
            (format!("sent {request}, got {answer}"), 1),
            (format!("sent {request}"), 0),
            (answer[..answer.len() - 1].to_owned(), 0),
            ("{".repeat(10_000), 0),
            // Broken ones are read to their end twice at most.
            (format!("x {} {answer}", "{\"a\":".repeat(5)), 0),
            (format!("x {}{answer}", "{x} ".repeat(20)), 1),
            (String::new(), 0),
        ] {
            assert_eq!(within(&Bytes::from(line.clone()), &Limits::default()).len(), count, "{line}");
        }
    }
}
