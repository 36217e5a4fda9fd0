//! Tests of the cause of a delivery, by the number of the operation that a host started.

use super::*;

/// The calls among deliveries: handler, key and what caused them.
fn calls(batch: &[Delivery]) -> Vec<(u32, u64, u64)> {
    let call = |delivery: &Delivery| match delivery {
        Delivery::Call { key, handler, origin, .. } => Some((*handler, *key, *origin)),
        _ => None,
    };
    batch.iter().filter_map(call).collect()
}

/// The bridge's own events about an operation.
fn about(batch: &[Delivery], event: &str) -> Vec<u64> {
    let told = |delivery: &Delivery| match delivery {
        Delivery::Event { source: 0, name, params, .. } if *name == event => text(params)["op"].as_u64(),
        _ => None,
    };
    batch.iter().filter_map(told).collect()
}

impl Fixture {
    /// The next deliveries with a call among them.
    async fn next_caused(&self) -> (u32, u64, u64) {
        loop {
            if let Some(call) = calls(&self.next().await).first() {
                return *call;
            }
        }
    }

    async fn client(&self, options: &str) -> Client {
        let client = Client::in_memory(&self.bridge, 2, &self.server, options).expect("a client");
        client.connect(100);
        self.ends(100).await;
        client
    }

    async fn ends(&self, op: u64) {
        let settles = |d: &Delivery| matches!(d, Delivery::Settle { op: own, outcome: Ok(_) } if *own == op);
        while !self.next().await.iter().any(settles) {}
    }
}

#[tokio::test]
async fn a_call_in_memory_says_whose_it_is_and_so_does_what_it_asks() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let it = Fixture::new();
        let client = Client::in_memory(&it.bridge, 2, &it.server, &json!({"revision": revision}).to_string());
        let client = client.expect("a client");
        client.set_handler("elicitation/create", r#"{"form": {}}"#, 9).expect("a question");
        client.connect(100);
        it.ends(100).await;
        let params = || Some(RawJson::from_value(&json!({"name": "t", "arguments": {}})));
        client.request(5, "tools/call", params(), "");
        let (handler, key, origin) = it.next_caused().await;
        assert_eq!((handler, origin), (7, 5), "{revision}");
        let question = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        it.bridge.ask(key, 50, "elicitation/create", Some(RawJson::from_value(&question)), "");
        // In rounds the run ends at the question.
        it.bridge.complete(key, Answer::Text("early".into()));
        let (handler, asked, origin) = it.next_caused().await;
        assert_eq!((handler, origin), (9, 5), "{revision}");
        it.bridge.complete(asked, Answer::Result(RawJson::from_value(&json!({"action": "decline"}))));
        client.request(6, "tools/call", params(), "");
        loop {
            let (_, key, origin) = it.next_caused().await;
            it.bridge.complete(key, Answer::Text("x".into()));
            if origin == 6 {
                break;
            }
            assert_eq!(origin, 5, "{revision}: the other run");
        }
    }
}

#[tokio::test]
async fn an_operation_is_free_at_its_end_unless_something_goes_on_for_it() {
    let it = Fixture::new();
    let client = it.client("{}").await;
    let params = || Some(RawJson::from_value(&json!({"name": "t", "arguments": {}})));
    client.request(5, "tools/call", params(), "");
    let (_, key, _) = it.next_caused().await;
    it.bridge.complete(key, Answer::Text("x".into()));
    it.ends(5).await;
    assert!(!it.bridge.settle(5));
    // Given up while it runs: the host hears of the end.
    client.request(6, "tools/call", params(), "");
    let (_, _, origin) = it.next_caused().await;
    assert_eq!(origin, 6);
    let goes_on = it.bridge.settle(6);
    it.settle().await;
    let freed = about(&it.bridge.take(), "freed");
    assert_eq!(freed, if goes_on { vec![6] } else { vec![] });
}

#[tokio::test]
async fn a_task_holds_its_operation() {
    let it = Fixture::new();
    let server = Server::new(&it.bridge, 3, r#"{"name": "s", "tasks": {}}"#).expect("a server");
    let tool = r#"{"name": "t", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}}"#;
    server.add("tool", tool, "", 7).expect("a tool");
    let client = Client::in_memory(&it.bridge, 2, &server, r#"{"revision": "2025-11-25"}"#).expect("a client");
    client.connect(100);
    it.ends(100).await;
    client.request(5, "tools/call", Some(RawJson::from_value(&json!({"name": "t", "task": {}}))), "");
    let (mut batch, mut key) = (Vec::new(), None);
    let settles = |d: &Delivery| matches!(d, Delivery::Settle { op: 5, .. });
    while key.is_none() || !batch.iter().any(settles) {
        batch.extend(it.next().await);
        key = calls(&batch).first().map(|(_, key, origin)| (*key, *origin));
    }
    let (key, origin) = key.expect("a call");
    assert_eq!((origin, about(&batch, "held")), (5, vec![5]));
    let place = |wanted: &dyn Fn(&Delivery) -> bool| batch.iter().position(wanted);
    assert!(place(&|d| matches!(d, Delivery::Event { name: "held", .. })) < place(&settles));
    assert!(!it.bridge.settle(5), "it is settled already");
    it.bridge.complete(key, Answer::Text("x".into()));
    let mut freed = about(&it.bridge.take(), "freed");
    while freed.is_empty() {
        freed = about(&it.next().await, "freed");
    }
    assert_eq!(freed, [5]);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn an_exchange_says_whose_its_calls_are() {
    let it = Fixture::new();
    let endpoint = it.server.http("").expect("an endpoint");
    let (head, body) = post();
    for op in [5, 6] {
        endpoint.exchange(op, &head.to_string(), body.to_string().into());
        let (_, key, origin) = it.next_caused().await;
        assert_eq!(origin, op);
        let known = it.bridge.context(key).expect("it runs");
        assert_eq!(text(&known)["origin"], op);
        it.bridge.complete(key, Answer::Text("x".into()));
        it.ends(op).await;
    }
}

#[tokio::test]
async fn what_is_told_within_a_call_belongs_to_it() {
    let it = Fixture::new();
    let client = it.client(r#"{"revision": "2025-11-25"}"#).await;
    client.request(90, "logging/setLevel", Some(RawJson::from_value(&json!({"level": "debug"}))), "");
    it.ends(90).await;
    client.request(5, "tools/call", Some(RawJson::from_value(&json!({"name": "t"}))), "");
    let (_, key, _) = it.next_caused().await;
    assert!(it.bridge.log(key, "info", None, &RawJson::from_value(&"x")).expect("a log"));
    it.server.list_changed("tool").expect("a change");
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(it.next().await.into_iter().filter_map(|delivery| match delivery {
            Delivery::Event { source: 2, name: "notification", params, origin } => {
                Some((text(&params)["method"].clone(), origin))
            }
            _ => None,
        }));
    }
    assert_eq!(heard[0], (json!("notifications/message"), 5));
    assert_eq!(heard[1].1, 0, "{heard:?}");
    it.bridge.complete(key, Answer::Text("x".into()));
}
