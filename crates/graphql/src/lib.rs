//! GraphQL documents: parses schemas and queries, validates a query against its schema, and measures its depth and
//! complexity. Queries are never executed.
//!
//! Terms and rules are those of the specification of October 2021. Three of its rules are left to the backend: whether
//! fields of one name can be merged, whether the type of a variable suits its place, and the values of custom scalars.
//!
//! The crate is independent of messages, HTTP, callers and limits. Start reading at [`Schema::parse`] and
//! [`Query::check`], then `walk.rs` and `rules.rs`; `lexer.rs` and `syntax.rs` are shared by `sdl.rs` (schemas) and
//! `document.rs` (queries).

mod build;
mod check;
mod document;
mod lexer;
mod rules;
mod schema;
mod sdl;
mod syntax;
mod variables;
mod walk;

pub use check::{Checked, Query, Refused};
pub use document::OperationKind;
pub use schema::Schema;

/// Larger than any query that programs write; the parser of API Manager has the same limit.
const QUERY_BYTES_MAX: usize = 1 << 20;

/// Tokens of a query, as in API Manager: the cost of a query grows with its tokens and not with its bytes.
const QUERY_TOKENS_MAX: usize = 15_000;

/// A schema of this size has tens of thousands of types.
const SCHEMA_BYTES_MAX: usize = 16 << 20;

/// Tokens of a schema.
const SCHEMA_TOKENS_MAX: usize = 2_000_000;

/// Selections inside selections, fragments followed, and values inside values. Every level is a call of a function, and
/// the query that tools ask a server about its schema with has thirteen.
const DEPTH_MAX: usize = 100;

/// Why a text is neither a schema nor a query, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Bytes before it.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
    /// Whether it is that something is nested deeper than anything may be.
    pub too_deep: bool,
}

impl Malformed {
    fn new(offset: usize, message: impl Into<String>) -> Malformed {
        Malformed { offset, message: message.into(), too_deep: false }
    }

    fn too_deep(offset: usize) -> Malformed {
        let message = format!("nested deeper than {DEPTH_MAX}");
        Malformed { offset, message, too_deep: true }
    }
}

/// Line and column of an offset, both from 1, the column in characters.
pub fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or(text);
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line as u32, before[start..].chars().count() as u32 + 1)
}

#[cfg(test)]
mod tests;
