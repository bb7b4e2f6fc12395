//! The regular expressions of XPath and XML Schema: any pattern compiles or is refused, and what it splits is the whole.

use penstock_xpath::regex::Regex;

/// What patterns are made of.
pub const DICTIONARY: &[&str] = &[
    "[",
    "]",
    "[^",
    "-[",
    "(",
    ")",
    "(?:",
    "|",
    "*",
    "+",
    "?",
    "{2}",
    "{1,}",
    "{1,3}",
    "*?",
    "^",
    "$",
    ".",
    "-",
    "\\d",
    "\\W",
    "\\i",
    "\\C",
    "\\p{Lu}",
    "\\P{IsGreek}",
    "\\p{IsBasicLatin}",
    "\\1",
    "\\2",
    "\\-",
    "a-z",
    "é",
    "\ni\n",
    "\nx\n",
];

/// The first line is the pattern, the second the flags, the rest the text.
pub fn regex(data: &[u8]) {
    let Ok(data) = std::str::from_utf8(data) else { return };
    let mut lines = data.splitn(3, '\n');
    let (pattern, flags, text) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    if let Ok(regex) = Regex::new(pattern, flags)
        && let (Ok(parts), Ok(found)) = (regex.split(text), regex.find_all(text))
    {
        let matched: usize = found.iter().filter_map(|groups| groups[0]).map(|(start, end)| end - start).sum();
        let left: usize = parts.iter().map(|part| part.len()).sum();
        assert_eq!(matched + left, text.len());
    }
    if let Ok(regex) = Regex::for_schema(pattern) {
        let _ = regex.is_match(text);
    }
}
