//! `format-dateTime()` and its siblings: pictures such as `[D01].[M01].[Y0001] [H01]:[m01]`. Names are English.

use crate::error::{Result, XPathError};
use crate::eval::Args;
use crate::numbering;
use crate::value::datetime::format_offset;
use crate::value::{Atomic, AtomicType, DateTime, Sequence};

const MONTHS: [&str; 12] = [
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
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Wider output than this is a mistake in the picture.
const MAX_WIDTH: usize = 60;

pub(super) fn format_date_time(args: &Args<'_, '_>) -> Result<Sequence> {
    formatted(args, AtomicType::DateTime, "")
}

pub(super) fn format_date(args: &Args<'_, '_>) -> Result<Sequence> {
    formatted(args, AtomicType::Date, "HhPmsf")
}

pub(super) fn format_time(args: &Args<'_, '_>) -> Result<Sequence> {
    formatted(args, AtomicType::Time, "YMDdFWwCE")
}

fn formatted(args: &Args<'_, '_>, wanted: AtomicType, missing: &str) -> Result<Sequence> {
    let Some(Atomic::DateTime(value) | Atomic::Date(value) | Atomic::Time(value)) =
        super::dates::typed(args, 0, wanted)?
    else {
        return Ok(Sequence::Empty);
    };
    let picture = args.string(1)?;
    apply(value, &picture, missing).map(|text| Sequence::from(Atomic::from(text)))
}

fn invalid(picture: &str, why: &str) -> XPathError {
    XPathError::new("FOFD1340", format!("invalid picture `{picture}`: {why}"))
}

/// Formats by a picture; `missing` lists the components the value does not have.
fn apply(value: DateTime, picture: &str, missing: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = picture;
    while let Some(at) = rest.find(['[', ']']) {
        out.push_str(&rest[..at]);
        let mark = &rest[at..];
        if mark.starts_with("[[") || mark.starts_with("]]") {
            out.push_str(&mark[..1]);
            rest = &mark[2..];
            continue;
        }
        let end = mark.find(']').filter(|_| mark.starts_with('['));
        let Some(end) = end else { return Err(invalid(picture, "unbalanced bracket")) };
        let marker: String = mark[1..end].chars().filter(|c| !c.is_whitespace()).collect();
        let mut letters = marker.chars();
        let Some(letter) = letters.next() else { return Err(invalid(picture, "empty marker")) };
        if missing.contains(letter) {
            let message = format!("the value has no component `{letter}`");
            return Err(XPathError::new("FOFD1350", message));
        }
        component(&mut out, value, letter, letters.as_str()).map_err(|why| invalid(picture, &why))?;
        rest = &mark[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The modifiers behind the letter of a component.
struct Presentation<'p> {
    form: &'p str,
    ordinal: bool,
    width_min: Option<usize>,
    width_max: Option<usize>,
}

impl<'p> Presentation<'p> {
    fn parse(text: &'p str, default: &'p str) -> std::result::Result<Presentation<'p>, String> {
        let (form, width) = match text.rsplit_once(',') {
            Some((form, width)) => (form, Some(width)),
            None => (text, None),
        };
        let number = |text: &str| match text {
            "*" | "" => Ok(None),
            digits => match digits.parse::<usize>() {
                Ok(value) if value <= MAX_WIDTH => Ok(Some(value)),
                _ => Err(format!("invalid width `{digits}`")),
            },
        };
        let (width_min, width_max) = match width {
            None => (None, None),
            Some(width) => match width.split_once('-') {
                Some((min, max)) => (number(min)?, number(max)?),
                None => (number(width)?, None),
            },
        };
        let (form, ordinal) = match form.strip_suffix(['o', 't', 'c']) {
            Some(rest) if !rest.is_empty() => (rest, form.ends_with('o')),
            _ => (form, false),
        };
        let form = if form.is_empty() { default } else { form };
        if form.len() > MAX_WIDTH {
            return Err("too many digits".to_string());
        }
        Ok(Presentation { form, ordinal, width_min, width_max })
    }
}

fn component(out: &mut String, value: DateTime, letter: char, modifiers: &str) -> std::result::Result<(), String> {
    let digits = modifiers.chars().find_map(numbering::zero_of_digit);
    if let Some(zero) = digits.filter(|zero| *zero != '0') {
        return component_in_digits(out, value, letter, modifiers, zero);
    }
    let default = match letter {
        'm' | 's' => "01",
        'F' | 'P' | 'C' | 'E' => "n",
        'Z' | 'z' => "",
        _ => "1",
    };
    let shown = Presentation::parse(modifiers, default)?;
    match letter {
        // The era shows the sign.
        'Y' => year(out, i64::from(value.year).abs(), &shown),
        'M' if is_name(shown.form) => name(out, MONTHS[usize::from(value.month - 1) % 12], &shown),
        'M' => number(out, i64::from(value.month), &shown),
        'D' => number(out, i64::from(value.day), &shown),
        'd' => number(out, i64::from(value.day_of_year()), &shown),
        'F' if is_name(shown.form) => name(out, DAYS[usize::from(value.weekday() - 1) % 7], &shown),
        'F' => number(out, i64::from(value.weekday()), &shown),
        'W' => number(out, i64::from(value.week_of_year()), &shown),
        'w' => number(out, i64::from(value.week_of_month()), &shown),
        'H' => number(out, i64::from(value.hour), &shown),
        'h' => number(out, i64::from((value.hour + 11) % 12 + 1), &shown),
        'P' => name(out, if value.hour < 12 { "am" } else { "pm" }, &shown),
        'm' => number(out, i64::from(value.minute), &shown),
        's' => number(out, i64::from(value.second), &shown),
        'f' => fraction(out, value.nanos, &shown),
        'Z' | 'z' => zone(out, value, letter, &shown),
        'C' => name(out, "Gregorian", &shown),
        'E' => name(out, if value.year < 0 { "BC" } else { "AD" }, &shown),
        _ => return Err(format!("unknown component `{letter}`")),
    }
    Ok(())
}

/// A component in decimal digits of another script, by its zero.
fn component_in_digits(
    out: &mut String,
    value: DateTime,
    letter: char,
    modifiers: &str,
    zero: char,
) -> std::result::Result<(), String> {
    let ascii = |c: char| match numbering::zero_of_digit(c) {
        Some(own) if own == zero => char::from_digit(c as u32 - zero as u32, 10).unwrap_or(c),
        _ => c,
    };
    let mut text = String::new();
    component(&mut text, value, letter, &modifiers.chars().map(ascii).collect::<String>())?;
    let foreign = |c: char| c.to_digit(10).and_then(|digit| char::from_u32(zero as u32 + digit)).unwrap_or(c);
    out.extend(text.chars().map(foreign));
    Ok(())
}

fn is_name(form: &str) -> bool {
    matches!(form, "n" | "N" | "Nn")
}

fn name(out: &mut String, name: &str, shown: &Presentation<'_>) {
    let cased = match shown.form {
        "N" => name.to_uppercase(),
        "n" => name.to_lowercase(),
        _ => name.to_string(),
    };
    // Names are cut to three letters at least, the common abbreviation.
    let length = shown.width_max.map_or(cased.len(), |max| max.max(3.min(cased.len())));
    let cut: String = cased.chars().take(length).collect();
    out.push_str(&cut);
    for _ in cut.chars().count()..shown.width_min.unwrap_or(0) {
        out.push(' ');
    }
}

fn number(out: &mut String, value: i64, shown: &Presentation<'_>) {
    let digits = shown.form.chars().filter(char::is_ascii_digit).count();
    if digits == 0 {
        out.push_str(&numbering::format(value, shown.form, shown.ordinal));
        return;
    }
    let width = digits.max(shown.width_min.unwrap_or(0));
    let text = format!("{:0width$}", value.abs());
    if value < 0 {
        out.push('-');
    }
    out.push_str(&text);
    if shown.ordinal {
        out.push_str(numbering::ordinal_suffix(value));
    }
}

/// Two digits of a year are its last two.
fn year(out: &mut String, value: i64, shown: &Presentation<'_>) {
    let digits = shown.form.chars().filter(char::is_ascii_digit).count();
    let cut = match shown.width_max {
        Some(max) => Some(max),
        None if digits >= 2 && shown.width_min.is_none() => Some(digits),
        None => None,
    };
    let value = match cut {
        Some(digits @ 1..=9) if value.abs() >= 10i64.pow(digits as u32) => value.abs() % 10i64.pow(digits as u32),
        _ => value,
    };
    let width = shown.width_min.unwrap_or(0).max(match cut {
        Some(cut) => digits.min(cut),
        None => digits,
    });
    let padded = Presentation { width_min: Some(width), ..*shown };
    number(out, value, &padded);
}

/// Digits of a fraction are counted from the point, so they are cut on the right.
fn fraction(out: &mut String, nanos: u32, shown: &Presentation<'_>) {
    let places = shown.form.chars().filter(char::is_ascii_digit).count();
    let all = format!("{nanos:09}");
    let significant = all.trim_end_matches('0').len().max(1);
    let (min, max) = match (shown.width_min, shown.width_max) {
        (None, None) if places > 1 => (places, places),
        (min, max) => (min.unwrap_or(1), max.unwrap_or(9)),
    };
    let length = significant.clamp(min.min(max), max);
    out.push_str(&all[..length.min(9)]);
    for _ in 9..length {
        out.push('0');
    }
}

fn zone(out: &mut String, value: DateTime, letter: char, shown: &Presentation<'_>) {
    let Some(minutes) = value.zone_minutes() else { return };
    if letter == 'z' {
        out.push_str("GMT");
        if minutes == 0 {
            return;
        }
    }
    if shown.form == "Z" {
        out.push_str(&value.format_zone());
        return;
    }
    let full = format_offset(minutes);
    match shown.form {
        // Without a colon, and hours alone.
        "0000" | "0001" => out.push_str(&full.replace(':', "")),
        "0" | "1" => {
            let hours = full[1..3].trim_start_matches('0');
            out.push_str(&full[..1]);
            out.push_str(if hours.is_empty() { "0" } else { hours });
            if minutes % 60 != 0 {
                out.push_str(&full[3..]);
            }
        }
        "00" | "01" if minutes % 60 == 0 => out.push_str(&full[..3]),
        _ => out.push_str(&full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures() {
        let value = DateTime::parse_date_time("2026-03-09T14:05:07.25+05:30").unwrap();
        for (picture, expected) in [
            ("[Y0001]-[M01]-[D01]", "2026-03-09"),
            ("[Y,2-2][M01]", "2603"),
            ("[D1o] [MNn] [Y]", "9th March 2026"),
            ("[FNn,*-3], [D] [MN,3-3]", "Mon, 9 MAR"),
            ("[H01]:[m]:[s].[f001]", "14:05:07.250"),
            ("[h]:[m01] [P] [PN]", "2:05 pm PM"),
            ("[Z] [z] [Z0001]", "+05:30 GMT+05:30 +0530"),
            ("[[[D]]]", "[9]"),
            ("[d] [W] [w] [F1]", "68 11 2 1"),
            ("[YI] [Di] [DA]", "MMXXVI ix I"),
            ("[Dw]", "nine"),
            ("[DWwo]", "Ninth"),
            ("[D٠١]/[M١]/[Y٠٠٠١]", "٠٩/٣/٢٠٢٦"),
            ("[X]", "FOFD1340"),
            ("[D", "FOFD1340"),
            ("D]", "FOFD1340"),
            ("[]", "FOFD1340"),
        ] {
            let shown = apply(value, picture, "").unwrap_or_else(|error| error.code().to_string());
            assert_eq!(shown, expected, "{picture}");
        }
        assert_eq!(apply(value, "[H]", "H").unwrap_err().code(), "FOFD1350");
    }
}
