//! `/registry-resources`: folders, content and properties of the registry. Operators change what flows may change; a
//! resource that an artifact defines is seen again once what was written over it is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use penstock_engine::Resource;
use serde_json::{Value, json};

use super::super::audit::{self, Action};
use super::super::call::{self, Call, Outcome, Refusal, list as listed, ok, refusal, refuse};
use crate::rest::multipart;

/// Folders as paths name them, and as keys do.
const ROOTS: [(&str, &str); 3] =
    [("registry/governance/", "gov:"), ("registry/config/", "conf:"), ("registry/local/", "local:")];

const DEFAULT_MEDIA_TYPE: &str = "text/plain";
const FOLDER: &str = "directory";

/// The path of the request, without slashes at its ends.
fn path(call: &Call<'_>) -> Result<String, Refusal> {
    let Some(path) = call.parameter("path") else {
        return Err(refusal(400, "Registry path not found in the request"));
    };
    let plain = path.trim_matches('/').to_owned();
    let leads_below = plain == "registry" || plain.starts_with("registry/");
    if !leads_below || plain.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return Err(refusal(400, format!("The registry path  '{path}' is illegal")));
    }
    Ok(plain)
}

fn key(path: &str) -> Result<String, Refusal> {
    let found = ROOTS.iter().find_map(|(root, scheme)| Some(format!("{scheme}{}", path.strip_prefix(root)?)));
    found.ok_or_else(|| refusal(400, format!("Invalid registry path: {path}")))
}

/// Everything in the registry by its path.
fn all(call: &Call<'_>) -> BTreeMap<String, Arc<Resource>> {
    let program = call.api.state().current.get();
    let defined =
        program.resources.keys().filter_map(|key| Some((key.to_owned(), program.resources.get(key)?.clone())));
    let written = call.api.registry.entries().into_iter().map(|(key, resource)| (key.to_string(), resource));
    let path = |key: &str| {
        ROOTS.iter().find_map(|(root, scheme)| Some(format!("{root}{}", key.strip_prefix(scheme)?.trim_matches('/'))))
    };
    // What was written stands before what artifacts define.
    defined.chain(written).filter_map(|(key, resource)| Some((path(&key)?, resource))).collect()
}

fn find(call: &Call<'_>, path: &str) -> Result<Arc<Resource>, Refusal> {
    let missing = || refusal(400, format!("Can not find the registry: {path}"));
    all(call).remove(path).ok_or_else(missing)
}

fn media_type(resource: &Resource) -> &str {
    resource.media_type.as_deref().unwrap_or(if resource.is_xml { "application/xml" } else { DEFAULT_MEDIA_TYPE })
}

fn properties_of(resource: &Resource) -> Value {
    resource.properties.iter().map(|(name, value)| json!({ "name": **name, "value": **value })).collect()
}

/// The children of a folder, or the tree below it with `expand=true` or `searchKey`.
pub(crate) fn list(call: &Call<'_>) -> Outcome {
    let folder = path(call)?;
    let all = all(call);
    let inside = format!("{folder}/");
    let is_root = ROOTS.iter().any(|(root, _)| root.starts_with(&inside) || **root == inside);
    if !is_root && !all.keys().any(|path| path.starts_with(&inside)) {
        return refuse(400, "Invalid registry path");
    }
    if call.parameter("expand").as_deref() == Some("true") || call.parameter("searchKey").is_some() {
        return ok(&tree(call, &folder, &all));
    }
    listed(call, children(&folder, &all).into_iter().map(|name| described(&format!("{folder}/{name}"), &all)))
}

/// The names in a folder.
fn children(folder: &str, all: &BTreeMap<String, Arc<Resource>>) -> BTreeSet<String> {
    let inside = format!("{folder}/");
    let paths = all.keys().map(String::as_str).chain(ROOTS.iter().map(|(root, _)| *root));
    let names = paths.filter_map(|path| path.strip_prefix(inside.as_str())?.split('/').next());
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn described(path: &str, all: &BTreeMap<String, Arc<Resource>>) -> Value {
    let name = path.rsplit('/').next().unwrap_or(path);
    let resource = all.get(path);
    json!({
        "name": name,
        "mediaType": resource.map_or(FOLDER, |resource| media_type(resource)),
        "properties": resource.map_or_else(|| json!([]), |resource| properties_of(resource)),
    })
}

fn tree(call: &Call<'_>, path: &str, all: &BTreeMap<String, Arc<Resource>>) -> Value {
    let mut node = described(path, all);
    node["type"] = json!(if all.contains_key(path) { "file" } else { "folder" });
    if !all.contains_key(path) {
        let holds = |child: &String| {
            all.keys().any(|path| {
                let inside = path.strip_prefix(child.as_str());
                inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && call.finds(path)
            })
        };
        let paths = children(path, all).into_iter().map(|name| format!("{path}/{name}"));
        let wants_all = call.parameter("searchKey").is_none();
        let nodes: Vec<Value> =
            paths.filter(|child| wants_all || holds(child)).map(|child| tree(call, &child, all)).collect();
        node["nodes"] = json!(nodes);
    }
    node
}

pub(crate) fn content(call: &Call<'_>) -> Outcome {
    let resource = find(call, &path(call)?)?;
    call::bytes("application/octet-stream", resource.bytes.clone())
}

pub(crate) fn metadata(call: &Call<'_>) -> Outcome {
    let path = path(call)?;
    let resource = find(call, &path)?;
    ok(&json!({ "name": path.rsplit('/').next(), "mediaType": media_type(&resource) }))
}

/// The content of a request: the file of a form, or the body.
fn uploaded(call: &Call<'_>) -> Result<String, Refusal> {
    let content_type = call.headers.get("content-type").unwrap_or_default();
    let bytes: Bytes = if content_type.to_ascii_lowercase().starts_with("multipart/form-data") {
        multipart::file(content_type, call.body, "file").map_err(|why| refusal(400, why))?
    } else {
        call.body.clone()
    };
    if bytes.is_empty() {
        return Err(refusal(400, "Error while fetching file content from payload"));
    }
    String::from_utf8(bytes.to_vec()).map_err(|_| refusal(400, "File type of the registry is not supported"))
}

async fn write(call: &Call<'_>, path: &str, content: &str, media_type: &str) -> Result<(), Refusal> {
    let program = call.api.state().current.get();
    let kept = call.api.registry.put_as(&key(path)?, content, media_type, &program.resources);
    let kept = kept.map_err(|why| refusal(400, why))?;
    kept.await.map_err(|why| refusal(500, why))
}

fn audit(call: &Call<'_>, action: Action, path: &str) {
    let name = path.rsplit('/').next().unwrap_or(path);
    audit::changed(call, action, "registry_resource", &json!({ "registryResourceName": name }));
}

pub(crate) async fn add(call: &Call<'_>) -> Outcome {
    let path = path(call)?;
    key(&path)?;
    if all(call).contains_key(&path) {
        return refuse(400, "Registry already exists. Can not POST an existing registry");
    }
    let media_type = call.parameter("mediaType").unwrap_or_else(|| DEFAULT_MEDIA_TYPE.to_owned());
    write(call, &path, &uploaded(call)?, &media_type).await?;
    audit(call, Action::Created, &path);
    ok(&json!({ "message": "Successfully added the registry resource" }))
}

pub(crate) async fn replace(call: &Call<'_>) -> Outcome {
    let path = path(call)?;
    let Some(known) = all(call).remove(&path) else {
        return refuse(400, format!("Registry does not exists in the path: {path}"));
    };
    write(call, &path, &uploaded(call)?, media_type(&known)).await?;
    audit(call, Action::Updated, &path);
    ok(&json!({ "message": "Successfully modified the registry resource" }))
}

pub(crate) async fn delete(call: &Call<'_>) -> Outcome {
    let path = path(call)?;
    let Some(removed) = call.api.registry.remove(&key(&path)?) else {
        return match all(call).contains_key(&path) {
            true => refuse(400, "an artifact defines the resource; it is removed with that artifact"),
            false => refuse(400, format!("Can not find the registry: {path}")),
        };
    };
    removed.await.map_err(|why| refusal(500, why))?;
    audit(call, Action::Deleted, &path);
    ok(&json!({ "message": "Successfully deleted the registry resource" }))
}

pub(crate) fn properties(call: &Call<'_>) -> Outcome {
    let resource = find(call, &path(call)?)?;
    match call.parameter("name") {
        Some(name) => match resource.properties.iter().find(|(known, _)| **known == *name) {
            Some((_, value)) => ok(&json!({ name: **value })),
            None => refuse(400, format!("Property named {name} does not exist")),
        },
        None => {
            let items = properties_of(&resource);
            listed(call, items.as_array().cloned().unwrap_or_default())
        }
    }
}

/// `[{"name": …, "value": …}]`
pub(crate) async fn set_properties(call: &Call<'_>) -> Outcome {
    let path = path(call)?;
    let invalid = || refusal(400, "Invalid payload for properties");
    let payload: Value = serde_json::from_slice(call.body).map_err(|_| invalid())?;
    let given = payload.as_array().ok_or_else(invalid)?;
    let pair = |item: &Value| Some((item["name"].as_str()?.to_owned(), item["value"].as_str()?.to_owned()));
    let given: Vec<(String, String)> = given.iter().map(pair).collect::<Option<_>>().ok_or_else(invalid)?;
    let (key, program) = (key(&path)?, call.api.state().current.get());
    for (name, value) in &given {
        if name.is_empty() || name.contains('@') {
            return Err(invalid());
        }
        let kept = call.api.registry.put(&format!("{key}@{name}"), value, &program.resources);
        kept.map_err(|why| refusal(400, why))?.await.map_err(|why| refusal(500, why))?;
    }
    let name = path.rsplit('/').next().unwrap_or(&path);
    let info = json!({ "registryResourceName": name, "list": payload });
    audit::changed(call, Action::Updated, "registry_resource_properties", &info);
    ok(&json!({ "message": "Successfully added the registry property" }))
}
