//! Probes and metrics, on a thread of their own.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::background::ServiceState;
use penstock_engine::ports::{LocalFuture, Request, Service};
use penstock_engine::{Login, Realm, basic_credentials};
use penstock_message::{Body, Headers, Message, Method};
use penstock_transports::http::{CountersSnapshot, HttpListener, PerCore, Shutdown, ShutdownTrigger, shutdown};
use tokio::task::LocalSet;

use super::state::State;
use super::{metrics, process};
use crate::adapter::is_user;
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
    tokio::task::spawn_local(report_accept_failures(state.clone()));
    let service: Rc<dyn Service> = Rc::new(Probes { state });
    if let Err(cause) = listener.serve(core, service, None, stop).await {
        log.say(penstock_engine::ports::Level::Error, "Server", &format!("probes and metrics ended: {cause}"));
    }
}

/// Reports failures to accept connections at most once a second, with their number: they come by the thousand.
async fn report_accept_failures(state: Arc<State>) {
    const REPORT_EVERY: Duration = Duration::from_secs(1);
    let mut reported = 0;
    loop {
        tokio::time::sleep(REPORT_EVERY).await;
        let mut sum = CountersSnapshot::default();
        let mut error = 0;
        for core in state.cores() {
            core.http.add_to(&mut sum);
            error = error.max(core.http.accept_error.get());
        }
        let count = sum.accept_failures - reported;
        if count > 0 {
            reported = sum.accept_failures;
            let cause = std::io::Error::from_raw_os_error(i32::try_from(error).unwrap_or_default());
            let text = format!("accepting connections failed {count} times within a second: {cause}");
            state.log.say(penstock_engine::ports::Level::Error, "Listener", &text);
        }
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
        let path = line.path();
        let is_open = matches!(path, "/liveness" | "/healthz" | "/metric-service/metrics" | "/metrics");
        if let Some(refusal) = Some(request).filter(|_| !is_open).and_then(|request| self.refuse(request)) {
            return refusal;
        }
        match path {
            // Byte for byte what Micro Integrator answers: scripts compare it.
            "/liveness" => reply(200, "application/json", "{\"server\" : \"started\"}"),
            "/healthz" => self.readiness(),
            "/metric-service/metrics" | "/metrics" => {
                reply(200, "text/plain; version=0.0.4; charset=utf-8", metrics::page(&self.state, &process::read()))
            }
            "/gateway/limits" => self.limits(line.query().unwrap_or_default()),
            _ => reply(404, "text/plain; charset=UTF-8", "try /healthz, /liveness or /metric-service/metrics\n"),
        }
    }

    /// The answer for a client that may see probes and metrics only. Clients of this machine may see all, unless something
    /// that runs here forwards for others.
    fn refuse(&self, request: &Request) -> Option<Message> {
        let (client, headers) = (&request.client, &request.message.headers);
        let is_forwarded = ["x-forwarded-for", "forwarded"].iter().any(|name| headers.contains(name));
        if client.peer.ip().to_canonical().is_loopback() && client.address.is_loopback() && !is_forwarded {
            return None;
        }
        let settings = self.state.settings();
        let users = &settings.admin_users;
        if users.is_empty() {
            let text = "only clients of this machine are answered; `[admin.users]` of penstock.toml adds users\n";
            return Some(reply(403, "text/plain; charset=UTF-8", text));
        }
        let sent = headers.get("authorization").and_then(basic_credentials);
        let login = sent.map(|(name, password)| {
            let verify = || is_user(users, &name, &password);
            self.state.logins.attempt(Realm::Admin, &name, client.address, verify)
        });
        if login.is_some_and(Login::is_accepted) {
            return None;
        }
        let refusal = match login.and_then(Login::retry_after_seconds) {
            Some(seconds) => {
                let mut refusal = reply(429, "text/plain; charset=UTF-8", "too many failed logins; try again later\n");
                refusal.headers.set("Retry-After", seconds.to_string());
                refusal
            }
            None => {
                let mut refusal = reply(401, "text/plain; charset=UTF-8", "name and password are required\n");
                refusal.headers.set("WWW-Authenticate", "Basic realm=\"admin\"");
                refusal
            }
        };
        Some(refusal)
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
        let (status, word) = if self.state.settings().strict_ready { (503, "not ready") } else { (200, "ready") };
        reply(status, "application/json", format!("{{\"status\":\"{word}\",\"faulty\":[{}]}}", faulty.join(",")))
    }
}

fn reply(status: u16, content_type: &str, body: impl Into<bytes::Bytes>) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(body), status, ..Message::default() }
}
