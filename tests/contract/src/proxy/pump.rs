//! One connection: its bytes in both directions.

use super::Shared;
use super::rule::{Act, Rule, find};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest request of which every text is found.
const KEPT: usize = 1 << 20;

/// Longest part of the bytes before that may be the beginning of a text that somebody waits for.
const CARRIED: usize = 256;

#[derive(Clone)]
pub(super) struct Pump(Arc<Inner>);

struct Inner {
    number: usize,
    client: TcpStream,
    server: TcpStream,
    shared: Arc<Shared>,
    armed: Mutex<Option<Armed>>,
}

/// A rule whose request came on this connection.
struct Armed {
    number: usize,
    rule: Rule,
    /// Bytes of the server since then.
    answer: Vec<u8>,
    /// Number of them that have passed.
    passed: usize,
}

impl Pump {
    /// `None` when the proxy is at its end.
    pub(super) fn new(number: usize, client: TcpStream, server: TcpStream, shared: Arc<Shared>) -> Option<Self> {
        let mut state = shared.lock();
        state.sockets.push(client.try_clone().ok()?);
        state.sockets.push(server.try_clone().ok()?);
        drop(state);
        Some(Self(Arc::new(Inner { number, client, server, shared, armed: Mutex::new(None) })))
    }

    pub(super) fn start(self) {
        let other = self.clone();
        std::thread::spawn(move || other.requests());
        std::thread::spawn(move || self.answers());
    }

    fn close(&self) {
        let _ = self.0.client.shutdown(Shutdown::Both);
        let _ = self.0.server.shutdown(Shutdown::Both);
    }

    fn reset(&self) {
        // Dissolving a connection that is not closed yet resets it.
        let _ = rustix::net::connect_unspec(&self.0.client);
        self.close();
    }

    /// From the client to the server.
    fn requests(self) {
        let inner = &self.0;
        let mut text = Vec::new();
        let mut chunk = vec![0; 64 << 10];
        let mut tail = Tail::default();
        while let Ok(n @ 1..) = (&inner.client).read(&mut chunk) {
            if ["POST ", "GET ", "DELETE "].iter().any(|method| chunk[..n].starts_with(method.as_bytes())) {
                text.clear();
            }
            text.extend_from_slice(&chunk[..n]);
            inner.shared.passed(inner.number, tail.with(&chunk[..n]));
            if let Some((number, rule)) = inner.shared.current() {
                let meant = rule.request.as_ref().is_none_or(|request| find(&text, request).is_some());
                if meant && rule.act == Act::Refuse {
                    if inner.shared.apply(number) {
                        return self.reset();
                    }
                } else if meant {
                    let mut armed = inner.armed.lock().unwrap_or_else(PoisonError::into_inner);
                    if armed.as_ref().is_none_or(|armed| armed.number != number) {
                        *armed = Some(Armed { number, rule, answer: Vec::new(), passed: 0 });
                    }
                }
            }
            let surplus = text.len().saturating_sub(KEPT);
            text.drain(..surplus);
            if (&inner.server).write_all(&chunk[..n]).is_err() {
                break;
            }
        }
        let _ = inner.server.shutdown(Shutdown::Write);
    }

    /// From the server to the client.
    fn answers(self) {
        let inner = &self.0;
        let mut tail = Tail::default();
        let mut chunk = vec![0; 64 << 10];
        while let Ok(n @ 1..) = (&inner.server).read(&mut chunk) {
            if !self.answer(&chunk[..n]) {
                return;
            }
            inner.shared.passed(inner.number, tail.with(&chunk[..n]));
        }
        let _ = inner.client.shutdown(Shutdown::Write);
    }

    /// Passes what the server said, as far as the rules let it; false when the connection is over.
    fn answer(&self, bytes: &[u8]) -> bool {
        let inner = &self.0;
        let mut guard = inner.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut armed) = guard.take() else {
            drop(guard);
            return (&inner.client).write_all(bytes).is_ok();
        };
        armed.answer.extend_from_slice(bytes);
        let end = armed.rule.place.end(&armed.answer).map(|end| end.max(armed.passed));
        let Some(end) = end else {
            armed.passed = armed.answer.len();
            *guard = Some(armed);
            drop(guard);
            return (&inner.client).write_all(bytes).is_ok();
        };
        drop(guard);
        if !inner.shared.apply(armed.number) {
            return (&inner.client).write_all(bytes).is_ok();
        }
        if (&inner.client).write_all(&armed.answer[armed.passed..end]).is_err() {
            return false;
        }
        match &armed.rule.act {
            Act::Hold(until) => {
                inner.shared.hold(inner.number, until);
                (&inner.client).write_all(&armed.answer[end..]).is_ok()
            }
            Act::Reset => {
                self.reset();
                false
            }
            Act::Cut | Act::Refuse => {
                self.close();
                false
            }
        }
    }
}

/// The last bytes of one direction.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    /// These bytes, with what a text in them may have begun in.
    fn with(&mut self, bytes: &[u8]) -> &[u8] {
        let surplus = self.0.len().saturating_sub(CARRIED);
        self.0.drain(..surplus);
        self.0.extend_from_slice(bytes);
        &self.0
    }
}
