//! Atomic values and their types.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AtomicType, DateTime, Decimal, Duration, WideInteger, binary, number};

/// An expanded name that remembers its prefix.
#[derive(Debug, Clone)]
pub struct QName {
    /// As written; not part of the identity.
    pub prefix: Option<Arc<str>>,
    /// The namespace name.
    pub namespace: Option<Arc<str>>,
    /// The local part.
    pub local: Arc<str>,
}

impl PartialEq for QName {
    fn eq(&self, other: &QName) -> bool {
        self.local == other.local && self.namespace == other.namespace
    }
}

impl Eq for QName {}

impl QName {
    /// `prefix:local`, as written.
    pub fn lexical(&self) -> String {
        match &self.prefix {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}:{}", self.local),
            _ => self.local.to_string(),
        }
    }
}

/// An atomic value. 24 bytes; text and names are shared, not copied.
#[derive(Debug, Clone, PartialEq)]
pub enum Atomic {
    /// `xs:string`
    String(Arc<str>),
    /// `xs:untypedAtomic`: what atomizing a node gives.
    Untyped(Arc<str>),
    /// `xs:anyURI`
    Uri(Arc<str>),
    /// `xs:boolean`
    Boolean(bool),
    /// `xs:integer`, within 64 bits.
    Integer(i64),
    /// `xs:integer` beyond 64 bits.
    WideInteger(WideInteger),
    /// A type derived from `xs:integer`, such as `xs:byte`.
    DerivedInteger(AtomicType, i64),
    /// A type derived from `xs:string`, such as `xs:token`.
    DerivedString(AtomicType, Arc<str>),
    /// `xs:decimal`
    Decimal(Decimal),
    /// `xs:float`
    Float(f32),
    /// `xs:double`, the only number of XPath 1.0.
    Double(f64),
    /// `xs:QName`
    QName(Arc<QName>),
    /// `xs:dateTime`
    DateTime(DateTime),
    /// `xs:date`; the time part is midnight.
    Date(DateTime),
    /// `xs:time`; the date part is the reference date of the specification.
    Time(DateTime),
    /// `xs:gYear`, `xs:gYearMonth`, `xs:gMonth`, `xs:gMonthDay` or `xs:gDay`; parts it does not have are those of the
    /// reference date.
    Gregorian(AtomicType, DateTime),
    /// `xs:hexBinary`
    HexBinary(Arc<[u8]>),
    /// `xs:base64Binary`
    Base64Binary(Arc<[u8]>),
    /// `xs:duration`
    Duration(Duration),
    /// `xs:yearMonthDuration`
    YearMonthDuration(Duration),
    /// `xs:dayTimeDuration`
    DayTimeDuration(Duration),
}

impl Atomic {
    /// A string value.
    pub fn string(text: impl Into<Arc<str>>) -> Atomic {
        Atomic::String(text.into())
    }

    /// The type of the value.
    pub fn atomic_type(&self) -> AtomicType {
        match self {
            Atomic::String(_) => AtomicType::String,
            Atomic::Untyped(_) => AtomicType::Untyped,
            Atomic::Uri(_) => AtomicType::Uri,
            Atomic::Boolean(_) => AtomicType::Boolean,
            Atomic::Integer(_) | Atomic::WideInteger(_) => AtomicType::Integer,
            Atomic::DerivedInteger(derived, _) | Atomic::DerivedString(derived, _) | Atomic::Gregorian(derived, _) => {
                *derived
            }
            Atomic::HexBinary(_) => AtomicType::HexBinary,
            Atomic::Base64Binary(_) => AtomicType::Base64Binary,
            Atomic::Decimal(_) => AtomicType::Decimal,
            Atomic::Float(_) => AtomicType::Float,
            Atomic::Double(_) => AtomicType::Double,
            Atomic::QName(_) => AtomicType::QName,
            Atomic::DateTime(_) => AtomicType::DateTime,
            Atomic::Date(_) => AtomicType::Date,
            Atomic::Time(_) => AtomicType::Time,
            Atomic::Duration(_) => AtomicType::Duration,
            Atomic::YearMonthDuration(_) => AtomicType::YearMonthDuration,
            Atomic::DayTimeDuration(_) => AtomicType::DayTimeDuration,
        }
    }

    /// Whether this is a decimal number, whose digits are all known.
    pub fn is_exact_number(&self) -> bool {
        self.is_numeric() && !matches!(self, Atomic::Float(_) | Atomic::Double(_))
    }

    /// Whether this is a number.
    pub fn is_numeric(&self) -> bool {
        matches!(
            self,
            Atomic::Integer(_)
                | Atomic::WideInteger(_)
                | Atomic::DerivedInteger(..)
                | Atomic::Decimal(_)
                | Atomic::Float(_)
                | Atomic::Double(_)
        )
    }

    /// The number, when the value is an integer of any type.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Atomic::Integer(value) | Atomic::DerivedInteger(_, value) => Some(i128::from(*value)),
            Atomic::WideInteger(value) => Some(value.value()),
            _ => None,
        }
    }

    /// The bytes of a binary value.
    pub fn as_binary(&self) -> Option<&[u8]> {
        match self {
            Atomic::HexBinary(bytes) | Atomic::Base64Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text of a string, URI or untyped value.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) | Atomic::DerivedString(_, text) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// The value as text. `compat` chooses how a double is written: as in XPath 1.0, or as `xs:double` is.
    pub fn to_text(&self, compat: bool) -> Cow<'_, str> {
        match self {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) | Atomic::DerivedString(_, text) => {
                Cow::Borrowed(text)
            }
            Atomic::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Atomic::Integer(value) | Atomic::DerivedInteger(_, value) => Cow::Owned(value.to_string()),
            Atomic::WideInteger(value) => Cow::Owned(value.value().to_string()),
            Atomic::Gregorian(kind, value) => Cow::Owned(value.format_gregorian(*kind)),
            Atomic::HexBinary(bytes) => Cow::Owned(binary::format_hex(bytes)),
            Atomic::Base64Binary(bytes) => Cow::Owned(binary::format_base64(bytes)),
            Atomic::Decimal(value) => Cow::Owned(value.to_string()),
            Atomic::Float(value) => Cow::Owned(number::format_float(*value, compat)),
            Atomic::Double(value) => number::format_double(*value, compat),
            Atomic::QName(name) => Cow::Owned(name.lexical()),
            Atomic::DateTime(value) => Cow::Owned(value.format_date_time()),
            Atomic::Date(value) => Cow::Owned(value.format_date()),
            Atomic::Time(value) => Cow::Owned(value.format_time()),
            Atomic::Duration(value) => Cow::Owned(value.format(duration_zero(self))),
            Atomic::YearMonthDuration(value) => Cow::Owned(value.format(duration_zero(self))),
            Atomic::DayTimeDuration(value) => Cow::Owned(value.format(duration_zero(self))),
        }
    }

    /// `number()`: NaN where there is none.
    pub fn to_number(&self, compat: bool) -> f64 {
        match self {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::DerivedString(_, text) => {
                number::parse(text, compat)
            }
            Atomic::Uri(text) if compat => number::parse(text, compat),
            Atomic::Boolean(value) => f64::from(u8::from(*value)),
            Atomic::Integer(value) | Atomic::DerivedInteger(_, value) => *value as f64,
            Atomic::WideInteger(value) => value.value() as f64,
            Atomic::Decimal(value) => value.to_f64(),
            Atomic::Float(value) => f64::from(*value),
            Atomic::Double(value) => *value,
            _ => f64::NAN,
        }
    }
}

/// How a duration of no length is written.
fn duration_zero(value: &Atomic) -> &'static str {
    if matches!(value, Atomic::YearMonthDuration(_)) { "P0M" } else { "PT0S" }
}

impl From<bool> for Atomic {
    fn from(value: bool) -> Atomic {
        Atomic::Boolean(value)
    }
}

impl From<i64> for Atomic {
    fn from(value: i64) -> Atomic {
        Atomic::Integer(value)
    }
}

impl From<i128> for Atomic {
    fn from(value: i128) -> Atomic {
        i64::try_from(value).map_or_else(|_| Atomic::WideInteger(WideInteger::new(value)), Atomic::Integer)
    }
}

impl From<f64> for Atomic {
    fn from(value: f64) -> Atomic {
        Atomic::Double(value)
    }
}

impl From<&str> for Atomic {
    fn from(value: &str) -> Atomic {
        Atomic::String(value.into())
    }
}

impl From<String> for Atomic {
    fn from(value: String) -> Atomic {
        Atomic::String(value.into())
    }
}

impl From<Cow<'_, str>> for Atomic {
    fn from(value: Cow<'_, str>) -> Atomic {
        Atomic::String(value.into())
    }
}

impl From<Arc<str>> for Atomic {
    fn from(value: Arc<str>) -> Atomic {
        Atomic::String(value)
    }
}
