//! The checks that work makes of itself, and what ends it.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::null;
use std::time::{Duration, Instant};

use corosensei::Yielder;

use crate::account::exceeded_by;

/// Steps between two looks at the clock and the memory: a step is a node, a token or an item, so this is well below a tenth
/// of a millisecond, and the look (some 40 ns) is lost in it.
const STEPS_PER_CHECK: u32 = 256;

/// Smaller allocations are noticed by the next check; that many of them fit in between that asking each time costs more.
const UNCHECKED_BYTES: usize = 16 << 10;

/// Why work was ended before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The message would hold more memory than it may.
    Message {
        /// The limit.
        limit_bytes: usize,
    },
    /// The process would use more memory than it may.
    Process {
        /// The limit.
        limit_bytes: usize,
    },
    /// The result is no longer wanted.
    Cancelled,
}

impl fmt::Display for Stop {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Message { limit_bytes } => write!(
                out,
                "the message needs more memory than the {} MiB that one message may use (`limits.memory`)",
                limit_bytes >> 20
            ),
            Stop::Process { limit_bytes } => write!(
                out,
                "all messages together need more memory than the {} MiB that they may use (`limits.total_memory`)",
                limit_bytes >> 20
            ),
            Stop::Cancelled => write!(out, "the work was cancelled"),
        }
    }
}

impl std::error::Error for Stop {}

/// The work that runs on a thread.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    /// Whether a [`Stop`] is caught.
    pub(crate) stoppable: bool,
    pub(crate) cancelled: bool,
    /// How to leave its stack; null for work that runs on the thread's own.
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) slice_end: Option<Instant>,
    /// When it began, had it never paused.
    pub(crate) began: Option<Instant>,
}

impl Running {
    pub(crate) const NOTHING: Running =
        Running { stoppable: false, cancelled: false, yielder: null(), slice_end: None, began: None };
}

thread_local! {
    pub(crate) static RUNNING: Cell<Running> = const { Cell::new(Running::NOTHING) };
    static STEPS: Cell<u32> = const { Cell::new(STEPS_PER_CHECK) };
}

/// Counts a piece of work whose cost does not depend on the message: a node, a token, an item. Now and then it checks the
/// limits, and pauses.
#[inline]
pub fn step() {
    STEPS.with(|steps| {
        let left = steps.get();
        if left == 0 {
            check();
        } else {
            steps.set(left - 1);
        }
    });
}

/// Counts work that takes as long as `count` steps.
#[inline]
pub fn steps(count: usize) {
    STEPS.with(|steps| {
        let left = steps.get();
        match u32::try_from(count) {
            Ok(count) if count <= left => steps.set(left - count),
            _ => check(),
        }
    });
}

/// Checks the limits and pauses when a slice is over, independently of the count. For loops that do much in each round.
#[cold]
pub fn pause() {
    check();
}

#[cold]
fn check() {
    STEPS.set(STEPS_PER_CHECK);
    let running = RUNNING.get();
    if !running.stoppable {
        return;
    }
    if running.cancelled {
        stop(Stop::Cancelled);
    }
    if let Some(exceeded) = exceeded_by(0) {
        stop(exceeded);
    }
    if running.slice_end.is_some_and(|end| Instant::now() >= end) {
        crate::slices::suspend(running.yielder);
        if RUNNING.get().cancelled {
            stop(Stop::Cancelled);
        }
    }
}

/// To be called before `bytes` are allocated when the number depends on a message.
#[inline]
pub fn reserve(bytes: usize) {
    if bytes >= UNCHECKED_BYTES {
        check_reserve(bytes);
    }
}

/// Makes room for more elements as [`Vec::reserve`] does, and reserves the memory first.
#[inline]
pub fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        let room = grown(list.len(), list.capacity(), more);
        reserve((room - list.capacity()).saturating_mul(size_of::<T>()));
        list.reserve(room - list.len());
    }
}

/// The same for text.
#[inline]
pub fn make_room_for_text(text: &mut String, more: usize) {
    if text.capacity() - text.len() < more {
        let room = grown(text.len(), text.capacity(), more);
        reserve(room - text.capacity());
        text.reserve(room - text.len());
    }
}

/// Appends text after reserving the memory.
#[inline]
pub fn append(text: &mut String, more: &str) {
    make_room_for_text(text, more.len());
    text.push_str(more);
}

/// Twice the capacity, so that growing by small pieces stays cheap; half as much again for what is large, so that a result
/// near a limit is not refused for room that it would not fill.
#[cold]
fn grown(length: usize, capacity: usize, more: usize) -> usize {
    const LARGE: usize = 1 << 20;
    let wanted = if capacity < LARGE { capacity * 2 } else { capacity / 2 * 3 };
    wanted.max(length.saturating_add(more))
}

#[cold]
fn check_reserve(bytes: usize) {
    if RUNNING.get().stoppable
        && let Some(exceeded) = exceeded_by(bytes)
    {
        stop(exceeded);
    }
    step();
}

/// How long the work that runs has run, without its pauses; `None` when it does not pause.
pub fn spent() -> Option<Duration> {
    RUNNING.get().began.map(|began| began.elapsed())
}

/// Unwinds without the panic hook: it is no mistake of the program.
fn stop(why: Stop) -> ! {
    resume_unwind(Box::new(why))
}

/// Runs work to its end on the stack of the thread, without pauses.
pub fn run<T>(work: impl FnOnce() -> T) -> Result<T, Stop> {
    let outer = RUNNING.replace(Running { stoppable: true, ..Running::NOTHING });
    let outcome = caught(work);
    RUNNING.set(outer);
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

type Panic = Box<dyn Any + Send>;

/// The outer `Err` is a panic that is none of ours.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<Result<T, Stop>, Panic> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(output) => Ok(Ok(output)),
        Err(panic) => match panic.downcast::<Stop>() {
            Ok(stop) => Ok(Err(*stop)),
            Err(panic) => Err(panic),
        },
    }
}
