//! From the text of a schema to nodes and checks.

mod keywords;

use std::collections::HashMap;

use serde_json::Value;

use super::reference::{escape, fragment, resolve, unescape, without_fragment};
use super::{Check, Draft, JsonSchema, Node, NodeId, Resource, SchemaError};
use keywords::KeywordReader;

/// Schemas inside schemas.
const DEPTH_MAX: usize = 128;
/// Nodes of one schema.
const NODES_MAX: usize = 100_000;
const ERRORS_MAX: usize = 50;

/// A place in the text: the value, what its references are seen from, and its pointer.
#[derive(Clone)]
struct Spot<'s> {
    value: &'s Value,
    base: String,
    pointer: String,
    draft: Draft,
}

struct Compiler<'s> {
    /// Parts with an identifier, by it.
    resources: HashMap<String, (usize, Spot<'s>)>,
    /// How many there were, those included whose identifier another one took.
    resource_count: usize,
    anchors: HashMap<String, Spot<'s>>,
    dynamic_anchors: Vec<(usize, String, Spot<'s>)>,
    recursive_anchors: Vec<(usize, Spot<'s>)>,
    /// Nodes by the address of their value, which does not move while this runs.
    known: HashMap<usize, NodeId>,
    nodes: Vec<Node>,
    depth: usize,
    tracks: bool,
    errors: Vec<SchemaError>,
    notes: Vec<SchemaError>,
}

/// Keywords that hold a schema, a list of them, or schemas by name.
const ONE: [&str; 14] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$defs",
    "definitions",
];
const MANY: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const NAMED: [&str; 6] =
    ["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"];

pub(super) fn compile(schema: &Value) -> Result<JsonSchema, Vec<SchemaError>> {
    let mut compiler = Compiler {
        resources: HashMap::new(),
        resource_count: 1,
        anchors: HashMap::new(),
        dynamic_anchors: Vec::new(),
        recursive_anchors: Vec::new(),
        known: HashMap::new(),
        nodes: Vec::new(),
        depth: 0,
        tracks: false,
        errors: Vec::new(),
        notes: Vec::new(),
    };
    let root =
        Spot { value: schema, base: String::new(), pointer: String::new(), draft: draft_of(schema, Draft::Four) };
    compiler.resources.insert(String::new(), (0, root.clone()));
    compiler.index(&root, 0);
    compiler.node(&root, 0);
    let mut resources: Vec<Resource> = Vec::new();
    resources.resize_with(compiler.resource_count, Resource::default);
    for (resource, name, spot) in std::mem::take(&mut compiler.dynamic_anchors) {
        let node = compiler.node(&spot, resource);
        resources[resource].dynamic.push((name, node));
    }
    for (resource, spot) in std::mem::take(&mut compiler.recursive_anchors) {
        resources[resource].recursive = Some(compiler.node(&spot, resource));
    }
    if !compiler.errors.is_empty() {
        return Err(compiler.errors);
    }
    Ok(JsonSchema { nodes: compiler.nodes, resources, tracks: compiler.tracks, notes: compiler.notes })
}

fn draft_of(value: &Value, inherited: Draft) -> Draft {
    value.get("$schema").and_then(Value::as_str).and_then(Draft::from_uri).unwrap_or(inherited)
}

impl<'s> Compiler<'s> {
    fn fail(&mut self, pointer: &str, message: impl Into<String>) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(SchemaError { pointer: pointer.to_owned(), message: message.into() });
        }
    }

    /// Finds identifiers and anchors.
    fn index(&mut self, spot: &Spot<'s>, resource: usize) {
        let Some(object) = spot.value.as_object() else { return };
        if self.depth > DEPTH_MAX {
            return self.fail(&spot.pointer, format!("schemas are nested deeper than {DEPTH_MAX}"));
        }
        let (mut spot, mut resource) = (spot.clone(), resource);
        let text = |name: &str| object.get(name).and_then(Value::as_str);
        let replaced = spot.draft <= Draft::Seven && object.contains_key("$ref");
        let id = if spot.draft == Draft::Four { text("id").or(text("$id")) } else { text("$id") };
        if let Some(id) = id.filter(|_| !replaced) {
            let uri = resolve(&spot.base, id);
            let name = fragment(&uri);
            if !name.is_empty() && without_fragment(&uri) == without_fragment(&spot.base) {
                self.anchors.insert(uri.clone(), spot.clone());
            } else {
                spot.draft = draft_of(spot.value, spot.draft);
                spot.base = without_fragment(&uri).to_owned();
                if !spot.pointer.is_empty() {
                    resource = self.resource_count;
                    self.resource_count += 1;
                }
                self.resources.insert(spot.base.clone(), (resource, spot.clone()));
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(keyword).filter(|_| spot.draft >= Draft::Nineteen) {
                self.anchors.insert(format!("{}#{name}", spot.base), spot.clone());
                if keyword == "$dynamicAnchor" {
                    self.dynamic_anchors.push((resource, name.to_owned(), spot.clone()));
                }
            }
        }
        if spot.draft == Draft::Nineteen && object.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            self.recursive_anchors.push((resource, spot.clone()));
        }
        self.depth += 1;
        for (keyword, inner) in object {
            let below = |steps: &[&str], value| {
                let pointer = steps.iter().fold(spot.pointer.clone(), |all, step| format!("{all}/{}", escape(step)));
                Spot { value, pointer, ..spot.clone() }
            };
            match inner {
                Value::Object(members) if NAMED.contains(&keyword.as_str()) => {
                    for (name, value) in members {
                        self.index(&below(&[keyword, name], value), resource);
                    }
                }
                Value::Object(_) if ONE.contains(&keyword.as_str()) => self.index(&below(&[keyword], inner), resource),
                Value::Array(list) if MANY.contains(&keyword.as_str()) => {
                    for (position, value) in list.iter().enumerate() {
                        self.index(&below(&[keyword, &position.to_string()], value), resource);
                    }
                }
                _ => {}
            }
        }
        self.depth -= 1;
    }

    /// Where a reference leads, and in which resource.
    fn find(&self, spot: &Spot<'s>, reference: &str) -> Option<(usize, Spot<'s>)> {
        let uri = resolve(&spot.base, reference);
        let (resource, root) = self.resources.get(without_fragment(&uri))?;
        let name = fragment(&uri);
        if name.is_empty() {
            return Some((*resource, root.clone()));
        }
        if let Some(found) = self.anchors.get(&uri) {
            return Some((*resource, found.clone()));
        }
        let mut at = root.clone();
        let mut resource = *resource;
        for part in name.strip_prefix('/')?.split('/') {
            let part = unescape(part);
            let value = match at.value {
                Value::Object(members) => members.get(&part)?,
                Value::Array(list) => list.get(part.parse::<usize>().ok()?)?,
                _ => return None,
            };
            at = Spot { value, pointer: format!("{}/{}", at.pointer, escape(&part)), ..at };
            // A pointer may lead into a part with an identifier of its own.
            let own = self.resources.values().find(|(_, spot)| std::ptr::eq(spot.value, value));
            if let Some((number, spot)) = own {
                (resource, at) = (*number, spot.clone());
            }
        }
        Some((resource, at))
    }

    /// The node of a schema, compiled on first use.
    fn node(&mut self, spot: &Spot<'s>, resource: usize) -> NodeId {
        let address = std::ptr::from_ref(spot.value).addr();
        if let Some(id) = self.known.get(&address) {
            return *id;
        }
        let id = self.nodes.len();
        self.nodes.push(Node { pointer: spot.pointer.clone(), resource, checks: Vec::new() });
        self.known.insert(address, id);
        if self.nodes.len() > NODES_MAX || self.depth > DEPTH_MAX {
            self.fail(&spot.pointer, "the schema is too large, or nested too deeply");
            return id;
        }
        self.depth += 1;
        let (mut spot, mut resource) = (spot.clone(), resource);
        if let Some((number, own)) = self.resources.values().find(|(_, own)| std::ptr::eq(own.value, spot.value)) {
            (resource, spot) = (*number, own.clone());
            self.nodes[id].resource = resource;
        }
        let checks = match spot.value {
            Value::Bool(true) => Vec::new(),
            Value::Bool(false) => vec![Check::Never],
            Value::Object(object) => {
                let mut reader = KeywordReader { object, spot: &spot, resource, compiler: self };
                reader.checks()
            }
            _ => {
                self.fail(&spot.pointer, "a schema is an object, or true or false");
                Vec::new()
            }
        };
        self.depth -= 1;
        self.nodes[id].checks = checks;
        id
    }
}
