use std::net::Ipv6Addr;
use std::time::Duration;

use serde::Deserialize;

use super::forwarded::Proxies;
use super::lanes::Resumption;
use crate::endpoint::http::unix;
use crate::error::{Error, Result};
use crate::idiom::{named, number, unit};
use crate::options::{FOR_EVER, setters};
use crate::store::Room;

/// Options of a server over Streamable HTTP. The same names in every language.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::http::HttpOptions;
/// use tricorn::prelude::*;
///
/// let options = HttpOptions::new()
///     .host("0.0.0.0")
///     .port(8000)
///     .allowed_hosts(["mcp.example.com"])
///     .allowed_origins(["https://app.example.com"])
///     .trusted_proxies(["10.0.0.0/8"]);
/// let serving = Server::new("demo").serve_http(options).await?;
/// serving.join().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HttpOptions {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    pub(crate) cert: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) access_log: bool,
    pub(crate) allowed_hosts: Vec<String>,
    pub(crate) allowed_origins: Vec<String>,
    pub(crate) max_sessions: usize,
    pub(crate) session_idle_timeout: f64,
    pub(crate) drain_timeout: f64,
    pub(crate) header_timeout: f64,
    pub(crate) idle_timeout: f64,
    pub(crate) body_timeout: f64,
    pub(crate) write_timeout: f64,
    pub(crate) min_rate: u64,
    pub(crate) keep_alive_interval: f64,
    pub(crate) max_events: usize,
    pub(crate) max_event_bytes: usize,
    pub(crate) sse_retry: f64,
    pub(crate) stateless: bool,
    pub(crate) sse: bool,
    pub(crate) sse_path: String,
    pub(crate) sse_message_path: String,
    pub(crate) max_connections: usize,
    pub(crate) trusted_proxies: Vec<String>,
}

/// Longest times of waiting for a socket's client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the first byte.
    pub(super) first: Duration,
    /// For the rest of a head.
    pub(super) head: Duration,
    /// For another request.
    pub(super) idle: Duration,
    /// For more of a body, and for all of it beyond the slowest rate.
    pub(super) body: Duration,
    /// Until it takes something of what is written, and for all such pauses together beyond the slowest rate.
    pub(super) write: Duration,
    /// The slowest rate, in bytes a second; 0: none.
    pub(super) rate: u64,
}

impl Patience {
    pub(super) fn shortest(&self) -> Duration {
        self.first.min(self.idle).min(self.write)
    }

    /// Returns the time that so many bytes may take at the slowest rate.
    pub(super) fn of_bytes(&self, bytes: u64) -> Duration {
        match self.rate {
            0 => FOR_EVER,
            rate => Duration::from_millis(bytes.saturating_mul(1000) / rate),
        }
    }
}

/// Longest time that a new socket says nothing.
const FIRST_BYTE: Duration = Duration::from_secs(10);

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".into(),
            port: 8000,
            path: "/mcp".into(),
            cert: None,
            key: None,
            access_log: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_sessions: 10_000,
            session_idle_timeout: 1800.0,
            drain_timeout: 5.0,
            header_timeout: 30.0,
            idle_timeout: 60.0,
            body_timeout: 60.0,
            write_timeout: 60.0,
            min_rate: 4096,
            keep_alive_interval: 15.0,
            max_events: 256,
            max_event_bytes: 1 << 20,
            sse_retry: 1.0,
            stateless: false,
            sse: false,
            sse_path: "/sse".into(),
            sse_message_path: String::new(),
            max_connections: 4096,
            trusted_proxies: Vec::new(),
        }
    }
}

impl HttpOptions {
    /// Every option at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Name or address to listen on, or `unix:/run/mcp.sock`: a Unix-domain socket at this path, which has no port
        /// and whose clients count as `127.0.0.1`. Permissions of the file (the umask) and of its folder say who may
        /// connect; any `Host` is answered unless `allowed_hosts` names some. Default `127.0.0.1`: this machine only.
        host: text;
        /// Port to listen on; 0 is any free one. Default 8000.
        port: u16;
        /// The endpoint's path where a port is listened on. Default `/mcp`.
        path: text;
        /// The certificate that a server on a port shows, with those between it and its authority, as PEM or as the
        /// path of a file with that, which is read again when it changes. Clients speak https then. Default: none.
        cert: some text;
        /// The private key of `cert`, in the same way. Default: it is in `cert`.
        key: some text;
        /// True if a server on a port writes each request to standard error when its answer is over, in the
        /// Common Log Format with the milliseconds that it took; without queries, headers and bodies. Default no.
        access_log: bool;
        /// The most legacy sessions at once; an idle one of whoever has the most makes room, else one of the newcomer's
        /// own. One principal has seven eighths of them at most. Default 10,000.
        max_sessions: usize;
        /// Time without a request or open stream after which a legacy session ends, unless it has tasks that can still
        /// be asked for. Default 30 minutes.
        session_idle_timeout: time;
        /// Time that requests have to be answered after SIGTERM or [`Server::drain`](crate::server::Server::drain),
        /// where a port or socket is listened on: new connections are refused, streams that wait for news end, and the
        /// rest is cancelled after that. Zero: everything ends at once. Default 5 s.
        drain_timeout: time;
        /// Time that the client of a socket has for the head of a request, where a port or socket is listened on; of it
        /// 10 s at most for the first byte of all. Default 30 s.
        header_timeout: time;
        /// Time without a request after which such a socket is closed. Default 60 s.
        idle_timeout: time;
        /// Longest silence in the middle of a request's body there; the whole body may take as long, and the time of its
        /// bytes at `min_rate` besides. Default 60 s.
        body_timeout: time;
        /// Time in which a client may take nothing of what is written to it there, and the time of its bytes at
        /// `min_rate` besides. Default 60 s.
        write_timeout: time;
        /// Least rate of a body that comes, and of an answer that goes, in bytes a second; 0 for none. Default 4,096.
        min_rate: u64;
        /// Time of silence on an event stream after which a comment is sent. Default 15 s.
        keep_alive_interval: time;
        /// The most events that a legacy session keeps for a client that loses a stream, the oldest dropped; 0 for no
        /// resumption. Default 256.
        max_events: usize;
        /// The most bytes of the events that a legacy session keeps. Default 1 MiB; an event that is larger is not
        /// kept.
        max_event_bytes: usize;
        /// Time after which a client is to ask for a stream that ended early. Default 1 s.
        sse_retry: time;
        /// True if clients of the handshake revisions are served without sessions, so that any of several processes can
        /// answer each request: no `Mcp-Session-Id`, and a fresh context with every request. Features that need a
        /// session are not offered, and fail with an error that says so: questions to the client, subscriptions, log
        /// levels, tasks. Default no.
        stateless: bool;
        /// The most sockets at once, the most stateless requests worked on at once, and the most calls of sessions whose
        /// handlers run. When there are more sockets,
        /// the one that can best be done without of whoever has the most of them makes room. Default 4096, or as many
        /// as the process may open.
        max_connections: usize;
    }

    /// True if clients of the oldest transport, HTTP+SSE, are served, too. Default no.
    #[must_use]
    #[deprecated(note = "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")]
    pub fn sse(mut self, value: bool) -> Self {
        self.sse = value;
        self
    }

    /// Path at which clients of HTTP+SSE open their stream, where a port is listened on. Default `/sse`.
    #[must_use]
    #[deprecated(note = "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")]
    pub fn sse_path(mut self, value: impl Into<String>) -> Self {
        self.sse_path = value.into();
        self
    }

    /// Path at which clients of HTTP+SSE post, as told at the beginning of the stream. Default `/messages` where a port is
    /// listened on; mounted it is the stream's own URL with a query, which needs no knowledge of where that is.
    #[must_use]
    #[deprecated(note = "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP")]
    pub fn sse_message_path(mut self, value: impl Into<String>) -> Self {
        self.sse_message_path = value.into();
        self
    }

    /// The `Host` values that are answered: `name` (any port), `name:port`, or `*` for all. Default: the loopback names
    /// and `host`, with the port listened on.
    #[must_use]
    pub fn allowed_hosts(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_hosts = hosts.into_iter().map(Into::into).collect();
        self
    }

    /// The `Origin` values that are answered, as `https://app.example.com`, or `*` for all. Requests without one come
    /// from no browser and are always answered. Default: the origins at the allowed hosts.
    #[must_use]
    pub fn allowed_origins(mut self, origins: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed_origins = origins.into_iter().map(Into::into).collect();
        self
    }

    /// The proxies that say where a request comes from (`X-Forwarded-For`, `Forwarded`), which is what sockets, streams and
    /// sessions are counted by: addresses, or networks as `10.0.0.0/8`. Each has to add the address to what it was sent, or
    /// replace it. Default: none, so that all clients behind a proxy count as one.
    #[must_use]
    pub fn trusted_proxies(mut self, proxies: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.trusted_proxies = proxies.into_iter().map(Into::into).collect();
        self
    }

    /// Reads the options from JSON.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let options: Self = crate::options::read("HTTP options", text)?;
        options.check()?;
        Ok(options)
    }

    pub(super) fn check(&self) -> Result<()> {
        let socket = unix::named(&self.host);
        if cfg!(not(unix)) && socket.is_some() {
            return Err(Error::misuse("HTTP option \"host\": there are no Unix sockets on this platform"));
        }
        if socket.is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(Error::misuse("HTTP option \"host\": expected the path of a socket, as unix:/run/mcp.sock"));
        }
        if socket.is_some() && self.cert.is_some() {
            return Err(Error::misuse("HTTP option \"cert\": a Unix socket has no TLS, leave it out"));
        }
        let host = self.host.trim_matches(['[', ']']);
        let address = host.split('%').next().unwrap_or_default();
        let is_one = !host.contains('/') && (!host.contains(':') || address.parse::<Ipv6Addr>().is_ok());
        if socket.is_none() && (host.is_empty() || !is_one) {
            return Err(Error::misuse(format!(
                "HTTP option \"host\": expected a name or an address without a port, such as \"0.0.0.0\", got {host:?} (the \
                 port is an option of its own: \"port\")",
            )));
        }
        for (name, path) in
            [("path", &self.path), ("sse_path", &self.sse_path), ("sse_message_path", &self.sse_message_path)]
        {
            let optional = name == "sse_message_path" && path.is_empty();
            let fits = path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic() && !b"?#".contains(&b));
            if !fits && !optional {
                let expected = "expected a path with a leading / and without a query";
                return Err(wrong(name, &format!("{expected}, got {path:?}")));
            }
        }
        for (name, value) in [("max_sessions", self.max_sessions), ("max_connections", self.max_connections)] {
            if value == 0 {
                return Err(wrong(name, "expected at least 1, got 0"));
            }
        }
        for origin in self.allowed_origins.iter().filter(|o| *o != "*") {
            if !origin.contains("://") || origin.ends_with('/') {
                let expected = "expected scheme://host or scheme://host:port without a slash at the end";
                return Err(wrong("allowed_origins", &format!("{expected}, got {origin:?}")));
            }
        }
        if let Some(host) = self.allowed_hosts.iter().find(|h| h.is_empty() || h.contains('/')) {
            return Err(wrong("allowed_hosts", &format!("expected name or name:port, got {host:?}")));
        }
        if self.key.is_some() && self.cert.is_none() {
            let why = "expected \"cert\" besides, the certificate that it belongs to";
            return Err(Error::misuse(format!("HTTP option \"key\": {why}")));
        }
        if self.stateless && self.sse {
            let why = "HTTP+SSE is a session: it cannot be served with \"stateless\"";
            return Err(Error::misuse(format!("HTTP option \"sse\": {why}")));
        }
        Proxies::parse(&self.trusted_proxies)?;
        let named = [("allowed_hosts", &self.allowed_hosts), ("allowed_origins", &self.allowed_origins)];
        for (option, names) in named {
            if let Some(pattern) = names.iter().find(|name| name.contains('*') && *name != "*") {
                let why = format!("{pattern:?} is a pattern: name each one, or \"*\" for all of them");
                return Err(wrong(option, &why));
            }
        }
        self.session_idle()?;
        self.patience()?;
        self.keep_alive()?;
        self.resumption()?;
        self.drain()?;
        Ok(())
    }

    /// Returns the longest times of waiting for a socket's client.
    pub(super) fn patience(&self) -> Result<Patience> {
        let head = seconds("header_timeout", self.header_timeout)?;
        Ok(Patience {
            first: head.min(FIRST_BYTE),
            head,
            idle: seconds("idle_timeout", self.idle_timeout)?,
            body: seconds("body_timeout", self.body_timeout)?,
            write: seconds("write_timeout", self.write_timeout)?,
            rate: self.min_rate,
        })
    }

    pub(super) fn session_idle(&self) -> Result<Duration> {
        seconds("session_idle_timeout", self.session_idle_timeout)
    }

    pub(super) fn keep_alive(&self) -> Result<Duration> {
        seconds("keep_alive_interval", self.keep_alive_interval)
    }

    pub(super) fn drain(&self) -> Result<Duration> {
        let given = Some(self.drain_timeout).filter(|given| !given.is_nan());
        given.and_then(|given| Duration::try_from_secs_f64(given.min(FOR_EVER.as_secs_f64())).ok()).ok_or_else(|| {
            let (option, unit, value) = (named("drain_timeout"), unit(), number(self.drain_timeout));
            Error::misuse(format!("HTTP option {option:?}: expected {unit} of at least 0, got {value}"))
        })
    }

    /// Returns the limits of the events that a session keeps, if it keeps any.
    pub(super) fn resumption(&self) -> Result<Option<Resumption>> {
        let retry = seconds("sse_retry", self.sse_retry)?;
        let room = Room { events: self.max_events, bytes: self.max_event_bytes };
        Ok((room.events > 0 && room.bytes > 0).then_some(Resumption { room, retry }))
    }
}

fn wrong(name: &str, why: &str) -> Error {
    Error::misuse(format!("HTTP option {:?}: {why}", named(name)))
}

fn seconds(name: &str, value: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(value.min(FOR_EVER.as_secs_f64())).ok().filter(|d| !d.is_zero()).ok_or_else(|| {
        Error::misuse(format!("HTTP option {:?}: expected {} above 0, got {}", named(name), unit(), number(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        let refuse = |text: &str| HttpOptions::parse(text).expect_err("wrong").message().to_owned();
        assert!(refuse(r#"{"prot": 1}"#).contains("\"port\""));
        assert!(refuse(r#"{"port": 70000}"#).contains("\"port\""));
        assert!(refuse(r#"{"host": "unix:/a.sock", "cert": "c.pem"}"#).contains("\"cert\": a Unix socket"));
        assert!(refuse(r#"{"host": "unix:"}"#).contains("path of a socket"));
        assert!(refuse(r#"{"path": "mcp"}"#).contains("\"path\""));
        assert!(refuse(r#"{"sse_message_path": "/a?b"}"#).contains("\"sse_message_path\""));
        assert!(refuse(r#"{"stateless": true, "sse": true}"#).contains("\"stateless\""));
        assert!(refuse(r#"{"trusted_proxies": ["proxy"]}"#).contains("\"trusted_proxies\""));
        assert!(refuse(r#"{"max_sessions": 0}"#).contains("\"max_sessions\""));
        assert!(refuse(r#"{"session_idle_timeout": -1}"#).contains("\"session_idle_timeout\""));
        assert!(refuse(r#"{"keep_alive_interval": 0}"#).contains("\"keep_alive_interval\""));
        assert!(refuse(r#"{"drain_timeout": -1}"#).contains("\"drain_timeout\": expected seconds of at least 0"));
        assert!(HttpOptions::parse(r#"{"drain_timeout": 0}"#).is_ok());
        assert!(refuse(r#"{"header_timeout": 0}"#).contains("\"header_timeout\": expected seconds above 0"));
        assert!(refuse(r#"{"min_rate": -1}"#).contains("\"min_rate\""));
        assert!(HttpOptions::parse(r#"{"min_rate": 0}"#).is_ok());
        assert!(refuse(r#"{"sse_retry": 0}"#).contains("\"sse_retry\""));
        assert!(refuse(r#"{"allowed_origins": ["example.com"]}"#).contains("scheme://"));
        assert!(refuse(r#"{"allowed_hosts": ["http://example.com"]}"#).contains("\"allowed_hosts\""));
        assert_eq!(HttpOptions::parse("").expect("defaults"), HttpOptions::default());
    }
}
