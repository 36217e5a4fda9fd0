//! Clients that keep what they may in a store of one's own.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tricorn::client::{CacheOptions, CacheStore, Change, ClientGroup};
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::model::{CacheHints, CacheScope, SubscriptionFilter};
use tricorn::prelude::*;
use tricorn::server::{self, Kind};
use tricorn::{BoxFuture, CacheMode, ErrorKind};

use crate::http_client::heard::Heard;

const PATIENCE: Duration = Duration::from_secs(20);

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

/// Store that processes share.
#[derive(Default)]
struct Shelf {
    kept: Mutex<BTreeMap<String, String>>,
    hangs: AtomicBool,
    asked: AtomicUsize,
}

impl Shelf {
    fn answer<T: Send + 'static>(&self, value: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> Asked<T> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        if self.hangs.load(Ordering::SeqCst) {
            return Box::pin(std::future::pending());
        }
        let value = value(&mut self.kept.lock().unwrap());
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(value)
        })
    }
}

type Asked<T> = BoxFuture<tricorn::Result<T>>;

impl CacheStore for Shelf {
    fn get(&self, keys: Vec<String>) -> Asked<Vec<Option<String>>> {
        self.answer(|kept| keys.iter().map(|key| kept.get(key).cloned()).collect())
    }

    fn set(&self, key: String, text: String, ttl: Duration) -> Asked<()> {
        assert!(ttl >= Duration::from_secs(1) && ttl.subsec_nanos() == 0, "{ttl:?}");
        self.answer(|kept| drop(kept.insert(key, text)))
    }

    fn delete(&self, key: String) -> Asked<()> {
        self.answer(|kept| drop(kept.remove(&key)))
    }
}

/// A server whose resources say how often anything was read.
fn counting() -> Server {
    let reads = Arc::new(AtomicUsize::new(0));
    let hints = CacheHints::new().ttl(Duration::from_secs(3600));
    let read = || {
        let reads = reads.clone();
        move || {
            let n = reads.fetch_add(1, Ordering::SeqCst) + 1;
            async move { Ok(n.to_string()) }
        }
    };
    Server::new("s")
        .cache(server::CacheOptions::of(hints))
        .resource(Resource::new("a://private", "private"), read())
        .resource(Resource::new("a://public", "public").cache(hints.scope(CacheScope::Public)), read())
}

async fn serving(server: &Server) -> HttpServer {
    let options = HttpOptions::parse(r#"{"port": 0}"#).unwrap();
    within("serving", server.serve_http(options)).await.unwrap()
}

fn options(shelf: &Arc<Shelf>) -> ClientOptions {
    ClientOptions::new().revision("2026-07-28").cache(CacheOptions::new().store(shelf.clone()))
}

async fn connected(http: &HttpServer, options: &ClientOptions) -> Client {
    let target = Target::from_text(http.url()).unwrap();
    within("connecting", Client::connect(&target, options)).await.unwrap()
}

async fn read(client: &Client, uri: &str) -> String {
    within("reading", client.read_resource(uri)).await.unwrap().text()
}

#[tokio::test]
async fn clients_of_several_processes_share_what_they_may() {
    let (server, shelf) = (counting(), Arc::<Shelf>::default());
    let http = serving(&server).await;
    let user = |token: &str| options(&shelf).header("Authorization", format!("Bearer {token}"));
    let (ada, bob) = (connected(&http, &user("secret-1")).await, connected(&http, &user("secret-2")).await);
    assert_eq!((read(&ada, "a://private").await, read(&ada, "a://public").await), ("1".into(), "2".into()));
    let again = connected(&http, &user("secret-1")).await;
    assert_eq!((read(&again, "a://private").await, read(&again, "a://public").await), ("1".into(), "2".into()));
    assert_eq!((read(&bob, "a://private").await, read(&bob, "a://public").await), ("3".into(), "2".into()));
    let usage = again.cache_usage();
    assert_eq!((usage.hits, usage.misses, usage.entries, usage.failures), (2, 0, 0, 0));
    // A token that was renewed, of a user who has a name.
    let named = |token: &str| {
        let cache = CacheOptions::new().store(shelf.clone()).scope("ada");
        user(token).cache(cache)
    };
    assert_eq!(read(&connected(&http, &named("1")).await, "a://private").await, "4");
    assert_eq!(read(&connected(&http, &named("2")).await, "a://private").await, "4");
    let kept = shelf.kept.lock().unwrap();
    assert!(kept.keys().all(|key| key.starts_with("tricorn:1:") && !key.contains("secret")), "{kept:?}");
}

#[tokio::test]
async fn what_one_hears_of_is_dropped_for_all() {
    let (server, shelf) = (counting(), Arc::<Shelf>::default());
    let http = serving(&server).await;
    let (ada, bob) = (connected(&http, &options(&shelf)).await, connected(&http, &options(&shelf)).await);
    for uri in ["a://private", "a://public"] {
        assert_eq!(read(&ada, uri).await, read(&bob, uri).await);
    }
    let listening = ada.listen(SubscriptionFilter::new().resource("a://public"));
    let mut changes = within("listening", listening).await.unwrap();
    server.resource_updated("a://public");
    let change = within("a change", changes.next()).await.unwrap().unwrap();
    assert_eq!(change, Change::ResourceUpdated("a://public".into()));
    assert_eq!((read(&ada, "a://public").await, read(&bob, "a://public").await), ("3".into(), "3".into()));
    assert_eq!((read(&ada, "a://private").await, read(&bob, "a://private").await), ("1".into(), "1".into()));
    // Also by the last thing that it does.
    server.resource_updated("a://public");
    within("a change", changes.next()).await.unwrap().unwrap();
    drop(changes);
    ada.close().await;
    assert_eq!(read(&bob, "a://public").await, "4");
}

#[tokio::test]
async fn a_store_that_hangs_delays_one_request_and_breaks_none() {
    let (server, shelf) = (counting(), Arc::<Shelf>::default());
    let http = serving(&server).await;
    let heard = Arc::new(Heard::default());
    let target = Target::from_text(http.url()).unwrap();
    let handlers = Handlers::new().events(heard.clone());
    shelf.hangs.store(true, Ordering::SeqCst);
    let options = options(&shelf);
    let client = within("connecting", Client::connect_with(&target, &options, &handlers)).await.unwrap();
    for n in 1..=3 {
        assert_eq!(read(&client, "a://public").await, n.to_string());
    }
    let usage = client.cache_usage();
    assert_eq!((usage.misses, usage.failures, shelf.asked.load(Ordering::SeqCst)), (3, 1, 1));
    let warnings = heard.warnings.lock().unwrap().clone();
    assert!(matches!(&warnings[..], [one] if one.contains("get: it has not answered within 2 s")), "{warnings:?}");
}

#[tokio::test]
async fn a_request_can_be_given_up_while_the_store_is_asked() {
    let (server, shelf) = (counting(), Arc::<Shelf>::default());
    let http = serving(&server).await;
    let client = connected(&http, &options(&shelf)).await;
    shelf.hangs.store(true, Ordering::SeqCst);
    {
        let mut reading = std::pin::pin!(client.read_resource("a://public"));
        while shelf.asked.load(Ordering::SeqCst) == 0 {
            let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(reading.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
    }
    // What takes no part in it is not held up.
    let bypass = CallOptions::new().cache(CacheMode::Bypass);
    let result = within("reading", client.read_resource_with("a://public", &bypass)).await.unwrap();
    assert_eq!(result.text(), "1", "it was never asked for");
    // Whoever waits for the store when the client is closed is told so.
    let reading = client.read_resource("a://private");
    let (outcome, ()) = tokio::join!(within("the end", reading), client.close());
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn what_is_kept_is_given_when_the_server_has_gone_and_that_was_asked_for() {
    let hints = CacheHints::new().ttl(Duration::from_millis(1)).scope(CacheScope::Public);
    let resource = Resource::new("a://1", "1").cache(hints);
    let (server, shelf) = (Server::new("s").resource(resource, || async { Ok("text") }), Arc::<Shelf>::default());
    let http = serving(&server).await;
    let cache = CacheOptions::new().store(shelf.clone()).stale_on_error(true);
    let client = connected(&http, &options(&shelf).cache(cache)).await;
    assert!(!client.read_resource("a://1").await.unwrap().is_stale());
    server.close();
    within("the end", http.join()).await;
    loop {
        // Fresh for a millisecond.
        let result = within("reading", client.read_resource("a://1")).await.unwrap();
        if result.is_stale() {
            assert_eq!(result.text(), "text");
            break;
        }
    }
    assert_eq!(client.cache_usage().stale, 1);
}

#[tokio::test]
async fn servers_of_a_group_are_kept_apart_and_those_in_memory_are_not_kept_there() {
    let (one, two, shelf) = (counting(), counting(), Arc::<Shelf>::default());
    let (http_one, http_two) = (serving(&one).await, serving(&two).await);
    let servers = || {
        let servers = Servers::new().server("one", Target::from_text(http_one.url()).unwrap());
        servers.server("two", Target::from_text(http_two.url()).unwrap()).server("three", counting())
    };
    for is_second in [false, true] {
        let group = within("connecting", ClientGroup::connect(servers(), options(&shelf))).await.unwrap();
        for name in ["one", "two", "three"] {
            let client = group.get(name).unwrap();
            assert_eq!(read(&client, "a://public").await, "1", "{name}");
            let usage = client.cache_usage();
            let has_address = name != "three";
            assert_eq!((usage.hits > 0, usage.entries > 0), (is_second && has_address, !has_address), "{name}");
        }
        assert_eq!(within("listing", group.list(Kind::Resource, &CallOptions::new())).await.entries.len(), 6);
    }
}
