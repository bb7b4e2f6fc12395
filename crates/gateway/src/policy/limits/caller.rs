//! The limits of who calls: by subscription and by application. Which counters they are is kept with what a core
//! remembers of the caller's token, so that the next request neither looks a plan up nor puts a key together.

use std::rc::Rc;
use std::sync::Arc;

use penstock_catalog::PlanLevel;
use penstock_engine::Exchange;
use penstock_message::push_decimal;

use super::answer::Refusal;
use super::asking::Asking;
use super::call::{CallerCounters, Known, LEVELS_MAX, Level};
use super::counters::SEPARATOR;
use super::{KEY, Limits};
use crate::CallContext;
use crate::caller::Caller;
use crate::error::codes;

/// What one request took of its caller's counters.
pub(super) struct OfCaller {
    known: Rc<Known>,
    /// A bit for each level.
    taken: u8,
}

impl OfCaller {
    pub(super) fn give_back(&self, now_ms: u64) {
        for (index, level) in self.known.levels.iter().flatten().enumerate() {
            if self.taken & 1 << index != 0 {
                level.counter.give_back(1, now_ms);
            }
        }
    }
}

impl CallerCounters {
    fn at(&self, limits: &Limits) -> Option<Rc<Known>> {
        let known = self.0.borrow();
        let is_of = |known: &&Rc<Known>| {
            known.api.as_ptr() == Arc::as_ptr(&limits.site.api) && known.plans == limits.plans.number
        };
        known.as_ref().filter(is_of).cloned()
    }
}

impl Limits {
    /// Checks the limits of the caller.
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
        let mut taken = 0;
        for (index, level) in known.levels.iter().flatten().enumerate() {
            if asking.count(&level.counter, &level.limit, level.code, level.stops)? {
                taken |= 1 << index;
                asking.took(OfCaller { known: known.clone(), taken });
            }
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
        let mut levels = [const { None }; LEVELS_MAX];
        let mut count = 0;
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
                levels[count] = Some(Level { counter: counter.0.clone(), limit, code, stops });
                count += 1;
            }
        }
        let known = Rc::new(Known { api: Arc::downgrade(&self.site.api), plans: self.plans.number, levels });
        // A caller is dropped with its last request.
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
