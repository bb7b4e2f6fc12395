//! The time.

use std::time::{SystemTime, UNIX_EPOCH};

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
    let (year, month, day, second) = parts(time_ms);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}", second % 60)
}

/// Year, month, day, and the second of the day (days from civil, Howard Hinnant).
fn parts(time_ms: i64) -> (i64, i64, i64, i64) {
    let seconds = time_ms.div_euclid(1000);
    let days = seconds.div_euclid(86_400) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day, seconds.rem_euclid(86_400))
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
