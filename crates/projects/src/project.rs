//! From the files of a project to an API.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, At, Cluster, Endpoints, Implementation, Operation, Requirement, Schemes};

use super::descriptor::{self, Descriptor};
use super::document::{self, Document, Item, Reading};
use super::openapi::{self, Examples, OpenApi};
use super::{
    Definition, Import, Imported, Project, ProjectFile, asyncapi, hint, legacy, mcp, product, restapi, sniff,
    substitute, websub,
};
use crate::place;

/// The names the descriptor of a project may have.
const DESCRIPTORS: [&str; 3] = ["api.yaml", "api.yml", "api.json"];

/// Where exports of API Manager 2 and 3 have it.
const OLD_DESCRIPTORS: [&str; 3] =
    ["Meta-information/api.yaml", "Meta-information/api.yml", "Meta-information/api.json"];

/// Where the definition of a project may stand, the first of them that is there.
pub(super) const DEFINITIONS: [&str; 10] = [
    "Definitions/swagger.yaml",
    "Definitions/swagger.yml",
    "Definitions/swagger.json",
    "Definitions/openapi.yaml",
    "Definitions/openapi.json",
    "Meta-information/swagger.yaml",
    "Meta-information/swagger.json",
    "Definitions/asyncapi.yaml",
    "Definitions/asyncapi.yml",
    "Definitions/asyncapi.json",
];

/// Segments of a path. The tree of routes is walked as deep as this.
const SEGMENTS_MAX: usize = 64;

impl Project {
    /// A file by its path inside the project.
    pub(super) fn file(&self, path: &str) -> Option<&ProjectFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files directly inside a folder of the project.
    pub(super) fn folder<'p>(&'p self, folder: &'p str) -> impl Iterator<Item = (&'p str, &'p ProjectFile)> {
        self.files.iter().filter_map(move |file| {
            let name = file.path.strip_prefix(folder)?.strip_prefix('/')?;
            (!name.contains('/')).then_some((name, file))
        })
    }

    fn main(&self) -> Option<&ProjectFile> {
        let names = DESCRIPTORS.iter().chain(&mcp::DESCRIPTORS).chain(&product::DESCRIPTORS).chain(&OLD_DESCRIPTORS);
        let descriptor = names.into_iter().find_map(|name| self.file(name));
        descriptor.or_else(|| self.files.iter().find(|file| file.path.is_empty()))
    }
}

/// What a document that is no definition is.
enum Data<'d> {
    /// The description of an API.
    Api(Item<'d>),
    /// A descriptor with a mistake, which was said.
    Broken,
    /// Something else, which was said.
    Other,
}

impl Import<'_> {
    /// Reads a project; `None` when nothing in it is an API.
    pub fn project(&mut self, project: &Project) -> Option<Imported> {
        let mut imported = self.read_project(project);
        self.settle_protection(&mut imported);
        imported
    }

    fn read_project(&mut self, project: &Project) -> Option<Imported> {
        let Some(main) = project.main() else {
            let at = At { file: project.name.clone(), line: 1, column: 1 };
            self.error(&at, "the project has no `api.yaml`");
            return Some(Imported { name: project.name.to_string(), at: place(&at), api: None });
        };
        let start = At { file: main.file.clone(), line: 1, column: 1 };
        let failed = |name: String| Some(Imported { name, at: place(&start), api: None });
        let file_name = main.file.rsplit(['/', '!']).next().unwrap_or_default().to_owned();
        let mut document = match read_definition(&main.file, &main.bytes, Examples::Skip) {
            Ok(document) => document,
            Err((at, message)) => {
                self.error(&at, message);
                return failed(file_name);
            }
        };
        match sniff::definition(&document.item()) {
            Err(message) => {
                self.error(&start, message);
                return failed(file_name);
            }
            Ok(Some(kind)) => {
                self.include(project, &main.path, &mut document);
                return self.definition_alone(&document, kind, &main.bytes);
            }
            Ok(None) => {}
        }
        if restapi::is_resource(&document.item()) {
            return self.resource(&mut document, start);
        }
        substitute::apply(self, &main.file, &mut document.root);
        if legacy::is_legacy(&document.item()) {
            document = legacy::convert(self, &document);
        }
        let kind = document.item().get("type").and_then(|kind| kind.text().cloned());
        if let Some(kind @ ("mcp_server" | "api_product")) = kind.as_deref() {
            return self.described_otherwise(project, &document, kind, start);
        }
        let data = match self.api_data(&document, &file_name) {
            Data::Api(data) => data,
            Data::Broken => return failed(file_name),
            Data::Other => return None,
        };
        let Some(descriptor) = descriptor::read(self, &data) else { return failed(file_name) };
        let name = format!("{}:{}", descriptor.api.name, descriptor.api.version);
        let api = self.described(project, descriptor);
        let api = api.filter(|_| !self.failed()).map(Arc::new);
        Some(Imported { name, at: place(&start), api })
    }

    /// A resource of the API Platform.
    fn resource(&mut self, document: &mut Document, start: At) -> Option<Imported> {
        let mut api = match restapi::read(self, document) {
            restapi::Resource::Other => return None,
            restapi::Resource::Api(api) => api.map(|api| *api),
        };
        if let Some(api) = &mut api {
            self.finish(api, false);
        }
        let name = api.as_ref().map_or_else(|| start.file.to_string(), |api| format!("{}:{}", api.name, api.version));
        let api = api.filter(|_| !self.failed()).map(Arc::new);
        Some(Imported { name, at: place(&start), api })
    }

    /// A project whose descriptor describes an MCP server or a product.
    fn described_otherwise(
        &mut self,
        project: &Project,
        document: &Document,
        kind: &str,
        start: At,
    ) -> Option<Imported> {
        let root = document.item();
        let data = root.get("data").filter(|data| data.is_map());
        let api = match data {
            Some(data) if kind == "api_product" => self.product(project, &data),
            Some(data) => self.mcp_server(project, &data),
            None => {
                self.error(&root.at(), "a descriptor needs `data`, a mapping");
                None
            }
        };
        let name = api.as_ref().map_or_else(|| start.file.to_string(), |api| format!("{}:{}", api.name, api.version));
        let api = api.filter(|_| !self.failed()).map(Arc::new);
        Some(Imported { name, at: place(&start), api })
    }

    /// The part of a descriptor that describes the API.
    fn api_data<'d>(&mut self, document: &'d Document, file_name: &str) -> Data<'d> {
        let root = document.item();
        let kind = root.get("type").and_then(|kind| kind.text().cloned());
        let is_descriptor = DESCRIPTORS.contains(&file_name);
        match kind.as_deref() {
            Some("api") => {}
            // Before version 4 the descriptor was the data itself.
            None if root.has("context") && root.has("version") => return Data::Api(root),
            Some(kind @ "application") => {
                self.error(&root.at(), format!("descriptors of the type `{kind}` are not supported yet"));
                return Data::Broken;
            }
            Some(kind) if !is_descriptor => {
                self.warn(&root.at(), format!("ignored: `{kind}` is part of a project, and no API by itself"));
                return Data::Other;
            }
            Some(kind) => {
                let meant = hint(kind, ["api"].into_iter());
                self.error(&root.at(), format!("`type` must be `api`, not `{kind}`{meant}"));
                return Data::Broken;
            }
            None if !is_descriptor => {
                self.warn(&root.at(), "ignored: neither an API definition nor a descriptor of an API");
                return Data::Other;
            }
            None => {
                self.error(&root.at(), "a descriptor needs `type: api` and `data`");
                return Data::Broken;
            }
        }
        match root.get("data").filter(|data| data.is_map()) {
            Some(data) => Data::Api(data),
            None => {
                self.error(&root.at(), "a descriptor needs `data`, a mapping");
                Data::Broken
            }
        }
    }

    /// A definition that stands by itself.
    fn definition_alone(&mut self, document: &Document, kind: Definition, bytes: &bytes::Bytes) -> Option<Imported> {
        let at = document.item().at();
        let definition = match kind {
            Definition::AsyncApi => asyncapi::read(self, document.item(), asyncapi::kind_of(&document.item())),
            _ => openapi::read(self, document.item(), kind, Examples::Skip),
        };
        let name = format!("{}:{}", definition.api.name, definition.api.version);
        let OpenApi { mut api, base_path, fallback_base, server, sandbox_server, http2, labels } = definition;
        api.base_path = base_path.unwrap_or(fallback_base);
        api.definition = Some(bytes.as_ref().into());
        for (label, at) in labels {
            self.environment(&label, &at, &mut api);
        }
        // A sandbox alone means there is no production.
        if api.endpoints.production.is_none() && api.endpoints.sandbox.is_none() {
            (api.endpoints.production, api.endpoints.sandbox) = (server, sandbox_server);
        }
        self.finish(&mut api, http2);
        let api = (!self.failed()).then(|| Arc::new(api));
        Some(Imported { name, at: place(&at), api })
    }

    /// A project with a descriptor.
    fn described(&mut self, project: &Project, descriptor: Descriptor) -> Option<Api> {
        let Descriptor { mut api, schemes, sequences, context, is_default, endpoints_at } = descriptor;
        let wants_examples = api.implementation == Implementation::Mock;
        let speaks_graphql = api.kind == ApiKind::GraphQl;
        let is_hub = api.kind == ApiKind::WebSub;
        if speaks_graphql {
            self.graphql(project, &mut api);
        }
        let found = DEFINITIONS.iter().find_map(|path| project.file(path)).filter(|_| !speaks_graphql && !is_hub);
        let mut http2 = false;
        let mut explicit_base = None;
        if let Some(file) = found {
            let examples = if wants_examples { Examples::Read } else { Examples::Skip };
            let mut document = match read_definition(&file.file, &file.bytes, examples) {
                Ok(document) => document,
                Err((at, message)) => {
                    self.error(&at, message);
                    return None;
                }
            };
            self.include(project, &file.path, &mut document);
            let at = document.item().at();
            let kind = match sniff::definition(&document.item()) {
                Ok(Some(kind)) => kind,
                Ok(None) => {
                    self.error(&at, "not an API definition: it has none of `openapi`, `swagger` and `asyncapi`");
                    return None;
                }
                Err(message) => {
                    self.error(&at, message);
                    return None;
                }
            };
            let definition = match (kind, api.kind) {
                (Definition::AsyncApi, kind @ (ApiKind::WebSocket | ApiKind::Sse)) => {
                    Some(asyncapi::read(self, document.item(), kind))
                }
                (Definition::AsyncApi, _) => {
                    self.error(&at, "AsyncAPI describes APIs of the types `WS` and `SSE`, and this one is of another");
                    None
                }
                (_, ApiKind::WebSocket) => {
                    self.warn(&at, "ignored: the topics of an API of the type `WS` are described by AsyncAPI");
                    None
                }
                _ => Some(openapi::read(self, document.item(), kind, examples)),
            };
            if let Some(definition) = definition {
                http2 = definition.http2;
                explicit_base = definition.base_path.clone();
                self.merge(&mut api, definition, endpoints_at.is_none());
                api.definition = Some(file.bytes.as_ref().into());
            }
        }
        let versioned = context.base_path(&api.version);
        api.base_path = explicit_base.unwrap_or(versioned);
        if is_default {
            api.default_path = without_version(&api.base_path, &api.version);
        }
        self.policies_of(project, &mut api);
        self.sequences(project, sequences, &mut api);
        self.certificates(project, &mut api);
        self.deployments(project, &mut api);
        self.parameters(project, &mut api);
        if is_hub {
            websub::finish(self, project, &mut api);
        }
        if let Some(schemes) = schemes {
            apply_schemes(&mut api, schemes);
        }
        self.finish(&mut api, http2);
        Some(api)
    }

    /// What the definition says besides the descriptor. Its extensions win: the descriptor that `apictl init` writes
    /// beside a definition has a default backend and context.
    fn merge(&mut self, api: &mut Api, definition: OpenApi, no_endpoints: bool) {
        let OpenApi { api: defined, server, sandbox_server, .. } = definition;
        if defined.endpoints.production.is_some() || defined.endpoints.sandbox.is_some() {
            let only_sandbox = defined.endpoints.production.is_none();
            api.endpoints.production = defined.endpoints.production.or(api.endpoints.production.take());
            api.endpoints.sandbox = defined.endpoints.sandbox.or(api.endpoints.sandbox.take());
            if only_sandbox && no_endpoints {
                api.endpoints.production = None;
            }
        } else if no_endpoints {
            (api.endpoints.production, api.endpoints.sandbox) = (server, sandbox_server);
        }
        api.endpoints.named = defined.endpoints.named;
        api.cors = defined.cors.or(api.cors.take());
        api.tier = api.tier.take().or(defined.tier);
        api.authorization_header = api.authorization_header.take().or(defined.authorization_header);
        api.api_key_header = api.api_key_header.take().or(defined.api_key_header);
        api.schema_validation |= defined.schema_validation;
        api.response_cache = api.response_cache.or(defined.response_cache);
        if api.transports.is_empty() {
            api.transports = defined.transports;
        }
        if defined.implementation == Implementation::Mock {
            api.implementation = Implementation::Mock;
        }
        api.security = defined.security;
        let described = std::mem::replace(&mut api.operations, defined.operations);
        self.overlay(api, described);
    }

    /// What a descriptor says of operations: policies always, the rest where the definition is silent.
    fn overlay(&mut self, api: &mut Api, described: Vec<Arc<Operation>>) {
        let key = |operation: &Operation| (operation.method.clone(), cut(&operation.path).to_owned());
        let mut places: HashMap<(Arc<str>, String), usize> = HashMap::new();
        for (place, operation) in api.operations.iter().enumerate() {
            places.entry(key(operation)).or_insert(place);
        }
        for wanted in described {
            let place = places.get(&key(&wanted)).copied();
            let Some(operation) = place.and_then(|place| api.operations.get_mut(place)) else {
                let has_policies = [&wanted.policies.request, &wanted.policies.response, &wanted.policies.fault];
                if has_policies.iter().any(|flow| !flow.is_empty()) {
                    let message = format!("the definition has no operation {} {}", wanted.method, wanted.path);
                    self.warn(&wanted.at, format!("{message}; the policies here are ignored"));
                }
                continue;
            };
            let operation = Arc::make_mut(operation);
            operation.policies = wanted.policies.clone();
            if operation.scopes.is_empty() {
                operation.scopes = wanted.scopes.clone();
            }
            if operation.tier.is_none() && api.tier.is_none() {
                operation.tier = wanted.tier.clone();
            }
            operation.secured &= wanted.secured;
            if operation.lambda.is_none() {
                operation.lambda = wanted.lambda.clone();
            }
            if operation.uri_mapping.is_none() {
                operation.uri_mapping = wanted.uri_mapping.clone();
            }
        }
    }

    /// What holds for every API, however it was described.
    pub(super) fn finish(&mut self, api: &mut Api, http2: bool) {
        if http2 {
            let with = |cluster: &mut Option<Arc<Cluster>>| {
                if let Some(cluster) = cluster {
                    Arc::make_mut(cluster).http2 = true;
                }
            };
            with(&mut api.endpoints.production);
            with(&mut api.endpoints.sandbox);
            for operation in &mut api.operations {
                if let Some(endpoints) = &mut Arc::make_mut(operation).endpoints {
                    with(&mut endpoints.production);
                    with(&mut endpoints.sandbox);
                }
            }
            for (_, cluster) in &mut api.endpoints.named {
                Arc::make_mut(cluster).http2 = true;
            }
        }
        // A path that names backends for one kind of key leaves those of the other kind to the API.
        let Api { operations, endpoints, .. } = &mut *api;
        let one_kind = |own: &Endpoints| own.production.is_none() != own.sandbox.is_none();
        for operation in operations.iter_mut().filter(|operation| operation.endpoints.as_ref().is_some_and(one_kind)) {
            if let Some(own) = &mut Arc::make_mut(operation).endpoints {
                own.production = own.production.take().or_else(|| endpoints.production.clone());
                own.sandbox = own.sandbox.take().or_else(|| endpoints.sandbox.clone());
            }
        }
        if matches!(api.kind, ApiKind::WebSocket | ApiKind::Sse) {
            asyncapi::finish(self, api);
        }
        if api.lambda.is_some()
            && let Some(without) = api.operations.iter().find(|operation| operation.lambda.is_none())
        {
            let message = format!("the operation {} {} names no function of AWS", without.method, without.path);
            let at = without.at.clone();
            self.error(&at, message);
        }
        if api.operations.is_empty() && !self.failed() {
            let message = "the API has no operation: give `Definitions/swagger.yaml` or `operations`";
            self.error(&api.at.clone(), message);
        }
        let segments = |path: &str| path.matches('/').count();
        let too_deep = api.operations.iter().find(|operation| segments(&operation.path) > SEGMENTS_MAX);
        if let Some(operation) = too_deep {
            let at = operation.at.clone();
            self.error(&at, format!("a path has more than {SEGMENTS_MAX} segments"));
        }
        self.unreachable(api);
        if !api.schema_validation {
            // Most of what an API would need memory for.
            api.definition = None;
        }
        if segments(&api.base_path) > SEGMENTS_MAX {
            self.error(&api.at.clone(), format!("the base path has more than {SEGMENTS_MAX} segments"));
        }
        if api.name.is_empty() {
            self.error(&api.at.clone(), "the API has no name");
        }
        let has_backend = |endpoints: &Endpoints| endpoints.production.is_some() || endpoints.sandbox.is_some();
        let needs_backend =
            api.implementation == Implementation::Endpoint && !matches!(api.kind, ApiKind::Mcp | ApiKind::WebSub);
        if needs_backend && !has_backend(&api.endpoints) && !self.failed() {
            let without = api
                .operations
                .iter()
                .find(|operation| operation.lambda.is_none() && !operation.endpoints.as_ref().is_some_and(has_backend));
            if without.is_some() {
                let message =
                    "the API has no backend: give `x-wso2-production-endpoints`, `endpointConfig` or `servers`";
                self.error(&api.at.clone(), message);
            }
        }
    }
}

/// A definition, without what is about bodies unless answers are made of its examples.
fn read_definition(file: &Arc<str>, bytes: &[u8], examples: Examples) -> Result<Document, (At, String)> {
    if examples == Examples::Skip {
        let document = document::read(file, bytes, Reading::Skim)?;
        if document.item().get("x-wso2-is-mock-api").and_then(|flag| flag.flag()) != Some(true) {
            return Ok(document);
        }
    }
    document::read(file, bytes, Reading::Whole)
}

/// Credentials that a descriptor requires, instead of those of the definition; scopes stay.
pub(super) fn apply_schemes(api: &mut Api, schemes: Schemes) {
    let key_header = api.api_key_header.clone().unwrap_or_else(|| "apikey".into());
    for operation in &mut api.operations {
        let operation = Arc::make_mut(operation);
        let mut requirements = Vec::new();
        if schemes.oauth2 {
            requirements.push(Requirement::OAuth2(operation.scopes.clone()));
        }
        if schemes.api_key {
            requirements.push(Requirement::ApiKeyHeader(key_header.clone()));
            requirements.push(Requirement::ApiKeyQuery("apikey".into()));
        }
        if schemes.basic {
            requirements.push(Requirement::Basic);
        }
        operation.requirements = requirements;
    }
    api.security = schemes;
}

/// Paths that differ only by a slash at the end are the same.
fn cut(path: &str) -> &str {
    path.split('?').next().unwrap_or_default().trim_end_matches('/')
}

/// A base path without the version in it, when it has one.
pub(super) fn without_version(base_path: &str, version: &str) -> Option<Arc<str>> {
    let mut segments: Vec<&str> = base_path.split('/').skip(1).collect();
    let index = segments.iter().rposition(|segment| *segment == version)?;
    segments.remove(index);
    Some(format!("/{}", segments.join("/")).into())
}
