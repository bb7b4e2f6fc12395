//! The syntax of schema documents, by table (XML Schema part 1, Appendix A: the schema for schemas): which attributes an
//! element has, of what form, and which elements stand in it. What names refer to is for the compiler to find out.

use std::collections::HashSet;
use std::sync::LazyLock;

use penstock_xml::{NodeId, NodeKind};
use regex::Regex;

use crate::SchemaError;
use crate::XSD;
use crate::load::SchemaDocument;

/// One form of an element. Some elements have several, distinguished by their parent.
struct Form {
    name: &'static str,
    /// `name=form`; `!` after a name that must be given. Every element has `id` besides.
    attributes: &'static str,
    /// A regular expression over the names of its children, each followed by a blank.
    content: &'static str,
}

const fn form(name: &'static str, attributes: &'static str, content: &'static str) -> Form {
    Form { name, attributes, content }
}

const OCCURS: &str = "minOccurs=count maxOccurs=counts";
const FACETS: &str = "minExclusive|minInclusive|maxExclusive|maxInclusive|totalDigits|fractionDigits|length|minLength|maxLength|enumeration|whiteSpace|pattern";

static FORMS: &[Form] = &[
    form(
        "schema",
        "attributeFormDefault=qualified elementFormDefault=qualified blockDefault=block finalDefault=final \
         targetNamespace=uri version=any",
        "(include |import |redefine |annotation )*((simpleType |complexType |group |attributeGroup |element |attribute |notation )(annotation )*)*",
    ),
    form("include", "schemaLocation!=uri", ""),
    form("redefine", "schemaLocation!=uri", "(annotation |simpleType |complexType |group |attributeGroup )*"),
    form("import", "namespace=uri schemaLocation=uri", ""),
    form("annotation", "", "*"),
    form("notation", "name!=ncname public=any system=uri", ""),
    form(
        "global element",
        "name!=ncname type=qname substitutionGroup=qname default=any fixed=any nillable=boolean abstract=boolean \
         final=derivations block=block",
        "(simpleType |complexType )?(unique |key |keyref )*",
    ),
    form(
        "element",
        "name=ncname ref=qname type=qname minOccurs=count maxOccurs=counts default=any fixed=any nillable=boolean \
         block=block form=qualified",
        "(simpleType |complexType )?(unique |key |keyref )*",
    ),
    form("global attribute", "name!=ncname type=qname default=any fixed=any", "(simpleType )?"),
    form(
        "attribute",
        "name=ncname ref=qname type=qname use=use default=any fixed=any form=qualified",
        "(simpleType )?",
    ),
    form(
        "global complexType",
        "name!=ncname mixed=boolean abstract=boolean final=derivations block=derivations",
        "(simpleContent |complexContent |(group |all |choice |sequence )?ATTRIBUTES)",
    ),
    form("complexType", "mixed=boolean", "(simpleContent |complexContent |(group |all |choice |sequence )?ATTRIBUTES)"),
    form("global simpleType", "name!=ncname final=simplefinal", "(restriction |list |union )"),
    form("simpleType", "", "(restriction |list |union )"),
    form("global group", "name!=ncname", "(all |choice |sequence )"),
    form("group", "ref!=qname OCCURS", ""),
    form("global attributeGroup", "name!=ncname", "ATTRIBUTES"),
    form("attributeGroup", "ref!=qname", ""),
    form("all", "minOccurs=zero maxOccurs=one", "(element )*"),
    form("defining all", "", "(element )*"),
    form("choice", "OCCURS", "(element |group |choice |sequence |any )*"),
    form("defining choice", "", "(element |group |choice |sequence |any )*"),
    form("sequence", "OCCURS", "(element |group |choice |sequence |any )*"),
    form("defining sequence", "", "(element |group |choice |sequence |any )*"),
    form("any", "namespace=namespaces processContents=process OCCURS", ""),
    form("anyAttribute", "namespace=namespaces processContents=process", ""),
    form("unique", "name!=ncname", "selector (field )+"),
    form("key", "name!=ncname", "selector (field )+"),
    form("keyref", "name!=ncname refer!=qname", "selector (field )+"),
    form("selector", "xpath!=any", ""),
    form("field", "xpath!=any", ""),
    form("simpleContent", "", "(restriction |extension )"),
    form("complexContent", "mixed=boolean", "(restriction |extension )"),
    form("simpleContent extension", "base!=qname", "ATTRIBUTES"),
    form("simpleContent restriction", "base!=qname", "(simpleType )?(FACET)*ATTRIBUTES"),
    form("complexContent extension", "base!=qname", "(group |all |choice |sequence )?ATTRIBUTES"),
    form("complexContent restriction", "base!=qname", "(group |all |choice |sequence )?ATTRIBUTES"),
    form("simpleType restriction", "base=qname", "(simpleType )?(FACET)*"),
    form("list", "itemType=qname", "(simpleType )?"),
    form("union", "memberTypes=qnames", "(simpleType )*"),
    form("pattern", "value!=any", ""),
    form("enumeration", "value!=any", ""),
    form("whiteSpace", "value!=space fixed=boolean", ""),
    form("minExclusive", "value!=any fixed=boolean", ""),
    form("minInclusive", "value!=any fixed=boolean", ""),
    form("maxExclusive", "value!=any fixed=boolean", ""),
    form("maxInclusive", "value!=any fixed=boolean", ""),
    form("totalDigits", "value!=positive fixed=boolean", ""),
    form("fractionDigits", "value!=count fixed=boolean", ""),
    form("length", "value!=count fixed=boolean", ""),
    form("minLength", "value!=count fixed=boolean", ""),
    form("maxLength", "value!=count fixed=boolean", ""),
];

/// The forms with their content compiled, in the same order.
static CONTENT: LazyLock<Vec<Option<Regex>>> = LazyLock::new(|| {
    let facets = format!("(?:{}) ", FACETS);
    let compile = |form: &Form| {
        let content = form.content.replace("ATTRIBUTES", "(attribute |attributeGroup )*(anyAttribute )?");
        let content = content.replace("FACET", &facets);
        let optional = if matches!(form.name, "schema" | "redefine") { "" } else { "(annotation )?" };
        Regex::new(&format!("^{optional}(?:{content})$")).ok()
    };
    FORMS.iter().map(compile).collect()
});

/// Everything about a document that the schema for schemas does not allow.
pub(crate) fn check(document: &SchemaDocument) -> Vec<SchemaError> {
    let mut errors = Vec::new();
    let mut ids = HashSet::new();
    let mut pending = vec![document.root];
    while let Some(node) = pending.pop() {
        if document.name(node) == "annotation" {
            check_annotation(document, node, &mut errors);
            continue;
        }
        check_element(document, node, &mut ids, &mut errors);
        pending.extend(document.document.children(node).filter(|child| document.document.is_element(*child)));
    }
    errors
}

/// The form of an element where it stands.
fn form_of(document: &SchemaDocument, node: NodeId) -> Option<(usize, &'static Form)> {
    let name = document.name(node);
    let parent = document.document.parent(node).map_or("", |parent| document.name(parent));
    let wanted = match (parent, name) {
        (
            "schema" | "redefine",
            "element" | "attribute" | "complexType" | "simpleType" | "group" | "attributeGroup",
        ) => {
            format!("global {name}")
        }
        ("group", "all" | "choice" | "sequence") => format!("defining {name}"),
        ("simpleContent" | "complexContent" | "simpleType", "extension" | "restriction") => format!("{parent} {name}"),
        _ => name.to_owned(),
    };
    FORMS.iter().enumerate().find(|(_, form)| form.name == wanted)
}

fn check_annotation(document: &SchemaDocument, node: NodeId, errors: &mut Vec<SchemaError>) {
    let tree = &document.document;
    for child in tree.children(node).filter(|child| tree.is_element(*child)) {
        let (name, allowed): (&str, &[&str]) = match document.name(child) {
            name @ "appinfo" => (name, &["source"]),
            name @ "documentation" => (name, &["source"]),
            _ => ("", &[]),
        };
        if name.is_empty() {
            errors.push(document.error(child, "<annotation> contains <appinfo> and <documentation> only"));
        }
        for attribute in tree.attributes(child) {
            let found = tree.name(attribute);
            if found.namespace.is_empty() && !name.is_empty() && !allowed.contains(&found.local) {
                errors.push(document.error(child, format!("<{name}> has no attribute `{}`", found.local)));
            }
        }
    }
    for attribute in tree.attributes(node) {
        let found = tree.name(attribute);
        if found.namespace.is_empty() && found.local != "id" {
            errors.push(document.error(node, format!("<annotation> has no attribute `{}`", found.local)));
        }
    }
}

fn check_element(document: &SchemaDocument, node: NodeId, ids: &mut HashSet<String>, errors: &mut Vec<SchemaError>) {
    let tree = &document.document;
    let shown = tree.name(node).local;
    let Some((index, form)) = form_of(document, node) else {
        errors.push(document.error(node, format!("<{shown}> is not allowed here")));
        return;
    };
    check_attributes(document, node, form, ids, errors);
    let mut children = String::new();
    for child in tree.children(node) {
        match tree.kind(child) {
            NodeKind::Element if tree.name(child).namespace == XSD => {
                children.push_str(tree.local_name(child));
                children.push(' ');
            }
            NodeKind::Element => children.push_str("? "),
            NodeKind::Text if !tree.text(child).trim_matches([' ', '\t', '\r', '\n']).is_empty() => {
                errors.push(document.error(node, format!("text is not allowed in <{shown}>")));
            }
            _ => {}
        }
    }
    if CONTENT[index].as_ref().is_some_and(|content| !content.is_match(&children)) {
        let children = children.trim_end().replace(' ', ", ");
        let message = match &*children {
            "" => format!("<{shown}> lacks content"),
            children => format!("<{shown}> does not contain these elements in this order: {children}"),
        };
        errors.push(document.error(node, message));
    }
    errors.extend(contradiction(document, node, form).map(|message| document.error(node, message)));
}

fn check_attributes(
    document: &SchemaDocument,
    node: NodeId,
    form: &Form,
    ids: &mut HashSet<String>,
    errors: &mut Vec<SchemaError>,
) {
    let tree = &document.document;
    let shown = tree.name(node).local;
    let specification = form.attributes.replace("OCCURS", OCCURS);
    let known = |name: &str| {
        specification.split_ascii_whitespace().find_map(|one| {
            let (known, value) = one.split_once('=')?;
            (known.trim_end_matches('!') == name).then(|| value.to_owned())
        })
    };
    for attribute in tree.attributes(node) {
        let name = tree.name(attribute);
        let text = tree.text(attribute).trim_matches([' ', '\t', '\r', '\n']);
        if name.namespace == XSD || (name.namespace.is_empty() && name.local != "id" && known(name.local).is_none()) {
            errors.push(document.error(node, format!("<{shown}> has no attribute `{}`", name.local)));
            continue;
        }
        if !name.namespace.is_empty() {
            continue;
        }
        let wanted = known(name.local).unwrap_or_else(|| "ncname".to_owned());
        if !fits(&wanted, text) {
            errors.push(document.error(node, format!("`{text}` is not a value of the attribute `{}`", name.local)));
        }
        if name.local == "id" && !ids.insert(text.to_owned()) {
            errors.push(document.error(node, format!("the id `{text}` is given twice")));
        }
    }
    for required in specification.split_ascii_whitespace().filter_map(|one| one.split_once("!=")) {
        if document.attribute(node, required.0).is_none() {
            errors.push(document.error(node, format!("<{shown}> needs the attribute `{}`", required.0)));
        }
    }
}

/// Whether a value, trimmed, is of a form.
fn fits(form: &str, text: &str) -> bool {
    let list = |allowed: &[&str]| text == "#all" || text.split_ascii_whitespace().all(|one| allowed.contains(&one));
    let count = |text: &str| {
        let digits = text.strip_prefix('+').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let qname = |text: &str| match text.split_once(':') {
        Some((prefix, local)) => penstock_xml::is_ncname(prefix) && penstock_xml::is_ncname(local),
        None => penstock_xml::is_ncname(text),
    };
    match form {
        "ncname" => penstock_xml::is_ncname(text),
        "qname" => qname(text),
        "qnames" => text.split_ascii_whitespace().all(qname),
        "boolean" => matches!(text, "true" | "false" | "0" | "1"),
        "count" => count(text),
        "counts" => text == "unbounded" || count(text),
        "positive" => count(text) && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')),
        "zero" => matches!(text, "0" | "1"),
        "one" => text == "1",
        "qualified" => matches!(text, "qualified" | "unqualified"),
        "use" => matches!(text, "optional" | "required" | "prohibited"),
        "process" => matches!(text, "strict" | "lax" | "skip"),
        "space" => matches!(text, "preserve" | "replace" | "collapse"),
        "block" => list(&["extension", "restriction", "substitution"]),
        "derivations" => list(&["extension", "restriction"]),
        "final" => list(&["extension", "restriction", "list", "union"]),
        "simplefinal" => list(&["restriction", "list", "union"]),
        "namespaces" => {
            matches!(text, "##any" | "##other")
                || text
                    .split_ascii_whitespace()
                    .all(|one| !one.starts_with("##") || matches!(one, "##targetNamespace" | "##local"))
        }
        _ => true,
    }
}

/// Attributes and children that exclude each other.
fn contradiction(document: &SchemaDocument, node: NodeId, form: &Form) -> Option<String> {
    let given = |name: &str| document.attribute(node, name).is_some();
    let child = |names: &[&str]| document.children(node).any(|child| names.contains(&document.name(child)));
    let both = |one: &str, other: &str| given(one) && given(other);
    let excludes = |one: &str, other: &str| format!("`{one}` and `{other}` exclude each other");
    match form.name {
        "element" | "global element" | "attribute" | "global attribute" => {
            let local = matches!(form.name, "element" | "attribute");
            let in_all = document.document.parent(node).is_some_and(|parent| document.name(parent) == "all");
            if in_all && !matches!(document.attribute(node, "maxOccurs").unwrap_or("1").trim(), "0" | "1") {
                return Some("an element of <all> occurs once at most".to_owned());
            }
            if local && given("name") == given("ref") {
                return Some("exactly one of `name` and `ref` is needed".to_owned());
            }
            if both("default", "fixed") {
                return Some(excludes("default", "fixed"));
            }
            if given("type") && child(&["simpleType", "complexType"]) {
                return Some("a type is either named or defined inside".to_owned());
            }
            let with_name = ["type", "form", "nillable", "block"];
            let defaults: &[&str] = if form.name == "element" { &["default", "fixed"] } else { &[] };
            let extra = with_name.iter().chain(defaults).find(|name| given("ref") && given(name));
            if let Some(extra) = extra {
                return Some(excludes("ref", extra));
            }
            if given("ref") && document.children(node).next().is_some() {
                return Some("a reference defines nothing inside".to_owned());
            }
            let attribute = form.name.ends_with("attribute");
            if attribute && document.attribute(node, "name").is_some_and(|name| name.trim() == "xmlns") {
                return Some("an attribute cannot be named `xmlns`".to_owned());
            }
            let usage = document.attribute(node, "use").map_or("optional", str::trim);
            (attribute && given("default") && usage != "optional")
                .then(|| "an attribute with a default is optional".to_owned())
        }
        "simpleType restriction" if given("base") == child(&["simpleType"]) => {
            Some("the base is either named or defined inside".to_owned())
        }
        "list" if given("itemType") == child(&["simpleType"]) => {
            Some("the type of the items is either named or defined inside".to_owned())
        }
        "union" if !child(&["simpleType"]) => {
            let named = document.attribute(node, "memberTypes").is_some_and(|names| !names.trim().is_empty());
            (!named).then(|| "a union has member types".to_owned())
        }
        "notation" if !given("public") && !given("system") => Some("a notation needs `public` or `system`".to_owned()),
        "import" if document.attribute(node, "namespace").unwrap_or_default() == &*document.target => {
            Some("a document imports other namespaces than its own".to_owned())
        }
        _ => None,
    }
}
