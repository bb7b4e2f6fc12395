//! What is wrong with a schema, and with a document.

use std::fmt;

use penstock_xml::Position;

/// A mistake in a schema document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The document.
    pub uri: String,
    /// Where.
    pub position: Position,
    /// What, lower case, without a full stop.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.uri, self.position, self.message)
    }
}

impl std::error::Error for SchemaError {}

/// Something in a document that its schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Where: the element or attribute at fault.
    pub position: Position,
    /// What, with the code of the specification: `cvc-complex-type.2.4.a: …`.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.position, self.message)
    }
}
