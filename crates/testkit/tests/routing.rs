//! Which operation of a managed API gets a request, over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use penstock_compile::{Input, InputKind};
use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway};

/// A definition that stands alone, with everything its import reports.
fn start(paths: &str, backend: &Backend) -> TestGateway {
    let text = format!(
        "openapi: 3.0.1\ninfo: {{title: Tasks, version: 1.0.0}}\nx-wso2-basePath: /tasks\n\
         x-wso2-production-endpoints: {{urls: ['{}']}}\npaths:\n{paths}",
        backend.url()
    );
    let kind = InputKind::Api { project: "tasks.yaml".into(), path: String::new() };
    let input = Input { file: "tasks.yaml".into(), bytes: text.into_bytes().into(), kind };
    TestGateway::try_start(Setup { inputs: vec![input], ..Setup::of([]) }).0
}

fn backend() -> Backend {
    Backend::start(|_| Answer::new(200, "text/plain", "answered"))
}

#[test]
fn an_open_operation_does_not_answer_for_a_protected_one_that_is_more_specific() {
    let backend = backend();
    let paths = "  /jobs/{id}: {get: {x-wso2-disable-security: true}}\n  \
         /jobs/{id}:purge: {get: {}}\n  \
         /jobs/{id},{step}: {get: {}}\n  \
         /jobs/root-{id}: {get: {}}\n  \
         /jobs/all users: {get: {}}\n  \
         /{kind}/x/y: {get: {x-wso2-disable-security: true}}\n  \
         /jobs/{id}/{part}: {get: {}}\n";
    let gateway = start(paths, &backend);
    assert_eq!(gateway.diagnostics, Vec::<String>::new());
    let mut client = gateway.client();
    for (path, status) in [
        ("/tasks/jobs/1", 200),
        ("/tasks/jobs/1:purge", 401),
        ("/tasks/jobs/1:purge/", 401),
        ("/tasks/jobs/1,2", 401),
        ("/tasks/jobs/root-1", 401),
        ("/tasks/jobs/all%20users", 401),
        ("/tasks/jobs/x/y", 401),
        ("/tasks/other/x/y", 200),
    ] {
        assert_eq!(client.get(path, &[]).status, status, "{path}");
    }
}

#[test]
fn a_slash_at_the_end_chooses_between_paths_that_differ_only_by_it() {
    let backend = backend();
    let gateway = start("  /lists: {get: {x-wso2-disable-security: true}}\n  /lists/: {get: {}}\n", &backend);
    let mut client = gateway.client();
    assert_eq!(client.get("/tasks/lists", &[]).status, 200);
    assert_eq!(client.get("/tasks/lists/", &[]).status, 401);
}

#[test]
fn an_api_whose_open_operation_hides_a_protected_one_is_not_served() {
    let backend = backend();
    let gateway = start("  /y/{a}: {get: {x-wso2-disable-security: true}}\n  /y/{b}: {get: {}}\n", &backend);
    assert_eq!(
        gateway.diagnostics,
        ["tasks.yaml:7:12: error: `GET /y/{b}` can never be reached: `GET /y/{a}` in line 6 takes the same paths, \
          without credentials"]
    );
    assert_eq!(gateway.client().get("/tasks/y/1", &[]).status, 404);
}

#[test]
fn open_operations_pass_on_what_the_client_sends() {
    let backend = backend();
    let paths = "  /open: {get: {x-wso2-disable-security: true}}\n  \
         /closed: {get: {x-wso2-disable-security: true, x-wso2-forward-credentials: false}}\n";
    let gateway = start(paths, &backend);
    assert_eq!(gateway.diagnostics, Vec::<String>::new());
    let mut client = gateway.client();
    for (path, expected) in [("/tasks/open", Some("Basic Ym9iOng=")), ("/tasks/closed", None)] {
        assert_eq!(client.get(path, &[("Authorization", "Basic Ym9iOng=")]).status, 200);
        assert_eq!(backend.last().header("authorization"), expected, "{path}");
    }
}
