//! From the reader's tokens to the tree.

use bytes::Bytes;

use crate::build::TreeBuilder;
use crate::error::{Position, XmlError, XmlErrorKind};
use crate::options::ParseOptions;
use crate::tree::Document;

pub(crate) fn parse_document(source: Bytes, options: &ParseOptions) -> Result<Document, XmlError> {
    let mut builder = TreeBuilder::with_capacity(source.len() / 12);
    append(&mut builder, source, options)?;
    Ok(builder.finish())
}

pub(crate) fn append(_builder: &mut TreeBuilder, _source: Bytes, _options: &ParseOptions) -> Result<(), XmlError> {
    Err(XmlError {
        kind: XmlErrorKind::Malformed,
        position: Position::UNKNOWN,
        message: "the reader is being written".into(),
    })
}
