//! Tests of the layers around a host's handlers: middleware, a lifespan.

use super::*;

#[tokio::test]
async fn a_request_goes_through_the_hosts_middleware() {
    let it = Fixture::new();
    it.server.add_middleware(8);
    let (_client, _guard, outcome) = it.call().await;
    let outer = match &it.next().await[..] {
        [Delivery::Call { key, handler: 8, params, .. }] => {
            let request = text(params);
            assert_eq!((&request["method"], &request["params"]["name"]), (&json!("tools/call"), &json!("t")));
            *key
        }
        other => panic!("expected middleware's call, got {other:?}"),
    };
    it.bridge.next(outer, 5, None, "");
    let inner = it.next_call().await;
    let facts = text(&it.bridge.context(inner).expect("running"));
    assert_eq!((&facts["method"], &facts["through"]), (&json!("tools/call"), &json!(outer)));
    assert!(it.bridge.complete(inner, Answer::Text("x".into())));
    let result = match it.next().await.remove(0) {
        Delivery::Settle { op: 5, outcome } => outcome.expect("a result"),
        other => panic!("expected a settlement, got {other:?}"),
    };
    assert_eq!(text(&result), json!({"content": [{"type": "text", "text": "x"}]}));
    assert!(it.bridge.complete(outer, Answer::Result(RawJson::from_value(&json!({"content": [], "isError": true})))));
    assert!(outcome.await.expect("an answer").expect("a result").get().contains("\"isError\":true"));
    it.bridge.next(outer, 6, None, "");
    match &it.next().await[..] {
        [Delivery::Settle { op: 6, outcome: Err(error) }] => assert_eq!(error.kind(), ErrorKind::Cancelled),
        other => panic!("expected a settlement, got {other:?}"),
    }
    assert_eq!(it.bridge.metrics().calls, 0);
}

/// Half of a surrogate pair is JSON, and no text.
#[test]
fn what_cannot_be_read_as_text_is_handed_on_as_it_came() {
    let half = RawJson::trusted(r#"{"a":"\ud800"}"#);
    assert_eq!(message("m", Some(&half)).get(), r#"{"method":"m","params":{"a":"\ud800"}}"#);
    assert_eq!(message("m", None).get(), r#"{"method":"m","params":null}"#);
}

#[tokio::test]
async fn a_host_says_whose_a_request_is_inside_of_its_middleware() {
    let it = Fixture::new();
    it.server.set_hook("principal", 9).expect("a hook");
    it.server.set_hook("principal", 10).expect("the same hook");
    it.server.add_middleware(8);
    let handled = |batch: &[Delivery], number| match batch {
        [Delivery::Call { key, handler, .. }] if *handler == number => *key,
        other => panic!("expected a call of {number}, got {other:?}"),
    };
    for (answer, is_said) in [
        (Answer::Result(RawJson::trusted(r#"{"principal":"ada"}"#)), true),
        (Answer::Result(RawJson::trusted(r#"{"principal":null}"#)), true),
        (Answer::Result(RawJson::trusted("{}")), false),
        (Answer::Result(RawJson::trusted(r#"{"principal":7}"#)), false),
        (Answer::Failed("no idea".into()), false),
        (Answer::Error(Error::misuse("no idea")), false),
    ] {
        let (_client, _guard, outcome) = it.call().await;
        let outer = handled(&it.next().await, 8);
        it.bridge.next(outer, 5, None, "");
        let asked = handled(&it.next().await, 10);
        assert_eq!(text(&it.bridge.context(asked).expect("running"))["through"], outer);
        assert!(it.bridge.complete(asked, answer));
        if is_said {
            assert!(it.bridge.complete(it.next_call().await, Answer::Text("x".into())));
        }
        let result = match it.next().await.remove(0) {
            Delivery::Settle { op: 5, outcome } => outcome,
            other => panic!("expected a settlement, got {other:?}"),
        };
        assert_eq!(result.is_ok(), is_said, "{result:?}");
        let error = result.clone().err();
        it.bridge.complete(outer, result.map_or_else(Answer::Error, Answer::Result));
        assert_eq!(outcome.await.expect("an answer").is_ok(), is_said);
        if let Some(error) = error {
            assert_eq!((error.code(), error.message()), (Some(-32603), "the server's principal: it failed"));
        }
    }
    // The principal of a request that needs none is not asked for.
    let (client, _guard, _outcome) = it.call().await;
    it.bridge.next(handled(&it.next().await, 8), 6, None, "");
    let (send, _listed) = oneshot::channel();
    let done = Box::new(move |answer: Result<RawJson>| drop(send.send(answer)));
    handled(&it.next().await, 10);
    let _listing = client.start("tools/list", None, &CallOptions::default(), done);
    it.bridge.next(handled(&it.next().await, 8), 7, None, "");
    assert!(matches!(it.next().await[..], [Delivery::Settle { op: 7, outcome: Ok(_) }]));
}

#[tokio::test]
async fn cancelling_reaches_the_hosts_middleware_and_what_it_runs() {
    let it = Fixture::new();
    it.server.add_middleware(8);
    let (_client, guard, _outcome) = it.call().await;
    let outer = match &it.next().await[..] {
        [Delivery::Call { key, handler: 8, .. }] => *key,
        other => panic!("expected middleware's call, got {other:?}"),
    };
    it.bridge.next(outer, 5, None, "");
    let inner = it.next_call().await;
    // A request that middleware no longer waits for is cancelled.
    it.bridge.settle(5);
    assert!(matches!(it.next().await[..], [Delivery::Cancel { key, .. }] if key == inner));
    it.bridge.next(outer, 6, Some(RawJson::from_value(&json!({"name": "t", "arguments": {}}))), "");
    let inner = it.next_call().await;
    drop(guard);
    assert!(matches!(it.next().await[..], [Delivery::Cancel { key, .. }] if key == outer));
    // As a host does whose function was waiting for it.
    it.bridge.settle(6);
    assert!(matches!(it.next().await[..], [Delivery::Cancel { key, .. }] if key == inner));
    it.settle().await;
    assert_eq!(it.bridge.metrics().calls, 0);
}

#[tokio::test]
async fn a_host_that_goes_on_too_late_is_told_that_nobody_waits() {
    let it = Fixture::new();
    it.server.add_middleware(8);
    let (client, _guard, _outcome) = it.call().await;
    let outer = match &it.next().await[..] {
        [Delivery::Call { key, handler: 8, .. }] => *key,
        other => panic!("expected middleware's call, got {other:?}"),
    };
    client.close().await;
    it.bridge.next(outer, 5, None, "");
    let mut all = it.next().await;
    while !all.iter().any(|delivery| matches!(delivery, Delivery::Settle { .. })) {
        all.extend(it.next().await);
    }
    match all.pop() {
        Some(Delivery::Settle { op: 5, outcome: Err(error) }) => assert_eq!(error.kind(), ErrorKind::Cancelled),
        other => panic!("expected a settlement, got {other:?}"),
    }
}

#[tokio::test]
async fn built_in_middleware_has_a_name() {
    let it = Fixture::new();
    for (options, part) in [
        (r#"{"kind": "cache"}"#, "expected one of \"logging\""),
        (r#"{"kind": "rate_limit"}"#, "\"per_second\": missing"),
        (r#"{"kind": "rate_limit", "per_second": 0}"#, "more than 0"),
        (r#"{"kind": "concurrency_limit", "max": 0}"#, "\"max\": expected a number of at least 1, got 0"),
        (r#"{"kind": "timing", "maxx": 1}"#, "did you mean \"max\""),
    ] {
        let error = it.server.add_builtin(options).expect_err(part);
        assert!(error.message().contains(part), "{error}");
    }
    for options in [
        r#"{"kind": "logging"}"#,
        r#"{"kind": "timing"}"#,
        r#"{"kind": "rate_limit", "per_second": 5, "burst": 1, "per_session": true}"#,
        r#"{"kind": "concurrency_limit", "max": 1, "max_waiting": 0}"#,
    ] {
        it.server.add_builtin(options).expect("an option");
    }
    let (_client, _guard, outcome) = it.call().await;
    let key = it.next_call().await;
    assert!(it.bridge.complete(key, Answer::Text("x".into())));
    outcome.await.expect("an answer").expect("a result");
    match &it.next().await[..] {
        [Delivery::Event { source: 1, name: "request", params, .. }] => {
            assert_eq!((&text(params)["name"], &text(params)["cancelled"]), (&json!("t"), &json!(false)));
        }
        other => panic!("expected an event, got {other:?}"),
    }
    assert_eq!(text(&it.server.metrics())["timing"]["tools/call"]["count"], 1);
}

#[tokio::test]
async fn a_lifespan_lives_in_the_host() {
    let it = Fixture::new();
    it.server.set_lifespan(10, 11);
    let client = Client::in_memory(&it.bridge, 2, &it.server, "").expect("a client");
    let key = |batch: Vec<Delivery>, expected: u32| match &batch[..] {
        [Delivery::Call { key, handler, .. }] if *handler == expected => *key,
        other => panic!("expected handler {expected}, got {other:?}"),
    };
    client.connect(1);
    let starting = key(it.next().await, 10);
    assert!(it.bridge.complete(starting, Answer::Error(Error::misuse("no database"))));
    match &it.next().await[..] {
        [Delivery::Settle { op: 1, outcome: Err(error) }] => assert_eq!(error.message(), "no database"),
        other => panic!("expected a settlement, got {other:?}"),
    }
    client.connect(2);
    let starting = key(it.next().await, 10);
    assert!(it.bridge.complete(starting, Answer::Result(RawJson::empty_object())));
    assert!(matches!(it.next().await[..], [Delivery::Settle { op: 2, outcome: Ok(_) }]));
    client.close(3);
    let mut batch = it.next().await;
    batch.retain(|delivery| matches!(delivery, Delivery::Call { .. }));
    if batch.is_empty() {
        batch = it.next().await;
    }
    let stopping = key(batch, 11);
    assert!(it.bridge.complete(stopping, Answer::Result(RawJson::empty_object())));
    while !it.next().await.iter().any(|d| matches!(d, Delivery::Settle { op: 3, outcome: Ok(_) })) {}
}

#[tokio::test]
async fn a_log_level_that_is_none_is_the_hosts_mistake() {
    let it = Fixture::new();
    let refused = it.bridge.log(1, "bogus", None, &RawJson::empty_object()).expect_err("no level");
    assert_eq!(refused.kind(), ErrorKind::Misuse);
    assert!(refused.message().contains("expected one of debug, info"), "{refused}");
}
