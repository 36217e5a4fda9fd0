//! Where requests go, and the fixed parts of their heads.

use super::Conn;
use crate::args::Proto;
use crate::scenario::{Gen, INITIALIZED, clip};
use std::io::Write;
use std::net::SocketAddr;

pub struct Endpoint {
    pub addr: SocketAddr,
    pub host: String,
    pub path: String,
}

impl Endpoint {
    pub fn head(&self, method: &str, proto: Option<Proto>, session: Option<&str>) -> String {
        let mut h = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n",
            self.path, self.host
        );
        if let Some(p) = proto {
            h.push_str(&format!("MCP-Protocol-Version: {}\r\n", p.version()));
        }
        if let Some(s) = session {
            h.push_str(&format!("Mcp-Session-Id: {s}\r\n"));
        }
        h
    }

    pub fn post(&self, proto: Option<Proto>, session: Option<&str>, body: &[u8]) -> Vec<u8> {
        let mut r = self.head("POST", proto, session).into_bytes();
        let _ = write!(r, "Content-Length: {}\r\n\r\n", body.len());
        r.extend_from_slice(body);
        r
    }
}

/// initialize + notifications/initialized. Returns the session id, if the server issued one.
pub fn handshake(ep: &Endpoint, gen: &Gen, c: &mut Conn, timeout_s: f64) -> Result<Option<String>, String> {
    let (st, msg) = c.roundtrip(ep.post(None, None, gen.initialize().as_bytes()), Some(0), timeout_s)?;
    if st != 200 || !msg.contains("protocolVersion") {
        return Err(format!("initialize: HTTP {st}: {}", clip(&msg)));
    }
    let sess = c.session.clone();
    let (st, msg) =
        c.roundtrip(ep.post(Some(Proto::Handshake), sess.as_deref(), INITIALIZED.as_bytes()), None, timeout_s)?;
    if st / 100 != 2 {
        return Err(format!("notifications/initialized: HTTP {st}: {}", clip(&msg)));
    }
    Ok(sess)
}

/// The fixed part of the request head for this scenario and session, up to `Content-Length: `.
pub fn head_prefix(ep: &Endpoint, gen: &Gen, session: Option<&str>) -> Vec<u8> {
    let mut h = ep.head("POST", Some(gen.proto), session);
    if gen.proto == Proto::Stateless {
        h.push_str(&format!("Mcp-Method: {}\r\n", gen.method()));
        if let Some(n) = gen.name() {
            h.push_str(&format!("Mcp-Name: {n}\r\n"));
        }
    }
    h.push_str("Content-Length: ");
    h.into_bytes()
}
