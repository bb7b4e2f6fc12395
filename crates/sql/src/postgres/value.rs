//! Values on their way to PostgreSQL and back.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use penstock_engine::clock;
use penstock_engine::database::{Row, SqlValue};
use penstock_message::double_to_text;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

use crate::written::{Fraction, fraction, hex, single};

type AnyError = Box<dyn std::error::Error + Sync + Send>;

/// A value that goes as text: the server reads it as the type of its place, as it does with literals. JDBC is as lenient.
#[derive(Debug)]
pub(super) struct AsText(Option<Arc<str>>);

impl AsText {
    pub(super) fn new(value: &SqlValue) -> AsText {
        AsText(match value {
            SqlValue::Null => None,
            SqlValue::Text(text) | SqlValue::Decimal(text) | SqlValue::Temporal(text) => Some(text.clone()),
            SqlValue::Bytes(bytes) => Some(format!("\\x{}", hex(bytes)).into()),
            SqlValue::Integer(number) => Some(number.to_string().into()),
            SqlValue::Double(number) => Some(number.to_string().into()),
            SqlValue::Boolean(flag) => Some((if *flag { "true" } else { "false" }).into()),
        })
    }
}

impl ToSql for AsText {
    fn to_sql(&self, _kind: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        Ok(match &self.0 {
            None => IsNull::Yes,
            Some(text) => {
                out.put_slice(text.as_bytes());
                IsNull::No
            }
        })
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }

    fn encode_format(&self, _kind: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        self.to_sql(kind, out)
    }
}

/// A row, its values written as Java writes what JDBC makes of them.
pub(super) fn row(row: &tokio_postgres::Row) -> Row {
    let columns = row.columns().iter().enumerate();
    let columns = columns.map(|(index, column)| {
        let raw: Option<Raw<'_>> = row.try_get(index).unwrap_or_default();
        (Arc::from(column.name()), raw.map(|raw| written(column.type_(), raw.0).into()))
    });
    Row { columns: columns.collect() }
}

/// The values of a row by their types. Numbers with decimals keep all their digits.
pub(super) fn values(row: &tokio_postgres::Row) -> Vec<SqlValue> {
    let columns = row.columns().iter().enumerate();
    let columns = columns.map(|(index, column)| match row.try_get::<_, Option<Raw<'_>>>(index) {
        Ok(Some(raw)) => value(column.type_(), raw.0),
        _ => SqlValue::Null,
    });
    columns.collect()
}

fn value(kind: &Type, raw: &[u8]) -> SqlValue {
    let text = || Arc::<str>::from(written(kind, raw));
    match *kind {
        Type::BOOL => SqlValue::Boolean(raw.first().is_some_and(|byte| *byte != 0)),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID => {
            text().parse().map_or_else(|_| SqlValue::Text(text()), SqlValue::Integer)
        }
        Type::FLOAT8 => raw.try_into().map_or(SqlValue::Null, |bytes| SqlValue::Double(f64::from_be_bytes(bytes))),
        Type::FLOAT4 | Type::NUMERIC => SqlValue::Decimal(text()),
        Type::DATE | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => SqlValue::Temporal(text()),
        Type::BYTEA => SqlValue::Bytes(bytes::Bytes::copy_from_slice(raw)),
        _ => SqlValue::Text(text()),
    }
}

/// The bytes of a value.
struct Raw<'r>(&'r [u8]);

impl<'r> FromSql<'r> for Raw<'r> {
    fn from_sql(_kind: &Type, raw: &'r [u8]) -> Result<Raw<'r>, AnyError> {
        Ok(Raw(raw))
    }

    fn accepts(_kind: &Type) -> bool {
        true
    }
}

/// The binary form of a value as text. Types that are not known here are shown as they would be if they were text.
fn written(kind: &Type, raw: &[u8]) -> String {
    let known = match *kind {
        Type::BOOL => raw.first().map(|byte| (*byte != 0).to_string()),
        Type::INT2 => raw.try_into().ok().map(|bytes| i16::from_be_bytes(bytes).to_string()),
        Type::INT4 => raw.try_into().ok().map(|bytes| i32::from_be_bytes(bytes).to_string()),
        Type::INT8 => raw.try_into().ok().map(|bytes| i64::from_be_bytes(bytes).to_string()),
        Type::OID => raw.try_into().ok().map(|bytes| u32::from_be_bytes(bytes).to_string()),
        Type::FLOAT4 => raw.try_into().ok().map(|bytes| single(f32::from_be_bytes(bytes))),
        Type::FLOAT8 => raw.try_into().ok().map(|bytes| double_to_text(f64::from_be_bytes(bytes))),
        Type::NUMERIC => numeric(raw),
        Type::DATE => raw.try_into().ok().map(|bytes| date(i64::from(i32::from_be_bytes(bytes)))),
        Type::TIME => raw.try_into().ok().map(|bytes| time(i64::from_be_bytes(bytes), Fraction::AsItIs)),
        Type::TIMESTAMP | Type::TIMESTAMPTZ => raw.try_into().ok().map(|bytes| timestamp(i64::from_be_bytes(bytes))),
        Type::UUID => (raw.len() == 16).then(|| uuid(raw)),
        Type::BYTEA => Some(hex(raw)),
        // A version number stands before the text.
        Type::JSONB => raw.get(1..).map(|text| String::from_utf8_lossy(text).into_owned()),
        _ => None,
    };
    known.unwrap_or_else(|| String::from_utf8_lossy(raw).into_owned())
}

fn uuid(raw: &[u8]) -> String {
    let digits = hex(raw);
    let (a, b, c, d, e) = (&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// Four digits in each group; a weight, a sign and how many decimals are shown before them.
fn numeric(raw: &[u8]) -> Option<String> {
    let word = |index: usize| Some(u16::from_be_bytes(raw.get(index * 2..index * 2 + 2)?.try_into().ok()?));
    let (groups, weight, sign, scale) = (word(0)?, word(1)? as i16, word(2)?, usize::from(word(3)?));
    match sign {
        0xc000 => return Some("NaN".into()),
        0xd000 => return Some("Infinity".into()),
        0xf000 => return Some("-Infinity".into()),
        _ => {}
    }
    let group = |position: i32| {
        // Group 0 holds the digits of the highest weight.
        let index = i32::from(weight) - position;
        if index < 0 || index >= i32::from(groups) { Some(0) } else { word(4 + index as usize) }
    };
    let mut out = String::new();
    if sign == 0x4000 {
        out.push('-');
    }
    let mut position = i32::from(weight).max(0);
    let mut whole = String::new();
    while position >= 0 {
        whole.push_str(&format!("{:04}", group(position)?));
        position -= 1;
    }
    let whole = whole.trim_start_matches('0');
    out.push_str(if whole.is_empty() { "0" } else { whole });
    if scale > 0 {
        let mut decimals = String::new();
        while decimals.len() < scale {
            decimals.push_str(&format!("{:04}", group(position)?));
            position -= 1;
        }
        decimals.truncate(scale);
        out.push('.');
        out.push_str(&decimals);
    }
    Some(out)
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// 2000-01-01, in days from 1970.
const FIRST_DAY: i64 = 10_957;

/// Days from 2000-01-01.
fn date(days: i64) -> String {
    let (year, month, day) = clock::civil(days + FIRST_DAY);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time(micros: i64, form: Fraction) -> String {
    let (whole, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    format!("{:02}:{:02}:{:02}{}", whole / 3600, whole / 60 % 60, whole % 60, fraction(micros as u32, form))
}

/// Microseconds from 2000-01-01. With a time zone the server counts in UTC, and so is it written.
fn timestamp(micros: i64) -> String {
    match micros {
        i64::MAX => "infinity".into(),
        i64::MIN => "-infinity".into(),
        _ => {
            let time = time(micros.rem_euclid(MICROS_PER_DAY), Fraction::AtLeastOneDigit);
            format!("{} {time}", date(micros.div_euclid(MICROS_PER_DAY)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_the_year_2000() {
        for (days, expected) in
            [(0, "2000-01-01"), (-1, "1999-12-31"), (59, "2000-02-29"), (9_497, "2026-01-01"), (-10_957, "1970-01-01")]
        {
            assert_eq!(date(days), expected);
        }
        assert_eq!(timestamp(0), "2000-01-01 00:00:00.0");
        assert_eq!(timestamp(-1), "1999-12-31 23:59:59.999999");
        assert_eq!(timestamp(3_661_500_000), "2000-01-01 01:01:01.5");
    }

    #[test]
    fn numbers_keep_their_decimals() {
        let raw = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        for (words, expected) in [
            (&[2, 0, 0, 2, 12, 5000][..], "12.50"),
            (&[0, 0, 0, 0], "0"),
            (&[0, 0, 0, 2], "0.00"),
            (&[1, 0xffff, 0x4000, 4, 25], "-0.0025"),
            (&[1, 1, 0, 0, 3], "30000"),
            (&[2, 1, 0, 1, 1, 2], "10002.0"),
            (&[0, 0, 0xc000, 0], "NaN"),
        ] {
            assert_eq!(numeric(&raw(words)).as_deref(), Some(expected));
        }
        assert_eq!(numeric(&[0, 1]), None);
        assert_eq!(single(1.1), "1.1");
    }
}
