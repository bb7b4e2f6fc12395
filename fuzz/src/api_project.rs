//! API projects: importing any bytes ends, reports why there is no API, and is deterministic.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::Severity;
use penstock_projects::{Import, ImportConfig, Project, ProjectFile};

/// Pieces of definitions and descriptors.
pub const DICTIONARY: &[&str] = &[
    "openapi: 3.0.1\n",
    "swagger: '2.0'\n",
    "asyncapi: 2.0.0\n",
    "info: {title: A, version: 1.0.0}\n",
    "x-wso2-basePath: /a\n",
    "x-wso2-production-endpoints: {urls: [http://b]}\n",
    "'#/x-wso2-endpoints/e'",
    "x-wso2-endpoints: [{e: {urls: [http://n]}}]\n",
    "advanceEndpointConfig: {timeoutInMillis: 1, retryConfig: {count: 9, statusCodes: [504]}}\n",
    "x-wso2-cors: {accessControlAllowOrigins: ['*']}\n",
    "x-wso2-request-interceptor: {serviceURL: 'http://i:1', includes: [request_body]}\n",
    "x-auth-type: None\n",
    "paths:\n  /x/{y}.z/*:\n    get: {}\n",
    "$ref: '#/paths/~1x'\n",
    "security: [{key: [scope]}]\n",
    "components: {securitySchemes: {key: {type: apiKey, in: header, name: X}}}\n",
    "servers: [{url: 'http://{h}/', variables: {h: {default: q}}}]\n",
    "type: api\ndata:\n",
    "  name: A\n  context: /{version}/a\n  version: 1.0.0\n",
    "endpointConfig: {endpoint_type: failover, production_endpoints: {url: 'http://${HOST}'}}\n",
    "operations: [{target: /x, verb: GET, operationPolicies: {request: [{policyName: p}]}}]\n",
    "securityScheme: [oauth2, mutualssl_mandatory]\n",
    "&a ",
    "*a",
    "[[[[",
    "\"\\ud83d\\ude00\"",
    "\t",
    "{\"openapi\": \"3.1.0\", ",
];

const DESCRIPTOR: &str = "type: api\ndata:\n  name: A\n  context: /a\n  version: 1.0.0\n  isDefaultVersion: true\n  \
                          endpointConfig: {production_endpoints: {url: http://b}}\n  \
                          operations: [{target: /x, verb: GET}]\n";

const DEFINITION: &str = "openapi: 3.0.1\ninfo: {title: A, version: 1.0.0}\npaths: {/x: {get: {}}}\n";

/// Any bytes, as a definition alone, as a descriptor and as the definition of one.
pub fn import(data: &[u8]) {
    check(&[("", data)]);
    check(&[("api.yaml", data), ("Definitions/swagger.yaml", DEFINITION.as_bytes())]);
    check(&[
        ("api.yaml", DESCRIPTOR.as_bytes()),
        ("Definitions/swagger.yaml", data),
        ("Policies/p_v1.yaml", data),
        ("deployment_environments.yaml", data),
        ("Client-certificates/client_certificates.yaml", data),
    ]);
}

fn check(files: &[(&str, &[u8])]) {
    let first = outcome(files);
    assert_eq!(first, outcome(files), "importing the same twice gives something else");
}

fn outcome(files: &[(&str, &[u8])]) -> (Option<String>, Vec<String>) {
    let files = files.iter().map(|(path, bytes)| ProjectFile {
        file: if path.is_empty() { Arc::from("alone") } else { Arc::from(*path) },
        path: (*path).to_owned(),
        bytes: bytes.to_vec().into(),
    });
    let project = Project { name: "project".into(), files: files.collect(), more: None };
    let config = ImportConfig::default();
    let variables = HashMap::from([("HOST".to_owned(), "h".to_owned())]);
    let mut import = Import::new(&config, &variables);
    let imported = import.project(&project);
    let failed = import.notes.iter().any(|note| note.severity == Severity::Error);
    assert!(import.notes.iter().all(|note| note.at.line > 0 && note.at.column > 0), "{:?}", import.notes);
    let api = imported.and_then(|imported| {
        assert_eq!(imported.api.is_none(), failed, "{:?}", import.notes);
        imported.api
    });
    if let Some(api) = &api {
        assert!(api.base_path.starts_with('/') && !api.operations.is_empty());
        assert!(api.operations.iter().all(|operation| operation.path.starts_with('/')));
    }
    (api.map(|api| format!("{api:?}")), import.notes.iter().map(ToString::to_string).collect())
}
