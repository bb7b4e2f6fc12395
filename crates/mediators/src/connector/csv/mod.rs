//! The CSV module: `<CSV.csvToJson>`, `<CSV.csvToXml>`, `<CSV.csvToCsv>`, `<CSV.jsonToCsv>` and `<CSV.xmlToCsv>` convert
//! the body, or put the result into a variable.

mod columns;
mod json;
mod table;
mod xml;

use penstock_compile::connector::{Arguments, Output};
use penstock_compile::{Compiler, ConnectorKind, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, payload};
use penstock_message::{MediaType, Value, delimited};
use serde_json::Value as Json;

use crate::reply::reply_value;
use table::Table;

/// The kind.
pub const KIND: ConnectorKind = ConnectorKind {
    name: "CSV",
    operations: &["csvToCsv", "csvToJson", "csvToXml", "jsonToCsv", "xmlToCsv"],
    compile,
    connection: |_, _, _| {},
};

/// The parameters of all operations.
const PARAMETERS: [&str; 21] = [
    "headerPresent",
    "valueSeparator",
    "skipHeader",
    "dataRowsToSkip",
    "columnsToSkip",
    "orderByColumn",
    "columnOrdering",
    "customHeader",
    "customValueSeparator",
    "suppressEscapeCharacters",
    "csvEmptyValues",
    "jsonKeys",
    "dataTypes",
    "rootJsonKey",
    "tagNames",
    "rootElementTag",
    "rootElementNamespace",
    "rootElementNamespaceURI",
    "groupElementTag",
    "groupElementNamespace",
    "groupElementNamespaceURI",
];

struct Operation {
    convert: Convert,
    arguments: Arguments,
    output: Output,
}

type Convert = fn(&Arguments, &mut Exchange) -> Result<Value, Fault>;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let convert: Convert = match el.name().strip_prefix("CSV.").unwrap_or_default() {
        "csvToCsv" => csv_to_csv,
        "csvToXml" => xml::from_csv,
        "jsonToCsv" => json::to_csv,
        "xmlToCsv" => xml::to_csv,
        _ => json::from_csv,
    };
    let arguments = Arguments::compile(el, cx, &PARAMETERS)?;
    Some(Box::new(Operation { convert, arguments, output: Output::compile(el, cx)? }))
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let place = self.output.place(exchange)?;
        let result = (self.convert)(&self.arguments, exchange)?;
        if let Some(place) = &place
            && !place.overwrites_body
        {
            let payload = match result {
                Value::Json(json) => (*json).clone(),
                other => Json::String(other.to_text().into_owned()),
            };
            place.set(exchange, Some(payload), None, None);
            return Ok(Flow::Next);
        }
        match result {
            Value::Json(json) => {
                payload::set_media_type(exchange, "application/json");
                payload::set_json(exchange, json);
            }
            Value::Xml(..) => {
                payload::set_media_type(exchange, "application/xml");
                payload::replace_by_nodes(exchange, &payload::contents_of(&result))?;
            }
            other => payload::set_text(exchange, other.to_text().into_owned()),
        }
        if let Some(place) = place {
            place.set(exchange, None, None, None);
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// The rows of the body.
fn table(arguments: &Arguments, exchange: &mut Exchange) -> Result<Table, Fault> {
    let text = text_of(exchange)?;
    Table::read(&text, arguments, exchange)
}

/// The body as text. A text in an XML message is that of its element.
fn text_of(exchange: &mut Exchange) -> Result<String, Fault> {
    Ok(match reply_value(exchange)? {
        Value::Xml(document, nodes) => {
            nodes.first().map(|node| document.string_value(*node).into_owned()).unwrap_or_default()
        }
        Value::Json(_) => return Err(Fault::new("the body is JSON and not CSV")),
        other => other.to_text().into_owned(),
    })
}

fn csv_to_csv(arguments: &Arguments, exchange: &mut Exchange) -> Result<Value, Fault> {
    let mut table = table(arguments, exchange)?;
    let custom = arguments.text("customHeader", exchange)?;
    let header = match custom {
        Some(custom) => Some(list(&custom)),
        None if arguments.flag("skipHeader", false, exchange)? => None,
        None => table.header.take(),
    };
    written(header, table.rows, arguments, exchange)
}

/// The text of rows.
fn written(
    header: Option<Vec<String>>,
    rows: Vec<Vec<String>>,
    arguments: &Arguments,
    exchange: &mut Exchange,
) -> Result<Value, Fault> {
    let separator = table::separator(arguments.text("customValueSeparator", exchange)?.as_deref());
    let doubles_quotes = !arguments.flag("suppressEscapeCharacters", false, exchange)?;
    let mut out = String::new();
    for row in header.iter().chain(&rows) {
        delimited::push_row(&mut out, row.iter().map(String::as_str), separator, doubles_quotes);
    }
    Ok(Value::string(out))
}

/// A list of names with commas between them.
fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// Whether the body is JSON.
fn is_json(exchange: &Exchange) -> bool {
    exchange.message.source_media() == MediaType::Json
}
