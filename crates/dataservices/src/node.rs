//! The parts of a result, and how they are written as XML and as JSON.

use std::sync::Arc;

use penstock_json::mapping::is_number;

use crate::model::{QueryCall, ValueKind};

/// An element of a result.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace, when it is not that of the element around it.
    pub namespace: Option<Arc<str>>,
    /// Its attributes.
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
    /// Whether it is one of a list, however many there are.
    pub is_list: bool,
    /// What it contains.
    pub content: Content,
}

/// What an element contains.
pub enum Content {
    /// Nothing: `xsi:nil`, `null`.
    Null,
    /// A value.
    Value(Arc<str>, ValueKind),
    /// Elements.
    Children(Vec<Node>),
    /// The result of a query that has not run yet.
    Pending(Arc<QueryCall>),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::Null => write!(out, "Null"),
            Content::Value(text, _) => write!(out, "{text:?}"),
            Content::Children(children) => children.fmt(out),
            Content::Pending(_) => write!(out, "Pending"),
        }
    }
}

const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

impl Node {
    /// An element with elements inside.
    pub fn parent(name: Arc<str>, namespace: Option<Arc<str>>, children: Vec<Node>) -> Node {
        Node { name, namespace, attributes: Vec::new(), is_list: false, content: Content::Children(children) }
    }

    /// Writes the element; `inherited` is the default namespace around it.
    pub fn write_xml(&self, out: &mut Vec<u8>, inherited: &str) {
        if self.name.is_empty() {
            // A result without an element of its own.
            if let Content::Children(children) = &self.content {
                children.iter().for_each(|child| child.write_xml(out, inherited));
            }
            return;
        }
        let namespace = self.namespace.as_deref().unwrap_or(inherited);
        out.push(b'<');
        out.extend_from_slice(self.name.as_bytes());
        if namespace != inherited {
            write_attribute(out, "xmlns", namespace);
        }
        for (name, value) in &self.attributes {
            write_attribute(out, name, value);
        }
        match &self.content {
            Content::Null => {
                write_attribute(out, "xmlns:xsi", SCHEMA_INSTANCE);
                write_attribute(out, "xsi:nil", "true");
                out.extend_from_slice(b"/>");
                return;
            }
            Content::Value(text, _) if text.is_empty() => return out.extend_from_slice(b"/>"),
            Content::Children(children) if children.is_empty() => return out.extend_from_slice(b"/>"),
            Content::Value(text, _) => {
                out.push(b'>');
                write_text(out, text);
            }
            Content::Children(children) => {
                out.push(b'>');
                children.iter().for_each(|child| child.write_xml(out, namespace));
            }
            Content::Pending(_) => return out.extend_from_slice(b"/>"),
        }
        out.extend_from_slice(b"</");
        out.extend_from_slice(self.name.as_bytes());
        out.push(b'>');
    }

    /// Writes the value of the member that the element becomes.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match &self.content {
            Content::Null => out.extend_from_slice(b"null"),
            Content::Pending(_) => out.extend_from_slice(b"{}"),
            Content::Value(text, kind) => write_json_value(out, text, *kind),
            Content::Children(children) => {
                out.push(b'{');
                let is_first = self.write_attributes(out);
                write_members(out, children, is_first);
                out.push(b'}');
            }
        }
    }

    fn write_attributes(&self, out: &mut Vec<u8>) -> bool {
        let mut is_first = true;
        for (name, value) in &self.attributes {
            separate(out, &mut is_first);
            write_json_text(out, &format!("@{name}"));
            out.push(b':');
            write_json_text(out, value);
        }
        is_first
    }
}

fn separate(out: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::replace(is_first, false) {
        out.push(b',');
    }
}

/// Writes elements as members of an object; those of one name become a list.
pub fn write_members(out: &mut Vec<u8>, children: &[Node], mut is_first: bool) {
    for (index, child) in children.iter().enumerate() {
        if child.name.is_empty() {
            if let Content::Children(inner) = &child.content
                && !inner.is_empty()
            {
                separate(out, &mut is_first);
                write_members(out, inner, true);
            }
            continue;
        }
        if children[..index].iter().any(|before| before.name == child.name) {
            continue;
        }
        separate(out, &mut is_first);
        write_json_text(out, &child.name);
        out.push(b':');
        let same = || children[index + 1..].iter().filter(|other| other.name == child.name);
        if !child.is_list && same().next().is_none() {
            child.write_json(out);
            continue;
        }
        out.push(b'[');
        child.write_json(out);
        for other in same() {
            out.push(b',');
            other.write_json(out);
        }
        out.push(b']');
    }
}

/// Writes a text as a string of JSON.
pub fn write_json_text(out: &mut Vec<u8>, text: &str) {
    // Writing a string to a vector cannot fail.
    let _ = serde_json::to_writer(out, text);
}

fn write_json_value(out: &mut Vec<u8>, text: &str, kind: ValueKind) {
    match kind {
        ValueKind::Number if is_number(text.trim()) => out.extend_from_slice(text.trim().as_bytes()),
        ValueKind::Boolean if matches!(text, "true" | "1") => out.extend_from_slice(b"true"),
        ValueKind::Boolean if matches!(text, "false" | "0") => out.extend_from_slice(b"false"),
        _ => write_json_text(out, text),
    }
}

fn write_attribute(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b' ');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"=\"");
    match value.chars().all(is_xml_char) {
        true => penstock_xml::escape_attribute(out, value),
        false => penstock_xml::escape_attribute(out, &printable(value)),
    }
    out.push(b'"');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    match text.chars().all(is_xml_char) {
        true => penstock_xml::escape_text(out, text),
        false => penstock_xml::escape_text(out, &printable(text)),
    }
}

/// Whether XML 1.0 allows a character.
pub fn is_xml_char(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// A text without what XML 1.0 forbids, which becomes `\uXXXX` as `escapeNonPrintableChar` has it: a document with such a
/// character is none.
fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_xml_char(letter) {
            out.push(letter);
        } else {
            out.push_str(&format!("\\u{:04x}", u32::from(letter)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, text: &str, kind: ValueKind) -> Node {
        let content = Content::Value(text.into(), kind);
        Node { name: name.into(), namespace: None, attributes: Vec::new(), is_list: false, content }
    }

    #[test]
    fn a_row_is_written_as_xml_and_json() {
        let mut null = value("c", "", ValueKind::Text);
        null.content = Content::Null;
        let mut row = Node::parent(
            "row".into(),
            None,
            vec![
                value("a", "1 < 2", ValueKind::Text),
                value("b", "18400.0", ValueKind::Number),
                null,
                value("d", "x", ValueKind::Number),
                value("d", "2", ValueKind::Number),
            ],
        );
        row.attributes.push(("id".into(), "\"7\"".into()));
        let mut out = Vec::new();
        row.write_xml(&mut out, "urn:x");
        let expected = "<row id=\"&quot;7&quot;\"><a>1 &lt; 2</a><b>18400.0</b>\
                        <c xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"/><d>x</d><d>2</d></row>";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        let mut out = Vec::new();
        row.write_json(&mut out);
        let expected = r#"{"@id":"\"7\"","a":"1 < 2","b":18400.0,"c":null,"d":["x",2]}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn forbidden_characters_do_not_break_a_document() {
        let mut out = Vec::new();
        value("a", "x\u{1}", ValueKind::Text).write_xml(&mut out, "");
        assert_eq!(String::from_utf8(out).unwrap(), "<a>x\\u0001</a>");
    }
}
