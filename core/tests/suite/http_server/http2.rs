//! HTTP/2, where a client and a server over TLS agree on it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::http::{HttpOptions, HttpServer};

use super::tls::Authority;
use super::*;

async fn serve(it: &Fixture, authority: &Authority) -> HttpServer {
    let (cert, key) = authority.signs();
    within("listening", it.server.serve_http(HttpOptions::new().port(0).cert(cert).key(key))).await.unwrap()
}

async fn connect(serving: &HttpServer, authority: &Authority, revision: &str) -> Client {
    let options = ClientOptions::new().proxy("").revision(revision).ca(authority.pem());
    within("connecting", Client::connect(&Target::from_text(serving.url()).unwrap(), &options)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_asks_shares_connections() {
    let (it, authority) = (Fixture::new(), Authority::new());
    let serving = serve(&it, &authority).await;
    for revision in ["2025-11-25", "2026-07-28"] {
        let client = connect(&serving, &authority, revision).await;
        // Connections from before the server's protocol was known are closed by now, or rest.
        let _ = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
        let before = it.server.usage().connections;
        let calls: Vec<_> = (0..200)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move { client.call_tool("add", json!({"a": number, "b": 1})).await.unwrap().text() })
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            assert_eq!(within("calling", call).await.unwrap(), (number + 1).to_string());
        }
        // Fifty at once share one.
        assert!(it.server.usage().connections <= before + 4, "{revision}: {}", it.server.usage().connections);
        let started = it.gate.started();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { client.call_tool("waits", json!({})).await.map(|result| result.text()) })
            })
            .collect();
        until("the calls", || it.gate.started() == started + 3).await;
        let cancelled = it.gate.cancelled.load(Ordering::SeqCst);
        waiting[0].abort();
        until("the cancellation", || it.gate.cancelled.load(Ordering::SeqCst) > cancelled).await;
        it.gate.open();
        for call in waiting.into_iter().skip(1) {
            assert_eq!(within("the others", call).await.unwrap().unwrap(), "open");
        }
        within("closing", client.close()).await;
    }
    until("the end of the connections", || it.server.usage().connections == 0).await;
}

#[tokio::test]
async fn a_client_goes_on_when_its_connection_has_ended() {
    let (it, authority) = (Fixture::new(), Authority::new());
    let serving = serve(&it, &authority).await;
    let address = serving.local_addr().unwrap();
    let client = connect(&serving, &authority, "2026-07-28").await;
    assert_eq!(client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap().text(), "3");
    serving.close();
    within("closing", serving.join()).await;
    let (cert, key) = authority.signs();
    let options = HttpOptions::new().port(address.port()).cert(cert).key(key);
    let other = Fixture::new();
    let _serving = within("listening again", other.server.serve_http(options)).await.unwrap();
    assert_eq!(client.call_tool("add", json!({"a": 2, "b": 2})).await.unwrap().text(), "4");
    within("closing", client.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drains_says_goodbye_and_answers_what_runs() {
    let (it, authority) = (Fixture::new(), Authority::new());
    let serving = serve(&it, &authority).await;
    let host = serving.local_addr().unwrap().to_string();
    let mut sender = raw(&serving, &authority).await;
    within("the beginning", sender.ready()).await.unwrap();
    let running = tokio::spawn(sender.send_request(call(&host, "waits")));
    until("the call runs", || it.gate.started() == 1).await;
    let drained = it.server.drain();
    // Another request has to go elsewhere.
    let goodbye = async {
        while sender.ready().await.is_ok() && sender.send_request(call(&host, "add")).await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    };
    within("the goodbye", goodbye).await;
    assert_eq!(it.gate.cancelled(), 0);
    it.gate.open();
    let answer = within("the answer", running).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
    let body = within("the body", answer.into_body().collect()).await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("open"));
    within("the drain", drained).await;
    within("the end", serving.join()).await;
}

/// A connection of somebody else's.
async fn raw(serving: &HttpServer, authority: &Authority) -> SendRequest<Full<Bytes>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = TcpStream::connect(serving.local_addr().unwrap()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(tls)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn call(authority: &str, tool: &str) -> http::Request<Full<Bytes>> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let arguments = if tool == "add" { json!({"a": 1, "b": 2}) } else { json!({}) };
    let params = json!({"_meta": meta, "name": tool, "arguments": arguments});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    http::Request::post(format!("https://{authority}/mcp"))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(Full::new(body.into()))
        .unwrap()
}

#[tokio::test]
async fn the_url_names_the_host() {
    let (it, authority) = (Fixture::new(), Authority::new());
    let serving = serve(&it, &authority).await;
    let mut client = raw(&serving, &authority).await;
    let port = serving.local_addr().unwrap().port();
    for (host, status) in
        [(format!("localhost:{port}"), 200), (format!("127.0.0.1:{port}"), 200), ("evil.example".to_owned(), 403)]
    {
        let answer = within("the answer", client.send_request(call(&host, "add"))).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{host}");
        let _ = answer.collect().await.unwrap();
    }
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_cost_their_connection_alone() {
    let (it, authority) = (Fixture::new(), Authority::new());
    let serving = serve(&it, &authority).await;
    let other = connect(&serving, &authority, "2026-07-28").await;
    let mut client = raw(&serving, &authority).await;
    let host = format!("localhost:{}", serving.local_addr().unwrap().port());
    for _ in 0..20_000 {
        if client.ready().await.is_err() {
            break;
        }
        drop(client.send_request(call(&host, "waits")));
        tokio::task::yield_now().await;
    }
    assert_eq!(within("another's call", other.call_tool("add", json!({"a": 2, "b": 2}))).await.unwrap().text(), "4");
    drop(client);
    until("the end of what they have begun", || it.server.usage().in_flight == 0).await;
    within("closing", other.close()).await;
}
