//! Operation policies over real sockets: actions of Choreo Connect, Synapse sequences, policy agents, mock answers.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod actions;
mod agents;
mod built_in;
mod classes;
mod guardrails;
mod lambda;
mod mocks;
mod projects;
mod sequences;
mod threats;

use std::sync::Arc;

use penstock_catalog::{Api, At, Policies, PolicyDefinition, PolicyUse};
use penstock_testkit::gateway::{Answer, Backend, Received, Reply, Setup, TestGateway, api};

/// Shows a request in its answer.
fn show(request: &Received) -> Answer {
    let headers = request.headers.iter().filter(|(name, _)| name.starts_with("x-") || name == "foo");
    let headers: Vec<String> = headers.map(|(name, value)| format!("{name}={value}")).collect();
    let text = format!("{} {} [{}] {}", request.method, request.target, headers.join(" "), request.text());
    Answer::new(200, "text/plain", text).with("x-from-backend", "1")
}

fn using(name: &str, parameters: &[(&str, &str)]) -> PolicyUse {
    PolicyUse {
        name: name.into(),
        version: "v1".into(),
        parameters: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        definition: None,
        at: At { file: "api.yaml".into(), line: 7, column: 3 },
    }
}

fn defined(mut policy: PolicyUse, actions: Option<&str>, synapse: Option<&str>) -> PolicyUse {
    let template = |text: Option<&str>, ending: &str| {
        text.map(|text| (text.into(), At { file: format!("Policies/own.{ending}").into(), line: 1, column: 1 }))
    };
    policy.definition = Some(Arc::new(PolicyDefinition {
        attributes: Vec::new(),
        actions: template(actions, "gotmpl"),
        synapse: template(synapse, "j2"),
    }));
    policy
}

fn open_api(backend: &Backend, operations: &[&str], policies: Policies) -> Api {
    let mut api = api("/shop", &format!("{}/v2", backend.url()), operations);
    for operation in &mut api.operations {
        let operation = Arc::get_mut(operation).unwrap();
        operation.secured = false;
        operation.policies = policies.clone();
    }
    api
}

fn request(policies: Vec<PolicyUse>) -> Policies {
    Policies { request: policies, ..Policies::default() }
}

fn response(policies: Vec<PolicyUse>) -> Policies {
    Policies { response: policies, ..Policies::default() }
}

fn action(action: &str, parameters: &str) -> PolicyUse {
    let template =
        format!("definition:\n  action: {action}\n  parameters:\n    {}\n", parameters.replace("; ", "\n    "));
    defined(using(action, &[]), Some(&template), None)
}

fn get(policies: Policies, operation: &str, target: &str) -> Reply {
    let backend = Backend::start(show);
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &[operation], policies)]));
    gateway.client().get(target, &[("x-client", "c"), ("foo", "bar")])
}
