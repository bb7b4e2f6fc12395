//! Data of a template.

use std::rc::Rc;

use penstock_xml::{Document, NodeId, NodeKind};
use serde_json::Value as Json;

use super::ast::{Expr, Macro};

/// What a template is rendered with.
pub struct Model<'d> {
    /// Values by name.
    pub roots: Vec<(&'static str, Data<'d>)>,
    /// The time now, by a pattern of Java's `SimpleDateFormat`, or as ISO 8601 without one.
    pub now: fn(Option<&str>) -> String,
}

impl Default for Model<'_> {
    fn default() -> Self {
        Model { roots: Vec::new(), now: |_| String::new() }
    }
}

/// A value.
#[derive(Clone)]
pub enum Data<'d> {
    /// Nothing.
    Missing,
    /// Text.
    Text(Rc<str>),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// A list.
    List(Rc<Vec<Data<'d>>>),
    /// Values by name.
    Hash(Rc<Vec<(Rc<str>, Data<'d>)>>),
    /// A value of JSON.
    Json(&'d Json),
    /// Nodes of a document.
    Nodes(&'d Document, Rc<Vec<NodeId>>),
    /// A point in time: now, in whole milliseconds since 1970.
    Now,
    /// `<#macro>` or `<#function>`.
    Macro(MacroRef<'d>),
    /// `x -> expression`.
    Lambda(LambdaRef<'d>),
}

/// A macro of the template.
#[derive(Clone, Copy)]
pub struct MacroRef<'d>(pub(super) &'d Macro);

/// A function written in an expression.
#[derive(Clone, Copy)]
pub struct LambdaRef<'d>(pub(super) &'d str, pub(super) &'d Expr);

impl<'d> Data<'d> {
    /// A text.
    pub fn text(text: impl Into<Rc<str>>) -> Data<'d> {
        Data::Text(text.into())
    }

    /// What a value of JSON is; containers stay where they are.
    pub fn of_json(json: &'d Json) -> Data<'d> {
        match json {
            Json::Null => Data::Missing,
            Json::Bool(flag) => Data::Boolean(*flag),
            Json::Number(number) => Data::Number(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Data::text(text.as_str()),
            Json::Array(_) | Json::Object(_) => Data::Json(json),
        }
    }

    /// One node of a document.
    pub fn node(document: &'d Document, node: NodeId) -> Data<'d> {
        Data::Nodes(document, Rc::new(vec![node]))
    }

    /// The member of that name; missing when there is none.
    pub(super) fn member(&self, name: &str) -> Data<'d> {
        match self {
            Data::Hash(members) => {
                members.iter().find(|(key, _)| **key == *name).map_or(Data::Missing, |(_, value)| value.clone())
            }
            Data::Json(Json::Object(members)) => members.get(name).map_or(Data::Missing, Data::of_json),
            Data::Nodes(document, nodes) => Data::Nodes(document, Rc::new(step(document, nodes, name))).if_any(),
            _ => Data::Missing,
        }
    }

    /// Whether it has members at all.
    pub(super) fn is_hash(&self) -> bool {
        matches!(self, Data::Hash(_) | Data::Json(Json::Object(_)) | Data::Nodes(..))
    }

    fn if_any(self) -> Data<'d> {
        match &self {
            Data::Nodes(_, nodes) if nodes.is_empty() => Data::Missing,
            _ => self,
        }
    }

    /// How many items a list has; a single node is a list of one. Nothing for what is no list.
    pub(super) fn length(&self) -> Option<usize> {
        match self {
            Data::List(items) => Some(items.len()),
            Data::Json(Json::Array(items)) => Some(items.len()),
            Data::Nodes(_, nodes) => Some(nodes.len()),
            _ => None,
        }
    }

    /// An item of a list; missing when there is none.
    pub(super) fn item(&self, index: usize) -> Data<'d> {
        let found = match self {
            Data::List(items) => items.get(index).cloned(),
            Data::Json(Json::Array(items)) => items.get(index).map(Data::of_json),
            Data::Nodes(document, nodes) => nodes.get(index).map(|node| Data::node(document, *node)),
            _ => None,
        };
        found.unwrap_or(Data::Missing)
    }

    /// All items of a list, copied for changes.
    pub(super) fn items(&self) -> Option<Vec<Data<'d>>> {
        Some((0..self.length()?).map(|index| self.item(index)).collect())
    }

    /// The members of a hash.
    pub(super) fn members(&self) -> Option<Vec<(Rc<str>, Data<'d>)>> {
        match self {
            Data::Hash(members) => Some(members.to_vec()),
            Data::Json(Json::Object(members)) => {
                Some(members.iter().map(|(name, value)| (name.as_str().into(), Data::of_json(value))).collect())
            }
            _ => None,
        }
    }

    /// Whether it is there and not empty.
    pub(super) fn has_content(&self) -> bool {
        match self {
            Data::Missing => false,
            Data::Text(text) => !text.is_empty(),
            Data::Json(Json::Object(members)) => !members.is_empty(),
            Data::Nodes(document, nodes) => {
                nodes.iter().any(|node| !document.string_value(*node).is_empty() || document.is_element(*node))
            }
            Data::Hash(members) => !members.is_empty(),
            other => other.length() != Some(0),
        }
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Data::Missing => "nothing",
            Data::Text(_) => "a text",
            Data::Number(_) => "a number",
            Data::Boolean(_) => "true or false",
            Data::List(_) | Data::Json(Json::Array(_)) => "a list",
            Data::Hash(_) | Data::Json(_) => "a hash",
            Data::Nodes(..) => "nodes",
            Data::Now => "a point in time",
            Data::Macro(_) => "a macro",
            Data::Lambda(_) => "a function",
        }
    }
}

/// The nodes a name leads to: children, `@attribute`, `*`, `**`, `@@`. Namespaces are not looked at.
fn step(document: &Document, nodes: &[NodeId], name: &str) -> Vec<NodeId> {
    let local = name.rsplit(':').next().unwrap_or(name);
    let mut found = Vec::new();
    for node in nodes {
        match name {
            "*" => found.extend(document.children(*node).filter(|child| document.is_element(*child))),
            "**" => found.extend(document.descendants(*node).filter(|child| document.is_element(*child))),
            "@@" | "@*" => found.extend(document.attributes(*node)),
            "@@text" => found.extend(document.children(*node).filter(|child| document.kind(*child) == NodeKind::Text)),
            _ => match local.strip_prefix('@') {
                Some(attribute) => {
                    found.extend(document.attributes(*node).filter(|one| document.local_name(*one) == attribute));
                }
                None => {
                    let fits = |child: &NodeId| document.is_element(*child) && document.local_name(*child) == local;
                    found.extend(document.children(*node).filter(fits));
                }
            },
        }
    }
    found
}
