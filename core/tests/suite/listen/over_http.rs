//! Streams that are event streams.

use http_body_util::BodyExt;
use tricorn::model::{CacheHints, CacheScope};
use tricorn::server::{CacheOptions, Parameters};

use super::wire::{BOTH, Wire, event, request};
use super::*;

#[tokio::test]
async fn after_a_cut_everything_is_said_to_have_changed() {
    let server = server();
    let http = serving(&server).await;
    let wire = Wire::to(http.local_addr().unwrap()).await;
    let heard = Heard::default();
    let target = Target::from_text(&wire.url()).unwrap();
    let (options, handlers) = (options(MODERN), Handlers::new().events(heard.clone()));
    let connecting = Client::connect_with(&target, &options, &handlers);
    let client = within("connecting", connecting).await.unwrap();
    client.subscribe("a://one").await.unwrap();
    let mut listening = client.listen(SubscriptionFilter::new().tools().resource("a://many/1")).await.unwrap();
    assert_eq!(server.usage().listeners, 2);
    wire.cut();
    assert_eq!(next(&mut listening).await, Change::ToolsListChanged);
    assert_eq!(next(&mut listening).await, updated("a://many/1"));
    let told: Vec<_> = heard.take(4).await.into_iter().map(|(what, _)| what).collect();
    assert_eq!(told, ["tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"]);
    // And goes on.
    server.resource_updated("a://many/1");
    assert_eq!(next(&mut listening).await, updated("a://many/1"));
    server.resource_updated("a://one");
    assert_eq!(heard.take(1).await, [("resources/updated".to_owned(), json!({"uri": "a://one"}))]);
    until("the old streams are gone", || server.usage().listeners == 2).await;
    client.close().await;
    until("nobody listens", || server.usage().listeners == 0).await;
}

/// Answers that were cached before the cut are out of date: a change may have been missed.
#[tokio::test]
async fn after_a_cut_nothing_that_was_kept_counts() {
    let hints = CacheHints::new().ttl(Duration::from_secs(3600)).scope(CacheScope::Private);
    let server = server().cache(CacheOptions::of(hints));
    let http = serving(&server).await;
    let wire = Wire::to(http.local_addr().unwrap()).await;
    let target = Target::from_text(&wire.url()).unwrap();
    let client = within("connecting", Client::connect(&target, &options(MODERN))).await.unwrap();
    let mut listening = client.listen(SubscriptionFilter::new().tools()).await.unwrap();
    let before = client.list_tools().await.unwrap().len();
    assert_eq!(client.list_tools().await.unwrap().len(), before);
    assert_eq!(client.cache_usage().hits, 1);
    wire.cut();
    server.add_tool(Tool::new("later", ""), Arc::new(Answers)).unwrap();
    assert_eq!(next(&mut listening).await, Change::ToolsListChanged);
    assert_eq!(client.list_tools().await.unwrap().len(), before + 1);
    client.close().await;
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "what is kept is no sign of life");
}

#[tokio::test]
async fn a_stream_begins_with_its_acknowledgement_and_ends_with_its_answer() {
    let server = server();
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a://one", "b://no"]});
    let response = within("a stream", endpoint.handle(request(json!("L"), BOTH, filter))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let first = event(&mut body).await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(first["params"]["_meta"], json!({id: "L"}));
    let honoured = json!({"toolsListChanged": true, "resourceSubscriptions": ["a://one"]});
    assert_eq!(first["params"]["notifications"], honoured);
    let usage = server.usage();
    assert_eq!((usage.listeners, usage.in_flight), (1, 0));
    server.add_prompt(Prompt::new("q"), Parameters::default(), Arc::new(Answers)).unwrap();
    for _ in 0..10 {
        server.list_changed(Kind::Tool);
    }
    let told = event(&mut body).await.unwrap();
    assert_eq!(
        told,
        json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {id: "L"}}})
    );
    server.close();
    let answer = event(&mut body).await.unwrap();
    assert_eq!((&answer["id"], &answer["result"]["_meta"][id]), (&json!("L"), &json!("L")));
    assert_eq!(event(&mut body).await, None);
}

#[tokio::test]
async fn what_cannot_be_listened_to_is_refused() {
    let server = server();
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let refused = async |accept: &str, filter: Value| {
        let response = within("an answer", endpoint.handle(request(json!(1), accept, filter))).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        (status, answer["error"]["code"].as_i64().unwrap(), answer["error"]["message"].as_str().unwrap().to_owned())
    };
    for filter in [json!(null), json!([]), json!({"toolsListChanged": "yes"}), json!({"resourceSubscriptions": {}})] {
        let (status, code, message) = refused(BOTH, filter).await;
        assert_eq!((status, code), (200, -32602), "{message}");
        assert!(message.contains("notifications"), "{message}");
    }
    let (status, _, message) = refused("application/json", json!({})).await;
    assert_eq!(status, 406, "{message}");
    assert!(message.contains("text/event-stream"), "{message}");
}

#[tokio::test]
async fn slow_readers_miss_nothing_and_hold_little() {
    let server = server().resource(Resource::new("a://many/", "all"), || async { Ok("all") });
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let filter = json!({"resourceSubscriptions": ["a://one", "a://many/"]});
    let response = within("a stream", endpoint.handle(request(json!(1), BOTH, filter.clone()))).await;
    let mut body = response.into_body();
    event(&mut body).await.unwrap();
    for _ in 0..10_000 {
        server.resource_updated("a://one");
    }
    server.resource_updated("a://many/7");
    let mut told = 0;
    while event(&mut body).await.unwrap()["params"]["uri"] == "a://one" {
        told += 1;
    }
    assert!((2..100).contains(&told), "{told} of 10,000 were told");
    // More that are different than may wait.
    for n in 0..400 {
        server.resource_updated(&format!("a://many/{n}"));
    }
    let mut last = Value::Null;
    while let Some(message) = event(&mut body).await {
        last = message;
    }
    assert!(last["error"]["message"].as_str().unwrap().contains("max_queued_notifications"), "{last}");
    assert_eq!(server.usage().listeners, 0);
}

#[tokio::test]
async fn abandoned_streams_leave_nothing() {
    let heard = Heard::default();
    let server = server();
    server.set_subscription(Arc::new(heard.clone()));
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let mut open = Vec::new();
    for n in 0..1000 {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a://one"]});
        let response = within("a stream", endpoint.handle(request(json!(n), BOTH, filter))).await;
        let mut body = response.into_body();
        event(&mut body).await.unwrap();
        open.push(body);
    }
    assert_eq!(server.usage().listeners, 1000);
    server.list_changed(Kind::Tool);
    for body in &mut open {
        assert_eq!(event(body).await.unwrap()["method"], "notifications/tools/list_changed");
    }
    drop(open);
    assert_eq!(server.usage(), tricorn::server::Usage::default());
    let all = heard.take(2000).await;
    assert_eq!(all.iter().filter(|(_, subscribed)| *subscribed == json!(false)).count(), 1000);
}
