//! The memory of one request.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Stop, memory};

/// What the process may use before large messages are refused.
static PROCESS_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Sets what the process may use. Work that needs more ends with [`Stop::Process`].
pub fn set_process_limit(bytes: usize) {
    PROCESS_LIMIT.store(bytes, Ordering::Relaxed);
}

/// The account that is entered on this thread.
#[derive(Clone, Copy)]
struct Entered {
    /// The thread's counter when the account was at zero.
    zero: isize,
    limit_bytes: usize,
}

thread_local! {
    static ENTERED: Cell<Entered> = const { Cell::new(Entered { zero: 0, limit_bytes: usize::MAX }) };
}

/// What one request may hold, and what it holds between two polls.
#[derive(Debug)]
pub struct Account {
    held_bytes: usize,
    limit_bytes: usize,
}

impl Account {
    /// An account that holds nothing.
    pub fn new(limit_bytes: usize) -> Account {
        Account { held_bytes: 0, limit_bytes }
    }

    /// Books what `poll` allocates and frees to this account.
    #[inline]
    pub fn enter<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        let zero = memory::of_thread().wrapping_sub(self.held_bytes as isize);
        let outer = Outer { account: self, zero, outer: ENTERED.get() };
        ENTERED.set(Entered { zero, limit_bytes: outer.account.limit_bytes });
        let output = poll();
        drop(outer);
        output
    }
}

/// Puts the outer account back, also when the poll panics.
struct Outer<'a> {
    account: &'a mut Account,
    zero: isize,
    outer: Entered,
}

impl Drop for Outer<'_> {
    #[inline]
    fn drop(&mut self) {
        // A request may free what was allocated before it began; it gets no credit for that.
        self.account.held_bytes = memory::of_thread().wrapping_sub(self.zero).max(0) as usize;
        ENTERED.set(self.outer);
    }
}

/// What the account that is entered holds; nothing where memory is not counted.
#[inline]
pub fn held() -> usize {
    memory::of_thread().wrapping_sub(ENTERED.get().zero).max(0) as usize
}

/// Which limit is exceeded once `bytes` more are in use.
pub(crate) fn exceeded_by(bytes: usize) -> Option<Stop> {
    let limit_bytes = ENTERED.get().limit_bytes;
    if held().saturating_add(bytes) > limit_bytes {
        return Some(Stop::Message { limit_bytes });
    }
    let limit_bytes = PROCESS_LIMIT.load(Ordering::Relaxed);
    (memory::of_process().saturating_add(bytes) > limit_bytes).then_some(Stop::Process { limit_bytes })
}
