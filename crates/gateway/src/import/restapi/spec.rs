//! `spec` of a `RestApi`.

use std::sync::Arc;

use penstock_catalog::{Api, At, ChainStep, Endpoints, Operation, Platform, SecurityMode};

use super::{known_keys, list, mapping, steps, upstream};
use crate::import::Import;
use crate::import::document::Item;

/// The members of a specification.
const KEYS: [&str; 15] = [
    "displayName",
    "version",
    "context",
    "description",
    "upstream",
    "upstreamDefinitions",
    "vhosts",
    "subscriptionPlans",
    "policies",
    "faultPolicies",
    "operations",
    "deploymentState",
    "resilience",
    "definition",
    "projectId",
];

/// The methods an operation may have.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];

/// Operations of one API; what the largest definitions have is below a thousand.
const OPERATIONS_MAX: usize = 20_000;

/// As the original says it.
const CONTEXT_CHARS_MAX: usize = 200;

/// Reads an API; `None` after a mistake that leaves nothing to serve.
pub(super) fn read(import: &mut Import<'_>, spec: &Item<'_>, handle: Arc<str>) -> Option<Api> {
    known_keys(import, spec, &KEYS);
    let name = name(import, spec);
    let version = version(import, spec);
    let base_path = context(import, spec, version.as_deref().unwrap_or_default());
    for key in ["subscriptionPlans", "faultPolicies", "resilience"] {
        if let Some(item) = spec.get(key) {
            import.warn(&item.at(), format!("`{key}` has no effect here"));
        }
    }
    let endpoints = upstream::read(import, spec);
    let (vhosts, sandbox_host) = vhosts(import, spec, &endpoints);
    let of_api = steps::read(import, spec, true);
    let operations = operations(import, spec, &of_api);
    let mut api = Api {
        name: name?,
        version: version?,
        base_path: base_path?,
        vhosts,
        endpoints,
        operations,
        platform: Some(Arc::new(Platform { handle, sandbox_host })),
        ..Api::default()
    };
    api.security.oauth2 = false;
    api.security.application = SecurityMode::Off;
    Some(api)
}

fn name(import: &mut Import<'_>, spec: &Item<'_>) -> Option<Arc<str>> {
    let name = import.some_text_of(spec, "displayName");
    let Some(name) = name else {
        import.error(&spec.at(), "`spec` needs `displayName`");
        return None;
    };
    let is_good = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.' | ' ');
    if name.chars().count() > 100 || !name.chars().all(is_good) {
        let at = at_of(spec, "displayName");
        import.error(&at, "`displayName` is at most 100 letters, digits, blanks, `-`, `_` and `.`");
    }
    Some(name)
}

/// `v1.0`, `2`, `1.0.3`.
fn version(import: &mut Import<'_>, spec: &Item<'_>) -> Option<Arc<str>> {
    let Some(version) = import.some_text_of(spec, "version") else {
        import.error(&spec.at(), "`spec` needs `version`");
        return None;
    };
    let numbers: Vec<&str> = version.strip_prefix('v').unwrap_or(&version).split('.').collect();
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() > 3 || !numbers.iter().all(is_number) {
        import.error(&at_of(spec, "version"), format!("`version` is one to three numbers, as `v1.0`, not `{version}`"));
    }
    Some(version)
}

fn context(import: &mut Import<'_>, spec: &Item<'_>, version: &str) -> Option<Arc<str>> {
    let Some(context) = import.some_text_of(spec, "context") else {
        import.error(&spec.at(), "`spec` needs `context`");
        return None;
    };
    let at = at_of(spec, "context");
    if context.len() > 1 && context.ends_with('/') {
        import.error(&at, "`context` does not end with `/`");
        return None;
    }
    if context.chars().count() > CONTEXT_CHARS_MAX {
        import.error(&at, format!("`context` is longer than {CONTEXT_CHARS_MAX} characters"));
        return None;
    }
    import.base_path(&context.replace("$version", version), &at)
}

/// The hosts of the API, and the one by which requests go to the sandbox.
fn vhosts(import: &mut Import<'_>, spec: &Item<'_>, endpoints: &Endpoints) -> (Vec<Arc<str>>, Option<Arc<str>>) {
    let hosts = spec.get("vhosts").is_some().then(|| mapping(import, spec, "vhosts", spec.at())).flatten();
    let Some(hosts) = hosts else {
        if endpoints.sandbox.is_some() {
            let message = "requests reach the sandbox by the host `vhosts.sandbox`, which is not given";
            import.warn(&at_of(spec, "upstream"), message);
        }
        return (Vec::new(), None);
    };
    known_keys(import, &hosts, &["main", "sandbox"]);
    let host = |text: Arc<str>| Arc::<str>::from(text.to_ascii_lowercase());
    let main = import.some_text_of(&hosts, "main").map(host).filter(|main| &**main != "*");
    let sandbox = import.some_text_of(&hosts, "sandbox").map(host).filter(|_| endpoints.sandbox.is_some());
    for host in [&main, &sandbox].into_iter().flatten().filter(|host| host.contains('*')) {
        import.error(&hosts.at(), format!("`*` is a host alone and no part of one, as in `{host}`"));
    }
    if main.is_some() && main == sandbox {
        import.error(&hosts.at(), "`main` and `sandbox` must be different hosts");
    }
    match main {
        // Served on every host, of which one leads to the sandbox.
        None => (Vec::new(), sandbox),
        Some(main) => ([Some(main), sandbox.clone()].into_iter().flatten().collect(), sandbox),
    }
}

fn operations(import: &mut Import<'_>, spec: &Item<'_>, of_api: &[Arc<ChainStep>]) -> Vec<Arc<Operation>> {
    let Some(operations) = spec.get("operations").filter(|list| list.items().next().is_some()) else {
        import.error(&spec.at(), "`spec` needs `operations`, a list with one at the least");
        return Vec::new();
    };
    if operations.items().count() > OPERATIONS_MAX {
        import.error(&operations.at(), format!("more than {OPERATIONS_MAX} operations"));
        return Vec::new();
    }
    let mut found: Vec<Arc<Operation>> = Vec::new();
    for item in operations.items() {
        let Some(operation) = operation(import, &item, of_api) else { continue };
        let same = |other: &&Arc<Operation>| other.method == operation.method && other.path == operation.path;
        if let Some(other) = found.iter().find(same) {
            let message = format!(
                "{} {} is given twice; the one at line {} is served",
                operation.method, operation.path, other.at.line
            );
            import.warn(&item.at(), message);
            continue;
        }
        found.push(Arc::new(operation));
    }
    found
}

fn operation(import: &mut Import<'_>, item: &Item<'_>, of_api: &[Arc<ChainStep>]) -> Option<Operation> {
    if !item.is_map() {
        import.error(&item.at(), format!("an operation must be a mapping, not {}", item.kind()));
        return None;
    }
    known_keys(import, item, &["method", "path", "policies", "resilience", "description", "summary"]);
    let (method, path) = (import.some_text_of(item, "method"), import.some_text_of(item, "path"));
    let (Some(method), Some(path)) = (method, path) else {
        import.error(&item.at(), "an operation needs `method` and `path`");
        return None;
    };
    let method = method.to_ascii_uppercase();
    if !METHODS.contains(&&*method) {
        import.error(&at_of(item, "method"), format!("`method` must be one of {}, not `{method}`", list(&METHODS)));
        return None;
    }
    let at = at_of(item, "path");
    if !path.starts_with('/') {
        import.error(&at, format!("`path` must begin with `/`, not `{path}`"));
        return None;
    }
    if path.matches('{').count() != path.matches('}').count() {
        import.error(&at, format!("the braces of `{path}` do not fit together"));
        return None;
    }
    if path.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'?' || byte == b'#') {
        import.error(&at, format!("`{path}` is no path"));
        return None;
    }
    let own = steps::read(import, item, false);
    let chain = of_api.iter().cloned().chain(own).collect();
    Some(Operation { method: method.into(), path, chain, at: item.at(), ..Operation::default() })
}

fn at_of(map: &Item<'_>, key: &str) -> At {
    map.get(key).map_or_else(|| map.at(), |item| item.at())
}
