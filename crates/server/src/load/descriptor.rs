//! The descriptors of an application: `artifacts.xml`, `artifact.xml`, `registry-info.xml`.

use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Element, SourceDocument};
use penstock_engine::Place;
use penstock_xml::{Document, ParseOptions};

use super::registry::About;

/// The dependencies of an `artifacts.xml`.
#[derive(Debug)]
pub(super) struct Dependency {
    /// The artifact.
    pub(super) name: String,
    /// Its version, where it has one.
    pub(super) version: Option<String>,
    /// The place of the dependency.
    pub(super) at: Place,
}

impl Dependency {
    /// The folder the tools of Micro Integrator give it.
    pub(super) fn folder(&self) -> String {
        match &self.version {
            Some(version) => format!("{}_{version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// What an application calls itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// Its name.
    pub(super) name: String,
    /// Its version, where it has one.
    pub(super) version: Option<String>,
}

/// An `artifact.xml`.
#[derive(Debug)]
pub(super) struct Artifact {
    /// Its name.
    pub(super) name: String,
    /// Its version, where it has one.
    pub(super) version: Option<String>,
    /// `synapse/api`, `registry/resource`, …
    pub(super) kind: String,
    /// The file it stands for, relative to its folder.
    pub(super) file: Option<String>,
    /// Where the type is written.
    pub(super) at: Place,
}

/// A file of the registry.
#[derive(Debug)]
pub(super) struct Item {
    /// Its name in the folder `resources`.
    pub(super) file: String,
    /// The collection it belongs to, `/_system/…`.
    pub(super) path: String,
    /// Media type and properties.
    pub(super) about: About,
    /// Where it is described.
    pub(super) at: Place,
}

/// A descriptor that cannot be read, with the place and the reason.
pub(super) type Broken = (Place, String);

fn parse(file: &str, bytes: Bytes) -> Result<SourceDocument, Broken> {
    let file: Arc<str> = Arc::from(file);
    match Document::parse(bytes, &ParseOptions::default()) {
        Ok(document) => Ok(SourceDocument::new(file, Arc::new(document))),
        Err(error) => {
            let at = Place { file, line: error.position.line, column: error.position.column };
            Err((at, format!("not well-formed XML: {}", error.message)))
        }
    }
}

/// Every element below, in document order.
fn all<'a>(el: Element<'a>, name: &str, found: &mut Vec<Element<'a>>) {
    if el.name() == name {
        found.push(el);
    }
    for child in el.children() {
        all(child, name, found);
    }
}

fn elements<'a>(source: &'a SourceDocument, name: &str) -> Vec<Element<'a>> {
    let mut found = Vec::new();
    if let Some(root) = source.root() {
        all(root, name, &mut found);
    }
    found
}

/// The dependencies of an application. Those that say `include="false"` are not in the archive.
pub(super) fn dependencies(file: &str, bytes: Bytes) -> Result<Vec<Dependency>, Broken> {
    let source = parse(file, bytes)?;
    let mut dependencies = Vec::new();
    for el in elements(&source, "dependency") {
        if !el.flag("include", true) {
            continue;
        }
        let Some(name) = el.attribute("artifact") else {
            return Err((el.place(), "<dependency> needs the attribute `artifact`".to_owned()));
        };
        let version = el.attribute("version").map(str::to_owned);
        dependencies.push(Dependency { name: name.to_owned(), version, at: el.place() });
    }
    Ok(dependencies)
}

/// What an `artifacts.xml` calls the application.
pub(super) fn identity(file: &str, bytes: Bytes) -> Option<Identity> {
    let source = parse(file, bytes).ok()?;
    let found = elements(&source, "artifact");
    let el = found.iter().find(|el| el.attribute("type") == Some("carbon/application"))?;
    Some(Identity { name: el.attribute("name")?.to_owned(), version: el.attribute("version").map(str::to_owned) })
}

/// The descriptor of one artifact.
pub(super) fn artifact(file: &str, bytes: Bytes) -> Result<Artifact, Broken> {
    let source = parse(file, bytes)?;
    let found = elements(&source, "artifact");
    let Some(el) = found.first() else {
        let at = source.root().map_or_else(|| super::start_of(file), |root| root.place());
        return Err((at, "<artifact> is missing".to_owned()));
    };
    let Some(kind) = el.attribute("type") else {
        return Err((el.place(), "<artifact> needs the attribute `type`".to_owned()));
    };
    Ok(Artifact {
        name: el.attribute("name").unwrap_or_default().to_owned(),
        version: el.attribute("version").map(str::to_owned),
        kind: kind.to_owned(),
        file: el.child_text("file").filter(|file| !file.is_empty()),
        at: el.attribute_place("type"),
    })
}

/// A `connector.xml`.
#[derive(Debug)]
pub(super) struct Connector {
    /// What its operations begin with.
    pub(super) name: String,
    /// The Java package it belongs to.
    pub(super) package: String,
    /// Its description.
    pub(super) description: String,
    /// Folders of operations.
    pub(super) folders: Vec<String>,
}

/// The descriptor of a connector.
pub(super) fn connector(file: &str, bytes: Bytes) -> Result<Connector, Broken> {
    let source = parse(file, bytes)?;
    let components = elements(&source, "component");
    let Some(el) = components.first() else {
        return Err((super::start_of(file), "<component> is missing".to_owned()));
    };
    let Some(name) = el.attribute("name") else {
        return Err((el.place(), "<component> needs the attribute `name`".to_owned()));
    };
    let folders = el.elements("dependency").filter_map(|folder| Some(folder.attribute("component")?.to_owned()));
    Ok(Connector {
        name: name.to_owned(),
        package: el.attribute("package").unwrap_or_default().to_owned(),
        description: el.child_text("description").unwrap_or_default(),
        folders: folders.collect(),
    })
}

/// The files of the operations that a `component.xml` of a connector lists.
pub(super) fn operations(file: &str, bytes: Bytes) -> Result<Vec<String>, Broken> {
    let source = parse(file, bytes)?;
    let files = elements(&source, "file");
    Ok(files.iter().map(|el| el.text()).filter(|name| !name.is_empty()).collect())
}

/// The artifacts of type `zip` that a `pom.xml` depends on.
pub(super) fn maven_archives(file: &str, bytes: Bytes) -> Result<Vec<String>, Broken> {
    let source = parse(file, bytes)?;
    let archives = elements(&source, "dependency");
    let archives = archives.iter().filter(|el| el.child_text("type").as_deref() == Some("zip"));
    Ok(archives.filter_map(|el| el.child_text("artifactId")).collect())
}

/// The resources of a `registry-info.xml`, and the collections it names.
pub(super) fn registry_info(file: &str, bytes: Bytes) -> Result<Vec<Item>, Broken> {
    let source = parse(file, bytes)?;
    let mut items: Vec<Item> = elements(&source, "item").iter().filter_map(item).collect();
    for el in elements(&source, "collection") {
        if let (Some(directory), Some(path)) = (el.child_text("directory"), el.child_text("path")) {
            let about = About { properties: properties(&el), ..About::default() };
            items.push(Item { file: format!("{}/", directory.trim_end_matches('/')), path, about, at: el.place() });
        }
    }
    Ok(items)
}

/// The resources an `artifact.xml` of a project names.
pub(super) fn project_resources(file: &str, bytes: Bytes) -> Result<Vec<Item>, Broken> {
    let source = parse(file, bytes)?;
    Ok(elements(&source, "item").iter().filter_map(item).collect())
}

fn item(el: &Element<'_>) -> Option<Item> {
    let media_type = el.child_text("mediaType").filter(|text| !text.is_empty());
    let about = About { media_type, properties: properties(el) };
    Some(Item { file: el.child_text("file")?, path: el.child_text("path")?, about, at: el.place() })
}

fn properties(el: &Element<'_>) -> Vec<(String, String)> {
    let Some(list) = el.child("properties") else { return Vec::new() };
    list.elements("property")
        .filter_map(|property| {
            let name = property.attribute("key").or_else(|| property.attribute("name"))?;
            let value = property.attribute("value").map_or_else(|| property.text(), str::to_owned);
            Some((name.to_owned(), value))
        })
        .collect()
}
