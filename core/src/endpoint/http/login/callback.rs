//! Receiver of the browser after a login: a port of this machine that listens for one answer (RFC 8252 §7.3).

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::endpoint::http::server::body::Body;
use crate::error::{Error, ErrorKind, Result};
use crate::idiom;

/// A request's head. hyper takes no less.
const MAX_HEAD: usize = 8 * 1024;
/// Longest time that one connection may take to send its head, and then to take the page.
const PATIENCE: Duration = Duration::from_secs(10);
/// Browsers open connections that they may need later, and send nothing. Further ones wait until one of these ends.
const MAX_CONNECTIONS: usize = 8;
/// After a connection could not be accepted, so that a machine out of descriptors is not kept busy, too.
const PAUSE: Duration = Duration::from_millis(100);

const DONE: &str = "The answer has arrived. You can close this page and go back to the program.";

/// A port that listens, on 127.0.0.1 alone.
#[derive(Debug)]
pub(crate) struct Callback {
    listener: TcpListener,
    address: SocketAddr,
    path: Arc<str>,
}

impl Callback {
    /// Listens on this port, or on one that is free. `path` begins with a slash.
    ///
    /// # Errors
    /// `Misuse` for another path; `Auth` when the port is not to be had.
    pub(crate) async fn bind(port: Option<u16>, path: &str) -> Result<Self> {
        let is_path = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && !b"?#\"<>\\".contains(&b));
        if !is_path {
            return Err(Error::misuse(
                "the path of the redirect URI: expected a path as in a URL, such as \"/callback\"",
            ));
        }
        let asked = port.unwrap_or(0);
        let failed = |error: std::io::Error| {
            let message = format!(
                "listening on 127.0.0.1:{asked} for the browser: {error}; another port can be given, if it is registered"
            );
            Error::new(ErrorKind::Auth, message)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, asked)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address, path: path.into() })
    }

    /// Returns the address that the browser is to be sent to: `http://127.0.0.1:<port><path>`.
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }

    /// The query that the browser comes back with, as it stands in the URL, without the question mark. The browser gets
    /// a page that says that it may be closed. A request that `is_answer` refuses is told so, and the waiting goes on.
    ///
    /// # Errors
    /// `Auth` when nobody has come after `wait`; it tells of a request that was turned away meanwhile.
    pub(crate) async fn query(self, wait: Duration, is_answer: impl Fn(&str) -> bool + Send + Sync) -> Result<String> {
        let uri = self.redirect_uri();
        let door = Door {
            address: self.address,
            path: self.path.clone(),
            is_answer,
            answer: Mutex::default(),
            turned_away: Mutex::default(),
        };
        match tokio::time::timeout(wait, self.listen(&door)).await {
            Ok(query) => Ok(query),
            Err(_) => {
                let turned_away = lock(&door.turned_away).map(|why| format!(" (somebody was turned away: {why})"));
                let message = format!(
                    "nobody has logged in within {} ({}): nobody came back to {uri}{}; begin it again, and finish it in \
                     time",
                    idiom::time(wait),
                    idiom::named("login_timeout"),
                    turned_away.unwrap_or_default()
                );
                Err(Error::new(ErrorKind::Auth, message))
            }
        }
    }

    async fn listen(self, door: &Door<impl Fn(&str) -> bool + Send + Sync>) -> String {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                Some(()) = connections.next(), if !connections.is_empty() => {
                    // Only now, so that the page has been sent.
                    if let Some(query) = lock(&door.answer).take() {
                        return query;
                    }
                }
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                    Ok((stream, _)) => connections.push(serve(stream, door)),
                    Err(_) => tokio::time::sleep(PAUSE).await,
                },
            }
        }
    }
}

/// Check of the requests that are let in.
struct Door<F> {
    address: SocketAddr,
    path: Arc<str>,
    is_answer: F,
    answer: Mutex<Option<String>>,
    /// Reason for refusing the last request that came to the right place with something else.
    turned_away: Mutex<Option<&'static str>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve<F: Fn(&str) -> bool + Send + Sync>(stream: TcpStream, door: &Door<F>) {
    let service = service_fn(|request| {
        let response = door.respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let mut builder = http1::Builder::new();
    builder.keep_alive(false).max_buf_size(MAX_HEAD).timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    // Whatever goes wrong here goes wrong for whoever has connected.
    let _ = tokio::time::timeout(2 * PATIENCE, builder.serve_connection(TokioIo::new(stream), service)).await;
}

impl<F: Fn(&str) -> bool> Door<F> {
    /// Returns true if the browser was sent to this machine by that name, and not by one that somebody has made to mean
    /// it.
    fn is_host(&self, host: &HeaderValue) -> bool {
        let port = self.address.port();
        let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        host.to_str().is_ok_and(|host| names.iter().any(|name| name.eq_ignore_ascii_case(host)))
    }

    fn respond(&self, request: &Request<Incoming>) -> Response<Body> {
        let headers = request.headers();
        // Whoever knows the state was sent here, a script that stands in for a browser included.
        let query = request.uri().query().filter(|query| !query.is_empty() && (self.is_answer)(query));
        // A page may load this address, but only a user goes there. Old browsers say nothing of it.
        let goes = headers.get("sec-fetch-mode").is_none_or(|mode| mode == "navigate");
        if !headers.get(HOST).is_some_and(|host| self.is_host(host)) {
            self.turn_away(StatusCode::MISDIRECTED_REQUEST, "This is another host.")
        } else if request.uri().path() != &*self.path {
            page(StatusCode::NOT_FOUND, "There is nothing here.")
        } else if request.method() != Method::GET {
            let mut response = self.turn_away(StatusCode::METHOD_NOT_ALLOWED, "Only GET is understood here.");
            response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("GET"));
            response
        } else if let Some(query) = query {
            lock(&self.answer).get_or_insert_with(|| query.to_owned());
            page(StatusCode::OK, DONE)
        } else if !goes {
            self.turn_away(StatusCode::FORBIDDEN, "Only a browser that is sent here is answered.")
        } else {
            self.turn_away(StatusCode::BAD_REQUEST, "This is no answer to the login that is waited for.")
        }
    }

    fn turn_away(&self, status: StatusCode, why: &'static str) -> Response<Body> {
        *lock(&self.turned_away) = Some(why.trim_end_matches('.'));
        page(status, why)
    }
}

/// A page with nothing in it that came from outside.
fn page(status: StatusCode, text: &'static str) -> Response<Body> {
    let html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Login</title></head>\n<body><p>{text}</p></body></html>\n"
    );
    let mut response = Response::new(Body::full(html));
    *response.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        // The address has the code in it.
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "no-referrer"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    async fn say(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        // A refused head may end with a reset.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8(answer).expect("text")
    }

    #[tokio::test]
    async fn one_answer_is_taken_and_everything_else_refused() {
        let callback = Callback::bind(None, "/callback").await.expect("a port");
        let address = callback.address;
        let host = address.to_string();
        assert_eq!(callback.redirect_uri(), format!("http://127.0.0.1:{}/callback", address.port()));
        let waiting = tokio::spawn(callback.query(LONG, |query| query.contains("state=right")));
        // A connection that says nothing stands in nobody's way.
        let _silent = TcpStream::connect(address).await.expect("a connection");

        let get = |target: &str, host: &str, more: &str| format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
        let good = "/callback?code=a%2Fb&state=right";
        let long = format!("X: {}\r\n", "x".repeat(MAX_HEAD));
        let table = [
            ("another path", get("/favicon.ico", &host, ""), "404"),
            ("a path below", get("/callback/?state=right", &host, ""), "404"),
            ("no query", get("/callback", &host, ""), "400"),
            ("an empty query", get("/callback?", &host, ""), "400"),
            ("another state", get("/callback?code=x&state=wrong", &host, ""), "400"),
            ("another host", get(good, "evil.example", ""), "421"),
            ("another port", get(good, "127.0.0.1:1", ""), "421"),
            ("no host", format!("GET {good} HTTP/1.1\r\n\r\n"), "421"),
            ("what a page loads", get("/callback?state=wrong", &host, "Sec-Fetch-Mode: no-cors\r\n"), "403"),
            ("a form", format!("POST {good} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\n\r\n"), "405"),
            ("a head that is too long", get(good, &host, &long), "431"),
            ("no HTTP", "\x16\x03\x01\r\n\r\n".to_owned(), "400"),
        ];
        for (name, request, status) in table {
            let answer = say(address, &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
            assert!(!waiting.is_finished(), "{name}");
        }
        let name = format!("LOCALHOST:{}", address.port());
        let answer = say(address, &get(good, &name, "Sec-Fetch-Mode: navigate\r\n")).await.to_ascii_lowercase();
        for part in ["http/1.1 200", "you can close this page", "no-store", "no-referrer", "connection: close"] {
            assert!(answer.contains(part), "{part}: {answer}");
        }
        assert!(!answer.contains("state"), "nothing of the request is on the page");
        assert_eq!(waiting.await.expect("done").expect("an answer"), "code=a%2Fb&state=right");
    }

    #[tokio::test]
    async fn a_script_that_was_sent_here_is_answered() {
        let callback = Callback::bind(None, "/callback").await.expect("a port");
        let (address, host) = (callback.address, callback.address.to_string());
        let waiting = tokio::spawn(callback.query(LONG, |query| query.contains("state=right")));
        let request =
            format!("GET /callback?code=c&state=right HTTP/1.1\r\nHost: {host}\r\nSec-Fetch-Mode: cors\r\n\r\n");
        assert!(say(address, &request).await.starts_with("HTTP/1.1 200"));
        assert_eq!(waiting.await.expect("done").expect("an answer"), "code=c&state=right");
    }

    #[tokio::test]
    async fn who_was_turned_away_is_in_the_error() {
        let callback = Callback::bind(None, "/callback").await.expect("a port");
        let (address, host) = (callback.address, callback.address.to_string());
        let waiting = tokio::spawn(callback.query(LONG, |query| query.contains("state=right")));
        let request = format!("GET /callback?code=c&state=wrong HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert!(say(address, &request).await.starts_with("HTTP/1.1 400"));
        // From here on a minute is over when nothing else is to be done.
        tokio::time::pause();
        let error = waiting.await.expect("done").expect_err("nobody came");
        let why = "(somebody was turned away: This is no answer to the login that is waited for)";
        assert!(error.message().contains(why) && !error.message().contains("wrong"), "{error}");
    }

    #[tokio::test]
    async fn waiting_ends_whoever_is_connected() {
        let callback = Callback::bind(None, "/").await.expect("a port");
        let uri = callback.redirect_uri();
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS + 1 {
            silent.push(TcpStream::connect(callback.address).await.expect("a connection"));
        }
        let error = callback.query(Duration::from_millis(50), |_| true).await.expect_err("nobody came");
        assert!(error.kind() == ErrorKind::Auth && error.message().contains(&uri), "{error}");
        for mut stream in silent {
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said).await;
            assert_eq!(said, b"");
        }
    }

    #[tokio::test]
    async fn a_port_that_is_taken_and_a_path_that_is_none_are_said() {
        let first = Callback::bind(None, "/callback").await.expect("a port");
        let error = Callback::bind(Some(first.address.port()), "/callback").await.expect_err("taken");
        assert!(error.message().contains(&first.address.to_string()), "{error}");
        for path in ["", "callback", "/a b", "/a?b", "/a#b", "/\r\n", "/é"] {
            assert_eq!(Callback::bind(None, path).await.expect_err(path).kind(), ErrorKind::Misuse);
        }
    }
}
