//! A server whose tools wait until they are told to go on.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tricorn::client::Handlers;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::{Events, TaskOptions};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const WITH_TASKS: &str = "2025-11-25";
pub(crate) const RELATED: &str = "io.modelcontextprotocol/related-task";

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Nothing {}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Say {
    text: String,
}

/// Gate that the tools wait for, and the number of those that were dropped at that.
pub(crate) struct Gate {
    pub(crate) open: Semaphore,
    pub(crate) started: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
}

impl Default for Gate {
    fn default() -> Self {
        Self { open: Semaphore::new(0), started: AtomicUsize::new(0), dropped: AtomicUsize::new(0) }
    }
}

impl Gate {
    pub(crate) async fn wait(&self) {
        struct Dropped<'a>(&'a AtomicUsize);
        impl Drop for Dropped<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        self.started.fetch_add(1, Ordering::SeqCst);
        let dropped = Dropped(&self.dropped);
        self.open.acquire().await.unwrap().forget();
        std::mem::forget(dropped);
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// `slow` may be a task, `long` must be one, `plain` must not; `asks` asks the user, `asks_twice` twice, `fails` fails.
pub(crate) fn server(gate: &Arc<Gate>, options: Option<TaskOptions>) -> Server {
    let tool = |name: &str, support: TaskSupport| Tool::new(name, "").task_support(support);
    let (slow, long) = (gate.clone(), gate.clone());
    let server = Server::new("tasks")
        .page_size(2)
        .tool("plain", "", |say: Say| async move { Ok(say.text) })
        .tool_with(tool("slow", TaskSupport::Optional), move |say: Say, cx: Context| {
            let gate = slow.clone();
            async move {
                cx.progress(1.0, Some(2.0), None);
                cx.set_status("waiting");
                gate.wait().await;
                cx.progress(2.0, Some(2.0), None);
                Ok(say.text)
            }
        })
        .tool_with(tool("long", TaskSupport::Required), move |_: Nothing, cx: Context| {
            let gate = long.clone();
            async move {
                gate.wait().await;
                Ok(json!({"task": cx.request().task_id.as_deref()}))
            }
        })
        .tool_with(tool("fails", TaskSupport::Optional), |_: Nothing| async move {
            Err::<(), _>(HandlerError::new("out of luck"))
        })
        .tool_with(tool("asks", TaskSupport::Optional), |_: Nothing, cx: Context| async move {
            let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let answer = cx.elicit("Who?", &form).await?;
            Ok(answer.content["name"].as_str().unwrap_or_default().to_owned())
        })
        .tool_with(tool("asks_twice", TaskSupport::Optional), |_: Nothing, cx: Context| async move {
            let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
            let one = cx.elicit("Who?", &form).await?;
            let two = cx.elicit("And who?", &form).await?;
            Ok(format!("{} {}", one.content["name"], two.content["name"]))
        });
    match options {
        Some(options) => server.tasks(options),
        None => server,
    }
}

pub(crate) async fn connected(server: &Server, revision: &str, handlers: &Handlers) -> Client {
    let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

/// Notifications that a client hears.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) std::sync::Mutex<Vec<(String, Value)>>);

impl Heard {
    pub(crate) fn all(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().clone()
    }
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let params = params.map(|params| params.to().unwrap()).unwrap_or_default();
        self.0.lock().unwrap().push((method.to_owned(), params));
    }
}

/// Sends a request as it stands.
pub(crate) async fn ask(client: &Client, method: &str, params: Value) -> Result<Value, Error> {
    let answer = client.request(method, Some(RawJson::from_value(&params)), &CallOptions::new());
    within(method, answer).await.map(|result| result.to().unwrap())
}

/// Calls a tool as a task; its id.
pub(crate) async fn begin(client: &Client, name: &str, arguments: Value) -> String {
    let params = json!({"name": name, "arguments": arguments, "task": {"ttl": 60_000}});
    let created = ask(client, "tools/call", params).await.unwrap();
    assert_eq!((&created["task"]["status"], &created["task"]["ttl"]), (&json!("working"), &json!(60_000)));
    created["task"]["taskId"].as_str().unwrap().to_owned()
}
