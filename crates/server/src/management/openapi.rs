//! The OpenAPI description of the management API, made from the table of resources.

use serde_json::{Map, Value, json};

use super::access::Access;
use super::call::{Call, Outcome, ok};
use super::routes::{CONTEXT, Operation, RESOURCES, Resource, Verb};

/// Returns the description.
pub(super) fn read(call: &Call<'_>) -> Outcome {
    ok(&description(call.authority))
}

fn description(server: &str) -> Value {
    let mut paths = Map::new();
    for resource in RESOURCES {
        let mut methods = Map::new();
        for operation in resource.operations {
            methods.insert(operation.method.word().to_ascii_lowercase(), described(resource, operation));
        }
        paths.insert(resource.path.to_owned(), Value::Object(methods));
    }
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Management API", "version": env!("CARGO_PKG_VERSION") },
        "servers": [{ "url": format!("{server}{CONTEXT}") }],
        "paths": paths,
        "components": { "securitySchemes": {
            "basic": { "type": "http", "scheme": "basic" },
            "token": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" },
        }, "schemas": { "Error": {
            "type": "object", "required": ["Error"], "properties": { "Error": { "type": "string" } },
        } } },
    })
}

fn described(resource: &Resource, operation: &Operation) -> Value {
    let open = resource.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(name, _)| name);
    let text = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let mut parameters: Vec<Value> = open.into_iter().map(|name| text(name, "path")).collect();
    if matches!(operation.method, Verb::Get | Verb::Delete) || resource.path.starts_with("/registry-resources") {
        parameters.extend(resource.query.iter().map(|name| text(name, "query")));
    }
    let error = |what: &str| {
        let schema = json!({ "$ref": "#/components/schemas/Error" });
        json!({ "description": what, "content": { "application/json": { "schema": schema } } })
    };
    let security = match resource.access {
        Access::Password => json!([{ "basic": [] }]),
        _ => json!([{ "token": [] }, { "basic": [] }]),
    };
    let mut described = json!({
        "tags": [resource.title],
        "summary": operation.summary,
        "operationId": format!("{}{}", operation.method.word().to_ascii_lowercase(), resource.path),
        "security": security,
        "parameters": parameters,
        "responses": {
            "200": { "description": "done" },
            "400": error("the request is wrong"),
            "401": error("name and password or a token are missing or wrong"),
            "403": error("the user may not do this"),
            "404": { "description": "there is none of that name" },
        },
    });
    if matches!(operation.method, Verb::Post | Verb::Put | Verb::Patch) {
        let media_type = match resource.path {
            "/applications" => "multipart/form-data",
            "/registry-resources/content" => "text/plain",
            _ => "application/json",
        };
        described["requestBody"] = json!({ "required": true, "content": { media_type: {} } });
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_table_is_described_once() {
        let described = description("https://localhost:9164");
        let paths = described["paths"].as_object().unwrap();
        assert_eq!(paths.len(), RESOURCES.len(), "a path stands twice in the table");
        let mut ids = std::collections::HashSet::new();
        for resource in RESOURCES {
            let methods = paths[resource.path].as_object().unwrap();
            assert_eq!(methods.len(), resource.operations.len(), "{}", resource.path);
            for (method, operation) in methods {
                assert!(ids.insert(operation["operationId"].clone()), "{method} {}", resource.path);
                let open = resource.path.contains('{');
                let parameters = operation["parameters"].as_array().unwrap();
                assert_eq!(parameters.iter().any(|one| one["in"] == "path"), open, "{}", resource.path);
                assert!(!operation["security"].as_array().unwrap().is_empty());
            }
        }
        assert_eq!(described["servers"][0]["url"], "https://localhost:9164/management");
    }
}
