//! Clients of servers that answer with tasks: the same words as for those of 2025-11-25.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::model::{TaskStatus, TaskSupport};
use tricorn::prelude::*;
use tricorn::{ErrorKind, Handler, Reply};

use super::{Gates, Nothing, PATIENCE, server, tool};

pub(super) const MODERN: &str = "2026-07-28";
pub(super) const BOTH: [&str; 2] = ["2025-11-25", MODERN];

pub(super) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

/// Answers with what it is given for a message, and keeps the messages.
pub(super) struct User(fn(&str) -> Value, pub(super) Mutex<Vec<String>>);

impl User {
    pub(super) fn new(answers: fn(&str) -> Value) -> Arc<Self> {
        Arc::new(Self(answers, Mutex::default()))
    }
}

impl Handler for User {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let params: Value = params.to().unwrap();
        let message = params["message"].as_str().unwrap();
        self.1.lock().unwrap().push(message.to_owned());
        reply.value(RawJson::from_value(&(self.0)(message)));
    }
}

pub(super) fn fast() -> TaskOptions {
    TaskOptions::new().task_poll_interval(Duration::from_millis(10))
}

pub(super) async fn connected(server: &Server, revision: &str, user: &Arc<User>) -> Client {
    let options = ClientOptions::new().revision(revision);
    let handlers = Handlers::new().elicitation(user.clone()).tasks(TaskOptions::new()).unwrap();
    Client::in_memory_with(server, &options, &handlers).await.unwrap()
}

pub(super) fn accepts(message: &str) -> Value {
    let content = match message {
        "one?" => json!({"a": "1"}),
        "two?" => json!({"b": "2"}),
        "age?" => json!({"age": "36"}),
        "by hand?" => json!({"a": "h"}),
        _ => json!({"name": "Ada"}),
    };
    json!({"action": "accept", "content": content})
}

#[tokio::test]
async fn a_call_is_followed_to_its_end_whatever_the_server_makes_of_it() {
    let server = server(&Arc::default(), fast());
    let user = User::new(accepts);
    let client = connected(&server, MODERN, &user).await;
    let call = async |name: &str| within(name, client.call_tool(name, json!({}))).await;
    let text = async |name: &str| call(name).await.unwrap().text();
    assert_eq!(text("plain").await, "false");
    assert_eq!(text("asks").await, "\"1\" \"2\"");
    assert_eq!(text("first_asks").await, "\"Ada\" \"36\" true");
    assert_eq!(text("by_hand").await, "\"h\"");
    assert_eq!(user.1.lock().unwrap().len(), 5, "each is asked once");
    assert!(call("job").await.unwrap().is_error);
    let broken = call("broken").await.unwrap_err();
    assert_eq!((broken.code(), broken.message()), (Some(-31050), "no such thing"));
    assert_eq!(server.usage().in_flight, 0);
}

#[tokio::test]
async fn a_handle_is_the_same_in_both_revisions() {
    for revision in BOTH {
        let gates = Arc::<Gates>::default();
        let server = server(&gates, fast());
        let client = connected(&server, revision, &User::new(accepts)).await;
        let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
        let mut changes = handle.changes();
        let first = within("a change", changes.next()).await.unwrap().unwrap();
        assert_eq!((first.status, first.poll_interval), (TaskStatus::Working, Some(10)), "{revision}");
        gates.go.notify_one();
        let last = within("the last change", changes.next()).await.unwrap().unwrap();
        assert_eq!(last.status, TaskStatus::Completed, "{revision}");
        assert!(within("the end", changes.next()).await.unwrap().is_none());
        assert_eq!(within("waiting", handle.wait()).await.unwrap().status, TaskStatus::Completed);
        let again = client.task(handle.id());
        assert_eq!(within("the result", again.result()).await.unwrap().text(), "done", "{revision}");

        let asks = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await;
        let asks = asks.unwrap();
        assert_eq!(within("the answers", asks.result()).await.unwrap().text(), "\"1\" \"2\"", "{revision}");

        let slow = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
        assert_eq!(slow.cancel().await.unwrap().status, TaskStatus::Cancelled, "{revision}");
        assert_eq!(slow.result().await.unwrap_err().kind(), ErrorKind::Cancelled, "{revision}");
        gates.stopped(2).await;
        let gone = client.task("nobody's").status().await.unwrap_err();
        assert_eq!(gone.code(), Some(-32602), "{revision}: {gone}");
    }
}

#[tokio::test]
async fn both_kinds_on_one_server_know_nothing_of_each_other() {
    let gates = Arc::<Gates>::default();
    let server = server(&gates, fast());
    let (old, new) = (
        connected(&server, "2025-11-25", &User::new(accepts)).await,
        connected(&server, MODERN, &User::new(accepts)).await,
    );
    let begin =
        async |client: &Client| client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
    let (olds, news) = (begin(&old).await, begin(&new).await);
    assert_eq!(old.tasks().await.unwrap().len(), 1);
    assert_eq!(old.task(news.id()).status().await.unwrap_err().code(), Some(-32602));
    assert_eq!(new.task(olds.id()).status().await.unwrap_err().code(), Some(-32602));
    // Zero is no limit.
    let options = CallOptions::new().max_timeout(Duration::ZERO);
    gates.go.notify_waiters();
    let call = new.call_tool_with("asks", json!({}), &options);
    assert_eq!(within("the call", call).await.unwrap().text(), "\"1\" \"2\"");
    old.close().await;
    new.close().await;
    gates.stopped(2).await;
}

#[tokio::test]
async fn what_is_answered_at_once_is_a_task_that_is_over() {
    let server = server(&Arc::default(), fast());
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    let handle = client.call_tool_task("plain", json!({}), None, &CallOptions::default()).await.unwrap();
    assert_eq!(handle.status().await.unwrap().status, TaskStatus::Completed);
    assert_eq!(handle.result().await.unwrap().text(), "false");
    assert_eq!(handle.cancel().await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_task() {
    let gates = Arc::<Gates>::default();
    let server = server(&gates, fast());
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    let options = CallOptions::new().max_timeout(Duration::from_millis(50));
    let late = client.call_tool_with("slow", json!({}), &options).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    gates.stopped(1).await;
    {
        let call = client.call_tool("slow", json!({}));
        let _ = tokio::time::timeout(Duration::from_millis(50), call).await.unwrap_err();
    }
    gates.stopped(2).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_just_as_it_becomes_a_task_leaves_none() {
    let gates = Arc::<Gates>::default();
    let server = server(&gates, fast());
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    for polls in 0..200 {
        let call = client.call_tool("slow", json!({}));
        let mut call = std::pin::pin!(call);
        let mut left: i32 = polls % 40;
        std::future::poll_fn(|cx| {
            left -= 1;
            match call.as_mut().poll(cx).is_ready() || left < 0 {
                true => std::task::Poll::Ready(()),
                false => {
                    cx.waker().wake_by_ref();
                    std::task::Poll::Pending
                }
            }
        })
        .await;
    }
    client.call_tool("plain", json!({})).await.unwrap();
    within("all that began to stop", async {
        while gates.dropped.load(Ordering::SeqCst) < gates.begun.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_fails_fails_the_call_and_who_declares_nothing_gets_no_tasks() {
    let server = server(&Arc::default(), fast());
    let nobody =
        Handlers::new().elicitation(User::new(|_| json!({"action": "nonsense"}))).tasks(TaskOptions::new()).unwrap();
    let options = ClientOptions::new().revision(MODERN);
    let client = Client::in_memory_with(&server, &options, &nobody).await.unwrap();
    let failed = within("an error", client.call_tool("asks", json!({}))).await.unwrap_err();
    assert!(failed.message().contains("elicitation/create"), "{failed}");

    let plain = Client::in_memory(&server, &options).await.unwrap();
    let refused = plain.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(refused.message().contains("the client does not declare the extension"), "{refused}");
    let refused = plain.call_tool("job", json!({})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "{refused}");
}

#[tokio::test]
async fn another_client_comes_back_by_the_id() {
    let gates = Arc::<Gates>::default();
    let begun = Arc::<AtomicUsize>::default();
    let (counted, gate) = (begun.clone(), gates.clone());
    let server =
        server(&gates, fast()).tool_with(tool("counts", TaskSupport::Optional), move |_: Nothing, _: Context| {
            let (gates, begun) = (gate.clone(), counted.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                gates.go.notified().await;
                Ok("kept")
            }
        });
    let http = server.serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    let target = Target::from_text(http.url()).unwrap();
    let handlers = || Handlers::new().tasks(TaskOptions::new()).unwrap();
    let options = ClientOptions::new().revision(MODERN);
    let connect = async || Client::connect_with(&target, &options, &handlers()).await.unwrap();
    let first = connect().await;
    let handle = first.call_tool_task("counts", json!({}), None, &CallOptions::default()).await.unwrap();
    let id = handle.id().to_owned();
    drop(handle);
    first.close().await;
    let second = connect().await;
    assert_eq!(second.task(&id).status().await.unwrap().status, TaskStatus::Working);
    within("the handler", async {
        while begun.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    gates.go.notify_one();
    assert_eq!(within("the result", second.task(&id).result()).await.unwrap().text(), "kept");
    assert_eq!(begun.load(Ordering::SeqCst), 1);
    second.close().await;
    http.close();
}

#[tokio::test]
async fn what_a_task_asks_is_answered_while_its_changes_are_followed() {
    for revision in BOTH {
        let server = server(&Arc::default(), fast());
        let user = User::new(accepts);
        let client = connected(&server, revision, &user).await;
        let handle = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await.unwrap();
        let mut changes = handle.changes();
        let mut last = None;
        while let Some(task) = within("a change", changes.next()).await.unwrap() {
            last = Some(task.status);
        }
        assert_eq!(last, Some(TaskStatus::Completed), "{revision}");
        assert_eq!(user.1.lock().unwrap().len(), 2, "each is asked once: {revision}");
        assert_eq!(within("the result", handle.result()).await.unwrap().text(), "\"1\" \"2\"", "{revision}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_had_is_told_to_who_follows() {
    let server = server(&Arc::default(), fast());
    let client = connected(&server, MODERN, &User::new(|_| json!({"action": "nonsense"}))).await;
    let handle = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await.unwrap();
    let mut changes = handle.changes();
    let failed = loop {
        match within("a change", changes.next()).await {
            Ok(task) => assert!(task.is_some_and(|task| !task.status.is_terminal())),
            Err(error) => break error,
        }
    };
    assert!(failed.message().contains("elicitation/create"), "{failed}");
}

/// Says yes, and keeps the traces in which it was asked.
#[derive(Default)]
struct Traced(Mutex<Vec<Value>>);

impl Handler for Traced {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        self.0.lock().unwrap().push(json!(cx.trace_context()));
        let params: Value = params.to().unwrap();
        reply.value(RawJson::from_value(&accepts(params["message"].as_str().unwrap())));
    }
}

type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that keeps in which trace it was asked what.
fn hearing(gates: &Arc<Gates>) -> (Server, Heard) {
    let heard = Heard::default();
    let keep = heard.clone();
    let server = server(gates, fast()).middleware(
        move |request: tricorn::middleware::Request, context: Context, next: tricorn::middleware::Next| {
            keep.lock().unwrap().push((request.method.clone(), json!(context.trace_context())));
            async move { next.run(request, &context).await }
        },
    );
    (server, heard)
}

fn trace(number: usize) -> tricorn::TraceContext {
    let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{number:016x}-01");
    tricorn::TraceContext::new(Some(&parent), None, None).unwrap()
}

fn counting(revision: &str) -> ClientOptions {
    let count = AtomicUsize::new(0);
    ClientOptions::new().revision(revision).trace_context(move || Some(trace(count.fetch_add(1, Ordering::SeqCst) + 1)))
}

/// Returns the requests about tasks, and checks that all are of this trace.
fn all_in(heard: &Heard, trace: &Value, revision: &str) -> Vec<String> {
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    let of_tasks = heard.iter().filter(|(method, _)| method.starts_with("tasks/") || method == "tools/call");
    of_tasks
        .map(|(method, of)| {
            assert_eq!(of, trace, "{revision} {method}");
            method.clone()
        })
        .collect()
}

#[tokio::test]
async fn all_of_a_call_that_becomes_a_task_is_one_trace() {
    for revision in BOTH {
        let gates = Arc::<Gates>::default();
        let (server, heard) = hearing(&gates);
        let user = Arc::<Traced>::default();
        let handlers = Handlers::new().elicitation(user.clone()).tasks(TaskOptions::new()).unwrap();
        let client = Client::in_memory_with(&server, &counting(revision), &handlers).await.unwrap();
        let plain = CallOptions::new().task(None);
        assert_eq!(
            within("the call", client.call_tool_with("asks", json!({}), &plain)).await.unwrap().text(),
            "\"1\" \"2\""
        );
        let methods = all_in(&heard, &json!(trace(1)), revision);
        assert_eq!(methods[0], "tools/call");
        assert!(methods.len() > 1, "{revision}: {methods:?}");
        assert_eq!(methods.iter().any(|method| method == "tasks/update"), revision == MODERN, "{methods:?}");
        assert_eq!(*user.0.lock().unwrap(), [json!(trace(1)), json!(trace(1))], "{revision}");
        // What is said of the call by hand counts for all of it.
        for options in [plain.clone().trace_context(trace(77)), plain.clone().meta(trace(77))] {
            heard.lock().unwrap().clear();
            let options = options.max_timeout(Duration::from_millis(100));
            within("giving up", client.call_tool_with("slow", json!({}), &options)).await.unwrap_err();
            within("its end", async {
                while !heard.lock().unwrap().iter().any(|(method, _)| method == "tasks/cancel") {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            })
            .await;
            all_in(&heard, &json!(trace(77)), revision);
        }
    }
}

#[tokio::test]
async fn all_that_follows_a_handle_is_one_trace() {
    for revision in BOTH {
        let (server, heard) = hearing(&Arc::default());
        let user = Arc::<Traced>::default();
        let handlers = Handlers::new().elicitation(user).tasks(TaskOptions::new()).unwrap();
        let client = Client::in_memory_with(&server, &counting(revision), &handlers).await.unwrap();
        let handle = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await.unwrap();
        all_in(&heard, &json!(trace(1)), revision);
        let mut changes = handle.changes();
        while within("a change", changes.next()).await.unwrap().is_some() {}
        all_in(&heard, &json!(trace(2)), revision);
        within("waiting", handle.wait()).await.unwrap();
        all_in(&heard, &json!(trace(3)), revision);
        within("the result", handle.result()).await.unwrap();
        all_in(&heard, &json!(trace(4)), revision);
    }
}
