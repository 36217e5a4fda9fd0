//! Parts of a URL that authorization needs. A URL is only ever looked at: the text is sent and compared as it came.

use fluent_uri::Uri;

use crate::loopback::is_loopback;

/// The parts of an absolute URL with a host, as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) scheme: &'a str,
    /// Host and port, without the user.
    pub(crate) place: &'a str,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    port: Option<u16>,
    loopback: bool,
    user: bool,
}

impl<'a> Parts<'a> {
    /// `None` for what is no `http` or `https` URL.
    pub(crate) fn of(url: &'a str) -> Option<Self> {
        let parsed = Uri::parse(url).ok()?;
        let authority = parsed.authority()?;
        let scheme = parsed.scheme().as_str();
        let default = match scheme {
            s if s.eq_ignore_ascii_case("https") => 443,
            s if s.eq_ignore_ascii_case("http") => 80,
            _ => return None,
        };
        let host = authority.host();
        let loopback = is_loopback(host);
        let written = authority.as_str();
        let place = written.rsplit_once('@').map_or(written, |(_, place)| place);
        let port = Some(authority.port_to_u16().ok()?.unwrap_or(default));
        let (path, query) = (parsed.path().as_str(), parsed.query().map(fluent_uri::pct_enc::EStr::as_str));
        let user = place.len() < written.len();
        (!host.is_empty()).then_some(Self { scheme, place, host, path, query, port, loopback, user })
    }

    /// Scheme, host and port, as they are written.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.place)
    }

    /// The URL without the user's name and without a fragment, and otherwise as it is written: the server's name in a token
    /// store.
    pub(crate) fn server(&self) -> String {
        let query = self.query.map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.origin(), self.path)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port.unwrap_or_default()
    }

    pub(crate) fn is_https(&self) -> bool {
        self.scheme.eq_ignore_ascii_case("https")
    }

    /// Returns true if only this machine is meant.
    pub(crate) fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Returns true if it names a user, and maybe a password.
    pub(crate) fn has_user(&self) -> bool {
        self.user
    }

    /// Returns true if both have scheme, host and port in common.
    pub(crate) fn is_same_origin(&self, other: &Parts<'_>) -> bool {
        self.scheme.eq_ignore_ascii_case(other.scheme)
            && self.host.eq_ignore_ascii_case(other.host)
            && self.port == other.port
    }

    /// Path and query, without the slash that stands for no path.
    pub(crate) fn rest(&self) -> String {
        let path = if self.path == "/" { "" } else { self.path };
        self.query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
    }
}

/// Returns true if secrets may be sent there, and a browser: `https`, or `http` on this machine.
pub(crate) fn is_safe(url: &str) -> bool {
    // Browsers take a backslash for a slash and drop line breaks: nothing that they read otherwise than we do.
    Parts::of(url).is_some_and(|parts| parts.is_https() || parts.is_loopback())
}

/// Returns true if a resource's identifier stands for this server: the same origin, and a path that the server's begins
/// with.
pub(crate) fn covers(resource: &str, server: &str) -> bool {
    // RFC 8707, section 2: no fragment.
    if resource.contains('#') {
        return false;
    }
    let (Some(resource), Some(server)) = (Parts::of(resource), Parts::of(server)) else { return false };
    let own = resource.path.trim_end_matches('/');
    resource.is_same_origin(&server)
        && (resource.query.is_none() || resource.query == server.query)
        && server.path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns true if two issuers are one: the same text, or the same but for the slash that stands for an empty path
/// (RFC 3986, section 6.2.3).
pub(crate) fn is_same_issuer(one: &str, other: &str) -> bool {
    fn rootless(url: &str) -> Option<&str> {
        let parts = Parts::of(url).filter(|parts| matches!(parts.path, "" | "/"))?;
        (parts.query.is_none() && !url.contains('#')).then(|| url.strip_suffix('/').unwrap_or(url))
    }
    one == other || rootless(one).is_some_and(|root| rootless(other) == Some(root))
}

/// Pairs as `application/x-www-form-urlencoded`, RFC 6749 appendix B.
pub(crate) fn form<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// `url` with pairs added to its query, and otherwise as it is.
pub(crate) fn with_query<'a>(url: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let (url, fragment) = url.split_once('#').map_or((url, None), |(url, fragment)| (url, Some(fragment)));
    let joint = match url.split_once('?') {
        None => "?",
        Some((_, "")) => "",
        Some(_) => "&",
    };
    let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
    format!("{url}{joint}{}{fragment}", form(pairs))
}

/// Returns true if a URL may be a client's id (Client ID Metadata Documents, §3).
pub(crate) fn is_document_url(url: &str) -> bool {
    Parts::of(url).is_some_and(|parts| {
        parts.is_https()
            && !parts.path.is_empty()
            && parts.path != "/"
            && !parts.path.split('/').any(|segment| segment == "." || segment == "..")
            && !url.contains('#')
            && parts.origin().len() < url.len()
            && !url[..parts.origin().len().min(url.len())].contains('@')
            && url.starts_with(&parts.origin())
    })
}

/// Returns true if a browser may be sent back there (OAuth 2.1 §8.4.2).
pub(crate) fn is_redirect_uri(uri: &str) -> bool {
    is_safe(uri) && !uri.contains('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_are_compared_as_texts_but_for_the_slash_of_an_empty_path() {
        for (one, other, same) in [
            ("https://as", "https://as", true),
            ("https://as", "https://as/", true),
            ("https://as:8443/", "https://as:8443", true),
            ("https://as", "https://AS", false),
            ("https://as", "https://as:443", false),
            ("https://as", "https://as//", false),
            ("https://as/t", "https://as/t/", false),
            ("https://as/?x", "https://as?x", false),
            ("https://as", "http://as", false),
            ("as", "as/", false),
            ("", "/", false),
        ] {
            assert_eq!(is_same_issuer(one, other), same, "{one} {other}");
            assert_eq!(is_same_issuer(other, one), same, "{other} {one}");
        }
    }

    #[test]
    fn a_url_is_taken_apart_as_it_is_written() {
        for (url, origin, rest) in [
            ("https://h/mcp", "https://h", "/mcp"),
            ("https://user:pw@H:8443/a/b/?x=1#f", "https://H:8443", "/a/b/?x=1"),
            ("http://[::1]:1", "http://[::1]:1", ""),
            ("https://h/", "https://h", ""),
            ("https://h?x", "https://h", "?x"),
        ] {
            let parts = Parts::of(url).expect(url);
            assert_eq!((parts.origin().as_str(), parts.rest().as_str()), (origin, rest), "{url}");
        }
        for bad in
            ["javascript:alert(1)", "h/x", "ftp://h/", "https://", "https:///x", "https://h:99999/", "http://a b/"]
        {
            assert_eq!(Parts::of(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_https_and_this_machine_are_safe() {
        for (url, safe) in [
            ("https://h/x", true),
            ("HTTPS://h/x", true),
            ("http://localhost:1/x", true),
            ("http://LOCALHOST/x", true),
            ("http://app.localhost/x", true),
            ("http://127.0.0.1/x", true),
            ("http://127.8.0.1/x", true),
            ("http://[::1]/x", true),
            ("http://h/x", false),
            ("http://localhost.evil.example/x", false),
            ("http://localhost@evil.example/x", false),
            ("http://evil.example\\@localhost/x", false),
            ("http://127.0.0.1.evil.example/", false),
            ("javascript://localhost/%0aalert(1)", false),
            ("file://localhost/etc/passwd", false),
            ("data:text/html,x", false),
            ("https://h/\nx", false),
            ("", false),
        ] {
            assert_eq!(is_safe(url), safe, "{url:?}");
        }
    }

    #[test]
    fn a_resource_covers_what_lies_below_it() {
        for (resource, server, covered) in [
            ("https://h/mcp", "https://h/mcp", true),
            ("https://h", "https://h/mcp", true),
            ("https://h/", "https://h/mcp", true),
            ("https://H:443/mcp/", "https://h/mcp", true),
            ("https://h/a", "https://h/a/b?x=1", true),
            ("https://h/a?x=1", "https://h/a?x=1", true),
            ("https://h/a?x=1", "https://h/a?x=2", false),
            ("https://h/mcp#x", "https://h/mcp", false),
            ("https://h/mc", "https://h/mcp", false),
            ("https://h/mcp/x", "https://h/mcp", false),
            ("http://h/mcp", "https://h/mcp", false),
            ("https://h:1/mcp", "https://h/mcp", false),
            ("https://evil.example/mcp", "https://h/mcp", false),
            ("mcp", "https://h/mcp", false),
        ] {
            assert_eq!(covers(resource, server), covered, "{resource} {server}");
        }
    }

    #[test]
    fn pairs_are_added_to_what_is_there() {
        for (url, expected) in [
            ("https://h/a", "https://h/a?x=a+b%2F%26"),
            ("https://h/a?", "https://h/a?x=a+b%2F%26"),
            ("https://h/a?p=1", "https://h/a?p=1&x=a+b%2F%26"),
            ("https://h/a#f", "https://h/a?x=a+b%2F%26#f"),
        ] {
            assert_eq!(with_query(url, [("x", "a b/&")]), expected);
        }
    }
}
