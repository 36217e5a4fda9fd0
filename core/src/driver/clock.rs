use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::call::{Clock, Guard};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Monotonic time since the process first asked.
pub(crate) fn now() -> Duration {
    #[cfg(all(test, feature = "redis"))]
    if let Some(now) = crate::simulated::now() {
        return now;
    }
    START.elapsed()
}

/// A timer that goes off so much too late was held up with everything else: the process was stopped, or the machine slept.
#[cfg(feature = "runtime")]
const LATE: Duration = Duration::from_millis(500);

/// Time for reading everything that has come meanwhile before such a timer goes off.
#[cfg(feature = "runtime")]
const CATCH_UP: Duration = Duration::from_millis(200);

/// Waits until `due`, a time of [`now`]. Messages that came while the process was stopped are read first.
#[cfg(feature = "runtime")]
pub(super) async fn until(due: Duration) {
    tokio::time::sleep(due.saturating_sub(now())).await;
    if now().saturating_sub(due) > LATE {
        tokio::time::sleep(CATCH_UP).await;
    }
}

/// The process's time.
pub(crate) struct Time;

impl Clock for Time {
    fn now(&self) -> Duration {
        now()
    }

    #[cfg(feature = "runtime")]
    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> Guard {
        struct Abort(tokio::task::AbortHandle);
        impl Drop for Abort {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        let due = now().saturating_add(delay);
        let task = super::runtime::spawn(async move {
            until(due).await;
            work();
        });
        Box::new(Abort(task.abort_handle()))
    }

    #[cfg(not(feature = "runtime"))]
    fn later(&self, _delay: Duration, _work: Box<dyn FnOnce() + Send>) -> Guard {
        Box::new(())
    }
}
