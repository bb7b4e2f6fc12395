//! `<xslt>` and `<fastXSLT>`: the payload, or what `source` selects, through a stylesheet.
//!
//! The result is written to bytes and put in the place of the payload; it is parsed only when
//! a mediator reads it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use penstock_compile::{Compiler, Element, Expression, MediatorKind, NameKind, Text};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, FindResource, Flow, Mediator, Needs, Place};
use penstock_message::Value;
use penstock_xml::{Document, NodeId};
use penstock_xslt::{CompileOptions, Method, Resolver, Resource, Stylesheet, TransformOptions, XsltError};

use crate::typed::ValueSource;
use penstock_engine::payload;
use penstock_message::tree::{self, Change, Content};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "xslt", compile };
/// The same under the name of Micro Integrator's streaming variant.
pub const FAST: MediatorKind = MediatorKind { name: "fastXSLT", compile };

/// Stylesheets of computed keys that are kept compiled.
const COMPUTED_MAX: usize = 256;

struct Xslt {
    key: Key,
    source: Option<Expression>,
    parameters: Vec<(String, ValueSource)>,
    target: Option<Target>,
    /// What `import`, `include` and `document()` call a resource, and its key.
    locations: HashMap<String, String>,
}

enum Key {
    Static(Arc<Stylesheet>),
    Computed(Text, RwLock<HashMap<Arc<str>, Arc<Stylesheet>>>),
    /// Defined nowhere: a fault when a message gets here.
    Missing(Arc<str>),
}

enum Target {
    Property(String),
    Variable(String),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    el.attribute("useCache");
    for tolerated in ["feature", "attribute"] {
        for child in el.elements(tolerated) {
            child.accept_all();
        }
    }
    let mut locations = HashMap::new();
    for resource in el.elements("resource") {
        let (location, key) = (resource.required(cx, "location")?, resource.required(cx, "key")?);
        locations.insert(location.to_owned(), key.to_owned());
    }
    let mut parameters = Vec::new();
    for property in el.elements("property") {
        let name = property.required(cx, "name")?;
        if let Some(value) = ValueSource::compile(cx, &property, None) {
            parameters.push((name.to_owned(), value));
        }
        property.finish(cx);
    }
    let target = match (el.attribute("target-variable"), el.attribute("target")) {
        (Some(name), _) => Some(Target::Variable(name.to_owned())),
        (None, Some(name)) => Some(Target::Property(name.to_owned())),
        (None, None) => None,
    };
    let source = match el.attribute("source") {
        Some(_) => Some(cx.expression(el, "source")?),
        None => None,
    };
    let key = compile_key(cx, el, &locations)?;
    Some(Box::new(Xslt { key, source, parameters, target, locations }))
}

fn compile_key(cx: &mut Compiler<'_>, el: &Element<'_>, locations: &HashMap<String, String>) -> Option<Key> {
    let key = el.required(cx, "key")?;
    let at = el.attribute_place("key");
    if let Text::Computed(expression) = Text::compile(cx, el, key, at.clone())? {
        cx.depends_on_resources();
        return Some(Key::Computed(Text::Computed(expression), RwLock::default()));
    }
    let Some(found) = cx.resource(key) else {
        cx.unknown(NameKind::RESOURCE, key, at);
        return Some(Key::Missing(key.into()));
    };
    match compile_stylesheet(&*cx, key, locations) {
        Ok((stylesheet, warnings)) => {
            for warning in warnings {
                cx.warn(found.at.clone(), format!("stylesheet `{key}`: {}", warning.message));
            }
            Some(Key::Static(stylesheet))
        }
        Err(errors) => {
            for error in errors {
                // A stylesheet in a local entry begins at its element, not at the top of the file.
                let place = Place {
                    line: found.at.line + error.at.line.saturating_sub(1),
                    column: if error.at.line > 1 { error.at.column } else { found.at.column },
                    ..found.at.clone()
                };
                cx.error(place, format!("stylesheet `{key}`: {} ({})", error.message, error.code));
            }
            None
        }
    }
}

type Compiled = Result<(Arc<Stylesheet>, Vec<penstock_xslt::Warning>), Vec<XsltError>>;

fn compile_stylesheet(resources: &dyn FindResource, key: &str, locations: &HashMap<String, String>) -> Compiled {
    let resolver = Keyed { resources, locations };
    let options = CompileOptions { base_uri: key, resolver: &resolver, ..CompileOptions::default() };
    let source = resources.find(key).map(|found| found.bytes.clone()).unwrap_or_default();
    Stylesheet::compile(source, &options).map(|(stylesheet, warnings)| (Arc::new(stylesheet), warnings))
}

/// Finds what a stylesheet names among the program's resources; nothing is fetched.
struct Keyed<'a> {
    resources: &'a dyn FindResource,
    locations: &'a HashMap<String, String>,
}

impl Resolver for Keyed<'_> {
    fn resolve(&self, reference: &str, _base: &str) -> Result<Resource, String> {
        let key = self.locations.get(reference).map_or(reference, String::as_str);
        match self.resources.find(key) {
            Some(found) => Ok(Resource { uri: key.to_owned(), content: found.bytes.clone() }),
            None => Err(format!("unknown local entry or registry resource `{key}`; <resource> maps locations to keys")),
        }
    }
}

impl Xslt {
    fn stylesheet(&self, exchange: &mut Exchange) -> Result<Arc<Stylesheet>, Fault> {
        match &self.key {
            Key::Static(stylesheet) => Ok(stylesheet.clone()),
            Key::Missing(key) => Err(Fault::new(format!("no local entry or registry resource is named `{key}`"))),
            Key::Computed(key, compiled) => {
                let key = key.text(exchange)?;
                if let Some(found) = compiled.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
                    return Ok(found.clone());
                }
                let resources = &exchange.program().resources;
                if resources.get(&key).is_none() {
                    return Err(Fault::new(format!("no local entry or registry resource is named `{key}`")));
                }
                let (stylesheet, _) = compile_stylesheet(resources, &key, &self.locations).map_err(|errors| {
                    let first = errors.first().map_or_else(String::new, ToString::to_string);
                    Fault::new(format!("the stylesheet `{key}` has errors: {first}"))
                })?;
                let mut compiled = compiled.write().unwrap_or_else(PoisonError::into_inner);
                if compiled.len() < COMPUTED_MAX {
                    compiled.insert(key, stylesheet.clone());
                }
                Ok(stylesheet)
            }
        }
    }

    /// What is transformed: the payload, if there is one, or the first node that `source` selects.
    fn subject(&self, exchange: &mut Exchange) -> Result<Option<(Arc<Document>, NodeId)>, Fault> {
        if let Some(source) = &self.source {
            let (document, nodes) = source.nodes(exchange)?;
            return match nodes.first() {
                Some(node) => Ok(Some((document, *node))),
                None => Err(Fault::new(format!("the source `{}` selects nothing", source.text))),
            };
        }
        let envelope = exchange.xml()?;
        Ok(envelope.payload().map(|payload| (envelope.document.clone(), payload)))
    }

    /// Puts the result where it belongs.
    fn deliver(&self, exchange: &mut Exchange, subject: NodeId, result: Vec<u8>, method: Method) -> Result<(), Fault> {
        if let Some(target) = &self.target {
            let value = match method {
                Method::Text => Value::string(String::from_utf8_lossy(&result)),
                Method::Xml | Method::Xhtml | Method::Html => {
                    let (document, root) = payload::parse(result)?;
                    Value::Xml(document, vec![root])
                }
            };
            match target {
                Target::Variable(name) => exchange.message.variables.set(name.as_str(), value),
                Target::Property(name) => exchange.message.properties.set(name.as_str(), value),
            }
            return Ok(());
        }
        if method == Method::Text {
            payload::set_text(exchange, String::from_utf8_lossy(&result).into_owned());
            return Ok(());
        }
        if self.source.is_none() {
            return payload::replace_by_bytes(exchange, result);
        }
        let envelope = exchange.xml()?;
        let (document, root) = payload::parse(result)?;
        if [Document::ROOT, envelope.envelope].contains(&subject) || envelope.payload() == Some(subject) {
            return payload::replace_by_nodes(exchange, &[Content::Node(document, root)]);
        }
        let inside = || document.children(root).map(|child| Content::Node(document.clone(), child)).collect::<Vec<_>>();
        let changes = if subject == envelope.body {
            // The envelope keeps its own; what the result holds comes into it.
            return payload::replace_by_nodes(exchange, &inside());
        } else if envelope.header == Some(subject) {
            let old = envelope.document.children(subject).map(|child| (child, Change::Replace(Vec::new())));
            old.chain([(subject, Change::Append(inside()))]).collect()
        } else {
            [(subject, Change::Replace(vec![Content::Node(document, root)]))].into_iter().collect()
        };
        let changed = tree::envelope_of(tree::edit(&envelope.document, &changes), envelope.soap)
            .ok_or_else(|| Fault::new("the result does not leave an envelope"))?;
        exchange.message.body.set(penstock_message::Form::Xml(Arc::new(changed)));
        Ok(())
    }
}

impl Mediator for Xslt {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let stylesheet = self.stylesheet(exchange)?;
        let mut parameters = Vec::with_capacity(self.parameters.len());
        for (name, value) in &self.parameters {
            if let Some(text) = value.text(exchange)? {
                parameters.push((name, text));
            }
        }
        let Some((document, subject)) = self.subject(exchange)? else {
            exchange.log(Level::Warn, "XSLTMediator", "There is no payload to transform; the message stays as it is");
            return Ok(Flow::Next);
        };
        let messages = std::cell::RefCell::new(Vec::new());
        let program = exchange.program().clone();
        let resolver = Keyed { resources: &program.resources, locations: &self.locations };
        let listen = |text: &str| messages.borrow_mut().push(text.to_owned());
        let mut options = TransformOptions { resolver: &resolver, messages: &listen, ..TransformOptions::default() };
        for (name, text) in parameters {
            options.string_param(name, &text);
        }
        let mut result = Vec::with_capacity(document.source().len());
        let info = stylesheet
            .transform(&document, subject, &options, &mut result)
            .map_err(|error| Fault::new(format!("the transformation failed: {error}")))?;
        for text in messages.take() {
            exchange.log(Level::Info, "XSLTMediator", &text);
        }
        if !info.encoding.eq_ignore_ascii_case("utf-8") {
            // The message is UTF-8; the stylesheet's encoding is for files.
            let tree = stylesheet
                .transform_to_tree(&document, subject, &options)
                .map_err(|error| Fault::new(error.to_string()))?;
            result = penstock_xml::to_vec(&tree, Document::ROOT, &penstock_xml::WriteOptions::default());
        }
        self.deliver(exchange, subject, without_declaration(result), info.method)?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// Takes the XML declaration off: the result goes into a message that may have its own.
fn without_declaration(mut result: Vec<u8>) -> Vec<u8> {
    if result.starts_with(b"<?xml")
        && let Some(end) = result.windows(2).position(|pair| pair == b"?>")
    {
        let content = result[end + 2..].iter().position(|byte| !byte.is_ascii_whitespace());
        result.drain(..content.map_or(result.len(), |start| end + 2 + start));
    }
    result
}
