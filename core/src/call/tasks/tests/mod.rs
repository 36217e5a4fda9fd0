mod requestor;
mod waiting;

use std::sync::Mutex as StdMutex;

use serde_json::Value;

use super::*;
use crate::call::{BoxFuture, CallOptions, Done, SessionSlot};
use crate::jsonrpc::Id;
use crate::protocol::revision::{Method, Revision};
use crate::protocol::{LogLevel, PeerFacts, RequestContext, Role, States, Transport};

/// Time that goes on when it is told to.
#[derive(Default)]
struct Hand {
    now: StdMutex<Duration>,
    due: StdMutex<Vec<Alarm>>,
}

struct Alarm {
    at: Duration,
    work: Box<dyn FnOnce() + Send>,
    /// Nobody cares any more when this has no other owner.
    wanted: Arc<()>,
}

struct Turned(Arc<Hand>);

impl Clock for Turned {
    fn now(&self) -> Duration {
        *self.0.now.lock().expect("lock")
    }

    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> Guard {
        let wanted = Arc::new(());
        let guard = Box::new(wanted.clone());
        self.0.due.lock().expect("lock").push(Alarm { at: self.now() + delay, work, wanted });
        guard
    }
}

impl Hand {
    fn alarms(&self) -> usize {
        let mut due = self.due.lock().expect("lock");
        due.retain(|alarm| Arc::strong_count(&alarm.wanted) > 1);
        due.len()
    }

    fn turn_to(&self, seconds: f64) {
        let now = Duration::from_secs_f64(seconds);
        *self.now.lock().expect("lock") = now;
        self.alarms();
        let mut due = self.due.lock().expect("lock");
        let (ring, rest) = std::mem::take(&mut *due).into_iter().partition(|alarm| alarm.at <= now);
        *due = rest;
        drop(due);
        let ring: Vec<Alarm> = ring;
        ring.into_iter().for_each(|alarm| (alarm.work)());
    }
}

/// A connection that writes down what it is told.
struct Wire {
    number: u64,
    hand: Arc<Hand>,
    heard: bool,
    /// Requests whose answers nobody reads.
    left: StdMutex<Vec<u64>>,
    slot: SessionSlot,
    said: StdMutex<Vec<(String, Value)>>,
    answers: StdMutex<Vec<(u64, Result<Value, Error>)>>,
    spawned: StdMutex<Vec<BoxFuture<()>>>,
}

impl Wire {
    fn new(number: u64, hand: &Arc<Hand>) -> Arc<Self> {
        let (left, said, answers, spawned) = Default::default();
        let (hand, slot) = (hand.clone(), SessionSlot::new());
        Arc::new(Self { number, hand, heard: true, left, slot, said, answers, spawned })
    }

    fn said(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.said.lock().expect("lock"))
    }

    fn answer(&self, call: u64) -> Option<Result<Value, Error>> {
        let mut answers = self.answers.lock().expect("lock");
        let place = answers.iter().position(|(known, _)| *known == call)?;
        Some(answers.remove(place).1)
    }
}

impl Link for Wire {
    fn started(&self, context: &Context) -> bool {
        !context.is_cancelled()
    }
    fn complete(self: Arc<Self>, call: CallId, outcome: Result<Payload>) {
        let outcome = outcome.map(|payload| match payload {
            Payload::Object(object) => object.to().expect("JSON"),
            other => panic!("{other:?}"),
        });
        self.answers.lock().expect("lock").push((call.0, outcome));
    }
    fn input(self: Arc<Self>, input: Input) {
        let Input::Notify { method, params, related } = input else { panic!("{input:?}") };
        let mut params: Value = params.to().expect("JSON");
        if let Some(related) = related {
            params["related"] = related.0.into();
        }
        self.said.lock().expect("lock").push((method.to_owned(), params));
    }
    fn spawn(&self, future: BoxFuture<()>) {
        self.spawned.lock().expect("lock").push(future);
    }
    fn block(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }
    fn log_level(&self) -> Option<LogLevel> {
        None
    }
    fn request(self: Arc<Self>, _: &str, _: Option<RawJson>, _: &CallOptions, _: Option<CallId>, _: Done) -> Guard {
        Box::new(())
    }
    fn awaited(&self) -> usize {
        0
    }
    fn role(&self) -> Role {
        Role::Server
    }
    fn subscription(&self, _: &str, _: bool) -> Result<bool> {
        Ok(true)
    }

    fn subscribe(&self, _: &str, _: bool) -> Result<()> {
        Ok(())
    }
    fn declares(&self, _: &str) -> bool {
        true
    }

    fn session(&self) -> &SessionSlot {
        &self.slot
    }
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(Turned(self.hand.clone()))
    }
    fn number(&self) -> u64 {
        self.number
    }
    fn is_heard(&self) -> bool {
        self.heard
    }
    fn is_read(&self, call: CallId) -> bool {
        !self.left.lock().expect("lock").contains(&call.0)
    }
    fn take_up(&self, _: CallId) {}
}

/// Keeps its calls, and counts those that are cancelled.
#[derive(Default)]
struct Slow {
    running: StdMutex<Vec<(Context, Reply)>>,
    cancelled: StdMutex<Vec<String>>,
}

impl Slow {
    fn next(&self) -> (Context, Reply) {
        self.running.lock().expect("lock").remove(0)
    }

    fn cancelled(&self) -> usize {
        self.cancelled.lock().expect("lock").len()
    }
}

impl Handler for Slow {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        self.running.lock().expect("lock").push((cx, reply));
    }
    fn cancel(&self, _: &Context, reason: Option<&str>) {
        self.cancelled.lock().expect("lock").push(reason.unwrap_or_default().to_owned());
    }
}

/// One engine with one connection, and the numbers of its calls.
struct Table {
    tasks: Arc<Tasks>,
    hand: Arc<Hand>,
    wire: Arc<Wire>,
    slow: Arc<Slow>,
    last: u64,
}

impl Table {
    fn new(options: TaskOptions) -> Self {
        let hand = Arc::<Hand>::default();
        let wire = Wire::new(1, &hand);
        Self { tasks: Tasks::new(options), hand, wire, slow: Arc::default(), last: 0 }
    }

    fn call(&mut self, method: &str, params: Value) -> Call {
        self.last += 1;
        let method = Method::find(method).expect("a method");
        let context = RequestContext {
            id: Id::Number(0),
            method: method.name,
            revision: Revision::NEWEST_LEGACY,
            peer: Arc::new(PeerFacts::default()),
            log_level: None,
            progress_token: Some(Id::Number(77)),
            name: None,
            meta: None,
            task_id: None,
            transport: Arc::new(Transport::new("test")),
            origin: None,
            states: States::default(),
            rounds: None,
        };
        let task = params.get("task").map(RawJson::from_value);
        let params = Some(RawJson::from_value(&params));
        Call { id: CallId(self.last), method, params, name: None, arguments: None, task, context }
    }

    /// Starts a task; its id, or why there is none.
    fn start(&mut self, task: Value) -> Result<String, Error> {
        let call = self.call("tools/call", json!({"task": task}));
        let link: Arc<dyn Link> = self.wire.clone();
        self.tasks.start(&link, call, self.slow.clone(), None, RawJson::empty_object());
        let answer = self.wire.answer(self.last).expect("an answer at once")?;
        assert_eq!(answer["task"]["status"], "working");
        Ok(answer["task"]["taskId"].as_str().expect("an id").to_owned())
    }

    /// Asks about a task; `None`: there is no answer yet.
    fn ask(&mut self, method: &str, params: Value) -> Option<Result<Value, Error>> {
        let call = self.call(method, params);
        let link: Arc<dyn Link> = self.wire.clone();
        self.tasks.serve(&link, call, 2);
        self.wire.answer(self.last)
    }

    fn status(&mut self, id: &str) -> Result<String, i64> {
        let answer = self.ask("tasks/get", json!({"taskId": id})).expect("an answer at once");
        let task = answer.map_err(|error| error.code().unwrap_or_default())?;
        Ok(task["status"].as_str().unwrap_or_default().to_owned())
    }

    fn result(&mut self, id: &str) -> Option<Result<Value, Error>> {
        self.ask("tasks/result", json!({"taskId": id}))
    }
}

fn seconds(ttl: f64) -> TaskOptions {
    TaskOptions::new().task_ttl(Duration::from_secs_f64(ttl))
}

#[test]
fn a_result_is_waited_for_and_kept_until_the_time_is_over() {
    let mut it = Table::new(seconds(10.0));
    let id = it.start(json!({})).expect("a task");
    assert_eq!(it.status(&id), Ok("working".into()));
    assert!(it.result(&id).is_none(), "waits");
    let waiting = it.last;
    let (_, reply) = it.slow.next();
    it.hand.turn_to(5.0);
    reply.result(RawJson::trusted(r#"{"content":[],"_meta":{"a":1}}"#));
    let expected = json!({"content": [], "_meta": {"a": 1, RELATED_TASK: {"taskId": id}}});
    assert_eq!(it.wire.answer(waiting).expect("answered").expect("a result"), expected);
    assert_eq!(it.result(&id).expect("at once").expect("a result"), expected);
    let said = it.wire.said();
    assert_eq!(
        (said.len(), &said[0].0, &said[0].1["status"]),
        (1, &"notifications/tasks/status".into(), &json!("completed"))
    );
    assert_eq!((said[0].1["related"].as_u64(), said[0].1.get("_meta")), (Some(waiting), None));
    it.hand.turn_to(9.9);
    assert_eq!(it.status(&id), Ok("completed".into()));
    it.hand.turn_to(10.0);
    assert_eq!((it.tasks.len(), it.hand.alarms()), (0, 0), "the timer has done it, nobody asked");
    assert_eq!(it.status(&id), Err(code::INVALID_PARAMS));
    assert_eq!(it.slow.cancelled(), 0);
}

#[test]
fn a_task_whose_time_is_over_is_stopped_and_whoever_waits_is_told() {
    let mut it = Table::new(seconds(10.0).max_task_ttl(Duration::from_secs(20)));
    let long = it.start(json!({"ttl": 99_000})).expect("a task");
    let short = it.start(json!({"ttl": 1_500.5})).expect("a task");
    assert_eq!(it.hand.alarms(), 1, "one timer, for the first");
    assert!(it.result(&short).is_none());
    let waiting = it.last;
    it.hand.turn_to(1.5);
    let error = it.wire.answer(waiting).expect("answered").expect_err("gone");
    assert_eq!(error.code(), Some(code::INVALID_PARAMS));
    assert_eq!((it.slow.cancelled(), it.status(&short), it.status(&long)), (1, Err(-32602), Ok("working".into())));
    // Its answers afterwards are nobody's.
    let (_, reply) = it.slow.next();
    it.slow.next().1.text("late");
    assert_eq!((it.status(&short), it.tasks.len()), (Err(-32602), 1));
    reply.text("done");
    assert_eq!(it.status(&long), Ok("completed".into()));
    it.hand.turn_to(20.0);
    assert_eq!((it.status(&long), it.hand.alarms()), (Err(-32602), 0), "no longer than max_task_ttl");
}

#[test]
fn cancelling_is_final_whatever_the_handler_says() {
    let mut it = Table::new(TaskOptions::new());
    let id = it.start(json!({})).expect("a task");
    let (cx, reply) = it.slow.next();
    assert!(it.result(&id).is_none());
    let waiting = it.last;
    let answer = it.ask("tasks/cancel", json!({"taskId": id})).expect("at once").expect("a task");
    assert_eq!(answer["status"], "cancelled");
    assert!(cx.is_cancelled() && it.slow.cancelled.lock().expect("lock")[0] == "tasks/cancel");
    assert!(it.wire.answer(waiting).expect("answered").is_err());
    reply.text("done after all");
    cx.progress(1.0, None, None);
    assert_eq!(it.status(&id), Ok("cancelled".into()));
    assert!(it.result(&id).expect("at once").expect_err("no result").message().contains("cancelled"));
    let again = it.ask("tasks/cancel", json!({"taskId": id})).expect("at once").expect_err("final");
    assert_eq!((again.code(), again.message().contains("cancelled")), (Some(-32602), true));
    // The other way round: what is finished cannot be cancelled.
    let id = it.start(json!({})).expect("a task");
    it.slow.next().1.text("done");
    assert!(it.ask("tasks/cancel", json!({"taskId": id})).expect("at once").is_err());
    assert_eq!(it.status(&id), Ok("completed".into()));
}

#[test]
fn failures_are_told_as_the_request_would_have_been_answered() {
    let mut it = Table::new(TaskOptions::new());
    let failed = |it: &mut Table, answer: &dyn Fn(Reply)| {
        let id = it.start(json!({})).expect("a task");
        answer(it.slow.next().1);
        let task = it.ask("tasks/get", json!({"taskId": id})).expect("at once").expect("a task");
        assert_eq!(task["status"], "failed", "{task}");
        (task["statusMessage"].as_str().unwrap_or_default().to_owned(), it.result(&id).expect("at once"))
    };
    let refused = Error::rpc(-32099, "no").with_data(RawJson::trusted("{\"a\":1}"));
    let (message, result) = failed(&mut it, &|reply| reply.error(refused.clone()));
    let error = result.expect_err("the same error");
    assert_eq!((error.code(), error.message(), message.as_str()), (Some(-32099), "no", "no"));
    assert_eq!(error.data().map(RawJson::get), Some("{\"a\":1}"));
    let text = RawJson::trusted(r#"{"content":[{"type":"text","text":"bad luck"}],"isError":true}"#);
    let (message, result) = failed(&mut it, &|reply| reply.result(text.clone()));
    assert_eq!((message.as_str(), &result.expect("a result")["isError"]), ("bad luck", &json!(true)));
    let (_, result) = failed(&mut it, &|reply| drop(reply));
    assert_eq!(result.expect_err("no answer").code(), Some(code::INTERNAL_ERROR));
}

#[test]
fn a_question_makes_it_input_required_and_its_answer_working() {
    let mut it = Table::new(TaskOptions::new());
    let id = it.start(json!({})).expect("a task");
    let (cx, reply) = it.slow.next();
    let first = cx.link().clone().waiting();
    let second = cx.link().clone().waiting();
    assert_eq!(it.status(&id), Ok("input_required".into()));
    drop(first);
    assert_eq!(it.status(&id), Ok("input_required".into()));
    drop(second);
    assert_eq!(it.status(&id), Ok("working".into()));
    let statuses: Vec<_> = it.wire.said().into_iter().map(|(_, params)| params["status"].clone()).collect();
    assert_eq!(statuses, ["input_required", "working"]);
    let late = cx.link().clone().waiting();
    reply.text("done");
    drop(late);
    assert_eq!(it.status(&id), Ok("completed".into()));
}

#[test]
fn progress_and_messages_carry_the_task_and_keep_to_the_pace() {
    let mut it = Table::new(TaskOptions::new());
    let id = it.start(json!({})).expect("a task");
    let (cx, reply) = it.slow.next();
    for n in 1..=200 {
        cx.progress(f64::from(n), None, Some("m"));
    }
    let said = it.wire.said();
    assert!(said.len() < 70, "{}", said.len());
    let expected = json!({"progressToken": 77, "progress": 1, "message": "m", "_meta": {RELATED_TASK: {"taskId": id}}});
    assert_eq!(said[0], ("notifications/progress".into(), expected));
    assert!(it.result(&id).is_none());
    it.hand.turn_to(1.0);
    let said = it.wire.said();
    assert_eq!((said.len(), &said[0].1["progress"]), (1, &json!(200)), "the last is not lost");
    assert_eq!(said[0].1["related"].as_u64(), Some(it.last), "it goes out with the result that is waited for");
    cx.set_status("half way");
    cx.set_status("half way");
    let said = it.wire.said();
    assert_eq!((said.len(), &said[0].1["statusMessage"]), (1, &json!("half way")));
    for n in 0..200 {
        cx.set_status(&format!("{n}"));
    }
    assert!(it.wire.said().len() < 70);
    reply.text("done");
    cx.progress(1000.0, None, None);
    let after = it.wire.said();
    assert_eq!((after.len(), &after[0].1["statusMessage"]), (1, &json!("199")), "{after:?}");
}

#[test]
fn when_nobody_would_hear_it_no_status_is_told() {
    let mut it = Table::new(TaskOptions::new());
    Arc::get_mut(&mut it.wire).expect("alone").heard = false;
    let id = it.start(json!({})).expect("a task");
    let (cx, reply) = it.slow.next();
    cx.set_status("alone");
    assert!(it.wire.said().is_empty());
    assert!(it.result(&id).is_none());
    reply.text("done");
    assert_eq!(it.wire.said().len(), 1);
}

#[test]
fn there_are_so_many_and_no_more() {
    let mut it = Table::new(TaskOptions::new().max_tasks(3).max_session_tasks(2).max_task_bytes(100));
    let (one, _two) = (it.start(json!({})).expect("one"), it.start(json!({})).expect("two"));
    let full = it.start(json!({})).expect_err("full");
    assert!(full.code() == Some(code::INTERNAL_ERROR) && full.message().contains("max_session_tasks"), "{full}");
    let other = Wire::new(2, &it.hand);
    let first = std::mem::replace(&mut it.wire, other);
    it.start(json!({})).expect("another session's");
    let full = it.start(json!({})).expect_err("full");
    assert!(full.message().contains("(max_tasks)"), "{full}");
    assert_eq!(it.status(&one), Err(-32602), "another session's is not seen");
    assert!(it.ask("tasks/cancel", json!({"taskId": one})).expect("at once").is_err());
    assert!(it.result(&one).expect("at once").is_err());
    it.wire = first;
    it.slow.next().1.text("x".repeat(200));
    let large = it.result(&one).expect("at once").expect_err("too large");
    assert!(large.message().contains("max_task_bytes"), "{large}");
    let three = it.start(json!({})).expect("the finished one makes room");
    assert_eq!((it.status(&one), it.status(&three)), (Err(-32602), Ok("working".into())));
    assert_eq!(it.slow.running.lock().expect("lock").len(), 3, "what was refused did not run");
}

#[test]
fn a_session_takes_its_tasks_along() {
    let mut it = Table::new(TaskOptions::new());
    let (id, _) = (it.start(json!({})).expect("a task"), it.start(json!({})).expect("a task"));
    it.slow.next().1.text("done");
    let other = Wire::new(2, &it.hand);
    let first = std::mem::replace(&mut it.wire, other);
    let kept = it.start(json!({})).expect("another session's");
    it.tasks.ended(&*first);
    assert_eq!((it.tasks.len(), it.slow.cancelled(), it.status(&kept)), (1, 1, Ok("working".into())));
    it.wire = first;
    assert_eq!(it.status(&id), Err(-32602));
    assert_eq!(it.tasks.lock().running.len(), 1);
}

#[test]
fn lists_come_in_pages() {
    let mut it = Table::new(TaskOptions::new());
    let ids: Vec<_> = (0..3).map(|_| it.start(json!({})).expect("a task")).collect();
    let page = |it: &mut Table, params: Value| it.ask("tasks/list", params).expect("at once");
    let first = page(&mut it, json!({})).expect("a page");
    let listed =
        |page: &Value| page["tasks"].as_array().expect("tasks").iter().map(|t| t["taskId"].clone()).collect::<Vec<_>>();
    assert_eq!(listed(&first), ids[..2]);
    let second = page(&mut it, json!({"cursor": first["nextCursor"]})).expect("a page");
    assert_eq!((listed(&second), second.get("nextCursor")), (vec![json!(ids[2])], None));
    for bad in [json!("t-1"), json!("k-ffff"), json!("k-0"), json!("x"), json!(7)] {
        let error = page(&mut it, json!({"cursor": bad})).expect_err("bad");
        assert_eq!(error.code(), Some(code::INVALID_PARAMS), "{bad}");
    }
}

#[test]
fn what_a_request_wants_is_checked_before_there_is_a_task() {
    let mut it = Table::new(TaskOptions::new());
    for bad in [json!(7), json!("x"), json!({"ttl": "1"}), json!({"ttl": -1}), json!([])] {
        let error = it.start(bad.clone()).expect_err("refused");
        assert_eq!(error.code(), Some(code::INVALID_PARAMS), "{bad}");
    }
    assert_eq!(it.tasks.len(), 0);
    for params in [json!({}), json!({"taskId": 7}), json!({"taskId": "nobody's"})] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let error = it.ask(method, params.clone()).expect("at once").expect_err("refused");
            assert_eq!(error.code(), Some(code::INVALID_PARAMS), "{method} {params}");
        }
    }
}
