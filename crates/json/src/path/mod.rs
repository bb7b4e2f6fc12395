//! JSONPath: compiled once, evaluated on [`serde_json::Value`], in two dialects.
//!
//! Both share one syntax tree and one evaluation. RFC 9535 is strict. The dialect of the artifacts
//! is what the library behind Micro Integrator accepts: `$.` may be missing, functions stand at the end
//! (`$.items.length()`), filters know `=~`, `in`, `size` and more, and what a path yields depends on
//! whether it is *definite*, that is, can find one value at most.

mod ast;
mod compare;
mod condition;
mod edit;
mod error;
mod filter;
mod function;
mod literal;
mod parser;
mod pattern;
mod read;
mod select;

use serde_json::Value;

pub use ast::{Filter, Segment, Selector, TailFunction};
pub use edit::{Location, Step, insert_child, remove, replace, value_at};
pub use error::PathError;

use condition::Scope;
use parser::Parser;

/// Which JSONPath.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// What the artifacts are written in.
    Artifacts,
    /// The standard, and nothing else.
    Rfc9535,
}

/// Names inside a filter that the embedding code resolves (`vars.limit`).
pub trait Resolve {
    /// Looks at the text of an operand, which starts at byte `offset` of the path. When it is one of
    /// its own: how many bytes it takes, and the position of its value among the parameters of
    /// [`JsonPath::read_with`].
    fn resolve(&mut self, text: &str, offset: usize) -> Result<Option<(usize, usize)>, PathError>;
}

/// A compiled path.
#[derive(Debug, Clone)]
pub struct JsonPath {
    segments: Vec<Segment>,
    function: Option<TailFunction>,
    /// Names and indexes only, so it finds one node at most.
    singular: bool,
    dialect: Dialect,
}

impl JsonPath {
    /// Compiles a path.
    pub fn parse(text: &str, dialect: Dialect) -> Result<JsonPath, PathError> {
        Parser::new(text, dialect, None).path()
    }

    /// A path of artifacts by the rules of Micro Integrator, which takes any character but `.`, `[`, `(` and white space
    /// for part of a member's name: `$[0])` is the member `)` of the first element.
    pub fn parse_tolerantly(text: &str) -> Result<JsonPath, PathError> {
        let mut parser = Parser::new(text, Dialect::Artifacts, None);
        parser.tolerant = true;
        parser.path()
    }

    /// A path in the artifacts' dialect made of parsed segments.
    pub fn from_segments(segments: Vec<Segment>, function: Option<TailFunction>) -> JsonPath {
        let singular = ast::is_singular(&segments);
        JsonPath { segments, function, singular, dialect: Dialect::Artifacts }
    }

    /// Its segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether it is `$`: the whole document.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty() && self.function.is_none()
    }

    /// Every node the path finds. A function at the end is not applied; [`JsonPath::read`] does.
    pub fn select<'d>(&self, root: &'d Value) -> Vec<&'d Value> {
        if self.singular {
            return select::follow(&self.segments, root).into_iter().collect();
        }
        let scope = Scope { root, current: root, parameters: &[], dialect: self.dialect };
        select::select(&self.segments, (root, ()), &scope).into_iter().map(|(value, ())| value).collect()
    }

    /// Where every node that the path finds is.
    pub fn locate(&self, root: &Value) -> Vec<Location> {
        let scope = Scope { root, current: root, parameters: &[], dialect: self.dialect };
        let nodes = select::select(&self.segments, (root, edit::Crumbs::default()), &scope);
        nodes.into_iter().map(|(_, crumbs)| crumbs.location()).collect()
    }

    /// The path to the node above the ones this path finds; `None` for the root.
    pub fn parent(&self) -> Option<JsonPath> {
        let (_, above) = self.segments.split_last()?;
        Some(JsonPath::from_segments(above.to_vec(), None))
    }

    /// The member name the path ends in, when it ends in one.
    pub fn last_name(&self) -> Option<&str> {
        match self.segments.last()? {
            Segment::Child(selectors) => match selectors.as_slice() {
                [Selector::Name(name)] => Some(name),
                _ => None,
            },
            Segment::Descendant(_) => None,
        }
    }
}

impl Filter {
    /// Parses what stands after `?` in the artifacts' dialect, and says how many bytes it takes.
    /// `resolve` gets to see operands first.
    pub fn parse_prefix(text: &str, resolve: &mut dyn Resolve) -> Result<(Filter, usize), PathError> {
        let mut parser = Parser::new(text, Dialect::Artifacts, Some(resolve));
        parser.space();
        let filter = parser.filter()?;
        Ok((filter, parser.at))
    }
}
