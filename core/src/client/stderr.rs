use crate::error::{Error, Result};

/// Destination of a child's standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stderr {
    /// To this program's own.
    #[default]
    Inherit,
    /// Line by line to the client's events.
    Event,
    /// Nowhere.
    Discard,
}

impl Stderr {
    pub(super) fn parse(name: &str) -> Result<Self> {
        match name {
            "inherit" => Ok(Self::Inherit),
            "event" => Ok(Self::Event),
            "discard" => Ok(Self::Discard),
            other => Err(Error::misuse(format!(
                "target \"stderr\": expected \"inherit\", \"event\" or \"discard\", got {other:?}"
            ))),
        }
    }
}
