//! `<header>`: sets or removes a SOAP header block, an address of the message, or a transport header.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Addressing, Form, Scope};
use penstock_xml::TreeBuilder;

use crate::typed::ValueSource;
use penstock_message::tree::{self, Change, Changes, Content};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "header", compile };

struct Header {
    target: Target,
    /// `None` removes it.
    source: Option<ValueSource>,
}

enum Target {
    Transport(Arc<str>),
    Address(Address),
    Block { prefix: String, local: String, namespace: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Address {
    To,
    From,
    Action,
    FaultTo,
    ReplyTo,
    RelatesTo,
}

impl Address {
    fn parse(name: &str) -> Option<Address> {
        Some(match name {
            "To" => Address::To,
            "From" => Address::From,
            "Action" => Address::Action,
            "FaultTo" => Address::FaultTo,
            "ReplyTo" => Address::ReplyTo,
            "RelatesTo" => Address::RelatesTo,
            _ => return None,
        })
    }

    fn slot(self, addressing: &mut Addressing) -> &mut Option<Arc<str>> {
        match self {
            Address::To => &mut addressing.to,
            Address::From => &mut addressing.from,
            Address::Action => &mut addressing.action,
            Address::FaultTo => &mut addressing.fault_to,
            Address::ReplyTo => &mut addressing.reply_to,
            Address::RelatesTo => &mut addressing.relates_to,
        }
    }
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let scope = el.attribute("scope").unwrap_or("default");
    let Some(name) = el.attribute("name") else {
        let inline: Vec<Content> = el
            .children()
            .flat_map(|child| penstock_engine::payload::contents_of(&crate::typed::inline_xml(&child)))
            .collect();
        if inline.is_empty() {
            cx.error(el.place(), "<header> needs the attribute `name`, or an element inside");
            return None;
        }
        return Some(Box::new(InlineHeader { blocks: inline }));
    };
    let target = target(el, cx, name, scope)?;
    let remove = el.attribute("action") == Some("remove");
    el.attribute("type");
    let source = if remove {
        for unused in ["value", "expression"] {
            el.attribute(unused);
        }
        None
    } else {
        let has_source =
            el.attribute("value").is_some() || el.attribute("expression").is_some() || el.children().next().is_some();
        if !has_source {
            cx.error(el.place(), "<header> needs `value`, `expression`, an element inside, or `action=\"remove\"`");
            return None;
        }
        Some(ValueSource::compile(cx, el, None)?)
    };
    Some(Box::new(Header { target, source }))
}

fn target(el: &Element<'_>, cx: &mut Compiler<'_>, name: &str, scope: &str) -> Option<Target> {
    match scope {
        "transport" => return Some(Target::Transport(name.into())),
        "default" | "" => {}
        other => {
            cx.error(el.attribute_place("scope"), format!("`{other}` is not a scope of <header>: default, transport"));
            return None;
        }
    }
    match name.split_once(':') {
        Some((prefix, local)) => match el.namespace_of(prefix) {
            Some(namespace) => {
                Some(Target::Block { prefix: prefix.into(), local: local.into(), namespace: namespace.into() })
            }
            None => {
                cx.error(el.attribute_place("name"), format!("the prefix `{prefix}` is bound to no namespace here"));
                None
            }
        },
        None => Some(match Address::parse(name) {
            Some(address) => Target::Address(address),
            None => Target::Block { prefix: String::new(), local: name.into(), namespace: String::new() },
        }),
    }
}

impl Header {
    fn set(&self, exchange: &mut Exchange, source: &ValueSource) -> Result<(), Fault> {
        match &self.target {
            Target::Transport(name) => {
                let value = source.text(exchange)?.unwrap_or_default();
                exchange.set_property(Scope::Transport, name, penstock_message::Value::string(value));
            }
            Target::Address(address) => {
                let value = source.text(exchange)?.unwrap_or_default();
                *address.slot(exchange.message.addressing_mut()) = Some(value.into());
            }
            Target::Block { prefix, local, namespace } => {
                let value = source.value(exchange)?;
                let inside = match &value {
                    Some(xml @ penstock_message::Value::Xml(..)) if matches!(source, ValueSource::Constant(_)) => {
                        penstock_engine::payload::contents_of(xml)
                    }
                    _ => vec![Content::Text(source.text(exchange)?.unwrap_or_default().into())],
                };
                let mut builder = TreeBuilder::new();
                builder.start_element(prefix, local, namespace);
                tree::insert(&mut builder, &inside);
                builder.end_element();
                let block = Arc::new(builder.finish());
                let root = block.root_element().expect("one element was just built");
                add(exchange, vec![Content::Node(block, root)])?;
            }
        }
        Ok(())
    }

    fn remove(&self, exchange: &mut Exchange) -> Result<(), Fault> {
        match &self.target {
            Target::Transport(name) => exchange.remove_property(Scope::Transport, name),
            Target::Address(address) => {
                if let Some(addressing) = &mut exchange.message.addressing {
                    *address.slot(addressing) = None;
                }
            }
            Target::Block { local, namespace, .. } => remove_blocks(exchange, namespace, local)?,
        }
        Ok(())
    }
}

/// Adds blocks to the SOAP header, which is made when there is none.
fn add(exchange: &mut Exchange, blocks: Vec<Content>) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    let (node, change) = match envelope.header {
        Some(header) => (header, Change::Append(blocks)),
        None => {
            let mut builder = TreeBuilder::new();
            let document = &envelope.document;
            builder.start_element(document.prefix(envelope.envelope), "Header", document.namespace(envelope.envelope));
            tree::insert(&mut builder, &blocks);
            builder.end_element();
            let header = Arc::new(builder.finish());
            let root = header.root_element().expect("one element was just built");
            let body = Content::Node(envelope.document.clone(), envelope.body);
            (envelope.body, Change::Replace(vec![Content::Node(header, root), body]))
        }
    };
    put(exchange, &Changes::from([(node, change)]))
}

/// Removes the blocks of that name; nothing is read when the message cannot have one.
pub(crate) fn remove_blocks(exchange: &mut Exchange, namespace: &str, local: &str) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    let document = &envelope.document;
    let Some(header) = envelope.header else { return Ok(()) };
    let found = document.children(header).filter(|block| {
        document.is_element(*block) && document.local_name(*block) == local && document.namespace(*block) == namespace
    });
    let changes: Changes = found.map(|block| (block, Change::Replace(Vec::new()))).collect();
    if changes.is_empty() { Ok(()) } else { put(exchange, &changes) }
}

fn put(exchange: &mut Exchange, changes: &Changes) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    let edited = tree::edit(&envelope.document, changes);
    let edited = tree::envelope_of(edited, envelope.soap)
        .ok_or_else(|| Fault::new("the message is no longer a SOAP envelope"))?;
    exchange.message.body.set(Form::Xml(Arc::new(edited)));
    Ok(())
}

impl Mediator for Header {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        match &self.source {
            Some(source) => self.set(exchange, source)?,
            None => self.remove(exchange)?,
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        match (&self.target, &self.source) {
            (Target::Block { .. }, _) => Needs::Whole,
            (_, Some(source)) => source.needs(),
            (_, None) => Needs::Nothing,
        }
    }
}

struct InlineHeader {
    blocks: Vec<Content>,
}

impl Mediator for InlineHeader {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        add(exchange, self.blocks.clone())?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_message_have_short_names() {
        assert_eq!(Address::parse("To"), Some(Address::To));
        assert_eq!(Address::parse("to"), None);
    }
}
