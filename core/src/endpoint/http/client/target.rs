//! Target of requests, and the headers that they all carry.

use std::borrow::Cow;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use percent_encoding::percent_decode_str;

use super::headers;
use crate::endpoint::http::unix::Local;
use crate::error::{Error, Result, shown_url};

/// An endpoint's URL, taken apart.
pub(super) struct Target {
    /// Scheme and authority.
    pub(super) origin: Uri,
    /// Path and query.
    pub(super) path: Uri,
    /// The socket of this machine that is connected to in place of the origin.
    pub(super) socket: Option<PathBuf>,
    /// The headers of every request.
    headers: HeaderMap,
    /// The same with what every message of ours carries.
    posted: HeaderMap,
}

impl Target {
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no URL or no header, or a header that is not the user's to set.
    pub(super) fn new(url: &str, own: &[(String, String)]) -> Result<Self> {
        let bad = |why: &str| Error::misuse(format!("target \"url\": {why}, got {}", shown_url(url)));
        let (over, socket) = match Local::of(url).transpose()? {
            Some(local) => (Cow::Owned(format!("http://localhost{}", local.path)), Some(local.socket)),
            None => (Cow::Borrowed(url), None),
        };
        let parsed: Uri = over.parse().map_err(|e| {
            let rest = over.split_once("://").map_or("", |(_, rest)| rest);
            let why = if rest.is_empty() || rest.starts_with(['/', '?', '#']) {
                "no host".to_owned()
            } else {
                format!("{e}")
            };
            bad(&format!("expected a URL such as https://mcp.example.com/mcp ({why})"))
        })?;
        let scheme = parsed.scheme().filter(|s| [Scheme::HTTP, Scheme::HTTPS].contains(s));
        let (Some(scheme), Some(authority)) = (scheme, parsed.authority()) else {
            return Err(bad("expected http://, https:// or unix:"));
        };
        let (credentials, place) = match authority.as_str().rsplit_once('@') {
            Some((credentials, place)) => (Some(credentials), place),
            None => (None, authority.as_str()),
        };
        let place: Authority = place.parse().map_err(|_| bad("expected a host"))?;
        // Else the port of the scheme would be taken, as for an empty one.
        let port =
            place.as_str().strip_prefix(place.host()).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
        let number = port.parse::<u16>().ok().filter(|_| port.bytes().all(|digit| digit.is_ascii_digit()));
        if !port.is_empty() && number.is_none_or(|port| port == 0) {
            return Err(bad("expected a port from 1 to 65535"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(place.as_str()).map_err(|_| bad("expected a host"))?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tricorn/", env!("CARGO_PKG_VERSION"))));
        if let Some(credentials) = credentials {
            let credentials: Vec<u8> = percent_decode_str(credentials).collect();
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(credentials)))
                .map_err(|_| bad("expected user:password"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        for (name, value) in own {
            let key: HeaderName =
                name.parse().map_err(|_| Error::misuse(format!("header {name:?}: not a header's name")))?;
            if headers::is_reserved(&key) {
                crate::report::say(format_args!("the header {name:?} is left out, the transport sets it itself"));
                continue;
            }
            let value = HeaderValue::from_str(value).map_err(|_| {
                Error::misuse(format!("header {name:?}: its value has characters that no header can carry"))
            })?;
            headers.insert(key, value);
        }
        let path = parsed.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")).into();
        let origin = Uri::builder().scheme(scheme.clone()).authority(place).path_and_query("/").build();
        let mut posted = headers.clone();
        posted.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        posted.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(Self { origin: origin.map_err(|e| bad(&e.to_string()))?, path, socket, headers, posted })
    }

    /// Returns the headers of each request of this kind.
    pub(super) fn headers(&self, verb: &Method) -> &HeaderMap {
        if verb == Method::POST { &self.posted } else { &self.headers }
    }

    /// The URL of what is at `path`, without its query.
    #[cfg(feature = "auth")]
    pub(super) fn url_of(&self, path: &Uri) -> String {
        format!("{}{}", self.origin.to_string().trim_end_matches('/'), path.path())
    }

    /// The path that a reference leads to from `path`, when it stays at this origin.
    pub(super) fn resolved(&self, path: &Uri, reference: &str) -> Option<Uri> {
        let base = format!("{}{path}", self.origin.to_string().trim_end_matches('/'));
        let base = fluent_uri::Uri::parse(base).ok()?;
        let to = fluent_uri::UriRef::parse(reference.trim()).ok()?.resolve_against(&base).ok()?;
        self.redirected(&HeaderValue::try_from(to.into_string()).ok()?)
    }

    /// The path that a redirect leads to, when it stays at this origin.
    pub(super) fn redirected(&self, location: &HeaderValue) -> Option<Uri> {
        let location: Uri = location.to_str().ok()?.parse().ok()?;
        let here = match (location.scheme(), location.authority()) {
            // `//host/path` names another host; the URI type takes it for a path.
            (None, None) => location.path().starts_with('/') && !location.path().starts_with("//"),
            (scheme, Some(authority)) => {
                scheme.is_none_or(|s| Some(s) == self.origin.scheme())
                    && authority.host().eq_ignore_ascii_case(self.origin.host().unwrap_or_default())
                    && port(&location, self.origin.scheme()) == port(&self.origin, None)
            }
            _ => false,
        };
        location.path_and_query().filter(|_| here).cloned().map(Uri::from)
    }
}

fn port(uri: &Uri, scheme: Option<&Scheme>) -> u16 {
    let scheme = uri.scheme().or(scheme);
    uri.port_u16().unwrap_or_else(|| if scheme == Some(&Scheme::HTTPS) { 443 } else { 80 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str, own: &[(&str, &str)]) -> Result<Target> {
        let own: Vec<_> = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Target::new(url, &own)
    }

    fn headers(target: &Target) -> String {
        let line = |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}|", value.to_str().expect("ascii"));
        target.headers.iter().map(line).collect()
    }

    #[test]
    fn a_url_is_taken_apart() {
        for (url, origin, path, host) in [
            ("http://localhost:8000/mcp?a=1", "http://localhost:8000/", "/mcp?a=1", "localhost:8000"),
            ("http://localhost:8000", "http://localhost:8000/", "/", "localhost:8000"),
            ("https://example.com/a/b/", "https://example.com/", "/a/b/", "example.com"),
            ("http://[::1]:1/x#part", "http://[::1]:1/", "/x", "[::1]:1"),
            ("HTTPS://h/x", "https://h/", "/x", "h"),
        ] {
            let target = target(url, &[]).expect(url);
            assert_eq!((target.origin.to_string(), target.path.to_string()), (origin.into(), path.into()));
            assert_eq!(headers(&target), format!("host: {host}|user-agent: tricorn/{}|", crate::VERSION));
        }
        let local = target("unix:///run/mcp.sock#/a?b=1", &[]).expect("a socket");
        assert_eq!(local.socket.as_deref(), Some(std::path::Path::new("/run/mcp.sock")));
        assert_eq!((local.origin.to_string(), local.path.to_string()), ("http://localhost/".into(), "/a?b=1".into()));
        for bad in ["ftp://x/", "localhost:1", "http://", "http://a b/", "", "unix:", "unix:///a b#c d"] {
            assert_eq!(target(bad, &[]).err().map(|e| e.kind()), Some(crate::ErrorKind::Misuse), "{bad}");
        }
        for bad in ["http://127.0.0.1:99999/mcp", "https://h:-1/", "http://h:0/", "http://[::1]:70000/"] {
            let error = target(bad, &[]).err().expect("no port").to_string();
            assert!(error.contains("expected a port from 1 to 65535, got"), "{bad}: {error}");
        }
        for bad in ["http://", "https:///x", "https://?a"] {
            let error = target(bad, &[]).err().expect("no host").to_string();
            assert!(error.contains("such as https://mcp.example.com/mcp (no host), got"), "{error}");
        }
        let error = target("http://user:secret@a b/", &[]).err().expect("no URL");
        assert!(!error.message().contains("secret"), "{error}");
        let target = target("http://user:p%40ss@h:1/", &[]).expect("a URL");
        assert_eq!(target.origin.to_string(), "http://h:1/");
        assert!(
            headers(&target).contains("host: h:1|") && headers(&target).contains("authorization: Basic dXNlcjpwQHNz|")
        );
    }

    #[test]
    fn the_users_headers_are_checked() {
        let own = target("http://h/", &[("X-Own", "a b"), ("Host", "other"), ("user-agent", "me")]).expect("headers");
        assert_eq!(headers(&own), "host: other|user-agent: me|x-own: a b|");
        // Those that the transport sets itself are left out.
        let owned = [("Mcp-Session-Id", "s"), ("content-length", "1"), ("Accept", "*/*"), ("X-Own", "1")];
        let left = headers(&target("http://h/", &owned).expect("headers"));
        assert!(left.ends_with("x-own: 1|") && !left.contains("*/*") && !left.contains("mcp-"), "{left}");
        for (name, value) in [("a b", ""), ("x", "a\nb"), ("x", "a\rb")] {
            assert_eq!(
                target("http://h/", &[(name, value)]).err().map(|e| e.kind()),
                Some(crate::ErrorKind::Misuse),
                "{name}"
            );
        }
    }

    #[test]
    fn references_are_resolved_within_the_origin() {
        let here = target("http://host:8000/a/sse?x=1", &[]).expect("a URL");
        for (reference, path) in [
            ("/messages?s=1", Some("/messages?s=1")),
            ("messages?s=1", Some("/a/messages?s=1")),
            ("../b", Some("/b")),
            ("?s=1", Some("/a/sse?s=1")),
            ("http://HOST:8000/m", Some("/m")),
            ("http://host:8001/m", None),
            ("https://host:8000/m", None),
            ("//evil:8000/m", None),
            ("http://evil/m", None),
            ("http://host:8000@evil/m", None),
            ("a b", None),
        ] {
            let to = here.resolved(&here.path, reference).map(|to| to.to_string());
            assert_eq!(to.as_deref(), path, "{reference:?}");
        }
    }

    #[test]
    fn only_redirects_within_the_origin_are_followed() {
        let here = target("http://Host:8000/mcp", &[]).expect("a URL");
        for (location, path) in [
            ("/mcp/", Some("/mcp/")),
            ("http://host:8000/mcp/?x", Some("/mcp/?x")),
            ("https://host:8000/mcp/", None),
            ("http://host/mcp/", None),
            ("http://evil:8000/mcp/", None),
            ("//evil:8000/mcp/", None),
            ("mcp/", None),
        ] {
            let location = HeaderValue::from_static(location);
            let to = here.redirected(&location).map(|to| to.to_string());
            assert_eq!(to.as_deref(), path, "{location:?}");
        }
        let secure = target("https://h/mcp", &[]).expect("a URL");
        assert!(secure.redirected(&HeaderValue::from_static("https://h:443/x")).is_some());
    }
}
