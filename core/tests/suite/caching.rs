//! Tests of the lifetime of answers (revision 2026-07-28): the hints of servers, and their use by clients.
#![cfg(feature = "runtime")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::client;
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::model::{CacheHints, CacheScope};
use tricorn::prelude::*;
use tricorn::server::{CacheOptions, Kind, ServerOptions};
use tricorn::{CacheMode, Reply};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn hints(seconds: u64, scope: CacheScope) -> CacheHints {
    CacheHints::new().ttl(Duration::from_secs(seconds)).scope(scope)
}

async fn connected(server: &Server, revision: &str) -> Client {
    let options = ClientOptions::new().revision(revision);
    Client::in_memory(server, &options).await.unwrap()
}

/// Returns the hints that a modern client gets with a result: `ttlMs` and `cacheScope`.
async fn said(client: &Client, method: &str, params: Value) -> (u64, String) {
    let bypass = CallOptions::new().cache(CacheMode::Bypass);
    let result = client.request(method, Some(RawJson::from_value(&params)), &bypass).await.unwrap();
    let result: Value = result.to().unwrap();
    (result["ttlMs"].as_u64().unwrap(), result["cacheScope"].as_str().unwrap().to_owned())
}

fn is(seconds: u64, scope: &str) -> (u64, String) {
    (seconds * 1000, scope.to_owned())
}

/// Answers with whole results.
struct Gives(Value);

impl tricorn::Handler for Gives {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        reply.result(RawJson::from_value(&self.0));
    }
}

// ---- what a server says -------------------------------------------------------------------------------------------

#[tokio::test]
async fn nothing_is_kept_unless_the_server_says_so() {
    let server = Server::new("s").resource(Resource::new("a://1", "1"), || async { Ok("text") });
    let client = connected(&server, "2026-07-28").await;
    for method in ["server/discover", "tools/list", "resources/list", "resources/templates/list"] {
        assert_eq!(said(&client, method, json!({})).await, is(0, "private"), "{method}");
    }
    assert_eq!(said(&client, "resources/read", json!({"uri": "a://1"})).await, is(0, "private"));
}

#[tokio::test]
async fn servers_lists_resources_and_results_say_how_long_they_keep() {
    let public = CacheScope::Public;
    let cache = CacheOptions::of(hints(60, public))
        .discover(hints(3600, public))
        .list(Kind::Tool, CacheHints::new().ttl(Duration::from_secs(5)))
        .list(Kind::Prompt, CacheHints::new().scope(CacheScope::Private));
    let result = || async {
        let contents = [ResourceContents::text("now")];
        Ok(ReadResourceResult::new(contents).cache(CacheHints::new().ttl(Duration::from_secs(1))))
    };
    let server = Server::new("s")
        .cache(cache)
        .prompt(Prompt::new("p"), || async { Ok("text") })
        .resource(Resource::new("a://1", "1"), || async { Ok("text") })
        .resource(Resource::new("a://2", "2").cache(hints(7, public)), || async { Ok("text") })
        .resource(Resource::new("a://3", "3").cache(hints(7, public)), result)
        .resource_template(ResourceTemplate::new("b://{n}", "b").cache(hints(8, public)), || async { Ok("text") });
    let client = connected(&server, "2026-07-28").await;
    assert_eq!(said(&client, "server/discover", json!({})).await, is(3600, "public"));
    assert_eq!(said(&client, "tools/list", json!({})).await, is(5, "public"));
    assert_eq!(said(&client, "prompts/list", json!({})).await, is(60, "private"));
    assert_eq!(said(&client, "resources/list", json!({})).await, is(60, "public"));
    assert_eq!(said(&client, "resources/templates/list", json!({})).await, is(60, "public"));
    for (uri, expected) in [
        ("a://1", is(60, "private")),
        ("a://2", is(7, "public")),
        ("a://3", is(1, "public")),
        ("b://x", is(8, "public")),
    ] {
        assert_eq!(said(&client, "resources/read", json!({"uri": uri})).await, expected, "{uri}");
    }
    let read = client.read_resource("a://3").await.unwrap();
    assert_eq!((read.ttl_ms, read.cache_scope, read.is_stale()), (Some(1000), Some(public), false));
    // Nobody else is told.
    let legacy = connected(&server, "2025-11-25").await;
    for (method, params) in [("tools/list", json!({})), ("resources/read", json!({"uri": "a://3"}))] {
        let result = legacy.request(method, Some(RawJson::from_value(&params)), &CallOptions::new()).await.unwrap();
        assert!(!result.get().contains("ttlMs") && !result.get().contains("cacheScope"), "{result}");
    }
}

#[tokio::test]
async fn every_page_of_a_list_is_for_the_same() {
    let cache = CacheOptions::of(hints(60, CacheScope::Public));
    let mut server = Server::new("s").cache(cache).page_size(2);
    for name in ["a", "b", "c"] {
        server = server.tool(name, "", |_: Nothing| async { Ok(1) });
    }
    let client = connected(&server, "2026-07-28").await;
    let pages = async |client: &Client| {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let bypass = CallOptions::new().cache(CacheMode::Bypass);
            let page = client.page(Kind::Tool, cursor.as_deref(), &bypass).await.unwrap();
            found.push((page.extra["ttlMs"].clone(), page.extra["cacheScope"].clone()));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return found;
            }
        }
    };
    let page = |ttl: u64, scope: &str| (json!(ttl), json!(scope));
    assert_eq!(pages(&client).await, [page(60_000, "public"), page(60_000, "public")]);
    // A function's part may depend on who asks, and it may say how long it keeps.
    let list = json!({"tools": [{"name": "d", "inputSchema": {"type": "object"}}], "ttlMs": 5, "cacheScope": "public"});
    server.set_source(Kind::Tool, Some(Arc::new(Gives(list))), None);
    let private = [page(60_000, "private"), page(60_000, "private"), page(5, "private")];
    assert_eq!(pages(&client).await, private);
    // All of the list is the function's: it knows.
    for name in ["a", "b", "c"] {
        server.remove_tool(name);
    }
    assert_eq!(pages(&client).await, [page(5, "public")]);
}

#[cfg(feature = "files")]
#[tokio::test]
async fn files_and_directories_have_their_own() {
    use tricorn::server::files::{Directory, File};
    let root = std::env::temp_dir().join(format!("tricorn-caching-{}", std::process::id()));
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("a.txt"), "a").unwrap();
    let server = Server::new("s")
        .cache(CacheOptions::of(hints(60, CacheScope::Public)))
        .file(File::new(root.join("a.txt"), "one://a").unwrap().cache(hints(3, CacheScope::Public)))
        .directory(Directory::new(&root, "all://").unwrap().cache(hints(4, CacheScope::Public)))
        .directory(Directory::new(&root, "other://").unwrap());
    let client = connected(&server, "2026-07-28").await;
    for (uri, expected) in
        [("one://a", is(3, "public")), ("all://a.txt", is(4, "public")), ("other://a.txt", is(60, "private"))]
    {
        assert_eq!(said(&client, "resources/read", json!({"uri": uri})).await, expected, "{uri}");
    }
    let mut pages = client.pages(Kind::Resource, &CallOptions::new());
    let mut count = 0;
    while let Some(page) = pages.next_page().await.unwrap() {
        assert_eq!((&page.extra["ttlMs"], &page.extra["cacheScope"]), (&json!(60_000), &json!("public")));
        count += 1;
    }
    assert!(count >= 3, "{count} pages");
    let legacy = connected(&server, "2025-11-25").await;
    let read = legacy.read_resource("all://a.txt").await.unwrap();
    assert_eq!((read.text().as_str(), read.ttl_ms, read.cache_scope), ("a", None, None));
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn middleware_sees_and_says_for_whom_a_list_is() {
    let filters = async |request: Request, context: Context, next: Next| -> tricorn::Result<RawJson> {
        let result = next.run(request.clone(), &context).await?;
        if request.method != "tools/list" {
            return Ok(result);
        }
        let mut list: Value = result.to().unwrap();
        assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(60_000), &json!("public")));
        list["cacheScope"] = "private".into();
        Ok(RawJson::from_value(&list))
    };
    let filters = move |request, context, next| -> tricorn::BoxFuture<tricorn::Result<RawJson>> {
        Box::pin(filters(request, context, next))
    };
    let server = Server::new("s").cache(CacheOptions::of(hints(60, CacheScope::Public))).middleware(filters);
    let client = connected(&server, "2026-07-28").await;
    assert_eq!(said(&client, "tools/list", json!({})).await, is(60, "private"));
}

#[test]
fn what_is_wrong_with_the_options_is_named() {
    let parse = |cache: &str| ServerOptions::parse(&format!(r#"{{"name": "s", "cache": {cache}}}"#));
    assert!(parse(r#"{"ttl": 60, "tools": {"scope": "public"}}"#).is_ok());
    let error = parse(r#"{"tools": {"ttl": "long"}}"#).unwrap_err();
    let said = "server options: option \"cache\": \"tools\": \"ttl\": expected seconds of at least 0, got \"long\"";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Misuse, said));
}

// ---- what a client makes of it ------------------------------------------------------------------------------------

/// A server that counts how often a resource is read.
fn counting(seconds: u64) -> (Server, Arc<AtomicUsize>) {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    let read = move || {
        let n = count.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Ok(n.to_string()) }
    };
    let server = Server::new("s")
        .cache(CacheOptions::of(CacheHints::new().ttl(Duration::from_secs(seconds))))
        .tool("add", "", |_: Nothing| async { Ok(1) })
        .resource(Resource::new("a://1", "1"), read);
    (server, reads)
}

async fn read(client: &Client, options: &CallOptions) -> String {
    client.read_resource_with("a://1", options).await.unwrap().text()
}

#[tokio::test]
async fn what_is_fresh_is_not_asked_for_again() {
    let (server, reads) = counting(3600);
    let client = connected(&server, "2026-07-28").await;
    let plain = CallOptions::new();
    for _ in 0..3 {
        assert_eq!(read(&client, &plain).await, "1");
        assert_eq!(client.list_tools().await.unwrap().len(), 1);
    }
    assert_eq!(reads.load(Ordering::SeqCst), 1);
    let usage = client.cache_usage();
    assert_eq!((usage.hits, usage.misses, usage.stale, usage.entries), (4, 2, 0, 2));
    assert_eq!(read(&client, &CallOptions::new().cache(CacheMode::Bypass)).await, "2");
    assert_eq!(read(&client, &plain).await, "1");
    assert_eq!(read(&client, &CallOptions::new().cache(CacheMode::Refresh)).await, "3");
    assert_eq!(read(&client, &plain).await, "3");
    // Another client has asked for nothing yet, and one that keeps nothing asks each time.
    assert_eq!(read(&connected(&server, "2026-07-28").await, &plain).await, "4");
    let options = ClientOptions::new().cache(client::CacheOptions::off());
    let other = Client::in_memory(&server, &options).await.unwrap();
    assert_eq!((read(&other, &plain).await, read(&other, &plain).await), ("5".into(), "6".into()));
}

#[tokio::test]
async fn where_nothing_is_said_everything_is_asked_for() {
    let (server, _) = counting(0);
    let modern = connected(&server, "2026-07-28").await;
    let (server, _) = counting(3600);
    let legacy = connected(&server, "2025-11-25").await;
    for client in [modern, legacy] {
        assert_eq!(read(&client, &CallOptions::new()).await, "1");
        assert_eq!(read(&client, &CallOptions::new()).await, "2");
        assert_eq!(client.cache_usage().entries, 0);
    }
}

#[tokio::test]
async fn middleware_of_a_client_sees_what_was_kept_as_any_other_answer() {
    let (server, reads) = counting(3600);
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let counts =
        move |request: Request, context: Context, next: Next| -> tricorn::BoxFuture<tricorn::Result<RawJson>> {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { next.run(request, &context).await })
        };
    let handlers = Handlers::new().middleware(counts);
    let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await.unwrap();
    for _ in 0..3 {
        assert_eq!(read(&client, &CallOptions::new()).await, "1");
    }
    assert_eq!((seen.load(Ordering::SeqCst), reads.load(Ordering::SeqCst)), (3, 1));
}

#[tokio::test]
async fn what_is_no_longer_fresh_is_given_when_the_server_does_not_answer_and_that_was_asked_for() {
    let blocked = Arc::new(AtomicBool::new(false));
    let blocks = blocked.clone();
    let read = move || {
        let blocks = blocks.load(Ordering::SeqCst);
        async move {
            if blocks {
                std::future::pending::<()>().await;
            }
            Ok("fresh")
        }
    };
    let cache = CacheOptions::of(CacheHints::new().ttl(Duration::from_millis(1)));
    let server = Server::new("s").cache(cache).resource(Resource::new("a://1", "1"), read);
    for stale_on_error in [true, false] {
        blocked.store(false, Ordering::SeqCst);
        let options = ClientOptions::new().cache(client::CacheOptions::new().stale_on_error(stale_on_error));
        let client = Client::in_memory(&server, &options).await.unwrap();
        assert!(!client.read_resource("a://1").await.unwrap().is_stale());
        blocked.store(true, Ordering::SeqCst);
        let soon = CallOptions::new().timeout(Duration::from_millis(1));
        let outcome = loop {
            let outcome = client.read_resource_with("a://1", &soon).await;
            // Fresh for a millisecond.
            if outcome.as_ref().is_err() || outcome.as_ref().is_ok_and(ReadResourceResult::is_stale) {
                break outcome;
            }
        };
        if stale_on_error {
            let result = outcome.unwrap();
            assert_eq!((result.text().as_str(), result.is_stale()), ("fresh", true));
            assert!(result.meta.unwrap()["tricorn/stale"]["ageMs"].is_u64());
            assert_eq!(client.cache_usage().stale, 1);
        } else {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Timeout);
        }
        assert_eq!(client.awaited(), 0);
    }
}

#[tokio::test]
async fn answers_that_questions_were_needed_for_are_not_kept() {
    let read = |cx: Context| async move {
        let answer = cx.elicit("Who?", &json!({"type": "object", "properties": {"name": {"type": "string"}}})).await?;
        Ok(format!("{:?}", answer.content))
    };
    let cache = CacheOptions::of(CacheHints::new().ttl(Duration::from_secs(3600)));
    let resource = Resource::new("a://1", "1").cache(hints(3600, CacheScope::Public));
    let server = Server::new("s").cache(cache).resource(resource, move |_: Nothing, cx: Context| read(cx));
    let asked = Arc::new(AtomicUsize::new(0));
    struct Answers(Arc<AtomicUsize>);
    impl tricorn::Handler for Answers {
        fn call(&self, _: Context, _: RawJson, reply: Reply) {
            let n = self.0.fetch_add(1, Ordering::SeqCst);
            reply.value(RawJson::from_value(&json!({"name": n.to_string()})));
        }
    }
    let handlers = Handlers::new().elicitation(Arc::new(Answers(asked.clone())));
    let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await.unwrap();
    let first = client.read_resource("a://1").await.unwrap();
    let second = client.read_resource("a://1").await.unwrap();
    assert_ne!(first.text(), second.text());
    assert_eq!((asked.load(Ordering::SeqCst), client.cache_usage().entries), (2, 0));
    assert_eq!((first.ttl_ms, first.cache_scope), (Some(0), Some(CacheScope::Private)), "others are told so, too");
}
