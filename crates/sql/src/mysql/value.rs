//! Values on their way to MySQL and back.

use std::sync::Arc;

use mysql_async::Value;
use mysql_async::consts::{ColumnFlags, ColumnType};
use penstock_engine::database::{Row, SqlValue};
use penstock_message::double_to_text;

use crate::written::{Fraction, fraction, hex, single};

/// The character set of bytes that are no text.
const BINARY: u16 = 63;

/// The server converts text to the type of its column, as with literals.
pub(super) fn bound(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::NULL,
        SqlValue::Text(text) | SqlValue::Decimal(text) | SqlValue::Temporal(text) => text.as_bytes().into(),
        SqlValue::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        SqlValue::Integer(number) => Value::Int(*number),
        SqlValue::Double(number) => Value::Double(*number),
        SqlValue::Boolean(flag) => Value::Int(i64::from(*flag)),
    }
}

/// A row, its values written as Java writes what JDBC makes of them.
pub(super) fn row(row: mysql_async::Row) -> Row {
    let columns = row.columns();
    let written = |value: SqlValue| -> Option<Arc<str>> {
        Some(match value {
            SqlValue::Null => return None,
            SqlValue::Text(text) | SqlValue::Decimal(text) | SqlValue::Temporal(text) => text,
            SqlValue::Integer(number) => number.to_string().into(),
            SqlValue::Double(number) => double_to_text(number).into(),
            SqlValue::Boolean(flag) => flag.to_string().into(),
            SqlValue::Bytes(bytes) => hex(&bytes).into(),
        })
    };
    let values = values(row).into_iter().map(written);
    Row { columns: columns.iter().map(|column| Arc::from(column.name_str())).zip(values).collect() }
}

/// The values of a row by the types of their columns. Numbers with decimals keep all their digits.
pub(super) fn values(row: mysql_async::Row) -> Vec<SqlValue> {
    let columns = row.columns();
    columns.iter().zip(row.unwrap()).map(|(column, found)| value(column, found)).collect()
}

fn value(column: &mysql_async::Column, value: Value) -> SqlValue {
    let kind = column.column_type();
    // `BOOLEAN` is `TINYINT(1)`, and JDBC reads it as a boolean.
    let is_boolean = kind == ColumnType::MYSQL_TYPE_TINY
        && column.column_length() == 1
        && !column.flags().contains(ColumnFlags::UNSIGNED_FLAG);
    match value {
        Value::NULL => SqlValue::Null,
        Value::Int(number) if is_boolean => SqlValue::Boolean(number != 0),
        Value::Int(number) => SqlValue::Integer(number),
        Value::UInt(number) => {
            i64::try_from(number).map_or_else(|_| SqlValue::Decimal(number.to_string().into()), SqlValue::Integer)
        }
        Value::Float(number) => SqlValue::Decimal(single(number).into()),
        Value::Double(number) => SqlValue::Double(number),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            SqlValue::Temporal(match kind {
                ColumnType::MYSQL_TYPE_DATE | ColumnType::MYSQL_TYPE_NEWDATE => date.into(),
                _ => {
                    let fraction = fraction(micros, Fraction::AtLeastOneDigit);
                    format!("{date} {hour:02}:{minute:02}:{second:02}{fraction}").into()
                }
            })
        }
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let (sign, hours) = (if is_negative { "-" } else { "" }, u64::from(days) * 24 + u64::from(hours));
            let fraction = fraction(micros, Fraction::AsItIs);
            SqlValue::Temporal(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}").into())
        }
        Value::Bytes(bytes) => written(column, kind, bytes),
    }
}

/// A value that the server sends as bytes.
fn written(column: &mysql_async::Column, kind: ColumnType, bytes: Vec<u8>) -> SqlValue {
    let text = |bytes: &[u8]| Arc::<str>::from(String::from_utf8_lossy(bytes));
    match kind {
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL => SqlValue::Decimal(text(&bytes)),
        ColumnType::MYSQL_TYPE_BIT if column.column_length() == 1 => {
            SqlValue::Boolean(bytes.iter().any(|byte| *byte != 0))
        }
        ColumnType::MYSQL_TYPE_BIT | ColumnType::MYSQL_TYPE_GEOMETRY => SqlValue::Bytes(bytes.into()),
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
        | ColumnType::MYSQL_TYPE_TINY_BLOB
        | ColumnType::MYSQL_TYPE_BLOB
        | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
        | ColumnType::MYSQL_TYPE_LONG_BLOB
            if column.character_set() == BINARY =>
        {
            SqlValue::Bytes(bytes.into())
        }
        _ => SqlValue::Text(text(&bytes)),
    }
}
