//! Definitions of published APIs besides OpenAPI: GraphQL schemas with complexities, WSDL, AsyncAPI with topics.

use serde_json::{Value, json};

use super::apis;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::{api, asyncapi, graphql, soap};
use crate::route::{Call, Registration};
use crate::store::{Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/graphql-schema", schema),
    ("GET", "/apis/{apiId}/graphql-policies/complexity", complexity),
    ("GET", "/apis/{apiId}/graphql-policies/complexity/types", types),
    ("GET", "/apis/{apiId}/wsdl", wsdl),
    ("GET", "/apis/{apiId}/async-api-specification", asynchronous),
    ("GET", "/apis/{apiId}/topics", topics),
];

/// The API of a path that the caller may see.
fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    apis::by_id(tx, call, call.id())
}

fn schema(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| graphql::schema_body(tx, &of_call(tx, call)?))?;
    Ok(Response::of_type(200, "text/plain", body["schemaDefinition"].as_str().unwrap_or_default().to_owned()))
}

fn complexity(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| graphql::complexity_body(call, tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn types(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| graphql::types_body(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn wsdl(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| soap::stored(tx, &of_call(tx, call)?))?;
    Ok(soap::download(file))
}

fn asynchronous(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| asyncapi::stored(tx, &of_call(tx, call)?))?;
    Ok(Response::of_type(200, &file.media_type, file.content))
}

/// The operations of an API whose definition is AsyncAPI.
fn topics(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        asyncapi::stored(tx, &api)?;
        Ok(api)
    })?;
    let topic = |operation: &Value| json!({"apiId": api.id, "name": operation["target"], "type": operation["verb"]});
    let list = api::operations(&api.document).iter().map(topic).collect();
    Ok(Response::json(200, &Page::of(&call.query).cut(&format!("/apis/{}/topics", api.id), list)))
}
