//! JSON: JSONPath, JSON Schema, and the mapping between JSON and XML.
//!
//! This crate is independent of messages, configuration and sockets: it works on
//! [`serde_json::Value`] and on the XML tree.
//!
//! Start reading at [`path::JsonPath`], then [`mapping`] and [`schema::JsonSchema`]; [`text`] reads JSON text, and
//! [`lenient`] what is not quite.

mod equality;
pub mod lenient;
pub mod mapping;
pub mod path;
pub mod schema;
pub mod text;

pub use equality::has_duplicates;
