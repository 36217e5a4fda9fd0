//! The side that asks, and a peer that answers what it is told to.

use std::pin::Pin;
use std::task::{Context as Polling, Waker};

use super::*;
use crate::call::Answer;
use crate::call::tasks::requestor::Ask;
use crate::error::ErrorKind;
use crate::model::TaskMetadata;

/// A request that was sent.
struct Asked {
    method: String,
    params: Value,
    done: Option<Done>,
    progress: Option<Arc<dyn Fn(RawJson) + Send + Sync>>,
    cancelled: bool,
}

#[derive(Default)]
struct Peer(StdMutex<Vec<Asked>>);

struct Cancels(Arc<Peer>, usize);

impl Drop for Cancels {
    fn drop(&mut self) {
        let asked = &mut self.0.0.lock().expect("lock")[self.1];
        asked.cancelled = asked.done.take().is_some();
    }
}

impl Peer {
    fn ask(self: &Arc<Self>, method: &str, params: Option<RawJson>, options: &CallOptions) -> Answer {
        Answer::of(|done| {
            let mut all = self.0.lock().expect("lock");
            let params = params.map(|params| params.to().expect("JSON")).unwrap_or_default();
            let (method, progress) = (method.to_owned(), options.progress.clone());
            all.push(Asked { method, params, done: Some(done), progress, cancelled: false });
            Box::new(Cancels(self.clone(), all.len() - 1))
        })
    }
}

/// A request as a task, and its outcome.
struct It {
    wire: Arc<Wire>,
    peer: Arc<Peer>,
    guard: Option<Guard>,
    outcome: Arc<StdMutex<Option<Result<RawJson>>>>,
    told: Arc<StdMutex<usize>>,
}

impl It {
    fn new() -> Self {
        let (wire, peer) = (Wire::new(1, &Arc::default()), Arc::<Peer>::default());
        let own = peer.clone();
        let ask: Ask = Arc::new(move |method, params, options| own.ask(method, params, options));
        let requestor = Requestor::new(ask, wire.clone(), Revision::NEWEST_LEGACY);
        let outcome = Arc::<StdMutex<Option<Result<RawJson>>>>::default();
        let (set, told) = (outcome.clone(), Arc::<StdMutex<usize>>::default());
        let count = told.clone();
        let options = CallOptions::new().on_progress(move |_| *count.lock().expect("lock") += 1);
        let done = Box::new(move |outcome| *set.lock().expect("lock") = Some(outcome));
        let params = Some(RawJson::trusted(r#"{"name":"t"}"#));
        let guard = Some(requestor.start("tools/call", params, TaskMetadata::default(), options, done));
        let it = Self { wire, peer, guard, outcome, told };
        it.run();
        it
    }

    /// Polls what was spawned until nothing more happens by itself.
    fn run(&self) {
        let mut cx = Polling::from_waker(Waker::noop());
        for _ in 0..8 {
            let mut running = std::mem::take(&mut *self.wire.spawned.lock().expect("lock"));
            running.retain_mut(|future| Pin::new(future).poll(&mut cx).is_pending());
            self.wire.spawned.lock().expect("lock").append(&mut running);
        }
    }

    /// Answers the request that was sent last, which has to be this one.
    fn answer(&self, method: &str, outcome: Result<Value>) {
        let mut all = self.peer.0.lock().expect("lock");
        let last = all.last_mut().expect("a request");
        assert_eq!(last.method, method);
        let done = last.done.take().expect("unanswered");
        drop(all);
        done(outcome.map(|value| RawJson::from_value(&value)));
        self.run();
    }

    /// Answers the only request of this method that waits.
    fn answer_of(&self, method: &str, outcome: Result<Value>) {
        let mut all = self.peer.0.lock().expect("lock");
        let done = all.iter_mut().find(|asked| asked.method == method && asked.done.is_some());
        let done = done.and_then(|asked| asked.done.take()).expect("unanswered");
        drop(all);
        done(outcome.map(|value| RawJson::from_value(&value)));
        self.run();
    }

    fn create(&self) {
        self.answer("tools/call", Ok(json!({"task": task("working")})));
    }

    fn turn_to(&self, seconds: f64) {
        self.wire.hand.turn_to(seconds);
        self.run();
    }

    /// Returns the methods that were sent, and true for those that were cancelled.
    fn sent(&self) -> Vec<(String, bool)> {
        self.peer.0.lock().expect("lock").iter().map(|asked| (asked.method.clone(), asked.cancelled)).collect()
    }

    fn outcome(&self) -> Option<Result<Value, ErrorKind>> {
        let outcome = self.outcome.lock().expect("lock").take()?;
        Some(outcome.map(|result| result.to().expect("JSON")).map_err(|error| error.kind()))
    }
}

fn task(status: &str) -> Value {
    let now = stamp();
    json!({"taskId": "7", "status": status, "createdAt": now, "lastUpdatedAt": now, "ttl": null, "pollInterval": 1000})
}

fn transport() -> Error {
    Error::new(ErrorKind::Transport, "the stream broke off")
}

fn of(sent: &[(&str, bool)]) -> Vec<(String, bool)> {
    sent.iter().map(|(method, cancelled)| ((*method).to_owned(), *cancelled)).collect()
}

#[test]
fn a_task_that_is_made_when_nobody_wants_it_any_more_is_cancelled() {
    let mut it = It::new();
    let tell = it.peer.0.lock().expect("lock")[0].progress.clone().expect("progress is asked for");
    tell(RawJson::empty_object());
    assert_eq!(*it.told.lock().expect("lock"), 1);
    it.guard = None;
    it.run();
    tell(RawJson::empty_object());
    assert_eq!((it.sent(), *it.told.lock().expect("lock")), (of(&[("tools/call", false)]), 1));
    it.create();
    assert_eq!(it.sent(), of(&[("tools/call", false), ("tasks/cancel", false)]));
    assert_eq!(it.peer.0.lock().expect("lock")[1].params, json!({"taskId": "7"}));
    it.answer("tasks/cancel", Ok(task("cancelled")));
    assert!(it.wire.spawned.lock().expect("lock").is_empty() && it.outcome().is_none());
    // It does not wait for long.
    let mut it = It::new();
    it.guard = None;
    it.run();
    it.turn_to(9.0);
    assert_eq!(it.sent(), of(&[("tools/call", false)]));
    it.turn_to(11.0);
    assert_eq!(it.sent(), of(&[("tools/call", true)]));
    assert!(it.wire.spawned.lock().expect("lock").is_empty());
}

#[test]
fn a_task_that_is_over_is_not_cancelled() {
    for (error, kind) in [(Error::rpc(-31999, "no"), ErrorKind::Rpc), (Error::rpc(-32603, "no"), ErrorKind::Cancelled)]
    {
        let it = It::new();
        it.create();
        it.answer("tasks/result", Err(error));
        it.answer("tasks/get", Ok(task(if kind == ErrorKind::Rpc { "failed" } else { "cancelled" })));
        assert_eq!(it.outcome(), Some(Err(kind)));
        assert_eq!(it.sent().len(), 3, "{:?}", it.sent());
    }
    let it = It::new();
    it.create();
    it.answer("tasks/result", Err(Error::closed("it ended")));
    assert_eq!(it.outcome(), Some(Err(ErrorKind::Closed)));
    assert_eq!(it.sent().last(), of(&[("tasks/cancel", false)]).first());
}

#[test]
fn a_result_whose_answer_was_lost_is_asked_for_again() {
    let it = It::new();
    it.create();
    it.turn_to(10.0);
    it.answer("tasks/get", Ok(task("working")));
    it.turn_to(20.0);
    it.answer("tasks/get", Ok(task("completed")));
    assert_eq!(it.sent()[1], ("tasks/result".into(), false), "it may be on its way");
    it.turn_to(30.0);
    assert_eq!(it.sent()[1], ("tasks/result".into(), true));
    it.answer("tasks/result", Ok(json!({"content": []})));
    assert!(it.outcome().expect("answered").is_ok());
}

#[test]
fn a_stream_that_breaks_off_when_the_task_is_over_is_no_end() {
    let it = It::new();
    it.create();
    it.turn_to(10.0);
    it.answer("tasks/get", Ok(task("completed")));
    it.answer_of("tasks/result", Err(transport()));
    it.turn_to(11.0);
    it.answer("tasks/get", Ok(task("completed")));
    it.answer("tasks/result", Err(transport()));
    it.answer("tasks/result", Ok(json!({"content": []})));
    assert!(it.outcome().expect("answered").is_ok());
    // There is an end to that.
    let it = It::new();
    it.create();
    it.answer("tasks/result", Err(transport()));
    it.turn_to(1.0);
    it.answer("tasks/get", Ok(task("completed")));
    it.answer("tasks/result", Err(transport()));
    it.answer("tasks/result", Err(transport()));
    assert_eq!(it.outcome(), Some(Err(ErrorKind::Transport)));
}
