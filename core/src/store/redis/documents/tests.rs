//! Stores of programs: the checks find what they have to, and what is built on documents is what it is in Redis.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::memory::{Failing, Fault, Memory, OfItems};
use super::*;
use crate::store::StoreOptions;
use crate::store::redis::nodes::Number;
use crate::store::redis::sessions::{Edit, Look, SharedSession, session_key};
use crate::store::redis::{Ill, Redis};

#[tokio::test]
async fn the_checks_find_each_broken_rule_and_pass_one_that_breaks_none() {
    check_document_store(Arc::new(Memory::default())).await.unwrap();
    for (fault, said) in [
        (Fault::Blind, "a document was there, and expected not to be"),
        (Fault::HalfBlind, "a document that is expected and not written"),
        (Fault::Torn, "a part was written"),
        (Fault::Caseless, "was taken for another"),
        (Fault::Unordered, "in the order of the keys"),
        (Fault::OldTime, "by the time of the write before"),
        (Fault::Deaf, "wait: a document was changed"),
        (Fault::Racing, "of writers at the same time"),
        (Fault::Hoarding, "a document that was removed was returned"),
        (Fault::Short, "4 MiB were not returned"),
        (Fault::Narrow, "the key that ends in \"kkkkkkk2\" was taken for another"),
    ] {
        let error = check_document_store(Arc::new(Memory::with(fault))).await.unwrap_err();
        assert!(error.message().contains(said), "{fault:?}: {error}");
    }
    let error = check_document_store(Failing).await.unwrap_err();
    assert!(error.message().contains("get: it failed: the table is locked"), "{error}");
}

#[tokio::test]
async fn a_commit_that_others_hinder_breaks_no_rule() {
    check_document_store(Arc::new(Memory::with(Fault::Hesitant))).await.unwrap();
}

#[tokio::test]
async fn a_question_that_is_refused_fails_alone() {
    let own = StoreOptions::documents(OfItems(Arc::default()));
    let store = Arc::new(Redis::new(&own, "s").unwrap());
    let (key, idle) = (session_key("greedy"), 60_000);
    let told = SharedSession { revision: "r".into(), params: "{}".into(), ..SharedSession::default() };
    store.begin_session("a", &key, &told, 0, idle).await.unwrap();
    let mut refused = 0;
    for at in 0..100 {
        let subscribed = Edit::Set(format!("s:{at}{}", "u".repeat(6_000)), String::new());
        if let Err(trouble) = store.edit_session("a", &key, &[subscribed], idle).await {
            assert_eq!(trouble.ill, Ill::Garbled);
            assert_eq!(trouble.why, "one question failed: an item has 400,000 bytes at most");
            refused += 1;
        }
        assert!(store.pause().is_none(), "others are not turned away");
        store.begin_session("a", &session_key(&at.to_string()), &told, 0, idle).await.unwrap();
    }
    assert!(refused > 20, "{refused}");
    assert!(matches!(store.session(&key, 0, idle).await.unwrap(), Look::Session(_)), "what was there stays");
}

/// Refuses to tell the time, which no question can do without.
struct Timeless(Arc<Memory>);

impl DocumentStore for Timeless {
    fn get(&self, keys: Vec<String>) -> crate::store::documents::Boxed<crate::Result<Vec<Option<Document>>>> {
        self.0.get(keys)
    }

    fn commit(
        &self,
        expected: Vec<(String, Option<String>)>,
        writes: Vec<DocumentWrite>,
    ) -> crate::store::documents::Boxed<crate::Result<bool>> {
        self.0.commit(expected, writes)
    }

    fn now(&self) -> Option<crate::store::documents::Boxed<crate::Result<SystemTime>>> {
        Some(Box::pin(async { Err(Error::misuse("never")) }))
    }
}

#[tokio::test]
async fn get_and_commit_alone_refuse_a_question() {
    let store = Arc::new(Redis::new(&StoreOptions::documents(Timeless(Arc::default())), "s").unwrap());
    assert_eq!(store.keep_number("a", &Number::default()).await.unwrap_err().ill, Ill::Down);
}

#[test]
fn keys_are_no_longer_than_promised() {
    let longest = StoreOptions::documents(Failing).prefix("p".repeat(64));
    longest.check("x").unwrap();
    let error = longest.clone().prefix("p".repeat(65)).check("x").unwrap_err();
    assert_eq!(error.message(), "x: \"prefix\": expected 1 to 64 letters, digits or -_.:");
    let key = |name: &str| Redis::new(&longest, name).unwrap().session_of(&session_key("s"));
    let named = |name: &str| key(name)[64..].split_once('}').unwrap().0.to_owned();
    assert_eq!(named(&"x".repeat(128)), format!(":{{{}", "x".repeat(128)), "a short one is as it is");
    assert_eq!(named("a b"), ":{a%20b");
    let many: Vec<_> =
        ["x", "ü", "日", " a", "-日"].into_iter().flat_map(|it| [129, 600].map(|n| it.repeat(n))).collect();
    for name in &many {
        let (key, named) = (key(name), named(name));
        assert!(key.len() <= 300 && key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
        let (beginning, hash) = named[2..].split_once('~').unwrap();
        assert!((93..=95).contains(&beginning.len()) && hash.len() == 32, "{named}");
        let escapes: Vec<_> = beginning.split('%').skip(1).collect();
        assert!(escapes.iter().all(|it| it.len() >= 2), "{named}");
    }
    let different: BTreeSet<_> = many.iter().map(|name| key(name)).collect();
    assert_eq!(different.len(), many.len());
}

#[tokio::test]
async fn a_store_that_fails_is_named_with_its_reason() {
    let store = Arc::new(Redis::new(&StoreOptions::documents(Failing), "s").unwrap());
    let trouble = store.keep_number("a", &Number::default()).await.unwrap_err();
    let said = store.said(&trouble);
    assert!(
        said.starts_with("the store (DocumentStore): ") && said.ends_with("it failed: the table is locked"),
        "{said}"
    );
    assert!(store.pause().is_some(), "it is left alone for a while");
}

#[tokio::test]
async fn many_that_write_the_same_get_through() {
    let memory = Arc::new(Memory::default());
    let process = || Arc::new(Redis::new(&StoreOptions::documents(memory.clone()), "s").unwrap());
    let writers = (0..16).map(|_| {
        let store = process();
        tokio::spawn(async move {
            for _ in 0..20 {
                assert!(store.rate("l", "c", Duration::from_secs(1000), 320).await.unwrap().is_none());
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    assert!(process().rate("l", "c", Duration::from_secs(1000), 320).await.unwrap().is_some(), "each was counted");
}

#[test]
fn the_place_shows_nothing_of_the_store() {
    let options = StoreOptions::documents(Failing);
    assert_eq!(options.address().unwrap().to_string(), "(DocumentStore)");
    assert!(options.check("x").is_ok() && options.clone() == options);
    let error = options.check_of_client("x", "CacheStore").unwrap_err();
    assert_eq!(error.message(), "x: a DocumentStore is for a server: give a CacheStore");
}
