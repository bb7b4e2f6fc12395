//! Formats of `__time`: patterns of Java's `SimpleDateFormat`, in the time zone of the machine.
use super::text::Mistake;
use chrono::format::{Item, StrftimeItems};
use chrono::{Local, Timelike};
use std::time::{SystemTime, UNIX_EPOCH};

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// Milliseconds since 1970, divided by this.
    UnixMs(u64),
    /// Parts in the order of the pattern.
    Pattern(Vec<TimePart>),
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimePart {
    Literal(String),
    /// Formatted by `chrono`.
    Field(&'static str),
    Milliseconds(usize),
}

/// Names that JMeter has for patterns.
const ALIASES: [(&str, &str); 3] = [("YMD", "yyyyMMdd"), ("HMS", "HHmmss"), ("YMDHMS", "yyyyMMdd-HHmmss")];

impl TimeFormat {
    /// Compiles a format; empty is milliseconds since 1970.
    pub fn parse(text: &str) -> Result<TimeFormat, Mistake> {
        let text = ALIASES.iter().find(|(name, _)| *name == text).map_or(text, |(_, pattern)| pattern);
        if text.is_empty() {
            return Ok(TimeFormat::UnixMs(1));
        }
        if let Some(divisor) = text.strip_prefix('/') {
            let divisor = divisor.trim().parse().ok().filter(|divisor| *divisor > 0);
            return divisor.map(TimeFormat::UnixMs).ok_or_else(|| format!("`{text}` is not a divisor"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if letter == '\'' {
                let (literal, after) = quoted(rest);
                parts.push(TimePart::Literal(literal));
                rest = after;
                continue;
            }
            let count = rest.chars().take_while(|other| *other == letter).count();
            let (_, after) = rest.split_at(count * letter.len_utf8());
            rest = after;
            if !letter.is_ascii_alphabetic() {
                parts.push(TimePart::Literal(letter.to_string().repeat(count)));
                continue;
            }
            parts.push(field(letter, count).ok_or_else(|| {
                format!("`{}` of the time format `{text}` is not supported", letter.to_string().repeat(count))
            })?);
        }
        Ok(TimeFormat::Pattern(parts))
    }

    /// The current time.
    pub fn now(&self) -> String {
        let parts = match self {
            TimeFormat::UnixMs(divisor) => return (unix_ms() / u128::from(*divisor)).to_string(),
            TimeFormat::Pattern(parts) => parts,
        };
        let now = Local::now();
        let mut text = String::new();
        for part in parts {
            match part {
                TimePart::Literal(literal) => text.push_str(literal),
                TimePart::Field(format) => text.push_str(&now.format(format).to_string()),
                TimePart::Milliseconds(digits) => {
                    text.push_str(&format!("{:0digits$}", now.nanosecond() / 1_000_000 % 1000));
                }
            }
        }
        text
    }
}

/// A literal in apostrophes at the start of the text, and what follows; two apostrophes are one.
fn quoted(text: &str) -> (String, &str) {
    let after = text.strip_prefix('\'').unwrap_or(text);
    if let Some(after) = after.strip_prefix('\'') {
        return ("'".to_owned(), after);
    }
    let (mut literal, mut rest) = (String::new(), after);
    while let Some((before, after)) = rest.split_once('\'') {
        literal.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                literal.push('\'');
                rest = more;
            }
            None => return (literal, after),
        }
    }
    literal.push_str(rest);
    (literal, "")
}

fn field(letter: char, count: usize) -> Option<TimePart> {
    let format = match (letter, count) {
        ('y', 2) => "%y",
        ('y', _) => "%Y",
        ('M', 1) => "%-m",
        ('M', 2) => "%m",
        ('M', 3) => "%b",
        ('M', _) => "%B",
        ('d', 1) => "%-d",
        ('d', 2) => "%d",
        ('D', 1) => "%-j",
        ('D', 3) => "%j",
        ('H', 1) => "%-H",
        ('H', 2) => "%H",
        ('h', 1) => "%-I",
        ('h', 2) => "%I",
        ('m', 1) => "%-M",
        ('m', 2) => "%M",
        ('s', 1) => "%-S",
        ('s', 2) => "%S",
        ('S', digits @ 1..=9) => return Some(TimePart::Milliseconds(digits)),
        ('a', _) => "%p",
        ('E', 1..=3) => "%a",
        ('E', _) => "%A",
        ('Z', _) => "%z",
        ('X', 3) => "%:z",
        _ => return None,
    };
    debug_assert!(StrftimeItems::new(format).all(|item| item != Item::Error));
    Some(TimePart::Field(format))
}

/// Milliseconds since 1970.
pub fn unix_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}
