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
    /// Beginning of the step's name.
    step: String,
    reason: String,
    /// It is not even run.
    #[serde(default)]
    skip: bool,
}

fn find(step: &str) -> Option<Gap> {
    let text = std::fs::read_to_string(place::root().join("xtask/gaps.toml")).ok()?;
    let gaps: Gaps = toml::from_str(&text).unwrap_or_default();
    gaps.gap.into_iter().find(|gap| step.starts_with(&gap.step))
}

/// Returns the reason why the step may fail, if it may.
pub(super) fn reason(step: &str) -> Option<String> {
    find(step).map(|gap| gap.reason)
}

/// Returns the reason why the step is left out, if it is.
pub(super) fn left_out(step: &str) -> Option<String> {
    find(step).filter(|gap| gap.skip).map(|gap| gap.reason)
}
