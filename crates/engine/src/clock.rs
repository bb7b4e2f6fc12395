//! The time of day as text, and identifiers.

use std::cell::Cell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// `SYSTEM_TIME`: milliseconds since 1970.
pub fn epoch_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

/// Java's default format of a date (English, United States).
const JAVA_DEFAULT: &str = "M/d/yy, h:mm a";

/// The months by name; three letters of each are its short form.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days of the week by name, from the one that 1 January 1970 was.
pub const WEEKDAYS: [&str; 7] = ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// The first letters of a name, or the whole of it when the pattern has four letters.
fn name_of(name: &'static str, width: usize) -> &'static str {
    if width < 4 { &name[..3] } else { name }
}

/// `SYSTEM_DATE` in UTC, with a `SimpleDateFormat` pattern or without one.
pub fn system_date(pattern: Option<&str>) -> String {
    formatted(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), pattern.unwrap_or(JAVA_DEFAULT))
}

/// A time after 1970 in UTC, with a `SimpleDateFormat` pattern.
pub fn formatted(now: Duration, pattern: &str) -> String {
    let (days, seconds) = ((now.as_secs() / 86_400) as i64, now.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    let mut out = String::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\'' {
            let mut any = false;
            for quoted in letters.by_ref() {
                if quoted == '\'' {
                    break;
                }
                any = true;
                out.push(quoted);
            }
            if !any {
                out.push('\'');
            }
            continue;
        }
        let mut width = 1;
        while letters.next_if_eq(&letter).is_some() {
            width += 1;
        }
        let number = match letter {
            'y' | 'u' if width == 2 => year.rem_euclid(100),
            'y' | 'u' => year,
            'M' | 'L' if width > 2 => {
                out.push_str(name_of(MONTHS[(month as usize - 1) % 12], width));
                continue;
            }
            'E' => {
                out.push_str(name_of(WEEKDAYS[days.rem_euclid(7) as usize], width));
                continue;
            }
            'M' | 'L' => i64::from(month),
            'k' => ((seconds / 3600 + 23) % 24 + 1) as i64,
            'K' => (seconds / 3600 % 12) as i64,
            'd' => i64::from(day),
            'H' => (seconds / 3600) as i64,
            'h' => ((seconds / 3600 + 11) % 12 + 1) as i64,
            'm' => (seconds / 60 % 60) as i64,
            's' => (seconds % 60) as i64,
            'S' => i64::from(now.subsec_millis()),
            'a' => {
                out.push_str(if seconds < 43_200 { "AM" } else { "PM" });
                continue;
            }
            'Z' => {
                out.push_str("+0000");
                continue;
            }
            'X' => {
                out.push('Z');
                continue;
            }
            'z' => {
                out.push_str("UTC");
                continue;
            }
            other => {
                out.extend(std::iter::repeat_n(other, width));
                continue;
            }
        };
        out.push_str(&format!("{number:0width$}"));
    }
    out
}

/// Year, month and day of a day number since 1970, in the proleptic Gregorian calendar.
pub fn civil(days: i64) -> (i64, u32, u32) {
    // Howard Hinnant's algorithm: years start in March so that the leap day is the last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The day number since 1970 of a date in the proleptic Gregorian calendar; the other way of [`civil`].
pub fn days_of(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Until then. For mediators that wait ([`crate::Flow::Wait`]).
pub fn sleep_until(instant: std::time::Instant) -> crate::ports::LocalFuture<'static, ()> {
    Box::pin(tokio::time::sleep_until(instant.into()))
}

/// A version 4 UUID. Not for secrets: the generator is seeded from the hasher's keys.
pub fn uuid() -> String {
    let (high, low) = (random(), random());
    let high = (high & !0xf000) | 0x4000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    let digits = (u128::from(high) << 64) | u128::from(low);
    let mut text = String::with_capacity(36);
    for (index, byte) in digits.to_be_bytes().into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // By hand: every message gets one, and the formatter costs more than all the rest of it.
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 }));
        }
    }
    text
}

/// A number that differs from call to call and from process to process (splitmix64).
pub fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    thread_local! {
        static STATE: Cell<u64> = Cell::new(std::collections::hash_map::RandomState::new().build_hasher().finish());
    }
    STATE.with(|state| {
        let next = state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(next);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
            (-1, (1969, 12, 31)),
        ] {
            assert_eq!(civil(days), expected);
            assert_eq!(days_of(expected.0, expected.1, expected.2), days);
        }
    }

    #[test]
    fn patterns_of_simple_date_format() {
        for (seconds, pattern, expected) in [
            (1_774_000_000, JAVA_DEFAULT, "3/20/26, 9:46 AM"),
            (1_774_000_000, "yyyy-MM-dd'T'HH:mm:ss.SSSZ", "2026-03-20T09:46:40.000+0000"),
            (1_774_000_000, "yyyy'y''T'MM", "2026yT03"),
            (1_774_000_000, "EEE, d MMM yyyy", "Fri, 20 Mar 2026"),
            (0, "EEEE, MMMM ''yy kk KK", "Thursday, January '70 24 00"),
        ] {
            assert_eq!(formatted(Duration::from_secs(seconds), pattern), expected);
        }
    }

    #[test]
    fn identifiers_are_random_uuids() {
        let text = uuid();
        let parts: Vec<&str> = text.split('-').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{text}");
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        assert!(parts.concat().bytes().all(is_digit), "{text}");
        assert!(parts[2].starts_with('4') && parts[3].starts_with(['8', '9', 'a', 'b']), "{text}");
        assert_ne!(uuid(), uuid());
    }
}
