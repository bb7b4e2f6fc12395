//! Turning the integers of `xsl:number` into text: format tokens, letters, roman numerals, other digits, grouping.

use penstock_xpath::numbering::{self, ordinal_suffix, zero_of_digit};

/// A parsed `format` attribute: `prefix (token separator)* suffix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberFormat {
    prefix: String,
    tokens: Vec<Token>,
    suffix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    /// What stands between the previous number and this one.
    separator: String,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Decimal digits that start at the given zero, at least so many of them.
    Decimal {
        zero: char,
        width: usize,
        ordinal: bool,
    },
    /// English words: `w`, `W` or `Ww`.
    Words {
        form: &'static str,
        ordinal: bool,
    },
    /// A set of numbers that are one character each.
    Enclosed(&'static [EnclosedRun]),
    /// Chinese numerals as Japanese writes them: 十二, 三百, 一万.
    Ideographic,
    /// An alphabetic sequence, by its letters.
    Letters(&'static str),
    Roman {
        upper: bool,
    },
}

const LATIN_UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const LATIN_LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const GREEK_LOWER: &str = "αβγδεζηθικλμνξοπρςστυφχψω";
const GREEK_UPPER: &str = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ";
const CYRILLIC_LOWER: &str = "абвгдежзиклмнопрстуфхцчшщыэюя";
const CYRILLIC_UPPER: &str = "АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЫЭЮЯ";
const HEBREW: &str = "אבגדהוזחטיכלמנסעפצקרשת";
const HIRAGANA: &str = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん";
const KATAKANA: &str = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン";

/// Numbers that are consecutive characters: the first number, its character, the last number.
type EnclosedRun = (u64, char, u64);

/// The sets of enclosed and dotted numbers of Unicode. The first run of a set contains the one that names it.
const ENCLOSED: &[&[EnclosedRun]] = &[
    &[(1, '①', 20), (0, '⓪', 0), (21, '㉑', 35), (36, '㊱', 50)],
    &[(1, '⑴', 20)],
    &[(1, '⒈', 20), (0, '🄀', 0)],
    &[(1, '⓵', 10)],
    &[(1, '❶', 10), (0, '⓿', 0), (11, '⓫', 20)],
    &[(1, '➀', 10)],
    &[(1, '➊', 10)],
    &[(1, '㈠', 10)],
    &[(1, '㊀', 10)],
];

/// Chinese digits; zero is written only alone.
const IDEOGRAPHIC_DIGITS: [char; 10] = ['〇', '一', '二', '三', '四', '五', '六', '七', '八', '九'];

/// Larger numbers have no customary name.
const IDEOGRAPHIC_MAX: u64 = 9_999_999_999_999_999;

/// Roman numerals are written up to this number, decimals above.
const ROMAN_MAX: u64 = 4999;

/// More leading zeros than this are an attack, not a format.
const WIDTH_MAX: usize = 100;

impl NumberFormat {
    /// Reads a `format` attribute (XSLT 1.0 §7.7.1). `letter_value` is that of the attribute.
    pub fn parse(format: &str, letter_value: &str, ordinal: bool) -> Self {
        let mut tokens: Vec<Token> = Vec::new();
        let mut prefix = String::new();
        let mut between = String::new();
        let mut rest = format;
        while let Some(first) = rest.chars().next() {
            let alphanumeric = first.is_alphanumeric();
            let end = rest.find(|c: char| c.is_alphanumeric() != alphanumeric).unwrap_or(rest.len());
            let (run, tail) = rest.split_at(end);
            rest = tail;
            if !alphanumeric {
                between = run.to_owned();
                continue;
            }
            let separator = if tokens.is_empty() {
                prefix = std::mem::take(&mut between);
                ".".to_owned()
            } else {
                std::mem::take(&mut between)
            };
            tokens.push(Token { separator, style: Style::parse(run, letter_value, ordinal) });
        }
        if tokens.is_empty() {
            // Without a format token the punctuation is both prefix and suffix.
            let style = Style::parse("1", letter_value, ordinal);
            tokens.push(Token { separator: ".".into(), style });
            prefix = between.clone();
        }
        NumberFormat { prefix, tokens, suffix: between }
    }

    /// Appends the numbers in this format.
    pub fn write(&self, numbers: &[u64], grouping: Option<(&str, usize)>, out: &mut String) {
        out.push_str(&self.prefix);
        for (at, number) in numbers.iter().enumerate() {
            let token = self.tokens.get(at).unwrap_or(&self.tokens[self.tokens.len() - 1]);
            if at > 0 {
                out.push_str(&token.separator);
            }
            token.style.write(*number, grouping, out);
        }
        out.push_str(&self.suffix);
    }
}

impl Style {
    fn parse(token: &str, letter_value: &str, ordinal: bool) -> Style {
        let decimal = Style::Decimal { zero: '0', width: 1, ordinal };
        let Some(last) = token.chars().last() else { return decimal };
        let width = token.chars().count().min(WIDTH_MAX);
        if let Some(zero) = zero_of_digit(last).filter(|zero| last as u32 == *zero as u32 + 1) {
            if token.chars().rev().skip(1).all(|c| c == zero) {
                return Style::Decimal { zero, width, ordinal };
            }
            return decimal;
        }
        let words = ["w", "W", "Ww"].into_iter().find(|form| *form == token);
        if let Some(form) = words {
            return Style::Words { form, ordinal };
        }
        if width != 1 {
            return decimal;
        }
        if let Some(runs) = ENCLOSED.iter().find(|runs| runs[0].1 == last) {
            return Style::Enclosed(runs);
        }
        match last {
            '一' => Style::Ideographic,
            'A' => Style::Letters(LATIN_UPPER),
            'a' => Style::Letters(LATIN_LOWER),
            'I' if letter_value == "alphabetic" => Style::Letters(LATIN_UPPER),
            'i' if letter_value == "alphabetic" => Style::Letters(LATIN_LOWER),
            'I' => Style::Roman { upper: true },
            'i' => Style::Roman { upper: false },
            'α' => Style::Letters(GREEK_LOWER),
            'Α' => Style::Letters(GREEK_UPPER),
            'а' => Style::Letters(CYRILLIC_LOWER),
            'А' => Style::Letters(CYRILLIC_UPPER),
            'א' => Style::Letters(HEBREW),
            'あ' => Style::Letters(HIRAGANA),
            'ア' => Style::Letters(KATAKANA),
            _ => decimal,
        }
    }

    fn write(self, number: u64, grouping: Option<(&str, usize)>, out: &mut String) {
        match self {
            Style::Letters(letters) if number > 0 => write_letters(number, letters, out),
            Style::Roman { upper } if (1..=ROMAN_MAX).contains(&number) => write_roman(number, upper, out),
            Style::Decimal { zero, width, ordinal } => {
                write_decimal(number, zero, width, grouping, out);
                if ordinal {
                    out.push_str(ordinal_suffix(number.try_into().unwrap_or(i64::MAX)));
                }
            }
            Style::Words { form, ordinal } => {
                out.push_str(&numbering::format(number.try_into().unwrap_or(i64::MAX), form, ordinal));
            }
            Style::Enclosed(runs) => match enclosed(number, runs) {
                Some(character) => out.push(character),
                None => write_decimal(number, '0', 1, grouping, out),
            },
            Style::Ideographic if number <= IDEOGRAPHIC_MAX => write_ideographic(number, out),
            _ => write_decimal(number, '0', 1, grouping, out),
        }
    }
}

fn write_decimal(number: u64, zero: char, width: usize, grouping: Option<(&str, usize)>, out: &mut String) {
    let digits = format!("{number:0width$}");
    for (at, digit) in digits.chars().enumerate() {
        let left = digits.len() - at;
        if let Some((separator, size)) = grouping
            && at > 0
            && size > 0
            && left % size == 0
        {
            out.push_str(separator);
        }
        let value = digit as u32 - '0' as u32;
        out.push(char::from_u32(zero as u32 + value).unwrap_or(digit));
    }
}

fn enclosed(number: u64, runs: &[EnclosedRun]) -> Option<char> {
    let (start, first, _) = runs.iter().find(|(start, _, end)| (*start..=*end).contains(&number))?;
    char::from_u32(*first as u32 + (number - start) as u32)
}

fn write_ideographic(number: u64, out: &mut String) {
    if number == 0 {
        out.push(IDEOGRAPHIC_DIGITS[0]);
    }
    for (power, name) in [(1_000_000_000_000, "兆"), (100_000_000, "億"), (10_000, "万"), (1, "")] {
        let myriads = number / power % 10_000;
        for (place, name) in [(1000, "千"), (100, "百"), (10, "十"), (1, "")] {
            let digit = myriads / place % 10;
            if digit > 1 || (digit == 1 && place == 1) {
                out.push(IDEOGRAPHIC_DIGITS[digit as usize]);
            }
            if digit > 0 {
                out.push_str(name);
            }
        }
        if myriads > 0 {
            out.push_str(name);
        }
    }
}

fn write_letters(number: u64, letters: &str, out: &mut String) {
    let letters: Vec<char> = letters.chars().collect();
    let base = letters.len() as u64;
    let mut reversed = Vec::new();
    let mut left = number;
    while left > 0 {
        left -= 1;
        reversed.push(letters[(left % base) as usize]);
        left /= base;
    }
    out.extend(reversed.iter().rev());
}

fn write_roman(number: u64, upper: bool, out: &mut String) {
    const NUMERALS: &[(u64, &str)] = &[
        (1000, "m"),
        (900, "cm"),
        (500, "d"),
        (400, "cd"),
        (100, "c"),
        (90, "xc"),
        (50, "l"),
        (40, "xl"),
        (10, "x"),
        (9, "ix"),
        (5, "v"),
        (4, "iv"),
        (1, "i"),
    ];
    let mut left = number;
    for (value, numeral) in NUMERALS {
        while left >= *value {
            left -= value;
            if upper { out.push_str(&numeral.to_uppercase()) } else { out.push_str(numeral) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, numbers: &[u64], expected: &str) {
        let mut out = String::new();
        NumberFormat::parse(format, "", false).write(numbers, None, &mut out);
        assert_eq!(out, expected, "format `{format}`");
    }

    #[test]
    fn tokens() {
        check("1", &[12], "12");
        check("001", &[7], "007");
        check("a", &[1], "a");
        check("A", &[27], "AA");
        check("i", &[14], "xiv");
        check("I", &[1999], "MCMXCIX");
        check("(1) ", &[3], "(3) ");
        check("A.1.a. ", &[2, 3, 4], "B.3.d. ");
        check("1", &[1, 2, 3], "1.2.3");
        check("1-1", &[1, 2, 3], "1-2-3");
        check("...A...", &[2], "...B...");
        check("", &[4], "4");
        check("α", &[2], "β");
        check("١", &[12], "١٢");
        check("①", &[0, 20, 21, 50, 51], "⓪.⑳.㉑.㊿.51");
        check("❶", &[10, 11, 20, 21], "❿.⓫.⓴.21");
        check("㊀-㈠", &[10, 3], "㊉-㈢");
        check("一", &[0, 1, 10, 21, 305, 10_000, 1_110_000_000], "〇.一.十.二十一.三百五.一万.十一億千万");
    }

    #[test]
    fn grouping() {
        let mut out = String::new();
        NumberFormat::parse("1", "", false).write(&[1234567], Some((",", 3)), &mut out);
        assert_eq!(out, "1,234,567");
    }
}
