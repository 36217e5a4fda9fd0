//! When users are asked to log in, and what for.

use tokio::sync::watch;
use tricorn::Events;
use tricorn::client::Handlers;

use super::*;

/// Keeps warnings.
struct Warned(watch::Sender<Vec<String>>);

impl Events for Warned {
    fn warning(&self, message: &str) {
        self.0.send_modify(|all| all.push(message.to_owned()));
    }
}

#[tokio::test]
async fn a_stream_that_nobody_waits_for_asks_nobody_to_log_in() {
    let servers = Servers::new(World { legacy: true, no_streams: true, ..World::default() }).await;
    let user = User::default();
    let (tell, mut told) = watch::channel(Vec::new());
    let target = Target::from_text(&servers.server.url()).unwrap();
    let options = ClientOptions::new().auth(login(&user));
    let handlers = Handlers::new().events(Arc::new(Warned(tell)));
    let connecting = Client::connect_with(&target, &options, &handlers);
    let client = tokio::time::timeout(PATIENCE, connecting).await.expect("connected in time").unwrap();
    let is_told = |all: &Vec<String>| all.iter().any(|text| text.contains("standalone stream is closed until"));
    tokio::time::timeout(PATIENCE, told.wait_for(is_told)).await.expect("a warning").unwrap();
    // With the refresh token once, and then no more.
    let streams = || servers.server.seen().iter().filter(|seen| seen.verb == "GET" && seen.path == "/mcp").count();
    assert_eq!((streams(), servers.count("/as1/token"), user.opened.lock().unwrap().len()), (2, 2, 1));
    assert_eq!(call(&client).await.unwrap(), "token-2");
    // The next login is a request's, and the stream comes with it.
    {
        let mut world = servers.world();
        world.no_streams = false;
        world.tokens.clear();
        world.failures = vec![("400 Bad Request", json!({"error": "invalid_grant"}))];
    }
    assert_eq!(call(&client).await.unwrap(), "token-3");
    let with_it = |seen: &Seen| seen.verb == "GET" && seen.header("authorization") == Some("Bearer token-3");
    servers.server.wait_for("the stream", with_it).await;
    assert_eq!((user.opened.lock().unwrap().len(), servers.world().registered.len()), (2, 1));
}

#[tokio::test]
async fn calls_that_need_different_scopes_at_once_all_get_them() {
    let servers = Servers::new(World { needs_its_name: true, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    let names = ["a", "b", "c", "d", "e"];
    let calls = names.map(|name| {
        let client = client.clone();
        tokio::spawn(async move { call_named(&client, name).await })
    });
    for call in calls {
        call.await.unwrap().unwrap();
    }
    for name in names {
        call_named(&client, name).await.unwrap();
    }
    assert_eq!(user.opened.lock().unwrap().len(), 1 + names.len());
}

#[tokio::test]
async fn a_token_that_its_server_repeats_is_in_no_error() {
    let servers = Servers::new(World { echoes: true, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    servers.world().refuses = true;
    let error = call(&client).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Auth && error.message().contains("seen: …"), "{error}");
    assert!(!error.message().contains("token-"), "{error}");
    let error = servers.connect(&Auth::bearer("my-own-secret")).await.unwrap_err();
    assert!(error.message().contains("seen: …") && !error.message().contains("my-own"), "{error}");
}
