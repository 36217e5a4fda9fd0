//! TLS where this crate listens: a certificate and its key, read again when their files change.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::options::HttpOptions;
use crate::endpoint::http::network::pem_text;
use crate::error::{Error, Result};
use crate::idiom::named;
use crate::report;

/// Longest time that a client may take for its part of the handshake.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);

/// Interval of the looks at the files, when somebody connects.
const LOOK: Duration = Duration::from_secs(5);

/// The certificate that is shown, and the key that it belongs to.
pub(super) struct Tls {
    cert: String,
    /// Many a file holds both.
    key: String,
    state: Mutex<State>,
}

struct State {
    acceptor: TlsAcceptor,
    looked: Instant,
    stamps: [Stamp; 2],
}

/// A file as it was: another one has another.
type Stamp = Option<(SystemTime, u64)>;

impl Tls {
    /// That of the options, if they have a certificate.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option whose text or file is wrong.
    pub(super) fn of(options: &HttpOptions) -> Result<Option<Self>> {
        let Some(cert) = &options.cert else { return Ok(None) };
        let key = options.key.as_ref().unwrap_or(cert);
        let stamps = [stamp(cert), stamp(key)];
        let acceptor = read(cert, key)?;
        let state = Mutex::new(State { acceptor, looked: Instant::now(), stamps });
        Ok(Some(Self { cert: cert.clone(), key: key.clone(), state }))
    }

    /// The certificate as it is now. One that is there and cannot be used is said, and the one before stays.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.looked.elapsed() >= LOOK {
            state.looked = Instant::now();
            let stamps = [stamp(&self.cert), stamp(&self.key)];
            if stamps != state.stamps {
                state.stamps = stamps;
                match read(&self.cert, &self.key) {
                    Ok(acceptor) => state.acceptor = acceptor,
                    Err(error) => report::say(format_args!("the certificate before is used on: {}", error.message())),
                }
            }
        }
        state.acceptor.clone()
    }
}

fn is_text(given: &str) -> bool {
    given.contains("-----BEGIN ")
}

fn stamp(given: &str) -> Stamp {
    let about = std::fs::metadata(Path::new(given)).ok().filter(|_| !is_text(given))?;
    Some((about.modified().ok()?, about.len()))
}

fn read(cert: &str, key: &str) -> Result<TlsAcceptor> {
    let wrong = |name, why: &dyn std::fmt::Display| Error::misuse(format!("HTTP option \"{}\": {why}", named(name)));
    let text = |name, given: &str| pem_text(given).map_err(|why| wrong(name, &why));
    let chain: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text("cert", cert)?).collect();
    let chain = match chain {
        Ok(chain) if !chain.is_empty() => chain,
        Ok(_) => return Err(wrong("cert", &"expected certificates in PEM, found none")),
        Err(e) => return Err(wrong("cert", &format!("expected certificates in PEM ({e})"))),
    };
    let name = if key == cert { "cert" } else { "key" };
    let key = PrivateKeyDer::from_pem_slice(&text(name, key)?)
        .map_err(|e| wrong("key", &format!("no private key in PEM ({e})")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|e| wrong("cert", &e))?.with_no_client_auth().with_single_cert(chain, key);
    let mut config = config.map_err(|e| wrong("cert", &format!("certificate and key do not fit ({e})")))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_is_read_again() {
        let dir = std::env::temp_dir().join(format!("tricorn-tls-again-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = dir.join("both.pem");
        let write = |name: &str| {
            let own = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
            std::fs::write(&file, format!("{}{}", own.cert.pem(), own.signing_key.serialize_pem())).expect("written");
        };
        write("one.test");
        let path = file.to_str().expect("a path");
        let tls = Tls::of(&HttpOptions::new().cert(path)).expect("a certificate").expect("TLS");
        let shown = || Arc::as_ptr(tls.acceptor().config());
        let later = || tls.state.lock().expect("state").looked = Instant::now().checked_sub(LOOK).expect("a time");
        let first = shown();
        later();
        assert_eq!(shown(), first, "nothing has changed");
        write("another-and-longer-name.test");
        assert_eq!(shown(), first, "it was looked at a moment ago");
        later();
        let second = shown();
        assert_ne!(second, first);
        std::fs::write(&file, "nothing").expect("written");
        later();
        assert_eq!(shown(), second, "what cannot be used changes nothing");
        let _ = std::fs::remove_dir_all(&dir);
    }
}
