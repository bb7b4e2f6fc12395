//! `<statement>`: the SQL, the values bound to it, and what becomes of the first row.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression};
use penstock_engine::database::{Row, SqlValue};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;

/// A statement.
pub struct Statement {
    /// The text with a `?` for each parameter.
    pub sql: Arc<str>,
    parameters: Vec<Parameter>,
    results: Vec<ResultProperty>,
}

struct Parameter {
    kind: ValueType,
    source: ValueSource,
}

enum ValueSource {
    Constant(SqlValue),
    Computed(Expression),
}

/// The types of Micro Integrator that can be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Text,
    Decimal,
    Bit,
    Integer { min: i64, max: i64 },
    Double,
    Date,
    Time,
    Timestamp,
}

/// `<result name="…" column="…"/>`.
struct ResultProperty {
    name: Arc<str>,
    column: Arc<str>,
}

const KINDS: [&str; 16] = [
    "CHAR",
    "VARCHAR",
    "LONGVARCHAR",
    "NUMERIC",
    "DECIMAL",
    "BIT",
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "REAL",
    "FLOAT",
    "DOUBLE",
    "DATE",
    "TIME",
    "TIMESTAMP",
];

impl ValueType {
    fn from_name(name: &str) -> Option<ValueType> {
        let whole = |min: i64, max: i64| ValueType::Integer { min, max };
        Some(match name {
            "CHAR" | "VARCHAR" | "LONGVARCHAR" => ValueType::Text,
            "NUMERIC" | "DECIMAL" => ValueType::Decimal,
            "BIT" => ValueType::Bit,
            "TINYINT" => whole(i8::MIN.into(), i8::MAX.into()),
            "SMALLINT" => whole(i16::MIN.into(), i16::MAX.into()),
            "INTEGER" => whole(i32::MIN.into(), i32::MAX.into()),
            "BIGINT" => whole(i64::MIN, i64::MAX),
            "REAL" | "FLOAT" | "DOUBLE" => ValueType::Double,
            "DATE" => ValueType::Date,
            "TIME" => ValueType::Time,
            "TIMESTAMP" => ValueType::Timestamp,
            _ => return None,
        })
    }

    /// A text as a value of this type. An empty text is null. `Err` says what it should have been.
    fn value(self, text: &str) -> Result<SqlValue, &'static str> {
        if text.is_empty() {
            return Ok(SqlValue::Null);
        }
        match self {
            ValueType::Text => Ok(SqlValue::Text(text.into())),
            ValueType::Decimal if is_decimal(text) => Ok(SqlValue::Decimal(text.into())),
            ValueType::Decimal => Err("a number"),
            ValueType::Bit => Ok(SqlValue::Boolean(text.eq_ignore_ascii_case("true"))),
            ValueType::Integer { min, max } => match text.parse() {
                Ok(number) if (min..=max).contains(&number) => Ok(SqlValue::Integer(number)),
                _ => Err("a whole number within the range of the type"),
            },
            ValueType::Double => match text.trim().trim_end_matches(['d', 'D', 'f', 'F']).parse() {
                Ok(number) => Ok(SqlValue::Double(number)),
                Err(_) => Err("a number"),
            },
            ValueType::Date if is_shaped(text, "0-0-0") => Ok(SqlValue::Temporal(text.into())),
            ValueType::Date => Err("a date such as `2024-02-29`"),
            ValueType::Time if is_shaped(text, "0:0:0") => Ok(SqlValue::Temporal(text.into())),
            ValueType::Time => Err("a time such as `23:59:59`"),
            ValueType::Timestamp if is_shaped(text, "0-0-0 0:0:0") || is_shaped(text, "0-0-0 0:0:0.0") => {
                Ok(SqlValue::Temporal(text.into()))
            }
            ValueType::Timestamp => Err("a time such as `2024-02-29 23:59:59`"),
        }
    }
}

/// What Java's `BigDecimal` takes.
fn is_decimal(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(f64::is_finite) && !text.ends_with(|last: char| last == '.' && text.len() == 1)
}

/// Whether a text has the shape, in which each `0` stands for digits.
fn is_shaped(text: &str, shape: &str) -> bool {
    let mut rest = text.trim();
    for expected in shape.bytes() {
        if expected == b'0' {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return false;
            }
            rest = &rest[digits..];
        } else {
            match rest.strip_prefix(char::from(expected)) {
                Some(after) => rest = after,
                None => return false,
            }
        }
    }
    rest.is_empty()
}

impl Statement {
    pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Statement> {
        let Some(sql) = el.child_text("sql") else {
            cx.error(el.place(), "<statement> needs <sql>");
            return None;
        };
        let mut parameters = Vec::new();
        let mut whole = true;
        for parameter in el.elements("parameter") {
            match Parameter::compile(&parameter, cx) {
                Some(Some(parameter)) => parameters.push(parameter),
                Some(None) => {}
                None => whole = false,
            }
            parameter.finish(cx);
        }
        let mut results = Vec::new();
        for result in el.elements("result") {
            let (name, column) = (result.required(cx, "name"), result.required(cx, "column"));
            match (name, column) {
                (Some(name), Some(column)) => results.push(ResultProperty { name: name.into(), column: column.into() }),
                _ => whole = false,
            }
            result.finish(cx);
        }
        el.finish(cx);
        whole.then_some(Statement { sql: sql.into(), parameters, results })
    }

    pub(super) fn needs(&self) -> Needs {
        let needs = |parameter: &Parameter| match &parameter.source {
            ValueSource::Constant(_) => Needs::Nothing,
            ValueSource::Computed(expression) => expression.needs(),
        };
        self.parameters.iter().map(needs).max().unwrap_or_default()
    }

    /// The values of the parameters for a message.
    pub(super) fn values(&self, exchange: &mut Exchange) -> Result<Vec<SqlValue>, Fault> {
        let value = |(index, parameter): (usize, &Parameter)| match &parameter.source {
            ValueSource::Constant(value) => Ok(value.clone()),
            ValueSource::Computed(expression) => {
                let text = expression.text(exchange)?;
                parameter.kind.value(&text).map_err(|expected| {
                    let place = index + 1;
                    Fault::new(format!(
                        "parameter {place} of the statement must be {expected}, not `{text}`: {}",
                        self.sql
                    ))
                })
            }
        };
        self.parameters.iter().enumerate().map(value).collect()
    }

    /// Sets the properties from the first row. A null sets nothing, and so does no row.
    pub(super) fn take_results(&self, exchange: &mut Exchange, row: Option<&Row>) -> Result<(), String> {
        let Some(row) = row else { return Ok(()) };
        for result in &self.results {
            if let Some(value) = row.get(&result.column)? {
                exchange.message.properties.set(result.name.clone(), Value::String(value.clone()));
            }
        }
        Ok(())
    }
}

impl Parameter {
    /// `Some(None)`: one without a value, which Micro Integrator leaves out. `None` after an error was reported.
    fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<Parameter>> {
        let (constant, expression) = (el.attribute("value"), el.attribute("expression"));
        let name = el.required(cx, "type")?;
        let Some(kind) = ValueType::from_name(name) else {
            let hint = penstock_compile::suggestion(name, KINDS.into_iter());
            let hint = hint.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
            cx.error(el.attribute_place("type"), format!("`{name}` is not a type that can be bound{hint}"));
            return None;
        };
        let source = match (constant, expression) {
            (Some(constant), _) => match kind.value(constant) {
                Ok(value) => ValueSource::Constant(value),
                Err(expected) => {
                    cx.error(el.attribute_place("value"), format!("`{constant}` must be {expected}"));
                    return None;
                }
            },
            (None, Some(_)) => ValueSource::Computed(cx.expression(el, "expression")?),
            (None, None) => {
                cx.warn(el.place(), "<parameter> has neither `value` nor `expression` and is ignored");
                return Some(None);
            }
        };
        Some(Some(Parameter { kind, source }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values_of_their_type() {
        let text = |text: &str| Ok(SqlValue::Text(text.into()));
        let temporal = |text: &str| Ok(SqlValue::Temporal(text.into()));
        for (kind, given, expected) in [
            ("VARCHAR", "a'b", text("a'b")),
            ("VARCHAR", "", Ok(SqlValue::Null)),
            ("INTEGER", "-7", Ok(SqlValue::Integer(-7))),
            ("INTEGER", "3000000000", Err("a whole number within the range of the type")),
            ("BIGINT", "3000000000", Ok(SqlValue::Integer(3_000_000_000))),
            ("TINYINT", "128", Err("a whole number within the range of the type")),
            ("INTEGER", "7.0", Err("a whole number within the range of the type")),
            ("DOUBLE", " 1.5 ", Ok(SqlValue::Double(1.5))),
            ("DOUBLE", "1,5", Err("a number")),
            ("DECIMAL", "12.50", Ok(SqlValue::Decimal("12.50".into()))),
            ("DECIMAL", "NaN", Err("a number")),
            ("BIT", "TRUE", Ok(SqlValue::Boolean(true))),
            ("BIT", "1", Ok(SqlValue::Boolean(false))),
            ("DATE", "2024-2-9", temporal("2024-2-9")),
            ("DATE", "2024/02/09", Err("a date such as `2024-02-29`")),
            ("TIME", "1:2:3", temporal("1:2:3")),
            ("TIMESTAMP", "2024-02-09 01:02:03.5", temporal("2024-02-09 01:02:03.5")),
            ("TIMESTAMP", "2024-02-09", Err("a time such as `2024-02-29 23:59:59`")),
        ] {
            assert_eq!(ValueType::from_name(kind).unwrap().value(given), expected, "{kind} `{given}`");
        }
        assert!(KINDS.iter().all(|name| ValueType::from_name(name).is_some()));
        assert_eq!(ValueType::from_name("BLOB"), None);
    }
}
