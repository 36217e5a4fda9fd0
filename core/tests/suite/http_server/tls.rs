//! TLS where this crate listens.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::http::HttpOptions;
use tricorn::{ErrorKind, prelude::Server};

use super::*;

/// An authority with a directory for what it has signed, which goes with it.
pub(super) struct Authority {
    dir: PathBuf,
    own: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let own = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = std::env::temp_dir().join(format!("tricorn-tls-{}-{:p}", std::process::id(), &raw const own));
        std::fs::create_dir_all(&dir).unwrap();
        Self { dir, own }
    }

    pub(super) fn pem(&self) -> String {
        self.own.pem()
    }

    /// Certificate and key of a server on this machine, as files.
    pub(super) fn signs(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let cert = CertificateParams::new(names).unwrap().signed_by(&key, &self.own).unwrap();
        let files = (self.dir.join("cert.pem"), self.dir.join("key.pem"));
        std::fs::write(&files.0, cert.pem()).unwrap();
        std::fs::write(&files.1, key.serialize_pem()).unwrap();
        (files.0.to_str().unwrap().to_owned(), files.1.to_str().unwrap().to_owned())
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[tokio::test]
async fn clients_that_know_the_authority_call_over_tls() {
    let it = Fixture::new();
    let authority = Authority::new();
    let (cert, key) = authority.signs();
    let options = HttpOptions::new().port(0).cert(cert).key(key);
    let serving = within("listening", it.server.serve_http(options)).await.unwrap();
    assert!(serving.url().starts_with("https://127.0.0.1:"), "{}", serving.url());
    for revision in ["2025-11-25", "2026-07-28"] {
        let options = ClientOptions::new().revision(revision).ca(authority.pem());
        let target = Target::from_text(serving.url()).unwrap();
        let client = within("connecting", Client::connect(&target, &options)).await.unwrap();
        let added = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(added.text(), "3", "{revision}");
        within("closing", client.close()).await;
    }
    let stranger = ClientOptions::new();
    let refused = within("refusing", Client::connect(&Target::from_text(serving.url()).unwrap(), &stranger)).await;
    let error = refused.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Transport);
    assert!(error.message().contains("certificate"), "{error}");
    // Without TLS nobody is answered, and the server goes on.
    let mut plain = within("connecting", TcpStream::connect(serving.local_addr().unwrap())).await.unwrap();
    plain.write_all(b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await.unwrap();
    let mut text = Vec::new();
    let _ = within("the end", plain.read_to_end(&mut text)).await;
    assert!(!String::from_utf8_lossy(&text).contains("HTTP/1.1"), "{text:?}");
    let options = ClientOptions::new().ca(authority.pem());
    let client =
        within("connecting", Client::connect(&Target::from_text(serving.url()).unwrap(), &options)).await.unwrap();
    assert_eq!(client.call_tool("add", json!({"a": 2, "b": 2})).await.unwrap().text(), "4");
}

#[tokio::test]
async fn what_is_no_certificate_is_named() {
    let authority = Authority::new();
    let (cert, key) = authority.signs();
    let other = KeyPair::generate().unwrap().serialize_pem();
    let none = HttpOptions::new().port(0);
    for (options, says) in [
        (none.clone().key(key.clone()), "\"key\": expected \"cert\" besides"),
        (none.clone().cert("/nowhere/cert.pem"), "\"cert\": expected PEM, or the path of a file"),
        (none.clone().cert(key.clone()).key(key.clone()), "\"cert\": expected certificates in PEM"),
        (none.clone().cert(cert.clone()), "no private key in PEM"),
        (none.clone().cert(cert).key(other), "\"cert\": certificate and key do not fit"),
    ] {
        let error = Server::new("s").serve_http(options).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
}
