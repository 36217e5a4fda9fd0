//! Tests of a handler's logs by `tracing`, which reach the client of its call.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tracing::Instrument;
use tracing_subscriber::prelude::*;
use tricorn::Events;
use tricorn::client::Handlers;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;

const PATIENCE: Duration = Duration::from_secs(20);

/// The log messages that a client got.
#[derive(Default)]
struct Heard {
    all: Mutex<Vec<Value>>,
    more: Notify,
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        assert_eq!(method, "notifications/message");
        self.all.lock().unwrap().push(params.unwrap().to().unwrap());
        self.more.notify_one();
    }
}

impl Heard {
    /// All messages up to the one that says `last`.
    async fn until(&self, last: &str) -> Vec<Value> {
        let found = async {
            loop {
                let all = self.all.lock().unwrap().clone();
                match all.iter().position(|message| message["data"] == last) {
                    Some(at) => return all[..at].to_vec(),
                    None => self.more.notified().await,
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("no {last}: {:?}", self.all))
    }
}

#[derive(Deserialize, JsonSchema)]
struct Who {
    name: String,
}

async fn connected(server: &Server) -> (Client, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let options = ClientOptions::new().revision("2025-11-25");
    let handlers = Handlers::new().events(heard.clone());
    (Client::in_memory_with(server, &options, &handlers).await.unwrap(), heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_go_to_the_client_of_their_call() {
    tracing_subscriber::registry().with(tricorn::tracing::layer()).init();
    let server = Server::new("s").tool("t", "", |Who { name }: Who| async move {
        tracing::debug!("not wanted by all");
        tracing::info!(target: "shop", name, count = 2, share = 0.5, done = true, error = ?"e", "begun");
        tokio::task::yield_now().await;
        tracing::warn!("{name} after a pause");
        let task = async { tracing::error!("in a task") };
        tokio::spawn(task.instrument(tracing::info_span!("work"))).await?;
        tokio::spawn(async { tracing::error!("in a task of nobody") }).await?;
        tracing::error!("end");
        Ok(name)
    });
    let ((a, heard_a), (b, heard_b)) = (connected(&server).await, connected(&server).await);
    a.set_log_level(LogLevel::Debug).await.unwrap();
    b.set_log_level(LogLevel::Warning).await.unwrap();
    tracing::error!("outside of a call");
    let (first, second) = tokio::join!(a.call_tool("t", json!({"name": "a"})), b.call_tool("t", json!({"name": "b"})));
    assert_eq!((first.unwrap().text(), second.unwrap().text()), ("a".into(), "b".into()));
    let target = module_path!();
    let begun = json!({"message": "begun", "name": "a", "count": 2, "share": 0.5, "done": true, "error": "\"e\""});
    let expected = [
        json!({"level": "debug", "logger": target, "data": "not wanted by all"}),
        json!({"level": "info", "logger": "shop", "data": begun}),
        json!({"level": "warning", "logger": target, "data": "a after a pause"}),
        json!({"level": "error", "logger": target, "data": "in a task"}),
    ];
    assert_eq!(heard_a.until("end").await, expected);
    let of_b = heard_b.until("end").await;
    assert_eq!(of_b.iter().map(|m| m["data"].clone()).collect::<Vec<_>>(), ["b after a pause", "in a task"]);
}
