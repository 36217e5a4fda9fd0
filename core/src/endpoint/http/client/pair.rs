//! HTTP+SSE, the oldest transport: one stream to read from, and where to post as it says in its first event.

use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{StatusCode, Uri};
use sse_stream::Sse;
use tokio::sync::oneshot;

use super::fault::{Fault, Post, refusal};
use super::head::Media;
use super::headers;
use super::pool::Answer;
use super::stream::{self, Cursor, End};
use crate::endpoint::http::client::Shared;
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::protocol::Input;

/// Opens the stream. Once it has said where to post, everything is sent there, and the peer gets what it brings.
///
/// # Errors
/// The reason why there is no such stream.
pub(super) async fn open(shared: &Arc<Shared>) -> Result<()> {
    let answer = stream::open(shared, None, None, &Cursor::default(), false).await?;
    let status = answer.head.status;
    if !status.is_success() {
        let (kind, why) = match refusal(shared, None, answer).await {
            Fault::Failed(error) => (error.kind(), error.message().to_owned()),
            _ => (ErrorKind::Unsupported, format!("HTTP {status}")),
        };
        return Err(Error::new(kind, format!("no event stream: {why}")));
    }
    if answer.head.media() != Media::Stream || status != StatusCode::OK {
        return Err(Error::new(ErrorKind::Unsupported, format!("HTTP {status} without an event stream")));
    }
    let (tell, told) = oneshot::channel();
    shared.hold(listen(shared.clone(), answer, tell));
    told.await.unwrap_or_else(|_| Err(Error::closed("the connection was closed while opening")))
}

/// Reads the stream to its end, which is the connection's.
async fn listen(shared: Arc<Shared>, answer: Answer, tell: oneshot::Sender<Result<()>>) {
    let (mut tell, on_stream) = (Some(tell), answer.on.clone());
    let mut on = |event: Sse| {
        let Some(tell) = tell.take() else {
            stream::message(event).into_iter().for_each(|data| shared.feed(on_stream.as_deref(), &data));
            return false;
        };
        // Known before anything else is read from the stream.
        let told = endpoint(&shared, &event).map(|target| shared.begin_pair(target));
        let failed = told.is_err();
        // Whoever waited for it may have given up.
        tell.send(told).is_err() || failed
    };
    let ended = stream::events(answer, shared.limits.max_message_bytes, &mut on).await;
    let why = match ended {
        End::Satisfied => return,
        End::Over { why: Some(why), .. } => why,
        End::Over { why: None, .. } => Error::new(ErrorKind::Unsupported, "the event stream ended"),
    };
    match tell {
        Some(tell) => drop(tell.send(Err(why))),
        None => shared.handle(Input::Closed(format!("the server's event stream is over: {}", why.message()))),
    }
}

/// Returns the address to post to, as the first event names it.
fn endpoint(shared: &Shared, event: &Sse) -> Result<Uri> {
    let data = event.data.as_deref().unwrap_or_default();
    if event.event.as_deref() != Some("endpoint") {
        let message = "the event stream begins with something else than an event \"endpoint\"";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    shared.resolved(data).ok_or_else(|| {
        let message = format!("endpoint {:?}: expected a URL of the same origin", shortened(data, 100));
        Error::new(ErrorKind::PeerMisbehaved, message)
    })
}

/// Posts a request; the answer comes on the stream. The returned error says why there will be none.
pub(super) async fn send(shared: &Arc<Shared>, post: &Post) -> Option<Input> {
    let settled = (!post.is_initialize()).then_some(post.revision);
    let headers = |out: &mut HeaderMap| headers::put_session(out, settled, None);
    let answer = match shared.post(headers, &post.frame, post.is_repeatable()).await {
        Ok(answer) => answer,
        Err(error) => return Some(Input::Undelivered(post.id.clone(), error)),
    };
    if !answer.head.status.is_success() {
        return Some(refusal(shared, Some(post), answer).await.into_input(post));
    }
    // Read, so that the connection can be used again.
    let _: Result<Bytes> = answer.collect(shared.limits.max_message_bytes).await;
    None
}
