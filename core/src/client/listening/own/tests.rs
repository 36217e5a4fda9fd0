//! The stream of the handlers, and a server that answers when it is told to.

use std::task::{Context as Polling, Waker};

use serde_json::{Value, json};

use super::*;
use crate::call::{BoxFuture, Clock, Context, SessionSlot};
use crate::client::cache::Look;
use crate::client::listening::change::UPDATED;
use crate::client::{Cache, CacheOptions, Events, Place};
use crate::protocol::revision::Revision;
use crate::protocol::{CallId, Input, LogLevel, NotificationCause, Payload, Role};

/// A stream that was asked for.
struct Asked {
    told: Told,
    done: Option<Done>,
}

type Alarm = (Duration, Box<dyn FnOnce() + Send>);

#[derive(Default)]
struct Wire {
    asked: Mutex<Vec<Asked>>,
    spawned: Mutex<Vec<BoxFuture<()>>>,
    now: Mutex<Duration>,
    alarms: Mutex<Vec<Alarm>>,
    slot: SessionSlot,
}

struct Turned(Arc<Wire>);

impl Clock for Turned {
    fn now(&self) -> Duration {
        *self.0.now.lock().expect("lock")
    }

    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> Guard {
        self.0.alarms.lock().expect("lock").push((self.now() + delay, work));
        Box::new(())
    }
}

/// The way to it.
struct Way(Arc<Wire>);

impl Link for Way {
    fn started(&self, _: &Context) -> bool {
        true
    }
    fn complete(self: Arc<Self>, _: CallId, _: Result<Payload>) {}
    fn input(self: Arc<Self>, _: Input) {}
    fn spawn(&self, future: BoxFuture<()>) {
        self.0.spawned.lock().expect("lock").push(future);
    }
    fn block(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    fn log_level(&self) -> Option<LogLevel> {
        None
    }
    fn request(
        self: Arc<Self>,
        method: &str,
        _: Option<RawJson>,
        options: &CallOptions,
        _: Option<CallId>,
        done: Done,
    ) -> Guard {
        assert_eq!(method, "subscriptions/listen");
        let told = options.told.clone().expect("hears");
        self.0.asked.lock().expect("lock").push(Asked { told, done: Some(done) });
        Box::new(())
    }
    fn awaited(&self) -> usize {
        0
    }
    fn role(&self) -> Role {
        Role::Client
    }
    fn subscription(&self, _: &str, _: bool) -> Result<bool> {
        Ok(false)
    }
    fn subscribe(&self, _: &str, _: bool) -> Result<()> {
        Ok(())
    }
    fn declares(&self, _: &str) -> bool {
        true
    }
    fn session(&self) -> &SessionSlot {
        &self.0.slot
    }
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(Turned(self.0.clone()))
    }
    fn number(&self) -> u64 {
        0
    }
    fn is_heard(&self) -> bool {
        true
    }
    fn is_read(&self, _: CallId) -> bool {
        true
    }
    fn take_up(&self, _: CallId) {}
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let uri = params.and_then(|params| params.to::<Value>().ok()?["uri"].as_str().map(str::to_owned));
        self.0.lock().expect("lock").push(uri.unwrap_or_else(|| method.to_owned()));
    }

    fn warning(&self, message: &str) {
        self.0.lock().expect("lock").push(format!("warning: {message}"));
    }
}

type Outcome = Arc<Mutex<Option<Result<RawJson>>>>;

fn outcome() -> (Outcome, Done) {
    let outcome = Outcome::default();
    let set = outcome.clone();
    (outcome, Box::new(move |outcome| *set.lock().expect("lock") = Some(outcome)))
}

fn of(outcome: &Outcome) -> Option<Result<RawJson, ErrorKind>> {
    outcome.lock().expect("lock").take().map(|outcome| outcome.map_err(|error| error.kind()))
}

struct It {
    wire: Arc<Wire>,
    link: Arc<dyn Link>,
    hub: Arc<Hub>,
    heard: Arc<Heard>,
}

impl It {
    /// Makes one that hears of tools.
    fn new() -> Self {
        Self::with(&CacheOptions::off())
    }

    fn with(cache: &CacheOptions) -> Self {
        let (wire, heard) = (Arc::<Wire>::default(), Arc::<Heard>::default());
        let place = Place { target: "s".into(), scope: "".into(), has_address: true, renew: None };
        let cache = Cache::new(cache, place);
        let events: Arc<dyn Events> = heard.clone();
        let it = Self { link: Arc::new(Way(wire.clone())), hub: Hub::new(&events, &cache), wire, heard };
        it.wish(Wish::Lists(SubscriptionFilter::new().tools()));
        it
    }

    fn wish(&self, wish: Wish) -> Outcome {
        let (outcome, done) = outcome();
        change(&self.hub, &self.link, None, wish, done);
        self.run();
        outcome
    }

    /// A subscription that can be taken back.
    fn subscribe(&self, uri: &str, options: &CallOptions) -> (Outcome, Guard) {
        let (outcome, done) = outcome();
        let guard = ask(&self.hub, &self.link, None, options, Wish::of(uri.into(), true), done);
        self.run();
        (outcome, guard)
    }

    fn subscribed(&self) -> Vec<String> {
        self.hub.own.now().1.resource_subscriptions
    }

    /// Polls what was spawned until nothing more happens by itself.
    fn run(&self) {
        let mut cx = Polling::from_waker(Waker::noop());
        for _ in 0..8 {
            let mut running = std::mem::take(&mut *self.wire.spawned.lock().expect("lock"));
            running.retain_mut(|future| future.as_mut().poll(&mut cx).is_pending());
            self.wire.spawned.lock().expect("lock").append(&mut running);
        }
    }

    /// Time goes on for longer than any pause.
    fn wait(&self) {
        *self.wire.now.lock().expect("lock") += Duration::from_secs(31);
        let due = std::mem::take(&mut *self.wire.alarms.lock().expect("lock"));
        due.into_iter().for_each(|(_, work)| work());
        self.run();
    }

    fn asked(&self) -> usize {
        self.wire.asked.lock().expect("lock").len()
    }

    /// The server agrees to all that is wanted.
    fn acknowledge(&self) {
        self.acknowledge_with(&json!({"notifications": self.hub.own.now().1}));
    }

    fn acknowledge_with(&self, params: &Value) {
        let told = self.wire.asked.lock().expect("lock").last().expect("asked").told.clone();
        let params = RawJson::from_value(params);
        told("notifications/subscriptions/acknowledged", Some(params));
        self.run();
    }

    fn end(&self, error: Error) {
        let done = self.wire.asked.lock().expect("lock").last_mut().and_then(|asked| asked.done.take());
        done.expect("open")(Err(error));
        self.run();
    }

    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.0.lock().expect("lock"))
    }
}

fn lost() -> Error {
    Error::new(ErrorKind::Transport, "no way")
}

const TOOLS: &str = "notifications/tools/list_changed";

#[test]
fn a_way_that_is_long_in_coming_back_is_tried_for_as_long_as_there_is_a_connection() {
    let it = It::new();
    it.acknowledge();
    assert_eq!((it.asked(), it.heard()), (1, vec![]));
    for tries in 2..30 {
        it.end(lost());
        assert_eq!(it.asked(), tries - 1, "not at once");
        it.wait();
        assert_eq!(it.asked(), tries);
    }
    let said = it.heard();
    assert!(matches!(&said[..], [one] if one.contains("are not heard of: no way")), "once: {said:?}");
    it.acknowledge();
    assert_eq!(it.heard(), [TOOLS], "what may have been missed");
    // A stream that goes on is no reason to say it again.
    let done = it.wish(Wish::Subscribe("a://1".into()));
    it.acknowledge();
    assert!(done.lock().expect("lock").take().expect("done").is_ok());
    assert_eq!(it.heard(), [""; 0]);
    it.end(Error::closed("over"));
    it.wait();
    assert_eq!((it.asked(), it.heard()), (30, vec![]));
    assert!(it.wire.spawned.lock().expect("lock").is_empty());
}

#[test]
fn what_was_missed_is_said_by_whatever_stream_comes_next() {
    let it = It::new();
    it.acknowledge();
    it.end(Error::rpc(-32603, "the server goes"));
    it.wait();
    it.end(Error::rpc(-32601, "another one"));
    assert!(it.wire.spawned.lock().expect("lock").is_empty(), "given up");
    assert_eq!(it.heard().len(), 1);
    let refused = it.wish(Wish::Subscribe("a://1".into()));
    it.end(Error::rpc(-32601, "still"));
    assert_eq!(refused.lock().expect("lock").take().expect("done").expect_err("refused").code(), Some(-32601));
    it.heard();
    it.wish(Wish::Subscribe("a://2".into()));
    it.acknowledge();
    assert_eq!(it.heard(), [TOOLS, "a://2"]);
    // And once.
    it.wish(Wish::Subscribe("a://3".into()));
    it.acknowledge();
    assert_eq!(it.heard(), [""; 0]);
}

#[test]
fn an_acknowledgement_that_cannot_be_read_is_the_servers_fault() {
    let it = It::new();
    it.acknowledge_with(&json!({"notifications": {"toolsListChanged": "yes"}}));
    let said = it.heard();
    assert!(matches!(&said[..], [one] if one.contains("\"toolsListChanged\"")), "{said:?}");
    assert!(it.wire.spawned.lock().expect("lock").is_empty(), "given up");
    // One stream that is open goes on.
    let it = It::new();
    it.acknowledge();
    let refused = it.wish(Wish::Subscribe("a://1".into()));
    it.acknowledge_with(&json!({}));
    assert_eq!(of(&refused), Some(Err(ErrorKind::PeerMisbehaved)));
    assert_eq!((it.subscribed(), it.heard()), (vec![], vec![]));
}

#[test]
fn what_is_told_of_no_longer_is_said_once() {
    let it = It::new();
    it.acknowledge();
    let done = it.wish(Wish::Subscribe("a://1".into()));
    it.acknowledge();
    assert_eq!(of(&done), Some(Ok(RawJson::empty_object())));
    let without = json!({"notifications": {"toolsListChanged": true}});
    for (first, warnings) in [(true, 1), (false, 0)] {
        it.end(lost());
        it.wait();
        it.acknowledge_with(&without);
        let said = it.heard();
        let warned = said.iter().filter(|one| one.contains("no longer tells of \"a://1\"")).count();
        assert_eq!((warned, said.iter().any(|one| one == TOOLS)), (warnings, true), "{first}: {said:?}");
    }
    // It is still asked for, and may be told of again.
    assert_eq!(it.subscribed(), ["a://1"]);
    // Changes that are not wanted any more are not missed.
    it.end(lost());
    it.wait();
    it.acknowledge();
    it.wish(Wish::Unsubscribe("a://1".into()));
    it.heard();
    it.acknowledge();
    assert_eq!(it.heard(), [""; 0]);
}

#[test]
fn what_nobody_asked_to_be_told_of_drops_nothing_that_is_kept() {
    let it = It::with(&CacheOptions::default());
    let params = |uri: &str| RawJson::from_value(&json!({"uri": uri}));
    let is_kept = |uri: &str| {
        let options = CallOptions::new();
        let now = Duration::ZERO;
        match it.hub.cache.look(|| now, Revision::NEWEST, "resources/read", Some(&params(uri)), &options) {
            Look::Hit(_) => true,
            Look::Ask(asked) => {
                let answer = json!({"contents": [], "ttlMs": 9000, "cacheScope": "public"});
                asked.settle(now, Ok(RawJson::from_value(&answer))).expect("given");
                false
            }
            _ => panic!("it is in memory"),
        }
    };
    it.acknowledge();
    let done = it.wish(Wish::Subscribe("a://1".into()));
    it.acknowledge();
    assert!(of(&done).is_some_and(|outcome| outcome.is_ok()));
    for uri in ["a://1", "a://2"] {
        assert!(!is_kept(uri) && is_kept(uri));
        it.hub.notified(UPDATED, Some(&params(uri)), &NotificationCause::default());
    }
    assert_eq!((is_kept("a://1"), is_kept("a://2")), (false, true));
    // Lists are few, and of them it is heard whoever tells.
    it.hub.notified(TOOLS, None, &NotificationCause::default());
    assert!(is_kept("a://2"));
}

#[test]
fn an_acknowledgement_that_comes_late_is_no_beginning() {
    let it = It::new();
    it.hub.listens_late();
    it.acknowledge();
    assert_eq!(it.heard(), [TOOLS]);
    // A first try that failed is as late.
    let it = It::new();
    it.end(lost());
    it.wait();
    it.acknowledge();
    assert_eq!(it.heard(), [TOOLS]);
}

#[test]
fn a_subscription_that_nobody_waits_for_any_more_is_taken_back() {
    let (it, plain) = (It::new(), CallOptions::default());
    it.acknowledge();
    // One whose future was dropped.
    let (gone, guard) = it.subscribe("a://1", &plain);
    assert_eq!((it.asked(), it.subscribed()), (2, vec!["a://1".to_owned()]));
    drop(guard);
    it.run();
    it.acknowledge();
    assert_eq!((it.asked(), it.subscribed(), of(&gone)), (3, vec![], None), "without it");
    it.acknowledge();
    // One of two, of which the other still waits.
    let ((first, guard), (second, waits)) = (it.subscribe("a://2", &plain), it.subscribe("a://2", &plain));
    drop(guard);
    it.run();
    it.acknowledge();
    it.acknowledge();
    assert_eq!((of(&first), of(&second)), (None, Some(Ok(RawJson::empty_object()))));
    drop(waits);
    // One who has it already takes nothing away.
    let (_, guard) = it.subscribe("a://2", &plain);
    drop(guard);
    it.run();
    assert_eq!(it.subscribed(), ["a://2"]);
    // One with a time of its own.
    let (late, _guard) = it.subscribe("a://3", &CallOptions::new().timeout(Duration::from_secs(1)));
    it.wait();
    assert_eq!(of(&late), Some(Err(ErrorKind::Timeout)));
    assert_eq!(it.subscribed(), ["a://2"]);
}
