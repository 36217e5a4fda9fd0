//! The stream of an answer that goes out at another process than the one that works on the request: its *reader*, which
//! has the client, and its *writer*, which has the events, send each other notes by their inboxes.
//!
//! The reader asks for what follows an event, under a ticket. The writer takes the stream up as for a client of its own,
//! and sends its messages with numbers, a bounded number of them ahead of what the client has taken. Both give the other
//! up that is silent for long; the events stay where they are, and the client asks again.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::endpoint::Inner;
use super::exchange::{Exchange, Owner};
use super::lanes::{MAX_STREAMS, Refused, Resumed, too_long};
use super::legacy::{not_resumed, too_many};
use super::outlet::{End, Next, Outlet};
use super::reply::Refusal;
use super::sender::Sender;
use super::sessions::Session;
use super::shared::{away, number_of};
use crate::driver::{Node, runtime};
use crate::jsonrpc::code;
use crate::signal::Signal;
use crate::store::redis::Redis;
use crate::store::redis::nodes::Posted;
use crate::store::{Event, EventId, Stream};

/// Time in which a writer says whether it has the stream.
const ANSWERS: Duration = Duration::from_secs(2);
/// Time between two signs of life of a reader, each of which the writer answers.
const BEAT: Duration = Duration::from_secs(5);
/// Time after which a silent writer is given up.
const SILENCE: Duration = Duration::from_secs(15);
/// Time after which a silent reader is given up.
const LEASE: Duration = Duration::from_secs(60);
/// Time in which a client takes something of what was sent.
const STALL: Duration = Duration::from_secs(10);
/// Time in which a full inbox gets room.
const FULL: Duration = Duration::from_secs(5);
/// Time between two looks at what nothing tells.
const LOOK: Duration = Duration::from_secs(1);
/// Time between two attempts to send a note, at least.
const RETRY: Duration = Duration::from_millis(100);
/// Messages that the client has not taken, at most.
const AHEAD: usize = 16;
/// Bytes of them after which no further one is sent.
const AHEAD_BYTES: usize = 1 << 20;
/// Messages after which the writer is told what was taken, and bytes.
const OFTEN: u64 = 4;
const OFTEN_BYTES: usize = 256 << 10;
/// Attempts to send a long message that may have been taken though the store did not say so.
const OFTEN_TRIED: usize = 3;
/// Longest message, in bytes, whatever the options say.
const LONGEST: usize = 4 << 20;

/// A message between two processes: one line, which the text of an event follows.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    #[serde(rename = "t")]
    ticket: u64,
    /// Number of the process that sends it.
    #[serde(rename = "n")]
    process: u32,
    #[serde(rename = "k")]
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    // Of a reader.
    /// Wants what follows this event.
    Ask(String),
    /// Lives, and its client has taken this many messages.
    Took(u64),
    Stop,
    // Of a writer.
    Yes,
    No(Why),
    /// A message by its number, with its id.
    Event {
        number: u64,
        id: Option<String>,
        is_last: bool,
    },
    /// Lives.
    Beat,
    /// The end after this many messages.
    End(u64, Why),
}

/// Reason of a refusal, or of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Why {
    Unknown,
    Over,
    TooMany,
    Answered,
    Cancelled,
    SessionEnded,
    ServerClosed,
    TooSlow,
    Paused,
    Moved,
    /// A reason of a later release.
    #[serde(other)]
    Other,
}

impl Why {
    fn of(end: End) -> Self {
        match end {
            End::Answered => Self::Answered,
            End::Cancelled => Self::Cancelled,
            End::SessionEnded => Self::SessionEnded,
            End::ServerClosed => Self::ServerClosed,
            End::TooSlow => Self::TooSlow,
            End::Paused => Self::Paused,
            End::Moved => Self::Moved,
            End::MadeRoom | End::Unheard => Self::Other,
        }
    }

    fn end(self) -> End {
        match self {
            Self::Answered => End::Answered,
            Self::Cancelled => End::Cancelled,
            Self::SessionEnded => End::SessionEnded,
            Self::ServerClosed => End::ServerClosed,
            Self::TooSlow => End::TooSlow,
            Self::Paused => End::Paused,
            Self::Moved => End::Moved,
            Self::Unknown | Self::Over | Self::TooMany | Self::Other => End::Unheard,
        }
    }
}

impl Note {
    fn written(&self, text: &[u8]) -> Bytes {
        // Numbers and names: writing them cannot fail.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line.extend_from_slice(text);
        line.into()
    }

    fn read(text: &Bytes) -> Option<(Self, Bytes)> {
        let end = text.iter().position(|byte| *byte == b'\n')?;
        Some((serde_json::from_slice(&text[..end]).ok()?, text.slice(end + 1..)))
    }
}

/// The way of notes to one other process.
struct Post {
    store: Arc<Redis>,
    /// Number of this process.
    own: u32,
    other: u32,
    /// The session.
    key: Arc<str>,
    ticket: u64,
}

impl Post {
    /// Sends a note. `None`: the store did not take it.
    async fn send(&self, kind: Kind, text: &[u8]) -> Option<Posted> {
        let note = Note { ticket: self.ticket, process: self.own, kind }.written(text);
        self.store.note(self.other, &self.key, &note).await.ok()
    }

    fn pause(&self) -> Duration {
        self.store.pause().unwrap_or_default().max(RETRY)
    }
}

/// The feeds of a session in this process.
#[derive(Default)]
pub(super) struct Feeds(Mutex<Table>);

#[derive(Default)]
struct Table {
    readings: Vec<Arc<Reading>>,
    writings: Vec<Arc<Writing>>,
}

impl Feeds {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a client reads one here.
    pub(super) fn is_open(&self) -> bool {
        !self.lock().readings.is_empty()
    }

    /// Returns the number of answers that are on their way to another process.
    pub(super) fn delivering(&self) -> usize {
        self.lock().writings.iter().filter(|writing| writing.outlet.is_over()).count()
    }

    /// Ends those that a client reads here. It can come back for the rest elsewhere.
    pub(super) fn end(&self, end: End) {
        let all = self.lock().readings.clone();
        all.iter().for_each(|reading| reading.outlet.end(end));
    }

    /// A client is to read one more here, if the session has not enough of them.
    fn add(&self, reading: &Arc<Reading>) -> bool {
        let mut table = self.lock();
        let has_room = table.readings.len() < MAX_STREAMS;
        if has_room {
            table.readings.push(reading.clone());
        }
        has_room
    }

    /// The client has left one.
    pub(super) fn leave(&self, reading: &Arc<Reading>) {
        let mut table = self.lock();
        table.readings.retain(|other| !Arc::ptr_eq(other, reading));
        if table.readings.is_empty() {
            table.readings = Vec::new();
        }
        drop(table);
        reading.lock().has_left = true;
        reading.news.notify_one();
    }

    fn reading(&self, ticket: u64) -> Option<Arc<Reading>> {
        self.lock().readings.iter().find(|reading| reading.ticket == ticket).cloned()
    }

    fn writing(&self, ticket: u64) -> Option<Arc<Writing>> {
        self.lock().writings.iter().find(|writing| writing.ticket == ticket).cloned()
    }
}

// ---- the reader ---------------------------------------------------------------------------------------------------

/// A stream that a client reads here, and another process writes.
pub(super) struct Reading {
    ticket: u64,
    outlet: Arc<Outlet>,
    state: Mutex<Read>,
    /// Something was taken, or it is over.
    news: Notify,
    /// It is known whether there is such a stream.
    answered: Signal,
}

struct Read {
    /// Answer of the writer, or of the way to it.
    outcome: Option<Outcome>,
    /// Number of the last message that came.
    last: u64,
    /// Number of messages that the client has taken, and bytes of those that the writer has not heard of.
    taken: u64,
    bytes: usize,
    heard: Instant,
    has_left: bool,
    /// Nothing more comes.
    is_over: bool,
}

#[derive(Clone, Copy)]
enum Outcome {
    Begun,
    Refused(Refused),
    /// The writer does not answer, or does not read.
    Silent,
    /// The store does not answer.
    Away,
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, Read> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client has taken a message.
    pub(super) fn took(&self, bytes: usize) {
        let mut state = self.lock();
        state.taken += 1;
        state.bytes += bytes;
        if state.taken.is_multiple_of(OFTEN) || state.bytes >= OFTEN_BYTES {
            self.news.notify_one();
        }
    }

    fn comes_to(&self, outcome: Outcome) {
        self.lock().outcome.get_or_insert(outcome);
        self.answered.set();
    }

    /// A note of the writer's. They come one after the other.
    fn heard(&self, kind: Kind, text: Bytes) {
        let (message, end, outcome) = self.lock().heard(kind, text);
        // Without the lock, which a reader that is woken may want.
        if let Some(message) = message {
            self.outlet.message(message, false);
        }
        match end {
            // Messages that wait here go out there, too.
            Some(End::Moved) => {
                let (_, wake) = self.outlet.retire(End::Moved);
                if let Some(wake) = wake {
                    wake.wake();
                }
            }
            Some(end) => self.outlet.end(end),
            None => {}
        }
        if let Some(outcome) = outcome {
            self.comes_to(outcome);
        }
        self.news.notify_one();
    }
}

impl Read {
    /// Returns what a note means for the client, and for whoever waits for the beginning.
    fn heard(&mut self, kind: Kind, text: Bytes) -> (Option<Event>, Option<End>, Option<Outcome>) {
        self.heard = Instant::now();
        let expected = match &kind {
            Kind::Event { number, .. } => number.saturating_sub(1),
            Kind::End(after, _) => *after,
            _ => self.last,
        };
        if self.is_over || expected < self.last {
            // Sent again, because the store seemed not to have it.
            return (None, None, None);
        }
        if expected > self.last {
            // The inbox was lost in between.
            self.is_over = true;
            return (None, Some(End::Unheard), None);
        }
        match kind {
            Kind::Yes => (None, None, Some(Outcome::Begun)),
            Kind::No(why) => {
                let refused = match why {
                    Why::Over => Refused::Over,
                    Why::TooMany => Refused::TooMany,
                    _ => Refused::Unknown,
                };
                self.is_over = true;
                (None, Some(End::Unheard), Some(Outcome::Refused(refused)))
            }
            Kind::Event { id, is_last, .. } => {
                self.last += 1;
                self.is_over = is_last;
                let id = id.as_deref().and_then(EventId::parse);
                (Some(Event { id, text }), is_last.then_some(End::Answered), None)
            }
            Kind::End(_, why) => {
                self.is_over = true;
                (None, Some(why.end()), None)
            }
            Kind::Beat | Kind::Ask(_) | Kind::Took(_) | Kind::Stop => (None, None, None),
        }
    }
}

/// Takes up the stream of an answer that another process works on, after this event.
pub(super) async fn take_up(
    inner: &Arc<Inner>,
    sender: &Sender,
    session: &Arc<Session>,
    id: EventId,
) -> Result<Exchange, Refusal> {
    let (Some(sharing), Some(node)) = (session.shared.get(), inner.node()) else {
        return Err(not_resumed(Refused::Unknown, &id.to_string()));
    };
    let (own, other) = (node.number.get(), number_of(id));
    if own == 0 {
        return Err(away());
    }
    if own == other {
        // Of another session, of an earlier copy of this one, or of a process that had the number before.
        return Err(not_resumed(Refused::Unknown, &id.to_string()));
    }
    let mut bytes = [0; 8];
    crate::random::fill(&mut bytes)
        .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.message()))?;
    let ticket = u64::from_le_bytes(bytes);
    let outlet = Arc::new(Outlet::new(inner.max_queued, sender.holder().owner()));
    let state =
        Read { outcome: None, last: 0, taken: 0, bytes: 0, heard: Instant::now(), has_left: false, is_over: false };
    let (news, answered) = (Notify::new(), Signal::default());
    let reading = Arc::new(Reading { ticket, outlet: outlet.clone(), state: Mutex::new(state), news, answered });
    let of = outlet.clone();
    let room = inner.stream_ticket(sender.holder(), move || of.end(End::MadeRoom))?;
    if !session.feeds.add(&reading) {
        return Err(too_many());
    }
    let owner = Owner::Feed { session: session.clone(), reading: reading.clone(), _ticket: room };
    let exchange = Exchange::resumed(outlet, owner);
    let post = Post { store: node.store.clone(), own, other, key: sharing.key.clone(), ticket };
    // The process may leave the others meanwhile.
    drop(node);
    // To its end, also when the client has gone by then: the writer is told.
    runtime::spawn(read(reading.clone(), post, id));
    reading.answered.wait().await;
    let outcome = reading.lock().outcome.unwrap_or(Outcome::Silent);
    match outcome {
        Outcome::Begun => Ok(exchange),
        Outcome::Refused(why) => Err(not_resumed(why, &id.to_string())),
        Outcome::Away => Err(away()),
        Outcome::Silent => {
            let message = "the process that works on this request does not answer: try again later";
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).with_code(code::UNAVAILABLE))
        }
    }
}

/// Asks the writer, and tells it what was taken, until one of the two is over.
async fn read(reading: Arc<Reading>, post: Post, id: EventId) {
    match post.send(Kind::Ask(id.to_string()), b"").await {
        Some(Posted::Sent) => {}
        Some(Posted::Nobody) => return reading.comes_to(Outcome::Refused(Refused::Gone)),
        Some(Posted::Full) => return reading.comes_to(Outcome::Silent),
        None => return reading.comes_to(Outcome::Away),
    }
    let in_time = timeout(ANSWERS, async {
        while !reading.answered.is_set() && !reading.lock().has_left {
            reading.news.notified().await;
        }
    });
    if in_time.await.is_err() {
        reading.comes_to(Outcome::Silent);
        stop(&reading, &post).await;
        return;
    }
    let (mut told, mut beat) = (0, Instant::now());
    loop {
        let (taken, bytes, is_over, has_left) = {
            let state = reading.lock();
            (state.taken, state.bytes, state.is_over, state.has_left)
        };
        if is_over {
            return;
        }
        if has_left || reading.outlet.is_over() {
            return stop(&reading, &post).await;
        }
        if taken >= told + OFTEN || bytes >= OFTEN_BYTES || beat.elapsed() >= BEAT {
            match post.send(Kind::Took(taken), b"").await {
                Some(Posted::Sent) => {
                    (told, beat) = (taken, Instant::now());
                    let mut state = reading.lock();
                    state.bytes = state.bytes.saturating_sub(bytes);
                }
                Some(Posted::Nobody) => return reading.outlet.end(End::Unheard),
                Some(Posted::Full) => tokio::time::sleep(RETRY).await,
                None => {
                    // Silence is that of the store.
                    reading.lock().heard = Instant::now();
                    tokio::time::sleep(post.pause()).await;
                }
            }
        }
        if reading.lock().heard.elapsed() >= SILENCE {
            reading.outlet.end(End::Unheard);
            continue;
        }
        let _ = timeout(LOOK, reading.news.notified()).await;
    }
}

/// Tells the writer that nobody reads any more. Otherwise it gives up by itself.
async fn stop(reading: &Reading, post: &Post) {
    for _ in 0..2 {
        if reading.lock().is_over || post.send(Kind::Stop, b"").await.is_some() {
            return;
        }
        tokio::time::sleep(post.pause()).await;
    }
}

// ---- the writer ---------------------------------------------------------------------------------------------------

/// A stream that this process writes, and a client reads at another.
struct Writing {
    ticket: u64,
    outlet: Arc<Outlet>,
    state: Mutex<Written>,
    /// The reader has said something.
    news: Notify,
}

struct Written {
    /// Number of messages that the client has taken.
    taken: u64,
    heard: Instant,
    /// The reader wants to hear of this process.
    wants_beat: bool,
    is_stopped: bool,
}

impl Writing {
    fn lock(&self) -> MutexGuard<'_, Written> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if nobody reads any more.
    fn is_given_up(&self) -> bool {
        let state = self.lock();
        state.is_stopped || state.heard.elapsed() >= LEASE
    }
}

/// A stream that is written counts until this is dropped.
struct Counted {
    all: Arc<AtomicUsize>,
    session: Arc<Session>,
    writing: Arc<Writing>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut table = self.session.feeds.lock();
        table.writings.retain(|other| !Arc::ptr_eq(other, &self.writing));
        if table.writings.is_empty() {
            table.writings = Vec::new();
        }
        drop(table);
        self.all.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A note came. `false`: it is about nothing here.
pub(super) fn noted(inner: &Inner, key: &str, text: &Bytes, is_last: bool) -> bool {
    // One of a later release may be anything.
    let Some((Note { ticket, process, kind }, text)) = Note::read(text) else { return true };
    let session = inner.sessions.of_key(key);
    let answer = match kind {
        Kind::Ask(after) => {
            let id = EventId::parse(&after).filter(|id| matches!(id.stream, Stream::Request(_)));
            let known = session.zip(id).filter(|(session, id)| session.lanes().knows(*id));
            match (known, post(inner, key, ticket, process)) {
                (Some((session, id)), Some(post)) => begin(inner, &session, id, post).err().map(Kind::No),
                (None, _) if !is_last => return false,
                _ => Some(Kind::No(Why::Unknown)),
            }
        }
        Kind::Took(_) | Kind::Stop => match session.and_then(|session| session.feeds.writing(ticket)) {
            Some(writing) => {
                let mut state = writing.lock();
                state.heard = Instant::now();
                match kind {
                    Kind::Took(taken) => (state.taken, state.wants_beat) = (state.taken.max(taken), true),
                    _ => state.is_stopped = true,
                }
                drop(state);
                writing.news.notify_one();
                None
            }
            None if !is_last => return false,
            None => matches!(kind, Kind::Took(_)).then_some(Kind::No(Why::Unknown)),
        },
        Kind::Yes | Kind::No(_) | Kind::Event { .. } | Kind::Beat | Kind::End(..) => {
            match session.and_then(|session| session.feeds.reading(ticket)) {
                Some(reading) => {
                    reading.heard(kind, text);
                    None
                }
                None if !is_last => return false,
                None => matches!(kind, Kind::Yes | Kind::Event { .. } | Kind::Beat).then_some(Kind::Stop),
            }
        }
    };
    if let Some((answer, post)) = answer.zip(post(inner, key, ticket, process)) {
        // Otherwise the other one gives up by itself.
        runtime::spawn(async move { post.send(answer, b"").await });
    }
    true
}

fn post(inner: &Inner, key: &str, ticket: u64, other: u32) -> Option<Post> {
    let node = Node::of(&inner.server)?;
    Some(Post { store: node.store.clone(), own: node.number.get(), other, key: key.into(), ticket })
}

/// Takes a stream up for a reader in another process.
fn begin(inner: &Inner, session: &Arc<Session>, id: EventId, post: Post) -> Result<(), Why> {
    let most = inner.options.max_connections;
    if inner.writers.load(Ordering::Acquire) >= most || session.feeds.lock().writings.len() >= MAX_STREAMS {
        return Err(Why::TooMany);
    }
    let (route, outlet) = match session.lanes().resume(id) {
        Ok(Resumed::Request(route, outlet)) => (route, outlet),
        Err(Refused::Over) => return Err(Why::Over),
        Err(Refused::TooMany) => return Err(Why::TooMany),
        Ok(Resumed::Standalone(..)) | Err(Refused::Unknown | Refused::Gone) => return Err(Why::Unknown),
    };
    let exchange = Exchange::resumed(outlet.clone(), Owner::Request { session: session.clone(), route });
    let state = Written { taken: 0, heard: Instant::now(), wants_beat: false, is_stopped: false };
    let (ticket, state, news) = (post.ticket, Mutex::new(state), Notify::new());
    let writing = Arc::new(Writing { ticket, outlet, state, news });
    session.feeds.lock().writings.push(writing.clone());
    inner.writers.fetch_add(1, Ordering::AcqRel);
    let counted = Counted { all: inner.writers.clone(), session: session.clone(), writing };
    let room = inner.resumption.map_or(0, |resumption| resumption.room.bytes).min(LONGEST);
    runtime::spawn(write(counted, exchange, post, room));
    Ok(())
}

/// Sends a note, again if need be. `false`: the reader is to be given up.
async fn pass(writing: &Writing, post: &Post, kind: Kind, text: &[u8]) -> bool {
    let begun = Instant::now();
    let mut unsaid = 0;
    loop {
        match post.send(kind.clone(), text).await {
            Some(Posted::Sent) => return true,
            Some(Posted::Nobody) => return false,
            Some(Posted::Full) if begun.elapsed() >= FULL => return false,
            Some(Posted::Full) => tokio::time::sleep(RETRY).await,
            None => {
                unsaid += 1;
                // It stays among the events that are kept, and each attempt costs all others time.
                if unsaid >= OFTEN_TRIED && text.len() > OFTEN_BYTES {
                    return false;
                }
                tokio::time::sleep(post.pause()).await;
            }
        }
        if writing.is_given_up() {
            return false;
        }
    }
}

/// Messages that were sent, and that the client may not have taken.
struct Ahead {
    /// Number of the last that was sent.
    last: u64,
    /// Sizes of those after the last that was taken.
    sizes: VecDeque<usize>,
    since: Instant,
}

impl Ahead {
    fn has_room(&self) -> bool {
        self.sizes.len() < AHEAD && self.sizes.iter().sum::<usize>() < AHEAD_BYTES
    }

    /// Returns true if the client has taken nothing for too long, of as much as there may be.
    fn is_stalled(&self) -> bool {
        !self.has_room() && self.since.elapsed() >= STALL
    }

    fn sent(&mut self, size: usize) {
        self.last += 1;
        self.sizes.push_back(size);
        self.since = Instant::now();
    }

    fn taken(&mut self, taken: u64) {
        let left = usize::try_from(self.last.saturating_sub(taken)).unwrap_or(usize::MAX);
        while self.sizes.len() > left {
            self.sizes.pop_front();
            self.since = Instant::now();
        }
    }
}

/// Sends what goes out on a stream. Dropped with this, the exchange leaves the rest to whoever comes next.
async fn write(counted: Counted, exchange: Exchange, post: Post, room: usize) {
    let writing = &*counted.writing;
    if !pass(writing, &post, Kind::Yes, b"").await {
        return;
    }
    let mut ahead = Ahead { last: 0, sizes: VecDeque::new(), since: Instant::now() };
    let mut held = None;
    while !writing.is_given_up() {
        let (taken, wants_beat) = {
            let mut state = writing.lock();
            (state.taken, std::mem::take(&mut state.wants_beat))
        };
        ahead.taken(taken);
        if wants_beat {
            post.send(Kind::Beat, b"").await;
        }
        if writing.outlet.has_moved() {
            held = Some(Next::End(End::Moved));
        }
        let (event, is_last) = match held.take() {
            None => {
                tokio::select! {
                    biased;
                    next = std::future::poll_fn(|cx| writing.outlet.poll(cx)) => held = Some(next),
                    () = writing.news.notified() => {}
                    () = tokio::time::sleep(LOOK) => {}
                }
                continue;
            }
            Some(Next::End(end)) => {
                pass(writing, &post, Kind::End(ahead.last, Why::of(end)), b"").await;
                return;
            }
            Some(next) if !ahead.has_room() => {
                if ahead.is_stalled() {
                    pass(writing, &post, Kind::End(ahead.last, Why::TooSlow), b"").await;
                    return;
                }
                held = Some(next);
                let _ = timeout(LOOK, writing.news.notified()).await;
                continue;
            }
            Some(Next::Message(event)) => (event, false),
            Some(Next::Answer(answer)) => (Event { id: answer.id, text: answer.text }, true),
        };
        let text = match event.text {
            text if text.len() <= room => text,
            text if is_last => too_long(&text, room),
            // It is not among the events that are kept, so whoever comes for the rest gets what follows.
            _ => {
                pass(writing, &post, Kind::End(ahead.last, Why::Other), b"").await;
                return;
            }
        };
        let id = event.id.map(|id| id.to_string());
        if !pass(writing, &post, Kind::Event { number: ahead.last + 1, id, is_last }, &text).await || is_last {
            return;
        }
        ahead.sent(text.len());
    }
    drop(exchange);
}

#[cfg(test)]
mod tests;
