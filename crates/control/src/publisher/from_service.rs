//! APIs made from services of the service catalog.

use serde_json::{Map, Value, json};

use super::api::{self, created, of_call};
use super::{asyncapi, definition, given, members};
use crate::catalog::services;
use crate::http::Response;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] =
    &[("POST", "/apis/import-service", import), ("PUT", "/apis/{apiId}/reimport-service", reimport)];

/// A service by its key.
fn service(tx: &Transaction<'_>, call: &Call<'_>, key: &str) -> Result<Object, Problem> {
    let missing = || Problem::new(404, 404, "Not Found", format!("Requested Service with key '{key}' not found"));
    tx.find(Kind::Service, call.organization(), key)?.ok_or_else(missing)
}

/// What the definition of a service says of an API: its type, its operations, and the file.
fn described(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    service: &Object,
    known: &[Value],
) -> Result<(&'static str, Value, File), Problem> {
    let missing = || Problem::bad_request(format!("The service {} has no definition", service.name));
    let content = tx.file(&service.id, services::DEFINITION)?.ok_or_else(missing)?.content;
    match service.text("definitionType") {
        "OAS2" | "OAS3" => {
            let described = definition::read(call, &content)?;
            Ok(("HTTP", definition::overlaid(&described, known), described.file))
        }
        "ASYNC_API" => {
            let (operations, file) = asyncapi::imported(call, &content, known)?;
            Ok((asyncapi::kind_of(call, &content)?, operations, file))
        }
        other => Err(Problem::bad_request(format!("APIs are not made from services with a definition of {other}"))),
    }
}

/// What an API keeps of the service that it was made from.
fn info(service: &Object) -> Value {
    json!({
        "key": service.unique_key, "name": service.name, "version": service.text("version"), "outdated": false,
        "md5": service.text("md5"),
    })
}

fn endpoint(service: &Object, kind: &str) -> Value {
    let url = json!({"url": service.text("serviceUrl")});
    match kind {
        "WS" => json!({"endpoint_type": "ws", "production_endpoints": url}),
        _ => json!({"endpoint_type": "http", "production_endpoints": url, "sandbox_endpoints": url}),
    }
}

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let key = call.needed("serviceKey")?;
    let mut body: Map<String, Value> = match call.request.body.is_empty() {
        true => Map::new(),
        false => schema::body(call.request, members::MEMBERS, &[])?,
    };
    let api = call.control.store.change(|tx| {
        let service = service(tx, call, key)?;
        let (kind, operations, file) = described(tx, call, &service, api::operations(&body))?;
        given::set_default(&mut body, "name", service.name.as_str().into());
        given::set_default(&mut body, "version", service.text("version").into());
        given::set_default(&mut body, "context", format!("/{}", service.name.to_lowercase()).into());
        given::set_default(&mut body, "endpointConfig", endpoint(&service, kind));
        body.insert("type".into(), kind.into());
        body.insert("operations".into(), operations);
        body.insert("serviceInfo".into(), info(&service));
        let api = api::create_in(tx, &call.caller, std::mem::take(&mut body), Some(file))?;
        refresh(tx, &api)?;
        Ok(api)
    })?;
    Ok(created(&api, "/apis"))
}

fn refresh(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    if asyncapi::is_async(api) { asyncapi::refresh(tx, api) } else { definition::refresh(tx, api) }
}

/// Takes definition and address of the service again that an API was made from.
fn reimport(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        let key = api.document.get("serviceInfo").and_then(|info| info.get("key")?.as_str()).map(str::to_owned);
        let key = key.ok_or_else(|| Problem::bad_request("The API was not made from a service"))?;
        let service = service(tx, call, &key)?;
        let (kind, operations, file) = described(tx, call, &service, api::operations(&api.document))?;
        let before = api.document.clone();
        api.set("operations", operations);
        super::products::check_used_operations(tx, &api, &before)?;
        api.set("serviceInfo", info(&service));
        let fresh = endpoint(&service, kind);
        match api.document.get_mut("endpointConfig") {
            Some(Value::Object(config)) => config.extend(fresh.as_object().cloned().unwrap_or_default()),
            _ => api.set("endpointConfig", fresh),
        }
        api.set("updatedBy", call.caller.shown());
        tx.put_file(&api.organization, &api.id, &file)?;
        refresh(tx, &api)?;
        tx.update(&mut api)?;
        Ok(api)
    })?;
    Ok(Response::json(200, &api::body(&api)))
}
