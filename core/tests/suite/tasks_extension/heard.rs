//! Clients that are told how tasks are, and what they do where nobody tells them or the way breaks off.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Change, Client, ClientOptions, Handlers, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::model::{SubscriptionFilter, TaskStatus};
use tricorn::prelude::*;
use tricorn::{Error, ErrorKind};

use super::client::{BOTH, MODERN, User, accepts, connected, fast, within};
use super::{Gates, Nothing, server};
use crate::http_client::server::{Reply, Server as Scripted, error, result};

/// So seldom that no test would end by looking.
fn slow() -> TaskOptions {
    TaskOptions::new().task_poll_interval(Duration::from_secs(60))
}

fn declaring() -> Handlers {
    Handlers::new().elicitation(User::new(accepts)).tasks(TaskOptions::new()).unwrap()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    within(what, async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Counts what is asked, and refuses what begins so.
fn counting(server: Server, refused: &'static str) -> (Server, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (looks, listens) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (looked, listened) = (looks.clone(), listens.clone());
    let server = server.middleware(move |request: Request, context: Context, next: Next| {
        let count = match request.method.as_str() {
            "tasks/get" => looked.clone(),
            "subscriptions/listen" => listened.clone(),
            _ => Arc::default(),
        };
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            match request.method.starts_with(refused) {
                true => Err(Error::rpc(-32601, "nothing is told here")),
                false => next.run(request, &context).await,
            }
        }
    });
    (server, looks, listens)
}

#[tokio::test]
async fn who_waits_is_told_and_looks_seldom() {
    let gates = Arc::<Gates>::default();
    let (server, looks, listens) = counting(server(&gates, slow()), "-");
    let http = server.serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    let target = Target::from_text(http.url()).unwrap();
    let options = ClientOptions::new().revision(MODERN);
    for client in [
        Client::in_memory_with(&server, &options, &declaring()).await.unwrap(),
        Client::connect_with(&target, &options, &declaring()).await.unwrap(),
    ] {
        looks.store(0, Ordering::SeqCst);
        let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
        let mut changes = handle.changes();
        let first = within("how it is", changes.next()).await.unwrap().unwrap();
        assert_eq!(first.status, TaskStatus::Working);
        let (last, ()) = tokio::join!(within("the end", changes.next()), async {
            until("a listener", || server.usage().listeners == 1).await;
            gates.go.notify_one();
        });
        assert_eq!(last.unwrap().unwrap().status, TaskStatus::Completed);
        // Once at first, once when it is listened to, and when it was told of.
        assert!(looks.load(Ordering::SeqCst) <= 4, "{looks:?}");
        // With the task its stream ends.
        until("the end of the stream", || server.usage().listeners == 0).await;

        // What a task asks is told, too, and so is the end of a call that became one.
        let asks = within("the answers", client.call_tool("asks", json!({}))).await.unwrap();
        assert_eq!(asks.text(), "\"1\" \"2\"");
        let asks = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await.unwrap();
        assert_eq!(within("the end", asks.wait()).await.unwrap().status, TaskStatus::Completed);
        until("the end of the streams", || server.usage().listeners == 0).await;
        client.close().await;
    }
    assert!(listens.load(Ordering::SeqCst) >= 4);
    http.close();
}

#[tokio::test]
async fn where_nobody_tells_a_task_is_looked_at() {
    let gates = Arc::<Gates>::default();
    let (server, looks, listens) = counting(server(&gates, fast()), "subscriptions/");
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
    let (ended, ()) = tokio::join!(within("the end", handle.wait()), async {
        until("a few looks", || looks.load(Ordering::SeqCst) > 5).await;
        gates.go.notify_one();
    });
    assert_eq!(ended.unwrap().status, TaskStatus::Completed);
    assert_eq!(listens.load(Ordering::SeqCst), 1, "it has said so");
}

#[tokio::test]
async fn many_tasks_are_listened_to_within_limits() {
    const TASKS: usize = 20;
    let gates = Arc::<Gates>::default();
    let (server, ..) = counting(server(&gates, fast()), "-");
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    let mut waiting = Vec::new();
    for _ in 0..TASKS {
        let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
        waiting.push(tokio::spawn(async move { handle.wait().await.unwrap().status }));
    }
    until("all handlers and streams", || gates.begun.load(Ordering::SeqCst) == TASKS && server.usage().listeners == 16)
        .await;
    within("their ends", async {
        // Those that are not waiting yet are told by the next round.
        for task in waiting {
            while !task.is_finished() {
                gates.go.notify_waiters();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(task.await.unwrap(), TaskStatus::Completed);
        }
    })
    .await;
    until("the end of the streams", || server.usage().listeners == 0).await;
}

#[tokio::test]
async fn a_listener_is_told_how_tasks_are() {
    for revision in BOTH {
        let gates = Arc::<Gates>::default();
        let server = server(&gates, slow());
        let client = connected(&server, revision, &User::new(accepts)).await;
        let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
        let filter = SubscriptionFilter::new().task(handle.id()).task("nobody's");
        let mut listening = within("listening", client.listen(filter)).await.unwrap();
        if revision == MODERN {
            assert_eq!(listening.honoured().task_ids, [handle.id()]);
        }
        until("the handler", || gates.begun.load(Ordering::SeqCst) == 1).await;
        gates.go.notify_one();
        let (mut task, params) = loop {
            match within("a change", listening.next()).await.unwrap().unwrap() {
                Change::Task { task, params } if task.status.is_terminal() => {
                    break (task, params.to::<Value>().unwrap());
                }
                Change::Task { task, .. } => assert_eq!(task.status, TaskStatus::Working),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!((task.task_id.as_str(), task.status), (handle.id(), TaskStatus::Completed), "{revision}");
        assert_eq!(task.poll_interval.take(), Some(60_000), "{revision}: {params}");
        if revision == MODERN {
            assert_eq!(params["result"]["content"][0]["text"], "done", "{params}");
            assert!(params.get("_meta").is_none() && params.get("ttlMs").is_none(), "{params}");
        }
    }
    // Who has no tasks is told of none.
    let server = server(&Arc::default(), slow());
    for revision in [MODERN, "2025-11-25", "2025-06-18"] {
        let plain = Client::in_memory(
            &Server::new("s").tool("t", "", async |_: Nothing| Ok::<_, HandlerError>(1)),
            &ClientOptions::new().revision(revision),
        )
        .await
        .unwrap();
        let refused = plain.listen(SubscriptionFilter::new().task("t")).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{revision}: {refused}");
        assert!(refused.message().contains("taskIds"), "{refused}");
    }
    let undeclared = Client::in_memory(&server, &ClientOptions::new().revision(MODERN)).await.unwrap();
    let refused = undeclared.listen(SubscriptionFilter::new().task("t")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported, "{refused}");
}

#[tokio::test]
async fn an_answer_whose_way_breaks_off_is_brought_again() {
    let server = server(&Arc::default(), fast());
    let user = User::new(accepts);
    let tries = Arc::<AtomicUsize>::default();
    let counted = tries.clone();
    let breaks = move |request: Request, context: Context, next: Next| {
        let tries = counted.clone();
        async move {
            if request.method != "tasks/update" {
                return next.run(request, &context).await;
            }
            let lost = || Err(Error::new(ErrorKind::Transport, "the way broke off"));
            match tries.fetch_add(1, Ordering::SeqCst) {
                // Before it arrived.
                0 => lost(),
                // And after.
                1 => next.run(request, &context).await.and_then(|_| lost()),
                _ => next.run(request, &context).await,
            }
        }
    };
    let handlers = Handlers::new().elicitation(user.clone()).tasks(TaskOptions::new()).unwrap().middleware(breaks);
    let client = Client::in_memory_with(&server, &ClientOptions::new().revision(MODERN), &handlers).await.unwrap();
    let handle = client.call_tool_task("asks", json!({}), None, &CallOptions::default()).await.unwrap();
    assert_eq!(within("the end", handle.wait()).await.unwrap().status, TaskStatus::Completed);
    assert_eq!(within("the result", handle.result()).await.unwrap().text(), "\"1\" \"2\"");
    assert_eq!(user.1.lock().unwrap().len(), 2, "each is asked once");
    assert!(tries.load(Ordering::SeqCst) >= 3);
}

#[tokio::test]
async fn a_task_whose_server_is_away_is_not_cancelled() {
    let server = Scripted::new(|seen| match seen.method() {
        "server/discover" => result(
            seen,
            &json!({"resultType": "complete", "supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "private",
                    "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}}),
        ),
        "tools/call" => result(
            seen,
            &json!({"resultType": "task", "taskId": "t-1", "status": "working", "ttlMs": null, "pollIntervalMs": 10,
                    "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}),
        ),
        "tasks/get" => Reply::WriteAndClose(vec![]),
        _ => error("404 Not Found", &seen.body["id"], -32601, &json!(null)),
    })
    .await;
    let target = Target::from_text(&server.url()).unwrap();
    let client = Client::connect_with(&target, &ClientOptions::default(), &declaring()).await.unwrap();
    let options = CallOptions::new().timeout(Duration::from_secs(1));
    let lost = within("the end", client.call_tool_with("slow", json!({}), &options)).await.unwrap_err();
    assert!(lost.kind() == ErrorKind::Transport && lost.message().contains("\"t-1\""), "{lost}");
    client.list_tools().await.unwrap_err();
    let asked = server.methods();
    assert!(asked.iter().filter(|method| *method == "tasks/get").count() >= 2, "{asked:?}");
    assert!(!asked.contains(&"tasks/cancel".to_owned()), "{asked:?}");
}

#[tokio::test]
async fn a_result_is_checked_however_it_is_had() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    // The server itself does not check what a source answers.
    let server = Server::new("s").tasks(fast());
    let definition = json!({"name": "wrong", "inputSchema": {"type": "object"}, "outputSchema": schema,
                            "execution": {"taskSupport": "optional"}});
    let list = move |_: Value| {
        let definition = definition.clone();
        async move { Ok::<_, HandlerError>(json!([definition])) }
    };
    let get = |_: Value| async { Ok::<_, HandlerError>(json!({"content": [], "structuredContent": {"n": "x"}})) };
    let (list, get) =
        (tricorn::server::IntoHandler::into_handler(list), tricorn::server::IntoHandler::into_handler(get));
    server.set_source(tricorn::server::Kind::Tool, Some(list), Some(get));
    for revision in BOTH {
        let client = connected(&server, revision, &User::new(accepts)).await;
        client.list_tools().await.unwrap();
        let handle = client.call_tool_task("wrong", json!({}), None, &CallOptions::default()).await.unwrap();
        let wrong = within("the result", handle.result()).await.unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::PeerMisbehaved, "{revision}: {wrong}");
        assert!(wrong.message().contains("outputSchema"), "{revision}: {wrong}");
    }
}

#[tokio::test]
async fn a_task_that_is_called_one_by_its_result_type_is_read() {
    let gates = Arc::<Gates>::default();
    let typed = Arc::<AtomicUsize>::default();
    let counted = typed.clone();
    let server = server(&gates, fast()).middleware(move |request: Request, context: Context, next: Next| {
        let typed = counted.clone();
        async move {
            let is_task = request.method == "tasks/get";
            let result = next.run(request, &context).await?;
            if !is_task {
                return Ok(result);
            }
            typed.fetch_add(1, Ordering::SeqCst);
            let mut result: Value = result.to().unwrap();
            result["resultType"] = "task".into();
            Ok(RawJson::from_value(&result))
        }
    });
    let client = connected(&server, MODERN, &User::new(accepts)).await;
    gates.go.notify_one();
    let handle = client.call_tool_task("slow", json!({}), None, &CallOptions::default()).await.unwrap();
    let task = within("the end", handle.wait()).await.unwrap();
    assert_eq!((task.status, task.extra.get("resultType")), (TaskStatus::Completed, None));
    assert!(typed.load(Ordering::SeqCst) > 0);
}
