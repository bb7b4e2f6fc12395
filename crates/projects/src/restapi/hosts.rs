//! `vhosts` of a `RestApi`: the hosts of the API, and the one by which requests go to the sandbox.

use std::sync::Arc;

use super::{known_keys, mapping};
use crate::Import;
use crate::document::Item;

/// Hosts of one API. A Kubernetes listener has at most 64 hostnames.
const HOSTS_MAX: usize = 100;

/// What an API says, or the configuration in its place.
pub(super) struct Hosts {
    /// Of the production backends; empty means any.
    pub main: Vec<Arc<str>>,
    /// Of the sandbox, when there is one.
    pub sandbox: Option<Arc<str>>,
}

/// Reads `vhosts`. A host for a sandbox that is not there has no meaning, as in the API Platform.
pub(super) fn read(import: &mut Import<'_>, spec: &Item<'_>, has_sandbox: bool) -> Hosts {
    let hosts = spec.get("vhosts").is_some().then(|| mapping(import, spec, "vhosts", spec.at())).flatten();
    let mut text_of = |key: &str| {
        let hosts = hosts.as_ref()?;
        let text = import.some_text_of(hosts, key)?;
        Some((text, hosts.get(key)?.at()))
    };
    let (main, sandbox) = (text_of("main"), text_of("sandbox"));
    if let Some(hosts) = &hosts {
        known_keys(import, hosts, &["main", "sandbox"]);
    }
    let defaults = &import.config.hosts;
    let mut names: Vec<Arc<str>> = match &main {
        Some((text, _)) => split(text),
        None => defaults.main.clone(),
    };
    if let Some((_, at)) = &main {
        for name in names.iter().filter(|name| !is_host(name.strip_prefix("*.").unwrap_or(name)) && &***name != "*") {
            import.error(at, format!("`{name}` is not a host: a name or `*.` before one is expected"));
        }
        if names.len() > HOSTS_MAX {
            import.error(at, format!("more than {HOSTS_MAX} hosts"));
        }
    }
    if names.iter().any(|name| &**name == "*") {
        names.clear();
    }
    let default = defaults.sandbox.clone();
    let sandbox = has_sandbox.then(|| match &sandbox {
        Some((text, at)) => {
            let name: Arc<str> = text.trim().to_ascii_lowercase().into();
            if !is_host(&name) {
                import.error(at, format!("`{name}` is not a host: a name is expected"));
            }
            if names.contains(&name) {
                import.error(at, "`main` and `sandbox` must be different hosts");
            }
            name
        }
        None => default,
    });
    Hosts { main: names, sandbox }
}

/// The names of a list with `;`, in lower case.
pub(super) fn split(text: &str) -> Vec<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for name in text.split(';').map(str::trim).filter(|name| !name.is_empty()) {
        let name: Arc<str> = name.to_ascii_lowercase().into();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_host(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}
