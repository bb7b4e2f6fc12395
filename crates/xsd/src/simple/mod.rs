//! Simple types: lexical forms, values, facets.

mod builtin;
mod facet;
mod time;
mod value;

pub(crate) use builtin::{Builtin, Context};
pub(crate) use facet::{Facet, Ordered, check, white_spaced};
pub(crate) use value::Value;

/// What is done to white space before a value is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WhiteSpace {
    Preserve,
    Replace,
    Collapse,
}
