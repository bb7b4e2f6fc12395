//! What all connections of one core share: a coarse clock with deadlines, read buffers, a scratch buffer, counters.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;

use super::counters::Counters;
use super::date::{DATE_LENGTH, format_date, unix_seconds};
use super::http1::Field;

/// How often deadlines are looked at. They are met up to two ticks late, never early.
const TICK: Duration = Duration::from_millis(50);

/// The size of a read buffer. A message of up to about this size arrives in one read; two of them stay in the
/// second-level cache together with what the kernel touches.
pub(crate) const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Read buffers kept for the next connection that becomes readable.
const SPARE_BUFFERS_MAX: usize = 16;

/// Blocks and vectors of heads kept for the next requests: as many as are under way on a busy core.
const SPARE_HEADS_MAX: usize = 128;

/// A larger block is not kept. Most heads, with a short body, have less than a quarter of it.
const SPARE_BLOCK_BYTES_MAX: usize = 8 * 1024;

/// A vector of more fields is not kept.
const SPARE_FIELDS_ROOM_MAX: usize = 64;

/// A moment that never comes.
const NEVER: u64 = u64::MAX;

/// The state of a core. One per thread; clones of the `Rc` go to its listeners and its sender.
pub struct PerCore {
    start: Instant,
    now_ticks: Cell<u64>,
    date: Cell<[u8; DATE_LENGTH]>,
    date_seconds: Cell<u64>,
    timers: RefCell<Vec<Weak<Timer>>>,
    spare: RefCell<Vec<BytesMut>>,
    scratch: RefCell<Vec<u8>>,
    fields: RefCell<Vec<Vec<Field>>>,
    blocks: RefCell<Vec<Vec<u8>>>,
    /// The counters of this core.
    pub counters: Arc<Counters>,
}

impl PerCore {
    /// Starts the clock of this core. Call it inside a `LocalSet` or a local runtime.
    pub fn start() -> Rc<PerCore> {
        let seconds = unix_seconds();
        let core = Rc::new(PerCore {
            start: Instant::now(),
            now_ticks: Cell::new(0),
            date: Cell::new(format_date(seconds)),
            date_seconds: Cell::new(seconds),
            timers: RefCell::default(),
            spare: RefCell::default(),
            scratch: RefCell::new(Vec::with_capacity(4096)),
            fields: RefCell::default(),
            blocks: RefCell::default(),
            counters: Arc::default(),
        });
        tokio::task::spawn_local(run_clock(Rc::downgrade(&core)));
        core
    }

    /// A timer that is not armed.
    pub(crate) fn timer(&self) -> Rc<Timer> {
        let timer = Rc::new(Timer { due_ticks: Cell::new(NEVER), fired: Cell::new(false), waker: RefCell::new(None) });
        self.timers.borrow_mut().push(Rc::downgrade(&timer));
        timer
    }

    /// The clock in ticks, as of the last sweep.
    pub(crate) fn now_ticks(&self) -> u64 {
        self.now_ticks.get()
    }

    /// How long ago a reading of the clock was.
    pub(crate) fn since(&self, ticks: u64) -> Duration {
        TICK * u32::try_from(self.now_ticks() - ticks).unwrap_or(u32::MAX)
    }

    /// Wakes every task that waits with a timer, so that it looks at what has changed.
    pub(crate) fn wake_all(&self) {
        let timers: Vec<_> = self.timers.borrow().iter().filter_map(Weak::upgrade).collect();
        for timer in timers {
            timer.wake();
        }
    }

    /// The current `Date`.
    pub(crate) fn date(&self) -> [u8; DATE_LENGTH] {
        self.date.get()
    }

    /// An empty read buffer.
    pub(crate) fn take_buffer(&self) -> BytesMut {
        self.spare.borrow_mut().pop().unwrap_or_else(|| BytesMut::with_capacity(READ_BUFFER_BYTES))
    }

    /// Takes back a read buffer. Small ones and surplus are dropped.
    pub(crate) fn give_buffer(&self, mut buffer: BytesMut) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            // Moves back to the start of its block when no slice of it is alive.
            if buffer.try_reclaim(READ_BUFFER_BYTES) {
                spare.push(buffer);
            }
        }
    }

    /// The scratch buffer in which a head is put together; empty. Give it back with [`PerCore::give_scratch`].
    pub(crate) fn take_scratch(&self) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut *self.scratch.borrow_mut());
        scratch.clear();
        scratch
    }

    /// See [`PerCore::take_scratch`].
    pub(crate) fn give_scratch(&self, scratch: Vec<u8>) {
        *self.scratch.borrow_mut() = scratch;
    }

    /// An empty vector for the fields of a head.
    pub(crate) fn take_fields(&self) -> Vec<Field> {
        self.fields.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a vector of fields.
    pub(crate) fn give_fields(&self, mut fields: Vec<Field>) {
        let mut spare = self.fields.borrow_mut();
        if spare.len() < SPARE_HEADS_MAX && fields.capacity() <= SPARE_FIELDS_ROOM_MAX {
            fields.clear();
            spare.push(fields);
        }
    }

    /// An empty block for a copy of a head.
    pub(crate) fn take_block(&self) -> Vec<u8> {
        self.blocks.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes back a block.
    pub(crate) fn give_block(&self, mut block: Vec<u8>) {
        let mut spare = self.blocks.borrow_mut();
        if spare.len() < SPARE_HEADS_MAX && block.capacity() <= SPARE_BLOCK_BYTES_MAX {
            block.clear();
            spare.push(block);
        }
    }

    fn tick(&self) {
        let now = (self.start.elapsed().as_millis() / TICK.as_millis()) as u64;
        self.now_ticks.set(now);
        let seconds = unix_seconds();
        if self.date_seconds.replace(seconds) != seconds {
            self.date.set(format_date(seconds));
        }
        let mut due = Vec::new();
        self.timers.borrow_mut().retain(|weak| match weak.upgrade() {
            None => false,
            Some(timer) => {
                if timer.due_ticks.get() <= now {
                    due.push(timer);
                }
                true
            }
        });
        for timer in due {
            timer.due_ticks.set(NEVER);
            timer.fired.set(true);
            timer.wake();
        }
    }
}

async fn run_clock(core: Weak<PerCore>) {
    loop {
        tokio::time::sleep(TICK).await;
        match core.upgrade() {
            Some(core) => core.tick(),
            None => return,
        }
    }
}

/// A deadline of one connection.
pub(crate) struct Timer {
    due_ticks: Cell<u64>,
    fired: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Timer {
    /// Fires after `wait`, counted from the last sweep.
    pub(crate) fn arm(&self, core: &PerCore, wait: Duration) {
        self.fired.set(false);
        // One tick because the clock may be one behind, one for the fraction.
        let ticks = (wait.as_millis() / TICK.as_millis()) as u64 + 2;
        self.due_ticks.set(core.now_ticks() + ticks);
    }

    /// Never fires.
    pub(crate) fn disarm(&self) {
        self.fired.set(false);
        self.due_ticks.set(NEVER);
    }

    /// Whether it has fired; else the task of `cx` is woken when it does.
    pub(crate) fn poll_fired(&self, cx: &Context<'_>) -> bool {
        if self.fired.get() {
            return true;
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        false
    }

    /// Whether it runs or has fired.
    pub(crate) fn is_armed(&self) -> bool {
        self.fired.get() || self.due_ticks.get() != NEVER
    }

    /// Makes the task that waits look again.
    pub(crate) fn wake(&self) {
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
