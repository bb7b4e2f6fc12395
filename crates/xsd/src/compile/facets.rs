//! Facets against each other, against the type they restrict, and against those of the base (XML Schema part 2 §4.3).

use std::cmp::Ordering;

use crate::model::{SimpleType, Variety};
use crate::simple::{Builtin, Facet, Ordered};

/// Whether a facet means something for a type.
pub(super) fn applies(name: &str, parent: &SimpleType) -> bool {
    let builtin = match &parent.variety {
        Variety::Union(_) => return matches!(name, "pattern" | "enumeration"),
        Variety::List(_) => {
            return matches!(name, "length" | "minLength" | "maxLength" | "pattern" | "enumeration" | "whiteSpace");
        }
        Variety::Atomic(builtin) => builtin.primitive(),
    };
    match name {
        "pattern" | "whiteSpace" => true,
        "enumeration" => builtin != Builtin::Boolean,
        "length" | "minLength" | "maxLength" => matches!(
            builtin,
            Builtin::String
                | Builtin::AnyUri
                | Builtin::QName
                | Builtin::Notation
                | Builtin::HexBinary
                | Builtin::Base64Binary
        ),
        "totalDigits" | "fractionDigits" => builtin == Builtin::Decimal,
        "minInclusive" | "maxInclusive" | "minExclusive" | "maxExclusive" => matches!(
            builtin,
            Builtin::Decimal
                | Builtin::Float
                | Builtin::Double
                | Builtin::Duration
                | Builtin::DateTime
                | Builtin::Time
                | Builtin::Date
                | Builtin::YearMonth
                | Builtin::Year
                | Builtin::MonthDay
                | Builtin::Day
                | Builtin::Month
        ),
        _ => false,
    }
}

/// Facets that have an attribute `fixed`.
pub(super) const FIXABLE: [&str; 10] = [
    "length",
    "minLength",
    "maxLength",
    "whiteSpace",
    "minInclusive",
    "minExclusive",
    "maxInclusive",
    "maxExclusive",
    "totalDigits",
    "fractionDigits",
];

/// Whether a facet is given as the base has it.
pub(super) fn is_kept(own: &Facet, base: &[Facet]) -> bool {
    use Facet as F;
    base.iter().rev().find(|facet| facet.name() == own.name()).is_some_and(|facet| match (own, facet) {
        (F::Length(one), F::Length(two))
        | (F::MinLength(one), F::MinLength(two))
        | (F::MaxLength(one), F::MaxLength(two))
        | (F::TotalDigits(one), F::TotalDigits(two))
        | (F::FractionDigits(one), F::FractionDigits(two)) => one == two,
        (F::Bound(_, one, _), F::Bound(_, two, _)) => one.equals(two),
        _ => false,
    })
}

/// What is wrong with the facets of one restriction, `own`, beside those of its base.
pub(super) fn contradiction(own: &[Facet], base: &[Facet]) -> Option<String> {
    for (index, one) in own.iter().enumerate() {
        let name = one.name();
        if own[..index].iter().any(|other| other.name() == name) {
            return Some(format!("<{name}> is given twice"));
        }
    }
    let all: Vec<&Facet> = own.iter().chain(base).collect();
    pairs(own)
        .or_else(|| lengths(own, base))
        .or_else(|| own.iter().find_map(|one| all.iter().find_map(|other| against(one, other))))
}

/// Facets that one restriction does not have together.
fn pairs(own: &[Facet]) -> Option<String> {
    let has = |name: &str| own.iter().any(|facet| facet.name() == name);
    [
        ("length", "minLength"),
        ("length", "maxLength"),
        ("minInclusive", "minExclusive"),
        ("maxInclusive", "maxExclusive"),
    ]
    .iter()
    .find(|(one, other)| has(one) && has(other))
    .map(|(one, other)| format!("<{one}> and <{other}> exclude each other"))
}

/// A length that the base fixes leaves no other bounds of the length than those given before it.
fn lengths(own: &[Facet], base: &[Facet]) -> Option<String> {
    let has_length = base.iter().any(|facet| matches!(facet, Facet::Length(_)));
    let bound = own.iter().find(|facet| {
        matches!(facet, Facet::MinLength(_) | Facet::MaxLength(_)) && has_length && !is_kept(facet, base)
    })?;
    Some(format!("the base has <length>, which excludes <{}>", bound.name()))
}

/// Whether a facet goes together with another one of its own restriction or of the base.
fn against(own: &Facet, other: &Facet) -> Option<String> {
    use Facet as F;
    let wrong = match (own, other) {
        (F::Length(one), F::Length(two)) => one != two,
        (F::Length(one), F::MinLength(two)) | (F::MinLength(two), F::Length(one)) => one < two,
        (F::Length(one), F::MaxLength(two)) | (F::MaxLength(two), F::Length(one)) => one > two,
        (F::MinLength(one), F::MinLength(two)) => one < two,
        (F::MaxLength(one), F::MaxLength(two)) => one > two,
        (F::MinLength(one), F::MaxLength(two)) | (F::MaxLength(two), F::MinLength(one)) => one > two,
        (F::TotalDigits(one), F::TotalDigits(two)) | (F::FractionDigits(one), F::FractionDigits(two)) => one > two,
        (F::FractionDigits(one), F::TotalDigits(two)) | (F::TotalDigits(two), F::FractionDigits(one)) => one > two,
        (F::Bound(kind, value, _), F::Bound(limit, bound, _)) => {
            let order = value.compare(bound);
            let lower = |kind: &Ordered| matches!(kind, Ordered::MinInclusive | Ordered::MinExclusive);
            let strict = |kind: &Ordered| matches!(kind, Ordered::MinExclusive | Ordered::MaxExclusive);
            match (lower(kind), lower(limit)) {
                (true, false) => {
                    let closed = strict(kind) != strict(limit);
                    matches!(order, None | Some(Ordering::Greater)) || (closed && order == Some(Ordering::Equal))
                }
                (false, true) => {
                    let closed = strict(kind) != strict(limit);
                    matches!(order, None | Some(Ordering::Less)) || (closed && order == Some(Ordering::Equal))
                }
                _ => false,
            }
        }
        _ => false,
    };
    wrong.then(|| format!("<{}> contradicts <{}>", own.name(), other.name()))
}
