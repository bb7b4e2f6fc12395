//! What a document is, by its first members.

use super::document::Item;

/// What a document describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Definition {
    /// OpenAPI 2.0.
    Swagger,
    /// OpenAPI 3.0 or 3.1.
    OpenApi,
    /// AsyncAPI 2 or 3.
    AsyncApi,
}

/// What a definition is; what it says of its version when it is none that can be read.
pub(crate) fn definition(root: &Item<'_>) -> Result<Option<Definition>, String> {
    let version = |key: &str| root.get(key).and_then(|version| version.text().cloned());
    if let Some(version) = version("swagger") {
        return if &*version == "2.0" || &*version == "2" {
            Ok(Some(Definition::Swagger))
        } else {
            Err(format!("`swagger` must be \"2.0\", not `{version}`"))
        };
    }
    if let Some(version) = version("openapi") {
        return if version.starts_with("3.0") || version.starts_with("3.1") || &*version == "3" {
            Ok(Some(Definition::OpenApi))
        } else {
            Err(format!("OpenAPI `{version}` is not supported; versions 2.0, 3.0 and 3.1 are"))
        };
    }
    match version("asyncapi") {
        None => Ok(None),
        Some(version) if version.starts_with(['2', '3']) => Ok(Some(Definition::AsyncApi)),
        Some(version) => Err(format!("AsyncAPI `{version}` is not supported; versions 2 and 3 are")),
    }
}
