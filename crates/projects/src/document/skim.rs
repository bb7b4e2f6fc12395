//! The parts of an OpenAPI definition that matter for routing.

/// How much of a document is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// All of it.
    Whole,
    /// Of an OpenAPI definition only what is not about bodies; other documents as a whole. Parts that are left out read as
    /// empty mappings.
    Skim,
}

/// A part of a document, as far as it matters for what is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentPart {
    /// Everything in it is built.
    Whole,
    /// The outermost mapping; whether it is known to be a definition.
    Root {
        is_definition: bool,
    },
    Paths,
    PathItem,
    Operation,
    Components,
}

impl DocumentPart {
    pub(super) fn root(reading: Reading) -> DocumentPart {
        match reading {
            Reading::Whole => DocumentPart::Whole,
            Reading::Skim => DocumentPart::Root { is_definition: false },
        }
    }

    /// The part a member is; `None` when it is left out.
    pub(super) fn member(&mut self, key: &str) -> Option<DocumentPart> {
        match self {
            DocumentPart::Whole => Some(DocumentPart::Whole),
            DocumentPart::Root { is_definition } => {
                *is_definition |= matches!(key, "openapi" | "swagger");
                match key {
                    _ if !*is_definition => Some(DocumentPart::Whole),
                    "paths" => Some(DocumentPart::Paths),
                    "components" => Some(DocumentPart::Components),
                    "definitions" | "parameters" | "responses" | "tags" | "externalDocs" | "webhooks" => None,
                    _ => Some(DocumentPart::Whole),
                }
            }
            DocumentPart::Paths => {
                Some(if key.starts_with('/') { DocumentPart::PathItem } else { DocumentPart::Whole })
            }
            DocumentPart::PathItem => match key {
                "parameters" | "description" | "summary" => None,
                "servers" | "$ref" => Some(DocumentPart::Whole),
                _ if key.starts_with("x-") => Some(DocumentPart::Whole),
                _ => Some(DocumentPart::Operation),
            },
            DocumentPart::Operation => match key {
                "responses" | "requestBody" | "parameters" | "description" | "summary" | "callbacks" | "tags"
                | "externalDocs" | "consumes" | "produces" => None,
                _ => Some(DocumentPart::Whole),
            },
            DocumentPart::Components => matches!(key, "securitySchemes" | "pathItems").then_some(DocumentPart::Whole),
        }
    }

    /// The part an item of a list is.
    pub(super) fn item(self) -> DocumentPart {
        DocumentPart::Whole
    }
}
