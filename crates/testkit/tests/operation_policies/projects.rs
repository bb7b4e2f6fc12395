//! Policies of projects.

use penstock_testkit::gateway::{Backend, Setup, TestGateway};

use crate::show;

const DESCRIPTOR: &str = r#"type: api
version: v4.3.0
data:
  name: Shop
  version: 1.0.0
  context: /shop
  type: HTTP
  provider: admin
  lifeCycleStatus: PUBLISHED
  transport: [http, https]
  securityScheme: [oauth2]
  endpointConfig:
    endpoint_type: http
    production_endpoints: { url: "BACKEND/v2" }
  operations:
    - target: /orders/{id}
      verb: POST
      authType: None
      throttlingPolicy: Unlimited
      operationPolicies:
        request:
          - policyName: mark
            policyVersion: v1
            parameters: { markName: x-mark, markValue: one }
          - policyName: mark
            policyVersion: v2
            parameters: { markValue: two }
          - policyName: resize
            policyVersion: v1
            parameters: { unit: mm, precise: false }
          - policyName: addHeader
            policyVersion: v1
            parameters: { headerName: x-built-in, headerValue: "1" }
        response:
          - policyName: addHeader
            policyVersion: v1
            parameters: { headerName: x-out, headerValue: "2" }
        fault: []
"#;

const MARK_V1: &str = "type: operation_policy_specification\nversion: v4.3.0\ndata:\n  category: Mediation\n  name: mark\n  version: v1\n  applicableFlows: [request]\n  supportedGateways: [ChoreoConnect]\n  supportedApiTypes: [HTTP]\n  policyAttributes:\n    - { name: markName, type: String, required: true, validationRegex: '^[a-z-]+$' }\n    - { name: markValue, type: String, required: true }\n";
const RESIZE: &str = "type: operation_policy_specification\nversion: v4.3.0\ndata:\n  category: Mediation\n  name: resize\n  version: v1\n  applicableFlows: [request]\n  supportedGateways: [Synapse]\n  supportedApiTypes: [HTTP]\n  policyAttributes:\n    - { name: unit, type: String, required: true }\n    - { name: precise, type: Boolean, required: false }\n    - { name: field, type: String, required: false, defaultValue: size }\n";

/// Policies of a project on disk: descriptor, specifications, templates of both kinds.
#[test]
fn policies_of_a_project_run() {
    let backend = Backend::start(show);
    let descriptor = DESCRIPTOR.replace("BACKEND", &backend.url());
    let mark_v2 = MARK_V1
        .replace("version: v1", "version: v2")
        .replace("    - { name: markName, type: String, required: true, validationRegex: '^[a-z-]+$' }\n", "");
    let action = |name: &str| {
        format!(
            "definition:\n  action: SET_HEADER\n  parameters:\n    headerName: {name}\n    headerValue: {{{{ .markValue }}}}\n"
        )
    };
    let resize = r#"<payloadFactory media-type="json"><format>{"{{ field }}": "$1{{ unit }}"{% if precise %}, "precise": true{% endif %}}</format>
      <args><arg evaluator="json" expression="$.size"/></args></payloadFactory>"#;
    let definition = "openapi: 3.0.1\ninfo: { title: Shop, version: 1.0.0 }\npaths:\n  /orders/{id}:\n    post:\n      x-auth-type: None\n      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]\n      responses: { '200': { description: ok } }\n";
    let gateway = TestGateway::start(Setup::project(&[
        ("api.yaml", &descriptor),
        ("Definitions/swagger.yaml", definition),
        ("Policies/mark_v1.yaml", MARK_V1),
        ("Policies/mark_v1.gotmpl", &action("{{ .markName }}")),
        ("Policies/mark_v2.yaml", &mark_v2),
        ("Policies/mark_v2.gotmpl", &action("x-mark-two")),
        ("Policies/resize_v1.yaml", RESIZE),
        ("Policies/resize_v1.j2", resize),
    ]));
    let headers = [("content-type", "application/json")];
    let reply = gateway.client().request("POST", "/shop/1.0.0/orders/7", &headers, br#"{"size": 12}"#);
    let expected = r#"POST /v2/orders/7 [x-mark=one x-mark-two=two x-built-in=1] {"size": "12mm"}"#;
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.header("x-out")),
        (200, expected, Some("2")),
        "{:?}",
        gateway.diagnostics
    );
}

/// A policy in a flow that it is not for cannot be enforced; when the API is served all the same, the others run.
#[test]
fn policies_are_for_the_flows_that_they_name() {
    let backend = Backend::start(show);
    let misplaced = "        response:\n          - policyName: mark\n            policyVersion: v1\n            \
                     parameters: { markName: x-mark, markValue: none }\n";
    let descriptor = DESCRIPTOR.replace("BACKEND", &backend.url()).replace("        response:\n", misplaced);
    let action = "definition:\n  action: SET_HEADER\n  parameters:\n    headerName: {{ .markName }}\n    \
                  headerValue: {{ .markValue }}\n";
    let definition = "openapi: 3.0.1\ninfo: { title: Shop, version: 1.0.0 }\npaths:\n  /orders/{id}:\n    post:\n      x-auth-type: None\n      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]\n      responses: { '200': { description: ok } }\n";
    let files = [
        ("api.yaml", &*descriptor),
        ("Definitions/swagger.yaml", definition),
        ("Policies/mark_v1.yaml", MARK_V1),
        ("Policies/mark_v1.gotmpl", action),
    ];
    let (closed, _) = TestGateway::try_start(Setup::project(&files));
    assert_eq!(closed.client().request("POST", "/shop/1.0.0/orders/7", &[], b"").status, 404);
    let gateway = TestGateway::start(Setup::project(&files).serving_unprotected(&["Shop"]));
    let reply = gateway.client().request("POST", "/shop/1.0.0/orders/7", &[], b"");
    assert_eq!((reply.status, reply.header("x-mark"), reply.header("x-out")), (200, None, Some("2")));
    assert!(reply.text().contains("x-mark=one"), "{}", reply.text());
    let told = "the policy `mark` does not run in the response flow: its `applicableFlows` are request";
    assert!(gateway.diagnostics.iter().any(|text| text.contains(told)), "{:?}", gateway.diagnostics);
}
