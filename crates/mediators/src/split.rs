//! The elements of a collection, one message each.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, endpoint};
use penstock_engine::{Branch, Destination, Exchange, Fault, SequenceId};
use penstock_message::{Addressing, Message, Value};
use penstock_xml::{Document, NodeId};

use penstock_engine::payload;
use penstock_message::tree::Content;

/// What an expression finds, element by element.
pub enum Collection {
    /// Nodes of a tree.
    Xml(Arc<Document>, Vec<NodeId>),
    /// Values.
    Json(Vec<serde_json::Value>),
}

impl Collection {
    /// Evaluates the expression. What is JSON has to be a list; the whole body may also be one element.
    pub fn select(expression: &Expression, exchange: &mut Exchange) -> Result<Collection, Fault> {
        let value = match expression.json_path() {
            Some(path) => {
                let root = exchange.json()?;
                if path.is_root() && !root.is_array() {
                    return Ok(Collection::Json(vec![(*root).clone()]));
                }
                path.read(&root).map(|found| Value::Json(Arc::new(found.into_owned())))
            }
            None => expression.value(exchange)?,
        };
        let no_list = || Fault::new(format!("the expression `{}` finds no list", expression.text));
        let json = match value {
            Some(Value::Xml(document, nodes)) => return Ok(Collection::Xml(document, nodes)),
            // An XPath that finds nothing.
            None if !expression.is_json() => return Ok(Collection::Json(Vec::new())),
            None => return Err(no_list()),
            Some(Value::Json(json)) => json,
            Some(other) => serde_json::from_str(&other.to_text()).map(Arc::new).map_err(|_| no_list())?,
        };
        match &*json {
            serde_json::Value::Array(elements) => Ok(Collection::Json(elements.clone())),
            _ => Err(no_list()),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Collection::Xml(_, nodes) => nodes.len(),
            Collection::Json(elements) => elements.len(),
        }
    }
}

/// A copy of the exchange's message whose payload is another.
pub fn with_payload(
    exchange: &mut Exchange,
    put: impl FnOnce(&mut Exchange) -> Result<(), Fault>,
) -> Result<Message, Fault> {
    let copy = payload::copy_of(&exchange.message);
    let original = std::mem::replace(&mut exchange.message, copy);
    let outcome = put(exchange);
    let changed = std::mem::replace(&mut exchange.message, original);
    outcome.map(|()| changed)
}

/// Puts one element of a collection in the place of the payload.
pub fn put_element(exchange: &mut Exchange, collection: &Collection, index: usize) -> Result<(), Fault> {
    match collection {
        Collection::Xml(document, nodes) => match nodes.get(index) {
            Some(node) => payload::replace_by_nodes(exchange, &[Content::Node(document.clone(), *node)]),
            None => Ok(()),
        },
        Collection::Json(elements) => {
            payload::set_json(exchange, Arc::new(elements.get(index).cloned().unwrap_or_default()));
            Ok(())
        }
    }
}

/// `<target>` of `iterate` and `clone`: what a branch runs and where it goes.
pub struct Target {
    sequence: Option<SequenceId>,
    endpoint: Option<Destination>,
    to: Option<Arc<str>>,
    action: Option<Arc<str>>,
}

impl Target {
    /// Compiles a `<target>`.
    pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Target {
        let sequence = match (el.attribute("sequence"), el.child("sequence")) {
            (Some(key), None) => Some(cx.sequence_ref(key, el.attribute_place("sequence"))),
            (_, Some(inline)) => Some(match inline.attribute("key") {
                Some(key) => cx.sequence_ref(key, inline.attribute_place("key")),
                None => cx.sequence_of(&inline),
            }),
            (None, None) => None,
        };
        let endpoint = match (el.attribute("endpoint"), el.child("endpoint")) {
            (Some(key), _) => Some(cx.endpoint_ref(key, el.attribute_place("endpoint"))),
            (None, Some(inline)) => Some(endpoint::destination(cx, &inline)),
            (None, None) => None,
        };
        let target = Target {
            sequence,
            endpoint,
            to: el.attribute("to").map(Arc::from),
            action: el.attribute("soapAction").map(Arc::from),
        };
        el.finish(cx);
        target
    }

    /// The branch a message becomes.
    pub fn branch(&self, mut message: Message) -> Branch {
        if self.to.is_some() || self.action.is_some() {
            let addressing: &mut Addressing = message.addressing_mut();
            addressing.to = self.to.clone().or_else(|| addressing.to.take());
            addressing.action = self.action.clone().or_else(|| addressing.action.take());
        }
        let endpoint = self
            .endpoint
            .clone()
            .or_else(|| self.to.as_ref().filter(|_| self.sequence.is_none()).map(|_| Destination::Implicit));
        Branch { message, sequence: self.sequence, endpoint }
    }
}

/// `messageSequence`: which of how many a branch is.
pub fn number(message: &mut Message, id: Option<&str>, index: usize, count: usize) {
    let name: Arc<str> = match id {
        Some(id) => format!("messageSequence.{id}").into(),
        None => "messageSequence".into(),
    };
    message.properties.set(name, Value::string(format!("{index}/{count}")));
}
