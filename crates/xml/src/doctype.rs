//! The document type declaration: what of it outlives the parse.

use std::collections::HashMap;

/// What a document type declaration said that a reader of the tree may ask for.
#[derive(Clone, Debug, Default)]
pub struct Doctype {
    /// The name of the document element it declares.
    pub name: Box<str>,
    /// The public identifier of the external subset.
    pub public: Option<Box<str>>,
    /// The system identifier of the external subset.
    pub system: Option<Box<str>>,
    pub(crate) unparsed: HashMap<Box<str>, UnparsedEntity>,
    pub(crate) ids: HashMap<Box<str>, u32>,
}

impl Doctype {
    /// The unparsed entity with this name.
    pub fn unparsed_entity(&self, name: &str) -> Option<&UnparsedEntity> {
        self.unparsed.get(name)
    }
}

/// An entity declared with `NDATA`: named, never read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnparsedEntity {
    /// The public identifier.
    pub public: Option<Box<str>>,
    /// The system identifier, as written.
    pub system: Box<str>,
    /// The name of the notation.
    pub notation: Box<str>,
}
