//! The time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use x509_cert::der::DateTime;

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// A time as people read it, in UTC: `2026-11-22 19:05:00`.
pub(crate) fn shown(time_ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(time_ms).unwrap_or_default());
    // Beyond the year 9999 there is no such date.
    let Ok(at) = DateTime::from_unix_duration(since) else { return String::new() };
    let (hour, minute, second) = (at.hour(), at.minutes(), at.seconds());
    format!("{:04}-{:02}-{:02} {hour:02}:{minute:02}:{second:02}", at.year(), at.month(), at.day())
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_shown_in_utc() {
        for (time_ms, expected) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_400_000, "2000-02-29 00:00:00"),
            (1_735_689_599_999, "2024-12-31 23:59:59"),
        ] {
            assert_eq!(super::shown(time_ms), expected);
        }
    }
}
