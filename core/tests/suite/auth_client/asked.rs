//! Tests of the questions to users for a login, and of the reasons for them.

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
async fn a_refreshed_token_that_is_refused_leads_to_one_login() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let auth = login(&user);
    let client = servers.connect(&auth).await.unwrap();
    {
        let mut world = servers.world();
        world.tokens.clear();
        world.refreshes_in_vain = true;
    }
    assert_eq!(call(&client).await.unwrap(), "token-3");
    let grants = || {
        let named =
            |form: &String| parameter(form.split(' ').nth(1).unwrap_or_default(), "grant_type").unwrap_or_default();
        servers.world().forms.iter().map(named).collect::<Vec<_>>()
    };
    assert_eq!(grants(), ["authorization_code", "refresh_token", "authorization_code"]);
    // Another process comes with what is kept.
    servers.world().tokens.clear();
    let other = servers.connect(&auth).await.unwrap();
    assert_eq!(call(&other).await.unwrap(), "token-5");
    assert_eq!(user.opened.lock().unwrap().len(), 3);
    // A login that does not help either is no reason for another one.
    servers.world().refuses = true;
    let error = call(&other).await.unwrap_err();
    assert!(error.message().contains("refuses a token that it was just given"), "{error}");
    assert_eq!(user.opened.lock().unwrap().len(), 4);
}

#[tokio::test]
async fn a_program_that_wants_other_scopes_asks_for_them_once() {
    let servers = Servers::new(World { grants: Some("read"), ..World::default() }).await;
    let user = User::default();
    let auth = login(&user);
    assert_eq!(call(&servers.connect(&auth).await.unwrap()).await.unwrap(), "token-1");
    let more = auth.scopes(["own"]);
    for _ in 0..2 {
        assert_eq!(call(&servers.connect(&more).await.unwrap()).await.unwrap(), "token-2");
    }
    let asked: Vec<_> = user.opened.lock().unwrap().iter().map(|url| parameter(url, "scope")).collect();
    assert_eq!(asked, [Some("read".to_owned()), Some("read own".to_owned())]);
}

#[tokio::test]
async fn a_refusal_that_names_no_scope_asks_nobody() {
    let servers = Servers::new(World { needs: Some("write"), nameless: true, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    let error = call(&client).await.unwrap_err();
    assert!(error.message().contains("its challenge names no scope to ask for"), "{error}");
    assert_eq!(user.opened.lock().unwrap().len(), 1);
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
