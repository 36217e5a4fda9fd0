//! Tests of logins that are kept, and renewed.

use super::*;

#[tokio::test]
async fn many_calls_make_one_refresh() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    servers.world().tokens.clear();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { call(&client).await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap(), "token-2");
    }
    let refreshes = servers.world().forms.iter().filter(|form| form.contains("grant_type=refresh_token")).count();
    assert_eq!((refreshes, servers.count("/as1/token"), user.opened.lock().unwrap().len()), (1, 2, 1));
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends() {
    let servers = Servers::new(World { short: 1, ..World::default() }).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-2");
    let shown =
        servers.server.seen().iter().filter(|seen| seen.header("authorization") == Some("Bearer token-1")).count();
    assert_eq!((shown, servers.count("/as1/token"), user.opened.lock().unwrap().len()), (0, 2, 1));
}

#[tokio::test]
async fn clients_that_share_a_store_share_a_refresh() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let auth = login(&user);
    let (one, other) = (servers.connect(&auth).await.unwrap(), servers.connect(&auth).await.unwrap());
    servers.world().tokens.clear();
    let (first, second) = tokio::join!(call(&one), call(&other));
    assert_eq!((first.unwrap(), second.unwrap()), ("token-2".to_owned(), "token-2".to_owned()));
    let refreshes = servers.world().forms.iter().filter(|form| form.contains("grant_type=refresh_token")).count();
    assert_eq!((refreshes, user.opened.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn a_token_that_another_client_got_may_have_ended_meanwhile() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let auth = login(&user);
    let (one, other) = (servers.connect(&auth).await.unwrap(), servers.connect(&auth).await.unwrap());
    servers.world().tokens.clear();
    assert_eq!(call(&other).await.unwrap(), "token-2");
    servers.world().tokens.clear();
    assert_eq!(call(&one).await.unwrap(), "token-3");
    let shown =
        servers.server.seen().iter().filter(|seen| seen.header("authorization") == Some("Bearer token-2")).count();
    assert!(shown >= 2, "the other's token was tried: {shown}");
    assert_eq!(user.opened.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_registration_that_was_forgotten_is_made_anew() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    let forget = || {
        let mut world = servers.world();
        world.tokens.clear();
        world.failures = vec![("401 Unauthorized", json!({"error": "invalid_client"}))];
    };
    forget();
    assert_eq!(call(&client).await.unwrap(), "token-2");
    assert_eq!((servers.world().registered.len(), user.opened.lock().unwrap().len()), (2, 2));
    // A page of the authorization server may say so, too: then the next login is of a new client.
    servers.world().tokens.clear();
    servers.world().failures = vec![("400 Bad Request", json!({"error": "invalid_grant"}))];
    *user.lost.lock().unwrap() = 1;
    let error = call(&client).await.unwrap_err();
    assert!(error.message().contains("nobody came back"), "{error}");
    assert_eq!(servers.world().registered.len(), 2);
    assert_eq!(call(&client).await.unwrap(), "token-3");
    assert_eq!((servers.world().registered.len(), user.opened.lock().unwrap().len()), (3, 4));
}

/// A store in which nothing can be changed.
struct Stuck(ErrorKind);

impl TokenStore for Stuck {
    fn load(&self, _: &TokenKey) -> BoxFuture<Result<Option<Secret>, Error>> {
        Box::pin(async { Ok(None) })
    }

    fn find(&self, _: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn reserve(&self, _: &TokenKey, _: Duration) -> BoxFuture<Result<Box<dyn Reservation>, Error>> {
        let error = Error::new(self.0, "the disk is read-only");
        Box::pin(async { Err(error) })
    }
}

#[tokio::test]
async fn a_login_that_cannot_be_kept_is_one_all_the_same() {
    for (kind, works) in [(ErrorKind::Auth, true), (ErrorKind::Timeout, false), (ErrorKind::Misuse, false)] {
        let servers = Servers::new(World::default()).await;
        let user = User::default();
        let auth = login(&user).store(Stuck(kind));
        let connected = servers.connect(&auth).await;
        // Whoever holds the reservation may be using the refresh token now; a store that is wrong is the program's fault.
        assert_eq!(connected.is_ok(), works, "{connected:?}");
        let Ok(client) = connected else { continue };
        assert_eq!(call(&client).await.unwrap(), "token-1");
        // A refresh would spend what is known by nobody else: not without the store.
        servers.world().tokens.clear();
        let error = call(&client).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.message().contains("the disk is read-only")),
            (ErrorKind::Auth, true),
            "{error}"
        );
        assert_eq!(servers.count("/as1/token"), 1);
    }
}

/// A store in which nothing can be read for so many times.
#[derive(Clone, Default)]
struct Unread {
    times: Arc<Mutex<usize>>,
    saved: Arc<Mutex<usize>>,
}

impl TokenStore for Unread {
    fn load(&self, _: &TokenKey) -> BoxFuture<Result<Option<Secret>, Error>> {
        let mut times = self.times.lock().unwrap();
        let outcome = match *times {
            0 => Ok(None),
            _ => Err(Error::new(ErrorKind::Auth, "the keychain is locked")),
        };
        *times = times.saturating_sub(1);
        Box::pin(async { outcome })
    }

    fn find(&self, _: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>, Error>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn reserve(&self, _: &TokenKey, _: Duration) -> BoxFuture<Result<Box<dyn Reservation>, Error>> {
        let own: Box<dyn Reservation> = Box::new(self.clone());
        Box::pin(async { Ok(own) })
    }
}

impl Reservation for Unread {
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>, Error>> {
        TokenStore::load(self, &TokenKey::new("", ""))
    }

    fn save(&mut self, _: &Secret) -> BoxFuture<Result<(), Error>> {
        *self.saved.lock().unwrap() += 1;
        Box::pin(async { Ok(()) })
    }

    fn remove(&mut self) -> BoxFuture<Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_not_written_over() {
    // What is damaged is put aside by being read: the next time it is gone.
    for (times, saved) in [(usize::MAX, 0), (2, 1)] {
        let store = Unread { times: Arc::new(Mutex::new(times)), ..Unread::default() };
        let servers = Servers::new(World::default()).await;
        let client = servers.connect(&login(&User::default()).store(store.clone())).await.unwrap();
        assert_eq!(call(&client).await.unwrap(), "token-1");
        assert_eq!(*store.saved.lock().unwrap(), saved, "{times}");
    }
}

#[tokio::test]
async fn a_refresh_that_fails_loses_nothing() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let client = servers.connect(&login(&user)).await.unwrap();
    {
        let mut world = servers.world();
        world.tokens.clear();
        world.failures = vec![("503 Service Unavailable", json!({}))];
    }
    let error = call(&client).await.unwrap_err();
    assert!(error.message().contains("HTTP 503; the refresh token is kept"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "token-2");
    // Refused, it is not sent again: the user logs in anew, as the same client.
    {
        let mut world = servers.world();
        world.tokens.clear();
        world.failures = vec![("400 Bad Request", json!({"error": "invalid_grant"}))];
    }
    assert_eq!(call(&client).await.unwrap(), "token-3");
    let world = servers.world();
    let sent =
        |token: &str| world.forms.iter().filter(|form| form.contains(&format!("refresh_token={token}&"))).count();
    assert_eq!((sent("refresh-1"), sent("refresh-2"), world.registered.len()), (2, 1, 1));
    assert_eq!(user.opened.lock().unwrap().len(), 2);
}

/// Warnings that the user hears.
#[derive(Default)]
struct Warned(Mutex<Vec<String>>);

impl tricorn::Events for Warned {
    fn warning(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

#[tokio::test]
async fn what_is_thrown_away_is_said() {
    let servers = Servers::new(World::default()).await;
    let (user, store) = (User::default(), MemoryStore::new());
    let key = TokenKey::new(servers.issuer(), servers.server.url());
    // Of another version of the library, which has them in another way.
    let others: Vec<Value> = (0..64).map(|n| json!({"since": n, "user": format!("u{n}")})).collect();
    let mut reservation = store.reserve(&key, PATIENCE).await.unwrap();
    reservation.save(&json!({"logins": others}).to_string().into()).await.unwrap();
    drop(reservation);
    let (target, warned) = (Target::from_text(&servers.server.url()).unwrap(), Arc::<Warned>::default());
    let options = ClientOptions::new().auth(login(&user).store(store.clone()));
    let handlers = Handlers::new().events(warned.clone());
    let connecting = Client::connect_with(&target, &options, &handlers);
    let client = tokio::time::timeout(PATIENCE, connecting).await.expect("connected in time").unwrap();
    assert_eq!(call(&client).await.unwrap(), "token-1");
    let said = warned.0.lock().unwrap().join("\n");
    let expected = "no more than 64 logins at ";
    assert!(
        said.starts_with(expected) && said.ends_with("the oldest is thrown away (a client, user \"u0\")"),
        "{said}"
    );
    let kept = store.load(&key).await.unwrap().unwrap();
    let kept: Value = serde_json::from_str(kept.expose()).unwrap();
    assert_eq!(kept["logins"].as_array().unwrap()[..63], others[1..]);
}

/// Clients that begin at the same time, as several programs of one user do, ask the user once and register once.
#[tokio::test]
async fn clients_without_a_login_ask_their_user_once() {
    let servers = Servers::new(World::default()).await;
    let user = User::default();
    let auth = login(&user);
    let all = futures_util::future::join_all((0..4).map(|_| servers.connect(&auth))).await;
    for client in all {
        assert_eq!(call(&client.unwrap()).await.unwrap(), "token-1");
    }
    assert_eq!((user.opened.lock().unwrap().len(), servers.world().registered.len()), (1, 1));
}

/// Whoever has the turn gives up: the next one asks.
#[tokio::test]
async fn a_login_that_nobody_finishes_leaves_the_turn_to_another() {
    let servers = Servers::new(World::default()).await;
    let user = User { lost: Arc::new(Mutex::new(1)), ..User::default() };
    let auth = login(&user).login_timeout(Duration::from_secs(1));
    let all = futures_util::future::join_all((0..3).map(|_| servers.connect(&auth))).await;
    let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (2, 1));
    assert_eq!(user.opened.lock().unwrap().len(), 2);
}
