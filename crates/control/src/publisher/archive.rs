//! API projects: what an API is as files, for the gateway and for `apictl`; and their export.

use std::io::{Cursor, Write};

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::api::{self, body};
use super::{
    asyncapi, certificates, client_certificates, definition, endpoints, mcp, policies, products, revisions,
    soap_to_rest, yaml,
};
use crate::http::Response;
use crate::multipart::{self, FormPart};
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("GET", "/apis/export", |call| exported(call, "apiId", Subject::Api)),
    ("GET", "/api-products/export", |call| exported(call, "apiProductId", Subject::Product)),
    ("GET", "/mcp-servers/export", |call| exported(call, "mcpServerId", Subject::McpServer)),
];

/// What a project describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Api,
    Product,
    McpServer,
}

impl Subject {
    /// What an object is.
    pub(crate) fn of(api: &Object) -> Subject {
        match api.text("type") {
            "APIPRODUCT" => Subject::Product,
            "MCP" => Subject::McpServer,
            _ => Subject::Api,
        }
    }

    /// As messages name it.
    pub(super) fn title(self) -> &'static str {
        match self {
            Subject::Api => "API",
            Subject::Product => "API Product",
            Subject::McpServer => "MCP Server",
        }
    }

    /// The type in a descriptor, and the stem of the name of its file.
    fn kind(self) -> &'static str {
        match self {
            Subject::Api => "api",
            Subject::Product => "api_product",
            Subject::McpServer => "mcp_server",
        }
    }
}

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
    let subject = Subject::of(api);
    let mut data = match body(api) {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    if purpose == Purpose::Serve
        && let Some(config) = api.document.get("endpointConfig")
    {
        data.insert("endpointConfig".into(), config.clone());
    }
    let mut converting = Vec::new();
    if purpose == Purpose::Serve && subject == Subject::Api {
        endpoints::resolve_primary(api, &mut data);
        if api.text("type") == "SOAPTOREST" {
            converting = soap_to_rest::serve(tx, api, &mut data)?;
        }
        if api.text("type") == "WEBHOOK" {
            data.insert("type".into(), "WEBSUB".into());
        }
    }
    if subject == Subject::McpServer {
        // Its descriptor has a type of its own.
        data.shift_remove("type");
    }
    // An absent member has its default; an exported file is read by people.
    data.retain(|_, value| !value.is_null());
    let descriptor = json!({"type": subject.kind(), "version": "v4.7.0", "data": data});
    let mut files: Vec<(String, Bytes)> = Vec::new();
    let text = |value: &Value| match purpose {
        Purpose::Serve => value.to_string(),
        Purpose::Export => yaml::write(value),
    };
    files.push((format!("{}.yaml", subject.kind()), text(&descriptor).into()));
    if subject == Subject::McpServer {
        files.extend(mcp::backends_file(api, purpose).map(|list| ("backends.yaml".to_owned(), text(&list).into())));
    }
    if purpose == Purpose::Export {
        files.extend(endpoints::file(api).map(|list| ("endpoints.yaml".to_owned(), text(&list).into())));
    }
    for file in tx.files(&api.id, "")? {
        match (file.path.as_str(), purpose) {
            (definition::FILE, Purpose::Serve) => files.push((file.path, file.content)),
            (definition::FILE | asyncapi::FILE, Purpose::Export) => {
                let parsed: Value = serde_json::from_slice(&file.content).unwrap_or_default();
                let path = file.path.replace(".json", ".yaml");
                files.push((path, yaml::write(&parsed).into()));
            }
            (path, Purpose::Serve) if path.starts_with(soap_to_rest::FOLDER) => {}
            (api::THUMBNAIL, Purpose::Serve) => {}
            (api::THUMBNAIL, Purpose::Export) => {
                files.push((format!("{}.{}", api::THUMBNAIL, ending(&file.media_type)), file.content));
            }
            _ => files.push((file.path, file.content)),
        }
    }
    files.extend(converting);
    files.extend(policies::files(tx, api)?);
    files.extend(certificates::files(tx, api)?);
    files.extend(client_certificates::files(tx, api)?);
    if subject == Subject::Product {
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
    subject: Subject,
) -> Result<Object, Problem> {
    let what = subject.title();
    if let Some(id) = call.query.get(id_parameter) {
        return api::by_id(tx, &call.caller, id, what);
    }
    let (name, version) = (call.needed("name")?, call.query.get("version").unwrap_or("1.0.0"));
    let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(name))?;
    let found = same.into_iter().find(|api| api.text("version") == version && Subject::of(api) == subject);
    let found = found.ok_or_else(|| {
        let text = format!("Requested {what} with name '{name}' and version '{version}' not found");
        Problem::new(404, 900_308, "API Not Found", text)
    })?;
    api::by_id(tx, &call.caller, &found.id, what)
}

/// The archive of an API, or of a revision of it.
pub(super) fn exported(call: &Call<'_>, id_parameter: &str, subject: Subject) -> Result<Response, Problem> {
    let (folder, files) = call.control.store.read(|tx| {
        let api = named(tx, call, id_parameter, subject)?;
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
    let files = match call.query.get("format") {
        Some(format) if format.eq_ignore_ascii_case("json") => as_json(call, files)?,
        _ => files,
    };
    download(&folder, &files)
}

/// The same files with JSON in place of YAML.
fn as_json(call: &Call<'_>, files: Vec<(String, Bytes)>) -> Result<Vec<(String, Bytes)>, Problem> {
    let convert = |(path, content): (String, Bytes)| match path.strip_suffix(".yaml") {
        Some(stem) => {
            let value = call.control.host.parse_yaml(&content).map_err(Problem::caused)?;
            Ok((format!("{stem}.json"), format!("{value:#}").into()))
        }
        None => Ok((path, content)),
    };
    files.into_iter().map(convert).collect()
}

fn document_file_name(document: &Object, file: &File) -> String {
    let name = document.text("fileName");
    let name = if name.is_empty() { file.path.as_str() } else { name };
    name.rsplit(['/', '\\']).next().unwrap_or("content").to_owned()
}
