//! Programs that serve HTTP where standard streams are expected: what they print shows it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tricorn::ErrorKind;
use tricorn::client::{Client, ClientOptions, Target};

use super::Found;
use crate::failure::{Failure, UNREACHABLE};

/// The time that a program has to answer on its standard streams after it has named a URL of this machine.
const GRACE: Duration = Duration::from_secs(3);
/// Pause between attempts to reach a server that has just started, and their number.
const PAUSE: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 20;
/// URLs that are tried, and the time for each.
const URLS: usize = 4;
const ANSWER: Duration = Duration::from_secs(2);

/// The URLs that a program names before it is connected.
#[derive(Default)]
pub(crate) struct Elsewhere {
    urls: Mutex<Vec<String>>,
    told: Notify,
}

impl Elsewhere {
    /// Looks at a line of its output.
    pub(crate) fn look(&self, line: &str) {
        let Some(url) = own_url(line).or_else(|| own_port(line)) else { return };
        let mut urls = self.urls.lock().unwrap_or_else(PoisonError::into_inner);
        if urls.len() < URLS && !urls.contains(&url) {
            urls.push(url);
        }
        drop(urls);
        self.told.notify_one();
    }

    /// Waits until a server has answered at one of them, for ever if none does.
    pub(crate) async fn serves(&self, found: &Found) -> Failure {
        // A URL that is connected to prints nothing of its own.
        if matches!(found.reach, super::Reach::One(Target::Url { .. })) {
            return std::future::pending().await;
        }
        self.told.notified().await;
        tokio::time::sleep(GRACE).await;
        for _ in 0..ATTEMPTS {
            let urls = self.urls.lock().unwrap_or_else(PoisonError::into_inner).clone();
            for url in urls.iter().flat_map(|url| places(url)).filter(|url| !is_given(found, url)) {
                if answers(&url).await {
                    return found.serves_http(&url);
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        std::future::pending().await
    }
}

impl Found {
    fn serves_http(&self, url: &str) -> Failure {
        let (path, name) = super::parts(&self.name);
        let is_python = path.extension().is_some_and(|ending| ending == "py") && name.is_none();
        let own =
            if is_python { format!(", or {}:NAME with the name of its server", self.name) } else { String::new() };
        let hint = format!("start it by itself and name {url} instead{own}");
        Failure::new(UNREACHABLE, format!("{} serves HTTP, not standard streams: {hint}", self.name))
    }
}

/// Says whether the program was told of this URL: one that passes messages on names where to.
fn is_given(found: &Found, url: &str) -> bool {
    let super::Reach::One(Target::Command { args, env, .. }) = &found.reach else { return false };
    let host = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
    let names = |word: &str| word.contains("://") && word.contains(host);
    args.iter().any(|word| names(word)) || env.values().flatten().any(|value| names(value))
}

/// The URL itself, or the usual ones below it.
fn places(url: &str) -> Vec<String> {
    let bare = url.trim_end_matches('/');
    let has_path = bare.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
    if has_path { vec![url.to_owned()] } else { ["/mcp", "/sse", ""].map(|path| format!("{bare}{path}")).to_vec() }
}

/// Says whether a server of the protocol is there, also one that wants a login.
async fn answers(url: &str) -> bool {
    let Ok(target) = Target::from_text(url) else { return false };
    let options = ClientOptions::new().restart(false).request_timeout(ANSWER).probe_timeout(ANSWER);
    match Client::connect(&target, &options).await {
        Ok(client) => {
            client.close().await;
            true
        }
        Err(error) => error.kind() == ErrorKind::Auth,
    }
}

/// The first URL of this machine in a line. Banners name others, too: of a manual, of a service.
pub(crate) fn own_url(line: &str) -> Option<String> {
    let end = |c: char| c.is_whitespace() || c.is_control() || "\"'`<>)},;".contains(c);
    let mut rest = line;
    while let Some(at) = rest.find("http") {
        let url = rest[at..].split(end).next().unwrap_or_default().trim_end_matches('.');
        rest = &rest[at + 4..];
        let Some(after) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else { continue };
        // A bracket ends it, but for those of an address.
        let closes = if after.starts_with('[') { after.find(']').map_or(0, |at| at + 1) } else { 0 };
        let length = after[closes..].find(']').map_or(url.len(), |at| url.len() - after.len() + closes + at);
        let url = &url[..length];
        // A server on all addresses is reached by this one.
        let url = url.replacen("://0.0.0.0", "://127.0.0.1", 1).replacen("://[::]", "://[::1]", 1);
        if is_loopback(&url) {
            return Some(url);
        }
    }
    None
}

/// The URL of a port that a line names, `listening on port 3000`.
fn own_port(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    // A word of its own: no report, and no support.
    let starts = |at: &usize| !lower[..*at].ends_with(|letter: char| letter.is_ascii_alphanumeric());
    let at = lower.match_indices("port").map(|(at, _)| at).find(starts)?;
    let after = lower[at + 4..].trim_start_matches([' ', ':', '=', '#']);
    let digits = after.split(|letter: char| !letter.is_ascii_digit()).next()?;
    let port: u16 = digits.parse().ok().filter(|port| *port > 0)?;
    Some(format!("http://127.0.0.1:{port}"))
}

/// True for a URL of this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let after = url.split_once("://").map_or("", |(_, after)| after);
    let authority = after.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_this_machine_is_found() {
        for (line, url) in [
            ("Docs: https://gofastmcp.com", None),
            ("see https://a.example, http://localhost:1/mcp (http://127.0.0.1:2)", Some("http://localhost:1/mcp")),
            ("Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)", Some("http://127.0.0.1:8000")),
            ("[http://[::1]:8/mcp]", Some("http://[::1]:8/mcp")),
            ("ready \"http://127.0.0.1:3001/mcp\".", Some("http://127.0.0.1:3001/mcp")),
            ("[listening on http://127.0.0.1:3001]", Some("http://127.0.0.1:3001")),
            ("http https:// http://", None),
        ] {
            assert_eq!(own_url(line).as_deref(), url, "{line}");
        }
    }

    #[test]
    fn a_port_that_is_named_is_found() {
        for (line, port) in [
            ("MCP server listening on port 3000", Some(3000)),
            ("Port: 8080.", Some(8080)),
            ("report 12", None),
            ("support: 443", None),
            ("report of port 12", Some(12)),
            ("exported 5 tools", None),
            ("port 0", None),
            ("port 99999", None),
        ] {
            assert_eq!(own_port(line), port.map(|port| format!("http://127.0.0.1:{port}")), "{line}");
        }
        assert_eq!(places("http://localhost:1/mcp"), ["http://localhost:1/mcp"]);
        assert_eq!(places("http://localhost:1/")[0], "http://localhost:1/mcp");
    }
}
