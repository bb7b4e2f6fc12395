//! `<result outputType="json">`: the result as a template of JSON, which says the same as elements do.

use std::sync::Arc;

use penstock_compile::{Compiler, Element};
use serde_json::{Map, Value};

use super::{Names, result};
use crate::model::{Argument, Mapping, Output, OutputValue, QueryCall, ValueKind};

pub(super) fn read(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names) -> Option<Mapping> {
    let text = el.text();
    el.finish(cx);
    let root: Value = match serde_json::from_str(&text) {
        Ok(root) => root,
        Err(error) => {
            cx.error(el.place(), format!("the template of <result> is not JSON: {error}"));
            return None;
        }
    };
    let root = root.as_object().filter(|members| members.len() == 1).and_then(|members| members.iter().next());
    let Some((name, value)) = root else {
        cx.error(el.place(), "the template of <result> needs one object with one member");
        return None;
    };
    let (element, row, row_template): (&str, Option<&str>, &Map<String, Value>) = match value {
        Value::Array(_) => match row_of(value) {
            Some(row) => ("", Some(name), row),
            None => return refused(cx, el),
        },
        Value::Object(members) => {
            let only = members.iter().next().filter(|_| members.len() == 1);
            match only.and_then(|(row, value)| Some((row, row_of(value)?))) {
                Some((row, template)) => (name, Some(row), template),
                None => (name, None, members),
            }
        }
        _ => return refused(cx, el),
    };
    let outputs = members(cx, el, names, row_template);
    Some(Mapping { element: element.into(), row: row.map(Arc::from), namespace: None, by_number: false, outputs })
}

fn refused(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Mapping> {
    cx.error(el.place(), "the template of <result> needs an object, or a list of one object, for a row");
    None
}

/// The object of a list of one.
fn row_of(value: &Value) -> Option<&Map<String, Value>> {
    match value.as_array()?.as_slice() {
        [row] => row.as_object(),
        _ => None,
    }
}

fn members(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names, template: &Map<String, Value>) -> Vec<Output> {
    let mut outputs = Vec::new();
    for (name, value) in template {
        if let Some(query) = name.strip_prefix('@') {
            outputs.extend(call(cx, el, names, query, value.as_str().unwrap_or_default()).map(result::of_call));
            continue;
        }
        let output = |kind, value| Output {
            name: name.as_str().into(),
            namespace: None,
            is_attribute: false,
            kind,
            schema_type: "string".into(),
            roles: Vec::new(),
            export: None,
            is_optional: false,
            value,
        };
        outputs.push(match value {
            Value::Object(inner) => output(ValueKind::Text, OutputValue::Complex(members(cx, el, names, inner))),
            Value::String(text) => match text.strip_prefix('$') {
                Some(column) => column_of(column, output(ValueKind::Text, OutputValue::Constant("".into()))),
                // A backslash keeps the dollar sign.
                None => {
                    let text = text.strip_prefix('\\').filter(|rest| rest.starts_with('$')).unwrap_or(text);
                    output(ValueKind::Text, OutputValue::Constant(text.into()))
                }
            },
            Value::Number(number) => output(ValueKind::Number, OutputValue::Constant(number.to_string().into())),
            Value::Bool(flag) => output(ValueKind::Boolean, OutputValue::Constant(flag.to_string().into())),
            Value::Null | Value::Array(_) => {
                cx.error(el.place(), format!("the member `{name}` of the template is neither a value nor an object"));
                continue;
            }
        });
    }
    outputs
}

/// `column(type:integer;requiredRoles:a,b;optional:true)`.
fn column_of(text: &str, output: Output) -> Output {
    let (column, options) = match text.split_once('(') {
        Some((column, options)) => (column, options.trim_end().trim_end_matches(')')),
        None => (text, ""),
    };
    let mut output = Output { value: OutputValue::Column(column.trim().to_lowercase().into()), ..output };
    for option in options.split(';') {
        match option.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("type", kind)) => {
                output.kind = ValueKind::from_name(kind);
                output.schema_type = crate::describe::schema_type(kind).into();
            }
            Some(("requiredRoles", roles)) => output.roles = result::split_roles(roles),
            Some(("optional", flag)) => output.is_optional = flag == "true",
            _ => {}
        }
    }
    output
}

/// `"@query": "$column->parameter,$other->other"`.
fn call(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names, query: &str, text: &str) -> Option<QueryCall> {
    let Some(index) = names.queries.get(query).copied() else {
        cx.error(el.place(), format!("unknown query `{query}`"));
        return None;
    };
    let mut arguments = Vec::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (column, parameter) = pair.split_once("->").unwrap_or((pair, pair));
        let column = column.trim().trim_start_matches('$');
        arguments.push(Argument {
            parameter: parameter.trim().trim_start_matches('$').to_lowercase().into(),
            written: column.into(),
            from: column.to_lowercase().into(),
            kind: "column",
        });
    }
    Some(QueryCall { query: index, arguments, roles: Vec::new() })
}
