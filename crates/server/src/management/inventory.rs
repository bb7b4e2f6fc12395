//! The artifacts that are served, with the XML they were compiled from.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::{Element, SourceDocument};
use penstock_engine::Place;
use penstock_xml::{Document, NodeId, ParseOptions};

use crate::load::{Application, Connector};
use crate::serve::Artifacts;

/// Everything that is deployed.
pub(super) struct Inventory {
    sources: Vec<SourceDocument>,
    artifacts: Vec<Artifact>,
    /// Carbon applications, each with the reason why it is faulty.
    pub(super) applications: Vec<(Application, Option<String>)>,
    pub(super) connectors: Vec<Connector>,
}

/// One artifact.
pub(super) struct Artifact {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) at: Place,
    /// Where its element is: the source and the node.
    element: Option<(usize, NodeId)>,
}

/// An artifact and its element.
#[derive(Clone, Copy)]
pub(super) struct Deployed<'i> {
    pub(super) artifact: &'i Artifact,
    pub(super) element: Element<'i>,
    /// The Carbon application it comes from, `NAME_VERSION`, or nothing.
    pub(super) container: &'i str,
}

impl Inventory {
    /// Parses the files of the artifacts that are served.
    pub(super) fn read(artifacts: &Artifacts) -> Inventory {
        let parse = |input: &penstock_compile::Input| {
            let document = Document::parse(input.bytes.clone(), &ParseOptions::default()).ok()?;
            Some(SourceDocument::new(input.file.clone(), Arc::new(document)))
        };
        let sources: Vec<SourceDocument> = artifacts.origin.inputs.iter().filter_map(parse).collect();
        let mut places = HashMap::new();
        for (index, source) in sources.iter().enumerate() {
            let Some(root) = source.root() else { continue };
            note(&mut places, index, root, 0);
        }
        let good = artifacts.statuses.iter().filter(|status| status.good);
        let found = good.map(|status| Artifact {
            kind: status.kind,
            name: status.name.clone(),
            at: status.at.clone(),
            element: places.get(&key(&status.at)).copied(),
        });
        let mut found: Vec<Artifact> = found.collect();
        found.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
        let applications = artifacts.origin.applications.iter();
        let applications = applications.map(|application| (application.clone(), fault(artifacts, application)));
        Inventory {
            applications: applications.collect(),
            connectors: artifacts.origin.connectors.clone(),
            artifacts: found,
            sources,
        }
    }

    /// The artifacts of a kind, by name.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = Deployed<'_>> {
        self.artifacts
            .iter()
            .filter(move |artifact| artifact.kind == kind)
            .filter_map(|artifact| self.deployed(artifact))
    }

    /// The artifact of a kind and name.
    pub(super) fn find(&self, kind: &str, name: &str) -> Option<Deployed<'_>> {
        self.of_kind(kind).find(|found| found.artifact.name == name)
    }

    fn deployed<'i>(&'i self, artifact: &'i Artifact) -> Option<Deployed<'i>> {
        let (source, node) = artifact.element?;
        let element = Element { source: self.sources.get(source)?, node };
        Some(Deployed { artifact, element, container: self.container(&artifact.at) })
    }

    fn container(&self, at: &Place) -> &str {
        let holds = |application: &Application| {
            at.file.strip_prefix(application.file.as_str()).is_some_and(|rest| rest.starts_with('!'))
        };
        let found = self.applications.iter().find(|(application, _)| holds(application));
        found.map_or("", |(application, _)| application.name.as_str())
    }
}

impl Deployed<'_> {
    /// The artifact's XML.
    pub(super) fn configuration(&self) -> String {
        String::from_utf8_lossy(&self.element.to_xml()).into_owned()
    }

    /// The name of its file, without folders.
    pub(super) fn file_name(&self) -> &str {
        self.artifact.at.file.rsplit(['/', '!']).next().unwrap_or_default()
    }

    /// `<parameter name="…">` and their values.
    pub(super) fn parameters(&self) -> Vec<(String, String)> {
        let holder = self.element.child("parameters").unwrap_or(self.element);
        let parameters = holder.elements("parameter");
        let own = parameters.filter_map(|parameter| Some((parameter.attribute("name")?.to_owned(), parameter.text())));
        own.collect()
    }
}

/// Notes the elements that artifacts may be: the root and what it holds, for `<definitions>` and lists of data sources.
fn note(places: &mut HashMap<(Arc<str>, u32, u32), (usize, NodeId)>, index: usize, element: Element<'_>, depth: usize) {
    /// `<datasources-configuration><datasources><datasource>`
    const DEPTH_MAX: usize = 2;
    places.insert(key(&element.place()), (index, element.node));
    if depth < DEPTH_MAX && matches!(element.name(), "definitions" | "datasources-configuration" | "datasources") {
        element.children().for_each(|child| note(places, index, child, depth + 1));
    }
}

fn key(at: &Place) -> (Arc<str>, u32, u32) {
    (at.file.clone(), at.line, at.column)
}

/// Why an application is faulty: its first error.
fn fault(artifacts: &Artifacts, application: &Application) -> Option<String> {
    let inside = |file: &str| {
        file == application.file
            || file.strip_prefix(application.file.as_str()).is_some_and(|rest| rest.starts_with('!'))
    };
    let error = artifacts.errors.iter().find(|error| inside(&error.at.file)).map(ToString::to_string);
    let broken = artifacts.faulty().find(|status| inside(&status.at.file));
    error.or_else(|| broken.map(|status| format!("the {} `{}` cannot be served", status.kind, status.name)))
}
