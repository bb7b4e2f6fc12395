//! Dates, times and durations.

use std::cmp::Ordering;

use penstock_xpath::days_from_civil;

use super::value::Value;

const NANOS: i128 = 1_000_000_000;
const DAY_SECONDS: i128 = 86_400;

/// Which parts a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    DateTime,
    Time,
    Date,
    YearMonth,
    Year,
    MonthDay,
    Day,
    Month,
}

/// A point in time, or a recurring one set in a fixed year.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instant {
    local_nanos: i128,
    zone_minutes: Option<i32>,
}

impl Instant {
    pub(crate) fn utc_nanos(&self) -> i128 {
        self.local_nanos - i128::from(self.zone_minutes.unwrap_or(0)) * 60 * NANOS
    }

    pub(crate) fn has_zone(&self) -> bool {
        self.zone_minutes.is_some()
    }

    /// XML Schema part 2 §3.2.7.4: without a zone on one side, only what is fourteen hours apart has an order.
    pub(crate) fn compare(&self, other: &Instant) -> Option<Ordering> {
        let order = self.utc_nanos().cmp(&other.utc_nanos());
        if self.zone_minutes.is_some() == other.zone_minutes.is_some() {
            return Some(order);
        }
        let apart = (self.utc_nanos() - other.utc_nanos()).abs();
        (apart > 14 * 3600 * NANOS).then_some(order)
    }
}

/// A duration: months and time do not convert into each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Duration {
    months: i64,
    nanos: i128,
}

impl Duration {
    /// XML Schema part 2 §3.2.6.2: ordered when the order is the same from each of four dates.
    pub(crate) fn compare(&self, other: &Duration) -> Option<Ordering> {
        const STARTS: [(i64, i64); 4] = [(1696, 9), (1697, 2), (1903, 3), (1903, 7)];
        let mut order = None;
        for (year, month) in STARTS {
            let end = |duration: &Duration| {
                let months = i128::from(year) * 12 + i128::from(month) - 1 + i128::from(duration.months);
                let year = i64::try_from(months.div_euclid(12)).ok()?;
                let month = months.rem_euclid(12) as i64 + 1;
                (i128::from(days_from_civil(year, month, 1)) * DAY_SECONDS * NANOS).checked_add(duration.nanos)
            };
            let here = end(self)?.cmp(&end(other)?);
            if order.is_some_and(|order| order != here) {
                return None;
            }
            order = Some(here);
        }
        order
    }
}

fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn eat(&mut self, literal: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(literal)?;
        Some(())
    }

    fn digits(&mut self) -> &'t str {
        let length = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        digits
    }

    fn two(&mut self) -> Option<i64> {
        let digits = self.rest.get(..2)?;
        self.rest = &self.rest[2..];
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    fn year(&mut self) -> Option<i64> {
        let negative = self.eat("-").is_some();
        let digits = self.digits();
        // Four digits at least, no leading zero beyond that; far years are refused, not miscounted.
        if digits.len() < 4 || digits.len() > 9 || digits.len() > 4 && digits.starts_with('0') {
            return None;
        }
        let year: i64 = digits.parse().ok()?;
        if year == 0 { None } else { Some(if negative { -year } else { year }) }
    }

    fn fraction_nanos(&mut self) -> Option<i128> {
        if self.eat(".").is_none() {
            return Some(0);
        }
        let digits = self.digits();
        if digits.is_empty() {
            return None;
        }
        let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
        nine.parse().ok()
    }

    fn time(&mut self) -> Option<i128> {
        let hour = self.two()?;
        self.eat(":")?;
        let minute = self.two()?;
        self.eat(":")?;
        let second = self.two()?;
        let nanos = self.fraction_nanos()?;
        let midnight = hour == 24 && minute == 0 && second == 0 && nanos == 0;
        if !midnight && hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        Some(i128::from(hour * 3600 + minute * 60 + second) * NANOS + nanos)
    }

    /// The zone, when there is one; `None` when what is left is no zone.
    fn zone(&mut self) -> Option<Option<i32>> {
        match self.rest {
            "" => Some(None),
            "Z" => Some(Some(0)),
            _ => {
                let sign = if self.eat("+").is_some() { 1 } else { self.eat("-").map(|()| -1)? };
                let hour = self.two()?;
                self.eat(":")?;
                let minute = self.two()?;
                let fits = self.rest.is_empty() && (hour < 14 && minute < 60 || hour == 14 && minute == 0);
                fits.then_some(Some(sign * (hour * 60 + minute) as i32))
            }
        }
    }
}

/// Reads a text with the parts a type has.
pub(crate) fn instant(text: &str, shape: Shape) -> Option<Value<'static>> {
    let mut scanner = Scanner { rest: text };
    // Recurring dates are set in a leap year, so that February has 29 days.
    let (mut year, mut month, mut day, mut nanos) = (1972, 1, 1, 0);
    match shape {
        Shape::DateTime | Shape::Date | Shape::YearMonth | Shape::Year => {
            year = scanner.year()?;
            if shape != Shape::Year {
                scanner.eat("-")?;
                month = scanner.two()?;
            }
            if matches!(shape, Shape::DateTime | Shape::Date) {
                scanner.eat("-")?;
                day = scanner.two()?;
            }
        }
        Shape::MonthDay => {
            scanner.eat("--")?;
            month = scanner.two()?;
            scanner.eat("-")?;
            day = scanner.two()?;
        }
        Shape::Day => {
            scanner.eat("---")?;
            day = scanner.two()?;
        }
        Shape::Month => {
            scanner.eat("--")?;
            month = scanner.two()?;
            // The form `--MM--` of the first edition is in use still.
            scanner.eat("--");
        }
        Shape::Time => {}
    }
    if !(1..=12).contains(&month) || day < 1 || day > month_length(year, month) {
        return None;
    }
    if shape == Shape::DateTime {
        scanner.eat("T")?;
    }
    if matches!(shape, Shape::DateTime | Shape::Time) {
        nanos = scanner.time()?;
    }
    let zone_minutes = scanner.zone()?;
    let local_nanos = i128::from(days_from_civil(year, month, day)) * DAY_SECONDS * NANOS + nanos;
    Some(Value::Instant(Instant { local_nanos, zone_minutes }))
}

/// Reads `PnYnMnDTnHnMnS`.
pub(crate) fn duration(text: &str) -> Option<Value<'static>> {
    let mut scanner = Scanner { rest: text };
    let negative = scanner.eat("-").is_some();
    scanner.eat("P")?;
    let (mut months, mut nanos) = (0i64, 0i128);
    let mut in_time = false;
    let mut units = "YMD";
    let mut any = false;
    while !scanner.rest.is_empty() {
        if !in_time && scanner.eat("T").is_some() {
            (in_time, units, any) = (true, "HMS", false);
            continue;
        }
        let digits = scanner.digits();
        let number: i64 = digits.parse().ok()?;
        let fraction = if in_time { scanner.fraction_nanos()? } else { 0 };
        let unit = scanner.rest.chars().next()?;
        scanner.rest = &scanner.rest[unit.len_utf8()..];
        // Each unit once, the larger one first.
        let place = units.find(unit)?;
        units = &units[place + 1..];
        if fraction != 0 && unit != 'S' {
            return None;
        }
        let seconds = |each: i128| i128::from(number).checked_mul(each * NANOS);
        match (unit, in_time) {
            ('Y', _) => months = months.checked_add(number.checked_mul(12)?)?,
            ('M', false) => months = months.checked_add(number)?,
            ('D', _) => nanos = nanos.checked_add(seconds(DAY_SECONDS)?)?,
            ('H', _) => nanos = nanos.checked_add(seconds(3600)?)?,
            ('M', true) => nanos = nanos.checked_add(seconds(60)?)?,
            _ => nanos = nanos.checked_add(seconds(1)?)?.checked_add(fraction)?,
        }
        any = true;
    }
    if !any {
        return None;
    }
    let sign = if negative { -1 } else { 1 };
    Some(Value::Duration(Duration { months: months * sign, nanos: nanos * i128::from(sign) }))
}
