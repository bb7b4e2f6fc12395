//! API projects: what an API is as files, for the gateway and for `apictl`; export and import.

use std::io::{Cursor, Write};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::api::{self, body};
use super::{certificates, client_certificates, definition, lifecycle, members, policies, products, revisions, yaml};
use crate::http::Response;
use crate::multipart::{self, FormPart};
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[("GET", "/apis/export", export), ("POST", "/apis/import", import)];

/// What a project is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The gateway: secrets of backends included.
    Serve,
    /// A client: secrets are left out.
    Export,
}

/// The parts of a multipart body.
pub(crate) fn parts(call: &Call<'_>) -> Result<Vec<FormPart>, Problem> {
    let content_type = call.request.header("content-type").unwrap_or_default();
    multipart::parse(content_type, &call.request.body).map_err(Problem::bad_request)
}

/// A part that must be there and not be empty.
pub(crate) fn uploaded(call: &Call<'_>, name: &str) -> Result<FormPart, Problem> {
    let found = parts(call)?.into_iter().find(|part| part.name == name && !part.content.is_empty());
    found.ok_or_else(|| Problem::bad_request(format!("The part `{name}` is missing")))
}

/// The files of a project.
pub(crate) fn project(tx: &Transaction<'_>, api: &Object, purpose: Purpose) -> Result<Vec<(String, Bytes)>, Problem> {
    let is_product = api::is_product(api);
    let mut data = match body(api) {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    if purpose == Purpose::Serve
        && let Some(config) = api.document.get("endpointConfig")
    {
        data.insert("endpointConfig".into(), config.clone());
    }
    // An absent member has its default; an exported file is read by people.
    data.retain(|_, value| !value.is_null());
    let (kind, name) = if is_product { ("api_product", "api_product.yaml") } else { ("api", "api.yaml") };
    let descriptor = json!({"type": kind, "version": "v4.7.0", "data": data});
    let mut files: Vec<(String, Bytes)> = Vec::new();
    let text = |value: &Value| match purpose {
        Purpose::Serve => value.to_string(),
        Purpose::Export => yaml::write(value),
    };
    files.push((name.to_owned(), text(&descriptor).into()));
    for file in tx.files(&api.id, "")? {
        match (file.path.as_str(), purpose) {
            (definition::FILE, Purpose::Serve) => files.push((file.path, file.content)),
            (definition::FILE, Purpose::Export) => {
                let parsed: Value = serde_json::from_slice(&file.content).unwrap_or_default();
                files.push(("Definitions/swagger.yaml".to_owned(), yaml::write(&parsed).into()));
            }
            (api::THUMBNAIL, Purpose::Serve) => {}
            (api::THUMBNAIL, Purpose::Export) => {
                files.push((format!("{}.{}", api::THUMBNAIL, ending(&file.media_type)), file.content));
            }
            _ => files.push((file.path, file.content)),
        }
    }
    files.extend(policies::files(tx, api)?);
    files.extend(certificates::files(tx, api)?);
    files.extend(client_certificates::files(tx, api)?);
    if is_product {
        for part in products::sources(tx, api)? {
            let folder = format!("APIs/{}-{}", part.name, part.text("version"));
            let inner = project(tx, &part, purpose)?;
            files.extend(inner.into_iter().map(|(path, content)| (format!("{folder}/{path}"), content)));
        }
    }
    Ok(files)
}

fn ending(media_type: &str) -> &str {
    match media_type {
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        other => other.strip_prefix("image/").unwrap_or("png"),
    }
}

/// A zip archive with one folder.
pub(crate) fn zipped(folder: &str, files: &[(String, Bytes)]) -> Result<Bytes, Problem> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(format!("{folder}/{path}"), options).map_err(Problem::caused)?;
        writer.write_all(content).map_err(Problem::caused)?;
    }
    let bytes = writer.finish().map_err(Problem::caused)?;
    Ok(bytes.into_inner().into())
}

/// An archive as a download.
pub(crate) fn download(folder: &str, files: &[(String, Bytes)]) -> Result<Response, Problem> {
    let name: String =
        folder.chars().filter(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter)).collect();
    let response = Response::of_type(200, "application/zip", zipped(folder, files)?);
    Ok(response.with("Content-Disposition", format!("attachment; filename=\"{name}.zip\"")))
}

/// The API that `apiId`, or `name` and `version`, name.
pub(super) fn named(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    id_parameter: &str,
    is_product: bool,
) -> Result<Object, Problem> {
    let what = if is_product { "API Product" } else { "API" };
    if let Some(id) = call.query.get(id_parameter) {
        return api::by_id(tx, &call.caller, id, what);
    }
    let (name, version) = (call.needed("name")?, call.query.get("version").unwrap_or("1.0.0"));
    let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(name))?;
    let found = same.into_iter().find(|api| api.text("version") == version && api::is_product(api) == is_product);
    let found = found.ok_or_else(|| {
        let text = format!("Requested {what} with name '{name}' and version '{version}' not found");
        Problem::new(404, 900_308, "API Not Found", text)
    })?;
    api::by_id(tx, &call.caller, &found.id, what)
}

fn export(call: &Call<'_>) -> Result<Response, Problem> {
    exported(call, "apiId", false)
}

/// The archive of an API, or of a revision of it.
pub(super) fn exported(call: &Call<'_>, id_parameter: &str, is_product: bool) -> Result<Response, Problem> {
    let (folder, files) = call.control.store.read(|tx| {
        let api = named(tx, call, id_parameter, is_product)?;
        let revisions = revisions::all(tx, &api)?;
        let wanted = match (call.query.flag("latestRevision"), call.query.number("revisionNumber")) {
            (true, _) => revisions.last().cloned(),
            (false, Some(number)) => {
                let found = revisions.iter().find(|revision| revisions::number(revision) == number as u64).cloned();
                let text = format!("No revision number {number}");
                Some(found.ok_or_else(|| Problem::new(404, 903_228, "Revision number is invalid", text))?)
            }
            (false, None) => None,
        };
        let mut source = wanted.as_ref().map_or_else(|| api.clone(), revisions::api_of);
        source.owner.clone_from(&api.owner);
        source.state.clone_from(&api.state);
        if call.query.get("preserveStatus") == Some("false") {
            source.state = "CREATED".to_owned();
        }
        let mut files = project(tx, &source, Purpose::Export)?;
        let deployments: Vec<Value> = match &wanted {
            Some(revision) => revisions::deployed(revision),
            None => revisions.iter().flat_map(revisions::deployed).collect(),
        }
        .iter()
        .map(|deployment| {
            json!({
                "displayOnDevportal": deployment.get("displayOnDevportal"), "deploymentEnvironment": deployment.get("name"),
                "deploymentVhost": deployment.get("vhost"),
            })
        })
        .collect();
        if !deployments.is_empty() {
            let content = json!({"type": "deployment_environments", "version": "v4.3.0", "data": deployments});
            files.push(("deployment_environments.yaml".to_owned(), yaml::write(&content).into()));
        }
        for document in tx.list(&Filter::new(Kind::Document, &api.organization).parent(&api.id))? {
            let content = json!({"type": "document", "version": "v4.7.0", "data": super::documents::body(&document)});
            let folder = format!("Docs/{}", document.name.replace(['/', '\\'], "_"));
            files.push((format!("{folder}/document.yaml"), yaml::write(&content).into()));
            for file in tx.files(&document.id, "")? {
                files.push((format!("{folder}/{}", document_file_name(&document, &file)), file.content));
            }
        }
        Ok((format!("{}-{}", api.name, api.text("version")), files))
    })?;
    download(&folder, &files)
}

fn document_file_name(document: &Object, file: &File) -> String {
    let name = document.text("fileName");
    let name = if name.is_empty() { file.path.as_str() } else { name };
    name.rsplit(['/', '\\']).next().unwrap_or("content").to_owned()
}

/// The files of an uploaded project, without the folder around them.
pub(super) struct Project {
    files: Vec<(String, Bytes)>,
}

impl Project {
    /// Reads an archive; with `--params` the project is an archive in it, and the parameters are beside that.
    pub(super) fn read(
        call: &Call<'_>,
        archive: Bytes,
        descriptors: &[&str],
    ) -> Result<(Project, Option<Value>), Problem> {
        let unzip = |archive: Bytes| {
            call.control
                .host
                .unzip(archive)
                .map_err(|why| Problem::bad_request(format!("Not an archive of a project: {why}")))
        };
        let mut files = unzip(archive)?;
        let mut parameters = None;
        if let Some((_, inner)) = files.iter().find(|(path, _)| base_name(path) == "SourceArchive.zip").cloned() {
            let found = files.iter().find(|(path, _)| base_name(path).starts_with("intermediate_params."));
            if let Some((path, text)) = found {
                let read = call.control.host.parse_yaml(text);
                parameters = Some(read.map_err(|why| Problem::bad_request(format!("{path}: {why}")))?);
            }
            files = unzip(inner)?;
        }
        let root = files
            .iter()
            .filter(|(path, _)| descriptors.contains(&base_name(path)))
            .map(|(path, _)| path[..path.len() - base_name(path).len()].to_owned())
            .min_by_key(|folder| folder.matches('/').count());
        let Some(root) = root else {
            let text = format!("The archive has no {}", descriptors.join(" or "));
            return Err(Problem::rejected(900_909, "Error while importing: the definition is missing", text));
        };
        let files =
            files.into_iter().filter_map(|(path, content)| Some((path.strip_prefix(&root)?.to_owned(), content)));
        Ok((Project { files: files.collect() }, parameters))
    }

    pub(super) fn file(&self, names: &[&str]) -> Option<(&str, &Bytes)> {
        let found = names.iter().find_map(|name| self.files.iter().find(|(path, _)| path == name));
        found.map(|(path, content)| (path.as_str(), content))
    }

    /// The files of a folder with their paths in it.
    pub(super) fn folder<'p>(&'p self, prefix: &'p str) -> impl Iterator<Item = (&'p str, &'p Bytes)> {
        self.files.iter().filter_map(move |(path, content)| Some((path.strip_prefix(prefix)?, content)))
    }

    /// `data` of a file of the project.
    pub(super) fn data(&self, call: &Call<'_>, names: &[&str]) -> Result<Option<Value>, Problem> {
        let Some((path, content)) = self.file(names) else { return Ok(None) };
        let read = call.control.host.parse_yaml(content);
        let mut value = read.map_err(|why| Problem::bad_request(format!("{path}: {why}")))?;
        Ok(Some(match value.get_mut("data") {
            Some(data) => data.take(),
            None => value,
        }))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

const DESCRIPTORS: [&str; 3] = ["api.yaml", "api.yml", "api.json"];

fn import(call: &Call<'_>) -> Result<Response, Problem> {
    let part = uploaded(call, "file")?;
    let (project, parameters) = Project::read(call, part.content, &DESCRIPTORS)?;
    if call.query.flag("dryRun") {
        return Ok(Response::json(200, &json!({"compliance-check": {"result": "pass", "violations": []}})));
    }
    let (api, revision) = call
        .control
        .change_served(|tx| import_in(tx, call, &project, parameters.as_ref(), call.query.flag("overwrite")))?;
    let wants_json = call.request.header("accept").is_some_and(|accept| accept.contains("application/json"));
    Ok(match wants_json {
        true => Response::json(200, &json!({"id": api.id, "revision": revision.map(|revision| revision.id)})),
        false => Response::of_type(200, "text/plain", "API imported successfully."),
    })
}

/// Imports an API: it is created or replaced, brought to the state of the archive, and deployed where the archive or the
/// parameters name environments.
pub(super) fn import_in(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    project: &Project,
    parameters: Option<&Value>,
    overwrite: bool,
) -> Result<(Object, Option<Object>), Problem> {
    let data = project.data(call, &DESCRIPTORS)?;
    let Some(Value::Object(mut data)) = data else {
        return Err(Problem::bad_request("api.yaml: `data` must be a mapping"));
    };
    let wanted_state = api::text(&data, "lifeCycleStatus").to_uppercase();
    if call.query.get("preserveProvider") == Some("false") {
        data.shift_remove("provider");
    }
    if let Some(parameters) = parameters {
        merge_parameters(&mut data, parameters)?;
    }
    data.retain(|name, _| members::MEMBERS.iter().any(|(known, _)| known == name));
    for name in ["id", "isRevision", "revisionId", "revisionedApiId", "lifeCycleStatus"] {
        data.shift_remove(name);
    }
    schema::check(&data, members::MEMBERS, &["name", "context", "version"])?;
    let imported_policies = policies::import_files(tx, call, project)?;
    policies::rename_ids(&mut data, &imported_policies);
    let definition_file = definition_of(call, project)?;
    let (name, version) = (api::text(&data, "name").to_owned(), api::text(&data, "version").to_owned());
    let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(&name))?;
    let known = same.into_iter().find(|api| api.text("version") == version);
    let mut api = match known {
        Some(_) if !overwrite => {
            let text = format!("An API with the name '{name}' and the version '{version}' exists");
            return Err(Problem::conflict(900_300, "The API already exists.", text));
        }
        Some(known) => {
            let updated = api::update_in(tx, &call.caller, known, data)?;
            if let Some(file) = &definition_file {
                tx.put_file(&updated.organization, &updated.id, file)?;
                definition::refresh(tx, &updated)?;
            }
            updated
        }
        None => {
            let created = api::create_in(tx, &call.caller, data, definition_file)?;
            definition::refresh(tx, &created)?;
            created
        }
    };
    import_thumbnail(tx, &mut api, project)?;
    super::documents::import_files(tx, call, &api, project)?;
    certificates::import_files(tx, call, project)?;
    client_certificates::import_files(tx, call, &api, project)?;
    if !wanted_state.is_empty() && wanted_state != "CREATED" || overwrite {
        let wanted = if wanted_state.is_empty() { "CREATED" } else { &wanted_state };
        let actions = lifecycle::path(&api.state, wanted).ok_or_else(|| {
            let text = format!("The lifecycle has no way from {} to {wanted}", api.state);
            Problem::rejected(903_234, "Unsupported state change action", text)
        })?;
        for action in actions {
            // The version moves with each change.
            api = api::by_id(tx, &call.caller, &api.id, "API")?;
            lifecycle::apply(tx, &call.caller, &mut api, action)?;
        }
    }
    let revision = deploy_imported(tx, call, &api, project, parameters)?;
    Ok((api, revision))
}

fn import_thumbnail(tx: &Transaction<'_>, api: &mut Object, project: &Project) -> Result<(), Problem> {
    let found = project.folder("Image/").find(|(name, _)| name.starts_with("icon."));
    let Some((name, content)) = found else { return Ok(()) };
    let media_type = match name.rsplit('.').next() {
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("svg") => "image/svg+xml",
        Some("gif") => "image/gif",
        _ => "image/png",
    };
    tx.put_file(&api.organization, &api.id, &File::new(api::THUMBNAIL, media_type, content.clone()))?;
    api.set("hasThumbnail", true);
    tx.update(api)?;
    Ok(())
}

/// Makes a revision and deploys it, when environments are named.
pub(super) fn deploy_imported(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    api: &Object,
    project: &Project,
    parameters: Option<&Value>,
) -> Result<Option<Object>, Problem> {
    const NAMES: [&str; 2] = ["deployment_environments.yaml", "deployment_environments.json"];
    let configured = parameters.and_then(|parameters| parameters.get("deploymentEnvironments").cloned());
    let targets = match configured {
        Some(configured) => Some(configured),
        None => project.data(call, &NAMES)?,
    };
    let targets: Vec<Value> = targets
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|target| {
            json!({
                "name": target.get("deploymentEnvironment"), "vhost": target.get("deploymentVhost"),
                "displayOnDevportal": target.get("displayOnDevportal").and_then(Value::as_bool).unwrap_or(true),
            })
        })
        .collect();
    if targets.is_empty() || api::advertised(&api.document) {
        return Ok(None);
    }
    let current = api::by_id(tx, &call.caller, &api.id, "API")?;
    if call.query.flag("rotateRevision") {
        revisions::make_room(tx, &current)?;
    }
    let description = "Revision created after importing the API";
    let revision = revisions::create_in(tx, &call.caller, &current, description)?;
    revisions::deploy_in(tx, &call.caller, &current, &revision, &targets)?;
    Ok(Some(revision))
}

/// The definition of a project, as it is kept.
fn definition_of(call: &Call<'_>, project: &Project) -> Result<Option<File>, Problem> {
    let names = ["Definitions/swagger.yaml", "Definitions/swagger.yml", "Definitions/swagger.json"];
    match project.file(&names) {
        Some((_, content)) => Ok(Some(definition::read(call, content)?.file)),
        None => Ok(None),
    }
}

/// Puts the parameters of an environment into an API. What cannot be applied is an error: a silent fallback would send
/// requests of production to the wrong backend.
fn merge_parameters(data: &mut Map<String, Value>, parameters: &Value) -> Result<(), Problem> {
    let Some(parameters) = parameters.as_object() else {
        return Err(Problem::bad_request("intermediate_params.yaml must be a mapping"));
    };
    for (name, value) in parameters {
        match name.as_str() {
            "endpoints" => merge_endpoints(data, value)?,
            "security" => merge_security(data, value)?,
            "policies" => drop(data.insert("policies".into(), value.clone())),
            "deploymentEnvironments" | "dependentAPIs" => {}
            "endpointType" if matches!(value.as_str(), Some("rest" | "soap")) => {
                let kind = if value.as_str() == Some("soap") { "address" } else { "http" };
                let config = data.entry("endpointConfig").or_insert_with(|| json!({}));
                config["endpoint_type"] = kind.into();
            }
            "additionalProperties" => drop(data.insert("additionalProperties".into(), value.clone())),
            _ if value.is_null() => {}
            other => {
                return Err(Problem::bad_request(format!(
                    "intermediate_params.yaml: the parameter `{other}` is not supported"
                )));
            }
        }
    }
    Ok(())
}

fn merge_endpoints(data: &mut Map<String, Value>, endpoints: &Value) -> Result<(), Problem> {
    let config = data.entry("endpointConfig").or_insert_with(|| json!({"endpoint_type": "http"}));
    if config.get("endpoint_type").is_none_or(Value::is_null) {
        config["endpoint_type"] = "http".into();
    }
    for kind in ["production", "sandbox"] {
        let Some(endpoint) = endpoints.get(kind).filter(|endpoint| !endpoint.is_null()) else { continue };
        if endpoint.get("url").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Problem::bad_request(format!("intermediate_params.yaml: endpoints.{kind} has no `url`")));
        }
        config[format!("{kind}_endpoints")] = endpoint.clone();
    }
    Ok(())
}

fn merge_security(data: &mut Map<String, Value>, security: &Value) -> Result<(), Problem> {
    let config = data.entry("endpointConfig").or_insert_with(|| json!({"endpoint_type": "http"}));
    for kind in ["production", "sandbox"] {
        let Some(given) = security.get(kind).and_then(Value::as_object) else { continue };
        let mut given = given.clone();
        if let Some(named) = given.get("type").and_then(Value::as_str) {
            let upper = named.to_uppercase();
            given.insert("type".into(), upper.into());
        }
        config["endpoint_security"][kind] = Value::Object(given);
    }
    Ok(())
}
