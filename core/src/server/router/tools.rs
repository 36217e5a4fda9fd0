//! Calls of tools.

use std::sync::Arc;

use crate::call::{Detachable, Handler, Link, Shaper, may_be_task};
use crate::jsonrpc::RawJson;
use crate::model::{TASKS_EXTENSION, TaskSupport};
use crate::protocol::Call;
use crate::protocol::revision::modern::missing_extension;
use crate::server::Router;
use crate::server::dispatch::{fail, start};

impl Router {
    pub(super) fn run_tool(
        &self,
        link: &Arc<dyn Link>,
        mut call: Call,
        handler: Arc<dyn Handler>,
        shaper: Arc<dyn Shaper>,
        params: RawJson,
        support: TaskSupport,
    ) {
        if let Some(tasks) = call.task.as_ref().and_then(|_| self.tasks()) {
            return tasks.start(link, call, handler, Some(shaper), params);
        }
        let tasks = self.tasks().filter(|_| call.context.revision.rules().tasks_extension);
        match tasks.map(|tasks| (tasks, may_be_task(&call.context))) {
            Some((tasks, true)) => match Detachable::new(&tasks, link, &mut call, support != TaskSupport::Forbidden) {
                Ok(own) => start(&(own as Arc<dyn Link>), call, handler, Some(shaper), params),
                Err(error) => fail(link, &call, error),
            },
            Some((_, false)) if support == TaskSupport::Required => {
                fail(link, &call, missing_extension(TASKS_EXTENSION));
            }
            _ => start(link, call, handler, Some(shaper), params),
        }
    }
}
