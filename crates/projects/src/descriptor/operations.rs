//! `operations` and `apiPolicies`.

use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, Flows, Operation, Policies, PolicyUse};
use penstock_graphql::OperationKind;

use crate::document::Item;
use crate::openapi::METHODS;
use crate::{Import, asyncapi, hint};

/// Reads the operations of a descriptor, and the policies that hold for all of them.
pub(super) fn read(import: &mut Import<'_>, data: &Item<'_>, api: &mut Api) {
    if let Some(policies) = data.get("apiPolicies") {
        api.policies = flows(import, &policies);
    }
    let list = data.get("operations");
    for item in list.iter().flat_map(|list| list.items()) {
        api.operations.extend(operation(import, &item, api.kind).map(Arc::new));
    }
    if matches!(api.kind, ApiKind::WebSocket | ApiKind::Sse) {
        api.operations = asyncapi::join(std::mem::take(&mut api.operations));
    }
    if api.operations.is_empty() && api.kind == ApiKind::Soap {
        let operation = Operation {
            method: "POST".into(),
            path: "/*".into(),
            secured: true,
            at: data.at(),
            ..Operation::default()
        };
        api.operations.push(Arc::new(operation));
    }
}

fn operation(import: &mut Import<'_>, item: &Item<'_>, api: ApiKind) -> Option<Operation> {
    let verb = import.some_text_of(item, "verb");
    let Some(path) = import.some_text_of(item, "target") else {
        import.error(&item.at(), "an operation needs `target`");
        return None;
    };
    let at = item.get("target").map_or_else(|| item.at(), |target| target.at());
    let Some(verb) = verb else {
        import.error(&item.at(), "an operation needs `verb`");
        return None;
    };
    // Operations of a GraphQL API have a name instead of a path.
    let of_query = api == ApiKind::GraphQl;
    let known = OperationKind::ALL.map(OperationKind::word);
    let known: &[&str] = if of_query { &known } else { &METHODS };
    let of_topic = asyncapi::verb(&verb).filter(|_| matches!(api, ApiKind::WebSocket | ApiKind::WebSub | ApiKind::Sse));
    if of_topic.is_none() && !known.contains(&&*verb.to_ascii_lowercase()) {
        let meant = hint(&verb.to_ascii_lowercase(), known.iter().copied());
        import.error(&item.at(), format!("unknown method `{verb}`{meant}"));
        return None;
    }
    let path = match path.strip_prefix('/') {
        Some(name) if of_query => name.into(),
        Some(_) => path,
        None if of_query => path,
        None => format!("/{path}").into(),
    };
    let kind = import.text_of(item, "authType");
    let policies = item.get("operationPolicies").map(|policies| flows(import, &policies)).unwrap_or_default();
    let lambda = import.lambda(item, ["amznResourceName", "amznResourceTimeout", "amznResourceContentEncoded"]);
    Some(Operation {
        method: of_topic.map_or_else(|| verb.to_ascii_uppercase().into(), Into::into),
        path,
        secured: !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("None")),
        tier: import.some_text_of(item, "throttlingPolicy"),
        scopes: import.texts_of(item, "scopes"),
        uri_mapping: import.some_text_of(item, "uriMapping"),
        lambda,
        policies,
        at,
        ..Operation::default()
    })
}

/// The policies of each flow.
pub(crate) fn flows(import: &mut Import<'_>, item: &Item<'_>) -> Policies {
    if !item.is_map() {
        import.error(&item.at(), format!("policies must be a mapping of flows, not {}", item.kind()));
        return Policies::default();
    }
    for (key, at, _) in item.entries() {
        const FLOWS: [&str; 3] = ["request", "response", "fault"];
        if !FLOWS.contains(&&**key) {
            import.warn(&at, format!("unknown flow `{key}` is ignored{}", hint(key, FLOWS.into_iter())));
        }
    }
    let mut flow = |key: &str| {
        let list = item.get(key);
        let items: Vec<Item<'_>> = list.iter().flat_map(|list| list.items()).collect();
        items.iter().filter_map(|one| policy(import, one)).collect()
    };
    Flows { request: flow("request"), response: flow("response"), fault: flow("fault") }
}

fn policy(import: &mut Import<'_>, item: &Item<'_>) -> Option<PolicyUse> {
    let Some(name) = import.some_text_of(item, "policyName") else {
        import.error(&item.at(), "a policy needs `policyName`");
        return None;
    };
    let mut parameters = Vec::new();
    for (key, _, value) in item.get("parameters").iter().flat_map(|all| all.entries()) {
        let text = match value.text() {
            Some(text) => text.clone(),
            None if value.is_null() => "".into(),
            None => value.json().to_string().into(),
        };
        parameters.push((key.clone(), text));
    }
    let version = import.some_text_of(item, "policyVersion").unwrap_or_else(|| "v1".into());
    Some(PolicyUse { name, version, parameters, definition: None, at: item.at() })
}
