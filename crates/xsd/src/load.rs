//! Schema documents: parsed, with what they include and import, and an index of what stands where.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use penstock_xml::{DoctypePolicy, Document, Limits, NodeId, ParseOptions, Position};

use crate::names::{Names, Symbol};
use crate::{Resolver, SchemaError, SchemaSource, XSD};

/// Documents of one schema. More are a resolver that never ends.
const DOCUMENTS_MAX: usize = 500;
/// Mistakes that are reported before loading stops.
pub(crate) const ERRORS_MAX: usize = 100;

/// Finds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, _location: &str, _base: &str, _namespace: Option<&str>) -> Option<SchemaSource> {
        None
    }
}

/// What a global component is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ComponentKind {
    Element,
    Attribute,
    Type,
    Group,
    AttributeGroup,
    Notation,
}

/// A schema document and its defaults.
pub(crate) struct SchemaDocument {
    pub(crate) uri: String,
    pub(crate) document: Arc<Document>,
    pub(crate) root: NodeId,
    pub(crate) target: Arc<str>,
    pub(crate) elements_qualified: bool,
    pub(crate) attributes_qualified: bool,
    pub(crate) block_default: Option<String>,
    /// It declares no namespace and was included by one that does: its names are in that one's.
    chameleon: bool,
}

impl SchemaDocument {
    pub(crate) fn error(&self, node: NodeId, message: impl Into<String>) -> SchemaError {
        SchemaError { uri: self.uri.clone(), position: self.document.position(node), message: message.into() }
    }

    /// An attribute of a schema element.
    pub(crate) fn attribute(&self, node: NodeId, name: &str) -> Option<&str> {
        self.document.attribute(node, "", name)
    }

    /// The name of a schema element; empty for elements of others.
    pub(crate) fn name(&self, node: NodeId) -> &str {
        let name = self.document.name(node);
        if name.namespace == XSD { name.local } else { "" }
    }

    /// Schema elements inside, annotations left out.
    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let fits = |child: &NodeId| self.document.is_element(*child) && !matches!(self.name(*child), "" | "annotation");
        self.document.children(node).filter(fits)
    }

    /// The namespace and local part of a prefixed name.
    pub(crate) fn expand<'t>(&'t self, node: NodeId, text: &'t str) -> Result<(&'t str, &'t str), SchemaError> {
        let text = text.trim();
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        match self.document.lookup_namespace(node, prefix) {
            Some(namespace) => Ok((namespace, local)),
            None if !prefix.is_empty() => Err(self.error(node, format!("the prefix of `{text}` is not declared"))),
            None if self.chameleon => Ok((&self.target, local)),
            None => Ok(("", local)),
        }
    }
}

/// Where a component stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) document: usize,
    pub(crate) node: NodeId,
}

/// All documents and an index of their global components.
pub(crate) struct Loaded {
    pub(crate) documents: Vec<SchemaDocument>,
    pub(crate) index: BTreeMap<(ComponentKind, Arc<str>, Arc<str>), Place>,
    /// What a redefinition of the same name stands on.
    pub(crate) originals: HashMap<Place, Place>,
    /// Namespaces of imports whose documents were not found: what they declare is not known.
    pub(crate) unknown: HashSet<Arc<str>>,
    /// What a person should know and what is no mistake.
    pub(crate) notes: Vec<SchemaError>,
}

impl Loaded {
    /// The names of all global components.
    pub(crate) fn intern_all(&self, names: &mut Names) -> Vec<(ComponentKind, Symbol, Place)> {
        self.index
            .iter()
            .map(|((kind, namespace, local), place)| (*kind, names.intern(namespace, local), *place))
            .collect()
    }
}

struct Loader<'r> {
    resolver: &'r dyn Resolver,
    loaded: Loaded,
    /// Documents by where they came from and the namespace they were taken into.
    seen: HashMap<(String, Arc<str>), usize>,
    waiting: Vec<usize>,
    errors: Vec<SchemaError>,
}

/// Reads the documents and everything they name.
pub(crate) fn load(sources: &[SchemaSource], resolver: &dyn Resolver) -> Result<Loaded, Vec<SchemaError>> {
    let loaded = Loaded {
        documents: Vec::new(),
        index: BTreeMap::new(),
        originals: HashMap::new(),
        unknown: HashSet::new(),
        notes: Vec::new(),
    };
    let mut loader = Loader { resolver, loaded, seen: HashMap::new(), waiting: Vec::new(), errors: Vec::new() };
    for source in sources {
        loader.add(source.clone(), None);
    }
    loader.follow();
    if loader.errors.is_empty() { Ok(loader.loaded) } else { Err(loader.errors) }
}

impl Loader<'_> {
    fn fail(&mut self, error: SchemaError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    /// Parses a document and indexes it. `including` is the namespace of the document that includes it.
    fn add(&mut self, source: SchemaSource, including: Option<&Arc<str>>) -> Option<usize> {
        let whole = |position, message: String| SchemaError { uri: source.uri.clone(), position, message };
        if self.loaded.documents.len() >= DOCUMENTS_MAX {
            self.fail(whole(Position::UNKNOWN, format!("the schema has more than {DOCUMENTS_MAX} documents")));
            return None;
        }
        let options = ParseOptions { limits: Limits::DEFAULT, doctype: DoctypePolicy::Read, ..ParseOptions::default() };
        let document = match Document::parse(source.content.clone(), &options) {
            Ok(document) => Arc::new(document),
            Err(error) => {
                self.fail(whole(error.position, format!("not well-formed XML: {}", error.message)));
                return None;
            }
        };
        let root = document.root_element()?;
        let name = document.name(root);
        if (name.namespace, name.local) != (XSD, "schema") {
            self.fail(whole(document.position(root), format!("<{}> is not an XML schema", name.local)));
            return None;
        }
        let attribute = |name| document.attribute(root, "", name).map(str::to_owned);
        let own: Option<Arc<str>> = attribute("targetNamespace").map(Arc::from);
        let chameleon = own.is_none() && including.is_some_and(|namespace| !namespace.is_empty());
        let target: Arc<str> = own.or_else(|| including.cloned()).unwrap_or_default();
        if let Some(including) = including
            && *including != target
        {
            let message = format!("the included document is for the namespace `{target}`, not `{including}`");
            self.fail(whole(document.position(root), message));
            return None;
        }
        let key = (source.uri.clone(), target.clone());
        if let Some(index) = self.seen.get(&key) {
            return Some(*index);
        }
        let index = self.loaded.documents.len();
        self.seen.insert(key, index);
        self.loaded.documents.push(SchemaDocument {
            uri: source.uri,
            elements_qualified: attribute("elementFormDefault").as_deref() == Some("qualified"),
            attributes_qualified: attribute("attributeFormDefault").as_deref() == Some("qualified"),
            block_default: attribute("blockDefault"),
            document,
            root,
            target,
            chameleon,
        });
        self.waiting.push(index);
        Some(index)
    }

    /// Indexes what was added and adds what it names until nothing is left.
    fn follow(&mut self) {
        let mut redefinitions = Vec::new();
        while let Some(index) = self.waiting.pop() {
            let root = self.loaded.documents[index].root;
            let children: Vec<NodeId> = self.loaded.documents[index].children(root).collect();
            for node in children {
                match self.loaded.documents[index].name(node) {
                    "include" => drop(self.include(index, node)),
                    "redefine" => {
                        self.include(index, node);
                        redefinitions.push((index, node));
                    }
                    "import" => self.import(index, node),
                    _ => self.declare(index, node),
                }
            }
        }
        for (index, node) in redefinitions {
            let children: Vec<NodeId> = self.loaded.documents[index].children(node).collect();
            for child in children {
                self.redefine(index, child);
            }
        }
    }

    fn include(&mut self, index: usize, node: NodeId) -> Option<usize> {
        let from = &self.loaded.documents[index];
        let Some(location) = from.attribute(node, "schemaLocation") else {
            let error = from.error(node, format!("<{}> needs the attribute `schemaLocation`", from.name(node)));
            self.fail(error);
            return None;
        };
        let target = from.target.clone();
        match self.resolver.resolve(location, &from.uri, Some(&target)) {
            Some(source) if self.seen.contains_key(&(source.uri.clone(), target.clone())) => None,
            Some(source) => self.add(source, Some(&target)),
            None => {
                let error = from.error(node, format!("the schema document `{location}` cannot be found"));
                self.fail(error);
                None
            }
        }
    }

    /// What cannot be found is only missing when something of it is named.
    fn import(&mut self, index: usize, node: NodeId) {
        let from = &self.loaded.documents[index];
        let namespace = from.attribute(node, "namespace").unwrap_or_default();
        if namespace == penstock_xml::XML_NAMESPACE {
            return;
        }
        let location = from.attribute(node, "schemaLocation").unwrap_or(namespace);
        let given = from.attribute(node, "schemaLocation").is_some();
        let key: Arc<str> = namespace.into();
        match self.resolver.resolve(location, &from.uri, Some(namespace)) {
            Some(source) if self.seen.contains_key(&(source.uri.clone(), key.clone())) => {}
            Some(source) => drop(self.add(source, None)),
            // One of the documents given may declare the namespace; only a location that leads nowhere is unknown.
            None if given => {
                let message = format!("`{location}` is not fetched: what `{namespace}` declares is accepted unchecked");
                self.loaded.notes.push(from.error(node, message));
                self.loaded.unknown.insert(key);
            }
            None => {}
        }
    }

    fn kind_of(&self, index: usize, node: NodeId) -> Option<ComponentKind> {
        Some(match self.loaded.documents[index].name(node) {
            "element" => ComponentKind::Element,
            "attribute" => ComponentKind::Attribute,
            "simpleType" | "complexType" => ComponentKind::Type,
            "group" => ComponentKind::Group,
            "attributeGroup" => ComponentKind::AttributeGroup,
            "notation" => ComponentKind::Notation,
            _ => return None,
        })
    }

    fn declare(&mut self, index: usize, node: NodeId) {
        let from = &self.loaded.documents[index];
        let Some(kind) = self.kind_of(index, node) else {
            if from.name(node) != "annotation" {
                let error = from.error(node, format!("<{}> is not allowed in <schema>", from.name(node)));
                self.fail(error);
            }
            return;
        };
        let Some(name) = from.attribute(node, "name").map(str::trim).filter(|name| !name.is_empty()) else {
            let error = from.error(node, format!("<{}> needs the attribute `name`", from.name(node)));
            self.fail(error);
            return;
        };
        let key = (kind, from.target.clone(), Arc::from(name));
        let place = Place { document: index, node };
        if let Some(first) = self.loaded.index.get(&key) {
            // The same document by two roads is no contradiction.
            let again = first.document != index
                && self.loaded.documents[first.document].document.source() == from.document.source();
            if !again {
                let error = from.error(node, format!("`{name}` is declared twice"));
                self.fail(error);
            }
            return;
        }
        self.loaded.index.insert(key, place);
    }

    fn redefine(&mut self, index: usize, node: NodeId) {
        let from = &self.loaded.documents[index];
        let (Some(kind), Some(name)) = (self.kind_of(index, node), from.attribute(node, "name")) else { return };
        let key = (kind, from.target.clone(), Arc::from(name.trim()));
        let place = Place { document: index, node };
        match self.loaded.index.insert(key, place) {
            Some(original) => {
                self.loaded.originals.insert(place, original);
            }
            None => {
                let error = self.loaded.documents[index].error(node, "there is nothing of this name to redefine");
                self.fail(error);
            }
        }
    }
}
