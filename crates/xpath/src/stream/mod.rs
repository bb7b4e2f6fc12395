//! Answering an expression from the reader, without a tree, stopping as soon as the answer is known.
//!
//! What works: paths of child and descendant steps that may end in an attribute or in `text()`, with predicates on the
//! position, on attributes, on names and on the content of the element; unions of such paths; and around them
//! comparisons with literals, `and`, `or`, `not()`, `concat()` and a few more functions. [`Stream::compile`] says why
//! when an expression is not of this kind.
//!
//! What an answer promises: up to the place where it was known the document is in UTF-8, has no document type
//! declaration and is well-formed, because elements that cannot matter are passed over ([`Reader::skim`]) with the checks
//! of every other element: names, nesting, references, duplicate attributes, limits. Prefixes are looked up for
//! elements whose names may match, so an undeclared one elsewhere is not noticed. What follows that place is not read at
//! all, and may turn out not to be well-formed: the answer of a routing expression usually stands in the first kilobyte,
//! and stopping there is the point. The document is parsed in full when it is needed.
//!
//! [`Reader::skim`]: penstock_xml::Reader::skim
//!
//! Where to start reading: `plan` is what an expression becomes, `compile` how, `run` how it is answered.

mod compile;
mod forms;
mod plan;
mod run;
mod scalar;
#[cfg(test)]
mod tests;

pub use run::{Answer, Run, Surroundings, Virtual};

use plan::Plan;

use crate::error::XPathError;
use crate::expression::XPath;

/// What is wanted of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Want {
    /// What `string()` gives: of several nodes the first one counts.
    Text,
    /// The effective boolean value: for paths, whether there is a node.
    Boolean,
    /// What `number()` gives.
    Number,
}

/// An expression that can be answered from a reader. Made once, used many times, from any thread.
#[derive(Debug)]
pub struct Stream {
    plan: Plan,
    want: Want,
}

impl Stream {
    /// Compiles an expression for streaming. The error says why it cannot be streamed and where the reason stands; the
    /// expression itself is right and can be evaluated over a tree.
    pub fn compile(expression: &XPath, want: Want) -> Result<Stream, XPathError> {
        let plan = compile::compile(expression, want)?;
        Ok(Stream { plan, want })
    }

    /// Begins to answer for one document.
    pub fn start(&self, surroundings: &Surroundings) -> Run<'_> {
        Run::new(self, surroundings)
    }

    /// Answers for a document that is all there.
    pub fn answer(&self, document: &[u8], surroundings: &Surroundings) -> Result<Answer, penstock_xml::XmlError> {
        self.start(surroundings).feed(document, true)
    }
}
