//! Where a node ends in the source.

use crate::tree::{Document, NodeId};

pub(crate) fn end_of(_document: &Document, _id: NodeId, start: usize) -> usize {
    start
}
