use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body::Body as HttpBody;
use tokio::time::{Instant, timeout_at};

use super::reply::Refusal;
use crate::budget::{Charge, Owner, STEP};

/// Longest pause of a sender of too much that is still listened to.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest time that a sender of too much without pauses is listened to.
const PATIENCE: Duration = Duration::from_secs(1);

/// A body may come in so many pieces, whatever is in them; in more, with [`MIN_PIECE`] bytes in each on average. A piece
/// costs as much as a hundred bytes.
const FREE_PIECES: usize = 1 << 16;
const MIN_PIECE: usize = 16;

/// The whole body in one piece; copied only when it came in several. One that is longer than `limit` is refused. Up to
/// twice that is read first and dropped, within [`PATIENCE`], so that the connection can go on; what says beforehand that
/// it is longer still, or waits for leave to be sent, is not waited for. A long one takes its part of the budget of
/// `owner`, until its last part is gone.
pub(super) async fn collect<B>(headers: &HeaderMap, body: B, limit: usize, owner: Owner) -> Result<Bytes, Refusal>
where
    B: HttpBody<Data = Bytes>,
{
    let mut body = std::pin::pin!(body);
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let most = limit.saturating_mul(2);
    let mut refused = expected > limit;
    if refused && (expected > most || headers.contains_key(http::header::EXPECT)) {
        return Err(too_long(limit));
    }
    let (mut first, mut all, mut read) = (Bytes::new(), BytesMut::new(), 0usize);
    let (mut end, mut pieces) = (None, 0usize);
    let mut charge = Charge::new(owner);
    while read <= most {
        let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx));
        let frame = match refused {
            false => frame.await,
            true => {
                let now = Instant::now();
                let end = *end.get_or_insert(now + PATIENCE);
                match timeout_at(end.min(now + PAUSE), frame).await {
                    Ok(frame) if now < end => frame,
                    _ => break,
                }
            }
        };
        match frame {
            None => break,
            Some(Err(_)) if refused => break,
            Some(Err(_)) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body ended before its end")),
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                let before = read;
                (read, pieces) = (read + data.len(), pieces + 1);
                if pieces > FREE_PIECES && read / pieces < MIN_PIECE {
                    let message =
                        format!("the body comes in pieces of less than {MIN_PIECE} bytes, more than {FREE_PIECES}");
                    return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
                }
                if refused || read > limit {
                    (refused, first, all) = (true, Bytes::new(), BytesMut::new());
                    charge.fit(0);
                } else if read > STEP && !charge.grow(read - charge.bytes()) {
                    return Err(Refusal::over_budget());
                } else if before == 0 {
                    first = data;
                } else {
                    if all.is_empty() {
                        all.reserve(expected.clamp(read, limit));
                        all.extend_from_slice(&first);
                    }
                    all.extend_from_slice(&data);
                }
            }
        }
    }
    match refused {
        true => Err(too_long(limit)),
        false if all.is_empty() => Ok(charge.of(first)),
        false => Ok(charge.of(all.freeze())),
    }
}

fn too_long(limit: usize) -> Refusal {
    let message = format!("message is longer than the limit of {limit} bytes (max_message_bytes)");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use http_body::{Frame, SizeHint};
    use tokio::time::{Sleep, sleep};

    use super::*;

    /// Sends a byte at a time.
    struct Trickle {
        said: u64,
        left: usize,
        pause: Duration,
        next: Pin<Box<Sleep>>,
    }

    impl Trickle {
        fn new(said: u64, left: usize, pause: u64) -> Self {
            let pause = Duration::from_millis(pause);
            Self { said, left, pause, next: Box::pin(sleep(pause)) }
        }
    }

    impl HttpBody for Trickle {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            ready!(self.next.as_mut().poll(cx));
            let next = Instant::now() + self.pause;
            self.next.as_mut().reset(next);
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.said);
            hint
        }
    }

    async fn read(body: Trickle, limit: usize) -> Option<usize> {
        let reading =
            async { collect(&HeaderMap::new(), body, limit, Owner::UNKNOWN).await.ok().map(|body| body.len()) };
        tokio::time::timeout(Duration::from_secs(20), reading).await.expect("an end")
    }

    #[tokio::test]
    async fn who_sends_too_much_slowly_is_not_listened_to_for_long() {
        // Never a pause that is long enough, and a minute in all.
        for (said, limit) in [(6_000, 5_000), (0, 10)] {
            assert_eq!(read(Trickle::new(said, 6_000, 10), limit).await, None, "{said}");
        }
        assert_eq!(read(Trickle::new(0, 20, 10), 20).await, Some(20));
    }

    /// Sends what it has in pieces.
    struct Pieces(Bytes, usize);

    impl HttpBody for Pieces {
        type Data = Bytes;
        type Error = std::convert::Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
            let length = self.1.min(self.0.len());
            Poll::Ready((length > 0).then(|| Ok(Frame::data(self.0.split_to(length)))))
        }
    }

    #[tokio::test]
    async fn many_small_pieces_are_refused() {
        let body = Bytes::from(vec![b'x'; 2 << 20]);
        for (size, taken) in [(1, false), (15, false), (16, true), (4096, true)] {
            let read = collect(&HeaderMap::new(), Pieces(body.clone(), size), body.len(), Owner::UNKNOWN).await;
            assert_eq!(read.is_ok(), taken, "{size}");
        }
        let few = body.slice(..FREE_PIECES);
        assert!(collect(&HeaderMap::new(), Pieces(few, 1), body.len(), Owner::UNKNOWN).await.is_ok());
    }

    #[tokio::test]
    async fn what_says_it_is_too_long_is_refused_though_it_is_not() {
        assert_eq!(read(Trickle::new(15, 5, 0), 10).await, None);
        assert_eq!(read(Trickle::new(5, 15, 0), 10).await, None);
    }
}
