//! The protocol's types that this crate acts on, in their neutral (newest) form, and builders for what users write.
//!
//! **Invariant**: plain data; knows no revision. Members that an older revision lacks are taken out at the edge
//! (`protocol/revision/shape/mod.rs`).

mod cache;
mod capabilities;
mod checks;
mod content;
mod definitions;
pub(crate) mod form;
mod icon;
mod implementation;
pub mod meta;
pub(crate) mod mirror;
mod principal;
pub(crate) mod problem;
pub(crate) mod sampling;
pub(crate) mod schema;
pub(crate) mod subscription;
mod task;
pub(crate) mod times;
mod tool;
mod trace;
mod uri_template;

pub use cache::{CacheHints, CacheScope};
pub use capabilities::Capabilities;
pub(crate) use checks::{check_definition, check_extension, check_icons, check_schema};
pub use content::{Annotations, CallToolResult, Content};
pub use definitions::{
    CompleteResult, Completion, GetPromptResult, Prompt, PromptMessage, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
pub use icon::is_safe_icon;
pub use implementation::Implementation;
pub use principal::Principal;
#[doc(hidden)]
pub use schema::PeerSchema;
pub use subscription::SubscriptionFilter;
pub(crate) use task::TASKS_EXTENSION;
pub use task::{Task, TaskMetadata, TaskStatus, TaskSupport};
pub use tool::{Tool, ToolAnnotations};
pub use trace::TraceContext;
pub use uri_template::UriTemplate;

/// `null` stands for what is not there.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de> + Default,
{
    <Option<T> as serde::Deserialize>::deserialize(deserializer).map(Option::unwrap_or_default)
}
