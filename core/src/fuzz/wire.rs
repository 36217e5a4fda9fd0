//! Messages and event streams, as they come from a peer that nobody knows.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::header::HeaderValue;
use serde_json::Value;
use sse_stream::{Sse, SseByteStream};

use super::{SLOWEST, Target, alone, mutate, run, shown, sort};
use crate::endpoint::http::client::stream::{Cursor, take};
use crate::jsonrpc::{
    self, DecodeError, Decoded, Limits, Message, Outline, RawJson, code, decode_leniently, heavier_than,
    is_deeper_than, nesting,
};
use crate::protocol::{self, Head};
use crate::server::paging::{key, sealed, unsealed};
use crate::store::{EventId, Stream};
use crate::transport::sse::{comment, event};

const MESSAGES: &[&str] = &[
    "\"jsonrpc\":\"2.0\"",
    "jsonrpc",
    "2.0",
    "id",
    "method",
    "params",
    "result",
    "error",
    "code",
    "message",
    "data",
    "_meta",
    "progressToken",
    "name",
    "arguments",
    "uri",
    "task",
    "inputResponses",
    "requestState",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "2026-07-28",
    "null",
    "tools/call",
    "notifications/cancelled",
    "\\u0069d",
    "\u{feff}",
    "{}",
    "[]",
    "[{",
    "\r\n",
];

#[test]
fn codec() {
    run(&Target { name: "codec", property: decoded, mutate: mutate::json_text, words: MESSAGES, slowest: SLOWEST });
}

/// Messages that are decoded and encoded again decode to the same. An error has one of two codes, and little text.
fn decoded(input: &[u8]) -> u64 {
    let (frame, limits) = (Bytes::copy_from_slice(input), Limits::default());
    let read = jsonrpc::decode(&frame, &limits);
    outlined(input, &read);
    match &read {
        Ok(Decoded::One(message)) => {
            assert!(is_message(&frame, message), "it is no message: {}", shown(input));
            same_again(message, &limits);
        }
        Ok(Decoded::Batch(parts)) => {
            assert!((1..=limits.max_batch).contains(&parts.len()), "{} parts", parts.len());
            let texts: Vec<Value> = serde_json::from_slice(input).unwrap_or_default();
            assert!(texts.is_empty() || texts.len() == parts.len());
            for (at, part) in parts.iter().enumerate() {
                match part {
                    Ok(message) => {
                        let is_one = texts.get(at).is_none_or(|text| is_message(text.to_string().as_bytes(), message));
                        assert!(is_one, "part {at} is no message: {}", shown(input));
                        same_again(message, &limits);
                    }
                    Err(error) => refused(error),
                }
            }
        }
        Err(error) => refused(error),
    }
    let lenient = decode_leniently(&frame, &limits);
    if read.is_ok() {
        assert_eq!(lenient, read, "what is read strictly reads the same leniently");
    } else if let Ok(Decoded::One(message)) = &lenient {
        same_again(message, &limits);
    }
    sort(&match read {
        Ok(Decoded::One(message)) => kind(&message).to_owned(),
        Ok(Decoded::Batch(parts)) => format!("batch of {:?}", parts.iter().map(|p| p.is_ok()).collect::<Vec<_>>()),
        Err(error) => format!("{} {} {}", error.message, error.id.is_some(), error.answers.is_some()),
    })
}

fn kind(message: &Message) -> &'static str {
    match message {
        Message::Request { params: None, .. } => "bare request",
        Message::Request { .. } => "request",
        Message::Notification { .. } => "notification",
        Message::Response { .. } => "response",
        Message::Error { id: None, .. } => "error without id",
        Message::Error { error, .. } if error.data.is_some() => "error with data",
        Message::Error { .. } => "error",
    }
}

/// Returns true if the text is an object whose error is one, as far as a value can hold it.
fn is_message(text: &[u8], message: &Message) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return true };
    value.is_object() && (!matches!(message, Message::Error { .. }) || value["error"].is_object())
}

fn same_again(message: &Message, limits: &Limits) {
    let text = message.encode();
    assert!(!text.get().contains(['\n', '\r']), "more than one line: {text}");
    let again = jsonrpc::decode(text.bytes(), limits);
    assert_eq!(again, Ok(Decoded::One(message.clone())), "{}", shown(text.get().as_bytes()));
}

fn refused(error: &DecodeError) {
    assert!([code::PARSE_ERROR, code::INVALID_REQUEST].contains(&error.code), "{error:?}");
    let length = error.message.len();
    assert!((1..=1000).contains(&length), "a message of {length} bytes: {}", shown(error.message.as_bytes()));
}

/// An outline is the same in pieces, and its id that of the message.
fn outlined(input: &[u8], read: &Result<Decoded, DecodeError>) {
    let whole = Outline::of(input);
    for size in [1, 3, 1 + input.len() / 2] {
        let mut pieces = Outline::default();
        input.chunks(size).for_each(|piece| pieces.feed(piece));
        assert_eq!(whole.id(), pieces.id(), "in pieces of {size}: {}", shown(input));
        assert_eq!(whole.has_method(), pieces.has_method(), "in pieces of {size}: {}", shown(input));
        assert_eq!(whole.answers(), pieces.answers(), "in pieces of {size}: {}", shown(input));
    }
    let read = match read {
        Ok(Decoded::One(Message::Request { id, .. } | Message::Response { id, .. })) => Some(id),
        Ok(Decoded::One(Message::Error { id, .. })) => id.as_ref(),
        _ => return,
    };
    if let Some(seen) = whole.id() {
        assert_eq!(Some(seen), read, "{}", shown(input));
    }
}

#[test]
fn scan() {
    run(&Target { name: "scan", property: scanned, mutate: mutate::json_text, words: MESSAGES, slowest: SLOWEST });
}

/// A scan never says less than there is. It counts bytes of memory: 128 for a value, and 96 for a member.
fn scanned(input: &[u8]) -> u64 {
    let all = heavier_than(input, 0);
    assert_eq!(all.is_some(), !input.is_empty(), "{}", shown(input));
    assert_eq!(heavier_than(input, usize::MAX), None);
    let weight = all.unwrap_or_default();
    assert_eq!(heavier_than(input, weight), None, "{weight}: {}", shown(input));
    if let Ok(text) = std::str::from_utf8(input) {
        let depth = nesting(text);
        assert!(!is_deeper_than(text, depth), "{depth}: {}", shown(input));
        // Each level has two brackets where it is JSON.
        if let Ok(value) = serde_json::from_str::<Value>(text) {
            let (counted, deepest) = counted(&value);
            assert!(depth >= deepest, "{depth} levels of {deepest}: {}", shown(input));
            assert!(deepest == 0 || is_deeper_than(text, deepest - 1), "{deepest}: {}", shown(input));
            let least = heavier_than(input, counted - 1);
            assert!(least.is_some_and(|least| least >= counted), "{least:?} of {counted}: {}", shown(input));
        }
    }
    sort(match weight {
        0 => "none",
        1..=1_000 => "light",
        1_001..=100_000 => "heavy",
        _ => "very heavy",
    })
}

/// The least that a value weighs, and how deep it is nested.
fn counted(value: &Value) -> (usize, usize) {
    match value {
        Value::Array(items) => {
            let (sum, deepest) = together(items.iter());
            (sum, deepest + 1)
        }
        Value::Object(members) => {
            let (sum, deepest) = together(members.values());
            (sum + members.len() * 96, deepest + 1)
        }
        _ => (128, 0),
    }
}

fn together<'v>(values: impl Iterator<Item = &'v Value>) -> (usize, usize) {
    let (mut sum, mut deepest) = (128_usize, 0_usize);
    for value in values {
        let (weight, depth) = counted(value);
        sum += weight;
        deepest = deepest.max(depth);
    }
    (sum, deepest)
}

#[test]
fn envelope() {
    run(&Target { name: "envelope", property: enveloped, mutate: mutate::lines, words: MESSAGES, slowest: SLOWEST });
}

/// A request whose `_meta` is remembered reads as one whose `_meta` is not. Each line is a frame.
fn enveloped(input: &[u8]) -> u64 {
    alone(|| {
        let (limits, mut quick, mut slow) = (Limits::default(), 0_usize, 0_usize);
        for line in input.split(|byte| *byte == b'\n').take(200) {
            let frame = Bytes::copy_from_slice(line);
            let read = jsonrpc::decode(&frame, &limits);
            let (decoded, head) = match protocol::decode(&frame, &limits) {
                Ok((decoded, head)) => (Ok(decoded), head),
                Err(error) => (Err(error), None),
            };
            assert_eq!(decoded, read, "{}", shown(line));
            let Ok(Decoded::One(Message::Request { params, .. })) = &read else { continue };
            let own = Head::read(params.as_ref());
            let own = match (own, head) {
                (Ok(own), None) => {
                    slow += 1;
                    own
                }
                (Err(error), None) => {
                    assert_eq!(error.code(), Some(code::INVALID_PARAMS), "{error}");
                    assert!(error.message().len() <= 1000, "{}", shown(error.message().as_bytes()));
                    continue;
                }
                (own, Some(head)) => {
                    quick += 1;
                    let own = own.unwrap_or_else(|error| panic!("{error}: {}", shown(line)));
                    same_head(&own, &head, line);
                    own
                }
            };
            // A part of a message is a part of its text.
            let text = params.as_ref().map_or("", RawJson::get);
            for part in [&own.name, &own.uri, &own.arguments, &own.task].into_iter().flatten() {
                assert!(text.contains(part.get()), "{part} is not in {}", shown(line));
            }
        }
        sort(&format!("{} {}", ["none", "one", "some"][quick.min(2)], ["none", "one", "some"][slow.min(2)]))
    })
}

fn same_head(one: &Head, other: &Head, line: &[u8]) {
    let parts = |head: &Head| {
        [&head.name, &head.uri, &head.arguments, &head.task, &head.meta, &head.progress_token].map(Clone::clone)
    };
    assert_eq!(parts(one), parts(other), "{}", shown(line));
    assert_eq!((one.goes_on, one.is_modern()), (other.goes_on, other.is_modern()), "{}", shown(line));
}

const FIELDS: &[&str] = &[
    "data:",
    "data: ",
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"m\"}\n\n",
    "event: message\n",
    "event: endpoint\n",
    "event:",
    "id: 1\n",
    "id:",
    "id: r1-2\n",
    "retry: 10\n",
    "retry: 99999999999999999999\n",
    "retry:",
    ": ping\n",
    ":",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "\r\n\r\n",
    "\u{feff}",
    "\0",
];

#[test]
fn sse() {
    run(&Target { name: "sse", property: streamed, mutate: mutate::bytes, words: FIELDS, slowest: SLOWEST });
}

/// A stream reads the same however it is cut, is taken up where it says, and what is written reads as what it was.
fn streamed(input: &[u8]) -> u64 {
    let (whole, broken) = events(input, input.len().max(1));
    for size in [1, 2, 7, 64] {
        let pieces = events(input, size);
        assert_eq!((&pieces.0, pieces.1), (&whole, broken), "in pieces of {size}: {}", shown(input));
    }
    let last = whole.iter().rev().find_map(|event| event.id.as_ref());
    let can_resume = last.is_some_and(|id| !id.is_empty() && HeaderValue::try_from(id).is_ok());
    let with_data = whole.iter().filter(|event| event.data.is_some()).count();
    let (mut cursor, mut messages) = (Cursor::default(), 0_usize);
    for event in &whole {
        take(event.clone(), &mut cursor, &mut |data| {
            assert!(!data.is_empty(), "an empty message");
            messages += 1;
            false
        });
    }
    assert_eq!(cursor.is_resumable(), can_resume, "{}", shown(input));
    assert!(messages <= with_data, "{messages} messages of {with_data}: {}", shown(input));
    let text = String::from_utf8_lossy(input).replace(['\n', '\r'], " ");
    if !text.trim().is_empty() {
        let id = EventId { stream: Stream::Request(1), number: 2, place: 0 };
        let mut wire = comment(&text).to_vec();
        wire.extend_from_slice(&event(Some(id), Bytes::from(text.clone())).concat());
        let (read, broken) = events(&wire, wire.len());
        assert!(!broken && read.len() == 1, "{read:?}");
        assert_eq!(read[0].data.as_deref(), Some(&*text));
        assert_eq!(read[0].id.as_deref().and_then(EventId::parse), Some(id));
    }
    sort(&format!(
        "{broken} {can_resume} {:?}",
        whole.iter().take(6).map(|e| (e.id.is_some(), e.data.is_some(), e.event.is_some())).collect::<Vec<_>>()
    ))
}

/// The events of a stream that comes in pieces of this size, and whether it broke off.
fn events(stream: &[u8], size: usize) -> (Vec<Sse>, bool) {
    let pieces: Vec<_> = stream.chunks(size).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece))).collect();
    let mut stream = SseByteStream::new(futures_util::stream::iter(pieces));
    let mut events = Vec::new();
    loop {
        match stream.next().now_or_never().expect("nothing to wait for") {
            Some(Ok(event)) => events.push(event),
            Some(Err(_)) => return (events, true),
            None => return (events, false),
        }
    }
}

#[test]
fn names() {
    let words = &["r1-2", "s", "-", "18446744073709551615", "t-", "YWJj", "=", "_", "/", "ä"];
    run(&Target { name: "names", property: named, mutate: mutate::bytes, words, slowest: SLOWEST });
}

/// Ids of events, and the cursors between pages.
fn named(input: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(input);
    let id = EventId::parse(&text);
    if let Some(id) = id {
        assert_eq!(EventId::parse(&id.to_string()), Some(id), "{text}");
    }
    let opened = unsealed(&text);
    if let Some(name) = &opened {
        assert!((1..=256).contains(&name.len()), "{} bytes", name.len());
        assert_eq!(sealed(name), text, "there is one cursor for a name");
    }
    let place = key(&text);
    assert!(place.len() <= 256 && place.chars().zip(text.chars()).take(200 / 4).all(|(one, other)| one == other));
    assert_eq!(unsealed(&sealed(&place)).as_deref(), Some(&*place).filter(|place| !place.is_empty()));
    sort(&format!("{} {} {}", id.is_some(), opened.is_some(), place == text))
}
