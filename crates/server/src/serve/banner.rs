//! What the server prints when it starts: ports, services, and the artifacts that failed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use penstock_compile::{Diagnostic, Severity};
use penstock_engine::ports::Level;
use penstock_gateway::GatewayPorts;

use super::ports::Ports;
use crate::build::Built;
use crate::config::{LogFormat, Settings, Surroundings};
use crate::log::Log;

/// Diagnostics of the start beyond this are counted, not printed: the artifacts have one mistake in many places.
const DIAGNOSTICS_MAX: usize = 200;

/// Names of services printed in full.
const SERVICES_MAX: usize = 60;

/// The text, ready to be printed when everything is served.
pub(super) struct Banner {
    /// The ports of integrations.
    ports: String,
    /// Everything else.
    text: String,
    compiled: Duration,
}

impl Banner {
    pub(super) fn new(built: &Built, settings: &Settings, surroundings: &Surroundings, ports: &Ports) -> Banner {
        let mut text = String::new();
        let host = &settings.hostname;
        let served = ports.served();
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "  HTTP     http://{host}:{}", served.http);
        match served.https {
            Some(port) if ports.self_signed => {
                let note = "self-signed certificate; set [tls] in penstock.toml";
                let _ = writeln!(text, "  HTTPS    https://{host}:{port}  ({note})");
            }
            Some(port) => {
                let _ = writeln!(text, "  HTTPS    https://{host}:{port}");
            }
            None => text.push_str("  HTTPS    off\n"),
        }
        let ports = std::mem::take(&mut text);
        let _ = writeln!(text, "  health   http://{host}:{}/healthz   metrics /metric-service/metrics", served.admin);
        if settings.trust_all {
            text.push_str("  warning  certificates of backends are not checked (tls.trust_all)\n");
        }
        for source in &surroundings.sources {
            let _ = writeln!(text, "  values   from {}", crate::build::shown(source));
        }
        services(&mut text, built);
        let faulty: Vec<_> = built.artifacts.iter().filter(|artifact| !artifact.good).collect();
        for artifact in &faulty {
            let _ = writeln!(text, "  FAILED   {} {} ({})", artifact.kind, artifact.name, artifact.at);
        }
        if built.artifacts.is_empty() {
            text.push_str(match settings.control {
                Some(_) => "  no APIs are deployed yet\n",
                None => "  no artifacts are deployed: every request gets 404\n",
            });
        }
        Banner { ports, text, compiled: built.took }
    }

    /// Adds the ports of managed APIs.
    pub(super) fn add_gateway(&mut self, open: Option<GatewayPorts>, settings: &Settings) {
        let host = &settings.hostname;
        let Some(open) = open else { return };
        let https = if settings.https { format!("   https://{host}:{}", open.https) } else { String::new() };
        let shared = if open.shared { "  (integrations too)" } else { "" };
        let _ = writeln!(self.ports, "  APIs     http://{host}:{}{https}{shared}", open.http);
    }

    /// Adds the port of the adapter.
    pub(super) fn add_adapter(&mut self, port: u16, settings: &Settings) {
        let (host, state) = (&settings.hostname, settings.adapter.state.display());
        let _ = writeln!(self.ports, "  adapter  https://{host}:{port}/api/mgw/adapter/0.1   keeps APIs in {state}");
    }

    /// Adds the port of the management API, or why there is none.
    pub(super) fn add_management(&mut self, ports: &Ports, settings: &Settings) {
        if let Some(port) = ports.served().management {
            let _ = writeln!(self.ports, "  manage   https://{}:{port}/management", settings.hostname);
        }
    }

    /// The text, with the time from the start of the process until now.
    pub(super) fn text(&self, elapsed: Duration) -> String {
        let (total, compiled) = (millis(elapsed), millis(self.compiled));
        let version = env!("CARGO_PKG_VERSION");
        format!(
            "Penstock {version} is ready after {total} ms ({compiled} ms to load and compile)\n{}{}",
            self.ports, self.text
        )
    }
}

fn millis(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

fn services(text: &mut String, built: &Built) {
    let mut lines: Vec<String> = Vec::new();
    for service in built.program.routes.router.iter().flat_map(|router| router.services()) {
        let name = format!("{}:{}", service.name, service.version);
        let hosts = if service.hosts.is_empty() { "" } else { "  on " };
        lines.push(format!("  managed  {name:<30} {}{hosts}{}", service.path, service.hosts.join(", ")));
    }
    for api in built.program.routes.apis() {
        lines.push(format!("  api      {:<30} {}", api.name, api.context));
    }
    let mut proxies: Vec<String> = built
        .program
        .routes
        .proxies()
        .map(|proxy| format!("  proxy    {:<30} /services/{}", proxy.name, proxy.name))
        .collect();
    proxies.sort();
    lines.extend(proxies);
    for line in lines.iter().take(SERVICES_MAX) {
        text.push_str(line);
        text.push('\n');
    }
    if lines.len() > SERVICES_MAX {
        let _ = writeln!(text, "  … and {} more services", lines.len() - SERVICES_MAX);
    }
    let others: usize = ["sequence", "endpoint", "template", "localEntry"].iter().map(|kind| built.good(kind)).sum();
    if others > 0 {
        let counted: Vec<String> = [
            ("sequence", "sequences"),
            ("endpoint", "endpoints"),
            ("template", "templates"),
            ("localEntry", "local entries"),
        ]
        .iter()
        .map(|(kind, plural)| (built.good(kind), *plural))
        .filter(|(count, _)| *count > 0)
        .map(|(count, plural)| format!("{plural}: {count}"))
        .collect();
        let _ = writeln!(text, "  also     {}", counted.join(", "));
    }
}

/// What the compiler had to say, a line each. Errors first: they are why something is not served.
pub(super) fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    let (errors, warnings): (Vec<_>, Vec<_>) =
        diagnostics.iter().partition(|diagnostic| diagnostic.severity == Severity::Error);
    for diagnostic in errors.iter().chain(&warnings).take(DIAGNOSTICS_MAX) {
        let _ = writeln!(text, "{diagnostic}");
    }
    if diagnostics.len() > DIAGNOSTICS_MAX {
        let _ = writeln!(text, "… and {} more; `penstock check` prints all", diagnostics.len() - DIAGNOSTICS_MAX);
    }
    text
}

/// Prints to a terminal; with JSON, logs line by line.
pub(super) fn tell(text: &str, settings: &Settings, log: &Log) {
    if settings.log_format == LogFormat::Text {
        return write(text);
    }
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        log.say(Level::Info, "Server", line);
    }
}

/// Writes to standard error; a closed pipe is ignored.
pub fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
