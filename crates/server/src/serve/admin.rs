//! Probes and metrics, on a thread of their own.

use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::background::ServiceState;
use penstock_engine::ports::{LocalFuture, Request, Service};
use penstock_message::{Body, Headers, Message, Method};
use penstock_transports::http::{HttpListener, PerCore, Shutdown, ShutdownTrigger, shutdown};
use tokio::task::LocalSet;

use super::state::State;
use super::{metrics, process};
use crate::command::Failure;

/// Limits shown at once; there may be one for every user.
const LIMITS_SHOWN_MAX: usize = 1000;

/// Serves probes and metrics as long as it is held.
pub(super) struct Admin {
    _trigger: ShutdownTrigger,
}

/// Starts the thread.
pub(super) fn start(listener: HttpListener, state: Arc<State>) -> Result<Admin, Failure> {
    let cannot = |cause: std::io::Error| Failure::environment(format!("a thread cannot be started: {cause}"));
    process::mark_start();
    let (trigger, stop) = shutdown();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    let run = move || LocalSet::new().block_on(&runtime, serve(listener, state, stop));
    std::thread::Builder::new().name("admin".to_owned()).spawn(run).map_err(cannot)?;
    Ok(Admin { _trigger: trigger })
}

async fn serve(listener: HttpListener, state: Arc<State>, stop: Shutdown) {
    let log = state.log.clone();
    let core = PerCore::start();
    let service: Rc<dyn Service> = Rc::new(Probes { state });
    if let Err(cause) = listener.serve(core, service, None, stop).await {
        log.say(penstock_engine::ports::Level::Error, "Server", &format!("probes and metrics ended: {cause}"));
    }
}

struct Probes {
    state: Arc<State>,
}

impl Service for Probes {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        Box::pin(async move { self.reply(&request) })
    }
}

impl Probes {
    fn reply(&self, request: &Request) -> Message {
        let line = &request.client.line;
        if !matches!(line.method, Method::Get | Method::Head) {
            return reply(405, "text/plain; charset=UTF-8", "only GET\n");
        }
        match line.path() {
            // Byte for byte what the original answers: scripts compare it.
            "/liveness" => reply(200, "application/json", "{\"server\" : \"started\"}"),
            "/healthz" => self.readiness(),
            "/metric-service/metrics" | "/metrics" => {
                reply(200, "text/plain; version=0.0.4; charset=utf-8", metrics::page(&self.state, &process::read()))
            }
            "/gateway/limits" => self.limits(line.query().unwrap_or_default()),
            _ => reply(404, "text/plain; charset=UTF-8", "try /healthz, /liveness or /metric-service/metrics\n"),
        }
    }

    /// What was used of limits: `?key=` shows those whose key holds a text.
    fn limits(&self, query: &str) -> Message {
        let wanted = query.split('&').find_map(|pair| pair.strip_prefix("key=")).unwrap_or_default();
        let used = self.state.gateway_state().limits_used(wanted);
        let limits: Vec<serde_json::Value> = used
            .into_iter()
            .take(LIMITS_SHOWN_MAX)
            .map(|one| {
                let left = one.limit.saturating_sub(one.used);
                serde_json::json!({
                    "key": one.key, "limit": one.limit, "used": one.used, "left": left, "reset_ms": one.reset_ms
                })
            })
            .collect();
        reply(200, "application/json", serde_json::json!({ "limits": limits }).to_string())
    }

    fn readiness(&self) -> Message {
        if self.state.is_draining() {
            return reply(503, "application/json", "{\"status\":\"draining\"}");
        }
        let artifacts = self.state.artifacts();
        let services = self.state.services.all();
        let faulty_services = services
            .iter()
            .filter(|service| matches!(service.state(), ServiceState::Faulty(_)))
            .map(|service| &*service.name);
        let faulty: Vec<String> = artifacts
            .faulty()
            .map(|artifact| artifact.name.as_str())
            .chain(faulty_services)
            .map(|name| serde_json::Value::from(name).to_string())
            .collect();
        if faulty.is_empty() {
            return reply(200, "application/json", "{\"status\":\"ready\"}");
        }
        let (status, word) = if self.state.strict_ready { (503, "not ready") } else { (200, "ready") };
        reply(status, "application/json", format!("{{\"status\":\"{word}\",\"faulty\":[{}]}}", faulty.join(",")))
    }
}

fn reply(status: u16, content_type: &str, body: impl Into<bytes::Bytes>) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(body), status, ..Message::default() }
}
