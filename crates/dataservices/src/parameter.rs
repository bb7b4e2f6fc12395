//! Parameters of queries: their types, defaults and validators, and the values that requests give them.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_engine::database::SqlValue;

use crate::fault::{DataServiceFault, FaultCode};
use crate::temporal;

/// A parameter of a query.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in lower case.
    pub name: Arc<str>,
    /// Its name as it was written.
    pub written: Arc<str>,
    /// Its type.
    pub kind: SqlType,
    /// How a stored procedure uses it.
    pub direction: Direction,
    /// Whether it is a list.
    pub is_array: bool,
    /// Whether a request may leave it out.
    pub is_optional: bool,
    /// What it is when a request leaves it out.
    pub default: Option<DefaultValue>,
    /// Whether the default also replaces an empty value.
    pub forces_default: bool,
    /// What a value must fulfil.
    pub validators: Vec<Validator>,
}

/// How a stored procedure uses a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It reads it.
    In,
    /// It writes it.
    Out,
    /// Both.
    InOut,
}

/// A default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultValue {
    /// A text.
    Text(Arc<str>),
    /// `#{NULL}`.
    Null,
    /// `#{USERNAME}`.
    UserName,
    /// `#{TENANT_ID}`.
    TenantId,
    /// `#{USER_ROLES}`.
    UserRoles,
    /// `#{CURRENT_TIMESTAMP}`.
    CurrentTimestamp,
}

/// The tenant of a server without tenants.
const TENANT: &str = "-1234";

impl DefaultValue {
    /// Reads `defaultValue`.
    pub fn parse(text: &str) -> DefaultValue {
        match text {
            "#{NULL}" => DefaultValue::Null,
            "#{USERNAME}" => DefaultValue::UserName,
            "#{TENANT_ID}" => DefaultValue::TenantId,
            "#{USER_ROLES}" => DefaultValue::UserRoles,
            "#{CURRENT_TIMESTAMP}" => DefaultValue::CurrentTimestamp,
            text => DefaultValue::Text(text.into()),
        }
    }

    fn given(&self, caller: &Caller) -> Given {
        match self {
            DefaultValue::Text(text) => Given::Scalar(Some(text.clone())),
            DefaultValue::Null => Given::Scalar(None),
            DefaultValue::UserName => Given::Scalar(caller.name.clone()),
            DefaultValue::TenantId => Given::Scalar(Some(TENANT.into())),
            DefaultValue::UserRoles => Given::List(caller.roles.iter().cloned().map(Some).collect()),
            DefaultValue::CurrentTimestamp => {
                Given::Scalar(Some(penstock_engine::clock::system_date(Some("yyyy-MM-dd HH:mm:ss")).into()))
            }
        }
    }
}

/// Who calls.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    /// The name, when the request has credentials that hold.
    pub name: Option<Arc<str>>,
    /// The caller's roles.
    pub roles: Vec<Arc<str>>,
}

impl Caller {
    /// Whether the caller has one of the roles; no roles mean everybody.
    pub fn has_any(&self, roles: &[Arc<str>]) -> bool {
        roles.is_empty() || roles.iter().any(|role| self.roles.contains(role))
    }
}

/// The value of a parameter in a request; `None` is null.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// One value.
    Scalar(Option<Arc<str>>),
    /// Several.
    List(Vec<Option<Arc<str>>>),
}

impl Given {
    /// Adds a value of a name that is given again.
    pub fn add(&mut self, value: Option<Arc<str>>) {
        match self {
            Given::Scalar(first) => *self = Given::List(vec![first.take(), value]),
            Given::List(list) => list.push(value),
        }
    }

    fn first(&self) -> Option<&Arc<str>> {
        match self {
            Given::Scalar(value) => value.as_ref(),
            Given::List(list) => list.first().and_then(Option::as_ref),
        }
    }
}

/// The parameters of a request by their names in lower case.
#[derive(Debug, Clone, Default)]
pub struct GivenParameters {
    values: HashMap<Arc<str>, Given>,
}

impl GivenParameters {
    /// Adds a value; one of a name that is there already makes a list.
    pub fn add(&mut self, name: &str, value: Option<Arc<str>>) {
        let name = name.trim().to_lowercase();
        match self.values.get_mut(name.as_str()) {
            Some(given) => given.add(value),
            None => drop(self.values.insert(name.into(), Given::Scalar(value))),
        }
    }

    /// Sets a value.
    pub fn set(&mut self, name: Arc<str>, given: Given) {
        self.values.insert(name, given);
    }

    /// The value of a name in lower case.
    pub fn get(&self, name: &str) -> Option<&Given> {
        self.values.get(name)
    }

    /// The scalar value of a name in lower case.
    pub fn text(&self, name: &str) -> Option<&Arc<str>> {
        self.get(name).and_then(Given::first)
    }

    /// Adds those that are not here yet.
    pub fn complete_with(&mut self, others: &GivenParameters) {
        for (name, given) in &others.values {
            self.values.entry(name.clone()).or_insert_with(|| given.clone());
        }
    }

    /// The size of names and values.
    pub fn bytes(&self) -> usize {
        let size =
            |value: &Option<Arc<str>>| value.as_ref().map_or(0, |text| text.len()) + size_of::<Option<Arc<str>>>();
        let values = self.values.iter().map(|(name, given)| {
            name.len()
                + match given {
                    Given::Scalar(value) => size(value),
                    Given::List(list) => list.iter().map(size).sum(),
                }
        });
        values.sum()
    }

    /// `{a=1, b=2}`, sorted by name.
    pub fn describe(&self) -> String {
        let mut all: Vec<(&str, String)> = Vec::with_capacity(self.values.len());
        for (name, given) in &self.values {
            let text = |value: &Option<Arc<str>>| value.as_deref().unwrap_or("null").to_owned();
            let value = match given {
                Given::Scalar(value) => text(value),
                Given::List(list) => format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(", ")),
            };
            all.push((name, value));
        }
        all.sort();
        let pairs: Vec<String> = all.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{{{}}}", pairs.join(", "))
    }
}

/// A parameter with a value that fulfils its validators.
#[derive(Debug, Clone, PartialEq)]
pub enum Converted {
    /// To be bound.
    Scalar(SqlValue),
    /// To be bound, all of them.
    List(Vec<SqlValue>),
    /// A part of the statement.
    Text(Arc<str>),
    /// No value is given.
    Absent,
}

impl Parameter {
    /// The default, when there is one and the request gives nothing that counts.
    pub fn or_default(&self, given: Option<&Given>, caller: &Caller) -> Option<Given> {
        let is_empty = |given: &Given| given.first().is_none_or(|text| text.is_empty());
        match (given, &self.default) {
            (Some(given), Some(default)) if self.forces_default && is_empty(given) => Some(default.given(caller)),
            (Some(given), _) => Some(given.clone()),
            (None, Some(default)) => Some(default.given(caller)),
            (None, None) => None,
        }
    }

    /// Checks and converts a value.
    pub fn convert(&self, given: Option<&Given>) -> Result<Converted, DataServiceFault> {
        let Some(given) = given else { return Ok(Converted::Absent) };
        let one = |value: &Option<Arc<str>>| match value {
            None => Ok(SqlValue::Null),
            Some(text) => {
                self.validate(text)?;
                self.kind.convert(text).map_err(|why| self.unfit(&why))
            }
        };
        match (given, self.kind) {
            (_, SqlType::QueryString) => {
                let text = given.first().cloned().unwrap_or_default();
                self.validate(&text)?;
                Ok(Converted::Text(text))
            }
            (Given::Scalar(value), _) if !self.is_array => one(value).map(Converted::Scalar),
            (Given::Scalar(value), _) => Ok(Converted::List(vec![one(value)?])),
            (Given::List(list), _) if self.is_array => {
                list.iter().map(one).collect::<Result<_, _>>().map(Converted::List)
            }
            (Given::List(list), _) => one(list.first().unwrap_or(&None)).map(Converted::Scalar),
        }
    }

    fn unfit(&self, why: &str) -> DataServiceFault {
        let message = format!("Error in processing the parameter `{}`: {why}", self.written);
        DataServiceFault::new(FaultCode::IncompatibleParameters, message)
    }

    fn validate(&self, text: &str) -> Result<(), DataServiceFault> {
        match self.validators.iter().find_map(|validator| validator.violation(text)) {
            None => Ok(()),
            Some(message) => Err(DataServiceFault::invalid(&self.written, text, message)),
        }
    }
}

/// What a value must fulfil.
#[derive(Debug)]
pub enum Validator {
    /// `validateLongRange`.
    LongRange(i64, i64),
    /// `validateDoubleRange`.
    DoubleRange(f64, f64),
    /// `validateLength`.
    Length(usize, usize),
    /// `validatePattern`.
    Pattern(Arc<str>, Box<fancy_regex::Regex>),
}

impl Validator {
    /// What is wrong with a value.
    fn violation(&self, text: &str) -> Option<String> {
        match self {
            Validator::LongRange(min, max) => match text.trim().parse::<i64>() {
                Ok(number) if (*min..=*max).contains(&number) => None,
                Ok(_) => Some(format!("The value range must be between {min} and {max}")),
                Err(_) => Some("Validation failed: Value must be an instance of java.lang.Long".to_owned()),
            },
            Validator::DoubleRange(min, max) => match text.trim().parse::<f64>() {
                Ok(number) if (*min..=*max).contains(&number) => None,
                Ok(_) => Some(format!("The value range must be between {min:?} and {max:?}")),
                Err(_) => Some("Validation failed: Value must be an instance of java.lang.Double".to_owned()),
            },
            Validator::Length(min, max) => {
                let length = text.encode_utf16().count();
                (!(*min..=*max).contains(&length)).then(|| format!("The value length must be between {min} and {max}"))
            }
            // A pattern that needs too many steps for a value is one that the value does not fulfil.
            Validator::Pattern(pattern, regex) => {
                (!regex.is_match(text).unwrap_or(false)).then(|| format!("The value must match the pattern: {pattern}"))
            }
        }
    }
}

/// `sqlType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlType {
    /// `STRING` and what is text as well.
    Text,
    /// `INTEGER`, `TINYINT`, `SMALLINT`, `BIGINT`, within these bounds.
    Integer(i64, i64),
    /// `DOUBLE`, `REAL`.
    Double,
    /// `NUMERIC`.
    Decimal,
    /// `BIT`, `BOOLEAN`.
    Boolean,
    /// `DATE`.
    Date,
    /// `TIME`.
    Time,
    /// `TIMESTAMP`.
    Timestamp,
    /// `BINARY`, `BLOB`.
    Binary,
    /// `QUERY_STRING`.
    QueryString,
}

impl SqlType {
    /// The type of a name.
    pub fn from_name(name: &str) -> Option<SqlType> {
        let integer = |min: i64, max: i64| SqlType::Integer(min, max);
        Some(match name.to_ascii_uppercase().as_str() {
            "" | "STRING" | "CLOB" | "SQLXML" | "UUID" | "INETADDRESS" | "NVARCHAR" | "VARCHAR" => SqlType::Text,
            "INTEGER" => integer(i32::MIN.into(), i32::MAX.into()),
            "TINYINT" => integer(i8::MIN.into(), i8::MAX.into()),
            "SMALLINT" => integer(i16::MIN.into(), i16::MAX.into()),
            "BIGINT" | "VARINT" => integer(i64::MIN, i64::MAX),
            "DOUBLE" | "REAL" | "FLOAT" => SqlType::Double,
            "NUMERIC" | "DECIMAL" => SqlType::Decimal,
            "BIT" | "BOOLEAN" => SqlType::Boolean,
            "DATE" => SqlType::Date,
            "TIME" => SqlType::Time,
            "TIMESTAMP" => SqlType::Timestamp,
            "BINARY" | "BLOB" => SqlType::Binary,
            "QUERY_STRING" => SqlType::QueryString,
            _ => return None,
        })
    }

    /// A text as a value of the type; `Err` says why it is none. An empty text is null except among texts.
    pub fn convert(self, text: &str) -> Result<SqlValue, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() && !matches!(self, SqlType::Text | SqlType::QueryString) {
            return Ok(SqlValue::Null);
        }
        Ok(match self {
            SqlType::Text | SqlType::QueryString => SqlValue::Text(text.into()),
            SqlType::Integer(min, max) => match trimmed.parse::<i64>() {
                Ok(number) if (min..=max).contains(&number) => SqlValue::Integer(number),
                Ok(_) => return Err(format!("{trimmed} is not between {min} and {max}")),
                Err(_) => return Err(format!("For input string: \"{trimmed}\"")),
            },
            SqlType::Double => match trimmed.parse::<f64>() {
                Ok(number) => SqlValue::Double(number),
                Err(_) => return Err(format!("For input string: \"{trimmed}\"")),
            },
            SqlType::Decimal => match trimmed.parse::<f64>() {
                Ok(number) if number.is_finite() => SqlValue::Decimal(trimmed.into()),
                _ => return Err(format!("`{trimmed}` is not a decimal number")),
            },
            SqlType::Boolean => SqlValue::Boolean(trimmed.eq_ignore_ascii_case("true") || trimmed == "1"),
            SqlType::Date => SqlValue::Temporal(temporal::to_database(trimmed, false).into()),
            SqlType::Time => SqlValue::Temporal(temporal::to_database(trimmed, false).into()),
            SqlType::Timestamp => SqlValue::Temporal(temporal::to_database(trimmed, true).into()),
            SqlType::Binary => {
                let compact: String = trimmed.split_whitespace().collect();
                let bytes = STANDARD.decode(compact).map_err(|error| format!("the value is not Base64: {error}"))?;
                SqlValue::Bytes(bytes.into())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(kind: SqlType, validators: Vec<Validator>) -> Parameter {
        Parameter {
            name: "a".into(),
            written: "A".into(),
            kind,
            direction: Direction::In,
            is_array: false,
            is_optional: false,
            default: None,
            forces_default: false,
            validators,
        }
    }

    fn scalar(text: &str) -> Given {
        Given::Scalar(Some(text.into()))
    }

    #[test]
    fn values_become_those_of_their_types() {
        let integer = SqlType::from_name("SMALLINT").unwrap();
        for (kind, text, expected) in [
            (SqlType::Text, " x ", Some(SqlValue::Text(" x ".into()))),
            (integer, " 12 ", Some(SqlValue::Integer(12))),
            (integer, "70000", None),
            (integer, "", Some(SqlValue::Null)),
            (SqlType::Double, "1.5", Some(SqlValue::Double(1.5))),
            (SqlType::Decimal, "12.340", Some(SqlValue::Decimal("12.340".into()))),
            (SqlType::Decimal, "x", None),
            (SqlType::Boolean, "TRUE", Some(SqlValue::Boolean(true))),
            (SqlType::Binary, "YW Jj", Some(SqlValue::Bytes("abc".into()))),
            (SqlType::Binary, "?", None),
            (SqlType::Timestamp, "2024-01-01T00:00:00Z", Some(SqlValue::Temporal("2024-01-01 00:00:00".into()))),
        ] {
            assert_eq!(kind.convert(text).ok(), expected, "{kind:?} {text}");
        }
        assert_eq!(SqlType::from_name("GEOMETRY"), None);
    }

    #[test]
    fn validators_name_what_is_wrong() {
        let pattern = |text: &str| Validator::Pattern(text.into(), Box::new(fancy_regex::Regex::new(text).unwrap()));
        for (validator, text, expected) in [
            (Validator::Length(3, 20), "ab", Some("The value length must be between 3 and 20")),
            (Validator::Length(3, 20), "abc", None),
            (Validator::LongRange(1, 5), "6", Some("The value range must be between 1 and 5")),
            (Validator::DoubleRange(0.5, 2.0), "2.0", None),
            (pattern("^[a-z]+$"), "a1", Some("The value must match the pattern: ^[a-z]+$")),
        ] {
            assert_eq!(validator.violation(text).as_deref(), expected, "{validator:?} {text}");
            let outcome = parameter(SqlType::Text, vec![validator]).convert(Some(&scalar(text)));
            assert_eq!(outcome.is_err(), expected.is_some());
        }
    }

    #[test]
    fn defaults_replace_what_is_missing() {
        let caller = Caller { name: Some("ada".into()), roles: vec!["staff".into()] };
        let mut with = parameter(SqlType::Text, Vec::new());
        with.default = Some(DefaultValue::parse("#{USERNAME}"));
        assert_eq!(with.or_default(None, &caller), Some(scalar("ada")));
        assert_eq!(with.or_default(Some(&scalar("")), &caller), Some(scalar("")));
        with.forces_default = true;
        assert_eq!(with.or_default(Some(&scalar("")), &caller), Some(scalar("ada")));
        assert_eq!(with.or_default(Some(&scalar("x")), &caller), Some(scalar("x")));
        assert_eq!(parameter(SqlType::Text, Vec::new()).or_default(None, &caller), None);
    }

    #[test]
    fn repeated_parameters_are_lists() {
        let mut given = GivenParameters::default();
        given.add(" Id ", Some("1".into()));
        given.add("ID", Some("2".into()));
        given.add("name", None);
        assert_eq!(given.describe(), "{id=[1, 2], name=null}");
        assert_eq!(given.text("id").map(|text| &**text), Some("1"));
    }
}
