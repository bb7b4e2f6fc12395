use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, ClusterKind, Resilience};

use crate::{Import, ImportConfig, Project, ProjectFile};

/// The API of a text, and everything that was said.
fn import(text: &str) -> (Option<Arc<Api>>, Vec<String>) {
    let chain_policies = Some(vec!["jwt-auth", "log-message", "respond"]);
    let config = ImportConfig { chain_policies, ..ImportConfig::default() };
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
            "api:11:12: error: the policy `jwt-aut` is not supported, did you mean `jwt-auth`?; an API is not served without one of its policies",
        ],
    );
    says(
        &policies("- name: jwt-auth\n  version: v1.0.2\n"),
        &["api:12:14: error: `version` of a policy is its major version alone, as `v1`, not `v1.0.2`"],
    );
    says(&policies("- {name: jwt-auth}\n"), &["api:11:5: error: the policy `jwt-auth` needs `version`, as `v1`"]);
    says(&policies("- {version: v1}\n"), &["api:11:5: error: a policy needs `name`"]);
    says(&with(OPERATIONS), &["api:6:3: error: `upstream` is missing"]);
    says(&with(UPSTREAM), &["api:6:3: error: `spec` needs `operations`, a list of at least one operation"]);
}

#[test]
fn hosts_are_lists_with_defaults() {
    let hosts = |upstream: &str, vhosts: &str| {
        let (api, notes) = import(&with(&format!("{upstream}{OPERATIONS}{vhosts}")));
        assert_eq!(notes, Vec::<String>::new(), "{vhosts}");
        let api = api.unwrap();
        let sandbox = api.platform.as_ref().unwrap().sandbox_host.as_deref().unwrap_or_default().to_owned();
        (api.vhosts.iter().map(|host| host.to_string()).collect::<Vec<_>>().join(" "), sandbox)
    };
    let both = "upstream: {main: {url: 'http://b:1'}, sandbox: {url: 'http://s:1'}}\n";
    let of = |all: &str, sandbox: &str| (all.to_owned(), sandbox.to_owned());
    assert_eq!(hosts(UPSTREAM, ""), of("", ""));
    assert_eq!(hosts(UPSTREAM, "vhosts: {main: '*', sandbox: try.example.com}"), of("", ""));
    assert_eq!(
        hosts(UPSTREAM, "vhosts: {main: 'A.example.com; b.example.com;*.c.example.com'}"),
        of("a.example.com b.example.com *.c.example.com", "")
    );
    assert_eq!(hosts(both, ""), of("", "sandbox-*"));
    assert_eq!(hosts(both, "vhosts: {main: a.example.com}"), of("a.example.com sandbox-*", "sandbox-*"));
    for (vhosts, expected) in [
        (
            "{main: 'a*.example.com'}",
            "api:11:18: error: `a*.example.com` is not a host: a name or `*.` before one is expected",
        ),
        ("{main: a, sandbox: '*.a'}", "api:11:30: error: `*.a` is not a host: a name is expected"),
        ("{main: a, sandbox: A}", "api:11:30: error: `main` and `sandbox` must be different hosts"),
    ] {
        says(&with(&format!("{both}{OPERATIONS}vhosts: {vhosts}\n")), &[expected]);
    }
}

#[test]
fn operations_are_matched_by_path_and_fields() {
    let (api, notes) = import(&with(&format!(
        "{UPSTREAM}operations:\n- match: {{method: get, path: {{value: /a/{{x}}}}, headers: [{{name: X-A, value: b}}]}}\n  method: POST\n\
         - match: {{method: GET, path: {{value: /b/, type: PathPrefix}}}}\n\
         - {{method: GET, path: /c, matchHeaders: [{{name: x-a, value: 'v[0-9]', type: RegularExpression}}]}}\n\
         - {{method: GET, path: /c}}\n"
    ).replace("/a/{x}", "'/a/{x}'")));
    assert_eq!(notes, Vec::<String>::new());
    let operations = &api.unwrap().operations;
    let shown: Vec<String> =
        operations.iter().map(|one| format!("{} {} {}", one.method, one.path, one.header_matches.len())).collect();
    assert_eq!(shown, ["GET /a/{x} 1", "GET /b/* 0", "GET /c 1", "GET /c 0"]);
    assert!(operations[2].header_matches[0].is_pattern);
    for (operation, expected) in [
        ("{method: GET}", "error: an operation needs `method` and `path`, or `match` with both"),
        ("{match: {path: {value: /}}}", "error: `match` needs `method`"),
        (
            "{match: {method: GET, path: {value: /, type: Regex}}}",
            "error: `type` must be `Exact` or `PathPrefix`, not `Regex`",
        ),
        ("{method: GET, path: /, matchHeaders: [{name: 'a b', value: c}]}", "error: `a b` is not a header name"),
        (
            "{method: GET, path: /, matchHeaders: [{name: a, value: '(', type: RegularExpression}]}",
            "error: `(` is not a regular expression",
        ),
        ("{method: GET, path: /, upstream: {}}", "error: `upstream` of an operation needs `main` or `sandbox`"),
        ("{method: GET, path: /, upstream: {main: {ref: none}}}", "error: `upstreamDefinitions` has no `none`"),
        (
            "{method: GET, path: /, resilience: {timeout: 1h30m}}",
            "error: `timeout` must be a number with one unit, as `30s`, `500ms` or `1.5m`, not `1h30m`",
        ),
    ] {
        let (_, notes) = import(&with(&format!("{UPSTREAM}operations: [{operation}]\n")));
        let place = notes[0].split(' ').next().unwrap_or_default().to_owned();
        assert!(place.starts_with("api:10:") && notes.len() == 1, "{notes:?}");
        assert_eq!(notes[0].strip_prefix(&*format!("{place} ")), Some(expected));
    }
}

#[test]
fn timeouts_and_backends_of_operations_go_before_those_of_the_api() {
    let (api, notes) = import(&with(
        "upstream: {main: {url: 'http://b:1'}, sandbox: {ref: slow, hostRewrite: manual}}\nupstreamDefinitions:\n\
         - {name: slow, timeout: {connect: 6000ms}, upstreams: [{url: 'http://s:1'}]}\n\
         resilience: {timeout: 15s, idleTimeout: 30s}\noperations:\n- {method: GET, path: /a}\n\
         - {method: GET, path: /b, resilience: {timeout: 0s}, upstream: {main: {ref: slow}}}\n",
    ));
    assert_eq!(notes, Vec::<String>::new());
    let api = api.unwrap();
    let times = |index: usize| {
        let Resilience { timeout, idle_timeout } = api.operations[index].resilience;
        (timeout.unwrap().as_secs(), idle_timeout.unwrap().as_secs())
    };
    assert_eq!((times(0), times(1)), ((15, 30), (0, 30)));
    let own = api.operations[1].endpoints.as_ref().unwrap();
    let (main, sandbox) = (own.production.as_ref().unwrap(), own.sandbox.as_ref().unwrap());
    assert_eq!((&*main.urls[0], main.keeps_host, sandbox.keeps_host), ("http://s:1", false, true));
    assert_eq!(main.connect_timeout.unwrap().as_secs(), 6);
    assert!(api.operations[0].endpoints.is_none());
}

#[test]
fn other_resources() {
    let kind = |kind: &str| with(&format!("{UPSTREAM}{OPERATIONS}")).replace("RestApi", kind);
    says(&kind("Mcp"), &["api:2:7: error: resources of the kind `Mcp` are not supported; `RestApi` is"]);
    says(&kind("RestApis"), &["api:2:7: error: `kind` must be `RestApi`, not `RestApis`, did you mean `RestApi`?"]);
    says(&kind("ApiKey"), &["api:2:7: error: resources of the kind `ApiKey` are not supported; `RestApi` is"]);
    let two = format!("{0}---\n{0}", kind("RestApi"));
    says(&two, &["api:11:1: error: a second document; only one is read"]);
    let undeployed = with(&format!("{UPSTREAM}{OPERATIONS}deploymentState: undeployed\n"));
    says(&undeployed, &["api:11:20: warning: not served: `deploymentState` is `undeployed`"]);
}
