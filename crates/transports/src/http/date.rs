//! The `Date` field, formatted once a second.

use std::time::{SystemTime, UNIX_EPOCH};

/// The length of `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) const DATE_LENGTH: usize = 29;

const DAYS: [&[u8; 3]; 7] = [b"Thu", b"Fri", b"Sat", b"Sun", b"Mon", b"Tue", b"Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// RFC 9110 §5.6.7, the preferred form.
pub(crate) fn format_date(seconds: u64) -> [u8; DATE_LENGTH] {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[0..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two_digits(&mut text[5..7], day);
    text[8..11].copy_from_slice(MONTHS[(month - 1) as usize]);
    two_digits(&mut text[12..14], year / 100);
    two_digits(&mut text[14..16], year % 100);
    two_digits(&mut text[17..19], rest / 3600);
    two_digits(&mut text[20..22], rest / 60 % 60);
    two_digits(&mut text[23..25], rest % 60);
    text
}

fn two_digits(place: &mut [u8], value: u64) {
    place[0] = b'0' + (value / 10 % 10) as u8;
    place[1] = b'0' + (value % 10) as u8;
}

/// Year, month (1-12) and day (1-31) of a day since 1970 in the Gregorian calendar, counted in eras of 400 years
/// that start in March so that the leap day is the last.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let check = |seconds: u64, expected: &str| {
            assert_eq!(std::str::from_utf8(&format_date(seconds)), Ok(expected));
        };
        check(0, "Thu, 01 Jan 1970 00:00:00 GMT");
        check(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT");
        check(951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT");
        check(4_102_444_799, "Thu, 31 Dec 2099 23:59:59 GMT");
    }
}
