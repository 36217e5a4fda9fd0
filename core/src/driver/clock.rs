use std::sync::LazyLock;
use std::time::{Duration, Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Monotonic time since the process first asked.
pub(crate) fn now() -> Duration {
    START.elapsed()
}
