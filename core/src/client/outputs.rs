//! Check of tools' answers against the schemas that they were listed with (`outputSchema`).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
#[cfg(feature = "runtime")]
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Client;
#[cfg(feature = "runtime")]
use super::checks;
#[cfg(feature = "runtime")]
use crate::call::{Answer, Guard};
use crate::call::{CallOptions, Clock, Done};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::schema::{Effort, Schema, Wrong};
use crate::protocol::revision::object;

/// The most tools whose schemas are remembered, and the bytes of these together. Answers of further ones are not
/// checked.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;
/// The most schemas that are kept ready for a check.
const MAX_READY: usize = 128;
/// The most tasks that are remembered with the tools that were called.
const MAX_TASKS: usize = 1000;

/// The schemas of what a server's tools answer, as they were listed last.
#[derive(Default)]
pub(super) struct Outputs(Mutex<State>);

#[derive(Default)]
struct State {
    /// The text of each tool's schema.
    schemas: HashMap<String, Box<str>>,
    bytes: usize,
    /// True if reading one of them may take long.
    any_long: bool,
    /// The schema that was used longest ago is first.
    ready: VecDeque<(String, Arc<Ready>)>,
    /// Ids, with the tools that were called.
    tasks: VecDeque<(String, String)>,
    /// Number of times that everything was forgotten.
    age: u64,
}

/// A tool's schema, read once. One that nothing can be checked against says why.
struct Ready(Result<(Value, Schema)>);

/// Reason why a check has no verdict yet.
#[derive(Debug)]
enum Unsure {
    /// It has to be done where it may take long.
    Long,
    /// The result is none for whoever asked.
    Bad(Error),
}

impl Ready {
    fn new(text: &str) -> Self {
        Self(Schema::foreign("outputSchema", text))
    }

    /// Returns the reason for not calling the tool, if there is one.
    fn usable(&self, tool: &str) -> Result<()> {
        let Err(error) = &self.0 else { return Ok(()) };
        let why = shortened(error.message(), 300);
        let message = format!(
            "tool {:?} was not called: {why} (option {:?})",
            shortened(tool, 100),
            crate::idiom::named("validate_output")
        );
        Err(Error::new(ErrorKind::PeerMisbehaved, message).received())
    }

    fn check(&self, tool: &str, result: &RawJson, effort: &Effort) -> std::result::Result<(), Unsure> {
        let Ok((source, schema)) = &self.0 else { return Ok(()) };
        let members = object::members(result.get());
        let of = |name: &str| members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.get());
        // A failure, and a result of a type that nobody here knows, was promised nothing.
        if of("isError") == Some("true") || of("resultType").is_some_and(|kind| kind != "\"complete\"") {
            return Ok(());
        }
        let wrong = |why: &str| {
            let message = format!("result of tools/call: tool {:?}: {why}", shortened(tool, 100));
            Err(Unsure::Bad(Error::new(ErrorKind::PeerMisbehaved, message).received()))
        };
        let Some(value) = of("structuredContent") else {
            return wrong("structuredContent is missing, and the tool has an outputSchema");
        };
        match schema.check_foreign(source, "result", value, effort) {
            // Nobody hears of what was left.
            Ok(()) | Err(Wrong::Left) => Ok(()),
            Err(Wrong::Long) => Err(Unsure::Long),
            Err(Wrong::TooMuch(why)) => wrong(&format!("its outputSchema: {why}")),
            Err(Wrong::Unfit(why, at)) if at.is_empty() => {
                wrong(&format!("structuredContent does not fit its outputSchema: {why}"))
            }
            Err(Wrong::Unfit(why, at)) => {
                wrong(&format!("structuredContent does not fit its outputSchema at {:?}: {why}", shortened(&at, 200)))
            }
        }
    }

    /// As [`check`](Self::check), for as long as it takes.
    fn check_whole(&self, tool: &str, result: &RawJson, stop: Arc<AtomicBool>) -> Result<()> {
        match self.check(tool, result, &Effort::Full(stop)) {
            Err(Unsure::Bad(error)) => Err(error),
            _ => Ok(()),
        }
    }
}

impl State {
    fn remove(&mut self, tool: &str) {
        if let Some(text) = self.schemas.remove(tool) {
            self.bytes -= text.len();
            self.ready.retain(|(name, _)| name != tool);
        }
    }

    fn insert(&mut self, tool: &str, text: &str) {
        if self.schemas.get(tool).is_some_and(|known| &**known == text) {
            return;
        }
        self.remove(tool);
        if self.schemas.len() < MAX_TOOLS && self.bytes + text.len() <= MAX_BYTES {
            self.bytes += text.len();
            self.any_long |= !Schema::is_read_quickly(text);
            self.schemas.insert(tool.to_owned(), text.into());
        }
    }
}

impl Outputs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn age(&self) -> u64 {
        self.state().age
    }

    /// Returns true if reading any tool's schema may take long.
    #[cfg(feature = "runtime")]
    fn any_long(&self) -> bool {
        self.state().any_long
    }

    /// The tools are others now.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        let (tasks, age) = (std::mem::take(&mut state.tasks), state.age + 1);
        *state = State { tasks, age, ..State::default() };
    }

    /// A page of tools, asked for at that age.
    fn learn(&self, result: &RawJson, age: u64) {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow, default, rename = "outputSchema")]
            output: Option<&'a RawValue>,
        }
        let mut state = self.state();
        let has_schema = memchr::memmem::find(result.bytes(), b"\"outputSchema\"").is_some();
        if state.age != age || (state.schemas.is_empty() && !has_schema) {
            return;
        }
        let Ok(page) = result.borrow::<Page<'_>>() else { return };
        for tool in page.tools {
            let Ok(head) = serde_json::from_str::<Head<'_>>(tool.get()) else { continue };
            match head.output {
                Some(schema) => state.insert(&head.name, schema.get()),
                None => state.remove(&head.name),
            }
        }
    }

    /// Returns true if a tool has a schema that was not read yet, and reading it may take long.
    #[cfg(feature = "runtime")]
    fn is_long(&self, tool: &str) -> bool {
        let state = self.state();
        !state.ready.iter().any(|(name, _)| name == tool)
            && state.schemas.get(tool).is_some_and(|text| !Schema::is_read_quickly(text))
    }

    /// Returns the schema that this tool's answers are checked against; `None`: that is not known.
    fn ready(&self, tool: &str) -> Option<Arc<Ready>> {
        let mut state = self.state();
        if let Some(at) = state.ready.iter().position(|(name, _)| name == tool) {
            let found = state.ready.remove(at)?;
            let ready = found.1.clone();
            state.ready.push_back(found);
            return Some(ready);
        }
        let (text, age) = (state.schemas.get(tool)?.clone(), state.age);
        drop(state);
        let ready = Arc::new(Ready::new(&text));
        let mut state = self.state();
        // Nobody may have listed the tools anew meanwhile.
        if state.age == age && state.schemas.get(tool) == Some(&text) {
            if state.ready.len() >= MAX_READY {
                state.ready.pop_front();
            }
            state.ready.push_back((tool.to_owned(), ready.clone()));
        }
        Some(ready)
    }

    /// A call has become a task.
    fn became(&self, id: &str, tool: &str) {
        let mut state = self.state();
        if state.tasks.len() >= MAX_TASKS {
            state.tasks.pop_front();
        }
        state.tasks.push_back((id.to_owned(), tool.to_owned()));
    }

    fn called(&self, id: &str) -> Option<String> {
        self.state().tasks.iter().rev().find(|(own, _)| own == id).map(|(_, tool)| tool.clone())
    }
}

/// Parameters that name the tool or the task of an answer.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default, rename = "taskId")]
    task_id: Cow<'a, str>,
    #[serde(default)]
    task: Option<IgnoredAny>,
}

/// The id of the task that a call has become.
fn task_id(result: &RawJson) -> Option<String> {
    #[derive(Deserialize)]
    struct Created {
        task: Task,
    }
    #[derive(Deserialize)]
    struct Task {
        #[serde(rename = "taskId")]
        id: String,
    }
    result.to::<Created>().ok().map(|created| created.task.id)
}

/// A result of a revision in which structured content is an object: `null` stands for none.
fn without_null(result: RawJson) -> RawJson {
    const NAME: &str = "structuredContent";
    if memchr::memmem::find(result.bytes(), NAME.as_bytes()).is_none() {
        return result;
    }
    let members = object::members(result.get());
    if !members.iter().any(|(key, value)| key == NAME && value.get() == "null") {
        return result;
    }
    let mut out = String::from("{");
    for (key, value) in &members {
        if key != NAME {
            object::push_member(&mut out, key, value.get());
        }
    }
    out.push('}');
    RawJson::written(out)
}

/// Timeouts of a call, and the time of its beginning.
#[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "without a runtime nothing waits"))]
struct Timeouts {
    clock: Arc<dyn Clock>,
    /// Number of the client.
    number: u64,
    begun: Duration,
    /// Time without a sign of life, and the option that says so.
    soft: Option<(Duration, &'static str)>,
    hard: Option<Duration>,
}

impl Timeouts {
    fn of(client: &Client, options: &CallOptions) -> Self {
        let link = &client.connected.link;
        let own = options.timeout.filter(|_| !options.by_default).map(|time| (time, "timeout"));
        let default = options.timeout.or(client.connected.timeout).map(|time| (time, "request_timeout"));
        let clock = link.clock();
        Self {
            begun: clock.now(),
            clock,
            number: link.number(),
            soft: own.or(default).filter(|(time, _)| !time.is_zero()),
            hard: options.max_timeout.filter(|time| !time.is_zero()),
        }
    }

    /// The time that is left for what comes now, and the option that says so.
    #[cfg(feature = "runtime")]
    fn left(&self) -> Option<(Duration, &'static str)> {
        let spent = self.clock.now().saturating_sub(self.begun);
        let hard = self.hard.map(|time| (time.saturating_sub(spent), "max_timeout"));
        self.soft.into_iter().chain(hard).min_by_key(|(time, _)| *time)
    }
}

/// Somebody who waits for what is done on another thread, for a time at most.
#[cfg(feature = "runtime")]
#[derive(Default)]
struct Waiting {
    done: Mutex<Option<Done>>,
    /// The timer, and after that what the request goes on with.
    guard: Mutex<Option<Guard>>,
    /// Nobody waits any more.
    left: Arc<AtomicBool>,
}

#[cfg(feature = "runtime")]
impl Waiting {
    fn new(timeouts: &Timeouts, done: Done) -> Arc<Self> {
        let waiting = Arc::new(Self { done: Mutex::new(Some(done)), ..Self::default() });
        let Some((time, option)) = timeouts.left() else { return waiting };
        let there = Arc::downgrade(&waiting);
        let late = Box::new(move || {
            let Some(there) = there.upgrade() else { return };
            there.left.store(true, Ordering::Relaxed);
            if let Some(done) = there.take() {
                let seconds = time.as_secs_f64();
                let message =
                    format!("no answer to \"tools/call\" that could be checked within {seconds} s ({option})");
                done(Err(Error::new(ErrorKind::Timeout, message)));
            }
        });
        waiting.guard(Some(timeouts.clock.later(time, late)));
        waiting
    }

    fn take(&self) -> Option<Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn guard(&self, guard: Option<Guard>) {
        let old = std::mem::replace(&mut *self.guard.lock().unwrap_or_else(PoisonError::into_inner), guard);
        drop(old);
    }

    fn is_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

/// Guard of the caller; dropped, it cancels.
#[cfg(feature = "runtime")]
struct Leaves(Arc<Waiting>);

#[cfg(feature = "runtime")]
impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.left.store(true, Ordering::Relaxed);
        drop(self.0.take());
        self.0.guard(None);
    }
}

/// A check that is not done in no time: on another thread, for as long as the call may take.
#[cfg(feature = "runtime")]
fn check_long(ready: Arc<Ready>, tool: String, result: RawJson, timeouts: &Timeouts, done: Done) -> Arc<Waiting> {
    let waiting = Waiting::new(timeouts, done);
    let there = waiting.clone();
    let check = move || {
        if there.is_left() {
            return;
        }
        let checked = ready.check_whole(&tool, &result, there.left.clone());
        if let Some(done) = there.take() {
            there.guard(None);
            done(checked.map(|()| result));
        }
    };
    checks::run(timeouts.number, Box::new(check));
    waiting
}

impl Client {
    /// The result of a task that was looked at: checked as that of the call that it was.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when it does not fit.
    #[cfg(feature = "runtime")]
    pub(super) async fn checked_of_task(&self, id: &str, result: RawJson, options: &CallOptions) -> Result<RawJson> {
        let known = self.connected.known.clone();
        let Some(tool) = known.outputs.called(id).filter(|_| self.connected.validate_output) else { return Ok(result) };
        let Some(ready) = known.outputs.ready(&tool) else { return Ok(result) };
        match ready.check(&tool, &result, &Effort::Inline) {
            Ok(()) => Ok(result),
            Err(Unsure::Bad(error)) => Err(error),
            Err(Unsure::Long) => {
                let timeouts = Timeouts::of(self, options);
                Answer::of(|done| Box::new(Leaves(check_long(ready, tool, result, &timeouts, done)))).await
            }
        }
    }

    /// Has a tool's schema read on another thread, where that may take long, and goes on with the call after that.
    ///
    /// # Errors
    /// `done`, when there is nothing that takes long.
    #[cfg(feature = "runtime")]
    pub(super) fn reading(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> std::result::Result<Guard, Done> {
        let outputs = &self.connected.known.outputs;
        let is_of_tool = matches!(method, "tools/call" | "tasks/result");
        if !is_of_tool || !self.connected.validate_output || !outputs.any_long() {
            return Err(done);
        }
        let Some(named) = params.and_then(|params| params.borrow::<Named<'_>>().ok()) else { return Err(done) };
        let tool = match method {
            "tools/call" => Some(named.name.into_owned()),
            _ => outputs.called(&named.task_id),
        };
        let Some(tool) = tool.filter(|tool| outputs.is_long(tool)) else { return Err(done) };
        let waiting = Waiting::new(&Timeouts::of(self, options), done);
        let (client, there) = (self.clone(), waiting.clone());
        let (method, params, options) = (method.to_owned(), params.cloned(), options.clone());
        let read = move || {
            if there.is_left() {
                return;
            }
            drop(client.connected.known.outputs.ready(&tool));
            let Some(done) = there.take() else { return };
            there.guard(None);
            let guard = client.perform_read(&method, params, &options, done);
            there.guard(Some(guard));
            // A caller that left meanwhile has not seen this guard.
            if there.is_left() {
                there.guard(None);
            }
        };
        checks::run(self.connected.link.number(), Box::new(read));
        Ok(Box::new(Leaves(waiting)))
    }

    /// Has the answer checked, where it is a tool's, and learns from lists of tools.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when the tool's schema is none that can be checked against: before the
    /// tool does anything.
    pub(super) fn checking(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> std::result::Result<Done, (Error, Done)> {
        let connected = &self.connected;
        let known = connected.known.clone();
        if method == "tools/list" && connected.validate_output {
            let age = known.outputs.age();
            return Ok(Box::new(move |outcome| {
                if let Ok(result) = &outcome {
                    known.outputs.learn(result, age);
                }
                done(outcome);
            }));
        }
        if !matches!(method, "tools/call" | "tasks/result") {
            return Ok(done);
        }
        let any = self.revision().rules().any_structured;
        let done: Done = match any {
            true => done,
            false => Box::new(move |outcome| done(outcome.map(without_null))),
        };
        let named = params.filter(|_| connected.validate_output).and_then(|params| params.borrow::<Named<'_>>().ok());
        let Some(Named { name, task_id: of_task, task }) = named else { return Ok(done) };
        let tool = match method {
            "tools/call" => Some(name.into_owned()),
            _ => known.outputs.called(&of_task),
        };
        let Some((tool, ready)) = tool.and_then(|tool| known.outputs.ready(&tool).map(|ready| (tool, ready))) else {
            return Ok(done);
        };
        if method == "tools/call"
            && let Err(error) = ready.usable(&tool)
        {
            return Err((error, done));
        }
        let becomes_task = method == "tools/call" && task.is_some();
        let timeouts = Timeouts::of(self, options);
        Ok(Box::new(move |outcome| {
            let result = match outcome {
                Ok(result) => result,
                Err(error) => return done(Err(error)),
            };
            if let Some(id) = task_id(&result).filter(|_| becomes_task) {
                known.outputs.became(&id, &tool);
                return done(Ok(result));
            }
            match ready.check(&tool, &result, &Effort::Inline) {
                Ok(()) => done(Ok(result)),
                Err(Unsure::Bad(error)) => done(Err(error)),
                // The caller's guard has gone with the answer: the time alone ends this.
                #[cfg(feature = "runtime")]
                Err(Unsure::Long) => drop(check_long(ready, tool, result, &timeouts, done)),
                #[cfg(not(feature = "runtime"))]
                Err(Unsure::Long) => {
                    let _ = &timeouts;
                    done(ready.check_whole(&tool, &result, Arc::default()).map(|()| result));
                }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn listed(outputs: &Outputs, tools: &Value) {
        outputs.learn(&RawJson::from_value(&json!({"tools": tools})), outputs.age());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let outputs = Outputs::default();
        let tool = |n: usize, schema: Value| json!({"name": format!("t{n}"), "outputSchema": schema});
        let all: Vec<Value> = (0..MAX_TOOLS + 5).map(|n| tool(n, json!({"type": "object"}))).collect();
        listed(&outputs, &json!(all));
        assert_eq!(outputs.state().schemas.len(), MAX_TOOLS);
        assert!(outputs.ready("t0").is_some() && outputs.ready(&format!("t{MAX_TOOLS}")).is_none());
        for n in 0..2 * MAX_READY {
            assert!(outputs.ready(&format!("t{n}")).is_some());
        }
        assert_eq!(outputs.state().ready.len(), MAX_READY);
        let long = "x".repeat(MAX_BYTES);
        listed(&outputs, &json!([tool(0, json!({"description": long}))]));
        assert!(outputs.ready("t0").is_none(), "more bytes than there is room for");
        for n in 0..MAX_TASKS + 1 {
            outputs.became(&n.to_string(), "t1");
        }
        assert_eq!((outputs.called("0"), outputs.called("1")), (None, Some("t1".to_owned())));
        outputs.forget();
        let state = outputs.state();
        assert_eq!((state.schemas.len(), state.bytes, state.ready.len(), state.tasks.len()), (0, 0, 0, MAX_TASKS));
    }

    #[test]
    fn a_list_that_was_asked_for_before_the_change_is_not_believed() {
        let outputs = Outputs::default();
        let age = outputs.age();
        outputs.forget();
        let list = json!({"tools": [{"name": "t", "outputSchema": {"type": "object"}}]});
        outputs.learn(&RawJson::from_value(&list), age);
        assert!(outputs.ready("t").is_none());
        listed(&outputs, &list["tools"]);
        assert!(outputs.ready("t").is_some());
        listed(&outputs, &json!([{"name": "t"}]));
        assert!(outputs.ready("t").is_none(), "it has none any more");
    }

    #[test]
    fn null_stands_for_none_where_objects_are_wanted() {
        let read = |text: &str| without_null(RawJson::parse(text.to_owned()).expect("JSON")).get().to_owned();
        assert_eq!(read(r#"{"content":[], "structuredContent":null,"x":1}"#), r#"{"content":[],"x":1}"#);
        for same in [r#"{"structuredContent":{}}"#, r#"{"content":["structuredContent"]}"#] {
            assert_eq!(read(same), same);
        }
    }
}
