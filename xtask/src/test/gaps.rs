//! Steps that are known not to work yet, each with its reason: `xtask/gaps.toml`. Empty is how it should be.

use crate::place;
use serde::Deserialize;

#[derive(Deserialize, Default)]
struct Gaps {
    #[serde(default)]
    gap: Vec<Gap>,
}

#[derive(Deserialize)]
struct Gap {
    /// What the step's name begins with.
    step: String,
    reason: String,
}

/// Why the step may fail, if it may.
pub(super) fn reason(step: &str) -> Option<String> {
    let text = std::fs::read_to_string(place::root().join("xtask/gaps.toml")).ok()?;
    let gaps: Gaps = toml::from_str(&text).unwrap_or_default();
    gaps.gap.into_iter().find(|gap| step.starts_with(&gap.step)).map(|gap| gap.reason)
}
