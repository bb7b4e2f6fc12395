//! Bytes in use, by thread and for the process.
//!
//! A thread counts for itself and adds to the process's counter once enough has changed, so that counting is an addition to
//! a variable of the thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// What a thread's counter may be ahead of the process's. Times the number of threads, it is what the process may be off by.
const PUBLISHED_AFTER_BYTES: usize = 256 << 10;

static PROCESS: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    static UNPUBLISHED: Cell<isize> = const { Cell::new(0) };
    static PUBLISHED: Cell<isize> = const { Cell::new(0) };
}

/// Counts a block the allocator handed out.
#[inline]
pub fn allocated(bytes: usize) {
    change(bytes as isize);
}

/// Counts a block the allocator took back.
#[inline]
pub fn freed(bytes: usize) {
    change((bytes as isize).wrapping_neg());
}

#[inline]
fn change(bytes: isize) {
    UNPUBLISHED.with(|counter| {
        let sum = counter.get().wrapping_add(bytes);
        counter.set(sum);
        if sum.unsigned_abs() > PUBLISHED_AFTER_BYTES {
            publish(counter);
        }
    });
}

#[cold]
fn publish(counter: &Cell<isize>) {
    let sum = counter.replace(0);
    PUBLISHED.with(|published| published.set(published.get().wrapping_add(sum)));
    PROCESS.fetch_add(sum, Ordering::Relaxed);
}

/// What this thread allocated and did not free. Blocks that another thread freed count here and are negative there, so only
/// differences within one thread mean something.
pub(crate) fn of_thread() -> isize {
    PUBLISHED.get().wrapping_add(UNPUBLISHED.get())
}

/// What the process has in use.
pub fn of_process() -> usize {
    PROCESS.load(Ordering::Relaxed).max(0) as usize
}
