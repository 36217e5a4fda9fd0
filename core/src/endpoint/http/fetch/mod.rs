//! Carries out what authorization wants fetched, and refuses what a stranger should not make this program ask for.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::header::{LOCATION, USER_AGENT};
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use super::client::{Tcp, carried};
use super::network::{Network, Way, advised, with_port};
use super::reach::{Reach, Whereabouts};
use crate::auth::fetch::{Fetch, Fetched, Unfetched};
use crate::auth::url::{Parts, is_safe};
use crate::client::HttpBody;
use crate::error::{Error, shown_url};
use crate::jsonrpc::heavier_than;

/// Time for one exchange, redirects and name resolution included.
const DEADLINE: Duration = Duration::from_secs(10);
/// The longest answer.
const MAX_BODY: usize = 1 << 20;
/// The most memory that its values may take once they are decoded, by estimate.
pub(super) const MAX_DECODED: usize = 8 << 20;
const MAX_REDIRECTS: usize = 3;

/// Reason for a missing answer to one request.
#[derive(Debug)]
struct Unasked {
    /// For people.
    why: String,
    /// The address is one that is not asked.
    refused: bool,
}

impl Unasked {
    fn refused(why: impl std::fmt::Display) -> Self {
        Self { why: format!("refused: {why}"), refused: true }
    }
}

impl From<String> for Unasked {
    fn from(why: String) -> Self {
        Self { why, refused: false }
    }
}

/// Rules for the addresses that may be asked.
pub(crate) struct FetchPolicy {
    /// Server whose metadata leads there; `None` where the program itself has named all addresses.
    server: Option<Server>,
    /// Origins that the program itself has named.
    named: Vec<String>,
    names: Names,
    network: Network,
}

/// A server whose metadata is believed as far as it does not lead to places that it has nothing to do with.
struct Server {
    url: String,
    place: Arc<dyn Whereabouts>,
}

impl FetchPolicy {
    /// For addresses that the program was given by its user.
    pub(crate) fn named() -> Self {
        Self { server: None, named: Vec::new(), names: Names::System, network: Network::ordinary() }
    }

    /// For addresses that the server at `url` leads to: no private ones, unless the server is at one. URLs that the
    /// program itself was given (`named`) are not held against it.
    pub(crate) fn of_server<'a>(
        url: &str,
        place: Arc<dyn Whereabouts>,
        named: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let named = named.into_iter().filter_map(|url| Parts::of(url).map(|parts| parts.origin())).collect();
        let server = Some(Server { url: url.to_owned(), place });
        Self { server, named, names: Names::System, network: Network::ordinary() }
    }

    /// The same, by this way out.
    #[must_use]
    pub(crate) fn over(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Returns true if a URL is asked for through a proxy: it finds the host's addresses, and is there to say where
    /// nobody may go. A host that is an address by itself, or means this machine, is looked at all the same.
    fn is_proxied(&self, uri: &Uri, parts: &Parts<'_>) -> bool {
        let host = parts.host.trim_start_matches('[').trim_end_matches(']');
        parts.is_https()
            && !parts.is_loopback()
            && host.parse::<std::net::IpAddr>().is_err()
            && self.network.is_proxied(uri)
    }

    /// Refuses what the program's own transport should not be made to ask for: it finds the addresses of names itself.
    fn check_host(&self, parts: &Parts<'_>) -> Result<(), Unasked> {
        let reach = |parts: &Parts<'_>| match parts.host.trim_start_matches('[').trim_end_matches(']').parse() {
            Ok(address) => Reach::of(address),
            Err(_) if parts.is_loopback() => Reach::Loopback,
            Err(_) if is_odd_address(parts.host) => Reach::Nowhere,
            Err(_) => Reach::Public,
        };
        let Some(server) = &self.server else { return Ok(()) };
        let is_at = |url: &str| Parts::of(url).is_some_and(|named| named.is_same_origin(parts));
        let near = Parts::of(&server.url).map(|server| reach(&server));
        let there = reach(parts);
        if is_at(&server.url) || self.named.iter().any(|url| is_at(url)) || there.is_near(near.as_slice()) {
            return Ok(());
        }
        Err(Unasked::refused(format_args!(
            "{} is a {} address, and the server that leads there is elsewhere",
            parts.host,
            there.name()
        )))
    }

    /// The addresses of a URL's host that may be asked. They are the ones that are connected to: a name that is asked for
    /// again may have others by then (DNS rebinding).
    async fn addresses(&self, parts: &Parts<'_>) -> Result<Vec<SocketAddr>, Unasked> {
        let mut addresses = self.names.resolved(parts).await?;
        let Some(server) = &self.server else { return Ok(addresses) };
        let is_at = |url: &str| Parts::of(url).is_some_and(|named| named.is_same_origin(parts));
        let reach = |address: &SocketAddr| Reach::of(address.ip());
        if self.named.iter().any(|url| is_at(url)) || addresses.iter().all(|address| reach(address) == Reach::Public) {
            return Ok(addresses);
        }
        // Not what its name stands for now, but where it was when it was connected to.
        let near = server.place.reaches().await;
        let refused = |address: &SocketAddr| {
            let (address, name) = (address.ip(), reach(address).name());
            Unasked::refused(format_args!(
                "{address} is a {name} address, and the server that leads there is elsewhere"
            ))
        };
        if is_at(&server.url) {
            let first = addresses.first().map(&refused);
            addresses.retain(|address| reach(address) == Reach::Public || near.contains(&reach(address)));
            return match first {
                Some(first) if addresses.is_empty() => Err(first),
                _ => Ok(addresses),
            };
        }
        match addresses.iter().find(|address| !reach(address).is_near(&near)) {
            Some(address) => Err(refused(address)),
            None => Ok(addresses),
        }
    }
}

/// Returns true if many resolvers take a host for an IPv4 address although it is not written as one: `127.1`,
/// `0x7f000001`.
fn is_odd_address(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit())
        || last.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"))
}

#[cfg(test)]
type Answers = dyn Fn(&str) -> Vec<SocketAddr> + Send + Sync;

/// Resolver of names.
enum Names {
    System,
    #[cfg(test)]
    Given(Box<Answers>),
}

impl Names {
    async fn resolved(&self, parts: &Parts<'_>) -> Result<Vec<SocketAddr>, String> {
        let host = parts.host.trim_start_matches('[').trim_end_matches(']');
        let found: Vec<_> = match self {
            Self::System => {
                let found = tokio::net::lookup_host((host, parts.port())).await;
                found.map_err(|e| format!("{host}: {e}"))?.collect()
            }
            #[cfg(test)]
            Self::Given(answer) => answer(host),
        };
        if found.is_empty() { Err(format!("{host}: no address")) } else { Ok(found) }
    }
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
/// The reason why there is no answer, for people.
pub(crate) async fn fetch(fetch: &Fetch, policy: &FetchPolicy) -> Result<Fetched, Unfetched> {
    match tokio::time::timeout(DEADLINE, followed(fetch, policy)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs()).into()),
    }
}

async fn followed(fetch: &Fetch, policy: &FetchPolicy) -> Result<Fetched, Unfetched> {
    let mut url = fetch.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        // That a redirect leads where nobody goes says something of the first address.
        let led = |Unasked { why, refused }| Unfetched { answered: url != fetch.url && refused, why };
        let answer = once(fetch, &url, policy).await.map_err(led)?;
        if !answer.status.is_redirection() || fetch.body.is_some() {
            return collected(answer).await;
        }
        let Some(location) = answer.headers.get(LOCATION).and_then(|value| value.to_str().ok()) else {
            return collected(answer).await;
        };
        url = resolved_against(&url, location)
            .ok_or_else(|| Unfetched::answered(format!("a redirect that leads nowhere: {}", shown_url(location))))?;
    }
    Err(Unfetched::answered(format!("more than {MAX_REDIRECTS} redirects")))
}

fn resolved_against(base: &str, reference: &str) -> Option<String> {
    let base = base.split_once('#').map_or(base, |(base, _)| base);
    let base = fluent_uri::Uri::parse(base).ok()?;
    Some(fluent_uri::UriRef::parse(reference.trim()).ok()?.resolve_against(&base).ok()?.into_string())
}

/// An answer whose body is still to be read.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: HttpBody,
}

async fn once(fetch: &Fetch, url: &str, policy: &FetchPolicy) -> Result<Answer, Unasked> {
    if !is_safe(url) {
        return Err(Unasked::refused(format_args!("{} is neither https nor on this machine", shown_url(url))));
    }
    let (Some(parts), Ok(uri)) = (Parts::of(url), url.parse::<Uri>()) else {
        return Err(format!("{} is no URL", shown_url(url)).into());
    };
    // A proxy for what is in the clear is of no use: that stays on this machine.
    let tunnels = parts.is_https() && policy.network.is_proxied(&uri);
    let via = policy.network.named_proxy(&uri).filter(|_| tunnels);
    let transport = policy.network.transport.clone();
    if transport.is_some() {
        policy.check_host(&parts)?;
    }
    let addresses = if transport.is_some() || policy.is_proxied(&uri, &parts) {
        Vec::new()
    } else {
        policy.addresses(&parts).await?
    };
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
    if let Some(transport) = transport {
        let answer = carried::send(&*transport, request, url.to_owned()).await;
        let (status, headers, body) = answer.map_err(|e| e.message().to_owned())?;
        return Ok(Answer { status, headers, body });
    }
    if tunnels {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        match policy.network.way(request.uri(), http)? {
            Way::Tunnel(tunnel) => return Ok(asked(policy.network.secured(tunnel)?, request, via).await?),
            Way::Socks(socks) => return Ok(asked(policy.network.secured(socks)?, request, via).await?),
            Way::Direct | Way::Forward(..) => {}
        }
    }
    let mut http = HttpConnector::new_with_resolver(Known(addresses));
    http.set_nodelay(true);
    http.enforce_http(false);
    Ok(asked(policy.network.secured(http)?, request, None).await?)
}

/// `via` names the proxy that the connector goes through.
async fn asked<C>(connector: C, request: Request<Full<Bytes>>, via: Option<String>) -> Result<Answer, String>
where
    C: Service<Uri, Response = Tcp, Error = Box<dyn std::error::Error + Send + Sync>>,
{
    // A SOCKS proxy has to be told a port.
    let usual = if request.uri().scheme_str() == Some("https") { 443 } else { 80 };
    let place = with_port(request.uri(), usual);
    let answer = super::client::once(connector, place, request).await;
    let (status, headers, body) = answer.map_err(|why| {
        advised(match via {
            Some(proxy) => super::client::through(&why, &proxy),
            None => why,
        })
    })?;
    Ok(Answer { status, headers, body })
}

async fn collected(answer: Answer) -> Result<Fetched, Unfetched> {
    let Answer { status, headers, body } = answer;
    let body = Limited::new(StreamBody::new(body.map_ok(Frame::data)), MAX_BODY).collect().await;
    let body = body.map_err(|e| {
        if e.is::<http_body_util::LengthLimitError>() {
            return Unfetched::answered(format!("the answer is longer than {MAX_BODY} bytes"));
        }
        let why = e.downcast_ref::<Error>().map_or_else(|| super::client::causes(&*e), |e| e.message().to_owned());
        format!("the answer broke off: {why}").into()
    })?;
    let body = body.to_bytes();
    if heavier_than(&body, MAX_DECODED).is_some() {
        return Err(Unfetched::answered("the answer has too many values".to_owned()));
    }
    let headers = headers.iter();
    let headers = headers.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    Ok(Fetched { status: status.as_u16(), headers: headers.collect(), body })
}

#[cfg(test)]
mod tests;
