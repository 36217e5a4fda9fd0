use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_core::Stream;

use crate::call::BoxFuture;
use crate::error::{Result, shown_url};

/// Carries the HTTP of a client in place of its own connections
/// ([`ClientOptions::http_transport`](super::ClientOptions::http_transport)): over another HTTP client, or to a service in the same process.
///
/// Called from any thread of the runtime and several times at once; must not block. A future or a body that is dropped is
/// no longer wanted.
///
/// ```
/// use bytes::Bytes;
/// use tricorn::BoxFuture;
/// use tricorn::client::{ClientOptions, HttpRequest, HttpResponse, HttpTransport};
///
/// struct Unavailable;
///
/// impl HttpTransport for Unavailable {
///     fn send(&self, request: HttpRequest) -> BoxFuture<tricorn::Result<HttpResponse>> {
///         let text = format!("nothing is at {}", request.url);
///         Box::pin(async move { Ok(HttpResponse::new(503).header("content-type", "text/plain").body(text)) })
///     }
/// }
///
/// let options = ClientOptions::new().http_transport(Unavailable);
/// # let _ = options;
/// ```
pub trait HttpTransport: Send + Sync + 'static {
    /// Sends a request and gives the answer as soon as its head is there. Redirects are not followed: the client does
    /// that, within the origin.
    ///
    /// # Errors
    /// [`Transport`](crate::ErrorKind::Transport), when there is no answer.
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>>;
}

impl<T: HttpTransport + ?Sized> HttpTransport for Arc<T> {
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>> {
        (**self).send(request)
    }
}

/// A request for an [`HttpTransport`]. Its `Debug` shows neither headers nor body, as tokens are in them.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpRequest {
    /// `POST`, `GET` or `DELETE`.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// Names in small letters, with their values; without `content-length`, and `host` only where it is another than the
    /// URL's.
    pub headers: Vec<(String, String)>,
    /// Empty where there is none.
    pub body: Bytes,
}

#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP sends any"))]
impl HttpRequest {
    pub(crate) fn new(method: &str, url: String) -> Self {
        Self { method: method.to_owned(), url, headers: Vec::new(), body: Bytes::new() }
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = shown_url(&self.url);
        f.debug_struct("HttpRequest").field("method", &self.method).field("url", &url).finish_non_exhaustive()
    }
}

/// The pieces of a body as they come; it ends after an error.
pub type HttpBody = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// The answer of an [`HttpTransport`].
#[non_exhaustive]
pub struct HttpResponse {
    /// Three digits.
    pub status: u16,
    /// Names in any case, with their values; several of one name are several.
    pub headers: Vec<(String, String)>,
    /// Read as far as the client needs it, then dropped.
    pub body: HttpBody,
}

impl HttpResponse {
    /// An answer without headers and with an empty body.
    #[must_use]
    pub fn new(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Box::pin(Whole(None)) }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body, all of it.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        self.body = Box::pin(Whole(Some(bytes.into()).filter(|bytes| !bytes.is_empty())));
        self
    }

    /// Sets the body, which comes in pieces.
    #[must_use]
    pub fn stream(mut self, pieces: impl Stream<Item = Result<Bytes>> + Send + 'static) -> Self {
        self.body = Box::pin(pieces);
        self
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl Stream for Whole {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(self.0.take().map(Ok))
    }
}

/// The option of it.
#[derive(Clone, Default)]
pub(crate) struct Carried(pub(super) Option<Arc<dyn HttpTransport>>);

impl Carried {
    #[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "only connecting asks"))]
    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }

    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP asks"))]
    pub(crate) fn get(&self) -> Option<Arc<dyn HttpTransport>> {
        self.0.clone()
    }
}

impl fmt::Debug for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "HttpTransport(..)" } else { "HttpTransport()" })
    }
}
