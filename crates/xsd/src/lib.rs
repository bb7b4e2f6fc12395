//! XML Schema 1.0: schema documents are compiled once, and a tree is then checked against the
//! compiled components as often as needed.
//!
//! Independent of messages, files and the network: what a schema includes or imports comes from the
//! [`Resolver`] the caller hands in. It checks and reports; it adds no defaults to the tree.
//!
//! ```
//! use penstock_xml::{Document, ParseOptions};
//! use penstock_xsd::{NoResolver, Schema, SchemaSource};
//!
//! let text = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="n" type="xs:int"/></xs:schema>"#;
//! let schema = Schema::compile(&[SchemaSource::new("n.xsd", text)], &NoResolver).unwrap();
//! let document = Document::parse("<n>seven</n>", &ParseOptions::default()).unwrap();
//! let violations = schema.validate(&document, document.root_element().unwrap());
//! assert_eq!(violations[0].message, "cvc-datatype-valid.1.2.1: 'seven' is not a valid value for 'int'.");
//! assert_eq!((violations[0].position.line, violations[0].position.column), (1, 1));
//! ```
//!
//! # Where to start reading
//!
//! `load` (documents, and where each global component stands) → `compile` (components from elements)
//! → `model` (what they are) → `validate` (a tree against them). `simple` holds the simple types:
//! their lexical forms, values and facets.
//!
//! Messages have the codes and wording of the validator that integrations were written against, as
//! flows match on them.

mod compile;
mod error;
mod load;
mod model;
mod names;
mod simple;
mod syntax;
mod validate;

use bytes::Bytes;
use penstock_xml::{Document, NodeId};

pub use error::{SchemaError, Violation};
pub use load::NoResolver;

/// The namespace of schema documents.
pub(crate) const XSD: &str = "http://www.w3.org/2001/XMLSchema";
/// The namespace of `xsi:type`, `xsi:nil` and `xsi:schemaLocation`.
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A schema document.
#[derive(Debug, Clone)]
pub struct SchemaSource {
    /// What it is called: the base of what it includes, and the file in errors.
    pub uri: String,
    /// Its text.
    pub content: Bytes,
}

impl SchemaSource {
    /// A schema document.
    pub fn new(uri: impl Into<String>, content: impl Into<Bytes>) -> SchemaSource {
        SchemaSource { uri: uri.into(), content: content.into() }
    }
}

/// Finds what schema documents include, import and redefine.
pub trait Resolver {
    /// The document at `location` as `base` calls it; `namespace` is what an import says it holds.
    /// `None` when there is none: an import then only declares the namespace.
    fn resolve(&self, location: &str, base: &str, namespace: Option<&str>) -> Option<SchemaSource>;
}

/// Compiled schema documents. Immutable; shared between threads.
pub struct Schema {
    components: model::Components,
    notes: Vec<SchemaError>,
}

impl Schema {
    /// Compiles schema documents, all mistakes at once.
    pub fn compile(sources: &[SchemaSource], resolver: &dyn Resolver) -> Result<Schema, Vec<SchemaError>> {
        let loaded = load::load(sources, resolver)?;
        let components = compile::compile(&loaded)?;
        Ok(Schema { components, notes: loaded.notes })
    }

    /// What is no mistake and may still surprise: imports that were not found.
    pub fn notes(&self) -> &[SchemaError] {
        &self.notes
    }

    /// What is wrong with the element and everything in it, in document order as far as it was found
    /// by walking; empty when it is valid. Stops at a hundred.
    pub fn validate(&self, document: &Document, element: NodeId) -> Vec<Violation> {
        validate::validate(&self.components, document, element)
    }
}
