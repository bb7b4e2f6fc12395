//! What a loop or an application of templates goes over, item by item.

use std::sync::Arc;

use penstock_xml::tree::{Attributes, Children};
use penstock_xml::{Document, NameId, NodeId};
use penstock_xpath::{Item, Node, Sequence, Session};

/// Items still to come.
#[derive(Clone)]
pub(super) enum Source<'a> {
    Children {
        document: u32,
        iter: Children<'a>,
    },
    Elements {
        document: u32,
        of: &'a Document,
        iter: Children<'a>,
    },
    Named {
        document: u32,
        of: &'a Document,
        iter: Children<'a>,
        name: Option<NameId>,
    },
    Attributes {
        document: u32,
        iter: Attributes<'a>,
    },
    /// Attributes first, then children.
    Both {
        document: u32,
        attributes: Attributes<'a>,
        children: Children<'a>,
    },
    Sequence {
        items: Sequence,
        next: usize,
    },
    Items {
        items: Arc<[Item]>,
        next: usize,
    },
    One(Option<Node>),
}

impl<'a> Source<'a> {
    pub fn children(session: &'a Session, node: Node) -> Self {
        Source::Children { document: node.document, iter: session.document(node.document).children(node.id) }
    }

    pub fn elements(session: &'a Session, node: Node) -> Self {
        let of = session.document(node.document);
        Source::Elements { document: node.document, of, iter: of.children(node.id) }
    }

    pub fn named(session: &'a Session, node: Node, name: Option<NameId>) -> Self {
        let of = session.document(node.document);
        Source::Named { document: node.document, of, iter: of.children(node.id), name }
    }

    pub fn attributes(session: &'a Session, node: Node) -> Self {
        let document = session.document(node.document);
        Source::Attributes { document: node.document, iter: document.attributes(node.id) }
    }

    pub fn both(session: &'a Session, node: Node) -> Self {
        let document = session.document(node.document);
        Source::Both {
            document: node.document,
            attributes: document.attributes(node.id),
            children: document.children(node.id),
        }
    }

    /// How many items are still to come.
    pub fn count(&self) -> usize {
        match self {
            Source::Sequence { items, next } => items.len() - next,
            Source::Items { items, next } => items.len() - next,
            other => other.clone().fold(0, |count, _| count + 1),
        }
    }
}

impl Iterator for Source<'_> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        match self {
            Source::Children { document, iter } => node(*document, iter.next()?),
            Source::Elements { document, of, iter } => loop {
                let id = iter.next()?;
                if of.is_element(id) {
                    return node(*document, id);
                }
            },
            Source::Named { document, of, iter, name } => {
                let name = (*name)?;
                loop {
                    let id = iter.next()?;
                    if of.is_element(id) && of.name_id(id) == name {
                        return node(*document, id);
                    }
                }
            }
            Source::Attributes { document, iter } => node(*document, iter.next()?),
            Source::Both { document, attributes, children } => match attributes.next() {
                Some(id) => node(*document, id),
                None => node(*document, children.next()?),
            },
            Source::Sequence { items, next } => {
                let item = items.get(*next)?;
                *next += 1;
                Some(item.to_item())
            }
            Source::Items { items, next } => {
                let item = items.get(*next)?;
                *next += 1;
                Some(item.clone())
            }
            Source::One(node) => node.take().map(Item::Node),
        }
    }
}

#[inline]
fn node(document: u32, id: NodeId) -> Option<Item> {
    Some(Item::Node(Node { document, id }))
}
