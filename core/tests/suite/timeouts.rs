//! Tools that take longer than they may.
#![cfg(feature = "runtime")]

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// Says when it is dropped.
struct Ends(Arc<tokio::sync::Notify>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

fn slow(server: Server, tool: Tool, ended: &Arc<tokio::sync::Notify>) -> Server {
    let ended = ended.clone();
    server.tool_with(tool, move |_: Nothing| {
        let ends = Ends(ended.clone());
        async move {
            let _ends = ends;
            std::future::pending::<()>().await;
            Ok(())
        }
    })
}

async fn connected(server: &Server, revision: &str) -> Client {
    Client::in_memory(server, &ClientOptions::new().revision(revision)).await.expect("connected")
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_cancelled_and_answered_for() {
    let ended = Arc::new(tokio::sync::Notify::new());
    let server = Server::new("timeouts")
        .tool_timeout(Duration::from_millis(200))
        .tool("quick", "", async |_: Nothing| Ok("done"))
        .tool_with(Tool::new("patient", "").timeout(Duration::ZERO), async |_: Nothing| {
            tokio::time::sleep(Duration::from_millis(400)).await;
            Ok("done")
        });
    let server = slow(server, Tool::new("slow", ""), &ended);
    let server = slow(server, Tool::new("hasty", "").timeout(Duration::from_millis(50)), &ended);
    for revision in REVISIONS {
        let client = connected(&server, revision).await;
        for (tool, time) in [("slow", "0.2 s"), ("hasty", "0.05 s")] {
            let result = client.call_tool(tool, json!({})).await.expect("an answer");
            let told = format!("tool {tool:?} was cancelled: it took longer than {time}");
            assert_eq!((result.is_error, result.text()), (true, told), "{revision}");
            tokio::time::timeout(Duration::from_secs(20), ended.notified()).await.expect("the handler ends");
        }
        for tool in ["quick", "patient"] {
            let result = client.call_tool(tool, json!({})).await.expect("an answer");
            assert_eq!((result.is_error, result.text().as_str()), (false, "done"), "{revision} {tool}");
        }
        assert_eq!(server.usage().in_flight, 0, "{revision}");
        client.close().await;
    }
}

#[tokio::test]
async fn middleware_sees_what_is_answered_for_a_tool() {
    let ended = Arc::new(tokio::sync::Notify::new());
    let server = Server::new("timeouts").tool_timeout(Duration::from_millis(50)).middleware(
        async |request: Request, context: Context, next: Next| {
            let mut result: serde_json::Value = next.run(request, &context).await?.to().expect("JSON");
            if result["isError"] == true {
                result["_meta"] = json!({"seen": true});
            }
            Ok(RawJson::from_value(&result))
        },
    );
    let server = slow(server, Tool::new("slow", ""), &ended);
    for revision in REVISIONS {
        let client = connected(&server, revision).await;
        let result = client.call_tool("slow", json!({})).await.expect("an answer");
        assert!(result.is_error && result.text().contains("took longer than 0.05 s"), "{revision}: {result:?}");
        let meta = result.meta.as_ref().and_then(|meta| meta.get("seen")).cloned();
        assert_eq!(meta, Some(json!(true)), "{revision}");
        tokio::time::timeout(Duration::from_secs(20), ended.notified()).await.expect("the handler ends");
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_that_takes_too_long_fails() {
    let ended = Arc::new(tokio::sync::Notify::new());
    let server = Server::new("timeouts").tool_timeout(Duration::from_millis(50)).tasks(TaskOptions::new());
    let server = slow(server, Tool::new("slow", "").task_support(TaskSupport::Optional), &ended);
    for revision in ["2025-11-25", "2026-07-28"] {
        let options = ClientOptions::new().revision(revision).tasks(TaskOptions::new());
        let client = Client::in_memory(&server, &options).await.expect("connected");
        let task = client.call_tool_task("slow", json!({}), None, &CallOptions::new()).await.expect("a task");
        let result = task.result().await.expect("a result");
        let told = "tool \"slow\" was cancelled: it took longer than 0.05 s";
        assert_eq!((result.is_error, result.text().as_str()), (true, told), "{revision}");
        tokio::time::timeout(Duration::from_secs(20), ended.notified()).await.expect("the handler ends");
        client.close().await;
    }
}

#[tokio::test]
async fn a_time_beyond_all_clocks_is_none() {
    let server = Server::new("timeouts").tool_timeout(Duration::MAX).tool("quick", "", async |_: Nothing| Ok("done"));
    let client = connected(&server, "2026-07-28").await;
    assert_eq!(client.call_tool("quick", json!({})).await.expect("an answer").text(), "done");
    client.close().await;
}
