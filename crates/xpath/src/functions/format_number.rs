//! `format-number()`: pictures such as `#,##0.00;(#)` and the decimal formats they are read with.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ast::Name;
use crate::code::Prepared;
use crate::error::{Result, XPathError};
use crate::eval::Args;

/// The characters of pictures and of results (`xsl:decimal-format`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the attributes of xsl:decimal-format")]
pub struct DecimalFormat {
    pub decimal_separator: char,
    pub grouping_separator: char,
    pub percent: char,
    pub per_mille: char,
    pub zero_digit: char,
    pub digit: char,
    pub pattern_separator: char,
    pub minus_sign: char,
    pub infinity: String,
    pub nan: String,
}

impl Default for DecimalFormat {
    fn default() -> Self {
        DecimalFormat {
            decimal_separator: '.',
            grouping_separator: ',',
            percent: '%',
            per_mille: '\u{2030}',
            zero_digit: '0',
            digit: '#',
            pattern_separator: ';',
            minus_sign: '-',
            infinity: "Infinity".to_string(),
            nan: "NaN".to_string(),
        }
    }
}

impl DecimalFormat {
    fn digit_value(&self, c: char) -> Option<u32> {
        let value = u32::from(c).checked_sub(u32::from(self.zero_digit))?;
        (value < 10).then_some(value)
    }

    fn is_active(&self, c: char) -> bool {
        c == self.decimal_separator || c == self.grouping_separator || c == self.digit || self.digit_value(c).is_some()
    }

    /// A digit of a result.
    fn digit_char(&self, digit: u8) -> char {
        char::from_u32(u32::from(self.zero_digit) + u32::from(digit - b'0')).unwrap_or(char::from(digit))
    }
}

/// A picture, read.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    format: Arc<DecimalFormat>,
    positive: SubPicture,
    negative: Option<SubPicture>,
}

#[derive(Debug, Clone, Default)]
struct SubPicture {
    prefix: String,
    suffix: String,
    /// 100 with a percent sign, 1000 with a per-mille sign.
    factor: u16,
    integer_min: usize,
    fraction_min: usize,
    fraction_max: usize,
    /// Digits to the right of each separator in the integer part, from the right.
    groups: Vec<usize>,
    /// Digits to the left of each separator in the fraction.
    fraction_groups: Vec<usize>,
}

impl Picture {
    pub(crate) fn parse(picture: &str, format: Arc<DecimalFormat>) -> Result<Picture> {
        let invalid = |why: &str| XPathError::new("FODF1310", format!("invalid picture `{picture}`: {why}"));
        let mut parts = picture.split(format.pattern_separator);
        let positive = parts.next().unwrap_or("");
        let negative = parts.next();
        if parts.next().is_some() {
            return Err(invalid("more than two parts"));
        }
        let positive = SubPicture::parse(positive, &format).map_err(invalid)?;
        let negative = match negative {
            None => None,
            Some(text) => Some(SubPicture::parse(text, &format).map_err(invalid)?),
        };
        Ok(Picture { format, positive, negative })
    }

    /// With `compat` the rules of XSLT 1.0: a negative part gives prefix and suffix only, groups are of equal size.
    pub(crate) fn format(&self, value: f64, compat: bool) -> String {
        if value.is_nan() {
            return self.format.nan.clone();
        }
        let negative = value.is_sign_negative() && value != 0.0;
        self.assemble(negative, compat, |factor| {
            value.is_finite().then(|| (value.abs() * f64::from(factor)).to_string())
        })
    }

    /// A decimal number with all its digits, as written in a stylesheet.
    fn format_exact(&self, decimal: &str) -> String {
        let (digits, negative) = decimal.strip_prefix('-').map_or((decimal, false), |digits| (digits, true));
        self.assemble(negative, false, |factor| Some(shifted(digits, factor.ilog10() as usize)))
    }

    /// The number between prefix and suffix; `digits` gets the factor and yields nothing for infinity.
    fn assemble(&self, negative: bool, compat: bool, digits: impl FnOnce(u16) -> Option<String>) -> String {
        let format = &self.format;
        let sub = if negative { self.negative.as_ref().unwrap_or(&self.positive) } else { &self.positive };
        let mut result = String::new();
        if negative && self.negative.is_none() {
            result.push(format.minus_sign);
        }
        result.push_str(&sub.prefix);
        let layout = if compat { &self.positive } else { sub };
        match digits(layout.factor) {
            Some(decimal) => layout.push_digits(&mut result, &decimal, format, compat),
            None => result.push_str(&format.infinity),
        }
        result.push_str(&sub.suffix);
        result
    }
}

impl SubPicture {
    fn parse(text: &str, format: &DecimalFormat) -> std::result::Result<SubPicture, &'static str> {
        let chars: Vec<char> = text.chars().collect();
        let first = chars.iter().position(|c| format.is_active(*c)).ok_or("no digits")?;
        let last = chars.iter().rposition(|c| format.is_active(*c)).unwrap_or(first);
        let active = &chars[first..=last];
        if active.iter().any(|c| !format.is_active(*c)) {
            return Err("text between digits");
        }
        let mut parts = active.split(|c| *c == format.decimal_separator);
        let (integer, fraction) = (parts.next().unwrap_or(&[]), parts.next().unwrap_or(&[]));
        if parts.next().is_some() {
            return Err("more than one decimal separator");
        }
        let is_digit = |c: &&char| format.digit_value(**c).is_some();
        let is_place = |c: &&char| **c != format.grouping_separator;
        let passive: String = chars[..first].iter().chain(&chars[last + 1..]).collect();
        let factor = if passive.contains(format.percent) {
            100
        } else if passive.contains(format.per_mille) {
            1000
        } else {
            1
        };
        if passive.chars().filter(|c| *c == format.percent || *c == format.per_mille).count() > 1 {
            return Err("more than one percent or per-mille sign");
        }
        // Optional digits stand outside of those that are always written.
        let optional_after_digit = |places: &mut dyn Iterator<Item = &char>| {
            places.skip_while(|c| format.digit_value(**c).is_none()).any(|c| *c == format.digit)
        };
        if optional_after_digit(&mut integer.iter()) || optional_after_digit(&mut fraction.iter().rev()) {
            return Err("an optional digit between digits");
        }
        let mut sub = SubPicture {
            prefix: chars[..first].iter().collect(),
            suffix: chars[last + 1..].iter().collect(),
            factor,
            integer_min: integer.iter().filter(is_digit).count(),
            fraction_min: fraction.iter().filter(is_digit).count(),
            fraction_max: fraction.iter().filter(is_place).count(),
            groups: Vec::new(),
            fraction_groups: Vec::new(),
        };
        if integer.iter().filter(is_place).count() + sub.fraction_max == 0 {
            return Err("no digits");
        }
        if sub.integer_min == 0 && sub.fraction_max == 0 {
            sub.integer_min = 1;
        }
        for (index, c) in integer.iter().enumerate() {
            if *c == format.grouping_separator {
                sub.groups.push(integer[index..].iter().filter(is_place).count());
            }
        }
        sub.groups.reverse();
        sub.groups.retain(|group| *group > 0);
        for (index, c) in fraction.iter().enumerate() {
            if *c == format.grouping_separator {
                sub.fraction_groups.push(fraction[..index].iter().filter(is_place).count());
            }
        }
        Ok(sub)
    }

    /// Whether a separator stands to the left of that many integer digits.
    fn separates(&self, digits_right: usize, compat: bool) -> bool {
        match self.groups.as_slice() {
            [] => false,
            [first, ..] if compat => digits_right.is_multiple_of(*first),
            // Separators at equal distances go on beyond the picture.
            [first, rest @ ..] if rest.iter().enumerate().all(|(index, group)| *group == first * (index + 2)) => {
                digits_right.is_multiple_of(*first)
            }
            groups => groups.contains(&digits_right),
        }
    }

    fn push_digits(&self, out: &mut String, decimal: &str, format: &DecimalFormat, compat: bool) {
        let (integer, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
        let (integer, fraction) = round_half_even(integer, fraction, self.fraction_max);
        let integer = integer.trim_start_matches('0');
        let padding = self.integer_min.saturating_sub(integer.len());
        let digits = std::iter::repeat_n(b'0', padding).chain(integer.bytes());
        let total = padding + integer.len();
        for (index, digit) in digits.enumerate() {
            let right = total - index;
            if index > 0 && self.separates(right, compat) {
                out.push(format.grouping_separator);
            }
            out.push(format.digit_char(digit));
        }
        let significant = fraction.trim_end_matches('0').len().max(self.fraction_min);
        if significant == 0 {
            return;
        }
        out.push(format.decimal_separator);
        for index in 0..significant {
            if index > 0 && self.fraction_groups.contains(&index) {
                out.push(format.grouping_separator);
            }
            out.push(format.digit_char(fraction.as_bytes().get(index).copied().unwrap_or(b'0')));
        }
    }
}

/// A decimal with its point moved to the right.
fn shifted(decimal: &str, places: usize) -> String {
    let (integer, fraction) = decimal.split_once('.').unwrap_or((decimal, ""));
    if places == 0 {
        return decimal.to_owned();
    }
    let mut digits = format!("{integer}{fraction}");
    let point = integer.len() + places;
    while digits.len() < point {
        digits.push('0');
    }
    digits.insert(point, '.');
    digits
}

/// Cuts a decimal to some digits after the point; halves go to the even neighbour.
fn round_half_even(integer: &str, fraction: &str, digits: usize) -> (String, String) {
    if fraction.len() <= digits {
        return (integer.to_string(), fraction.to_string());
    }
    let mut kept: Vec<u8> = integer.bytes().chain(fraction.bytes().take(digits)).collect();
    let dropped = &fraction.as_bytes()[digits..];
    let is_half = dropped[0] == b'5' && dropped[1..].iter().all(|digit| *digit == b'0');
    let is_odd = kept.last().is_some_and(|digit| digit % 2 == 1);
    if dropped[0] > b'5' || (dropped[0] == b'5' && (!is_half || is_odd)) {
        let mut at = kept.len();
        loop {
            if at == 0 {
                kept.insert(0, b'1');
                break;
            }
            at -= 1;
            if kept[at] == b'9' {
                kept[at] = b'0';
            } else {
                kept[at] += 1;
                break;
            }
        }
    }
    let text: String = kept.into_iter().map(char::from).collect();
    let (whole, rest) = text.split_at(text.len() - digits);
    (whole.to_string(), rest.to_string())
}

pub(super) fn format_number<'a>(args: &Args<'_, 'a>) -> Result<Cow<'a, str>> {
    let compat = args.compat();
    let exact = if compat { None } else { args.atomic(0)? };
    let value = match (&exact, compat) {
        (_, true) => args.number(0)?,
        (Some(atomic), _) => atomic.to_number(false),
        (None, _) => f64::NAN,
    };
    let formatted = |picture: &Picture| match &exact {
        Some(number) if number.is_exact_number() => picture.format_exact(&number.to_text(false)),
        _ => picture.format(value, compat),
    };
    if let Some(Prepared::Picture(picture)) = args.prepared {
        return Ok(Cow::Owned(formatted(picture)));
    }
    let picture = args.string(1)?;
    let format = match args.optional_string(2)? {
        None => find(args, None)?,
        Some(name) => find(args, Some(&name))?,
    };
    Picture::parse(&picture, format).map(|picture| Cow::Owned(formatted(&picture)))
}

/// A format whose name was computed: prefixes cannot be resolved any more, so the local name decides.
fn find(args: &Args<'_, '_>, lexical: Option<&str>) -> Result<Arc<DecimalFormat>> {
    let local = lexical.map(|name| name.rsplit(':').next().unwrap_or(name));
    let formats = &args.ev.program.decimal_formats;
    let found = formats.iter().rev().find(|(name, _)| {
        let name: &Option<Name> = name;
        name.as_ref().map(|name| &*name.local) == local
    });
    match (found, lexical) {
        (Some((_, format)), _) => Ok(Arc::clone(format)),
        (None, None) => Ok(Arc::default()),
        (None, Some(name)) => Err(XPathError::new("FODF1280", format!("unknown decimal format `{name}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, picture: &str, expected: &str) {
        let shown = match Picture::parse(picture, Arc::default()) {
            Ok(picture) => picture.format(value, false),
            Err(error) => error.code().to_string(),
        };
        assert_eq!(shown, expected, "{value} as {picture}");
    }

    #[test]
    fn pictures() {
        for (value, picture, expected) in [
            (1234.5, "#,##0.00", "1,234.50"),
            (1234567.891, "#,###.##", "1,234,567.89"),
            (0.5, "#.#", ".5"),
            (0.5, "0.#", "0.5"),
            (0.0, "#", "0"),
            (5.0, "000", "005"),
            (2.5, "0", "2"),
            (3.5, "0", "4"),
            (99.995, "0.00", "100.00"),
            (-7.0, "0", "-7"),
            (-7.0, "0;(0)", "(7)"),
            (0.256, "0%", "26%"),
            (0.256, "0\u{2030}", "256\u{2030}"),
            (-1.5, "$#,##0.0", "-$1.5"),
            (f64::NAN, "0", "NaN"),
            (f64::NEG_INFINITY, "0", "-Infinity"),
            (1234567.0, "#,##,##0", "12,34,567"),
            (0.123456, "0.000,000", "0.123,456"),
            (1e20, "#,##0", "100,000,000,000,000,000,000"),
            (1.0, "", "FODF1310"),
            (1.0, "0;0;0", "FODF1310"),
            (1.0, "0.0.0", "FODF1310"),
            (1.0, "0a0", "FODF1310"),
            (1.0, "0#", "FODF1310"),
            (1.0, "0.#0", "FODF1310"),
            (1.0, "0%\u{2030}", "FODF1310"),
            (1.0, "abc", "FODF1310"),
        ] {
            check(value, picture, expected);
        }
    }

    #[test]
    fn all_digits_of_exact_numbers() {
        for (decimal, picture, expected) in [
            ("12345678901234567890.12", "#,##0.000", "12,345,678,901,234,567,890.120"),
            ("123456789012345678", "0", "123456789012345678"),
            ("-0.07", "0%", "-7%"),
            ("1.5", "0\u{2030}", "1500\u{2030}"),
            ("2.5", "0", "2"),
        ] {
            let picture = Picture::parse(picture, Arc::default()).unwrap();
            assert_eq!(picture.format_exact(decimal), expected);
        }
    }

    #[test]
    fn other_characters() {
        let format = DecimalFormat {
            decimal_separator: ',',
            grouping_separator: '.',
            zero_digit: '\u{0660}',
            ..DecimalFormat::default()
        };
        let picture = Picture::parse("#.##\u{0660},\u{0660}", Arc::new(format)).unwrap();
        assert_eq!(picture.format(1234.5, false), "\u{0661}.\u{0662}\u{0663}\u{0664},\u{0665}");
    }
}
