//! Putting a part into XML.

use std::sync::Arc;

use penstock_compile::Expression;
use penstock_engine::{Exchange, Fault};
use penstock_message::Value;
use penstock_xml::{Document, NodeId, NodeKind, TreeBuilder};

use super::{Action, put_envelope};
use crate::tree::{self, Change, Changes, Content};

/// Changes the message at the nodes a path finds.
pub fn change(exchange: &mut Exchange, target: &Expression, action: Action, contents: &[Content]) -> Result<(), Fault> {
    let (document, nodes) = target.nodes(exchange)?;
    let envelope = exchange.xml()?;
    if nodes.is_empty() {
        return match action {
            Action::Remove => Ok(()),
            _ => Err(Fault::new(format!("the target `{}` of <enrich> is not in the message", target.text))),
        };
    }
    if !Arc::ptr_eq(&document, &envelope.document) {
        return Err(Fault::new(format!("the target `{}` of <enrich> is not part of the message", target.text)));
    }
    // What goes to several places would be there several times; the original changes the first.
    let nodes = if action == Action::Remove { nodes } else { nodes[..1].to_vec() };
    put_envelope(exchange, tree::edit(&document, &changes(&document, &nodes, action, contents)), envelope.soap)
}

fn changes(document: &Document, nodes: &[NodeId], action: Action, contents: &[Content]) -> Changes {
    nodes
        .iter()
        .map(|node| {
            let change = match action {
                Action::Replace => Change::Replace(contents.to_vec()),
                Action::Child => Change::Append(contents.to_vec()),
                Action::Sibling => Change::After(contents.to_vec()),
                Action::Remove => Change::Replace(Vec::new()),
            };
            // An attribute or text gets the text of what is put there.
            let plain = matches!(document.kind(*node), NodeKind::Attribute | NodeKind::Text);
            let change = match change {
                Change::Replace(contents) if plain && !contents.is_empty() => {
                    Change::Replace(vec![Content::Text(tree::text_of(&contents).into())])
                }
                other => other,
            };
            (*node, change)
        })
        .collect()
}

/// Adds to the payload, or beside it.
pub fn change_payload(exchange: &mut Exchange, action: Action, contents: &[Content]) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    let (node, action) = match envelope.payload() {
        Some(payload) => (payload, action),
        None => (envelope.body, Action::Child),
    };
    let changes = changes(&envelope.document, &[node], action, contents);
    put_envelope(exchange, tree::edit(&envelope.document, &changes), envelope.soap)
}

/// A property's nodes with more added: inside the first, or after all.
pub fn joined(
    document: &Arc<Document>,
    nodes: &[NodeId],
    action: Action,
    contents: &[Content],
) -> Result<Value, Fault> {
    let mut builder = TreeBuilder::new();
    for (position, node) in nodes.iter().enumerate() {
        if position == 0 && action == Action::Child && document.is_element(*node) {
            tree::open_copy(&mut builder, document, *node);
            builder.copy_children(document, *node);
            tree::insert(&mut builder, contents);
            builder.end_element();
        } else {
            builder.copy(document, *node);
        }
    }
    if action != Action::Child {
        tree::insert(&mut builder, contents);
    }
    let document = Arc::new(builder.finish());
    let nodes = document.children(Document::ROOT).collect();
    Ok(Value::Xml(document, nodes))
}
