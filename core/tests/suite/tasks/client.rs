//! Tests of our client with tasks, of the server and its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::TaskOptions;
use tricorn::client::Handlers;
use tricorn::middleware::{Next, Request};
use tricorn::model::TaskStatus;
use tricorn::prelude::*;
use tricorn::server::{CreateMessageRequestParams, IntoHandler};

use super::fixture::*;

const TTL: Option<Duration> = Some(Duration::from_secs(60));

#[tokio::test]
async fn a_handle_follows_its_task_and_comes_back_to_it() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new().task_poll_interval(Duration::from_secs(3600))));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let task = client.call_tool_task("slow", json!({"text": "hi"}), TTL, &CallOptions::new()).await.unwrap();
    until("the handler runs", || gate.started() == 1).await;
    let mut changes = task.changes();
    let first = within("how it is", changes.next()).await.unwrap().unwrap();
    assert_eq!((first.status, first.status_message.as_deref()), (TaskStatus::Working, Some("waiting")));
    assert_eq!((first.ttl, first.task_id.as_str()), (Some(60_000), task.id()));
    assert_eq!(client.tasks().await.unwrap(), [first]);
    let id = task.id().to_owned();
    drop(task);
    // It would not look again for an hour: what it hears is enough.
    let opens = async {
        tokio::task::yield_now().await;
        gate.open.add_permits(1);
    };
    let (last, ()) = within("the end", async { tokio::join!(changes.next(), opens) }).await;
    assert_eq!(last.unwrap().unwrap().status, TaskStatus::Completed);
    assert_eq!(changes.next().await.unwrap(), None);
    let again = client.task(&id);
    assert_eq!(within("the end", again.wait()).await.unwrap().status, TaskStatus::Completed);
    assert_eq!(again.result().await.unwrap().text(), "hi");
    assert_eq!(again.cancel().await.unwrap_err().code(), Some(-32602));
    assert_eq!(client.task("nobody's").status().await.unwrap_err().code(), Some(-32602));
}

#[tokio::test]
async fn a_tool_that_must_be_a_task_is_called_like_any_other() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    // Nobody knows of it yet.
    assert_eq!(client.call_tool("long", json!({})).await.unwrap_err().code(), Some(-32601));
    client.list_tools().await.unwrap();
    gate.open.add_permits(1);
    let result = within("the result", client.call_tool("long", json!({}))).await.unwrap();
    let structured: Value = result.structured_content.unwrap().to().unwrap();
    let id = structured["task"].as_str().unwrap().to_owned();
    assert_eq!(client.task(&id).status().await.unwrap().status, TaskStatus::Completed);
    // Given up, it is cancelled.
    let call = client.call_tool("long", json!({}));
    let both = async {
        tokio::select! {
            _ = call => panic!("no answer"),
            () = until("it runs", || gate.started() == 2) => {}
        }
    };
    both.await;
    until("it is dropped", || gate.dropped() == 1).await;
    let all = client.tasks().await.unwrap();
    assert_eq!(all.last().unwrap().status, TaskStatus::Cancelled);
    // A tool that must not be one is not asked for.
    let refused = client.call_tool_task("plain", json!({"text": "x"}), None, &CallOptions::new()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    // Nor by a request that says `task` itself, as the handles of other languages do.
    let params =
        tricorn::jsonrpc::RawJson::from_value(&json!({"name": "plain", "arguments": {"text": "x"}, "task": {}}));
    let refused = client.request("tools/call", Some(params), &CallOptions::new()).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
    let other = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let refused = other.call_tool_task("plain", json!({"text": "x"}), None, &CallOptions::new()).await;
    assert_eq!(refused.unwrap_err().code(), Some(-32601), "nobody has listed it: the server knows");
}

#[tokio::test]
async fn waiting_for_a_task_brings_its_questions() {
    // One that keeps its questions until its client asks for the result.
    let asked = Arc::<Notify>::default();
    let seen = asked.clone();
    let server = server(&Arc::default(), Some(TaskOptions::new().task_poll_interval(Duration::from_millis(10))))
        .middleware(move |request: Request, cx: Context, next: Next| {
            if request.method == "tasks/result" {
                seen.notify_one();
            }
            async move { next.run(request, &cx).await }
        });
    let answers = move |_: Value| {
        let asked = asked.clone();
        async move {
            asked.notified().await;
            Ok::<_, HandlerError>(json!({"name": "Ada"}))
        }
    };
    let client = connected(&server, WITH_TASKS, &Handlers::new().elicitation(answers.into_handler())).await;
    let task = client.call_tool_task("asks", json!({}), TTL, &CallOptions::new()).await.unwrap();
    assert_eq!(within("the end", task.wait()).await.unwrap().status, TaskStatus::Completed);
    assert_eq!(task.result().await.unwrap().text(), "Ada");
}

#[tokio::test]
async fn what_a_handle_asks_is_a_request_like_any_other() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let sees = seen.clone();
    let handlers = Handlers::new().middleware(move |request: Request, cx: Context, next: Next| {
        sees.lock().unwrap().push(request.method.clone());
        async move { next.run(request, &cx).await }
    });
    let client = connected(&server, WITH_TASKS, &handlers).await;
    gate.open.add_permits(1);
    let task = client.call_tool_task("slow", json!({"text": "x"}), TTL, &CallOptions::new()).await.unwrap();
    task.result().await.unwrap();
    task.wait().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["tools/call", "tasks/get", "tasks/result", "tasks/get"]);
    // What another server says is not shown to those who ask this one.
    let outer = Server::new("outer").tool("ask", "", move |_: Nothing| {
        let task = client.task("nobody's");
        async move { Ok(task.status().await?.task_id) }
    });
    let shown = connected(&outer, WITH_TASKS, &Handlers::new()).await.call_tool("ask", json!({})).await.unwrap();
    assert!(shown.is_error && !shown.text().contains("not found"), "{}", shown.text());
}

#[tokio::test]
async fn what_the_server_does_not_declare_is_not_sent() {
    let gate = Arc::<Gate>::default();
    gate.open.add_permits(10);
    let plain = server(&gate, None);
    let with = server(&gate, Some(TaskOptions::new()));
    for (server, revision) in [(&plain, WITH_TASKS), (&with, "2025-06-18"), (&with, "2026-07-28")] {
        let client = connected(server, revision, &Handlers::new()).await;
        client.list_tools().await.unwrap();
        let refused = client.call_tool_task("long", json!({}), None, &CallOptions::new()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{revision}");
        let options = CallOptions::new().task(None);
        let refused = client.call_tool_with("long", json!({}), &options).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{revision}");
        assert_eq!(client.tasks().await.unwrap_err().kind(), ErrorKind::Unsupported, "{revision}");
        // A server that has tasks in this revision, too, insists on one.
        match (client.call_tool("long", json!({})).await, revision) {
            (Ok(result), WITH_TASKS | "2025-06-18") => assert!(!result.is_error, "{revision}"),
            (Err(error), _) => assert_eq!((revision, error.code()), ("2026-07-28", Some(-32021)), "{error}"),
            (result, _) => panic!("{revision}: {result:?}"),
        }
    }
    assert_eq!(gate.started(), 2);
}

#[tokio::test]
async fn progress_is_heard_for_as_long_as_the_task_runs() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let heard = Arc::<Mutex<Vec<Value>>>::default();
    let hears = heard.clone();
    let options = CallOptions::new().task(None).on_progress(move |p| hears.lock().unwrap().push(p.to().unwrap()));
    let call = client.call_tool_with("slow", json!({"text": "hi"}), &options);
    let opens = async {
        until("it runs", || gate.started() == 1).await;
        gate.open.add_permits(1);
    };
    let (result, ()) = within("the result", async { tokio::join!(call, opens) }).await;
    assert_eq!(result.unwrap().text(), "hi");
    let progress: Vec<_> = heard.lock().unwrap().iter().map(|p| p["progress"].as_f64().unwrap()).collect();
    assert_eq!(progress, [1.0, 2.0]);
}

#[tokio::test]
async fn a_task_that_takes_too_long_is_given_up_and_cancelled() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let options = CallOptions::new().task(None).max_timeout(Duration::from_millis(20));
    let late = within("the end", client.call_tool_with("slow", json!({"text": "x"}), &options)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Timeout, "{late}");
    until("it is dropped", || gate.dropped() == gate.started()).await;
    // Cancelled by somebody else, the call hears of it.
    let options = CallOptions::new().task(None);
    let call = client.call_tool_with("slow", json!({"text": "x"}), &options);
    let cancels = async {
        loop {
            let all = client.tasks().await.unwrap();
            match all.last().filter(|task| task.status == TaskStatus::Working) {
                Some(task) => break client.task(&task.task_id).cancel().await.unwrap(),
                None => tokio::task::yield_now().await,
            }
        }
    };
    let (outcome, cancelled) = within("the end", async { tokio::join!(call, cancels) }).await;
    assert_eq!((outcome.unwrap_err().kind(), cancelled.status), (ErrorKind::Cancelled, TaskStatus::Cancelled));
}

// ---- the client's own ---------------------------------------------------------------------------------------------

/// A server that asks its client in tasks of the client.
fn asking() -> Server {
    let optional = |name: &str| Tool::new(name, "").task_support(TaskSupport::Optional);
    let options = || CallOptions::new().task(TTL);
    Server::new("asking")
        .tool_with(optional("sample"), move |_: Nothing, cx: Context| async move {
            let params = CreateMessageRequestParams::new(10).user(&Content::text("Say it."));
            Ok(cx.sample_with(&params, &options()).await?.text())
        })
        .tool_with(optional("form"), move |_: Nothing, cx: Context| async move {
            let form = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 7}}});
            let answer = cx.elicit_with("How many?", &form, &options()).await?;
            Ok(answer.content["n"].clone())
        })
        .tasks(TaskOptions::new())
}

fn handlers(gate: &Arc<Gate>) -> Handlers {
    let slow = gate.clone();
    let sampling = move |_: Value| {
        let gate = slow.clone();
        async move {
            gate.wait().await;
            Ok::<_, HandlerError>("said".to_owned())
        }
    };
    let elicitation = |params: Value, cx: Context| async move {
        assert_eq!(cx.request().task_id.is_some(), params["task"].is_object());
        Ok::<_, HandlerError>(json!({}))
    };
    Handlers::new().sampling(sampling).elicitation(elicitation)
}

#[tokio::test]
async fn a_client_answers_in_tasks_of_its_own() {
    let gate = Arc::<Gate>::default();
    gate.open.add_permits(10);
    let server = asking();
    let client = connected(&server, WITH_TASKS, &handlers(&gate).tasks(TaskOptions::new()).unwrap()).await;
    for (name, text) in [("sample", "said"), ("form", "7")] {
        let result = within(name, client.call_tool(name, json!({}))).await.unwrap();
        assert_eq!((result.text().as_str(), result.is_error), (text, false), "{name}");
        // A task that waits for a task.
        let options = CallOptions::new().task(None);
        let result = within(name, client.call_tool_with(name, json!({}), &options)).await.unwrap();
        assert_eq!((result.text().as_str(), result.is_error), (text, false), "{name}");
    }
    assert_eq!(gate.dropped(), 0);
}

#[tokio::test]
async fn a_client_without_tasks_is_not_asked_in_one() {
    let gate = Arc::<Gate>::default();
    let server = asking();
    for (revision, handlers) in [
        (WITH_TASKS, handlers(&gate)),
        ("2025-06-18", handlers(&gate).tasks(TaskOptions::new()).unwrap()),
        (WITH_TASKS, Handlers::new().tasks(TaskOptions::new()).unwrap()),
    ] {
        let client = connected(&server, revision, &handlers).await;
        for name in ["sample", "form"] {
            let result = within(name, client.call_tool(name, json!({}))).await.unwrap();
            assert!(result.is_error && gate.started() == 0, "{revision} {}", result.text());
        }
    }
    assert!(Handlers::new().tasks(TaskOptions::new().max_tasks(0)).is_err());
}

#[tokio::test]
async fn a_handler_that_is_cancelled_cancels_its_clients_task() {
    let gate = Arc::<Gate>::default();
    let server = asking();
    let client = connected(&server, WITH_TASKS, &handlers(&gate).tasks(TaskOptions::new()).unwrap()).await;
    let task = client.call_tool_task("sample", json!({}), TTL, &CallOptions::new()).await.unwrap();
    until("the client's handler runs", || gate.started() == 1).await;
    let waits = task.status().await.unwrap();
    assert_eq!(waits.status, TaskStatus::InputRequired);
    task.cancel().await.unwrap();
    until("the client's handler is dropped", || gate.dropped() == 1).await;
    // The connection takes the rest along.
    let task = client.call_tool_task("sample", json!({}), TTL, &CallOptions::new()).await.unwrap();
    until("the client's handler runs", || gate.started() == 2).await;
    client.close().await;
    until("the client's handler is dropped", || gate.dropped() == 2).await;
    assert_eq!(task.status().await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn cancelling_and_finishing_at_once_ends_in_one_of_both() {
    let (gate, ends) = (Arc::<Gate>::default(), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    for _ in 0..50 {
        let task = client.call_tool_task("long", json!({}), TTL, &CallOptions::new()).await.unwrap();
        let waiting = tokio::spawn({
            let task = task.clone();
            async move { task.result().await }
        });
        let opening = tokio::spawn({
            let gate = gate.clone();
            async move { gate.open.add_permits(1) }
        });
        let cancelled = task.cancel().await;
        opening.await.unwrap();
        let result = within("the result", waiting).await.unwrap();
        let status = task.status().await.unwrap().status;
        assert_eq!(status == TaskStatus::Cancelled, cancelled.is_ok());
        assert_eq!(result.is_err(), cancelled.is_ok(), "{result:?}");
        ends[usize::from(cancelled.is_ok())].fetch_add(1, Ordering::SeqCst);
        while let Ok(permit) = gate.open.try_acquire() {
            permit.forget();
        }
    }
    assert_eq!(ends.iter().map(|n| n.load(Ordering::SeqCst)).sum::<usize>(), 50);
}
