//! Requests and answers of a transport that the program has given.

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt, Full};

use crate::call::BoxFuture;
use crate::client::{HttpBody, HttpRequest, HttpResponse, HttpTransport};
use crate::endpoint::http::server::endpoint::Endpoint;
use crate::error::{Error, ErrorKind, Result};

/// Sends a request and waits for the head of its answer.
///
/// # Errors
/// Those of the transport, and [`Misuse`](crate::ErrorKind::Misuse) for an answer that is none.
pub(in crate::endpoint::http) async fn send(
    transport: &dyn HttpTransport,
    request: Request<Full<Bytes>>,
    url: String,
) -> Result<(StatusCode, HeaderMap, HttpBody)> {
    let (parts, body) = request.into_parts();
    let own = parts.headers.get(HOST).is_some_and(|host| authority(&url).is_none_or(|of_url| of_url != *host));
    let passed = |name: &HeaderName| *name != CONTENT_LENGTH && (*name != HOST || own);
    let mut asked = HttpRequest::new(parts.method.as_str(), url);
    for (name, value) in parts.headers.iter().filter(|(name, _)| passed(name)) {
        asked.headers.push((name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
    }
    // Other libraries ask for packed bodies by themselves, and whoever packs a stream may hold it back.
    if !parts.headers.contains_key(ACCEPT_ENCODING) {
        asked.headers.push((ACCEPT_ENCODING.as_str().to_owned(), "identity".to_owned()));
    }
    asked.body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(never) => match never {},
    };
    let answer = transport.send(asked).await?;
    let status = StatusCode::from_u16(answer.status).map_err(|_| {
        Error::misuse(format!("HTTP transport: expected a status of three digits, got {}", answer.status))
    })?;
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        // One that no connection could carry says nothing.
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value.as_bytes()))
        {
            headers.append(name, value);
        }
    }
    Ok((status, headers, answer.body))
}

/// A server of this process, without a socket.
///
/// ```
/// # async fn run() -> tricorn::Result<()> {
/// use tricorn::Server;
/// use tricorn::client::{Client, ClientOptions, Target};
/// use tricorn::http::HttpOptions;
///
/// let endpoint = Server::new("demo").endpoint(HttpOptions::new())?;
/// let options = ClientOptions::new().http_transport(endpoint);
/// let client = Client::connect(&Target::parse(r#""http://localhost/mcp""#)?, &options).await?;
/// # client.close().await;
/// # Ok(())
/// # }
/// ```
impl HttpTransport for Endpoint {
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>> {
        let (endpoint, request) = (self.clone(), of_endpoint(request));
        Box::pin(async move {
            let (head, body) = endpoint.handle(request?).await.into_parts();
            let mut answer = HttpResponse::new(head.status.as_u16());
            for (name, value) in &head.headers {
                answer = answer.header(name.as_str(), String::from_utf8_lossy(value.as_bytes()));
            }
            let pieces = BodyDataStream::new(body).map(|piece| match piece {
                Ok(piece) => Ok(piece),
                Err(never) => match never {},
            });
            Ok(answer.stream(pieces))
        })
    }
}

/// The host of a URL, with its port.
fn authority(url: &str) -> Option<HeaderValue> {
    let uri: Uri = url.parse().ok()?;
    HeaderValue::from_str(uri.authority()?.as_str()).ok()
}

fn of_endpoint(request: HttpRequest) -> Result<Request<Full<Bytes>>> {
    let mut made = Request::builder().method(request.method.as_str()).uri(&request.url);
    for (name, value) in &request.headers {
        made = made.header(name, value);
    }
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"))
        && let Some(host) = authority(&request.url)
    {
        made = made.header(HOST, host);
    }
    made.body(Full::new(request.body)).map_err(|e| Error::new(ErrorKind::Transport, e.to_string()))
}
