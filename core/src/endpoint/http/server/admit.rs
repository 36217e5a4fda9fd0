//! Checks before a request's body: its addressee, its sender, and its purpose.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};

use super::endpoint::Inner;
use super::headers::{self, Accepts, SESSION_ID, Single, Version};
use super::reply::Refusal;
use super::sender::Sender;
use super::{cors, pair};
use crate::endpoint::http::Body;
use crate::protocol::Origin;
use crate::protocol::revision::Era;

/// Request to the endpoint.
pub(super) enum Verb {
    Post(Accepts),
    Get,
    Delete,
    /// A request of the oldest transport.
    OpenPair,
    PostToPair(String),
    Preflight,
}

impl Inner {
    /// Checks everything before the body: the addressee of the request, its sender, and its purpose.
    pub(super) async fn admit(
        self: &Arc<Self>,
        mut head: Parts,
        from: Option<IpAddr>,
    ) -> Result<(Verb, Sender), Refusal> {
        let pair = self.addressed(&head)?;
        let is_preflight = self.is_preflight(&head);
        #[cfg(feature = "auth")]
        let principal = if is_preflight { None } else { self.guarded(&mut head, pair.is_some(), from).await? };
        #[cfg(not(feature = "auth"))]
        let principal = None;
        let at_pair = pair.is_some();
        let verb = match pair {
            Some(verb) => verb,
            None => self.verb(&head),
        }?;
        let origin = head.extensions.remove::<Origin>().or_else(|| self.origin.clone());
        let extensions = (self.mounted && !head.extensions.is_empty()).then(|| Arc::new(head.extensions));
        let sender = Sender { headers: head.headers, principal, from, at_pair, extensions, origin };
        if !matches!(verb, Verb::Post(_) | Verb::PostToPair(_) | Verb::Preflight) {
            self.permit(&sender, Vec::new)?;
        }
        self.begin().await?;
        Ok((verb, sender))
    }

    /// The host that a request is sent to.
    pub(super) fn host<'a>(&self, head: &'a Parts) -> Result<Option<&'a str>, Refusal> {
        let refuse = |status: StatusCode, why: &str| Err(Refusal::new(status, why));
        let named = match Single::of(&head.headers, &http::header::HOST) {
            Single::Absent => None,
            Single::Text(host) => Some(host),
            Single::Unreadable => return refuse(StatusCode::BAD_REQUEST, "header Host: expected one value"),
        };
        // RFC 9112, 3.2. What is mounted may be called without a wire.
        if named.is_none() && !self.mounted && head.version >= http::Version::HTTP_11 {
            return refuse(StatusCode::BAD_REQUEST, "header Host: missing");
        }
        // Absolute targets, and HTTP/2, say it in the target, which counts more (RFC 9112, 3.2.2).
        let host = head.uri.authority().map(http::uri::Authority::as_str).or(named);
        self.allowed.host(host).map_err(|why| Refusal::new(StatusCode::FORBIDDEN, why))?;
        Ok(host)
    }

    /// Returns true if a browser asks what a page that the options name may send.
    fn is_preflight(&self, head: &Parts) -> bool {
        head.method == Method::OPTIONS && cors::is_preflight(&head.headers) && self.page(&head.headers).is_some()
    }

    /// Checks that a request is for this endpoint. Gives what is asked of the oldest transport, if it is that.
    fn addressed(&self, head: &Parts) -> Result<Option<Result<Verb, Refusal>>, Refusal> {
        let headers = &head.headers;
        let refuse = |status: StatusCode, why: &str| Err(Refusal::new(status, why));
        self.host(head)?;
        headers::check_codings(headers)?;
        let origin = match Single::of(headers, &http::header::ORIGIN) {
            Single::Unreadable => {
                return refuse(StatusCode::FORBIDDEN, "header Origin: expected one value (allowed_origins)");
            }
            origin => origin.text(),
        };
        self.allowed.origin(origin).map_err(|why| Refusal::new(StatusCode::FORBIDDEN, why))?;
        let pair = if self.options.sse { self.admit_pair(head) } else { None };
        if !self.is_at(head, &self.options.path) && pair.is_none() {
            let why = format!("nothing here; the endpoint's path is {} (path)", self.options.path);
            return refuse(StatusCode::NOT_FOUND, &why);
        }
        // Mounted, nobody tells the endpoint that its server was closed.
        if self.is_closed() || self.server.shared.stop.is_set() {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "the server was closed");
        }
        Ok(pair)
    }

    /// Reads the request to the endpoint.
    fn verb(&self, head: &Parts) -> Result<Verb, Refusal> {
        let headers = &head.headers;
        let refuse = |status: StatusCode, why: &str| Err(Refusal::new(status, why));
        match head.method {
            Method::POST => {}
            Method::GET | Method::DELETE if !Version::of(headers).is_modern && self.keeps_sessions() => {
                return Ok(if head.method == Method::GET { Verb::Get } else { Verb::Delete });
            }
            // Only a browser asks, and only for pages that the options name.
            Method::OPTIONS if self.is_preflight(head) => return Ok(Verb::Preflight),
            Method::OPTIONS if cors::is_preflight(headers) => {
                let why =
                    "pages of this origin may not use the server: if they are meant to, name it in allowed_origins";
                return Err(Refusal::method(why.to_owned(), "GET, POST, DELETE"));
            }
            _ => {
                let (era, allow) = if Version::of(headers).is_modern || !self.has_sessions() {
                    ("this revision has POST only", "POST")
                } else if !self.keeps_sessions() {
                    ("this server keeps no sessions (stateless)", "POST")
                } else {
                    ("expected GET, POST or DELETE", "GET, POST, DELETE")
                };
                return Err(Refusal::method(format!("method {} is not served here: {era}", head.method), allow));
            }
        }
        if !headers::is_json(headers) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "header Content-Type: expected application/json");
        }
        let accepts = Accepts::of(headers);
        if !accepts.json && !accepts.events {
            let why = "header Accept: expected application/json, text/event-stream";
            return refuse(StatusCode::NOT_ACCEPTABLE, why);
        }
        Ok(Verb::Post(accepts))
    }

    /// Returns true if a revision is spoken that has sessions.
    pub(super) fn has_sessions(&self) -> bool {
        self.server.facts().revisions.iter().any(|r| r.era() == Era::Legacy)
    }

    /// Returns true if sessions are kept for them.
    fn keeps_sessions(&self) -> bool {
        self.has_sessions() && !self.options.stateless
    }

    /// Answers the questions of an orchestrator: whether this process works, at `/healthz`, and whether it takes requests, at
    /// `/readyz`. Only where this crate listens, and neither path is the endpoint's own.
    pub(super) fn probed(&self, head: &Parts) -> Option<Response<Body>> {
        let path = head.uri.path();
        if self.mounted || !matches!(head.method, Method::GET | Method::HEAD) || !matches!(path, "/healthz" | "/readyz")
        {
            return None;
        }
        if [&self.options.path, &self.options.sse_path].into_iter().any(|own| self.is_at(head, own)) {
            return None;
        }
        let is_over = self.is_closed() || self.is_ending() || self.is_draining() || self.server.shared.stop.is_set();
        let (status, text) = match path {
            "/readyz" if is_over => (StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down\n"),
            _ => (StatusCode::OK, "ok\n"),
        };
        let mut response = Response::new(Body::full(Bytes::from_static(text.as_bytes())));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(http::header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        Some(response)
    }

    /// Returns true if a request is for this path. A mounted endpoint is reached wherever its host has put it.
    fn is_at(&self, head: &Parts, own: &str) -> bool {
        let path = head.uri.path();
        self.mounted || path == own || path.trim_end_matches('/') == own.trim_end_matches('/')
    }

    /// Reads the request of a client of the oldest transport, if it is one: it knows no session header, and names its
    /// sessions in the query.
    fn admit_pair(&self, head: &Parts) -> Option<Result<Verb, Refusal>> {
        let headers = &head.headers;
        if headers.contains_key(SESSION_ID) || Version::of(headers).is_modern {
            return None;
        }
        let at_stream = self.is_at(head, &self.options.sse_path);
        let at_messages = at_stream || (!self.message_path().is_empty() && self.is_at(head, self.message_path()));
        let refuse = |status, why: &str| Some(Err(Refusal::new(status, why)));
        match head.method {
            Method::GET if at_stream => Some(Ok(Verb::OpenPair)),
            Method::POST if at_messages && pair::named(&head.uri).is_some() => {
                if !headers::is_json(headers) {
                    let why = "header Content-Type: expected application/json";
                    return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, why);
                }
                pair::named(&head.uri).map(|session| Ok(Verb::PostToPair(session.to_owned())))
            }
            _ if self.is_at(head, &self.options.path) => None,
            Method::OPTIONS if at_messages && cors::is_preflight(headers) && self.page(headers).is_some() => {
                Some(Ok(Verb::Preflight))
            }
            // Clients of both transports open the stream instead after this answer.
            _ if at_stream => {
                let why = format!("method {} is not served here: GET opens the stream", head.method);
                Some(Err(Refusal::method(why, "GET")))
            }
            Method::POST if at_messages => refuse(StatusCode::BAD_REQUEST, "\"session_id\": missing in the query"),
            _ if at_messages => {
                Some(Err(Refusal::method(format!("method {} is not served here", head.method), "POST")))
            }
            _ => None,
        }
    }

    /// Returns the path that clients of the oldest transport are told to post to; empty for the URL of their stream.
    pub(super) fn message_path(&self) -> &str {
        match &*self.options.sse_message_path {
            "" if !self.mounted => "/messages",
            path => path,
        }
    }
}
