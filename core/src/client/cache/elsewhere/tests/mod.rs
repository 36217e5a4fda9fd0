use fixture::{Does, It, Now, Shelf, Warned};
use serde_json::{Value, json};

use super::super::{Cache, Look, Place, Searched};
use super::*;
use crate::call::{CacheMode, CallOptions};
use crate::error::{Error, ErrorKind};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::Revision;

mod fixture;

const TOOLS: &str = "tools/list";
const PROMPTS: &str = "prompts/list";
const READ: &str = "resources/read";

fn result(scope: &str, what: &str) -> Value {
    json!({"tools": [what], "ttlMs": 3_600_000, "cacheScope": scope, "resultType": "complete"})
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn clients_share_what_is_for_all_and_what_is_under_the_same_authorization() {
    let shelf = Arc::<Shelf>::default();
    let (ada, bob) = (It::of(&shelf, "ada"), It::of(&shelf, "bob"));
    let (private, public) = (result("private", "ada's"), result("public", "all"));
    ada.fill(TOOLS, json!({}), &private).await;
    ada.fill(PROMPTS, json!({}), &public).await;
    assert_eq!(It::of(&shelf, "ada").look(TOOLS, json!({})).await, Some(private));
    assert_eq!(bob.look(TOOLS, json!({})).await, None);
    assert_eq!(bob.look(PROMPTS, json!({})).await, Some(public.clone()));
    assert_eq!(It::with(CacheOptions::new(), &shelf, "other", "ada").look(PROMPTS, json!({})).await, None);
    // A public answer is private now: nobody else is given the public one any more.
    let Searched::Ask(again) = bob.look_as(PROMPTS, json!({}), CacheMode::Refresh).await else { panic!("refreshed") };
    let now_private = result("private", "bob's");
    again.settle(Ok(RawJson::from_value(&now_private))).await.expect("given");
    assert_eq!((ada.look(PROMPTS, json!({})).await, bob.look(PROMPTS, json!({})).await), (None, Some(now_private)));
    let usage = bob.cache.usage();
    assert_eq!((usage.hits, usage.misses, usage.entries, usage.bytes, usage.failures), (2, 1, 0, 0, 0));
    assert!(ada.warned().is_empty() && bob.warned().is_empty());
}

#[tokio::test]
async fn what_is_kept_is_plain_text() {
    let shelf = Arc::<Shelf>::default();
    let (ada, before) = (It::of(&shelf, "ada@example"), unix_time());
    ada.fill(TOOLS, json!({}), &json!({"tools": [], "ttlMs": 1500, "cacheScope": "public", "x": 1.0})).await;
    let kept = shelf.kept();
    let (key, (text, ttl)) = kept.iter().find(|(key, _)| !key.contains(":mark:")).expect("an answer");
    let read: Value = serde_json::from_str(text).expect("json");
    assert_eq!((read["key"].as_str(), ttl), (Some(key.as_str()), &Duration::from_secs(2)));
    let received = Duration::from_millis(read["received"].as_u64().expect("a time"));
    assert!(received + Duration::from_millis(1) > before && received <= unix_time());
    assert!(text.ends_with(r#","result":{"tools":[],"ttlMs":1500,"cacheScope":"public","x":1.0}}"#), "{text}");
    let marks: Vec<_> = kept.iter().filter(|(key, _)| key.contains(":mark:")).collect();
    assert!(matches!(&marks[..], [(_, (value, ttl))] if text::is_mark(value) && *ttl == MARK), "{marks:?}");
    assert!(!format!("{kept:?}").contains("ada@"));
    // With old answers wanted, it is kept for longer.
    let old = It::with(CacheOptions::new().stale_on_error(true), &shelf, "server", "ada");
    old.fill(PROMPTS, json!({}), &result("public", "p")).await;
    assert!(shelf.kept().values().any(|(_, ttl)| *ttl == Duration::from_secs(3600 + 24 * 3600)));
}

#[tokio::test]
async fn what_has_changed_is_dropped_at_once_and_soon_for_all() {
    let shelf = Arc::<Shelf>::default();
    let (ada, bob) = (It::of(&shelf, "ada"), It::of(&shelf, "bob"));
    for method in [TOOLS, PROMPTS] {
        ada.fill(method, json!({}), &result("public", "old")).await;
        ada.fill(method, json!({"cursor": "2"}), &result("public", "old")).await;
    }
    // The one who hears of it, and one who asked before that.
    let slow = bob.asks(TOOLS, json!({"cursor": "3"})).await;
    ada.cache.heard("notifications/tools/list_changed", None);
    assert_eq!(ada.look(TOOLS, json!({})).await, None);
    slow.settle(Ok(RawJson::from_value(&result("public", "old")))).await.expect("given");
    for cursor in [json!({}), json!({"cursor": "2"}), json!({"cursor": "3"})] {
        assert_eq!((ada.look(TOOLS, cursor.clone()).await, bob.look(TOOLS, cursor).await), (None, None));
    }
    assert!(ada.look(PROMPTS, json!({"cursor": "2"})).await.is_some(), "another list");
    bob.fill(TOOLS, json!({}), &result("public", "new")).await;
    assert_eq!(ada.look(TOOLS, json!({})).await, Some(result("public", "new")));
    // A cursor that the server does not know says the same.
    let wrong = Error::invalid_params("bad cursor");
    ada.asks(TOOLS, json!({"cursor": "9"})).await.settle(Err(wrong)).await.expect_err("given");
    assert_eq!(ada.look(TOOLS, json!({})).await, None);
}

#[tokio::test]
async fn a_resource_that_changes_leaves_others() {
    let shelf = Arc::<Shelf>::default();
    let (ada, bob) = (It::of(&shelf, "ada"), It::of(&shelf, "bob"));
    let uris = ["a://dir", "a://dir/1", "a://dir/1/x", "a://dir2", "b://"];
    for (changed, gone) in
        [(Some("a://dir/1"), &uris[..3]), (Some("a://dir2"), &uris[3..4]), (Some("a://none"), &[]), (None, &uris[..])]
    {
        for uri in uris {
            if ada.look(READ, json!({"uri": uri})).await.is_none() {
                ada.fill(READ, json!({"uri": uri}), &result("public", uri)).await;
            }
        }
        let params = changed.map(|uri| RawJson::from_value(&json!({"uri": uri})));
        ada.cache.heard("notifications/resources/updated", params.as_ref());
        ada.cache.part().await;
        for uri in uris {
            for it in [&ada, &bob] {
                let is_kept = it.look(READ, json!({"uri": uri})).await.is_some();
                assert_eq!(is_kept, !gone.contains(&uri), "{changed:?}: {uri}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_counts_although_the_store_will_not_have_it_and_is_told_when_it_will() {
    let shelf = Arc::<Shelf>::default();
    let (ada, bob) = (It::of(&shelf, "ada"), It::of(&shelf, "bob"));
    ada.fill(TOOLS, json!({}), &result("public", "old")).await;
    ada.fill(PROMPTS, json!({}), &result("public", "old")).await;
    shelf.set_to(Does::Reads);
    ada.cache.heard("notifications/tools/list_changed", None);
    for _ in 0..3 {
        assert_eq!(ada.look(TOOLS, json!({})).await, None);
    }
    assert!(ada.look(PROMPTS, json!({})).await.is_some(), "another list");
    assert!(bob.look(TOOLS, json!({})).await.is_some(), "nobody has told him");
    assert_eq!(ada.warned(), ["the cache's store: set: read only; what it does not give is asked for at the server"]);
    shelf.set_to(Does::Works);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bob.look(TOOLS, json!({})).await, None);
    // It is given up after a while, and tried again by whoever asks.
    shelf.set_to(Does::Fails);
    ada.cache.heard("notifications/prompts/list_changed", None);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = shelf.asked();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(shelf.asked(), asked, "there is no task any more");
    shelf.set_to(Does::Works);
    assert_eq!(ada.look(PROMPTS, json!({})).await, None);
    assert_eq!(bob.look(PROMPTS, json!({})).await, None);
}

#[tokio::test]
async fn more_changes_than_can_be_told_are_a_change_of_everything() {
    let shelf = Arc::<Shelf>::default();
    let (ada, bob) = (It::of(&shelf, "ada"), It::of(&shelf, "bob"));
    ada.fill(PROMPTS, json!({}), &result("public", "p")).await;
    shelf.set_to(Does::Fails);
    for n in 0..MAX_UNTOLD {
        let uri = RawJson::from_value(&json!({"uri": format!("a://{n}")}));
        ada.cache.heard("notifications/resources/updated", Some(&uri));
    }
    shelf.set_to(Does::Works);
    ada.cache.part().await;
    assert_eq!(bob.look(PROMPTS, json!({})).await, None);
}

#[tokio::test]
async fn a_store_that_fails_costs_a_question_at_the_server() {
    for does in [Does::Fails, Does::Panics, Does::PanicsLater, Does::GivesTooFew, Does::Reads] {
        let shelf = Arc::<Shelf>::default();
        let ada = It::of(&shelf, "ada");
        shelf.set_to(does);
        for _ in 0..2 {
            ada.fill(TOOLS, json!({}), &result("public", "a")).await;
        }
        assert_eq!((ada.warned().len(), ada.failures() >= 2, shelf.answers().len()), (1, true, 0));
        shelf.set_to(Does::Works);
        ada.fill(TOOLS, json!({}), &result("public", "a")).await;
        assert!(ada.look(TOOLS, json!({})).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_left_alone_for_a_while() {
    let shelf = Arc::<Shelf>::default();
    let ada = It::of(&shelf, "ada");
    shelf.set_to(Does::Hangs);
    let began = tokio::time::Instant::now();
    for _ in 0..5 {
        ada.fill(TOOLS, json!({}), &result("public", "a")).await;
    }
    ada.cache.heard("notifications/tools/list_changed", None);
    ada.fill(TOOLS, json!({}), &result("public", "a")).await;
    assert_eq!((began.elapsed(), shelf.asked(), ada.failures()), (PATIENCE, 1, 1));
    assert_eq!(
        ada.warned(),
        ["the cache's store: get: it has not answered within 2 s; what it does not give is asked for at the server"]
    );
    shelf.set_to(Does::Works);
    // By then it has been told of the change, too.
    tokio::time::sleep(Duration::from_secs(20)).await;
    ada.fill(TOOLS, json!({}), &result("public", "a")).await;
    assert!(ada.look(TOOLS, json!({})).await.is_some());
    // While it is being written to, the request does not wait for longer either.
    let sent = ada.asks(PROMPTS, json!({})).await;
    shelf.set_to(Does::Hangs);
    let began = tokio::time::Instant::now();
    sent.settle(Ok(RawJson::from_value(&result("public", "p")))).await.expect("given");
    assert_eq!(began.elapsed(), PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn whoever_closes_the_client_waits_for_no_store() {
    let shelf = Arc::<Shelf>::default();
    let ada = It::of(&shelf, "ada");
    shelf.set_to(Does::Hangs);
    let began = tokio::time::Instant::now();
    let closes = async {
        until(|| shelf.asked() > 0).await;
        ada.cache.give_up();
    };
    let answer = result("public", "a");
    tokio::join!(ada.fill(TOOLS, json!({}), &answer), closes);
    assert_eq!(began.elapsed(), Duration::ZERO);
    // Marks that are left to be told are given a moment, and no more.
    ada.cache.heard("notifications/tools/list_changed", None);
    ada.cache.part().await;
    assert!(began.elapsed() <= PATIENCE);
}

#[tokio::test]
async fn what_nobody_has_kept_is_not_given() {
    let shelf = Arc::<Shelf>::default();
    let options = CacheOptions::new().max_bytes(2000);
    let ada = It::with(options, &shelf, "server", "ada");
    ada.fill(TOOLS, json!({}), &result("public", "a")).await;
    ada.fill(PROMPTS, json!({}), &result("private", "p")).await;
    let [(_, prompts), (name, good)] = &shelf.answers()[..] else { panic!("two answers") };
    let with = |member: &str, value: Value| {
        let mut read: Value = serde_json::from_str(good).expect("json");
        read[member] = value;
        read.to_string()
    };
    let tomorrow = u64::try_from((unix_time() + STALE).as_millis()).expect("a time");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (text, why) in [
        (String::new(), "no answer that was kept"),
        ("null".into(), "no answer that was kept"),
        ("[1]".into(), "no answer that was kept"),
        (good[..good.len() - 1].to_owned(), "no answer that was kept"),
        (prompts.clone(), "belongs to another key"),
        (with("received", tomorrow.into()), "from the future"),
        (with("received", json!(-1)), "no answer that was kept"),
        (with("received", json!("now")), "no answer that was kept"),
        (with("result", json!("text")), "no answer that was kept"),
        (with("result", json!({"tools": []})), "no answer that was kept"),
        (with("result", result("private", "another's")), "no answer that was kept"),
        (good.replace("[\"a\"]", &deep), "nested too deeply"),
    ] {
        shelf.put(name, &text);
        let failures = ada.failures();
        assert_eq!(ada.look(TOOLS, json!({})).await, None, "{text}");
        assert_eq!(ada.failures(), failures + 1, "{text}");
        assert!(ada.warned().len() == 1);
        let fresh = It::of(&shelf, "ada");
        fresh.look(TOOLS, json!({})).await;
        assert!(fresh.warned()[0].contains(why), "{text}: {:?}", fresh.warned());
    }
    // Older than it keeps, however long the store has it, kept under other marks, and longer than others keep: nothing is
    // wrong with that.
    let failures = ada.failures();
    for text in [with("received", 0.into()), with("under", "other".into()), with("x", "x".repeat(2000).into())] {
        shelf.put(name, &text);
        assert_eq!(ada.look(TOOLS, json!({})).await, None, "{text}");
    }
    assert_eq!(ada.failures(), failures);
    // An answer that is too long is not kept either, nor is the one that was there before.
    shelf.put(name, good);
    assert!(ada.look(TOOLS, json!({})).await.is_some());
    for long in [result("public", &"x".repeat(2000)), json!({"tools": [], "ttlMs": 0, "cacheScope": "public"})] {
        let Searched::Ask(again) = ada.look_as(TOOLS, json!({}), CacheMode::Refresh).await else { panic!("refreshed") };
        again.settle(Ok(RawJson::from_value(&long))).await.expect("given");
        assert_eq!(ada.look(TOOLS, json!({})).await, None);
    }
}

#[tokio::test]
async fn for_what_never_keeps_nothing_is_written() {
    const READ: &str = "resources/read";
    let shelf = Arc::<Shelf>::default();
    let ada = It::of(&shelf, "ada");
    let unsaid = json!({"contents": [], "ttlMs": 0, "cacheScope": "public"});
    ada.fill(READ, json!({"uri": "a://0"}), &unsaid).await;
    let first = shelf.kept().len();
    for n in 1..20 {
        ada.fill(READ, json!({"uri": format!("a://{n}")}), &unsaid).await;
    }
    assert_eq!(shelf.kept().len(), first);
    // Nothing is known yet of another method.
    ada.fill(TOOLS, json!({}), &result("public", "a")).await;
    assert!(ada.look(TOOLS, json!({})).await.is_some());
    // It keeps after all: known with the next.
    let kept = json!({"contents": [], "ttlMs": 60_000, "cacheScope": "public"});
    for n in [30, 31] {
        ada.fill(READ, json!({"uri": format!("a://{n}")}), &kept).await;
    }
    assert!(ada.look(READ, json!({"uri": "a://31"})).await.is_some());
    ada.fill(READ, json!({"uri": "a://32"}), &unsaid).await;
    ada.fill(READ, json!({"uri": "a://33"}), &kept).await;
    assert!(ada.look(READ, json!({"uri": "a://33"})).await.is_some());
}

#[tokio::test]
async fn who_logs_in_sees_nothing_of_those_before_and_changes_nothing_for_others() {
    let shelf = Arc::<Shelf>::default();
    let alone = It::alone(&shelf);
    alone.fill(TOOLS, json!({}), &result("private", "mine")).await;
    alone.fill(PROMPTS, json!({}), &result("public", "all")).await;
    let before = shelf.kept();
    alone.cache.logged_in();
    assert_eq!(alone.look(TOOLS, json!({})).await, None);
    assert!(alone.look(PROMPTS, json!({})).await.is_some());
    assert_eq!(shelf.kept(), before);
    // Clients with a scope of their own have one login, and a change for one is for all.
    let (ada, bob) = (It::of(&shelf, "ours"), It::of(&shelf, "ours"));
    ada.fill(TOOLS, json!({}), &result("private", "ours")).await;
    assert!(bob.look(TOOLS, json!({})).await.is_some());
    bob.cache.logged_in();
    bob.cache.part().await;
    assert_eq!(ada.look(TOOLS, json!({})).await, None);
}

#[tokio::test]
async fn marks_that_are_gone_or_wrong_drop_what_was_kept_under_them() {
    let shelf = Arc::<Shelf>::default();
    let ada = It::of(&shelf, "ada");
    for wrong in [None, Some("x"), Some("")] {
        ada.fill(TOOLS, json!({}), &result("public", "a")).await;
        let mark = shelf.kept().into_keys().find(|key| key.contains(":mark:")).expect("a mark");
        let before = shelf.kept().remove(&mark).expect("a mark").0;
        match wrong {
            Some(text) => shelf.put(&mark, text),
            None => drop(shelf.kept.lock().expect("lock").remove(&mark)),
        }
        assert_eq!(ada.look(TOOLS, json!({})).await, None);
        assert_ne!(shelf.kept()[&mark].0, before, "never the same again");
    }
}

#[tokio::test]
async fn what_is_asked_for_at_the_same_time_is_all_kept() {
    let shelf = Arc::<Shelf>::default();
    let ada = It::of(&shelf, "ada");
    let uris = ["a://1", "a://2", "a://2", "b://3"];
    let [first, second, third, fourth] = uris.map(|uri| ada.asks(READ, json!({"uri": uri})));
    let (first, second, third, fourth) = tokio::join!(first, second, third, fourth);
    for sent in [first, second, third, fourth] {
        sent.settle(Ok(RawJson::from_value(&result("public", "a")))).await.expect("given");
    }
    for uri in uris {
        assert!(ada.look(READ, json!({"uri": uri})).await.is_some(), "{uri}");
    }
    // Whoever goes away while it makes a mark holds up nobody who waits for it.
    shelf.set_to(Does::HangsWriting);
    let mut gone = Box::pin(ada.asks(PROMPTS, json!({})));
    let goes = async {
        for _ in 0..10 {
            std::future::poll_fn(|cx| std::task::Poll::Ready(gone.as_mut().poll(cx).is_ready())).await;
            tokio::task::yield_now().await;
        }
        drop(gone);
    };
    tokio::join!(ada.asks(PROMPTS, json!({"cursor": "2"})), goes);
    assert_eq!(ada.failures(), 0);
}

#[tokio::test]
async fn old_answers_are_given_when_that_is_wanted_and_nothing_has_changed() {
    let lost = || Err(Error::new(ErrorKind::Transport, "the server is gone"));
    let shelf = Arc::<Shelf>::default();
    let ada = It::with(CacheOptions::new().stale_on_error(true), &shelf, "server", "ada");
    ada.fill(TOOLS, json!({}), &json!({"tools": [], "ttlMs": 1e-6, "cacheScope": "public"})).await;
    let given = ada.asks(TOOLS, json!({})).await.settle(lost()).await.expect("stale");
    let given: Value = given.to().expect("json");
    assert!(given["_meta"]["tricorn/stale"]["ageMs"].is_u64(), "{given}");
    assert_eq!(ada.cache.usage().stale, 1);
    let plain = It::of(&shelf, "ada");
    assert!(plain.asks(TOOLS, json!({})).await.settle(lost()).await.is_err());
    let sent = ada.asks(TOOLS, json!({})).await;
    ada.cache.heard("notifications/tools/list_changed", None);
    assert!(sent.settle(lost()).await.is_err(), "another one by now");
}

#[tokio::test]
async fn only_what_others_can_reach_is_kept_elsewhere() {
    let shelf = Arc::<Shelf>::default();
    let outside = Outside { events: Arc::<Warned>::default(), clock: Arc::new(Now), spawn: drop };
    let place = Place { target: "0".into(), scope: "".into(), has_address: false, renew: None };
    let cache = Cache::anywhere(&CacheOptions::new().store(shelf.clone()), place, &outside);
    let look = cache.look(|| Duration::ZERO, Revision::NEWEST, TOOLS, None, &CallOptions::new());
    assert!(matches!(look, Look::Ask(_)) && !cache.is_shared);
    assert_eq!(shelf.asked(), 0);
}
