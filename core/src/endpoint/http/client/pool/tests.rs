use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;

use http::Request;
use http_body_util::Full;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::ClientOptions;
use crate::endpoint::http::client::pool::*;

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

/// With the test's authority, by no proxy of the environment.
fn trusting() -> ClientOptions {
    ClientOptions::new().proxy("").ca(String::from_utf8_lossy(PEM))
}

fn pool(options: &ClientOptions, origin: Uri) -> Arc<Pool> {
    Pool::new(&Network::of(options).expect("a network"), origin).expect("a pool")
}

#[tokio::test]
async fn exchanges_go_over_tls_and_share_connections_until_the_server_ends_them() {
    let pool = pool(&trusting(), serve(2));
    for connection in ["0", "0", "1", "1", "2"] {
        let answer = within(pool.send(get, true)).await.expect("an answer");
        assert_eq!(answer.collect(1).await.expect("a body"), connection);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    let pool = pool(&ClientOptions::new().proxy(""), serve(1));
    let refused = within(pool.send(get, true)).await.err().expect("no trust");
    assert_eq!(refused.kind(), ErrorKind::Transport);
    assert!(refused.message().contains("certificate"), "{refused}");
}

fn get() -> Outgoing {
    Request::get("/").header("host", "localhost").body(Full::default()).expect("a request")
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(2 * CONNECT, future).await.expect("in time")
}

/// A pool, and the listener that a test answers at.
async fn plain() -> (Arc<Pool>, tokio::net::TcpListener) {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let origin = format!("http://{}/", listener.local_addr().expect("an address"));
    (pool(&ClientOptions::new().proxy(""), origin.parse().expect("a URL")), listener)
}

async fn accept(listener: &tokio::net::TcpListener) -> TcpStream {
    listener.accept().await.expect("accepted").0
}

/// Reads the head of a request and writes these pieces, most of which the client reads one by one.
async fn answer(socket: &mut TcpStream, pieces: &[&str]) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        assert_ne!(socket.read_buf(&mut request).await.expect("the request"), 0);
    }
    for piece in pieces {
        socket.write_all(piece.as_bytes()).await.expect("written");
        tokio::task::yield_now().await;
    }
}

const LIMIT: usize = 20;

async fn exchange(pool: &Arc<Pool>, repeatable: bool) -> Result<(u16, Bytes)> {
    let answer = pool.send(get, repeatable).await?;
    Ok((answer.head.status.as_u16(), answer.collect(LIMIT).await?))
}

const ONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1";

#[tokio::test]
async fn a_connection_is_kept_when_the_server_keeps_it_and_says_nothing_else() {
    for (pieces, status, body, kept) in [
        (&[ONE][..], 200, "1", true),
        (&["HTTP/1.1 204 No Content\r\n\r\n"], 204, "", true),
        (&["HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 \r\n\r\n", ONE], 200, "1", true),
        (
            &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n", "1\r\nb\r\n", "0\r\n\r\n"],
            200,
            "ab",
            true,
        ),
        (&["HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\n1"], 200, "1", false),
        (&["HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n1"], 200, "1", false),
        // Bytes that follow an answer belong to no request.
        (&["HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n\r\n"], 200, "1", false),
    ] {
        let (pool, listener) = plain().await;
        let serve = async {
            let mut socket = accept(&listener).await;
            answer(&mut socket, pieces).await;
            socket
        };
        let (read, _socket) = within(async { tokio::join!(exchange(&pool, false), serve) }).await;
        assert_eq!(read.expect("an answer"), (status, Bytes::from(body)), "{pieces:?}");
        assert_eq!(pool.lock().len(), usize::from(kept), "{pieces:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_or_breaks_off_is_an_error_that_says_so() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "x".repeat(crate::endpoint::http::client::link::MAX_BUFFER));
    for (pieces, why) in [
        (&[][..], "no answer: connection closed"),
        (&["HTTP/1.1 200 OK\r\n"], "no answer: connection closed"),
        (&["SSH-2.0-x\r\n"], "no answer: invalid HTTP version"),
        (&[long.as_str()], "no answer: message head is too large"),
        (
            &["HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
            "no answer: it switches protocols",
        ),
        (&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh"], "the answer broke off: "),
        (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"], "the answer broke off: "),
        (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n"], "the answer broke off: "),
        (&["HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n"], "max_message_bytes"),
        (&["HTTP/1.1 200 OK\r\n\r\n0123456789", "0123456789", "0"], "max_message_bytes"),
    ] {
        let (pool, listener) = plain().await;
        let serve = async { answer(&mut accept(&listener).await, pieces).await };
        let (read, ()) = within(async { tokio::join!(exchange(&pool, true), serve) }).await;
        let failed = read.expect_err(why);
        assert!(failed.message().contains(why), "{why}: {failed}");
        assert!(pool.lock().is_empty(), "{why}");
    }
}

#[tokio::test]
async fn a_body_longer_than_the_buffer_is_put_together() {
    let body: String = (0..30_000).map(|n| n.to_string()).collect();
    let (known, chunk) = (format!("content-length: {}\r\n\r\n", body.len()), format!("{:x}\r\n", body.len()));
    for pieces in [
        [known.as_str(), body.as_str(), ""],
        ["transfer-encoding: chunked\r\n\r\n", &[&chunk, body.as_str()].concat(), "\r\n0\r\n\r\n"],
    ] {
        let (pool, listener) = plain().await;
        let serve = async {
            let mut socket = accept(&listener).await;
            answer(&mut socket, &[&["HTTP/1.1 200 OK\r\n"][..], &pieces[..]].concat()).await;
            socket
        };
        let read = async { pool.send(get, false).await?.collect(body.len()).await };
        let (read, _socket) = within(async { tokio::join!(read, serve) }).await;
        assert!(read.expect("an answer") == body);
        assert_eq!(pool.lock().len(), 1);
    }
}

#[tokio::test]
async fn a_server_may_answer_before_it_has_read_everything() {
    let (pool, listener) = plain().await;
    let body = Bytes::from(vec![b'x'; 64 << 20]);
    let post = || {
        let request = Request::post("/").header("host", "localhost");
        request.body(Full::new(body.clone())).expect("a request")
    };
    let serve = async {
        let mut socket = accept(&listener).await;
        socket.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n").await.expect("written");
        socket
    };
    let (answer, _socket) = within(async { tokio::join!(pool.send(post, false), serve) }).await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.head.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(within(answer.collect(0)).await.expect("no body").is_empty());
    assert!(pool.lock().is_empty(), "the rest of the request is still to be sent");
}

#[tokio::test]
async fn a_connection_that_was_closed_at_rest_gets_no_request() {
    let (pool, listener) = plain().await;
    let serve = async {
        answer(&mut accept(&listener).await, &[ONE]).await;
    };
    let read = async {
        let answer = pool.send(get, false).await.expect("an answer");
        assert_eq!(answer.collect(LIMIT).await.expect("a body"), "1");
        assert_eq!(pool.lock().len(), 1);
    };
    within(async { tokio::join!(read, serve) }).await;
    // Whatever the reactor sees of this connection comes after the end of the other.
    let address = listener.local_addr().expect("an address");
    let (probe, _) = within(async { tokio::join!(TcpStream::connect(address), accept(&listener)) }).await;
    probe.expect("connected");
    let serve = async {
        let mut socket = accept(&listener).await;
        answer(&mut socket, &[ONE]).await;
        socket
    };
    let (read, _socket) = within(async { tokio::join!(exchange(&pool, false), serve) }).await;
    assert_eq!(read.expect("an answer").0, 200);
}

#[tokio::test]
async fn a_used_connection_that_ends_without_a_word_costs_only_what_cannot_be_repeated() {
    for repeatable in [true, false] {
        let (pool, listener) = plain().await;
        let serve = async {
            let mut socket = accept(&listener).await;
            answer(&mut socket, &[ONE]).await;
            answer(&mut socket, &[]).await;
            drop(socket);
            if repeatable {
                answer(&mut accept(&listener).await, &[ONE]).await;
            }
        };
        let read = async {
            exchange(&pool, false).await.expect("an answer");
            exchange(&pool, repeatable).await
        };
        let (read, ()) = within(async { tokio::join!(read, serve) }).await;
        assert_eq!(read.is_ok(), repeatable, "{read:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_dropped_unread_closes_its_connection() {
    let (pool, listener) = plain().await;
    let serve = async {
        let mut socket = accept(&listener).await;
        answer(&mut socket, &["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n1"]).await;
        socket.read(&mut [0]).await.unwrap_or_default()
    };
    let drop_it = async { drop(pool.send(get, true).await.expect("an answer")) };
    assert_eq!(within(async { tokio::join!(drop_it, serve) }).await, ((), 0));
    assert!(pool.lock().is_empty());
}

#[cfg(feature = "auth")]
#[tokio::test]
async fn a_server_is_where_connections_to_it_have_led() {
    let (pool, listener) = plain().await;
    let serve = async {
        let mut socket = accept(&listener).await;
        answer(&mut socket, &[ONE]).await;
        socket
    };
    // Nothing was sent yet: the connection that is opened to find out carries the first request.
    let ask = async { (pool.reaches().await, exchange(&pool, false).await) };
    let ((reaches, read), _socket) = within(async { tokio::join!(ask, serve) }).await;
    assert_eq!((reaches, read.expect("an answer").0), (vec![Reach::Loopback], 200));
    // Where nobody is, and where somebody else is, the server is not.
    drop(listener);
    let (gone, stranger) =
        (self::pool(&trusting(), pool.origin.clone()), self::pool(&ClientOptions::new().proxy(""), self::serve(1)));
    assert_eq!(within(gone.reaches()).await, []);
    assert_eq!(within(stranger.reaches()).await, []);
}

/// Leads connections on to where it is told, and says what it was asked for and shown.
fn proxy() -> (std::net::SocketAddr, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let (at, (tell, told)) = (listener.local_addr().expect("an address"), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut near = socket.expect("a socket");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                near.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).expect("text");
            let to = head.split(' ').nth(1).expect("a target").to_owned();
            tell.send(head.clone()).expect("heard");
            if !head.starts_with("CONNECT ") {
                near.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nforward").expect("written");
                continue;
            }
            let mut far = std::net::TcpStream::connect(to).expect("the server");
            near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").expect("written");
            let (mut up, mut down) = (near.try_clone().expect("a socket"), far.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut up, &mut far));
            std::thread::spawn(move || std::io::copy(&mut down, &mut near));
        }
    });
    (at, told)
}

#[tokio::test]
async fn a_proxy_leads_on_to_what_is_secured_and_asks_for_the_rest_itself() {
    let (at, asked) = proxy();
    let options = trusting().proxy(format!("http://me:secret@{at}"));
    let origin = serve(1);
    let place = origin.authority().expect("a place").to_string();
    let pool = self::pool(&options, origin);
    let answer = within(pool.send(get, true)).await.expect("an answer");
    assert_eq!(answer.collect(1).await.expect("a body"), "0");
    let head = asked.recv().expect("asked");
    assert!(head.starts_with(&format!("CONNECT {place} HTTP/1.1\r\n")), "{head}");
    assert!(head.contains("Proxy-Authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
    let plain = self::pool(&options, "http://server.example:8080/".parse().expect("a URL"));
    let answer = within(plain.send(get, true)).await.expect("an answer");
    assert_eq!(answer.collect(10).await.expect("a body"), "forward");
    let head = asked.recv().expect("asked");
    assert!(head.starts_with("GET http://server.example:8080/ HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("proxy-authorization: basic bwu6c2vjcmv0\r\n"), "{head}");
    // Nobody is there, and nothing of the password is said.
    let nobody = TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address");
    let options = trusting().proxy(format!("http://me:secret@{nobody}"));
    let failed = within(self::pool(&options, serve(1)).send(get, true)).await.err().expect("no proxy");
    assert!(failed.message().contains("proxy") && !failed.message().contains("secret"), "{failed}");
}
