//! Regular expressions in filters.

use regex::{Regex, RegexBuilder};

/// A compiled pattern may take this much memory. A pattern can come from a document, and counted
/// repetitions nest, so a few characters could otherwise ask for gigabytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct Pattern(Regex);

impl Pattern {
    /// `/source/flags`, which must match the whole text.
    pub fn literal(source: &str, flags: &str) -> Result<Pattern, String> {
        let mut builder = RegexBuilder::new(&format!(r"\A(?:{source})\z"));
        builder.size_limit(PATTERN_BYTES_MAX);
        for flag in flags.chars() {
            match flag {
                'i' => builder.case_insensitive(true),
                's' => builder.dot_matches_new_line(true),
                'm' => builder.multi_line(true),
                'x' => builder.ignore_whitespace(true),
                'u' | 'U' | 'd' => &mut builder,
                other => return Err(format!("unknown flag `{other}` of a regular expression")),
            };
        }
        builder.build().map(Pattern).map_err(|error| last_line(&error))
    }

    /// An I-Regexp (RFC 9485): `.` matches neither `\n` nor `\r`.
    pub fn interoperable(source: &str, whole: bool) -> Result<Pattern, String> {
        let mut translated = String::with_capacity(source.len() + 16);
        if whole {
            translated.push_str(r"\A(?:");
        }
        let (mut escaped, mut in_class) = (false, false);
        for character in source.chars() {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '[' => in_class = true,
                ']' => in_class = false,
                '.' if !in_class => {
                    translated.push_str(r"[^\n\r]");
                    continue;
                }
                _ => {}
            }
            translated.push(character);
        }
        if whole {
            translated.push_str(r")\z");
        }
        RegexBuilder::new(&translated)
            .size_limit(PATTERN_BYTES_MAX)
            .build()
            .map(Pattern)
            .map_err(|error| last_line(&error))
    }

    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// The crate draws the pattern over several lines; the last says what is wrong.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
    format!("not a regular expression: {reason}")
}
