//! Cron expressions as Quartz reads them: six fields or seven, seconds first, Sunday is 1.

use std::time::Duration;

use chrono::{DateTime, Local, TimeZone};
use croner::Cron as Pattern;
use croner::parser::{CronParser, Seconds, Year};

/// A cron expression.
#[derive(Debug, Clone)]
pub(crate) struct Cron {
    pattern: Pattern,
}

impl Cron {
    /// Reads an expression; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Cron, String> {
        let wrong = |why: &str| format!("`{text}` is not a cron expression: {why}");
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let ([second, minute, hour, day, month, weekday], year) = match &fields[..] {
            [second, minute, hour, day, month, weekday] => ([*second, minute, hour, day, month, weekday], None),
            [second, minute, hour, day, month, weekday, year] => {
                ([*second, minute, hour, day, month, weekday], Some(*year))
            }
            other => return Err(wrong(&format!("it has {} fields, and Quartz reads 6 or 7", other.len()))),
        };
        if (day == "?") == (weekday == "?") {
            return Err(wrong("exactly one of day-of-month and day-of-week is `?`"));
        }
        let day = day.to_ascii_uppercase();
        if day.starts_with("L-") {
            return Err(wrong("days before the last day of a month (`L-3`) are not supported"));
        }
        let fields = [second, minute, hour, &day, month, weekday].map(|field| match field.strip_prefix('/') {
            // `/15` is `0/15`.
            Some(step) => format!("0/{step}"),
            None => field.to_ascii_uppercase(),
        });
        let fields: Vec<String> = fields.iter().enumerate().map(|(index, field)| unwrapped(field, index)).collect();
        let fields = fields.join(" ");
        let text = match year {
            Some(year) if year != "*" => format!("{fields} {year}"),
            _ => fields,
        };
        let parser = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Optional)
            .dom_and_dow(true)
            .alternative_weekdays(true)
            .build();
        let pattern = parser.parse(&text).map_err(|error| wrong(&error.to_string()))?;
        Ok(Cron { pattern })
    }

    /// How long it is from now to the next firing, in the time zone of the machine; `None` when it never fires again.
    pub(crate) fn next_pause(&self) -> Option<Duration> {
        let now = Local::now();
        let next = self.next_after(&now)?;
        Some((next - now).to_std().unwrap_or_default())
    }

    fn next_after<T: TimeZone>(&self, time: &DateTime<T>) -> Option<DateTime<T>> {
        self.pattern.find_next_occurrence(time, false).ok()
    }
}

/// The fields of an expression in their order: the first and last number, and the names from the first one on.
const FIELDS: [(u32, u32, &[&str]); 6] = [
    (0, 59, &[]),
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (1, 12, &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]),
    (1, 7, &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]),
];

/// A field without what croner does not read: `22-2` becomes `22-23,0-2`, `FRI-MON` becomes `6-7,1-2`, `5/10` becomes
/// `5-59/10`.
fn unwrapped(field: &str, index: usize) -> String {
    let (first, last, names) = FIELDS[index];
    let number = |text: &str| match names.iter().position(|name| *name == text) {
        Some(at) => Some(first + at as u32),
        None => text.parse::<u32>().ok(),
    };
    let part = |part: &str| {
        let (range, step) =
            part.split_once('/').map_or((part, String::new()), |(range, step)| (range, format!("/{step}")));
        if !step.is_empty() && number(range).is_some() {
            return format!("{range}-{last}{step}");
        }
        let bounds = range.split_once('-').and_then(|(from, to)| Some((number(from)?, number(to)?)));
        match bounds {
            Some((from, to)) if from > to => format!("{from}-{last}{step},{first}-{to}{step}"),
            _ => part.to_owned(),
        }
    };
    field.split(',').map(part).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;

    fn next(cron: &str, from: &str) -> String {
        let from: DateTime<Utc> = from.parse().unwrap();
        let cron = Cron::parse(cron).unwrap();
        cron.next_after(&from).map_or_else(|| "never".to_owned(), |next| next.format("%Y-%m-%dT%H:%M:%S").to_string())
    }

    #[test]
    fn expressions_fire_when_quartz_fires_them() {
        // 2026-11-22 is a Sunday.
        for (cron, expected) in [
            ("0/10 * * * * ?", "2026-11-22T10:00:10"),
            ("/15 * * * * ?", "2026-11-22T10:00:15"),
            ("0 0 12 * * ?", "2026-11-22T12:00:00"),
            ("0 15 10 ? * MON-FRI", "2026-11-23T10:15:00"),
            ("0 0 0 ? * 1", "2026-11-29T00:00:00"),
            ("0 0 0 ? * 2", "2026-11-23T00:00:00"),
            ("0 0 0 ? * 6L", "2026-11-27T00:00:00"),
            ("0 0 0 ? * 6#3", "2026-12-18T00:00:00"),
            ("0 0 0 L * ?", "2026-11-30T00:00:00"),
            ("0 0 0 15W * ?", "2026-12-15T00:00:00"),
            ("0 0 0 LW * ?", "2026-11-30T00:00:00"),
            ("0 0 12 1 1 ? 2028", "2028-01-01T12:00:00"),
            ("0 0 12 1 1 ? 2020", "never"),
            ("0 0 0 ? * FRI-MON", "2026-11-23T00:00:00"),
            ("0 0 22-2 * * ?", "2026-11-22T22:00:00"),
            ("0 5-45/10 * * * ?", "2026-11-22T10:05:00"),
            ("0 0 0 ? jan sun", "2027-01-03T00:00:00"),
        ] {
            assert_eq!(next(cron, "2026-11-22T10:00:00Z"), expected, "{cron}");
        }
    }

    #[test]
    fn what_quartz_refuses_is_refused() {
        for cron in ["", "* * * * *", "0 0 12 * * *", "0 0 12 ? * ?", "61 * * * * ?", "0 0 0 ? * FOO", "0 0 0 L-3 * ?"]
        {
            assert!(Cron::parse(cron).is_err(), "{cron}");
        }
    }
}
