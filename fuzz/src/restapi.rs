//! APIs of the API Platform: reading any bytes ends, within the limits, and so does making its policies;
//! what is wrong is said with a place, and said the same again.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::{CompileOptions, Input, InputKind, Severity, compile_with};
use penstock_gateway::Gateway;
use penstock_projects::{Import, ImportConfig, Project, ProjectFile};

/// Pieces of such files.
pub const DICTIONARY: &[&str] = &[
    "apiVersion: gateway.api-platform.wso2.com/v1\nkind: RestApi\nmetadata: {name: a}\nspec:\n",
    "  displayName: A\n  version: v1.0\n  context: /a/$version\n",
    "  upstream: {main: {url: 'http://b'}}\n",
    "  upstream: {main: {ref: r}, sandbox: {url: 'http://s'}}\n",
    "  upstreamDefinitions: [{name: r, basePath: /x, upstreams: [{url: 'http://u', weight: 3}], timeout: {connect: 5s}}]\n",
    "  vhosts: {main: m.example.com, sandbox: s.example.com}\n",
    "  operations:\n  - {method: GET, path: '/{x}/*'}\n",
    "  policies:\n  - {name: respond, version: v1, params: {statusCode: 200}}\n",
    "executionCondition: 'true'",
    "{{ env \"HOST\" | default \"d\" }}",
    "limits: [{requests: 5, duration: 1h30m, burst: 2}]",
    "quotas: [{name: q, limits: [{limit: 5, duration: 1m}]}]",
    "keyExtraction: [{type: header, key: X, match: {type: regex, value: '^a'}}]",
    "costExtraction: {enabled: true, default: 0, sources: [{type: response_body, jsonPath: $.a, multiplier: 2}]}",
    "request: {headers: [{name: X, value: y}]}",
    "request: {enabled: true, min: 1, max: 5, jsonPath: $.a, invert: true}",
    "request: {regex: '(a|b)*', schema: '{}'}",
    "endpoint: http://i:1, request: {includeRequestBody: false, passthroughOnError: true}",
    "pathRewrite: {type: ReplaceRegexMatch, replaceRegexMatch: {pattern: '(a)', substitution: '\\1'}}",
    "queryRewrite: {rules: [{action: Add, name: a, value: b}]}",
    "allowedOrigins: ['*'], allowCredentials: true, maxAge: 60",
    "scopes: {allOf: [a], anyOf: [b]}, claims: {anyOf: [{claim: c, values: [d]}]}",
    "&a ",
    "*a",
    "[[[[",
];

/// Policies whose parameters are made of the bytes, by the first of them.
const POLICIES: [&str; 12] = [
    "advanced-ratelimit",
    "api-key-auth",
    "basic-auth",
    "basic-ratelimit",
    "cors",
    "interceptor-service",
    "json-schema-guardrail",
    "jwt-auth",
    "log-message",
    "modify-headers",
    "regex-guardrail",
    "request-rewrite",
];

const HEAD: &str = "apiVersion: gateway.api-platform.wso2.com/v1\nkind: RestApi\nmetadata: {name: a}\nspec:\n  displayName: A\n  \
                    version: v1.0\n  context: /a\n  upstream: {main: {url: 'http://b'}}\n  \
                    operations: [{method: GET, path: /x}]\n  policies:\n  - name: ";

/// Any bytes, as a file and as the parameters of a policy.
pub fn resource(data: &[u8]) {
    check(data.to_vec());
    if let Some((first, rest)) = data.split_first() {
        let policy = POLICIES[usize::from(*first) % POLICIES.len()];
        let head = format!("{HEAD}{policy}\n    version: v1\n    params: {{");
        check([head.as_bytes(), rest, b"}\n"].concat());
    }
}

fn check(bytes: Vec<u8>) {
    let first = import(&bytes);
    assert_eq!(first, import(&bytes), "importing the same twice gives something else");
    let gateway = Gateway::new(Arc::default(), Arc::default());
    let kind = InputKind::Api { project: "a.yaml".into(), path: String::new() };
    let input = Input { file: "a.yaml".into(), bytes: bytes.into(), kind };
    let compiled = compile_with(&[input], &penstock_mediators::REGISTRY, &CompileOptions::default(), &[&gateway]);
    let errors: Vec<_> = compiled.diagnostics.iter().filter(|note| note.severity == Severity::Error).collect();
    assert!(errors.iter().all(|error| error.at.line > 0 && error.at.column > 0), "{errors:?}");
    let is_good = compiled.artifacts.iter().all(|artifact| artifact.good);
    assert_eq!(is_good, errors.is_empty() || compiled.artifacts.is_empty(), "{errors:?}");
}

fn import(bytes: &[u8]) -> (Option<String>, Vec<String>) {
    let file = ProjectFile { file: "a.yaml".into(), path: String::new(), bytes: bytes.to_vec().into() };
    let config = ImportConfig::default();
    let variables = HashMap::from([("HOST".to_owned(), "h".to_owned())]);
    let mut import = Import::new(&config, &variables);
    let imported = import.project(&Project { name: "a.yaml".into(), files: vec![file], more: None });
    let api = imported.and_then(|imported| imported.api);
    (api.map(|api| format!("{api:?}")), import.notes.iter().map(ToString::to_string).collect())
}
