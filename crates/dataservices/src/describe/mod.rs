//! Descriptions of a data service: WSDL 1.1 of its operations, and OpenAPI of its resources.

mod openapi;
mod schema;
mod wsdl;

pub use openapi::openapi;
pub use wsdl::wsdl;

use std::sync::Arc;

use crate::model::{DataService, Operation};
use crate::parameter::{Direction, Parameter, SqlType};

/// A parameter of a request.
struct RequestParameter {
    /// Its name as the artifact writes it.
    name: Arc<str>,
    kind: SqlType,
    is_array: bool,
    /// Whether a request without it is a fault.
    is_required: bool,
}

/// The parameters that requests for an operation have, each once.
fn parameters(service: &DataService, operation: &Operation) -> Vec<RequestParameter> {
    let mut found: Vec<RequestParameter> = Vec::new();
    let mut add = |name: &Arc<str>, parameter: &Parameter| {
        if found.iter().all(|known| !known.name.eq_ignore_ascii_case(name)) {
            found.push(RequestParameter {
                name: name.clone(),
                kind: parameter.kind,
                is_array: parameter.is_array,
                is_required: parameter.default.is_none() && !parameter.is_optional,
            });
        }
    };
    for call in &operation.calls {
        let query = &service.queries[call.query];
        let of_query = |name: &str| query.parameters.iter().find(|parameter| *parameter.name == *name);
        for argument in call.arguments.iter().filter(|argument| argument.kind == "query-param") {
            if let Some(parameter) = of_query(&argument.parameter) {
                add(&argument.written, parameter);
            }
        }
        if call.arguments.is_empty() {
            let given = query.parameters.iter().filter(|parameter| parameter.direction != Direction::Out);
            given.for_each(|parameter| add(&parameter.written, parameter));
        }
    }
    found
}

/// The local name of a type of XML Schema, `string` for what is none: `xs:integer` is `integer`.
pub fn schema_type(name: &str) -> &'static str {
    const TYPES: [&str; 20] = [
        "string",
        "integer",
        "int",
        "long",
        "short",
        "byte",
        "double",
        "float",
        "decimal",
        "boolean",
        "date",
        "time",
        "dateTime",
        "base64Binary",
        "hexBinary",
        "anyURI",
        "nonNegativeInteger",
        "positiveInteger",
        "unsignedInt",
        "unsignedLong",
    ];
    let local = name.trim().rsplit(':').next().unwrap_or_default();
    TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(local)).unwrap_or("string")
}

/// The type of XML Schema for values of a parameter.
fn type_of_parameter(kind: SqlType) -> &'static str {
    const INT_MAX: i64 = i32::MAX as i64;
    match kind {
        SqlType::Text | SqlType::QueryString => "string",
        SqlType::Integer(_, max) if max <= i64::from(i8::MAX) => "byte",
        SqlType::Integer(_, max) if max <= i64::from(i16::MAX) => "short",
        SqlType::Integer(_, max) if max <= INT_MAX => "integer",
        SqlType::Integer(..) => "long",
        SqlType::Double => "double",
        SqlType::Decimal => "decimal",
        SqlType::Boolean => "boolean",
        SqlType::Date => "date",
        SqlType::Time => "time",
        SqlType::Timestamp => "dateTime",
        SqlType::Binary => "base64Binary",
    }
}
