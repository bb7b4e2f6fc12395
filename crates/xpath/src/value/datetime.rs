//! Dates and times on the proleptic Gregorian calendar, with or without a time zone.

mod calendar;
mod gregorian;
mod lexical;

use std::cmp::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Duration;
pub use calendar::days_from_civil;
use calendar::{MAX_YEAR, civil_from_days, days_in_month};
pub(crate) use lexical::format_offset;

/// Stands for "no time zone".
const NO_ZONE: i16 = i16::MIN;

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
        days_from_civil(self.year.into(), self.month.into(), self.day.into())
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

    /// 1 (Monday) to 7 (Sunday).
    pub fn weekday(self) -> u8 {
        ((self.days() + 3).rem_euclid(7) + 1) as u8
    }

    /// 1 to 366.
    pub fn day_of_year(self) -> u16 {
        (self.days() - days_from_civil(self.year.into(), 1, 1) + 1) as u16
    }

    /// Week of the year by ISO 8601.
    pub fn week_of_year(self) -> u8 {
        let thursday = self.days() + 4 - i64::from(self.weekday());
        let year = civil_from_days(thursday).map_or(self.year, |(year, _, _)| year);
        ((thursday - days_from_civil(year.into(), 1, 1)) / 7 + 1) as u8
    }

    /// Week of the month: the first is the one that holds the first Thursday.
    pub fn week_of_month(self) -> u8 {
        let thursday = self.days() + 4 - i64::from(self.weekday());
        let day = civil_from_days(thursday).map_or(self.day, |(_, _, day)| day);
        (day - 1) / 7 + 1
    }
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
