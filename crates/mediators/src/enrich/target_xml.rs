//! Putting a part into XML.

use std::sync::Arc;

use penstock_compile::Expression;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Scope, Value};
use penstock_xml::{Document, NodeId, NodeKind, TreeBuilder};

use super::{Action, put_envelope};
use penstock_message::tree::{self, Change, Changes, Content};

/// Changes the message at the nodes a path finds.
pub fn change(exchange: &mut Exchange, target: &Expression, action: Action, contents: &[Content]) -> Result<(), Fault> {
    if let Some((scope, name)) = property_of(&target.text) {
        return change_property(exchange, target, (scope, name), action, contents);
    }
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
    // What goes to several places would be there several times; Micro Integrator changes the first.
    let nodes = if action == Action::Remove { nodes } else { nodes[..1].to_vec() };
    put_envelope(exchange, tree::edit(&document, &changes(&document, &nodes, action, contents)), envelope.soap)
}

/// Scope and name of the property that a path begins with: `$ctx:name/item`, `get-property('name')/item`.
fn property_of(path: &str) -> Option<(Scope, &str)> {
    let path = path.trim();
    if let Some(arguments) = path.strip_prefix("get-property(") {
        let (arguments, _) = arguments.split_once(')')?;
        let mut names = arguments.split(',').map(|name| name.trim().trim_matches(['\'', '"']));
        let first = names.next()?;
        return match names.next() {
            Some(name) => Some((Scope::parse(first)?, name)),
            None => Some((Scope::Default, first)),
        };
    }
    let (scope, rest) = path.strip_prefix('$')?.split_once(':')?;
    let scope = match scope {
        "ctx" => Scope::Default,
        "axis2" => Scope::Axis2,
        _ => return None,
    };
    let is_end = |letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    Some((scope, &rest[..rest.find(is_end).unwrap_or(rest.len())]))
}

/// Changes a property that holds XML, at the nodes a path finds in it.
fn change_property(
    exchange: &mut Exchange,
    target: &Expression,
    (scope, name): (Scope, &str),
    action: Action,
    contents: &[Content],
) -> Result<(), Fault> {
    let Some(Value::Xml(document, nodes)) = exchange.property(scope, name) else {
        return Err(Fault::new(format!("the target `{}` of <enrich> is not XML", target.text)));
    };
    // A document of its own, so that nothing else changes that the nodes are part of.
    let mut builder = TreeBuilder::new();
    nodes.iter().for_each(|node| builder.copy(&document, *node));
    let own = Arc::new(builder.finish());
    let roots = own.children(Document::ROOT).collect();
    exchange.set_property(scope, name, Value::Xml(own.clone(), roots));
    let (document, found) = target.nodes(exchange)?;
    if found.is_empty() && action == Action::Remove {
        return Ok(());
    }
    if found.is_empty() || !Arc::ptr_eq(&document, &own) {
        return Err(Fault::new(format!("the target `{}` of <enrich> is not in the property", target.text)));
    }
    let found = if action == Action::Remove { found } else { found[..1].to_vec() };
    let changed = Arc::new(tree::edit(&own, &changes(&own, &found, action, contents)));
    let roots = changed.children(Document::ROOT).collect();
    exchange.set_property(scope, name, Value::Xml(changed, roots));
    Ok(())
}

/// What changes at each node. Elements take elements; text becomes the text of an element, and goes nowhere else.
fn changes(document: &Arc<Document>, nodes: &[NodeId], action: Action, contents: &[Content]) -> Changes {
    let is_element = |content: &&Content| match content {
        Content::Node(document, node) => document.is_element(*node),
        Content::Text(_) => false,
    };
    let mut elements: Vec<Content> = contents.iter().filter(is_element).cloned().collect();
    let text = || Content::Text(tree::text_of(contents).into());
    let mut changes = Changes::new();
    for node in nodes {
        let change = match (action, document.kind(*node)) {
            (Action::Remove, _) => Change::Replace(Vec::new()),
            (Action::Replace, NodeKind::Element) if elements.is_empty() => {
                Change::Replace(vec![with_text(document, *node, contents)])
            }
            // The element comes where the text was, behind everything else.
            (Action::Replace, NodeKind::Text) if !elements.is_empty() => {
                if let Some(parent) = document.parent(*node) {
                    changes.insert(parent, Change::Append(elements[..1].to_vec()));
                }
                Change::Replace(Vec::new())
            }
            (Action::Replace, NodeKind::Attribute | NodeKind::Text) => Change::Replace(vec![text()]),
            (Action::Replace, _) => Change::Replace(elements.clone()),
            (Action::Child, _) => Change::Append(elements.clone()),
            (Action::Sibling, _) => {
                // Each comes right behind the node, so the last is the first.
                elements.reverse();
                Change::After(std::mem::take(&mut elements))
            }
        };
        changes.insert(*node, change);
    }
    changes
}

/// The element with this text and nothing else in it.
fn with_text(document: &Document, node: NodeId, contents: &[Content]) -> Content {
    let mut builder = TreeBuilder::new();
    tree::open_copy(&mut builder, document, node);
    builder.text(&tree::text_of(contents));
    builder.end_element();
    let changed = Arc::new(builder.finish());
    let root = changed.root_element().expect("one element was just built");
    Content::Node(changed, root)
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
