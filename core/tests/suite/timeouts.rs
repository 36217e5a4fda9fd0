//! Tools that take longer than they may.
#![cfg(feature = "runtime")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tricorn::client::{Handlers, Tap};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::prelude::*;
use tricorn::server::{InputRequired, IntoHandler, Kind, Question};
use tricorn::{Handler, Reply};

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

/// python-sdk 1687: a time of a tool's own among those of a server, and none at all.
#[tokio::test]
async fn a_time_beyond_all_clocks_is_none() {
    let server = Server::new("timeouts")
        .tool_timeout(Duration::MAX)
        .tool("quick", "", async |_: Nothing| Ok("done"))
        .tool_with(Tool::new("own", "").timeout(Duration::MAX), async |_: Nothing| {
            tokio::task::yield_now().await;
            Ok("done")
        });
    let client = connected(&server, "2026-07-28").await;
    for tool in ["quick", "own"] {
        assert_eq!(client.call_tool(tool, json!({})).await.expect("an answer").text(), "done", "{tool}");
    }
    client.close().await;
}

/// Keeps its calls, whatever becomes of them.
#[derive(Default)]
struct Holds(Mutex<Vec<(Context, Reply)>>, tokio::sync::Notify);

impl Handler for Holds {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        self.0.lock().expect("lock").push((cx, reply));
        self.1.notify_one();
    }
}

impl Holds {
    async fn next(&self) -> (Context, Reply) {
        within(self.1.notified()).await;
        self.0.lock().expect("lock").pop().expect("a call")
    }
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("in time")
}

/// Counts the answers of a server by their ids.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<Vec<String>>>);

impl Tap for Answers {
    fn frame(&self, by_client: bool, _: &str, frame: &bytes::Bytes) {
        let message: Value = serde_json::from_slice(frame).expect("JSON");
        if !by_client && message.get("method").is_none() {
            self.0.lock().expect("lock").push(message["id"].to_string());
        }
    }
}

impl Answers {
    /// Panics when there are two to one request.
    fn are_single(&self) {
        let mut ids = std::mem::take(&mut *self.0.lock().expect("lock"));
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}

fn form() -> Value {
    json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

/// typescript-sdk 2076 and 192: progress extends the time of a caller, and not that of a tool.
#[tokio::test]
async fn progress_does_not_extend_the_time_of_a_tool() {
    let server = Server::new("timeouts").tool_timeout(Duration::from_millis(100)).tool(
        "busy",
        "",
        |_: Nothing, cx: Context| async move {
            for n in 0..2000_u32 {
                cx.progress(n.into(), None, None);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok("done")
        },
    );
    for revision in REVISIONS {
        let client = connected(&server, revision).await;
        let options = CallOptions::new().timeout(Duration::from_secs(20)).on_progress(|_| ());
        let result = client.call_tool_with("busy", json!({}), &options).await.expect("an answer");
        assert!(result.is_error && result.text().ends_with("took longer than 0.1 s"), "{revision}: {result:?}");
        client.close().await;
    }
}

/// python-sdk 1152, codex 20925, linkedin-mcp-server 889: one answer, and none after it, whatever the handler does.
#[tokio::test]
async fn an_answer_that_comes_later_goes_nowhere() {
    let held = Arc::new(Holds::default());
    let server = Server::new("timeouts").tool("quick", "", async |_: Nothing| Ok("done"));
    server.add_tool(Tool::new("deaf", "").timeout(Duration::from_millis(50)), held.clone()).expect("added");
    for revision in REVISIONS {
        let answers = Answers::default();
        let options = ClientOptions::new().revision(revision).tap(answers.clone());
        let client = Client::in_memory(&server, &options).await.expect("connected");
        let result = client.call_tool("deaf", json!({})).await.expect("an answer");
        assert!(result.is_error && result.text().ends_with("took longer than 0.05 s"), "{revision}: {result:?}");
        let (cx, reply) = held.next().await;
        within(cx.cancelled()).await;
        cx.progress(1.0, None, None);
        reply.text("late");
        assert_eq!(client.call_tool("quick", json!({})).await.expect("an answer").text(), "done", "{revision}");
        assert_eq!(server.usage().in_flight, 0, "{revision}");
        client.close().await;
        answers.are_single();
    }
}

/// python-sdk 2416 and 2418: the end of a handler, its time and its caller's patience at one moment.
#[tokio::test]
async fn a_handler_that_ends_with_its_time_has_one_answer() {
    const TIME: Duration = Duration::from_millis(100);
    let server = Server::new("timeouts").tool_timeout(TIME).tool("even", "", async |_: Nothing| {
        tokio::time::sleep(TIME).await;
        Ok("done")
    });
    for revision in REVISIONS {
        let answers = Answers::default();
        let options = ClientOptions::new().revision(revision).tap(answers.clone());
        let client = Client::in_memory(&server, &options).await.expect("connected");
        let calls = (0..50).map(|n| {
            let client = client.clone();
            tokio::spawn(async move {
                let patience = if n % 2 == 0 { TIME } else { Duration::from_secs(20) };
                client.call_tool_with("even", json!({}), &CallOptions::new().timeout(patience)).await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            match within(call).await.expect("joined") {
                Ok(result) if result.is_error => {
                    assert!(result.text().ends_with("took longer than 0.1 s"), "{result:?}")
                }
                Ok(result) => assert_eq!(result.text(), "done", "{revision}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout, "{revision}: {error}"),
            }
        }
        // Nothing is left of them, and the connection goes on.
        assert!(client.list_tools().await.is_ok_and(|tools| tools.len() == 1), "{revision}");
        within(async {
            while server.usage().in_flight > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        client.close().await;
        answers.are_single();
    }
}

/// Helicone 5771, crawlee 263: a timer that nobody needs any more goes, and all that it holds, long before its time.
#[tokio::test]
async fn quick_calls_leave_no_timer() {
    let ended = Arc::new(tokio::sync::Notify::new());
    let server = Server::new("timeouts").tool_timeout(Duration::from_secs(3600));
    for revision in REVISIONS {
        let ends = Ends(ended.clone());
        let quick = move |_: Nothing| {
            let _kept = &ends;
            async { Ok("done") }
        };
        let server = server.clone().tool("quick", "", quick);
        let client = connected(&server, revision).await;
        for _ in 0..200 {
            assert_eq!(client.call_tool("quick", json!({})).await.expect("an answer").text(), "done");
        }
        client.close().await;
        assert!(server.remove_tool("quick"), "{revision}");
        within(ended.notified()).await;
    }
}

/// fastmcp 270 and 2802: tools that a server takes from elsewhere have its time, too.
#[tokio::test]
async fn a_tool_of_a_source_has_the_time_of_its_server() {
    let held = Arc::new(Holds::default());
    let server = Server::new("timeouts").tool_timeout(Duration::from_millis(50));
    let list = (|_: Value| async { Ok(json!([])) }).into_handler();
    server.set_source(Kind::Tool, Some(list), Some(held.clone()));
    for revision in REVISIONS {
        let client = connected(&server, revision).await;
        let result = client.call_tool("anything", json!({})).await.expect("an answer");
        let told = "the tool was cancelled: it took longer than 0.05 s";
        assert_eq!((result.is_error, result.text().as_str()), (true, told), "{revision}");
        within(held.next().await.0.cancelled()).await;
        client.close().await;
    }
}

/// fastmcp 2872, mcp-go 897: what goes on as a task has the time of its tool, from the beginning of the call.
#[tokio::test]
async fn a_call_that_goes_on_as_a_task_has_its_time() {
    let ended = Arc::new(tokio::sync::Notify::new());
    let ends = ended.clone();
    let server = Server::new("timeouts").tool_timeout(Duration::from_millis(100)).tasks(TaskOptions::new()).tool(
        "long",
        "",
        move |_: Nothing, cx: Context| {
            let ends = Ends(ends.clone());
            async move {
                let _ends = ends;
                assert!(cx.run_as_task()?);
                std::future::pending::<()>().await;
                Ok(())
            }
        },
    );
    let options = ClientOptions::new().revision("2026-07-28").tasks(TaskOptions::new());
    let client = Client::in_memory(&server, &options).await.expect("connected");
    let result = within(client.call_tool("long", json!({}))).await.expect("a result");
    let told = "tool \"long\" was cancelled: it took longer than 0.1 s";
    assert_eq!((result.is_error, result.text().as_str()), (true, told));
    within(ended.notified()).await;
    client.close().await;
}

/// Asks in both ways.
fn asks(server: Server) -> Server {
    server
        .tool("asks", "", |_: Nothing, cx: Context| async move {
            Ok(cx.elicit("name?", &form()).await?.content["name"].to_string())
        })
        .tool("by_hand", "", |_: Nothing, cx: Context| async move {
            match cx.input_responses()?.get("name") {
                None => Err(InputRequired::new().ask("name", Question::elicit("name?", &form())).into()),
                Some(answer) => Ok(answer["content"]["name"].to_string()),
            }
        })
}

/// executor 1953, codex 17566, opencode 35275: a question that waits when the time is over is taken back.
#[tokio::test]
async fn a_question_is_taken_back_when_the_time_of_its_tool_is_over() {
    let server = asks(Server::new("timeouts").tool_timeout(Duration::from_millis(300)));
    for revision in ["2025-06-18", "2025-11-25"] {
        let (user, answers) = (Arc::new(Holds::default()), Answers::default());
        let options = ClientOptions::new().revision(revision).tap(answers.clone());
        let handlers = Handlers::new().elicitation(user.clone());
        let client = Client::in_memory_with(&server, &options, &handlers).await.expect("connected");
        for tool in ["asks", "by_hand"] {
            let result = client.call_tool(tool, json!({})).await.expect("an answer");
            let told = format!("tool {tool:?} was cancelled: it took longer than 0.3 s");
            assert_eq!((result.is_error, result.text()), (true, told), "{revision}");
            let (cx, reply) = user.next().await;
            within(cx.cancelled()).await;
            reply.value(RawJson::from_value(&json!({"action": "accept", "content": {"name": "Ada"}})));
            client.ping().await.expect("the connection goes on");
            assert!(user.0.lock().expect("lock").is_empty(), "{revision} {tool}: it does not ask again");
        }
        client.close().await;
        answers.are_single();
    }
}

/// The same where a question ends the run of the handler: its user has all the time.
#[tokio::test]
async fn a_user_has_all_the_time_between_two_rounds() {
    const TIME: Duration = Duration::from_millis(300);
    let server = asks(Server::new("timeouts").tool_timeout(TIME));
    let user = Arc::new(Holds::default());
    let options = ClientOptions::new().revision("2026-07-28");
    let handlers = Handlers::new().elicitation(user.clone());
    let client = Client::in_memory_with(&server, &options, &handlers).await.expect("connected");
    for tool in ["asks", "by_hand"] {
        let caller = client.clone();
        let call = tokio::spawn(async move { caller.call_tool(tool, json!({})).await });
        let (_, reply) = user.next().await;
        tokio::time::sleep(2 * TIME).await;
        reply.value(RawJson::from_value(&json!({"action": "accept", "content": {"name": "Ada"}})));
        let result = within(call).await.expect("joined").expect("an answer");
        assert_eq!((result.is_error, result.text().as_str()), (false, "\"Ada\""), "{tool}");
    }
    client.close().await;
}
