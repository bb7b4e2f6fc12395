//! Limits of events: each that is passed on to a subscriber counts in the plans of the application that subscribed.

use std::sync::Arc;
use std::time::Instant;

use penstock_catalog::{LimitUnit, PlanLevel};

use super::caller::{kind, write_key};
use super::window::Counter;
use super::{Counters, Plans, key_of};

/// Whose plans count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subscriber {
    /// The application's id.
    pub application: Arc<str>,
    /// The user.
    pub subject: Arc<str>,
    /// The application's plan.
    pub application_tier: Arc<str>,
    /// The subscription's plan.
    pub subscription_tier: Arc<str>,
}

/// Counts an event; whether the plans allow it. `api` is the API's `base_path:version`.
pub(crate) fn admits(counters: &Counters, plans: &Plans, api: &str, who: &Subscriber, bytes: u64) -> bool {
    let now = Instant::now();
    let now_ms = counters.millis(now);
    let mut taken: Vec<(Arc<Counter>, u64)> = Vec::new();
    let levels = [
        (PlanLevel::Subscription, &who.subscription_tier, api),
        (PlanLevel::Application, &who.application_tier, &*who.subject),
    ];
    for (level, tier, last) in levels {
        let Some(plan) = plans.get(level, tier) else { continue };
        let stops = plan.stop_on_quota || level != PlanLevel::Subscription;
        for (limit, part) in [(plan.limit, ""), (plan.burst, "burst")] {
            let Some(limit) = limit else { continue };
            // The key requests of the same application have: both are counted together.
            let mut key = String::new();
            write_key(&mut key, [kind(level), &who.application, last, part], None);
            let counter = counters.get(&key_of(&key, &limit), limit.window, now);
            let amount = if limit.unit == LimitUnit::Bytes { bytes } else { 1 };
            let granted = counter.add(amount, limit.amount, now_ms).granted;
            if !granted && stops {
                taken.iter().for_each(|(counter, amount)| counter.give_back(*amount, now_ms));
                return false;
            }
            if granted {
                taken.push((counter, amount));
            }
        }
    }
    true
}
