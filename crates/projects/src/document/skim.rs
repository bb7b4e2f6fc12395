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
pub(super) enum Part {
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

impl Part {
    pub(super) fn root(reading: Reading) -> Part {
        match reading {
            Reading::Whole => Part::Whole,
            Reading::Skim => Part::Root { is_definition: false },
        }
    }

    /// The part a member is; `None` when it is left out.
    pub(super) fn member(&mut self, key: &str) -> Option<Part> {
        match self {
            Part::Whole => Some(Part::Whole),
            Part::Root { is_definition } => {
                *is_definition |= matches!(key, "openapi" | "swagger");
                match key {
                    _ if !*is_definition => Some(Part::Whole),
                    "paths" => Some(Part::Paths),
                    "components" => Some(Part::Components),
                    "definitions" | "parameters" | "responses" | "tags" | "externalDocs" | "webhooks" => None,
                    _ => Some(Part::Whole),
                }
            }
            Part::Paths => Some(if key.starts_with('/') { Part::PathItem } else { Part::Whole }),
            Part::PathItem => match key {
                "parameters" | "description" | "summary" => None,
                "servers" | "$ref" => Some(Part::Whole),
                _ if key.starts_with("x-") => Some(Part::Whole),
                _ => Some(Part::Operation),
            },
            Part::Operation => match key {
                "responses" | "requestBody" | "parameters" | "description" | "summary" | "callbacks" | "tags"
                | "externalDocs" | "consumes" | "produces" => None,
                _ => Some(Part::Whole),
            },
            Part::Components => matches!(key, "securitySchemes" | "pathItems").then_some(Part::Whole),
        }
    }

    /// The part an item of a list is.
    pub(super) fn item(self) -> Part {
        Part::Whole
    }
}
