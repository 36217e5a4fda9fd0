//! The head of a request: the members of its parameters that decide its way, and the modern envelope in them.
//!
//! The envelope is what the sender of a request says of itself in `_meta`, the same with each of its requests. It is
//! read the first time and compared from then on, which is ten times as quick.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use bytestring::ByteString;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::context::{LogLevel, PeerFacts};
use super::revision::Method;
use crate::error::{Error, Result};
use crate::jsonrpc::{self, DecodeError, Decoded, Limits, Message, RawJson};
use crate::model::meta::{ParamsHead, RequestMeta};

/// The members of `_meta` that every modern request has, as they came.
#[derive(Debug)]
pub(crate) struct Envelope {
    pub(super) version: RawJson,
    pub(super) capabilities: Option<RawJson>,
    pub(super) info: Option<RawJson>,
    pub(super) log_level: Option<RawJson>,
    /// Their meaning, once they were found to be as they should be.
    pub(super) checked: OnceLock<Checked>,
}

/// Content of an envelope, checked for presence and type.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) version: Box<str>,
    pub(crate) peer: Arc<PeerFacts>,
    pub(crate) log_level: Option<LogLevel>,
}

/// The members of a request's parameters that steer the engine, read in one pass.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) name: Option<RawJson>,
    pub(crate) uri: Option<RawJson>,
    pub(crate) arguments: Option<RawJson>,
    pub(crate) task: Option<RawJson>,
    /// There are answers to what the request was answered with before, or its state.
    pub(crate) goes_on: bool,
    pub(crate) meta: Option<RawJson>,
    /// A member of `_meta`, as the next one.
    pub(crate) progress_token: Option<RawJson>,
    pub(crate) envelope: Option<Arc<Envelope>>,
    /// The row of the request's method, if it was looked for already.
    pub(crate) method: Option<&'static Method>,
}

impl Head {
    /// Reads what is there; whether it may stand there is decided later.
    ///
    /// # Errors
    /// −32602 when a member is twice there or `_meta` is no object.
    pub(crate) fn read(params: Option<&RawJson>) -> Result<Box<Self>> {
        let Some(params) = params else {
            return Ok(Box::default());
        };
        let read: ParamsHead<'_> = params.borrow().map_err(|e| Error::invalid_params(format!("\"params\": {e}")))?;
        let slice = |raw: Option<&RawValue>| raw.map(|raw| params.slice(raw));
        let meta = slice(read.meta);
        let (envelope, progress_token) = meta.as_ref().map(meta_of).transpose()?.unwrap_or_default();
        Ok(Box::new(Self {
            name: slice(read.name),
            uri: slice(read.uri),
            arguments: slice(read.arguments),
            task: slice(read.task),
            goes_on: read.goes_on(),
            meta,
            progress_token,
            envelope,
            method: None,
        }))
    }

    /// Returns true if the request carries the envelope of modern ones.
    pub(crate) fn is_modern(&self) -> bool {
        self.envelope.is_some()
    }
}

/// Memory of a thread.
#[derive(Default)]
struct Memory {
    kept: Option<Kept>,
    /// Number of texts that pass before one is kept again: where no text comes twice, as with the trace of each
    /// request, keeping them is work for nothing.
    left: u32,
    pause: u32,
}

/// The last `_meta` that was read.
struct Kept {
    text: RawJson,
    envelope: Arc<Envelope>,
    /// Depth of its nesting.
    depth: usize,
    /// Its place in its message: so far from the beginning, and so far from the end.
    before: usize,
    after: usize,
    /// A message without it, for reading; kept for its memory.
    short: String,
    /// It came again.
    used: bool,
}

/// The longest `_meta` that is kept: one for each thread that reads requests.
const MAX_KEPT: usize = 4 << 10;

/// The longest message in which it is looked for. In others it is the least of what is to be read.
const MAX_MESSAGE: usize = 16 << 10;

/// The most texts that are let pass.
const MAX_PAUSE: u32 = 63;

thread_local! {
    static MEMORY: RefCell<Memory> = const { RefCell::new(Memory { kept: None, left: 0, pause: 0 }) };
}

/// As [`jsonrpc::decode`], and of a request whose envelope came before what its parameters say besides.
///
/// # Errors
/// As there.
pub(crate) fn decode(frame: &Bytes, limits: &Limits) -> Result<(Decoded, Option<Box<Head>>), DecodeError> {
    let known = MEMORY.with_borrow_mut(|memory| {
        let known = memory.kept.as_mut()?.request(frame, limits)?;
        memory.pause = 0;
        Some(known)
    });
    match known {
        Some((request, head)) => Ok((Decoded::One(request), Some(head))),
        None => jsonrpc::decode(frame, limits).map(|decoded| (decoded, None)),
    }
}

impl Memory {
    /// Returns true if the next text is to be kept.
    fn is_open(&mut self) -> bool {
        if self.kept.take_if(|kept| !kept.used).is_some() {
            self.pause = (self.pause * 2 + 1).min(MAX_PAUSE);
            self.left = self.pause;
        }
        let open = self.left == 0;
        self.left = self.left.saturating_sub(1);
        open
    }
}

impl Kept {
    /// Stands for `_meta` in the message that is read in its place.
    const MARK: &'static str = "0";

    /// Reads a request that has the same `_meta`. `None` for anything else, and for a message that is not plainly
    /// well-formed.
    ///
    /// The text that is read is the message with a mark in place of `_meta`. When that is JSON, and the mark is found
    /// to be the whole value of the member, then the message is JSON, too, and differs in nothing else: one value
    /// stands there for another.
    fn request(&mut self, frame: &Bytes, limits: &Limits) -> Option<(Message, Box<Head>)> {
        if frame.len() > limits.max_message_bytes.min(MAX_MESSAGE) || self.depth + 2 > limits.max_nesting {
            return None;
        }
        let at = self.find(frame)?;
        let text = ByteString::try_from(frame.clone()).ok()?;
        let short = &mut self.short;
        short.clear();
        short.push_str(text.get(..at.start)?);
        short.push_str(Self::MARK);
        short.push_str(text.get(at.end..)?);
        if memchr::memchr2(b'\n', b'\r', short.as_bytes()).is_some()
            || jsonrpc::heavier_than(frame, limits.max_decoded_bytes).is_some()
            || jsonrpc::is_deeper_than(short, limits.max_nesting)
        {
            return None;
        }
        let read = jsonrpc::request::<ParamsHead<'_>>(short)?;
        let members = read.members;
        let meta = members.meta.map(RawValue::get)?;
        if meta != Self::MARK || jsonrpc::place(short, meta)? != at.start {
            return None;
        }
        let added = at.len() - Self::MARK.len();
        let moved = |place: usize| if place <= at.start { place } else { place + added };
        let part = |range: Range<usize>| {
            let part = text.get(moved(range.start)..moved(range.end))?;
            Some(RawJson::part(text.slice_ref(part)))
        };
        let raw = |raw: Option<&RawValue>| {
            let start = jsonrpc::place(short, raw?.get())?;
            part(start..start + raw?.get().len())
        };
        let head = Box::new(Head {
            name: raw(members.name),
            uri: raw(members.uri),
            arguments: raw(members.arguments),
            task: raw(members.task),
            goes_on: members.goes_on(),
            meta: Some(self.text.clone()),
            progress_token: None,
            envelope: Some(self.envelope.clone()),
            method: None,
        });
        Some((Message::Request { id: read.id, method: read.method.to_owned(), params: part(read.params) }, head))
    }

    /// Finds the same text in a message: most are at the same distance from one of its ends as the last one was.
    fn find(&mut self, frame: &[u8]) -> Option<Range<usize>> {
        let known = self.text.get().as_bytes();
        let at = |start: usize| frame.get(start..)?.starts_with(known).then_some(start..start + known.len());
        let from_end = frame.len().checked_sub(self.after).and_then(|end| end.checked_sub(known.len())).and_then(at);
        let found = from_end.or_else(|| at(self.before)).or_else(|| at(value_of_meta(frame)?))?;
        (self.before, self.after) = (found.start, frame.len() - found.end);
        self.used = true;
        Some(found)
    }
}

/// Returns the beginning of the value called `_meta` in a message, at the first place that has the name.
fn value_of_meta(frame: &[u8]) -> Option<usize> {
    /// Made once: making it takes longer than most searches.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"_meta\""));
    let after = NAME.find(frame)? + "\"_meta\"".len();
    let rest = frame[after..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    Some(frame.len() - rest.len())
}

/// Reads the `_meta` of parameters: the envelope, if there is one, and the progress token.
///
/// # Errors
/// −32602 when it is no object, or one of these members is there twice.
fn meta_of(meta: &RawJson) -> Result<(Option<Arc<Envelope>>, Option<RawJson>)> {
    if !meta.is_object() {
        return Err(Error::invalid_params("params._meta: expected an object"));
    }
    let same = MEMORY.with_borrow_mut(|memory| {
        let kept = memory.kept.as_mut().filter(|kept| kept.text == *meta)?;
        kept.used = true;
        Some((Some(kept.envelope.clone()), None))
    });
    match same {
        Some(same) => Ok(same),
        None => parse(meta),
    }
}

fn parse(meta: &RawJson) -> Result<(Option<Arc<Envelope>>, Option<RawJson>)> {
    let read: RequestMeta<'_> = meta.borrow().map_err(|e| Error::invalid_params(format!("params._meta: {e}")))?;
    let token = read.progress_token.map(|raw| meta.slice(raw));
    if read.protocol_version.is_none() {
        return Ok((None, token));
    }
    // One that names a token is another one each time.
    let keep = token.is_none() && meta.get().len() <= MAX_KEPT && MEMORY.with_borrow_mut(Memory::is_open);
    // Copied out: a slice would keep the whole message alive for as long as the thread.
    let text = if keep { RawJson::trusted(Bytes::copy_from_slice(meta.bytes())) } else { meta.clone() };
    let part = |raw: Option<&RawValue>| {
        let start = jsonrpc::place(meta.get(), raw?.get())?;
        Some(text.slice_text(text.get().get(start..start + raw?.get().len())?))
    };
    let envelope = part(read.protocol_version).map(|version| {
        Arc::new(Envelope {
            version,
            capabilities: part(read.client_capabilities),
            info: part(read.client_info),
            log_level: part(read.log_level),
            checked: OnceLock::new(),
        })
    });
    if let Some(envelope) = envelope.clone().filter(|_| keep) {
        let depth = jsonrpc::nesting(text.get());
        let kept =
            Kept { text, envelope, depth, before: usize::MAX, after: usize::MAX, short: String::new(), used: false };
        MEMORY.with_borrow_mut(|memory| memory.kept = Some(kept));
    }
    Ok((envelope, token))
}

#[cfg(test)]
mod tests;
