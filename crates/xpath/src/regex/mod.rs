//! The regular expressions of XPath, XSLT and XML Schema, translated to those of the `regex` crate.
//!
//! `parse` checks the grammar and translates, `class` does so for character classes. Patterns without back-references
//! run on `regex`, which answers in time linear in the text; those with them on `fancy-regex`, within a budget of steps.

mod blocks;
mod class;
mod parse;

use penstock_budget as budget;

use crate::error::{Result, XPathError};

pub use parse::Dialect;

/// Compiled programs larger than this are refused: nested repetitions grow without bound.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// The same for patterns of schemas, which are compiled once, when the schema is read.
const MAX_SCHEMA_PROGRAM_BYTES: usize = 10 << 20;

/// Steps back that one search with back-references may take: some tens of milliseconds.
const MAX_BACKTRACKING: usize = 1_000_000;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    engine: Engine,
    literal_replacement: bool,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex::Regex),
    Backtracking(Box<fancy_regex::Regex>),
}

/// A match: its own bounds in bytes first, then those of each group that took part.
pub type Captures = Vec<Option<(usize, usize)>>;

impl Regex {
    /// Compiles a pattern with the flags of XPath: `s`, `m`, `i`, `x`, `q`.
    pub fn new(pattern: &str, flags: &str) -> Result<Regex> {
        if let Some(flag) = flags.chars().find(|flag| !"smixq".contains(*flag)) {
            return Err(XPathError::new("FORX0001", format!("unknown flag `{flag}` of a regular expression")));
        }
        let has = |flag| flags.contains(flag);
        let options = parse::Options {
            dialect: Dialect::XPath,
            ignore_case: has('i'),
            ignore_space: has('x'),
            dot_matches_all: has('s'),
        };
        let translated = if has('q') {
            let quoted = regex::escape(pattern);
            parse::Translated { pattern: format!("(?:{quoted})"), back_references: false }
        } else {
            parse::translate(pattern, options)?
        };
        let mut inline = String::new();
        // A flag may be given twice.
        inline.extend(['i', 'm'].into_iter().filter(|flag| has(*flag)));
        let flagged = if inline.is_empty() { translated.pattern } else { format!("(?{inline}){}", translated.pattern) };
        let engine = compile(&flagged, translated.back_references, MAX_PROGRAM_BYTES)
            .map_err(|why| parse::invalid(pattern, &why))?;
        Ok(Regex { engine, literal_replacement: has('q') })
    }

    /// Compiles a pattern of XML Schema, which matches whole values only.
    pub fn for_schema(pattern: &str) -> Result<Regex> {
        let options = parse::Options { dialect: Dialect::Schema, ..parse::Options::default() };
        let translated = parse::translate(pattern, options)?;
        let anchored = format!("^(?:{})$", translated.pattern);
        let engine =
            compile(&anchored, false, MAX_SCHEMA_PROGRAM_BYTES).map_err(|why| parse::invalid(pattern, &why))?;
        Ok(Regex { engine, literal_replacement: false })
    }

    /// Whether the pattern occurs in the text.
    pub fn is_match(&self, text: &str) -> Result<bool> {
        match &self.engine {
            Engine::Linear(engine) => Ok(engine.is_match(text)),
            Engine::Backtracking(engine) => engine.is_match(text).map_err(too_costly),
        }
    }

    /// Every match in order; those of no length too.
    pub fn find_all(&self, text: &str) -> Result<Vec<Captures>> {
        let mut found = Vec::new();
        match &self.engine {
            Engine::Linear(engine) => {
                for captures in engine.captures_iter(text) {
                    self.room_for_match(&mut found);
                    found.push(captures.iter().map(|group| group.map(|g| (g.start(), g.end()))).collect());
                }
            }
            Engine::Backtracking(engine) => {
                for captures in engine.captures_iter(text) {
                    let captures = captures.map_err(too_costly)?;
                    self.room_for_match(&mut found);
                    found.push(captures.iter().map(|group| group.map(|g| (g.start(), g.end()))).collect());
                }
            }
        }
        Ok(found)
    }

    /// The text between the matches.
    pub fn split<'t>(&self, text: &'t str) -> Result<Vec<&'t str>> {
        let mut parts = Vec::new();
        let mut end = 0;
        for groups in self.find_all(text)? {
            let Some(Some((start, after))) = groups.first() else { continue };
            parts.push(&text[end..*start]);
            end = *after;
        }
        parts.push(&text[end..]);
        Ok(parts)
    }

    fn room_for_match(&self, found: &mut Vec<Captures>) {
        budget::step();
        budget::make_room(found, 1);
    }

    fn group_count(&self) -> usize {
        match &self.engine {
            Engine::Linear(engine) => engine.captures_len() - 1,
            Engine::Backtracking(engine) => engine.captures_len() - 1,
        }
    }

    /// Replaces every match; `$1` stands for a group, `\$` and `\\` for themselves.
    pub fn replace_all(&self, text: &str, replacement: &str) -> Result<String> {
        let parts = if self.literal_replacement {
            vec![Part::Text(replacement.to_string())]
        } else {
            parse_replacement(replacement, self.group_count())?
        };
        let mut result = String::with_capacity(text.len());
        let mut end = 0;
        for groups in self.find_all(text)? {
            let Some(Some((start, after))) = groups.first() else { continue };
            budget::append(&mut result, &text[end..*start]);
            end = *after;
            for part in &parts {
                match part {
                    Part::Text(text) => budget::append(&mut result, text),
                    Part::Group(group) => {
                        if let Some(Some((start, end))) = groups.get(*group) {
                            budget::append(&mut result, &text[*start..*end]);
                        }
                    }
                }
            }
        }
        result.push_str(&text[end..]);
        Ok(result)
    }
}

fn compile(pattern: &str, back_references: bool, program_bytes: usize) -> std::result::Result<Engine, String> {
    if back_references {
        let built = fancy_regex::RegexBuilder::new(pattern)
            .backtrack_limit(MAX_BACKTRACKING)
            .delegate_size_limit(program_bytes)
            .build();
        return built.map(|engine| Engine::Backtracking(Box::new(engine))).map_err(|error| error.to_string());
    }
    let built = regex::RegexBuilder::new(pattern).size_limit(program_bytes).build();
    // The crate's message spans several lines; the last one says what is wrong.
    built.map(Engine::Linear).map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or(&text).trim_start_matches("error: ").to_string()
    })
}

fn too_costly(error: fancy_regex::Error) -> XPathError {
    XPathError::new("PENS0001", format!("the regular expression takes too many steps: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, flags: &str, text: &str, expected: Option<&str>) {
        let found = Regex::new(pattern, flags).unwrap().find_all(text).unwrap();
        let found = found.first().and_then(|groups| groups[0]).map(|(start, end)| &text[start..end]);
        assert_eq!(found, expected, "{pattern} in {text}");
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
            (r"[\[]", "", "a[b", Some("[")),
            ("[^a-c-[d]]", "", "abcde", Some("e")),
            (r"\p{IsGreekandCoptic}+", "", "aΩβb", Some("Ωβ")),
            (r"[\p{IsBasicLatin}-[a-y]]+", "", "xyz!é", Some("z!")),
            (r"\P{IsBasicLatin}", "", "aé", Some("é")),
            (r"(a)(b)\1", "", "ababa", Some("aba")),
            (r"(.)\1", "i", "abBa", Some("bB")),
            (r"(a)\10", "", "aa0", Some("aa0")),
            (r"\p{Lu}", "i", "aA", Some("A")),
            ("[^a]", "i", "Ab", Some("b")),
            ("[a-c-[B]]+", "i", "bAcb", Some("Ac")),
            (r"[\d-a]+", "", "x1-a", Some("1-a")),
            ("a.", "", "a\rab", Some("ab")),
            ("(?:ab)+", "", "abab", Some("abab")),
        ] {
            check(pattern, flags, text, expected);
        }
    }

    #[test]
    fn refused() {
        for (pattern, flags, code) in [
            ("(", "", "FORX0002"),
            (r"(a\1)", "", "FORX0002"),
            (r"(a)\2", "", "FORX0002"),
            (r"\p{IsNowhere}", "", "FORX0002"),
            (r"\pL", "", "FORX0002"),
            (r"\&", "", "FORX0002"),
            ("a**", "", "FORX0002"),
            ("a{1}{2}", "", "FORX0002"),
            ("a{2,1}", "", "FORX0002"),
            ("a]", "", "FORX0002"),
            ("a}", "", "FORX0002"),
            ("[[a]]", "", "FORX0002"),
            ("[]", "", "FORX0002"),
            ("[c-a]", "", "FORX0002"),
            (r"[a-\d]", "", "FORX0002"),
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

    #[test]
    fn schema_patterns() {
        for (pattern, text, expected) in [
            ("a|bc", "bc", true),
            ("a|bc", "abc", false),
            ("^a$", "^a$", true),
            ("^a$", "a", false),
            (r"\i\c*", "a-1", true),
            ("[^-]+", "a", true),
            ("", "", true),
        ] {
            assert_eq!(Regex::for_schema(pattern).unwrap().is_match(text).unwrap(), expected, "{pattern} {text}");
        }
        for pattern in ["a??", "(?:a)", r"(a)\1", "(", "a{,2}"] {
            assert!(Regex::for_schema(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn back_references_are_bounded() {
        let text = "a".repeat(40);
        let error = Regex::new(r"(a*)*(a*)*\1\2b", "").unwrap().is_match(&text).unwrap_err();
        assert_eq!(error.code(), "PENS0001");
    }
}
