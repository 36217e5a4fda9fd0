//! Whatever a peer says besides what is known reaches the program, and what a program says besides goes out.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tricorn::client::{Client, ClientOptions, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::model::CompleteResult;
use tricorn::prelude::*;
use tricorn::protocol::Kind;
use tricorn::server::{CreateMessageRequestParams, IntoHandler, Parameters};
use tricorn::{Handler, Reply};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Answers with a result as it stands.
struct Whole(Value);

impl Handler for Whole {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.result(RawJson::from_value(&self.0));
    }
}

fn whole(value: Value) -> Arc<dyn Handler> {
    Arc::new(Whole(value))
}

async fn connected(server: &Server, revision: &str, handlers: &Handlers) -> Client {
    let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

fn meta(of: &str) -> Value {
    json!({"com.example/of": of})
}

fn members(of: &str) -> Map<String, Value> {
    meta(of).as_object().unwrap().clone()
}

fn both(meta: Option<&Map<String, Value>>, extra: &Map<String, Value>) -> Value {
    json!([meta.unwrap()["com.example/of"], extra["novelty"]])
}

#[tokio::test]
async fn a_handler_gets_all_of_what_its_client_answers() {
    let server = Server::new("asks").tool("ask", "", |_: Nothing, cx: Context| async move {
        let form = cx.elicit("?", &json!({"type": "object", "properties": {}})).await?;
        let page = cx.elicit_url("?", "https://example.com", "1").await?;
        let said = cx.sample(&CreateMessageRequestParams::new(1).user(&Content::text("?"))).await?;
        let roots = cx.list_roots().await?;
        Ok(json!([
            both(form.meta.as_ref(), &form.extra),
            both(page.meta.as_ref(), &page.extra),
            both(said.meta.as_ref(), &said.extra),
            both(roots.meta.as_ref(), &roots.extra),
            roots.roots[0].extra["novelty"],
        ])
        .to_string())
    });
    let handlers = Handlers::new()
        .elicitation_with_url(whole(json!({"action": "accept", "_meta": meta("ask"), "novelty": 1})))
        .sampling(whole(json!({"content": "hi", "_meta": meta("model"), "novelty": 2})))
        .answer(
            "roots/list",
            whole(json!({"roots": [{"uri": "file:///a", "novelty": 4}], "_meta": meta("roots"), "novelty": 3})),
            json!({}),
        );
    let client = connected(&server, "2025-11-25", &handlers).await;
    let seen: Value = serde_json::from_str(&client.call_tool("ask", json!({})).await.unwrap().text()).unwrap();
    assert_eq!(seen, json!([["ask", 1], ["ask", 1], ["model", 2], ["roots", 3], 4]));
}

#[tokio::test]
async fn an_action_that_nobody_knows_is_no_consent() {
    let server = Server::new("asks")
        .tool("visit", "", |_: Nothing, cx: Context| async move {
            Ok(format!("{:?}", cx.elicit_url("?", "https://example.com", "1").await?.action))
        })
        .on_error(|_, _| {});
    let answer = async |action: &str| {
        let handlers = Handlers::new().elicitation_with_url(whole(json!({"action": action})));
        let client = connected(&server, "2025-11-25", &handlers).await;
        client.call_tool("visit", json!({})).await
    };
    assert_eq!(answer("accept").await.unwrap().text(), "Accept");
    let odd = answer("sure").await.unwrap();
    assert!(odd.is_error && odd.text().contains("error -32603"), "{odd:?}");
}

#[tokio::test]
async fn what_a_server_says_besides_goes_out() {
    let server = Server::new("says")
        .resource(Resource::new("x://a", "a"), || async {
            Ok(ReadResourceResult::new([ResourceContents::text("text")]).meta(members("resource")))
        })
        .prompt_with(
            Prompt::new("p").argument("x", "", false),
            Parameters::default().complete("x", |_: Value| async {
                Ok(CompleteResult::new(["one", "two"]).total(7).meta(members("completion")))
            }),
            || async { Ok(GetPromptResult::new([PromptMessage::user(Content::text("hi"))]).meta(members("prompt"))) },
        )
        .tool("t", "", |_: Nothing| async { Ok(CallToolResult::new([Content::text("hi")]).meta(members("tool"))) });
    let list = whole(json!({"resources": [{"uri": "x://b", "name": "b"}], "_meta": meta("list"), "novelty": 5}));
    server.set_source(Kind::Resource, Some(list), Some((|_: Value| async { Ok("b") }).into_handler()));
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = connected(&server, revision, &Handlers::new()).await;
        let of = |meta: &Option<Map<String, Value>>| meta.as_ref().unwrap()["com.example/of"].clone();
        let mut pages = client.pages(Kind::Resource, &CallOptions::new());
        let (own, source) = (pages.next_page().await.unwrap().unwrap(), pages.next_page().await.unwrap().unwrap());
        assert_eq!((own.entries.len(), source.entries.len()), (1, 1), "{revision}");
        assert_eq!(both(source.meta.as_ref(), &source.extra), json!(["list", 5]), "{revision}");
        assert_eq!(of(&client.read_resource("x://a").await.unwrap().meta), "resource");
        assert_eq!(client.get_prompt("p", ()).await.unwrap()["_meta"]["com.example/of"], "prompt");
        let completed = client.complete(Kind::Prompt, "p", "x", "", None).await.unwrap();
        assert_eq!((of(&completed.meta), completed.completion.total), (json!("completion"), Some(7)), "{revision}");
        assert_eq!(of(&client.call_tool("t", json!({})).await.unwrap().meta), "tool");
        let opened: Value = client.initialize_result().to().unwrap();
        assert!(opened["capabilities"]["tools"].is_object(), "{revision}: {opened}");
    }
}

#[tokio::test]
async fn what_is_left_of_a_page_still_says_all_that_the_page_said() {
    use futures_util::StreamExt;
    let server = Server::new("s");
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let list = whole(json!({"tools": [tool("a"), tool("b")], "_meta": meta("list"), "novelty": 1}));
    server.set_source(Kind::Tool, Some(list), None);
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let mut pages = client.pages(Kind::Tool, &CallOptions::new());
    assert_eq!(pages.next().await.unwrap().unwrap()["name"], "a");
    let rest = pages.next_page().await.unwrap().unwrap();
    assert_eq!(rest.entries[0]["name"], "b");
    assert_eq!(both(rest.meta.as_ref(), &rest.extra), json!(["list", 1]));
    assert_eq!(pages.next_page().await.unwrap(), None);
    let page = client.list_tools_page(None).await.unwrap();
    assert_eq!(both(page.meta.as_ref(), &page.extra), json!(["list", 1]));
    assert_eq!(json!(page)["novelty"], 1);
}

#[tokio::test]
async fn a_task_knows_how_its_call_was_answered() {
    let server = Server::new("s")
        .tool_with(Tool::new("t", "").task_support(TaskSupport::Optional), |_: Nothing| async { Ok("done") })
        .tasks(TaskOptions::new());
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let task = client.call_tool_task("t", json!({}), None, &CallOptions::new()).await.unwrap();
    let created: Value = task.created().unwrap().to().unwrap();
    assert_eq!(created["task"]["taskId"], task.id());
    assert!(client.task(task.id()).created().is_none());
}
