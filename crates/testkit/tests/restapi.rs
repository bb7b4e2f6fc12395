//! APIs of WSO2's API Platform, served from their YAML over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "restapi/fields.rs"]
mod fields;
#[path = "restapi/guardrails.rs"]
mod guardrails;
#[path = "restapi/interceptor.rs"]
mod interceptor;
#[path = "restapi/limits.rs"]
mod limits;
#[path = "restapi/page.rs"]
mod page;
#[path = "restapi/served.rs"]
mod served;
#[path = "restapi/tokens.rs"]
mod tokens;

use penstock_compile::{Input, InputKind};
use penstock_testkit::gateway::{Backend, Setup, TestGateway};

/// An API with these policies and three operations, the last of which takes bodies.
fn api(backend: &Backend, policies: &str) -> String {
    let mut text = format!(
        "apiVersion: gateway.api-platform.wso2.com/v1\nkind: RestApi\nmetadata: {{name: books}}\nspec:\n  \
         displayName: Books\n  version: v1.0\n  context: /books\n  upstream: {{main: {{url: '{}/b'}}}}\n  operations:\n  \
         - {{method: GET, path: /list}}\n  - {{method: GET, path: '/one/{{id}}'}}\n  - {{method: POST, path: /list}}\n",
        backend.url()
    );
    if !policies.is_empty() {
        text.push_str("  policies:\n");
        for line in policies.lines().filter(|line| !line.trim().is_empty()) {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

/// A file that stands alone.
fn setup(text: &str) -> Setup {
    let kind = InputKind::Api { project: "api.yaml".into(), path: String::new() };
    let input = Input { file: "api.yaml".into(), bytes: text.as_bytes().to_vec().into(), kind };
    Setup { inputs: vec![input], ..Setup::of([]) }
}

fn start(text: &str) -> TestGateway {
    let gateway = TestGateway::start(setup(text).behind(&["127.0.0.1", "10.0.0.9"]));
    assert_eq!(gateway.diagnostics, Vec::<String>::new());
    gateway
}

/// What is said of a file that is not served.
fn refused(text: &str) -> Vec<String> {
    let (gateway, faulty) = TestGateway::try_start(setup(text));
    assert!(!faulty.is_empty(), "it is served:\n{text}");
    gateway.diagnostics.clone()
}
