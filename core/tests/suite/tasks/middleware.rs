//! Tasks of requests that go through middleware: none runs of which nobody hears.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::TaskOptions;
use tricorn::client::Handlers;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{ConcurrencyLimit, Next, Request};
use tricorn::prelude::*;

use super::fixture::*;

fn as_task() -> Value {
    json!({"name": "slow", "arguments": {"text": "x"}, "task": {}})
}

/// Waits before or after what is inside, and says so.
#[derive(Default)]
struct Stop {
    reached: Notify,
    go_on: Notify,
}

impl Stop {
    async fn here(&self) {
        self.reached.notify_one();
        self.go_on.notified().await;
    }
}

#[tokio::test]
async fn a_task_of_which_the_client_does_not_hear_is_ended() {
    let (gate, stop) = (Arc::<Gate>::default(), Arc::<Stop>::default());
    let stops = stop.clone();
    let server =
        server(&gate, Some(TaskOptions::new())).middleware(move |request: Request, cx: Context, next: Next| {
            let stop = stops.clone();
            async move {
                let result = next.run(request, &cx).await;
                stop.here().await;
                result
            }
        });
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    tokio::select! {
        biased;
        answer = ask(&client, "tools/call", as_task()) => panic!("{answer:?}"),
        () = async {
            stop.reached.notified().await;
            assert_eq!(server.usage().tasks, 1);
        } => {}
    }
    until("the task is gone", || server.usage().tasks == 0).await;
    until("it is dropped", || gate.dropped() == gate.started()).await;
    // What is answered goes on.
    stop.go_on.notify_one();
    let created = ask(&client, "tools/call", as_task()).await.unwrap();
    gate.open.add_permits(1);
    stop.go_on.notify_one();
    let result = ask(&client, "tasks/result", json!({"taskId": created["task"]["taskId"]})).await.unwrap();
    assert_eq!(result["content"][0]["text"], "x");
}

#[tokio::test]
async fn a_task_that_middleware_keeps_to_itself_is_ended() {
    let gate = Arc::<Gate>::default();
    let server =
        server(&gate, Some(TaskOptions::new())).middleware(|request: Request, cx: Context, next: Next| async move {
            next.run(request, &cx).await?;
            Err::<RawJson, _>(Error::rpc(-31999, "no"))
        });
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    assert_eq!(ask(&client, "tools/call", as_task()).await.unwrap_err().code(), Some(-31999));
    assert_eq!(server.usage().tasks, 0);
}

#[tokio::test]
async fn no_task_begins_when_the_client_is_gone() {
    let (gate, stop, over) = (Arc::<Gate>::default(), Arc::<Stop>::default(), Arc::<Notify>::default());
    let (stops, overs) = (stop.clone(), over.clone());
    let server =
        server(&gate, Some(TaskOptions::new())).middleware(move |request: Request, cx: Context, next: Next| {
            let (stop, over) = (stops.clone(), overs.clone());
            async move {
                // On its own, as the functions of other languages are.
                let goes_on = tokio::spawn(async move {
                    stop.here().await;
                    let outcome = next.run(request, &cx).await;
                    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Cancelled);
                    over.notify_one();
                });
                goes_on.await.unwrap();
                Ok(RawJson::empty_object())
            }
        });
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let params = RawJson::from_value(&as_task());
    let call = tokio::spawn(client.request("tools/call", Some(params), &CallOptions::new()));
    within("it runs", stop.reached.notified()).await;
    client.close().await;
    assert!(within("the end", call).await.unwrap().is_err());
    stop.go_on.notify_one();
    within("an error", over.notified()).await;
    assert_eq!((server.usage().tasks, gate.started()), (0, 0));
}

#[tokio::test]
async fn who_waits_for_a_result_is_not_counted_as_running() {
    let gate = Arc::<Gate>::default();
    let limit = ConcurrencyLimit::new(1).expect("a limit").max_waiting(0);
    let server = server(&gate, Some(TaskOptions::new())).middleware(limit);
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let id = begin(&client, "slow", json!({"text": "x"})).await;
    let waits = ask(&client, "tasks/result", json!({"taskId": id}));
    let calls = async {
        until("it runs", || gate.started() == 1).await;
        let plain = ask(&client, "tools/call", json!({"name": "plain", "arguments": {"text": "y"}})).await;
        gate.open.add_permits(1);
        plain
    };
    // In this order: the result is asked for first.
    let (result, plain) = within("both", async { tokio::join!(biased; waits, calls) }).await;
    assert_eq!(plain.unwrap()["content"][0]["text"], "y");
    assert_eq!(result.unwrap()["content"][0]["text"], "x");
}
