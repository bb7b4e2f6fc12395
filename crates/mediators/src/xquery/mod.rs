//! `<xquery>`: the payload, or the node that `target` selects, is replaced by the result of a query.
//!
//! The query is translated to a stylesheet when the artifact is compiled ([`translate`]). Variables with XML are documents that
//! the stylesheet reads by name.

mod clauses;
mod constructor;
mod scan;
mod translate;

use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{AlwaysFaults, Compiler, Element, Expression, MediatorKind, NameKind};
use penstock_engine::payload;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Place};
use penstock_message::Form;
use penstock_message::tree::{self, Change, Content};
use penstock_xml::{Document, NodeId, ParseOptions, WriteOptions};
use penstock_xslt::{CompileOptions, Resolver, Resource, Stylesheet, TransformOptions};

use translate::{External, translate};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "xquery", compile };

/// The names of documents that are variables begin so.
const VARIABLE: &str = "variable:";

struct XQuery {
    stylesheet: Arc<Stylesheet>,
    variables: Vec<Variable>,
    target: Option<Expression>,
    /// The subject of the transformation; the query reads variables only.
    nothing: Arc<Document>,
}

struct Variable {
    name: String,
    source: Source,
    is_node: bool,
}

enum Source {
    Text(String),
    Expression(Expression),
    /// A local entry or registry resource.
    Resource(Bytes),
    Payload,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let key = el.required(cx, "key")?;
    let target = match el.attribute("target") {
        Some(_) => Some(cx.expression(el, "target")?),
        None => None,
    };
    let (mut variables, mut externals) = (Vec::new(), Vec::new());
    for variable in el.elements("variable") {
        let (variable, external) = read_variable(cx, &variable)?;
        variables.push(variable);
        externals.push(external);
    }
    if let Some(settings) = el.child("dataSource") {
        settings.accept_all();
    }
    let Some(found) = cx.resource(key) else {
        cx.unknown(NameKind::RESOURCE, key, el.attribute_place("key"));
        return Some(Box::new(AlwaysFaults::missing("local entry", key)));
    };
    let query = match found.is_xml {
        true => text_of_element(&found.bytes)?,
        false => found.text().into_owned(),
    };
    let translated = match translate(&query, &externals) {
        Ok(translated) => translated,
        Err(error) => {
            let before = &query[..error.at.min(query.len())];
            let line = found.at.line + before.matches('\n').count() as u32;
            let place = Place { line, ..found.at.clone() };
            let text = format!("query `{key}`: {}", error.message);
            cx.warn(place, format!("{text}; a message that reaches it faults"));
            return Some(Box::new(AlwaysFaults::new(text)));
        }
    };
    let options = CompileOptions { base_uri: key, ..CompileOptions::default() };
    match Stylesheet::compile(translated, &options) {
        Ok((stylesheet, _)) => {
            let nothing = Document::parse("<none/>", &ParseOptions::default()).ok()?;
            Some(Box::new(XQuery { stylesheet: Arc::new(stylesheet), variables, target, nothing: Arc::new(nothing) }))
        }
        Err(errors) => {
            let first = errors.first().map_or_else(String::new, |error| error.message.clone());
            let text = format!("query `{key}`: {first}");
            cx.warn(found.at.clone(), format!("{text}; a message that reaches it faults"));
            Some(Box::new(AlwaysFaults::new(text)))
        }
    }
}

/// The text in a local entry: `<x>declare variable …</x>`.
fn text_of_element(bytes: &Bytes) -> Option<String> {
    let document = Document::parse(bytes.clone(), &ParseOptions::default()).ok()?;
    Some(document.string_value(document.root_element()?).into_owned())
}

fn read_variable(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<(Variable, External)> {
    let name = el.required(cx, "name")?.to_owned();
    let type_name = el.required(cx, "type")?.to_ascii_uppercase();
    let atomic = match type_name.as_str() {
        "STRING" => Some("xs:string"),
        "BOOLEAN" => Some("xs:boolean"),
        "INTEGER" => Some("xs:integer"),
        "INT" => Some("xs:int"),
        "LONG" => Some("xs:long"),
        "SHORT" => Some("xs:short"),
        "BYTE" => Some("xs:byte"),
        "DOUBLE" => Some("xs:double"),
        "FLOAT" => Some("xs:float"),
        "DOCUMENT" | "ELEMENT" | "DOCUMENT_ELEMENT" => None,
        other => {
            cx.error(el.attribute_place("type"), format!("`{other}` is not a type of a variable of a query"));
            return None;
        }
    };
    let source = if let Some(value) = el.attribute("value") {
        Source::Text(value.to_owned())
    } else if el.attribute("expression").is_some() {
        Source::Expression(cx.expression(el, "expression")?)
    } else if let Some(key) = el.attribute("key") {
        let Some(found) = cx.resource(key) else {
            cx.unknown(NameKind::RESOURCE, key, el.attribute_place("key"));
            return None;
        };
        Source::Resource(found.bytes.clone())
    } else {
        Source::Payload
    };
    el.finish(cx);
    let external = External { name: name.clone(), atomic };
    Some((Variable { name, source, is_node: atomic.is_none() }, external))
}

impl Variable {
    /// The value as text, or as the bytes of a document.
    fn value(&self, exchange: &mut Exchange) -> Result<Bytes, Fault> {
        match &self.source {
            Source::Text(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
            Source::Resource(bytes) => Ok(bytes.clone()),
            Source::Expression(expression) if !self.is_node => Ok(expression.text(exchange)?.into_bytes().into()),
            Source::Expression(expression) => {
                let (document, nodes) = expression.nodes(exchange)?;
                let node = nodes
                    .first()
                    .ok_or_else(|| Fault::new(format!("the variable `{}` of the query selects nothing", self.name)))?;
                Ok(penstock_xml::to_vec(&document, *node, &WriteOptions::default()).into())
            }
            Source::Payload => {
                let envelope = exchange.xml()?;
                let payload = envelope.payload().ok_or_else(|| Fault::new("the query needs a body, which is empty"))?;
                match self.is_node {
                    true => Ok(penstock_xml::to_vec(&envelope.document, payload, &WriteOptions::default()).into()),
                    false => Ok(Bytes::copy_from_slice(envelope.document.string_value(payload).as_bytes())),
                }
            }
        }
    }
}

/// The documents that are variables.
struct Variables(Vec<(String, Bytes)>);

impl Resolver for Variables {
    fn resolve(&self, reference: &str, _base: &str) -> Result<Resource, String> {
        let name = reference.strip_prefix(VARIABLE).unwrap_or_default();
        let found = self.0.iter().find(|(known, _)| known == name);
        let (_, content) = found.ok_or_else(|| format!("`{reference}`: a query reads its variables only"))?;
        Ok(Resource { uri: reference.to_owned(), content: content.clone() })
    }
}

impl XQuery {
    /// Puts the first item of the result in the place of the target: an element replaces it, a value becomes its text.
    fn deliver(&self, exchange: &mut Exchange, result: Arc<Document>) -> Result<(), Fault> {
        let Some(item) = result.children(Document::ROOT).next() else { return Ok(()) };
        let is_element = result.is_element(item);
        let content = match is_element {
            true => Content::Node(result.clone(), item),
            false => Content::Text(result.string_value(item).into()),
        };
        let destination = match &self.target {
            Some(target) => {
                let (_, nodes) = target.nodes(exchange)?;
                // A target that selects nothing leaves the message as it is.
                let Some(node) = nodes.first() else { return Ok(()) };
                Some(*node)
            }
            None => None,
        };
        let envelope = exchange.xml()?;
        if is_element && (destination.is_none() || destination == envelope.payload()) {
            return payload::replace_by_nodes(exchange, &[content]);
        }
        let Some(destination) = destination.or_else(|| envelope.payload()) else { return Ok(()) };
        let changes = match is_element {
            true => [(destination, Change::Replace(vec![content]))].into_iter().collect(),
            false => {
                let old = envelope.document.children(destination);
                let old: Vec<(NodeId, Change)> = old.map(|child| (child, Change::Replace(Vec::new()))).collect();
                old.into_iter().chain([(destination, Change::Append(vec![content]))]).collect()
            }
        };
        let changed = tree::envelope_of(tree::edit(&envelope.document, &changes), envelope.soap)
            .ok_or_else(|| Fault::new("the result of the query does not leave an envelope"))?;
        exchange.message.body.set(Form::Xml(Arc::new(changed)));
        Ok(())
    }
}

impl Mediator for XQuery {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut documents = Variables(Vec::new());
        let mut texts = Vec::new();
        for variable in &self.variables {
            let value = variable.value(exchange)?;
            match variable.is_node {
                true => documents.0.push((variable.name.clone(), value)),
                false => texts.push((&variable.name, String::from_utf8_lossy(&value).into_owned())),
            }
        }
        let mut options = TransformOptions {
            resolver: &documents,
            initial_template: Some(translate::MAIN),
            ..TransformOptions::default()
        };
        for (name, text) in &texts {
            options.string_param(name.as_str(), text);
        }
        let result = self
            .stylesheet
            .transform_to_tree(&self.nothing, Document::ROOT, &options)
            .map_err(|error| Fault::new(format!("the query failed: {}", error.message)))?;
        self.deliver(exchange, Arc::new(result))?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
