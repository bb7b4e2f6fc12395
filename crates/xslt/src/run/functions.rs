//! The table of the functions that stylesheets have beyond XPath, and those that XSLT itself adds. The ones of EXSLT are
//! in `exslt`.

use std::sync::Arc;

use penstock_xml::Document;
use penstock_xpath::{
    Atomic, DynamicContext, FunctionRef, HostCall, Item, ItemRef, Node, Resolver, ResultKind, Sequence, StaticContext,
    Version, XPath, XPathError,
};

use super::{Run, exslt};
use available::{Availability, expand};

pub(crate) mod available;

/// Indices from here on are functions of the stylesheet.
pub(crate) const USER_BASE: u32 = 1000;

/// Set in the index of a function whose argument is a lexical QName: the low byte is the function, the bits between
/// are the number of the place whose namespaces count.
pub(crate) const SCOPED: u32 = 1 << 31;

/// Places that fit into an index.
pub(crate) const SCOPES_MAX: usize = 1 << 23;

pub(crate) const EXSLT_COMMON: &str = "http://exslt.org/common";
const EXSLT_STRINGS: &str = "http://exslt.org/strings";
const EXSLT_SETS: &str = "http://exslt.org/sets";
const EXSLT_MATH: &str = "http://exslt.org/math";
const EXSLT_DATES: &str = "http://exslt.org/dates-and-times";
const EXSLT_DYNAMIC: &str = "http://exslt.org/dynamic";
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
    Entry { namespace: "", name: "unparsed-entity-uri", arguments: 1..=1, result: Any, run: unparsed_entity_uri },
    Entry { namespace: "", name: "unparsed-entity-public-id", arguments: 1..=1, result: Text, run: unparsed_public },
    Entry { namespace: "", name: "current-group", arguments: 0..=0, result: Any, run: current_group },
    Entry { namespace: "", name: "current-grouping-key", arguments: 0..=0, result: Any, run: current_grouping_key },
    Entry { namespace: "", name: "regex-group", arguments: 1..=1, result: Text, run: regex_group },
    Entry { namespace: "", name: "unparsed-text", arguments: 1..=2, result: Any, run: unparsed_text },
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
    Entry { namespace: EXSLT_DYNAMIC, name: "evaluate", arguments: 1..=1, result: Any, run: evaluate },
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

/// Whether an argument of the function is a name with a prefix.
pub(crate) fn takes_name(local: &str) -> bool {
    matches!(
        local,
        "key" | "system-property" | "element-available" | "function-available" | "type-available" | "evaluate"
    )
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
    let index = if is_scoped(call) { call.index & 0xff } else { call.index };
    match FUNCTIONS.get(index as usize) {
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

fn is_scoped(call: &HostCall<'_>) -> bool {
    call.index & SCOPED != 0 && call.index != u32::MAX
}

/// The namespace that a prefix has where the call was written.
fn namespace_at(run: &Run<'_>, call: &HostCall<'_>, prefix: &str) -> Option<String> {
    let scope = is_scoped(call).then_some((call.index & !SCOPED) >> 8)?;
    let (module, node) = run.program.scopes.get(scope as usize)?;
    let document = &run.program.modules.modules.get(*module)?.document;
    document.lookup_namespace(*node, prefix).map(str::to_owned)
}

/// The expanded name of a lexical QName in an argument, with the namespaces of the expression.
fn resolve(run: &Run<'_>, call: &HostCall<'_>, lexical: &str) -> Option<(String, String)> {
    expand(lexical, &|prefix| namespace_at(run, call, prefix))
}

fn availability(run: &Run<'_>, call: &HostCall<'_>, function: Availability) -> Result<Sequence, XPathError> {
    let declared = |namespace: &str, local: &str, arity: Option<usize>| {
        let name = expanded(namespace, local);
        run.program.functions.iter().any(|function| {
            *run.program.names[function.name as usize] == *name
                && arity.is_none_or(|arity| function.params.len() == arity)
        })
    };
    available::answer(function as u32, call, &|prefix| namespace_at(run, call, prefix), &declared)
}

fn system_property(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    availability(run, call, Availability::SystemProperty)
}

fn element_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    availability(run, call, Availability::Element)
}

fn function_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    availability(run, call, Availability::Function)
}

fn type_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    availability(run, call, Availability::Type)
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

/// The prefixes of an expression that is evaluated where it is written.
struct Prefixes<'r, 'c> {
    run: &'r Run<'r>,
    call: &'r HostCall<'c>,
}

impl Resolver for Prefixes<'_, '_> {
    fn namespace(&self, prefix: &str) -> Option<Arc<str>> {
        namespace_at(self.run, self.call, prefix).map(Into::into)
    }

    fn requires_declared_prefixes(&self) -> bool {
        true
    }
}

/// `dyn:evaluate()` of EXSLT, without variables; what is no expression has no value.
fn evaluate(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let version = if call.compat { Version::One } else { Version::Two };
    let prefixes = Prefixes { run, call };
    let mut context = StaticContext::new().version(version).resolver(&prefixes);
    if let Some(base) = call.base_uri {
        context = context.base_uri(base);
    }
    let Ok(compiled) = XPath::compile(&call.string(0), &context) else { return Ok(Sequence::Empty) };
    let mut context = DynamicContext::new(call.session, run);
    context.item = call.item.map(ItemRef::to_item);
    compiled.evaluate(&context)
}

fn expanded(namespace: &str, local: &str) -> String {
    if namespace.is_empty() { local.to_owned() } else { format!("{{{namespace}}}{local}") }
}

fn document(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let base_of = |node: Node| run.session.document_of(node).base_uri().unwrap_or_default().to_owned();
    let given = nodes(call, 1).first().map(|node| base_of(*node));
    let stylesheet = call.base_uri.unwrap_or_default().to_owned();
    let mut found: Vec<Node> = Vec::new();
    // XSLT 1.0 §12.1 lets a processor go on without the document; 2.0 demands an error.
    let lenient = !run.program.version_two;
    let mut load = |reference: &str, base: &str| match run.load(reference, base) {
        Ok(node) => {
            found.push(node);
            Ok(())
        }
        Err(error) if lenient => {
            (run.options.messages)(&format!("warning: {}", error.message()));
            Ok(())
        }
        Err(error) => Err(error),
    };
    for item in call.arguments[0].iter() {
        match item {
            ItemRef::Node(node) => {
                let base = given.clone().unwrap_or_else(|| base_of(node));
                load(&run.session.string_value(node), &base)?;
            }
            ItemRef::Atomic(atomic) => {
                let base = given.as_ref().unwrap_or(&stylesheet);
                load(&atomic.to_text(true), base)?;
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

fn unparsed_entity_uri(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let Some(node) = context_node(call) else {
        return Err(XPathError::new("XTDE1370", "`unparsed-entity-uri()` needs a context node"));
    };
    let document = run.session.document_of(node);
    let found = document.doctype().and_then(|doctype| doctype.unparsed_entity(&call.string(0)));
    let base = document.base_uri().unwrap_or_default();
    let uri = found.map(|entity| crate::read::join_uri(base, &entity.system)).unwrap_or_default();
    Ok(if call.compat { text(uri) } else { Sequence::from(Item::Atomic(Atomic::Uri(uri.into()))) })
}

fn unparsed_public(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    let Some(node) = context_node(call) else {
        return Err(XPathError::new("XTDE1380", "`unparsed-entity-public-id()` needs a context node"));
    };
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

/// The text of a resource (XSLT 2.0 §16.2).
fn read_text(run: &Run<'_>, call: &HostCall<'_>) -> Result<String, XPathError> {
    let href = call.string(0);
    if href.contains('#') {
        return Err(XPathError::new("XTDE1170", format!("`{href}` has a fragment identifier")));
    }
    let resource = run.options.resolver.resolve(&href, call.base_uri.unwrap_or_default());
    let resource = resource.map_err(|message| XPathError::new("XTDE1170", message))?;
    let declared = (call.arguments.len() > 1).then(|| call.string(1));
    let encoding = match declared.as_deref() {
        None => None,
        Some(name) => Some(
            penstock_xml::Encoding::from_name(name)
                .ok_or_else(|| XPathError::new("XTDE1190", format!("the encoding `{name}` is not supported")))?,
        ),
    };
    let code = if encoding.is_some() { "XTDE1190" } else { "XTDE1200" };
    let decoded = penstock_xml::decode_text(&resource.content, encoding);
    decoded.map_err(|error| XPathError::new(code, format!("`{}`: {}", resource.uri, error.message)))
}

fn is_absent(call: &HostCall<'_>) -> bool {
    call.arguments.first().is_none_or(|href| matches!(href, Sequence::Empty))
}

fn unparsed_text(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    if is_absent(call) { Ok(Sequence::Empty) } else { read_text(run, call).map(text) }
}

fn text_available(run: &Run<'_>, call: &HostCall<'_>) -> Result<Sequence, XPathError> {
    Ok(boolean(!is_absent(call) && read_text(run, call).is_ok()))
}
