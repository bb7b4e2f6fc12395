//! `xsl:decimal-format`: declarations of one name are one format.

use penstock_xpath::DecimalFormat;
use penstock_xpath::ast::Name;
use penstock_xpath::numbering::zero_of_digit;

use super::super::{At, Compiler};
use super::{Kinds, Ranked};

pub(in crate::compile) struct NamedDecimalFormat {
    pub name: Option<Name>,
    pub format: DecimalFormat,
}

/// The attributes that are one character.
const CHARACTERS: &[&str] = &[
    "decimal-separator",
    "grouping-separator",
    "minus-sign",
    "percent",
    "per-mille",
    "zero-digit",
    "digit",
    "pattern-separator",
];

const TEXTS: &[&str] = &["infinity", "NaN"];

impl Compiler<'_> {
    pub(super) fn decimal_formats(&mut self, kinds: &Kinds) {
        let mut groups: Vec<(Option<Name>, Vec<Ranked>)> = Vec::new();
        for ranked in &kinds.decimal_formats {
            let name = match self.attribute(ranked.at, "name") {
                None => None,
                Some(text) => {
                    if self.declared_name(ranked.at).is_none() {
                        continue;
                    }
                    self.xpath_name(text, ranked.at)
                }
            };
            let same = |other: &Option<Name>| match (other, &name) {
                (None, None) => true,
                (Some(other), Some(name)) => other.local == name.local && other.namespace == name.namespace,
                _ => false,
            };
            match groups.iter_mut().find(|(other, _)| same(other)) {
                Some((_, list)) => list.push(*ranked),
                None => groups.push((name, vec![*ranked])),
            }
        }
        for (name, list) in groups {
            let format = self.decimal_format(&list);
            self.decimal_formats.push(NamedDecimalFormat { name, format });
        }
    }

    /// The value of an attribute: that of the highest precedence, where all must agree (XTSE1290).
    fn agreed<'k>(&mut self, list: &'k [Ranked], name: &str) -> Option<&'k Ranked> {
        let mut best: Option<&Ranked> = None;
        for ranked in list {
            if self.attribute(ranked.at, name).is_none() {
                continue;
            }
            match best {
                Some(other) if other.precedence > ranked.precedence => {}
                Some(other) if other.precedence == ranked.precedence => {
                    if self.attribute(other.at, name) != self.attribute(ranked.at, name) {
                        let message = format!("`{name}` differs between declarations of one decimal format");
                        self.error("XTSE1290", message, ranked.at);
                    }
                }
                _ => best = Some(ranked),
            }
        }
        best
    }

    fn decimal_format(&mut self, list: &[Ranked]) -> DecimalFormat {
        let mut format = DecimalFormat::default();
        for &name in CHARACTERS {
            let Some(at) = self.agreed(list, name).map(|ranked| ranked.at) else { continue };
            let mut chars = self.attribute(at, name).unwrap_or_default().chars();
            let (Some(character), None) = (chars.next(), chars.next()) else {
                self.error("XTSE0020", format!("`{name}` is one character"), self.attribute_place(at, name));
                continue;
            };
            if name == "zero-digit" && zero_of_digit(character) != Some(character) && self.version(at) >= 2.0 {
                self.error("XTSE1295", "`zero-digit` is a digit zero of Unicode", self.attribute_place(at, name));
                continue;
            }
            *character_of(&mut format, name) = character;
        }
        for &name in TEXTS {
            let Some(at) = self.agreed(list, name).map(|ranked| ranked.at) else { continue };
            let text = self.attribute(at, name).unwrap_or_default();
            if name == "NaN" { format.nan = text.into() } else { format.infinity = text.into() }
        }
        let last = list.last().map(|ranked| ranked.at);
        if let Some(at) = last.filter(|at| self.version(*at) >= 2.0) {
            self.check_distinct(&mut format, at);
        }
        format
    }

    /// The characters that mean something in a picture are different ones (XTSE1300).
    fn check_distinct(&mut self, format: &mut DecimalFormat, at: At) {
        let mut seen: Vec<char> = Vec::new();
        for &name in CHARACTERS.iter().filter(|name| **name != "minus-sign") {
            let character = *character_of(format, name);
            if seen.contains(&character) {
                self.error("XTSE1300", format!("`{name}` is the same character as another one of the format"), at);
                return;
            }
            seen.push(character);
        }
    }
}

fn character_of<'f>(format: &'f mut DecimalFormat, name: &str) -> &'f mut char {
    match name {
        "decimal-separator" => &mut format.decimal_separator,
        "grouping-separator" => &mut format.grouping_separator,
        "minus-sign" => &mut format.minus_sign,
        "percent" => &mut format.percent,
        "per-mille" => &mut format.per_mille,
        "zero-digit" => &mut format.zero_digit,
        "digit" => &mut format.digit,
        _ => &mut format.pattern_separator,
    }
}
