//! The lexical forms of XML Schema, read and written.

use super::super::Duration;
use super::super::duration::{format_fraction, fraction_nanos};
use super::DateTime;
use super::calendar::{MAX_YEAR, days_in_month};

impl DateTime {
    /// From the lexical form of `xs:dateTime`.
    pub fn parse_date_time(text: &str) -> Option<DateTime> {
        let (date, time) = text.split_once('T')?;
        let (value, rest) = parse_date_part(date)?;
        if !rest.is_empty() {
            return None;
        }
        let time = DateTime::parse_time(time)?;
        let combined = time.on_date(value);
        // 24:00:00 is midnight of the next day.
        if is_end_of_day(text.split_once('T')?.1) {
            return combined.plus(Duration { months: 0, nanos: 0, seconds: 86_400 });
        }
        Some(combined)
    }

    /// From the lexical form of `xs:date`.
    pub fn parse_date(text: &str) -> Option<DateTime> {
        let (date, rest) = parse_date_part(text)?;
        Some(date.with_zone(parse_zone(rest)?))
    }

    /// From the lexical form of `xs:time`.
    pub fn parse_time(text: &str) -> Option<DateTime> {
        let bytes = text.as_bytes();
        if !text.is_ascii() || bytes.len() < 8 || bytes[2] != b':' || bytes[5] != b':' {
            return None;
        }
        let (hour, minute, second) = (two_digits(&text[..2])?, two_digits(&text[3..5])?, two_digits(&text[6..8])?);
        let (nanos, rest) = match text[8..].strip_prefix('.') {
            None => (0, &text[8..]),
            Some(fraction) => {
                let length = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
                (fraction_nanos(&fraction[..length])? as u32, &fraction[length..])
            }
        };
        let end_of_day = hour == 24 && minute == 0 && second == 0 && nanos == 0;
        if (hour > 23 && !end_of_day) || minute > 59 || second > 59 {
            return None;
        }
        let reference = DateTime::midnight(1972, 12, 31, parse_zone(rest)?);
        Some(DateTime { hour: hour % 24, minute, second, nanos, ..reference })
    }

    /// `2026-01-31T08:00:00Z`
    pub fn format_date_time(self) -> String {
        format!("{}T{}{}", self.date_digits(), self.time_digits(), self.format_zone())
    }

    /// `2026-01-31Z`
    pub fn format_date(self) -> String {
        format!("{}{}", self.date_digits(), self.format_zone())
    }

    /// `08:00:00Z`
    pub fn format_time(self) -> String {
        format!("{}{}", self.time_digits(), self.format_zone())
    }

    pub(super) fn date_digits(self) -> String {
        let sign = if self.year < 0 { "-" } else { "" };
        format!("{sign}{:04}-{:02}-{:02}", self.year.unsigned_abs(), self.month, self.day)
    }

    fn time_digits(self) -> String {
        let fraction = format_fraction(self.nanos);
        format!("{:02}:{:02}:{:02}{fraction}", self.hour, self.minute, self.second)
    }

    /// `Z`, `+02:00` or nothing.
    pub fn format_zone(self) -> String {
        match self.zone_minutes() {
            None => String::new(),
            Some(0) => "Z".to_string(),
            Some(minutes) => format_offset(minutes),
        }
    }
}

/// `+02:00`
pub(crate) fn format_offset(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let size = minutes.unsigned_abs();
    format!("{sign}{:02}:{:02}", size / 60, size % 60)
}

fn is_end_of_day(time: &str) -> bool {
    time.starts_with("24:")
}

fn two_digits(text: &str) -> Option<u8> {
    if text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// `[-]YYYY-MM-DD` and what follows.
pub(super) fn parse_date_part(text: &str) -> Option<(DateTime, &str)> {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let digits = unsigned.find('-')?;
    let (year, rest) = unsigned.split_at(digits);
    if year.len() < 4 || !year.bytes().all(|b| b.is_ascii_digit()) || (year.len() > 4 && year.starts_with('0')) {
        return None;
    }
    let year: i32 = year.parse().ok().filter(|y| *y <= MAX_YEAR)?;
    let bytes = rest.as_bytes();
    if bytes.len() < 6 || bytes[3] != b'-' || !rest.is_char_boundary(6) {
        return None;
    }
    let (month, day) = (two_digits(rest.get(1..3)?)?, two_digits(rest.get(4..6)?)?);
    let year = if negative { -year } else { year };
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(year, month) {
        return None;
    }
    Some((DateTime::midnight(year, month, day, None), &rest[6..]))
}

/// A time zone or nothing; the outer `None` means that the text is neither.
#[expect(clippy::option_option, reason = "absent and malformed are different answers here")]
pub(super) fn parse_zone(text: &str) -> Option<Option<i16>> {
    match text {
        "" => return Some(None),
        "Z" => return Some(Some(0)),
        _ => {}
    }
    let sign = match text.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes) = (i16::from(two_digits(hours)?), i16::from(two_digits(minutes)?));
    if minutes > 59 || hours * 60 + minutes > 14 * 60 {
        return None;
    }
    Some(Some(sign * (hours * 60 + minutes)))
}
