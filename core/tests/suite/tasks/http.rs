//! Tasks over HTTP: whose they are, and on which stream their messages come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ::http::{Request, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tricorn::client::{Handlers, Target};
use tricorn::http::{Body, Endpoint, HttpOptions};
use tricorn::prelude::*;
use tricorn::{Client, TaskOptions};

use super::fixture::*;

/// One client's session with an endpoint, request by request.
struct Session {
    endpoint: Endpoint,
    id: String,
    last: u64,
}

impl Session {
    async fn new(endpoint: &Endpoint) -> Self {
        let mut session = Self { endpoint: endpoint.clone(), id: String::new(), last: 0 };
        let capabilities = json!({"elicitation": {}});
        let info = json!({"name": "c", "version": "1"});
        let params = json!({"protocolVersion": WITH_TASKS, "capabilities": capabilities, "clientInfo": info});
        let response = session.send("POST", &session.request("initialize", params)).await;
        session.id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.send("POST", &initialized).await.status(), 202);
        session
    }

    fn request(&self, method: &str, params: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.last + 1, "method": method, "params": params})
    }

    async fn send(&self, verb: &str, body: &Value) -> Response<Body> {
        let mut request = Request::builder().method(verb).uri("/mcp").header("host", "localhost:1");
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if !self.id.is_empty() {
            request = request.header("mcp-session-id", &self.id);
        }
        let body = if verb == "POST" { body.to_string() } else { String::new() };
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        within("an answer", self.endpoint.handle(request)).await
    }

    /// Sends a request and gives its answer's body.
    async fn open(&mut self, method: &str, params: Value) -> Body {
        let request = self.request(method, params);
        self.last += 1;
        let response = self.send("POST", &request).await;
        assert_eq!(response.status(), 200);
        response.into_body()
    }

    async fn ask(&mut self, method: &str, params: Value) -> Result<Value, i64> {
        let body = self.open(method, params).await;
        let text = within("a body", body.collect()).await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| messages(&text).pop().unwrap());
        match answer["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(answer["result"].clone()),
        }
    }

    async fn begin(&mut self, name: &str) -> String {
        let created = self.ask("tools/call", json!({"name": name, "arguments": {}, "task": {}})).await.unwrap();
        created["task"]["taskId"].as_str().unwrap().to_owned()
    }
}

fn messages(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The next message of a stream.
async fn next(body: &mut Body) -> Value {
    loop {
        let frame = within("the next event", body.frame()).await.unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        if let Some(message) = messages(&text).pop() {
            return message;
        }
    }
}

fn endpoint(server: &Server) -> Endpoint {
    server.endpoint(HttpOptions::default()).unwrap()
}

#[tokio::test]
async fn a_session_sees_its_own_tasks_and_takes_them_along() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let endpoint = endpoint(&server);
    let (mut one, mut two) = (Session::new(&endpoint).await, Session::new(&endpoint).await);
    let id = one.begin("long").await;
    until("it runs", || gate.started() == 1).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(two.ask(method, json!({"taskId": id})).await, Err(-32602), "{method}");
    }
    assert_eq!(two.ask("tasks/list", json!({})).await, Ok(json!({"tasks": []})));
    assert_eq!(one.ask("tasks/get", json!({"taskId": id})).await.unwrap()["status"], "working");
    assert_eq!(one.send("DELETE", &Value::Null).await.status(), 204);
    until("it is dropped", || gate.dropped() == 1).await;
    assert_eq!(server.usage().tasks, 0);
}

#[tokio::test]
async fn a_session_is_there_for_as_long_as_its_tasks() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let options = HttpOptions::new().session_idle_timeout(Duration::from_millis(100));
    let endpoint = server.endpoint(options).unwrap();
    let mut session = Session::new(&endpoint).await;
    let id = session.begin("long").await;
    let _other = Session::new(&endpoint).await;
    until("the one without tasks is idle", || server.usage().sessions == 1).await;
    gate.open.add_permits(1);
    assert!(session.ask("tasks/result", json!({"taskId": id})).await.is_ok());
}

#[tokio::test]
async fn a_question_comes_with_the_result_that_is_waited_for() {
    // Asked before somebody waits for the result, and after.
    for early in [true, false] {
        let server = server(&Arc::default(), Some(TaskOptions::new()));
        let endpoint = endpoint(&server);
        let mut session = Session::new(&endpoint).await;
        let id = session.begin("asks").await;
        let named = json!({"taskId": id});
        if early {
            while session.ask("tasks/get", named.clone()).await.unwrap()["status"] != "input_required" {}
        }
        let mut body = session.open("tasks/result", named.clone()).await;
        let question = loop {
            let message = next(&mut body).await;
            if message["method"] == "elicitation/create" {
                break message;
            }
            assert_eq!(message["method"], "notifications/tasks/status", "{message}");
        };
        assert_eq!(question["params"]["_meta"], json!({RELATED: named}));
        assert_eq!(session.ask("tasks/get", named.clone()).await.unwrap()["status"], "input_required");
        let answer =
            json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
        assert_eq!(session.send("POST", &answer).await.status(), 202);
        let result = loop {
            let message = next(&mut body).await;
            if message.get("result").is_some() {
                break message["result"].clone();
            }
        };
        assert_eq!((&result["content"][0]["text"], &result["_meta"]), (&json!("Ada"), &json!({RELATED: named})));
        assert_eq!(session.ask("tasks/get", named).await.unwrap()["status"], "completed");
    }
}

#[tokio::test]
async fn a_question_is_not_lost_with_a_request_for_the_result_that_was_given_up() {
    let server = server(&Arc::default(), Some(TaskOptions::new()));
    let endpoint = endpoint(&server);
    let mut session = Session::new(&endpoint).await;
    let id = session.begin("asks_twice").await;
    let named = json!({"taskId": id});
    let answer = |question: &Value| json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    let question = async |body: &mut Body| loop {
        let message = next(body).await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let mut first = session.open("tasks/result", named.clone()).await;
    let one = question(&mut first).await;
    drop(first);
    assert_eq!(session.send("POST", &answer(&one)).await.status(), 202);
    // It is asked again while nobody reads.
    until_status(&mut session, &named, "input_required").await;
    let mut second = session.open("tasks/result", named.clone()).await;
    let two = question(&mut second).await;
    assert_eq!(two["params"]["message"], "And who?");
    assert_eq!(session.send("POST", &answer(&two)).await.status(), 202);
    until_status(&mut session, &named, "completed").await;
}

async fn until_status(session: &mut Session, named: &Value, status: &str) {
    within(status, async {
        while session.ask("tasks/get", named.clone()).await.unwrap()["status"] != status {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn requests_for_a_result_that_were_given_up_do_not_fill_the_session() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let endpoint = endpoint(&server);
    let mut session = Session::new(&endpoint).await;
    let id = session.begin("long").await;
    for _ in 0..300 {
        let mut response = std::pin::pin!(session.open("tasks/result", json!({"taskId": id})));
        // As far as it goes: it waits for the task.
        tokio::select! {
            biased;
            _ = &mut response => panic!("answered"),
            () = std::future::ready(()) => {}
        }
    }
    assert!(server.usage().in_flight <= 17, "{:?}", server.usage());
    gate.open.add_permits(1);
    assert!(session.ask("tasks/result", json!({"taskId": id})).await.is_ok());
}

#[tokio::test]
async fn a_client_over_http_is_asked_by_its_tasks_and_keeps_their_results() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new().task_poll_interval(Duration::from_millis(10))));
    let serving = server.serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    let target = Target::Url { url: serving.url().to_owned(), headers: BTreeMap::new() };
    let answers = |_: Value| async { Ok::<_, HandlerError>(json!({"name": "Ada"})) };
    let options = ClientOptions::parse(&json!({"revision": WITH_TASKS}).to_string()).unwrap();
    let handlers = Handlers::new().elicitation(answers);
    let client = within("a connection", Client::connect_with(&target, &options, &handlers)).await.unwrap();
    let task = client.call_tool_task("asks", json!({}), None, &CallOptions::new()).await.unwrap();
    assert_eq!(within("the result", task.result()).await.unwrap().text(), "Ada");
    assert_eq!(task.status().await.unwrap().status.as_str(), "completed");
    client.list_tools().await.unwrap();
    gate.open.add_permits(1);
    assert!(!within("the result", client.call_tool("long", json!({}))).await.unwrap().is_error);
    assert_eq!(client.tasks().await.unwrap().len(), 2);
    client.close().await;
    until("nothing is left", || server.usage().tasks == 0).await;
}
