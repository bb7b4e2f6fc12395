//! Limits by name: those of the configuration, and those that every gateway of Choreo Connect brings.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use penstock_catalog::{Limit, LimitUnit, Plan, PlanLevel, QueryLimits};
use penstock_compile::suggestion;

use super::condition::Conditions;
use crate::Gateway;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The plans of Choreo Connect that need no definition: requests a minute.
const BUILT_IN: &[(PlanLevel, &str, Option<u64>)] = &[
    (PlanLevel::Api, "10KPerMin", Some(10_000)),
    (PlanLevel::Api, "20KPerMin", Some(20_000)),
    (PlanLevel::Api, "50KPerMin", Some(50_000)),
    (PlanLevel::Api, "Unlimited", None),
    (PlanLevel::Application, "10PerMin", Some(10)),
    (PlanLevel::Application, "20PerMin", Some(20)),
    (PlanLevel::Application, "50PerMin", Some(50)),
    (PlanLevel::Application, "Unlimited", None),
    (PlanLevel::Subscription, "Bronze", Some(1_000)),
    (PlanLevel::Subscription, "Silver", Some(2_000)),
    (PlanLevel::Subscription, "Gold", Some(5_000)),
    (PlanLevel::Subscription, "Unauthenticated", Some(500)),
    (PlanLevel::Subscription, "DefaultSubscriptionless", None),
    (PlanLevel::Subscription, "Unlimited", None),
];

/// The same for subscriptions to APIs of frames and events: how many a day.
const BUILT_IN_EVENTS: &[(&str, Option<u64>)] = &[
    ("AsyncBronze", Some(5_000)),
    ("AsyncSilver", Some(25_000)),
    ("AsyncGold", Some(50_000)),
    ("AsyncDefaultSubscriptionless", None),
    ("AsyncUnlimited", None),
];

/// A plan, ready to be counted.
#[derive(Debug)]
pub(super) struct Ready {
    pub limit: Option<Limit>,
    pub burst: Option<Limit>,
    pub stop_on_quota: bool,
    pub query: QueryLimits,
    pub subscribers: Option<u64>,
    pub groups: Vec<(Conditions, Option<Limit>)>,
}

/// All plans of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    /// No two values have the same, so that the counters kept of a caller are those of these plans.
    pub(super) number: u64,
    by_level: [HashMap<Arc<str>, Arc<Ready>>; 3],
}

impl Plans {
    /// The plans of a gateway's configuration, compiled once for all operations.
    pub(crate) fn of_gateway(gateway: &Gateway) -> Arc<Plans> {
        gateway.cached(|| Plans::new(&gateway.config.limits.plans))
    }

    /// The built-in plans and those of a configuration, which may redefine them.
    pub(crate) fn new(configured: &[Plan]) -> Plans {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut plans = Plans { number: NEXT.fetch_add(1, Ordering::Relaxed), ..Plans::default() };
        let mut built_in = |level, name: &str, amount: Option<u64>, window| {
            let limit = amount.map(|amount| Limit { amount, unit: LimitUnit::Requests, window });
            plans.add(&Plan { name: name.into(), level, limit, stop_on_quota: true, ..Plan::default() });
        };
        for (level, name, requests) in BUILT_IN {
            built_in(*level, name, *requests, MINUTE);
        }
        for (name, events) in BUILT_IN_EVENTS {
            built_in(PlanLevel::Subscription, name, *events, DAY);
        }
        for plan in configured {
            plans.add(plan);
        }
        plans
    }

    fn add(&mut self, plan: &Plan) {
        let groups = plan.groups.iter().map(|group| (Conditions::new(&group.conditions), group.limit));
        let &Plan { limit, burst, stop_on_quota, query, subscribers, .. } = plan;
        let ready = Ready { limit, burst, stop_on_quota, query, subscribers, groups: groups.collect() };
        self.by_level[plan.level as usize].insert(plan.name.clone(), Arc::new(ready));
    }

    /// The plan of a name, unless there is none or it limits nothing.
    pub(super) fn get(&self, level: PlanLevel, name: &str) -> Option<&Arc<Ready>> {
        let plan = self.by_level[level as usize].get(name)?;
        (plan.limit.is_some() || plan.burst.is_some() || !plan.groups.is_empty()).then_some(plan)
    }

    /// The GraphQL limits of a plan; none for an unknown plan.
    pub(crate) fn query_limits(&self, level: PlanLevel, name: &str) -> QueryLimits {
        self.by_level[level as usize].get(name).map(|plan| plan.query).unwrap_or_default()
    }

    /// How many subscriptions to topics the plan of a name lets an application have.
    pub(crate) fn subscribers(&self, name: &str) -> Option<u64> {
        self.by_level[PlanLevel::Subscription as usize].get(name)?.subscribers
    }

    /// Whether a name is known; else the known one that is most like it.
    pub(super) fn check(&self, level: PlanLevel, name: &str) -> Result<(), Option<String>> {
        let known = &self.by_level[level as usize];
        if known.contains_key(name) {
            return Ok(());
        }
        Err(suggestion(name, known.keys().map(|known| &**known)).map(|found| found.to_string()))
    }

    /// Whether any plan counts bytes, so that answers must be looked at.
    pub(super) fn any_bytes(&self) -> bool {
        let counts = |limit: &Option<Limit>| limit.is_some_and(|limit| limit.unit == LimitUnit::Bytes);
        let mut all = self.by_level.iter().flat_map(HashMap::values);
        all.any(|plan| counts(&plan.limit) || plan.groups.iter().any(|(_, limit)| counts(limit)))
    }
}
