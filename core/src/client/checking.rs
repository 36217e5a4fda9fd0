//! Checks of what tools answer on its way to whoever asked, in the time of the call.

use std::borrow::Cow;
use std::sync::Arc;
#[cfg(feature = "runtime")]
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "runtime")]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Client;
#[cfg(feature = "runtime")]
use super::checks;
use super::outputs::{Ready, Unsure};
#[cfg(feature = "runtime")]
use crate::call::{Answer, Guard};
use crate::call::{CallOptions, Clock, Done};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::schema::Effort;
use crate::protocol::revision::object;

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

    #[test]
    fn null_stands_for_none_where_objects_are_wanted() {
        let read = |text: &str| without_null(RawJson::parse(text.to_owned()).expect("JSON")).get().to_owned();
        assert_eq!(read(r#"{"content":[], "structuredContent":null,"x":1}"#), r#"{"content":[],"x":1}"#);
        for same in [r#"{"structuredContent":{}}"#, r#"{"content":["structuredContent"]}"#] {
            assert_eq!(read(same), same);
        }
    }
}
