//! Paths and their operations.

use std::sync::Arc;

use penstock_catalog::{Endpoints, Interceptor, LambdaFunction, Operation, Requirement};

use super::extensions::{self, Level};
use super::reference::resolve;
use super::{Examples, endpoints, mock, security, tier};
use crate::document::Item;
use crate::{Definition, Import, hint};

/// The methods of a path item.
pub(crate) const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Operations of one API. More is a generator that went wrong.
const OPERATIONS_MAX: usize = 20_000;

/// What a level gives to those below it.
#[derive(Clone, Default)]
struct Inherited {
    secured: Option<bool>,
    forwards_credentials: Option<bool>,
    requirements: Vec<Requirement>,
    request_interceptor: Option<Interceptor>,
    response_interceptor: Option<Interceptor>,
    endpoints: Option<Endpoints>,
    lambda: Option<LambdaFunction>,
}

/// All operations, in the order written.
pub(super) fn read(
    import: &mut Import<'_>,
    root: Item<'_>,
    kind: Definition,
    examples: Examples,
    api_has_tier: bool,
) -> Vec<Arc<Operation>> {
    let Some(paths) = root.get("paths") else {
        import.error(&root.at(), "a definition needs `paths`");
        return Vec::new();
    };
    let api = Inherited {
        requirements: security::requirements(import, root, &root).unwrap_or_default(),
        ..inherited(import, &root, &Inherited::default())
    };
    let mut operations = Vec::new();
    for (path, at, item) in paths.entries() {
        if path.starts_with("x-") {
            continue;
        }
        if !path.starts_with('/') {
            import.error(&at, format!("the path `{path}` must begin with `/`"));
            continue;
        }
        let Some(item) = resolve(import, root, item) else { continue };
        let mut of_path = inherited(import, &item, &api);
        of_path.endpoints = path_endpoints(import, &root, &item);
        extensions::check(import, &item, Level::Path);
        for (key, at, value) in item.entries() {
            let method = key.to_ascii_lowercase();
            if !METHODS.contains(&&*method) {
                const OTHERS: [&str; 5] = ["parameters", "summary", "description", "servers", "$ref"];
                const OF_OPERATIONS: [&str; 5] = ["security", "tags", "operationId", "responses", "deprecated"];
                if OF_OPERATIONS.contains(&&**key) {
                    import.warn(&at, format!("`{key}` is ignored at a path; it belongs to operations"));
                } else if !OTHERS.contains(&&**key) && !key.starts_with("x-") {
                    import
                        .warn(&at, format!("`{key}` is not a method; it is ignored{}", hint(key, METHODS.into_iter())));
                }
                continue;
            }
            if operations.len() >= OPERATIONS_MAX {
                import.error(&at, format!("more than {OPERATIONS_MAX} operations"));
                return operations;
            }
            let read = Read { root, kind, examples, api_has_tier };
            let mut operation = read.operation(import, &value, &of_path);
            operation.path = path.clone();
            operation.method = method.to_ascii_uppercase().into();
            operation.at = at;
            operations.push(Arc::new(operation));
        }
    }
    if operations.is_empty() && !import.failed() {
        import.error(&paths.at(), "the definition has no operation");
    }
    operations
}

/// What a level says, and what it leaves as it was.
fn inherited(import: &mut Import<'_>, item: &Item<'_>, above: &Inherited) -> Inherited {
    let forwards_credentials = import.flag_of(item, "x-wso2-forward-credentials");
    let mut interceptor = |key: &str| item.get(key).and_then(|value| import.interceptor(&value));
    let request_interceptor = interceptor("x-wso2-request-interceptor");
    let response_interceptor = interceptor("x-wso2-response-interceptor");
    let lambda = ["x-amzn-resource-name", "x-amzn-resource-timeout", "x-amzn-resource-contentEncoded"];
    Inherited {
        lambda: import.lambda(item, lambda).or_else(|| above.lambda.clone()),
        secured: security::secured(import, item).or(above.secured),
        forwards_credentials: forwards_credentials.or(above.forwards_credentials),
        request_interceptor: request_interceptor.or_else(|| above.request_interceptor.clone()),
        response_interceptor: response_interceptor.or_else(|| above.response_interceptor.clone()),
        ..above.clone()
    }
}

/// Backends of a path: the extensions, or its `servers`.
fn path_endpoints(import: &mut Import<'_>, root: &Item<'_>, item: &Item<'_>) -> Option<Endpoints> {
    let mut found = Endpoints { named: Vec::new(), ..endpoints::read(import, root, item) };
    if found.production.is_none() && found.sandbox.is_none() {
        found.production = endpoints::servers(import, item).0.map(Arc::new);
    }
    (found.production.is_some() || found.sandbox.is_some()).then_some(found)
}

struct Read<'d> {
    root: Item<'d>,
    kind: Definition,
    examples: Examples,
    api_has_tier: bool,
}

impl<'d> Read<'d> {
    fn operation(&self, import: &mut Import<'_>, item: &Item<'d>, above: &Inherited) -> Operation {
        extensions::check(import, item, Level::Operation);
        let own = inherited(import, item, above);
        // An empty list changes nothing: the API's requirements stay.
        let named = security::requirements(import, self.root, item).filter(|named| !named.is_empty());
        let requirements = named.unwrap_or(own.requirements);
        let own_tier = tier(import, item);
        if self.api_has_tier
            && let Some(tier) = own_tier.as_ref().filter(|tier| &***tier != "Unlimited")
        {
            import.warn(&item.at(), format!("the plan `{tier}` is ignored: the API has one for all its operations"));
        }
        Operation {
            id: import.some_text_of(item, "operationId"),
            secured: own.secured.unwrap_or(true),
            forwards_credentials: own.forwards_credentials,
            scopes: security::scopes(&requirements),
            requirements,
            tier: own_tier.filter(|_| !self.api_has_tier),
            endpoints: own.endpoints,
            request_interceptor: own.request_interceptor,
            response_interceptor: own.response_interceptor,
            mock: match self.examples {
                Examples::Read => mock::responses(import, self.root, item, self.kind),
                Examples::Skip => Vec::new(),
            },
            script: item.get("x-mediation-script").and_then(|script| Some((script.text()?.clone(), script.at()))),
            lambda: own.lambda,
            ..Operation::default()
        }
    }
}
