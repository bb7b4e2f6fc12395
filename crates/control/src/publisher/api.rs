//! APIs: create, read, list, update, delete.

use serde_json::{Map, Value, json};

use super::{asyncapi, definition, endpoints, members, policies};
use crate::clock;
use crate::http::Response;
use crate::identity::{Caller, shown, users};
use crate::page::Page;
use crate::problem::Problem;
use crate::random;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Filter, Kind, Object, Order, Term, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis", list),
    ("POST", "/apis", create),
    ("GET", "/apis/{apiId}", get),
    ("PUT", "/apis/{apiId}", update),
    ("DELETE", "/apis/{apiId}", delete),
    ("POST", "/apis/validate", validate),
    ("POST", "/apis/copy-api", copy),
    ("GET", "/search", search),
    ("GET", "/apis/{apiId}/thumbnail", thumbnail),
    ("PUT", "/apis/{apiId}/thumbnail", set_thumbnail),
    ("POST", "/apis/{apiId}/generate-key", generate_key),
    ("POST", "/mcp-servers/validate", validate),
    ("GET", "/mcp-servers/{mcpServerId}/thumbnail", thumbnail),
    ("PUT", "/mcp-servers/{mcpServerId}/thumbnail", set_thumbnail),
    ("POST", "/mcp-servers/{mcpServerId}/generate-key", generate_key),
    ("GET", "/api-products/{apiProductId}/thumbnail", thumbnail),
    ("PUT", "/api-products/{apiProductId}/thumbnail", set_thumbnail),
];

/// Characters that names must not contain.
const NAME_FORBIDDEN: &str = "~!@#;:%^*()+={}|\\<>\"',&$[]/";

const NAME_CHARS_MAX: usize = 60;

/// A thumbnail is a small picture.
const THUMBNAIL_BYTES_MAX: usize = 1 << 20;

pub(crate) const THUMBNAIL: &str = "Image/icon";

/// Seconds an internal key lasts: it is for trying an API out.
const INTERNAL_KEY_S: u64 = 60_000;

/// Members that hold secrets, wherever they are in `endpointConfig`.
const SECRETS: [&str; 4] = ["password", "clientSecret", "apiKeyValue", "secretKey"];

/// Members of the document that responses do not have.
const INTERNAL: [&str; 7] = [
    "lastRevision",
    "lifecycleHistory",
    "updatedBy",
    crate::labels::LABELS,
    crate::devportal::ratings::AVERAGE,
    super::mcp::BACKENDS,
    endpoints::ENDPOINTS,
];

/// The API of a path; one that the caller must not see is not found, or forbidden by access control.
pub(crate) fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    by_id(tx, &call.caller, call.id(), "API")
}

/// An API by id that the caller may see.
pub(crate) fn by_id(tx: &Transaction<'_>, caller: &Caller, id: &str, what: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Api, &caller.organization, id)?;
    let found = found.ok_or_else(|| Problem::not_found(what, id))?;
    if !may_edit(caller, &found) {
        return Err(Problem::new(403, 900_340, "Forbidden", format!("User is not authorized to access the {what}")));
    }
    Ok(found)
}

/// Whether the access control of an API lets a publisher see it.
fn may_edit(caller: &Caller, api: &Object) -> bool {
    api.text("accessControl") != "RESTRICTED"
        || caller.is_admin()
        || api.owner == caller.name
        || caller.has_role_of(&api.texts("accessControlRoles"))
}

/// Whether an object is an API product or an MCP server.
pub(crate) fn is_product(api: &Object) -> bool {
    api.text("type") == "APIPRODUCT"
}

/// The API as responses have it: secrets are left out.
pub(crate) fn body(api: &Object) -> Value {
    let mut body = members::defaults();
    for (name, value) in &api.document {
        if !INTERNAL.contains(&name.as_str()) {
            body.insert(name.clone(), value.clone());
        }
    }
    body.insert("id".into(), api.id.as_str().into());
    body.insert("name".into(), api.name.as_str().into());
    body.insert("provider".into(), shown(&api.owner, &api.organization).into());
    body.insert("lifeCycleStatus".into(), api.state.as_str().into());
    body.insert("createdTime".into(), api.created_ms.to_string().into());
    body.insert("lastUpdatedTimestamp".into(), api.updated_ms.to_string().into());
    body.insert("lastUpdatedTime".into(), clock::shown(api.updated_ms).into());
    if let Some(config) = body.get_mut("endpointConfig") {
        without_secrets(config);
    }
    Value::Object(body)
}

pub(super) fn without_secrets(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if SECRETS.contains(&name.as_str()) && value.is_string() {
                    *value = "".into();
                } else {
                    without_secrets(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_secrets),
        _ => {}
    }
}

/// Puts secrets back that a client sent as it got them, which is empty.
pub(super) fn keep_secrets(new: &mut Value, old: &Value) {
    let (Value::Object(new), Value::Object(old)) = (new, old) else { return };
    for (name, value) in new.iter_mut() {
        let Some(before) = old.get(name) else { continue };
        if SECRETS.contains(&name.as_str()) && value.as_str() == Some("") {
            *value = before.clone();
        } else {
            keep_secrets(value, before);
        }
    }
}

/// The entry of a list.
pub(crate) fn info(api: &Object) -> Value {
    let member = |name: &str| api.document.get(name).cloned().unwrap_or_default();
    let business = |name: &str| {
        api.document.get("businessInformation").and_then(|info| info.get(name)).cloned().unwrap_or_default()
    };
    json!({
        "id": api.id, "name": api.name, "displayName": member("displayName"), "description": member("description"),
        "context": member("context"), "additionalProperties": member("additionalProperties"),
        "additionalPropertiesMap": member("additionalPropertiesMap"), "version": member("version"),
        "provider": shown(&api.owner, &api.organization), "type": member("type"), "subtype": "DEFAULT",
        "audience": member("audience"), "audiences": member("audiences"), "lifeCycleStatus": api.state,
        "workflowStatus": member("workflowStatus"), "hasThumbnail": api.flag("hasThumbnail"), "securityScheme": member("securityScheme"),
        "createdTime": api.created_ms.to_string(), "updatedTime": api.updated_ms.to_string(),
        "updatedBy": member("updatedBy"), "gatewayVendor": "wso2", "gatewayType": member("gatewayType"),
        "advertiseOnly": advertised(&api.document), "monetizedInfo": false, "businessOwner": business("businessOwner"),
        "businessOwnerEmail": business("businessOwnerEmail"), "TechnicalOwner": business("technicalOwner"),
        "TechnicalOwnerEmail": business("technicalOwnerEmail"), "egress": false, "initiatedFromGateway": false,
    })
}

/// Whether an API is only advertised, and served elsewhere.
pub(crate) fn advertised(document: &Map<String, Value>) -> bool {
    let info = document.get("advertiseInfo");
    info.and_then(|info| info.get("advertised")).and_then(Value::as_bool).unwrap_or_default()
}

/// The order that a query asks for.
pub(crate) fn order(call: &Call<'_>) -> Order {
    let descending = call.query.get("sortOrder").is_some_and(|order| order.eq_ignore_ascii_case("desc"));
    match call.query.get("sortBy") {
        Some("createdTime") => Order::Created { descending },
        Some(_) => Order::Name { descending },
        None => Order::Created { descending: true },
    }
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let query = call.query.get("query").unwrap_or_default();
    let filter = Filter::new(Kind::Api, call.organization()).query(&Term::parse(query)).sorted(order(call));
    let filter = with_type(filter, &["APIPRODUCT", "MCP"], false);
    listed(call, "/apis", filter)
}

/// With APIs of some types, or without them.
fn with_type(filter: Filter, types: &[&str], wanted: bool) -> Filter {
    if wanted { filter.member("type", types) } else { filter.without_member("type", types) }
}

/// A page of APIs.
pub(super) fn listed(call: &Call<'_>, path: &str, filter: Filter) -> Result<Response, Problem> {
    page_of(call, path, editable(call, filter), info)
}

/// What the caller may change of the objects of a filter: everything when it is an administrator.
fn editable(call: &Call<'_>, filter: Filter) -> Filter {
    if call.caller.is_admin() { filter } else { filter.editable_by(&call.caller.name, &call.caller.roles) }
}

/// The page of a list that the request wants; the links repeat its search terms.
pub(crate) fn page_of(
    call: &Call<'_>,
    path: &str,
    filter: Filter,
    info: impl Fn(&Object) -> Value,
) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let query = call.query.get("query").unwrap_or_default();
    let (found, total) = call.control.store.read(|tx| {
        let found = tx.list(&filter.clone().page(page.offset, page.limit))?;
        // The last page says how many there are: a search with few results reads the index once.
        let is_last = found.len() < page.limit && (page.offset == 0 || !found.is_empty());
        let total = if is_last { page.offset + found.len() } else { tx.count(&filter)? };
        Ok((found, total))
    })?;
    Ok(Response::json(200, &page.body(path, &[("query", query)], found.iter().map(info).collect(), total)))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| match tx.get(Kind::Revision, call.organization(), call.id())? {
        // The id of a revision gives the API as it was.
        Some(revision) => Ok(super::revisions::api_of(&revision)),
        None => of_call(tx, call),
    })?;
    Ok(Response::json(200, &body(&api)))
}

/// Mixed results: APIs, products and MCP servers by their terms.
fn search(call: &Call<'_>) -> Result<Response, Problem> {
    let query = call.query.get("query").unwrap_or_default();
    let filter = Filter::new(Kind::Api, call.organization()).query(&Term::parse(query)).sorted(order(call));
    let entry = |api: &Object| {
        let mut entry = info(api);
        let kind = api.text("type");
        entry["transportType"] = kind.into();
        entry["type"] = if matches!(kind, "APIPRODUCT" | "MCP") { kind.into() } else { "API".into() };
        entry["status"] = api.state.as_str().into();
        entry["thumbnailUri"] = Value::Null;
        entry
    };
    page_of(call, "/search", editable(call, filter), entry)
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, members::MEMBERS, &["name", "context", "version"])?;
    let api = call.control.store.change(|tx| create_in(tx, &call.caller, given, None))?;
    Ok(created(&api, "/apis"))
}

/// 201 with the address of the API.
pub(super) fn created(api: &Object, path: &str) -> Response {
    Response::json(201, &body(api)).with("Location", format!("/api/am/publisher/v4{path}/{}", api.id))
}

/// The scopes of callers that may name another provider than themselves.
const IMPORT_SCOPES: [&str; 4] =
    ["apim:admin", "apim:api_import_export", "apim:api_product_import_export", "apim:mcp_server_import_export"];

/// Creates an API from what a client gave. Without a definition one is generated.
pub(super) fn create_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    given: Map<String, Value>,
    api_definition: Option<File>,
) -> Result<Object, Problem> {
    let provider = given.get("provider").and_then(Value::as_str).filter(|provider| !provider.is_empty());
    let owner = match provider {
        Some(provider) if IMPORT_SCOPES.iter().any(|scope| caller.has(scope)) => users::identify(tx, provider)?.0,
        _ => caller.name.clone(),
    };
    let state = match given.get("lifeCycleStatus").and_then(Value::as_str) {
        Some("PROTOTYPED") => "PROTOTYPED",
        _ => "CREATED",
    };
    let mut document = members::defaults();
    merge(&mut document, given);
    normalize(&mut document);
    let name = text(&document, "name").to_owned();
    let mut api = Object::new(Kind::Api, &caller.organization, &name, document).owned(&owner);
    api.state = state.to_owned();
    check_names(tx, &api)?;
    check(tx, caller, &api)?;
    if operations(&api.document).is_empty() {
        api.set("operations", Value::Array(members::default_operations(api.text("type"))));
    }
    finish(&mut api, caller);
    super::lifecycle::record_creation(&mut api, caller);
    let key = unique_key(&api);
    let api = api.keyed(key);
    if tx.insert(&api)?.is_none() {
        return Err(Problem::conflict(900_300, "The API already exists.", "The API already exists"));
    }
    if api.flag("isDefaultVersion") {
        only_default(tx, &api)?;
    }
    let file = match api_definition {
        Some(file) => Some(file),
        None if has_http_operations(&api) => Some(definition::generated(&api)),
        None if asyncapi::is_async(&api) => Some(asyncapi::generated(&api)),
        None => None,
    };
    if let Some(file) = file {
        tx.put_file(&api.organization, &api.id, &file)?;
    }
    tx.audit(&api.organization, &caller.shown(), "create", Kind::Api, &api.id)?;
    Ok(api)
}

/// Whether an API has operations with HTTP methods, and a definition that is generated from them.
pub(super) fn has_http_operations(api: &Object) -> bool {
    matches!(api.text("type"), "HTTP" | "SOAP" | "SOAPTOREST" | "APIPRODUCT")
}

/// What name and version must not share with another API; products are apart from APIs.
fn unique_key(api: &Object) -> String {
    format!("{}:{}", api.name.to_lowercase(), api.text("version"))
}

/// Takes what a client gave; `null` keeps the default.
fn merge(document: &mut Map<String, Value>, given: Map<String, Value>) {
    for (name, value) in given {
        if !value.is_null() {
            document.insert(name, value);
        }
    }
}

/// Brings members into the form that is kept.
fn normalize(document: &mut Map<String, Value>) {
    let context = text(document, "context").trim();
    let context = if context.starts_with('/') { context.to_owned() } else { format!("/{context}") };
    document.insert("context".into(), context.into());
    for name in ["name", "version"] {
        let trimmed = text(document, name).trim().to_owned();
        document.insert(name.into(), trimmed.into());
    }
    for name in ["visibleRoles", "accessControlRoles"] {
        let roles: Vec<String> = users::texts(document.get(name)).iter().map(|role| role.to_lowercase()).collect();
        document.insert(name.into(), json!(roles));
    }
    if let Some(Value::Object(cors)) = document.get_mut("corsConfiguration") {
        for name in ["accessControlAllowOrigins", "accessControlAllowHeaders", "accessControlAllowMethods"] {
            let list = cors.entry(name).or_insert(Value::Null);
            if list.is_null() {
                *list = json!([]);
            }
        }
    }
    let properties = document.get("additionalProperties").and_then(Value::as_array).cloned().unwrap_or_default();
    let by_name = properties.into_iter().filter_map(|property| {
        let name = property.get("name")?.as_str()?.to_owned();
        Some((name, property))
    });
    document.insert("additionalPropertiesMap".into(), Value::Object(by_name.collect()));
    let completed: Vec<Value> = operations(document)
        .iter()
        .filter_map(Value::as_object)
        .map(|operation| Value::Object(members::operation(operation)))
        .collect();
    document.insert("operations".into(), Value::Array(completed));
}

/// What is not the client's to say.
fn finish(api: &mut Object, caller: &Caller) {
    for name in ["id", "provider", "lifeCycleStatus", "createdTime", "lastUpdatedTime", "lastUpdatedTimestamp"] {
        api.document.shift_remove(name);
    }
    for name in ["isRevision", "initiatedFromGateway"] {
        api.set(name, false);
    }
    api.set("revisionId", 0);
    api.set("revisionedApiId", Value::Null);
    api.set("workflowStatus", Value::Null);
    api.set("updatedBy", caller.shown());
}

pub(crate) fn text<'d>(document: &'d Map<String, Value>, name: &str) -> &'d str {
    document.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The operations of an API.
pub(crate) fn operations(document: &Map<String, Value>) -> &[Value] {
    document.get("operations").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What must hold for the name, version and context of a new API, in the order in which clients see it.
fn check_names(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    let (name, version, context) = (api.name.as_str(), api.text("version"), api.text("context"));
    if name.is_empty() || name.contains(|letter| NAME_FORBIDDEN.contains(letter)) {
        return Err(Problem::invalid("name", "the name is empty or contains a character that names must not contain"));
    }
    if name.chars().count() > NAME_CHARS_MAX {
        return Err(Problem::invalid("name", format!("the name must not be longer than {NAME_CHARS_MAX} characters")));
    }
    if version.is_empty() || version.contains(|letter: char| NAME_FORBIDDEN.contains(letter) || letter.is_whitespace())
    {
        return Err(Problem::invalid("version", "the version contains a character that versions must not contain"));
    }
    check_context(context)?;
    let same_name = tx.list(&Filter::new(Kind::Api, &api.organization).named(name))?;
    if let Some(other) = same_name.first() {
        if other.name != name {
            let text = format!("An API with name '{name}' already exists");
            return Err(Problem::conflict(900_250, "The API name already exists.", text));
        }
        if same_name.iter().any(|other| other.text("version") == version) {
            return Err(Problem::conflict(900_300, "The API already exists.", "The API already exists"));
        }
        if !other.text("context").eq_ignore_ascii_case(context) {
            return Err(Problem::bad_request("API Context does not exist"));
        }
    }
    let taken = tx.list(&Filter::new(Kind::Api, &api.organization).member("context", &[context]))?;
    if taken.iter().any(|other| other.name != name) {
        let text = format!("An API with context '{context}' already exists");
        return Err(Problem::conflict(900_251, "The API context already exists.", text));
    }
    Ok(())
}

/// A context is a path; `{version}` is a whole segment of it.
fn check_context(context: &str) -> Result<(), Problem> {
    let malformed = |why: &str| Problem::rejected(900_253, "The API context is malformed.", format!("'{why}'"));
    if context.len() > 1 && context.ends_with('/') {
        return Err(Problem::rejected(900_346, "Bad Request", "The context of an API cannot end with '/' character"));
    }
    let segments: Vec<&str> = context.trim_start_matches('/').split('/').collect();
    for segment in segments {
        let plain = if segment == "{version}" { "" } else { segment };
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.~@:()$'+!*,;".contains(letter);
        if matches!(segment, "" | "." | "..") || !plain.chars().all(is_allowed) {
            return Err(malformed(&format!("{context} is not a path of the characters that contexts may have")));
        }
        let depth = plain.chars().try_fold(0_i32, |depth, letter| match letter {
            '(' => Some(depth + 1),
            ')' if depth == 0 => None,
            ')' => Some(depth - 1),
            _ => Some(depth),
        });
        if depth != Some(0) {
            return Err(malformed("Unbalanced parenthesis cannot be used in API context"));
        }
    }
    Ok(())
}

/// What must hold for an API that is created or changed.
fn check(tx: &Transaction<'_>, caller: &Caller, api: &Object) -> Result<(), Problem> {
    let organization = caller.organization.as_str();
    for (member, control, restricted) in
        [("visibleRoles", "visibility", "RESTRICTED"), ("accessControlRoles", "accessControl", "RESTRICTED")]
    {
        let roles = api.texts(member);
        if api.text(control) == restricted && roles.is_empty() {
            let text =
                "Valid roles should be added under 'visibleRoles' or 'accessControlRoles' when access is restricted";
            return Err(Problem::rejected(900_602, "Roles are missing", text));
        }
        let unknown = users::unknown_roles(tx, organization, &roles)?;
        if !unknown.is_empty() {
            return Err(Problem::rejected(
                900_610,
                "Invalid user roles",
                format!("Unknown roles: {}", unknown.join(", ")),
            ));
        }
    }
    for name in api.texts("policies") {
        if !crate::admin::throttling::exists(tx, organization, "subscription", name)? {
            let text = format!("The tier name is invalid: {name}");
            return Err(Problem::rejected(900_305, "The tier name is invalid.", text));
        }
    }
    for name in api.texts("categories") {
        if tx.find(Kind::Category, organization, &name.to_lowercase())?.is_none() {
            return Err(Problem::bad_request(format!("Invalid API Category name(s) defined: {name}")));
        }
    }
    check_endpoint_urls(api.document.get("endpointConfig"))?;
    policies::check_uses(tx, api)
}

/// The addresses in `endpointConfig` must be addresses.
pub(super) fn check_endpoint_urls(config: Option<&Value>) -> Result<(), Problem> {
    for url in endpoint_urls(config) {
        let scheme = url.split_once("://").map(|(scheme, rest)| (scheme, !rest.is_empty()));
        if !matches!(scheme, Some(("http" | "https" | "ws" | "wss" | "jms" | "grpc", true))) && !url.starts_with("jms:")
        {
            let text = format!("Invalid/Malformed endpoint URL(s) detected: {url}");
            return Err(Problem::rejected(900_346, "Bad Request", text));
        }
    }
    Ok(())
}

/// The addresses in `endpointConfig`.
pub(super) fn endpoint_urls(config: Option<&Value>) -> Vec<&str> {
    let Some(config) = config.filter(|config| {
        let kind = config.get("endpoint_type").and_then(Value::as_str);
        matches!(kind, Some("http" | "address" | "load_balance" | "failover" | "graphql" | "ws"))
    }) else {
        return Vec::new();
    };
    let names = ["production_endpoints", "sandbox_endpoints", "production_failovers", "sandbox_failovers"];
    let endpoints = names.iter().filter_map(|name| config.get(name)).flat_map(|value| match value {
        Value::Array(items) => items.iter().collect::<Vec<_>>(),
        one => vec![one],
    });
    endpoints.filter_map(|endpoint| endpoint.get("url")?.as_str()).filter(|url| !url.is_empty()).collect()
}

/// Whether an API has a backend, or needs none.
pub(super) fn has_backend(api: &Object) -> bool {
    let without = advertised(&api.document) || api.text("endpointImplementationType") != "ENDPOINT";
    let kind =
        api.document.get("endpointConfig").and_then(|config| config.get("endpoint_type")).and_then(Value::as_str);
    without
        || matches!(api.text("type"), "APIPRODUCT" | "MCP" | "WEBSUB")
        || matches!(kind, Some("default" | "awslambda" | "service" | "sequence_backend"))
        || !endpoint_urls(api.document.get("endpointConfig")).is_empty()
        || api.document.get("endpointConfig").is_some_and(|config| config.get("production_endpoints").is_some())
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, members::MEMBERS, &[])?;
    let api = call.control.store.change(|tx| {
        let api = of_call(tx, call)?;
        update_in(tx, &call.caller, api, given)
    })?;
    Ok(Response::json(200, &body(&api)))
}

/// Members that a publisher without the right to create APIs may change.
const PUBLISHER_MEMBERS: [&str; 17] = [
    "description",
    "displayName",
    "tags",
    "policies",
    "visibility",
    "visibleRoles",
    "visibleTenants",
    "visibleOrganizations",
    "accessControl",
    "accessControlRoles",
    "businessInformation",
    "subscriptionAvailability",
    "subscriptionAvailableTenants",
    "additionalProperties",
    "categories",
    "isDefaultVersion",
    "monetization",
];

/// Replaces an API; name, version, context and provider stay.
pub(super) fn update_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    mut api: Object,
    given: Map<String, Value>,
) -> Result<Object, Problem> {
    let may_all = ["apim:api_create", "apim:api_manage", "apim:api_import_export", "apim:api_update"];
    let may_all = may_all.iter().any(|scope| caller.has(scope));
    let may_published = ["apim:api_publish", "apim:api_manage", "apim:api_import_export"];
    if !matches!(api.state.as_str(), "CREATED" | "PROTOTYPED") && !may_published.iter().any(|scope| caller.has(scope)) {
        let text = format!("Attempt to update API in {} state without the scope to publish", api.state);
        return Err(Problem::new(403, 900_380, "API update forbidden", text));
    }
    let before = api.document.clone();
    let mut document = members::defaults();
    for (name, value) in given {
        if may_all || PUBLISHER_MEMBERS.contains(&name.as_str()) {
            let keeps = value.is_null() && !matches!(name.as_str(), "endpointConfig" | "apiThrottlingPolicy");
            let default = document.get(&name).cloned().unwrap_or_default();
            let replaced = if keeps { before.get(&name).cloned().unwrap_or(default) } else { value };
            document.insert(name, replaced);
        }
    }
    if !may_all {
        for (name, value) in &before {
            if !PUBLISHER_MEMBERS.contains(&name.as_str()) {
                document.insert(name.clone(), value.clone());
            }
        }
    }
    for name in
        ["context", "version", "name", "type", "hasThumbnail", "wsdlInfo", "serviceInfo"].iter().chain(&INTERNAL)
    {
        match before.get(*name) {
            Some(kept) => drop(document.insert((*name).to_owned(), kept.clone())),
            None => drop(document.shift_remove(*name)),
        }
    }
    if let (Some(new), Some(old)) = (document.get_mut("endpointConfig"), before.get("endpointConfig")) {
        keep_secrets(new, old);
    }
    normalize(&mut document);
    api.document = document;
    check(tx, caller, &api)?;
    super::products::check_used_operations(tx, &api, &before)?;
    finish(&mut api, caller);
    tx.update(&mut api)?;
    if api.flag("isDefaultVersion") {
        only_default(tx, &api)?;
    }
    if has_http_operations(&api) {
        definition::refresh(tx, &api)?;
    } else if asyncapi::is_async(&api) {
        asyncapi::refresh(tx, &api)?;
    }
    tx.audit(&api.organization, &caller.shown(), "update", Kind::Api, &api.id)?;
    Ok(api)
}

/// Makes an API the only default version of its name.
pub(super) fn only_default(tx: &Transaction<'_>, api: &Object) -> Result<(), Problem> {
    for mut other in tx.list(&Filter::new(Kind::Api, &api.organization).named(&api.name))? {
        if other.id != api.id && other.flag("isDefaultVersion") {
            other.set("isDefaultVersion", false);
            tx.update(&mut other)?;
        }
    }
    Ok(())
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.change_served(|tx| {
        let api = of_call(tx, call)?;
        super::products::check_unused(tx, &api)?;
        delete_in(tx, &call.caller, &api)
    })?;
    Ok(Response::empty(200))
}

/// Removes an API with everything that belongs to it.
pub(super) fn delete_in(tx: &Transaction<'_>, caller: &Caller, api: &Object) -> Result<(), Problem> {
    if tx.count(&Filter::new(Kind::Subscription, &api.organization).target(&api.id))? > 0 {
        let text = format!("Cannot remove the API {} as active subscriptions exist", api.id);
        return Err(Problem::conflict(409, "Conflict", text));
    }
    for kind in
        [Kind::Revision, Kind::Document, Kind::Comment, Kind::Rating, Kind::OperationPolicy, Kind::ClientCertificate]
    {
        for part in tx.list(&Filter::new(kind, &api.organization).parent(&api.id))? {
            crate::workflow::forget(tx, &part)?;
            tx.delete(&part)?;
        }
    }
    for key in tx.list(&Filter::new(Kind::ApiKey, &api.organization).target(&api.id))? {
        tx.delete(&key)?;
    }
    crate::workflow::forget(tx, api)?;
    tx.delete(api)?;
    tx.audit(&api.organization, &caller.shown(), "delete", Kind::Api, &api.id)
}

/// 200 when an API fits the query, 404 otherwise.
fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let query = call.needed("query")?;
    let mut terms = Term::parse(query);
    terms.iter_mut().for_each(|term| term.exact = true);
    if let Some(term) = terms.iter_mut().find(|term| term.key == "context" && !term.value.starts_with('/')) {
        term.value.insert(0, '/');
    }
    let filter = Filter::new(Kind::Api, call.organization()).query(&terms);
    match call.control.store.read(|tx| tx.count(&filter))? {
        0 => Err(Problem::new(404, 404, "Not Found", "No API fits the query")),
        _ => Ok(Response::empty(200)),
    }
}

/// A new version of an API.
fn copy(call: &Call<'_>) -> Result<Response, Problem> {
    let (id, version) = (call.needed("apiId")?, call.needed("newVersion")?);
    let is_default = call.query.flag("defaultVersion");
    let api = call.control.store.change(|tx| {
        let source = by_id(tx, &call.caller, id, "API")?;
        copy_in(tx, &call.caller, &source, version, is_default)
    })?;
    Ok(created(&api, "/apis"))
}

pub(super) fn copy_in(
    tx: &Transaction<'_>,
    caller: &Caller,
    source: &Object,
    version: &str,
    is_default: bool,
) -> Result<Object, Problem> {
    if version.is_empty() || version.contains(|letter: char| NAME_FORBIDDEN.contains(letter) || letter.is_whitespace())
    {
        return Err(Problem::invalid("newVersion", "the version contains a character that versions must not contain"));
    }
    let mut api = source.clone();
    (api.id, api.version, api.state) = (random::uuid(), 0, "CREATED".to_owned());
    api.created_ms = clock::now_ms();
    api.updated_ms = api.created_ms;
    api.set("version", version);
    api.set("isDefaultVersion", is_default);
    api.set("updatedBy", caller.shown());
    super::lifecycle::record_creation(&mut api, caller);
    api.unique_key = Some(unique_key(&api));
    if tx.insert(&api)?.is_none() {
        let text = format!("An API with version '{version}' already exists for API '{}'", api.name);
        return Err(Problem::conflict(900_252, "The API version already exists.", text));
    }
    tx.copy_files(&source.id, &api.id)?;
    for mut part in tx.list(&Filter::new(Kind::Document, &api.organization).parent(&source.id))? {
        let old = std::mem::replace(&mut part.id, random::uuid());
        part.parent.clone_from(&api.id);
        part.unique_key = Some(format!("{}:{}", api.id, part.name.to_lowercase()));
        tx.insert(&part)?;
        tx.copy_files(&old, &part.id)?;
    }
    if is_default {
        only_default(tx, &api)?;
    }
    definition::refresh(tx, &api)?;
    tx.audit(&api.organization, &caller.shown(), "copy", Kind::Api, &api.id)?;
    Ok(api)
}

fn thumbnail(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| {
        let api = of_call(tx, call)?;
        tx.file(&api.id, THUMBNAIL)
    })?;
    Ok(match file {
        Some(file) => Response::of_type(200, &file.media_type, file.content),
        None => Response::empty(204),
    })
}

fn set_thumbnail(call: &Call<'_>) -> Result<Response, Problem> {
    let part = super::archive::uploaded(call, "file")?;
    let media_type = part.media_type.unwrap_or_default();
    if !matches!(media_type.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/svg+xml" | "image/webp") {
        return Err(Problem::bad_request("The thumbnail must be a picture: PNG, JPEG, GIF, SVG or WebP"));
    }
    if part.content.len() > THUMBNAIL_BYTES_MAX {
        return Err(Problem::too_large(THUMBNAIL_BYTES_MAX));
    }
    let id = call.control.store.change(|tx| {
        let mut api = of_call(tx, call)?;
        tx.put_file(&api.organization, &api.id, &File::new(THUMBNAIL, &media_type, part.content))?;
        api.set("hasThumbnail", true);
        tx.update(&mut api)?;
        Ok(api.id)
    })?;
    let path = format!("/apis/{id}/thumbnail");
    Ok(Response::json(201, &json!({"relativePath": path, "mediaType": media_type})).with("Location", path))
}

/// A key for trying an API out, for the gateway only.
fn generate_key(call: &Call<'_>) -> Result<Response, Problem> {
    let api = call.control.store.read(|tx| of_call(tx, call))?;
    let now = clock::now();
    let context = super::revisions::versioned_context(&api);
    let claims = json!({
        "sub": call.caller.shown(), "iss": call.control.issuer(), "aud": call.control.issuer(),
        "token_type": "InternalKey", "keytype": "PRODUCTION", "iat": now, "exp": now + INTERNAL_KEY_S, "jti": random::uuid(),
        "subscribedAPIs": [{
            "name": api.name, "context": context, "version": api.text("version"), "publisher": api.owner,
            "subscriptionTier": null, "subscriberTenantDomain": null,
        }],
    });
    let key = call.control.keys.sign("JWT", &claims);
    Ok(Response::json(200, &json!({"apikey": key, "validityTime": INTERNAL_KEY_S})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_are_paths() {
        for (context, expected) in [
            ("/echo", 0),
            ("/a/{version}/b", 0),
            ("/a(b)", 0),
            ("/echo/", 900_346),
            ("/a{version}", 900_253),
            ("/a b", 900_253),
            ("/a/../b", 900_253),
            ("/a(b", 900_253),
            ("//", 900_346),
        ] {
            assert_eq!(check_context(context).err().map_or(0, |problem| problem.code), expected, "{context}");
        }
    }

    #[test]
    fn secrets_are_not_shown_and_kept_when_they_come_back() {
        let kept = json!({"endpoint_security": {"production": {"password": "p", "username": "u"}}});
        let mut shown = kept.clone();
        without_secrets(&mut shown);
        assert_eq!(shown["endpoint_security"]["production"], json!({"password": "", "username": "u"}));
        keep_secrets(&mut shown, &kept);
        assert_eq!(shown, kept);
    }
}
