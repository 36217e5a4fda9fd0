use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::{RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED};
use crate::jsonrpc::{ErrorObject, code};

/// Era of a revision: the way in which its connections open, and the facts that its requests carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// Opened by `initialize`; the session carries the peer's facts.
    Legacy,
    /// Stateless; every request carries them in `_meta`.
    Modern,
}

impl Era {
    /// `legacy` or `modern`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A released revision of the protocol, ordered by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u8);

/// Differences between revisions, as properties to ask for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rules {
    /// The revision's name on the wire.
    pub name: &'static str,
    /// Legacy or modern.
    pub era: Era,
    /// Batches must be accepted.
    pub batches: bool,
    /// The `MCP-Protocol-Version` header is required after `initialize`.
    pub version_header: bool,
    /// An event stream begins with an event that has an id and no data, and may be closed and resumed at any time.
    pub priming_event: bool,
    /// `ToolAnnotations` exist.
    pub tool_annotations: bool,
    /// `AudioContent` exists.
    pub audio: bool,
    /// `title`, `outputSchema`, `structuredContent`, `ResourceLink`, `annotations.lastModified` and `_meta` on types exist.
    pub structured: bool,
    /// `icons`, `Implementation.description` and `websiteUrl` exist.
    pub icons: bool,
    /// `execution.taskSupport` on tools exists.
    pub tool_execution: bool,
    /// Requests may become tasks: `params.task`, the capability `tasks`.
    pub tasks: bool,
    /// Servers may answer with a task to clients that declare the extension for it.
    pub tasks_extension: bool,
    /// `structuredContent` may be any JSON value and `outputSchema` any schema.
    pub any_structured: bool,
    /// `message` in progress notifications exists.
    pub progress_message: bool,
    /// An error response may omit the id that could not be read; before, it says `null`.
    pub error_without_id: bool,
    /// The error code for a resource that there is not.
    pub resource_not_found: i64,
    /// The error code for a request that there is no room for now. The newest revisions leave those of implementations to
    /// older ones.
    pub busy: i64,
    /// Servers declare the capability `completions`; before, they complete without saying so.
    pub completions_declared: bool,
    /// `completion/complete` says what the other arguments are: `context`.
    pub completion_context: bool,
    /// Elicitation exists, and with it the capability.
    pub elicitation: bool,
    /// Results carry `resultType`, lists and reads `ttlMs` and `cacheScope`.
    pub result_type: bool,
    /// Elicitation has modes (form and URL), each a capability of its own, and forms have defaults, choices with titles
    /// and several choices.
    pub elicitation_modes: bool,
    /// A URL elicitation carries an `elicitationId`.
    pub elicitation_id: bool,
    /// Sampling has tools, and messages of several blocks.
    pub sampling_tools: bool,
    /// A client declares with `sampling.context` that it heeds `includeContext`.
    pub sampling_context: bool,
    /// A protected server has metadata that names its authorization servers (RFC 9728); before, it is its own.
    pub resource_metadata: bool,
}

const OLDEST: Rules = Rules {
    name: "2024-11-05",
    era: Era::Legacy,
    batches: false,
    version_header: false,
    priming_event: false,
    tool_annotations: false,
    audio: false,
    structured: false,
    icons: false,
    tool_execution: false,
    tasks: false,
    tasks_extension: false,
    any_structured: false,
    progress_message: false,
    error_without_id: false,
    resource_not_found: RESOURCE_NOT_FOUND,
    busy: code::BUSY,
    completions_declared: false,
    completion_context: false,
    elicitation: false,
    result_type: false,
    elicitation_modes: false,
    elicitation_id: false,
    sampling_tools: false,
    sampling_context: false,
    resource_metadata: false,
};
const BATCHING: Rules = Rules {
    name: "2025-03-26",
    batches: true,
    tool_annotations: true,
    audio: true,
    progress_message: true,
    completions_declared: true,
    ..OLDEST
};
const STRUCTURED: Rules = Rules {
    name: "2025-06-18",
    batches: false,
    version_header: true,
    structured: true,
    completion_context: true,
    elicitation: true,
    resource_metadata: true,
    ..BATCHING
};
const ICONS: Rules = Rules {
    name: "2025-11-25",
    priming_event: true,
    icons: true,
    tool_execution: true,
    tasks: true,
    error_without_id: true,
    elicitation_modes: true,
    elicitation_id: true,
    sampling_tools: true,
    sampling_context: true,
    ..STRUCTURED
};
const STATELESS: Rules = Rules {
    name: "2026-07-28",
    era: Era::Modern,
    priming_event: false,
    tool_execution: false,
    tasks: false,
    tasks_extension: true,
    any_structured: true,
    resource_not_found: code::INVALID_PARAMS,
    busy: code::INTERNAL_ERROR,
    result_type: true,
    elicitation_id: false,
    ..ICONS
};

static ROWS: [Rules; 5] = [OLDEST, BATCHING, STRUCTURED, ICONS, STATELESS];

impl Rules {
    /// An error as this revision has it: a code that it lacks becomes the one that it has instead. `may_visit`: the client
    /// can let its user visit a page.
    pub(crate) fn told(&self, mut error: ErrorObject, may_visit: bool) -> ErrorObject {
        match error.code {
            RESOURCE_NOT_FOUND => error.code = self.resource_not_found,
            URL_ELICITATION_REQUIRED if !(self.elicitation_id && may_visit) => {
                error.code = code::INTERNAL_ERROR;
                error.data = None;
            }
            _ => {}
        }
        error
    }
}

impl Revision {
    pub(super) const V2024_11_05: Self = Self(0);
    pub(super) const V2025_03_26: Self = Self(1);
    pub(super) const V2025_06_18: Self = Self(2);
    pub(super) const V2025_11_25: Self = Self(3);
    pub(super) const V2026_07_28: Self = Self(4);

    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest revision that is opened by `initialize`.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The one of a request over HTTP that names none: the last before there was a header for it.
    #[cfg(feature = "http")]
    pub(crate) const UNNAMED: Self = Self::V2025_03_26;
    /// The newest revision.
    pub const NEWEST: Self = Self::V2026_07_28;

    /// The revision called `name`, if it is known.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.rules().name == name)
    }

    /// This revision's row.
    #[must_use]
    pub fn rules(self) -> &'static Rules {
        &ROWS[usize::from(self.0)]
    }

    /// The name on the wire, such as `2025-11-25`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.rules().name
    }

    /// Legacy or modern.
    #[must_use]
    pub fn era(self) -> Era {
        self.rules().era
    }

    /// The known revisions of an era, newest first.
    pub fn of_era(era: Era) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().rev().filter(move |r| r.era() == era)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::RawJson;

    #[test]
    fn codes_that_a_revision_lacks_are_not_told() {
        let told = |revision: Revision, code, may_visit| {
            let error = ErrorObject { code, message: String::new(), data: Some(RawJson::empty_object()) };
            let told = revision.rules().told(error, may_visit);
            (told.code, told.data.is_some())
        };
        for revision in Revision::ALL {
            let not_found = if revision.era() == Era::Modern { code::INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            assert_eq!(told(revision, RESOURCE_NOT_FOUND, true), (not_found, true), "{revision}");
            assert_eq!(told(revision, URL_ELICITATION_REQUIRED, false), (code::INTERNAL_ERROR, false), "{revision}");
            let can = revision.rules().elicitation_id;
            let visit = if can { (URL_ELICITATION_REQUIRED, true) } else { (code::INTERNAL_ERROR, false) };
            assert_eq!(told(revision, URL_ELICITATION_REQUIRED, true), visit, "{revision}");
            assert_eq!(told(revision, -7, true), (-7, true));
        }
    }
}
