//! Serving another program from now on: what reloading and deploying have in common.

use std::sync::Arc;

use penstock_compile::{Diagnostic, Severity};
use penstock_engine::ports::Level;

use super::state::{Artifacts, State};
use crate::build::Built;
use crate::config::Settings;

/// Whether an error was not there before. A line number may move without the mistake being another.
pub fn is_new(diagnostic: &Diagnostic, before: &[Diagnostic]) -> bool {
    diagnostic.severity == Severity::Error
        && !before.iter().any(|old| old.at.file == diagnostic.at.file && old.message == diagnostic.message)
}

/// Gives new requests this program; those that run keep theirs. Opens the ports of managed APIs for the first of them.
pub fn swap(state: &State, settings: &Settings, built: Built, who: &str, what: &str) {
    let Built { program, diagnostics, artifacts, origin, took } = built;
    let good = artifacts.iter().filter(|artifact| artifact.good).count();
    let there_is_one = artifacts.iter().any(|artifact| artifact.good && artifact.kind == "managed-api");
    let log = &state.log;
    state.switches.apply(&program);
    state.current.swap(Arc::new(program));
    state.replace(Artifacts::new(artifacts, diagnostics, origin));
    if settings.opens_gateway(there_is_one) {
        match state.open_gateway() {
            Ok(None) => {}
            Ok(Some(ports)) => {
                let (http, https) = (ports.http, ports.https);
                let text = format!("the first managed API: the ports {http} (HTTP) and {https} (HTTPS) are open now");
                log.say(Level::Info, who, &text);
            }
            Err(failure) => log.say(Level::Error, who, &format!("managed APIs are not served: {failure}")),
        }
    }
    let took = took.as_secs_f64() * 1e3;
    log.say(Level::Info, who, &format!("{what}: {good} artifacts are served now ({took:.1} ms)"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_only_moved_is_not_new() {
        let error = |line, message: &str| Diagnostic {
            severity: Severity::Error,
            at: penstock_engine::Place { file: "a.xml".into(), line, column: 1 },
            message: message.into(),
        };
        assert!(!is_new(&error(7, "x"), &[error(3, "x")]));
        assert!(is_new(&error(3, "y"), &[error(3, "x")]));
    }
}
