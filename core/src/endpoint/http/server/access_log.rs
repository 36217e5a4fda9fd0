//! A line for each request that was answered, in the Common Log Format with the time that it took.

use std::fmt::{self, Write as _};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode, Uri, Version};

use crate::driver::now;
use crate::report;

/// A request that is being answered. Dropped with the answer's body, it is written: what stands in a query or in headers
/// is not.
pub(super) struct Entry {
    from: IpAddr,
    method: Method,
    path: String,
    version: Version,
    status: Option<StatusCode>,
    pub(super) bytes: u64,
    began: Duration,
    at: SystemTime,
}

/// The longest path that is written.
const MAX_PATH: usize = 200;

impl Entry {
    pub(super) fn new(from: IpAddr, method: &Method, uri: &Uri, version: Version) -> Self {
        let path = crate::error::shortened(uri.path(), MAX_PATH).into_owned();
        let (began, at) = (now(), SystemTime::now());
        Self { from, method: method.clone(), path, version, status: None, bytes: 0, began, at }
    }

    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = crate::error::shortened(self.method.as_str(), 20);
        write!(f, "{} - - [{}] \"{method} ", self.from, date(self.at))?;
        for c in self.path.chars() {
            // A line is one request's.
            if c.is_control() || c == '"' || c == '\\' {
                write!(f, "{}", c.escape_default())?
            } else {
                f.write_char(c)?
            }
        }
        let status = self.status.map_or(0, |status| status.as_u16());
        let took = now().saturating_sub(self.began).as_millis();
        write!(f, " {:?}\" {status} {} {took}ms", self.version, self.bytes)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // Without an answer nobody was there to take it.
        if self.status.is_some() {
            report::line(&*self);
        }
    }
}

/// As the format wants it: `27/Nov/2026:06:41:00 +0000`.
fn date(at: SystemTime) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let text = humantime::format_rfc3339_seconds(at).to_string();
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = part(5, 7).parse().ok().and_then(|month: usize| MONTHS.get(month.checked_sub(1)?)).unwrap_or(&"-");
    format!("{}/{month}/{}:{} +0000", part(8, 10), part(0, 4), part(11, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_no_secrets_and_is_one_line() {
        let uri: Uri = "/mcp?token=secret".parse().expect("a URI");
        let mut entry = Entry::new([192, 0, 2, 1].into(), &Method::POST, &uri, Version::HTTP_11);
        entry.answered(StatusCode::OK);
        entry.bytes = 42;
        entry.path = "/a\n\"b".into();
        let line = entry.to_string();
        assert!(
            line.starts_with("192.0.2.1 - - [") && line.contains("+0000] \"POST /a\\n\\\"b HTTP/1.1\" 200 42 "),
            "{line}"
        );
        assert!(!line.contains("secret") && line.ends_with("ms"), "{line}");
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_761_660);
        assert_eq!(date(at), "27/Nov/2026:06:41:00 +0000");
    }
}
