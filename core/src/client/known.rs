//! Tasks that a client knows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::outputs::Outputs;
use crate::jsonrpc::RawJson;
use crate::model::TaskSupport;
use crate::signal::Signal;

/// The most tools of which it is remembered whether they run as tasks, and the longest list of tasks.
pub(super) const MAX_KNOWN: usize = 10_000;

/// Knowledge of a client about its server's tools and tasks.
#[derive(Default)]
pub(crate) struct Known {
    /// Task support of the tools, as they were listed last by a server that has tasks.
    pub(super) tools: Mutex<HashMap<String, TaskSupport>>,
    /// Signals for news of tasks, with the tasks' ids.
    pub(super) waiting: Mutex<Vec<(String, Weak<Signal>)>>,
    pub(super) outputs: Outputs,
    #[cfg(feature = "runtime")]
    pub(super) extended: super::extended_tasks::Extended,
}

impl Known {
    /// A page of tools was listed.
    pub(super) fn learn(&self, result: &RawJson) {
        #[derive(Deserialize)]
        struct Tools {
            tools: Vec<Map<String, Value>>,
        }
        let Ok(Tools { tools }) = result.to() else { return };
        let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in &tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            if known.len() < MAX_KNOWN || known.contains_key(name) {
                known.insert(name.to_owned(), TaskSupport::of(tool).unwrap_or_default());
            }
        }
    }

    /// Returns the task support of the called tool, and true if the parameters ask for a task themselves.
    pub(super) fn support(&self, params: Option<&RawJson>) -> Option<(TaskSupport, bool)> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
            #[serde(default)]
            task: Option<Value>,
        }
        let known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return None;
        }
        let named: Named = params?.to().ok()?;
        Some((known.get(&named.name).copied()?, named.task.is_some()))
    }

    /// Is set when the server says something about this task.
    pub(super) fn news(&self, id: &str) -> Arc<Signal> {
        let signal = Arc::<Signal>::default();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|(_, signal)| signal.strong_count() > 0);
        waiting.push((id.to_owned(), Arc::downgrade(&signal)));
        signal
    }

    /// The server says how a task is.
    pub(crate) fn heard(&self, method: &str, params: Option<&RawJson>) {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "taskId")]
            task_id: String,
        }
        if method == "notifications/tools/list_changed" {
            self.outputs.forget();
            // A tool that must not be a task may be one now; that one must be a task is believed until it is listed
            // anew.
            let mut known = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
            known.retain(|_, support| *support != TaskSupport::Forbidden);
        }
        if method != "notifications/tasks/status" {
            return;
        }
        let Some(Ok(Params { task_id })) = params.map(RawJson::to) else { return };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (told, rest) = std::mem::take(&mut *waiting).into_iter().partition(|(id, _)| *id == task_id);
        *waiting = rest;
        drop(waiting);
        let told: Vec<(String, Weak<Signal>)> = told;
        for signal in told.iter().filter_map(|(_, signal)| signal.upgrade()) {
            signal.set();
        }
    }
}
