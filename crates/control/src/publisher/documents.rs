//! Documents of APIs and products.

use serde_json::{Map, Value, json};

use super::api;
use super::archive;
use super::import::Project;
use crate::clock;
use crate::http::Response;
use crate::page::Page;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema::{self, Is, Members};
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/{apiId}/documents", list),
    ("POST", "/apis/{apiId}/documents", create),
    ("GET", "/apis/{apiId}/documents/{documentId}", get),
    ("PUT", "/apis/{apiId}/documents/{documentId}", update),
    ("DELETE", "/apis/{apiId}/documents/{documentId}", delete),
    ("GET", "/apis/{apiId}/documents/{documentId}/content", content),
    ("POST", "/apis/{apiId}/documents/{documentId}/content", set_content),
    ("GET", "/api-products/{apiProductId}/documents", list),
    ("POST", "/api-products/{apiProductId}/documents", create),
    ("GET", "/api-products/{apiProductId}/documents/{documentId}", get),
    ("PUT", "/api-products/{apiProductId}/documents/{documentId}", update),
    ("DELETE", "/api-products/{apiProductId}/documents/{documentId}", delete),
    ("GET", "/api-products/{apiProductId}/documents/{documentId}/content", content),
    ("POST", "/api-products/{apiProductId}/documents/{documentId}/content", set_content),
    ("POST", "/apis/{apiId}/documents/validate", validate),
    ("GET", "/mcp-servers/{mcpServerId}/documents", list),
    ("POST", "/mcp-servers/{mcpServerId}/documents", create),
    ("POST", "/mcp-servers/{mcpServerId}/documents/validate", validate),
    ("GET", "/mcp-servers/{mcpServerId}/documents/{documentId}", get),
    ("PUT", "/mcp-servers/{mcpServerId}/documents/{documentId}", update),
    ("DELETE", "/mcp-servers/{mcpServerId}/documents/{documentId}", delete),
    ("GET", "/mcp-servers/{mcpServerId}/documents/{documentId}/content", content),
    ("POST", "/mcp-servers/{mcpServerId}/documents/{documentId}/content", set_content),
];

const MEMBERS: Members = &[
    ("documentId", Is::Text),
    ("name", Is::Short(255)),
    (
        "type",
        Is::OneOf(&["HOWTO", "SAMPLES", "PUBLIC_FORUM", "SUPPORT_FORUM", "API_MESSAGE_FORMAT", "SWAGGER_DOC", "OTHER"]),
    ),
    ("summary", Is::Short(32_766)),
    ("sourceType", Is::OneOf(&["INLINE", "MARKDOWN", "URL", "FILE"])),
    ("sourceUrl", Is::Text),
    ("fileName", Is::Text),
    ("inlineContent", Is::Text),
    ("otherTypeName", Is::Text),
    ("visibility", Is::OneOf(&["OWNER_ONLY", "PRIVATE", "API_LEVEL"])),
    ("createdTime", Is::Text),
    ("createdBy", Is::Text),
    ("lastUpdatedTime", Is::Text),
    ("lastUpdatedBy", Is::Text),
];

const NEEDED: [&str; 4] = ["name", "type", "sourceType", "visibility"];

/// The content of a document among its files.
const CONTENT: &str = "content";

/// A document as responses have it.
pub(crate) fn body(document: &Object) -> Value {
    let member = |name: &str| document.document.get(name).cloned().unwrap_or_default();
    json!({
        "documentId": document.id, "name": document.name, "type": member("type"), "summary": member("summary"),
        "sourceType": member("sourceType"), "sourceUrl": member("sourceUrl"), "fileName": member("fileName"),
        "inlineContent": null, "otherTypeName": member("otherTypeName"), "visibility": member("visibility"),
        "createdTime": clock::shown(document.created_ms), "createdBy": document.owner,
        "lastUpdatedTime": clock::shown(document.updated_ms), "lastUpdatedBy": document.owner,
    })
}

/// The documents of an API.
pub(crate) fn of_api(tx: &Transaction<'_>, api: &Object) -> Result<Vec<Object>, Problem> {
    tx.list(&Filter::new(Kind::Document, &api.organization).parent(&api.id))
}

fn list(call: &Call<'_>) -> Result<Response, Problem> {
    let documents = call.control.store.read(|tx| of_api(tx, &api::of_call(tx, call)?))?;
    let path = format!("/apis/{}/documents", call.id());
    Ok(Response::json(200, &Page::of(&call.query).cut(&path, documents.iter().map(body).collect())))
}

/// A document of an API by id.
pub(crate) fn by_id(tx: &Transaction<'_>, api: &Object, id: &str) -> Result<Object, Problem> {
    let found = tx.get(Kind::Document, &api.organization, id)?.filter(|document| document.parent == api.id);
    found.ok_or_else(|| Problem::not_found("Document", id))
}

fn of_call(tx: &Transaction<'_>, call: &Call<'_>) -> Result<Object, Problem> {
    by_id(tx, &api::of_call(tx, call)?, call.parameter("documentId"))
}

fn check_source(given: &Map<String, Value>) -> Result<(), Problem> {
    let url = api::text(given, "sourceUrl");
    if api::text(given, "sourceType") == "URL" && !(url.starts_with("http://") || url.starts_with("https://")) {
        return Err(Problem::bad_request("The address of a document must begin with http:// or https://"));
    }
    if api::text(given, "type") == "OTHER" && api::text(given, "otherTypeName").is_empty() {
        return Err(Problem::bad_request("A document of another type needs `otherTypeName`"));
    }
    Ok(())
}

fn taken() -> Problem {
    Problem::conflict(900_312, "Document already exists", "Document already exists")
}

fn key(api: &Object, name: &str) -> String {
    format!("{}:{}", api.id, name.to_lowercase())
}

fn create(call: &Call<'_>) -> Result<Response, Problem> {
    let given = schema::body(call.request, MEMBERS, &NEEDED)?;
    check_source(&given)?;
    let document = call.control.store.change(|tx| {
        let api = api::of_call(tx, call)?;
        let document = insert(tx, call, &api, given)?;
        tx.audit(&api.organization, &call.caller.shown(), "create", Kind::Document, &document.id)?;
        Ok(document)
    })?;
    let path = format!("/apis/{}/documents/{}", call.id(), document.id);
    Ok(Response::json(201, &body(&document)).with("Location", path))
}

fn insert(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    api: &Object,
    mut given: Map<String, Value>,
) -> Result<Object, Problem> {
    let inline = given.shift_remove("inlineContent");
    let name = api::text(&given, "name").to_owned();
    let document = Object::new(Kind::Document, &api.organization, &name, given);
    let document = document.of(&api.id).owned(&call.caller.name).keyed(key(api, &name));
    if tx.insert(&document)?.is_none() {
        return Err(taken());
    }
    if let Some(text) = inline.as_ref().and_then(Value::as_str) {
        tx.put_file(&api.organization, &document.id, &File::new(CONTENT, "text/plain", text.to_owned()))?;
    }
    Ok(document)
}

/// 200 when the API has a document of a name, 404 otherwise.
fn validate(call: &Call<'_>) -> Result<Response, Problem> {
    let name = call.needed("name")?;
    let found = call.control.store.read(|tx| {
        let api = api::of_call(tx, call)?;
        tx.find(Kind::Document, &api.organization, &key(&api, name))
    })?;
    match found {
        Some(_) => Ok(Response::empty(200)),
        None => Err(Problem::not_found("Document", name)),
    }
}

fn get(call: &Call<'_>) -> Result<Response, Problem> {
    let document = call.control.store.read(|tx| of_call(tx, call))?;
    Ok(Response::json(200, &body(&document)))
}

fn update(call: &Call<'_>) -> Result<Response, Problem> {
    let mut given = schema::body(call.request, MEMBERS, &NEEDED)?;
    check_source(&given)?;
    let document = call.control.store.change(|tx| {
        let api = api::of_call(tx, call)?;
        let mut document = by_id(tx, &api, call.parameter("documentId"))?;
        given.shift_remove("inlineContent");
        document.name = api::text(&given, "name").to_owned();
        document.unique_key = Some(key(&api, &document.name));
        document.document = given;
        tx.update(&mut document)?.ok_or_else(taken)?;
        Ok(document)
    })?;
    Ok(Response::json(200, &body(&document)))
}

fn delete(call: &Call<'_>) -> Result<Response, Problem> {
    call.control.store.change(|tx| tx.delete(&of_call(tx, call)?))?;
    Ok(Response::empty(200))
}

fn content(call: &Call<'_>) -> Result<Response, Problem> {
    let (document, file) = call.control.store.read(|tx| {
        let document = of_call(tx, call)?;
        let file = tx.file(&document.id, CONTENT)?;
        Ok((document, file))
    })?;
    content_response(&document, file)
}

/// The content of a document: text, a download, or the address where it is.
pub(crate) fn content_response(document: &Object, file: Option<File>) -> Result<Response, Problem> {
    if document.text("sourceType") == "URL" {
        return Ok(Response::empty(303).with("Location", document.text("sourceUrl")));
    }
    let not_found = || Problem::new(404, 900_314, "Document content not found", "Document content not found");
    let file = file.ok_or_else(not_found)?;
    let response = Response::of_type(200, &file.media_type, file.content);
    let name: String =
        document.text("fileName").chars().filter(|letter| !letter.is_control() && *letter != '"').collect();
    Ok(match name.is_empty() {
        true => response,
        false => response.with("Content-Disposition", format!("attachment; filename=\"{name}\"")),
    })
}

/// The content among the files of a document.
pub(crate) fn content_file(tx: &Transaction<'_>, document: &Object) -> Result<Option<File>, Problem> {
    tx.file(&document.id, CONTENT)
}

fn set_content(call: &Call<'_>) -> Result<Response, Problem> {
    let parts = archive::parts(call)?;
    let part = parts.into_iter().find(|part| matches!(part.name.as_str(), "file" | "inlineContent"));
    let part = part.ok_or_else(|| Problem::bad_request("The part `file` or `inlineContent` is missing"))?;
    let document = call.control.store.change(|tx| {
        let mut document = of_call(tx, call)?;
        let is_file = part.name == "file";
        if is_file != (document.text("sourceType") == "FILE") {
            return Err(Problem::bad_request("The content does not fit the source type of the document"));
        }
        let media_type = match is_file {
            true => part.media_type.as_deref().unwrap_or("application/octet-stream"),
            false => "text/plain",
        };
        tx.put_file(&document.organization, &document.id, &File::new(CONTENT, media_type, part.content.clone()))?;
        if let Some(name) = &part.file_name {
            document.set("fileName", name.as_str());
        }
        tx.update(&mut document)?;
        Ok(document)
    })?;
    Ok(Response::json(201, &body(&document)))
}

/// Adds the documents of an imported project that are not there yet.
pub(super) fn import_files(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    api: &Object,
    project: &Project,
) -> Result<(), Problem> {
    let folders: Vec<&str> =
        project.folder("Docs/").filter_map(|(path, _)| path.strip_suffix("/document.yaml")).collect();
    for folder in folders {
        let path = format!("Docs/{folder}/document.yaml");
        let Some(Value::Object(mut data)) = project.data(call, &[&path])? else { continue };
        data.retain(|name, _| MEMBERS.iter().any(|(known, _)| known == name) && name != "documentId");
        schema::check(&data, MEMBERS, &NEEDED)?;
        if tx.find(Kind::Document, &api.organization, &key(api, api::text(&data, "name")))?.is_some() {
            continue;
        }
        let document = insert(tx, call, api, data)?;
        let prefix = format!("Docs/{folder}/");
        let content = project.folder(&prefix).find(|(name, _)| *name != "document.yaml" && !name.contains('/'));
        if let Some((_, content)) = content {
            let media_type =
                if document.text("sourceType") == "FILE" { "application/octet-stream" } else { "text/plain" };
            tx.put_file(&api.organization, &document.id, &File::new(CONTENT, media_type, content.clone()))?;
        }
    }
    Ok(())
}
