//! Tests of the store with a real server.

#![expect(clippy::unwrap_used, reason = "tests")]

mod crowd;
pub(super) mod running;
mod tasks;
#[cfg(feature = "auth")]
mod texts;

use std::time::Instant;

use super::nodes::{Number, Posted};
use super::sessions::{Edit, Look, SharedSession};
use super::*;
use crate::store::Change;
use crate::store::ring::Ring;
use running::Running;

const TTL: u64 = 600_000;
const SECRET: &str = "a secret for tests, longer than thirty-two bytes";

fn at(url: &str) -> Arc<Redis> {
    Arc::new(Redis::new(&StoreOptions::new(url), "a {server}").unwrap())
}

fn secrets((ring, now): &(Ring, u64)) -> Vec<String> {
    ring.secrets(*now).map(String::from).collect()
}

async fn ring(store: &Arc<Redis>) -> Result<(Ring, u64), Trouble> {
    store.ring(&Ring::default(), TTL).await
}

/// Does something with the store by hand.
pub(super) async fn by_hand<T: FromRedisValue>(url: &str, command: &[&str]) -> T {
    let address = Address::parse(url).unwrap();
    let mut pipe = Pipeline::new();
    pipe.cmd(command[0]);
    for part in &command[1..] {
        pipe.arg(*part);
    }
    let (answer,): (T,) = address.connect(Some(Duration::from_secs(5))).await.unwrap().ask(&pipe).await.unwrap();
    answer
}

/// Asks again until it succeeds.
async fn recovered(store: &Arc<Redis>) -> (Ring, u64) {
    let begun = Instant::now();
    loop {
        match ring(store).await {
            Ok(it) => return it,
            Err(trouble) => assert!(begun.elapsed() < Duration::from_secs(15), "{trouble:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Redis {
    /// Publishes these changes for the first time.
    async fn publish_new(self: &Arc<Self>, node: &str, changes: &[(Change, bool)]) -> Result<(), Trouble> {
        self.publish(node, self.next_batch(), changes).await
    }
}

/// Changes that their process does not hear of from the store.
fn of_others(changes: &[Change]) -> Vec<(Change, bool)> {
    changes.iter().map(|change| (change.clone(), false)).collect()
}

fn follow(store: &Arc<Redis>) -> Follower {
    store.follow("a".into(), Arc::default(), Arc::default())
}

async fn changes(follower: &mut Follower) -> Result<Vec<Change>, Trouble> {
    let of = |(_, news)| match news {
        Heard::Change(change) | Heard::Again(change, _) => Some(change),
        Heard::Missed => Some(Change::All),
        _ => None,
    };
    follower.next().await.map(|news| news.into_iter().filter_map(of).collect())
}

#[tokio::test]
async fn of_many_that_make_keys_at_once_all_have_the_same() {
    let running = Running::on_socket();
    let stores: Vec<_> = (0..8).map(|_| at(&running.url())).collect();
    let asked: Vec<_> = stores.iter().cloned().map(|store| tokio::spawn(async move { ring(&store).await })).collect();
    let mut all = Vec::new();
    for one in asked {
        all.push(secrets(&one.await.unwrap().unwrap()));
    }
    assert!(all[0].len() == 1 && all.iter().all(|one| *one == all[0]));
    let other = Arc::new(Redis::new(&StoreOptions::new(running.url()), "another").unwrap());
    assert_ne!(secrets(&ring(&other).await.unwrap()), all[0], "another server");
    // All that is there has an end.
    for key in by_hand::<Vec<String>>(&running.url(), &["KEYS", "*"]).await {
        assert!(by_hand::<i64>(&running.url(), &["PTTL", &key]).await > 0, "{key}");
    }
}

#[tokio::test]
async fn a_flushed_store_gets_its_keys_back_and_two_halves_become_one() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let (own, now) = ring(&a).await.unwrap();
    let _: () = by_hand(&running.url(), &["FLUSHALL"]).await;
    let (made, _) = ring(&b).await.unwrap();
    assert_ne!(made, own);
    let (both, _) = a.ring(&own, TTL).await.unwrap();
    assert_eq!(both.secrets(now).count(), 2);
    assert_eq!(b.ring(&made, TTL).await.unwrap().0, both);
}

#[tokio::test]
async fn sealed_keys_are_read_with_the_secret_alone() {
    let running = Running::on_socket();
    let with = |secret: Option<&str>| {
        let options = StoreOptions { secret: secret.map(String::from), ..StoreOptions::new(running.url()) };
        Arc::new(Redis::new(&options, "s").unwrap())
    };
    let first = secrets(&ring(&with(Some(SECRET))).await.unwrap());
    assert_eq!(secrets(&ring(&with(Some(SECRET))).await.unwrap()), first);
    let text: String = by_hand(&running.url(), &["GET", "tricorn:{s}:state-keys:1"]).await;
    assert!(!text.contains(&first[0]), "{text}");
    for (secret, why) in [(None, "is sealed"), (Some("another secret, longer than thirty-two bytes"), "another secret")]
    {
        let trouble = ring(&with(secret)).await.unwrap_err();
        assert!(trouble.ill == Ill::Garbled && trouble.why.contains(why), "{trouble:?}");
    }
    // It stays as it was.
    assert_eq!(secrets(&ring(&with(Some(SECRET))).await.unwrap()), first);
}

#[tokio::test]
async fn garbage_is_named_and_left_alone() {
    let running = Running::on_socket();
    let store = at(&running.url());
    let key = store.key("state-keys", 1);
    for text in ["", "x", "{}", "[]", "{\"keys\": 1}", "{\"sealed\": \"x\"}", &"x".repeat(100_000)] {
        let _: () = by_hand(&running.url(), &["SET", &key, text]).await;
        match ring(&store).await {
            Err(trouble) => assert_eq!(trouble.ill, Ill::Garbled, "{text:.20}"),
            Ok(_) => assert_eq!(text, "", "an empty one is none"),
        }
    }
    let _: () = by_hand(&running.url(), &["DEL", &key]).await;
    let _: () = by_hand(&running.url(), &["RPUSH", &key, "x"]).await;
    let trouble = ring(&store).await.unwrap_err();
    assert!(trouble.ill == Ill::Garbled && trouble.why.contains("WRONGTYPE"), "{trouble:?}");
    let _: () = by_hand(&running.url(), &["DEL", &key]).await;
    assert!(ring(&store).await.is_ok(), "the breaker did not open");
    // A server of something else.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.writable().await.unwrap();
            let _ = stream.try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let trouble = ring(&at(&format!("redis://ann:hush@{address}"))).await.unwrap_err();
    assert!(trouble.ill == Ill::Down && !trouble.why.contains("hush"), "{trouble:?}");
}

#[tokio::test]
async fn a_store_that_stands_still_costs_the_deadline_and_then_nothing() {
    let running = Running::on_socket();
    let store = at(&running.url());
    let before = secrets(&ring(&store).await.unwrap());
    running.signal("STOP");
    let begun = Instant::now();
    assert!(ring(&store).await.is_err());
    let first = begun.elapsed();
    assert!(first >= DEADLINE && first < DEADLINE * 4, "{first:?}");
    let begun = Instant::now();
    assert!(ring(&store).await.is_err());
    assert!(begun.elapsed() < DEADLINE / 5, "the breaker is open");
    running.signal("CONT");
    assert_eq!(secrets(&recovered(&store).await), before);
}

#[tokio::test]
async fn a_store_that_dies_comes_back_without_a_restart_of_ours() {
    let mut running = Running::on_port(&[]);
    let store = at(&running.url());
    let before = ring(&store).await.unwrap();
    running.kill();
    assert!(ring(&store).await.is_err());
    running.again();
    recovered(&store).await;
    let (after, now) = store.ring(&before.0, TTL).await.unwrap();
    assert!(after.secrets(now).any(|secret| secret == secrets(&before)[0]), "they are put back");
}

#[tokio::test]
async fn a_full_store_is_read_and_written_once_it_has_room() {
    let running = Running::on_socket();
    let store = at(&running.url());
    let before = secrets(&ring(&store).await.unwrap());
    let _: () = by_hand(&running.url(), &["CONFIG", "SET", "maxmemory", "1"]).await;
    let changes = [Change::Resource("a:/1".into())];
    let trouble = store.publish_new("n", &of_others(&changes)).await.unwrap_err();
    assert!(trouble.ill == Ill::Full && trouble.why.contains("maxmemory"), "{trouble:?}");
    assert_eq!(secrets(&ring(&store).await.unwrap()), before);
    let _: () = by_hand(&running.url(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    store.publish_new("n", &of_others(&changes)).await.unwrap();
}

#[tokio::test]
async fn a_login_is_used_and_a_wrong_one_is_named_but_not_shown() {
    let running =
        Running::on_port(&["--user", "ann", "on", ">hu@sh", "~tricorn:*", "+@all", "--user", "default", "off"]);
    let port = running.port();
    ring(&at(&format!("redis://ann:hu%40sh@127.0.0.1:{port}"))).await.unwrap();
    for login in ["", "ann:wr0ng@", "eve:hush@"] {
        let trouble = ring(&at(&format!("redis://{login}127.0.0.1:{port}"))).await.unwrap_err();
        assert!(trouble.why.contains("login") && !trouble.why.contains("wr0ng"), "{login}: {trouble:?}");
    }
    let options = StoreOptions::new(format!("redis://ann:hu%40sh@127.0.0.1:{port}")).prefix("other");
    let trouble = ring(&Arc::new(Redis::new(&options, "s").unwrap())).await.unwrap_err();
    assert!(trouble.why.contains("ACL"), "{trouble:?}");
}

#[tokio::test]
async fn a_cluster_and_a_sentinel_are_stores_too() {
    let node = Running::on_port(&["--cluster-enabled", "yes"]);
    let _: () = by_hand(&node.url(), &["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    let main = Running::on_port(&[]);
    let sentinel = Running::sentinel(main.port());
    for url in [
        format!("redis+cluster://127.0.0.1:{}", node.port()),
        format!("redis+sentinel://127.0.0.1:{},127.0.0.1:1/main", sentinel.port()),
    ] {
        let (a, b) = (at(&url), at(&url));
        let keys = secrets(&recovered(&a).await);
        assert_eq!(secrets(&recovered(&b).await), keys, "{url}");
        let mut follower = follow(&a);
        follower.begin().await.unwrap();
        let change = Change::Resource("a:/1".into());
        b.publish_new("b", &of_others(std::slice::from_ref(&change))).await.unwrap();
        assert_eq!(changes(&mut follower).await.unwrap(), [change], "{url}");
    }
}

#[tokio::test]
async fn changes_reach_the_others_once_each_and_in_order() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    b.publish_new("b", &of_others(&[Change::Resource("before".into())])).await.unwrap();
    let mut follower = follow(&a);
    follower.begin().await.unwrap();
    let all: Vec<_> =
        [Change::List("tool".into())].into_iter().chain((0..300).map(|n| Change::Resource(n.to_string()))).collect();
    a.publish_new("a", &of_others(&all)).await.unwrap();
    b.publish_new("b", &of_others(&all)).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < all.len() {
        heard.extend(changes(&mut follower).await.unwrap());
    }
    assert_eq!(heard, all);
    assert_eq!(by_hand::<usize>(&running.url(), &["XLEN", &a.key("changes", 1)]).await, 1 + 2 * all.len());
}

#[tokio::test]
async fn what_was_missed_is_read_later_or_told_as_anything() {
    let mut running = Running::on_port(&[]);
    let (a, b) = (at(&running.url()), at(&running.url()));
    let mut follower = follow(&a);
    let change = |n: usize| Change::Resource(n.to_string());
    follower.begin().await.unwrap();
    b.publish_new("b", &of_others(&[change(1)])).await.unwrap();
    assert_eq!(changes(&mut follower).await.unwrap(), [change(1)]);
    // Its connection breaks, and the log goes on.
    let _: usize = by_hand(&running.url(), &["CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal"]).await;
    let _ = b.publish_new("b", &of_others(&[change(2)])).await;
    while b.publish_new("b", &of_others(&[change(3)])).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut heard = Vec::new();
    while !heard.contains(&change(3)) {
        heard.extend(changes(&mut follower).await.unwrap_or_default());
    }
    assert!(!heard.contains(&Change::All), "{heard:?}");
    // The log goes on for longer than it is.
    for batch in 0..30 {
        let some: Vec<_> = (0..100).map(|n| change(batch * 100 + n)).collect();
        b.publish_new("b", &of_others(&some)).await.unwrap();
    }
    assert_eq!(changes(&mut follower).await.unwrap(), [Change::All]);
    b.publish_new("b", &of_others(&[change(4)])).await.unwrap();
    assert_eq!(changes(&mut follower).await.unwrap(), [change(4)]);
    // It is gone, with a change that comes after.
    running.kill();
    running.again();
    while b.publish_new("b", &of_others(&[change(5)])).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = changes(&mut follower).await.unwrap_or_default();
    }
    assert_eq!(heard, [Change::All]);
}

#[tokio::test]
async fn what_a_later_release_or_somebody_else_writes_is_skipped() {
    let running = Running::on_socket();
    let a = at(&running.url());
    let mut follower = follow(&a);
    follower.begin().await.unwrap();
    let key = a.key("changes", 1);
    for entry in [["n", "b", "news", "x"], ["x", "y", "n", "z"], ["n", "b", "resource", "seen"]] {
        let _: String = by_hand(&running.url(), &[&["XADD", &key, "*"], &entry[..]].concat()).await;
    }
    let mut heard = Vec::new();
    while heard.is_empty() {
        heard = changes(&mut follower).await.unwrap();
    }
    assert_eq!(heard, [Change::Resource("seen".into())]);
    let _: () = by_hand(&running.url(), &["SET", &key, "garbage"]).await;
    assert_eq!(changes(&mut follower).await.unwrap_err().ill, Ill::Garbled);
}

#[tokio::test]
async fn a_change_that_loops_is_heard_in_its_place() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let mut follower = follow(&a);
    follower.begin().await.unwrap();
    let change = |n: usize| Change::Resource(n.to_string());
    a.publish_new("a", &[(change(1), true), (change(2), false)]).await.unwrap();
    b.publish_new("b", &[(change(3), true)]).await.unwrap();
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(changes(&mut follower).await.unwrap());
    }
    assert_eq!(heard, [change(1), change(3)]);
    let (all, last) = a.changes_after(0).await.unwrap();
    assert_eq!(all.iter().map(|(_, change)| change.clone()).collect::<Vec<_>>(), [change(1), change(2), change(3)]);
    assert_eq!(a.changes_after(all[1].0).await.unwrap(), (vec![all[2].clone()], last));
    assert_eq!(a.changes_after(last).await.unwrap(), (vec![], last));
    assert_eq!(a.changes_after(last + 1).await.unwrap().0, [(last, Change::All)], "an entry that is not there");
}

#[tokio::test]
async fn changes_that_are_sent_again_because_no_answer_came_are_there_once() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let mut follower = follow(&a);
    let mut other = b.follow("b".into(), Arc::default(), Arc::default());
    follower.begin().await.unwrap();
    other.begin().await.unwrap();
    let change = |n: usize| Change::Resource(n.to_string());
    let (batch, late) = (a.next_batch(), [(change(1), true)]);
    // Clients here know it, since the store did not answer in time.
    assert_eq!((a.tells(batch, 0, 7), a.tells(batch, 0, 8)), (None, Some(7)));
    for _ in 0..2 {
        a.publish("a", batch, &late).await.unwrap();
    }
    a.publish_new("a", &[(change(2), true)]).await.unwrap();
    // The store does the first attempt after all that.
    a.publish("a", batch, &late).await.unwrap();
    let heard: Vec<_> = follower.next().await.unwrap().into_iter().map(|(_, news)| news).collect();
    assert_eq!(heard, [Heard::Again(change(1), 7), Heard::Change(change(2))]);
    assert_eq!(changes(&mut other).await.unwrap(), [change(1), change(2)]);
    assert_eq!(by_hand::<usize>(&running.url(), &["XLEN", &a.key("changes", 1)]).await, 2);
}

#[tokio::test]
async fn a_process_has_its_number_alone_and_reads_its_inbox_once() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let (of_a, of_b) = (Arc::new(Number::default()), Number::default());
    a.keep_number("a", &of_a).await.unwrap();
    b.keep_number("b", &of_b).await.unwrap();
    let number = of_a.get();
    assert!(number > 0 && number != of_b.get());
    a.keep_number("a", &of_a).await.unwrap();
    assert_eq!(of_a.get(), number);
    let mut follower = a.follow("a".into(), of_a.clone(), Arc::default());
    follower.begin().await.unwrap();
    b.post(number, "s", &"one".into()).await.unwrap();
    b.post(number, "s", &"two".into()).await.unwrap();
    let text = |text: &'static str| (0, Heard::FromClient { session: "s".into(), text: text.into() });
    let mut heard = follower.next().await.unwrap();
    while heard.len() < 2 {
        heard.extend(follower.next().await.unwrap());
    }
    assert_eq!(heard, [text("one"), text("two")]);
    b.post(number, "s", &"three".into()).await.unwrap();
    assert_eq!(follower.next().await.unwrap(), [text("three")]);
    let long = bytes::Bytes::from(vec![b'x'; 4 << 20]);
    let mut sent = 0;
    while b.post(number, "s", &long).await.unwrap() == Posted::Sent {
        sent += 1;
    }
    // Those that were read before may still be there.
    assert!((12..=16).contains(&sent), "long ones are fewer: {sent}");
    assert_eq!(b.post(number, "s", &"short".into()).await.unwrap(), Posted::Sent, "and leave room for others");
    let mut notes = 0;
    while b.note(number, "s", &"note".into()).await.unwrap() == Posted::Sent {
        notes += 1;
    }
    assert!((480..=512).contains(&notes), "half of the inbox is for others: {notes}");
    assert_eq!(b.post(number, "s", &"short".into()).await.unwrap(), Posted::Sent);
    let mut heard = Vec::new();
    while heard.len() < notes {
        let is_note = |(_, news): &(u64, Heard)| *news == Heard::Note { session: "s".into(), text: "note".into() };
        heard.extend(follower.next().await.unwrap().into_iter().filter(is_note));
    }
    // It is in use, and the store has lost it.
    let _: () = by_hand(&running.url(), &["FLUSHALL"]).await;
    b.post(number, "s", &"four".into()).await.unwrap();
    let mut heard = Vec::new();
    while !heard.contains(&text("four")) {
        heard.extend(follower.next().await.unwrap());
    }
    a.keep_number("a", &of_a).await.unwrap();
    assert_eq!(of_a.get(), number);
    // Messages for processes that are not there are bounded, whatever their numbers.
    let (mut sent, long) = (0, "x".repeat(1 << 20).into());
    for other in (1..64).filter(|other| *other != number) {
        sent += usize::from(b.post(other, "s", &long).await.unwrap() == Posted::Sent);
    }
    assert_eq!(sent, 7);
    a.leave_number("a", &of_a).await;
    assert_eq!((b.note(number, "s", &"five".into()).await.unwrap(), of_a.get()), (Posted::Nobody, 0));
}

#[tokio::test]
async fn a_session_is_what_its_client_told_until_it_ends() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let mut follower = follow(&a);
    follower.begin().await.unwrap();
    assert_eq!(a.session("s", 0, 60_000).await.unwrap(), Look::Unknown);
    let mut session = SharedSession { revision: "2025-06-18".into(), params: "{}".into(), ..SharedSession::default() };
    session.version = a.begin_session("a", "s", &session, 0, 60_000).await.unwrap();
    assert_eq!(b.session("s", session.version, 60_000).await.unwrap(), Look::Same);
    assert_eq!(b.session("s", 0, 60_000).await.unwrap(), Look::Session(Box::new(session.clone())));
    let mut told = SharedSession { level: Some("error".into()), ..session.clone() };
    told.subscriptions.insert("a:/é".into());
    told.version = b.edit_session("b", "s", &session.edits(&told), 60_000).await.unwrap();
    assert_eq!(a.session("s", session.version, 60_000).await.unwrap(), Look::Session(Box::new(told)));
    b.end_session("b", "s").await.unwrap();
    assert_eq!(a.session("s", 0, 60_000).await.unwrap(), Look::Ended);
    assert_eq!(b.edit_session("b", "s", &[Edit::Remove("l".into())], 60_000).await.unwrap(), 0);
    let mut heard = Vec::new();
    while heard.len() < 2 {
        heard.extend(follower.next().await.unwrap().into_iter().map(|(_, news)| news));
    }
    assert_eq!(heard, [Heard::Session("s".into()), Heard::Session("s".into())]);
    let ends: i64 = by_hand(&running.url(), &["PTTL", &a.key("session:s", 1)]).await;
    assert!((50_000..=60_000).contains(&ends), "{ends}");
    assert_eq!(a.begin_session("a", "s", &session, 0, 60_000).await.unwrap(), 0, "it does not begin anew");
}

#[tokio::test]
async fn a_message_goes_where_the_stream_is_or_waits_for_it() {
    let running = Running::on_socket();
    let (a, b) = (at(&running.url()), at(&running.url()));
    let number = Arc::new(Number::default());
    b.keep_number("b", &number).await.unwrap();
    let mut follower = b.follow("b".into(), number.clone(), Arc::default());
    follower.begin().await.unwrap();
    let session = SharedSession { revision: "2025-06-18".into(), params: "{}".into(), ..SharedSession::default() };
    let first = a.begin_session("a", "s", &session, 0, 60_000).await.unwrap();
    a.to_client("s", &"one".into(), 7, 60_000, (true, true)).await.unwrap();
    let (_, waiting, generation) = b.open_stream("b", "s", number.get(), 5).await.unwrap();
    assert_eq!(waiting, ["one"]);
    a.to_client("s", &"two".into(), 7, 60_000, (true, true)).await.unwrap();
    // Its own stream has ended, though the store does not know yet.
    b.to_client("s", &"three".into(), number.get(), 60_000, (true, true)).await.unwrap();
    let mut heard = follower.next().await.unwrap();
    while heard.is_empty() {
        heard = follower.next().await.unwrap();
    }
    assert_eq!(heard, [(0, Heard::ToClient { session: "s".into(), text: "two".into() })]);
    // The end of an older stream changes nothing.
    b.close_stream("b", "s", generation - 1, Some(1)).await.unwrap();
    let (at_place, waiting, _) = a.open_stream("a", "s", 7, 9).await.unwrap();
    assert_eq!((at_place, waiting), (Some(5), vec!["three".into()]));
    // Lost and put back: its version is not one of those before.
    let _: () = by_hand(&running.url(), &["FLUSHALL"]).await;
    assert!(a.begin_session("a", "s", &session, 0, 60_000).await.unwrap() > first);
    a.end_unused("a", "s", 30_000, 60_000).await.unwrap();
    assert_ne!(a.session("s", 0, 60_000).await.unwrap(), Look::Ended, "used a moment ago");
    a.end_unused("a", "s", 0, 60_000).await.unwrap();
    assert_eq!(a.session("s", 0, 60_000).await.unwrap(), Look::Ended);
}
