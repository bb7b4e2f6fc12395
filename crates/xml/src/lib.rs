//! XML for messages: a pull reader, an arena tree with namespaces and positions, a serializer, and limits on all
//! of it.
//!
//! Knows nothing of messages, HTTP or asynchronous code; bytes come in and bytes go out. Nothing outside the
//! document is ever read unless the caller hands over a [`Resolver`].
//!
//! Where to start reading: [`tree`] for the data, `parse` for how it comes about, `write` for how it leaves.

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
mod scan;
mod span;
mod text;
pub mod tree;
mod write;

pub use build::TreeBuilder;
pub use chars::{is_name, is_ncname};
pub use doctype::{Doctype, UnparsedEntity};
pub use encoding::Encoding;
pub use error::{Position, XmlError, XmlErrorKind};
pub use limits::Limits;
pub use names::{Name, NameId, XML_NAMESPACE, XMLNS_NAMESPACE};
pub use options::{DoctypePolicy, ExternalPolicy, ParseOptions, Resolver, StripSpace};
pub use reader::{Attribute, Event, RawName, RawText, Reader, State as ReaderState, Token};
pub use tree::{Document, NodeId, NodeKind};
pub use write::{WriteOptions, escape_attribute, escape_text, to_vec, write_to};
