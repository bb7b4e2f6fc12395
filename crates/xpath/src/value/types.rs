//! The atomic types of XML Schema and what derives from what.

/// The type of an atomic value, or one a cast or a type test names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of XML Schema; the table says how each is written")]
pub enum AtomicType {
    AnyAtomic,
    String,
    Untyped,
    Uri,
    Boolean,
    Decimal,
    Integer,
    Float,
    Double,
    /// Any number: the union that XPath 3.1 calls `xs:numeric`.
    Numeric,
    QName,
    Notation,
    DateTime,
    Date,
    Time,
    GYear,
    GYearMonth,
    GMonth,
    GMonthDay,
    GDay,
    Duration,
    YearMonthDuration,
    DayTimeDuration,
    HexBinary,
    Base64Binary,
    NormalizedString,
    Token,
    Language,
    NmToken,
    Name,
    NcName,
    Id,
    IdRef,
    Entity,
    NonPositiveInteger,
    NegativeInteger,
    Long,
    Int,
    Short,
    Byte,
    NonNegativeInteger,
    PositiveInteger,
    UnsignedLong,
    UnsignedInt,
    UnsignedShort,
    UnsignedByte,
}

use AtomicType as T;

/// Names in the XML Schema namespace, and the type each type is derived from.
const TYPES: &[(&str, AtomicType, AtomicType)] = &[
    ("anyAtomicType", T::AnyAtomic, T::AnyAtomic),
    ("string", T::String, T::AnyAtomic),
    ("untypedAtomic", T::Untyped, T::AnyAtomic),
    ("anyURI", T::Uri, T::AnyAtomic),
    ("boolean", T::Boolean, T::AnyAtomic),
    ("decimal", T::Decimal, T::AnyAtomic),
    ("integer", T::Integer, T::Decimal),
    ("float", T::Float, T::AnyAtomic),
    ("double", T::Double, T::AnyAtomic),
    ("numeric", T::Numeric, T::AnyAtomic),
    ("QName", T::QName, T::AnyAtomic),
    ("NOTATION", T::Notation, T::AnyAtomic),
    ("dateTime", T::DateTime, T::AnyAtomic),
    ("date", T::Date, T::AnyAtomic),
    ("time", T::Time, T::AnyAtomic),
    ("gYear", T::GYear, T::AnyAtomic),
    ("gYearMonth", T::GYearMonth, T::AnyAtomic),
    ("gMonth", T::GMonth, T::AnyAtomic),
    ("gMonthDay", T::GMonthDay, T::AnyAtomic),
    ("gDay", T::GDay, T::AnyAtomic),
    ("duration", T::Duration, T::AnyAtomic),
    ("yearMonthDuration", T::YearMonthDuration, T::Duration),
    ("dayTimeDuration", T::DayTimeDuration, T::Duration),
    ("hexBinary", T::HexBinary, T::AnyAtomic),
    ("base64Binary", T::Base64Binary, T::AnyAtomic),
    ("normalizedString", T::NormalizedString, T::String),
    ("token", T::Token, T::NormalizedString),
    ("language", T::Language, T::Token),
    ("NMTOKEN", T::NmToken, T::Token),
    ("Name", T::Name, T::Token),
    ("NCName", T::NcName, T::Name),
    ("ID", T::Id, T::NcName),
    ("IDREF", T::IdRef, T::NcName),
    ("ENTITY", T::Entity, T::NcName),
    ("nonPositiveInteger", T::NonPositiveInteger, T::Integer),
    ("negativeInteger", T::NegativeInteger, T::NonPositiveInteger),
    ("long", T::Long, T::Integer),
    ("int", T::Int, T::Long),
    ("short", T::Short, T::Int),
    ("byte", T::Byte, T::Short),
    ("nonNegativeInteger", T::NonNegativeInteger, T::Integer),
    ("positiveInteger", T::PositiveInteger, T::NonNegativeInteger),
    ("unsignedLong", T::UnsignedLong, T::NonNegativeInteger),
    ("unsignedInt", T::UnsignedInt, T::UnsignedLong),
    ("unsignedShort", T::UnsignedShort, T::UnsignedInt),
    ("unsignedByte", T::UnsignedByte, T::UnsignedShort),
];

impl AtomicType {
    /// The type with this local name in the XML Schema namespace.
    pub fn from_local_name(local: &str) -> Option<AtomicType> {
        TYPES.iter().find(|(name, ..)| *name == local).map(|(_, found, _)| *found)
    }

    /// `xs:…`, for messages.
    pub fn name(self) -> String {
        let local = TYPES.iter().find(|(_, found, _)| *found == self).map_or("anyAtomicType", |(name, ..)| name);
        format!("xs:{local}")
    }

    /// Whether casts and constructor functions may name it.
    pub fn is_constructible(self) -> bool {
        !matches!(self, T::AnyAtomic | T::Notation)
    }

    fn base(self) -> AtomicType {
        TYPES.iter().find(|(_, found, _)| *found == self).map_or(T::AnyAtomic, |(.., base)| *base)
    }

    /// The type whose value space and operations apply: `xs:string` for `xs:token`, `xs:integer` for `xs:byte`.
    pub fn primitive(self) -> AtomicType {
        if self.derives_from(T::Integer) {
            T::Integer
        } else if self.derives_from(T::String) {
            T::String
        } else {
            self
        }
    }

    /// Whether a value of type `self` is also a value of type `other`.
    pub fn derives_from(self, other: AtomicType) -> bool {
        if self == other || other == T::AnyAtomic {
            return true;
        }
        if other == T::Numeric {
            return matches!(self, T::Float | T::Double) || self.derives_from(T::Decimal);
        }
        let base = self.base();
        base != T::AnyAtomic && base.derives_from(other)
    }
}
