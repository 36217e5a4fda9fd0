//! For how long the way to a server may be broken before whoever follows a task there hears of it.

use std::time::Duration;

use crate::call::CallOptions;

/// Time for a call whose caller names none.
pub(in crate::client) const PATIENCE: Duration = Duration::from_secs(120);
/// Before the second try; twice as long each time.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(15);

/// Returns the caller's `timeout`; none: something else ends it, or nothing is to.
pub(super) fn patience_of(options: &CallOptions) -> Option<Duration> {
    Some(options.timeout.unwrap_or(PATIENCE)).filter(|time| !time.is_zero())
}

/// Tries in a row that did not get through.
#[derive(Debug, Clone, Default)]
pub(super) struct Broken {
    patience: Option<Duration>,
    since: Option<Duration>,
    times: u32,
}

impl Broken {
    pub(super) fn new(patience: Option<Duration>) -> Self {
        Self { patience, ..Self::default() }
    }

    /// One got through.
    pub(super) fn mended(&mut self) {
        *self = Self::new(self.patience);
    }

    pub(super) fn has_been(&self) -> bool {
        self.times > 0
    }

    /// One did not: the pause before the next. None when it takes too long.
    pub(super) fn pause(&mut self, now: Duration) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let pause = PAUSE.saturating_mul(1 << self.times.min(8)).min(MAX_PAUSE);
        self.times = self.times.saturating_add(1);
        let Some(patience) = self.patience else { return Some(pause) };
        let left = patience.saturating_sub(now.saturating_sub(since));
        (!left.is_zero()).then(|| pause.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let mut broken = Broken::new(Some(PATIENCE));
        let (mut now, mut pauses) = (Duration::from_secs(7), Vec::new());
        while let Some(pause) = broken.pause(now) {
            pauses.push(pause.as_secs());
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 15, 15, 15, 15, 15, 15, 15]);
        assert_eq!(now, Duration::from_secs(7) + PATIENCE);
        broken.mended();
        assert_eq!((broken.has_been(), broken.pause(now)), (false, Some(PAUSE)));
        let mut patient = Broken::new(None);
        assert!((0..1000).all(|n| patient.pause(Duration::from_secs(60 * n)).is_some()));
    }

    #[test]
    fn a_callers_time_is_the_end() {
        let of = |options: CallOptions| patience_of(&options);
        assert_eq!(of(CallOptions::new()), Some(PATIENCE));
        assert_eq!(of(CallOptions::new().timeout(PAUSE)), Some(PAUSE));
        assert_eq!(of(CallOptions::new().timeout(Duration::ZERO)), None);
    }
}
