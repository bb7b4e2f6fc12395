//! From artifacts to a program: names first, then bodies, so that order does not matter.

mod api;
mod data_source;
mod left_out;
mod local_entry;
mod proxy;
pub(crate) mod sequence;
mod template;

use std::sync::Arc;

use bytes::Bytes;
use penstock_engine::{Place, Program, Resource};
use penstock_xml::{Document, ParseOptions};

use crate::compiler::{CompileOptions, Compiler, NameKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::element::{Element, Source};
use crate::endpoint;
use crate::registry::{Front, Registry};

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
}

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

/// Elements that configure the original's runtime and have no meaning here.
const IGNORED: [&str; 3] = ["registry", "taskManager", "description"];

struct Artifact<'s> {
    kind: &'static str,
    name: String,
    element: Element<'s>,
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
    let sources = parse(&mut cx, inputs);
    let mut artifacts = Vec::new();
    for (source, connector) in &sources {
        if let Some(root) = source.root() {
            let first = artifacts.len();
            collect(&mut cx, root, &mut artifacts);
            if let Some(connector) = connector {
                for operation in &mut artifacts[first..] {
                    operation.name = format!("{connector}.{}", operation.name);
                }
            }
        }
    }
    declare(&mut cx, &artifacts);
    let mut statuses = Vec::with_capacity(artifacts.len());
    for artifact in &artifacts {
        let errors = cx.errors_so_far();
        build(&mut cx, artifact);
        let good = cx.errors_so_far() == errors;
        if !good {
            withdraw(&mut cx, artifact);
        }
        let at = artifact.element.place();
        statuses.push(ArtifactStatus { kind: artifact.kind, name: artifact.name.clone(), at, good });
    }
    for front in fronts {
        statuses.extend(front.compile(inputs, &mut cx));
    }
    cx.program.main = cx.program.sequence_names.get("main").copied();
    cx.program.fault = cx.program.sequence_names.get("fault").copied();
    let (program, mut diagnostics) = cx.into_parts();
    let order = |file: &str| inputs.iter().position(|input| *input.file == *file).unwrap_or(usize::MAX);
    diagnostics.sort_by_cached_key(|diagnostic| (order(&diagnostic.at.file), diagnostic.at.line, diagnostic.at.column));
    diagnostics.dedup();
    Compilation { program, diagnostics, artifacts: statuses }
}

/// The artifacts' texts, with the connector of those that are operations.
fn parse<'i>(cx: &mut Compiler<'_>, inputs: &'i [Input]) -> Vec<(Source, Option<&'i str>)> {
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
                if cx.declare(NameKind::Resource, key, at) {
                    cx.program.resources.insert(key.as_str(), resource);
                }
            }
            InputKind::Api { .. } => {}
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
                        cx.error(at, format!("not well-formed XML: {}", error.message));
                    }
                }
            }
        }
    }
    sources
}

fn is_xml(media_type: Option<&str>, key: &str) -> bool {
    match media_type {
        Some(media_type) => media_type.contains("xml") || media_type.contains("xsl"),
        None => [".xml", ".xslt", ".xsl", ".xsd", ".wsdl"].iter().any(|ending| key.ends_with(ending)),
    }
}

/// Finds the artifacts of a root: itself, or the children of `definitions`.
fn collect<'s>(cx: &mut Compiler<'_>, root: Element<'s>, artifacts: &mut Vec<Artifact<'s>>) {
    if root.name() == "import" {
        // It switches a connector on, which every connector that is there is.
        return;
    }
    if root.name() == "definitions" {
        let mut loose = Vec::new();
        for child in root.children() {
            if cx.registry.mediator(child.name()).is_some() && child.name() != "sequence" && child.name() != "endpoint"
            {
                loose.push(child);
            } else {
                collect(cx, child, artifacts);
            }
        }
        if let Some(first) = loose.first() {
            // Mediators at the top of an old configuration are the main sequence.
            artifacts.push(Artifact { kind: "definitions", name: "main".into(), element: root });
            let _ = first;
        }
        return;
    }
    let (kind, name) = match root.name() {
        "sequence" => ("sequence", root.attribute("name")),
        "endpoint" => ("endpoint", root.attribute("name")),
        "proxy" => ("proxy", root.attribute("name")),
        "api" => ("api", root.attribute("name")),
        "localEntry" => ("localEntry", root.attribute("key")),
        "template" => ("template", root.attribute("name")),
        "datasource" => {
            let name = root.child_text("name").unwrap_or_default();
            artifacts.push(Artifact { kind: "datasource", name, element: root });
            return;
        }
        _ if left_out::say(cx, &root) => return,
        other if IGNORED.contains(&other) => return,
        other => {
            cx.error(root.place(), format!("<{other}> is not an artifact Penstock knows"));
            return;
        }
    };
    match name {
        Some(name) => artifacts.push(Artifact { kind, name: name.to_owned(), element: root }),
        None => {
            let attribute = if kind == "localEntry" { "key" } else { "name" };
            cx.error(root.place(), format!("<{kind}> needs the attribute `{attribute}`"));
        }
    }
}

/// Reserves every name, and reads what others need to compile: local entries and templates.
fn declare(cx: &mut Compiler<'_>, artifacts: &[Artifact<'_>]) {
    for artifact in artifacts {
        let (name, at) = (artifact.name.as_str(), artifact.element.place());
        let kind = match artifact.kind {
            "sequence" | "definitions" => NameKind::Sequence,
            "endpoint" => NameKind::Endpoint,
            "localEntry" => NameKind::Resource,
            "proxy" => NameKind::Proxy,
            "api" => NameKind::Api,
            "datasource" => {
                data_source::declare(cx, name, &artifact.element);
                continue;
            }
            _ => {
                template::declare(cx, name, &artifact.element);
                continue;
            }
        };
        if !cx.declare(kind, name, at.clone()) {
            continue;
        }
        match kind {
            NameKind::Sequence => {
                let id = cx.reserve_sequence(Some(name.into()));
                cx.program.sequence_names.insert(name.into(), id);
            }
            NameKind::Endpoint => {
                endpoint::reserve(cx, name, at);
            }
            NameKind::Resource => local_entry::build(cx, name, &artifact.element),
            _ => {}
        }
    }
}

fn build(cx: &mut Compiler<'_>, artifact: &Artifact<'_>) {
    let el = &artifact.element;
    match artifact.kind {
        "sequence" => {
            if let Some(id) = cx.program.sequence_names.get(artifact.name.as_str()).copied() {
                sequence::fill(cx, el, id);
            }
        }
        "definitions" => {
            let loose: Vec<Element<'_>> = el
                .children()
                .filter(|child| {
                    cx.registry.mediator(child.name()).is_some() && !matches!(child.name(), "sequence" | "endpoint")
                })
                .collect();
            if let Some(id) = cx.program.sequence_names.get("main").copied() {
                cx.fill_sequence(id, &loose);
            }
        }
        "endpoint" => endpoint::fill(cx, &artifact.name, el),
        "proxy" => proxy::build(cx, &artifact.name, el),
        "api" => api::build(cx, &artifact.name, el),
        "template" => template::build(cx, &artifact.name, el),
        _ => {}
    }
}

/// Makes an artifact with errors answer with a fault where others refer to it.
fn withdraw(cx: &mut Compiler<'_>, artifact: &Artifact<'_>) {
    let id = match artifact.kind {
        "sequence" => cx.program.sequence_names.get(artifact.name.as_str()).copied(),
        "template" => cx.program.templates.get(artifact.name.as_str()).map(|template| template.sequence),
        _ => None,
    };
    let Some(id) = id else { return };
    let step = penstock_engine::Step {
        mediator: Box::new(crate::missing::Missing::new("working sequence", &artifact.name)),
        kind: "sequence",
        at: artifact.element.place(),
    };
    cx.program.sequences[id.0 as usize].steps = vec![step];
    if artifact.name == "main" || artifact.name == "fault" {
        cx.program.sequence_names.remove(artifact.name.as_str());
    }
}
