//! API products: resources of several APIs under one context.

use serde_json::{Map, Value};

use super::archive::{Subject, uploaded};
use super::import::{self, Project};
use super::{api, mcp, members};
use crate::http::Response;
use crate::identity::Caller;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{Filter, Kind, Object, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/api-products", list),
    ("POST", "/api-products", create),
    ("GET", "/api-products/{apiProductId}", get),
    ("PUT", "/api-products/{apiProductId}", update),
    ("DELETE", "/api-products/{apiProductId}", delete),
    ("POST", "/api-products/copy-api-products", copy),
    ("POST", "/api-products/import", import_archive),
];

fn body(product: &Object) -> Value {
    let mut body = api::body(product);
    body["state"] = product.state.as_str().into();
    body["apiType"] = "APIPRODUCT".into();
    body
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let query = call.query.get("query").unwrap_or_default();
    let filter = Filter::new(Kind::Api, call.organization()).member("type", &["APIPRODUCT"]);
    api::listed(call, "/api-products", filter.query(&Term::parse(query)).sorted(api::order(call)))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let product = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(&product)))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = api::by_id(tx, &call.caller, call.id(), "API Product")?;
    if api::is_product(&found) { Ok(found) } else { Err(Problem::not_found("API Product", call.id())) }
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, members::MEMBERS, &["name", "context"])?;
    given.insert("type".into(), "APIPRODUCT".into());
    if api::text(&given, "version").is_empty() {
        given.insert("version".into(), "1.0.0".into());
    }
    let product = call.control.store.change(|tx| create_in(tx, &call.caller, given))?;
    let response = Response::json(201, &body(&product));
    Ok(response.with("Location", format!("/api/am/publisher/v4/api-products/{}", product.id)))
}

pub(super) fn create_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    mut given: Map<String, Value>,
) -> Result<Object, Problem> {
    given.insert("operations".into(), Value::Array(operations_of(tx, caller, &given)?));
    name_sources(tx, caller, &mut given)?;
    api::create_in(tx, caller, given, None)
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, members::MEMBERS, &[])?;
    let product = call.control.store.change(|tx| update_in(tx, &call.caller, of_call(tx, call)?, given))?;
    Ok(Response::json(200, &body(&product)))
}

fn update_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    product: Object,
    mut given: Map<String, Value>,
) -> Result<Object, Problem> {
    given.shift_remove("type");
    if given.get("apis").is_none_or(Value::is_null) {
        given.insert("apis".into(), product.document.get("apis").cloned().unwrap_or_default());
    }
    given.insert("operations".into(), Value::Array(operations_of(tx, caller, &given)?));
    name_sources(tx, caller, &mut given)?;
    api::update_in(tx, caller, product, given)
}

const DESCRIPTORS: [&str; 3] = ["api_product.yaml", "api_product.yml", "api_product.json"];

/// Imports a product, and with `importAPIs` the APIs that it is made of.
fn import_archive(call: &Call<'_>) -> Result<Response, Problem> {
    let part = uploaded(call, "file")?;
    let (project, parameters) = Project::read(call, part.content, &DESCRIPTORS)?;
    let (product, revision) = call.control.change_served(|tx| {
        let parameters = parameters.as_ref();
        import_apis(tx, call, &project, parameters)?;
        let (mut data, wanted_state) = import::members_of(call, &project, &DESCRIPTORS, parameters)?;
        import::check_provider(tx, call, &data)?;
        find_sources(tx, call, &mut data)?;
        data.insert("type".into(), "APIPRODUCT".into());
        let overwrite = call.query.flag("overwriteAPIProduct");
        let product = match import::known(tx, call, Subject::Product, &data)? {
            Some(_) if !overwrite => return Err(import::exists(Subject::Product, &data)),
            Some(known) => update_in(tx, &call.caller, known, data)?,
            None => create_in(tx, &call.caller, data)?,
        };
        import::finish(tx, call, product, &project, parameters, &wanted_state, overwrite)
    })?;
    Ok(import::imported(call, Subject::Product, &product, revision.as_ref()))
}

/// Imports the APIs in the archive of a product; those that are there stay unless `overwriteAPIs` is set.
fn import_apis(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    project: &Project,
    parameters: Option<&Value>,
) -> Result<(), Problem> {
    let overwrite = call.query.flag("overwriteAPIs");
    if !overwrite && !call.query.flag("importAPIs") {
        return Ok(());
    }
    let mut folders: Vec<String> = project
        .folder("APIs/")
        .filter_map(|(path, _)| path.split_once('/').map(|(folder, _)| folder.to_owned()))
        .collect();
    folders.sort_unstable();
    folders.dedup();
    for folder in folders {
        let part = project.within(&format!("APIs/{folder}/"));
        let own = parameters.and_then(|parameters| parameters.get("dependentAPIs")?.get(&folder));
        let (data, _) = import::members_of(call, &part, &import::DESCRIPTORS, None)?;
        if overwrite || import::known(tx, call, Subject::Api, &data)?.is_none() {
            import::import_in(tx, call, Subject::Api, &part, own, overwrite)?;
        }
    }
    Ok(())
}

/// The ids of APIs are those of the server that exported; here they are found by name and version.
fn find_sources(tx: &Transaction<'_>, call: &Call<'_>, data: &mut Map<String, Value>) -> Result<(), Problem> {
    let parts = data.get_mut("apis").and_then(Value::as_array_mut).into_iter().flatten();
    for part in parts.filter_map(Value::as_object_mut) {
        match import::known(tx, call, Subject::Api, part)? {
            Some(source) => drop(part.insert("apiId".into(), source.id.into())),
            None => {
                let (name, version) = (api::text(part, "name"), api::text(part, "version"));
                let text = format!("The API {name} {version}, which the product is made of, does not exist");
                return Err(Problem::new(404, 900_308, "API Not Found", text));
            }
        }
    }
    Ok(())
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let product = of_call(tx, call)?;
        api::delete_in(tx, &call.caller, &product)
    })?;
    Ok(Response::empty(200))
}

fn copy(call: &Call<'_>) -> Result<Response, Problem> {
    let (id, version) = (call.needed("apiProductId")?, call.needed("newVersion")?);
    let is_default = call.query.flag("defaultVersion");
    let product = call.control.store.change(|tx| {
        let source = api::by_id(tx, &call.caller, id, "API Product")?;
        api::copy_in(tx, &call.caller, &source, version, is_default)
    })?;
    Ok(Response::json(201, &body(&product)))
}

/// The parts of a product: the id of the API, and target and verb of each resource.
fn resources(document: &Map<String, Value>) -> Vec<(String, Vec<(String, String)>)> {
    let parts = document.get("apis").and_then(Value::as_array).into_iter().flatten();
    let part = |part: &Value| {
        let id = part.get("apiId").and_then(Value::as_str)?.to_owned();
        let operations = part.get("operations").and_then(Value::as_array).into_iter().flatten();
        let operation = |operation: &Value| {
            let text = |name: &str| operation.get(name).and_then(Value::as_str).map(str::to_owned);
            Some((text("target")?, text("verb")?.to_uppercase()))
        };
        Some((id, operations.filter_map(operation).collect()))
    };
    parts.filter_map(part).collect()
}

/// The ids of the APIs that a product is made of.
pub(crate) fn member_ids(document: &Map<String, Value>) -> Vec<String> {
    resources(document).into_iter().map(|(id, _)| id).collect()
}

/// The operations of a product: those of its APIs that it names.
fn operations_of(tx: &Transaction<'_>, caller: &Caller, given: &Map<String, Value>) -> Result<Vec<Value>, Problem> {
    let mut operations = Vec::new();
    for (id, wanted) in resources(given) {
        let source = api::by_id(tx, caller, &id, "API")?;
        if source.state == "RETIRED" || api::is_product(&source) {
            return Err(Problem::bad_request(format!("The API {} cannot be part of a product", source.name)));
        }
        for (target, verb) in wanted {
            let found = api::operations(&source.document).iter().find(|known| {
                known["target"] == target.as_str()
                    && known["verb"].as_str().is_some_and(|known| known.eq_ignore_ascii_case(&verb))
            });
            let found = found.ok_or_else(|| {
                Problem::bad_request(format!("The API {} has no operation {verb} {target}", source.name))
            })?;
            operations.push(found.clone());
        }
    }
    if operations.is_empty() {
        return Err(Problem::invalid("apis", "a product needs at least one resource of an API"));
    }
    Ok(operations)
}

/// Says name and version of each API of a product: an archive of it names them by these.
fn name_sources(tx: &Transaction<'_>, caller: &Caller, given: &mut Map<String, Value>) -> Result<(), Problem> {
    let parts = given.get_mut("apis").and_then(Value::as_array_mut).into_iter().flatten();
    for part in parts.filter_map(Value::as_object_mut) {
        let source = api::by_id(tx, caller, api::text(part, "apiId"), "API")?;
        part.insert("name".into(), source.name.as_str().into());
        part.insert("version".into(), source.text("version").into());
    }
    Ok(())
}

/// The APIs that a product is made of.
pub(super) fn sources(tx: &Transaction<'_>, product: &Object) -> Result<Vec<Object>, Problem> {
    let mut found = Vec::new();
    for (id, _) in resources(&product.document) {
        found.extend(tx.get(Kind::Api, &product.organization, &id)?);
    }
    Ok(found)
}

/// The products that an API is part of.
fn products_with(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    let products = tx.list(&Filter::new(Kind::Api, &api.organization).member("type", &["APIPRODUCT"]))?;
    Ok(products
        .into_iter()
        .filter(|product| resources(&product.document).iter().any(|(id, _)| *id == api.id))
        .collect())
}

/// An API that a product is made of, or that the tools of an MCP server call, cannot be removed.
pub(super) fn check_unused(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    if let Some(server) = mcp::servers_of(tx, api)?.first() {
        let text = format!("Cannot remove the API {} as it is used by the MCP Server {}", api.name, server.name);
        return Err(Problem::conflict(409, "Conflict", text));
    }
    match products_with(tx, api)?.first() {
        None => Ok(()),
        Some(product) => {
            let text = format!("Cannot remove the API {} as it is used by the API Product {}", api.name, product.name);
            Err(Problem::conflict(900_344, "API is used by API Products", text))
        }
    }
}

/// An operation that a product has cannot be removed from its API.
pub(super) fn check_used_operations(
    tx: &Transaction<'_>,
    api: &Object,
    before: &Map<String, Value>,
) -> Result<(), Problem> {
    let key = |operation: &Value| {
        let text = |name: &str| operation.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("target"), text("verb").to_uppercase())
    };
    let now: Vec<_> = api::operations(&api.document).iter().map(key).collect();
    let removed: Vec<_> = api::operations(before).iter().map(key).filter(|known| !now.contains(known)).collect();
    if removed.is_empty() || api::is_product(api) {
        return Ok(());
    }
    for product in products_with(tx, api)? {
        let uses = resources(&product.document).into_iter().filter(|(id, _)| *id == api.id);
        if let Some((target, verb)) = uses.flat_map(|(_, wanted)| wanted).find(|wanted| removed.contains(wanted)) {
            let text = format!("The operation {verb} {target} is used by the API Product {}", product.name);
            return Err(Problem::conflict(900_344, "API resource is used by API Products", text));
        }
    }
    Ok(())
}
