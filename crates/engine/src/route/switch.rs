//! What an operator turns on and off while requests run.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that the management thread sets and cores read. Requests that began before a change are not affected by it.
#[derive(Debug, Default)]
pub struct Switch(AtomicBool);

impl Switch {
    /// A switch in a position.
    pub fn new(is_on: bool) -> Switch {
        Switch(AtomicBool::new(is_on))
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Turns it on or off.
    pub fn set(&self, is_on: bool) {
        self.0.store(is_on, Ordering::Relaxed);
    }
}
