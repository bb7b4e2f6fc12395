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
    let (year, month, day) = penstock_engine::clock::civil(days as i64);
    let year = year.unsigned_abs();
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    text[0..3].copy_from_slice(DAYS[(days % 7) as usize]);
    two_digits(&mut text[5..7], day.into());
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
