//! Changes, as notifications announce them.

use serde_json::json;

use super::{uri_of, without_subscription};
use crate::call::tasks;
use crate::jsonrpc::RawJson;
use crate::model::{SubscriptionFilter, Task};
use crate::protocol::revision::Method;

pub(super) const UPDATED: &str = "notifications/resources/updated";
/// Notifications of a list that has changed.
#[cfg(feature = "runtime")]
pub(super) const LISTS_CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];
const TASK: &str = "notifications/tasks";
const TASK_STATUS: &str = "notifications/tasks/status";

/// A change at the server.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::client::Change;
/// use tricorn::model::SubscriptionFilter;
/// use tricorn::prelude::*;
/// # use tricorn::server::Kind;
///
/// # let server = Server::new("news").tool("search", "Search", async || Ok("nothing"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let mut changes = client.listen(SubscriptionFilter::new().tools()).await?;
/// # server.set_enabled(Kind::Tool, "search", false);
/// match changes.next().await.transpose()? {
///     Some(Change::ToolsListChanged) => println!("{} tools", client.list_tools().await?.len()),
///     Some(other) => println!("{other:?}"),
///     None => println!("the server has ended the stream"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools has changed.
    ToolsListChanged,
    /// The list of prompts has changed.
    PromptsListChanged,
    /// The lists of resources and resource templates have changed.
    ResourcesListChanged,
    /// The resource with this URI has changed.
    ResourceUpdated(String),
    /// New state of a task (extension `io.modelcontextprotocol/tasks`; in 2025-11-25 where the server tells of it). Of
    /// changes that are not taken the last of each task is there.
    Task {
        /// The task as it is now.
        task: Box<Task>,
        /// The same with all that the server says of it, an object: also `result`, `error`, `inputRequests`.
        params: RawJson,
    },
    /// A notification of an extension that the client declares. After the stream broke off and was opened again, the server's
    /// acknowledgement is one, too (`notifications/subscriptions/acknowledged`): others, and changes of tasks, may have been
    /// missed.
    Extension {
        /// The notification's method.
        method: String,
        /// Its parameters, an object.
        params: RawJson,
    },
}

impl Change {
    /// Reads a notification.
    pub(super) fn of(method: &str, params: Option<&RawJson>) -> Option<Self> {
        Some(match method {
            "notifications/tools/list_changed" => Self::ToolsListChanged,
            "notifications/prompts/list_changed" => Self::PromptsListChanged,
            "notifications/resources/list_changed" => Self::ResourcesListChanged,
            UPDATED => Self::ResourceUpdated(uri_of(params)?),
            TASK => {
                let (task, rest) = tasks::detailed(TASK, &without_subscription(params?)).ok()?;
                Self::Task { params: tasks::neutral(&task, rest), task: Box::new(task) }
            }
            TASK_STATUS => Self::Task { task: Box::new(params?.to().ok()?), params: params?.clone() },
            other if Method::find(other).is_none() => Self::Extension {
                method: other.to_owned(),
                params: params.map_or_else(RawJson::empty_object, without_subscription),
            },
            _ => return None,
        })
    }

    pub(super) fn is_in(&self, filter: &SubscriptionFilter) -> bool {
        match self {
            Self::ResourceUpdated(uri) => filter.wants(uri),
            Self::Task { task, .. } => filter.task_ids.contains(&task.task_id),
            Self::Extension { .. } => !filter.others.is_empty(),
            list => filter.wants_list(list.method()),
        }
    }

    /// The notification that says it.
    #[must_use]
    pub fn method(&self) -> &str {
        match self {
            Self::ToolsListChanged => "notifications/tools/list_changed",
            Self::PromptsListChanged => "notifications/prompts/list_changed",
            Self::ResourcesListChanged => "notifications/resources/list_changed",
            Self::ResourceUpdated(_) => UPDATED,
            Self::Task { .. } => TASK,
            Self::Extension { method, .. } => method,
        }
    }

    /// The URI of the resource that has changed.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        match self {
            Self::ResourceUpdated(uri) => Some(uri),
            _ => None,
        }
    }

    /// The parameters of the notification that says it.
    #[must_use]
    pub fn params(&self) -> RawJson {
        match self {
            Self::ResourceUpdated(uri) => RawJson::from_value(&json!({"uri": uri})),
            Self::Task { params, .. } | Self::Extension { params, .. } => params.clone(),
            _ => RawJson::empty_object(),
        }
    }

    /// Everything that is listened to and of which may be said, without asking, that it has changed.
    pub(super) fn all_of(filter: &SubscriptionFilter) -> impl Iterator<Item = Self> {
        let lists = filter.lists().filter_map(|method| Self::of(method, None));
        lists.chain(filter.resource_subscriptions.iter().cloned().map(Self::ResourceUpdated))
    }
}
