//! Collations: how texts compare in functions, comparisons, sorting and grouping.

mod letters;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

pub use letters::{LetterOrder, Strength};

/// The collation that compares codepoints.
pub const CODEPOINT: &str = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
/// The collation that ignores the case of ASCII letters.
const ASCII_CASE_INSENSITIVE: &str = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";
/// The collations of the Unicode Collation Algorithm (XPath Functions 3.1 §5.3.4); parameters follow a `?`.
const UCA: &str = "http://www.w3.org/2013/collation/UCA";

/// A way to compare texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Collation {
    /// By codepoints.
    #[default]
    Codepoint,
    /// By codepoints, with `A` to `Z` as `a` to `z`.
    AsciiCaseInsensitive,
    /// As in a dictionary.
    Letters(LetterOrder),
}

impl Collation {
    /// The collation that a URI names.
    pub fn from_uri(uri: &str) -> Option<Collation> {
        match uri.trim() {
            CODEPOINT => Some(Collation::Codepoint),
            ASCII_CASE_INSENSITIVE => Some(Collation::AsciiCaseInsensitive),
            other => {
                let parameters = other.strip_prefix(UCA)?;
                let parameters = if parameters.is_empty() { "" } else { parameters.strip_prefix('?')? };
                from_parameters(parameters).map(Collation::Letters)
            }
        }
    }

    /// A key that orders bytewise as the text orders in this collation.
    pub fn key<'t>(&self, text: &'t str) -> Cow<'t, [u8]> {
        match self {
            Collation::Codepoint => Cow::Borrowed(text.as_bytes()),
            Collation::AsciiCaseInsensitive => Cow::Owned(text.to_ascii_lowercase().into_bytes()),
            Collation::Letters(order) => Cow::Owned(order.key(text)),
        }
    }

    /// The order of two texts.
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        match self {
            Collation::Codepoint => left.cmp(right),
            other => other.key(left).cmp(&other.key(right)),
        }
    }

    /// The first place of a text in another one.
    pub fn find(&self, text: &str, wanted: &str) -> Option<Range<usize>> {
        match self {
            Collation::Codepoint => text.find(wanted).map(|at| at..at + wanted.len()),
            Collation::AsciiCaseInsensitive => {
                let at = text.to_ascii_lowercase().find(&wanted.to_ascii_lowercase())?;
                Some(at..at + wanted.len())
            }
            Collation::Letters(order) => {
                let (text, wanted) = (weighed(order, text), weighed(order, wanted));
                if wanted.is_empty() {
                    return Some(0..0);
                }
                let same = |window: &[Weighed]| window.iter().zip(&wanted).all(|(a, b)| a.weights == b.weights);
                let found = text.windows(wanted.len()).find(|window| same(window))?;
                Some(found.first()?.place.start..found.last()?.place.end)
            }
        }
    }

    /// Whether a text begins with another one.
    pub fn starts_with(&self, text: &str, wanted: &str) -> bool {
        let weights = |all: Vec<Weighed>| -> Vec<letters::Weights> { all.iter().map(|one| one.weights).collect() };
        match self {
            Collation::Codepoint => text.starts_with(wanted),
            Collation::AsciiCaseInsensitive => text.to_ascii_lowercase().starts_with(&wanted.to_ascii_lowercase()),
            Collation::Letters(order) => weights(weighed(order, text)).starts_with(&weights(weighed(order, wanted))),
        }
    }

    /// Whether a text ends with another one.
    pub fn ends_with(&self, text: &str, wanted: &str) -> bool {
        let weights = |all: Vec<Weighed>| -> Vec<letters::Weights> { all.iter().map(|one| one.weights).collect() };
        match self {
            Collation::Codepoint => text.ends_with(wanted),
            Collation::AsciiCaseInsensitive => text.to_ascii_lowercase().ends_with(&wanted.to_ascii_lowercase()),
            Collation::Letters(order) => weights(weighed(order, text)).ends_with(&weights(weighed(order, wanted))),
        }
    }
}

/// A character whose differences count, and where it is.
struct Weighed {
    weights: letters::Weights,
    place: Range<usize>,
}

fn weighed(order: &LetterOrder, text: &str) -> Vec<Weighed> {
    let characters = text.char_indices();
    let weigh =
        |(at, c): (usize, char)| order.character(c).map(|weights| Weighed { weights, place: at..at + c.len_utf8() });
    characters.filter_map(weigh).collect()
}

/// The parameters of a collation of the Unicode Collation Algorithm. With `fallback=no` unknown ones make the collation
/// unknown; else they are ignored.
fn from_parameters(parameters: &str) -> Option<LetterOrder> {
    let pairs = || parameters.split(';').filter(|pair| !pair.is_empty());
    let value = |wanted: &str| pairs().filter_map(|pair| pair.split_once('=')).find(|(name, _)| *name == wanted);
    let lang = value("lang").map_or("", |(_, lang)| lang);
    let mut order = LetterOrder::for_language(lang, false);
    order.counts_spaces = true;
    let mut known = LetterOrder::knows(lang);
    for pair in pairs() {
        known &= set(&mut order, pair);
    }
    let strict = value("fallback").is_some_and(|(_, fallback)| fallback == "no");
    (known || !strict).then_some(order)
}

/// Sets a parameter; `false` if it is not supported.
fn set(order: &mut LetterOrder, pair: &str) -> bool {
    match pair.split_once('=').unwrap_or((pair, "")) {
        ("fallback", "yes" | "no") | ("lang" | "version", _) => {}
        ("strength", "primary" | "1") => order.strength = Strength::Primary,
        ("strength", "secondary" | "2") => order.strength = Strength::Secondary,
        ("strength", "tertiary" | "3") => order.strength = Strength::Tertiary,
        ("strength", "quaternary" | "identical" | "4" | "5") => order.strength = Strength::Identical,
        ("alternate", "non-ignorable") => order.counts_spaces = true,
        ("alternate", "shifted" | "blanked") => order.counts_spaces = false,
        ("caseFirst", "upper") => order.upper_first = true,
        ("caseFirst", "lower") => order.upper_first = false,
        ("backwards" | "normalization" | "caseLevel" | "numeric", "no") => {}
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uca(parameters: &str) -> Collation {
        Collation::from_uri(&format!("{UCA}?{parameters}")).unwrap()
    }

    #[test]
    fn strength_decides_which_differences_count() {
        for (parameters, left, right, expected) in [
            ("strength=primary", "Résumé", "resume", Ordering::Equal),
            ("strength=primary", "a", "B", Ordering::Less),
            ("strength=secondary", "Resume", "resume", Ordering::Equal),
            ("strength=secondary", "résumé", "resume", Ordering::Greater),
            ("strength=tertiary", "a", "A", Ordering::Less),
            ("caseFirst=upper", "a", "A", Ordering::Greater),
            ("lang=sv", "ö", "z", Ordering::Greater),
            ("lang=de", "ö", "z", Ordering::Less),
            ("", "e\u{301}", "é", Ordering::Equal),
            ("", "a b", "ab", Ordering::Less),
            ("strength=primary;alternate=shifted", "a-b", "ab", Ordering::Equal),
        ] {
            assert_eq!(uca(parameters).compare(left, right), expected, "{parameters}: {left} {right}");
        }
    }

    #[test]
    fn texts_are_found_inside_others() {
        let primary = uca("strength=primary");
        assert_eq!(primary.find("Das Café", "cafe"), Some(4..9));
        assert_eq!(primary.find("x", ""), Some(0..0));
        assert_eq!(primary.find("x", "xy"), None);
        assert!(primary.starts_with("Éa", "e") && !primary.starts_with("Éa", "a"));
        assert!(primary.ends_with("aÉ", "e") && !primary.ends_with("aÉ", "a"));
        let ascii = Collation::from_uri(ASCII_CASE_INSENSITIVE).unwrap();
        assert_eq!(ascii.find("éABC", "bc"), Some(3..5));
        assert!(ascii.starts_with("Ab", "aB") && ascii.ends_with("Ab", "B"));
        assert_eq!(ascii.compare("É", "é"), "É".cmp("é"));
    }

    #[test]
    fn unknown_collations() {
        assert_eq!(Collation::from_uri("http://example.org/collation"), None);
        assert_eq!(Collation::from_uri(&format!("{UCA}?fallback=no;numeric=yes")), None);
        assert_eq!(Collation::from_uri(&format!("{UCA}?fallback=no;lang=xx")), None);
        assert_eq!(uca("numeric=yes;lang=xx"), uca(""));
        assert_eq!(Collation::from_uri(CODEPOINT), Some(Collation::Codepoint));
    }
}
