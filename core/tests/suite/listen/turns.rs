//! Tests of listeners that leave and come at the same time, in a session.

use super::*;

const SESSION: &str = "2025-11-25";

/// Holds requests to unsubscribe.
#[derive(Clone, Default)]
struct Holds(Arc<Notify>, Arc<Notify>);

impl Middleware for Holds {
    fn handle(&self, request: Passing, cx: Context, next: Next) -> BoxFuture<tricorn::Result<RawJson>> {
        let it = self.clone();
        Box::pin(async move {
            if request.method == "resources/unsubscribe" {
                it.0.notify_one();
                it.1.notified().await;
            }
            next.run(request, &cx).await
        })
    }
}

#[tokio::test]
async fn who_leaves_takes_nothing_from_who_comes() {
    let filter = SubscriptionFilter::new().resource("a://one");
    for leaves in ["drop", "unsubscribe"] {
        let holds = Holds::default();
        let server = server().middleware(holds.clone());
        let client = Client::in_memory(&server, &options(SESSION)).await.unwrap();
        let leaving = match leaves {
            "drop" => {
                drop(client.listen(filter.clone()).await.unwrap());
                None
            }
            _ => {
                client.subscribe("a://one").await.unwrap();
                let client = client.clone();
                Some(tokio::spawn(async move { client.unsubscribe("a://one").await }))
            }
        };
        within("the request to unsubscribe", holds.0.notified()).await;
        let (coming, wanted) = (client.clone(), filter.clone());
        let coming = tokio::spawn(async move { coming.listen(wanted).await });
        for _ in 0..20 {
            client.ping().await.unwrap();
        }
        holds.1.notify_one();
        let mut listening = within("listening", coming).await.unwrap().unwrap();
        if let Some(leaving) = leaving {
            within("unsubscribing", leaving).await.unwrap().unwrap();
        }
        server.resource_updated("a://one");
        assert_eq!(next(&mut listening).await, updated("a://one"), "{leaves}");
    }
}

#[tokio::test]
async fn who_has_come_before_it_is_their_turn_stays() {
    let (holds, heard) = (Holds::default(), Heard::default());
    let server = server().middleware(holds.clone());
    server.set_subscription(Arc::new(heard.clone()));
    let client = Client::in_memory(&server, &options(SESSION)).await.unwrap();
    let filter = SubscriptionFilter::new().resource("a://one");
    drop(client.listen(filter.clone()).await.unwrap());
    within("the request to unsubscribe", holds.0.notified()).await;
    // One who comes and gives up, and leaves in turn; one who stays; one who unsubscribes from what is listened to.
    let gives_up = tokio::time::timeout(Duration::from_millis(1), client.listen(filter.clone())).await;
    assert!(gives_up.is_err());
    let (coming, wanted) = (client.clone(), filter.clone());
    let coming = tokio::spawn(async move { coming.listen(wanted).await });
    client.ping().await.unwrap();
    holds.1.notify_one();
    let mut listening = within("listening", coming).await.unwrap().unwrap();
    within("unsubscribing", client.unsubscribe("a://one")).await.unwrap();
    server.resource_updated("a://one");
    assert_eq!(next(&mut listening).await, updated("a://one"));
    let told: Vec<Value> = heard.take(3).await.into_iter().map(|(_, subscribed)| subscribed).collect();
    assert_eq!(told, [json!(true), json!(false), json!(true)], "one was given back, once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_nobody_is_left_deaf() {
    let server = server();
    let http = serving(&server).await;
    let client = connected_to(http.url(), SESSION).await;
    let filter = SubscriptionFilter::new().resource("a://one");
    let mut listening = within("listening", client.listen(filter.clone())).await.unwrap();
    for n in 0..50 {
        let (other, wanted) = (client.clone(), filter.clone());
        let coming = tokio::spawn(async move { other.listen(wanted).await });
        drop(listening);
        listening = within("listening", coming).await.unwrap().unwrap();
        server.resource_updated("a://one");
        assert_eq!(next(&mut listening).await, updated("a://one"), "{n}");
    }
}
