//! Listening to changes, in every revision, through memory and over HTTP.
#![cfg(all(feature = "runtime", feature = "http"))]
#![expect(clippy::unwrap_used, reason = "tests")]

mod over_http;
mod turns;
mod wire;

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tricorn::client::{Change, Client, ClientOptions, Handlers, Listening, Target};
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{ConcurrencyLimit, Middleware, Next, Request as Passing};
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::Kind;
use tricorn::{BoxFuture, Events, Handler, Reply};

const ALL: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const MODERN: &str = "2026-07-28";
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
}

fn options(revision: &str) -> ClientOptions {
    ClientOptions::new().revision(revision)
}

fn server() -> Server {
    Server::new("s")
        .tool("t", "", |_: Nothing| async { Ok("t") })
        .resource(Resource::new("a://one", "one"), || async { Ok("1") })
        .resource_template(ResourceTemplate::new("a://many/{n}", "many"), || async { Ok("n") })
        .prompt(Prompt::new("p"), || async { Ok("p".to_owned()) })
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

struct Answers;

impl Handler for Answers {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.text("x");
    }
}

async fn serving(server: &Server) -> HttpServer {
    let options = HttpOptions::parse(r#"{"port": 0, "allowed_hosts": ["*"]}"#).unwrap();
    within("serving", server.serve_http(options)).await.unwrap()
}

async fn connected_to(url: &str, revision: &str) -> Client {
    let target = Target::from_text(url).unwrap();
    within("connecting", Client::connect(&target, &options(revision))).await.unwrap()
}

/// A client of the server through memory, and one over HTTP.
async fn both(server: &Server, http: &HttpServer, revision: &str) -> [Client; 2] {
    [Client::in_memory(server, &options(revision)).await.unwrap(), connected_to(http.url(), revision).await]
}

async fn next(listening: &mut Listening) -> Change {
    within("a change", listening.next()).await.expect("not at its end").unwrap()
}

fn updated(uri: &str) -> Change {
    Change::ResourceUpdated(uri.into())
}

#[tokio::test]
async fn every_revision_is_listened_to_alike() {
    let server = server();
    let http = serving(&server).await;
    for revision in ALL {
        for over in ["memory", "http"] {
            // One after the other: in older revisions who is connected is told.
            let client = match over {
                "memory" => Client::in_memory(&server, &options(revision)).await.unwrap(),
                _ => connected_to(http.url(), revision).await,
            };
            let filter = SubscriptionFilter::new().tools().resource("a://one").resource("a://many/1");
            let mut listening = within("listening", client.listen(filter.clone())).await.unwrap();
            let mut other = client.listen(SubscriptionFilter::new().prompts().resource("a://one")).await.unwrap();
            assert_eq!(listening.honoured(), filter, "{revision}");
            server.resource_updated("a://many/2");
            server.resource_updated("a://many/1");
            assert_eq!(next(&mut listening).await, updated("a://many/1"), "{revision}");
            server.list_changed(Kind::Prompt);
            assert_eq!(next(&mut other).await, Change::PromptsListChanged);
            server.list_changed(Kind::Tool);
            assert_eq!(next(&mut listening).await, Change::ToolsListChanged);
            server.resource_updated("a://one");
            assert_eq!(next(&mut other).await, updated("a://one"));
            assert_eq!(next(&mut listening).await, updated("a://one"));
            // What one no longer wants, the other still hears.
            drop(other);
            client.ping().await.unwrap();
            server.resource_updated("a://one");
            assert_eq!(next(&mut listening).await, updated("a://one"));
            client.close().await;
            let end = within("the end", listening.next()).await.expect("an error").unwrap_err();
            assert_eq!(end.kind(), ErrorKind::Closed, "{end}");
            assert!(listening.next().await.is_none());
        }
    }
    until("nobody listens", || server.usage().listeners == 0).await;
}

#[tokio::test]
async fn what_is_not_offered_is_named() {
    let server = Server::new("s").tool("t", "", |_: Nothing| async { Ok("t") });
    for revision in ALL {
        let client = Client::in_memory(&server, &options(revision)).await.unwrap();
        for (filter, named) in [
            (SubscriptionFilter::new().tools().prompts(), "promptsListChanged"),
            (SubscriptionFilter::new().resources(), "resourcesListChanged"),
            (SubscriptionFilter::new().resource("a://one"), "resourceSubscriptions"),
        ] {
            let error = client.listen(filter).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert!(error.message().contains(named), "{error}");
        }
        let nothing = client.listen(SubscriptionFilter::new()).await.unwrap_err();
        assert!(nothing.kind() == ErrorKind::Misuse && nothing.message().ends_with("tasks or extensions"), "{nothing}");
        let all = SubscriptionFilter::lists_of(&client.capabilities());
        assert_eq!(all, SubscriptionFilter::new().tools());
        let error = client.subscribe("a://one").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}

/// Notifications that a client's handlers hear, and the calls of a server's subscription hook.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(String, Value)>>>, Arc<Notify>);

impl Heard {
    fn say(&self, what: &str, value: Value) {
        self.0.lock().unwrap().push((what.to_owned(), value));
        self.1.notify_one();
    }

    async fn take(&self, count: usize) -> Vec<(String, Value)> {
        within("being told", async {
            while self.0.lock().unwrap().len() < count {
                self.1.notified().await;
            }
        })
        .await;
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        self.say(method.trim_start_matches("notifications/"), params.map_or(Value::Null, |p| p.to().unwrap()));
    }
}

/// Refuses what ends in 13.
impl Handler for Heard {
    fn call(&self, _: Context, params: RawJson, reply: Reply) {
        let told: Value = params.to().unwrap();
        let uri = told["uri"].as_str().unwrap();
        self.say(uri, told["subscribed"].clone());
        if uri.ends_with("13") { reply.failed("unlucky") } else { reply.value(RawJson::trusted("true")) }
    }
}

#[tokio::test]
async fn a_client_of_older_revisions_needs_no_change() {
    let server = server();
    let http = serving(&server).await;
    for revision in ALL {
        for over in ["memory", "http"] {
            let heard = Heard::default();
            let (options, handlers) = (options(revision), Handlers::new().events(heard.clone()));
            let client = match over {
                "memory" => Client::in_memory_with(&server, &options, &handlers).await.unwrap(),
                _ => {
                    let target = Target::from_text(http.url()).unwrap();
                    within("connecting", Client::connect_with(&target, &options, &handlers)).await.unwrap()
                }
            };
            server.add_tool(Tool::new("more", ""), Arc::new(Answers)).unwrap();
            let changed = |what: &str| (format!("{what}/list_changed"), json!({}));
            let told = |uri: &str| ("resources/updated".to_owned(), json!({"uri": uri}));
            assert_eq!(heard.take(1).await, [changed("tools")], "{revision} {over}");
            server.remove_tool("more");
            heard.take(1).await;
            for uri in ["a://one", "a://many/1", "a://many/1"] {
                within("subscribing", client.subscribe(uri)).await.unwrap();
            }
            server.resource_updated("a://one");
            assert_eq!(heard.take(1).await, [told("a://one")], "{revision} {over}");
            within("unsubscribing", client.unsubscribe("a://one")).await.unwrap();
            server.resource_updated("a://one");
            server.resource_updated("a://many/1");
            assert_eq!(heard.take(1).await, [told("a://many/1")], "{revision} {over}");
            // A listener has its own.
            let listening = client.listen(SubscriptionFilter::new().resource("a://many/1")).await.unwrap();
            within("unsubscribing", client.unsubscribe("a://many/1")).await.unwrap();
            drop(listening);
            server.set_enabled(Kind::Prompt, "p", false);
            assert_eq!(heard.take(1).await, [changed("prompts")]);
            server.set_enabled(Kind::Prompt, "p", true);
            heard.take(1).await;
            let unknown = client.subscribe("a://nothing").await.unwrap_err();
            assert!(matches!(unknown.kind(), ErrorKind::Rpc | ErrorKind::Unsupported), "{unknown}");
            client.close().await;
        }
    }
    until("nobody listens", || server.usage().listeners == 0 && server.usage().in_flight == 0).await;
}

#[tokio::test]
async fn what_is_asked_for_twice_is_listened_to_once() {
    for revision in ["2025-11-25", MODERN] {
        let heard = Heard::default();
        let server = server();
        server.set_subscription(Arc::new(heard.clone()));
        let client = Client::in_memory(&server, &options(revision)).await.unwrap();
        let mut filter = SubscriptionFilter::new();
        filter.resource_subscriptions = vec!["a://one".into(), "a://one".into()];
        let listening = client.listen(filter).await.unwrap();
        assert_eq!(listening.honoured().resource_subscriptions, ["a://one"], "{revision}");
        drop(listening);
        let told = [("a://one".to_owned(), json!(true)), ("a://one".to_owned(), json!(false))];
        assert_eq!(heard.take(2).await, told, "{revision}");
    }
}

#[tokio::test]
async fn the_hook_is_asked_and_told_of_the_end() {
    let heard = Heard::default();
    let server = server();
    server.set_subscription(Arc::new(heard.clone()));
    let http = serving(&server).await;
    for client in both(&server, &http, MODERN).await {
        let filter = SubscriptionFilter::new().resource("a://one").resource("a://many/13").resource("b://unknown");
        let listening = within("listening", client.listen(filter)).await.unwrap();
        assert_eq!(listening.honoured(), SubscriptionFilter::new().resource("a://one"));
        let asked = [("a://one".to_owned(), json!(true)), ("a://many/13".to_owned(), json!(true))];
        assert_eq!(heard.take(2).await, asked);
        assert_eq!(server.usage().listeners, 1);
        drop(listening);
        assert_eq!(heard.take(1).await, [("a://one".to_owned(), json!(false))]);
        let refused = client.subscribe("a://many/13").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        heard.take(1).await;
        client.subscribe("a://one").await.unwrap();
        client.close().await;
        assert_eq!(heard.take(2).await.last(), Some(&("a://one".to_owned(), json!(false))));
    }
    until("nobody listens", || server.usage().listeners == 0).await;
}

/// Keeps what it is asked.
#[derive(Default)]
struct Keeps(Mutex<Vec<Reply>>, Notify, Heard);

impl Handler for Keeps {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        if params.to::<Value>().unwrap()["subscribed"] == true {
            self.0.lock().unwrap().push(reply);
            self.1.notify_one();
        } else {
            self.2.call(cx, params, reply);
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_before_the_hook_has_answered_leaves_nothing() {
    let keeps = Arc::new(Keeps::default());
    let server = server();
    server.set_subscription(keeps.clone());
    let http = serving(&server).await;
    for client in both(&server, &http, MODERN).await {
        tokio::select! {
            biased;
            _ = client.listen(SubscriptionFilter::new().resource("a://one")) => panic!("nobody has agreed"),
            () = keeps.1.notified() => {}
        }
        client.ping().await.unwrap();
        until("cancelled", || server.usage().in_flight == 0).await;
        keeps.0.lock().unwrap().drain(..).for_each(|reply| reply.value(RawJson::trusted("true")));
        assert_eq!(keeps.2.take(1).await, [("a://one".to_owned(), json!(false))], "told of the end");
    }
    until("nobody listens", || server.usage().listeners == 0 && server.usage().in_flight == 0).await;
}

#[tokio::test]
async fn middleware_sees_the_request_and_holds_nobody_up() {
    struct Sees(Heard);
    impl Middleware for Sees {
        fn handle(&self, request: Passing, cx: Context, next: Next) -> BoxFuture<tricorn::Result<RawJson>> {
            self.0.say(&request.method, Value::Null);
            next.run(request, &cx)
        }
    }
    let heard = Heard::default();
    let server = server().middleware(Sees(heard.clone())).middleware(ConcurrencyLimit::new(1).expect("a limit"));
    let http = serving(&server).await;
    for client in both(&server, &http, MODERN).await {
        let mut listening = client.listen(SubscriptionFilter::new().tools().resource("a://one")).await.unwrap();
        assert!(heard.take(1).await.contains(&("subscriptions/listen".to_owned(), Value::Null)));
        client.list_tools().await.unwrap();
        server.resource_updated("a://one");
        assert_eq!(next(&mut listening).await, updated("a://one"));
        drop(listening);
        until("nobody listens", || server.usage().listeners == 0).await;
        heard.take(1).await;
    }
}

/// Connecting does not wait for it, so what its user has seen by then may be old.
#[tokio::test]
async fn a_server_that_takes_its_time_is_taken_to_have_changed() {
    let goes_on = Arc::new(Notify::new());
    let holds = goes_on.clone();
    let held = move |request: Passing, cx: Context, next: Next| -> BoxFuture<tricorn::Result<RawJson>> {
        let holds = holds.clone();
        Box::pin(async move {
            if request.method == "subscriptions/listen" {
                holds.notified().await;
            }
            next.run(request, &cx).await
        })
    };
    let (server, heard) = (server().middleware(held), Heard::default());
    let (options, handlers) = (options(MODERN), Handlers::new().events(heard.clone()));
    let connecting = Client::in_memory_with(&server, &options, &handlers);
    let client = within("connecting", connecting).await.unwrap();
    client.list_tools().await.unwrap();
    goes_on.notify_one();
    let told: Vec<_> = heard.take(3).await.into_iter().map(|(what, _)| what).collect();
    assert_eq!(told, ["tools/list_changed", "prompts/list_changed", "resources/list_changed"]);
}

#[tokio::test]
async fn a_server_that_closes_ends_streams_in_order() {
    for over in ["memory", "http"] {
        let server = server();
        let http = serving(&server).await;
        let client = match over {
            "memory" => Client::in_memory(&server, &options(MODERN)).await.unwrap(),
            _ => connected_to(http.url(), MODERN).await,
        };
        let mut listening = client.listen(SubscriptionFilter::new().tools()).await.unwrap();
        server.close();
        assert!(within("the end", listening.next()).await.is_none(), "{over}");
        assert_eq!(server.usage().listeners, 0);
    }
}
