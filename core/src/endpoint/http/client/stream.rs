//! Event streams: an answer that comes as one, its resumption, and the standalone stream of a legacy session.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use sse_stream::{Sse, SseByteStream};
use tokio::sync::oneshot;

use super::fault::Fault;
use super::head::Media;
use super::headers;
use super::pool::{Answer, over_budget, pays};
use crate::budget::Charge;
use crate::endpoint::http::client::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::idiom::named;
use crate::protocol::Input;
use crate::protocol::revision::Revision;

/// The pause before a stream is asked for again when the server names none.
const RETRY: Duration = Duration::from_secs(1);
/// A server that names none at all is not to be asked without a pause.
const SHORTEST_RETRY: Duration = Duration::from_millis(100);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// After so many times that a standalone stream has brought nothing, that is said.
const MAX_FUTILE: u32 = 8;
/// One that stayed open for so long had nothing to bring: whoever is on the way may take it for idle.
const LASTING: Duration = Duration::from_secs(10);
/// The same of one that was opened with another access token than the one before, which has ended with its token then.
const OF_A_TOKEN: Duration = Duration::from_secs(1);
/// The same for the rest of an answer. Whoever waits for it usually has a shorter patience.
const MAX_RESUMPTIONS: u32 = 20;
/// An answer's stream that goes on after the answer has this long to end; then its connection is closed.
const LINGER: Duration = Duration::from_millis(500);

/// The ids that are remembered of a stream.
const MAX_SEEN: usize = 1024;

/// Place at which a stream can be taken up again.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// Number of times that it was taken up.
    resumed: u32,
    /// The ids of its events, hashed, each with the connection it came on.
    seen: VecDeque<(u64, u32)>,
    hasher: RandomState,
}

impl Cursor {
    pub(crate) fn is_resumable(&self) -> bool {
        self.last_id.is_some()
    }

    /// An event with this id has come. `true`: it came before, on an earlier connection. Some servers repeat ids on one
    /// connection; they are taken at their word only when they repeat a stream.
    fn is_repeated(&mut self, id: &str) -> bool {
        let hash = self.hasher.hash_one(id);
        if self.resumed > 0 && self.seen.iter().any(|(other, on)| *other == hash && *on < self.resumed) {
            return true;
        }
        if self.seen.len() >= MAX_SEEN {
            self.seen.pop_front();
        }
        self.seen.push_back((hash, self.resumed));
        false
    }

    /// The pause before the next attempt, after so many that brought nothing, and so many that brought no message.
    fn pause(&self, futile: u32, silent: u32) -> Duration {
        let retry = match self.retry.unwrap_or(RETRY) {
            // Whoever names no time between streams with nothing in them is not asked ten times a second for ever.
            retry if retry < SHORTEST_RETRY => SHORTEST_RETRY.saturating_mul(1 << silent.min(10)).min(RETRY),
            retry => retry,
        };
        retry.saturating_mul(1 << futile.min(10)).min(LONGEST_RETRY.max(retry))
    }
}

/// End of reading a stream.
pub(super) enum End {
    /// The reader has what it wanted.
    Satisfied,
    /// The stream is over.
    Over { events: usize, messages: usize, why: Option<Error> },
}

/// Fields and comments around an event's data.
const FRAMING: usize = 4096;

/// The pieces of a body, up to `limit` bytes of data without a whole event.
struct Bounded<'a> {
    answer: &'a mut Answer,
    unread: &'a AtomicUsize,
    limit: usize,
    comments: Comments,
    charge: Charge,
}

/// Finds the comments of a stream, which are no part of any event.
#[derive(Default)]
struct Comments {
    line: Within,
    /// The bytes so far of the comment that goes on.
    open: usize,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// At the beginning of a line.
    #[default]
    Nothing,
    Comment,
    Field,
}

impl Comments {
    /// Returns the number of bytes of the comments that end in this piece, with those that came before it.
    fn ended_in(&mut self, piece: &[u8]) -> usize {
        let (mut rest, mut ended) = (piece, 0);
        while let [first, ..] = rest {
            if self.line == Within::Nothing {
                self.line = if *first == b':' { Within::Comment } else { Within::Field };
            }
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let taken = end.map_or(rest.len(), |end| end + 1);
            if self.line == Within::Comment {
                self.open += taken;
            }
            if end.is_some() {
                ended += std::mem::take(&mut self.open);
                self.line = Within::Nothing;
            }
            rest = &rest[taken..];
        }
        ended
    }
}

#[derive(Debug)]
struct Broken(Error);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.message())
    }
}

impl std::error::Error for Broken {}

impl Stream for Bounded<'_> {
    type Item = Result<Bytes, Broken>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.unread.load(Ordering::Relaxed) == 0 {
            // The event before is whole, and the next may be long in coming.
            self.charge.fit(0);
        }
        let piece = match ready!(self.answer.poll_piece(cx)) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Poll::Ready(Some(Err(Broken(error)))),
            None => return Poll::Ready(None),
        };
        // Counted since the last whole event; a piece that is too long by itself can only be seen when it is here.
        let before = self.unread.fetch_add(piece.len(), Ordering::Relaxed);
        let comments = self.comments.ended_in(&piece);
        let left = (before + piece.len()).saturating_sub(comments);
        if comments > 0 {
            self.unread.store(left, Ordering::Relaxed);
        }
        if before > self.limit.saturating_add(FRAMING) && left > self.limit.saturating_add(FRAMING) {
            let (limit, option) = (self.limit, named("max_message_bytes"));
            let message = format!("an event has at least {left} bytes, more than the limit of {limit} ({option})");
            return Poll::Ready(Some(Err(Broken(Error::new(ErrorKind::PeerMisbehaved, message)))));
        }
        if !pays(&mut self.charge, left) {
            return Poll::Ready(Some(Err(Broken(over_budget(left)))));
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

/// Feeds the data of each event to `on`, until that says `true` or the stream is over.
pub(super) async fn read(
    answer: Answer,
    limit: usize,
    cursor: &mut Cursor,
    on: &mut (dyn FnMut(Bytes) -> bool + Send),
) -> End {
    let mut messages = 0;
    let mut counted = |data: Bytes| {
        messages += 1;
        on(data)
    };
    match events(answer, limit, &mut |event| take(event, cursor, &mut counted)).await {
        End::Over { events, why, .. } => End::Over { events, messages, why },
        satisfied @ End::Satisfied => satisfied,
    }
}

/// Feeds each event to `on`, until that says `true` or the stream is over.
pub(super) async fn events(mut answer: Answer, limit: usize, on: &mut (dyn FnMut(Sse) -> bool + Send)) -> End {
    let unread = AtomicUsize::new(0);
    let (comments, charge) = (Comments::default(), answer.charge());
    let mut stream = SseByteStream::new(Bounded { answer: &mut answer, unread: &unread, limit, comments, charge });
    let mut events = 0;
    loop {
        let event = match stream.next().await {
            Some(Ok(event)) => event,
            None => return End::Over { events, messages: 0, why: None },
            Some(Err(error)) => {
                return End::Over { events, messages: 0, why: Some(reason(error)) };
            }
        };
        unread.store(0, Ordering::Relaxed);
        events += 1;
        if on(event) {
            break;
        }
    }
    // Read on to the end, so that the connection can be used again.
    let rest = async {
        while let Some(Ok(event)) = stream.next().await {
            on(event);
        }
    };
    let _ = tokio::time::timeout(LINGER, rest).await;
    End::Satisfied
}

/// One event; `true`: the reader has what it wanted.
pub(crate) fn take(event: Sse, cursor: &mut Cursor, on: &mut (dyn FnMut(Bytes) -> bool + Send)) -> bool {
    if let Some(retry) = event.retry {
        cursor.retry = Some(Duration::from_millis(retry));
    }
    let mut repeated = false;
    if let Some(id) = &event.id {
        repeated = !id.is_empty() && cursor.is_repeated(id);
        cursor.last_id = HeaderValue::try_from(id).ok().filter(|id| !id.is_empty());
    }
    !repeated && message(event).is_some_and(on)
}

/// An event's message. One without data only says where the stream can be taken up again.
pub(super) fn message(event: Sse) -> Option<Bytes> {
    let is_message = event.event.as_deref().is_none_or(|kind| kind.is_empty() || kind == "message");
    event.data.filter(|data| is_message && !data.trim().is_empty()).map(Bytes::from)
}

fn reason(error: sse_stream::Error) -> Error {
    match error {
        sse_stream::Error::Body(error) => match error.downcast::<Broken>() {
            Ok(broken) => broken.0,
            Err(error) => Error::new(ErrorKind::Transport, error.to_string()),
        },
        error => Error::new(ErrorKind::PeerMisbehaved, format!("event stream: {error}")),
    }
}

/// Asks for a stream: the standalone one, or with a cursor the rest of one that broke off. No user is asked to log in for
/// a `quiet` one.
pub(super) async fn open(
    shared: &Arc<Shared>,
    revision: Option<Revision>,
    session: Option<&HeaderValue>,
    cursor: &Cursor,
    quiet: bool,
) -> Result<Answer> {
    let headers = |out: &mut HeaderMap| {
        out.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers::put_session(out, revision, session);
        if let Some(id) = &cursor.last_id {
            out.insert(HeaderName::from_static("last-event-id"), id.clone());
        }
    };
    shared.exchange(Method::GET, headers, &Bytes::new(), true, quiet).await
}

fn is_worth_another(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT || status == StatusCode::TOO_MANY_REQUESTS
}

/// Returns true if a stream that has brought nothing was open for as long as it could be.
fn has_stayed(lasted: Duration, renewed: bool) -> bool {
    lasted >= if renewed { OF_A_TOKEN } else { LASTING }
}

/// Takes up an answer's stream until the answer is there. `on` gets the name of the stream, too: each attempt has another.
///
/// # Errors
/// The reason why the rest could not be had.
pub(super) async fn resume(
    shared: &Arc<Shared>,
    revision: Revision,
    session: Option<&HeaderValue>,
    mut cursor: Cursor,
    on: &mut (dyn FnMut(Option<&str>, Bytes) -> bool + Send),
) -> Result<(), Fault> {
    let (mut futile, mut silent) = (0, 0_u32);
    loop {
        tokio::time::sleep(cursor.pause(futile, silent)).await;
        futile += 1;
        silent = silent.saturating_add(1);
        cursor.resumed += 1;
        let why = match open(shared, Some(revision), session, &cursor, false).await {
            Ok(answer) if answer.head.status == StatusCode::OK && answer.head.media() == Media::Stream => {
                let on_stream = answer.on.clone();
                let mut on = |data| on(on_stream.as_deref(), data);
                match read(answer, shared.limits.max_message_bytes, &mut cursor, &mut on).await {
                    End::Satisfied => return Ok(()),
                    End::Over { why: Some(why), .. } if why.kind() == ErrorKind::PeerMisbehaved => {
                        return Err(why.into());
                    }
                    End::Over { events, messages, why } => {
                        if events > 0 {
                            futile = 0;
                        }
                        if messages > 0 {
                            silent = 0;
                        }
                        why
                    }
                }
            }
            Ok(answer) if is_worth_another(answer.head.status) => None,
            Ok(answer) if answer.head.status == StatusCode::NOT_FOUND && session.is_some() => {
                return Err(Fault::SessionLost { taken: true });
            }
            Ok(answer) => {
                let status = answer.head.status;
                let message = format!(
                    "the stream broke off before the answer, which is lost: to resume it was refused with HTTP {status}"
                );
                return Err(Error::new(ErrorKind::Transport, message).into());
            }
            // The next try would ask the user once more.
            Err(error) if error.kind() == ErrorKind::Auth => return Err(error.into()),
            Err(error) => Some(error),
        };
        if futile >= MAX_RESUMPTIONS {
            let why = why.map_or_else(String::new, |why| format!(" ({})", why.message()));
            let message = format!("the stream broke off before the answer, and resuming it brought nothing{why}");
            return Err(Error::new(ErrorKind::Transport, message).into());
        }
    }
}

/// Keeps the standalone stream of a legacy session open, unless the server does not offer it. When the server does not
/// know the session any more, a new one is begun. `settled` is dropped when the server has answered for the first time.
pub(super) async fn listen(
    shared: Arc<Shared>,
    revision: Option<Revision>,
    session: Option<HeaderValue>,
    settled: oneshot::Sender<()>,
) {
    let (mut cursor, mut futile, mut settled) = (Cursor::default(), 0_u32, Some(settled));
    let mut silent = 0_u32;
    let (mut was_open, mut before) = (false, None);
    loop {
        let renewal = shared.renewal();
        let opened = open(&shared, revision, session.as_ref(), &cursor, true).await;
        cursor.resumed += 1;
        drop(settled.take());
        match opened {
            Ok(answer) if answer.head.status == StatusCode::OK && answer.head.media() == Media::Stream => {
                was_open = true;
                let token = answer.shown.as_ref().map(|shown| shown.number);
                let renewed = before.is_some() && before != token;
                before = token;
                let opened = Instant::now();
                let on_stream = answer.on.clone();
                let mut on = |data| {
                    shared.feed(on_stream.as_deref(), &data);
                    false
                };
                let ended = read(answer, shared.limits.max_message_bytes, &mut cursor, &mut on).await;
                let stayed = has_stayed(opened.elapsed(), renewed);
                match ended {
                    End::Over { events, .. } if events > 0 || stayed => futile = 0,
                    _ => futile = futile.saturating_add(1),
                }
                match ended {
                    End::Over { messages: 0, .. } if !stayed => silent = silent.saturating_add(1),
                    _ => silent = 0,
                }
            }
            Ok(answer) if is_worth_another(answer.head.status) => futile += 1,
            Ok(answer) if was_open && session.is_some() && answer.head.status == StatusCode::NOT_FOUND => {
                // Others may have found out before.
                if shared.session() == session {
                    shared.handle(Input::SessionExpired);
                }
                return;
            }
            // Not offered.
            Ok(answer) if !cursor.is_resumable() || answer.head.status == StatusCode::NOT_FOUND => return,
            // The events that were to follow are not kept any more: those that come now are better than nothing.
            Ok(_) => {
                cursor.last_id = None;
                futile += 1;
            }
            // The login that is missing is that of the next request, whose user waits for it.
            Err(error) if error.kind() == ErrorKind::Auth && renewal.is_some() => {
                if let Some(peer) = shared.peer.upgrade() {
                    peer.warn(&format!(
                        "the server's standalone stream is closed until there is another token: {}",
                        error.message()
                    ));
                }
                futile = futile.saturating_add(1);
                if let Some(renewal) = renewal {
                    renewal.await;
                }
            }
            Err(_) => futile += 1,
        }
        if futile == MAX_FUTILE
            && let Some(peer) = shared.peer.upgrade()
        {
            peer.warn("the server's standalone stream does not stay open: what it says unasked may be heard late");
        }
        tokio::time::sleep(cursor.pause(futile.saturating_sub(1), silent.saturating_sub(1))).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_came_before_the_stream_broke_off_is_not_taken_again() {
        let (mut cursor, heard) = (Cursor::default(), std::sync::Mutex::new(Vec::new()));
        let feed = |cursor: &mut Cursor, id: &str, data: &str| {
            let event = Sse { id: Some(id.into()), data: Some(data.into()), ..Sse::default() };
            take(event, cursor, &mut |data| {
                heard.lock().expect("lock").push(String::from_utf8_lossy(&data).into_owned());
                false
            });
        };
        for (id, data) in [("1", ""), ("1", "a"), ("2", "b"), ("2", "c")] {
            feed(&mut cursor, id, data);
        }
        cursor.resumed += 1;
        for (id, data) in [("1", "a"), ("2", "c"), ("3", "d"), ("3", "e"), ("", "f"), ("", "g")] {
            feed(&mut cursor, id, data);
        }
        assert_eq!(*heard.lock().expect("lock"), ["a", "b", "c", "d", "e", "f", "g"]);
        for n in 0..MAX_SEEN * 2 {
            feed(&mut cursor, &format!("n{n}"), "");
        }
        assert!(cursor.seen.len() <= MAX_SEEN);
    }

    #[test]
    fn a_quiet_stream_that_ends_with_its_token_is_no_futile_one() {
        assert!(has_stayed(LASTING, false) && has_stayed(OF_A_TOKEN, true));
        assert!(!has_stayed(OF_A_TOKEN, false) && !has_stayed(Duration::from_millis(999), true));
    }

    #[test]
    fn there_is_always_a_pause() {
        let pause = |retry, futile| Cursor { retry, ..Cursor::default() }.pause(futile, 0).as_millis();
        assert_eq!((pause(Some(Duration::ZERO), 0), pause(Some(Duration::ZERO), 1)), (100, 200));
        assert_eq!((pause(None, 0), pause(None, 10)), (1000, 30_000));
        assert_eq!(pause(Some(Duration::from_secs(60)), 3), 60_000);
        let silent = |retry, silent| Cursor { retry, ..Cursor::default() }.pause(0, silent).as_millis();
        assert_eq!((silent(Some(Duration::ZERO), 1), silent(Some(Duration::ZERO), 99)), (200, 1000));
        assert_eq!((silent(Some(Duration::from_millis(2500)), 99), silent(None, 99)), (2500, 1000));
    }

    #[test]
    fn comments_are_no_part_of_an_event() {
        let ended = |pieces: &[&str]| {
            let mut comments = Comments::default();
            pieces.iter().map(|piece| comments.ended_in(piece.as_bytes())).collect::<Vec<_>>()
        };
        assert_eq!(ended(&[": ping\n\n", "data: x\n\n"]), [7, 0]);
        assert_eq!(ended(&["data: : no\n:", "a", "b\r\n:c\n"]), [0, 0, 7]);
        assert_eq!(ended(&[":", ":", ":"]), [0, 0, 0]);
    }
}
