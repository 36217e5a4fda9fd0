//! Tests that the things of one principal are hidden from another.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::http::Body;
use tricorn::middleware::RateLimit;
use tricorn::model::{Prompt, TaskSupport};
use tricorn::prelude::*;
use tricorn::server::Auth;

use super::fixture::*;

struct Two {
    it: Fixture,
    ada: String,
    /// Ada, with another token.
    renewed: String,
    bob: String,
}

fn two() -> Two {
    let it = Fixture::new();
    let (ada, bob) = (it.token(&json!({})), it.token(&json!({"sub": "bob"})));
    let renewed = it.token(&json!({"exp": now() + 900, "client_id": "another", "scope": "base mail"}));
    Two { it, ada, renewed, bob }
}

#[tokio::test]
async fn a_session_is_its_openers() {
    let Two { it, ada, renewed, bob } = two();
    let opened = it.post(Some(&ada), &[], &initialize("2025-11-25")).await;
    assert_eq!(opened.status, 200, "{opened:?}");
    let id = opened.header("mcp-session-id").unwrap();
    let session = [("mcp-session-id", id)];
    let unknown = [("mcp-session-id", "unknown")];
    let list = legacy("tools/list", &json!({}));
    let none = it.post(Some(&bob), &unknown, &list).await;
    assert_eq!(none.status, 404);
    for body in [list.clone(), legacy("tools/call", &json!({"name": "whoami"}))] {
        let answer = it.post(Some(&bob), &session, &body).await;
        assert_eq!((answer.status, &answer.text), (none.status, &none.text), "as an unknown one");
    }
    // Whose session it was is not said: `initialize` opens another one.
    for named in [session, unknown] {
        let answer = it.post(Some(&bob), &named, &initialize("2025-11-25")).await;
        let own = answer.header("mcp-session-id").unwrap();
        assert!(answer.status == 200 && own != id && own != "unknown", "{answer:?}");
        assert_eq!(it.post(Some(&bob), &[("mcp-session-id", own)], &list).await.status, 200);
        assert_eq!(it.post(Some(&ada), &[("mcp-session-id", own)], &list).await.status, 404);
    }
    let bearer = format!("Bearer {bob}");
    let stream = ("accept", "text/event-stream");
    for verb in ["GET", "DELETE"] {
        let answer = it.send(verb, "/mcp", &[session[0], stream, ("authorization", &bearer)], String::new()).await;
        assert_eq!(answer.status, 404, "{verb}");
    }
    let garbled = json!({"jsonrpc": "2.0", "id": 5, "result": {}, "error": {}});
    let mine = it.post(Some(&ada), &session, &garbled).await;
    let his = it.post(Some(&bob), &session, &garbled).await;
    assert_eq!((mine.status, his.status), (400, 400));
    for token in [&ada, &renewed] {
        assert_eq!(it.post(Some(token), &session, &list).await.status, 200);
    }
    // The token counts for each request.
    assert_eq!(it.post(None, &session, &list).await.status, 401);
    let expired = it.token(&json!({"exp": now() - 600}));
    assert_eq!(it.post(Some(&expired), &session, &list).await.status, 401);
}

#[tokio::test]
async fn a_pair_is_its_openers() {
    let Two { it, ada, renewed, bob } = two();
    let bearer = format!("Bearer {ada}");
    let headers = [("accept", "text/event-stream"), ("authorization", bearer.as_str())];
    let response = it.start("GET", "/sse", &headers, String::new()).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    let target = first.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    for (token, status) in [(&bob, 404), (&ada, 202), (&renewed, 202)] {
        let bearer = format!("Bearer {token}");
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        let answer = it.send("POST", &format!("/sse{target}"), &headers, initialize("2024-11-05").to_string()).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[tokio::test]
async fn a_state_between_rounds_is_its_askers() {
    let Two { it, ada, renewed, bob } = two();
    let params = json!({"name": "ask", "arguments": {}});
    let asked = it.ask(&ada, "tools/call", params.clone()).await;
    let result = &asked.json["result"];
    assert_eq!(result["resultType"], "input_required", "{asked:?}");
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let answers: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), json!({"action": "accept", "content": {"a": "b"}}))).collect();
    let mut retry = params;
    retry["inputResponses"] = answers.into();
    retry["requestState"] = result["requestState"].clone();
    let refused = it.ask(&bob, "tools/call", retry.clone()).await;
    assert_eq!(refused.json["error"]["code"], -32602, "{refused:?}");
    let done = it.ask(&renewed, "tools/call", retry).await;
    assert_eq!(done.json["result"]["content"][0]["text"], "\"b\"", "{done:?}");
}

#[tokio::test]
async fn a_task_is_its_callers() {
    let Two { it, ada, renewed, bob } = two();
    let created = it.ask(&ada, "tools/call", json!({"name": "job", "arguments": {}})).await;
    let id = created.json["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created:?}"));
    for method in ["tasks/get", "tasks/cancel"] {
        let his = it.ask(&bob, method, json!({"taskId": id})).await;
        let unknown = it.ask(&bob, method, json!({"taskId": "0".repeat(id.len())})).await;
        assert_eq!(his.json["error"]["code"], unknown.json["error"]["code"], "{method}: {his:?}");
        assert_eq!((his.status, his.json["error"]["code"].as_i64()), (unknown.status, Some(-32602)), "{method}");
    }
    let hers = it.ask(&renewed, "tasks/get", json!({"taskId": id})).await;
    assert_eq!(hers.json["result"]["taskId"], id, "{hers:?}");
}

/// Reads a stream until this has come.
async fn read(body: &mut Body, until: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(until) {
            let frame = body.frame().await.expect("the stream has ended").unwrap();
            text.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.unwrap_or_else(|_| panic!("{until} does not come"));
    text
}

#[tokio::test]
async fn a_task_is_heard_of_by_its_caller_alone() {
    let go = Arc::<Notify>::default();
    let waits = go.clone();
    let job = move |_: Nothing, _: Context| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Ok("a secret")
        }
    };
    let server = Server::new("protected")
        .tasks(TaskOptions::default())
        .tool_with(Tool::new("job", "").task_support(TaskSupport::Required), job)
        .tool("other", "", |_: Nothing| async { Ok("done") });
    let auth = Auth::issuer(ISSUER).resource(RESOURCE).required_scopes(["base"]);
    let it = Fixture::serving(server.clone(), Authority::new(Mode::Up), auth);
    let (ada, bob) = (it.token(&json!({})), it.token(&json!({"sub": "bob"})));
    let created = it.ask(&ada, "tools/call", json!({"name": "job", "arguments": {}})).await;
    let id = created.json["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created:?}"));
    let filter = json!({"toolsListChanged": true, "taskIds": [id]});
    let (mut hers, mut his) = (it.listen(&ada, &filter).await, it.listen(&bob, &filter).await);
    let acknowledged = read(&mut his, "acknowledged").await;
    assert!(acknowledged.contains("toolsListChanged") && !acknowledged.contains(id), "{acknowledged}");
    read(&mut hers, "\"working\"").await;
    go.notify_one();
    assert!(read(&mut hers, "\"completed\"").await.contains("a secret"));
    // What he hears next is what comes next, and nothing of the task.
    assert!(server.remove_tool("other"));
    let heard = read(&mut his, "tools/list_changed").await;
    assert!(!heard.contains("notifications/tasks") && !heard.contains(id), "{heard}");
}

#[tokio::test]
async fn a_rate_is_each_principals() {
    let limit = RateLimit::per_second(0.001).unwrap().burst(NonZeroU32::new(1).unwrap()).per_session();
    let server = Server::new("limited").prompt(Prompt::new("greet"), || async { Ok("hello") }).middleware(limit);
    let auth = Auth::issuer(ISSUER).resource(RESOURCE).required_scopes(["base"]);
    let it = Fixture::serving(server, Authority::new(Mode::Up), auth);
    let (ada, renewed) = (it.token(&json!({})), it.token(&json!({"exp": now() + 900, "client_id": "another"})));
    let bob = it.token(&json!({"sub": "bob"}));
    for (token, refused) in [(&ada, false), (&ada, true), (&renewed, true), (&bob, false), (&bob, true)] {
        let answer = it.ask(token, "prompts/get", json!({"name": "greet"})).await;
        assert_eq!(answer.json["error"]["data"]["retryAfter"].is_number(), refused, "{answer:?}");
        assert_eq!(answer.json["result"].is_object(), !refused, "{answer:?}");
    }
}
