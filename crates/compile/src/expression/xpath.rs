//! XPath bound to an exchange: the context is the SOAP envelope, real or synthesized; `$ctx:x`,
//! `$axis2:x`, `$trp:x`, `$url:x`, `$func:x`, `$operation:x`, `$sys:x` and `$var:x` are properties;
//! `get-property()` and its kin are functions.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

use penstock_engine::{Exchange, Fault, Needs, Place};
use penstock_message::{Scope, SoapVersion, Value};
use penstock_xml::{Document, NodeId, NodeKind};
use penstock_xpath::{
    Atomic, DynamicContext, Host, HostCall, Item, ItemRef, Node, Sequence, Session, StaticContext, VariablePolicy,
    XPath, XPathError,
};

use penstock_xpath::ast::Name;
use penstock_xpath::stream::{Answer, Stream, Surroundings, Virtual, Want};

use super::functions;
use crate::{Compiler, Element};

/// What the variables of the artifacts stand for, as paths from the envelope's document.
pub(super) const ALIASES: [(&str, &str); 3] =
    [("body", "/*/*[local-name()='Body']"), ("header", "/*/*[local-name()='Header']"), ("env", "/*")];

/// An XPath expression of an artifact.
pub(super) struct XPathExpression {
    compiled: XPath,
    needs: Needs,
    text: Arc<str>,
    /// It is a property and nothing else, so that it may be absent, which is not the same as empty.
    is_property: bool,
    /// The same, answered from the bytes as they arrive, where the expression allows it.
    text_stream: Option<Stream>,
    truth_stream: Option<Stream>,
}

/// Around a body that is plain XML, paths see an envelope.
static AROUND_PLAIN: LazyLock<Surroundings> = LazyLock::new(|| {
    let open =
        |local: &str| Virtual::Open { namespace: SoapVersion::None.namespace().to_owned(), local: local.to_owned() };
    Surroundings { around: vec![open("Envelope"), open("Body")], context_depth: 1, ..Surroundings::default() }
});
static AROUND_ENVELOPE: LazyLock<Surroundings> =
    LazyLock::new(|| Surroundings { context_depth: 1, ..Surroundings::default() });

/// The error of XPath 2 for a path that goes on from something that is no node.
const STEP_INTO_TEXT: &str = "XPTY0019";

/// An answer that may still be open.
pub enum Reading<T> {
    /// Known.
    Known(T),
    /// More of the body must arrive.
    More,
    /// The bytes cannot answer: the whole body and its tree can.
    Tree,
}

impl XPathExpression {
    pub(super) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: &Place) -> Option<XPathExpression> {
        let mut context = StaticContext::new()
            .variables(VariablePolicy::Any)
            .allow_undeclared_prefixes(true)
            .allow_unknown_functions(true);
        // Synapse binds these two without a declaration; one on the element wins.
        for (prefix, namespace) in
            [("s11", "http://schemas.xmlsoap.org/soap/envelope/"), ("s12", "http://www.w3.org/2003/05/soap-envelope")]
        {
            context = context.namespace(prefix, namespace);
        }
        for (prefix, namespace) in el.namespaces() {
            // The default namespace of an artifact is Synapse's own and says nothing about paths.
            if !prefix.is_empty() {
                context = context.namespace(prefix, namespace);
            }
        }
        for (variable, path) in ALIASES {
            context = context.alias(variable, path);
        }
        match XPath::compile(text, &context) {
            Ok(compiled) => {
                let needs = if touches_body(&compiled, text) { Needs::Whole } else { Needs::Nothing };
                let stream = |want| if needs == Needs::Nothing { None } else { Stream::compile(&compiled, want).ok() };
                let (text_stream, truth_stream) = (stream(Want::Text), stream(Want::Boolean));
                let is_property = is_property(text);
                Some(XPathExpression { compiled, needs, text: text.into(), is_property, text_stream, truth_stream })
            }
            Err(error) => {
                let mut at = at.clone();
                at.column += error.span().start as u32;
                cx.error(at, format!("the expression `{text}` is not valid XPath: {}", error.message()));
                None
            }
        }
    }

    pub(super) fn needs(&self) -> Needs {
        self.needs
    }

    /// The value; nodes stay nodes.
    pub(super) fn value(&self, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        self.with(exchange, |sequence, session| {
            Ok(match sequence.first() {
                None => None,
                Some(ItemRef::Atomic(atomic)) => Some(atomic_value(atomic)),
                Some(ItemRef::Node(first)) => {
                    let nodes = sequence.iter().filter_map(|item| match item {
                        ItemRef::Node(node) if node.document == first.document => Some(node.id),
                        _ => None,
                    });
                    Some(Value::Xml(session.shared_document(first.document), nodes.collect()))
                }
            })
        })
    }

    /// The value as text, the way Micro Integrator makes it: see [`node_text`] for one node and [`nodes_text`] for several.
    /// `None` for a property that is not there; a path that finds nothing is empty text.
    pub(super) fn text(&self, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        self.with(exchange, |sequence, session| {
            let alone = sequence.len() == 1;
            let mut text = String::new();
            for item in sequence.iter() {
                match item {
                    ItemRef::Node(node) if alone => text = node_text(session.document_of(node), node.id),
                    ItemRef::Node(node) => push_listed(&mut text, session.document_of(node), node.id),
                    ItemRef::Atomic(atomic) => text.push_str(&atomic_value(atomic).to_text()),
                }
            }
            Ok((!sequence.is_empty() || !self.is_property).then_some(text))
        })
    }

    /// Whether it can be answered while the body arrives.
    pub(super) fn peeks(&self) -> bool {
        self.text_stream.is_some() && self.truth_stream.is_some()
    }

    /// The text of the first node, from the bytes that are here.
    pub(super) fn peek_text(&self, exchange: &Exchange) -> Reading<String> {
        match self.text_stream.as_ref().map(|stream| peek(stream, exchange)) {
            Some(Reading::Known(Answer::Text(text))) => Reading::Known(text),
            Some(Reading::More) => Reading::More,
            _ => Reading::Tree,
        }
    }

    /// The truth, from the bytes that are here.
    pub(super) fn peek_truth(&self, exchange: &Exchange) -> Reading<bool> {
        match self.truth_stream.as_ref().map(|stream| peek(stream, exchange)) {
            Some(Reading::Known(Answer::Boolean(truth))) => Reading::Known(truth),
            Some(Reading::More) => Reading::More,
            _ => Reading::Tree,
        }
    }

    /// The text of the first node in document order; empty when there is none.
    pub(super) fn first_text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        self.with(exchange, |sequence, session| {
            Ok(match sequence.first() {
                None => String::new(),
                Some(ItemRef::Node(node)) => session.string_value(node).into_owned(),
                Some(ItemRef::Atomic(atomic)) => atomic.to_text(true).into_owned(),
            })
        })
    }

    pub(super) fn truth(&self, exchange: &mut Exchange) -> Result<bool, Fault> {
        let (session, root) = self.session(exchange)?;
        let host = Binding { exchange: RefCell::new(exchange) };
        let mut context = DynamicContext::new(&session, &host);
        if let Some(root) = root {
            context = context.with_node(root);
        }
        self.compiled.evaluate_boolean(&context).map_err(|error| self.fault(&error))
    }

    pub(super) fn nodes(&self, exchange: &mut Exchange) -> Result<(Arc<Document>, Vec<NodeId>), Fault> {
        match self.value(exchange)? {
            Some(Value::Xml(document, nodes)) => Ok((document, nodes)),
            Some(_) => Err(Fault::new(format!("the expression `{}` does not select nodes", self.text))),
            None => Ok((exchange.xml()?.document.clone(), Vec::new())),
        }
    }

    fn with<T>(
        &self,
        exchange: &mut Exchange,
        read: impl FnOnce(&Sequence, &Session) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (session, root) = self.session(exchange)?;
        let sequence = {
            let host = Binding { exchange: RefCell::new(exchange) };
            let mut context = DynamicContext::new(&session, &host);
            if let Some(root) = root {
                context = context.with_node(root);
            }
            match self.compiled.evaluate(&context) {
                Ok(sequence) => sequence,
                // A property that holds text, or nothing, has no elements below it: Micro Integrator finds nothing there.
                Err(error) if error.code() == STEP_INTO_TEXT => Sequence::default(),
                Err(error) => return Err(self.fault(&error)),
            }
        };
        read(&sequence, &session)
    }

    /// The documents of one evaluation: the envelope, when the expression looks at it.
    fn session(&self, exchange: &mut Exchange) -> Result<(Session, Option<Node>), Fault> {
        if self.needs == Needs::Nothing {
            return Ok((Session::new(), None));
        }
        let envelope = exchange.xml()?;
        let (session, root) = Session::with_document(envelope.document.clone());
        // Relative paths of the artifacts start at the envelope.
        Ok((session, Some(Session::sibling(root, envelope.envelope))))
    }

    fn fault(&self, error: &XPathError) -> Fault {
        Fault::new(format!("the expression `{}` failed: {}", self.text, error.message()))
    }
}

/// Evaluates on the bytes of an unparsed XML body. Malformed bytes are left to the
/// parser of the tree, whose message says more.
fn peek(stream: &Stream, exchange: &Exchange) -> Reading<Answer> {
    let Some(raw) = exchange.message.raw_xml() else {
        // A body of another kind that is still arriving must be complete to be mapped.
        return Reading::Tree;
    };
    let surroundings = match raw.envelope {
        Some(true) => &*AROUND_ENVELOPE,
        Some(false) => &*AROUND_PLAIN,
        None if raw.complete => return Reading::Tree,
        None => return Reading::More,
    };
    match stream.start(surroundings).feed(&raw.bytes, raw.complete) {
        Ok(Answer::NeedMore) => Reading::More,
        Ok(Answer::Unsuitable(_)) | Err(_) => Reading::Tree,
        Ok(answer) => Reading::Known(answer),
    }
}

/// Properties that are computed from the payload.
pub(super) const FROM_PAYLOAD: [&str; 4] = ["OperationName", "OperationNamespace", "MESSAGE_FORMAT", "'FAULT'"];

/// Whether evaluation looks at the message's body: by a path, or by a property that is computed
/// from the payload.
fn touches_body(compiled: &XPath, text: &str) -> bool {
    compiled.uses_context() || FROM_PAYLOAD.iter().any(|name| text.contains(name))
}

/// An atomic value as a property's value. Numbers are doubles, as Jaxen's are.
fn atomic_value(atomic: &Atomic) -> Value {
    match atomic {
        Atomic::Boolean(flag) => Value::Boolean(*flag),
        Atomic::Integer(number) => Value::Double(*number as f64),
        Atomic::Double(number) => Value::Double(*number),
        other => Value::string(other.to_text(true)),
    }
}

/// Whether a text is `$ctx:name`, `get-property(…)` or the like from end to end. `$url:name` is never absent.
fn is_property(text: &str) -> bool {
    let text = text.trim();
    match text.strip_prefix("get-property(") {
        Some(rest) => rest.find(')').is_some_and(|end| end + 1 == rest.len()),
        None => text.starts_with('$') && text.contains(':') && !text.starts_with("$url:") && !text.contains('/'),
    }
}

/// The text of a list of nodes.
pub(super) fn nodes_text(document: &Document, nodes: &[NodeId]) -> String {
    match nodes {
        [node] => node_text(document, *node),
        several => {
            let mut text = String::new();
            for node in several {
                push_listed(&mut text, document, *node);
            }
            text
        }
    }
}

/// One of several nodes: elements stay XML, with the white space around their own text left out.
fn push_listed(out: &mut String, document: &Document, node: NodeId) {
    if document.kind(node) != NodeKind::Element {
        out.push_str(&node_text(document, node));
        return;
    }
    let (own, xml) = (own_text(document, node), to_xml(document, node));
    match own.trim() {
        "" => out.push_str(&xml),
        trimmed if trimmed.len() == own.len() => out.push_str(&xml),
        trimmed => out.push_str(&xml.replace(&own, trimmed)),
    }
}

/// The text that stands directly in an element.
fn own_text(document: &Document, node: NodeId) -> String {
    let own = document.children(node).filter(|child| document.kind(*child) == NodeKind::Text);
    own.map(|child| document.text(child)).collect()
}

fn to_xml(document: &Document, node: NodeId) -> String {
    let mut xml = Vec::new();
    penstock_message::write_fragment(&mut xml, document, node);
    String::from_utf8_lossy(&xml).into_owned()
}

/// A node's text as Micro Integrator reads it: of an element its own text, or its XML when it has none.
pub(super) fn node_text(document: &Document, node: NodeId) -> String {
    match document.kind(node) {
        NodeKind::Element => {
            let text = own_text(document, node);
            if text.trim().is_empty() { to_xml(document, node) } else { text }
        }
        NodeKind::Document => match document.root_element() {
            Some(root) => node_text(document, root),
            None => String::new(),
        },
        _ => document.text(node).to_owned(),
    }
}

/// The exchange as an expression's host.
struct Binding<'a> {
    exchange: RefCell<&'a mut Exchange>,
}

impl Host for Binding<'_> {
    fn variable(&self, name: &Name, session: &Session) -> Result<Sequence, XPathError> {
        let mut exchange = self.exchange.borrow_mut();
        let local = &*name.local;
        let value = match name.prefix.as_deref().unwrap_or_default() {
            "url" => exchange.query(local).map(Value::string),
            "sys" | "system" => exchange.property(Scope::System, local),
            "var" => exchange.message.variables.get(local).cloned(),
            prefix => match super::scope_of(prefix) {
                Some(scope) => exchange.property(scope, local),
                // `$x` without a prefix: a property of the flow, then a parameter.
                None => exchange.property(Scope::Default, local).or_else(|| exchange.property(Scope::Function, local)),
            },
        };
        Ok(to_sequence(value, session))
    }

    fn call(&self, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
        let mut exchange = self.exchange.borrow_mut();
        let value =
            functions::call(&mut exchange, &call.name.local, &|index| call.string(index), call.arguments.len())?;
        Ok(to_sequence(value, call.session))
    }
}

/// A property's value as XPath sees it: text that may be XML stays text.
fn to_sequence(value: Option<Value>, session: &Session) -> Sequence {
    let atomic = match value {
        None => return Sequence::Empty,
        Some(Value::Xml(document, nodes)) => {
            let root = session.add(document);
            let nodes: Vec<Node> = nodes.into_iter().map(|id| Session::sibling(root, id)).collect();
            return Sequence::from_nodes(&nodes);
        }
        Some(Value::Boolean(flag)) => Atomic::Boolean(flag),
        // Untyped, so that it calculates as a number and prints without the decimals a computed number has.
        Some(Value::Integer(number)) => Atomic::Untyped(number.to_string().into()),
        Some(Value::Double(number)) => Atomic::Double(number),
        Some(other) => Atomic::string(other.to_text()),
    };
    Sequence::One(Item::Atomic(atomic))
}
