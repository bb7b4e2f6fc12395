//! `<result>`: how rows become elements.

use std::sync::Arc;

use penstock_compile::{Compiler, Element};

use super::{Names, read_call, template};
use crate::describe;
use crate::model::{Mapping, Output, OutputValue, ValueKind};

/// Elements inside elements: deeper is a mistake.
const DEPTH_MAX: usize = 64;

/// `requiredRoles`.
pub(super) fn roles(el: &Element<'_>) -> Vec<Arc<str>> {
    split_roles(el.attribute("requiredRoles").unwrap_or_default())
}

pub(super) fn split_roles(text: &str) -> Vec<Arc<str>> {
    text.split(',').map(str::trim).filter(|role| !role.is_empty()).map(Arc::from).collect()
}

pub(super) fn read(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names) -> Option<Mapping> {
    // Characters that XML forbids are always escaped: with one of them a document is none.
    for unused in ["enableSettingEmptyDefaultNamespace", "rdfBaseURI", "escapeNonPrintableChar"] {
        el.attribute(unused);
    }
    if el.attribute("xsltPath").is_some_and(|path| !path.is_empty()) {
        cx.error(
            el.attribute_place("xsltPath"),
            "`xsltPath` is not supported: a proxy service can transform the result",
        );
    }
    let output_type = el.attribute("outputType").unwrap_or("xml").to_ascii_lowercase();
    let by_number = el.flag("useColumnNumbers", false);
    let namespace = el.attribute("defaultNamespace").filter(|text| !text.is_empty()).map(Arc::from);
    if output_type == "json" {
        el.attribute("element");
        el.attribute("rowName");
        let mapping = template::read(cx, el, names);
        return mapping.map(|mapping| Mapping { namespace, by_number, ..mapping });
    }
    if output_type == "rdf" {
        cx.error(el.attribute_place("outputType"), "results in RDF are not supported");
        return None;
    }
    let name = |attribute| el.attribute(attribute).map(str::trim).filter(|name| !name.is_empty()).map(Arc::<str>::from);
    let element = name("element").unwrap_or_default();
    let row = name("rowName");
    let outputs = children(cx, el, names, 0);
    Some(Mapping { element, row, namespace, by_number, outputs })
}

fn children(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names, depth: usize) -> Vec<Output> {
    if depth > DEPTH_MAX {
        cx.error(el.place(), format!("elements are nested deeper than {DEPTH_MAX}"));
        return Vec::new();
    }
    let mut outputs = Vec::new();
    for child in el.children() {
        match child.name() {
            "element" | "attribute" => outputs.extend(part(cx, &child, names, depth)),
            "call-query" => {
                if let Some(call) = read_call(cx, &child, names) {
                    outputs.push(of_call(call));
                }
            }
            other => cx.warn(child.place(), format!("<{}> does not know the element <{other}>", el.name())),
        }
    }
    el.finish(cx);
    outputs
}

/// The place of a nested query.
pub(super) fn of_call(call: crate::model::QueryCall) -> Output {
    Output {
        name: "".into(),
        namespace: None,
        is_attribute: false,
        kind: ValueKind::Text,
        schema_type: "string".into(),
        roles: Vec::new(),
        export: None,
        is_optional: false,
        value: OutputValue::Call(Arc::new(call)),
    }
}

fn part(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names, depth: usize) -> Option<Output> {
    let name = el.required(cx, "name")?.trim();
    // Prefixes are not declared in results.
    let name = name.rsplit(':').next().unwrap_or(name);
    if !penstock_xml::is_ncname(name) {
        cx.error(el.attribute_place("name"), format!("`{name}` is not a name of an element"));
        return None;
    }
    let is_attribute = el.name() == "attribute";
    let lower = |name: &str| Arc::<str>::from(name.trim().to_lowercase());
    let value = if let Some(column) = el.attribute("column") {
        OutputValue::Column(lower(column))
    } else if let Some(parameter) = el.attribute("query-param") {
        OutputValue::Parameter(lower(parameter))
    } else if let Some(value) = el.attribute("value") {
        OutputValue::Constant(value.into())
    } else if is_attribute {
        cx.error(el.place(), "<attribute> needs `column`, `query-param` or `value`");
        return None;
    } else {
        OutputValue::Complex(Vec::new())
    };
    let export = el.attribute("export").filter(|name| !name.trim().is_empty()).map(|name| {
        let is_array = el.attribute("exportType").is_some_and(|kind| kind.eq_ignore_ascii_case("ARRAY"));
        (lower(name), is_array)
    });
    el.attribute("exportType");
    if el.attribute("arrayName").is_some_and(|name| !name.is_empty()) {
        cx.warn(el.attribute_place("arrayName"), "`arrayName` is not supported: an array is written as one text");
    }
    let output = Output {
        name: name.into(),
        namespace: el.attribute("namespace").filter(|text| !text.is_empty()).map(Arc::from),
        is_attribute,
        kind: el.attribute("xsdType").map_or(ValueKind::Text, ValueKind::from_name),
        schema_type: describe::schema_type(el.attribute("xsdType").unwrap_or_default()).into(),
        roles: roles(el),
        export,
        is_optional: el.flag("optional", false),
        value,
    };
    Some(match output.value {
        OutputValue::Complex(_) => Output { value: OutputValue::Complex(children(cx, el, names, depth + 1)), ..output },
        _ => {
            el.finish(cx);
            output
        }
    })
}
