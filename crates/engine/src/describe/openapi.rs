//! An OpenAPI definition made from an API's resources.

use serde_json::{Map, Value, json};

use crate::ports::Environment;
use crate::route::{Api, Pattern, Resource};

/// Methods a resource without any takes, as far as a definition can say it.
const ALL_METHODS: [&str; 7] = ["get", "post", "put", "delete", "patch", "head", "options"];

/// The definition.
pub(super) fn of(api: &Api, environment: &Environment) -> Value {
    let mut paths = Map::new();
    for resource in &api.resources {
        let path = path_of(resource);
        let operations = paths.entry(path.clone()).or_insert_with(|| Value::Object(Map::new()));
        let Some(operations) = operations.as_object_mut() else { continue };
        for method in methods_of(resource) {
            operations.insert(method, operation(&path));
        }
    }
    let server =
        |scheme: &str, port: u16| json!({ "url": format!("{scheme}://{}:{port}{}", environment.host, api.context) });
    json!({
        "openapi": "3.0.1",
        "info": {
            "title": &*api.name,
            "description": format!("API definition of {}", api.name),
            "version": api.version.as_ref().map_or("1.0.0", |version| &*version.text),
        },
        "servers": [server("http", environment.http_port), server("https", environment.https_port)],
        "paths": paths,
    })
}

fn path_of(resource: &Resource) -> String {
    let text = match &resource.pattern {
        Pattern::Default => "/*",
        Pattern::Mapping(mapping) => mapping,
        Pattern::Template(template) => template.text(),
    };
    text.split_once('?').map_or(text, |(path, _)| path).to_owned()
}

fn methods_of(resource: &Resource) -> Vec<String> {
    if resource.methods.is_empty() {
        return ALL_METHODS.iter().map(|method| (*method).to_owned()).collect();
    }
    resource.methods.iter().map(|method| method.as_str().to_lowercase()).collect()
}

fn operation(path: &str) -> Value {
    let mut operation = json!({ "responses": { "default": { "description": "Default response" } } });
    let parameters: Vec<Value> = path
        .split('{')
        .skip(1)
        .filter_map(|part| part.split_once('}'))
        .map(|(name, _)| json!({ "name": name.trim_start_matches('+'), "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    operation
}
