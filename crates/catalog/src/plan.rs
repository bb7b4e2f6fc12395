//! Limits.

use std::sync::Arc;
use std::time::Duration;

use crate::ConditionalGroup;

/// A named limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Its name: `Gold`, `10KPerMin`.
    pub name: Arc<str>,
    /// What it is counted for.
    pub level: PlanLevel,
    /// How much in what time; absent means no limit.
    pub limit: Option<Limit>,
    /// How much in a short time besides (`rateLimitCount`).
    pub burst: Option<Limit>,
    /// Whether requests over the limit are refused rather than let through and counted.
    pub stop_on_quota: bool,
    /// What GraphQL queries may ask.
    pub query: QueryLimits,
    /// How many subscriptions to topics of one hub an application may have (`subscriberCount`).
    pub subscribers: Option<u64>,
    /// Other limits for some requests: the first group that fits counts instead of `limit`.
    pub groups: Vec<ConditionalGroup>,
}

/// How much a GraphQL query may ask (`graphQLMaxDepth`, `graphQLMaxComplexity`); absent means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryLimits {
    /// Fields inside fields.
    pub depth: Option<u64>,
    /// What its fields count together.
    pub complexity: Option<u64>,
}

impl QueryLimits {
    /// What both allow.
    pub fn and(self, other: QueryLimits) -> QueryLimits {
        let least = |left: Option<u64>, right: Option<u64>| left.into_iter().chain(right).min();
        let (depth, complexity) = (least(self.depth, other.depth), least(self.complexity, other.complexity));
        QueryLimits { depth, complexity }
    }
}

/// What a plan is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PlanLevel {
    /// An API or an operation.
    #[default]
    Api,
    /// An application's use of one API.
    Subscription,
    /// All an application does, by user.
    Application,
}

/// How much in what time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// How much.
    pub amount: u64,
    /// Of what.
    pub unit: LimitUnit,
    /// In what time.
    pub window: Duration,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitUnit {
    /// Requests.
    Requests,
    /// Bytes of requests and answers.
    Bytes,
}
