//! XPath: parse, compile, evaluate over a tree, or over the reader without building one.
//!
//! Independent of messages, HTTP, stylesheets and asynchronous code; what an expression needs of the program around
//! it goes through [`Host`].
//!
//! # How to use it
//!
//! ```
//! use std::sync::Arc;
//! use penstock_xpath::{DynamicContext, NoHost, Session, StaticContext, XPath};
//!
//! # fn main() -> Result<(), penstock_xpath::XPathError> {
//! let context = StaticContext::new().namespace("o", "urn:orders");
//! let expression = XPath::compile("count(//o:order[price > 20])", &context)?;
//!
//! let mut tree = penstock_xml::TreeBuilder::new();
//! tree.start_element("", "order", "urn:orders");
//! tree.start_element("", "price", "");
//! tree.text("25");
//! let (session, root) = Session::with_document(Arc::new(tree.finish()));
//! let cx = DynamicContext::new(&session, &NoHost).with_node(root);
//! assert_eq!(expression.evaluate_number(&cx)?, 1.0);
//! # Ok(())
//! # }
//! ```
//!
//! * [`StaticContext`] (a builder) holds namespaces, the version ([`Version::One`]: 1.0 semantics, [`Version::Two`]:
//!   typed), which variables exist ([`VariablePolicy`], or a [`Resolver`] that hands out slots), aliases such as
//!   `$body`, and decimal formats. Expressions of one program should share a [`NamePool`]: name tests then compare
//!   integers after the first lookup per document.
//! * [`XPath`] is compiled once and is `Send + Sync`. Ask it for what you need: `evaluate` gives a [`Sequence`],
//!   `evaluate_string`/`_boolean`/`_number` give a plain value without building a sequence, `for_each_node`,
//!   `nodes_into` and `first_node` give nodes without one. [`XPath::uses_context`], [`XPath::variables`] and
//!   [`XPath::functions`] say beforehand what it will look at.
//! * [`Session`] owns the documents that [`Node`]s point into, and the fuel that bounds the work. Make one per
//!   transformation or per message; [`Session::add`] takes an `Arc<Document>`.
//! * [`DynamicContext`] borrows a session and a [`Host`] and adds the context item and variable slots. `current()` is
//!   the context item the evaluation began with.
//! * [`Pattern`] is the `match` of XSLT: alternatives with a [`pattern::Key`] to dispatch on, a default priority, and
//!   [`Pattern::alternative_matches`].
//! * [`XPathError`] carries the code of the specifications and the bytes of the text that are at fault.
//!
//! # Where to start reading
//!
//! `lexer` → `parser` → [`ast`] → `compile` → `code` → `eval`; values are in [`value`], the standard functions in
//! `functions`, one row each in the table of its `mod.rs`.
//!
//! Stack use is bounded by the parser: it refuses nesting beyond `MAX_NESTING` and trees higher than `MAX_HEIGHT`, and
//! evaluation recurses along the tree only.

pub mod ast;
mod code;
pub mod collation;
mod compile;
mod context;
mod error;
mod eval;
mod expression;
mod functions;
mod lexer;
mod names;
pub mod numbering;
mod parser;
pub mod pattern;
mod program;
pub mod regex;
mod render;
mod session;
mod static_context;
pub mod stream;
mod suggest;
pub mod value;

pub use context::{DynamicContext, Host, HostCall, NoHost};
pub use error::{Result, Span, XPathError};
pub use eval::{Flow, compare_values};
pub use expression::{XPath, line_and_column, underline};
pub use functions::format_number::DecimalFormat;
pub use functions::is_standard_function;
pub use functions::strings::in_normalization_form;
pub use lexer::is_nc_name;
pub use names::NamePool;
pub use pattern::Pattern;
pub use render::render;
pub use session::{DEFAULT_FUEL, Session};
pub use static_context::{
    FUNCTION_NAMESPACE, FunctionRef, Resolver, ResultKind, SCHEMA_NAMESPACE, StaticContext, VariablePolicy,
    VariableRef, Version, XML_NAMESPACE,
};
pub use value::{Atomic, AtomicKey, AtomicType, Item, ItemRef, Node, Sequence, days_from_civil};
