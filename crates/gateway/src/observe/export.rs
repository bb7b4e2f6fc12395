//! Spans on their way to an OTLP receiver: collected on the cores, sent in batches as JSON from the management runtime.
//! A receiver that is slow or away costs spans, never requests.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Headers, Message, Method};
use serde_json::{Value, json};

use super::TracingConfig;

/// Maximum pending spans. More are dropped and counted.
const WAITING_MAX: usize = 8192;

/// Spans in one request.
const BATCH_MAX: usize = 512;

/// How often what waits is sent.
const INTERVAL: Duration = Duration::from_millis(1000);

/// For the receiver's answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A finished span.
#[derive(Debug)]
pub(super) struct Span {
    pub trace: u128,
    pub id: u64,
    /// 0 when there is none.
    pub parent: u64,
    /// Whether it answered a request, or sent one.
    pub server: bool,
    pub name: String,
    pub start: SystemTime,
    pub took: Duration,
    pub failed: bool,
    pub attributes: Attributes,
}

/// Names and values.
pub(super) type Attributes = Vec<(&'static str, Attribute)>;

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attribute {
    Text(Arc<str>),
    Number(i64),
}

/// Spans that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    waiting: Mutex<VecDeque<Span>>,
    dropped: AtomicU64,
    config: Mutex<Option<TracingConfig>>,
}

impl Spans {
    /// Where spans go from now on.
    pub(crate) fn configure(&self, config: &TracingConfig) {
        let config = config.endpoint.is_some().then(|| config.clone());
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = config;
    }

    /// Spans that were not sent.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn push(&self, span: Span) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push_back(span);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends for ever.
    pub(crate) async fn run(&self, outbound: Rc<dyn Outbound>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let config = self.config.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let Some(config) = config else { continue };
            loop {
                let batch = self.batch();
                if batch.is_empty() {
                    break;
                }
                let count = batch.len() as u64;
                if !send(&*outbound, &config, &batch).await {
                    self.dropped.fetch_add(count, Ordering::Relaxed);
                    break;
                }
            }
        }
    }

    fn batch(&self) -> Vec<Span> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let count = waiting.len().min(BATCH_MAX);
        waiting.drain(..count).collect()
    }
}

/// Whether the receiver took them.
async fn send(outbound: &dyn Outbound, config: &TracingConfig, batch: &[Span]) -> bool {
    let Some(url) = config.endpoint.clone() else { return false };
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/json");
    let body = Body::bytes(document(&config.service, batch).to_string());
    let message = Message { headers, body, ..Message::default() };
    let outgoing = Outgoing { url, method: Method::Post, message, options: SendOptions::within(TIMEOUT) };
    match outbound.send(outgoing).await {
        Ok(mut reply) => {
            // Read, so that the connection can be used again.
            let _ = std::future::poll_fn(|cx| reply.body.poll_pull(cx, usize::MAX, 64 * 1024)).await;
            (200..300).contains(&reply.status)
        }
        Err(_) => false,
    }
}

/// `ExportTraceServiceRequest` in its JSON mapping.
fn document(service: &str, batch: &[Span]) -> Value {
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string();
    let spans: Vec<Value> = batch
        .iter()
        .map(|span| {
            let attribute = |(key, value): &(&'static str, Attribute)| match value {
                Attribute::Text(value) => text(key, value),
                Attribute::Number(value) => json!({ "key": key, "value": { "intValue": value.to_string() } }),
            };
            let attributes: Vec<Value> = span.attributes.iter().map(attribute).collect();
            let parent = if span.parent == 0 { String::new() } else { format!("{:016x}", span.parent) };
            json!({
                "traceId": format!("{:032x}", span.trace),
                "spanId": format!("{:016x}", span.id),
                "parentSpanId": parent,
                "name": span.name,
                "kind": if span.server { 2 } else { 3 },
                "startTimeUnixNano": nanos(span.start),
                "endTimeUnixNano": nanos(span.start + span.took),
                "attributes": attributes,
                "status": if span.failed { json!({ "code": 2 }) } else { json!({}) },
            })
        })
        .collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service)] },
        "scopeSpans": [{ "scope": { "name": "penstock" }, "spans": spans }],
    }] })
}
