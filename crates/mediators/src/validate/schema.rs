//! The schemas a `<validate>` names, compiled.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Fault, FindResource, Place};
use penstock_json::schema::JsonSchema;
use penstock_xsd::{Resolver, SchemaSource};
use serde_json::Value as Json;

/// What schemas call a document, and the key it has here.
pub(super) type Locations = HashMap<String, String>;

/// Compiled schemas, or why there are none.
pub(super) enum Schema {
    Xml(Box<penstock_xsd::Schema>, Vec<Note>),
    Json(JsonSchema, Vec<Note>),
    /// The flow is accepted and faults when a message gets here.
    Broken(Vec<Note>),
}

/// Something to say about a schema, and where.
pub(super) struct Note {
    at: Option<Place>,
    text: String,
}

impl Schema {
    /// Compiles the resources of these keys: XML schemas together, of JSON schemas the last.
    pub(super) fn compile(resources: &dyn FindResource, keys: &[Arc<str>], locations: &Locations) -> Schema {
        let missing = keys.iter().find(|key| resources.find(key).is_none());
        if let Some(key) = missing {
            let text = format!("no local entry or registry resource is named `{key}`");
            return Schema::Broken(vec![Note { at: None, text }]);
        }
        let last = keys.last().and_then(|key| Some((key, resources.find(key)?)));
        match last {
            Some((key, resource)) if !looks_like_xml(&resource.bytes) => compile_json(key, &resource),
            _ => compile_xml(resources, keys, locations),
        }
    }

    pub(super) fn xml(&self) -> Result<&penstock_xsd::Schema, Fault> {
        match self {
            Schema::Xml(schema, _) => Ok(schema),
            Schema::Json(..) => Err(Fault::new("a message that is not JSON cannot be validated by a JSON schema")),
            Schema::Broken(notes) => Err(broken(notes)),
        }
    }

    pub(super) fn json(&self) -> Result<&JsonSchema, Fault> {
        match self {
            Schema::Json(schema, _) => Ok(schema),
            Schema::Xml(..) => Err(Fault::new("a message that is JSON cannot be validated by an XML schema")),
            Schema::Broken(notes) => Err(broken(notes)),
        }
    }

    /// Says what there is to say: mistakes are warnings, as Micro Integrator only faults when it gets there.
    pub(super) fn tell(&self, cx: &mut Compiler<'_>) {
        let (notes, broken) = match self {
            Schema::Xml(_, notes) | Schema::Json(_, notes) => (notes, false),
            Schema::Broken(notes) => (notes, true),
        };
        for note in notes {
            let Some(at) = note.at.clone() else { continue };
            if broken && cx.options.strict { cx.error(at, note.text.clone()) } else { cx.warn(at, note.text.clone()) }
        }
    }
}

fn broken(notes: &[Note]) -> Fault {
    let first = notes.first();
    let mut fault = Fault::new(first.map_or("the schema has errors", |note| &note.text));
    fault.at = first.and_then(|note| note.at.clone());
    fault
}

fn looks_like_xml(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    bytes.trim_ascii_start().starts_with(b"<")
}

fn compile_json(key: &str, resource: &penstock_engine::Resource) -> Schema {
    let text = resource.text();
    let value: Json = match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
        Ok(value) => value,
        Err(error) => {
            let at = within(&resource.at, error.line() as u32, error.column() as u32);
            let text = format!("the schema `{key}` is not valid JSON: {error}");
            return Schema::Broken(vec![Note { at: Some(at), text }]);
        }
    };
    let notes = |errors: &[penstock_json::schema::SchemaError]| -> Vec<Note> {
        let text = |error| format!("the JSON schema `{key}` {error}");
        errors.iter().map(|error| Note { at: Some(resource.at.clone()), text: text(error) }).collect()
    };
    match JsonSchema::compile(&value) {
        Ok(schema) => {
            let notes = notes(schema.notes());
            Schema::Json(schema, notes)
        }
        Err(errors) => Schema::Broken(notes(&errors)),
    }
}

fn compile_xml(resources: &dyn FindResource, keys: &[Arc<str>], locations: &Locations) -> Schema {
    let sources: Vec<SchemaSource> =
        keys.iter().filter_map(|key| Some(SchemaSource::new(&**key, resources.find(key)?.bytes.clone()))).collect();
    let notes = |errors: &[penstock_xsd::SchemaError]| -> Vec<Note> {
        errors
            .iter()
            .map(|error| {
                let found = resources.find(&error.uri);
                let at = found.map(|found| within(&found.at, error.position.line, error.position.column));
                Note { at, text: format!("the schema `{}`: {}", error.uri, error.message) }
            })
            .collect()
    };
    match penstock_xsd::Schema::compile(&sources, &Keyed { resources, locations }) {
        Ok(schema) => {
            let notes = notes(schema.notes());
            Schema::Xml(Box::new(schema), notes)
        }
        Err(errors) => Schema::Broken(notes(&errors)),
    }
}

/// A place in a resource as a place in the file: a local entry does not begin at the top.
fn within(start: &Place, line: u32, column: u32) -> Place {
    Place {
        line: start.line + line.saturating_sub(1),
        column: if line > 1 { column } else { start.column },
        ..start.clone()
    }
}

/// Finds what schemas name among the program's resources; nothing is fetched.
struct Keyed<'a> {
    resources: &'a dyn FindResource,
    locations: &'a Locations,
}

impl Resolver for Keyed<'_> {
    fn resolve(&self, location: &str, base: &str, _namespace: Option<&str>) -> Option<SchemaSource> {
        let found = |key: &str| Some(SchemaSource::new(key, self.resources.find(key)?.bytes.clone()));
        if let Some(key) = self.locations.get(location) {
            return found(key);
        }
        // As a key of its own, then beside the document that names it.
        let folder = base.rfind('/').map_or("", |end| &base[..=end]);
        let folder = if folder.is_empty() { base.find(':').map_or("", |end| &base[..=end]) } else { folder };
        found(location).or_else(|| found(&beside(folder, location)))
    }
}

/// A location seen from a folder.
fn beside(folder: &str, location: &str) -> String {
    let mut folder = folder.trim_end_matches('/').to_owned();
    let mut rest = location;
    loop {
        if let Some(after) = rest.strip_prefix("./") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("../") {
            let end = folder.rfind('/').unwrap_or(0);
            folder.truncate(end);
            rest = after;
        } else {
            break;
        }
    }
    if folder.is_empty() || folder.ends_with(':') { format!("{folder}{rest}") } else { format!("{folder}/{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_seen_from_the_document_that_names_them() {
        for (folder, location, expected) in [
            ("conf:/schemas/", "a.xsd", "conf:/schemas/a.xsd"),
            ("conf:/schemas/v1/", "../a.xsd", "conf:/schemas/a.xsd"),
            ("gov:", "./a.xsd", "gov:a.xsd"),
            ("", "a.xsd", "a.xsd"),
        ] {
            assert_eq!(beside(folder, location), expected);
        }
    }
}
