//! Times of requests, as hosts read them.

use serde_json::json;

use crate::middleware::Timing;

/// Returns the timings so far, as a member of the metrics.
pub(super) fn timing_of(timing: &Timing) -> Option<serde_json::Value> {
    let summary = timing.summary();
    (!summary.is_empty()).then(|| json!(summary))
}
