//! Services: create, read, list, update, delete.

use bytes::Bytes;
use md5::{Digest, Md5};
use serde_json::{Map, Value, json};

use crate::clock;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::publisher::api::{self, text};
use crate::publisher::archive;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{File, Filter, Kind, Object, Order, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/services", list),
    ("POST", "/services", create),
    ("GET", "/services/{serviceId}", get),
    ("PUT", "/services/{serviceId}", update),
    ("DELETE", "/services/{serviceId}", delete),
    ("GET", "/services/{serviceId}/definition", definition),
    ("GET", "/services/{serviceId}/usage", usage),
];

const MEMBERS: Members = &[
    ("id", Is::Text),
    ("name", Is::Short(255)),
    ("displayName", Is::Short(255)),
    ("description", Is::Short(1024)),
    ("version", Is::Short(30)),
    ("key", Is::Short(512)),
    ("serviceKey", Is::Short(512)),
    ("serviceUrl", Is::Text),
    ("definitionType", Is::OneOf(&["OAS2", "OAS3", "WSDL1", "WSDL2", "GRAPHQL_SDL", "ASYNC_API"])),
    ("securityType", Is::OneOf(&["BASIC", "DIGEST", "OAUTH2", "X509", "API_KEY", "NONE"])),
    ("mutualSSLEnabled", Is::Flag),
    ("usage", Is::Number),
    ("createdTime", Is::Text),
    ("lastUpdatedTime", Is::Text),
    ("md5", Is::Text),
    ("definitionUrl", Is::Text),
];

const NEEDED: [&str; 4] = ["name", "version", "definitionType", "serviceUrl"];

/// The definition among the files of a service.
pub(crate) const DEFINITION: &str = "definition";

/// The metadata as it came, which the hash covers.
pub(super) const METADATA: &str = "metadata";

/// The APIs that were made from a service.
pub(crate) fn used_by(tx: &Transaction<'_>, service: &Object) -> Result<Vec<Object>, Problem> {
    let key = service.unique_key.as_deref().unwrap_or_default();
    tx.list(&Filter::new(Kind::Api, &service.organization).member("serviceInfo.key", &[key]))
}

fn body(tx: &Transaction<'_>, service: &Object) -> Result<Value, Problem> {
    let member = |name: &str| service.document.get(name).cloned().unwrap_or_default();
    let url = format!("/services/{}/definition", service.id);
    Ok(json!({
        "id": service.id, "name": service.name, "description": member("description"), "version": member("version"),
        "serviceKey": service.unique_key, "serviceUrl": member("serviceUrl"), "definitionType": member("definitionType"),
        "securityType": member("securityType"), "mutualSSLEnabled": service.flag("mutualSSLEnabled"),
        "usage": used_by(tx, service)?.len(), "createdTime": clock::shown(service.created_ms),
        "lastUpdatedTime": clock::shown(service.updated_ms), "md5": member("md5"), "definitionUrl": url,
    }))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let page = Page::of(&call.query);
    let descending = call.query.get("sortOrder") == Some("desc");
    let order = match call.query.get("sortBy") {
        Some("name") => Order::Name { descending },
        _ => Order::Created { descending },
    };
    let mut filter = Filter::new(Kind::Service, call.organization()).sorted(order);
    if let Some(name) = call.query.get("name") {
        filter = filter.name_contains(name);
    }
    for name in ["version", "definitionType"] {
        if let Some(value) = call.query.get(name) {
            filter = filter.member(name, &[value]);
        }
    }
    if let Some(key) = call.query.get("key") {
        filter = filter.keyed(key);
    }
    let body = call.control.store.read(|tx| {
        let total = tx.count(&filter)?;
        let found = tx.list(&filter.page(page.offset, page.limit))?;
        let short = |service: &Object| {
            json!({
                "id": service.id, "name": service.name, "serviceKey": service.unique_key,
                "version": service.text("version"), "md5": service.text("md5"),
            })
        };
        let list = match call.query.flag("shrink") {
            true => found.iter().map(short).collect(),
            false => found.iter().map(|service| body(tx, service)).collect::<Result<Vec<_>, _>>()?,
        };
        Ok(page.body("/services", &[], list, total))
    })?;
    Ok(Response::json(200, &body))
}

/// A service that a client sent.
pub(super) struct Sent {
    metadata: Map<String, Value>,
    text: Bytes,
    definition: Bytes,
    key: String,
}

impl Sent {
    /// Checks metadata and definition.
    pub(super) fn new(
        call: &Call<'_>,
        mut metadata: Map<String, Value>,
        text_of_metadata: Bytes,
        definition: Bytes,
    ) -> Result<Sent, Problem> {
        schema::check(&metadata, MEMBERS, &NEEDED)?;
        if definition.is_empty() {
            return Err(Problem::bad_request("The definition of the service is missing"));
        }
        let url = text(&metadata, "serviceUrl");
        if !["http://", "https://", "ws://", "wss://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Problem::bad_request(format!("The service URL `{url}` is not valid")));
        }
        check_definition(call, text(&metadata, "definitionType"), &definition)?;
        let given = [text(&metadata, "serviceKey"), text(&metadata, "key")];
        let given = given.into_iter().find(|key| !key.is_empty()).map(str::to_owned);
        let key = given.unwrap_or_else(|| format!("{}-{}", text(&metadata, "name"), text(&metadata, "version")));
        metadata.retain(|name, _| {
            !["id", "key", "serviceKey", "usage", "createdTime", "lastUpdatedTime", "md5", "definitionUrl"]
                .contains(&name.as_str())
        });
        let mut hash = Md5::new();
        hash.update(&definition);
        hash.update(&text_of_metadata);
        metadata.insert("md5".into(), crate::random::hex(&hash.finalize()).into());
        Ok(Sent { metadata, text: text_of_metadata, definition, key })
    }

    fn of_form(call: &Call<'_>) -> Result<Sent, Problem> {
        let parts = archive::parts(call)?;
        let part = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.content.clone());
        let text =
            part("serviceMetadata").ok_or_else(|| Problem::bad_request("The part `serviceMetadata` is missing"))?;
        let metadata = match serde_json::from_slice(&text) {
            Ok(Value::Object(metadata)) => metadata,
            Ok(_) | Err(_) => return Err(Problem::bad_request("The part `serviceMetadata` is not a JSON object")),
        };
        let definition = match (part("definitionFile"), part("inlineContent")) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_request("Only one of `definitionFile` and `inlineContent` can be given"));
            }
            (file, inline) => file.or(inline).unwrap_or_default(),
        };
        Sent::new(call, metadata, text, definition)
    }

    /// The key of the service.
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Whether a service has this content already.
    pub(super) fn is_same(&self, service: &Object) -> bool {
        service.text("md5") == text(&self.metadata, "md5")
    }

    pub(super) fn insert(self, tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
        let name = text(&self.metadata, "name").to_owned();
        let service = Object::new(Kind::Service, call.organization(), &name, self.metadata).keyed(&*self.key);
        if tx.insert(&service)?.is_none() {
            let text = format!("Service with the service key '{}' already exists", self.key);
            return Err(Problem::conflict(409, "Conflict", text));
        }
        put_files(tx, &service, self.text, self.definition)?;
        tx.audit(call.organization(), &call.caller.shown(), "create", Kind::Service, &service.id)?;
        Ok(service)
    }

    /// Replaces a service; its name, version, key and kind of definition stay.
    pub(super) fn replace(self, tx: &Transaction<'_>, service: &mut Object) -> Result<(), Problem> {
        for name in ["name", "version", "definitionType"] {
            if service.text(name) != text(&self.metadata, name) {
                return Err(Problem::bad_request(format!("`{name}` of a service cannot be changed")));
            }
        }
        service.document = self.metadata;
        tx.update(service)?;
        put_files(tx, service, self.text, self.definition)
    }
}

fn put_files(tx: &Transaction<'_>, service: &Object, metadata: Bytes, definition: Bytes) -> Result<(), Problem> {
    let media_type = if definition.starts_with(b"{") { "application/json" } else { "application/yaml" };
    tx.put_file(&service.organization, &service.id, &File::new(DEFINITION, media_type, definition))?;
    tx.put_file(&service.organization, &service.id, &File::new(METADATA, "application/yaml", metadata))
}

/// A definition must be of the kind that the metadata name.
fn check_definition(call: &Call<'_>, kind: &str, definition: &Bytes) -> Result<(), Problem> {
    let needed = match kind {
        "OAS2" => "swagger",
        "OAS3" => "openapi",
        "ASYNC_API" => "asyncapi",
        _ => return Ok(()),
    };
    let parsed = call.control.host.parse_yaml(definition).map_err(Problem::bad_request)?;
    match parsed.get(needed) {
        Some(_) => Ok(()),
        None => Err(Problem::bad_request(format!("The definition has no `{needed}`, which {kind} needs"))),
    }
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let sent = Sent::of_form(call)?;
    let body = call.control.store.change(|tx| body(tx, &sent.insert(tx, call)?))?;
    // API Manager's own tests expect 200, not 201.
    Ok(Response::json(200, &body))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    let found = tx.get(Kind::Service, call.organization(), call.id())?;
    found.ok_or_else(|| Problem::not_found("Service", call.id()))
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let body = call.control.store.read(|tx| body(tx, &of_call(tx, call)?))?;
    Ok(Response::json(200, &body))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let sent = Sent::of_form(call)?;
    let body = call.control.store.change(|tx| {
        let mut service = of_call(tx, call)?;
        sent.replace(tx, &mut service)?;
        body(tx, &service)
    })?;
    Ok(Response::json(200, &body))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| {
        let service = of_call(tx, call)?;
        if !used_by(tx, &service)?.is_empty() {
            let text = format!("The service {} cannot be deleted as APIs use it", service.name);
            return Err(Problem::conflict(409, "Conflict", text));
        }
        tx.delete(&service)?;
        tx.audit(call.organization(), &call.caller.shown(), "delete", Kind::Service, &service.id)
    })?;
    Ok(Response::empty(204))
}

fn definition(call: &Call<'_>) -> Result<Response, Problem> {
    let file = call.control.store.read(|tx| tx.file(&of_call(tx, call)?.id, DEFINITION))?;
    let file = file.ok_or_else(|| Problem::not_found("Service definition", call.id()))?;
    Ok(Response::of_type(200, &file.media_type, file.content))
}

fn usage(call: &Call<'_>) -> Result<Response, Problem> {
    let apis = call.control.store.read(|tx| used_by(tx, &of_call(tx, call)?))?;
    let list: Vec<Value> = apis.iter().map(api::info).collect();
    Ok(Response::json(200, &json!({"count": list.len(), "list": list})))
}

/// The short form of a service, as imports list it.
pub(super) fn info(service: &Object) -> Value {
    json!({
        "id": service.id, "name": service.name, "key": service.unique_key, "version": service.text("version"),
        "md5": service.text("md5"),
    })
}
