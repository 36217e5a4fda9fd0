use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::body::{Events, Quiet};
use super::exchange::Exchange;
use super::headers::{Accepts, NO_BUFFERING};
use super::outlet::{Answer, End, Next};
use crate::endpoint::http::Body;
use crate::error::Error;
use crate::jsonrpc::{self, DecodeError, ErrorObject, Id, code};
use crate::protocol::revision::Rules;
use crate::transport::sse;

/// The answer that a request does not get any further with.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    id: Option<Id>,
    error: ErrorObject,
    null_id: bool,
    /// The methods that are served, for the answer to one that is not.
    allow: Option<&'static str>,
    /// Challenge that tells how to authenticate.
    challenge: Option<Box<HeaderValue>>,
    /// The body is to come as it is.
    packed: bool,
    /// Seconds after which it may go better.
    retry_after: u32,
}

impl Refusal {
    /// HTTP says no; the body says why in JSON-RPC's words.
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let code = if status.is_server_error() { code::INTERNAL_ERROR } else { code::INVALID_REQUEST };
        let error = ErrorObject { code, message: message.into(), data: None };
        Self { status, id: None, error, null_id: false, allow: None, challenge: None, packed: false, retry_after: 1 }
    }

    /// A method that is not served, and those that are.
    pub(super) fn method(message: String, allow: &'static str) -> Self {
        Self { allow: Some(allow), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, message) }
    }

    /// A body that is compressed, which no body is to be here (RFC 9110, 15.5.16).
    pub(super) fn packed(message: String) -> Self {
        Self { packed: true, ..Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message) }
    }

    /// A JSON-RPC error in the answer to a bad request.
    pub(super) fn bad(id: Option<&Id>, error: &Error) -> Self {
        Self { id: id.cloned(), error: error.to_object(), ..Self::new(StatusCode::BAD_REQUEST, "") }
    }

    /// A body that is no message. `rules` of the revision that its sender says it speaks.
    pub(super) fn undecodable(error: &DecodeError, rules: Option<&Rules>) -> Self {
        let null_id = !rules.is_some_and(|r| r.error_without_id);
        Self { id: error.id.clone(), error: error.to_object(), null_id, ..Self::new(StatusCode::BAD_REQUEST, "") }
    }

    /// Says how to authenticate: the value of `WWW-Authenticate`.
    #[cfg(feature = "auth")]
    pub(super) fn challenge(mut self, challenge: &str) -> Self {
        self.challenge = HeaderValue::from_str(challenge).ok().map(Box::new);
        self
    }

    /// The process holds as much for its peers as it may.
    pub(super) fn over_budget() -> Self {
        let message = "too much is kept for clients already, or too much for this one (max_memory): try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Says in how many seconds to come again, where it is 503.
    #[cfg(feature = "auth")]
    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = seconds;
        self
    }

    /// Sets the code of the JSON-RPC error.
    #[cfg(feature = "redis")]
    pub(super) fn with_code(mut self, code: i64) -> Self {
        self.error.code = code;
        self
    }

    pub(super) fn with_id(mut self, id: Option<&Id>) -> Self {
        self.id = id.cloned();
        self
    }
}

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        let text = jsonrpc::encode_error(refusal.id.as_ref(), &refusal.error, refusal.null_id);
        let mut response = json(refusal.status, text);
        if let Some(allow) = refusal.allow {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        if refusal.packed {
            response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if let Some(challenge) = refusal.challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, *challenge);
        }
        if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(refusal.retry_after));
        }
        response
    }
}

/// A response with a JSON text.
pub(super) fn json(status: StatusCode, text: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A response that is a stream of events.
pub(super) fn events(events: Events) -> Response<Body> {
    stream(Body::events(events))
}

/// A response that is a stream of one event.
pub(super) fn event(text: Bytes) -> Response<Body> {
    stream(Body::full(sse::event(None, text).concat()))
}

fn stream(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// The response to a request that is being worked on: JSON when the answer is the first thing that there is to say,
/// otherwise a stream. `status` is for a JSON answer.
pub(super) async fn answered(
    mut exchange: Exchange,
    accepts: Accepts,
    keep_alive: std::time::Duration,
    status: impl Fn(&Answer) -> StatusCode,
) -> Response<Body> {
    let first = match exchange.outlet().next() {
        Some(next) => Some(next),
        None => wait(&exchange, accepts, keep_alive).await,
    };
    let first = first.or_else(|| {
        exchange.begin_stream();
        exchange.outlet().next()
    });
    match first {
        // An answer with an id went out on a stream already.
        Some(Next::Answer(answer)) if accepts.json && answer.id.is_none() => {
            exchange.finish();
            let mut response = json(status(&answer), answer.text);
            if response.status() == StatusCode::SERVICE_UNAVAILABLE {
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            response
        }
        Some(Next::End(end)) => {
            exchange.finish();
            match end {
                End::SessionEnded => Refusal::new(StatusCode::NOT_FOUND, "the session has ended").into(),
                End::ServerClosed => Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server was closed").into(),
                // Cancelled: nobody waits for anything.
                _ if accepts.events => events(Events::new(exchange, Some(Next::End(end)), keep_alive)),
                _ => empty(StatusCode::ACCEPTED),
            }
        }
        first => events(Events::new(exchange, first, keep_alive)),
    }
}

/// The first thing to say; `None` after a long silence, which only a stream can break.
async fn wait(exchange: &Exchange, accepts: Accepts, keep_alive: std::time::Duration) -> Option<Next> {
    let mut quiet = Quiet::new(keep_alive);
    std::future::poll_fn(|cx| match exchange.outlet().poll(cx) {
        std::task::Poll::Ready(next) => std::task::Poll::Ready(Some(next)),
        std::task::Poll::Pending if accepts.events => quiet.poll(cx).map(|()| None),
        std::task::Poll::Pending => std::task::Poll::Pending,
    })
    .await
}
