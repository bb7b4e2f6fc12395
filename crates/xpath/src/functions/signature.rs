//! The types of the arguments of the standard functions, which XPath 2.0 converts to and checks (F&O; XPath 2.0 §3.1.5).

use crate::ast::{ItemType, KindTest, Occurrence, SequenceType};
use crate::value::AtomicType;

/// For each function its parameters, separated by blanks; a last one that ends in `…` repeats. Letters stand for types
/// (see [`item_type`]), followed by `?`, `*` or nothing. Functions that take anything are left out.
static SIGNATURES: &[(&str, &str)] = &[
    ("string", "I?"),
    ("number", "A?"),
    ("concat", "A?…"),
    ("local-name", "N?"),
    ("namespace-uri", "N?"),
    ("name", "N?"),
    ("node-name", "N?"),
    ("root", "N?"),
    ("base-uri", "N?"),
    ("document-uri", "N?"),
    ("nilled", "N?"),
    ("has-children", "N?"),
    ("generate-id", "N?"),
    ("id", "s* N"),
    ("idref", "s* N"),
    ("lang", "s? N"),
    ("starts-with", "s? s? s"),
    ("ends-with", "s? s? s"),
    ("contains", "s? s? s"),
    ("substring-before", "s? s? s"),
    ("substring-after", "s? s? s"),
    ("compare", "s? s? s"),
    ("codepoint-equal", "s? s?"),
    ("substring", "s? d d"),
    ("string-length", "s?"),
    ("normalize-space", "s?"),
    ("normalize-unicode", "s? s"),
    ("translate", "s? s s"),
    ("upper-case", "s?"),
    ("lower-case", "s?"),
    ("string-join", "s* s"),
    ("codepoints-to-string", "i*"),
    ("string-to-codepoints", "s?"),
    ("encode-for-uri", "s?"),
    ("iri-to-uri", "s?"),
    ("escape-html-uri", "s?"),
    ("resolve-uri", "s? s"),
    ("matches", "s? s s"),
    ("replace", "s? s s s"),
    ("tokenize", "s? s s"),
    ("floor", "n?"),
    ("ceiling", "n?"),
    ("round", "n? i"),
    ("abs", "n?"),
    ("round-half-to-even", "n? i"),
    ("sum", "I* A?"),
    ("min", "I* s"),
    ("max", "I* s"),
    ("index-of", "I* A s"),
    ("distinct-values", "I* s"),
    ("subsequence", "I* d d"),
    ("remove", "I* i"),
    ("insert-before", "I* i I*"),
    ("deep-equal", "I* I* s"),
    ("doc", "s?"),
    ("doc-available", "s?"),
    ("collection", "s?"),
    ("error", "q? s I*"),
    ("trace", "I* s"),
    ("QName", "s? s"),
    ("resolve-QName", "s? e"),
    ("local-name-from-QName", "q?"),
    ("prefix-from-QName", "q?"),
    ("namespace-uri-from-QName", "q?"),
    ("namespace-uri-for-prefix", "s? e"),
    ("in-scope-prefixes", "e"),
    ("dateTime", "D? T?"),
    ("adjust-dateTime-to-timezone", "t? v?"),
    ("adjust-date-to-timezone", "D? v?"),
    ("adjust-time-to-timezone", "T? v?"),
    ("format-dateTime", "t? s s? s? s?"),
    ("format-date", "D? s s? s? s?"),
    ("format-time", "T? s s? s? s?"),
    ("format-number", "n? s s?"),
    ("year-from-dateTime", "t?"),
    ("month-from-dateTime", "t?"),
    ("day-from-dateTime", "t?"),
    ("hours-from-dateTime", "t?"),
    ("minutes-from-dateTime", "t?"),
    ("seconds-from-dateTime", "t?"),
    ("timezone-from-dateTime", "t?"),
    ("year-from-date", "D?"),
    ("month-from-date", "D?"),
    ("day-from-date", "D?"),
    ("timezone-from-date", "D?"),
    ("hours-from-time", "T?"),
    ("minutes-from-time", "T?"),
    ("seconds-from-time", "T?"),
    ("timezone-from-time", "T?"),
    ("years-from-duration", "u?"),
    ("months-from-duration", "u?"),
    ("days-from-duration", "u?"),
    ("hours-from-duration", "u?"),
    ("minutes-from-duration", "u?"),
    ("seconds-from-duration", "u?"),
];

/// The type of an argument of a function, when it is not just any sequence.
pub(crate) fn parameter(function: &str, index: usize) -> Option<SequenceType> {
    let (_, parameters) = SIGNATURES.iter().find(|(name, _)| *name == function)?;
    let repeated = parameters.strip_suffix('…').filter(|_| index > 0);
    let parameter = repeated.or_else(|| parameters.split(' ').nth(index))?;
    let mut letters = parameter.chars();
    let item = item_type(letters.next()?)?;
    let occurrence = match letters.next() {
        Some('?') => Occurrence::ZeroOrOne,
        Some('*') => Occurrence::ZeroOrMore,
        _ => Occurrence::One,
    };
    let anything = item == ItemType::Any && occurrence == Occurrence::ZeroOrMore;
    (!anything).then_some(SequenceType { item: Some(item), occurrence })
}

fn item_type(letter: char) -> Option<ItemType> {
    use AtomicType as T;
    Some(ItemType::Atomic(match letter {
        'I' => return Some(ItemType::Any),
        'N' => return Some(ItemType::Node(KindTest::Any)),
        'e' => return Some(ItemType::Node(KindTest::Element(None))),
        'A' => T::AnyAtomic,
        's' => T::String,
        'd' => T::Double,
        'n' => T::Numeric,
        'i' => T::Integer,
        'q' => T::QName,
        't' => T::DateTime,
        'D' => T::Date,
        'T' => T::Time,
        'u' => T::Duration,
        'v' => T::DayTimeDuration,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_names_a_function_and_known_types() {
        for (name, parameters) in SIGNATURES {
            let builtin = super::super::find(name).unwrap_or_else(|| panic!("{name}"));
            for (index, parameter) in parameters.split(' ').enumerate() {
                assert!(item_type(parameter.chars().next().unwrap()).is_some(), "{name} {parameter}");
                assert!((index + 1..6).any(|count| builtin.accepts(count)), "{name} {index}");
            }
        }
        assert_eq!(parameter("concat", 7), parameter("concat", 0));
        assert_eq!(parameter("count", 0), None);
        assert_eq!(parameter("remove", 0), None);
    }
}
