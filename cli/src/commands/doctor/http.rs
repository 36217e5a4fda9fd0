//! Checks that only HTTP has: origins of requests, sessions, headers.

use std::collections::HashSet;

use serde_json::{Value, json};
use tricorn::http::Exchanges;

use super::report::{Report, Severity};
use super::system;
use super::wire::{Exchanged, MODERN, NEWEST_LEGACY, Wire, client_info, exchanged};

const EVIL_HOST: &str = "evil.example";
const EVIL_ORIGIN: &str = "https://evil.example";
/// The origin of the Inspector, a web page that connects to servers.
const PAGE: &str = "http://localhost:6274";
const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";
const COMPARED: usize = 8;
/// Bits of chance that an id has to have.
const LEAST_BITS: f64 = 64.0;
const WARM: usize = 20;
const OPENED: usize = 200;
const ROUNDS: usize = 3;
const LEAK: u64 = 100;

/// A server's URL, and how it is spoken to.
pub(super) struct Site<'a> {
    pub(super) exchanges: &'a Exchanges,
    pub(super) token: Option<&'a str>,
    pub(super) is_modern: bool,
    pub(super) is_loopback: bool,
}

impl Site<'_> {
    /// Sends the first request of a client, with these headers besides.
    pub(super) async fn first(&self, more: &[(&str, &str)]) -> Option<Exchanged> {
        let bearer = self.token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let body = if self.is_modern {
            headers.extend([("mcp-protocol-version", MODERN), ("mcp-method", "server/discover")]);
            json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            }}})
        } else {
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": NEWEST_LEGACY, "capabilities": {}, "clientInfo": client_info()}})
        };
        headers.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        headers.extend_from_slice(more);
        exchanged(self.exchanges, "POST", &headers, body.to_string().into_bytes()).await
    }

    /// Ends a session. True if the server does so.
    pub(super) async fn end(&self, session: &str) -> bool {
        let bearer = self.token.map(|token| format!("Bearer {token}"));
        let mut headers = vec![("mcp-session-id", session), ("mcp-protocol-version", NEWEST_LEGACY)];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let ended = exchanged(self.exchanges, "DELETE", &headers, Vec::new()).await;
        ended.is_some_and(|ended| (200..300).contains(&ended.status))
    }

    /// Opens a session, and ends it. Gives its id, and whether it could be ended.
    async fn session(&self) -> Option<(String, bool)> {
        let id = self.first(&[]).await?.header("mcp-session-id")?.to_owned();
        let ended = self.end(&id).await;
        Some((id, ended))
    }

    async fn end_of(&self, answer: &Exchanged) {
        if let Some(session) = answer.header("mcp-session-id") {
            self.end(session).await;
        }
    }
}

/// Examines the hosts and origins that are accepted.
pub(super) async fn origins(site: &Site<'_>, report: &Report) {
    // Other names of a server elsewhere are its own affair.
    if site.is_loopback {
        report.ran(&["any-host"]);
        if let Some(answer) = site.first(&[("host", EVIL_HOST)]).await
            && answer.is_served()
        {
            report.find("any-host", format!("HTTP status {} with Host: {EVIL_HOST}", answer.status));
            site.end_of(&answer).await;
        }
    }
    report.ran(&["any-origin", "cors-bad"]);
    if let Some(answer) = site.first(&[("origin", EVIL_ORIGIN)]).await
        && answer.is_served()
    {
        // A server that is not on this machine is reached by pages without any trick.
        let severity = if site.is_loopback { Severity::Error } else { Severity::Warning };
        report.find_as("any-origin", severity, format!("HTTP status {} with Origin: {EVIL_ORIGIN}", answer.status));
        site.end_of(&answer).await;
    }
    let asked = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, mcp-session-id"),
        ("content-type", ""),
    ];
    let preflight = exchanged(site.exchanges, "OPTIONS", &asked, Vec::new()).await;
    let opened = site.first(&[("origin", PAGE)]).await;
    for answer in preflight.iter().chain(&opened) {
        let allowed = answer.header("access-control-allow-origin");
        if allowed == Some("*") && answer.header("access-control-allow-credentials") == Some("true") {
            report.find("cors-bad", "Access-Control-Allow-Origin: * with Access-Control-Allow-Credentials: true");
        }
    }
    if let Some(answer) = &opened {
        let exposed = answer.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
        let exposes = exposed.split(',').any(|name| matches!(name.trim(), "mcp-session-id" | "*"));
        let has_session = answer.header("mcp-session-id").is_some();
        if answer.header("access-control-allow-origin").is_some() && has_session && !exposes {
            report.find("cors-bad", format!("Access-Control-Expose-Headers: {exposed:?}, without Mcp-Session-Id"));
        }
        site.end_of(answer).await;
    }
}

/// Sessions: `wire` has an open one.
pub(super) async fn sessions(site: &Site<'_>, wire: &mut Wire, pid: Option<u32>) {
    if wire.session().is_none() {
        return;
    }
    let report = wire.report.clone();
    report.ran(&["session-unchecked", "restart-not-404", "session-guessable"]);
    let ping = json!({"jsonrpc": "2.0", "id": "unchecked", "method": "tools/list", "params": {}});
    let without = wire.exchange("POST", &[("mcp-session-id", "")], &ping).await;
    if let Some(answer) = without.filter(Exchanged::is_served) {
        report.find("session-unchecked", format!("HTTP status {} without Mcp-Session-Id", answer.status));
    }
    let (mut ids, mut ends) = (Vec::new(), false);
    for _ in 0..COMPARED {
        let Some((id, ended)) = site.session().await else { break };
        ids.push(id);
        ends = ended;
    }
    // One that has ended, where sessions can be ended; else one that never was. After a restart both look the same.
    let ended = ids.last().filter(|_| ends).cloned();
    let mut unknown = vec![("a made-up session", UNKNOWN.to_owned())];
    unknown.extend(ended.map(|id| ("a session that has ended", id)));
    for (what, id) in unknown {
        let Some(answer) = wire.exchange("POST", &[("mcp-session-id", &id)], &ping).await else { continue };
        if answer.is_served() {
            report.find("session-unchecked", format!("HTTP status {} with {what}", answer.status));
        } else if is_refused(answer.status) {
            report.find("restart-not-404", format!("HTTP status {} with {what}", answer.status));
        }
    }
    if ids.len() == COMPARED {
        let bits = chance(&ids);
        if bits < LEAST_BITS {
            report.find("session-guessable", format!("{:.0} bits of chance in {}", bits, ids.join(", ")));
        }
    }
    if let Some(pid) = pid.filter(|_| ends) {
        leaks(site, &report, pid).await;
    }
}

/// True for a refusal in other words than 404, which is not for want of a token, or of time.
fn is_refused(status: u16) -> bool {
    let is_other = (400..500).contains(&status) && ![401, 403, 404, 408, 429].contains(&status);
    is_other || (200..300).contains(&status)
}

/// Bits in which ids differ, as far as a few of them show it.
fn chance(ids: &[String]) -> f64 {
    let distinct: HashSet<_> = ids.iter().collect();
    if distinct.len() < ids.len() {
        return 0.0;
    }
    let letters: Vec<Vec<char>> = ids.iter().map(|id| id.chars().collect()).collect();
    let shortest = letters.iter().map(Vec::len).min().unwrap_or_default();
    let all: HashSet<_> = letters.iter().flatten().collect();
    let each = if all.iter().all(|c| c.is_ascii_hexdigit() || **c == '-') {
        4.0
    } else if all.iter().any(|c| c.is_ascii_lowercase()) && all.iter().any(|c| c.is_ascii_uppercase()) {
        5.9
    } else {
        5.0
    };
    let differs = |at: &usize| letters.iter().map(|id| id[*at]).collect::<HashSet<_>>().len() > 1;
    let places = (0..shortest).filter(differs).count();
    f64::from(u32::try_from(places).unwrap_or(u32::MAX)) * each
}

/// Memory that sessions leave behind.
async fn leaks(site: &Site<'_>, report: &Report, pid: u32) {
    for _ in 0..WARM {
        if site.session().await.is_none() {
            return;
        }
    }
    // A heap that is collected grows at first: it is a leak only if it goes on.
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let Some(before) = system::memory(pid) else { return };
        for _ in 0..OPENED {
            if site.session().await.is_none() {
                return;
            }
        }
        let Some(after) = system::memory(pid) else { return };
        least = least.min(after.saturating_sub(before) / OPENED as u64);
        report.ran(&["sessions-leak"]);
        if least <= LEAK {
            return;
        }
    }
    let evidence = format!("{least} KiB for each of {OPENED} sessions that were opened and ended, {ROUNDS} times");
    report.find("sessions-leak", evidence);
}

/// A session of before in a server that was started again.
pub(super) async fn restarted(site: &Site<'_>, report: &Report, session: &str) {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let headers = [("mcp-session-id", session), ("mcp-protocol-version", NEWEST_LEGACY)];
    let Some(answer) = exchanged(site.exchanges, "POST", &headers, ping.to_string().into_bytes()).await else { return };
    if !answer.is_served() && is_refused(answer.status) {
        report.find("restart-not-404", format!("HTTP status {} with a session of before a restart", answer.status));
    }
}

/// Headers that say something else than the body, in the newer revisions.
pub(super) async fn headers(wire: &mut Wire) {
    wire.report.ran(&["header-mismatch-ok"]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": client_info(),
    }}});
    let Some(answer) = wire.exchange("POST", &[("mcp-method", "tools/list")], &body).await else { return };
    let code = answer.message.as_ref().and_then(|message| message["error"]["code"].as_i64());
    if answer.is_served() {
        let evidence = format!("HTTP status {} with Mcp-Method: tools/list for server/discover", answer.status);
        wire.report.find("header-mismatch-ok", evidence);
    } else if code.is_some_and(|code| code != -32020) && answer.status == 200 {
        wire.report.find("header-mismatch-ok", format!("the error {} in place of -32020", Value::from(code)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_estimated() {
        let counted: Vec<_> = (1..=8).map(|at| format!("session-{at:04}")).collect();
        assert!(chance(&counted) < 10.0);
        let same = vec!["a".repeat(40); 8];
        assert!(chance(&same) < 1.0);
        let drawn = ["d41c8f0e6b7a4e9f", "07b3e5a1c29d8f46", "b8a6d2c4f1e03957", "5f9e1b7c3a8d0426"];
        let drawn: Vec<_> = drawn.iter().map(|id| format!("{id}{}", id.chars().rev().collect::<String>())).collect();
        assert!(chance(&drawn) > 100.0);
    }
}
