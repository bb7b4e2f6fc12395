//! OpenAPI 3.0.1 of the resources, in the layout of Micro Integrator: path and query parameters, a sample body in a member
//! `payload`, and a default response. Operations are described by the WSDL only.

use serde_json::{Map, Value, json};

use super::{RequestParameter, parameters};
use crate::model::{DataService, RestResource, Segment};
use crate::parameter::SqlType;

/// The definition; its `servers` are those of the request.
pub fn openapi(service: &DataService) -> Value {
    let mut paths = Map::new();
    for resource in &service.resources {
        let path = format!("/{}", resource.written.trim_start_matches('/'));
        let item = paths.entry(path).or_insert_with(|| Value::Object(Map::new()));
        let method = resource.method.as_str().to_lowercase();
        let parameters = parameters(service, &service.operations[resource.operation]);
        item[method.as_str()] = operation(resource, &method, &parameters);
    }
    json!({
        "openapi": "3.0.1",
        "info": {
            "title": &*service.name,
            "description": format!("API Definition of dataservice : {}", service.name),
            "version": "1.0",
        },
        "servers": [],
        "paths": paths,
    })
}

fn operation(resource: &RestResource, method: &str, parameters: &[RequestParameter]) -> Value {
    let is_in_path = |parameter: &RequestParameter| {
        let is_it = |segment: &Segment| matches!(segment, Segment::Variable(name) if name.eq_ignore_ascii_case(&parameter.name));
        resource.path.iter().any(is_it)
    };
    let has_body = !matches!(method, "get" | "delete");
    let mut listed = Vec::new();
    for parameter in parameters {
        let place = match (is_in_path(parameter), method) {
            (true, _) => "path",
            (false, "get") => "query",
            _ => continue,
        };
        let schema = schema(parameter);
        listed.push(json!({ "name": &*parameter.name, "in": place, "required": true, "schema": schema }));
    }
    let mut operation = Map::new();
    if !listed.is_empty() {
        operation.insert("parameters".to_owned(), listed.into());
    }
    if has_body {
        let members = parameters.iter().map(|parameter| (parameter.name.to_string(), schema(parameter)));
        let payload = json!({ "type": "object", "properties": members.collect::<Map<_, _>>() });
        let schema = json!({ "type": "object", "properties": { "payload": payload } });
        let body = json!({
            "description": "Sample Payload",
            "content": { "application/json": { "schema": schema } },
            "required": false,
        });
        operation.insert("requestBody".to_owned(), body);
    }
    operation.insert("responses".to_owned(), json!({ "default": { "description": "Default response" } }));
    Value::Object(operation)
}

fn schema(parameter: &RequestParameter) -> Value {
    let name = match parameter.kind {
        SqlType::Integer(..) => "integer",
        SqlType::Double | SqlType::Decimal => "number",
        SqlType::Boolean => "boolean",
        _ => "string",
    };
    match name {
        "integer" => json!({ "type": name, "format": "int32" }),
        _ => json!({ "type": name }),
    }
}
