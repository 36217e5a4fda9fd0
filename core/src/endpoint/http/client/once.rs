//! One request on a connection of its own.

use http::header::{HOST, HeaderMap, HeaderValue};
use http::{StatusCode, Uri};
use tower_service::Service;

use super::link::{Io, Link, Outgoing, Tcp};
use super::pool::{causes, made};
use crate::client::HttpBody;
use crate::error::{Error, ErrorKind};

type Answer = (StatusCode, HeaderMap, HttpBody);

/// Sends a request with a whole URL over a connection that is made for it, to `place`. The body of the answer is still to be
/// read.
///
/// # Errors
/// The reason why there was no answer.
pub(in crate::endpoint::http) async fn once<S>(connector: S, place: Uri, request: Outgoing) -> Result<Answer, String>
where
    S: Service<Uri, Response = Tcp, Error = Box<dyn std::error::Error + Send + Sync>>,
{
    let io = made(connector, place).await.map_err(|unmade| unmade.why)?;
    exchanged(io, request).await
}

async fn exchanged(io: Io, mut request: Outgoing) -> Result<Answer, String> {
    let uri = std::mem::take(request.uri_mut());
    // The query alone is left of a URL without a path, which no text can be read as.
    if let Some(path) = uri.path_and_query() {
        *request.uri_mut() = Uri::from(path.clone());
    }
    let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    let host = uri.host().unwrap_or_default();
    let host = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => HeaderValue::from_str(&format!("{host}:{port}")),
        None => HeaderValue::from_str(host),
    };
    let host = host.map_err(|_| "the URL has no host".to_owned())?;
    request.headers_mut().entry(HOST).or_insert(host);
    let mut link = Link::new(io).await.map_err(|e| causes(&e))?;
    let answer = link.send(request).await.map_err(|e| causes(e.error()))?;
    let (head, mut body) = answer.into_parts();
    let failed = |e: hyper::Error| Error::new(ErrorKind::Transport, causes(&e)).caused_by(e);
    let pieces = futures_util::stream::poll_fn(move |cx| link.poll_piece(&mut body, cx).map_err(failed));
    Ok((head.status, head.headers, Box::pin(pieces)))
}
