//! How much of a quota a request takes.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use penstock_json::path::{Dialect, JsonPath};
use penstock_message::Headers;

use crate::CallContext;
use crate::cel::{Expression, Value};
use crate::client_request::body_decoded;
use crate::policy::chain::guardrail::text_at;
use crate::policy::chain::params::{Param, Params};
use crate::policy::chain::variables::{OF_ANSWER_COSTS, OF_REQUEST_COSTS, evaluate, reads_body};

/// As the API Platform's own definition of the policy says.
const SOURCES_MAX: usize = 10;
const AMOUNT_MAX: f64 = 1e9;

/// What is added up.
pub(super) struct Cost {
    request: Vec<CostSource>,
    answer: Vec<CostSource>,
    /// When no source says anything.
    otherwise: f64,
}

struct CostSource {
    from: From,
    times: f64,
}

enum From {
    Header(Arc<str>),
    Body(JsonPath),
    Expression(Arc<Expression>),
    /// What no policy here writes.
    Nowhere,
}

impl Cost {
    /// Reads it; `None` when it is switched off.
    pub(super) fn read(params: &Params<'_>) -> Option<Cost> {
        let enabled = params.flag("enabled", false);
        let otherwise = params.number("default").unwrap_or(1.0);
        if !(0.0..=AMOUNT_MAX).contains(&otherwise) {
            params.error("`default` is a number from 0 to 1000000000");
        }
        let list = params.list("sources");
        if enabled && (list.is_empty() || list.len() > SOURCES_MAX) {
            params.error(format!("`sources` must be a list of 1 to {SOURCES_MAX}"));
        }
        let mut cost = Cost { request: Vec::new(), answer: Vec::new(), otherwise };
        for item in list {
            let Some((of_answer, source)) = source(item) else { continue };
            if of_answer { cost.answer.push(source) } else { cost.request.push(source) }
        }
        enabled.then_some(cost)
    }

    /// Whether it is known before the backend is called.
    pub(super) fn is_known_before(&self) -> bool {
        !self.request.is_empty()
    }

    /// Whether it depends on the response.
    pub(super) fn is_known_after(&self) -> bool {
        !self.answer.is_empty()
    }

    pub(super) fn reads_request(&self) -> bool {
        self.request.iter().any(CostSource::reads_body)
    }

    pub(super) fn reads_answer(&self) -> bool {
        self.answer.iter().any(CostSource::reads_body)
    }

    /// Whether it reads fields of the request.
    pub(super) fn reads_sent(&self) -> bool {
        self.request.iter().chain(&self.answer).any(|source| !matches!(source.from, From::Body(_) | From::Nowhere))
    }

    pub(super) fn of_request(&self, exchange: &mut Exchange) -> Result<u64, Fault> {
        self.sum(&self.request, exchange, "request_body")
    }

    pub(super) fn of_answer(&self, exchange: &mut Exchange) -> Result<u64, Fault> {
        self.sum(&self.answer, exchange, "response_body")
    }

    fn sum(&self, sources: &[CostSource], exchange: &mut Exchange, phase: &'static str) -> Result<u64, Fault> {
        let reads = sources.iter().any(|source| matches!(source.from, From::Body(_)));
        let body = if reads { Documents::parse(&body_decoded(exchange)?) } else { Documents::default() };
        let mut sum = None;
        for source in sources {
            let number = match &source.from {
                From::Header(name) => {
                    let context = CallContext::of(exchange)?;
                    let chain = context.chain.borrow();
                    let sent = chain.sent.as_ref().filter(|_| phase == "request_body");
                    number_of(sent.unwrap_or(&exchange.message.headers), name)
                }
                From::Body(path) => body.number(path),
                From::Expression(expression) => evaluate(expression, exchange, phase, true, |value| match value {
                    Ok(Value::Int(number)) => Some(number as f64),
                    Ok(Value::Double(number)) => Some(number),
                    _ => None,
                })?,
                From::Nowhere => None,
            };
            if let Some(cost) = number.map(|number| (number * source.times).max(0.0)).filter(|cost| cost.is_finite()) {
                *sum.get_or_insert(0.0) += cost;
            }
        }
        // A cost of less than nothing is nothing.
        Ok(sum.unwrap_or(self.otherwise).clamp(0.0, AMOUNT_MAX) as u64)
    }
}

impl CostSource {
    fn reads_body(&self) -> bool {
        match &self.from {
            From::Body(_) => true,
            From::Expression(expression) => reads_body(expression),
            From::Header(_) | From::Nowhere => false,
        }
    }
}

/// What a body is: JSON, or events with JSON in each.
#[derive(Default)]
struct Documents(Vec<serde_json::Value>);

impl Documents {
    fn parse(body: &[u8]) -> Documents {
        if let Ok(value) = serde_json::from_slice(body) {
            return Documents(vec![value]);
        }
        let text = String::from_utf8_lossy(body);
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        Documents(data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect())
    }

    /// The number at a path; of events the last that has one, because usage is at the end.
    fn number(&self, path: &JsonPath) -> Option<f64> {
        self.0.iter().rev().find_map(|value| text_at(value, path)?.trim().parse().ok())
    }
}

fn number_of(headers: &Headers, name: &str) -> Option<f64> {
    headers.get(name)?.trim().parse().ok()
}

/// A source, and whether it is in the answer.
fn source(item: Param<'_>) -> Option<(bool, CostSource)> {
    let item = item.map("sources")?;
    #[derive(Clone, Copy)]
    enum Type {
        Header,
        Metadata,
        Body,
        Expression,
    }
    let types = [
        ("request_header", (false, Type::Header)),
        ("request_metadata", (false, Type::Metadata)),
        ("request_body", (false, Type::Body)),
        ("request_cel", (false, Type::Expression)),
        ("response_header", (true, Type::Header)),
        ("response_metadata", (true, Type::Metadata)),
        ("response_body", (true, Type::Body)),
        ("response_cel", (true, Type::Expression)),
    ];
    let times = item.number("multiplier").unwrap_or(1.0);
    if times < 0.0 {
        item.error("`multiplier` must not be negative");
    }
    let Some((of_answer, kind)) = item.one_of("type", &types) else {
        item.error("a source needs `type`");
        return None;
    };
    let from = match kind {
        Type::Header => From::Header(item.required_text("key")?),
        Type::Metadata => {
            item.required_text("key")?;
            From::Nowhere
        }
        Type::Body => {
            let path = item.required_text("jsonPath")?;
            match JsonPath::parse(&path, Dialect::Artifacts) {
                Ok(path) => From::Body(path),
                Err(error) => {
                    item.error(format!("`jsonPath` cannot be read: {error}"));
                    return None;
                }
            }
        }
        Type::Expression => {
            let variables = if of_answer { OF_ANSWER_COSTS } else { OF_REQUEST_COSTS };
            From::Expression(item.expression("expression", variables)?)
        }
    };
    Some((of_answer, CostSource { from, times }))
}
