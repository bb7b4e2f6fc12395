//! `<endpoint template="…">`: an endpoint template with its parameters put in.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::endpoint::Endpoint;
use penstock_xml::{Document, ParseOptions};

use crate::{Compiler, Element, NameKind, SourceDocument};

/// Puts the parameters in and compiles what comes out.
pub(super) fn instantiate(
    cx: &mut Compiler<'_>,
    el: &Element<'_>,
    template: &str,
    name: Option<&str>,
) -> Option<Endpoint> {
    let Some(source) = cx.endpoint_template(template).or_else(|| in_registry(cx, template)) else {
        cx.unknown(NameKind::ENDPOINT_TEMPLATE, template, el.attribute_place("template"));
        return None;
    };
    let mut values = vec![("name".to_owned(), name.unwrap_or_default().to_owned())];
    if let Some(uri) = el.attribute("uri") {
        values.push(("uri".to_owned(), uri.to_owned()));
    }
    for parameter in el.elements("parameter") {
        let (key, value) = (parameter.attribute("name"), parameter.attribute("value"));
        if let Some((key, value)) = key.zip(value) {
            values.push((key.to_owned(), value.to_owned()));
        }
    }
    // Longer names first: `$uriBase` is not `$uri` followed by `Base`.
    values.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    let definition = definition_of(&source, template)?;
    let mut text = String::from_utf8_lossy(&definition).into_owned();
    for (key, value) in &values {
        let mut escaped = Vec::new();
        penstock_xml::escape_attribute(&mut escaped, value);
        text = text.replace(&format!("${key}"), &String::from_utf8_lossy(&escaped));
    }
    el.finish(cx);
    let document = match Document::parse(text.into_bytes(), &ParseOptions::default()) {
        Ok(document) => document,
        Err(error) => {
            cx.error(
                el.place(),
                format!("endpoint template `{template}` is not XML with these parameters: {}", error.message),
            );
            return None;
        }
    };
    let instance = SourceDocument::new(source.file.clone(), Arc::new(document));
    let root = instance.root()?;
    let mut endpoint = super::compile(cx, &root)?;
    endpoint.name = name.map(Arc::from).or(endpoint.name);
    endpoint.at = el.place();
    Some(endpoint)
}

/// A template that is a registry resource, by its key.
fn in_registry(cx: &Compiler<'_>, key: &str) -> Option<Rc<SourceDocument>> {
    let resource = cx.resource(key)?;
    let document = Document::parse(resource.bytes.clone(), &ParseOptions::default()).ok()?;
    let source = SourceDocument::new(resource.at.file.clone(), Arc::new(document));
    (source.root()?.name() == "template").then(|| Rc::new(source))
}

fn definition_of(source: &SourceDocument, template: &str) -> Option<Vec<u8>> {
    let root = source.root()?;
    let found = if root.name() == "definitions" {
        root.elements("template").find(|candidate| candidate.attribute("name") == Some(template))?
    } else {
        root
    };
    Some(found.child("endpoint")?.to_xml())
}
