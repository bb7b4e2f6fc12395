//! Atomic values and their types.

use std::borrow::Cow;
use std::sync::Arc;

use super::{DateTime, Decimal, Duration, number};

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
    /// `xs:duration`
    Duration(Duration),
    /// `xs:yearMonthDuration`
    YearMonthDuration(Duration),
    /// `xs:dayTimeDuration`
    DayTimeDuration(Duration),
}

/// The type of an atomic value, or one a cast or a type test names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicType {
    /// `xs:anyAtomicType`, which every atomic value is.
    AnyAtomic,
    /// `xs:string` and the types derived from it.
    String,
    /// `xs:untypedAtomic`
    Untyped,
    /// `xs:anyURI`
    Uri,
    /// `xs:boolean`
    Boolean,
    /// `xs:integer` and the types derived from it.
    Integer,
    /// `xs:decimal`
    Decimal,
    /// `xs:float`
    Float,
    /// `xs:double`
    Double,
    /// `xs:numeric`: any number.
    Numeric,
    /// `xs:QName`
    QName,
    /// `xs:dateTime`
    DateTime,
    /// `xs:date`
    Date,
    /// `xs:time`
    Time,
    /// `xs:duration`
    Duration,
    /// `xs:yearMonthDuration`
    YearMonthDuration,
    /// `xs:dayTimeDuration`
    DayTimeDuration,
}

/// Names in the XML Schema namespace. Derived types stand for the type they derive from.
const TYPE_NAMES: &[(&str, AtomicType)] = &[
    ("anyAtomicType", AtomicType::AnyAtomic),
    ("string", AtomicType::String),
    ("untypedAtomic", AtomicType::Untyped),
    ("anyURI", AtomicType::Uri),
    ("boolean", AtomicType::Boolean),
    ("integer", AtomicType::Integer),
    ("decimal", AtomicType::Decimal),
    ("float", AtomicType::Float),
    ("double", AtomicType::Double),
    ("numeric", AtomicType::Numeric),
    ("QName", AtomicType::QName),
    ("dateTime", AtomicType::DateTime),
    ("date", AtomicType::Date),
    ("time", AtomicType::Time),
    ("duration", AtomicType::Duration),
    ("yearMonthDuration", AtomicType::YearMonthDuration),
    ("dayTimeDuration", AtomicType::DayTimeDuration),
    ("normalizedString", AtomicType::String),
    ("token", AtomicType::String),
    ("language", AtomicType::String),
    ("Name", AtomicType::String),
    ("NCName", AtomicType::String),
    ("NMTOKEN", AtomicType::String),
    ("ID", AtomicType::String),
    ("IDREF", AtomicType::String),
    ("ENTITY", AtomicType::String),
    ("long", AtomicType::Integer),
    ("int", AtomicType::Integer),
    ("short", AtomicType::Integer),
    ("byte", AtomicType::Integer),
    ("nonNegativeInteger", AtomicType::Integer),
    ("positiveInteger", AtomicType::Integer),
    ("nonPositiveInteger", AtomicType::Integer),
    ("negativeInteger", AtomicType::Integer),
    ("unsignedLong", AtomicType::Integer),
    ("unsignedInt", AtomicType::Integer),
    ("unsignedShort", AtomicType::Integer),
    ("unsignedByte", AtomicType::Integer),
];

impl AtomicType {
    /// The type with this local name in the XML Schema namespace.
    pub fn from_local_name(local: &str) -> Option<AtomicType> {
        TYPE_NAMES.iter().find(|(name, _)| *name == local).map(|(_, found)| *found)
    }

    /// `xs:…`, for messages.
    pub fn name(self) -> String {
        let local = TYPE_NAMES.iter().find(|(_, found)| *found == self).map_or("anyAtomicType", |(name, _)| name);
        format!("xs:{local}")
    }

    /// Whether a value of type `self` is also a value of type `other`.
    pub fn derives_from(self, other: AtomicType) -> bool {
        use AtomicType as T;
        self == other
            || match other {
                T::AnyAtomic => true,
                T::Numeric => matches!(self, T::Integer | T::Decimal | T::Float | T::Double),
                T::Decimal => self == T::Integer,
                T::Duration => matches!(self, T::YearMonthDuration | T::DayTimeDuration),
                _ => false,
            }
    }
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
            Atomic::Integer(_) => AtomicType::Integer,
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

    /// Whether this is a number.
    pub fn is_numeric(&self) -> bool {
        matches!(self, Atomic::Integer(_) | Atomic::Decimal(_) | Atomic::Float(_) | Atomic::Double(_))
    }

    /// The text of a string, URI or untyped value.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        match self {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => Some(text),
            _ => None,
        }
    }

    /// The value as text. `compat` chooses how a double is written: as in XPath 1.0, or as `xs:double` is.
    pub fn to_text(&self, compat: bool) -> Cow<'_, str> {
        match self {
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => Cow::Borrowed(text),
            Atomic::Boolean(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Atomic::Integer(value) => Cow::Owned(value.to_string()),
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
            Atomic::String(text) | Atomic::Untyped(text) | Atomic::Uri(text) => number::parse(text, compat),
            Atomic::Boolean(value) => f64::from(u8::from(*value)),
            Atomic::Integer(value) => *value as f64,
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
