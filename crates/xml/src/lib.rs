//! XML for messages: a pull reader, an arena tree with namespaces and positions, a serializer, and limits on all
//! of it.
//!
//! Independent of messages, HTTP and asynchronous code; bytes come in and bytes go out. Nothing outside the
//! document is ever read unless the caller hands over a [`Resolver`].
//!
//! Where to start reading: [`tree`] for the data, `parse` for how it comes about, `reader` for the tokens it is made
//! from, `write` for how it leaves. [`TreeBuilder`] makes trees by hand, by copying, and by parsing into them.
//!
//! # Why the tokenizer is our own
//!
//! Building a tree must cost less than a quarter of what libxml2 needs. The tokens alone of the best-kept crate cost
//! 259 µs for a SOAP message of 100 KB where libxml2 built its tree in 680 µs; this crate builds its tree, with names,
//! namespaces and well-formedness checked, in a fifth of libxml2's time (`tools/bench-xml/parse.py` measures both in
//! turn). What makes the difference: control characters and encoding are checked in one vectorised pass; the ends of
//! names, values and texts are found sixteen bytes at a time, without a mispredicted branch per name; a name is
//! validated, split and resolved once and then only recognised, mostly as the one that came next the last time; a node is
//! 16 bytes and its text stays in the source.

mod build;
mod chars;
mod doctype;
mod dtd;
mod encoding;
mod entity;
mod error;
mod limits;
mod names;
mod options;
mod parse;
mod reader;
mod root;
mod scan;
mod span;
mod text;
pub mod tree;
mod write;

pub use build::TreeBuilder;
pub use chars::{is_name, is_ncname};
pub use doctype::{Doctype, UnparsedEntity};
pub use encoding::{Encoding, decode_text};
pub use error::{Position, XmlError, XmlErrorKind};
pub use limits::Limits;
pub use names::{Name, NameId, NameTable, XML_NAMESPACE, XMLNS_NAMESPACE};
pub use options::{DoctypePolicy, ExternalPolicy, ParseOptions, Resolver, StripSpace};
pub use reader::{Attribute, Event, RawName, RawText, Reader, State as ReaderState, Token};
pub use root::root_name;
pub use tree::{Document, NodeId, NodeKind};
pub use write::{WriteOptions, escape_attribute, escape_text, escaped, escaped_text, to_vec, write_to};
