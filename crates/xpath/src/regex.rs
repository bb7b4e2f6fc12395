//! The regular expressions of XPath, translated to those of the `regex` crate.
//!
//! The two languages agree on nearly everything; what differs is rewritten here. Back-references are refused: an
//! engine without them answers in time linear in the text, which matters more to a server.

use crate::error::{Result, XPathError};

/// Compiled programs larger than this are refused: nested repetitions grow without bound.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    inner: regex::Regex,
    literal_replacement: bool,
}

impl Regex {
    /// Compiles a pattern with the flags of XPath: `s`, `m`, `i`, `x`, `q`.
    pub fn new(pattern: &str, flags: &str) -> Result<Regex> {
        if let Some(flag) = flags.chars().find(|flag| !"smixq".contains(*flag)) {
            return Err(XPathError::new("FORX0001", format!("unknown flag `{flag}` of a regular expression")));
        }
        let has = |flag| flags.contains(flag);
        let translated = if has('q') { regex::escape(pattern) } else { translate(pattern, has('x'))? };
        let inner = regex::RegexBuilder::new(&translated)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .size_limit(MAX_PROGRAM_BYTES)
            .build()
            .map_err(|error| invalid(pattern, &error.to_string()))?;
        Ok(Regex { inner, literal_replacement: has('q') })
    }

    /// Whether the pattern occurs in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.inner.is_match(text)
    }

    /// The text between the matches.
    pub fn split<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.inner.split(text).collect::<Vec<_>>().into_iter()
    }

    /// The underlying expression, for walking over matches and groups.
    pub fn as_inner(&self) -> &regex::Regex {
        &self.inner
    }

    /// Replaces every match; `$1` stands for a group, `\$` and `\\` for themselves.
    pub fn replace_all(&self, text: &str, replacement: &str) -> Result<String> {
        let parts = if self.literal_replacement {
            vec![Part::Text(replacement.to_string())]
        } else {
            parse_replacement(replacement, self.inner.captures_len() - 1)?
        };
        let mut result = String::with_capacity(text.len());
        let mut end = 0;
        for found in self.inner.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            result.push_str(&text[end..whole.start()]);
            end = whole.end();
            for part in &parts {
                match part {
                    Part::Text(text) => result.push_str(text),
                    Part::Group(group) => result.push_str(found.get(*group).map_or("", |found| found.as_str())),
                }
            }
        }
        result.push_str(&text[end..]);
        Ok(result)
    }
}

enum Part {
    Text(String),
    Group(usize),
}

fn parse_replacement(replacement: &str, groups: usize) -> Result<Vec<Part>> {
    let invalid = || XPathError::new("FORX0004", format!("invalid replacement `{replacement}`"));
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = replacement.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some(escaped @ ('\\' | '$')) => text.push(escaped),
                _ => return Err(invalid()),
            },
            '$' => {
                let digit = rest.next().and_then(|c| c.to_digit(10)).ok_or_else(invalid)?;
                let mut group = digit as usize;
                // More digits belong to the number as long as there are that many groups.
                while let Some(next) = rest.peek().and_then(|c| c.to_digit(10)) {
                    let longer = group.saturating_mul(10).saturating_add(next as usize);
                    if longer > groups {
                        break;
                    }
                    group = longer;
                    rest.next();
                }
                parts.push(Part::Text(std::mem::take(&mut text)));
                if group <= groups {
                    parts.push(Part::Group(group));
                }
            }
            _ => text.push(c),
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

fn invalid(pattern: &str, why: &str) -> XPathError {
    // The crate's message spans several lines; the last one says what is wrong.
    let why = why.lines().last().unwrap_or(why).trim_start_matches("error: ");
    XPathError::new("FORX0002", format!("invalid regular expression `{pattern}`: {why}"))
}

/// Rewrites what the two languages write differently.
fn translate(pattern: &str, ignore_space: bool) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern.chars().peekable();
    let mut depth = 0usize;
    let mut class_start = false;
    while let Some(c) = rest.next() {
        let at_class_start = std::mem::take(&mut class_start);
        match c {
            '\\' => {
                let Some(escaped) = rest.next() else { return Err(invalid(pattern, "ends with a backslash")) };
                push_escape(&mut out, escaped, depth > 0, pattern)?;
            }
            ' ' | '\t' | '\r' | '\n' if ignore_space && depth == 0 => {}
            '[' if depth == 0 => {
                depth = 1;
                class_start = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            // `[a-z-[aeiou]]` takes the second class away from the first.
            '[' if out.ends_with('-') => {
                depth += 1;
                class_start = true;
                out.push_str("-[");
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            ']' if depth > 0 && !at_class_start => {
                depth -= 1;
                out.push(']');
            }
            // Signs that mean something inside classes only to the other language.
            '[' | '&' | '~' if depth > 0 => {
                out.push('\\');
                out.push(c);
            }
            '(' if depth == 0 && rest.peek() == Some(&'?') => {
                rest.next();
                if rest.next_if_eq(&':').is_none() {
                    return Err(invalid(pattern, "`(?` is not allowed"));
                }
                out.push_str("(?:");
            }
            _ => out.push(c),
        }
    }
    Ok(out)
}

fn push_escape(out: &mut String, escaped: char, in_class: bool, pattern: &str) -> Result<()> {
    const NAME_START: &str = r"\p{L}\p{Nl}_:";
    const NAME: &str = r"\p{L}\p{Nl}\p{Nd}\p{Mn}\p{Mc}_:.\-\x{B7}";
    match escaped {
        'i' | 'c' | 'I' | 'C' => {
            let set = if matches!(escaped, 'i' | 'I') { NAME_START } else { NAME };
            let negated = if escaped.is_ascii_uppercase() { "^" } else { "" };
            out.push_str(&format!("[{negated}{set}]"));
        }
        'd' => out.push_str(r"\p{Nd}"),
        'D' => out.push_str(r"\P{Nd}"),
        's' => out.push_str(if in_class { r" \t\r\n" } else { r"[ \t\r\n]" }),
        'S' => out.push_str(r"[^ \t\r\n]"),
        'w' => out.push_str(r"[^\p{P}\p{Z}\p{C}]"),
        'W' => out.push_str(r"[\p{P}\p{Z}\p{C}]"),
        'n' | 'r' | 't' | 'p' | 'P' => {
            out.push('\\');
            out.push(escaped);
        }
        '0'..='9' => return Err(invalid(pattern, "back-references are not supported")),
        c if c.is_alphanumeric() => return Err(invalid(pattern, &format!("unknown escape `\\{c}`"))),
        c => {
            if c.is_ascii_punctuation() {
                out.push('\\');
            }
            out.push(c);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, flags: &str, text: &str, expected: Option<&str>) {
        let found = Regex::new(pattern, flags).unwrap().inner.find(text).map(|found| found.as_str().to_string());
        assert_eq!(found.as_deref(), expected, "{pattern} in {text}");
    }

    #[test]
    fn languages_agree() {
        for (pattern, flags, text, expected) in [
            ("a.c", "", "xabcx", Some("abc")),
            ("a.c", "", "a\nc", None),
            ("a.c", "s", "a\nc", Some("a\nc")),
            ("^b$", "m", "a\nb\nc", Some("b")),
            ("ABC", "i", "xabc", Some("abc")),
            ("a b\tc", "x", "abc", Some("abc")),
            ("a.b", "q", "axb a.b", Some("a.b")),
            ("[a-z-[aeiou]]+", "", "aeixyz", Some("xyz")),
            (r"\i\c*", "", "1 name-1.x", Some("name-1.x")),
            (r"\d+", "", "x٣٤", Some("٣٤")),
            (r"[\s]+", "", "a \t b", Some(" \t ")),
            (r"\$\-\(", "", "$-(", Some("$-(")),
            ("[[]", "", "a[b", Some("[")),
            ("(?:ab)+", "", "abab", Some("abab")),
        ] {
            check(pattern, flags, text, expected);
        }
    }

    #[test]
    fn refused() {
        for (pattern, flags, code) in [
            ("(", "", "FORX0002"),
            (r"(a)\1", "", "FORX0002"),
            ("a", "z", "FORX0001"),
            (r"\", "", "FORX0002"),
            ("(?i)a", "", "FORX0002"),
            ("((a{1000}){1000}){1000}", "", "FORX0002"),
        ] {
            assert_eq!(Regex::new(pattern, flags).unwrap_err().code(), code, "{pattern}");
        }
    }

    #[test]
    fn replacing() {
        let replace = |pattern, text: &str, with: &str| Regex::new(pattern, "").unwrap().replace_all(text, with);
        assert_eq!(replace("(a)(b)?", "ab a", "<$1$2>").unwrap(), "<ab> <a>");
        assert_eq!(replace("a", "aa", r"\$\\").unwrap(), r"$\$\");
        assert_eq!(replace("(a)", "a", "$12").unwrap(), "a2");
        assert_eq!(replace("a", "a", "[$1]").unwrap(), "[]");
        assert_eq!(replace("a", "a", "$").unwrap_err().code(), "FORX0004");
    }
}
