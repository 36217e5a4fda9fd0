//! Tests of a server with a client that knows the protocol and nothing else.

use std::sync::Arc;

use serde_json::{Value, json};
use tricorn::TaskOptions;
use tricorn::client::Handlers;
use tricorn::prelude::*;
use tricorn::server::{IntoHandler, Kind};

use super::fixture::*;

fn related(id: &str) -> Value {
    json!({RELATED: {"taskId": id}})
}

#[tokio::test]
async fn a_call_becomes_a_task_and_its_result_is_had_later() {
    let (gate, heard) = (Arc::<Gate>::default(), Arc::<Heard>::default());
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new().events(heard.clone())).await;
    assert!(client.capabilities().has("tasks.requests.tools.call"));
    assert!(client.capabilities().has("tasks.list") && client.capabilities().has("tasks.cancel"));
    let id = begin(&client, "slow", json!({"text": "hi"})).await;
    until("the handler runs", || gate.started() == 1).await;
    let task = ask(&client, "tasks/get", json!({"taskId": id})).await.unwrap();
    assert_eq!((&task["status"], &task["statusMessage"]), (&json!("working"), &json!("waiting")));
    assert_eq!((task["pollInterval"].as_u64(), task.get("_meta")), (Some(1000), None));
    let created = task["createdAt"].as_str().unwrap();
    assert!(created.len() == 24 && created.ends_with('Z') && created.as_bytes()[10] == b'T', "{created}");
    let result = ask(&client, "tasks/result", json!({"taskId": id}));
    let opens = async {
        tokio::task::yield_now().await;
        gate.open.add_permits(1);
    };
    let (result, ()) = tokio::join!(result, opens);
    let expected = json!({"content": [{"type": "text", "text": "hi"}], "_meta": related(&id)});
    assert_eq!(result.unwrap(), expected);
    assert_eq!(ask(&client, "tasks/result", json!({"taskId": id})).await.unwrap(), expected, "and again");
    let statuses: Vec<_> =
        heard.all().into_iter().filter(|(method, _)| method == "notifications/tasks/status").collect();
    let last = &statuses.last().unwrap().1;
    assert_eq!((&last["status"], &last["taskId"], last.get("_meta")), (&json!("completed"), &json!(id), None));
    assert_eq!(server.usage().tasks, 1);
}

#[tokio::test]
async fn how_a_tool_may_be_called_is_up_to_the_tool() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let task = json!({"name": "plain", "arguments": {"text": "x"}, "task": {}});
    let refused = ask(&client, "tools/call", task).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32601), "{refused}");
    let refused = ask(&client, "tools/call", json!({"name": "long"})).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32601), "{refused}");
    gate.open.add_permits(1);
    let plain = ask(&client, "tools/call", json!({"name": "slow", "arguments": {"text": "now"}})).await.unwrap();
    assert_eq!(plain["content"][0]["text"], "now");
    let listed = client.list_tools().await.unwrap();
    let support = |name: &str| {
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap();
        tool.get("execution").map(|e| e["taskSupport"].clone())
    };
    let expected = [None, Some(json!("optional")), Some(json!("required"))];
    assert_eq!(["plain", "slow", "long"].map(support), expected);
}

#[tokio::test]
async fn how_a_tool_of_a_source_may_be_called_is_what_the_source_lists() {
    let server = Server::new("sources").tasks(TaskOptions::new());
    let list = |_: Value| async {
        let tool = |name: &str, support: &str| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
        Ok::<_, HandlerError>(json!([tool("may", "optional"), tool("must", "required"), tool("not", "forbidden")]))
    };
    let get = |_: Value| async { Ok::<_, HandlerError>("got") };
    server.set_source(Kind::Tool, Some(list.into_handler()), Some(get.into_handler()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let call = async |name: &str, task: bool| {
        let mut params = json!({"name": name, "arguments": {}});
        if task {
            params["task"] = json!({});
        }
        ask(&client, "tools/call", params).await.map(|result| result["task"].is_object()).map_err(|error| error.code())
    };
    let refused = Err(Some(-32601));
    // It has listed nothing yet.
    assert_eq!((call("may", true).await, call("must", false).await), (refused, Ok(false)));
    // For whoever calls.
    connected(&server, WITH_TASKS, &Handlers::new()).await.list_tools().await.unwrap();
    assert_eq!((call("may", true).await, call("may", false).await), (Ok(true), Ok(false)));
    assert_eq!((call("must", true).await, call("must", false).await), (Ok(true), refused));
    assert_eq!((call("not", true).await, call("not", false).await), (refused, Ok(false)));
    assert_eq!((call("unlisted", true).await, call("unlisted", false).await), (refused, Ok(false)));
}

#[tokio::test]
async fn without_tasks_a_request_is_as_any_other() {
    let gate = Arc::<Gate>::default();
    gate.open.add_permits(100);
    for (options, revision) in [
        (None, WITH_TASKS),
        (Some(TaskOptions::new()), "2025-06-18"),
        (Some(TaskOptions::new()), "2024-11-05"),
        (Some(TaskOptions::new()), "2026-07-28"),
    ] {
        let server = server(&gate, options);
        let client = connected(&server, revision, &Handlers::new()).await;
        assert!(!client.capabilities().has("tasks"), "{revision}");
        for name in ["slow", "plain", "long"] {
            let arguments = if name == "long" { json!({}) } else { json!({"text": "x"}) };
            let params = json!({"name": name, "arguments": arguments, "task": {"ttl": 1}});
            match ask(&client, "tools/call", params).await {
                Ok(result) => assert!(result["content"].is_array(), "{revision} {result}"),
                // A server that has tasks in this revision, too, insists on one.
                Err(error) => {
                    assert_eq!((revision, name, error.code()), ("2026-07-28", "long", Some(-32021)), "{error}");
                }
            }
        }
        for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/cancel"] {
            let error = ask(&client, method, json!({"taskId": "x"})).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{method} {revision}");
        }
    }
}

#[tokio::test]
async fn a_failure_is_a_failed_task_and_its_result_says_why() {
    let server = server(&Arc::default(), Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    // Arguments that do not fit are the tool's answer, too.
    for (name, arguments) in [("fails", json!({})), ("slow", json!({"text": 7}))] {
        let id = begin(&client, name, arguments).await;
        let result = ask(&client, "tasks/result", json!({"taskId": id})).await.unwrap();
        assert_eq!((&result["isError"], &result["_meta"]), (&json!(true), &related(&id)));
        let task = ask(&client, "tasks/get", json!({"taskId": id})).await.unwrap();
        assert_eq!((&task["status"], task["statusMessage"].is_string()), (&json!("failed"), true), "{task}");
    }
    let unknown = ask(&client, "tools/call", json!({"name": "nothing", "task": {}})).await.unwrap_err();
    assert_eq!(unknown.code(), Some(-32602));
}

#[tokio::test]
async fn cancelling_stops_the_handler_and_the_connection_takes_the_rest_along() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let (one, two) = (begin(&client, "long", json!({})).await, begin(&client, "long", json!({})).await);
    until("both run", || gate.started() == 2).await;
    let task = ask(&client, "tasks/cancel", json!({"taskId": one})).await.unwrap();
    assert_eq!((&task["status"], &task["taskId"]), (&json!("cancelled"), &json!(one)));
    until("it is dropped", || gate.dropped() == 1).await;
    assert_eq!(ask(&client, "tasks/cancel", json!({"taskId": one})).await.unwrap_err().code(), Some(-32602));
    assert_eq!(ask(&client, "tasks/get", json!({"taskId": two})).await.unwrap()["status"], "working");
    client.close().await;
    until("the other is dropped, too", || gate.dropped() == 2).await;
    until("nothing is left", || server.usage() == tricorn::server::Usage::default()).await;
}

#[tokio::test]
async fn a_task_is_its_clients_alone() {
    let gate = Arc::<Gate>::default();
    let server = server(&gate, Some(TaskOptions::new()));
    let client = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let other = connected(&server, WITH_TASKS, &Handlers::new()).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(begin(&client, "long", json!({})).await);
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let error = ask(&other, method, json!({"taskId": ids[0]})).await.unwrap_err();
        assert_eq!(error.code(), Some(-32602), "{method}");
    }
    assert_eq!(ask(&other, "tasks/list", json!({})).await.unwrap(), json!({"tasks": []}));
    let first = ask(&client, "tasks/list", json!({})).await.unwrap();
    let second = ask(&client, "tasks/list", json!({"cursor": first["nextCursor"]})).await.unwrap();
    let listed: Vec<_> = [&first, &second].into_iter().flat_map(|page| page["tasks"].as_array().unwrap()).collect();
    let listed: Vec<_> = listed.into_iter().map(|task| task["taskId"].as_str().unwrap()).collect();
    assert_eq!((listed, second.get("nextCursor")), (ids.iter().map(String::as_str).collect(), None));
}

#[tokio::test]
async fn a_question_of_a_task_names_it_and_the_answer_brings_it_on() {
    let server = server(&Arc::default(), Some(TaskOptions::new()));
    let (asked, heard) = (Arc::<Heard>::default(), Arc::<Heard>::default());
    let asks = asked.clone();
    let answer = move |params: Value| {
        let asks = asks.clone();
        async move {
            asks.0.lock().unwrap().push(("elicitation/create".into(), params));
            Ok::<_, HandlerError>(json!({"name": "Ada"}))
        }
    };
    let handlers = Handlers::new().elicitation(answer);
    let client = connected(&server, WITH_TASKS, &handlers.events(heard.clone())).await;
    let id = begin(&client, "asks", json!({})).await;
    let result = ask(&client, "tasks/result", json!({"taskId": id})).await.unwrap();
    assert_eq!(result["content"][0]["text"], "Ada");
    assert_eq!(asked.all()[0].1["_meta"], related(&id));
    let statuses: Vec<_> = heard.all().into_iter().map(|(_, params)| params["status"].clone()).collect();
    assert_eq!(statuses, ["input_required", "working", "completed"]);
}
