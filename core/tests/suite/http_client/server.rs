//! A server that says what a test tells it to, byte for byte.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// The longest any test waits for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
    /// Number of the connection that it came on, counted from 1.
    pub(crate) connection: usize,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The headers of the protocol, sorted.
    pub(crate) fn protocol_headers(&self) -> Vec<(&str, &str)> {
        let mut found: Vec<_> =
            self.headers.iter().filter(|(k, _)| k.starts_with("mcp-")).map(|(k, v)| (k.as_str(), v.as_str())).collect();
        found.sort_unstable();
        found
    }
}

/// Reaction of the server to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Writes these pieces one by one and goes on with the connection.
    Write(Vec<String>),
    /// Writes and closes the connection.
    WriteAndClose(Vec<String>),
    /// Writes and leaves the answer unfinished until the client closes.
    Hold(Vec<String>),
}

pub(crate) fn raw(status: &str, headers: &[&str], body: &str) -> Reply {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    for header in headers {
        head.push_str(header);
        head.push_str("\r\n");
    }
    Reply::Write(vec![format!("{head}\r\n{body}")])
}

pub(crate) fn answer(status: &str, headers: &[&str], body: &Value) -> Reply {
    let headers: Vec<&str> = headers.iter().copied().chain(["content-type: application/json"]).collect();
    raw(status, &headers, &body.to_string())
}

pub(crate) fn result(seen: &Seen, result: &Value) -> Reply {
    answer("200 OK", &[], &json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result}))
}

pub(crate) fn error(status: &str, id: &Value, code: i64, data: &Value) -> Reply {
    let error = json!({"code": code, "message": "no", "data": data});
    answer(status, &[], &json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

pub(crate) const SSE_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const SSE_END: &str = "0\r\n\r\n";

pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

pub(crate) fn event(message: &Value) -> String {
    chunk(&format!("data: {message}\n\n"))
}

/// Returns a legacy server's answer to everything but the requests a test is about; `None` is those.
pub(crate) fn legacy(seen: &Seen, session: &str) -> Option<Reply> {
    match (seen.verb.as_str(), seen.method()) {
        ("POST", "server/discover") => Some(raw("400 Bad Request", &[], "Bad Request: Server not initialized")),
        ("POST", "initialize") => {
            let session = format!("Mcp-Session-Id: {session}");
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "scripted", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            Some(answer("200 OK", &[&session], &body))
        }
        ("POST", method) if method.starts_with("notifications/") => Some(raw("202 Accepted", &[], "")),
        ("GET", _) => Some(raw("405 Method Not Allowed", &[], "")),
        ("DELETE", _) => Some(raw("200 OK", &[], "")),
        _ => None,
    }
}

/// The same for a modern server.
pub(crate) fn modern(seen: &Seen) -> Option<Reply> {
    (seen.method() == "server/discover").then(|| {
        result(
            seen,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private"}),
        )
    })
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<VecDeque<Seen>>>,
    count: watch::Receiver<usize>,
    open: watch::Receiver<usize>,
}

impl Server {
    pub(crate) async fn new(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        // What the client knows of a server it knows by its port, so none is used twice.
        static USED: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
        let (listener, port) = loop {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            if USED.lock().expect("unpoisoned").insert(port) {
                break (listener, port);
            }
        };
        let (seen, script): (Arc<Mutex<VecDeque<Seen>>>, Arc<Script>) = (Arc::default(), Arc::new(script));
        let ((counted, count), (opened, open)) = (watch::channel(0), watch::channel(0));
        let log = seen.clone();
        tokio::spawn(async move {
            let number = AtomicUsize::new(0);
            while let Ok((socket, _)) = listener.accept().await {
                let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                let (script, log, counted, opened) = (script.clone(), log.clone(), counted.clone(), opened.clone());
                tokio::spawn(async move {
                    opened.send_modify(|n| *n += 1);
                    let _ = connection(socket, number, &*script, &log, &counted).await;
                    opened.send_modify(|n| *n -= 1);
                });
            }
        });
        Self { port, seen, count, open }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Everything that came in so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("unpoisoned").iter().cloned().collect()
    }

    /// Returns the methods of the messages that came in by POST.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.seen().iter().filter(|s| s.verb == "POST").map(|s| s.method().to_owned()).collect()
    }

    /// The first request that fits, once it is there.
    pub(crate) async fn wait_for(&self, what: &str, fits: impl Fn(&Seen) -> bool) -> Seen {
        let mut count = self.count.clone();
        let waiting = async {
            loop {
                if let Some(found) = self.seen().into_iter().find(|seen| fits(seen)) {
                    return found;
                }
                count.changed().await.expect("the server lives");
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
    }

    /// Waits until the client has this many connections open.
    pub(crate) async fn wait_for_connections(&self, number: usize) {
        let mut open = self.open.clone();
        let waiting = async { open.wait_for(|n| *n == number).await.map(drop).expect("the server lives") };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| panic!("{number} connections within {PATIENCE:?}"));
    }
}

async fn connection(
    mut socket: TcpStream,
    number: usize,
    script: &Script,
    log: &Mutex<VecDeque<Seen>>,
    counted: &watch::Sender<usize>,
) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let seen = loop {
            if let Some((seen, used)) = parse(&buffer, number) {
                buffer.drain(..used);
                break seen;
            }
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let reply = script(&seen);
        log.lock().expect("unpoisoned").push_back(seen);
        counted.send_modify(|n| *n += 1);
        let (Reply::Write(pieces) | Reply::WriteAndClose(pieces) | Reply::Hold(pieces)) = &reply;
        for piece in pieces {
            socket.write_all(piece.as_bytes()).await?;
            // Often a segment, and so a read, of its own.
            socket.flush().await?;
            tokio::task::yield_now().await;
        }
        match reply {
            Reply::Write(_) => {}
            Reply::WriteAndClose(_) => return socket.shutdown().await,
            Reply::Hold(_) => while socket.read_buf(&mut buffer).await? > 0 {},
        }
    }
}

/// One request and how long it was, when it is all there.
fn parse(buffer: &[u8], connection: usize) -> Option<(Seen, usize)> {
    let text = String::from_utf8_lossy(buffer);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let mut start = lines.next()?.split(' ');
    let (verb, path) = (start.next()?.to_owned(), start.next()?.to_owned());
    let headers: Vec<(String, String)> =
        lines.filter_map(|l| l.split_once(": ").map(|(k, v)| (k.to_ascii_lowercase(), v.to_owned()))).collect();
    let length = headers.iter().find(|(k, _)| k == "content-length").map_or(0, |(_, v)| v.parse().unwrap_or(0));
    let from = head.len() + 4;
    let body = buffer.get(from..from + length)?;
    let body = match serde_json::from_slice(body) {
        Ok(body) => body,
        Err(_) if body.is_empty() => Value::Null,
        // A form.
        Err(_) => String::from_utf8_lossy(body).into(),
    };
    Some((Seen { verb, path, headers, body, connection }, from + length))
}
