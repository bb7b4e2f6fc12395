//! The elements of a collection, one message each.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, endpoint};
use penstock_engine::{Branch, Destination, Exchange, Fault, SequenceId};
use penstock_message::{Addressing, Message, Value};
use penstock_xml::{Document, NodeId};

use crate::payload;
use crate::tree::Content;

/// What an expression finds, element by element.
pub enum Collection {
    /// Nodes of a tree.
    Xml(Arc<Document>, Vec<NodeId>),
    /// Values.
    Json(Vec<serde_json::Value>),
}

impl Collection {
    /// Evaluates the expression.
    pub fn of(expression: &Expression, exchange: &mut Exchange) -> Result<Collection, Fault> {
        if let Some(path) = expression.json_path() {
            let root = exchange.json()?;
            return Ok(Collection::Json(path.items(&root).unwrap_or_default()));
        }
        Ok(match expression.value(exchange)? {
            None => Collection::Json(Vec::new()),
            Some(Value::Xml(document, nodes)) => Collection::Xml(document, nodes),
            Some(Value::Json(json)) => Collection::Json(match &*json {
                serde_json::Value::Array(elements) => elements.clone(),
                serde_json::Value::Null => Vec::new(),
                other => vec![other.clone()],
            }),
            Some(other) => match serde_json::from_str(&other.to_text()) {
                Ok(serde_json::Value::Array(elements)) => Collection::Json(elements),
                _ => return Err(Fault::new(format!("the expression `{}` finds no collection", expression.text))),
            },
        })
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
