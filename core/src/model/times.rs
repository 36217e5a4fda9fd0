//! Times as JSON has them: seconds, and seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serializer;

/// The last second of the year 9999, which every platform and every calendar has.
const LAST: Duration = Duration::from_secs(253_402_300_799);

/// Returns the whole seconds since 1970; 0 for what was before.
pub(crate) fn unix(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns the time so many seconds after 1970; the end of the year 9999 for a later one.
pub(crate) fn from_unix(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds).min(LAST)
}

/// Writes a duration as a number of seconds, for serde.
pub(crate) fn seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Writes a time as seconds since 1970, for serde.
#[cfg(feature = "auth")]
pub(crate) fn since_1970<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(unix(*time))
}

/// Writes a time that may be there as seconds since 1970, for serde.
#[cfg(feature = "auth")]
pub(crate) fn since_1970_if_any<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => since_1970(time, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_come_back() {
        for seconds in [0, 1, 1_795_761_660, 253_402_300_799] {
            assert_eq!(unix(from_unix(seconds)), seconds);
        }
        assert_eq!(unix(UNIX_EPOCH - Duration::from_secs(1)), 0);
        assert_eq!(unix(from_unix(u64::MAX)), 253_402_300_799);
    }
}
