//! The table of the functions that stylesheets have beyond XPath, and those that XSLT itself adds. The ones of EXSLT are
//! in `exslt`.

use penstock_xml::{Document, NodeKind};
use penstock_xpath::{Atomic, FunctionRef, HostCall, Item, ItemRef, Node, ResultKind, Sequence, XPathError};

use super::{Run, exslt};
use crate::compile::is_ncname;
use crate::read::{XSL, syntax};

/// Indices from here on are functions of the stylesheet.
pub(crate) const USER_BASE: u32 = 1000;

const EXSLT_COMMON: &str = "http://exslt.org/common";
const EXSLT_STRINGS: &str = "http://exslt.org/strings";
const EXSLT_SETS: &str = "http://exslt.org/sets";
const EXSLT_MATH: &str = "http://exslt.org/math";
const EXSLT_DATES: &str = "http://exslt.org/dates-and-times";
const XALAN: &str = "http://xml.apache.org/xalan";
const XALAN_OLD: &str = "http://xml.apache.org/xslt";
const MSXSL: &str = "urn:schemas-microsoft-com:xslt";
const SAXON: &str = "http://icl.com/saxon";

struct Entry {
    namespace: &'static str,
    name: &'static str,
    arguments: std::ops::RangeInclusive<usize>,
    result: ResultKind,
    run: fn(&Run<'_>, &HostCall<'_>) -> Result<Sequence, XPathError>,
}

use ResultKind::{Any, Boolean, Nodes, Number, String as Text};

static FUNCTIONS: &[Entry] = &[
    Entry { namespace: "", name: "current", arguments: 0..=0, result: Any, run: current },
    Entry { namespace: "", name: "key", arguments: 2..=3, result: Nodes, run: key },
    Entry { namespace: "", name: "document", arguments: 1..=2, result: Nodes, run: document },
    Entry { namespace: "", name: "generate-id", arguments: 0..=1, result: Text, run: generate_id },
    Entry { namespace: "", name: "system-property", arguments: 1..=1, result: Any, run: system_property },
    Entry { namespace: "", name: "element-available", arguments: 1..=1, result: Boolean, run: element_available },
    Entry { namespace: "", name: "function-available", arguments: 1..=2, result: Boolean, run: function_available },
    Entry { namespace: "", name: "type-available", arguments: 1..=1, result: Boolean, run: type_available },
    Entry { namespace: "", name: "unparsed-entity-uri", arguments: 1..=1, result: Text, run: unparsed_entity_uri },
    Entry { namespace: "", name: "unparsed-entity-public-id", arguments: 1..=1, result: Text, run: unparsed_public },
    Entry { namespace: "", name: "current-group", arguments: 0..=0, result: Any, run: current_group },
    Entry { namespace: "", name: "current-grouping-key", arguments: 0..=0, result: Any, run: current_grouping_key },
    Entry { namespace: "", name: "regex-group", arguments: 1..=1, result: Text, run: regex_group },
    Entry { namespace: "", name: "unparsed-text", arguments: 1..=2, result: Text, run: unparsed_text },
    Entry { namespace: "", name: "unparsed-text-available", arguments: 1..=2, result: Boolean, run: text_available },
    Entry { namespace: EXSLT_COMMON, name: "node-set", arguments: 1..=1, result: Any, run: exslt::node_set },
    Entry { namespace: XALAN, name: "nodeset", arguments: 1..=1, result: Any, run: exslt::node_set },
    Entry { namespace: XALAN_OLD, name: "nodeset", arguments: 1..=1, result: Any, run: exslt::node_set },
    Entry { namespace: MSXSL, name: "node-set", arguments: 1..=1, result: Any, run: exslt::node_set },
    Entry { namespace: SAXON, name: "node-set", arguments: 1..=1, result: Any, run: exslt::node_set },
    Entry { namespace: EXSLT_COMMON, name: "object-type", arguments: 1..=1, result: Text, run: exslt::object_type },
    Entry { namespace: EXSLT_STRINGS, name: "concat", arguments: 1..=1, result: Text, run: exslt::string_concat },
    Entry { namespace: EXSLT_STRINGS, name: "tokenize", arguments: 1..=2, result: Any, run: exslt::string_tokenize },
    Entry { namespace: EXSLT_STRINGS, name: "split", arguments: 1..=2, result: Any, run: exslt::string_split },
    Entry { namespace: EXSLT_STRINGS, name: "replace", arguments: 3..=3, result: Text, run: exslt::string_replace },
    Entry { namespace: EXSLT_STRINGS, name: "padding", arguments: 1..=2, result: Text, run: exslt::string_padding },
    Entry { namespace: EXSLT_SETS, name: "distinct", arguments: 1..=1, result: Nodes, run: exslt::set_distinct },
    Entry { namespace: EXSLT_SETS, name: "difference", arguments: 2..=2, result: Nodes, run: exslt::set_difference },
    Entry {
        namespace: EXSLT_SETS,
        name: "intersection",
        arguments: 2..=2,
        result: Nodes,
        run: exslt::set_intersection,
    },
    Entry { namespace: EXSLT_SETS, name: "has-same-node", arguments: 2..=2, result: Boolean, run: exslt::set_has_same },
    Entry { namespace: EXSLT_MATH, name: "max", arguments: 1..=1, result: Number, run: exslt::math_max },
    Entry { namespace: EXSLT_MATH, name: "min", arguments: 1..=1, result: Number, run: exslt::math_min },
    Entry { namespace: EXSLT_MATH, name: "abs", arguments: 1..=1, result: Number, run: exslt::math_abs },
    Entry { namespace: EXSLT_DATES, name: "date-time", arguments: 0..=0, result: Text, run: exslt::date_time },
];

/// The function of this name, for the XPath compiler.
pub(crate) fn find(namespace: &str, local: &str, arity: usize) -> Option<FunctionRef> {
    // `fn:key()` is `key()`.
    let namespace = if namespace == penstock_xpath::FUNCTION_NAMESPACE { "" } else { namespace };
    let fits = |entry: &Entry| entry.name == local && entry.namespace == namespace && entry.arguments.contains(&arity);
    let index = FUNCTIONS.iter().position(fits)?;
    Some(FunctionRef { index: index as u32, result: FUNCTIONS[index].result })
}

/// Whether there is a function of this name, with any number of arguments.
fn exists(namespace: &str, local: &str, arity: Option<usize>) -> bool {
    FUNCTIONS.iter().any(|entry| {
        entry.name == local
            && entry.namespace == namespace
            && arity.is_none_or(|arity| entry.arguments.contains(&arity))
    })
}

/// Calls a function by its index.
pub(super) fn call(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    match FUNCTIONS.get(call.index as usize) {
        Some(entry) => (entry.run)(run, call),
        None => {
            let message = format!("the extension function `{}` is not available", call.name.lexical());
            Err(XPathError::new("XTDE1425", message))
        }
    }
}

pub(super) fn text(text: impl AsRef<str>) -> Sequence {
    Sequence::from(Item::Atomic(Atomic::String(text.as_ref().into())))
}

pub(super) fn boolean(value: bool) -> Sequence {
    Sequence::from(Item::Atomic(Atomic::Boolean(value)))
}

pub(super) fn number(value: f64) -> Sequence {
    Sequence::from(Item::Atomic(Atomic::Double(value)))
}

fn argument<'c>(call: &HostCall<'c>, index: usize) -> &'c [Sequence] {
    call.arguments.get(index..=index).unwrap_or_default()
}

pub(super) fn nodes(call: &HostCall<'_>, index: usize) -> Vec<Node> {
    argument(call, index).first().and_then(Sequence::nodes).unwrap_or_default()
}

fn context_node(call: &HostCall<'_>) -> Option<Node> {
    match call.item {
        Some(ItemRef::Node(node)) => Some(node),
        _ => None,
    }
}

fn current(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    match call.current {
        Some(item) => Ok(Sequence::from(item.to_item())),
        None => Err(XPathError::new("XTDE1360", "there is no context item for `current()`")),
    }
}

/// The expanded name of a lexical QName in an argument, with the namespaces of the expression.
fn resolve(run: &Run<'_>, call: &HostCall<'_>, lexical: &str) -> Option<(String, String)> {
    let lexical = lexical.trim();
    let Some((prefix, local)) = lexical.split_once(':') else {
        return is_ncname(lexical).then(|| (String::new(), lexical.to_owned()));
    };
    if !is_ncname(prefix) || !is_ncname(local) {
        return None;
    }
    // Names in arguments are seldom computed and prefixes seldom mean different things in one stylesheet: the first
    // module that declares the prefix decides.
    let _ = call;
    let declared = run.program.modules.modules.iter().find_map(|module| {
        let tree = &module.document;
        let mut elements = tree.descendants(Document::ROOT).filter(|node| tree.kind(*node) == NodeKind::Element);
        elements.find_map(|element| tree.lookup_namespace(element, prefix))
    });
    declared.map(|namespace| (namespace.to_owned(), local.to_owned()))
}

fn key(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let lexical = call.string(0);
    let name = resolve(run, call, &lexical).map(|(namespace, local)| expanded(&namespace, &local));
    let number = name.and_then(|name| {
        run.program.key_names.keys().find(|number| *run.program.names[**number as usize] == *name).copied()
    });
    let Some(number) = number else {
        return Err(XPathError::new("XTDE1260", format!("there is no key named `{lexical}`")));
    };
    let top = match nodes(call, 2).first().copied() {
        Some(top) => Some(top),
        None => context_node(call).map(|node| Node { id: Document::ROOT, ..node }),
    };
    let Some(top) = top else { return Err(XPathError::new("XTDE1270", "`key()` needs a context node")) };
    run.key(number, &call.arguments[1], top)
}

fn expanded(namespace: &str, local: &str) -> String {
    if namespace.is_empty() { local.to_owned() } else { format!("{{{namespace}}}{local}") }
}

fn document(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let base_of = |node: Node| run.session.document_of(node).base_uri().unwrap_or_default().to_owned();
    let given = nodes(call, 1).first().map(|node| base_of(*node));
    let stylesheet = call.base_uri.unwrap_or_default().to_owned();
    let mut found: Vec<Node> = Vec::new();
    let mut load = |reference: &str, base: &str| match run.load(reference, base) {
        Ok(node) => found.push(node),
        Err(error) => (run.options.messages)(&format!("warning: {}", error.message())),
    };
    for item in call.arguments[0].iter() {
        match item {
            ItemRef::Node(node) => {
                let base = given.clone().unwrap_or_else(|| base_of(node));
                load(&run.session.string_value(node), &base);
            }
            ItemRef::Atomic(atomic) => {
                let base = given.as_ref().unwrap_or(&stylesheet);
                load(&atomic.to_text(true), base);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(Sequence::from_nodes(&found))
}

fn generate_id(_run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let node = match call.arguments.first() {
        Some(sequence) => match sequence.first() {
            Some(ItemRef::Node(node)) => Some(node),
            _ => None,
        },
        None => context_node(call),
    };
    Ok(node
        .map_or_else(|| text(""), |node| text(format!("N{:x}-{:x}", node.document, node.id.index()).replace('-', "x"))))
}

fn system_property(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let lexical = call.string(0);
    let name = resolve(run, call, &lexical);
    let Some((_, local)) = name.filter(|(namespace, _)| namespace == XSL) else { return Ok(text("")) };
    Ok(match &*local {
        "version" if call.compat => text("1.0"),
        "version" => text("2.0"),
        "vendor" => text("Penstock"),
        "vendor-url" => text("https://penstock.example/"),
        "product-name" => text("Penstock"),
        "product-version" => text(env!("CARGO_PKG_VERSION")),
        "is-schema-aware" => text("no"),
        "supports-serialization" | "supports-backwards-compatibility" => text("yes"),
        _ => text(""),
    })
}

fn element_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let name = resolve(run, call, &call.string(0));
    Ok(boolean(name.is_some_and(|(namespace, local)| namespace == XSL && syntax::is_instruction(&local))))
}

fn function_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let arity = call.arguments.get(1).map(|_| call.string(1).parse::<f64>().unwrap_or(-1.0) as usize);
    let Some((namespace, local)) = resolve(run, call, &call.string(0)) else { return Ok(boolean(false)) };
    let name = expanded(&namespace, &local);
    let declared = run.program.functions.iter().any(|function| {
        *run.program.names[function.name as usize] == *name && arity.is_none_or(|arity| function.params.len() == arity)
    });
    let standard = (namespace.is_empty() || namespace == penstock_xpath::FUNCTION_NAMESPACE)
        && penstock_xpath::is_standard_function(&local, arity);
    Ok(boolean(declared || standard || exists(&namespace, &local, arity)))
}

fn type_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let name = resolve(run, call, &call.string(0));
    Ok(boolean(name.is_some_and(|(namespace, _)| namespace == penstock_xpath::SCHEMA_NAMESPACE)))
}

fn unparsed_entity_uri(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let Some(node) = context_node(call) else { return Ok(text("")) };
    let document = run.session.document_of(node);
    let found = document.doctype().and_then(|doctype| doctype.unparsed_entity(&call.string(0)));
    let base = document.base_uri().unwrap_or_default();
    Ok(text(found.map(|entity| crate::read::join_uri(base, &entity.system)).unwrap_or_default()))
}

fn unparsed_public(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let Some(node) = context_node(call) else { return Ok(text("")) };
    let found = run.session.document_of(node).doctype().and_then(|doctype| doctype.unparsed_entity(&call.string(0)));
    Ok(text(found.and_then(|entity| entity.public.as_deref()).unwrap_or_default()))
}

fn current_group(run: &Run<'_>, _call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(run.group.borrow().as_ref().map(|group| group.items.clone()).unwrap_or_default())
}

fn current_grouping_key(run: &Run<'_>, _call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(run.group.borrow().as_ref().map(|group| group.key.clone()).unwrap_or_default())
}

fn regex_group(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let index = call.string(0).parse::<usize>().unwrap_or(usize::MAX);
    let groups = run.regex_groups.borrow();
    Ok(text(groups.as_ref().and_then(|groups| groups.get(index)).map_or("", String::as_str)))
}

fn read_text(run: &Run<'_>, call: &HostCall<'_>) -> Result<String, String> {
    let resource = run.options.resolver.resolve(&call.string(0), call.base_uri.unwrap_or_default())?;
    String::from_utf8(resource.content.to_vec()).map_err(|_| format!("`{}` is not UTF-8", resource.uri))
}

fn unparsed_text(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    read_text(run, call).map(text).map_err(|message| XPathError::new("XTDE1170", message))
}

fn text_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(boolean(read_text(run, call).is_ok()))
}
