//! The HTTP client over a transport of the program's own.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Events, Handlers, HttpRequest, HttpResponse, HttpTransport, Target};
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::{BoxFuture, Context, Error, ErrorKind, Result, Server};

use crate::http_client::server::PATIENCE;

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn connect(options: ClientOptions, transport: impl HttpTransport) -> Result<Client> {
    let target = Target::parse("\"http://localhost/mcp\"").unwrap();
    within("connecting", Client::connect(&target, &options.http_transport(transport))).await
}

fn server() -> Server {
    Server::new("inside").tool("hello", "", async |_: Context| Ok("hello")).tool(
        "waits",
        "",
        async |context: Context| {
            context.cancelled().await;
            Ok("cancelled")
        },
    )
}

fn endpoint(server: &Server) -> Endpoint {
    server.endpoint(HttpOptions::default()).unwrap()
}

/// Counts what goes through an endpoint, and what of it is still open.
struct Counting {
    inner: Endpoint,
    seen: Arc<Mutex<Vec<HttpRequest>>>,
    open: Arc<AtomicUsize>,
}

struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl HttpTransport for Counting {
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>> {
        self.seen.lock().unwrap().push(request.clone());
        let open = Open::new(&self.open);
        let sent = self.inner.send(request);
        Box::pin(async move {
            let mut answer = sent.await?;
            // Of any size, so that characters and events are split.
            let pieces = answer.body.flat_map(|piece| {
                let pieces: Vec<_> = piece.unwrap().chunks(3).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
                futures_util::stream::iter(pieces)
            });
            answer.body = Box::pin(pieces.map(move |piece| {
                let _ = &open;
                piece
            }));
            Ok(answer)
        })
    }
}

#[tokio::test]
async fn calls_go_through_it_at_each_revision_and_nothing_stays_open() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let server = server().tool("ä", "", async |_: Context| Ok("grüße 🦀"));
        let (seen, open) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicUsize>::default());
        let transport = Counting { inner: endpoint(&server), seen: seen.clone(), open: open.clone() };
        let client = connect(ClientOptions::new().revision(revision).header("x-user", "ada"), transport).await.unwrap();
        assert_eq!(client.revision().to_string(), revision);
        for _ in 0..3 {
            assert_eq!(within("calling", client.call_tool("ä", json!({}))).await.unwrap().text(), "grüße 🦀");
        }
        let started = server.usage();
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.call_tool("waits", json!({})).await.map(drop) }
        });
        within("the call", async {
            while server.usage().in_flight <= started.in_flight {
                tokio::task::yield_now().await;
            }
        })
        .await;
        waiting.abort();
        within("its end", async {
            while server.usage().in_flight > started.in_flight {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        within("closing", client.close()).await;
        within("the last exchange", async {
            while open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        let seen = seen.lock().unwrap();
        assert!(seen.len() > 4, "{revision}: {}", seen.len());
        for request in &*seen {
            assert_eq!(request.url, "http://localhost/mcp");
            let header = |wanted: &str| request.headers.iter().find(|(name, _)| name == wanted).map(|(_, v)| &**v);
            assert_eq!((header("x-user"), header("host"), header("content-length")), (Some("ada"), None, None));
            assert_eq!(header("accept-encoding"), Some("identity"));
            assert!(!format!("{request:?}").contains("ada"));
        }
    }
}

struct Told(tokio::sync::mpsc::UnboundedSender<String>);

impl Events for Told {
    fn notification(&self, method: &str, _: Option<&tricorn::jsonrpc::RawJson>) {
        let _ = self.0.send(method.to_owned());
    }
}

#[tokio::test]
async fn notifications_come_over_its_streams() {
    let server = server();
    let target = Target::parse("\"http://localhost/mcp\"").unwrap();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let options = ClientOptions::new().revision("2025-11-25").http_transport(endpoint(&server));
    let handlers = Handlers::new().events(Told(told));
    let client = within("connecting", Client::connect_with(&target, &options, &handlers)).await.unwrap();
    within("the stream", async {
        while server.usage().streams == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(server.remove_tool("hello"));
    while within("the notification", heard.recv()).await.unwrap() != "notifications/tools/list_changed" {}
    client.close().await;
}

/// Answers by a function.
struct Answering<F>(F);

impl<F: Fn(HttpRequest) -> Result<HttpResponse> + Send + Sync + 'static> HttpTransport for Answering<F> {
    fn send(&self, request: HttpRequest) -> BoxFuture<Result<HttpResponse>> {
        let answer = (self.0)(request);
        Box::pin(async move { answer })
    }
}

fn failed(message: &str) -> Error {
    Error::new(ErrorKind::Transport, message)
}

#[tokio::test]
async fn an_answer_can_be_made_up() {
    let client = connect(
        ClientOptions::new().revision("2025-11-25"),
        Answering(|request: HttpRequest| {
            if request.method != "POST" {
                return Ok(HttpResponse::new(405));
            }
            let asked: Value = serde_json::from_slice(&request.body).unwrap();
            let result = match asked["method"].as_str().unwrap() {
                "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                    "serverInfo": {"name": "made up", "version": "1"}}),
                "tools/call" => json!({"content": [{"type": "text", "text": "made up"}]}),
                _ => return Ok(HttpResponse::new(202)),
            };
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
            Ok(HttpResponse::new(200).header("Content-Type", "application/json").body(answer.to_string()))
        }),
    )
    .await
    .unwrap();
    assert_eq!(client.call_tool("any", json!({})).await.unwrap().text(), "made up");
    client.close().await;
}

#[tokio::test]
async fn faults_are_told_with_their_place() {
    for (answer, kind, message) in [
        (
            Box::new(|_| Err(failed("the line is cut")))
                as Box<dyn Fn(HttpRequest) -> Result<HttpResponse> + Send + Sync>,
            ErrorKind::Transport,
            "http://localhost: no answer: the line is cut",
        ),
        (Box::new(|_| Ok(HttpResponse::new(7))), ErrorKind::Misuse, "expected a status of three digits, got 7"),
        (Box::new(|_| Ok(HttpResponse::new(101))), ErrorKind::Transport, "it switches protocols"),
        (
            Box::new(|_| {
                let pieces = vec![Ok(Bytes::from_static(b"{\"jsonrpc\"")), Err(failed("the line is cut"))];
                let answer = HttpResponse::new(200).header("content-type", "application/json");
                Ok(answer.stream(futures_util::stream::iter(pieces)))
            }),
            ErrorKind::Transport,
            "the answer broke off: the line is cut",
        ),
    ] {
        let error =
            connect(ClientOptions::new().revision("2025-11-25"), Answering(answer)).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[tokio::test]
async fn what_is_about_connections_is_refused_beside_it() {
    for (options, name) in [
        (ClientOptions::new().proxy("http://127.0.0.1:1"), "proxy"),
        (ClientOptions::new().ca("/nowhere.pem"), "ca"),
        (ClientOptions::new().cert("/nowhere.pem"), "cert"),
        (ClientOptions::new().key("/nowhere.pem"), "key"),
    ] {
        let error = connect(options, endpoint(&server())).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().contains(&format!("option \"{name}\": with an HTTP transport")), "{error}");
    }
    let target = Target::parse("\"unix:///run/nobody.sock\"").unwrap();
    let options = ClientOptions::new().http_transport(endpoint(&server()));
    let error = Client::connect(&target, &options).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("a Unix socket is not for an HTTP transport"), "{error}");
}
