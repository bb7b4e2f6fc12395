//! Where imported modules and `document()` come from: the caller decides, nothing is fetched otherwise.

use bytes::Bytes;

/// A resource that was found.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Its absolute name: the base of its own relative references, and its identity.
    pub uri: String,
    /// Its bytes.
    pub content: Bytes,
}

/// Finds the resources a stylesheet names in `xsl:import`, `xsl:include` and `document()`.
pub trait Resolver {
    /// The resource `reference` names when it is read relative to `base`, or why there is none.
    ///
    /// # Errors
    /// A sentence for the author of the stylesheet.
    fn resolve(&self, reference: &str, base: &str) -> Result<Resource, String>;
}

/// A resolver that finds nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoResolver;

impl Resolver for NoResolver {
    fn resolve(&self, reference: &str, _base: &str) -> Result<Resource, String> {
        Err(format!("`{reference}` cannot be read: no other resources are available here"))
    }
}
