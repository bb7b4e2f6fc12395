//! XSLT: a stylesheet compiled to a program that writes bytes, or a result tree when it is needed.
//!
//! XSLT 1.0, and of 2.0 what stylesheets in the field use. Independent of messages, HTTP, files and asynchronous code
//! (only `command` reads files); imports and documents come through a [`Resolver`] of the caller.
//!
//! # How to use it
//!
//! ```
//! use std::sync::Arc;
//! use penstock_xml::{Document, ParseOptions};
//! use penstock_xslt::{CompileOptions, Stylesheet, TransformOptions};
//!
//! let source = br#"<out xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
//!     <xsl:value-of select="in/@n"/></out>"#;
//! let (stylesheet, _warnings) = Stylesheet::compile(&source[..], &CompileOptions::default()).unwrap();
//! let document = Arc::new(Document::parse(&br#"<in n="1"/>"#[..], &ParseOptions::default()).unwrap());
//! let mut out = Vec::new();
//! stylesheet.transform(&document, Document::ROOT, &TransformOptions::default(), &mut out).unwrap();
//! assert_eq!(out, br#"<?xml version="1.0" encoding="UTF-8"?><out>1</out>"#);
//! ```
//!
//! # Where to start reading
//!
//! `stylesheet` has the ways in. `read` turns bytes into modules and the import tree, `compile` turns those into a
//! `program`, a flat list of operations, and `run` carries it out: `machine` is the loop, `apply`
//! finds and enters templates, `sink` is where output goes, `output::writer` makes bytes of it. What makes it fast:
//! rules are found by kind and name of the node in a table, literal content is serialised when the stylesheet is
//! compiled, templates that only copy are not run at all, and nothing is allocated per node.

pub mod command;
mod compile;
mod error;
mod output;
mod program;
mod read;
mod resolver;
mod run;
mod strip;
mod stylesheet;

pub use error::{Position, Warning, XsltError, codes};
pub use output::{Method, OutputInfo};
pub use resolver::{NoResolver, Resolver, Resource};
pub use run::{Limits, WriteDocument};
pub use stylesheet::{CompileOptions, Stylesheet, TransformOptions};
