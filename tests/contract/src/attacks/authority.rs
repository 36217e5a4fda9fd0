//! The authorization server, on the loopback interface: OpenID Connect's metadata with the issuer's path in front, keys,
//! introspection, and all the ways in which one of them can fail.

use super::token::Keys;
use crate::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Length of an endless body, should nobody hang up.
const MOST: u64 = 1 << 30;
/// Longest time of a slow one, should nobody hang up.
const SLOWEST: Duration = Duration::from_secs(60);

struct State {
    keys: Keys,
    issuer: String,
    mode: Mutex<String>,
    changed: Condvar,
    /// The paths that were asked for.
    asked: Mutex<Vec<String>>,
    /// Facts about opaque tokens.
    known: Mutex<BTreeMap<String, Value>>,
    /// The bytes that endless bodies had.
    sent: AtomicU64,
    over: AtomicBool,
}

pub(super) struct Authority {
    state: Arc<State>,
    port: u16,
}

impl Authority {
    pub(super) fn start() -> Outcome<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let state = Arc::new(State {
            keys: Keys::new()?,
            issuer: format!("http://127.0.0.1:{port}/tenant"),
            mode: Mutex::new("up".into()),
            changed: Condvar::new(),
            asked: Mutex::default(),
            known: Mutex::default(),
            sent: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared.over.load(Ordering::Acquire) {
                    return;
                }
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Ok(Self { state, port })
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.state.keys
    }

    pub(super) fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// Everything before the paths.
    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn be(&self, mode: &str) {
        *self.state.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode.to_owned();
        self.state.changed.notify_all();
    }

    pub(super) fn know(&self, token: String, claims: Value) {
        self.state.known.lock().unwrap_or_else(PoisonError::into_inner).insert(token, claims);
    }

    /// The paths that were asked for since this was asked last.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.state.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The bytes that endless bodies had.
    pub(super) fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::Relaxed)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Release);
        self.be("up");
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn mode(&self) -> String {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn document(&self) -> Value {
        let issuer = match self.mode().as_str() {
            "lying" => "https://login.example.com",
            _ => &self.issuer,
        };
        let of = |path: &str| format!("{}{path}", self.issuer);
        json!({"issuer": issuer, "jwks_uri": of("/keys"), "authorization_endpoint": of("/authorize"),
            "token_endpoint": of("/token"), "response_types_supported": ["code"]})
    }
}

fn serve(mut stream: TcpStream, state: &State) -> Option<()> {
    let (path, body) = read(&stream)?;
    state.asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
    let mode = state.mode();
    if mode == "down" {
        return None;
    }
    match path.as_str() {
        "/tenant/.well-known/openid-configuration" => answer(&mut stream, 200, &state.document().to_string()),
        "/tenant/keys" | "/tenant/introspect" => {
            if misbehave(&mut stream, state, &mode)? {
                return None;
            }
            let said =
                if path.ends_with("/keys") { json!({"keys": [state.keys.own.jwk()]}) } else { state.said(&body) };
            answer(&mut stream, 200, &said.to_string())
        }
        // Where a token says that its key is: nobody may believe that.
        "/evil/keys" => answer(&mut stream, 200, &json!({"keys": [state.keys.strange.jwk()]}).to_string()),
        _ => answer(&mut stream, 404, "{}"),
    }
}

/// Fails as it is to; `true`: all that is to be said was said.
fn misbehave(stream: &mut TcpStream, state: &State, mode: &str) -> Option<bool> {
    match mode {
        "failing" => answer(stream, 500, "{}")?,
        "garbage" => answer(stream, 200, "<html>")?,
        "round" => lead(stream, "/tenant/keys")?,
        // Where machines of a cloud are told their secrets.
        "inward" => lead(stream, "http://169.254.169.254/latest/meta-data")?,
        "slow" => {
            let guard = state.mode.lock().unwrap_or_else(PoisonError::into_inner);
            drop(state.changed.wait_timeout_while(guard, SLOWEST, |now| now == "slow"));
            return None;
        }
        "endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"keys\":[").ok()?;
            let blank = vec![b' '; 1 << 16];
            while state.sent.load(Ordering::Relaxed) < MOST && state.mode() == "endless" {
                stream.write_all(&blank).ok()?;
                state.sent.fetch_add(1 << 16, Ordering::Relaxed);
            }
        }
        _ => return Some(false),
    }
    Some(true)
}

impl State {
    /// RFC 7662: what is known of the token in a form.
    fn said(&self, body: &str) -> Value {
        let token = body.split('&').find_map(|pair| pair.strip_prefix("token=")).unwrap_or_default();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(token).cloned().unwrap_or_else(|| json!({"active": false}))
    }
}

/// Path and body of a request.
fn read(stream: &TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(SLOWEST)).ok()?;
    let mut reader = BufReader::new(stream.take(1 << 20));
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        match header.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; usize::min(length, 1 << 20)];
    reader.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8_lossy(&body).into_owned()))
}

fn lead(stream: &mut TcpStream, location: &str) -> Option<()> {
    let head = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()
}

fn answer(stream: &mut TcpStream, status: u16, body: &str) -> Option<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).ok()
}
