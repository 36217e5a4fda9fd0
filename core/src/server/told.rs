//! Facts of a source's tools, as it has listed them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::error::{Error, Result, shortened};
use crate::jsonrpc::code;
use crate::model::TaskSupport;
use crate::model::mirror::{Mirror, mirrors};

pub(super) fn check_task(
    subject: &dyn Fn() -> String,
    support: TaskSupport,
    as_task: bool,
    has_tasks: impl FnOnce() -> bool,
) -> Result<()> {
    let how = match (as_task, support) {
        (true, TaskSupport::Forbidden) => "cannot be called as a task",
        (false, TaskSupport::Required) if has_tasks() => "can only be called as a task: send \"task\"",
        _ => return Ok(()),
    };
    let message = format!("{} {how} (execution.taskSupport)", subject());
    Err(Error::rpc(code::METHOD_NOT_FOUND, message))
}

/// The most tools of a source of which something is known.
pub(super) const MAX_TOLD: usize = 10_000;

/// The most arguments of one of them that headers mirror: a request has no room for more.
pub(super) const MAX_MIRRORS: usize = 256;

/// Last facts of a tool by its source.
#[derive(Default)]
pub(super) struct Said {
    pub(super) support: TaskSupport,
    pub(super) mirrors: Arc<[Mirror]>,
}

/// Facts of a source's tools that are needed before one is called, as it has listed them. A tool without any takes no
/// place.
#[derive(Default)]
pub(crate) struct Told {
    pub(super) said: Mutex<HashMap<String, Said>>,
    /// True if headers mirror, or mirrored, arguments of any tool, the source's or not: most servers have none to look for.
    pub(super) any_mirrors: AtomicBool,
}

impl Told {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<String, Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tool comes that has these.
    pub(super) fn has_mirrors(&self, mirrors: &[Mirror]) {
        if !mirrors.is_empty() {
            self.any_mirrors.store(true, Ordering::Release);
        }
    }

    #[cfg(feature = "http")]
    pub(super) fn any_mirrors(&self) -> bool {
        self.any_mirrors.load(Ordering::Acquire)
    }

    /// The source lists this.
    pub(super) fn learn(&self, definition: &Map<String, Value>) {
        let Some(name) = definition.get("name").and_then(Value::as_str) else { return };
        let support = TaskSupport::of(definition).unwrap_or_default();
        // Clients leave out a tool with a wrong mark, so nobody mirrors anything of it.
        let mirrors = definition.get("inputSchema").and_then(|schema| mirrors(schema).ok()).unwrap_or_default();
        let mirrors: Arc<[Mirror]> = mirrors.into_iter().take(MAX_MIRRORS).collect();
        self.has_mirrors(&mirrors);
        let mut known = self.lock();
        if support == TaskSupport::Forbidden && mirrors.is_empty() {
            known.remove(name);
        } else if known.len() < MAX_TOLD || known.contains_key(name) {
            known.insert(name.to_owned(), Said { support, mirrors });
        }
    }

    /// The arguments of this tool that headers mirror.
    #[cfg(feature = "http")]
    pub(super) fn mirrors(&self, name: &str) -> Arc<[Mirror]> {
        self.lock().get(name).map(|said| said.mirrors.clone()).unwrap_or_default()
    }

    /// There is another source.
    pub(super) fn forget(&self) {
        *self.lock() = HashMap::new();
    }

    /// As [`ToolEntry::check_task`], for a tool of the source.
    ///
    /// # Errors
    /// As there.
    pub(super) fn check(&self, name: &str, as_task: bool, has_tasks: impl FnOnce() -> bool) -> Result<TaskSupport> {
        let support = self.lock().get(name).map(|said| said.support).unwrap_or_default();
        check_task(&|| format!("tool {:?}", shortened(name, 100)), support, as_task, has_tasks)?;
        Ok(support)
    }
}
