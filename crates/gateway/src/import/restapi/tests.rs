use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, ClusterKind};

use crate::{GatewayConfig, Import, Project, ProjectFile};

/// The API of a text, and everything that was said.
fn import(text: &str) -> (Option<Arc<Api>>, Vec<String>) {
    let config = GatewayConfig::default();
    let variables = HashMap::from([("BACKEND".to_owned(), "backend:9000".to_owned())]);
    let mut import = Import::new(&config, &variables);
    let file = ProjectFile { file: "api".into(), path: String::new(), bytes: text.as_bytes().to_vec().into() };
    let api = import.project(&Project { name: "project".into(), files: vec![file], more: None });
    (api.and_then(|imported| imported.api), import.notes.iter().map(ToString::to_string).collect())
}

/// A resource with these lines in its `spec`, which begins in line 5 with its sixth line.
fn with(lines: &str) -> String {
    let lines: String = lines.lines().map(|line| format!("  {line}\n")).collect();
    format!(
        "apiVersion: gateway.api-platform.wso2.com/v1\nkind: RestApi\nmetadata:\n  name: books\nspec:\n  displayName: Books\n  \
         version: v1.0\n  context: /books/$version\n{lines}"
    )
}

const UPSTREAM: &str = "upstream: {main: {url: 'http://b:1/x'}}\n";
const OPERATIONS: &str = "operations: [{method: GET, path: /}]\n";

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    assert_eq!(import(text).1, expected, "{text}");
}

#[test]
fn an_api_and_its_rows_of_policies() {
    let (api, notes) = import(&with(
        "upstream:\n  main: {ref: pair}\n  sandbox: {url: 'http://{{ env \"BACKEND\" }}/s'}\nupstreamDefinitions:\n\
         - name: pair\n  basePath: /v2\n  upstreams: [{url: 'http://a:1'}, {url: 'http://b:1'}]\n\
         vhosts: {main: Books.example.com, sandbox: try.example.com}\n\
         policies: [{name: respond, version: v1}]\noperations:\n- {method: get, path: '/*'}\n\
         - {method: POST, path: '/{id}', policies: [{name: log-message, version: v2, params: {a: [1, '1', null]}}]}\n",
    ));
    assert_eq!(notes, Vec::<String>::new());
    let api = api.unwrap();
    assert_eq!((&*api.name, &*api.version, &*api.base_path), ("Books", "v1.0", "/books/v1.0"));
    assert_eq!(api.vhosts, [Arc::from("books.example.com"), "try.example.com".into()]);
    assert_eq!(&*api.platform.as_ref().unwrap().handle, "books");
    let production = api.endpoints.production.as_ref().unwrap();
    assert_eq!(production.urls, [Arc::from("http://a:1/v2"), "http://b:1/v2".into()]);
    assert_eq!(production.kind, ClusterKind::LoadBalance);
    assert_eq!(&*api.endpoints.sandbox.as_ref().unwrap().urls[0], "http://backend:9000/s");
    let rows: Vec<(String, Vec<&str>)> = api
        .operations
        .iter()
        .map(|operation| {
            let names = operation.chain.iter().map(|step| &*step.name).collect();
            (format!("{} {}", operation.method, operation.path), names)
        })
        .collect();
    assert_eq!(rows, [("GET /*".into(), vec!["respond"]), ("POST /{id}".into(), vec!["respond", "log-message"])]);
    assert!(api.operations[1].chain[0].of_api && !api.operations[1].chain[1].of_api);
}

#[test]
fn mistakes_have_a_place() {
    let policies = |text: &str| with(&format!("{UPSTREAM}policies:\n{text}{OPERATIONS}"));
    says(
        &with(&format!("{UPSTREAM}{OPERATIONS}polices: []\n")),
        &["api:11:3: error: unknown key `polices`, did you mean `policies`?"],
    );
    says(
        &policies("- {name: jwt-aut, version: v1}\n"),
        &[
            "api:11:12: error: the policy `jwt-aut` is not known, did you mean `jwt-auth`?; an API is not served without one of its policies",
        ],
    );
    says(
        &policies("- name: jwt-auth\n  version: v1.0.2\n"),
        &["api:12:14: error: `version` of a policy is its major version alone, as `v1`, not `v1.0.2`"],
    );
    says(&policies("- {name: jwt-auth}\n"), &["api:11:5: error: the policy `jwt-auth` needs `version`, as `v1`"]);
    says(&policies("- {version: v1}\n"), &["api:11:5: error: a policy needs `name`"]);
    says(&with(OPERATIONS), &["api:6:3: error: `upstream` is missing"]);
    says(&with(UPSTREAM), &["api:6:3: error: `spec` needs `operations`, a list with one at the least"]);
}

#[test]
fn hosts_are_whole() {
    says(
        &with(&format!("{UPSTREAM}{OPERATIONS}vhosts: {{main: '*.example.com'}}\n")),
        &["api:11:11: error: `*` is a host alone and no part of one, as in `*.example.com`"],
    );
    assert_eq!(import(&with(&format!("{UPSTREAM}{OPERATIONS}vhosts: {{main: '*'}}\n"))).0.unwrap().vhosts.len(), 0);
}

#[test]
fn other_resources() {
    let kind = |kind: &str| with(&format!("{UPSTREAM}{OPERATIONS}")).replace("RestApi", kind);
    says(&kind("Mcp"), &["api:2:7: error: resources of the kind `Mcp` are not served; `RestApi` is"]);
    says(&kind("RestApis"), &["api:2:7: error: `kind` must be `RestApi`, not `RestApis`, did you mean `RestApi`?"]);
    says(&kind("ApiKey"), &["api:2:7: warning: left out: resources of the kind `ApiKey` have no effect here"]);
    let two = format!("{0}---\n{0}", kind("RestApi"));
    says(&two, &["api:11:1: error: a second document; only one is read"]);
    let undeployed = with(&format!("{UPSTREAM}{OPERATIONS}deploymentState: undeployed\n"));
    says(&undeployed, &["api:11:20: warning: left out: `deploymentState` is `undeployed`"]);
}
