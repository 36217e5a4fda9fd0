//! Access to the page's server: for the browser that opened the link, and no other page in it.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName, ORIGIN};

const COOKIE_NAME: &str = "tricorn-inspect";
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// A text that nobody guesses.
pub(super) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The secrets of one run.
pub(super) struct Gate {
    /// `127.0.0.1:PORT`
    host: String,
    /// `/…/`: browsers send a cookie to all ports of a host, and only the path keeps other servers from getting it.
    pub(super) base: String,
    cookie: String,
    link: Mutex<Link>,
}

struct Link {
    token: String,
    /// The token that was used last.
    used: Option<String>,
}

/// Reasons to refuse a request, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It was sent to another name than the address that is listened on.
    Host,
    /// Another page, or another program, sent it.
    Origin,
    /// There is no cookie, or another one.
    Cookie,
    /// The link is not the last one, or was used.
    Link,
}

impl Refusal {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Host => "this server answers to its own address only",
            Self::Origin => "this server answers to its own page only",
            Self::Cookie => "open the link that the command has printed",
            Self::Link => "this link is used up: a new one is in the terminal, if it was the last one",
        }
    }
}

impl Gate {
    pub(super) fn new(port: u16) -> Result<Self, getrandom::Error> {
        Ok(Self {
            host: format!("127.0.0.1:{port}"),
            base: format!("/{}/", secret()?),
            cookie: secret()?,
            link: Mutex::new(Link { token: secret()?, used: None }),
        })
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.host)
    }

    /// The link, which opens the page once.
    pub(super) fn link(&self) -> String {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{}{}?token={}", self.origin(), self.base, link.token)
    }

    /// The header that gives a browser its cookie.
    pub(super) fn set_cookie(&self) -> String {
        format!("{COOKIE_NAME}={}; Path={}; HttpOnly; SameSite=Strict", self.cookie, self.base)
    }

    /// Checks the name that a request was sent to. Another one that leads here is a trick to get around the browser's rules.
    pub(super) fn host(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let is_own = hosts.next().is_some_and(|host| host.as_bytes() == self.host.as_bytes()) && hosts.next().is_none();
        if is_own { Ok(()) } else { Err(Refusal::Host) }
    }

    /// Checks that a request comes from the page itself. One that changes something has to say so.
    pub(super) fn page(&self, headers: &HeaderMap, changes: bool) -> Result<(), Refusal> {
        self.host(headers)?;
        match headers.get(ORIGIN) {
            Some(origin) if origin.as_bytes() == self.origin().as_bytes() => {}
            None if !changes => {}
            _ => return Err(Refusal::Origin),
        }
        let is_own = |site: &[u8]| site == b"same-origin" || (site == b"none" && !changes);
        if headers.get(SITE).is_some_and(|site| !is_own(site.as_bytes())) {
            return Err(Refusal::Origin);
        }
        if self.has_cookie(headers) { Ok(()) } else { Err(Refusal::Cookie) }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let all = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs = all.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE_NAME && same(value, &self.cookie))
    }

    /// Uses the link up. Says whether there is a new one now, to be printed: the last one was opened again.
    ///
    /// # Errors
    /// It is not the link, or it was used up before.
    pub(super) fn open(&self, headers: &HeaderMap, token: &str) -> Result<(), (Refusal, bool)> {
        self.host(headers).map_err(|refusal| (refusal, false))?;
        // A link may be followed from another page, but nothing else than a visit is meant by it.
        if headers.get(MODE).is_some_and(|mode| mode.as_bytes() != b"navigate") {
            return Err((Refusal::Origin, false));
        }
        let mut link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        if same(token, &link.token) {
            let Ok(next) = secret() else { return Err((Refusal::Link, false)) };
            link.used = Some(std::mem::replace(&mut link.token, next));
            return Ok(());
        }
        let is_last = link.used.as_deref().is_some_and(|used| same(token, used));
        if is_last {
            link.used = None;
        }
        Err((Refusal::Link, is_last))
    }
}

/// Compares in a time that does not tell how much of it is right.
fn same(given: &str, known: &str) -> bool {
    let differences = given.bytes().zip(known.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == known.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_link_opens_once() {
        let gate = Gate::new(1).expect("random bytes");
        let token = gate.link().split_once("token=").expect("a token").1.to_owned();
        let visit = headers(&[("host", "127.0.0.1:1")]);
        assert_eq!(gate.open(&visit, "x"), Err((Refusal::Link, false)));
        assert_eq!(gate.open(&headers(&[("host", "localhost:1")]), &token), Err((Refusal::Host, false)));
        let image = headers(&[("host", "127.0.0.1:1"), ("sec-fetch-mode", "no-cors")]);
        assert_eq!(gate.open(&image, &token), Err((Refusal::Origin, false)));
        assert_eq!(gate.open(&visit, &token), Ok(()));
        assert_eq!(gate.open(&visit, &token), Err((Refusal::Link, true)), "the terminal shows a new one");
        assert_eq!(gate.open(&visit, &token), Err((Refusal::Link, false)), "but once");
        assert!(!gate.link().ends_with(&token));
    }

    #[test]
    fn only_the_page_itself_is_let_in() {
        let gate = Gate::new(1).expect("random bytes");
        let cookie = format!("other=1; {COOKIE_NAME}={}", gate.cookie);
        let with = |more: &[(&'static str, &str)]| {
            headers(&[&[("host", "127.0.0.1:1"), ("cookie", cookie.as_str())], more].concat())
        };
        assert_eq!(gate.page(&with(&[]), false), Ok(()));
        assert_eq!(
            gate.page(&with(&[]), true),
            Err(Refusal::Origin),
            "what changes something says where it comes from"
        );
        assert_eq!(gate.page(&with(&[("origin", "http://127.0.0.1:1")]), true), Ok(()));
        for origin in ["null", "http://localhost:1", "http://127.0.0.1:2", "https://127.0.0.1:1"] {
            assert_eq!(gate.page(&with(&[("origin", origin)]), false), Err(Refusal::Origin), "{origin}");
        }
        let site = [("origin", "http://127.0.0.1:1"), ("sec-fetch-site", "same-site")];
        assert_eq!(gate.page(&with(&site), true), Err(Refusal::Origin));
        assert_eq!(gate.page(&headers(&[("host", "127.0.0.1:1")]), false), Err(Refusal::Cookie));
        assert_eq!(gate.page(&headers(&[("host", "evil.example"), ("cookie", &cookie)]), false), Err(Refusal::Host));
        let two = headers(&[("host", "127.0.0.1:1"), ("host", "evil.example"), ("cookie", &cookie)]);
        assert_eq!(gate.page(&two, false), Err(Refusal::Host));
    }
}
