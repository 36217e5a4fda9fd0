//! Middleware around the requests of both sides, through memory, in every revision.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{ConcurrencyLimit, Logging, Next, RateLimit, Request, RequestRecord, Timing};
use tricorn::prelude::*;
use tricorn::{CallOptions, Error, ErrorKind, Handler, Reply};

const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PATIENCE: Duration = Duration::from_secs(20);

async fn connected(server: &Server, revision: &str, handlers: &Handlers) -> Client {
    let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
    Client::in_memory_with(server, &options, handlers).await.unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// User of a request, as middleware found out.
struct User(&'static str);

fn server() -> Server {
    Server::new("s")
        .tool("add", "", |Add { a, b }: Add| async move { Ok(a + b) })
        .tool("whoami", "", |_: Nothing, cx: Context| async move {
            Ok(cx.state::<User>().map_or("nobody", |user| user.0).to_owned())
        })
        .resource(Resource::new("x://a", "a"), || async { Ok("text") })
        .prompt(Prompt::new("p"), || async { Ok("hello") })
}

type Seen = Arc<Mutex<Vec<String>>>;

fn writes_down(
    name: &'static str,
    seen: &Seen,
) -> impl Fn(Request, Context, Next) -> tricorn::BoxFuture<tricorn::Result<RawJson>> + Send + Sync + 'static {
    let seen = seen.clone();
    move |request, context, next| {
        let seen = seen.clone();
        Box::pin(async move {
            seen.lock().unwrap().push(format!("{name} > {}", request.method));
            let outcome = next.run(request, &context).await;
            let end = outcome.as_ref().map_or_else(|e| e.message().to_owned(), |r| r.get().to_owned());
            seen.lock().unwrap().push(format!("{name} < {}", &end[..end.len().min(20)]));
            outcome
        })
    }
}

#[tokio::test]
async fn requests_go_through_it_in_order_on_both_sides() {
    for revision in ALL {
        let seen = Seen::default();
        let server = server().middleware(writes_down("outer", &seen)).middleware(writes_down("inner", &seen));
        let handlers = Handlers::new().middleware(writes_down("client", &seen));
        let client = connected(&server, revision, &handlers).await;
        assert_eq!(client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap().text(), "3");
        let expected = [
            "client > tools/call",
            "outer > tools/call",
            "inner > tools/call",
            "inner < {\"content\":[{\"type\":",
            "outer < {\"content\":[{\"type\":",
        ];
        let all = std::mem::take(&mut *seen.lock().unwrap());
        assert_eq!(all[..5], expected, "{revision}");
        assert!(all[5].starts_with("client < {"), "{revision}: {all:?}");
        assert_eq!(client.list_tools().await.unwrap().len(), 2);
        assert_eq!(client.read_resource("x://a").await.unwrap().text(), "text");
        let error = client.read_resource("x://none").await.unwrap_err();
        assert!(matches!(error.code(), Some(-32002 | -32602)), "{revision}: {error:?}");
        let all = seen.lock().unwrap();
        for part in ["inner > tools/list", "inner > resources/read", "client < there is no resourc"] {
            assert!(all.iter().any(|line| line.starts_with(part)), "{revision}: {part}: {all:?}");
        }
    }
}

#[tokio::test]
async fn it_may_change_what_goes_on_and_what_comes_back() {
    for revision in ALL {
        let server = server()
            .middleware(|mut request: Request, context: Context, next: Next| async move {
                if let Some(params) = &request.params {
                    let mut params: Value = params.to().unwrap();
                    if params["arguments"]["a"] == 1 {
                        params["arguments"]["a"] = json!(40);
                        request.params = Some(RawJson::from_value(&params));
                    }
                    if params["name"] == "alias" {
                        params["name"] = json!("whoami");
                        request.params = Some(RawJson::from_value(&params));
                    }
                }
                next.run(request, &context.with_state(User("eve"))).await
            })
            .middleware(|request: Request, context: Context, next: Next| async move {
                let result = next.run(request.clone(), &context).await?;
                let mut changed: Value = result.to().unwrap();
                if request.method == "tools/call" {
                    changed["_meta"] = json!({"seen": true});
                }
                Ok(RawJson::from_value(&changed))
            });
        let client = connected(&server, revision, &Handlers::new()).await;
        let result = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
        assert_eq!(result.text(), "42");
        assert_eq!(result.meta.as_ref().unwrap()["seen"], true, "{revision}");
        assert_eq!(client.call_tool("whoami", json!({})).await.unwrap().text(), "eve");
        assert_eq!(client.call_tool("alias", json!({})).await.unwrap().text(), "eve");
        assert_eq!(client.get_prompt("p", json!({})).await.unwrap()["messages"][0]["content"]["text"], "hello");
    }
}

#[tokio::test]
async fn it_may_answer_by_itself_refuse_and_try_again() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let server = Server::new("s")
        .tool("flaky", "", move |_: Nothing| {
            let run = counted.fetch_add(1, Ordering::SeqCst);
            async move { if run == 0 { Err(HandlerError::new("not yet")) } else { Ok("done") } }
        })
        .middleware(|request: Request, context: Context, next: Next| async move {
            if request.method == "resources/list" {
                return Err(Error::rpc(-31999, "closed today").with_data(RawJson::from_value(&json!({"until": 9}))));
            }
            if request.method == "prompts/list" {
                return Ok(RawJson::from_value(&json!({"prompts": [{"name": "canned"}]})));
            }
            if request.params.as_ref().is_some_and(|p| p.get().contains("panics")) {
                panic!("middleware");
            }
            let first = next.run(request.clone(), &context).await?;
            match first.get().contains("\"isError\":true") {
                true => next.run(request, &context).await,
                false => Ok(first),
            }
        })
        .resource(Resource::new("x://a", "a"), || async { Ok("text") })
        .prompt(Prompt::new("p"), || async { Ok("hello") });
    let client = connected(&server, "2025-11-25", &Handlers::new()).await;
    assert_eq!(client.call_tool("flaky", json!({})).await.unwrap().text(), "done");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    let error = client.list_resources().await.unwrap_err();
    assert_eq!(
        (error.code(), error.message(), error.data().unwrap().get()),
        (Some(-31999), "closed today", "{\"until\":9}")
    );
    assert_eq!(client.list_prompts().await.unwrap()[0]["name"], "canned");
    let error = client.call_tool("panics", json!({})).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Rpc, Some(-32603)));
}

#[tokio::test]
async fn cancelling_reaches_what_runs_inside() {
    for revision in ALL {
        let (began, ended) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (begins, ends) = (began.clone(), ended.clone());
        let server = Server::new("s")
            .tool("waits", "", move |_: Nothing, cx: Context| {
                let (begins, ends) = (begins.clone(), ends.clone());
                async move {
                    struct Ends(Arc<tokio::sync::Notify>);
                    impl Drop for Ends {
                        fn drop(&mut self) {
                            self.0.notify_one();
                        }
                    }
                    let _ends = Ends(ends);
                    begins.notify_one();
                    cx.cancelled().await;
                    std::future::pending::<()>().await;
                    Ok("never")
                }
            })
            .middleware(writes_down("server", &Seen::default()));
        let handlers = Handlers::new().middleware(writes_down("client", &Seen::default()));
        let client = connected(&server, revision, &handlers).await;
        let call = client.call_tool("waits", json!({}));
        tokio::select! {
            biased;
            _ = call => panic!("answered"),
            () = began.notified() => {}
        }
        tokio::time::timeout(PATIENCE, ended.notified()).await.unwrap();
        // A limit of time that is middleware's own.
        let server = server.middleware(|request: Request, context: Context, next: Next| async move {
            if request.method != "tools/call" {
                return next.run(request, &context).await;
            }
            let most = tokio::time::timeout(Duration::from_millis(5), next.run(request, &context));
            most.await.unwrap_or_else(|_| Err(Error::rpc(-31998, "too slow")))
        });
        let error = client.call_tool("waits", json!({})).await.unwrap_err();
        assert_eq!(error.code(), Some(-31998), "{revision}");
        tokio::time::timeout(PATIENCE, ended.notified()).await.unwrap();
        let until = tokio::time::Instant::now() + PATIENCE;
        while server.usage().in_flight > 0 {
            assert!(tokio::time::Instant::now() < until);
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn questions_progress_and_logs_go_through_it() {
    let server = Server::new("s")
        .tool("asks", "", |_: Nothing, cx: Context| async move {
            cx.progress(1.0, Some(2.0), None);
            cx.log(tricorn::protocol::LogLevel::Error, None, &"said");
            Ok(cx.list_roots().await?.roots.len())
        })
        .middleware(writes_down("server", &Seen::default()));
    let handlers = Handlers::new().roots(&tricorn::client::Roots::new([json!("file:///a")]).unwrap());
    let client = connected(&server, "2025-11-25", &handlers).await;
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = heard.clone();
    let options = CallOptions::new().on_progress(move |_| {
        hears.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(client.call_tool_with("asks", json!({}), &options).await.unwrap().text(), "1");
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn logging_and_timing_see_every_request() {
    let records: Arc<Mutex<Vec<RequestRecord>>> = Arc::default();
    let (kept, timing) = (records.clone(), Timing::new());
    let server = server()
        .middleware(Logging::new(move |record| kept.lock().unwrap().push(record.clone())))
        .middleware(timing.clone());
    let client = connected(&server, "2025-06-18", &Handlers::new()).await;
    client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
    client.read_resource("x://none").await.unwrap_err();
    let records = records.lock().unwrap();
    assert_eq!((records[0].method.as_str(), records[0].name.as_deref()), ("tools/call", Some("add")));
    assert_eq!((records[1].method.as_str(), records[1].name.as_deref()), ("resources/read", Some("x://none")));
    assert!(records[0].error.is_none() && records[1].error.as_deref().unwrap().contains("x://none"));
    let summary = timing.summary();
    assert_eq!((summary["tools/call"].count, summary["tools/call"].failed), (1, 0));
    assert_eq!((summary["resources/read"].count, summary["resources/read"].failed), (1, 1));
    assert!(summary["tools/call"].time >= summary["tools/call"].longest);
}

#[tokio::test]
async fn limits_refuse_with_an_error_that_says_so() {
    for (revision, code) in ALL.map(|revision| (revision, if revision == "2026-07-28" { -32603 } else { -32000 })) {
        refuse(revision, code).await;
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(RateLimit::per_second(bad).unwrap_err().kind(), ErrorKind::Misuse, "{bad}");
    }
}

async fn refuse(revision: &str, code: i64) {
    let limit = RateLimit::per_second(0.001).unwrap().burst(NonZeroU32::new(2).unwrap());
    let client = connected(&server().middleware(limit), revision, &Handlers::new()).await;
    for _ in 0..2 {
        client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap();
    }
    let error = client.call_tool("add", json!({"a": 1, "b": 2})).await.unwrap_err();
    assert_eq!(error.code(), Some(code), "{revision}: {error}");
    let wait = error.data().unwrap().to::<Value>().unwrap()["retryAfter"].as_f64().unwrap();
    assert!(wait > 900.0 && wait <= 1000.0, "{wait}");
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let entered = Arc::new(AtomicUsize::new(0));
    let (opens, enters) = (gate.clone(), entered.clone());
    let server = Server::new("s")
        .tool("waits", "", move |_: Nothing| {
            let (gate, entered) = (opens.clone(), enters.clone());
            async move {
                entered.fetch_add(1, Ordering::SeqCst);
                gate.acquire().await?.forget();
                Ok("done")
            }
        })
        .middleware(ConcurrencyLimit::new(2).expect("a limit").max_waiting(1));
    let client = connected(&server, revision, &Handlers::new()).await;
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.call_tool("waits", json!({})).await })
        })
        .collect();
    let until = tokio::time::Instant::now() + PATIENCE;
    // Two run, one waits, one is refused.
    while !(entered.load(Ordering::SeqCst) == 2 && calls.iter().any(tokio::task::JoinHandle::is_finished)) {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
    gate.add_permits(3);
    let mut refused = 0;
    for call in calls {
        match call.await.unwrap() {
            Ok(result) => assert_eq!(result.text(), "done"),
            Err(error) => {
                assert_eq!(error.code(), Some(code), "{revision}: {error}");
                refused += 1;
            }
        }
    }
    assert_eq!((refused, entered.load(Ordering::SeqCst)), (1, 3));
}

#[tokio::test]
async fn a_rate_for_each_client_counts_connections_apart_in_every_revision() {
    for revision in ALL {
        let limit = RateLimit::per_second(0.001).unwrap().burst(NonZeroU32::new(1).unwrap());
        let add = json!({"a": 1, "b": 2});
        let calls = async |server: &Server| {
            let mut refused = Vec::new();
            for _ in 0..2 {
                let client = connected(server, revision, &Handlers::new()).await;
                for _ in 0..2 {
                    refused.push(client.call_tool("add", add.clone()).await.is_err());
                }
                client.close().await;
            }
            refused
        };
        assert_eq!(calls(&server().middleware(limit.clone())).await, [false, true, true, true], "{revision}");
        assert_eq!(calls(&server().middleware(limit.per_session())).await, [false, true, false, true], "{revision}");
    }
}

/// Answers with what is no whole `CallToolResult`.
struct Lenient;

impl Handler for Lenient {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.result(RawJson::parse(r#"{"isError": false}"#).unwrap());
    }
}

#[tokio::test]
async fn what_it_lets_through_is_not_its_own() {
    let rewrites = |request: Request, context: Context, next: Next| async move {
        let answer: Value = next.run(request, &context).await?.to().unwrap();
        RawJson::parse(format!(" {answer}"))
    };
    let add = |server: Server| {
        server.add_tool(Tool::new("lenient", ""), Arc::new(Lenient)).unwrap();
        server
    };
    for server in [server(), server().middleware(Timing::new()), server().middleware(rewrites)] {
        let client = connected(&add(server), "2025-11-25", &Handlers::new()).await;
        let result = client.call_tool("lenient", json!({})).await.unwrap();
        assert!(result.content.is_empty() && !result.is_error, "{result:?}");
    }
}

#[tokio::test]
async fn what_it_answers_to_a_call_is_a_result_of_one() {
    for revision in ALL {
        for (answer, says) in [
            (json!({"nonsense": 1}), "no CallToolResult: \"content\": missing (required)"),
            (json!({"content": "text"}), "no CallToolResult: \"content\": expected an array"),
            (json!({"content": [{"type": "text", "text": "mine"}]}), ""),
        ] {
            let text = answer.to_string();
            let server = server().middleware(move |request: Request, context: Context, next: Next| {
                let text = text.clone();
                async move {
                    match request.method.as_str() {
                        "tools/call" => RawJson::parse(text),
                        _ => next.run(request, &context).await,
                    }
                }
            });
            let client = connected(&server, revision, &Handlers::new()).await;
            match client.call_tool("whoami", json!({})).await {
                Ok(result) => assert_eq!((result.text(), says), ("mine".into(), ""), "{revision}"),
                Err(error) => {
                    assert_eq!(error.code(), Some(-32603), "{revision}: {error}");
                    assert!(!says.is_empty() && error.message().contains(says), "{revision}: {error}");
                }
            }
        }
    }
}
