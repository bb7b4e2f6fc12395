//! What operators switch on and off: proxy services, endpoints, log lines of artifacts. A reload does not undo it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use penstock_engine::background::SavedStates;
use penstock_engine::endpoint::Endpoint;
use penstock_engine::{Program, Registry};

use crate::serve::service_states::RegistryStates;

/// The kind under which the state of a proxy service is saved.
const PROXY: &str = "proxy";

/// The switches of the process.
pub struct Switches {
    states: RegistryStates,
    set: Mutex<Set>,
}

#[derive(Default)]
struct Set {
    /// Endpoints that are switched off.
    endpoints: BTreeSet<String>,
    /// Whether an artifact's requests have log lines, by kind and name.
    traced: BTreeMap<(&'static str, String), bool>,
    /// Whether an artifact is counted for statistics, by kind and name.
    counted: BTreeMap<(&'static str, String), bool>,
}

/// What can be enabled and disabled of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// Log lines of each request.
    Trace,
    /// Statistics.
    Statistics,
}

impl Switches {
    /// Nothing is switched. The states of proxy services are those of the registry.
    pub fn new(registry: Arc<Registry>) -> Switches {
        Switches { states: RegistryStates::new(registry), set: Mutex::default() }
    }

    /// Sets the switches of a program before it is served. Switches of artifacts that are no longer deployed are dropped.
    pub fn apply(&self, program: &Program) {
        for proxy in program.routes.proxies() {
            if let Some(is_stopped) = self.states.paused(PROXY, &proxy.name) {
                proxy.is_stopped.set(is_stopped);
            }
        }
        let mut set = self.lock();
        set.endpoints.retain(|name| match endpoint(program, name) {
            Some(endpoint) => {
                endpoint.state.switch(false);
                true
            }
            None => false,
        });
        for ((kind, name), is_traced) in &set.traced {
            trace(program, kind, name, *is_traced);
        }
    }

    /// Starts or stops a proxy service; `false` when there is none. Its state outlives restarts.
    pub fn start_proxy(&self, program: &Program, name: &str, starts: bool) -> bool {
        let Some(proxy) = program.routes.proxy(name) else { return false };
        proxy.is_stopped.set(!starts);
        self.states.save(PROXY, name, !starts);
        true
    }

    /// Switches an endpoint on or off; `false` when there is none.
    pub fn switch_endpoint(&self, program: &Program, name: &str, on: bool) -> bool {
        let Some(endpoint) = endpoint(program, name) else { return false };
        endpoint.state.switch(on);
        let mut set = self.lock();
        if on {
            set.endpoints.remove(name);
        } else {
            set.endpoints.insert(name.to_owned());
        }
        true
    }

    /// Enables or disables an aspect of an artifact that is deployed.
    pub fn enable(&self, program: &Program, aspect: Aspect, kind: &'static str, name: &str, enables: bool) {
        let mut set = self.lock();
        let switches = match aspect {
            Aspect::Trace => &mut set.traced,
            Aspect::Statistics => &mut set.counted,
        };
        switches.insert((kind, name.to_owned()), enables);
        if aspect == Aspect::Trace {
            trace(program, kind, name, enables);
        }
    }

    /// Whether an aspect of an artifact is enabled; `None` when no operator switched it.
    pub fn is_enabled(&self, aspect: Aspect, kind: &'static str, name: &str) -> Option<bool> {
        let set = self.lock();
        let switches = match aspect {
            Aspect::Trace => &set.traced,
            Aspect::Statistics => &set.counted,
        };
        switches.get(&(kind, name.to_owned())).copied()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The endpoint of a name.
pub(super) fn endpoint<'p>(program: &'p Program, name: &str) -> Option<&'p Arc<Endpoint>> {
    program.endpoint_names.get(name).map(|id| program.endpoint(*id))
}

/// Sets the log lines of a proxy service or an API; other kinds have none of their own.
fn trace(program: &Program, kind: &str, name: &str, is_traced: bool) {
    match kind {
        "proxy" => {
            if let Some(proxy) = program.routes.proxy(name) {
                proxy.is_traced.set(is_traced);
            }
        }
        "api" => {
            let named = program.routes.apis().iter().filter(|api| api_name(&api.name) == name || &*api.name == name);
            named.for_each(|api| api.is_traced.set(is_traced));
        }
        _ => {}
    }
}

/// The name of an API as its artifact writes it: a program adds `:vVERSION`.
fn api_name(name: &str) -> &str {
    name.split_once(":v").map_or(name, |(name, _)| name)
}
