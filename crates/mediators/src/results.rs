//! Where the results of several branches go: the body or a variable, as a list of JSON or as
//! elements inside an enclosing one.

use std::sync::Arc;

use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault};
use penstock_message::Value;
use penstock_xml::TreeBuilder;

use penstock_engine::payload;
use penstock_message::tree::{Content, insert};

/// What is made of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentType {
    /// A list.
    Json,
    /// Elements.
    Xml,
}

impl ContentType {
    /// The name of a content type, in any case.
    pub fn parse(text: &str) -> Option<ContentType> {
        match text.trim().to_ascii_uppercase().as_str() {
            "JSON" => Some(ContentType::Json),
            "XML" => Some(ContentType::Xml),
            _ => None,
        }
    }
}

/// Where results go and as what.
pub struct Output {
    content_type: ContentType,
    enclosing: Arc<str>,
    /// `None` is the body.
    variable: Option<Arc<str>>,
}

impl Output {
    /// Reads `target`, `target-variable` (or `result-target` of the first release),
    /// `result-content-type` and `result-enclosing-element`.
    pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Output> {
        let text = el.attribute("result-content-type").or_else(|| el.attribute("result-type")).unwrap_or("JSON");
        let Some(content_type) = ContentType::parse(text) else {
            cx.error(
                el.attribute_place("result-content-type"),
                format!("`{text}` is not a content type of results: JSON, XML"),
            );
            return None;
        };
        let target = el.attribute("target").unwrap_or("");
        let variable =
            el.attribute("target-variable").or_else(|| el.attribute("result-target")).filter(|name| !name.is_empty());
        let to_body = target.eq_ignore_ascii_case("body")
            || variable.is_none_or(|name| name.eq_ignore_ascii_case("body") && target.is_empty());
        let enclosing = el.attribute("result-enclosing-element").filter(|name| !name.is_empty());
        if content_type == ContentType::Xml && enclosing.is_none() {
            cx.warn(el.place(), "XML results need `result-enclosing-element`; `results` is used");
        }
        Some(Output {
            content_type,
            enclosing: enclosing.unwrap_or("results").into(),
            variable: variable.filter(|_| !to_body).map(Arc::from),
        })
    }

    /// Puts the results there.
    pub fn put(&self, exchange: &mut Exchange, results: Vec<Value>) -> Result<(), Fault> {
        let value = match self.content_type {
            ContentType::Json => {
                let list: Result<Vec<_>, Fault> = results.iter().map(crate::enrich::json_of).collect();
                Value::Json(Arc::new(serde_json::Value::Array(list?)))
            }
            ContentType::Xml => {
                let mut builder = TreeBuilder::new();
                builder.start_element("", &self.enclosing, "");
                for result in &results {
                    insert(&mut builder, &payload::contents_of(result));
                }
                builder.end_element();
                let document = Arc::new(builder.finish());
                let nodes = document.root_element().into_iter().collect();
                Value::Xml(document, nodes)
            }
        };
        match (&self.variable, value) {
            (Some(name), value) => exchange.message.variables.set(name.clone(), value),
            (None, Value::Json(json)) => {
                payload::ensure_media_type(exchange, "application/json");
                payload::set_json(exchange, json);
            }
            (None, Value::Xml(document, nodes)) => {
                payload::ensure_media_type(exchange, "application/xml");
                let contents: Vec<Content> = nodes.iter().map(|node| Content::Node(document.clone(), *node)).collect();
                payload::replace_by_nodes(exchange, &contents)?;
            }
            (None, _) => {}
        }
        Ok(())
    }
}
