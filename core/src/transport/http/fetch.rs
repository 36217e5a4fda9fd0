//! Carries out what authorization wants fetched, and refuses what a stranger should not make this program ask for.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{LOCATION, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use tokio::sync::OnceCell;
use tower_service::Service;

use crate::auth::fetch::{Fetch, Fetched};
use crate::auth::url::{Parts, is_safe};
use crate::error::shown_url;

/// Time for one exchange, redirects and name resolution included.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest answer.
const MAX_BODY: usize = 1 << 20;
const MAX_REDIRECTS: usize = 3;

/// Which addresses may be asked.
#[derive(Debug)]
pub(crate) struct FetchPolicy {
    /// Whose metadata leads there; `None` where the program itself has named all addresses.
    server: Option<String>,
    /// Origins that the program itself has named.
    named: Vec<String>,
    /// Where the server is.
    near: OnceCell<Vec<Reach>>,
}

impl FetchPolicy {
    /// For addresses that the program was given by its user.
    pub(crate) fn named() -> Self {
        Self { server: None, named: Vec::new(), near: OnceCell::new() }
    }

    /// For addresses that this server leads to: no private ones, unless the server is at one. What the program itself was
    /// given (`named`, URLs) is not held against it.
    pub(crate) fn of_server<'a>(server: &str, named: impl IntoIterator<Item = &'a str>) -> Self {
        let named = named.into_iter().filter_map(|url| Parts::of(url).map(|parts| parts.origin())).collect();
        Self { server: Some(server.to_owned()), named, near: OnceCell::new() }
    }

    /// The addresses of a URL's host, all of them if they may be asked.
    async fn addresses(&self, parts: &Parts<'_>) -> Result<Vec<SocketAddr>, String> {
        let addresses = resolved(parts).await?;
        let Some(server) = &self.server else { return Ok(addresses) };
        let own = |url: &str| Parts::of(url).is_some_and(|named| named.is_same_origin(parts));
        if self.named.iter().any(|url| own(url)) || own(server) {
            return Ok(addresses);
        }
        for address in &addresses {
            let reach = Reach::of(address.ip());
            if reach == Reach::Public {
                continue;
            }
            let near = self.near.get_or_init(|| near(server)).await;
            if !reach.is_near(near) {
                return Err(format!(
                    "refused: {} is a {} address, and the server that leads there is elsewhere",
                    address.ip(),
                    reach.name()
                ));
            }
        }
        Ok(addresses)
    }
}

/// From where an address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    LinkLocal,
    Loopback,
    Nowhere,
}

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [127, ..] => Self::Loopback,
            [169, 254, ..] => Self::LinkLocal,
            // 100.64.0.0/10 is shared by the customers of a carrier.
            [100, second, ..] if second & 0xc0 == 64 => Self::Private,
            _ if address.is_private() => Self::Private,
            [0, ..] | [192, 0, 0 | 2, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Self::Nowhere,
            [224..=255, ..] => Self::Nowhere,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let inner = |high: u16, low: u16| {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        };
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 1] => Self::Loopback,
            [0, 0, 0, 0, 0, 0, ..] => Self::Nowhere,
            // An address of the older kind inside: NAT64 and 6to4.
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
            [0x2002, high, low, ..] => inner(high, low),
            [first, ..] if first & 0xfe00 == 0xfc00 => Self::Private,
            [first, ..] if first & 0xffc0 == 0xfe80 => Self::LinkLocal,
            [0x2001, 0xdb8, ..] => Self::Nowhere,
            [first, ..] if first & 0xe000 == 0x2000 => Self::Public,
            _ => Self::Nowhere,
        }
    }

    /// Whether a server may lead there that is at these addresses. All of them count, as anybody can give a name of his own
    /// one more.
    fn is_near(self, server: &[Self]) -> bool {
        let has = |reach: Self| server.contains(&reach);
        match self {
            Self::Public => true,
            Self::Nowhere => false,
            Self::Private => (has(Self::Private) || has(Self::Loopback)) && !has(Self::Public) && !has(Self::Nowhere),
            Self::LinkLocal | Self::Loopback => !server.is_empty() && server.iter().all(|own| *own == self),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Loopback => "loopback",
            Self::Nowhere => "reserved",
        }
    }
}

async fn near(server: &str) -> Vec<Reach> {
    let Some(parts) = Parts::of(server) else { return Vec::new() };
    let addresses = resolved(&parts).await.unwrap_or_default();
    addresses.into_iter().map(|address| Reach::of(address.ip())).collect()
}

async fn resolved(parts: &Parts<'_>) -> Result<Vec<SocketAddr>, String> {
    let host = parts.host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((host, parts.port())).await.map_err(|e| format!("{host}: {e}"))?;
    let found: Vec<_> = found.collect();
    if found.is_empty() { Err(format!("{host}: no address")) } else { Ok(found) }
}

/// Gives the addresses that were looked at, so that no second answer of the name server's can be another one.
#[derive(Clone)]
struct Known(Vec<SocketAddr>);

impl Service<Name> for Known {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(self.0.clone().into_iter()))
    }
}

/// One exchange: 10 s in all, answers of at most 1 MiB; of redirects only those of a document are followed, three at most
/// and each by the same rules.
///
/// # Errors
/// Why there is no answer, for people.
pub(crate) async fn fetch(fetch: &Fetch, policy: &FetchPolicy) -> Result<Fetched, String> {
    match tokio::time::timeout(DEADLINE, followed(fetch, policy)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
    }
}

async fn followed(fetch: &Fetch, policy: &FetchPolicy) -> Result<Fetched, String> {
    let mut url = fetch.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let answer = once(fetch, &url, policy).await?;
        if !answer.status().is_redirection() || fetch.body.is_some() {
            return collected(answer).await;
        }
        let Some(location) = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()) else {
            return collected(answer).await;
        };
        url = resolved_against(&url, location)
            .ok_or_else(|| format!("a redirect that leads nowhere: {}", shown_url(location)))?;
    }
    Err(format!("more than {MAX_REDIRECTS} redirects"))
}

fn resolved_against(base: &str, reference: &str) -> Option<String> {
    let base = base.split_once('#').map_or(base, |(base, _)| base);
    let base = fluent_uri::Uri::parse(base).ok()?;
    Some(fluent_uri::UriRef::parse(reference.trim()).ok()?.resolve_against(&base).ok()?.into_string())
}

async fn once(fetch: &Fetch, url: &str, policy: &FetchPolicy) -> Result<Response<Incoming>, String> {
    if !is_safe(url) {
        return Err(format!("refused: {} is neither https nor on this machine", shown_url(url)));
    }
    let (Some(parts), Ok(uri)) = (Parts::of(url), url.parse::<Uri>()) else {
        return Err(format!("{} is no URL", shown_url(url)));
    };
    let addresses = policy.addresses(&parts).await?;
    let mut request = Request::builder().method(fetch.method()).uri(uri);
    request = request.header(USER_AGENT, concat!("tricorn/", env!("CARGO_PKG_VERSION")));
    let moved = url != fetch.url;
    for (name, value) in fetch.headers.iter().filter(|(name, _)| !moved || *name == "accept") {
        request = request.header(*name, value);
    }
    let body = match &fetch.body {
        Some((media, text)) => {
            request = request.header(http::header::CONTENT_TYPE, *media);
            Bytes::from(text.clone())
        }
        None => Bytes::new(),
    };
    let request =
        request.body(Full::new(body)).map_err(|_| "a header has characters that none can carry".to_owned())?;
    let mut http = HttpConnector::new_with_resolver(Known(addresses));
    http.set_nodelay(true);
    http.enforce_http(false);
    let tls = HttpsConnectorBuilder::new()
        .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
        .map_err(|e| format!("TLS: {e}"))?;
    let connector = tls.https_or_http().enable_http1().wrap_connector(http);
    let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build::<_, Full<Bytes>>(connector);
    client.request(request).await.map_err(|e| super::client::causes(&e))
}

async fn collected(answer: Response<Incoming>) -> Result<Fetched, String> {
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|e| {
        if e.is::<http_body_util::LengthLimitError>() {
            return format!("the answer is longer than {MAX_BODY} bytes");
        }
        format!("the answer broke off: {}", super::client::causes(&*e))
    })?;
    let headers = head.headers.iter();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Ok(Fetched { status: head.status.as_u16(), headers: headers.collect(), body: body.to_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_by_their_reach() {
        for (address, reach) in [
            ("8.8.8.8", Reach::Public),
            ("2606:4700::1111", Reach::Public),
            ("127.0.0.1", Reach::Loopback),
            ("127.9.9.9", Reach::Loopback),
            ("::1", Reach::Loopback),
            ("::ffff:127.0.0.1", Reach::Loopback),
            ("10.1.2.3", Reach::Private),
            ("172.31.0.1", Reach::Private),
            ("172.32.0.1", Reach::Public),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("100.128.0.1", Reach::Public),
            ("fd00::1", Reach::Private),
            ("64:ff9b::a00:1", Reach::Private),
            ("2002:7f00:1::", Reach::Loopback),
            ("169.254.169.254", Reach::LinkLocal),
            ("::ffff:169.254.169.254", Reach::LinkLocal),
            ("fe80::1", Reach::LinkLocal),
            ("0.0.0.0", Reach::Nowhere),
            ("::", Reach::Nowhere),
            ("::7f00:1", Reach::Nowhere),
            ("224.0.0.1", Reach::Nowhere),
            ("255.255.255.255", Reach::Nowhere),
            ("192.0.2.1", Reach::Nowhere),
            ("ff02::1", Reach::Nowhere),
        ] {
            assert_eq!(Reach::of(address.parse().expect(address)), reach, "{address}");
        }
    }

    #[test]
    fn all_addresses_of_a_server_say_where_it_is() {
        use Reach::{LinkLocal, Loopback, Nowhere, Private, Public};
        for (server, reach, near) in [
            (&[Private][..], Private, true),
            (&[Loopback], Private, true),
            (&[Private, Loopback, LinkLocal], Private, true),
            (&[Public, Private], Private, false),
            (&[Nowhere, Private], Private, false),
            (&[LinkLocal], Private, false),
            (&[Loopback, Loopback], Loopback, true),
            (&[Loopback, Public], Loopback, false),
            (&[Loopback, Private], Loopback, false),
            (&[Public, LinkLocal], LinkLocal, false),
            (&[LinkLocal], LinkLocal, true),
            (&[Nowhere], Nowhere, false),
            (&[], Private, false),
            (&[], Loopback, false),
            (&[], Public, true),
        ] {
            assert_eq!(reach.is_near(server), near, "{server:?} {reach:?}");
        }
    }

    #[tokio::test]
    async fn a_server_elsewhere_leads_to_no_private_address() {
        let ok = |server: &'static str, url: &'static str| async move {
            let policy = FetchPolicy::of_server(server, ["https://10.0.0.9/token"]);
            policy.addresses(&Parts::of(url).expect(url)).await.is_ok()
        };
        for (server, url, allowed) in [
            ("https://8.8.8.8/mcp", "https://9.9.9.9/", true),
            ("https://8.8.8.8/mcp", "https://127.0.0.1/", false),
            ("https://8.8.8.8/mcp", "https://169.254.169.254/", false),
            ("https://8.8.8.8/mcp", "https://10.0.0.1/", false),
            ("https://8.8.8.8/mcp", "https://10.0.0.9/other", true),
            ("https://8.8.8.8/mcp", "https://10.0.0.9:8443/other", false),
            ("https://10.0.0.1/mcp", "https://10.0.0.2/", true),
            ("https://10.0.0.1/mcp", "https://127.0.0.1/", false),
            ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/", true),
            ("http://127.0.0.1:1/mcp", "https://10.0.0.1/", true),
            ("http://127.0.0.1:1/mcp", "https://169.254.169.254/", false),
            ("http://127.0.0.1:1/mcp", "http://[::1]:2/", true),
        ] {
            assert_eq!(ok(server, url).await, allowed, "{server} {url}");
        }
    }

    #[tokio::test]
    async fn only_safe_urls_are_asked() {
        let policy = FetchPolicy::named();
        for url in ["http://example.com/", "ftp://example.com/", "file:///etc/passwd", ""] {
            let error = fetch(&Fetch::get(url), &policy).await.expect_err(url);
            assert!(error.starts_with("refused: "), "{error}");
        }
    }

    #[test]
    fn redirects_are_resolved() {
        for (location, to) in [
            ("/b", Some("https://h/b")),
            ("b", Some("https://h/a/b")),
            ("//other/x", Some("https://other/x")),
            ("http://other/", Some("http://other/")),
            ("a b", None),
        ] {
            assert_eq!(resolved_against("https://h/a/?x#f", location).as_deref(), to, "{location}");
        }
    }
}
