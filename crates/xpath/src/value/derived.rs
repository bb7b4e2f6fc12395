//! The types that XML Schema derives from `xs:string` and `xs:integer` by restriction.

use super::AtomicType;
use crate::lexer::{is_name_char, is_nc_name};

/// The text as a value of a type derived from `xs:string`, white space treated as the type says; `None` when it is none.
pub(super) fn restricted_string(text: &str, wanted: AtomicType) -> Option<String> {
    use AtomicType as T;
    if wanted == T::NormalizedString {
        return Some(text.replace(['\t', '\n', '\r'], " "));
    }
    let words: Vec<&str> = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()).collect();
    let token = words.join(" ");
    let valid = match wanted {
        T::Token => true,
        T::Language => is_language(&token),
        T::NmToken => !token.is_empty() && token.chars().all(|c| c == ':' || is_name_char(c)),
        T::Name => is_name(&token),
        T::NcName | T::Id | T::IdRef | T::Entity => is_nc_name(&token),
        _ => false,
    };
    valid.then_some(token)
}

/// Names of XML 1.0, colons included.
fn is_name(text: &str) -> bool {
    let first = text.chars().next().is_some_and(|c| c == ':' || crate::lexer::is_name_start(c));
    first && text.chars().all(|c| c == ':' || is_name_char(c))
}

/// `[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*`
fn is_language(text: &str) -> bool {
    text.split('-').enumerate().all(|(index, part)| {
        (1..=8).contains(&part.len())
            && part.bytes().all(|b| b.is_ascii_alphabetic() || (index > 0 && b.is_ascii_digit()))
    })
}

/// Whether a number is in the range of a type derived from `xs:integer`.
pub(super) fn in_range(value: i128, wanted: AtomicType) -> bool {
    use AtomicType as T;
    let range = match wanted {
        T::NonPositiveInteger => i128::MIN..=0,
        T::NegativeInteger => i128::MIN..=-1,
        T::NonNegativeInteger => 0..=i128::MAX,
        T::PositiveInteger => 1..=i128::MAX,
        T::Long => i128::from(i64::MIN)..=i128::from(i64::MAX),
        T::Int => i128::from(i32::MIN)..=i128::from(i32::MAX),
        T::Short => i128::from(i16::MIN)..=i128::from(i16::MAX),
        T::Byte => i128::from(i8::MIN)..=i128::from(i8::MAX),
        T::UnsignedLong => 0..=i128::from(u64::MAX),
        T::UnsignedInt => 0..=i128::from(u32::MAX),
        T::UnsignedShort => 0..=i128::from(u16::MAX),
        T::UnsignedByte => 0..=i128::from(u8::MAX),
        _ => return true,
    };
    range.contains(&value)
}
