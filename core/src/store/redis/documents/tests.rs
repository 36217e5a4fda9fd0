//! Stores of programs: the checks find what they have to, and what is built on documents is what it is in Redis.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::memory::{Failing, Fault, Memory};
use super::*;
use crate::store::StoreOptions;
use crate::store::redis::nodes::Number;
use crate::store::redis::{Address, Redis};

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
    ] {
        let error = check_document_store(Arc::new(Memory::with(fault))).await.unwrap_err();
        assert!(error.message().contains(said), "{fault:?}: {error}");
    }
    let error = check_document_store(Failing).await.unwrap_err();
    assert!(error.message().contains("get: it failed: the table is locked"), "{error}");
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
    assert_eq!(Address::of(&options).unwrap().to_string(), "(DocumentStore)");
    assert!(options.check("x").is_ok() && options.clone() == options);
    let error = options.check_of_client("x", "CacheStore").unwrap_err();
    assert_eq!(error.message(), "x: a DocumentStore is for a server: give a CacheStore");
}
