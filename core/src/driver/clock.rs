use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::call::{Clock, Guard};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Monotonic time since the process first asked.
pub(crate) fn now() -> Duration {
    START.elapsed()
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
        let task = super::runtime::spawn(async move {
            tokio::time::sleep(delay).await;
            work();
        });
        Box::new(Abort(task.abort_handle()))
    }

    #[cfg(not(feature = "runtime"))]
    fn later(&self, _delay: Duration, _work: Box<dyn FnOnce() + Send>) -> Guard {
        Box::new(())
    }
}
