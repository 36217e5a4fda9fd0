use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

const PEM: &[u8] = include_bytes!("localhost.pem");

/// Answers this many requests on each connection, with the connection's number, and closes it.
fn serve(per_connection: usize) -> Uri {
    let certificate = CertificateDer::from_pem_slice(PEM).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(PEM).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a usable key");
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for (number, socket) in listener.incoming().enumerate() {
            let tls = rustls::ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = BufReader::new(rustls::StreamOwned::new(tls, socket.expect("a socket")));
            for _ in 0..per_connection {
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    // A client that does not trust the certificate leaves at once.
                    if stream.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                }
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                stream.get_mut().write_all(answer.as_bytes()).expect("written");
            }
            stream.get_mut().conn.send_close_notify();
            stream.get_mut().flush().expect("written");
        }
    });
    format!("https://localhost:{port}/").parse().expect("a URL")
}

fn trusting() -> Connector {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(PEM).expect("a certificate")).expect("an anchor");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    Connector::Tls(
        HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().wrap_connector(http),
    )
}

#[tokio::test]
async fn exchanges_go_over_tls_and_share_connections_until_the_server_ends_them() {
    let pool = Pool::over(trusting(), serve(2));
    for connection in ["0", "0", "1", "1", "2"] {
        let sending = pool.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", b"", true);
        let answer = tokio::time::timeout(CONNECT, sending).await.expect("in time").expect("an answer");
        assert_eq!(answer.collect(1).await.expect("a body"), connection);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let pool = Pool::new(serve(1)).expect("a pool");
    let sending = pool.send(b"GET / HTTP/1.1\r\n\r\n", b"", true);
    let refused = tokio::time::timeout(CONNECT, sending).await.expect("in time").err().expect("no trust");
    assert_eq!(refused.kind(), ErrorKind::Transport);
    assert!(refused.message().contains("certificate"), "{refused}");
}
