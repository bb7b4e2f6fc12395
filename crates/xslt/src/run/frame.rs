//! What stands on the machine's stack: loops and applications in progress, and what calls put back.

use std::rc::Rc;

use penstock_xpath::{Item, Node, Sequence};

use super::source::Source;
use crate::program::Pc;

/// Passed parameters by name.
pub(super) type Params = Option<Rc<Vec<(u32, Sequence)>>>;

/// The context item with its position. The size is only right when the program uses `last()`.
#[derive(Clone)]
pub(super) struct Focus {
    pub item: Option<Item>,
    pub position: usize,
    pub size: usize,
}

/// What a call changes and a return puts back.
pub(super) struct Saved {
    pub pc: Pc,
    pub focus: Focus,
    pub base: usize,
    pub top: usize,
    pub rule: Option<(u32, u32)>,
    pub mode: u32,
    pub params: Params,
    pub tunnel: Params,
}

/// An application of templates in progress.
pub(super) struct Application<'a> {
    pub saved: Saved,
    pub source: Source<'a>,
    pub index: usize,
    pub size: usize,
    pub mode: u32,
    pub params: Params,
    pub tunnel: Params,
    /// Whether it was begun by a built-in or identity rule, not by an instruction.
    pub nested: bool,
    /// Whether an element is open that ends with it; it is a copy of this node.
    pub copied: Option<Node>,
}

pub(super) enum Frame<'a> {
    Loop { source: Source<'a>, index: usize, size: usize, body: Pc, end: Pc, focus: Focus, rule: Option<(u32, u32)> },
    Groups(Box<super::group::Groups>),
    Pieces(Box<super::group::Pieces>),
    Apply(Application<'a>),
    Call(Saved),
    Stop,
}
