//! Rate limits, counted in the process and exact over all cores: by API or operation, subscription, application, by
//! keys of the configuration, and for the sake of the backend.
//!
//! Start reading at [`Limits`], then `window.rs` (one counter), `counters.rs` (all of them), `plans.rs` (limits by name)
//! and `condition.rs` (which requests a limit is for).

mod answer;
mod asking;
mod bytes;
mod call;
mod caller;
mod condition;
mod config;
mod counters;
mod custom;
mod events;
mod frames;
mod parse;
mod plans;
mod stream;
mod window;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use penstock_catalog::{Api, ApiKind, Limit, LimitUnit, Operation, PlanLevel};
use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_graphql::OperationKind;
use penstock_message::push_decimal;
use penstock_projects::place;

use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, ErrorStyle, Gateway, Site};

pub(crate) use call::{CallerCounters, LimitsCall};
pub(crate) use condition::Conditions;
pub use config::{CustomLimit, LimitsConfig};
pub(crate) use counters::Counters;
pub use counters::LimitUse;
pub(crate) use events::{Subscriber, admits as admits_event};
pub(crate) use frames::FrameLimits;
pub use parse::{parse_custom, parse_denial, parse_plan};
pub(crate) use plans::Plans;

use answer::Refusal;
use asking::{Asking, Held};
use counters::SEPARATOR;
use custom::Custom;
use frames::FrameLimit;
use plans::Ready;
use window::Counter;

/// The kind.
pub const KIND: PolicyKind = PolicyKind {
    name: "rate-limit",
    applies_to: ApiKinds::HTTP
        .and(ApiKinds::CONNECTIONS)
        .and(ApiKinds::PLATFORM)
        .and(ApiKinds::MCP)
        .and(ApiKinds::MCP_OPEN)
        .and(ApiKinds::PUBLISHERS),
    phase: Phase::Limits,
    request: Some(compile),
    response: Some(compile_answer),
};

/// API Manager's report of a dropped message.
const FRAME_REFUSED: &str = "Error code: 4003 reason: Websocket frame throttled out";

/// The limits of one operation.
struct Limits {
    counters: Arc<Counters>,
    plans: Arc<Plans>,
    /// The API's own plan, or the operation's.
    own: Option<Own>,
    /// The plans of a GraphQL API's operations, by index.
    queried: Vec<Option<Own>>,
    /// Whether the caller's plans count.
    by_caller: bool,
    custom: Vec<Custom>,
    /// What production and sandbox backends take in a second.
    backend: [Option<Fixed>; 2],
    site: Arc<Site>,
    /// `context:version`, the last part of a subscription's key.
    api_key: Box<str>,
    reports: bool,
    /// The report to clients of connections for each dropped message.
    refusal: Option<&'static str>,
    /// Whether responses are streams of events: events are counted, not requests.
    of_events: bool,
}

/// A plan whose counters are known before any request comes.
struct Own {
    plan: Arc<Ready>,
    code: u32,
    limit: Option<Fixed>,
    burst: Option<Fixed>,
    groups: Vec<Option<Fixed>>,
}

/// A limit with its counter.
struct Fixed {
    limit: Limit,
    counter: Arc<Counter>,
}

fn compile(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let limits = Limits::new(gateway, site, cx);
    limits.counts_anything().then(|| Box::new(limits) as Box<dyn Mediator>)
}

fn compile_answer(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    match site.api.kind {
        ApiKind::Sse => Some(Box::new(stream::CountEvents)),
        _ => bytes::compile(gateway, site, cx),
    }
}

impl Own {
    /// The plan of an API, or that of one of its operations.
    fn new(gateway: &Gateway, plans: &Plans, api: &Api, operation: &Operation, cx: &mut Compiler<'_>) -> Option<Own> {
        // A plan of the API makes those of operations mean nothing.
        let (name, key, code) = match (&api.tier, &operation.tier) {
            (Some(name), _) => (name, format!("api{SEPARATOR}{}:{}", api.base_path, api.version), codes::API_LIMIT),
            (None, name) => {
                let (context, version) = (&api.base_path, &api.version);
                // Operations of a GraphQL API have names without a slash.
                let path = operation.path.trim_start_matches('/');
                let key = format!("resource{SEPARATOR}{context}/{version}/{path}:{}", operation.method);
                (name.as_ref()?, key, codes::RESOURCE_LIMIT)
            }
        };
        if let Err(like) = plans.check(PlanLevel::Api, name) {
            let hint = like.map_or_else(String::new, |like| format!(" (did you mean `{like}`?)"));
            let at = if api.tier.is_some() { &api.at } else { &operation.at };
            cx.unprotected(place(at), format!("no plan is called `{name}`{hint}"));
        }
        let plan = plans.get(PlanLevel::Api, name)?;
        let counters = &gateway.state.get::<Counters>();
        let now = Instant::now();
        let fixed = |key: &str, limit: Limit| Fixed::new(counters, key, limit, now);
        let group = |(index, limit): (usize, &Option<Limit>)| {
            limit.map(|limit| fixed(&format!("{key}{SEPARATOR}condition_{index}"), limit))
        };
        Some(Own {
            limit: plan.limit.map(|limit| fixed(&key, limit)),
            burst: plan.burst.map(|limit| fixed(&format!("{key}{SEPARATOR}burst"), limit)),
            groups: plan.groups.iter().map(|(_, limit)| limit).enumerate().map(group).collect(),
            plan: plan.clone(),
            code,
        })
    }

    fn ask<'a>(&'a self, exchange: &Exchange, context: &CallContext, asking: &mut Asking<'a>) -> Result<(), Refusal> {
        let group = self.plan.groups.iter().position(|(conditions, _)| conditions.hold(exchange, context));
        let limit = group.map_or(self.limit.as_ref(), |index| self.groups[index].as_ref());
        if let Some(fixed) = limit {
            asking.fixed(fixed, self.code)?;
        }
        if let Some(fixed) = &self.burst {
            asking.fixed(fixed, codes::BURST_LIMIT)?;
        }
        Ok(())
    }
}

impl Fixed {
    fn new(counters: &Counters, key: &str, limit: Limit, now: Instant) -> Fixed {
        Fixed { limit, counter: counters.get(&key_of(key, &limit), limit.window, now) }
    }
}

impl Limits {
    fn new(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Limits {
        let config = &gateway.config.limits;
        let plans = Plans::of_gateway(gateway);
        let (api, operation) = (&site.api, &site.operation);
        let now = Instant::now();
        let api_key = format!("{}:{}", api.base_path, api.version);
        let queried: &[_] = if site.graphql.is_some() && api.tier.is_none() { &api.operations } else { &[] };
        let queried = queried.iter().map(|operation| Own::new(gateway, &plans, api, operation, cx)).collect();
        let counters = gateway.state.get::<Counters>();
        let backend = |kind: &str, limit: Option<Limit>| {
            let key = format!("backend{SEPARATOR}{api_key}{SEPARATOR}{kind}");
            limit.map(|limit| Fixed::new(&counters, &key, limit, now))
        };
        let (production, sandbox) = api.backend_limit;
        Limits {
            counters: counters.clone(),
            own: Own::new(gateway, &plans, api, operation, cx),
            queried,
            by_caller: operation.secured,
            custom: config.custom.iter().map(|custom| Custom::new(custom, site)).collect(),
            backend: [backend("production", production), backend("sandbox", sandbox)],
            site: site.clone(),
            api_key: api_key.into(),
            reports: config.tell_what_is_left,
            of_events: api.kind == ApiKind::Sse,
            refusal: (gateway.config.error_style == ErrorStyle::ApiManager).then_some(FRAME_REFUSED),
            plans,
        }
    }

    fn counts_anything(&self) -> bool {
        self.own.is_some()
            || self.queried.iter().any(Option::is_some)
            || self.by_caller
            || !self.custom.is_empty()
            || self.backend.iter().any(Option::is_some)
    }

    /// Checks all limits in the order of Choreo Connect. A rejection undoes those before it.
    fn ask<'a>(&'a self, exchange: &Exchange, context: &CallContext, asking: &mut Asking<'a>) -> Result<(), Refusal> {
        if let Some(own) = &self.own {
            own.ask(exchange, context, asking)?;
        }
        let asked = context.graphql.query.borrow();
        for index in asked.iter().flat_map(|asked| &asked.operations) {
            if let Some(Some(own)) = self.queried.get(*index) {
                own.ask(exchange, context, asking)?;
            }
        }
        if self.by_caller {
            self.ask_for_caller(exchange, context, asking)?;
        }
        for custom in &self.custom {
            let counter = KEY.with_borrow_mut(|key| {
                custom.write_key(key, exchange, context);
                asking.at_hand(key, &custom.limit)
            });
            asking.take(Held::AtHand(counter), &custom.limit, codes::CUSTOM_LIMIT, true)?;
        }
        // Backends are protected from connections, not from frames.
        let frames = asking.frames.take();
        let sandbox = context.caller.borrow().sandbox;
        if let Some(fixed) = &self.backend[usize::from(sandbox)] {
            asking.fixed(fixed, codes::HARD_LIMIT)?;
        }
        let Some(frames) = frames else { return Ok(()) };
        let of_operations = self.of_subscriptions(exchange, context, asking)?;
        if !frames.is_empty() || !of_operations.is_empty() {
            let limits = FrameLimits::new(&self.counters, frames, of_operations, self.refusal);
            if let Some(refusal) = limits.used_up().filter(|_| self.of_events) {
                return Err(refusal);
            }
            *context.limits.frames.borrow_mut() = Some(limits);
        }
        Ok(())
    }

    /// The limits of each subscription of a GraphQL API.
    fn of_subscriptions<'a>(
        &'a self,
        exchange: &Exchange,
        context: &CallContext,
        asking: &mut Asking<'a>,
    ) -> Result<Vec<(usize, Vec<FrameLimit>)>, Refusal> {
        let mut all = Vec::new();
        for (index, (own, operation)) in self.queried.iter().zip(&context.site.api.operations).enumerate() {
            let Some(own) = own.as_ref().filter(|_| &*operation.method == OperationKind::Subscription.verb()) else {
                continue;
            };
            asking.frames = Some(Vec::new());
            own.ask(exchange, context, asking)?;
            all.push((index, asking.frames.take().unwrap_or_default()));
        }
        Ok(all)
    }
}

thread_local! {
    /// The key that is being put together.
    static KEY: RefCell<String> = const { RefCell::new(String::new()) };
}

/// A counter's key: what it counts for, and how. A limit of another window or unit starts anew.
fn key_of(key: &str, limit: &Limit) -> String {
    let mut key = key.to_owned();
    finish_key(&mut key, limit);
    key
}

fn finish_key(key: &mut String, limit: &Limit) {
    let unit = if limit.unit == LimitUnit::Bytes { "bytes" } else { "requests" };
    key.push(SEPARATOR);
    key.push_str(unit);
    key.push('/');
    push_decimal(key, limit.window.as_secs());
}

impl Mediator for Limits {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let context = CallContext::of(exchange)?;
        // Not when it came: its body may have taken a while, and windows that are over must not be used up later.
        let now = Instant::now();
        let bytes = bytes::of_request(&exchange.message);
        let mut asking = Asking::new(&self.counters, now, bytes, self.of_events || context.opens_socket.get());
        if let Err(refusal) = self.ask(exchange, &context, &mut asking) {
            refusal.state.refuse(exchange);
            exchange.explain("limits", || format!("refused with {}: {:?}", refusal.code, refusal.state));
            return Err(GatewayError::new(refusal.code).into());
        }
        exchange.explain("limits", || {
            let counted = asking.counted();
            asking
                .tightest
                .map_or(format!("{counted} counted"), |state| format!("{counted} counted, tightest {state:?}"))
        });
        if self.of_events {
            // Events are counted where they can be read.
            exchange.message.headers.set("Accept-Encoding", "identity");
        }
        let Asking { tightest, metered, .. } = asking;
        if let Some(state) = tightest.filter(|_| self.reports) {
            state.report(exchange);
        }
        if !metered.is_empty() {
            *context.limits.metered.borrow_mut() = metered;
        }
        Ok(Flow::Next)
    }
}
