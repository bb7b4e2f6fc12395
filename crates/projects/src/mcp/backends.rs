//! `backends.yaml`: what the tools of an MCP server call.

use std::sync::Arc;

use penstock_catalog::{Api, Endpoints};
use serde_json::Value;

use crate::descriptor::endpoint_config;
use crate::document::{Item, parse};
use crate::{Import, Project, substitute};

const FILES: [&str; 3] = ["backends.yaml", "backends.yml", "backends.json"];

/// A backend.
#[derive(Default)]
pub(super) struct Backend {
    pub id: Option<Arc<str>>,
    pub endpoints: Endpoints,
    /// Its definition, when that can be read.
    pub definition: Option<Value>,
}

/// Reads the backends of a project.
pub(super) fn read(import: &mut Import<'_>, project: &Project) -> Vec<Backend> {
    let Some(file) = FILES.iter().find_map(|name| project.file(name)) else { return Vec::new() };
    let mut document = match parse(&file.file, &file.bytes) {
        Ok(document) => document,
        Err((at, message)) => {
            import.error(&at, message);
            return Vec::new();
        }
    };
    substitute::apply(import, &file.file, &mut document.root);
    let root = document.item();
    let data = root.get("data").unwrap_or(root);
    let list = data.get("list").unwrap_or(data);
    if !list.is_list() {
        import.error(&list.at(), format!("backends must be a list, not {}", list.kind()));
        return Vec::new();
    }
    list.items().map(|item| backend(import, &item)).collect()
}

fn backend(import: &mut Import<'_>, item: &Item<'_>) -> Backend {
    let mut api = Api::default();
    match item.get("endpointConfig") {
        Some(config) => endpoint_config::read(import, &config, &mut api),
        None => import.error(&item.at(), "a backend needs `endpointConfig`"),
    }
    let definition = item.get("definition").and_then(|definition| match definition.text() {
        None => Some(definition.json()),
        Some(text) => match parse(&definition.at().file, text.as_bytes()) {
            Ok(document) => Some(document.item().json()),
            Err((_, message)) => {
                import.warn(&definition.at(), format!("the definition cannot be read: {message}"));
                None
            }
        },
    });
    let id = import.some_text_of(item, "id");
    Backend { id, endpoints: api.endpoints, definition }
}
