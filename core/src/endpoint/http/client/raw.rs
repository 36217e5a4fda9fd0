//! Single exchanges with a server, outside of any connection of the protocol: for who looks at what a server says, word
//! by word.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::Full;

use super::pool::{Answer, Pool};
use super::target::Target;
use crate::client::ClientOptions;
use crate::endpoint::http::network::Network;
use crate::error::{Error, Result};

/// A server's URL, and connections to it by the proxies and with the certificates that a client's options have.
///
/// Redirects are not followed, nothing is repeated, and no token is got.
pub struct Exchanges {
    target: Target,
    pool: Arc<Pool>,
    #[cfg(feature = "auth")]
    network: Network,
    #[cfg(feature = "auth")]
    url: String,
}

/// An answer whose body comes in pieces. Dropped before the end, its connection is closed.
pub struct Exchanged {
    /// Three digits.
    pub status: u16,
    /// Names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    answer: Answer,
}

impl Exchanges {
    /// To a server, with headers of the program's own.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a wrong URL, header or option.
    pub fn new(url: &str, headers: &[(String, String)], options: &ClientOptions) -> Result<Self> {
        let target = Target::new(url, headers)?;
        let network = Network::of(options)?;
        let pool = match target.socket.clone() {
            Some(socket) => Pool::local(socket, target.origin.clone()),
            None => Pool::new(&network, target.origin.clone())?,
        };
        Ok(Self {
            target,
            pool,
            #[cfg(feature = "auth")]
            network,
            #[cfg(feature = "auth")]
            url: url.to_owned(),
        })
    }

    /// Sends a request, with these headers in place of those of the same name, and gives the answer as soon as its head is
    /// there. An empty value leaves a header out.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no method or no header;
    /// [`Transport`](crate::ErrorKind::Transport) when there is no answer.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: Bytes) -> Result<Exchanged> {
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| Error::misuse("not a method of HTTP"))?;
        let mut all: HeaderMap = self.target.headers(&method).clone();
        for (name, value) in headers {
            let key: HeaderName = name.parse().map_err(|_| Error::misuse(format!("header {name:?}: no name")))?;
            let value =
                HeaderValue::from_str(value).map_err(|_| Error::misuse(format!("header {name:?}: no value")))?;
            if value.is_empty() {
                all.remove(key);
            } else {
                all.insert(key, value);
            }
        }
        let path: &Uri = &self.target.path;
        let request = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = path.clone();
            *request.headers_mut() = all.clone();
            request
        };
        let answer = self.pool.send(request, false).await?;
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = answer.head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        Ok(Exchanged { status: answer.head.status.as_u16(), headers: headers.collect(), answer })
    }

    /// Fetches a document that this server leads to, with what is posted for it: 10 s, 1 MiB and three redirects at most,
    /// and no private address that is further away than the server itself.
    ///
    /// # Errors
    /// [`Transport`](crate::ErrorKind::Transport) with the reason why there is no answer.
    #[cfg(feature = "auth")]
    pub async fn document(&self, url: &str, form: Option<String>) -> Result<(u16, Bytes)> {
        use crate::auth::fetch::Fetch;
        use crate::endpoint::http::fetch::{FetchPolicy, fetch};
        use crate::error::ErrorKind;
        let wanted = match form {
            Some(form) => Fetch::post(url, "application/x-www-form-urlencoded", form),
            None => Fetch::get(url),
        };
        let policy = FetchPolicy::of_server(&self.url, Arc::new(self.pool.clone()), []).over(self.network.clone());
        let fetched = fetch(&wanted, &policy).await;
        fetched.map(|it| (it.status, it.body)).map_err(|unfetched| Error::new(ErrorKind::Transport, unfetched.why))
    }
}

impl Exchanged {
    /// The next piece of the body; `None` at its end.
    ///
    /// # Errors
    /// [`Transport`](crate::ErrorKind::Transport) when it broke off.
    pub async fn piece(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.answer.poll_piece(cx)).await.transpose()
    }
}
