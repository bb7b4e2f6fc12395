//! GraphQL APIs: their schema, the operations in it, and the complexity of fields.

use penstock_graphql::{OperationKind, Schema, position};
use serde_json::{Map, Value, json};

use super::api::{self, created, of_call};
use super::given::{self, Given};
use super::{archive, introspection, members};
use crate::http::Response;
use crate::identity::shown;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{File, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/import-graphql-schema", import),
    ("POST", "/apis/validate-graphql-schema", validate),
    ("GET", "/apis/{apiId}/graphql-schema", get),
    ("PUT", "/apis/{apiId}/graphql-schema", put),
    ("GET", "/apis/{apiId}/graphql-policies/complexity", complexity),
    ("PUT", "/apis/{apiId}/graphql-policies/complexity", set_complexity),
    ("GET", "/apis/{apiId}/graphql-policies/complexity/types", types),
];

/// Where the schema is kept, and its place in a project.
pub(crate) const SCHEMA: &str = "Definitions/schema.graphql";

/// What fields count for the complexity of a query.
pub(crate) const COMPLEXITY: &str = "Definitions/graphql-complexity.yaml";

const EXTENSIONS: [&str; 4] = [".graphql", ".txt", ".sdl", ".graphqls"];

/// A schema that was read.
struct Described {
    schema: Schema,
    text: String,
}

impl Described {
    /// Reads a schema; every mistake in it is an error of the problem.
    fn read(text: &[u8]) -> Result<Described, Problem> {
        let mut problem =
            Problem::rejected(903_230, "Error occurred while importing the API. Invalid GraphQL schema", "");
        let text = match std::str::from_utf8(text) {
            Ok(text) if !text.trim().is_empty() => text,
            Ok(_) => {
                let why = "GraphQL Schema cannot be empty or null";
                return Err(Problem::rejected(900_871, "GraphQL Schema cannot be empty or null", why));
            }
            Err(_) => {
                problem.description = "The schema is not UTF-8".to_owned();
                return Err(problem);
            }
        };
        match Schema::parse(text) {
            Ok(schema) => Ok(Described { schema, text: text.to_owned() }),
            Err(mistakes) => {
                let described: Vec<String> = mistakes
                    .iter()
                    .map(|mistake| {
                        let (line, column) = position(text, mistake.offset);
                        format!("line {line}, column {column}: {}", mistake.message)
                    })
                    .collect();
                problem.description = format!("Invalid GraphQL schema definition found. {}", described.join("; "));
                Err(problem)
            }
        }
    }

    /// The operations of the schema, by kind and name; those that are known stay as they are.
    fn operations(&self, known: &[Value]) -> Value {
        let mut operations = Vec::new();
        for kind in OperationKind::ALL {
            let mut names: Vec<&str> = self.schema.operations(kind).collect();
            names.sort_unstable();
            for name in names {
                let same = |known: &&Value| {
                    let target = known.get("target").and_then(Value::as_str).unwrap_or_default();
                    known.get("verb").is_some_and(|verb| verb == kind.verb()) && target.trim_start_matches('/') == name
                };
                operations.push(known.iter().find(same).cloned().unwrap_or_else(|| {
                    let mut given = Map::new();
                    given.insert("target".into(), name.into());
                    given.insert("verb".into(), kind.verb().into());
                    Value::Object(members::operation(&given))
                }));
            }
        }
        Value::Array(operations)
    }
}

/// The schema of a project that is imported.
pub(super) fn operations_of(text: &[u8], known: &[Value]) -> Result<Value, Problem> {
    Ok(Described::read(text)?.operations(known))
}

/// The schema in a form: a file, an address, or an address that is asked by introspection.
fn schema_of(call: &Call<'_>, uses_introspection: bool) -> Result<Given, Problem> {
    let parts = archive::parts(call)?;
    match given::text(&parts, "url") {
        Some(url) if uses_introspection && given::part(&parts, "file").is_none() => {
            let content = introspection::schema(call, &url)?.into();
            Ok(Given { content, name: url })
        }
        _ => {
            let given = given::definition(call, &parts, "schema")?;
            check_extension(&given)?;
            Ok(given)
        }
    }
}

fn check_extension(given: &Given) -> Result<(), Problem> {
    let is_file = !given.name.is_empty() && !given.name.contains("://");
    if is_file && !EXTENSIONS.iter().any(|extension| given.name.to_ascii_lowercase().ends_with(extension)) {
        let text = "Unsupported extension. Only supported extensions are .graphql, .txt and .sdl";
        return Err(Problem::rejected(900_872, "Unsupported GraphQL Schema File Extension", text));
    }
    Ok(())
}

fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let read = schema_of(call, call.query.flag("useIntrospection")).and_then(|given| Described::read(&given.content));
    let body = match read {
        Ok(described) => json!({
            "isValid": true, "errorMessage": "",
            "graphQLInfo": {
                "operations": described.operations(&[]),
                "graphQLSchema": {"name": null, "schemaDefinition": described.text},
            },
        }),
        // Without a definition there is nothing to validate.
        Err(problem) if problem.code == 400 => return Err(problem),
        Err(problem) => json!({"isValid": false, "errorMessage": problem.description, "graphQLInfo": null}),
    };
    Ok(Response::json(200, &body))
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, "schema")?;
    check_extension(&given)?;
    let described = Described::read(&given.content)?;
    let mut body = given::additional_properties(&parts)?;
    schema::check(&body, members::MEMBERS, &["name", "context", "version"])?;
    body.insert("type".into(), "GRAPHQL".into());
    body.insert("operations".into(), described.operations(api::operations(&body)));
    let file = File::new(SCHEMA, "text/plain", described.text);
    let api = call.control.store.change(|tx| api::create_in(tx, &call.caller, body, Some(file)))?;
    Ok(created(&api, "/apis"))
}

/// A GraphQL API by the id of a path.
fn graphql_api(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let api = of_call(tx, call)?;
    match api.text("type") {
        "GRAPHQL" => Ok(api),
        _ => Err(Problem::rejected(900_870, "This API is not a GraphQL API", "This API is not a GraphQL API")),
    }
}

/// The schema of an API.
fn schema_file(tx: &Transaction<'_>, api: &Object) -> Result<String, Problem> {
    let file = tx.file(&api.id, SCHEMA)?;
    let missing = || Problem::new(404, 404, "Not Found", format!("The API {} has no GraphQL schema", api.name));
    Ok(String::from_utf8_lossy(&file.ok_or_else(missing)?.content).into_owned())
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| schema_body(tx, &graphql_api(tx, call)?))?;
    Ok(Response::json(200, &body))
}

/// The schema as responses have it.
pub(crate) fn schema_body(tx: &Transaction<'_>, api: &Object) -> Result<Value, Problem> {
    let name = format!("{}--{}{}.graphql", shown(&api.owner, &api.organization), api.name, api.text("version"));
    Ok(json!({"name": name, "schemaDefinition": schema_file(tx, api)?}))
}

/// Replaces the schema; operations that stay keep what is known of them.
fn put(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let given = given::definition(call, &parts, "schemaDefinition")?;
    let mut described = Described::read(&given.content)?;
    call.control.store.change(|tx| {
        let mut api = graphql_api(tx, call)?;
        keep_complexity(call, tx, &api, &mut described)?;
        let operations = described.operations(api::operations(&api.document));
        api.set("operations", operations);
        api.set("updatedBy", call.caller.shown());
        tx.put_file(&api.organization, &api.id, &File::new(SCHEMA, "text/plain", described.text.clone()))?;
        tx.update(&mut api)?;
        tx.audit(&api.organization, &call.caller.shown(), "update", crate::store::Kind::Api, &api.id)
    })?;
    Ok(Response::empty(200))
}

/// Removes complexities of fields that a new schema does not have.
fn keep_complexity(
    call: &Call<'_>,
    tx: &Transaction<'_>,
    api: &Object,
    described: &mut Described,
) -> Result<(), Problem> {
    let mut body = complexity_body(call, tx, api)?;
    let Some(list) = body["list"].as_array_mut().filter(|list| !list.is_empty()) else { return Ok(()) };
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    list.retain(|entry| described.schema.set_cost(&text(entry, "type"), &text(entry, "field"), 1).is_ok());
    tx.put_file(&api.organization, &api.id, &File::new(COMPLEXITY, "application/json", body.to_string()))
}

/// What is known of the complexity of an API's fields.
pub(crate) fn complexity_body(call: &Call<'_>, tx: &Transaction<'_>, api: &Object) -> Result<Value, Problem> {
    let Some(file) = tx.file(&api.id, COMPLEXITY)? else { return Ok(json!({"list": []})) };
    let mut parsed = call.control.host.parse_yaml(&file.content).map_err(Problem::caused)?;
    let list = match parsed.get_mut("data") {
        Some(data) => data["list"].take(),
        None => parsed["list"].take(),
    };
    Ok(json!({"list": if list.is_array() { list } else { json!([]) }}))
}

fn complexity(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| complexity_body(call, tx, &graphql_api(tx, call)?))?;
    Ok(Response::json(200, &body))
}

/// The largest complexity of a field: the gateway counts with 32 bits.
const COMPLEXITY_MAX: u64 = u32::MAX as u64;

fn set_complexity(call: &Call<'_>) -> Result<Response, Problem> {
    const MEMBERS: Members = &[("list", Is::List)];
    const ENTRY: Members = &[("type", Is::Text), ("field", Is::Text), ("complexityValue", Is::Number)];
    let given = schema::body(call.request, MEMBERS, &[])?;
    let list = given.get("list").and_then(Value::as_array).cloned().unwrap_or_default();
    for entry in &list {
        let entry = entry.as_object().ok_or_else(|| Problem::invalid("list", "an entry is not an object"))?;
        schema::check(entry, ENTRY, &["type", "field", "complexityValue"])?;
    }
    call.control.store.change(|tx| {
        let api = graphql_api(tx, call)?;
        let mut described = Described::read(schema_file(tx, &api)?.as_bytes())?;
        for entry in list.iter().filter_map(Value::as_object) {
            let value = entry.get("complexityValue").and_then(Value::as_u64).filter(|value| *value <= COMPLEXITY_MAX);
            let value = value.ok_or_else(|| Problem::invalid("complexityValue", "must be a number below 2^32"))?;
            let set = described.schema.set_cost(api::text(entry, "type"), api::text(entry, "field"), value);
            set.map_err(|why| Problem::invalid("list", why))?;
        }
        let content = json!({"list": list}).to_string();
        tx.put_file(&api.organization, &api.id, &File::new(COMPLEXITY, "application/json", content))
    })?;
    Ok(Response::empty(200))
}

fn types(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| types_body(tx, &graphql_api(tx, call)?))?;
    Ok(Response::json(200, &body))
}

/// The types of a schema with their fields.
pub(crate) fn types_body(tx: &Transaction<'_>, api: &Object) -> Result<Value, Problem> {
    let described = Described::read(schema_file(tx, api)?.as_bytes())?;
    let types = described.schema.object_types().into_iter();
    let types: Vec<Value> = types.map(|(name, fields)| json!({"type": name, "fieldList": fields})).collect();
    Ok(json!({"typeList": types}))
}
