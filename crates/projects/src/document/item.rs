//! The cursor the importers read documents with.

use std::sync::Arc;

use penstock_catalog::At;

use super::{Entry, Node, Scalar, Value};

/// A value of a document, with its file.
#[derive(Clone, Copy)]
pub struct Item<'d> {
    file: &'d Arc<str>,
    node: &'d Node,
}

impl<'d> Item<'d> {
    pub(super) fn new(file: &'d Arc<str>, node: &'d Node) -> Item<'d> {
        Item { file, node }
    }

    /// Where it is written.
    pub fn at(&self) -> At {
        At { file: self.file.clone(), line: self.node.line, column: self.node.column }
    }

    /// What kind of value it is, for a message.
    pub fn kind(&self) -> &'static str {
        match &self.node.value {
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Scalar(_) if self.is_null() => "nothing",
            Value::Scalar(_) => "a single value",
        }
    }

    /// Whether it is null or an empty plain value.
    pub fn is_null(&self) -> bool {
        matches!(&self.node.value, Value::Scalar(Scalar { text, quoted: false }) if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The member of a mapping, unless it is null.
    pub fn get(&self, key: &str) -> Option<Item<'d>> {
        self.entries().find(|(name, _, value)| &***name == key && !value.is_null()).map(|(_, _, value)| value)
    }

    /// Whether a mapping has a member, null or not.
    pub fn has(&self, key: &str) -> bool {
        self.entries().any(|(name, _, _)| &**name == key)
    }

    /// The members of a mapping, each with the place of its key; none of anything else.
    pub fn entries(&self) -> impl Iterator<Item = (&'d Arc<str>, At, Item<'d>)> + use<'d> {
        let file = self.file;
        let entries: &'d [Entry] = match &self.node.value {
            Value::Map(entries) => entries,
            _ => &[],
        };
        entries.iter().map(move |entry| {
            let at = At { file: file.clone(), line: entry.line, column: entry.column };
            (&entry.key, at, Item { file, node: &entry.value })
        })
    }

    /// The items of a list; none of anything else.
    pub fn items(&self) -> impl Iterator<Item = Item<'d>> + use<'d> {
        let file = self.file;
        let items: &'d [Node] = match &self.node.value {
            Value::List(items) => items,
            _ => &[],
        };
        items.iter().map(move |node| Item { file, node })
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// Whether it is a mapping.
    pub fn is_map(&self) -> bool {
        matches!(self.node.value, Value::Map(_))
    }

    /// A single value as text; nothing of null.
    pub fn text(&self) -> Option<&'d Arc<str>> {
        match &self.node.value {
            Value::Scalar(scalar) if !self.is_null() => Some(&scalar.text),
            _ => None,
        }
    }

    /// A flag. Exports write some in quotes.
    pub fn flag(&self) -> Option<bool> {
        match &**self.text()? {
            "true" | "True" | "TRUE" => Some(true),
            "false" | "False" | "FALSE" => Some(false),
            _ => None,
        }
    }

    /// A whole number. Exports write some in quotes, and some with a fraction of zero.
    pub fn number(&self) -> Option<u64> {
        let text = self.text()?;
        text.strip_suffix(".0").unwrap_or(text).trim().parse().ok()
    }

    /// The value as JSON.
    pub fn json(&self) -> serde_json::Value {
        json(self.node)
    }

    /// The node itself.
    pub(crate) fn node(&self) -> &'d Node {
        self.node
    }

    /// A node of the same file.
    pub(crate) fn sibling(&self, node: &'d Node) -> Item<'d> {
        Item { file: self.file, node }
    }
}

fn json(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::List(items) => serde_json::Value::Array(items.iter().map(json).collect()),
        Value::Map(entries) => {
            serde_json::Value::Object(entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect())
        }
        Value::Scalar(scalar) if scalar.quoted => serde_json::Value::String(scalar.text.to_string()),
        // The core schema of YAML 1.2: what reads as null, a flag or a number is one.
        Value::Scalar(scalar) => match &*scalar.text {
            "" | "~" | "null" | "Null" | "NULL" => serde_json::Value::Null,
            "true" | "True" | "TRUE" => serde_json::Value::Bool(true),
            "false" | "False" | "FALSE" => serde_json::Value::Bool(false),
            text => match serde_json::from_str(text) {
                Ok(serde_json::Value::Number(number)) => serde_json::Value::Number(number),
                _ => serde_json::Value::String(text.to_owned()),
            },
        },
    }
}
