//! Check of tools' answers against the schemas that they were listed with (`outputSchema`).

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

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
pub(super) struct Ready(Result<(Value, Schema)>);

/// Reason why a check has no verdict yet.
#[derive(Debug)]
pub(super) enum Unsure {
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
    pub(super) fn usable(&self, tool: &str) -> Result<()> {
        let Err(error) = &self.0 else { return Ok(()) };
        let why = shortened(error.message(), 300);
        let message = format!(
            "tool {:?} was not called: {why} (option {:?})",
            shortened(tool, 100),
            crate::idiom::named("validate_output")
        );
        Err(Error::new(ErrorKind::PeerMisbehaved, message).received())
    }

    pub(super) fn check(&self, tool: &str, result: &RawJson, effort: &Effort) -> std::result::Result<(), Unsure> {
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
    pub(super) fn check_whole(&self, tool: &str, result: &RawJson, stop: Arc<AtomicBool>) -> Result<()> {
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

    pub(super) fn age(&self) -> u64 {
        self.state().age
    }

    /// Returns true if reading any tool's schema may take long.
    #[cfg(feature = "runtime")]
    pub(super) fn any_long(&self) -> bool {
        self.state().any_long
    }

    /// The tools are others now.
    pub(super) fn forget(&self) {
        let mut state = self.state();
        let (tasks, age) = (std::mem::take(&mut state.tasks), state.age + 1);
        *state = State { tasks, age, ..State::default() };
    }

    /// A page of tools, asked for at that age.
    pub(super) fn learn(&self, result: &RawJson, age: u64) {
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
    pub(super) fn is_long(&self, tool: &str) -> bool {
        let state = self.state();
        !state.ready.iter().any(|(name, _)| name == tool)
            && state.schemas.get(tool).is_some_and(|text| !Schema::is_read_quickly(text))
    }

    /// Returns the schema that this tool's answers are checked against; `None`: that is not known.
    pub(super) fn ready(&self, tool: &str) -> Option<Arc<Ready>> {
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
    pub(super) fn became(&self, id: &str, tool: &str) {
        let mut state = self.state();
        if state.tasks.len() >= MAX_TASKS {
            state.tasks.pop_front();
        }
        state.tasks.push_back((id.to_owned(), tool.to_owned()));
    }

    pub(super) fn called(&self, id: &str) -> Option<String> {
        self.state().tasks.iter().rev().find(|(own, _)| own == id).map(|(_, tool)| tool.clone())
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
}
