//! The open loop's clock: hands out the moments at which requests are due, whether or not anyone is free.
//!
//! A slow server must not slow the clock down: a request that finds no free user waits, and its response time
//! counts from the moment it was due. That is what makes the percentiles true under overload.
use crate::error::Error;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

/// Requests of one load thread, due every `interval` from `start` on.
pub struct Pacer {
    start: Instant,
    interval: Duration,
    /// Slots whose moment has come.
    due: Cell<u64>,
    /// Slots handed to a user. Invariant: never more than `due`.
    given: Cell<u64>,
    waiting: RefCell<VecDeque<oneshot::Sender<Instant>>>,
}

impl Pacer {
    /// `interval` must not be zero.
    pub fn new(start: Instant, interval: Duration) -> Self {
        let interval = interval.max(Duration::from_nanos(1));
        Pacer { start, interval, due: Cell::new(0), given: Cell::new(0), waiting: RefCell::default() }
    }

    /// Waits until a request is due and claims it; returns its due time.
    /// `None` when the clock has stopped.
    pub async fn next(&self) -> Option<Instant> {
        if self.given.get() < self.due.get() {
            let slot = self.given.get();
            self.given.set(slot + 1);
            return Some(self.moment(slot));
        }
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().push_back(sender);
        receiver.await.ok()
    }

    /// Requests that came due and were never taken.
    pub fn backlog(&self) -> u64 {
        self.due.get() - self.given.get()
    }

    /// Runs the clock; requests come due before `end` only. Tokio's own timers tick in milliseconds, too coarse for a rate
    /// of thousands a second, so it sleeps on a timer of the kernel.
    pub async fn run(&self, end: Instant) -> Result<(), Error> {
        let timer = KernelTimer::new()?;
        loop {
            let next = self.moment(self.due.get());
            if next >= end {
                return std::future::pending().await;
            }
            let now = Instant::now();
            if now < next {
                timer.sleep(next - now).await?;
                continue;
            }
            self.due.set(self.due.get() + 1);
            self.hand_out();
        }
    }

    fn hand_out(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while self.given.get() < self.due.get() {
            let Some(user) = waiting.pop_front() else { return };
            // A user that went away leaves its place in the queue; the slot goes to the next one.
            if user.send(self.moment(self.given.get())).is_ok() {
                self.given.set(self.given.get() + 1);
            }
        }
    }

    fn moment(&self, slot: u64) -> Instant {
        let offset_ns = self.interval.as_nanos().saturating_mul(u128::from(slot));
        self.start + Duration::from_nanos(u64::try_from(offset_ns).unwrap_or(u64::MAX / 2))
    }
}

struct KernelTimer {
    fd: AsyncFd<OwnedFd>,
}

impl KernelTimer {
    fn new() -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::Environment(format!("cannot make a timer: {error}"));
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd =
            rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags).map_err(|error| failed(error.into()))?;
        #[expect(
            deprecated,
            reason = "the replacement is unsafe; an `OwnedFd` keeps its number for as long as it lives"
        )]
        let fd = AsyncFd::new(fd).map_err(failed)?;
        Ok(KernelTimer { fd })
    }

    async fn sleep(&self, duration: Duration) -> Result<(), Error> {
        let failed = |error: std::io::Error| Error::Environment(format!("a timer failed: {error}"));
        let duration = duration.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: duration.subsec_nanos().into(),
        };
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        rustix::time::timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec)
            .map_err(|error| failed(error.into()))?;
        let mut guard = self.fd.readable().await.map_err(failed)?;
        // The count of expiries is not read: setting the timer anew clears it, one call less for every request.
        guard.clear_ready();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_user_gets_the_moment_that_was_due() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let start = Instant::now();
        let pacer = Pacer::new(start, Duration::from_millis(2));
        runtime.block_on(async {
            let users = async {
                assert_eq!(pacer.next().await, Some(start));
                tokio::time::sleep(Duration::from_millis(20)).await;
                // Ten moments passed meanwhile; they are handed out at once, in order.
                for slot in 1..=5 {
                    assert_eq!(pacer.next().await, Some(start + Duration::from_millis(2 * slot)));
                }
                assert!(pacer.backlog() > 0);
            };
            tokio::pin!(users);
            let clock = pacer.run(start + Duration::from_secs(60));
            tokio::pin!(clock);
            std::future::poll_fn(|cx| {
                assert!(clock.as_mut().poll(cx).is_pending());
                users.as_mut().poll(cx)
            })
            .await;
        });
    }
}
