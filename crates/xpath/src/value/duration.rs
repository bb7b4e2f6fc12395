//! Durations: months and seconds apart, because no rule turns one into the other.

use super::Decimal;

/// A duration of months and of seconds with nanoseconds; all parts have the same sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duration {
    /// Years and months.
    pub months: i32,
    /// The sub-second part, below 10⁹ in size.
    pub nanos: i32,
    /// Days, hours, minutes and seconds.
    pub seconds: i64,
}

/// Nanoseconds in a second.
const NANOS: i128 = 1_000_000_000;

impl Duration {
    /// Years and months only.
    pub fn from_months(months: i32) -> Duration {
        Duration { months, nanos: 0, seconds: 0 }
    }

    /// Days to nanoseconds only; `None` when it does not fit.
    pub fn from_nanos(total: i128) -> Option<Duration> {
        Some(Duration { months: 0, nanos: (total % NANOS) as i32, seconds: i64::try_from(total / NANOS).ok()? })
    }

    /// The day-time part in nanoseconds.
    pub fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * NANOS + i128::from(self.nanos)
    }

    /// From `P1Y2M3DT4H5M6.7S`, possibly negative.
    pub fn parse(text: &str) -> Option<Duration> {
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1i128, rest),
            None => (1, text),
        };
        let rest = rest.strip_prefix('P')?;
        let (date, time) = match rest.split_once('T') {
            Some((_, "")) => return None,
            Some((date, time)) => (date, time),
            None => (rest, ""),
        };
        if date.is_empty() && time.is_empty() {
            return None;
        }
        let [years, months, days] = parts(date, ['Y', 'M', 'D'])?;
        let [hours, minutes, seconds] = parts(time, ['H', 'M', 'S'])?;
        if [years, months, days, hours, minutes].iter().any(|p| p.contains('.')) {
            return None;
        }
        let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
        let whole = |digits: &str| number(digits).filter(|n| *n < 1 << 62);
        let months = sign * (whole(years)? * 12 + whole(months)?);
        let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
        if fraction.is_empty() || (second.is_empty() && !seconds.is_empty()) {
            return None;
        }
        let minutes = (whole(days)? * 24 + whole(hours)?) * 60 + whole(minutes)?;
        let seconds = minutes * 60 + whole(second)?;
        let nanos = sign * (seconds * NANOS + fraction_nanos(fraction)?);
        let mut duration = Duration::from_nanos(nanos)?;
        duration.months = i32::try_from(months).ok()?;
        Some(duration)
    }

    /// In the canonical form; `zero` is what no length at all looks like.
    pub fn format(self, zero: &str) -> String {
        if self.months == 0 && self.total_nanos() == 0 {
            return zero.to_string();
        }
        let mut text = String::new();
        if self.months < 0 || self.total_nanos() < 0 {
            text.push('-');
        }
        text.push('P');
        let months = self.months.unsigned_abs();
        let seconds = self.seconds.unsigned_abs();
        let mut part = |value: u64, unit: char| {
            if value > 0 {
                text.push_str(&value.to_string());
                text.push(unit);
            }
        };
        part(u64::from(months / 12), 'Y');
        part(u64::from(months % 12), 'M');
        part(seconds / 86_400, 'D');
        if !seconds.is_multiple_of(86_400) || self.nanos != 0 {
            text.push('T');
            let mut part = |value: u64, unit: char| {
                if value > 0 {
                    text.push_str(&value.to_string());
                    text.push(unit);
                }
            };
            part(seconds / 3_600 % 24, 'H');
            part(seconds / 60 % 60, 'M');
            if !seconds.is_multiple_of(60) || self.nanos != 0 {
                text.push_str(&(seconds % 60).to_string());
                text.push_str(&format_fraction(self.nanos.unsigned_abs()));
                text.push('S');
            }
        }
        text
    }

    /// The seconds left after whole minutes, with their fraction.
    pub fn seconds_component(self) -> Decimal {
        let nanos = self.total_nanos() % (60 * NANOS);
        let text = format!(
            "{}{}{}",
            if nanos < 0 { "-" } else { "" },
            nanos.abs() / NANOS,
            format_fraction((nanos.abs() % NANOS) as u32)
        );
        Decimal::parse(&text).unwrap_or(Decimal::from(0))
    }

    /// Multiplied by a number, rounded to the nearest month or nanosecond; `None` when it does not fit.
    pub fn scale(self, factor: f64) -> Option<Duration> {
        let months = super::number::round(f64::from(self.months) * factor);
        let nanos = self.total_nanos() as f64 * factor;
        Duration::from_rounded(months, nanos)
    }

    /// Divided by a number, rounded as [`Duration::scale`] does; `None` when it does not fit.
    pub fn divide(self, divisor: f64) -> Option<Duration> {
        let months = super::number::round(f64::from(self.months) / divisor);
        let nanos = self.total_nanos() as f64 / divisor;
        Duration::from_rounded(months, nanos)
    }

    /// Whole months and nanoseconds, if they fit.
    fn from_rounded(months: f64, nanos: f64) -> Option<Duration> {
        let fits = months.abs() <= f64::from(i32::MAX) && nanos.abs() <= 1e27;
        let mut duration = Duration::from_nanos(nanos.round() as i128).filter(|_| fits)?;
        duration.months = months as i32;
        Some(duration)
    }

    /// The sum; `None` when it does not fit or the parts would differ in sign.
    pub fn plus(self, other: Duration) -> Option<Duration> {
        let mut sum = Duration::from_nanos(self.total_nanos() + other.total_nanos())?;
        sum.months = self.months.checked_add(other.months)?;
        Some(sum)
    }

    /// The same length backwards.
    pub fn negate(self) -> Option<Duration> {
        Some(Duration { months: self.months.checked_neg()?, nanos: -self.nanos, seconds: self.seconds.checked_neg()? })
    }
}

/// The digits before each unit; units may be missing but not out of order.
fn parts(text: &str, units: [char; 3]) -> Option<[&str; 3]> {
    let mut rest = text;
    let mut found = [""; 3];
    for (slot, unit) in found.iter_mut().zip(units) {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if rest[length..].starts_with(unit) {
            if length == 0 {
                return None;
            }
            *slot = &rest[..length];
            rest = &rest[length + unit.len_utf8()..];
        }
    }
    rest.is_empty().then_some(found)
}

/// Digits after a point as nanoseconds; what is finer is dropped.
pub(crate) fn fraction_nanos(digits: &str) -> Option<i128> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let kept = &digits[..digits.len().min(9)];
    let value: i128 = kept.parse().ok()?;
    Some(value * 10i128.pow(9 - kept.len() as u32))
}

/// `.5` for half a second; nothing for none.
pub(crate) fn format_fraction(nanos: u32) -> String {
    if nanos == 0 {
        return String::new();
    }
    format!(".{}", format!("{nanos:09}").trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        for (text, expected) in [
            ("P1Y2M3DT4H5M6.7S", "P1Y2M3DT4H5M6.7S"),
            ("P14M", "P1Y2M"),
            ("-PT90M", "-PT1H30M"),
            ("PT0S", "zero"),
            ("P1D", "P1D"),
            ("PT36H", "P1DT12H"),
            ("PT0.5S", "PT0.5S"),
        ] {
            assert_eq!(Duration::parse(text).unwrap().format("zero"), expected);
        }
        for text in ["", "P", "PT", "1Y", "P1S", "P1M1Y", "PT1.5M", "P-1D", "PTS", "P1YT", "PT.5S", "PT5.S"] {
            assert_eq!(Duration::parse(text), None, "{text}");
        }
        assert_eq!(Duration::parse("PT61.5S").unwrap().seconds_component().to_string(), "1.5");
    }
}
