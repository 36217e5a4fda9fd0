//! Extensions of one's own: settings, requests, types of results, notifications on listen streams, in every revision.
#![cfg(all(feature = "runtime", feature = "http"))]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Change, Client, ClientOptions, Handlers, Listening, Target};
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::{Extension, HandlerError};

const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const MODERN: &str = "2026-07-28";
const SEARCH: &str = "com.example/search";
const FOUND: &str = "notifications/com.example/found";
const MEMBER: &str = "com.example/queries";

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let patience = Duration::from_secs(20);
    tokio::time::timeout(patience, future).await.unwrap_or_else(|_| panic!("{what} within {patience:?}"))
}

#[derive(Deserialize, JsonSchema)]
struct Query {
    query: String,
}

fn search() -> Extension {
    Extension::new(SEARCH)
        .settings(json!({"languages": ["en"]}))
        .idempotent_method("com.example/search", async |asked: Query, cx: Context| {
            let settings = cx.extension(SEARCH).ok_or_else(|| HandlerError::new("not declared"))?;
            let settings: Value = settings.to()?;
            Ok::<_, HandlerError>(json!({"found": [asked.query], "wanted": settings, "method": cx.request().method}))
        })
        .method("com.example/later", async || {
            Ok::<_, HandlerError>(json!({"resultType": "com.example/later", "at": 7}))
        })
        .method("com.example/wrong", async || Ok::<_, HandlerError>(json!([1])))
        .method("com.example/odd", async |given: Value| Ok::<_, HandlerError>(json!({"resultType": given["type"]})))
        .method("com.example/fails", async || Err::<Value, _>(tricorn::Error::rpc(-31050, "no such index").into()))
        .notification(FOUND, MEMBER)
}

fn server() -> Server {
    Server::new("library")
        .extension(search())
        .tool("which", "", async |_: Nothing, cx: Context| Ok::<_, HandlerError>(cx.extension(SEARCH).is_some()))
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn declaring(revision: &str) -> ClientOptions {
    ClientOptions::new().revision(revision).extension(SEARCH, json!({"limit": 3}))
}

async fn serving(server: &Server) -> HttpServer {
    let options = HttpOptions::parse(r#"{"port": 0}"#).unwrap();
    within("serving", server.serve_http(options)).await.unwrap()
}

async fn both(server: &Server, http: &HttpServer, options: &ClientOptions) -> [Client; 2] {
    let target = Target::from_text(http.url()).unwrap();
    let over_http = within("connecting", Client::connect(&target, options)).await.unwrap();
    [Client::in_memory(server, options).await.unwrap(), over_http]
}

fn params(value: &Value) -> Option<RawJson> {
    Some(RawJson::from_value(value))
}

async fn ask(client: &Client, method: &str, with: &Value, options: &CallOptions) -> tricorn::Result<Value> {
    within(method, client.request(method, params(with), options)).await?.to().map_err(|e| panic!("{e}"))
}

#[tokio::test]
async fn requests_of_an_extension_are_served_in_every_revision() {
    let server = server();
    let http = serving(&server).await;
    for revision in ALL {
        for client in both(&server, &http, &declaring(revision)).await {
            let at = format!("{revision} over {}", client.transport());
            let settings: Value = serde_json::from_str(client.capabilities().extension(SEARCH).unwrap().get()).unwrap();
            assert_eq!(settings, json!({"languages": ["en"]}), "{at}");
            let plain = CallOptions::new();
            let mut found = ask(&client, SEARCH, &json!({"query": "ü"}), &plain).await.unwrap();
            let members = found.as_object_mut().unwrap();
            let (kind, meta) = (members.remove("resultType"), members.remove("_meta"));
            assert_eq!(kind.is_some(), revision == MODERN, "{at}");
            assert_eq!(meta.is_some(), revision == MODERN, "{at}");
            assert_eq!(found, json!({"found": ["ü"], "wanted": {"limit": 3}, "method": SEARCH}), "{at}");
            let wrong = ask(&client, SEARCH, &json!({"query": 7}), &plain).await.unwrap_err();
            assert_eq!(wrong.code(), Some(-32602), "{at}: {wrong}");
            assert!(wrong.message().contains("query"), "{at}: {wrong}");
            let failed = ask(&client, "com.example/fails", &json!({}), &plain).await.unwrap_err();
            assert_eq!((failed.code(), failed.message()), (Some(-31050), "no such index"), "{at}");
            let odd = ask(&client, "com.example/wrong", &json!({}), &plain).await.unwrap_err();
            assert_eq!(odd.code(), Some(-32603), "{at}: {odd}");
            let tool = client.call_tool("which", json!({})).await.unwrap();
            assert_eq!(serde_json::to_value(&tool).unwrap()["content"][0]["text"], "true", "{at}");
        }
    }
}

#[tokio::test]
async fn a_result_of_another_type_is_for_those_who_want_it() {
    let server = server();
    let client = Client::in_memory(&server, &declaring(MODERN)).await.unwrap();
    let refused = ask(&client, "com.example/later", &json!({}), &CallOptions::new()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PeerMisbehaved, "{refused}");
    assert!(refused.message().contains("com.example/later"), "{refused}");
    let any = CallOptions::new().any_result(true);
    let later = ask(&client, "com.example/later", &json!({}), &any).await.unwrap();
    assert_eq!((&later["resultType"], &later["at"]), (&json!("com.example/later"), &json!(7)));
    // What nobody can read is an error of its handler.
    for kind in [json!(7), json!(null), json!({}), json!("input_required"), json!("task")] {
        let odd = ask(&client, "com.example/odd", &json!({"type": kind}), &any).await.unwrap_err();
        assert_eq!(odd.code(), Some(-32603), "{kind}: {odd}");
        let text = format!(
            "\"com.example/odd\" failed: \"resultType\" of its result: expected \"complete\" or a type of the \
                            extension, got {kind}"
        );
        assert_eq!(odd.message(), text);
    }
    ask(&client, "com.example/odd", &json!({"type": "complete"}), &CallOptions::new()).await.unwrap();
}

#[tokio::test]
async fn who_does_not_declare_an_extension_gets_nothing_of_it() {
    let server = server();
    let http = serving(&server).await;
    for revision in ALL {
        for client in both(&server, &http, &ClientOptions::new().revision(revision)).await {
            let at = format!("{revision} over {}", client.transport());
            let refused = ask(&client, SEARCH, &json!({"query": "x"}), &CallOptions::new()).await.unwrap_err();
            let code = if revision == MODERN { -32021 } else { -32601 };
            assert_eq!(refused.code(), Some(code), "{at}: {refused}");
            assert!(refused.message().contains(SEARCH), "{at}: {refused}");
            let tool = client.call_tool("which", json!({})).await.unwrap();
            assert_eq!(serde_json::to_value(&tool).unwrap()["content"][0]["text"], "false", "{at}");
        }
    }
    let client = Client::in_memory(&server, &ClientOptions::new().revision(MODERN)).await.unwrap();
    let refused = client.listen(SubscriptionFilter::new().other(MEMBER, true)).await.unwrap_err();
    assert_eq!(refused.code(), Some(-32021), "{refused}");
    // To ask for nothing of it is no mistake.
    for nothing in [json!(false), json!([])] {
        let listening =
            within("listening", client.listen(SubscriptionFilter::new().other(MEMBER, nothing))).await.unwrap();
        assert!(listening.honoured().is_empty(), "{listening:?}");
    }
    // And a server that does not offer it does not know the request.
    let plain = Server::new("plain");
    let client = Client::in_memory(&plain, &declaring(MODERN)).await.unwrap();
    let unknown = ask(&client, SEARCH, &json!({}), &CallOptions::new()).await.unwrap_err();
    assert_eq!(unknown.code(), Some(-32601), "{unknown}");
}

async fn next(at: &str, listening: &mut Listening) -> (String, Value) {
    match within(at, listening.next()).await.expect("not at its end").unwrap() {
        Change::Extension { method, params } => (method, params.to().unwrap()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn notifications_reach_those_who_asked_for_them() {
    let server = server();
    let http = serving(&server).await;
    for revision in ALL {
        // One after the other: in older revisions who is connected is told.
        for over in 0..2 {
            let [memory, web] = both(&server, &http, &declaring(revision)).await;
            let client = if over == 0 { memory } else { web };
            let at = format!("{revision} over {}", client.transport());
            let all = SubscriptionFilter::new().other(MEMBER, true);
            let some = SubscriptionFilter::new().tools().other(MEMBER, json!(["a", "b"]));
            let mut everything = within("listening", client.listen(all.clone())).await.unwrap();
            let mut keyed = within("listening", client.listen(some.clone())).await.unwrap();
            assert_eq!((everything.honoured(), keyed.honoured()), (all, some), "{at}");
            let tell =
                |query: &str| server.notify(FOUND, params(&json!({"query": query, "_meta": {"x": 1}})), Some(query));
            tell("c").unwrap();
            tell("a").unwrap();
            tell("a").unwrap();
            for query in ["c", "a", "a"] {
                let told = (FOUND.to_owned(), json!({"query": query, "_meta": {"x": 1}}));
                assert_eq!(next(&at, &mut everything).await, told, "{at}");
                // Who cannot say what it wants hears everything.
                if revision != MODERN || query == "a" {
                    assert_eq!(next(&at, &mut keyed).await, told, "{at}");
                }
            }
            server.notify(FOUND, None, None).unwrap();
            assert_eq!(next(&at, &mut everything).await, (FOUND.to_owned(), json!({})), "{at}");
        }
    }
}

#[tokio::test]
async fn what_is_not_taken_is_not_lost_silently() {
    let server = server();
    let client = Client::in_memory(&server, &declaring(MODERN)).await.unwrap();
    let mut listening = client.listen(SubscriptionFilter::new().other(MEMBER, true)).await.unwrap();
    for n in 0..1100 {
        server.notify(FOUND, params(&json!({"n": n})), None).unwrap();
    }
    let mut taken = 0;
    let end = within("the end", async {
        loop {
            match listening.next().await {
                Some(Ok(_)) => taken += 1,
                other => break other,
            }
        }
    })
    .await;
    let error = end.unwrap().unwrap_err();
    assert_eq!((taken, error.kind()), (1024, ErrorKind::Closed), "{error}");
    assert!(error.message().contains("1024"), "{error}");
}

#[tokio::test]
async fn what_is_wrong_is_named_when_the_extension_is_added() {
    let handler = async || Ok::<_, HandlerError>(json!({}));
    let new = || Extension::new("com.example/other");
    for (extension, named) in [
        (Extension::new("search"), "\"search\": expected an identifier with a prefix"),
        (Extension::new("com.example/"), "expected an identifier with a prefix"),
        (Extension::new("io.modelcontextprotocol/tasks"), "option \"tasks\""),
        (new().settings(json!([])), "settings: expected an object, got []"),
        (search(), "\"com.example/search\": it is there already"),
        (new().method("com.example/search", handler), "\"com.example/search\" is there already"),
        (new().method("a", handler).method("a", handler), "\"a\" is there already"),
        (new().method("tools/call", handler), "\"tools/call\": the name is the protocol's"),
        (new().method("rpc.x", handler), "\"rpc.x\": the name is the protocol's"),
        (new().method("", handler), "expected the name of a method"),
        (new().method("notifications/x", handler), "expected one of a request"),
        (new().notification("x", "m"), "\"x\": expected the name of a notification"),
        (new().notification(FOUND, "m"), "is there already"),
        (new().notification("notifications/x", "taskIds"), "\"taskIds\" is no name for a member"),
        (new().notification("notifications/cancelled", "m"), "the name is the protocol's"),
    ] {
        let error = server().add_extension(extension).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains(named), "{named}: {error}");
    }
    let server = server();
    for (method, with, named) in [
        ("notifications/x", json!({}), "they are \"notifications/com.example/found\""),
        (FOUND, json!([]), "an object"),
    ] {
        let error = server.notify(method, params(&with), None).unwrap_err();
        assert!(error.message().contains(named), "{named}: {error}");
    }
    let options = ClientOptions::new().extension("search", json!({}));
    let error = Client::in_memory(&server, &options).await.unwrap_err();
    assert!(error.message().contains("\"extensions\": \"search\""), "{error}");
    let twice = ClientOptions::new().extension("io.modelcontextprotocol/tasks", json!({}));
    let error = Client::in_memory(&server, &twice).await.unwrap_err();
    assert!(error.message().contains("option \"tasks\""), "{error}");
}

#[tokio::test]
async fn an_extension_may_come_later_and_beside_tasks() {
    let server = Arc::new(Server::new("late").tasks(TaskOptions::default()));
    server.add_extension(search()).unwrap();
    let handlers = Handlers::new().tasks(TaskOptions::default()).unwrap();
    let client = Client::in_memory_with(&server, &declaring(MODERN), &handlers).await.unwrap();
    let has = |id| client.capabilities().has_extension(id);
    assert!(has(SEARCH) && has("io.modelcontextprotocol/tasks"));
    ask(&client, SEARCH, &json!({"query": "x"}), &CallOptions::new()).await.unwrap();
}

#[tokio::test]
async fn a_handler_knows_the_extension_wherever_it_runs() {
    let server = server()
        .tasks(TaskOptions::default())
        .middleware(|request: Request, cx: Context, next: Next| async move {
            assert!(request.method != "tools/call" || cx.extension(SEARCH).is_some(), "in middleware");
            next.run(request, &cx).await
        })
        .tool_with(Tool::new("either", "").task_support(TaskSupport::Optional), async |_: Nothing, cx: Context| {
            Ok::<_, HandlerError>(cx.extension(SEARCH).is_some())
        })
        .tool_with(Tool::new("task", "").task_support(TaskSupport::Required), async |_: Nothing, cx: Context| {
            Ok::<_, HandlerError>(cx.extension(SEARCH).is_some())
        });
    let handlers = Handlers::new().tasks(TaskOptions::new().task_poll_interval(Duration::from_millis(10))).unwrap();
    for revision in ["2025-06-18", "2025-11-25", MODERN] {
        let client = Client::in_memory_with(&server, &declaring(revision), &handlers).await.unwrap();
        for tool in ["which", "either"] {
            let result = within(tool, client.call_tool(tool, json!({}))).await.unwrap();
            assert_eq!(result.text(), "true", "{tool} in {revision}");
        }
        if revision != "2025-06-18" {
            let task = client.call_tool_task("task", json!({}), None, &CallOptions::default()).await.unwrap();
            assert_eq!(within("the task", task.result()).await.unwrap().text(), "true", "{revision}");
        }
    }
}
