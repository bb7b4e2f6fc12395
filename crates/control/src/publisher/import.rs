//! Import of API projects: an archive with a descriptor, as `apictl` sends it.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::api;
use super::archive::{Subject, uploaded};
use super::{
    asyncapi, certificates, client_certificates, definition, endpoints, graphql, lifecycle, mcp, members, params,
    policies, revisions, soap_to_rest,
};
use crate::http::Response;
use crate::identity::users;
use crate::problem::Problem;
use crate::route::{Call, Registration};
use crate::schema;
use crate::store::{File, Filter, Kind, Object, Transaction};

pub(super) const HANDLERS: &[Registration] = &[
    ("POST", "/apis/import", |call| import(call, Subject::Api)),
    ("POST", "/mcp-servers/import", |call| import(call, Subject::McpServer)),
];

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
        let (mut parameters, mut beside) = (None, Vec::new());
        if let Some((_, inner)) = files.iter().find(|(path, _)| base_name(path) == "SourceArchive.zip").cloned() {
            let found = files.iter().find(|(path, _)| base_name(path).starts_with("intermediate_params."));
            if let Some((path, text)) = found {
                let read = call.control.host.parse_yaml(text);
                parameters = Some(read.map_err(|why| Problem::bad_request(format!("{path}: {why}")))?);
            }
            let around = files.into_iter().filter(|(path, _)| base_name(path) != "SourceArchive.zip");
            beside = around.collect();
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
        let around = beside.into_iter().filter_map(|(path, content): (String, Bytes)| {
            let at = path.find("Deployment/")?;
            Some((path[at..].to_owned(), content))
        });
        Ok((Project { files: files.chain(around).collect() }, parameters))
    }

    /// The project in a folder of this one.
    pub(super) fn within(&self, folder: &str) -> Project {
        let files = self.folder(folder).map(|(path, content)| (path.to_owned(), content.clone()));
        Project { files: files.collect() }
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

/// Where projects have an OpenAPI definition, and the schema of a GraphQL API.
const OPENAPI_NAMES: [&str; 5] = [
    "Definitions/swagger.yaml",
    "Definitions/swagger.yml",
    "Definitions/swagger.json",
    "Definitions/openapi.yaml",
    "Definitions/openapi.json",
];
const GRAPHQL_NAMES: [&str; 3] =
    ["Definitions/schema.graphql", "Definitions/schema.graphqls", "Definitions/schema.gql"];

pub(super) const DESCRIPTORS: [&str; 3] = ["api.yaml", "api.yml", "api.json"];

fn descriptors(subject: Subject) -> &'static [&'static str] {
    match subject {
        Subject::McpServer => &mcp::DESCRIPTORS,
        Subject::Api | Subject::Product => &DESCRIPTORS,
    }
}

/// The response to an import that succeeded.
pub(super) fn imported(call: &Call<'_>, subject: Subject, api: &Object, revision: Option<&Object>) -> Response {
    let wants_json = call.request.header("accept").is_some_and(|accept| accept.contains("application/json"));
    match wants_json {
        true => Response::json(200, &json!({"id": api.id, "revision": revision.map(|revision| &revision.id)})),
        false => Response::of_type(200, "text/plain", format!("{} imported successfully.", subject.title())),
    }
}

fn import(call: &Call<'_>, subject: Subject) -> Result<Response, Problem> {
    let part = uploaded(call, "file")?;
    let (project, parameters) = Project::read(call, part.content, descriptors(subject))?;
    if call.query.flag("dryRun") {
        return Ok(Response::json(200, &json!({"compliance-check": {"result": "pass", "violations": []}})));
    }
    let overwrite = call.query.flag("overwrite");
    let (api, revision) =
        call.control.change_served(|tx| import_in(tx, call, subject, &project, parameters.as_ref(), overwrite))?;
    Ok(imported(call, subject, &api, revision.as_ref()))
}

/// The members of a descriptor, with the state that it has; what is not the client's to say is removed.
pub(super) fn members_of(
    call: &Call<'_>,
    project: &Project,
    descriptors: &[&str],
    parameters: Option<&Value>,
) -> Result<(Map<String, Value>, String), Problem> {
    let Some(Value::Object(mut data)) = project.data(call, descriptors)? else {
        return Err(Problem::bad_request(format!("{}: `data` must be a mapping", descriptors[0])));
    };
    let wanted_state = api::text(&data, "lifeCycleStatus").to_uppercase();
    if call.query.get("preserveProvider") == Some("false") {
        data.shift_remove("provider");
    }
    if let Some(parameters) = parameters {
        params::merge(&mut data, parameters)?;
    }
    // The organization of the server that exported; here it is that of the caller.
    if let Some((_, context)) = api::text(&data, "context").strip_prefix("/t/").and_then(|rest| rest.split_once('/')) {
        let context = format!("/{context}");
        data.insert("context".into(), context.into());
    }
    data.retain(|name, _| members::MEMBERS.iter().any(|(known, _)| known == name));
    for name in ["id", "isRevision", "revisionId", "revisionedApiId", "revisionedMCPServerId", "lifeCycleStatus"] {
        data.shift_remove(name);
    }
    schema::check(&data, members::MEMBERS, &["name", "context", "version"])?;
    Ok((data, wanted_state))
}

/// The provider that an archive names must be a user of the organization of the caller.
pub(super) fn check_provider(tx: &Transaction<'_>, call: &Call<'_>, data: &Map<String, Value>) -> Result<(), Problem> {
    let provider = api::text(data, "provider");
    if provider.is_empty() || users::identify(tx, provider)?.1 == call.organization() {
        return Ok(());
    }
    let text = format!("The provider {provider} is of another tenant; import with preserveProvider=false");
    Err(Problem::forbidden(text))
}

/// The object of a name and a version, of one kind.
pub(super) fn known(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    subject: Subject,
    data: &Map<String, Value>,
) -> Result<Option<Object>, Problem> {
    let same = tx.list(&Filter::new(Kind::Api, call.organization()).named(api::text(data, "name")))?;
    let version = api::text(data, "version");
    Ok(same.into_iter().find(|known| known.text("version") == version && Subject::of(known) == subject))
}

/// The error for an object that is there, when it must not be replaced.
pub(super) fn exists(subject: Subject, data: &Map<String, Value>) -> Problem {
    let (name, version) = (api::text(data, "name"), api::text(data, "version"));
    let text = format!("An {} with the name '{name}' and the version '{version}' exists", subject.title());
    Problem::conflict(900_300, "The API already exists.", text)
}

/// Imports an API or an MCP server: it is created or replaced, brought to the state of the archive, and deployed where the
/// archive or the parameters name environments.
pub(super) fn import_in(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    subject: Subject,
    project: &Project,
    parameters: Option<&Value>,
    overwrite: bool,
) -> Result<(Object, Option<Object>), Problem> {
    let (mut data, wanted_state) = members_of(call, project, descriptors(subject), parameters)?;
    check_provider(tx, call, &data)?;
    let imported_policies = policies::import_files(tx, call, project)?;
    policies::rename_ids(&mut data, &imported_policies);
    if subject == Subject::McpServer {
        mcp::prepare_import(tx, call, &mut data)?;
    }
    let definition_file = definition_of(call, project, &mut data)?;
    let mut api = match known(tx, call, subject, &data)? {
        Some(_) if !overwrite => return Err(exists(subject, &data)),
        Some(known) => {
            let updated = api::update_in(tx, &call.caller, known, data)?;
            if let Some(file) = &definition_file {
                tx.put_file(&updated.organization, &updated.id, file)?;
            }
            updated
        }
        None => api::create_in(tx, &call.caller, data, definition_file)?,
    };
    match asyncapi::is_async(&api) {
        true => asyncapi::refresh(tx, &api)?,
        false => definition::refresh(tx, &api)?,
    }
    if subject == Subject::McpServer {
        mcp::import_backends(tx, call, &mut api, project)?;
    }
    if let Some(list) = project.data(call, &["endpoints.yaml", "endpoints.yml", "endpoints.json"])? {
        endpoints::import(&mut api, list)?;
        tx.update(&mut api)?;
    }
    import_definitions(tx, &api, project)?;
    certificates::import_files(tx, call, project)?;
    client_certificates::import_files(tx, call, &api, project)?;
    if let Some(parameters) = parameters {
        params::add_certificates(tx, call, &api, project, parameters)?;
    }
    finish(tx, call, api, project, parameters, &wanted_state, overwrite)
}

/// Definitions that are kept as they came.
fn import_definitions(tx: &Transaction<'_>, api: &Object, project: &Project) -> Result<(), Problem> {
    let complexity = ["yaml", "yml", "json"].map(|ending| format!("Definitions/graphql-complexity.{ending}"));
    let complexity = complexity.iter().find_map(|path| project.file(&[path]));
    let kept = complexity.map(|(_, content)| (graphql::COMPLEXITY.to_owned(), content)).into_iter();
    let folder =
        |folder: &'static str| project.folder(folder).map(move |(name, content)| (format!("{folder}{name}"), content));
    for (path, content) in kept.chain(folder("WSDL/")).chain(folder(soap_to_rest::FOLDER)) {
        tx.put_file(&api.organization, &api.id, &File::new(path, "text/plain", content.clone()))?;
    }
    Ok(())
}

/// What follows when an imported object is there: thumbnail, documents, state, deployment.
pub(super) fn finish(
    tx: &Transaction<'_>,
    call: &Call<'_>,
    mut api: Object,
    project: &Project,
    parameters: Option<&Value>,
    wanted_state: &str,
    overwrite: bool,
) -> Result<(Object, Option<Object>), Problem> {
    import_thumbnail(tx, &mut api, project)?;
    super::documents::import_files(tx, call, &api, project)?;
    if !wanted_state.is_empty() && wanted_state != "CREATED" || overwrite {
        let wanted = if wanted_state.is_empty() { "CREATED" } else { wanted_state };
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
fn deploy_imported(
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

/// The definition of a project. It says which operations there are, the descriptor what else is known of them.
fn definition_of(call: &Call<'_>, project: &Project, data: &mut Map<String, Value>) -> Result<Option<File>, Problem> {
    let known = api::operations(data);
    let (operations, file) = match api::text(data, "type") {
        "GRAPHQL" => {
            let Some((_, content)) = project.file(&GRAPHQL_NAMES) else { return Ok(None) };
            let operations = graphql::operations_of(content, known)?;
            (operations, File::new(graphql::SCHEMA, "text/plain", content.clone()))
        }
        kind if asyncapi::TYPES.contains(&kind) => {
            let Some((_, content)) = project.file(&asyncapi::NAMES) else { return Ok(None) };
            asyncapi::imported(call, content, known)?
        }
        _ => {
            let Some((_, content)) = project.file(&OPENAPI_NAMES) else { return Ok(None) };
            let described = definition::read(call, content)?;
            (definition::overlaid(&described, known), described.file)
        }
    };
    data.insert("operations".into(), operations);
    Ok(Some(file))
}
