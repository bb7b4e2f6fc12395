//! Branches that came from one message, and what is collected from them.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// What all branches of one fork share. `aggregate` keeps its groups here, so an incomplete group
/// goes away with the request instead of living for ever.
pub struct Family {
    /// The `id` of the `iterate` or `clone`.
    pub id: Option<Arc<str>>,
    /// How many branches there are.
    pub size: usize,
    /// Messages that were collected and did not go on. When no branch runs any more, they are lost.
    pub collected: Cell<usize>,
    /// Whether a group of them went on.
    pub completed: Cell<bool>,
    slots: RefCell<HashMap<Arc<str>, Rc<dyn Any>>>,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Family({:?}, {})", self.id, self.size)
    }
}

impl Family {
    /// A family of `size` branches.
    pub fn new(id: Option<Arc<str>>, size: usize) -> Rc<Family> {
        Rc::new(Family { id, size, collected: Cell::new(0), completed: Cell::new(false), slots: RefCell::default() })
    }

    /// The shared value under `key`, made by `make` on first use.
    pub fn slot<T: 'static>(&self, key: &str, make: impl FnOnce() -> T) -> Rc<T> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.entry(key.into()).or_insert_with(|| Rc::new(make()));
        slot.clone().downcast().unwrap_or_else(|_| unreachable!("a slot has one user, so one type"))
    }
}
