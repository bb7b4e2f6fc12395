//! From artifacts to a program: names first, then bodies, so that order does not matter.

mod api;
mod data_source;
mod definitions;
mod endpoint;
mod kind;
mod local_entry;
mod proxy;
pub(crate) mod sequence;
mod template;
mod unsupported;

use std::sync::Arc;

use bytes::Bytes;
use penstock_engine::{Place, Program, Resource};
use penstock_xml::{Document, ParseOptions};

use crate::compiler::{CompileOptions, Compiler, NameKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::element::{Element, SYNAPSE, Source};
use crate::registry::{Front, Registry};

pub use kind::{ArtifactKind, ArtifactName, declare_nothing, withdraw_nothing};

/// The artifact kinds that this crate compiles. Others come in [`Registry::artifacts`].
pub(crate) const KINDS: &[ArtifactKind] = &[
    api::KIND,
    data_source::KIND,
    definitions::KIND,
    endpoint::KIND,
    local_entry::KIND,
    proxy::KIND,
    sequence::KIND,
    template::KIND,
];

/// A text that takes part in a compilation.
#[derive(Debug, Clone)]
pub struct Input {
    /// The file, `archive!entry` inside an archive.
    pub file: Arc<str>,
    /// Its bytes.
    pub bytes: Bytes,
    /// What it is.
    pub kind: InputKind,
}

/// What an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// Synapse XML: the root element says what.
    Artifact,
    /// A registry resource.
    Resource {
        /// `gov:path`, `conf:path`, `resources:path`.
        key: String,
        /// Its media type.
        media_type: Option<String>,
        /// Its properties.
        properties: Vec<(String, String)>,
    },
    /// A sequence template that is an operation of a connector: `<connector.template …>` calls it.
    Operation {
        /// The connector's name.
        connector: String,
    },
    /// A connector whose operations cannot run.
    UnusableConnector {
        /// Its name.
        connector: String,
        /// Why.
        reason: String,
    },
    /// A file of an API project, or an API definition by itself. A [`crate::Front`] compiles them.
    Api {
        /// The folder or archive of the project; the file itself when it stands alone.
        project: Arc<str>,
        /// The path inside the project with forward slashes; empty when it stands alone.
        path: String,
    },
    /// The files of an API project, or an API definition by itself, which are read when the project is compiled. The
    /// input has no bytes.
    ApiFiles(ApiFiles),
}

/// Files of an API project that are read one project at a time: a gateway may have gigabytes of them.
#[derive(Clone)]
pub struct ApiFiles(pub Arc<dyn FileSource>);

/// Reads the files of one project.
pub trait FileSource: Send + Sync {
    /// The paths inside the project of all files that belong to it; an empty one for a definition that stands alone.
    fn paths(&self) -> Vec<String>;

    /// The name of a file in messages and its bytes; `None` when there is no such file, or it is not inside the project.
    fn read(&self, path: &str) -> Option<Result<(Arc<str>, Bytes), String>>;

    /// What changes when a file changes: its time, size and number on the disk. `None` when there is no such file.
    fn stamp(&self, path: &str) -> Option<u64>;
}

impl std::fmt::Debug for ApiFiles {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("ApiFiles").field(&self.0.paths()).finish()
    }
}

impl PartialEq for ApiFiles {
    fn eq(&self, other: &ApiFiles) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ApiFiles {}

/// What became of one artifact.
#[derive(Debug, Clone)]
pub struct ArtifactStatus {
    /// `proxy`, `api`, `sequence`, …
    pub kind: &'static str,
    /// Its name or key.
    pub name: String,
    /// Where it stands.
    pub at: Place,
    /// Whether it can be served.
    pub good: bool,
}

/// The outcome of a compilation.
pub struct Compilation {
    /// What can be served. Artifacts with errors are left out.
    pub program: Program,
    /// Everything there is to say, in the order of the inputs.
    pub diagnostics: Vec<Diagnostic>,
    /// Every artifact that was found.
    pub artifacts: Vec<ArtifactStatus>,
}

impl Compilation {
    /// Whether anything is an error.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Elements of a configuration that have no meaning here.
const IGNORED: [&str; 3] = ["registry", "taskManager", "description"];

/// Artifacts whose elements Micro Integrator looks up in the namespace of Synapse.
const IN_SYNAPSE: [&str; 11] = [
    "api",
    "definitions",
    "endpoint",
    "inboundEndpoint",
    "localEntry",
    "messageProcessor",
    "messageStore",
    "proxy",
    "sequence",
    "task",
    "template",
];

/// The root of a file in `conf/datasources` of Micro Integrator, which lists data sources.
const DATA_SOURCES: &str = "datasources-configuration";

struct Artifact<'s> {
    kind: &'static ArtifactKind,
    name: String,
    element: Element<'s>,
    /// Whether an error was reported before it was built.
    broken: bool,
}

/// Whether a root element of that name is compiled, or reported by the compiler: an artifact, or a whole configuration.
pub fn is_root_element(name: &str, registry: &Registry) -> bool {
    registry.artifact(name).is_some()
        || unsupported::find(name).is_some()
        || matches!(name, "import" | DATA_SOURCES)
        || IGNORED.contains(&name)
}

/// Compiles inputs to one program.
pub fn compile(inputs: &[Input], registry: &Registry, options: &CompileOptions) -> Compilation {
    compile_with(inputs, registry, options, &[])
}

/// Compiles inputs to one program, those that are not Synapse XML by fronts.
pub fn compile_with(
    inputs: &[Input],
    registry: &Registry,
    options: &CompileOptions,
    fronts: &[&dyn Front],
) -> Compilation {
    let mut cx = Compiler::new(registry, options);
    let mut statuses = Vec::new();
    let sources = parse(&mut cx, inputs, &mut statuses);
    let mut artifacts = Vec::new();
    for (source, connector) in &sources {
        if let Some(root) = source.root() {
            let first = artifacts.len();
            if connector.is_none() {
                check_namespace(&mut cx, &root);
            }
            collect(&mut cx, root, &mut artifacts, &mut statuses);
            if let Some(connector) = connector {
                for operation in &mut artifacts[first..] {
                    operation.name = format!("{connector}.{}", operation.name);
                }
            }
        }
    }
    for artifact in &mut artifacts {
        let errors = cx.errors_so_far();
        (artifact.kind.declare)(&mut cx, &artifact.name, &artifact.element);
        artifact.broken = cx.errors_so_far() > errors;
    }
    connections(&mut cx, &mut artifacts);
    for artifact in &artifacts {
        let errors = cx.errors_so_far();
        cx.begin_artifact(&artifact.name);
        (artifact.kind.build)(&mut cx, &artifact.name, &artifact.element);
        let good = !artifact.broken && cx.errors_so_far() == errors;
        if !good {
            (artifact.kind.withdraw)(&mut cx, &artifact.name, &artifact.element);
        }
        let at = artifact.element.place();
        statuses.push(ArtifactStatus { kind: artifact.kind.element, name: artifact.name.clone(), at, good });
    }
    for front in fronts {
        statuses.extend(front.compile(inputs, &mut cx));
    }
    crate::operation::report_unavailable(&mut cx);
    cx.program.main = cx.program.sequence_names.get("main").copied();
    cx.program.fault = cx.program.sequence_names.get("fault").copied();
    let (program, mut diagnostics) = cx.into_parts();
    let mut order = std::collections::HashMap::new();
    for (place, input) in inputs.iter().enumerate() {
        order.entry(&*input.file).or_insert(place);
    }
    let order = |file: &str| order.get(file).copied().unwrap_or(usize::MAX);
    diagnostics.sort_by_cached_key(|diagnostic| (order(&diagnostic.at.file), diagnostic.at.line, diagnostic.at.column));
    diagnostics.dedup();
    Compilation { program, diagnostics, artifacts: statuses }
}

/// The artifacts' texts, with the connector of those that are operations.
fn parse<'i>(
    cx: &mut Compiler<'_>,
    inputs: &'i [Input],
    statuses: &mut Vec<ArtifactStatus>,
) -> Vec<(Source, Option<&'i str>)> {
    let mut sources = Vec::new();
    for input in inputs {
        match &input.kind {
            InputKind::Resource { key, media_type, properties } => {
                let resource = Resource {
                    bytes: input.bytes.clone(),
                    media_type: media_type.as_deref().map(Arc::from),
                    is_xml: is_xml(media_type.as_deref(), key),
                    at: Place { file: input.file.clone(), line: 1, column: 1 },
                    properties: properties
                        .iter()
                        .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
                        .collect(),
                };
                let at = resource.at.clone();
                if cx.declare(NameKind::RESOURCE, key, at) {
                    cx.program.resources.insert(key.as_str(), resource);
                }
            }
            InputKind::Api { .. } | InputKind::ApiFiles(_) => {}
            InputKind::UnusableConnector { connector, reason } => {
                cx.unusable_connectors.insert(connector.clone(), reason.clone());
            }
            InputKind::Artifact | InputKind::Operation { .. } => {
                match Document::parse(input.bytes.clone(), &ParseOptions::default()) {
                    Ok(document) => {
                        let connector = match &input.kind {
                            InputKind::Operation { connector } => Some(connector.as_str()),
                            _ => None,
                        };
                        sources.push((Source::new(input.file.clone(), Arc::new(document)), connector));
                    }
                    Err(error) => {
                        let position = error.position;
                        let at = Place { file: input.file.clone(), line: position.line, column: position.column };
                        statuses.push(unread(at.clone()));
                        cx.error(at, format!("not well-formed XML: {}", error.message));
                    }
                }
            }
        }
    }
    sources
}

/// The status of an artifact whose kind or name cannot be read.
fn unread(at: Place) -> ArtifactStatus {
    ArtifactStatus { kind: "artifact", name: at.file.to_string(), at, good: false }
}

/// Warns about artifacts that Micro Integrator would not find anything in: it looks elements up by their namespace.
fn check_namespace(cx: &mut Compiler<'_>, root: &Element<'_>) {
    let namespace = root.namespace();
    if namespace == SYNAPSE || !IN_SYNAPSE.contains(&root.name()) {
        return;
    }
    let has = match namespace {
        "" => "no namespace".to_owned(),
        other => format!("the namespace `{other}`"),
    };
    cx.warn(root.place(), format!("<{}> has {has}; Micro Integrator needs `{SYNAPSE}`", root.name()));
}

fn is_xml(media_type: Option<&str>, key: &str) -> bool {
    match media_type {
        Some(media_type) => media_type.contains("xml") || media_type.contains("xsl"),
        None => [".xml", ".xslt", ".xsl", ".xsd", ".wsdl"].iter().any(|ending| key.ends_with(ending)),
    }
}

/// Finds the artifacts of a root: itself, or the children of `definitions`.
fn collect<'s>(
    cx: &mut Compiler<'_>,
    root: Element<'s>,
    artifacts: &mut Vec<Artifact<'s>>,
    statuses: &mut Vec<ArtifactStatus>,
) {
    if root.name() == "import" {
        // It enables a connector; every connector that is present is enabled.
        return;
    }
    if root.name() == DATA_SOURCES {
        root.accept_all();
        for source in root.elements("datasources").flat_map(|list| list.elements("datasource")).collect::<Vec<_>>() {
            collect(cx, source, artifacts, statuses);
        }
        return;
    }
    let Some(kind) = cx.registry.artifact(root.name()) else {
        if !unsupported::report(cx, &root) && !IGNORED.contains(&root.name()) {
            statuses.push(unread(root.place()));
            cx.error(root.place(), format!("<{}> is not an artifact Penstock knows", root.name()));
        }
        return;
    };
    if root.name() == definitions::KIND.element {
        let (loose, inner) = definitions::divide(cx, &root);
        for child in inner {
            collect(cx, child, artifacts, statuses);
        }
        if loose.is_empty() {
            return;
        }
    }
    match kind.name.of(&root) {
        Some(name) => artifacts.push(Artifact { kind, name, element: root, broken: false }),
        None => {
            statuses.push(unread(root.place()));
            cx.error(root.place(), format!("<{}> needs {}", kind.element, kind.name));
        }
    }
}

/// Compiles the connections of native connectors before the artifacts that use them.
fn connections(cx: &mut Compiler<'_>, artifacts: &mut [Artifact<'_>]) {
    for artifact in artifacts.iter_mut().filter(|artifact| artifact.kind.element == local_entry::KIND.element) {
        let Some(init) = artifact.element.children().next() else { continue };
        let Some(connector) = init.name().strip_suffix(".init") else { continue };
        let Some(kind) = cx.registry.connector(connector) else { continue };
        let errors = cx.errors_so_far();
        (kind.connection)(&artifact.name, &init, cx);
        artifact.broken |= cx.errors_so_far() > errors;
    }
}
