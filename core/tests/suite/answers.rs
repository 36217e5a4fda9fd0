//! Tests of handlers' answers, as each revision can carry them, and of the answers of others that go on to a peer.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;
use tricorn::server::{Kind, Parameters};
use tricorn::{Error, Handler, Reply};

async fn connected(server: &Server, revision: &str, handlers: &Handlers) -> Client {
    let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

/// Answers with what a function says, at once.
struct With<F>(F);

impl<F: Fn(Context, Value, Reply) + Send + Sync + 'static> Handler for With<F> {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        (self.0)(cx, params.to().unwrap(), reply);
    }
}

fn with(f: impl Fn(Value) -> Value + Send + Sync + 'static) -> Arc<dyn Handler> {
    Arc::new(With(move |_, params, reply: Reply| reply.value(RawJson::from_value(&f(params)))))
}

fn whole(value: Value) -> Arc<dyn Handler> {
    Arc::new(With(move |_, _, reply: Reply| reply.result(RawJson::from_value(&value))))
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[tokio::test]
async fn a_sources_tool_announces_only_what_it_answers() {
    let server = Server::new("s");
    let tool = |name: &str, kind: &str| json!({"name": name, "inputSchema": {"type": "object"}, "outputSchema": {"type": kind}});
    let list =
        with(move |_| json!({"tools": [tool("a", "array"), tool("o", "object")], "_meta": {"k": 1}, "other": 2}));
    let get = with(|_| json!([1, 2]));
    server.set_source(Kind::Tool, Some(list), Some(get));
    for (revision, announced) in [("2025-11-25", false), ("2026-07-28", true)] {
        let client = connected(&server, revision, &Handlers::new()).await;
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools[0].contains_key("outputSchema"), announced, "{revision}");
        assert_eq!(tools[1]["outputSchema"], json!({"type": "object"}));
        let listed = client.request("tools/list", None, &CallOptions::new()).await.unwrap();
        let listed: Value = listed.to().unwrap();
        assert_eq!((&listed["_meta"]["k"], &listed["other"]), (&json!(1), &json!(2)));
    }
}

#[tokio::test]
async fn structured_content_alone_is_text_where_there_is_none() {
    let server = Server::new("s");
    for (name, result) in [
        ("bare", json!({"structuredContent": {"a": 1}})),
        ("empty", json!({"content": [], "structuredContent": {"a": 1}, "isError": true})),
        ("both", json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}})),
    ] {
        server.add_tool(Tool::new(name, ""), whole(result)).unwrap();
    }
    for revision in ["2024-11-05", "2025-03-26"] {
        let client = connected(&server, revision, &Handlers::new()).await;
        for (name, text) in [("bare", r#"{"a":1}"#), ("empty", r#"{"a":1}"#), ("both", "x")] {
            let result = client.call_tool(name, json!({})).await.unwrap();
            assert_eq!((result.text(), result.is_error), (text.to_owned(), name == "empty"), "{revision} {name}");
        }
    }
}

#[tokio::test]
async fn completions_say_what_their_handler_knows() {
    let server = Server::new("s");
    let answers = Arc::new(Mutex::new(Value::Null));
    let answer = answers.clone();
    server.set_completion(with(move |_| answer.lock().unwrap().clone()));
    server.add_prompt(Prompt::new("p"), Parameters::default(), with(|_| json!("x"))).unwrap();
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let params = json!({"ref": {"type": "ref/prompt", "name": "other"}, "argument": {"name": "a", "value": ""}});
    let many: Vec<String> = (0..120).map(|n| n.to_string()).collect();
    for (given, total, more) in [
        (json!(["a"]), json!(1), false),
        (json!({"values": ["a"], "hasMore": true}), Value::Null, true),
        (json!({"values": ["a"], "total": 7}), json!(7), true),
        (json!({"values": ["a"], "total": 7, "hasMore": false}), json!(7), false),
        (json!(many), json!(120), true),
        (json!({"values": many, "hasMore": true}), Value::Null, true),
        (json!({"completion": {"values": ["a"], "own": 1}, "_meta": {"k": 1}}), json!(1), false),
    ] {
        *answers.lock().unwrap() = given.clone();
        let result =
            client.request("completion/complete", Some(RawJson::from_value(&params)), &CallOptions::new()).await;
        let result: Value = result.unwrap().to().unwrap();
        assert_eq!(
            (&result["completion"]["total"], &result["completion"]["hasMore"]),
            (&total, &json!(more)),
            "{given}"
        );
        assert_eq!((&result["_meta"], &result["completion"]["own"]), (&given["_meta"], &given["completion"]["own"]));
    }
    *answers.lock().unwrap() = json!({"values": ["a"], "total": "many"});
    let wrong = client.request("completion/complete", Some(RawJson::from_value(&params)), &CallOptions::new()).await;
    assert!(wrong.unwrap_err().message().contains("an integer"));
}

#[tokio::test]
async fn a_value_is_contents_only_when_nothing_else_is_in_it() {
    let server = Server::new("s");
    server
        .add_resource(Resource::new("a://todo", "todo"), with(|_| json!({"text": "buy milk", "done": false})))
        .unwrap();
    server.add_resource(Resource::new("a://text", "text"), with(|_| json!({"text": "hi", "_meta": {"k": 1}}))).unwrap();
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let read = client.read_resource("a://todo").await.unwrap();
    let todo = read.contents[0].members();
    assert_eq!(
        (&todo["mimeType"], &todo["text"]),
        (&json!("application/json"), &json!(r#"{"text":"buy milk","done":false}"#))
    );
    let read = client.read_resource("a://text").await.unwrap();
    let text = read.contents[0].members();
    assert_eq!((&text["text"], &text["_meta"]), (&json!("hi"), &json!({"k": 1})));
}

#[tokio::test]
async fn errors_say_all_that_they_must_and_no_more() {
    let uri = format!("a://{}", "x".repeat(500));
    let visit = || {
        Error::url_elicitation_required(&[
            json!({"mode": "url", "elicitationId": "1", "url": "https://h/", "message": "m"}),
        ])
    };
    let server = Server::new("s").tool("visit", "", move |_: Nothing| async move { Err::<String, _>(visit().into()) });
    server.add_resource(Resource::new("a://1", "1"), with(|_| json!("x"))).unwrap();
    server
        .add_prompt(
            Prompt::new("p"),
            Parameters::of(Some(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}))),
            with(|_| json!("x")),
        )
        .unwrap();
    let accepts = || Handlers::new().elicitation_with_url(with(|_| Value::Null));
    for (revision, handlers, code) in [
        ("2025-11-25", accepts(), -32042),
        ("2025-11-25", Handlers::new(), -32603),
        ("2025-06-18", accepts(), -32603),
        // A question there, which this client cannot be asked.
        ("2026-07-28", Handlers::new(), -32021),
    ] {
        let client = connected(&server, revision, &handlers).await;
        let error = client.call_tool("visit", json!({})).await.unwrap_err();
        assert_eq!((error.code(), error.data().is_some()), (Some(code), code != -32603), "{revision}");
        let missing = client.read_resource(&uri).await.unwrap_err();
        assert_eq!(missing.data().unwrap().to::<Value>().unwrap(), json!({"uri": uri}));
        assert!(missing.message().len() < 300);
        let missing = client.get_prompt("p", json!({})).await.unwrap_err();
        assert!(missing.message().contains("\"a\": missing (required)"), "{missing}");
        let long = client.get_prompt("p", json!({"a": ["x".repeat(5000)]})).await.unwrap_err();
        assert!(long.message().len() < 200, "{long}");
    }
}

#[tokio::test]
async fn what_another_server_answered_is_not_passed_on() {
    let upstream = Server::new("upstream")
        .tool("t", "", |_: Nothing| async { Err::<String, _>(Error::rpc(-32001, "the password is 123").into()) });
    let far = connected(&upstream, "2025-11-25", &Handlers::new()).await;
    let (proxied, again) = (far.clone(), far.clone());
    let server = Server::new("s")
        .tool("proxy", "", move |_: Nothing| {
            let far = proxied.clone();
            async move { Ok(far.call_tool("t", json!({})).await?.text()) }
        })
        .tool("reads", "", move |_: Nothing| {
            let far = again.clone();
            async move { Ok(far.read_resource("secret://1").await?.contents.len()) }
        })
        .tool("own", "", |_: Nothing| async { Err::<String, _>(Error::rpc(-32002, "mine").into()) })
        .on_error(|_, _| {});
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    assert_eq!(far.call_tool("t", json!({})).await.unwrap_err().message(), "the password is 123");
    for tool in ["proxy", "reads"] {
        let hidden = client.call_tool(tool, json!({})).await.unwrap();
        assert!(
            hidden.is_error && !hidden.text().contains("123") && !hidden.text().contains("secret"),
            "{}",
            hidden.text()
        );
    }
    let own = client.call_tool("own", json!({})).await.unwrap_err();
    assert_eq!((own.code(), own.message()), (Some(-32002), "mine"));
}

#[tokio::test]
async fn a_clients_handlers_send_only_what_a_server_takes() {
    let server = Server::new("s").tool("ask", "", |_: Nothing, ctx: Context| async move {
        let asked = json!({"mode": "voice", "message": "m"});
        let wrong =
            ctx.ask("elicitation/create", Some(RawJson::from_value(&asked)), &CallOptions::new()).await.unwrap_err();
        assert!(wrong.message().contains("expected form or url"), "{wrong}");
        let form = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        Ok(format!("{:?}", ctx.elicit("m", &form).await?.action))
    });
    let logged = Arc::new(Mutex::new(None));
    let log = logged.clone();
    let answers = Arc::new(With(move |cx: Context, _: Value, reply: Reply| {
        *log.lock().unwrap() = Some(cx.log(LogLevel::Emergency, None, &"x"));
        reply.value(RawJson::from_value(&json!({"action": "decline", "content": null})));
    }));
    let client = connected(&server, "2025-11-25", &Handlers::new().elicitation(answers)).await;
    let result = client.call_tool("ask", json!({})).await.unwrap();
    assert_eq!((result.text().as_str(), *logged.lock().unwrap()), ("Decline", Some(false)));
}

/// Answers the second page only when it is told to.
struct Held(Arc<Mutex<Vec<Reply>>>, Arc<Mutex<usize>>);

impl Handler for Held {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let params: Value = params.to().unwrap();
        let mut asked = self.1.lock().unwrap();
        *asked += 1;
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        match params["cursor"].as_str() {
            None => reply.value(RawJson::from_value(&json!({"tools": [tool("a"), tool("b")], "nextCursor": "2"}))),
            Some(_) if *asked == 2 => self.0.lock().unwrap().push(reply),
            Some(_) if *asked == 3 => reply.error(Error::rpc(-32000, "not now")),
            Some(_) => reply.value(RawJson::from_value(&json!([tool("c")]))),
        }
    }
}

#[tokio::test]
async fn pages_that_could_not_be_had_are_asked_for_again() {
    let server = Server::new("s");
    let held = Arc::default();
    server.set_source(Kind::Tool, Some(Arc::new(Held(Arc::clone(&held), Arc::default()))), None);
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    let mut pages = client.pages(Kind::Tool, &CallOptions::new());
    let name = |entry: &serde_json::Map<String, Value>| entry["name"].as_str().unwrap().to_owned();
    assert_eq!(name(&pages.next().await.unwrap().unwrap()), "a");
    let rest = pages.next_page().await.unwrap().unwrap();
    assert_eq!(rest.entries.iter().map(name).collect::<Vec<_>>(), ["b"], "what the stream has not given");
    {
        let mut waiting = Box::pin(pages.next_page());
        let polled = futures_util::poll!(&mut waiting);
        assert!(polled.is_pending());
    }
    assert_eq!(pages.next_page().await.unwrap_err().message(), "not now");
    let last = pages.next_page().await.unwrap().unwrap();
    assert_eq!(last.entries.iter().map(name).collect::<Vec<_>>(), ["c"]);
    assert_eq!(pages.next_page().await.unwrap(), None);
    drop(held);
}
