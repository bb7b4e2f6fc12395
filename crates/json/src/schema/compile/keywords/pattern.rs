//! Regular expressions of ECMA 262.

use regex::{Regex, RegexBuilder};

use super::KeywordReader;

/// A pattern that compiles to more is a mistake or an attack.
const PATTERN_BYTES_MAX: usize = 1 << 20;

impl KeywordReader<'_, '_> {
    pub(super) fn pattern(&mut self, keyword: &str, text: &str) -> Option<Regex> {
        match RegexBuilder::new(&translated(text)).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) => Some(regex),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.fail(keyword, &format!("the pattern `{text}` cannot be used: {why}"));
                None
            }
        }
    }
}

/// What ECMA 262 writes differently: its digits and word letters are those of ASCII.
fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut letters = pattern.chars();
    let mut in_class = false;
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            match letter {
                '[' if in_class => out.push('\\'),
                '[' => in_class = true,
                ']' => in_class = false,
                '&' | '~' if in_class => out.push('\\'),
                _ => {}
            }
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('d') => out.push_str(if in_class { "0-9" } else { "[0-9]" }),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str(if in_class { "0-9A-Za-z_" } else { "[0-9A-Za-z_]" }),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('c') => {
                let control = letters.next().map_or(0, |letter| u32::from(letter) % 32);
                out.push_str(&format!("\\x{{{control:x}}}"));
            }
            Some(other) if other.is_ascii_alphabetic() || other.is_ascii_digit() || other.is_ascii_punctuation() => {
                out.push('\\');
                out.push(other);
            }
            Some(other) => out.push(other),
            None => out.push_str("\\\\"),
        }
    }
    out
}
