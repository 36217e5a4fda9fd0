use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body as HttpBody;

use super::reply::Refusal;

/// The whole body in one piece; copied only when it came in several.
pub(super) async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Refusal>
where
    B: HttpBody<Data = Bytes>,
{
    let mut body = std::pin::pin!(body);
    let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let (mut first, mut all, mut read) = (Bytes::new(), BytesMut::new(), 0usize);
    loop {
        match std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            None => break,
            Some(Err(_)) => return Err(Refusal::new(StatusCode::BAD_REQUEST, "the body ended before its end")),
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                let before = read;
                read += data.len();
                if read > limit {
                    // A sender that is nearly done is listened to, so that its connection can go on.
                    if read > limit.saturating_mul(2) {
                        break;
                    }
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
    if read > limit {
        let message = format!("message is longer than the limit of {limit} bytes (max_message_bytes)");
        return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}
