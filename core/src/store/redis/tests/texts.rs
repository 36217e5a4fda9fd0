//! Answers and logins of clients.

use super::*;
use crate::auth::{RedisStore, Secret, TokenKey, TokenStore};
use crate::client::{CacheStore, RedisCache};

const LONG: Duration = Duration::from_secs(20);

fn sealed(url: &str) -> StoreOptions {
    StoreOptions::new(url).secret(SECRET)
}

fn login(text: &str) -> Secret {
    Secret::from(text.to_owned())
}

async fn shown(store: &RedisStore, key: &TokenKey) -> Option<String> {
    store.load(key).await.unwrap().map(|login| login.expose().to_owned())
}

#[tokio::test]
async fn answers_are_those_of_all_and_go_by_themselves() {
    let running = Running::on_port(&[]);
    let (a, b) = (RedisCache::new(running.url()).unwrap(), RedisCache::new(running.url()).unwrap());
    let keys = ["tricorn:1:s:tools/list:a", "tricorn:1:s:mark:tools/list"].map(String::from).to_vec();
    assert_eq!(b.get(keys.clone()).await.unwrap(), [None, None]);
    a.set(keys[0].clone(), "{\"a\": 1.50}".into(), Duration::from_secs(60)).await.unwrap();
    assert_eq!(b.get(keys.clone()).await.unwrap(), [Some("{\"a\": 1.50}".to_owned()), None]);
    for key in by_hand::<Vec<String>>(&running.url(), &["KEYS", "*"]).await {
        let lives: i64 = by_hand(&running.url(), &["PTTL", &key]).await;
        assert!(lives > 50_000 && lives <= 60_000, "{key}: {lives}");
    }
    b.delete(keys[0].clone()).await.unwrap();
    b.delete(keys[0].clone()).await.unwrap();
    assert_eq!(a.get(keys).await.unwrap(), [None, None]);
}

#[tokio::test]
async fn sealed_answers_are_read_with_their_secret_alone() {
    let mut running = Running::on_port(&[]);
    let (own, bare) = (RedisCache::new(sealed(&running.url())).unwrap(), RedisCache::new(running.url()).unwrap());
    let other = RedisCache::new(StoreOptions::new(running.url()).secret(SECRET.to_uppercase())).unwrap();
    let keys = vec!["tricorn:1:s:tools/list:a".to_owned()];
    own.set(keys[0].clone(), "hush".into(), LONG).await.unwrap();
    assert_eq!(own.get(keys.clone()).await.unwrap(), [Some("hush".to_owned())]);
    assert_eq!(other.get(keys.clone()).await.unwrap(), [None]);
    assert!(bare.get(keys.clone()).await.unwrap()[0].as_ref().is_some_and(|text| !text.contains("hush")));
    // One under another key is none.
    let _: i64 = by_hand(
        &running.url(),
        &["COPY", "tricorn:{clients}:answer:tricorn:1:s:tools/list:a:1", "tricorn:{clients}:answer:b:1"],
    )
    .await;
    assert_eq!(own.get(vec!["b".into()]).await.unwrap(), [None]);
    running.kill();
    let error = own.get(keys).await.unwrap_err().to_string();
    assert!(error.contains("the store redis://127.0.0.1"), "{error}");
}

#[tokio::test]
async fn logins_are_sealed_and_apart_by_issuer_and_server() {
    let running = Running::on_port(&[]);
    let (a, b) = (RedisStore::new(sealed(&running.url())).unwrap(), RedisStore::new(sealed(&running.url())).unwrap());
    let keys = [("a", "s"), ("b", "s"), ("a", "t"), ("a", "s/")].map(|(i, s)| TokenKey::new(i, s));
    for key in &keys {
        let mut reserved = a.reserve(key, LONG).await.unwrap();
        reserved.make_room().await.unwrap();
        reserved.save(&login(&format!("hush {} {}", key.issuer, key.server))).await.unwrap();
    }
    for key in &keys {
        assert_eq!(shown(&b, key).await.unwrap(), format!("hush {} {}", key.issuer, key.server));
    }
    let found: Vec<_> = b.find("s").await.unwrap().into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, keys[..2]);
    let all: Vec<String> = by_hand(&running.url(), &["KEYS", "*logins*"]).await;
    assert_eq!(all.len(), 3);
    for key in all {
        let kept: Vec<String> = by_hand(&running.url(), &["HVALS", &key]).await;
        assert!(!kept.concat().contains("hush") && by_hand::<i64>(&running.url(), &["PTTL", &key]).await > 0);
    }
    b.reserve(&keys[0], LONG).await.unwrap().remove().await.unwrap();
    assert_eq!((shown(&a, &keys[0]).await, a.find("s").await.unwrap().len()), (None, 1));
    let other = RedisStore::new(StoreOptions::new(running.url()).secret(SECRET.to_uppercase())).unwrap();
    assert_eq!((shown(&other, &keys[1]).await, other.find("s").await.unwrap().len()), (None, 0));
    // One that was put in the place of another's, and one that is damaged, are none.
    let at = |key: &str| format!("tricorn:{{clients}}:logins:{key}:1");
    let all: Vec<String> = by_hand(&running.url(), &["KEYS", &at("*")]).await;
    let first: Vec<String> = by_hand(&running.url(), &["HVALS", &all[0]]).await;
    for key in &all {
        let field: Vec<String> = by_hand(&running.url(), &["HKEYS", key]).await;
        let text = if *key == all[0] { "x" } else { &first[0] };
        let _: i64 = by_hand(&running.url(), &["HSET", key, &field[0], text]).await;
    }
    for key in &keys {
        assert_eq!(shown(&a, key).await, None);
    }
    let error = RedisStore::new(running.url()).unwrap_err().to_string();
    assert!(error.contains("\"secret\": missing"), "{error}");
}

#[tokio::test]
async fn one_at_a_time_changes_a_login_in_all_processes() {
    let running = Running::on_port(&[]);
    let stores: Vec<_> = (0..4).map(|_| RedisStore::new(sealed(&running.url())).unwrap()).collect();
    let key = TokenKey::new("i", "s");
    let add = async |store: &RedisStore| {
        let mut reserved = store.reserve(&key, LONG).await.unwrap();
        let before = reserved.load().await.unwrap().map_or(0, |login| login.expose().parse::<u32>().unwrap());
        tokio::task::yield_now().await;
        reserved.save(&login(&(before + 1).to_string())).await.unwrap();
    };
    let add = &add;
    futures_util::future::join_all((0..20).map(|n| add(&stores[n % 4]))).await;
    assert_eq!(shown(&stores[0], &key).await.unwrap(), "20");
    // The right to ask a user is another.
    let held = stores[0].reserve(&key, LONG).await.unwrap();
    let asks = stores[1].reserve_login(&key, Duration::ZERO).await.unwrap().unwrap();
    let short = Duration::from_millis(50);
    for refused in [stores[1].reserve(&key, short).await, stores[0].reserve(&key, short).await] {
        let error = refused.err().unwrap();
        assert_eq!(error.kind(), crate::ErrorKind::Timeout, "{error}");
    }
    assert!(stores[2].reserve_login(&key, short).await.is_err());
    drop((held, asks));
    stores[1].reserve(&key, LONG).await.unwrap();
}

#[tokio::test]
async fn a_reservation_that_was_lost_saves_nothing() {
    let running = Running::on_port(&[]);
    let (a, b) = (RedisStore::new(sealed(&running.url())).unwrap(), RedisStore::new(sealed(&running.url())).unwrap());
    let key = TokenKey::new("i", "s");
    let mut late = a.reserve(&key, LONG).await.unwrap();
    // It stood still for longer than its turn lasts.
    let turns: Vec<String> = by_hand(&running.url(), &["KEYS", "*turn*"]).await;
    assert!(by_hand::<i64>(&running.url(), &["PTTL", &turns[0]]).await > 20_000);
    let _: i64 = by_hand(&running.url(), &["DEL", &turns[0]]).await;
    let mut next = b.reserve(&key, LONG).await.unwrap();
    next.save(&login("new")).await.unwrap();
    let error = late.save(&login("old")).await.unwrap_err().to_string();
    assert!(error.contains("another client may have taken over"), "{error}");
    assert!(late.remove().await.is_err() && late.make_room().await.is_err());
    // Its end is not that of the other one's turn.
    drop(late);
    assert!(a.reserve(&key, Duration::from_millis(100)).await.is_err());
    drop(next);
    assert_eq!(shown(&a, &key).await.unwrap(), "new");
    // Nor is it taken back once the other one is done.
    let mut late = a.reserve(&key, LONG).await.unwrap();
    let _: i64 = by_hand(&running.url(), &["DEL", &turns[0]]).await;
    assert!(late.make_room().await.is_err() && late.save(&login("old")).await.is_err());
}

#[tokio::test]
async fn a_login_is_saved_as_soon_as_the_store_is_back() {
    let mut running = Running::on_port(&["--appendonly", "yes"]);
    let store = RedisStore::new(sealed(&running.url())).unwrap();
    let key = TokenKey::new("i", "s");
    let mut reserved = store.reserve(&key, LONG).await.unwrap();
    running.signal("STOP");
    let saving = tokio::spawn(async move { reserved.save(&login("new")).await });
    tokio::time::sleep(Duration::from_millis(600)).await;
    running.signal("CONT");
    saving.await.unwrap().unwrap();
    assert_eq!(shown(&store, &key).await.unwrap(), "new");
    running.kill();
}

#[tokio::test]
async fn a_full_store_says_so_before_a_token_is_spent() {
    let running = Running::on_port(&[]);
    let store = RedisStore::new(sealed(&running.url())).unwrap();
    let mut reserved = store.reserve(&TokenKey::new("i", "s"), LONG).await.unwrap();
    let _: () = by_hand(&running.url(), &["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = reserved.make_room().await.unwrap_err().to_string();
    assert!(error.contains("it takes no more"), "{error}");
}
