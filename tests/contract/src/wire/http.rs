//! HTTP/1.1 over a bare socket, so that requests are exactly the bytes we choose, wrong ones
//! included. One [`Connection`] carries one exchange at a time; keep-alive is the caller's.

use super::sse::{Event, Parser};
use crate::Outcome;
use crate::pattern::shorten;
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Address that a server listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `127.0.0.1:8000`, also the `Host` header.
    pub authority: String,
    /// `/mcp`.
    pub path: String,
}

impl Endpoint {
    /// Read an `http://` URL.
    pub fn parse(url: &str) -> Outcome<Self> {
        let rest = url.strip_prefix("http://").ok_or_else(|| format!("not an http URL: {url:?}"))?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        Ok(Self { authority: authority.to_owned(), path: format!("/{path}") })
    }
}

/// A request as the caller means it; [`Request::bytes`] adds `Host` and `Content-Length`
/// unless they are named.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`.
    pub method: String,
    /// `/mcp`.
    pub path: String,
    /// Names and values, in order, written as they stand.
    pub headers: Vec<(String, String)>,
    /// The body; `None` writes neither body nor length.
    pub body: Option<Vec<u8>>,
}

impl Request {
    /// The request on the wire.
    pub fn bytes(&self, host: &str) -> Vec<u8> {
        let named = |wanted: &str| self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if !named("host") {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body
            && !named("content-length")
            && !named("transfer-encoding")
        {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

/// Status and headers of an answer; names in lower case.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The first value of a header, by its lower-case name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunk(usize),
    ChunkHead,
    UntilClose,
    Done,
}

/// One socket.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    open: bool,
}

impl Connection {
    /// Connect.
    pub fn open(endpoint: &Endpoint) -> Outcome<Self> {
        let stream = TcpStream::connect(&endpoint.authority)
            .map_err(|error| format!("cannot connect to {}: {error}", endpoint.authority))?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Self { stream, buffer: Vec::new(), open: true })
    }

    /// Returns true if the other side has not hung up, as far as we know.
    pub fn usable(&self) -> bool {
        self.open
    }

    /// Write bytes. A peer that hangs up early may still have answered: not an error.
    pub fn send(&mut self, bytes: &[u8]) -> Outcome {
        match self.stream.write_all(bytes) {
            Ok(()) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(()),
            Err(error) => Err(format!("cannot send: {error}")),
        }
    }

    /// Read more bytes; `false` at the end.
    fn more(&mut self, deadline: Instant) -> Outcome<bool> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        let mut chunk = [0; 64 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => {
                self.open = false;
                Ok(false)
            }
            Ok(count) => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err("no answer in time".into())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(_) => {
                self.open = false;
                Ok(false)
            }
        }
    }

    fn take_line(&mut self, deadline: Instant) -> Outcome<Option<String>> {
        loop {
            if let Some(place) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.buffer.drain(..place + 2).collect();
                return Ok(Some(String::from_utf8_lossy(&line[..place]).into_owned()));
            }
            if !self.more(deadline)? {
                return Ok(None);
            }
        }
    }

    fn head(&mut self, deadline: Instant) -> Outcome<Head> {
        let line = self.take_line(deadline)?.ok_or("the server hung up without an answer")?;
        let status = line
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3))
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| format!("not an HTTP answer: {}", shorten(&line)))?;
        let mut head = Head { status, headers: Vec::new() };
        loop {
            let line = self.take_line(deadline)?.ok_or("the answer's head was cut off")?;
            if line.is_empty() {
                return Ok(head);
            }
            let (name, value) = line.split_once(':').ok_or_else(|| format!("not a header: {}", shorten(&line)))?;
            head.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

/// One request and its answer.
#[derive(Debug)]
pub struct Exchange {
    connection: Connection,
    without_body: bool,
    head: Option<Head>,
    framing: Framing,
    body: Vec<u8>,
    sse: Parser,
    waiting: VecDeque<Value>,
    /// Every event of an event stream, for those who look at ids.
    pub events: Vec<Event>,
}

impl Exchange {
    /// Send the request.
    pub fn start(mut connection: Connection, request: &Request, host: &str) -> Outcome<Self> {
        connection.send(&request.bytes(host))?;
        Ok(Self::raw(connection, request.method == "HEAD"))
    }

    /// An exchange whose request was already written.
    pub fn raw(connection: Connection, without_body: bool) -> Self {
        Self {
            connection,
            without_body,
            head: None,
            framing: Framing::Done,
            body: Vec::new(),
            sse: Parser::default(),
            waiting: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// Status and headers.
    pub fn head(&mut self, limit: Duration) -> Outcome<&Head> {
        let deadline = Instant::now() + limit;
        while self.head.is_none() {
            let head = self.connection.head(deadline)?;
            if head.status < 200 {
                continue;
            }
            self.framing = framing(&head, self.without_body)?;
            self.head = Some(head);
        }
        self.head.as_ref().ok_or_else(String::new)
    }

    fn streaming(&self) -> bool {
        self.head
            .as_ref()
            .and_then(|head| head.get("content-type"))
            .is_some_and(|value| value.starts_with("text/event-stream"))
    }

    /// Read more of the body; `false` at its end.
    fn advance(&mut self, deadline: Instant) -> Outcome<bool> {
        loop {
            match self.framing {
                Framing::Done => return Ok(false),
                Framing::ChunkHead => {
                    let line = self.connection.take_line(deadline)?.ok_or("the body was cut off")?;
                    let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16)
                        .map_err(|_| format!("not a chunk size: {}", shorten(&line)))?;
                    if size == 0 {
                        while !self.connection.take_line(deadline)?.ok_or("the trailer was cut off")?.is_empty() {}
                        self.framing = Framing::Done;
                    } else {
                        self.framing = Framing::Chunk(size);
                    }
                }
                Framing::Length(0) => self.framing = Framing::Done,
                Framing::Chunk(0) => {
                    self.connection.take_line(deadline)?.ok_or("the body was cut off")?;
                    self.framing = Framing::ChunkHead;
                }
                Framing::Length(left) | Framing::Chunk(left) => {
                    if self.connection.buffer.is_empty() && !self.connection.more(deadline)? {
                        return Err("the body was cut off".into());
                    }
                    let count = left.min(self.connection.buffer.len());
                    self.framing = match self.framing {
                        Framing::Chunk(_) => Framing::Chunk(left - count),
                        _ => Framing::Length(left - count),
                    };
                    self.keep(count);
                    return Ok(true);
                }
                Framing::UntilClose => {
                    if self.connection.buffer.is_empty() && !self.connection.more(deadline)? {
                        self.framing = Framing::Done;
                        return Ok(false);
                    }
                    self.keep(self.connection.buffer.len());
                    return Ok(true);
                }
            }
        }
    }

    fn keep(&mut self, count: usize) {
        let bytes: Vec<u8> = self.connection.buffer.drain(..count).collect();
        if self.streaming() {
            self.sse.feed(&bytes);
        } else {
            self.body.extend_from_slice(&bytes);
        }
    }

    fn take_events(&mut self) -> Outcome {
        while let Some(event) = self.sse.events.pop_front() {
            if !event.data.is_empty() && (event.name.is_empty() || event.name == "message") {
                self.waiting.extend(super::messages(event.data.as_bytes())?);
            }
            self.events.push(event);
        }
        Ok(())
    }

    /// The first event of this name; messages before it wait for [`next`](Self::next).
    pub fn event(&mut self, name: &str, limit: Duration) -> Outcome<Event> {
        let deadline = Instant::now() + limit;
        self.head(limit)?;
        loop {
            self.take_events()?;
            if let Some(event) = self.events.iter().find(|event| event.name == name) {
                return Ok(event.clone());
            }
            if !self.advance(deadline)? {
                return Err(format!("the stream ended without an event {name:?}"));
            }
        }
    }

    /// The next message of the answer, or `None` at its end.
    pub fn next(&mut self, limit: Duration) -> Outcome<Option<Value>> {
        let deadline = Instant::now() + limit;
        self.head(limit)?;
        loop {
            self.take_events()?;
            if let Some(message) = self.waiting.pop_front() {
                return Ok(Some(message));
            }
            if self.advance(deadline)? {
                continue;
            }
            if self.body.iter().all(u8::is_ascii_whitespace) {
                return Ok(None);
            }
            let body = std::mem::take(&mut self.body);
            self.waiting.extend(super::messages(&body)?);
        }
    }

    /// The next event, whatever its name is.
    pub fn next_event(&mut self, limit: Duration) -> Outcome<Event> {
        let deadline = Instant::now() + limit;
        self.head(limit)?;
        loop {
            if let Some(event) = self.sse.events.pop_front() {
                return Ok(event);
            }
            if !self.advance(deadline)? {
                return Err("the stream ended without another event".into());
            }
        }
    }

    /// The whole body as bytes; for answers that need not be JSON.
    pub fn body(&mut self, limit: Duration) -> Outcome<Vec<u8>> {
        let deadline = Instant::now() + limit;
        self.head(limit)?;
        while self.advance(deadline)? {}
        Ok(std::mem::take(&mut self.body))
    }

    /// The connection, for the next request, when the answer was read to its end and the
    /// server means to keep it.
    pub fn recycle(self) -> Option<Connection> {
        let head = self.head.as_ref()?;
        let closing = head.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        (self.framing == Framing::Done && self.connection.open && !closing).then_some(self.connection)
    }

    /// Hang up in the middle.
    pub fn close(self) {
        let _ = self.connection.stream.shutdown(Shutdown::Both);
    }
}

fn framing(head: &Head, without_body: bool) -> Outcome<Framing> {
    if without_body || matches!(head.status, 204 | 304) {
        return Ok(Framing::Done);
    }
    if head.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::ChunkHead);
    }
    match head.get("content-length") {
        Some(length) => length.parse().map(Framing::Length).map_err(|_| format!("not a content length: {length:?}")),
        None => Ok(Framing::UntilClose),
    }
}
