//! The partial dates: `xs:gYear`, `xs:gYearMonth`, `xs:gMonth`, `xs:gMonthDay`, `xs:gDay`.

use super::super::AtomicType;
use super::DateTime;
use super::lexical::{parse_date_part, parse_zone};

/// What stands in for the parts that a value does not have: a leap year, so that `--02-29` exists, and its first days.
const FILL_YEAR: &str = "1972";
const FILL_MONTH: &str = "-01";
const FILL_DAY: &str = "-01";

impl DateTime {
    /// From the lexical form of one of the partial dates.
    pub fn parse_gregorian(text: &str, kind: AtomicType) -> Option<DateTime> {
        let zone_at = zone_start(text);
        let (value, zone) = text.split_at(zone_at);
        let date = match kind {
            AtomicType::GYear => format!("{value}{FILL_MONTH}{FILL_DAY}"),
            AtomicType::GYearMonth => format!("{value}{FILL_DAY}"),
            AtomicType::GMonth => format!("{FILL_YEAR}{}{FILL_DAY}", value.strip_prefix('-')?),
            AtomicType::GMonthDay => format!("{FILL_YEAR}{}", value.strip_prefix('-')?),
            AtomicType::GDay => format!("{FILL_YEAR}{FILL_MONTH}{}", value.strip_prefix("--")?),
            _ => return None,
        };
        let (date, rest) = parse_date_part(&date)?;
        if !rest.is_empty() {
            return None;
        }
        Some(date.with_zone(parse_zone(zone)?))
    }

    /// In the lexical form of one of the partial dates.
    pub fn format_gregorian(self, kind: AtomicType) -> String {
        let date = self.date_digits();
        let year_end = date.len() - "-01-01".len();
        let (year, month, day) = (&date[..year_end], &date[year_end..year_end + 3], &date[year_end + 3..]);
        let zone = self.format_zone();
        match kind {
            AtomicType::GYear => format!("{year}{zone}"),
            AtomicType::GYearMonth => format!("{year}{month}{zone}"),
            AtomicType::GMonth => format!("-{month}{zone}"),
            AtomicType::GMonthDay => format!("-{month}{day}{zone}"),
            _ => format!("--{day}{zone}"),
        }
    }

    /// Only the parts that a partial date has.
    #[must_use]
    pub fn to_gregorian(self, kind: AtomicType) -> DateTime {
        let text = self.date().format_gregorian(kind);
        DateTime::parse_gregorian(&text, kind).unwrap_or(self)
    }
}

/// Where the time zone begins, or the end.
fn zone_start(text: &str) -> usize {
    if text.ends_with('Z') {
        return text.len() - 1;
    }
    let start = text.len().saturating_sub("+00:00".len());
    let is_zone = text.is_char_boundary(start) && text[start..].starts_with(['+', '-']) && text[start..].contains(':');
    if is_zone { start } else { text.len() }
}
