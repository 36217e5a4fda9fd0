//! Results on their way to a revision's form.

use crate::jsonrpc::RawJson;

/// Content of a handler's answer. Its text is written once, for the request's revision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// A whole result object in neutral form.
    Object(RawJson),
    /// A tool's plain text.
    Text(String),
    /// A tool's plain value.
    Value {
        /// The value.
        value: RawJson,
        /// True if it is `structuredContent`, too.
        structured: Structured,
    },
    /// A tool's failure, for the model.
    Failed(String),
}

/// Way in which a tool's plain value becomes `structuredContent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structured {
    /// Not at all.
    No,
    /// As it is; in revisions that know only objects there, anything else as the member `result` of one.
    Plain,
    /// In revisions that know only objects there, always as the member `result` of one, as the output schema says.
    Wrapped,
}
