//! The metrics in the text format of Prometheus, under the names of Micro Integrator and our own.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use penstock_engine::background::{ServiceState, ServiceStatus};
use penstock_engine::{LATENCY_BOUNDS_MS, ServiceCounts};
use penstock_transports::http::CountersSnapshot;

use super::process::Process;
use super::state::State;

/// Services by kind and name, so that a page always has the same order.
type Services = BTreeMap<(&'static str, String), ServiceCounts>;

/// The whole page.
pub(super) fn page(state: &State, process: &Process) -> String {
    let mut sum = HashMap::new();
    let mut http = CountersSnapshot::default();
    let mut in_flight = 0;
    for core in state.cores() {
        core.metrics.add_to(&mut sum);
        core.http.add_to(&mut http);
        in_flight += core.metrics.in_flight();
    }
    let mut services: Services =
        sum.into_iter().map(|((kind, name), counts)| ((kind, name.to_string()), counts)).collect();
    let artifacts = state.artifacts();
    for artifact in artifacts.statuses.iter().filter(|artifact| artifact.good && is_service(artifact.kind)) {
        services.entry((artifact.kind, artifact.name.clone())).or_default();
    }
    let mut page = Page(String::with_capacity(4096));
    page.services(&services);
    page.server(state, &services);
    page.transport(&http, in_flight);
    page.process(process);
    page.background(&state.services.all());
    state.gateway_state().write_metrics(&mut page.0);
    let dropped = state.log.dropped() as f64;
    page.single(
        "penstock_log_lines_dropped_total",
        "counter",
        "Log lines that were not written because the log could not keep up or its disk was full.",
        dropped,
    );
    let reloads = state.reloads.load(Ordering::Relaxed) as f64;
    page.single("penstock_reloads_total", "counter", "Reloads of a changed configuration.", reloads);
    let refused = state.reloads_refused.load(Ordering::Relaxed) as f64;
    page.single("penstock_reloads_refused_total", "counter", "Reloads rejected because of errors.", refused);
    page.0
}

fn is_service(kind: &str) -> bool {
    matches!(kind, "proxy" | "api")
}

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn background(&mut self, services: &[Arc<ServiceStatus>]) {
        if services.is_empty() {
            return;
        }
        self.head("penstock_background_service_up", "gauge", "Whether a task, processor or inbound endpoint runs.");
        for service in services {
            let up = u8::from(service.state() == ServiceState::Running);
            self.of_background("penstock_background_service_up", service, "", u64::from(up));
        }
        let name = "penstock_background_service_messages_total";
        self.head(name, "counter", "Messages or runs of a task, processor or inbound endpoint.");
        for service in services {
            self.of_background(name, service, ",outcome=\"succeeded\"", service.succeeded());
            self.of_background(name, service, ",outcome=\"failed\"", service.failed());
        }
        let name = "penstock_background_service_restarts_total";
        self.head(name, "counter", "How often a service was started again after an error.");
        for service in services {
            self.of_background(name, service, "", service.restarts());
        }
    }

    fn of_background(&mut self, metric: &str, service: &ServiceStatus, label: &str, value: u64) {
        let (kind, name) = (service.kind, escaped(&service.name));
        let _ = writeln!(self.0, "{metric}{{kind=\"{kind}\",name=\"{name}\"{label}}} {value}");
    }

    fn services(&mut self, services: &Services) {
        for (kind, noun) in [("proxy", "proxy service"), ("api", "API")] {
            let of_kind = || {
                services
                    .iter()
                    .filter(|((other, _), _)| *other == kind)
                    .map(|((_, name), counts)| (escaped(name), counts))
            };
            let prefix = format!("wso2_integration_{kind}");
            self.head(&format!("{prefix}_request_count_total"), "counter", &format!("Requests to a {noun}."));
            for (name, counts) in of_kind() {
                let _ = writeln!(
                    self.0,
                    "{prefix}_request_count_total{{service_name=\"{name}\",service_type=\"{kind}\"}} {}",
                    counts.requests
                );
            }
            self.head(
                &format!("{prefix}_request_count_error_total"),
                "counter",
                &format!("Requests to a {noun} that ran into a fault."),
            );
            for (name, counts) in of_kind() {
                let _ = writeln!(
                    self.0,
                    "{prefix}_request_count_error_total{{service_name=\"{name}\",service_type=\"{kind}\"}} {}",
                    counts.errors
                );
            }
            self.head(&format!("{prefix}_latency_seconds"), "histogram", &format!("Time a request to a {noun} took."));
            for (name, counts) in of_kind() {
                self.histogram(
                    &format!("{prefix}_latency_seconds"),
                    &format!("service_name=\"{name}\",service_type=\"{kind}\""),
                    counts,
                );
            }
        }
    }

    fn histogram(&mut self, name: &str, labels: &str, counts: &ServiceCounts) {
        let mut below = 0;
        for (bound, count) in LATENCY_BOUNDS_MS.iter().zip(counts.buckets) {
            below += count;
            let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"{}\"}} {below}", *bound as f64 / 1e3);
        }
        let _ = writeln!(self.0, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", counts.requests);
        let _ = writeln!(self.0, "{name}_sum{{{labels}}} {}", counts.micros as f64 / 1e6);
        let _ = writeln!(self.0, "{name}_count{{{labels}}} {}", counts.requests);
    }

    fn server(&mut self, state: &State, services: &Services) {
        self.head("wso2_integration_server_up", "gauge", "Whether the server is up.");
        let up = u8::from(!state.is_draining());
        let (host, port) = (escaped(&state.hostname), state.served.http);
        let _ = writeln!(self.0, "wso2_integration_server_up{{host=\"{host}\",port=\"{port}\"}} {up}");
        self.head("wso2_integration_server_version", "gauge", "The version of the server.");
        let _ = writeln!(self.0, "wso2_integration_server_version{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        self.head("wso2_integration_service_up", "gauge", "Whether a service is up.");
        let artifacts = state.artifacts();
        for (kind, name) in services.keys() {
            let is_faulty = artifacts.faulty().any(|artifact| artifact.kind == *kind && artifact.name == *name);
            let name = escaped(name);
            let _ = writeln!(
                self.0,
                "wso2_integration_service_up{{service_name=\"{name}\",service_type=\"{kind}\"}} {}",
                u8::from(!is_faulty)
            );
        }
        for artifact in artifacts.faulty().filter(|artifact| is_service(artifact.kind)) {
            let name = escaped(&artifact.name);
            let _ = writeln!(
                self.0,
                "wso2_integration_service_up{{service_name=\"{name}\",service_type=\"{}\"}} 0",
                artifact.kind
            );
        }
    }

    fn transport(&mut self, http: &CountersSnapshot, in_flight: u64) {
        let counters = [
            ("penstock_connections_accepted_total", "counter", "Connections accepted from clients.", http.accepted),
            (
                "penstock_accept_failures_total",
                "counter",
                "Attempts to accept a connection that the system refused, mostly for lack of file descriptors.",
                http.accept_failures,
            ),
            ("penstock_connections", "gauge", "Connections of clients open now.", http.connections),
            ("penstock_requests_total", "counter", "Requests whose head was understood.", http.requests),
            ("penstock_requests_in_flight", "gauge", "Requests being worked on.", in_flight),
            ("penstock_requests_refused_total", "counter", "Requests refused before a service saw them.", http.refused),
            ("penstock_read_bytes_total", "counter", "Bytes read from clients and backends.", http.read_bytes),
            ("penstock_written_bytes_total", "counter", "Bytes written to clients and backends.", http.written_bytes),
            ("penstock_backend_connects_total", "counter", "Connections opened to backends.", http.connects),
            ("penstock_backend_reused_total", "counter", "Requests sent over a pooled connection.", http.reused),
            ("penstock_websocket_connections", "gauge", "WebSocket connections open now.", http.websockets),
            ("penstock_websocket_frames_total", "counter", "Frames of messages that were carried.", http.frames),
            (
                "penstock_websocket_dropped_total",
                "counter",
                "WebSocket messages dropped by a limit.",
                http.frames_dropped,
            ),
        ];
        for (name, kind, help, value) in counters {
            self.single(name, kind, help, value as f64);
        }
        self.head("penstock_replies_total", "counter", "Replies to clients by class of status.");
        for (index, count) in http.replies.iter().enumerate() {
            let _ = writeln!(self.0, "penstock_replies_total{{class=\"{}xx\"}} {count}", index + 1);
        }
    }

    fn process(&mut self, process: &Process) {
        self.single("process_resident_memory_bytes", "gauge", "Resident memory.", process.resident_bytes as f64);
        self.single("process_cpu_seconds_total", "counter", "Processor time, user and system.", process.cpu_seconds);
        self.single("process_open_fds", "gauge", "Open file descriptors.", process.open_files as f64);
        self.single("process_threads", "gauge", "Threads.", process.threads as f64);
        self.single(
            "process_start_time_seconds",
            "gauge",
            "Start of the process, in seconds since 1970.",
            process.start_seconds,
        );
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
