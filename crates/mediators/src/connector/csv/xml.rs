//! CSV to XML and back.

use std::sync::Arc;

use penstock_compile::connector::Arguments;
use penstock_engine::{Exchange, Fault};
use penstock_message::Value;
use penstock_xml::{TreeBuilder, is_ncname};

use super::{list, table, written};

/// An element around others.
struct Around {
    name: String,
    prefix: String,
    namespace: String,
}

impl Around {
    fn read(
        [name, prefix, namespace]: [&str; 3],
        default: &str,
        arguments: &Arguments,
        exchange: &mut Exchange,
    ) -> Result<Around, Fault> {
        let name = arguments.text(name, exchange)?.unwrap_or_else(|| default.to_owned());
        let prefix = arguments.text(prefix, exchange)?.unwrap_or_default();
        let namespace = arguments.text(namespace, exchange)?.unwrap_or_default();
        // Without an address of a namespace its prefix says nothing.
        let prefix = if namespace.is_empty() { String::new() } else { prefix };
        for part in [&name, &prefix].into_iter().filter(|part| !part.is_empty()) {
            if !is_ncname(part) {
                return Err(Fault::new(format!("`{part}` is not a name of an element")));
            }
        }
        Ok(Around { name, prefix, namespace })
    }

    fn open(&self, builder: &mut TreeBuilder) {
        builder.start_element(&self.prefix, &self.name, &self.namespace);
    }
}

pub(super) fn from_csv(arguments: &Arguments, exchange: &mut Exchange) -> Result<Value, Fault> {
    let table = table(arguments, exchange)?;
    let names = ["rootElementTag", "rootElementNamespace", "rootElementNamespaceURI"];
    let root = Around::read(names, "root", arguments, exchange)?;
    let names = ["groupElementTag", "groupElementNamespace", "groupElementNamespaceURI"];
    let group = Around::read(names, "group", arguments, exchange)?;
    let (rows, tags) = table.with_header("tagNames", arguments, exchange)?;
    let mut builder = TreeBuilder::new();
    root.open(&mut builder);
    for row in rows {
        penstock_budget::step();
        group.open(&mut builder);
        for (index, value) in row.iter().enumerate() {
            builder.start_element("", &tag(&tags.get(index)), "");
            builder.text(value);
            builder.end_element();
        }
        builder.end_element();
    }
    builder.end_element();
    let document = Arc::new(builder.finish());
    let nodes = document.root_element().into_iter().collect();
    Ok(Value::Xml(document, nodes))
}

/// A name of an element; what a name cannot have becomes `_`.
fn tag(name: &str) -> String {
    let name = name.trim();
    if is_ncname(name) {
        return name.to_owned();
    }
    let letter = |letter: char| if letter.is_alphanumeric() || "-._".contains(letter) { letter } else { '_' };
    let tag: String = name.chars().map(letter).collect();
    if is_ncname(&tag) { tag } else { format!("_{tag}") }
}

pub(super) fn to_csv(arguments: &Arguments, exchange: &mut Exchange) -> Result<Value, Fault> {
    let envelope = exchange.xml()?;
    let document = &envelope.document;
    let root = envelope.payload().ok_or_else(|| Fault::new("the body has no element"))?;
    let mut rows = Vec::new();
    let mut header = arguments.text("customHeader", exchange)?.map(|text| list(&text));
    for row in document.children(root).filter(|child| document.is_element(*child)) {
        penstock_budget::step();
        let values: Vec<_> = document.children(row).filter(|child| document.is_element(*child)).collect();
        header.get_or_insert_with(|| values.iter().map(|value| document.local_name(*value).to_owned()).collect());
        rows.push(values.iter().map(|value| document.string_value(*value).into_owned()).collect());
    }
    written(header, rows, arguments, exchange)
}
