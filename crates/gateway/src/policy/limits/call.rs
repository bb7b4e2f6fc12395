//! What the limits keep of a request, and of a caller.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use penstock_catalog::{Api, Limit};

use super::frames::FrameLimits;
use super::window::Counter;

/// A counter and its limit.
pub(crate) type Metered = (Arc<Counter>, u64);

/// What the limits keep of a request.
#[derive(Default)]
pub(crate) struct LimitsCall {
    /// Limits in bytes that it was counted under.
    pub(super) metered: RefCell<Vec<Metered>>,
    /// The limits of the messages of a WebSocket connection, until it has begun.
    pub(crate) frames: RefCell<Option<FrameLimits>>,
}

/// A caller's counters, once they are known. A copy of a caller is made to change it: it has none.
#[derive(Default)]
pub(crate) struct CallerCounters(pub(super) RefCell<Option<Rc<Known>>>);

impl Clone for CallerCounters {
    fn clone(&self) -> CallerCounters {
        CallerCounters::default()
    }
}

/// A limit and a burst for either level.
pub(super) const LEVELS_MAX: usize = 4;

/// The counters of a caller at an API under some plans, stored contiguously for cache locality.
pub(super) struct Known {
    pub(super) api: Weak<Api>,
    /// The number of the plans.
    pub(super) plans: u64,
    pub(super) levels: [Option<Level>; LEVELS_MAX],
}

/// One limit of a caller.
pub(super) struct Level {
    pub(super) counter: Arc<Counter>,
    pub(super) limit: Limit,
    pub(super) code: u32,
    pub(super) stops: bool,
}
