//! The order of a dictionary: punctuation, then digits, then letters, with accents and case as later tie breakers.
//!
//! The order of `xsl:sort` is the one stylesheet authors know from the Java processors: spaces and hyphens count only
//! between otherwise equal strings, `a` sorts before `A`, `e` before `é`. A language may own letters that others treat as
//! accented forms.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Spaces and hyphens: they carry no primary weight, only a secondary one.
const IGNORABLE: &str = " \u{a0}\r\t\n\u{c}\u{b}-\u{ad}";

/// Punctuation and digits in primary order, all of it below the letters.
const BELOW_LETTERS: &str = "_¯,;:!¡?¿/.´`^¨~·¸'\"«»()[]{}§¶©®@¤¢$£¥*\\&#%+±÷×<=>¬|¦°µ0123456789¼½¾";

/// Latin letters in primary order; each group lists the accented forms in secondary order.
const LATIN: &[&str] = &[
    "aáàăâåäãāą",
    "æ",
    "b",
    "cćĉčċç",
    "dďđ",
    "ð",
    "eéèĕêěëėēę",
    "f",
    "gğĝġģ",
    "hĥħ",
    "iíìĭîïĩīįı",
    "jĵ",
    "kķ",
    "lĺľļł",
    "m",
    "nńňñņ",
    "oóòŏôöőõōø",
    "œ",
    "p",
    "q",
    "rŕřŗ",
    "sśŝšş",
    "ß",
    "tťţŧ",
    "þ",
    "uúùŭûůüűũūų",
    "v",
    "wŵ",
    "x",
    "yýŷÿ",
    "zźžż",
];

/// Languages whose alphabet has letters of its own. Only the order of the listed letters matters.
const ALPHABETS: &[(&str, &str)] = &[
    ("pl", "aąbcćdeęfghijklłmnńoópqrsśtuvwxyzźż"),
    ("ru", "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"),
    ("uk", "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя"),
    ("bg", "абвгдежзийклмнопрстуфхцчшщъьюя"),
    ("cs", "abcčdefghijklmnopqrřsštuvwxyzž"),
    ("sk", "aäbcčdefghijklmnoôpqrsštuvwxyzž"),
    ("sv", "abcdefghijklmnopqrstuvwxyzåäö"),
    ("fi", "abcdefghijklmnopqrstuvwxyzåäö"),
    ("da", "abcdefghijklmnopqrstuvwxyzæøå"),
    ("no", "abcdefghijklmnopqrstuvwxyzæøå"),
    ("nb", "abcdefghijklmnopqrstuvwxyzæøå"),
    ("is", "aábcdðeéfghiíjklmnoópqrstuúvwxyýzþæö"),
    ("et", "abcdefghijklmnopqrsšzžtuvwõäöüxy"),
    ("lt", "abcčdefghiyjklmnopqrsštuvwxzž"),
    ("lv", "abcčdefgģhijkķlļmnņopqrsštuvwxyzž"),
    ("hr", "abcčćdđefghijklmnopqrsštuvwxyzž"),
    ("sl", "abcčdefghijklmnopqrsštuvwxyzž"),
    ("es", "abcdefghijklmnñopqrstuvwxyz"),
    ("hu", "abcdefghijklmnoöpqrstuüvwxyz"),
    ("ro", "aăâbcdefghiîjklmnopqrsştţuvwxyz"),
    ("tr", "abcçdefgğhıijklmnoöprsştuüvyz"),
    ("sq", "abcçdeëfghijklmnopqrstuvwxyz"),
];

/// Secondary weights of spaces and hyphens come after those of accents.
const SECONDARY_IGNORABLE: u8 = 100;
/// Below are spaces and hyphens where they count.
const PUNCTUATION_BASE: u32 = 0x20;
const LETTER_BASE: u32 = 0x200;
const OTHER_BASE: u32 = 0x1000;

/// Languages that the common order of Latin letters serves.
const COMMON_ORDER: [&str; 7] = ["", "en", "de", "fr", "it", "nl", "pt"];

/// Which differences between texts count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Letters.
    Primary,
    /// Letters and accents.
    Secondary,
    /// Letters, accents and case.
    #[default]
    Tertiary,
    /// Everything.
    Identical,
}

/// The order of letters in a language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LetterOrder {
    /// Index into [`ALPHABETS`], when the language has one.
    alphabet: Option<usize>,
    /// Whether `A` comes before `a`.
    pub upper_first: bool,
    /// Spaces and hyphens count like other punctuation.
    pub counts_spaces: bool,
    /// Which differences count.
    pub strength: Strength,
}

/// The weights of a character at the three levels; a weight below the strength is 0.
pub(super) type Weights = (u32, u8, u8);

impl LetterOrder {
    /// The order of a language tag such as `pl` or `en-US`.
    pub fn for_language(tag: &str, upper_first: bool) -> Self {
        let language = language_of(tag);
        let alphabet = ALPHABETS.iter().position(|(name, _)| name.eq_ignore_ascii_case(language));
        LetterOrder { alphabet, upper_first, ..LetterOrder::default() }
    }

    /// Whether the order of a language is known.
    pub(super) fn knows(tag: &str) -> bool {
        let language = language_of(tag);
        let mut known = ALPHABETS.iter().map(|(name, _)| *name).chain(COMMON_ORDER);
        known.any(|name| name.eq_ignore_ascii_case(language))
    }

    /// The weights of a character; `None` if no difference of it counts.
    pub(super) fn character(&self, original: char) -> Option<Weights> {
        if self.strength == Strength::Identical {
            return Some((original as u32, 0, 0));
        }
        if let Some(rank) = IGNORABLE.chars().position(|c| c == original) {
            return match (self.counts_spaces, self.strength) {
                (true, _) => Some((rank as u32 + 1, 0, 0)),
                (false, Strength::Primary) => None,
                (false, _) => Some((0, rank as u8 + SECONDARY_IGNORABLE, 0)),
            };
        }
        if original.is_control() {
            return None;
        }
        let lower = original.to_lowercase().next().unwrap_or(original);
        let (primary, accent) = self.weights(lower);
        let secondary = if self.strength >= Strength::Secondary { accent + 1 } else { 0 };
        let case = u8::from((lower != original) != self.upper_first) + 1;
        Some((primary, secondary, if self.strength >= Strength::Tertiary { case } else { 0 }))
    }

    /// A key that orders bytewise as the text orders in this collation.
    pub fn key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() * 4 + 4);
        let mut secondary = Vec::with_capacity(text.len() + 2);
        let mut tertiary = Vec::with_capacity(text.len());
        // Letters with combining accents are one character.
        let text = if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect::<String>()) };
        let exact = LetterOrder { strength: self.strength.min(Strength::Tertiary), ..*self };
        for (primary, accent, case) in text.chars().filter_map(|c| exact.character(c)) {
            if primary > 0 {
                key.extend_from_slice(&primary.to_be_bytes()[1..]);
            }
            secondary.extend(Some(accent).filter(|accent| *accent > 0));
            tertiary.extend(Some(case).filter(|case| *case > 0));
        }
        key.extend_from_slice(&[0, 0, 0]);
        key.append(&mut secondary);
        key.push(0);
        key.append(&mut tertiary);
        if self.strength == Strength::Identical {
            key.push(0);
            key.extend_from_slice(text.as_bytes());
        }
        key
    }

    fn weights(&self, lower: char) -> (u32, u8) {
        if let Some(rank) = self.alphabet.and_then(|a| ALPHABETS[a].1.chars().position(|c| c == lower)) {
            let latin = ALPHABETS[self.alphabet.unwrap_or_default()].1.starts_with('a');
            return (if latin { LETTER_BASE } else { OTHER_BASE - 0x100 } + rank as u32 * 2, 0);
        }
        if let Some(rank) = BELOW_LETTERS.chars().position(|c| c == lower) {
            return (rank as u32 + PUNCTUATION_BASE, 0);
        }
        for (rank, group) in LATIN.iter().enumerate() {
            if let Some(accent) = group.chars().position(|c| c == lower) {
                let base = group.chars().next().unwrap_or(lower);
                if accent > 0 && self.alphabet.is_some() {
                    return (self.weights(base).0, accent as u8);
                }
                let own = self.alphabet.filter(|a| ALPHABETS[*a].1.starts_with('a'));
                // A letter outside the language's alphabet sorts beside its neighbour of the common order.
                let before = own.and_then(|_| (0..rank).rev().find_map(|r| self.own_rank(r)));
                return match before {
                    Some(neighbour) => (neighbour + 1, accent as u8),
                    None => (LETTER_BASE + rank as u32 * 2, accent as u8),
                };
            }
        }
        (OTHER_BASE + lower as u32, 0)
    }

    fn own_rank(&self, group: usize) -> Option<u32> {
        let letter = LATIN[group].chars().next()?;
        let rank = ALPHABETS[self.alphabet?].1.chars().position(|c| c == letter)?;
        Some(LETTER_BASE + rank as u32 * 2)
    }
}

fn language_of(tag: &str) -> &str {
    tag.split(['-', '_']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: &str, upper_first: bool, input: &str, expected: &str) {
        let collation = LetterOrder::for_language(language, upper_first);
        let mut words: Vec<&str> = input.split('|').collect();
        words.sort_by_key(|word| collation.key(word));
        assert_eq!(words.join("|"), expected, "language `{language}`");
    }

    #[test]
    fn spaces_and_case_only_break_ties() {
        check("", false, "b|a c|ab|a b|aB|A|ab ", "A|ab|aB|ab |a b|a c|b");
        check("en-US", false, "preFIX|prefix|URI|to|use", "prefix|preFIX|to|URI|use");
        check("en", true, "prefix|PREFIX|a", "a|PREFIX|prefix");
    }

    #[test]
    fn punctuation_precedes_digits_and_letters() {
        check("", false, "a|1|!|é|e|f", "!|1|a|e|é|f");
    }

    #[test]
    fn an_alphabet_owns_its_letters() {
        check("pl", false, "źa|za|żb|ó|o|p|ą|az|b", "az|ą|b|o|ó|p|za|źa|żb");
        check("ru", false, "ж|ё|е|а|я", "а|е|ё|ж|я");
        check("sv", false, "ö|z|å|ä|a", "a|z|å|ä|ö");
    }
}
