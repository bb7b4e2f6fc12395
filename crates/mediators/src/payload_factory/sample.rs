//! Whether a format of JSON can become JSON at all: arguments and expressions are replaced by what may stand at their place.

use super::format::Piece;

/// Text before a mistake that is quoted.
const QUOTED_CHARS: usize = 20;

/// `Err` says what is wrong in the text of the format.
pub(super) fn check(pieces: &[Piece]) -> Result<(), String> {
    let mut sample = Sample::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sample.text(text),
            Piece::Argument { .. } | Piece::Inline(_) | Piece::Expression { .. } => sample.hole(),
        }
    }
    let text = sample.finish();
    if text.trim().is_empty() {
        return Ok(());
    }
    serde_json::from_str::<serde_json::Value>(&text).map(|_| ()).map_err(|error| {
        let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let end = (lines + error.column()).min(text.len());
        let at = (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let before: String = text[..at].chars().rev().take(QUOTED_CHARS).collect();
        let before: String = before.chars().rev().collect();
        let what = error.to_string();
        let what = what.split(" at line").next().unwrap_or_default();
        format!("{what} at `{}`", before.trim())
    })
}

/// The text of a format with its holes filled.
#[derive(Default)]
struct Sample {
    out: String,
    /// `{` and `[` that are open.
    open: Vec<char>,
    in_string: bool,
    escaped: bool,
    /// Before something that only the next text decides: a name in an object has its value behind it or brings it along.
    pending_name: bool,
    /// The last character outside of strings that is no white space.
    last: char,
}

impl Sample {
    fn text(&mut self, text: &str) {
        for letter in text.chars() {
            if self.pending_name && !letter.is_whitespace() {
                self.pending_name = false;
                self.out.push_str(if letter == ':' { "\"k\"" } else { "\"k\":0" });
            }
            if self.in_string {
                match letter {
                    _ if self.escaped => self.escaped = false,
                    '\\' => self.escaped = true,
                    '"' => self.in_string = false,
                    _ => {}
                }
            } else {
                match letter {
                    '"' => self.in_string = true,
                    '{' | '[' => self.open.push(letter),
                    '}' | ']' => drop(self.open.pop()),
                    _ => {}
                }
            }
            if !letter.is_whitespace() {
                self.last = letter;
            }
            self.out.push(letter);
        }
    }

    /// An argument or an expression.
    fn hole(&mut self) {
        // What is put into a string is escaped; two values side by side are one.
        if self.in_string || self.pending_name {
            return;
        }
        match self.last {
            '{' => self.pending_name = true,
            ',' if self.open.last() == Some(&'{') => self.pending_name = true,
            ':' | '[' | ',' | '\0' => self.out.push('0'),
            // Behind a value: it may be empty.
            _ => {}
        }
        self.last = '0';
    }

    fn finish(mut self) -> String {
        if self.pending_name {
            self.out.push_str("\"k\":0");
        }
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(format: &str) -> Result<(), String> {
        let argument = || Piece::Argument { index: 0, quoted: false, attribute: false };
        let mut pieces = Vec::new();
        for (index, text) in format.split("$1").enumerate() {
            if index > 0 {
                pieces.push(argument());
            }
            pieces.push(Piece::Text(text.into()));
        }
        check(&pieces)
    }

    #[test]
    fn what_can_become_json_is_not_reported() {
        for format in [
            "",
            "$1",
            "{}",
            r#"{"a": $1, "b": "$1", "c": [$1, $1]}"#,
            r#"{$1}"#,
            r#"{ $1, "b": 1 }"#,
            r#"{"a": 1, $1}"#,
            r#"{"$1": 1, $1: 2}"#,
            r#"{"a": $1$1}"#,
            r#"[$1]"#,
            r#"{"a": "x \" $1"}"#,
            r#"{"a": 1 $1}"#,
        ] {
            assert_eq!(sample(format), Ok(()), "{format}");
        }
    }

    #[test]
    fn what_cannot_is() {
        for format in [r#"{"a": 1,, "b": $1 }"#, r#"{"a": }"#, r#"{"a": 1"#, "{'a': 1}", r#"{"a" 1}"#, r#"{"a": 1,}"#] {
            assert!(sample(format).is_err(), "{format}");
        }
        assert_eq!(sample(r#"{"a": 1,, "b": 2}"#), Err("key must be a string at `{\"a\": 1,,`".to_owned()));
    }
}
