//! `basic-ratelimit` and `advanced-ratelimit`: quotas with keys and costs of their own, counted in this process.
//!
//! `limiter.rs` counts, `key.rs` says for whom, `cost.rs` how much, `tell.rs` the headers of responses.

mod cost;
mod headers;
mod key;
mod limiter;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

use self::cost::Cost;
use self::headers::QuotaHeaders;
use self::key::Key;
pub(crate) use self::limiter::Buckets;
use self::limiter::{Limit, Verdict};
use super::params::Params;
use super::{Algorithm, answer};
use crate::CallContext;
use crate::policy::chain::config::RateLimitConfig;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy with one quota of requests.
pub(super) const BASIC: ChainPolicy = ChainPolicy { name: "basic-ratelimit", make: make_basic };

/// The policy with quotas of everything.
pub(super) const ADVANCED: ChainPolicy = ChainPolicy { name: "advanced-ratelimit", make: make_advanced };

/// As the API Platform's own definition of the policy says.
const QUOTAS_MAX: usize = 10;
const LIMITS_MAX: usize = 10;
const AMOUNT_MAX: u64 = 1_000_000_000;

const BODY: &str = r#"{"error": "Too Many Requests", "message": "Rate limit exceeded. Please try again later."}"#;

/// Limit headers of backends are removed, as in the API Platform.
const OF_BACKENDS: [&str; 6] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
];

/// What is counted together.
struct Quota {
    name: Arc<str>,
    limits: Vec<Limit>,
    algorithm: Algorithm,
    key: Key,
    cost: Option<Cost>,
    /// What its counters' keys begin with.
    scope: String,
}

struct Rules {
    buckets: Arc<Buckets>,
    quotas: Vec<Quota>,
    index: usize,
    status: u16,
    body: Arc<str>,
    is_json: bool,
    headers: QuotaHeaders,
}

/// The verdict of a quota on a request; none until the response decides the cost.
struct Counted {
    key: String,
    verdict: Option<Verdict>,
}

/// Counts requests.
struct CountRequest(Arc<Rules>);

/// Counts the cost of responses, and reports the remaining quota.
struct CountAnswer(Arc<Rules>);

fn make_basic(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let config = system(making, params);
    let limits = limits(params, "requests");
    let key = Key::usual(making.step.of_api);
    let quota = Quota {
        name: "default".into(),
        scope: scope(making, &key, "default", &limits),
        limits,
        algorithm: config.algorithm,
        key,
        cost: None,
    };
    finish(making, vec![quota], 429, BODY.into(), true, &config)
}

fn make_advanced(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let config = system(making, params);
    let common = Key::read(params, "keyExtraction");
    let list = params.list("quotas");
    if list.is_empty() || list.len() > QUOTAS_MAX {
        params.error(format!("`quotas` must be a list of 1 to {QUOTAS_MAX}"));
    }
    let mut quotas: Vec<Quota> = Vec::new();
    for (index, item) in list.into_iter().enumerate() {
        let Some(item) = item.map("quotas") else { continue };
        let name = item.text("name").unwrap_or_else(|| format!("quota-{index}").into());
        if name.is_empty()
            || name.len() > 128
            || !name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'"')
        {
            item.error("`name` is at most 128 printable characters of ASCII");
        }
        if quotas.iter().any(|other| other.name == name) {
            item.error(format!("a quota of the name `{name}` is there already"));
        }
        let key = Key::read(&item, "keyExtraction").or_else(|| common.clone()).unwrap_or_else(|| Key::usual(false));
        let cost = item.map("costExtraction").and_then(|cost| Cost::read(&cost));
        let limits = limits(&item, "limit");
        let scope = scope(making, &key, &name, &limits);
        quotas.push(Quota { name, limits, algorithm: config.algorithm, key, cost, scope });
    }
    let (mut status, mut body, mut is_json) = (429, Arc::from(BODY), true);
    if let Some(exceeded) = params.map("onRateLimitExceeded") {
        status = exceeded.whole("statusCode", 400, 599).map_or(429, |status| status as u16);
        body = exceeded.text("body").unwrap_or(body);
        is_json = exceeded.one_of("bodyFormat", &[("json", true), ("plain", false)]).unwrap_or(true);
    }
    finish(making, quotas, status, body, is_json, &config)
}

fn finish(
    making: &Making<'_>,
    quotas: Vec<Quota>,
    status: u16,
    body: Arc<str>,
    is_json: bool,
    config: &RateLimitConfig,
) -> Option<Made> {
    let of = |reads: fn(&Cost) -> bool| quotas.iter().filter_map(|quota| quota.cost.as_ref()).any(reads);
    let (request, answer) = (of(Cost::reads_request), of(Cost::reads_answer));
    let phase = |reads: bool| if reads { ChainPhase::Body } else { ChainPhase::Head };
    let reads_sent =
        quotas.iter().any(|quota| quota.key.reads_sent() || quota.cost.as_ref().is_some_and(Cost::reads_sent));
    let rules = Rules {
        buckets: making.gateway.state.get(),
        quotas,
        index: making.index,
        status,
        body,
        is_json,
        headers: QuotaHeaders::new(config),
    };
    let rules = Arc::new(rules);
    let made =
        Made::request(phase(request), CountRequest(rules.clone())).and_response(phase(answer), CountAnswer(rules));
    Some(Made { reads_sent, ..made })
}

/// The system parameters, which an API may give too.
fn system(making: &Making<'_>, params: &Params<'_>) -> RateLimitConfig {
    let mut config = making.gateway.config.platform.rate_limit.clone();
    if let Some(algorithm) = params.one_of("algorithm", &Algorithm::WORDS) {
        config.algorithm = algorithm;
    }
    // Wherever the API Platform would count, here it is this process.
    let _ = params.one_of("backend", &[("memory", ()), ("redis", ()), ("redis-local-async", ())]);
    if let Some(headers) = params.map("headers") {
        config.tells_common = headers.flag("includeXRateLimit", config.tells_common);
        config.tells_standard = headers.flag("includeIETF", config.tells_standard);
        config.tells_retry = headers.flag("includeRetryAfter", config.tells_retry);
    }
    config
}

fn limits(params: &Params<'_>, amount_name: &'static str) -> Vec<Limit> {
    let list = params.list("limits");
    if list.is_empty() || list.len() > LIMITS_MAX {
        params.error(format!("`limits` must be a list of 1 to {LIMITS_MAX}"));
    }
    let read = |item: super::params::Param<'_>| {
        let item = item.map("limits")?;
        // Both policies have been seen with either name.
        let other = if amount_name == "limit" { "requests" } else { "limit" };
        let amount = item.whole(amount_name, 1, AMOUNT_MAX).or_else(|| item.whole(other, 1, AMOUNT_MAX));
        let (window, burst) = (item.duration("duration"), item.whole("burst", 1, AMOUNT_MAX));
        let (Some(amount), Some(window)) = (amount, window) else {
            if item.get(amount_name).or_else(|| item.get(other)).is_none() || item.get("duration").is_none() {
                item.error(format!("a limit needs `{amount_name}` and `duration`"));
            }
            return None;
        };
        Some(Limit { amount, window: window.max(Duration::from_millis(1)), burst: burst.unwrap_or(amount) })
    };
    list.into_iter().filter_map(read).collect()
}

/// Quotas by the API's name alone are one for all operations, others are each operation's own.
fn scope(making: &Making<'_>, key: &Key, name: &str, limits: &[Limit]) -> String {
    let (api, operation) = (&making.site.api, &making.site.operation);
    let of = match key.is_of_whole_api() {
        true => String::new(),
        false => format!("{} {}", operation.method, operation.path),
    };
    // The same policy twice in a row counts twice. Those of an API stand at the same place in the row of each operation.
    let place = if key.is_of_whole_api() && !making.step.of_api { String::new() } else { making.index.to_string() };
    // Quotas that differ are not one because they have one name.
    let limits: String = limits.iter().map(Limit::signature).collect();
    format!("{}\u{1f}{}\u{1f}{of}\u{1f}{place}\u{1f}{name}\u{1f}{limits}\u{1f}", api.base_path, api.version)
}

/// Nanoseconds since 1970.
fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl Quota {
    fn ask(&self, buckets: &Buckets, key: &str, cost: u64, now: u64) -> Verdict {
        buckets.take(self.algorithm, &self.limits, &format!("{}{key}", self.scope), cost, now)
    }

    fn charge(&self, buckets: &Buckets, key: &str, cost: u64, now: u64) -> Option<Verdict> {
        buckets.charge(self.algorithm, &self.limits, &format!("{}{key}", self.scope), cost, now)
    }

    fn left(&self, buckets: &Buckets, key: &str, now: u64) -> u64 {
        buckets.left(self.algorithm, &self.limits, &format!("{}{key}", self.scope), now)
    }

    /// The report of an unused quota: its first limit.
    fn seen(&self, left: u64, now: u64) -> Verdict {
        let first = self.limits.first().copied().unwrap_or_default();
        let reset = now.saturating_add(first.nanos());
        Verdict { granted: left > 0, limit: first.amount, left, reset, retry: None, window: first.window }
    }
}

impl CountRequest {
    /// What a quota says, and under which key; nothing when the request is none of its business.
    fn ask(&self, exchange: &mut Exchange, quota: &Quota, now: u64) -> Result<Option<Counted>, Fault> {
        let context = CallContext::of(exchange)?;
        let Some(key) = quota.key.of(exchange, &context)? else { return Ok(None) };
        let buckets = &self.0.buckets;
        let verdict = match &quota.cost {
            None => Some(quota.ask(buckets, &key, 1, now)),
            Some(cost) if cost.is_known_before() => {
                let cost = cost.of_request(exchange)?;
                Some(quota.ask(buckets, &key, cost, now))
            }
            Some(_) => {
                let left = quota.left(buckets, &key, now);
                (left == 0).then(|| quota.seen(0, now))
            }
        };
        Ok(Some(Counted { key, verdict }))
    }
}

impl Mediator for CountRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let now = unix_nanos();
        let rules = &*self.0;
        let mut all: Vec<Option<Counted>> = Vec::with_capacity(rules.quotas.len());
        for quota in &rules.quotas {
            let counted = self.ask(exchange, quota, now)?;
            let refused =
                counted.as_ref().is_some_and(|counted| counted.verdict.as_ref().is_some_and(|one| !one.granted));
            all.push(counted);
            if refused {
                exchange.explain("limits", || format!("the quota `{}` is used up", quota.name));
                let mut headers = rules.headers.fields(rules.verdicts(&all), now, Some(&quota.name));
                headers.set("content-type", if rules.is_json { "application/json" } else { "text/plain" });
                return Ok(answer::immediately(exchange, rules.status, headers, rules.body.to_string()));
            }
        }
        CallContext::of(exchange)?.chain.borrow_mut().keep(rules.index, all);
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        needs(&self.0, Cost::reads_request)
    }
}

impl Rules {
    fn verdicts<'a>(&'a self, all: &'a [Option<Counted>]) -> impl Iterator<Item = (&'a str, &'a Verdict)> + Clone {
        let pairs = self.quotas.iter().zip(all);
        pairs.filter_map(|(quota, counted)| Some((&*quota.name, counted.as_ref()?.verdict.as_ref()?)))
    }
}

impl Mediator for CountAnswer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let rules = &*self.0;
        let context = CallContext::of(exchange)?;
        let kept = context.chain.borrow_mut().take::<Vec<Option<Counted>>>(rules.index);
        let Some(mut all) = kept else { return Ok(Flow::Next) };
        let now = unix_nanos();
        let buckets = &rules.buckets;
        for (quota, counted) in rules.quotas.iter().zip(&mut all) {
            let (Some(cost), Some(counted)) = (&quota.cost, counted) else { continue };
            if !cost.is_known_after() {
                continue;
            }
            // The answer is there already: what it cost is taken as far as there is any left.
            let cost = cost.of_answer(exchange)?;
            if cost > 0 {
                counted.verdict = quota.charge(buckets, &counted.key, cost, now);
            } else if counted.verdict.is_none() {
                counted.verdict = Some(quota.seen(quota.left(buckets, &counted.key, now), now));
            }
        }
        for name in OF_BACKENDS {
            exchange.message.headers.remove(name);
        }
        let fields = rules.headers.fields(rules.verdicts(&all), now, None);
        exchange.message.headers.set_all(fields);
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        needs(&self.0, Cost::reads_answer)
    }
}

fn needs(rules: &Rules, reads: fn(&Cost) -> bool) -> Needs {
    let whole = rules.quotas.iter().filter_map(|quota| quota.cost.as_ref()).any(reads);
    if whole { Needs::Whole } else { Needs::Nothing }
}
