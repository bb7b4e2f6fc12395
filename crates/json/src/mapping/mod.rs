//! The mapping between JSON and XML, both ways, as integrations rely on it.
//!
//! JSON to XML: an object becomes `<jsonObject>`, a list `<jsonArray>` with a `<jsonElement>` per
//! element, members become child elements, `@name` members attributes, and a list repeats its
//! member's element. XML to JSON is the reverse, as far as XML has the information: repeated children become a
//! list, a single one does not unless a processing instruction `<?xml-multiple name?>` stands
//! before it, and text that looks like a number, `true`, `false` or `null` becomes one.

mod names;
mod options;
mod primitive;
mod text_to_xml;
mod to_json;
mod to_xml;

use std::borrow::Cow;
use std::fmt;

pub use options::Options;
pub use primitive::is_number;
pub use text_to_xml::{Unwritten, text_to_xml};
pub use to_json::{to_json, write_json};
pub use to_xml::to_xml;

/// Any text as an element name: what no name may contain is escaped.
pub fn element_name(name: &str) -> Cow<'_, str> {
    names::to_element(name, false)
}

/// The text that [`element_name`] made an element name of.
pub fn member_name(element_name: &str) -> Cow<'_, str> {
    names::to_member(element_name)
}

/// Values nest this deep at most. Both directions recurse, and no message that people wrote comes near.
const DEPTH_MAX: usize = 512;

/// Why a value cannot be mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingError {
    /// What is wrong, lower case, without a full stop.
    pub message: String,
}

impl MappingError {
    fn new(message: impl Into<String>) -> MappingError {
        MappingError { message: message.into() }
    }

    fn too_deep() -> MappingError {
        MappingError::new(format!("values nest deeper than {DEPTH_MAX}"))
    }
}

impl fmt::Display for MappingError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for MappingError {}
