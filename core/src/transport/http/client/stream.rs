//! Event streams: an answer that comes as one, its resumption, and the standalone stream of a legacy session.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Response, StatusCode};
use sse_stream::SseByteStream;

use super::pool::Answer;
use super::{Shared, headers};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::revision::Revision;

/// The pause before a stream is asked for again when the server names none.
const RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// How often a stream that brings nothing is asked for before it is given up.
const MAX_FUTILE: u32 = 8;
/// The same for the rest of an answer, which somebody waits for.
const MAX_RESUMPTIONS: u32 = 5;
/// An answer's stream that goes on after the answer has this long to end; then its connection is closed.
pub(super) const LINGER: Duration = Duration::from_millis(500);

/// Where a stream can be taken up again.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    last_id: Option<HeaderValue>,
    retry: Option<Duration>,
}

impl Cursor {
    pub(super) fn is_resumable(&self) -> bool {
        self.last_id.is_some()
    }

    /// The pause before the next attempt, after so many that brought nothing.
    fn pause(&self, futile: u32) -> Duration {
        let retry = self.retry.unwrap_or(RETRY);
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

/// The pieces of a body, up to `limit` bytes without a whole event.
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
        // The event before the current piece is no longer counted, what precedes this one is.
        if self.unread.fetch_add(piece.len(), Ordering::Relaxed) > self.limit {
            let message = format!("an event is longer than the limit of {} bytes (max_message_bytes)", self.limit);
            return Poll::Ready(Some(Err(Broken(Error::new(ErrorKind::PeerMisbehaved, message)))));
        }
        Poll::Ready(Some(Ok(piece)))
    }
}

/// Whether a response is an event stream.
pub(super) fn is_stream(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case("text/event-stream")
}

/// The response's media type without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

/// Feeds the data of each event to `on`, until that says `true` or the stream is over.
pub(super) async fn read(
    mut answer: Answer,
    limit: usize,
    cursor: &mut Cursor,
    on: &mut (dyn FnMut(Bytes) -> bool + Send),
) -> End {
    let unread = AtomicUsize::new(0);
    let (mut events, mut satisfied) = (0, false);
    {
        let mut stream = SseByteStream::new(Bounded { answer: &mut answer, unread: &unread, limit });
        loop {
            let next = if satisfied {
                // Read on to the end, so that the connection can be used again.
                match tokio::time::timeout(LINGER, stream.next()).await {
                    Ok(next) => next,
                    Err(_) => return End::Satisfied,
                }
            } else {
                stream.next().await
            };
            let event = match next {
                Some(Ok(event)) => event,
                _ if satisfied => return End::Satisfied,
                None => return End::Over { events, why: None },
                Some(Err(sse_stream::Error::Body(error))) => {
                    let why = error.downcast::<Broken>().map_or_else(|e| Error::new(ErrorKind::Transport, e.to_string()), |b| b.0);
                    return End::Over { events, why: Some(why) };
                }
                Some(Err(error)) => {
                    let why = Error::new(ErrorKind::PeerMisbehaved, format!("event stream: {error}"));
                    return End::Over { events, why: Some(why) };
                }
            };
            unread.store(0, Ordering::Relaxed);
            events += 1;
            if let Some(id) = event.id {
                cursor.last_id = HeaderValue::try_from(id).ok().filter(|id| !id.is_empty());
            }
            if let Some(retry) = event.retry {
                cursor.retry = Some(Duration::from_millis(retry));
            }
            let is_message = event.event.as_deref().is_none_or(|kind| kind.is_empty() || kind == "message");
            // An event without data only says where the stream can be taken up again.
            if let Some(data) = event.data.filter(|data| is_message && !data.trim().is_empty()) {
                satisfied |= on(Bytes::from(data));
            }
        }
    }
}

/// Asks for a stream: the standalone one, or with a cursor the rest of one that broke off.
async fn open(
    shared: &Arc<Shared>,
    revision: Option<Revision>,
    session: Option<&HeaderValue>,
    cursor: &Cursor,
) -> Result<Response<Answer>> {
    let headers = |headers: &mut HeaderMap| {
        headers.remove(CONTENT_TYPE);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers::put_session(headers, revision, session);
        if let Some(id) = &cursor.last_id {
            headers.insert(headers::LAST_EVENT_ID, id.clone());
        }
    };
    shared.exchange(&Method::GET, headers, &Bytes::new(), true).await
}

fn is_worth_another(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT || status == StatusCode::TOO_MANY_REQUESTS
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
) -> Result<()> {
    let mut futile = 0;
    loop {
        tokio::time::sleep(cursor.pause(futile)).await;
        futile += 1;
        let why = match open(shared, Some(revision), session, &cursor).await {
            Ok(response) if response.status() == StatusCode::OK && is_stream(response.headers()) => {
                match read(response.into_body(), shared.limits.max_message_bytes, &mut cursor, on).await {
                    End::Satisfied => return Ok(()),
                    End::Over { events, why } => {
                        if events > 0 {
                            futile = 0;
                        }
                        why
                    }
                }
            }
            Ok(response) if is_worth_another(response.status()) => None,
            Ok(response) => {
                let message = format!("the answer broke off, and to resume it was refused: HTTP {}", response.status());
                return Err(Error::new(ErrorKind::Transport, message));
            }
            Err(error) => Some(error),
        };
        if futile >= MAX_RESUMPTIONS {
            return Err(why.unwrap_or_else(|| {
                Error::new(ErrorKind::Transport, "the answer broke off, and resuming it brought nothing")
            }));
        }
    }
}

/// Keeps the standalone stream of a legacy session open, until the server does not offer it or goes silent for good.
pub(super) async fn listen(shared: Arc<Shared>, revision: Option<Revision>, session: Option<HeaderValue>) {
    let (mut cursor, mut futile) = (Cursor::default(), 0);
    loop {
        match open(&shared, revision, session.as_ref(), &cursor).await {
            Ok(response) if response.status() == StatusCode::OK && is_stream(response.headers()) => {
                let mut on = |data| {
                    shared.feed(&data);
                    false
                };
                match read(response.into_body(), shared.limits.max_message_bytes, &mut cursor, &mut on).await {
                    End::Over { events, .. } if events > 0 => futile = 0,
                    _ => futile += 1,
                }
            }
            Ok(response) if is_worth_another(response.status()) => futile += 1,
            // Not offered, or the session is gone: the next request will find out.
            Ok(_) => return,
            Err(_) => futile += 1,
        }
        if futile >= MAX_FUTILE {
            return;
        }
        tokio::time::sleep(cursor.pause(futile.saturating_sub(1))).await;
    }
}
