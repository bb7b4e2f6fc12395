//! What a caller may say about how a document is to be read.

use std::sync::Arc;

use bytes::Bytes;

use crate::encoding::Encoding;
use crate::limits::Limits;

/// How to read a document. The default reads any well-formed document without reading anything else.
#[derive(Clone, Default)]
pub struct ParseOptions {
    /// Bounds on what the document may cost.
    pub limits: Limits,
    /// The encoding that overrides the document's declaration, for instance the charset of an HTTP header.
    pub encoding: Option<Encoding>,
    /// Where the document comes from, for relative references and messages.
    pub base_uri: Option<Box<str>>,
    /// Whether a document type declaration is accepted.
    pub doctype: DoctypePolicy,
    /// What to do about external entities when there is no resolver, or when it declines.
    pub external: ExternalPolicy,
    /// Reads external entities and the external subset. Without one nothing outside the document is ever read.
    pub resolver: Option<Arc<dyn Resolver>>,
    /// Elements whose whitespace-only text nodes are left out of the tree; nothing is left out by default.
    pub strip_space: Option<Arc<dyn StripSpace>>,
}

impl ParseOptions {
    /// The default options with other limits.
    pub fn with_limits(limits: Limits) -> ParseOptions {
        ParseOptions { limits, ..ParseOptions::default() }
    }
}

/// Whether a document may have a document type declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DoctypePolicy {
    /// It is read: entities, attribute defaults and types have their effect.
    #[default]
    Read,
    /// It is an error, as SOAP 1.1 and 1.2 demand.
    Refuse,
}

/// The handling of unresolved external references.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExternalPolicy {
    /// It is left out, as a non-validating processor may (XML 1.0 §4.4.3).
    #[default]
    Skip,
    /// It is an error.
    Error,
}

/// Reads what a document refers to outside itself.
pub trait Resolver: Send + Sync {
    /// The bytes of an external entity, `None` to decline, an error text to stop the parse.
    fn resolve(&self, public: Option<&str>, system: &str, base: Option<&str>) -> Result<Option<Bytes>, String>;
}

/// Decides which elements lose their whitespace-only text, as `xsl:strip-space` does. `xml:space` is respected.
pub trait StripSpace: Send + Sync {
    /// Whether whitespace-only text directly inside an element of this name is left out.
    fn strips(&self, namespace: &str, local: &str) -> bool;
}
