//! The XDM value model: sequences of items, items being nodes or atomic values.
//!
//! A node is two indices, so a node-set is a flat array whose document order is integer order. Everything that
//! owns memory does so behind an `Arc`: cloning a sequence never copies text, and values may travel between threads.

pub mod atomic;
mod binary;
pub mod cast;
pub mod datetime;
pub mod decimal;
mod derived;
pub mod duration;
mod integer;
pub mod key;
pub mod number;
mod types;

pub use atomic::{Atomic, QName};
pub use datetime::{DateTime, days_from_civil};
pub use decimal::Decimal;
pub use duration::Duration;
pub use integer::WideInteger;
pub use key::AtomicKey;
pub use types::AtomicType;

use std::sync::Arc;

use penstock_xml::NodeId;

/// A node of one of the documents of an evaluation. Order is document order; documents are ordered as registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    /// Index in the [`crate::Session`] of the evaluation.
    pub document: u32,
    /// The node within its document.
    pub id: NodeId,
}

/// One item of a sequence.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A node, meaningful in the evaluation's [`crate::Session`].
    Node(Node),
    /// An atomic value.
    Atomic(Atomic),
}

/// An item seen without cloning it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ItemRef<'v> {
    /// A node.
    Node(Node),
    /// An atomic value.
    Atomic(&'v Atomic),
}

impl ItemRef<'_> {
    /// The item itself.
    pub fn to_item(self) -> Item {
        match self {
            ItemRef::Node(node) => Item::Node(node),
            ItemRef::Atomic(atomic) => Item::Atomic(atomic.clone()),
        }
    }
}

impl Item {
    /// The item without its ownership.
    pub fn as_ref(&self) -> ItemRef<'_> {
        match self {
            Item::Node(node) => ItemRef::Node(*node),
            Item::Atomic(atomic) => ItemRef::Atomic(atomic),
        }
    }
}

impl From<Node> for Item {
    fn from(node: Node) -> Item {
        Item::Node(node)
    }
}

impl<A: Into<Atomic>> From<A> for Item {
    fn from(atomic: A) -> Item {
        Item::Atomic(atomic.into())
    }
}

/// Any XPath value. Build one with [`Sequence::from_items`], [`Sequence::from_nodes`] or `From`.
#[derive(Debug, Clone, Default)]
pub enum Sequence {
    /// `()`
    #[default]
    Empty,
    /// A sequence of one item, which is the same thing as the item.
    One(Item),
    /// Nodes only, in the order of the sequence (which is document order for every path).
    Nodes(Arc<[Node]>),
    /// Anything else.
    Items(Arc<[Item]>),
}

impl Sequence {
    /// Nodes, in the given order.
    pub fn from_nodes(nodes: &[Node]) -> Sequence {
        match nodes {
            [] => Sequence::Empty,
            [node] => Sequence::One(Item::Node(*node)),
            many => Sequence::Nodes(many.into()),
        }
    }

    /// Items, in the given order.
    pub fn from_items(mut items: Vec<Item>) -> Sequence {
        match items.len() {
            0 => Sequence::Empty,
            1 => items.pop().map_or(Sequence::Empty, Sequence::One),
            _ => Sequence::Items(items.into()),
        }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        match self {
            Sequence::Empty => 0,
            Sequence::One(_) => 1,
            Sequence::Nodes(nodes) => nodes.len(),
            Sequence::Items(items) => items.len(),
        }
    }

    /// Whether this is `()`.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at `index`, counted from zero.
    pub fn get(&self, index: usize) -> Option<ItemRef<'_>> {
        match self {
            Sequence::Empty => None,
            Sequence::One(item) => (index == 0).then(|| item.as_ref()),
            Sequence::Nodes(nodes) => nodes.get(index).copied().map(ItemRef::Node),
            Sequence::Items(items) => items.get(index).map(Item::as_ref),
        }
    }

    /// The first item.
    pub fn first(&self) -> Option<ItemRef<'_>> {
        self.get(0)
    }

    /// The items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ItemRef<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.get(index).expect("the range ends at the length"))
    }

    /// The nodes, when every item is a node.
    pub fn nodes(&self) -> Option<Vec<Node>> {
        self.iter()
            .map(|item| match item {
                ItemRef::Node(node) => Some(node),
                ItemRef::Atomic(_) => None,
            })
            .collect()
    }

    /// Whether every item is a node.
    pub fn is_nodes(&self) -> bool {
        match self {
            Sequence::Empty | Sequence::Nodes(_) => true,
            Sequence::One(item) => matches!(item, Item::Node(_)),
            Sequence::Items(items) => items.iter().all(|item| matches!(item, Item::Node(_))),
        }
    }

    /// Appends the items to a vector.
    pub fn append_to(&self, items: &mut Vec<Item>) {
        match self {
            Sequence::Empty => {}
            Sequence::One(item) => items.push(item.clone()),
            Sequence::Nodes(nodes) => items.extend(nodes.iter().map(|node| Item::Node(*node))),
            Sequence::Items(more) => items.extend_from_slice(more),
        }
    }
}

impl<I: Into<Item>> From<I> for Sequence {
    fn from(item: I) -> Sequence {
        Sequence::One(item.into())
    }
}

impl FromIterator<Item> for Sequence {
    fn from_iter<T: IntoIterator<Item = Item>>(items: T) -> Sequence {
        let items = items.into_iter();
        let mut list = Vec::new();
        penstock_budget::make_room(&mut list, items.size_hint().0);
        for item in items {
            penstock_budget::step();
            penstock_budget::make_room(&mut list, 1);
            list.push(item);
        }
        Sequence::from_items(list)
    }
}
