//! Dates and times on the proleptic Gregorian calendar, with or without a time zone.

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Duration;
use super::duration::{format_fraction, fraction_nanos};

/// Stands for "no time zone".
const NO_ZONE: i16 = i16::MIN;

/// Years further away are refused, so that no arithmetic on dates can overflow.
const MAX_YEAR: i32 = 999_999;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_DAY: i128 = 86_400 * NANOS_PER_SECOND;

/// A point on the local time line; also carries dates (at midnight) and times (on a reference date).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime {
    /// Astronomical year: 0 is 1 BC.
    pub year: i32,
    /// Below 10⁹.
    pub nanos: u32,
    zone: i16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl DateTime {
    /// A moment of the system clock, in UTC.
    pub fn from_system_time(time: SystemTime) -> DateTime {
        let nanos = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => after.as_nanos() as i128,
            Err(before) => -(before.duration().as_nanos() as i128),
        };
        DateTime::from_local_nanos(nanos, Some(0)).unwrap_or(DateTime::midnight(1970, 1, 1, Some(0)))
    }

    fn midnight(year: i32, month: u8, day: u8, zone: Option<i16>) -> DateTime {
        DateTime { year, month, day, hour: 0, minute: 0, second: 0, nanos: 0, zone: zone.unwrap_or(NO_ZONE) }
    }

    /// Offset from UTC in minutes, when there is a time zone.
    pub fn zone_minutes(self) -> Option<i16> {
        (self.zone != NO_ZONE).then_some(self.zone)
    }

    /// The same local time with another time zone, or none.
    #[must_use]
    pub fn with_zone(self, zone_minutes: Option<i16>) -> DateTime {
        DateTime { zone: zone_minutes.unwrap_or(NO_ZONE), ..self }
    }

    /// Days since 1970-01-01 of the local date.
    pub fn days(self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// Nanoseconds of the local time line since 1970-01-01.
    pub fn local_nanos(self) -> i128 {
        let seconds = i64::from(self.hour) * 3_600 + i64::from(self.minute) * 60 + i64::from(self.second);
        i128::from(self.days()) * NANOS_PER_DAY + i128::from(seconds) * NANOS_PER_SECOND + i128::from(self.nanos)
    }

    /// Nanoseconds since the epoch; a value without a time zone is taken as one in `implicit_zone`.
    pub fn utc_nanos(self, implicit_zone: i16) -> i128 {
        let zone = self.zone_minutes().unwrap_or(implicit_zone);
        self.local_nanos() - i128::from(zone) * 60 * NANOS_PER_SECOND
    }

    /// The reverse of [`DateTime::local_nanos`]; `None` when the year is out of range.
    pub fn from_local_nanos(nanos: i128, zone: Option<i16>) -> Option<DateTime> {
        let days = i64::try_from(nanos.div_euclid(NANOS_PER_DAY)).ok()?;
        let rest = nanos.rem_euclid(NANOS_PER_DAY);
        let (year, month, day) = civil_from_days(days)?;
        let seconds = (rest / NANOS_PER_SECOND) as u32;
        let mut value = DateTime::midnight(year, month, day, zone);
        value.hour = (seconds / 3_600) as u8;
        value.minute = (seconds / 60 % 60) as u8;
        value.second = (seconds % 60) as u8;
        value.nanos = (rest % NANOS_PER_SECOND) as u32;
        Some(value)
    }

    /// Order on the time line.
    pub fn compare(self, other: DateTime, implicit_zone: i16) -> Ordering {
        self.utc_nanos(implicit_zone).cmp(&other.utc_nanos(implicit_zone))
    }

    /// The same moment seen from another time zone; without one before, the zone is simply added.
    pub fn adjust(self, zone_minutes: Option<i16>) -> Option<DateTime> {
        match (self.zone_minutes(), zone_minutes) {
            (Some(_), Some(to)) => {
                let local = self.utc_nanos(0) + i128::from(to) * 60 * NANOS_PER_SECOND;
                DateTime::from_local_nanos(local, Some(to))
            }
            _ => Some(self.with_zone(zone_minutes)),
        }
    }

    /// Moved by a duration: months first (the day is cut to the length of the month), then the rest.
    pub fn plus(self, duration: Duration) -> Option<DateTime> {
        let months = i64::from(self.year) * 12 + i64::from(self.month) - 1 + i64::from(duration.months);
        let year = i32::try_from(months.div_euclid(12)).ok().filter(|y| y.abs() <= MAX_YEAR)?;
        let month = months.rem_euclid(12) as u8 + 1;
        let moved = DateTime { year, month, day: self.day.min(days_in_month(year, month)), ..self };
        DateTime::from_local_nanos(moved.local_nanos() + duration.total_nanos(), self.zone_minutes())
    }

    /// The date alone.
    #[must_use]
    pub fn date(self) -> DateTime {
        DateTime::midnight(self.year, self.month, self.day, self.zone_minutes())
    }

    /// The time alone, on the reference date.
    #[must_use]
    pub fn time(self) -> DateTime {
        DateTime { year: 1972, month: 12, day: 31, ..self }
    }

    /// This time on the day of another value.
    #[must_use]
    pub fn on_date(self, date: DateTime) -> DateTime {
        DateTime { year: date.year, month: date.month, day: date.day, ..self }
    }

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

    fn date_digits(self) -> String {
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

    /// 1 (Monday) to 7 (Sunday).
    pub fn weekday(self) -> u8 {
        ((self.days() + 3).rem_euclid(7) + 1) as u8
    }

    /// 1 to 366.
    pub fn day_of_year(self) -> u16 {
        (self.days() - days_from_civil(self.year, 1, 1) + 1) as u16
    }

    /// Week of the year by ISO 8601.
    pub fn week_of_year(self) -> u8 {
        let thursday = self.days() + 4 - i64::from(self.weekday());
        let year = civil_from_days(thursday).map_or(self.year, |(year, _, _)| year);
        ((thursday - days_from_civil(year, 1, 1)) / 7 + 1) as u8
    }

    /// Week of the month: the first is the one that holds the first Thursday.
    pub fn week_of_month(self) -> u8 {
        let thursday = self.days() + 4 - i64::from(self.weekday());
        let day = civil_from_days(thursday).map_or(self.day, |(_, _, day)| day);
        (day - 1) / 7 + 1
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
fn parse_date_part(text: &str) -> Option<(DateTime, &str)> {
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
fn parse_zone(text: &str) -> Option<Option<i16>> {
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

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// How long a month is.
pub(crate) fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01, by counting years from March so that the leap day comes last.
fn days_from_civil(year: i32, month: u8, day: u8) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The reverse of [`days_from_civil`]; `None` when the year is out of range.
fn civil_from_days(days: i64) -> Option<(i32, u8, u8)> {
    if days.abs() > i64::from(MAX_YEAR) * 366 {
        return None;
    }
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u8;
    let year = (year_of_era + era * 400 + i64::from(month <= 2)) as i32;
    (year.abs() <= MAX_YEAR).then_some((year, month, day))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexical_forms() {
        for text in [
            "2026-01-31T08:09:10.5+02:00",
            "-0044-03-15T00:00:00",
            "2024-02-29T23:59:59Z",
            "1969-12-31T23:59:59.999999999Z",
        ] {
            assert_eq!(DateTime::parse_date_time(text).unwrap().format_date_time(), text);
        }
        let end_of_day = DateTime::parse_date_time("2023-12-31T24:00:00").unwrap();
        assert_eq!(end_of_day.format_date_time(), "2024-01-01T00:00:00");
        for text in [
            "",
            "T",
            "2026-02-29T00:00:00",
            "2026-13-01T00:00:00",
            "2026-01-01T25:00:00",
            "2026-01-01T00:00",
            "2026-01-01T00:00:00+15:00",
            "2026-01-01T00:00:00é",
            "26-01-01T00:00:00",
            "2026-01-0éT00:00:00",
        ] {
            assert_eq!(DateTime::parse_date_time(text), None, "{text}");
        }
    }

    #[test]
    fn calendar() {
        for (text, weekday, day_of_year, week) in
            [("2026-11-21", 6, 325, 47), ("2021-01-03", 7, 3, 53), ("2024-12-30", 1, 365, 1), ("1970-01-01", 4, 1, 1)]
        {
            let date = DateTime::parse_date(text).unwrap();
            assert_eq!(
                (date.weekday(), date.day_of_year(), date.week_of_year()),
                (weekday, day_of_year, week),
                "{text}"
            );
            assert_eq!(civil_from_days(date.days()), Some((date.year, date.month, date.day)));
        }
    }

    #[test]
    fn moving() {
        let date = DateTime::parse_date_time("2024-01-31T23:00:00+01:00").unwrap();
        let moved = date.plus(Duration::parse("P1MT2H").unwrap()).unwrap();
        assert_eq!(moved.format_date_time(), "2024-03-01T01:00:00+01:00");
        assert_eq!(date.adjust(Some(0)).unwrap().format_date_time(), "2024-01-31T22:00:00Z");
        let far = Duration { months: i32::MAX, nanos: 0, seconds: 0 };
        assert_eq!(date.plus(far), None);
    }
}
