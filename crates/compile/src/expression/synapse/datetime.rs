//! Dates by the patterns of Java's `DateTimeFormatter`, as far as expressions use them.

use penstock_engine::clock::{MONTHS, WEEKDAYS, civil, days_of};

/// A date, a time, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moment {
    /// Days since 1970.
    date: Option<i64>,
    /// Nanoseconds since midnight.
    time: Option<i64>,
}

const SECOND: i64 = 1_000_000_000;
const DAY_MS: i64 = 86_400_000;

/// One piece of a pattern.
enum Piece {
    Field(char, usize),
    Text(String),
}

/// The pieces of a pattern; `None` for unknown letters.
fn pieces(pattern: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        if character.is_ascii_alphabetic() {
            let mut width = 1;
            while characters.next_if_eq(&character).is_some() {
                width += 1;
            }
            pieces.push(Piece::Field(character, width));
        } else if character == '\'' {
            let mut text = String::new();
            loop {
                match characters.next()? {
                    '\'' if characters.next_if_eq(&'\'').is_some() => text.push('\''),
                    '\'' => break,
                    other => text.push(other),
                }
            }
            // Two quotes that enclose nothing are one quote.
            pieces.push(Piece::Text(if text.is_empty() { "'".to_owned() } else { text }));
        } else if matches!(character, '{' | '}' | '#' | '[' | ']') {
            return None;
        } else {
            pieces.push(Piece::Text(character.to_string()));
        }
    }
    Some(pieces)
}

impl Moment {
    /// The date and time of day that local clocks show.
    pub fn of_local_ms(local_ms: i64) -> Moment {
        Moment { date: Some(local_ms.div_euclid(DAY_MS)), time: Some(local_ms.rem_euclid(DAY_MS) * 1_000_000) }
    }

    /// The text of a pattern; `None` when the moment lacks a part of the pattern.
    pub fn format(&self, pattern: &str) -> Option<String> {
        let mut out = String::new();
        for piece in pieces(pattern)? {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Field(letter, width) => self.format_field(&mut out, letter, width)?,
            }
        }
        Some(out)
    }

    fn format_field(&self, out: &mut String, letter: char, width: usize) -> Option<()> {
        let number = match letter {
            'y' | 'u' | 'M' | 'L' | 'd' | 'D' | 'E' | 'e' | 'Q' => {
                let days = self.date?;
                let (year, month, day) = civil(days);
                match letter {
                    'y' | 'u' if width == 2 => year.rem_euclid(100),
                    'y' | 'u' => year,
                    'M' | 'L' if width == 3 => return push(out, &MONTHS[month as usize - 1][..3]),
                    'M' | 'L' if width == 4 => return push(out, MONTHS[month as usize - 1]),
                    'M' | 'L' => month.into(),
                    'Q' => month.div_ceil(3).into(),
                    'd' => day.into(),
                    'D' => days - days_of(year, 1, 1) + 1,
                    _ => {
                        let name = WEEKDAYS[days.rem_euclid(7) as usize];
                        return push(out, if width == 4 { name } else { &name[..3] });
                    }
                }
            }
            _ => {
                let nanos = self.time?;
                let hour = nanos / (3600 * SECOND);
                match letter {
                    'H' => hour,
                    'k' => (hour + 23) % 24 + 1,
                    'h' => (hour + 11) % 12 + 1,
                    'K' => hour % 12,
                    'm' => nanos / (60 * SECOND) % 60,
                    's' => nanos / SECOND % 60,
                    'n' => nanos % SECOND,
                    'A' => nanos / 1_000_000,
                    'a' => return push(out, if hour < 12 { "AM" } else { "PM" }),
                    'S' if width <= 9 => return push(out, &format!("{:09}", nanos % SECOND)[..width]),
                    _ => return None,
                }
            }
        };
        push(out, &format!("{number:0width$}"))
    }
}

fn push(out: &mut String, text: &str) -> Option<()> {
    out.push_str(text);
    Some(())
}

/// Reads a date, a time or both by a pattern; `None` when the text is not one.
pub(super) fn parse(text: &str, pattern: &str) -> Option<Moment> {
    let pieces = pieces(pattern)?;
    let mut fields = Fields::default();
    let mut rest = text;
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
            Piece::Field(letter, width) => {
                let adjacent = matches!(pieces.get(index + 1), Some(Piece::Field(..)));
                rest = fields.read(rest, *letter, *width, adjacent)?;
            }
        }
    }
    if rest.is_empty() { fields.moment() } else { None }
}

#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    hour: Option<i64>,
    half_day_hour: Option<i64>,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    nano: Option<i64>,
}

impl Fields {
    fn read<'t>(&mut self, text: &'t str, letter: char, width: usize, adjacent: bool) -> Option<&'t str> {
        let names: Option<&[&str]> = match (letter, width) {
            ('M' | 'L', 3..) => Some(&MONTHS),
            ('E', _) => Some(&WEEKDAYS),
            _ => None,
        };
        if let Some(names) = names {
            let short = |name: &&str| if width == 4 { name.len() } else { 3 };
            let index = names.iter().position(|name| text.starts_with(&name[..short(name)]))?;
            if letter != 'E' {
                self.month = Some(index as i64 + 1);
            }
            return text.get(short(&names[index])..);
        }
        if letter == 'a' {
            self.afternoon = Some(text.get(..2)?.eq_ignore_ascii_case("PM"));
            return text.get(2..);
        }
        let most = match (letter, width) {
            ('S', _) => width,
            (_, 1) => 19,
            ('y' | 'u', 4..) if !adjacent => 19,
            _ => width,
        };
        let length = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if length < width {
            return None;
        }
        let (digits, rest) = text.split_at(length);
        let number: i64 = digits.parse().ok()?;
        match letter {
            'y' | 'u' if width == 2 => self.year = Some(2000 + number),
            'y' | 'u' => self.year = Some(number),
            'M' | 'L' => self.month = Some(number),
            'd' => self.day = Some(number),
            'H' => self.hour = Some(number),
            'k' => self.hour = Some(number % 24),
            'h' => self.half_day_hour = Some(number % 12),
            'K' => self.half_day_hour = Some(number),
            'm' => self.minute = Some(number),
            's' => self.second = Some(number),
            'S' => self.nano = Some(format!("{digits:0<9}").get(..9)?.parse().ok()?),
            _ => return None,
        }
        Some(rest)
    }

    fn moment(&self) -> Option<Moment> {
        let date = match (self.year, self.month, self.day) {
            (Some(year), Some(month), Some(day)) => {
                let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
                let days = (0..=999_999).contains(&year).then(|| days_of(year, month, day))?;
                // A day that does not exist comes out as another.
                (civil(days) == (year, month, day)).then_some(Some(days))?
            }
            (None, None, None) => None,
            _ => return None,
        };
        let hour = match (self.hour, self.half_day_hour, self.afternoon) {
            (Some(hour), ..) => Some(hour),
            (None, Some(hour), Some(afternoon)) => Some(hour + if afternoon { 12 } else { 0 }),
            (None, Some(_), None) => return None,
            _ => None,
        };
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        let time = match hour {
            Some(hour @ 0..24) if minute < 60 && second < 60 => {
                Some((hour * 3600 + minute * 60 + second) * SECOND + self.nano.unwrap_or(0))
            }
            Some(_) => return None,
            None if self.minute.or(self.second).or(self.nano).is_some() => return None,
            None => None,
        };
        if date.is_none() && time.is_none() { None } else { Some(Moment { date, time }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_change_their_pattern() {
        for (text, from, to, expected) in [
            ("29/09/1988", "dd/MM/yyyy", "yyyy-MM-dd", Some("1988-09-29")),
            ("1988-9-5", "yyyy-M-d", "d MMMM uuuu, EEEE", Some("5 September 1988, Monday")),
            ("20260228T235959.5", "yyyyMMdd'T'HHmmss.S", "h:mm a 'o''clock' SSS", Some("11:59 PM o'clock 500")),
            ("11:30 PM", "hh:mm a", "HH.mm", Some("23.30")),
            ("12:30 AM", "hh:mm a", "HH.mm", Some("00.30")),
            ("2026-02-30", "yyyy-MM-dd", "dd", None),
            ("2026-02-28", "yyyy-MM-dd", "HH", None),
            ("25:00", "HH:mm", "HH", None),
            ("10:00x", "HH:mm", "HH", None),
            ("10:00", "HH:mm", "yyyy", None),
            ("5 Feb 24", "d MMM yy", "yyyy/MM/dd D Q", Some("2024/02/05 36 1")),
            ("x", "'x", "d", None),
        ] {
            let moment = parse(text, from);
            assert_eq!(moment.and_then(|moment| moment.format(to)).as_deref(), expected, "{text} {from} {to}");
        }
        assert_eq!(
            Moment::of_local_ms(-1).format("uuuu-MM-dd HH:mm:ss.SSS").as_deref(),
            Some("1969-12-31 23:59:59.999")
        );
    }
}
