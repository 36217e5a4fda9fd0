//! The way out of this machine, for the client's requests and for what authorization fetches: through which proxy, by whose
//! certificates, and with which of our own.

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

use crate::client::ClientOptions;
use crate::error::named;
use crate::error::{Error, ErrorKind, Result, shown_url};

/// What the options and the environment say of the way out.
#[derive(Clone)]
pub(crate) struct Network {
    proxies: Arc<Matcher>,
    /// They are the environment's, which means other machines.
    of_environment: bool,
    tls: Tls,
}

#[derive(Clone)]
enum Tls {
    /// That of every program on this machine.
    Ordinary,
    /// With authorities or a certificate of one's own.
    Own(Arc<ClientConfig>),
}

/// How an origin is reached.
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
        Self { proxies: Arc::new(Matcher::from_env()), of_environment: true, tls: Tls::Ordinary }
    }

    /// As a client's options have it, which stand for what the environment says.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) naming the option that is wrong.
    pub(crate) fn of(options: &ClientOptions) -> Result<Self> {
        let proxies = match options.proxy.as_deref() {
            None => Matcher::from_env(),
            Some("") => Matcher::builder().build(),
            Some(proxy) => {
                let matcher = Matcher::builder().all(proxy.to_owned()).build();
                let intercept = matcher.intercept(&Uri::from_static("https://example.com/"));
                let is_spoken = |way: &Intercept| matches!(way.uri().scheme_str(), Some("http" | "socks5" | "socks5h"));
                if !intercept.as_ref().is_some_and(is_spoken) {
                    let name = named("proxy");
                    let message = format!(
                        "option \"{name}\": expected a URL with http:// or socks5://, got {}",
                        shown_url(proxy)
                    );
                    return Err(Error::misuse(message));
                }
                matcher
            }
        };
        let tls = match (&options.ca, &options.cert, &options.key) {
            (None, None, None) => Tls::Ordinary,
            (ca, cert, key) => Tls::Own(Arc::new(own(ca.as_deref(), cert.as_deref(), key.as_deref())?)),
        };
        Ok(Self { proxies: Arc::new(proxies), of_environment: options.proxy.is_none(), tls })
    }

    fn intercept(&self, to: &Uri) -> Option<Intercept> {
        let is_meant = !self.of_environment || !is_this_machine(to);
        is_meant.then(|| self.proxies.intercept(to)).flatten()
    }

    /// True if a URL is asked for through a proxy.
    pub(crate) fn is_proxied(&self, to: &Uri) -> bool {
        self.intercept(to).is_some()
    }

    /// How this URL is reached; `direct` makes the connections.
    ///
    /// # Errors
    /// A proxy that cannot be used, for people.
    pub(crate) fn way(&self, to: &Uri, direct: HttpConnector) -> Result<Way, String> {
        let Some(proxy) = self.intercept(to) else { return Ok(Way::Direct) };
        let at = proxy.uri().clone();
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
    /// Why there is none, for people.
    pub(crate) fn secured<C>(&self, connector: C) -> Result<HttpsConnector<C>, String> {
        Ok(HttpsConnector::from((connector, self.config()?)))
    }

    fn config(&self) -> Result<Arc<ClientConfig>, String> {
        match &self.tls {
            Tls::Own(config) => Ok(config.clone()),
            Tls::Ordinary => ordinary(),
        }
    }
}

fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = |address: std::net::IpAddr| address.to_canonical().is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_loopback)
}

/// The same with a port, where it names none: who speaks SOCKS takes one of its own choice then.
pub(crate) fn with_port(uri: &Uri, port: u16) -> Uri {
    let (Some(host), None) = (uri.host(), uri.port()) else { return uri.clone() };
    let Ok(authority) = format!("{host}:{port}").parse() else { return uri.clone() };
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}

/// Where a proxy is, as part of a sentence.
pub(crate) fn by(proxy: &Intercept) -> String {
    format!(" ({})", shown_url(&proxy.uri().to_string()))
}

/// The variables that name authorities.
const VARIABLES: [&str; 3] = ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

type Said = [Option<OsString>; VARIABLES.len()];

/// What most connections need, read once for what the environment says.
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
    if given.contains("-----BEGIN ") {
        return Ok(given.as_bytes().to_vec());
    }
    std::fs::read(given).map_err(|e| {
        Error::misuse(format!("option \"{}\": expected PEM or the path of a file: {given:?}: {e}", named(name)))
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
        let network = Network { proxies: matcher, of_environment: true, tls: Tls::Ordinary };
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
}
