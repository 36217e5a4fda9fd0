mod around;
mod following;
mod groups;
mod listening;
mod origins;
mod replacing;

use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::*;
use crate::call::{CallOptions, Handler};
use crate::client::ClientOptions;
use crate::error::ErrorKind;

struct Waking(Arc<Notify>);

impl Host for Waking {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// A bridge, and what its host would do.
struct Fixture {
    bridge: Bridge,
    woken: Arc<Notify>,
    server: Server,
}

impl Fixture {
    fn new() -> Self {
        let woken = Arc::new(Notify::new());
        let bridge = Bridge::new(Waking(woken.clone()));
        let server = Server::new(&bridge, 1, r#"{"name": "s"}"#).expect("a server");
        server.add("tool", r#"{"name": "t", "inputSchema": {"type": "object"}}"#, "", 7).expect("a tool");
        Self { bridge, woken, server }
    }

    async fn next(&self) -> Vec<Delivery> {
        loop {
            let batch = self.bridge.take();
            if !batch.is_empty() {
                return batch;
            }
            self.woken.notified().await;
        }
    }

    async fn next_call(&self) -> u64 {
        match &self.next().await[..] {
            [Delivery::Call { key, .. }] => *key,
            other => panic!("expected a call, got {other:?}"),
        }
    }

    /// Lets every task run that can.
    async fn settle(&self) {
        for _ in 0..32 {
            tokio::task::yield_now().await;
        }
    }

    /// Starts a call of the tool through memory.
    async fn call(&self) -> (crate::client::Client, crate::call::Guard, oneshot::Receiver<Result<RawJson>>) {
        self.call_of("t").await
    }

    async fn call_of(
        &self,
        tool: &str,
    ) -> (crate::client::Client, crate::call::Guard, oneshot::Receiver<Result<RawJson>>) {
        let options = ClientOptions::default();
        let client = crate::client::Client::in_memory(&self.server.server, &options).await.expect("connected");
        let (send, outcome) = oneshot::channel();
        let done = Box::new(move |answer| drop(send.send(answer)));
        let params = RawJson::from_value(&json!({"name": tool}));
        let guard = client.start("tools/call", Some(params), &CallOptions::default(), done);
        (client, guard, outcome)
    }
}

fn text(params: &RawJson) -> Value {
    params.to().expect("JSON")
}

#[test]
fn only_what_a_host_can_do_without_is_dropped() {
    let it = Fixture::new();
    let empty = RawJson::empty_object;
    for _ in 0..MAX_EVENTS + 3 {
        it.bridge.offer_event(1, "stderr", empty());
    }
    for name in ["http_head", "http_chunk", "listening", "closed"] {
        it.bridge.event(1, name, empty());
    }
    assert_eq!(it.bridge.metrics().dropped, 3);
    let last: Vec<_> = it.bridge.take().split_off(MAX_EVENTS);
    assert_eq!(last.len(), 4, "{last:?}");
}

#[tokio::test]
async fn a_host_hears_of_a_result_that_does_not_fit() {
    let it = Fixture::new();
    let tool =
        r#"{"name": "n", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["n"]}}"#;
    it.server.add("tool", tool, "", 7).expect("a tool");
    let (_client, _guard, outcome) = it.call_of("n").await;
    let key = it.next_call().await;
    assert!(it.bridge.complete(key, Answer::Value(RawJson::empty_object())));
    match &it.next().await[..] {
        [Delivery::Event { source: 1, name: "failed", params, .. }] => {
            let params = text(params);
            let message = params["message"].as_str().expect("a message");
            assert!(params["name"] == "n" && message.starts_with("the result does not fit"), "{params}");
            assert!(message.contains("\"n\""), "{params}");
        }
        other => panic!("expected an event, got {other:?}"),
    }
    let result = text(&outcome.await.expect("an answer").expect("a result"));
    assert_eq!(result["isError"], true, "{result}");
}

#[test]
fn what_waits_for_a_host_is_bounded_in_bytes() {
    let it = Fixture::new();
    let large = || RawJson::from_value(&"x".repeat(3 << 20));
    for _ in 0..30 {
        it.bridge.offer_event(1, "notification", large());
    }
    assert_eq!((it.bridge.metrics().queued, it.bridge.metrics().dropped), (21, 9), "64 MiB of it");
    it.bridge.event(1, "closed", RawJson::empty_object());
    assert_eq!(it.bridge.take().len(), 6, "a part of it");
    for _ in 0..30 {
        it.bridge.offer_event(1, "notification", large());
    }
    assert_eq!(it.bridge.metrics().dropped, 9 + 24, "there was room for what was taken");
    let taken = it.bridge.take();
    let count = taken.len();
    it.bridge.put_back(taken);
    while !it.bridge.take().is_empty() {}
    assert_eq!(count, 6);
    it.bridge.offer_event(1, "notification", large());
    assert_eq!((it.bridge.metrics().queued, it.bridge.metrics().dropped), (1, 9 + 24));
}

#[test]
fn a_slow_host_hears_of_the_newest_progress() {
    let it = Fixture::new();
    for n in 0..10_000 {
        for op in [1, 2] {
            let params = RawJson::from_value(&json!({"progress": n}));
            it.bridge.offer(Delivery::Progress { op, params });
        }
    }
    let all = it.bridge.take();
    assert!(all.len() < 300 && it.bridge.metrics().dropped == 0, "{}", all.len());
    for wanted in [1, 2] {
        let last = all.iter().rev().find_map(|delivery| match delivery {
            Delivery::Progress { op, params } if *op == wanted => Some(text(params)["progress"].clone()),
            _ => None,
        });
        assert_eq!(last, Some(json!(9_999)));
    }
}

#[test]
fn a_host_is_given_so_much_at_once() {
    let it = Fixture::new();
    let large = RawJson::from_value(&"x".repeat(6 << 20));
    for _ in 0..5 {
        it.bridge.event(1, "http_chunk", large.clone());
    }
    let batches: Vec<usize> = std::iter::from_fn(|| Some(it.bridge.take().len()).filter(|n| *n > 0)).collect();
    assert_eq!(batches, [3, 2]);
    let huge = RawJson::from_value(&"x".repeat(20 << 20));
    it.bridge.event(1, "http_chunk", huge);
    assert_eq!(it.bridge.take().len(), 1, "one that is longer comes alone");
}

#[tokio::test]
async fn an_operation_that_panics_is_settled() {
    let it = Fixture::new();
    it.bridge.spawn(3, async { panic!("a bug") });
    match &it.next().await[..] {
        [Delivery::Settle { op: 3, outcome: Err(error) }] => assert_eq!(error.code(), Some(code::INTERNAL_ERROR)),
        other => panic!("expected a settlement, got {other:?}"),
    }
    it.bridge.spawn(4, std::future::pending());
    it.bridge.settle(4);
    it.settle().await;
    assert!(it.bridge.take().is_empty(), "nobody waits for it any more");
}

/// A modern call of the tool as HTTP, with its progress wanted.
#[cfg(feature = "http")]
fn post() -> (Value, Value) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 1,
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t", "_meta": meta}});
    let head = json!({"method": "POST", "headers": [
        ["host", "localhost"], ["content-type", "application/json"], ["mcp-protocol-version", "2026-07-28"],
        ["mcp-method", "tools/call"], ["mcp-name", "t"], ["accept", "application/json, text/event-stream"],
    ]});
    (head, body)
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_response_that_nobody_reads_on_is_given_up() {
    let it = Fixture::new();
    let endpoint = it.server.http("").expect("an endpoint");
    let (head, body) = post();
    endpoint.exchange(5, &head.to_string(), body.to_string().into());
    let key = it.next_call().await;
    it.bridge.progress(key, 1.0, None, None);
    it.settle().await;
    assert!(!it.bridge.take().is_empty());
    let settled =
        |d: &Delivery| matches!(d, Delivery::Settle { op: 5, outcome: Err(e) } if e.kind() == ErrorKind::Timeout);
    let mut batch = it.next().await;
    while !(batch.iter().any(settled) && batch.iter().any(|d| matches!(d, Delivery::Cancel { .. }))) {
        batch.extend(it.next().await);
    }
    assert!(endpoint.is_idle());
}

#[cfg(feature = "http")]
#[tokio::test]
async fn what_is_no_http_is_a_bad_request() {
    let it = Fixture::new();
    let endpoint = it.server.http("").expect("an endpoint");
    let head = json!({"method": "POST", "headers": [["x", "a\u{1}b"]]});
    endpoint.exchange(5, &head.to_string(), "".into());
    let batch = it.next().await;
    let [Delivery::Event { name: "http_head", params, .. }, ..] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!(text(params)["status"], 400);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn a_chunk_is_made_when_the_last_one_is_written() {
    let it = Fixture::new();
    let endpoint = it.server.http("").expect("an endpoint");
    let (head, body) = post();
    endpoint.exchange(5, &head.to_string(), body.to_string().into());
    let key = it.next_call().await;
    let chunks = |batch: Vec<Delivery>| -> Vec<String> {
        let part = |delivery| match delivery {
            Delivery::Event { name: "http_chunk", params, .. } => text(&params)["text"].as_str().map(str::to_owned),
            Delivery::Settle { op: 5, outcome: Ok(_) } => Some("end".to_owned()),
            _ => None,
        };
        batch.into_iter().filter_map(part).collect()
    };
    it.bridge.progress(key, 1.0, None, None);
    it.settle().await;
    let first = chunks(it.bridge.take());
    assert!(first.len() == 1 && first[0].contains("progress"), "{first:?}");
    it.bridge.progress(key, 2.0, None, None);
    it.bridge.complete(key, Answer::Text("done".into()));
    it.settle().await;
    assert!(it.bridge.take().is_empty(), "the first chunk is not written yet");
    endpoint.written(5);
    it.settle().await;
    let rest = chunks(it.bridge.take());
    assert!(rest.len() == 2 && rest[0].contains("done") && rest[1] == "end", "{rest:?}");
    assert!(endpoint.is_idle());
}

#[tokio::test]
async fn an_answer_is_not_held_back_by_a_host_that_is_busy() {
    let it = Fixture::new();
    let (_client, _guard, outcome) = it.call().await;
    let key = it.next_call().await;
    it.bridge.cork();
    it.bridge.complete(key, Answer::Text("fast".into()));
    // The host does something else and does not come back.
    assert!(outcome.await.is_ok_and(|answer| answer.is_ok()));
}

/// Cancels each call at the worst moment.
struct Late(HostHandler);

impl Handler for Late {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        cx.cancel(None);
        self.0.call(cx, params, reply);
    }

    fn cancel(&self, cx: &Context, reason: Option<&str>) {
        self.0.cancel(cx, reason);
    }
}

#[tokio::test]
async fn a_cancellation_before_the_call_is_known_is_not_lost() {
    let it = Fixture::new();
    it.server.remove("tool", "t").expect("a kind");
    assert_eq!(it.next().await.len(), 1, "the handler is released");
    let tool = crate::model::Tool::parse(r#"{"name": "t", "inputSchema": {"type": "object"}}"#).expect("a tool");
    let handler = Late(HostHandler { bridge: it.bridge.clone(), handler: 7 });
    it.server.server.add_tool(tool, Arc::new(handler)).expect("added");
    let (_client, _guard, outcome) = it.call().await;
    let batch = it.next().await;
    assert!(matches!(batch[..], [Delivery::Call { .. }, Delivery::Cancel { .. }]), "{batch:?}");
    assert_eq!(it.bridge.metrics().calls, 0);
    assert!(outcome.await.is_ok_and(|answer| answer.is_err()), "the dropped reply has answered");
}

#[tokio::test]
async fn a_call_after_the_end_is_answered() {
    let it = Fixture::new();
    it.bridge.close();
    let (_client, _guard, outcome) = it.call().await;
    assert!(outcome.await.is_ok());
    it.bridge.operation(1, |_| panic!("nothing starts"));
    let metrics = it.bridge.metrics();
    assert_eq!((metrics.calls, metrics.ops, metrics.queued), (0, 0, 0));
}

impl Fixture {
    /// The next delivery of a kind; what comes before it is of no interest.
    async fn find<T>(&self, wanted: impl Fn(&Delivery) -> Option<T>) -> T {
        loop {
            if let Some(found) = self.next().await.iter().find_map(&wanted) {
                return found;
            }
        }
    }

    async fn settled(&self, wanted: u64) -> Result<Value> {
        let outcome = |delivery: &Delivery| match delivery {
            Delivery::Settle { op, outcome } if *op == wanted => Some(outcome.clone()),
            _ => None,
        };
        self.find(outcome).await.map(|result| text(&result))
    }
}

#[tokio::test]
async fn a_task_is_a_call_of_the_host_like_any_other() {
    let it = Fixture::new();
    let server = Server::new(&it.bridge, 2, r#"{"name": "s", "tasks": {"max_tasks": 5}}"#).expect("a server");
    let tool = r#"{"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}"#;
    server.add("tool", tool, "", 7).expect("a tool");
    let client = Client::in_memory(&it.bridge, 3, &server, r#"{"revision": "2025-11-25"}"#).expect("a client");
    client.connect(1);
    assert!(it.settled(1).await.is_ok_and(|opened| opened["capabilities"]["tasks"]["list"].is_object()));
    let called = |delivery: &Delivery| match delivery {
        Delivery::Call { key, .. } => Some(*key),
        _ => None,
    };
    let params = || Some(RawJson::from_value(&json!({"name": "t"})));
    client.request(2, "tools/call", params(), r#"{"task": {"ttl": 5000}}"#);
    let key = it.find(called).await;
    let context = text(&it.bridge.context(key).expect("running"));
    let id = context["taskId"].as_str().expect("a task").to_owned();
    assert!(it.bridge.set_status(key, "half way"));
    client.request(3, "tasks/get", Some(RawJson::from_value(&json!({"taskId": id}))), "");
    let task = it.settled(3).await.expect("a task");
    assert_eq!((&task["statusMessage"], &task["ttl"]), (&json!("half way"), &json!(5000)));
    it.bridge.complete(key, Answer::Text("done".into()));
    assert_eq!(it.settled(2).await.expect("a result")["content"][0]["text"], "done");
    // Given up, it is cancelled.
    client.request(4, "tools/call", params(), r#"{"task": {}}"#);
    let key = it.find(called).await;
    it.bridge.settle(4);
    let cancelled =
        |delivery: &Delivery| matches!(delivery, Delivery::Cancel { key: k, .. } if *k == key).then_some(());
    it.find(cancelled).await;
    for (bad, part) in [
        (r#"{"name": "s", "tasks": {"max_task": 5}}"#, "max_task"),
        (r#"{"name": "s", "tasks": {"max_tasks": 0}}"#, "at least 1"),
        (r#"{"name": "s", "tasks": {"task_ttl": -1}}"#, "task_ttl"),
    ] {
        let error = Server::new(&it.bridge, 5, bad).err().expect(bad);
        assert!(error.message().contains(part), "{error}");
    }
    client.request(6, "tools/call", params(), r#"{"task": 5}"#);
    assert_eq!(it.settled(6).await.expect_err("no object").kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn a_session_has_entries_of_its_own() {
    let it = Fixture::new();
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).expect("options");
    let client = crate::client::Client::in_memory(&it.server.server, &options).await.expect("connected");
    let done = Box::new(|_| {});
    let params = RawJson::from_value(&json!({"name": "t"}));
    let _guard = client.start("tools/call", Some(params), &CallOptions::default(), done);
    let key = it.next_call().await;
    let own = r#"{"name": "own", "inputSchema": {"type": "object"}}"#;
    it.bridge.session_add(key, "tool", own, "", 9).expect("added");
    it.bridge.session_add(key, "tool", own, "", 9).expect_err("the name is taken");
    let refused = it.bridge.session_add(key, "prompt", r#"{"name": "p"}"#, "", 9).expect_err("not declared");
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert_eq!(client.list_tools().await.expect("listed").len(), 2);
    let released = |delivery: &Delivery| match delivery {
        Delivery::Event { source: 0, name: "released", params, .. } => Some(text(params)["handler"].clone()),
        _ => None,
    };
    let mut refused = 0;
    while refused < 2 {
        refused += it.next().await.iter().filter(|delivery| released(delivery).is_some()).count();
    }
    assert!(it.bridge.session_remove(key, "tool", "own").expect("removed"));
    assert_eq!(it.find(released).await, 9);
    assert!(!it.bridge.session_remove(key, "tool", "own").expect("removed"));
    assert_eq!(client.list_tools().await.expect("listed").len(), 1);
    assert!(it.bridge.session_remove(key + 1, "tool", "own").is_err(), "no such call");
}

#[cfg(feature = "files")]
#[test]
fn a_host_says_whether_a_path_is_a_directory() {
    let it = Fixture::new();
    let path = std::env::temp_dir();
    let add = |uri: &str, directory: Value| {
        it.server.add_files(&json!({"path": path, "uri": uri, "directory": directory}).to_string())
    };
    add("a://1", Value::Null).expect("what is there decides");
    add("a://2", json!(true)).expect("a directory");
    let refused = add("a://3", json!(false)).expect_err("not a file");
    assert!(refused.message().contains(&path.display().to_string()), "{refused}");
    let nowhere = json!({"path": "/nowhere/at/all", "uri": "a://4", "directory": true}).to_string();
    assert!(it.server.add_files(&nowhere).expect_err("nothing is there").message().contains("/nowhere/at/all"));
    assert!(it.server.remove("resource", "a://1").expect("removed"));
    assert!(!it.server.remove("resource", "a://1").expect("removed"));
}

#[cfg(all(feature = "stdio", unix))]
#[tokio::test]
async fn a_client_that_is_closed_while_it_connects_leaves_nothing() {
    let it = Fixture::new();
    let mark = std::env::temp_dir().join(format!("tricorn-bridge-{}", std::process::id()));
    let script = format!("echo $$ > {}.new; mv {0}.new {0}; exec sleep 1000", mark.display());
    let target = json!({"command": "sh", "args": ["-c", script]}).to_string();
    let client = Client::new(&it.bridge, 2, &target, r#"{"shutdown_grace": 0.1}"#).expect("a client");
    client.connect(1);
    let settled = async |op: u64| loop {
        for delivery in it.next().await {
            if let Delivery::Settle { op: settled, outcome } = delivery
                && settled == op
            {
                return outcome;
            }
        }
    };
    client.connect(2);
    let second = settled(2).await.expect_err("one at a time");
    assert!(second.message().contains("connecting already"), "{second}");
    let pid = loop {
        match std::fs::read_to_string(&mark) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
        }
    };
    client.close(3);
    let first = settled(1).await.expect_err("closed");
    assert_eq!(first.kind(), ErrorKind::Closed, "{first}");
    let alive = || std::path::Path::new(&format!("/proc/{pid}/cmdline")).exists();
    for _ in 0..1000 {
        if !alive() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(!alive(), "the child is left");
    let _ = std::fs::remove_file(&mark);
}

#[tokio::test]
async fn a_client_that_was_closed_says_so() {
    let it = Fixture::new();
    let client = Client::in_memory(&it.bridge, 2, &it.server, "").expect("a client");
    let settled = async |op: u64| loop {
        for delivery in it.next().await {
            match delivery {
                Delivery::Settle { op: settled, outcome } if settled == op => return outcome.map_err(|e| e.kind()),
                _ => {}
            }
        }
    };
    client.request(1, "ping", None, "");
    assert_eq!(settled(1).await.err(), Some(ErrorKind::Misuse));
    client.connect(2);
    settled(2).await.expect("connected");
    client.close(3);
    client.request(4, "ping", None, "");
    assert_eq!(settled(4).await.err(), Some(ErrorKind::Closed));
    assert_eq!(client.notify("notifications/initialized", None).map_err(|e| e.kind()), Err(ErrorKind::Closed));
    client.connect(5);
    settled(5).await.expect("connected anew");
}
