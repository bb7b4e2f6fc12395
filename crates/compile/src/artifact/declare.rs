//! The first pass over the inputs: resources are added, artifacts are found and declared.

use std::collections::HashSet;
use std::sync::Arc;

use penstock_engine::{Place, Resource, Unit};
use penstock_xml::{Document, NodeId, ParseOptions, XmlError};

use super::kind::ArtifactKind;
use super::{ArtifactStatus, Input, InputKind, definitions, unsupported};
use crate::compiled::{ArtifactKey, Known};
use crate::compiler::{Compiler, NameKind};
use crate::element::{Element, SYNAPSE, SourceDocument};

/// Elements of a configuration that have no meaning here.
pub(super) const IGNORED: [&str; 3] = ["registry", "taskManager", "description"];

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
pub(super) const DATA_SOURCES: &str = "datasources-configuration";

/// A file of artifacts.
pub(super) struct ArtifactFile<'i> {
    input: &'i Input,
    /// The connector whose operation it is.
    connector: Option<&'i str>,
    /// Its tree, while an artifact in it has to be compiled.
    source: Option<SourceDocument>,
    /// A hash of its bytes.
    hash: u64,
}

/// An artifact that was declared.
pub(super) struct Artifact {
    pub(super) kind: &'static ArtifactKind,
    pub(super) name: Arc<str>,
    /// The place of its file among the files.
    pub(super) file: usize,
    pub(super) node: NodeId,
    pub(super) at: Place,
    /// The number of its unit.
    pub(super) number: u32,
    /// What was reserved in its unit.
    pub(super) unit: Unit,
    /// A hash of its file.
    pub(super) input: u64,
    /// Whether an error was reported before it was built.
    pub(super) is_broken: bool,
    /// Whether the program after a change may take what is made of it.
    pub(super) is_reusable: bool,
    /// Whether it did not change since the last compilation.
    pub(super) is_unchanged: bool,
}

struct Found<'s> {
    kind: &'static ArtifactKind,
    name: String,
    element: Element<'s>,
}

impl Artifact {
    pub(super) fn key(&self) -> ArtifactKey {
        (self.at.file.clone(), self.kind.element, self.name.clone())
    }
}

impl ArtifactFile<'_> {
    /// Parses it, unless its tree is there.
    pub(super) fn open(&mut self) -> Result<(), XmlError> {
        if self.source.is_none() {
            let document = Document::parse(self.input.bytes.clone(), &ParseOptions::default())?;
            self.source = Some(SourceDocument::new(self.input.file.clone(), Arc::new(document)));
        }
        Ok(())
    }

    /// Frees its tree.
    pub(super) fn close(&mut self) {
        self.source = None;
    }

    pub(super) fn element(&self, node: NodeId) -> Option<Element<'_>> {
        Some(Element { source: self.source.as_ref()?, node })
    }

    pub(super) fn report_unreadable(&self, error: &XmlError, cx: &mut Compiler<'_>) -> Place {
        let at = Place { file: self.input.file.clone(), line: error.position.line, column: error.position.column };
        cx.error(at.clone(), format!("not well-formed XML: {}", error.message));
        at
    }
}

/// Adds the registry resources, and gives the files of artifacts.
pub(super) fn read_resources<'i>(cx: &mut Compiler<'_>, inputs: &'i [Input]) -> Vec<ArtifactFile<'i>> {
    let mut files = Vec::new();
    for input in inputs {
        let connector = match &input.kind {
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
                continue;
            }
            InputKind::UnusableConnector { connector, reason } => {
                cx.unusable_connectors.insert(connector.clone(), reason.clone());
                continue;
            }
            InputKind::Api { .. } | InputKind::ApiFiles(_) => continue,
            InputKind::Artifact => None,
            InputKind::Operation { connector } => Some(connector.as_str()),
        };
        let hash = cx.hash_of(&(&input.bytes, connector));
        files.push(ArtifactFile { input, connector, source: None, hash });
    }
    files
}

/// Declares the artifacts of all files. Files none of whose artifacts changed are closed.
pub(super) fn artifacts(
    cx: &mut Compiler<'_>,
    files: &mut [ArtifactFile<'_>],
    known: &Known,
    statuses: &mut Vec<ArtifactStatus>,
) -> Vec<Artifact> {
    let mut numbers = known.free_numbers();
    let mut keys: HashSet<ArtifactKey> = HashSet::new();
    let mut artifacts: Vec<Artifact> = Vec::new();
    for (index, file) in files.iter_mut().enumerate() {
        if let Err(error) = file.open() {
            statuses.push(unread(file.report_unreadable(&error, cx)));
            continue;
        }
        let Some(root) = file.source.as_ref().and_then(SourceDocument::root) else { continue };
        if file.connector.is_none() {
            check_namespace(cx, &root);
        }
        let mut found = Vec::new();
        collect(cx, root, &mut found, statuses);
        let first = artifacts.len();
        for Found { kind, name, element } in found {
            let name = file.connector.map_or_else(|| name.clone(), |connector| format!("{connector}.{name}"));
            let mut artifact = Artifact {
                kind,
                name: name.into(),
                file: index,
                node: element.node,
                at: element.place(),
                number: 0,
                unit: Unit::default(),
                input: file.hash,
                is_broken: false,
                is_reusable: true,
                is_unchanged: false,
            };
            let key = artifact.key();
            let before = if keys.insert(key.clone()) { known.get(&key) } else { None };
            artifact.is_unchanged = before.is_some_and(|before| before.input == file.hash && before.result.is_some());
            artifact.number = before.map(|before| before.number).or_else(|| numbers.next()).unwrap_or_default();
            artifact.declare(cx, &element);
            artifacts.push(artifact);
        }
        if artifacts[first..].iter().all(|artifact| artifact.is_unchanged) {
            file.close();
        }
    }
    artifacts
}

impl Artifact {
    fn declare(&mut self, cx: &mut Compiler<'_>, element: &Element<'_>) {
        let (errors, duplicates) = (cx.errors_so_far(), cx.duplicates_so_far());
        cx.begin_unit(self.number);
        cx.guarded(&element.place(), |cx| (self.kind.declare)(cx, &self.name, element));
        self.unit = cx.end_unit();
        self.is_broken = cx.errors_so_far() > errors;
        // Of two artifacts with one name, the first counts; which one is the first may change.
        self.is_reusable = cx.duplicates_so_far() == duplicates;
        self.is_unchanged &= self.is_reusable && !self.is_broken;
    }
}

/// The status of an artifact whose kind or name cannot be read.
pub(super) fn unread(at: Place) -> ArtifactStatus {
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
    artifacts: &mut Vec<Found<'s>>,
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
    match kind.name.read(&root) {
        Some(name) => artifacts.push(Found { kind, name, element: root }),
        None => {
            statuses.push(unread(root.place()));
            cx.error(root.place(), format!("<{}> needs {}", kind.element, kind.name));
        }
    }
}
