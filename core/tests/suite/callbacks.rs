//! User functions that panic: what they were called for goes on, on every transport.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(all(feature = "stdio", feature = "http", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tricorn::client::{Client, ClientOptions, Handlers, Stderr, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::{Error, Events};

/// The longest any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

/// Says what it hears, and panics.
struct Panics(mpsc::UnboundedSender<String>);

impl Panics {
    fn say(&self, what: &str) {
        let _ = self.0.send(what.to_owned());
        panic!("a user's function panics: {what}");
    }
}

impl Events for Panics {
    fn notification(&self, method: &str, _: Option<&RawJson>) {
        self.say(method);
    }

    fn stderr(&self, line: &str) {
        self.say(line);
    }

    fn closed(&self, _: &Error) {
        self.say("closed");
    }
}

fn panicking() -> (Handlers, mpsc::UnboundedReceiver<String>) {
    let (sender, heard) = mpsc::unbounded_channel();
    (Handlers::new().events(Panics(sender)), heard)
}

fn options() -> ClientOptions {
    ClientOptions::parse(&json!({"revision": "2025-11-25"}).to_string()).unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("s").tool("talk", "", |_: Nothing, ctx: Context| async move {
        ctx.log(tricorn::protocol::LogLevel::Error, None, &"one");
        ctx.log(tricorn::protocol::LogLevel::Error, None, &"two");
        ctx.progress(1.0, None, None);
        Ok("said")
    })
}

async fn call(client: &Client, panics: &Arc<AtomicUsize>) {
    let counts = panics.clone();
    let options = CallOptions::new().on_progress(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        panic!("a user's function panics: progress");
    });
    for _ in 0..2 {
        let result = within("calling", client.call_tool_with("talk", json!({}), &options)).await.unwrap();
        assert_eq!(result.text(), "said");
    }
}

async fn heard(heard: &mut mpsc::UnboundedReceiver<String>, what: &str) {
    while within(what, heard.recv()).await.unwrap_or_else(|| panic!("no {what}")) != what {}
}

#[tokio::test]
async fn what_a_client_hears_in_memory() {
    let ((handlers, mut events), panics) = (panicking(), Arc::default());
    let client = Client::in_memory_with(&server(), &options(), &handlers).await.unwrap();
    call(&client, &panics).await;
    heard(&mut events, "notifications/message").await;
    assert_eq!(panics.load(Ordering::SeqCst), 2);
    within("closing", client.close()).await;
    heard(&mut events, "closed").await;
}

#[tokio::test]
async fn what_a_client_hears_over_http() {
    let ((handlers, mut events), panics) = (panicking(), Arc::default());
    let serving = server().serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    let target = Target::from_text(serving.url()).unwrap();
    let client = within("connecting", Client::connect_with(&target, &options(), &handlers)).await.unwrap();
    call(&client, &panics).await;
    heard(&mut events, "notifications/message").await;
    assert_eq!(panics.load(Ordering::SeqCst), 2);
    within("closing", client.close()).await;
    heard(&mut events, "closed").await;
}

#[tokio::test]
async fn what_a_client_hears_of_a_child() {
    let (handlers, mut events) = panicking();
    let script = r#"
      read -r line
      id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}\n' "$id"
      read -r line
      echo one >&2
      echo two >&2
      echo '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
    "#;
    let (command, args) = ("sh".into(), vec!["-c".into(), script.into()]);
    let target = Target::Command { command, args, env: BTreeMap::new(), cwd: None, stderr: Stderr::Event };
    let client = within("connecting", Client::connect_with(&target, &options(), &handlers)).await.unwrap();
    let mut all = Vec::new();
    while !["one", "two", "notifications/message", "closed"].iter().all(|what| all.iter().any(|heard| heard == what)) {
        let next = within(&format!("more than {all:?}"), events.recv()).await;
        all.push(next.unwrap_or_else(|| panic!("the end: {all:?}")));
    }
    within("closing", client.close()).await;
}

#[tokio::test]
async fn what_hears_of_errors() {
    let server = Server::new("s")
        .tool_with(
            Tool::new("misfit", "").output_schema(json!({"type": "object", "required": ["n"]})),
            |_: Nothing| async { Ok(json!({})) },
        )
        .tool("fails", "", |_: Nothing| async { Err::<String, _>(std::fmt::Error.into()) })
        .on_error(|_, tool| panic!("a user's function panics: {tool}"));
    let client = Client::in_memory(&server, &options()).await.unwrap();
    for tool in ["misfit", "fails"] {
        let result = within("an answer", client.call_tool(tool, json!({}))).await.unwrap();
        assert!(result.is_error && result.text().contains("failed"), "{tool}: {}", result.text());
    }
    assert_eq!(server.metrics()["in_flight"], 0);
}
