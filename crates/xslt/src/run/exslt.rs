//! The common functions of EXSLT: node sets, strings, sets, numbers, the time.

use penstock_xml::Document;
use penstock_xpath::{Atomic, HostCall, Item, ItemRef, Node, Sequence, XPathError};

use super::Run;
use super::functions::{boolean, nodes, number, text};

pub(super) fn node_set(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let value = &call.arguments[0];
    if value.is_nodes() {
        return Ok(value.clone());
    }
    // A value that is no node becomes a text node.
    let mut tree = penstock_xml::TreeBuilder::new();
    tree.text(&call.string(0));
    let document = std::sync::Arc::new(tree.finish());
    let child = document.first_child(Document::ROOT);
    let root = run.session.add(document);
    Ok(child.map(|id| Sequence::from(Item::Node(Node { document: root.document, id }))).unwrap_or_default())
}

pub(super) fn object_type(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(text(match call.arguments[0].first() {
        Some(ItemRef::Atomic(Atomic::Boolean(_))) => "boolean",
        Some(ItemRef::Atomic(atomic)) if atomic.is_numeric() => "number",
        Some(ItemRef::Atomic(_)) => "string",
        Some(ItemRef::Node(node)) => {
            let temporary = run.session.document_of(node).base_uri().is_none() && node.document != 0;
            if temporary && node.id == Document::ROOT { "RTF" } else { "node-set" }
        }
        None => "node-set",
    }))
}

pub(super) fn string_concat(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let parts: Vec<_> = nodes(call, 0).into_iter().map(|node| run.session.string_value(node)).collect();
    Ok(text(parts.concat()))
}

/// The nodes that EXSLT's tokenizers return: `<token>` elements.
fn tokens<'s>(run: &Run<'_>, parts: impl Iterator<Item = &'s str>) -> Sequence {
    let mut tree = penstock_xml::TreeBuilder::new();
    for part in parts {
        penstock_budget::step();
        tree.start_element("", "token", "");
        tree.text(part);
        tree.end_element();
    }
    let document = std::sync::Arc::new(tree.finish());
    let root = run.session.add(document);
    let tree = run.session.document_of(root);
    let nodes: Vec<Node> = tree.children(Document::ROOT).map(|id| Node { document: root.document, id }).collect();
    Sequence::from_nodes(&nodes)
}

fn characters(text: &str) -> impl Iterator<Item = &str> {
    text.char_indices().map(|(at, character)| &text[at..at + character.len_utf8()])
}

pub(super) fn string_tokenize(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let input = call.string(0);
    let delimiters = if call.arguments.len() > 1 { call.string(1) } else { "\t\r\n ".to_owned() };
    if delimiters.is_empty() {
        return Ok(tokens(run, characters(&input)));
    }
    Ok(tokens(run, input.split(|c| delimiters.contains(c)).filter(|part| !part.is_empty())))
}

pub(super) fn string_split(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let input = call.string(0);
    let separator = if call.arguments.len() > 1 { call.string(1) } else { " ".to_owned() };
    if separator.is_empty() {
        return Ok(tokens(run, characters(&input)));
    }
    Ok(tokens(run, input.split(&separator)))
}

pub(super) fn string_replace(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let (input, from, to) = (call.string(0), call.string(1), call.string(2));
    if from.is_empty() {
        return Ok(text(input));
    }
    let inserted = input.matches(&from).count().saturating_mul(to.len());
    penstock_budget::reserve(input.len().saturating_add(inserted));
    Ok(text(input.replace(&from, &to)))
}

/// Padding longer than this is an attack, not a layout.
const PADDING_MAX: usize = 1 << 20;

pub(super) fn string_padding(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let length = (call.string(0).parse::<f64>().unwrap_or(0.0).max(0.0) as usize).min(PADDING_MAX);
    let filler = if call.arguments.len() > 1 { call.string(1) } else { " ".to_owned() };
    if filler.is_empty() {
        return Ok(text(""));
    }
    Ok(text(filler.chars().cycle().take(length).collect::<String>()))
}

pub(super) fn set_distinct(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let mut seen = std::collections::HashSet::new();
    let kept: Vec<Node> =
        nodes(call, 0).into_iter().filter(|node| seen.insert(run.session.string_value(*node))).collect();
    Ok(Sequence::from_nodes(&kept))
}

pub(super) fn set_difference(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let other = nodes(call, 1);
    let kept: Vec<Node> = nodes(call, 0).into_iter().filter(|node| !other.contains(node)).collect();
    Ok(Sequence::from_nodes(&kept))
}

pub(super) fn set_intersection(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let other = nodes(call, 1);
    let kept: Vec<Node> = nodes(call, 0).into_iter().filter(|node| other.contains(node)).collect();
    Ok(Sequence::from_nodes(&kept))
}

pub(super) fn set_has_same(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let other = nodes(call, 1);
    Ok(boolean(nodes(call, 0).iter().any(|node| other.contains(node))))
}

fn numbers(run: &Run<'_>, call: &HostCall<'_>) -> Vec<f64> {
    let parse = |text: &str| penstock_xpath::value::number::parse(text, true);
    nodes(call, 0).into_iter().map(|node| parse(&run.session.string_value(node))).collect()
}

pub(super) fn math_max(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let numbers = numbers(run, call);
    let nan = numbers.is_empty() || numbers.iter().any(|value| value.is_nan());
    Ok(number(if nan { f64::NAN } else { numbers.into_iter().fold(f64::NEG_INFINITY, f64::max) }))
}

pub(super) fn math_min(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let numbers = numbers(run, call);
    let nan = numbers.is_empty() || numbers.iter().any(|value| value.is_nan());
    Ok(number(if nan { f64::NAN } else { numbers.into_iter().fold(f64::INFINITY, f64::min) }))
}

pub(super) fn math_abs(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(number(penstock_xpath::value::number::parse(&call.string(0), true).abs()))
}

pub(super) fn date_time(run: &Run<'_>, _call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let now = penstock_xpath::Host::now(run);
    Ok(text(penstock_xpath::value::DateTime::from_system_time(now).format_date_time()))
}
