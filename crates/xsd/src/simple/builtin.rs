//! The built-in types and what their texts look like.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::WhiteSpace;
use super::time::{self, Shape};
use super::value::{Decimal, Value};

/// Namespaces in scope, for values that are names.
pub(crate) type Context<'c> = &'c dyn Fn(&str) -> Option<String>;

macro_rules! builtins {
    ($($variant:ident $name:literal $base:ident $space:ident,)*) => {
        /// A built-in type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Builtin { $($variant,)* }

        impl Builtin {
            /// All of them, bases before what is derived from them.
            pub(crate) const ALL: &'static [Builtin] = &[$(Builtin::$variant,)*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name,)* }
            }

            /// What it is derived from; itself at the top.
            pub(crate) fn base(self) -> Builtin {
                match self { $(Builtin::$variant => Builtin::$base,)* }
            }

            pub(crate) fn white_space(self) -> WhiteSpace {
                match self { $(Builtin::$variant => WhiteSpace::$space,)* }
            }
        }
    };
}

builtins! {
    AnySimple "anySimpleType" AnySimple Preserve,
    String "string" AnySimple Preserve,
    Boolean "boolean" AnySimple Collapse,
    Decimal "decimal" AnySimple Collapse,
    Float "float" AnySimple Collapse,
    Double "double" AnySimple Collapse,
    Duration "duration" AnySimple Collapse,
    DateTime "dateTime" AnySimple Collapse,
    Time "time" AnySimple Collapse,
    Date "date" AnySimple Collapse,
    YearMonth "gYearMonth" AnySimple Collapse,
    Year "gYear" AnySimple Collapse,
    MonthDay "gMonthDay" AnySimple Collapse,
    Day "gDay" AnySimple Collapse,
    Month "gMonth" AnySimple Collapse,
    HexBinary "hexBinary" AnySimple Collapse,
    Base64Binary "base64Binary" AnySimple Collapse,
    AnyUri "anyURI" AnySimple Collapse,
    QName "QName" AnySimple Collapse,
    Notation "NOTATION" AnySimple Collapse,
    NormalizedString "normalizedString" String Replace,
    Token "token" NormalizedString Collapse,
    Language "language" Token Collapse,
    NmToken "NMTOKEN" Token Collapse,
    Name "Name" Token Collapse,
    NcName "NCName" Name Collapse,
    Id "ID" NcName Collapse,
    IdRef "IDREF" NcName Collapse,
    Entity "ENTITY" NcName Collapse,
    Integer "integer" Decimal Collapse,
    NonPositiveInteger "nonPositiveInteger" Integer Collapse,
    NegativeInteger "negativeInteger" NonPositiveInteger Collapse,
    Long "long" Integer Collapse,
    Int "int" Long Collapse,
    Short "short" Int Collapse,
    Byte "byte" Short Collapse,
    NonNegativeInteger "nonNegativeInteger" Integer Collapse,
    UnsignedLong "unsignedLong" NonNegativeInteger Collapse,
    UnsignedInt "unsignedInt" UnsignedLong Collapse,
    UnsignedShort "unsignedShort" UnsignedInt Collapse,
    UnsignedByte "unsignedByte" UnsignedShort Collapse,
    PositiveInteger "positiveInteger" NonNegativeInteger Collapse,
}

impl Builtin {
    /// Whether it is `integer` or derived from it.
    pub(crate) fn is_integer(self) -> bool {
        self == Builtin::Integer || (self.base() != self && self.base().is_integer())
    }

    /// The primitive type it is derived from.
    pub(crate) fn primitive(self) -> Builtin {
        match self.base() {
            Builtin::AnySimple => self,
            base => base.primitive(),
        }
    }

    /// The value a text spells; `None` when it spells none. White space was dealt with before.
    pub(crate) fn parse<'t>(self, text: &'t str, context: Context<'_>) -> Option<Value<'t>> {
        let bounded = |low: &str, high: &str| {
            integer(text, Some(low).filter(|low| !low.is_empty()), Some(high).filter(|high| !high.is_empty()))
        };
        Some(match self {
            Builtin::AnySimple | Builtin::String | Builtin::NormalizedString | Builtin::Token | Builtin::AnyUri => {
                Value::Text(text.into())
            }
            Builtin::Boolean => match text {
                "true" | "1" => Value::Boolean(true),
                "false" | "0" => Value::Boolean(false),
                _ => return None,
            },
            Builtin::Decimal => Value::Decimal(Decimal::parse(text)?),
            Builtin::Float => Value::Double(f64::from(float(text)? as f32)),
            Builtin::Double => Value::Double(float(text)?),
            Builtin::Duration => time::duration(text)?,
            Builtin::DateTime => time::instant(text, Shape::DateTime)?,
            Builtin::Time => time::instant(text, Shape::Time)?,
            Builtin::Date => time::instant(text, Shape::Date)?,
            Builtin::YearMonth => time::instant(text, Shape::YearMonth)?,
            Builtin::Year => time::instant(text, Shape::Year)?,
            Builtin::MonthDay => time::instant(text, Shape::MonthDay)?,
            Builtin::Day => time::instant(text, Shape::Day)?,
            Builtin::Month => time::instant(text, Shape::Month)?,
            Builtin::HexBinary => hex(text)?,
            Builtin::Base64Binary => {
                let packed: String = text.split_ascii_whitespace().collect();
                Value::Binary(STANDARD.decode(packed).ok()?)
            }
            Builtin::QName | Builtin::Notation => qname(text, context)?,
            Builtin::Language => language(text).then(|| Value::Text(text.into()))?,
            Builtin::NmToken => {
                // A name token is a name without its first letter.
                let token = !text.is_empty() && penstock_xml::is_name(&format!("n{text}"));
                token.then(|| Value::Text(text.into()))?
            }
            Builtin::Name => penstock_xml::is_name(text).then(|| Value::Text(text.into()))?,
            Builtin::NcName | Builtin::Id | Builtin::IdRef | Builtin::Entity => {
                penstock_xml::is_ncname(text).then(|| Value::Text(text.into()))?
            }
            Builtin::Integer => bounded("", "")?,
            Builtin::NonPositiveInteger => bounded("", "0")?,
            Builtin::NegativeInteger => bounded("", "-1")?,
            Builtin::NonNegativeInteger => bounded("0", "")?,
            Builtin::PositiveInteger => bounded("1", "")?,
            Builtin::Long => bounded("-9223372036854775808", "9223372036854775807")?,
            Builtin::Int => bounded("-2147483648", "2147483647")?,
            Builtin::Short => bounded("-32768", "32767")?,
            Builtin::Byte => bounded("-128", "127")?,
            Builtin::UnsignedLong => bounded("0", "18446744073709551615")?,
            Builtin::UnsignedInt => bounded("0", "4294967295")?,
            Builtin::UnsignedShort => bounded("0", "65535")?,
            Builtin::UnsignedByte => bounded("0", "255")?,
        })
    }
}

fn integer<'t>(text: &'t str, low: Option<&str>, high: Option<&str>) -> Option<Value<'t>> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value = Decimal::parse(text)?;
    let above = low.is_none_or(|low| Decimal::parse(low).is_some_and(|low| value >= low));
    let below = high.is_none_or(|high| Decimal::parse(high).is_some_and(|high| value <= high));
    (above && below).then_some(Value::Decimal(value))
}

fn float(text: &str) -> Option<f64> {
    match text {
        "INF" => Some(f64::INFINITY),
        "-INF" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text.parse().ok()
        }
        _ => None,
    }
}

fn hex(text: &str) -> Option<Value<'static>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let bytes = text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?));
    Some(Value::Binary(bytes.collect::<Option<Vec<u8>>>()?))
}

fn qname(text: &str, context: Context<'_>) -> Option<Value<'static>> {
    let (prefix, local) = text.split_once(':').unwrap_or(("", text));
    if !penstock_xml::is_ncname(local)
        || !(prefix.is_empty() && !text.starts_with(':') || penstock_xml::is_ncname(prefix))
    {
        return None;
    }
    let namespace = match context(prefix) {
        Some(namespace) => namespace,
        None if prefix.is_empty() => String::new(),
        None => return None,
    };
    Some(Value::Name(namespace, local.to_owned()))
}

/// RFC 3066: letters, then letters or digits, in parts of one to eight.
fn language(text: &str) -> bool {
    text.split('-').enumerate().all(|(index, part)| {
        let fits = |byte: u8| if index == 0 { byte.is_ascii_alphabetic() } else { byte.is_ascii_alphanumeric() };
        (1..=8).contains(&part.len()) && part.bytes().all(fits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lexical_forms() {
        let context = |prefix: &str| (prefix == "p").then(|| "urn:p".to_owned());
        for (kind, good, bad) in [
            (Builtin::Boolean, "true 1 false 0", "TRUE yes"),
            (Builtin::Decimal, "1 -1.5 +.5 5. 00.10", "1e3 . - 1.2.3 0x1"),
            (Builtin::Double, "1e3 -INF NaN .5 5.", "inf Infinity 1e e5"),
            (Builtin::Int, "2147483647 -2147483648 +5", "2147483648 5.0 --5"),
            (Builtin::UnsignedByte, "0 255 -0", "256 -1"),
            (Builtin::PositiveInteger, "1 99999999999999999999999", "0 -1"),
            (
                Builtin::Date,
                "2024-02-29 2024-01-01Z 2024-01-01+05:30 -0044-03-15",
                "2023-02-29 2024-1-1 24-01-01 2024-13-01",
            ),
            (
                Builtin::DateTime,
                "2024-01-01T24:00:00 2024-01-01T00:00:00.123Z",
                "2024-01-01 2024-01-01T25:00:00 2024-01-01T00:00",
            ),
            (Builtin::Time, "23:59:59.9 00:00:00Z", "24:00:01 1:00:00"),
            (Builtin::YearMonth, "2024-02", "2024-13"),
            (Builtin::MonthDay, "--02-29", "--02-30 -02-01"),
            (Builtin::Day, "---31", "---32"),
            (Builtin::Month, "--12Z", "--13"),
            (Builtin::Duration, "P1Y2M3DT4H5M6.7S PT0S -P1D", "P 1Y PT P1S P1H"),
            (Builtin::HexBinary, "0aFF", "0 0g"),
            (Builtin::Base64Binary, "QUJD QQ==", "QUJ= QUJDR"),
            (Builtin::Language, "en en-US", "e1 en_US englishlanguage"),
            (Builtin::NcName, "a-b _x", "a:b 1a"),
            (Builtin::QName, "p:a a", "q:a p: :a"),
            (Builtin::NmToken, "1a a:b", "a$"),
        ] {
            for text in good.split(' ') {
                assert!(kind.parse(text, &context).is_some(), "{} {text}", kind.name());
            }
            for text in bad.split(' ') {
                assert!(kind.parse(text, &context).is_none(), "{} {text}", kind.name());
            }
        }
    }
}
