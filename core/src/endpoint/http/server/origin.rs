//! Protection against pages of other sites that talk to a local server: the permitted hosts and origins.

use super::headers::quoted;
use super::options::HttpOptions;
use crate::endpoint::http::unix;

/// The `Host` and `Origin` values that are answered.
#[derive(Debug)]
pub(super) struct Allowed {
    hosts: Names,
    /// Usual values of `Host`.
    usual: Vec<String>,
    origins: Option<Vec<String>>,
}

/// Names with or without a port.
#[derive(Debug)]
enum Names {
    Any,
    /// As the options say.
    Listed(Vec<String>),
    /// The loopback names and the one listened on, with any port: behind a tunnel or a container's port it is another one,
    /// and a page that has its name point here cannot choose the name.
    Own {
        host: String,
    },
}

impl Allowed {
    /// The rules of these options. `port` is the one listened on; `None` when the socket is somebody else's.
    pub(super) fn new(options: &HttpOptions, port: Option<u16>) -> Self {
        let listed = |names: &[String]| names.iter().map(|n| n.to_ascii_lowercase()).collect::<Vec<_>>();
        let hosts = match options.allowed_hosts.as_slice() {
            // No page reaches a socket, but by a proxy that has a name of its own.
            [] if unix::named(&options.host).is_some() => Names::Any,
            [] => Names::Own { host: bare(&options.host).to_ascii_lowercase() },
            names if names.iter().any(|n| n == "*") => Names::Any,
            names => Names::Listed(listed(names)),
        };
        let origins = (!options.allowed_origins.is_empty()).then(|| listed(&options.allowed_origins));
        let usual = match (&hosts, port) {
            (Names::Own { .. }, Some(port)) => {
                ["127.0.0.1", "localhost", "[::1]"].iter().map(|host| format!("{host}:{port}")).collect()
            }
            _ => Vec::new(),
        };
        Self { hosts, usual, origins }
    }

    /// Checks a request's `Host`. One without is no browser's.
    ///
    /// # Errors
    /// The message for the sender.
    pub(super) fn host(&self, host: Option<&str>) -> Result<(), String> {
        match host {
            Some(host) if !self.usual.iter().any(|usual| usual == host) && !self.hosts.contains(host) => Err(format!(
                "Host {} is not allowed; if this name is meant to reach the server, add it to allowed_hosts (allowedHosts)",
                quoted(host)
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if the options name this origin: its pages may read the answers.
    pub(super) fn names(&self, origin: &str) -> bool {
        self.origins.iter().flatten().any(|o| o == "*" || o.eq_ignore_ascii_case(origin))
    }

    /// Checks a request's `Origin`. One without comes from no page.
    ///
    /// # Errors
    /// The message for the sender.
    pub(super) fn origin(&self, origin: Option<&str>) -> Result<(), String> {
        let Some(origin) = origin else { return Ok(()) };
        let allowed = match &self.origins {
            Some(_) => self.names(origin),
            None => origin.split_once("://").is_some_and(|(scheme, authority)| {
                matches!(scheme, "http" | "https") && self.hosts.contains_page(authority)
            }),
        };
        if allowed {
            return Ok(());
        }
        Err(format!(
            "Origin {} is not allowed; if its pages are meant to use the server, add it to allowed_origins (allowedOrigins)",
            quoted(origin)
        ))
    }
}

impl Names {
    fn contains(&self, authority: &str) -> bool {
        let Some((host, _)) = split(authority) else {
            return false;
        };
        match self {
            Self::Any => true,
            Self::Listed(names) => names.iter().any(|name| {
                name.eq_ignore_ascii_case(authority)
                    || split(name).is_some_and(|(own, port)| port.is_none() && own.eq_ignore_ascii_case(host))
            }),
            Self::Own { host: own } => is_loopback(host) || host.eq_ignore_ascii_case(own),
        }
    }

    /// As [`contains`](Self::contains), for pages: that every host is answered does not let every page in.
    fn contains_page(&self, authority: &str) -> bool {
        match self {
            Self::Any => split(authority).is_some_and(|(host, _)| is_loopback(host)),
            _ => self.contains(authority),
        }
    }
}

/// Returns true if a host to listen on is this machine's alone.
#[cfg(feature = "auth")]
pub(super) fn is_local(host: &str) -> bool {
    is_loopback(bare(host))
}

fn is_loopback(host: &str) -> bool {
    ["127.0.0.1", "localhost", "::1"].iter().any(|own| own.eq_ignore_ascii_case(host))
}

/// An address without the brackets of IPv6.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

/// Host and port of `host`, `host:port`, `[v6]` or `[v6]:port`; `None` for anything else.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            match rest {
                "" => (host, None),
                _ => (host, Some(rest.strip_prefix(':')?)),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None => None,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
        Some(_) => return None,
    };
    (!host.is_empty()).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(hosts: &[&str], origins: &[&str], port: Option<u16>) -> Allowed {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let options =
            HttpOptions { allowed_hosts: owned(hosts), allowed_origins: owned(origins), ..HttpOptions::default() };
        Allowed::new(&options, port)
    }

    #[test]
    fn by_default_only_the_loopback_names_are_answered() {
        let own = allowed(&[], &[], Some(8000));
        for host in [
            "127.0.0.1:8000",
            "localhost:8000",
            "LOCALHOST:8000",
            "[::1]:8000",
            // A container, a tunnel or a proxy in front of it has another port.
            "localhost",
            "localhost:8001",
            "127.0.0.1",
            "[::1]:9000",
        ] {
            assert_eq!(own.host(Some(host)), Ok(()), "{host}");
            assert_eq!(own.origin(Some(&format!("http://{host}"))), Ok(()), "{host}");
        }
        assert_eq!((own.host(None), own.origin(None)), (Ok(()), Ok(())));
        for host in [
            "evil.example.com",
            "evil.example.com:8000",
            "127.0.0.1.evil.example.com:8000",
            "localhost:8000@evil.example.com",
            "localhost:+8000",
            "localhost:99999",
            "[::1]8000",
            "[::1",
            "",
            ":8000",
        ] {
            assert!(own.host(Some(host)).is_err_and(|text| text.contains("allowed_hosts")), "{host}");
            let origin = format!("http://{host}");
            assert!(own.origin(Some(&origin)).is_err_and(|text| text.contains("allowed_origins")), "{host}");
        }
        for origin in ["null", "", "file://", "ftp://localhost:8000", "http://localhost:8000/", "localhost:8000"] {
            assert!(own.origin(Some(origin)).is_err(), "{origin}");
        }
        assert_eq!(allowed(&[], &[], Some(80)).host(Some("localhost")), Ok(()));
        assert_eq!(allowed(&[], &[], None).host(Some("localhost:1234")), Ok(()), "mounted: any port");
        assert!(allowed(&[], &[], None).host(Some("example.com")).is_err());
    }

    #[test]
    fn the_options_say_who_else() {
        let listed = allowed(&["mcp.example.com", "other.example.com:8443"], &[], Some(8000));
        assert_eq!(listed.host(Some("MCP.example.com:1")), Ok(()));
        assert_eq!(listed.host(Some("other.example.com:8443")), Ok(()));
        assert!(listed.host(Some("other.example.com")).is_err());
        assert!(listed.host(Some("localhost:8000")).is_err(), "listed means only these");
        assert_eq!(listed.origin(Some("https://mcp.example.com")), Ok(()));
        let any = allowed(&["*"], &[], Some(8000));
        assert_eq!(any.host(Some("anything")), Ok(()));
        assert!(any.origin(Some("http://evil.example.com")).is_err(), "hosts are not origins");
        assert_eq!(any.origin(Some("http://localhost:3000")), Ok(()));
        let page = allowed(&[], &["https://app.example.com"], Some(8000));
        assert_eq!(page.origin(Some("https://app.example.com")), Ok(()));
        assert!(page.origin(Some("http://app.example.com")).is_err());
        assert_eq!(allowed(&[], &["*"], None).origin(Some("http://anyone")), Ok(()));
    }
}
