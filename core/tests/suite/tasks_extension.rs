//! Tasks of the extension `io.modelcontextprotocol/tasks` (revision 2026-07-28), on the wire.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod client;
mod heard;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::model::TaskSupport;
use tricorn::prelude::*;
use tricorn::server::{InputRequired, Question};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn tool(name: &str, support: TaskSupport) -> Tool {
    Tool::new(name, "").task_support(support)
}

fn form(name: &str) -> Value {
    json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
}

/// Gates by which the tests steer the tools.
#[derive(Default)]
struct Gates {
    go: Notify,
    begun: AtomicUsize,
    dropped: AtomicUsize,
}

impl Gates {
    /// So many handlers were stopped.
    async fn stopped(&self, handlers: usize) {
        tokio::time::timeout(PATIENCE, async {
            while self.dropped.load(Ordering::SeqCst) < handlers {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{handlers} handlers are not stopped"));
    }
}

struct Dropped(Arc<Gates>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn server(gates: &Arc<Gates>, options: TaskOptions) -> Server {
    let slow = gates.clone();
    Server::new("s")
        .tasks(options)
        .tool_with(tool("slow", TaskSupport::Optional), move |_: Nothing, _: Context| {
            let gates = slow.clone();
            async move {
                gates.begun.fetch_add(1, Ordering::SeqCst);
                let _dropped = Dropped(gates.clone());
                gates.go.notified().await;
                Ok("done")
            }
        })
        .tool_with(tool("plain", TaskSupport::Forbidden), |_: Nothing, cx: Context| async move {
            Ok(cx.request().task_id.is_some())
        })
        .tool_with(tool("job", TaskSupport::Required), |_: Nothing, cx: Context| async move {
            assert!(cx.request().task_id.is_some());
            Ok(CallToolResult::failed("it failed"))
        })
        .tool_with(tool("broken", TaskSupport::Required), |_: Nothing, _: Context| async move {
            Err::<String, _>(tricorn::Error::rpc(-31050, "no such thing").into())
        })
        .tool_with(tool("wants_a_model", TaskSupport::Required), |_: Nothing, cx: Context| async move {
            let params =
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5});
            let params = tricorn::jsonrpc::RawJson::from_value(&params);
            Ok(cx.ask("sampling/createMessage", Some(params), &CallOptions::new()).await?.get().to_owned())
        })
        .tool_with(tool("finds_nothing", TaskSupport::Required), |_: Nothing, _: Context| async move {
            Err::<String, _>(tricorn::Error::resource_not_found("x://a").into())
        })
        .tool_with(tool("asks", TaskSupport::Optional), |_: Nothing, cx: Context| async move {
            let (a, b) = (form("a"), form("b"));
            let (one, two) = tokio::join!(cx.elicit("one?", &a), cx.elicit("two?", &b));
            Ok(format!("{} {}", one?.content["a"], two?.content["b"]))
        })
        .tool_with(tool("waits", TaskSupport::Optional), |_: Nothing, cx: Context| async move {
            let params = json!({"message": "quick?", "requestedSchema": form("a")});
            let params = tricorn::jsonrpc::RawJson::from_value(&params);
            let options = CallOptions::new().timeout(Duration::from_millis(30));
            let late = cx.ask("elicitation/create", Some(params), &options).await.unwrap_err();
            cx.progress(1.0, None, Some("gave up"));
            assert!(cx.task_id().is_some());
            Ok(late.message().to_owned())
        })
        .tool_with(tool("first_asks", TaskSupport::Forbidden), |_: Nothing, cx: Context| async move {
            let name = cx.elicit("name?", &form("name")).await?;
            let is_task = cx.run_as_task()?;
            let age = cx.elicit("age?", &form("age")).await?;
            Ok(format!("{} {} {is_task}", name.content["name"], age.content["age"]))
        })
        .tool_with(tool("by_hand", TaskSupport::Optional), |_: Nothing, cx: Context| async move {
            cx.step("once", async { 1 }).await?;
            match cx.input_responses()?.get("q") {
                None => Err(InputRequired::new().ask("q", Question::elicit("by hand?", &form("a"))).into()),
                Some(answer) => Ok(answer["content"]["a"].to_string()),
            }
        })
}

struct Caller {
    endpoint: Endpoint,
    declares: bool,
    authorization: Option<&'static str>,
}

impl Caller {
    fn new(server: &Server) -> Self {
        Self { endpoint: server.endpoint(HttpOptions::default()).unwrap(), declares: true, authorization: None }
    }

    async fn sent(&self, method: &str, name: Option<&str>, mut params: Value) -> http::Response<tricorn::http::Body> {
        let extensions = if self.declares { json!({EXTENSION: {}}) } else { json!({}) };
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": extensions},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut request = Request::post("/mcp")
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method);
        if let Some(name) = name {
            request = request.header("Mcp-Name", name);
        }
        if let Some(authorization) = self.authorization {
            request = request.header("Authorization", authorization);
        }
        self.endpoint.handle(request.body(Full::new(Bytes::from(body))).unwrap()).await
    }

    async fn post(&self, method: &str, name: Option<&str>, params: Value) -> Value {
        let response = self.sent(method, name, params).await;
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = std::str::from_utf8(&bytes).unwrap();
        serde_json::from_str(
            text.lines()
                .find_map(|line| line.strip_prefix("data: {"))
                .map_or_else(|| text.into(), |rest| format!("{{{rest}"))
                .as_str(),
        )
        .unwrap()
    }

    async fn call(&self, tool: &str, extra: Value) -> Value {
        let mut params = json!({"name": tool, "arguments": {}});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        self.post("tools/call", Some(tool), params).await
    }

    async fn task(&self, method: &str, id: &str, extra: Value) -> Value {
        let mut params = json!({"taskId": id});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        self.post(method, Some(id), params).await
    }

    /// The task, as soon as it is so.
    async fn until(&self, id: &str, status: &str) -> Value {
        tokio::time::timeout(PATIENCE, async {
            loop {
                let got = self.task("tasks/get", id, json!({})).await;
                if got["result"]["status"] == status {
                    return got["result"].clone();
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{id} is not {status}"))
    }
}

fn id_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    answer["result"]["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_tool_becomes_a_task_when_its_client_takes_one() {
    let gates = Arc::<Gates>::default();
    let mut caller = Caller::new(&server(&gates, TaskOptions::new()));
    let created = caller.call("slow", json!({"task": {"ttl": 5}})).await;
    let id = id_of(&created);
    let result = created["result"].as_object().unwrap();
    let names: Vec<_> = result.keys().map(String::as_str).filter(|name| *name != "_meta").collect();
    assert_eq!(
        names,
        ["resultType", "taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"],
        "{created}"
    );
    assert!(result["ttlMs"] == 3_600_000 && result["pollIntervalMs"] == 1000, "{created}");
    let working = caller.task("tasks/get", &id, json!({})).await;
    assert_eq!(
        (&working["result"]["status"], &working["result"]["resultType"]),
        (&json!("working"), &json!("complete"))
    );
    gates.go.notify_one();
    let done = caller.until(&id, "completed").await;
    assert_eq!(done["result"], json!({"content": [{"type": "text", "text": "done"}]}));
    assert!(done.get("requestState").is_none() && done.get("inputRequests").is_none(), "{done}");

    // Who does not declare the extension is answered as ever.
    caller.declares = false;
    gates.go.notify_one();
    let answer = caller.call("slow", json!({})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    let refused = caller.call("job", json!({})).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"extensions": {EXTENSION: {}}}));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = caller.task(method, &id, json!({"inputResponses": {}})).await;
        assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
    }
    // And a tool that is none never.
    caller.declares = true;
    let answer = caller.call("plain", json!({"task": {}})).await;
    assert_eq!(answer["result"]["content"][0]["text"], "false", "{answer}");
}

#[tokio::test]
async fn how_it_ends_is_inside_of_the_task() {
    let caller = Caller::new(&server(&Arc::default(), TaskOptions::new()));
    let failed = caller.until(&id_of(&caller.call("job", json!({})).await), "completed").await;
    assert!(failed["result"]["isError"] == true && failed.get("error").is_none(), "{failed}");
    let broken = caller.until(&id_of(&caller.call("broken", json!({})).await), "failed").await;
    assert!(broken["error"] == json!({"code": -31050, "message": "no such thing"}), "{broken}");
    assert!(broken.get("result").is_none() && broken["statusMessage"] == "no such thing", "{broken}");
    // As without a task, and as `Context::require` says it.
    let refused = caller.until(&id_of(&caller.call("wants_a_model", json!({})).await), "failed").await;
    let required = json!({"requiredCapabilities": {"sampling": {}}});
    assert_eq!((&refused["error"]["code"], &refused["error"]["data"]), (&json!(-32021), &required), "{refused}");
    let missing = caller.until(&id_of(&caller.call("finds_nothing", json!({})).await), "failed").await;
    assert_eq!((&missing["error"]["code"], &missing["error"]["data"]["uri"]), (&json!(-32602), &json!("x://a")));
}

#[tokio::test]
async fn cancelling_stops_the_handler_and_what_is_over_stays() {
    let gates = Arc::<Gates>::default();
    let caller = Caller::new(&server(&gates, TaskOptions::new()));
    let id = id_of(&caller.call("slow", json!({})).await);
    for _ in 0..2 {
        let ack = caller.task("tasks/cancel", &id, json!({})).await;
        let names: Vec<_> = ack["result"].as_object().unwrap().keys().filter(|name| *name != "_meta").collect();
        assert_eq!(names, ["resultType"], "{ack}");
        assert_eq!(ack["result"]["resultType"], "complete");
    }
    let cancelled = caller.until(&id, "cancelled").await;
    assert!(cancelled.get("result").is_none() && cancelled.get("error").is_none(), "{cancelled}");
    gates.stopped(1).await;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = caller.task(method, "nobody's", json!({"inputResponses": {}})).await;
        assert_eq!(unknown["error"]["code"], -32602, "{method}: {unknown}");
    }
    for method in ["tasks/list", "tasks/result"] {
        let gone = caller.task(method, &id, json!({})).await;
        assert_eq!(gone["error"]["code"], -32601, "{method}: {gone}");
    }
    // The header says what the body says.
    let response = caller.sent("tasks/get", Some("another"), json!({"taskId": id})).await;
    assert_eq!(response.status(), 400);
}

#[tokio::test]
async fn questions_wait_in_the_task() {
    let caller = Caller::new(&server(&Arc::default(), TaskOptions::new()));
    let id = id_of(&caller.call("asks", json!({})).await);
    let asked = caller.until(&id, "input_required").await;
    let requests = asked["inputRequests"].as_object().unwrap();
    let keys: Vec<_> = requests.keys().cloned().collect();
    assert_eq!(keys.len(), 2, "{asked}");
    assert_eq!(requests[&keys[0]]["method"], "elicitation/create");
    assert_eq!(requests[&keys[0]]["params"]["message"], "one?");

    let accept = |content: Value| json!({"action": "accept", "content": content});
    // One answer, one that nobody asked for.
    let responses = json!({keys[1].clone(): accept(json!({"b": "second"})), "stale": {}});
    let ack = caller.task("tasks/update", &id, json!({"inputResponses": responses})).await;
    assert_eq!(ack["result"]["resultType"], "complete", "{ack}");
    let rest = caller.until(&id, "input_required").await;
    assert_eq!(rest["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), [&keys[0]]);
    // What is no answer is asked again, by another key.
    let responses = json!({keys[0].clone(): accept(json!({"a": 7}))});
    caller.task("tasks/update", &id, json!({"inputResponses": responses})).await;
    let again = caller.until(&id, "input_required").await;
    let key = again["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    assert!(!keys.contains(&key), "{again}");
    let responses = json!({key: accept(json!({"a": "first"}))});
    caller.task("tasks/update", &id, json!({"inputResponses": responses})).await;
    let done = caller.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "\"first\" \"second\"", "{done}");
    for wrong in [json!({}), json!({"inputResponses": []})] {
        let refused = caller.task("tasks/update", &id, wrong).await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("inputResponses"), "{refused}");
    }
}

#[tokio::test]
async fn a_question_that_takes_too_long_is_taken_back() {
    let caller = Caller::new(&server(&Arc::default(), TaskOptions::new()));
    let done = caller.until(&id_of(&caller.call("waits", json!({})).await), "completed").await;
    let text = done["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no answer to \"elicitation/create\" within 0.03 s"), "{done}");
    assert!(done["statusMessage"] == "gave up" && done.get("inputRequests").is_none(), "{done}");
}

#[tokio::test]
async fn rounds_come_first_and_then_the_task() {
    let caller = Caller::new(&server(&Arc::default(), TaskOptions::new()));
    let first = caller.call("first_asks", json!({})).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let key = first["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let second = caller
        .call(
            "first_asks",
            json!({
                "inputResponses": {key: {"action": "accept", "content": {"name": "Ada"}}},
                "requestState": first["result"]["requestState"],
            }),
        )
        .await;
    let id = id_of(&second);
    let asked = caller.until(&id, "input_required").await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let responses = json!({key: {"action": "accept", "content": {"age": "36"}}});
    caller.task("tasks/update", &id, json!({"inputResponses": responses})).await;
    let done = caller.until(&id, "completed").await;
    assert_eq!(done["result"]["content"][0]["text"], "\"Ada\" \"36\" true", "{done}");

    // Who keeps the rounds himself is asked by the task, too.
    let id = id_of(&caller.call("by_hand", json!({})).await);
    let asked = caller.until(&id, "input_required").await;
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let responses = json!({key: {"action": "accept", "content": {"a": "x"}}});
    caller.task("tasks/update", &id, json!({"inputResponses": responses})).await;
    assert_eq!(caller.until(&id, "completed").await["result"]["content"][0]["text"], "\"x\"");
}

#[tokio::test]
async fn a_task_is_its_principals_and_ends_in_its_time() {
    let gates = Arc::<Gates>::default();
    let server =
        server(&gates, TaskOptions::new().max_tasks(2).max_session_tasks(1).max_task_ttl(Duration::from_millis(200)));
    let mut caller = Caller::new(&server);
    caller.authorization = Some("Bearer one");
    let id = id_of(&caller.call("slow", json!({})).await);
    let refused = caller.call("slow", json!({})).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_session_tasks"), "{refused}");
    caller.authorization = Some("Bearer two");
    assert_eq!(caller.task("tasks/get", &id, json!({})).await["error"]["code"], -32602);
    caller.authorization = Some("Bearer one");
    tokio::time::timeout(PATIENCE, async {
        while caller.task("tasks/get", &id, json!({})).await["error"]["code"] != -32602 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    gates.stopped(1).await;
    // A server that closes stops what runs.
    let id = id_of(&caller.call("slow", json!({})).await);
    assert!(!id.is_empty());
    server.close();
    gates.stopped(2).await;
}

#[tokio::test]
async fn who_listens_is_told_the_whole_task() {
    let gates = Arc::<Gates>::default();
    let mut caller = Caller::new(&server(&gates, TaskOptions::new()));
    let id = id_of(&caller.call("slow", json!({})).await);
    caller.declares = false;
    let filter = json!({"notifications": {"taskIds": [id, "nobody's"]}});
    let refused = caller.post("subscriptions/listen", None, filter.clone()).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    caller.declares = true;
    let mut body = Box::pin(caller.sent("subscriptions/listen", None, filter).await.into_body());
    let mut text = String::new();
    let mut read = async |until: &str| {
        tokio::time::timeout(PATIENCE, async {
            while !text.contains(until) {
                let frame = body.frame().await.unwrap().unwrap();
                text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            }
            std::mem::take(&mut text)
        })
        .await
        .unwrap()
    };
    let begun = read("\"working\"").await;
    assert!(begun.contains("notifications/subscriptions/acknowledged") && !begun.contains("nobody's"), "{begun}");
    gates.go.notify_one();
    let done = read("\"completed\"").await;
    let event: Value =
        serde_json::from_str(done.lines().find_map(|line| line.strip_prefix("data: ")).unwrap()).unwrap();
    assert_eq!(event["method"], "notifications/tasks");
    assert_eq!(event["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 1, "{event}");
    assert_eq!(event["params"]["result"]["content"][0]["text"], "done", "{event}");
}
