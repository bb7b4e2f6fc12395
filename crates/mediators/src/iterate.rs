//! `<iterate>`: one branch for each element an expression finds.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Fork, Mediator, Needs};
use penstock_message::{Form, Message};

use crate::split::{Collection, Target, number, put_element, with_payload};
use penstock_engine::payload;
use penstock_message::tree::{self, Change, Changes, Content};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "iterate", compile };

struct Iterate {
    id: Option<Arc<str>>,
    expression: Expression,
    /// With the rest of the message around each element, attached there.
    attach: Option<Expression>,
    preserve: bool,
    parallel: bool,
    continue_parent: bool,
    target: Target,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let expression = cx.required_expression(el, "expression")?;
    let preserve = el.flag("preservePayload", false);
    let attach = match el.attribute("attachPath") {
        Some(text) => Some(Expression::compile(cx, el, text, el.attribute_place("attachPath"))?),
        None => None,
    };
    let Some(target) = el.child("target") else {
        cx.error(el.place(), "<iterate> needs a <target>");
        return None;
    };
    let target = Target::compile(&target, cx);
    Some(Box::new(Iterate {
        id: el.attribute("id").filter(|id| !id.is_empty()).map(Arc::from),
        expression,
        attach,
        preserve,
        parallel: !el.flag("sequential", false),
        continue_parent: el.flag("continueParent", false),
        target,
    }))
}

impl Iterate {
    fn messages(&self, exchange: &mut Exchange) -> Result<Vec<Message>, Fault> {
        let collection = Collection::select(&self.expression, exchange)?;
        let count = collection.len();
        let limit = exchange.program().limits.branches_max;
        if count > limit {
            return Err(Fault::new(format!("<iterate> finds {count} elements, more than {limit}")));
        }
        let rest = match (&collection, self.preserve) {
            (Collection::Xml(document, nodes), true) => Some(self.attachment(exchange, document, nodes)?),
            _ => None,
        };
        let json = match (&collection, self.preserve) {
            (Collection::Json(_), true) => Some(exchange.json()?),
            _ => None,
        };
        let mut messages = Vec::with_capacity(count);
        for index in 0..count {
            let mut message = with_payload(exchange, |exchange| match (&rest, &json) {
                (Some(rest), _) => rest.put(exchange, &collection, index),
                (None, Some(root)) => self.put_json(exchange, root, &collection, index),
                (None, None) => put_element(exchange, &collection, index),
            })?;
            number(&mut message, self.id.as_deref(), index, count);
            messages.push(message);
        }
        Ok(messages)
    }

    fn put_json(
        &self,
        exchange: &mut Exchange,
        root: &Arc<serde_json::Value>,
        collection: &Collection,
        index: usize,
    ) -> Result<(), Fault> {
        let path = self.attach.as_ref().and_then(Expression::json_path).filter(|path| !path.is_root());
        let (Some(path), Collection::Json(elements)) = (path, collection) else {
            return put_element(exchange, collection, index);
        };
        let mut root = (**root).clone();
        let element = elements.get(index).cloned().unwrap_or_default();
        if penstock_json::path::replace(&mut root, path, &element) == 0 {
            return Err(Fault::new("the path of `attachPath` is not in the message"));
        }
        payload::set_json(exchange, Arc::new(root));
        Ok(())
    }

    /// Where each element is attached, in the message without any of them.
    fn attachment(
        &self,
        exchange: &mut Exchange,
        document: &Arc<penstock_xml::Document>,
        nodes: &[penstock_xml::NodeId],
    ) -> Result<Attachment, Fault> {
        let envelope = exchange.xml()?;
        let own = Arc::ptr_eq(document, &envelope.document);
        let removed = if own { tree::outermost(document, nodes) } else { Vec::new() };
        let inside_removed =
            |node: penstock_xml::NodeId| removed.iter().any(|gone| document.subtree(*gone).contains(&node.index()));
        let at = match &self.attach {
            // `.`: the payload's own place, under the body.
            None => None,
            Some(path) => {
                let (found_in, found) = path.nodes(exchange)?;
                let place = found.into_iter().find(|node| found_in.is_element(*node) && !inside_removed(*node));
                match place.filter(|_| Arc::ptr_eq(&found_in, &envelope.document)) {
                    Some(place) => Some(place),
                    None => {
                        return Err(Fault::new(format!(
                            "the path `{}` of `attachPath` is not in the message",
                            path.text
                        )));
                    }
                }
            }
        };
        Ok(Attachment { removed, at: at.unwrap_or(envelope.body), envelope })
    }
}

struct Attachment {
    envelope: Arc<penstock_message::Envelope>,
    removed: Vec<penstock_xml::NodeId>,
    at: penstock_xml::NodeId,
}

impl Attachment {
    fn put(&self, exchange: &mut Exchange, collection: &Collection, index: usize) -> Result<(), Fault> {
        let Collection::Xml(document, nodes) = collection else { return Ok(()) };
        let Some(node) = nodes.get(index) else { return Ok(()) };
        let mut changes: Changes = self.removed.iter().map(|gone| (*gone, Change::Replace(Vec::new()))).collect();
        changes.insert(self.at, Change::Append(vec![Content::Node(document.clone(), *node)]));
        let edited = tree::edit(&self.envelope.document, &changes);
        let edited = tree::envelope_of(edited, self.envelope.soap)
            .ok_or_else(|| Fault::new("the message is no longer a SOAP envelope"))?;
        exchange.message.body.set(Form::Xml(Arc::new(edited)));
        Ok(())
    }
}

impl Mediator for Iterate {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let messages = self.messages(exchange)?;
        let branches = messages.into_iter().map(|message| self.target.branch(message)).collect();
        Ok(Flow::Fork(Box::new(Fork {
            branches,
            parallel: self.parallel,
            join: None,
            continue_parent: self.continue_parent,
            id: self.id.clone(),
        })))
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
