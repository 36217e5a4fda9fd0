//! The way out of this machine, for the client's requests and for those of authorization: the proxy, the trusted
//! certificates, and our own.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use http::header::HeaderValue;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::client::{ClientOptions, HttpTransport};
use crate::error::{Error, ErrorKind, Result, shortened, shown_url};
use crate::idiom::named;

/// Way out of this machine, by the options and the environment.
#[derive(Clone)]
pub(crate) struct Network {
    proxies: Arc<Matcher>,
    /// They are the environment's, which means other machines.
    of_environment: bool,
    /// Faults of the variables that name proxies. A proxy of such a name stands for it: nothing goes past a proxy
    /// because nobody can read where that is.
    broken: Arc<Vec<String>>,
    tls: Tls,
    /// The program carries it itself.
    pub(crate) transport: Option<Arc<dyn HttpTransport>>,
}

#[derive(Clone)]
enum Tls {
    /// That of every program on this machine.
    Ordinary,
    /// With authorities or a certificate of one's own.
    Own(Arc<ClientConfig>),
}

/// Way to an origin.
pub(crate) enum Way {
    Direct,
    /// A proxy for requests in the clear: each names the whole URL, and shows this.
    Forward(Uri, Option<HeaderValue>),
    /// A proxy that leads a connection on (`CONNECT`).
    Tunnel(Tunnel<HttpConnector>),
    /// A proxy that knows nothing of HTTP.
    Socks(SocksV5<HttpConnector>),
}

impl Network {
    /// As the environment has it.
    pub(crate) fn ordinary() -> Self {
        let (proxies, broken) = environment(|name| std::env::var(name).ok());
        Self {
            proxies: Arc::new(proxies),
            of_environment: true,
            broken: Arc::new(broken),
            tls: Tls::Ordinary,
            transport: None,
        }
    }

    /// As a client's options have it, which stand for what the environment says.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) naming the option that is wrong.
    pub(crate) fn of(options: &ClientOptions) -> Result<Self> {
        let transport = options.http_transport.get();
        let given = [
            ("proxy", options.proxy.is_some()),
            ("ca", options.ca.is_some()),
            ("cert", options.cert.is_some()),
            ("key", options.key.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| transport.is_some() && *is_given) {
            let why = "with an HTTP transport of the program's own, say it there: that makes the connections";
            return Err(Error::misuse(format!("option \"{}\": {why}", named(name))));
        }
        let mut broken = Vec::new();
        let proxies = match options.proxy.as_deref() {
            None => {
                let (proxies, wrong) = environment(|name| std::env::var(name).ok());
                broken = wrong;
                proxies
            }
            Some("") => Matcher::builder().build(),
            Some(proxy) => {
                let is_https = proxy.trim().to_ascii_lowercase().starts_with("https://");
                let Some(usable) = usable(proxy).filter(|_| !is_https) else {
                    return Err(Error::misuse(format!(
                        "option \"{}\": {EXPECTED}, got {}",
                        named("proxy"),
                        shown_url(proxy)
                    )));
                };
                Matcher::builder().all(usable).build()
            }
        };
        let tls = match (&options.ca, &options.cert, &options.key) {
            (None, None, None) => Tls::Ordinary,
            (ca, cert, key) => Tls::Own(Arc::new(own(ca.as_deref(), cert.as_deref(), key.as_deref())?)),
        };
        let of_environment = options.proxy.is_none();
        Ok(Self { proxies: Arc::new(proxies), of_environment, broken: Arc::new(broken), tls, transport })
    }

    fn intercept(&self, to: &Uri) -> Option<Intercept> {
        let is_meant = !self.of_environment || !is_this_machine(to);
        is_meant.then(|| self.proxies.intercept(to)).flatten()
    }

    /// Returns true if a URL is asked for through a proxy.
    pub(crate) fn is_proxied(&self, to: &Uri) -> bool {
        self.intercept(to).is_some()
    }

    /// The proxy through which a URL is asked for, as part of a sentence and without what it is shown.
    pub(crate) fn named_proxy(&self, to: &Uri) -> Option<String> {
        self.intercept(to).map(|proxy| shown_url(proxy.uri().to_string().trim_end_matches('/')))
    }

    /// Returns the way to this URL; `direct` makes the connections.
    ///
    /// # Errors
    /// A proxy that cannot be used, for people.
    pub(crate) fn way(&self, to: &Uri, direct: HttpConnector) -> Result<Way, String> {
        let Some(proxy) = self.intercept(to) else { return Ok(Way::Direct) };
        let at = proxy.uri().clone();
        let broken = at.host().and_then(|host| host.strip_suffix(BROKEN)?.parse::<usize>().ok());
        if let Some(why) = broken.and_then(|number| self.broken.get(number)) {
            return Err(why.clone());
        }
        match (at.scheme_str(), to.scheme_str()) {
            (Some("http"), Some("https")) => {
                let tunnel = Tunnel::new(at, direct);
                Ok(Way::Tunnel(match proxy.basic_auth() {
                    Some(auth) => tunnel.with_auth(auth.clone()),
                    None => tunnel,
                }))
            }
            (Some("http"), _) => Ok(Way::Forward(at, proxy.basic_auth().cloned())),
            (Some("socks5" | "socks5h"), _) => {
                // The proxy finds the host's addresses: asked for here, they would hold up the thread.
                let socks = SocksV5::new(with_port(&at, 1080), direct);
                Ok(Way::Socks(match proxy.raw_auth() {
                    Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                    None => socks,
                }))
            }
            (scheme, _) => {
                let scheme = scheme.unwrap_or_default();
                Err(format!(
                    "a proxy is spoken to over http or socks5, and not over {scheme}{}: HTTPS_PROXY, HTTP_PROXY or \
                     ALL_PROXY names it, and the option \"{}\" another one, or \"\" for none",
                    by(&proxy),
                    named("proxy")
                ))
            }
        }
    }

    /// Adds TLS, where the URL wants it.
    ///
    /// # Errors
    /// The reason why there is none, for people.
    pub(crate) fn secured<C>(&self, connector: C) -> Result<HttpsConnector<C>, String> {
        Ok(HttpsConnector::from((connector, self.config()?)))
    }

    /// The same, and offers HTTP/2 besides.
    ///
    /// # Errors
    /// As [`secured`](Self::secured).
    pub(crate) fn secured_for_exchanges<C>(&self, connector: C) -> Result<HttpsConnector<C>, String> {
        let mut config = (*self.config()?).clone();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(HttpsConnector::from((connector, config)))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        match &self.tls {
            Tls::Own(config) => Ok(config.clone()),
            Tls::Ordinary => ordinary(),
        }
    }
}

/// The end of a name that stands for a variable: no host has one (RFC 6761).
const BROKEN: &str = ".proxy.invalid";

const EXPECTED: &str = "expected a URL with http:// or socks5:// (what a user or a password has of \"/\", \"?\" and \"#\" has to \
                        be percent-encoded)";

/// The proxies that the environment names, and what is wrong with those variables that cannot be used.
fn environment(read: impl Fn(&str) -> Option<String>) -> (Matcher, Vec<String>) {
    let variable = |names: &[&'static str]| {
        names.iter().find_map(|name| read(name).filter(|value| !value.trim().is_empty()).map(|value| (*name, value)))
    };
    let mut broken = Vec::new();
    let mut proxy = |names: &[&'static str]| {
        let (name, value) = variable(names)?;
        Some(usable(&value).unwrap_or_else(|| {
            broken.push(format!("the variable {name}: {EXPECTED}, got {}", shown_url(&value)));
            format!("http://{}{BROKEN}", broken.len() - 1)
        }))
    };
    // Whoever asks a CGI program sets HTTP_PROXY by the header `Proxy`.
    let http: &[&str] = if read("REQUEST_METHOD").is_some() { &["http_proxy"] } else { &["http_proxy", "HTTP_PROXY"] };
    let mut matcher = Matcher::builder();
    if let Some(all) = proxy(&["all_proxy", "ALL_PROXY"]) {
        matcher = matcher.all(all);
    }
    if let Some(http) = proxy(http) {
        matcher = matcher.http(http);
    }
    if let Some(https) = proxy(&["https_proxy", "HTTPS_PROXY"]) {
        matcher = matcher.https(https);
    }
    if let Some((_, none)) = variable(&["no_proxy", "NO_PROXY"]) {
        let hosts = none.split(',').map(str::trim).map(|host| host.strip_prefix("*.").unwrap_or(host));
        matcher = matcher.no(hosts.collect::<Vec<_>>().join(","));
    }
    (matcher.build(), broken)
}

/// A proxy's URL as it can be read, with what people write in passwords encoded; `None` where it is none.
fn usable(given: &str) -> Option<String> {
    const SPECIAL: percent_encoding::AsciiSet = percent_encoding::CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'@')
        .add(b'[')
        .add(b'\\')
        .add(b']')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}');
    let given = given.trim();
    let (scheme, rest) = given.split_once("://").unwrap_or(("http", given));
    let scheme = scheme.to_ascii_lowercase();
    // No way leads to the last one, which is said when it is to be used.
    if !matches!(scheme.as_str(), "http" | "socks5" | "socks5h" | "https") {
        return None;
    }
    let (user, host) = match rest.rsplit_once('@') {
        Some((user, host)) if !user.contains(['/', '?', '#']) => {
            (format!("{}@", percent_encoding::utf8_percent_encode(user, &SPECIAL)), host)
        }
        Some(_) => return None,
        None => (String::new(), rest),
    };
    let url: Uri = format!("{scheme}://{user}{}", host.trim_end_matches('/')).parse().ok()?;
    url.host().filter(|host| !host.is_empty()).map(|_| url.to_string())
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = |address: std::net::IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// Returns the same with a port, where it names none: a SOCKS connector would choose one itself then.
pub(crate) fn with_port(uri: &Uri, port: u16) -> Uri {
    let (Some(host), None) = (uri.host(), uri.port()) else { return uri.clone() };
    let Ok(authority) = format!("{host}:{port}").parse() else { return uri.clone() };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Advice where a certificate is not trusted, behind why a connection failed.
pub(crate) fn advised(why: String) -> String {
    if !why.contains("UnknownIssuer") {
        return why;
    }
    let option = named("ca");
    format!(
        "{why}: nobody here trusts its authority; name that in the option \"{option}\", SSL_CERT_FILE or NODE_EXTRA_CA_CERTS"
    )
}

/// Names the address of a proxy, as part of a sentence.
pub(crate) fn by(proxy: &Intercept) -> String {
    format!(" ({})", shown_url(&proxy.uri().to_string()))
}

/// The variables that name authorities.
const VARIABLES: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

type Said = [Option<OsString>; VARIABLES.len()];

/// Returns the configuration of most connections, read once for each state of the environment.
fn ordinary() -> Result<Arc<ClientConfig>, String> {
    static KEPT: Mutex<Option<(Said, Arc<ClientConfig>)>> = Mutex::new(None);
    let said = VARIABLES.map(std::env::var_os);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((before, config)) = &*kept
        && *before == said
    {
        return Ok(config.clone());
    }
    let config = builder()?.with_root_certificates(authorities()).with_no_client_auth();
    let config = Arc::new(config);
    *kept = Some((said, config.clone()));
    Ok(config)
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(|e| format!("TLS: {e}"))
}

/// Those that browsers know, those of this machine, and those of the environment. One that cannot be read is passed over: a
/// connection that needs it says so.
fn authorities() -> RootCertStore {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    // `SSL_CERT_FILE` and `SSL_CERT_DIR` are seen to there.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = std::env::var_os("NODE_EXTRA_CA_CERTS").filter(|file| !file.is_empty())
        && let Ok(found) = CertificateDer::pem_file_iter(file)
    {
        roots.add_parsable_certificates(found.flatten());
    }
    roots
}

fn own(ca: Option<&str>, cert: Option<&str>, key: Option<&str>) -> Result<ClientConfig> {
    let wrong =
        |name: &'static str, why: &dyn std::fmt::Display| Error::misuse(format!("option \"{}\": {why}", named(name)));
    let mut roots = authorities();
    if let Some(given) = ca {
        let found = certificates("ca", given)?;
        for certificate in found {
            roots.add(certificate).map_err(|e| wrong("ca", &e))?;
        }
    }
    let config = builder().map_err(|e| Error::new(ErrorKind::Transport, e))?.with_root_certificates(roots);
    let Some(given) = cert else {
        return match key {
            Some(_) => Err(wrong("key", &"expected \"cert\" besides, the certificate that it belongs to")),
            None => Ok(config.with_no_client_auth()),
        };
    };
    let (name, text) = match key {
        Some(key) => ("key", pem("key", key)?),
        // Many a file holds both.
        None => ("cert", pem("cert", given)?),
    };
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|e| wrong(name, &format!("no private key in PEM ({e})")))?;
    config.with_client_auth_cert(certificates("cert", given)?, key).map_err(|e| wrong("cert", &e))
}

/// The certificates of an option: PEM, or a file with that.
fn certificates(name: &'static str, given: &str) -> Result<Vec<CertificateDer<'static>>> {
    let text = pem(name, given)?;
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(Error::misuse(format!("option \"{}\": expected certificates in PEM, found none", named(name)))),
        Err(e) => Err(Error::misuse(format!("option \"{}\": expected certificates in PEM ({e})", named(name)))),
    }
}

fn pem(name: &'static str, given: &str) -> Result<Vec<u8>> {
    pem_text(given).map_err(|why| Error::misuse(format!("option \"{}\": {why}", named(name))))
}

/// Returns PEM that is given itself or as the path of a file.
///
/// # Errors
/// The reason. It has the path, but nothing that may be a key without its first line.
pub(super) fn pem_text(given: &str) -> std::result::Result<Vec<u8>, String> {
    if given.contains("-----BEGIN ") {
        return Ok(given.as_bytes().to_vec());
    }
    std::fs::read(given).map_err(|e| {
        // Base64 has no dots, and names of files have one.
        let path = if given.contains('.') { format!(" {:?}", shortened(given, 200)) } else { String::new() };
        format!("expected PEM, or the path of a file that has it; cannot read{path}: {e}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(options: ClientOptions) -> String {
        let error = Network::of(&options).err().expect("an error");
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.message().to_owned()
    }

    #[test]
    fn what_cannot_be_used_is_told_by_its_option() {
        let options = ClientOptions::new;
        for (options, said) in [
            (options().proxy("ftp://h"), "option \"proxy\""),
            (options().proxy("socks4://h"), "option \"proxy\""),
            (options().proxy("https://user:secret@h"), "option \"proxy\""),
            (options().ca("/nowhere/at/all.pem"), "option \"ca\""),
            (options().ca("-----BEGIN NOTHING-----"), "option \"ca\""),
            (options().cert("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"), "option \"cert\""),
            (options().key("-----BEGIN PRIVATE KEY-----"), "option \"key\": expected \"cert\""),
        ] {
            let message = wrong(options);
            assert!(message.starts_with(said) && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn the_environments_proxies_are_for_other_machines() {
        let matcher = Arc::new(Matcher::builder().all("http://p:3128").build());
        let network = Network {
            proxies: matcher,
            of_environment: true,
            broken: Arc::default(),
            tls: Tls::Ordinary,
            transport: None,
        };
        for (to, expected) in [
            ("http://localhost:8000/mcp", false),
            ("http://127.0.0.1/mcp", false),
            ("https://[::1]:1/", false),
            ("http://h/", true),
            ("http://localhost.example.com/", true),
        ] {
            assert_eq!(network.is_proxied(&to.parse().expect("a URL")), expected, "{to}");
        }
        let asked = Network::of(&ClientOptions::new().proxy("http://p:3128")).expect("a network");
        assert!(asked.is_proxied(&Uri::from_static("http://localhost/")));
    }

    #[test]
    fn ports_that_are_not_named_are_those_of_the_scheme() {
        for (uri, expected) in [
            ("socks5://p", "p:1080"),
            ("socks5://user:word@p:9", "user:word@p:9"),
            ("http://h/mcp", "h:1080"),
            ("http://[::1]/mcp", "[::1]:1080"),
        ] {
            let uri = with_port(&uri.parse().expect("a URL"), 1080);
            assert_eq!(uri.authority().map(|authority| authority.as_str()), Some(expected), "{uri}");
        }
    }

    #[test]
    fn a_proxy_is_used_for_what_it_is_for() {
        let way = |proxy: &str, to: &str| {
            let network = Network::of(&ClientOptions::new().proxy(proxy)).expect("a network");
            match network.way(&to.parse().expect("a URL"), HttpConnector::new()) {
                Ok(Way::Direct) => "direct",
                Ok(Way::Forward(..)) => "forward",
                Ok(Way::Tunnel(_)) => "tunnel",
                Ok(Way::Socks(_)) => "socks",
                Err(_) => "error",
            }
        };
        for (proxy, to, expected) in [
            ("", "https://h/", "direct"),
            ("http://p:3128", "https://h/", "tunnel"),
            ("p:3128", "https://h/", "tunnel"),
            ("http://user:password@p:3128", "http://h/", "forward"),
            ("socks5://p", "https://h/", "socks"),
            ("socks5h://p", "http://h/", "socks"),
        ] {
            assert_eq!(way(proxy, to), expected, "{proxy} {to}");
        }
    }

    #[test]
    fn variables_are_read_as_people_write_them() {
        let said = |pairs: &[(&'static str, &'static str)], to: &str| {
            let (matcher, broken) =
                environment(|name| pairs.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned()));
            let network = Network {
                proxies: Arc::new(matcher),
                of_environment: true,
                broken: Arc::new(broken),
                tls: Tls::Ordinary,
                transport: None,
            };
            let to: Uri = to.parse().expect("a URL");
            match network.way(&to, HttpConnector::new()) {
                Ok(Way::Direct) => "direct".to_owned(),
                Ok(_) => {
                    let proxy = network.intercept(&to).expect("a proxy");
                    let auth = proxy.basic_auth().map(|auth| auth.to_str().expect("text").to_owned());
                    format!("{} {}", network.named_proxy(&to).expect("a proxy"), auth.unwrap_or_default())
                }
                Err(why) => why,
            }
        };
        for (pairs, to, expected) in [
            (&[("HTTPS_PROXY", "http://p:1")][..], "https://h/", "\"http://p:1\" "),
            (&[("https_proxy", "p:1")], "https://h/", "\"http://p:1\" "),
            (&[("HTTPS_PROXY", "http://p:1")], "http://h/", "direct"),
            (&[("HTTPS_PROXY", " ")], "https://h/", "direct"),
            // ada:s@cret and ada:ä b
            (&[("ALL_PROXY", "http://ada:s@cret@p:1")], "http://h/", "\"http://p:1\" Basic YWRhOnNAY3JldA=="),
            (&[("ALL_PROXY", "http://ada:ä b@p:1")], "http://h/", "\"http://p:1\" Basic YWRhOsOkIGI="),
            (&[("HTTP_PROXY", "http://p:1"), ("REQUEST_METHOD", "GET")], "http://h/", "direct"),
            (&[("HTTPS_PROXY", "http://p:1"), ("REQUEST_METHOD", "GET")], "https://h/", "\"http://p:1\" "),
            (&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", "a, *.h.test")], "http://x.h.test/", "direct"),
            (&[("ALL_PROXY", "http://p:1"), ("NO_PROXY", "a, *.h.test")], "http://x.test/", "\"http://p:1\" "),
        ] {
            assert_eq!(said(pairs, to), expected, "{pairs:?} {to}");
        }
        for value in ["ftp://p", "http://[::1:1", "http://ada:pa/ss@p", "http://ada:pa#@p", "http://"] {
            let told = said(&[("HTTPS_PROXY", value)], "https://h/");
            assert!(
                told.starts_with("the variable HTTPS_PROXY: expected a URL") && !told.contains("ada"),
                "{value}: {told}"
            );
            assert_eq!(said(&[("HTTPS_PROXY", value)], "http://h/"), "direct", "it is for others");
            assert_eq!(said(&[("HTTPS_PROXY", value), ("NO_PROXY", "h")], "https://h/"), "direct", "{value}");
        }
    }
}
