//! Work that pauses: a function on a stack of its own.
#![expect(
    unsafe_code,
    reason = "work borrows from the future that holds it, which the safe constructor cannot express"
)]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::Stop;
use crate::work::{RUNNING, Running, caught};

/// How long work runs before others on its core have their turn. A hundred times what a usual message takes, a fiftieth of
/// a delay that a client notices.
pub const SLICE: Duration = Duration::from_millis(1);

/// The stack of a thread, which the depth limits of the engines are made for.
const STACK_BYTES: usize = 2 << 20;

/// Stacks a thread keeps for later; each has the pages that its deepest work touched.
const STACKS_KEPT: usize = 8;

thread_local! {
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

type Outcome<T> = Result<Result<T, Stop>, Box<dyn std::any::Any + Send>>;

/// Work that runs a slice at a time. Dropping it before its end makes it unwind at its next step.
pub struct Slices<'w, T> {
    /// Invariant: borrows of `'w` in it are only used while it runs, and it only runs in `resume` and `drop`.
    coroutine: Option<Coroutine<(), (), Outcome<T>, DefaultStack>>,
    state: Running,
    spent: Duration,
    borrows: PhantomData<&'w mut ()>,
}

impl<'w, T> Slices<'w, T> {
    /// Prepares work; nothing runs yet. `Err` gives the work back when there is no room for a stack.
    pub fn new<F: FnOnce() -> T + 'w>(work: F) -> Result<Slices<'w, T>, F> {
        let kept = STACKS.with_borrow_mut(Vec::pop);
        let stack = match kept.map_or_else(|| DefaultStack::new(STACK_BYTES), Ok) {
            Ok(stack) => stack,
            Err(_) => return Err(work),
        };
        let body = move |yielder: &Yielder<(), ()>, ()| {
            let running = RUNNING.get();
            RUNNING.set(Running { yielder, ..running });
            caught(work)
        };
        // SAFETY: the coroutine may outlive neither what `work` borrows nor `T`. It runs only inside `resume`, which takes
        // `&mut Slices<'w, T>`, and inside `drop`, which runs within `'w` because `T` and the closure are dropped by it. A
        // leaked `Slices` never runs again, and its stack is leaked with it, so nothing there is used after `'w`.
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, body) };
        Ok(Slices {
            coroutine: Some(coroutine),
            state: Running { stoppable: true, ..Running::NOTHING },
            spent: Duration::ZERO,
            borrows: PhantomData,
        })
    }

    /// Runs the next slice; `None` when the work is not done. Panics of the work go on here.
    pub fn resume(&mut self) -> Option<Result<T, Stop>> {
        let coroutine = self.coroutine.as_mut()?;
        let now = Instant::now();
        self.state.slice_end = Some(now + SLICE);
        self.state.began = now.checked_sub(self.spent);
        let outer = RUNNING.replace(self.state);
        let result = coroutine.resume(());
        self.state.yielder = RUNNING.replace(outer).yielder;
        self.spent += now.elapsed();
        match result {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(outcome) => {
                keep(self.coroutine.take());
                Some(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
            }
        }
    }
}

/// Keeps the stack of finished work for the next.
fn keep<T>(coroutine: Option<Coroutine<(), (), Outcome<T>, DefaultStack>>) {
    let Some(coroutine) = coroutine else { return };
    let stack = coroutine.into_stack();
    STACKS.with_borrow_mut(|stacks| {
        if stacks.len() < STACKS_KEPT {
            stacks.push(stack);
        }
    });
}

impl<T> Drop for Slices<'_, T> {
    fn drop(&mut self) {
        let Some(coroutine) = &mut self.coroutine else { return };
        if !coroutine.started() {
            return;
        }
        // Frames of C may lie on the stack (scripts), so the work has to end by itself rather than be unwound from here.
        let outer = RUNNING.replace(Running { cancelled: true, slice_end: None, ..self.state });
        while let CoroutineResult::Yield(()) = coroutine.resume(()) {}
        RUNNING.set(outer);
        keep(self.coroutine.take());
    }
}

/// Leaves the stack of the running work until its next slice.
pub(crate) fn suspend(yielder: *const Yielder<(), ()>) {
    if !yielder.is_null() {
        // SAFETY: a running work's yielder lies on its stack, at its bottom, and lives until it returns.
        unsafe { (*yielder).suspend(()) };
    }
}
