//! Topics, from however many directions they were described in.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, At, Implementation, Operation, Policies};

use super::PUBLISH;
use crate::{Import, hint};
use penstock_catalog::path::PathPattern;

/// The topic of an API that names none: the API as a whole.
const ANY_TOPIC: &str = "/*";

/// One operation for each topic: `GET`, with what is said of publishing before what is said of subscribing.
pub(crate) fn join(operations: Vec<Arc<Operation>>) -> Vec<Arc<Operation>> {
    let mut joined: Vec<Arc<Operation>> = Vec::new();
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    for operation in operations {
        let place = *places.entry(operation.path.clone()).or_insert(joined.len());
        match joined.get_mut(place) {
            None => joined.push(operation),
            Some(known) => {
                let publishes = &*operation.method == PUBLISH;
                let (first, second) = if publishes { (&operation, &*known) } else { (&*known, &operation) };
                *known = Arc::new(one_of(first, second));
            }
        }
    }
    for operation in &mut joined {
        Arc::make_mut(operation).method = "GET".into();
    }
    joined
}

fn one_of(first: &Operation, second: &Operation) -> Operation {
    let mut one = first.clone();
    // One connection is for both, so it is open only when both are.
    one.secured |= second.secured;
    if one.scopes.is_empty() {
        one.scopes = second.scopes.clone();
    }
    if one.requirements.is_empty() {
        one.requirements = second.requirements.clone();
    }
    one.uri_mapping = one.uri_mapping.or_else(|| second.uri_mapping.clone());
    one.tier = one.tier.or_else(|| second.tier.clone());
    if any_policy(&one.policies).is_none() {
        one.policies = second.policies.clone();
    }
    one
}

/// What holds for every API of topics, however it was described.
pub(crate) fn finish(import: &mut Import<'_>, api: &mut Api) {
    if api.operations.is_empty() {
        let at = api.at.clone();
        let any = Operation { method: "GET".into(), path: ANY_TOPIC.into(), secured: true, at, ..Operation::default() };
        api.operations.push(Arc::new(any));
    }
    if api.kind == ApiKind::Sse {
        return;
    }
    for transport in &mut api.transports {
        match &**transport {
            "ws" => *transport = "http".into(),
            "wss" => *transport = "https".into(),
            _ => {}
        }
    }
    let mut idle = |at: &At, what: &str| {
        import.unprotected(at, format!("{what}: policies do not run on the frames of a WebSocket API"))
    };
    if let Some(at) = any_policy(&api.policies) {
        idle(at, "the policies of the API are ignored");
    }
    for operation in &api.operations {
        if let Some(at) = any_policy(&operation.policies) {
            idle(at, &format!("the policies of `{}` are ignored", operation.path));
        }
    }
    if api.schema_validation {
        idle(&api.at, "`enableSchemaValidation` is ignored");
        api.schema_validation = false;
    }
    if api.response_cache.take().is_some() {
        import.warn(&api.at, "`responseCachingEnabled` is ignored: a WebSocket API has no responses to keep");
    }
    if api.implementation == Implementation::Mock {
        import.error(&api.at, "a WebSocket API cannot be answered from examples");
    }
    for operation in &api.operations {
        if let Some(mapping) = &operation.uri_mapping {
            check_mapping(import, mapping, operation);
        }
    }
}

/// Where the first policy of any flow stands.
fn any_policy(policies: &Policies) -> Option<&At> {
    let mut all = policies.request.iter().chain(&policies.response).chain(&policies.fault);
    all.next().map(|policy| &policy.at)
}

/// Every parameter of a mapping must be one of its topic.
fn check_mapping(import: &mut Import<'_>, mapping: &str, operation: &Operation) {
    let known = PathPattern::parse(&operation.path).parameters;
    for inside in mapping.split('{').skip(1) {
        let Some((name, _)) = inside.split_once('}') else {
            import.error(&operation.at, format!("`x-uri-mapping` has an unclosed `{{`: `{mapping}`"));
            return;
        };
        let name = name.strip_prefix("uri.var.").unwrap_or(name);
        if !known.iter().any(|known| **known == *name) {
            let meant = hint(name, known.iter().map(|known| &**known));
            import.error(
                &operation.at,
                format!("`x-uri-mapping` names `{name}`, which is not a parameter of `{}`{meant}", operation.path),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_topics_are_joined_in_a_moment() {
        let operation = |number: usize, method: &str| {
            let path = format!("/topic/{number}/{}", "x".repeat(200)).into();
            Arc::new(Operation { method: method.into(), path, ..Operation::default() })
        };
        let all = (0..100_000).flat_map(|number| [operation(number, PUBLISH), operation(number, "SUBSCRIBE")]);
        let all: Vec<_> = all.collect();
        let started = std::time::Instant::now();
        let joined = join(all);
        assert!(joined.len() == 100_000 && joined.iter().all(|operation| &*operation.method == "GET"));
        assert!(started.elapsed().as_secs() < 5, "it does not take long because there are many");
    }
}
