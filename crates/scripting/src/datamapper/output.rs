//! A value as XML, by a schema: the root has its title, `attr_` members become attributes, lists
//! repeat their element, prefixes are those of its namespaces.

use penstock_xml::{Document, TreeBuilder, WriteOptions, to_vec};
use serde_json::Value as Json;

use super::input::{TEXT, inner, items};

/// Values inside values. Parsed JSON does not come near.
const DEPTH_MAX: usize = 256;

pub(super) fn to_xml(value: &Json, schema: &Json) -> Result<Vec<u8>, String> {
    let mut writer = Writer { builder: TreeBuilder::new(), namespaces: namespaces(schema) };
    let title = super::title(schema);
    // A mapping may give the root with its name around it.
    let wrapped = value
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.get(&super::identifier(&title)));
    let content = match wrapped {
        Some(content) if inner(schema, &super::identifier(&title)).is_none() => content,
        _ => value,
    };
    writer.element(&title, content, schema, 0)?;
    let document = writer.builder.finish();
    Ok(to_vec(&document, Document::ROOT, &WriteOptions::default()))
}

fn namespaces(schema: &Json) -> Vec<(String, String)> {
    let list = schema.get("namespaces").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |entry: &Json, name: &str| entry.get(name).and_then(Json::as_str).map(str::to_owned);
    list.iter().filter_map(|entry| Some((text(entry, "prefix")?, text(entry, "url")?))).collect()
}

struct Writer {
    builder: TreeBuilder,
    namespaces: Vec<(String, String)>,
}

impl Writer {
    /// Prefix, local part and namespace of a member's name.
    fn name<'n>(&'n self, name: &'n str) -> (&'n str, &'n str, &'n str) {
        for (prefix, url) in &self.namespaces {
            let rest = name.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix([':', '_']));
            if let Some(local) = rest.filter(|local| !local.is_empty() && !prefix.is_empty()) {
                return (prefix, local, url);
            }
        }
        let default = self.namespaces.iter().find(|(prefix, _)| prefix.is_empty());
        ("", name.rsplit(':').next().unwrap_or(name), default.map_or("", |(_, url)| url))
    }

    fn element(&mut self, name: &str, value: &Json, schema: &Json, depth: usize) -> Result<(), String> {
        if depth > DEPTH_MAX {
            return Err(format!("values nest deeper than {DEPTH_MAX}"));
        }
        if let Json::Array(all) = value {
            return all.iter().try_for_each(|one| self.element(name, one, items(schema), depth + 1));
        }
        let (prefix, local, namespace) = self.name(name);
        let (prefix, local, namespace) = (prefix.to_owned(), local.to_owned(), namespace.to_owned());
        if !penstock_xml::is_ncname(&local) {
            return Err(format!("`{name}` cannot be the name of an element"));
        }
        self.builder.start_element(&prefix, &local, &namespace);
        match value {
            Json::Object(members) => {
                for (name, value) in members {
                    if let Some(attribute) = name.strip_prefix("attr_") {
                        if !penstock_xml::is_ncname(attribute) {
                            return Err(format!("`{attribute}` cannot be the name of an attribute"));
                        }
                        self.builder.attribute("", attribute, "", &text(value));
                    }
                }
                for (name, value) in members.iter().filter(|(name, _)| !name.starts_with("attr_")) {
                    if name == TEXT {
                        self.builder.text(&text(value));
                    } else {
                        self.element(name, value, inner(schema, name).unwrap_or(&Json::Null), depth + 1)?;
                    }
                }
            }
            plain => self.builder.text(&text(plain)),
        }
        self.builder.end_element();
        Ok(())
    }
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}
