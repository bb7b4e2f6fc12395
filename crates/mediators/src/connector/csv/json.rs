//! CSV to JSON and back.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::connector::Arguments;
use penstock_engine::{Exchange, Fault};
use penstock_message::Value;
use serde_json::{Map, Number, Value as Json};

use super::{columns, is_json, list, table, written};

/// The types of members.
#[derive(Clone, Copy)]
enum DataType {
    Text,
    Number,
    Integer,
    Boolean,
}

pub(super) fn from_csv(arguments: &Arguments, exchange: &mut Exchange) -> Result<Value, Fault> {
    let table = table(arguments, exchange)?;
    let keeps_empty =
        arguments.text("csvEmptyValues", exchange)?.is_some_and(|word| word.eq_ignore_ascii_case("Empty"));
    let types = match arguments.text("dataTypes", exchange)? {
        Some(text) => data_types(&text, table.header.as_deref().unwrap_or_default())?,
        None => HashMap::new(),
    };
    let (rows, keys) = table.with_header("jsonKeys", arguments, exchange)?;
    let mut objects = Vec::with_capacity(rows.len());
    for row in rows {
        penstock_budget::step();
        let members = row.into_iter().enumerate().map(|(index, value)| {
            let data_type = types.get(&index).copied().unwrap_or(DataType::Text);
            let value = match value.trim() {
                "" if keeps_empty => Json::String(String::new()),
                "" => Json::Null,
                _ => typed(value, data_type),
            };
            (keys.get(index), value)
        });
        objects.push(Json::Object(members.collect()));
    }
    let array = Json::Array(objects);
    let root = arguments.text("rootJsonKey", exchange)?;
    Ok(Value::Json(Arc::new(match root {
        Some(root) => Json::Object(Map::from_iter([(root, array)])),
        None => array,
    })))
}

/// `[{"Column Name Or Index": "id", "Is Column Name": "Yes", "Data Type": "Number"}]`, by 0-based columns.
fn data_types(text: &str, header: &[String]) -> Result<HashMap<usize, DataType>, Fault> {
    let wrong = || Fault::new("`dataTypes` is not a list of objects with `Column Name Or Index` and `Data Type`");
    let json: Json = serde_json::from_str(text).map_err(|_| wrong())?;
    let mut types = HashMap::new();
    for item in json.as_array().ok_or_else(wrong)? {
        let member = |name: &str| item.get(name).and_then(Json::as_str);
        let column = member("Column Name Or Index").ok_or_else(wrong)?;
        let is_name = !member("Is Column Name").is_some_and(|word| word.eq_ignore_ascii_case("No"));
        let column = if is_name { columns::position(header, column) } else { columns::column(column, header) };
        let data_type = match member("Data Type").unwrap_or_default().to_ascii_lowercase().as_str() {
            "number" => DataType::Number,
            "integer" => DataType::Integer,
            "boolean" => DataType::Boolean,
            _ => DataType::Text,
        };
        types.extend(column.map(|column| (column, data_type)));
    }
    Ok(types)
}

/// A value of a type; one that is none of it stays text.
fn typed(value: String, data_type: DataType) -> Json {
    let typed = match data_type {
        DataType::Text => None,
        DataType::Number => value.trim().parse().ok().and_then(Number::from_f64).map(Json::Number),
        DataType::Integer => value.parse::<i32>().ok().map(Json::from),
        DataType::Boolean => Some(Json::Bool(value.eq_ignore_ascii_case("true"))),
    };
    typed.unwrap_or(Json::String(value))
}

pub(super) fn to_csv(arguments: &Arguments, exchange: &mut Exchange) -> Result<Value, Fault> {
    if !is_json(exchange) {
        return Err(Fault::new("the body is not JSON"));
    }
    let json = exchange.json()?;
    let wrong = || Fault::new("the body is not an array of objects");
    let mut rows = Vec::new();
    let mut header = arguments.text("customHeader", exchange)?.map(|text| list(&text));
    for item in json.as_array().ok_or_else(wrong)? {
        penstock_budget::step();
        let object = item.as_object().ok_or_else(wrong)?;
        header.get_or_insert_with(|| object.keys().cloned().collect());
        rows.push(object.values().map(text_of).collect());
    }
    written(header, rows, arguments, exchange)
}

fn text_of(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
