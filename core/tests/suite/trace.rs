//! The trace that requests belong to: into handlers, out with what they ask, in every revision, through memory and HTTP.
#![cfg(feature = "http")]
#![expect(deprecated, reason = "what is deprecated still works")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::prelude::*;
use tricorn::server::CreateMessageRequestParams;
use tricorn::{BoxFuture, CallOptions, ErrorKind, Handler, Reply, TraceContext};

const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn trace(number: usize) -> TraceContext {
    let parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{number:016x}-01");
    TraceContext::new(Some(&parent), Some("vendor=1"), Some("tenant=a%20b")).unwrap()
}

fn wire(number: usize) -> Value {
    json!(trace(number))
}

/// Says what its handlers see, and what the client's handlers see.
fn server() -> Server {
    Server::new("s")
        .tool("seen", "", |_: Nothing, cx: Context| async move { Ok(json!({"trace": cx.trace_context()}).to_string()) })
        .tool("meta", "", |_: Nothing, cx: Context| async move {
            Ok(cx.request().meta.as_ref().map_or_else(|| "{}".to_owned(), |meta| meta.get().to_owned()))
        })
        .tool("asks", "", |_: Nothing, cx: Context| async move {
            let question = |text: &str| CreateMessageRequestParams::new(9).user(&tricorn::model::Content::text(text));
            let first = cx.sample(&question("first?")).await?.text();
            let second = cx.sample(&question("second?")).await?.text();
            Ok(format!("[{first},{second}]"))
        })
}

/// A model that says in which trace it was asked.
struct Model;

impl Handler for Model {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        reply.text(json!(cx.trace_context()).to_string());
    }
}

fn handlers() -> Handlers {
    Handlers::new().sampling(Arc::new(Model))
}

fn options(revision: &str) -> ClientOptions {
    ClientOptions::new().revision(revision)
}

async fn through_memory(server: &Server, options: &ClientOptions) -> Client {
    Client::in_memory_with(server, options, &handlers()).await.unwrap()
}

async fn text(client: &Client, name: &str, options: &CallOptions) -> Value {
    let result =
        tokio::time::timeout(PATIENCE, client.call_tool_with(name, json!({}), options)).await.unwrap().unwrap();
    assert!(!result.is_error, "{name}: {}", result.text());
    serde_json::from_str(&result.text()).unwrap()
}

/// Every request is of a trace of its own.
fn counting() -> (ClientOptions, Arc<AtomicUsize>) {
    let count = Arc::<AtomicUsize>::default();
    let counted = count.clone();
    (ClientOptions::new().trace_context(move || Some(trace(counted.fetch_add(1, Ordering::SeqCst) + 1))), count)
}

async fn goes_around(client: &Client, count: &AtomicUsize) {
    let next = || count.load(Ordering::SeqCst) + 1;
    let plain = CallOptions::new();
    let expected = next();
    assert_eq!(text(client, "seen", &plain).await["trace"], wire(expected));
    // All rounds of one request are of one trace.
    let expected = next();
    assert_eq!(text(client, "asks", &plain).await, json!([wire(expected), wire(expected)]));
    assert_eq!(next(), expected + 1);
}

#[tokio::test]
async fn a_trace_goes_to_the_handler_and_back_with_its_questions() {
    for revision in ALL {
        let (options, count) = counting();
        let client = through_memory(&server(), &options.revision(revision)).await;
        goes_around(&client, &count).await;
    }
}

#[tokio::test]
async fn so_it_does_over_http() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let serving = server().serve_http(HttpOptions::new().port(0)).await.unwrap();
        let (options, count) = counting();
        let target = Target::from_text(serving.url()).unwrap();
        let client = Client::connect_with(&target, &options.revision(revision), &handlers()).await.unwrap();
        goes_around(&client, &count).await;
        client.close().await;
        serving.close();
    }
}

#[tokio::test]
async fn what_is_said_of_one_request_comes_first() {
    for revision in ALL {
        let client = through_memory(&server(), &options(revision).trace_context(|| Some(trace(1)))).await;
        let own = CallOptions::new().trace_context(trace(2));
        assert_eq!(text(&client, "seen", &own).await["trace"], wire(2), "{revision}");
        // By hand, and only what is missing joins it.
        let mut given = wire(3);
        given["own/key"] = json!(12.50);
        let meta = text(&client, "meta", &own.clone().meta(&given)).await;
        for (key, value) in given.as_object().unwrap() {
            assert_eq!(meta[key], *value, "{revision}");
        }
        let meta = text(&client, "meta", &own.clone().meta(json!({"traceparent": "mine"}))).await;
        assert_eq!((&meta["traceparent"], &meta["tracestate"]), (&json!("mine"), &Value::Null), "{revision}");
        assert_eq!(meta["baggage"], "tenant=a%20b", "{revision}");
        // Nothing is sent when there is nothing to say.
        let silent = through_memory(&server(), &options(revision).trace_context(|| None)).await;
        let meta = text(&silent, "meta", &CallOptions::new()).await;
        assert!(["traceparent", "tracestate", "baggage"].iter().all(|key| meta.get(key).is_none()), "{meta}");
        assert_eq!(text(&silent, "seen", &CallOptions::new()).await["trace"], Value::Null);
    }
}

#[tokio::test]
async fn what_is_malformed_is_as_if_it_were_not_there() {
    for revision in ALL {
        let client = through_memory(&server(), &options(revision)).await;
        for bad in
            [json!("junk"), json!("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), json!(7), json!(null)]
        {
            let meta = json!({"traceparent": bad, "tracestate": "a=1"});
            let plain = CallOptions::new().meta(&meta);
            assert_eq!(text(&client, "seen", &plain).await["trace"], Value::Null, "{revision} {bad}");
            assert_eq!(text(&client, "asks", &plain).await, json!([null, null]), "{revision} {bad}");
            let meta = json!({"traceparent": bad, "tracestate": "a=1", "baggage": "k=v"});
            let seen = text(&client, "seen", &CallOptions::new().meta(&meta)).await;
            assert_eq!(seen["trace"], json!({"baggage": "k=v"}), "{revision} {bad}");
        }
    }
}

/// Puts every request, and every round of one, into a span of its own, as tracing does.
fn spans(
    by_meta: bool,
) -> impl Fn(Request, Context, Next) -> BoxFuture<tricorn::Result<RawJson>> + Send + Sync + 'static {
    let count = AtomicUsize::new(100);
    move |mut request, mut context, next| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        if by_meta {
            let mut params: Value = request.params.as_ref().unwrap().to().unwrap();
            params["_meta"]["traceparent"] = wire(number)["traceparent"].clone();
            request.params = Some(RawJson::from_value(&params));
        } else {
            context = context.with_state(trace(number));
        }
        Box::pin(async move { next.run(request, &context).await })
    }
}

#[tokio::test]
async fn questions_are_of_the_trace_that_middleware_put_in_its_place() {
    for revision in ALL {
        for by_meta in [true, false] {
            let server = server().middleware(spans(by_meta));
            let client = through_memory(&server, &options(revision).trace_context(|| Some(trace(1)))).await;
            assert_eq!(text(&client, "seen", &CallOptions::new()).await["trace"], wire(100), "{revision}");
            // Where rounds are requests, the second question is asked in the second one.
            let second = if revision == "2026-07-28" { 102 } else { 101 };
            assert_eq!(
                text(&client, "asks", &CallOptions::new()).await,
                json!([wire(101), wire(second)]),
                "{revision}"
            );
        }
    }
}

#[tokio::test]
async fn middleware_of_a_client_sees_what_goes_out() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = seen.clone();
    let handlers = handlers().middleware(move |request: Request, context: Context, next: Next| {
        heard.lock().unwrap().push(json!(context.trace_context()));
        async move { next.run(request, &context).await }
    });
    let handlers = handlers.middleware(spans(false));
    let options = options("2026-07-28").trace_context(|| Some(trace(1)));
    let client = Client::in_memory_with(&server(), &options, &handlers).await.unwrap();
    // It may put another one in its place, but for what is said by hand.
    assert_eq!(text(&client, "seen", &CallOptions::new()).await["trace"], wire(100));
    let by_hand = CallOptions::new().trace_context(trace(2)).meta(json!({"traceparent": wire(3)["traceparent"]}));
    let trace = text(&client, "seen", &by_hand).await["trace"].clone();
    assert_eq!(trace, json!({"traceparent": wire(3)["traceparent"], "baggage": "tenant=a%20b"}));
    assert_eq!(*seen.lock().unwrap(), [wire(1), wire(2)]);
}

#[tokio::test]
async fn a_function_that_fails_to_say_it_fails_no_request() {
    let options = options("2026-07-28").trace_context(|| panic!("no trace today"));
    let client = through_memory(&server(), &options).await;
    assert_eq!(text(&client, "seen", &CallOptions::new()).await["trace"], Value::Null);
    let wrong = TraceContext::new(Some("junk"), None, None).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Misuse);
}
