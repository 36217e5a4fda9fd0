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

use super::exchange::Fault;
use super::head::Media;
use super::pool::Answer;
use super::{Shared, headers};
use crate::error::{Error, ErrorKind, Result};
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

/// Where a stream can be taken up again.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
    /// How often it was taken up.
    resumed: u32,
    /// The ids of its events, hashed, each with the connection it came on.
    seen: VecDeque<(u64, u32)>,
    hasher: RandomState,
}

impl Cursor {
    pub(super) fn is_resumable(&self) -> bool {
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

    /// The pause before the next attempt, after so many that brought nothing.
    fn pause(&self, futile: u32) -> Duration {
        let retry = self.retry.unwrap_or(RETRY).max(SHORTEST_RETRY);
        retry.saturating_mul(1 << futile.min(10)).min(LONGEST_RETRY.max(retry))
    }
}

/// How reading a stream went.
pub(super) enum End {
    /// The reader has what it wanted.
    Satisfied,
    /// The stream is over.
    Over { events: usize, why: Option<Error> },
}

/// Fields and comments around an event's data.
const FRAMING: usize = 4096;

/// The pieces of a body, up to `limit` bytes of data without a whole event.
struct Bounded<'a> {
    answer: &'a mut Answer,
    unread: &'a AtomicUsize,
    limit: usize,
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
        let piece = match ready!(self.answer.poll_piece(cx)) {
            Some(Ok(piece)) => piece,
            Some(Err(error)) => return Poll::Ready(Some(Err(Broken(error)))),
            None => return Poll::Ready(None),
        };
        // Counted since the last whole event; a piece that is too long by itself can only be seen when it is here.
        if self.unread.fetch_add(piece.len(), Ordering::Relaxed) > self.limit.saturating_add(FRAMING) {
            let message = format!("an event is longer than the limit of {} bytes (max_message_bytes)", self.limit);
            return Poll::Ready(Some(Err(Broken(Error::new(ErrorKind::PeerMisbehaved, message)))));
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
    events(answer, limit, &mut |event| take(event, cursor, on)).await
}

/// Feeds each event to `on`, until that says `true` or the stream is over.
pub(super) async fn events(mut answer: Answer, limit: usize, on: &mut (dyn FnMut(Sse) -> bool + Send)) -> End {
    let unread = AtomicUsize::new(0);
    let mut stream = SseByteStream::new(Bounded { answer: &mut answer, unread: &unread, limit });
    let mut events = 0;
    loop {
        let event = match stream.next().await {
            Some(Ok(event)) => event,
            None => return End::Over { events, why: None },
            Some(Err(error)) => {
                return End::Over { events, why: Some(reason(error)) };
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
fn take(event: Sse, cursor: &mut Cursor, on: &mut (dyn FnMut(Bytes) -> bool + Send)) -> bool {
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

/// Whether a stream that has brought nothing was open for as long as it could be.
fn has_stayed(lasted: Duration, renewed: bool) -> bool {
    lasted >= if renewed { OF_A_TOKEN } else { LASTING }
}

/// Takes up an answer's stream until the answer is there.
///
/// # Errors
/// Why the rest could not be had.
pub(super) async fn resume(
    shared: &Arc<Shared>,
    revision: Revision,
    session: Option<&HeaderValue>,
    mut cursor: Cursor,
    on: &mut (dyn FnMut(Bytes) -> bool + Send),
) -> Result<(), Fault> {
    let mut futile = 0;
    loop {
        tokio::time::sleep(cursor.pause(futile)).await;
        futile += 1;
        cursor.resumed += 1;
        let why = match open(shared, Some(revision), session, &cursor, false).await {
            Ok(answer) if answer.head.status == StatusCode::OK && answer.head.media() == Media::Stream => {
                match read(answer, shared.limits.max_message_bytes, &mut cursor, on).await {
                    End::Satisfied => return Ok(()),
                    End::Over { why: Some(why), .. } if why.kind() == ErrorKind::PeerMisbehaved => {
                        return Err(why.into());
                    }
                    End::Over { events, why } => {
                        if events > 0 {
                            futile = 0;
                        }
                        why
                    }
                }
            }
            Ok(answer) if is_worth_another(answer.head.status) => None,
            Ok(answer) if answer.head.status == StatusCode::NOT_FOUND && session.is_some() => {
                return Err(Fault::SessionLost);
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
                let mut on = |data| {
                    shared.feed(&data);
                    false
                };
                match read(answer, shared.limits.max_message_bytes, &mut cursor, &mut on).await {
                    End::Over { events, .. } if events > 0 || has_stayed(opened.elapsed(), renewed) => futile = 0,
                    _ => futile = futile.saturating_add(1),
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
            // What was to follow is not kept any more: what comes now is better than nothing.
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
        tokio::time::sleep(cursor.pause(futile.saturating_sub(1))).await;
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
        let pause = |retry, futile| Cursor { retry, ..Cursor::default() }.pause(futile).as_millis();
        assert_eq!((pause(Some(Duration::ZERO), 0), pause(Some(Duration::ZERO), 1)), (100, 200));
        assert_eq!((pause(None, 0), pause(None, 10)), (1000, 30_000));
        assert_eq!(pause(Some(Duration::from_secs(60)), 3), 60_000);
    }
}
