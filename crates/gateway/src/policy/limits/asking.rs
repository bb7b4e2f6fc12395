//! One request's way through its limits: each is checked in order, and a rejection undoes those before it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use penstock_catalog::{Limit, LimitUnit};

use super::answer::{LimitState, Refusal};
use super::caller::OfCaller;
use super::counters::{AtHand, Counters};
use super::frames::FrameLimit;
use super::window::{Counter, Taken};
use super::{Fixed, finish_key};

/// More counters than most requests have: of the API, the subscription, the application and the backend.
const FEW: usize = 4;

/// A counter, held as cheaply as it can be.
pub(super) enum Held<'a> {
    Fixed(&'a Arc<Counter>),
    AtHand(Rc<AtHand>),
}

impl Held<'_> {
    fn counter(&self) -> &Arc<Counter> {
        match self {
            Held::Fixed(counter) => counter,
            Held::AtHand(at_hand) => &at_hand.0,
        }
    }
}

/// What one request took.
#[derive(Default)]
pub(super) struct Taking<'a> {
    count: usize,
    first: [Option<Held<'a>>; FEW],
    more: Vec<Held<'a>>,
    of_caller: Option<OfCaller>,
}

impl<'a> Taking<'a> {
    fn push(&mut self, held: Held<'a>) {
        match self.first.get_mut(self.count) {
            Some(place) => *place = Some(held),
            None => self.more.push(held),
        }
        self.count += 1;
    }

    fn give_back(&self, now_ms: u64) {
        self.first.iter().flatten().chain(&self.more).for_each(|held| held.counter().give_back(1, now_ms));
        self.of_caller.iter().for_each(|taken| taken.give_back(now_ms));
    }
}

/// One request's way through its limits.
pub(super) struct Asking<'a> {
    counters: &'a Counters,
    now: Instant,
    now_ms: u64,
    /// Bytes of the request's body, if a limit counts them.
    bytes: u64,
    /// What was taken, to be given back when a later limit refuses.
    taken: Taking<'a>,
    /// The limit that is nearest to its end.
    pub(super) tightest: Option<LimitState>,
    /// Counters of bytes, for the answer's.
    pub(super) metered: Vec<(Arc<Counter>, u64)>,
    /// For a WebSocket connection and a stream of events: what it carries is counted later, it is not.
    pub(super) frames: Option<Vec<FrameLimit>>,
}

impl<'a> Asking<'a> {
    /// Nothing is counted yet. Frames of a WebSocket connection are counted once it is open.
    pub(super) fn new(counters: &'a Counters, now: Instant, bytes: u64, of_frames: bool) -> Asking<'a> {
        Asking {
            counters,
            now,
            now_ms: counters.millis(now),
            bytes,
            taken: Taking::default(),
            tightest: None,
            metered: Vec::new(),
            frames: of_frames.then(Vec::new),
        }
    }

    /// How many limits it was counted under.
    pub(super) fn counted(&self) -> usize {
        self.taken.count + self.metered.len()
    }

    pub(super) fn fixed(&mut self, fixed: &'a Fixed, code: u32) -> Result<(), Refusal> {
        self.take(Held::Fixed(&fixed.counter), &fixed.limit, code, true)
    }

    /// The counter of a key that is not finished.
    pub(super) fn at_hand(&self, key: &mut String, limit: &Limit) -> Rc<AtHand> {
        finish_key(key, limit);
        self.counters.at_hand(key, limit.window, self.now)
    }

    pub(super) fn take(&mut self, held: Held<'a>, limit: &Limit, code: u32, stops: bool) -> Result<(), Refusal> {
        if self.count(held.counter(), limit, code, stops)? {
            self.taken.push(held);
        }
        Ok(())
    }

    /// Notes what was taken of the caller's counters so far.
    pub(super) fn took(&mut self, of_caller: OfCaller) {
        self.taken.count += 1;
        self.taken.of_caller = Some(of_caller);
    }

    /// Counts in one counter; whether it was within the limit.
    pub(super) fn count(
        &mut self,
        counter: &Arc<Counter>,
        limit: &Limit,
        code: u32,
        stops: bool,
    ) -> Result<bool, Refusal> {
        if let Some(frames) = &mut self.frames {
            frames.push(FrameLimit { counter: counter.clone(), limit: *limit, stops, code });
            return Ok(false);
        }
        let taken = match limit.unit {
            LimitUnit::Requests => counter.take(limit.amount, self.now_ms),
            LimitUnit::Bytes => counter.add(self.bytes, limit.amount, self.now_ms),
        };
        let Taken { granted, left, reset_ms } = taken;
        let state = LimitState { limit: limit.amount, left, reset_ms };
        if !granted {
            if !stops {
                return Ok(false);
            }
            self.taken.give_back(self.now_ms);
            self.metered.iter().for_each(|(counter, _)| counter.give_back(self.bytes, self.now_ms));
            return Err(Refusal { code, state });
        }
        match limit.unit {
            LimitUnit::Requests => {
                if self.tightest.as_ref().is_none_or(|tightest| state.left < tightest.left) {
                    self.tightest = Some(state);
                }
            }
            LimitUnit::Bytes => self.metered.push((counter.clone(), limit.amount)),
        }
        Ok(limit.unit == LimitUnit::Requests)
    }
}
