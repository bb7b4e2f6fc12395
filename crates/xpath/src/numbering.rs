//! Numbers as letters, Roman numerals and English words: for date pictures and for `xsl:number`.

/// A number in a form: `a`, `A`, `i`, `I`, `w`, `W`, `Ww`; anything else is plain digits.
pub fn format(value: i64, form: &str, ordinal: bool) -> String {
    match form {
        "a" => alphabetic(value).unwrap_or_else(|| value.to_string()),
        "A" => alphabetic(value).unwrap_or_else(|| value.to_string()).to_uppercase(),
        "i" => roman(value).unwrap_or_else(|| value.to_string()).to_lowercase(),
        "I" => roman(value).unwrap_or_else(|| value.to_string()),
        "w" => words(value, ordinal),
        "W" => words(value, ordinal).to_uppercase(),
        "Ww" => title_case(&words(value, ordinal)),
        _ if ordinal => format!("{value}{}", ordinal_suffix(value)),
        _ => value.to_string(),
    }
}

/// a, b, … z, aa, ab, …
pub fn alphabetic(value: i64) -> Option<String> {
    let mut rest = u64::try_from(value).ok().filter(|value| *value > 0)?;
    let mut letters = Vec::new();
    while rest > 0 {
        rest -= 1;
        letters.push(b'a' + (rest % 26) as u8);
        rest /= 26;
    }
    Some(letters.into_iter().rev().map(char::from).collect())
}

/// Roman numerals in upper case, for numbers that have them.
pub fn roman(value: i64) -> Option<String> {
    const NUMERALS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..10_000).contains(&value) {
        return None;
    }
    let mut rest = value;
    let mut text = String::new();
    for (worth, numeral) in NUMERALS {
        while rest >= worth {
            text.push_str(numeral);
            rest -= worth;
        }
    }
    Some(text)
}

/// `st`, `nd`, `rd` or `th`.
pub fn ordinal_suffix(value: i64) -> &'static str {
    match (value.unsigned_abs() % 10, value.unsigned_abs() % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [(u64, &str); 6] = [
    (1_000_000_000_000_000_000, "quintillion"),
    (1_000_000_000_000_000, "quadrillion"),
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1_000, "thousand"),
];

/// English words in lower case.
pub fn words(value: i64, ordinal: bool) -> String {
    let mut text = cardinal(value.unsigned_abs());
    if ordinal {
        text = to_ordinal(&text);
    }
    if value < 0 { format!("minus {text}") } else { text }
}

fn cardinal(value: u64) -> String {
    for (scale, name) in SCALES {
        if value >= scale {
            let rest = value % scale;
            let head = format!("{} {name}", cardinal(value / scale));
            return match rest {
                0 => head,
                1..100 => format!("{head} and {}", cardinal(rest)),
                _ => format!("{head} {}", cardinal(rest)),
            };
        }
    }
    if value >= 100 {
        let head = format!("{} hundred", SMALL[(value / 100) as usize]);
        return if value.is_multiple_of(100) { head } else { format!("{head} and {}", cardinal(value % 100)) };
    }
    if value >= 20 {
        let tens = TENS[(value / 10) as usize];
        return if value.is_multiple_of(10) {
            tens.to_string()
        } else {
            format!("{tens} {}", SMALL[(value % 10) as usize])
        };
    }
    SMALL[value as usize].to_string()
}

fn to_ordinal(cardinal: &str) -> String {
    let (head, last) = cardinal.rsplit_once(' ').map_or(("", cardinal), |(head, last)| (head, last));
    // A hyphen joins the tens of an ordinal: twenty-first.
    let (head, joint) = match head.rsplit(' ').next() {
        Some(tens) if TENS.contains(&tens) && !tens.is_empty() => (head, '-'),
        _ => (head, ' '),
    };
    let last = match last {
        "one" => "first".to_string(),
        "two" => "second".to_string(),
        "three" => "third".to_string(),
        "five" => "fifth".to_string(),
        "eight" => "eighth".to_string(),
        "nine" => "ninth".to_string(),
        "twelve" => "twelfth".to_string(),
        other => match other.strip_suffix('y') {
            Some(stem) => format!("{stem}ieth"),
            None => format!("{other}th"),
        },
    };
    if head.is_empty() { last } else { format!("{head}{joint}{last}") }
}

fn title_case(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for (index, word) in text.split_inclusive([' ', '-']).enumerate() {
        let mut chars = word.chars();
        match chars.next() {
            Some(first) if index == 0 || word.trim_end() != "and" => result.push(first.to_ascii_uppercase()),
            first => result.extend(first),
        }
        result.push_str(chars.as_str());
    }
    result
}

/// The zeros of the decimal digits of Unicode (general category Nd).
const ZEROS: &str = "0٠۰߀०০੦૦୦௦౦೦൦෦๐໐༠၀႐០᠐᥆᧐᪀᪐᭐᮰᱀᱐꘠꣐꤀꧐꧰꩐꯰０𐒠𑁦𑃰𑄶𑇐𝟎𝟘𝟢𝟬𝟶";

/// The zero of the digits that a character belongs to, when it is a decimal digit.
pub fn zero_of_digit(digit: char) -> Option<char> {
    ZEROS.chars().find(|zero| (*zero as u32..*zero as u32 + 10).contains(&(digit as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (value, form, ordinal, expected) in [
            (1, "a", false, "a"),
            (28, "A", false, "AB"),
            (703, "a", false, "aaa"),
            (1994, "I", false, "MCMXCIV"),
            (4, "i", false, "iv"),
            (0, "i", false, "0"),
            (-1, "a", false, "-1"),
            (21, "1", true, "21st"),
            (112, "1", true, "112th"),
            (1_234, "w", false, "one thousand two hundred and thirty four"),
            (1_001, "w", false, "one thousand and one"),
            (20, "Ww", true, "Twentieth"),
            (-5, "W", false, "MINUS FIVE"),
        ] {
            assert_eq!(format(value, form, ordinal), expected);
        }
        assert!(words(i64::MIN, false).starts_with("minus nine quintillion"));
    }
}
