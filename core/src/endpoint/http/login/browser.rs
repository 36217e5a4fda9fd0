//! Showing a page to the user.

use std::net::IpAddr;

use fluent_uri::Uri;

use crate::driver::runtime;
use crate::error::{Error, ErrorKind, Result, shown_url};

/// The longest address that is opened, in bytes: what every launcher takes.
const MAX_URL: usize = 8 * 1024;

/// Opens a page in the user's browser, or, if that is not wanted or does not work, says its address on standard error.
/// No shell sees the address.
///
/// # Errors
/// `Auth` for what is no `https` URL, and no `http` one of this machine: nothing is opened then.
pub(crate) async fn open(url: &str, no_browser: bool) -> Result<()> {
    check(url)?;
    let why = if no_browser {
        None
    } else {
        let address = url.to_owned();
        // Waits for the launcher, for a moment.
        match runtime::handle().spawn_blocking(move || open::that_detached(address)).await {
            Ok(Ok(())) => return Ok(()),
            _ => Some("no browser could be opened; "),
        }
    };
    crate::report::say(format_args!("{}to log in, open this address in a browser:", why.unwrap_or_default()));
    // A line of its own, for programs that look for it.
    crate::report::line(url);
    Ok(())
}

/// Checks that a browser may be sent there: a server may name any address as its login page, and launchers open much
/// more than pages.
///
/// # Errors
/// `Auth` with the reason.
pub(crate) fn check(url: &str) -> Result<()> {
    let refused = |why: &str| {
        let message = format!("the address {} is not opened in a browser: {why}", shown_url(url));
        Err(Error::new(ErrorKind::Auth, message))
    };
    if url.len() > MAX_URL {
        return refused("it is longer than 8 KiB");
    }
    // Takes visible ASCII alone.
    let Ok(parsed) = Uri::parse(url) else { return refused("it is no URL (RFC 3986)") };
    let Some(authority) = parsed.authority().filter(|authority| !authority.host().is_empty()) else {
        return refused("it has no host");
    };
    if authority.has_userinfo() {
        return refused("it has a user before its host");
    }
    let host = authority.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let loopback = address.map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback());
    match parsed.scheme().as_str() {
        scheme if scheme.eq_ignore_ascii_case("https") => Ok(()),
        scheme if scheme.eq_ignore_ascii_case("http") && loopback => Ok(()),
        _ => refused("expected https, or http on this machine"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_are_opened() {
        for url in [
            "https://as.example/authorize?client_id=a&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2F#x",
            "HTTPS://AS.example:8443/",
            "http://localhost:3000/authorize",
            "http://127.0.0.1:3000/authorize",
            "http://[::1]:3000/authorize?a=$(x)&b='",
        ] {
            assert!(check(url).is_ok(), "{url}");
        }
        let long = format!("https://as.example/?{}", "x".repeat(MAX_URL));
        for (url, why) in [
            ("http://as.example/authorize", "expected https"),
            ("http://localhost.example/", "expected https"),
            ("javascript:alert(1)", "no host"),
            ("javascript://as.example/%0aalert(1)", "expected https"),
            ("file:///etc/passwd", "no host"),
            ("file://as.example/x", "expected https"),
            ("ms-settings:x", "no host"),
            ("calc.exe", "no URL"),
            ("--help", "no URL"),
            ("https://", "no host"),
            ("https:as.example", "no host"),
            ("https://google.com@evil.example/", "a user"),
            ("https://as.example/a b", "no URL"),
            ("https://as.example/\"&calc", "no URL"),
            ("https://as.example/\n", "no URL"),
            ("https://as.example/\0", "no URL"),
            ("https://ä.example/", "no URL"),
            ("", "no URL"),
            (&long, "8 KiB"),
        ] {
            let error = check(url).expect_err(url);
            assert!(error.kind() == ErrorKind::Auth && error.message().contains(why), "{url}: {error}");
        }
    }

    #[tokio::test]
    async fn without_a_browser_the_address_is_said() {
        assert!(open("https://as.example/authorize", true).await.is_ok());
        assert!(open("http://as.example/authorize", true).await.is_err());
    }
}
