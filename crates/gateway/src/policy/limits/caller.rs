//! The limits of who calls: by subscription and by application. Which counters they are is kept with what a core
//! remembers of the caller's token, so that the next request neither looks a plan up nor puts a key together.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use penstock_catalog::{Api, Limit, PlanLevel};
use penstock_engine::Exchange;
use penstock_message::push_decimal;

use super::asking::{Asking, Held, Refusal};
use super::counters::{AtHand, SEPARATOR};
use super::{KEY, Limits, Plans};
use crate::context::{CallContext, Caller};
use crate::error::codes;

/// A caller's counters, once they are known. A copy of a caller is made to change it: it has none.
#[derive(Default)]
pub(crate) struct CallerCounters(RefCell<Option<Rc<Known>>>);

/// The counters of a caller at an API under some plans.
struct Known {
    api: Weak<Api>,
    plans: Arc<Plans>,
    levels: Vec<Level>,
}

/// One limit of a caller.
struct Level {
    counter: Rc<AtHand>,
    limit: Limit,
    code: u32,
    stops: bool,
}

impl Clone for CallerCounters {
    fn clone(&self) -> CallerCounters {
        CallerCounters::default()
    }
}

impl CallerCounters {
    fn at(&self, limits: &Limits) -> Option<Rc<Known>> {
        let known = self.0.borrow();
        let is_of = |known: &&Rc<Known>| {
            known.api.as_ptr() == Arc::as_ptr(&limits.site.api) && Arc::ptr_eq(&known.plans, &limits.plans)
        };
        known.as_ref().filter(is_of).cloned()
    }
}

impl Limits {
    /// Asks the limits of the caller.
    pub(super) fn ask_for_caller(
        &self,
        exchange: &Exchange,
        context: &CallContext,
        asking: &mut Asking<'_>,
    ) -> Result<(), Refusal> {
        let caller = context.caller.borrow();
        let known = match caller.counters.at(self) {
            Some(known) => known,
            None => self.counters_of(&caller, exchange, context, asking),
        };
        for level in &known.levels {
            asking.take(Held::AtHand(level.counter.clone()), &level.limit, level.code, level.stops)?;
        }
        Ok(())
    }

    /// Finds a caller's counters, and keeps them when they are the same for its next request.
    fn counters_of(
        &self,
        caller: &Rc<Caller>,
        exchange: &Exchange,
        context: &CallContext,
        asking: &Asking<'_>,
    ) -> Rc<Known> {
        let application = if caller.application_id.is_empty() { &caller.consumer_key } else { &caller.application_id };
        let tiers = [
            (PlanLevel::Subscription, &caller.subscription_tier, &*self.api_key, codes::SUBSCRIPTION_LIMIT),
            (PlanLevel::Application, &caller.application_tier, &*caller.subject, codes::APPLICATION_LIMIT),
        ];
        let mut by_request = false;
        let mut levels = Vec::new();
        for (level, tier, last, code) in tiers.into_iter().filter(|(_, tier, ..)| !tier.is_empty()) {
            let Some(plan) = self.plans.get(level, tier) else { continue };
            by_request |= !plan.groups.is_empty();
            let group = plan.groups.iter().position(|(conditions, _)| conditions.hold(exchange, context));
            let limit = group.map_or(plan.limit, |index| plan.groups[index].1);
            let stops = plan.stop_on_quota || level != PlanLevel::Subscription;
            for (limit, code, part) in [(limit, code, ""), (plan.burst, codes::BURST_LIMIT, "burst")] {
                let Some(limit) = limit else { continue };
                let counter = KEY.with_borrow_mut(|key| {
                    write_key(key, [kind(level), application, last, part], group);
                    asking.at_hand(key, &limit)
                });
                levels.push(Level { counter, limit, code, stops });
            }
        }
        let known = Rc::new(Known { api: Arc::downgrade(&self.site.api), plans: self.plans.clone(), levels });
        // A caller that nobody else holds is forgotten with its request.
        if !by_request && Rc::strong_count(caller) > 1 {
            *caller.counters.0.borrow_mut() = Some(known.clone());
        }
        known
    }
}

/// What counters of a level are called by.
pub(super) fn kind(level: PlanLevel) -> &'static str {
    match level {
        PlanLevel::Application => "application",
        _ => "subscription",
    }
}

/// Puts a key together, but for its end.
pub(super) fn write_key(key: &mut String, parts: [&str; 4], group: Option<usize>) {
    key.clear();
    for part in parts {
        key.push_str(part);
        key.push(SEPARATOR);
    }
    if let Some(group) = group {
        key.push_str("condition_");
        push_decimal(key, group as u64);
    }
}
