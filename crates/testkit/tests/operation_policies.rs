//! Operation policies over real sockets: actions of Choreo Connect, Synapse sequences, policy agents, mock answers.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;

use penstock_catalog::{
    Api, At, Implementation, MockExample, MockResponse, Policies, PolicyAttribute, PolicyDefinition, PolicyUse,
};
use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Answer, Backend, Received, Reply, Setup, TestGateway, api};
use serde_json::json;

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

/// Instructive test 18: every action by itself, and all together.
#[test]
fn actions_change_requests() {
    let set = || action("SET_HEADER", "headerName: x-new; headerValue: n");
    let path =
        |keep: &str| action("REWRITE_RESOURCE_PATH", &format!("resourcePath: /new-path; includeQueryParams: {keep}"));
    let query = || action("ADD_QUERY", "queryParamName: added; queryParamValue: 1 2");
    for (policies, expected) in [
        (vec![set()], "GET /v2/a?q=1 [x-client=c foo=bar x-new=n] "),
        (vec![action("REMOVE_HEADER", "headerName: X-Client")], "GET /v2/a?q=1 [foo=bar] "),
        (
            vec![action("RENAME_HEADER", "currentHeaderName: foo; updatedHeaderName: x-foo")],
            "GET /v2/a?q=1 [x-client=c x-foo=bar] ",
        ),
        (vec![query()], "GET /v2/a?q=1&added=1%202 [x-client=c foo=bar] "),
        (vec![action("REMOVE_QUERY", "queryParamName: q")], "GET /v2/a [x-client=c foo=bar] "),
        (vec![action("REWRITE_RESOURCE_METHOD", "updatedMethod: PUT")], "PUT /v2/a?q=1 [x-client=c foo=bar] "),
        (
            vec![action("REWRITE_RESOURCE_METHOD", "currentMethod: POST; updatedMethod: PUT")],
            "GET /v2/a?q=1 [x-client=c foo=bar] ",
        ),
        (vec![path("true")], "GET /v2/new-path?q=1 [x-client=c foo=bar] "),
        (vec![path("false")], "GET /v2/new-path [x-client=c foo=bar] "),
        (
            vec![query(), set(), path("false"), action("REWRITE_RESOURCE_METHOD", "updatedMethod: PUT")],
            "PUT /v2/new-path?added=1%202 [x-client=c foo=bar x-new=n] ",
        ),
    ] {
        let actions: Vec<&str> = policies.iter().map(|policy| &*policy.name).collect();
        let actions = actions.join(" ");
        assert_eq!(get(request(policies), "GET /a", "/shop/a?q=1").text(), expected, "{actions}");
    }
}

/// Parameters of the called path in the new one; one that is not there refuses the API.
#[test]
fn paths_repeat_parameters() {
    let rewrite = |path: &str| {
        request(vec![action("REWRITE_RESOURCE_PATH", &format!("resourcePath: \"{path}\"; includeQueryParams: true"))])
    };
    let operation = "GET /shops/{shopId}.xyz/pets/{petId}/orders";
    let reply = get(
        rewrite("/pets/{petId}.pets/hello-shops/abcd-shops/{shopId}"),
        operation,
        "/shop/shops/shop1234.xyz/pets/pet890/orders",
    );
    assert_eq!(reply.text(), "GET /v2/pets/pet890.pets/hello-shops/abcd-shops/shop1234 [x-client=c foo=bar] ");
    let backend = Backend::start(show);
    let (gateway, faulty) =
        TestGateway::try_start(Setup::of([open_api(&backend, &[operation], rewrite("/pets/{unknown}"))]));
    assert!(faulty.iter().any(|text| text.contains("api.yaml:7:3") && text.contains("`unknown`")), "{faulty:?}");
    assert_eq!(gateway.client().get("/shop/shops/a.xyz/pets/b/orders", &[]).status, 404);
}

/// Answers are changed too; what makes no sense there is left out.
#[test]
fn actions_change_answers() {
    let reply = get(
        response(vec![
            action("SET_HEADER", "headerName: x-out; headerValue: o"),
            action("REMOVE_HEADER", "headerName: x-from-backend"),
            action("ADD_QUERY", "queryParamName: q; queryParamValue: 1"),
        ]),
        "GET /a",
        "/shop/a",
    );
    assert_eq!((reply.status, reply.header("x-out"), reply.header("x-from-backend")), (200, Some("o"), None));
}

/// What cannot be used is left out with a warning, and the others apply.
#[test]
fn unsupported_policies_are_left_out() {
    let backend = Backend::start(show);
    let required = PolicyAttribute { name: "name".into(), required: true, ..PolicyAttribute::default() };
    let mut incomplete = action("SET_HEADER", "headerName: x-lost; headerValue: x");
    Arc::get_mut(incomplete.definition.as_mut().unwrap()).unwrap().attributes.push(required);
    let policies = request(vec![
        action("SET_HEADER", "headerName: x-one; headerValue: 1"),
        action("MAKE_COFFEE", "strength: 11"),
        action("SET_HEADER", "name: x-two; value: 2"),
        incomplete,
        defined(using("broken", &[]), Some("definition: {{ range . }}"), None),
        using("nobodyKnows", &[]),
        using("addHeader", &[("headerName", "x-three"), ("headerValue", "3")]),
    ]);
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["GET /a"], policies)]));
    assert_eq!(gateway.client().get("/shop/a", &[]).text(), "GET /v2/a [x-one=1 x-three=3] ");
    let warnings = gateway.diagnostics.join("\n");
    for part in [
        "the action `MAKE_COFFEE` is not supported",
        "the action `SET_HEADER` needs the parameter `headerValue`",
        "the parameter `name` is required",
        "Policies/own.gotmpl:1: `{{ range . }}` is not supported",
        "the project does not define it and the product has none of that name",
    ] {
        assert!(warnings.contains(part), "{part} is not in\n{warnings}");
    }
}

/// Two versions of one policy, and policies of the whole API before those of the operation.
#[test]
fn versions_and_levels_work_together() {
    let template = "definition:\n  action: SET_HEADER\n  parameters:\n    headerName: {{ .name }}\n    headerValue: {{ .value }}\n";
    let fixed = "definition: { action: SET_HEADER, parameters: { headerName: x-second, headerValue: '{{ .value }}' } }";
    let first = defined(using("own", &[("name", "x-first"), ("value", "1")]), Some(template), None);
    let mut second = defined(using("own", &[("value", "2")]), Some(fixed), None);
    second.version = "v2".into();
    let backend = Backend::start(show);
    let mut api = open_api(&backend, &["GET /a"], request(vec![first, second]));
    api.policies = request(vec![using("setHeader", &[("headerName", "x-first"), ("headerValue", "0")])]);
    let gateway = TestGateway::start(Setup::of([api]));
    assert_eq!(gateway.client().get("/shop/a", &[]).text(), "GET /v2/a [x-first=1 x-second=2] ");
}

/// An interceptor service named by a policy goes before that of the definition.
#[test]
fn a_policy_names_an_interceptor_service() {
    let service = Backend::start(|_| Answer::json(&json!({ "headersToAdd": { "x-intercepted": "yes" } })));
    let backend = Backend::start(show);
    let template = "definition:\n action: CALL_INTERCEPTOR_SERVICE\n parameters:\n   interceptorServiceURL: {{ .url }}\n   includes: {{ .includes }}\n";
    let parameters = [("url", service.url()), ("includes", "request_body,request_headers".to_owned())];
    let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let policy = defined(using("ask", &parameters), Some(template), None);
    let mut api = open_api(&backend, &["POST /a"], request(vec![policy]));
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.request_interceptor =
        Some(penstock_catalog::Interceptor { service_url: "http://127.0.0.1:1".into(), ..Default::default() });
    let gateway = TestGateway::start(Setup::of([api]));
    let reply = gateway.client().request("POST", "/shop/a", &[], b"body");
    assert!(reply.text().contains("x-intercepted=yes") && reply.text().ends_with("body"), "{}", reply.text());
    assert_eq!(service.last().json()["requestBody"], json!("Ym9keQ=="));
}

/// Sequences of API Manager, filled and compiled, in all three flows.
#[test]
fn sequences_run_as_policies() {
    let factory = r#"<payloadFactory media-type="json">
    <format>{"size": "$1", "id": "$2", "unit": "{{ unit }}"}</format>
    <args>
        <arg expression="$.size" evaluator="json"/>
        <arg expression="get-property('uri.var.id')"/>
    </args>
</payloadFactory>
{% if tag %}<header name="x-tag" value="{{ tag }}" scope="transport"/>{% endif %}"#;
    let build = |parameters: &[(&str, &str)]| defined(using("build", parameters), None, Some(factory));
    let backend = Backend::start(show);
    let policies = Policies {
        request: vec![build(&[("unit", "m & <more>"), ("tag", "t")])],
        response: vec![defined(
            using("note", &[]),
            None,
            Some(r#"<property name="x-out" expression="get-property('axis2', 'HTTP_SC')" scope="transport"/>"#),
        )],
        fault: vec![],
    };
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /a/{id}"], policies)]));
    let reply =
        gateway.client().request("POST", "/shop/a/7", &[("content-type", "application/json")], br#"{"size": 5}"#);
    assert_eq!((reply.status, reply.header("x-out")), (200, Some("200")));
    let got = backend.last();
    assert_eq!((got.header("x-tag"), got.header("content-type")), (Some("t"), Some("application/json")));
    assert_eq!((&got.json()["size"], &got.json()["id"]), (&json!("5"), &json!("7")));
    // A parameter is a value: nothing in it becomes markup.
    assert_eq!(got.json()["unit"], json!("m & <more>"));
}

/// Mistakes in a template stand in the template's file, and the API is not served.
#[test]
fn mistakes_in_a_template_have_a_place() {
    let backend = Backend::start(show);
    for (template, expected) in [
        ("<log/>\n<logg level=\"full\"/>", "Policies/own.j2:2:1: error: unknown mediator <logg>"),
        ("<log>\n", "Policies/own.j2:1:6: error: not well-formed XML"),
        ("<log/>\n{% if %}", "Policies/own.j2:2: "),
        ("  <nothing-like-it/>", "Policies/own.j2:1:3"),
    ] {
        let policies = request(vec![defined(using("own", &[]), None, Some(template))]);
        let (_, faulty) = TestGateway::try_start(Setup::of([open_api(&backend, &["GET /a"], policies)]));
        assert!(faulty.iter().any(|text| text.contains(expected)), "{expected} is not in {faulty:?}");
    }
}

/// What comes with the product works without its definition.
#[test]
fn built_in_policies_work_without_a_definition() {
    let one = |name: &str, parameters: &[(&str, &str)]| request(vec![using(name, parameters)]);
    for (policies, expected) in [
        (one("setHeader", &[("headerName", "x-a"), ("headerValue", "1")]), "GET /v2/a?q=1 [x-client=c foo=bar x-a=1] "),
        (one("removeHeader", &[("headerName", "foo")]), "GET /v2/a?q=1 [x-client=c] "),
        (one("rewriteHTTPMethod", &[("updatedMethod", "DELETE")]), "DELETE /v2/a?q=1 [x-client=c foo=bar] "),
        (one("rewriteResourcePath", &[("newResourcePath", "/b")]), "GET /v2/b?q=1 [x-client=c foo=bar] "),
        (one("addQueryParam", &[("paramKey", "k"), ("paramValue", "v")]), "GET /v2/a?q=1&k=v [x-client=c foo=bar] "),
        (one("removeQueryParam", &[("paramKey", "q")]), "GET /v2/a [x-client=c foo=bar] "),
        (one("addLogMessage", &[("logMessage", "hello")]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
        (one("disableChunking", &[]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
        (one("preserveAcceptHeader", &[]), "GET /v2/a?q=1 [x-client=c foo=bar] "),
    ] {
        let name = policies.request[0].name.clone();
        assert_eq!(get(policies, "GET /a", "/shop/a?q=1").text(), expected, "{name}");
    }
}

/// Bodies change their language on the way, in both flows.
#[test]
fn bodies_change_their_language() {
    let backend = Backend::start(|request| {
        Answer::new(200, request.header("content-type").unwrap_or_default(), request.body.clone())
    });
    let policies =
        Policies { request: vec![using("jsonToXML", &[])], response: vec![using("xmlToJson", &[])], fault: vec![] };
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /a"], policies)]));
    let reply = gateway.client().request(
        "POST",
        "/shop/a",
        &[("content-type", "application/json")],
        br#"{"pet":{"name":"Tom"}}"#,
    );
    assert!(backend.last().text().contains("<name>Tom</name>"), "{}", backend.last().text());
    assert_eq!((reply.status, reply.json()["pet"]["name"].clone()), (200, json!("Tom")), "{}", reply.text());
}

/// Policies of the fault flow add to the error, or make it.
#[test]
fn faults_have_policies_too() {
    for (policy, body) in [
        (using("addHeader", &[("headerName", "x-fault"), ("headerValue", "yes")]), "102503"),
        (using("jsonFault", &[]), "102503"),
        (
            defined(
                using("own", &[]),
                None,
                Some(
                    r#"<payloadFactory media-type="json"><format>{"own": "$1"}</format><args><arg expression="get-property('ERROR_CODE')"/></args></payloadFactory>"#,
                ),
            ),
            r#"{"own": "102503"}"#,
        ),
    ] {
        let name = policy.name.clone();
        let mut api = api("/shop", "http://127.0.0.1:1", &["GET /a"]);
        let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
        operation.secured = false;
        operation.policies.fault = vec![policy];
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/shop/a", &[]);
        assert_eq!(reply.status, 503, "{name} {}", reply.text());
        assert!(reply.text().contains(body), "{name}: {}", reply.text());
        assert_eq!(reply.header("x-fault").is_some(), &*name == "addHeader");
    }
}

/// Instructive test 19: a policy agent lets requests pass or not, and its failures are errors with codes.
#[test]
fn a_policy_agent_decides() {
    let agent = Backend::start(|request| {
        let input = &request.json()["input"];
        match request.target.as_str() {
            "/v1/data/pets/allow" => Answer::json(&json!({ "result": input["transportHeaders"]["foo"] == "bar" })),
            "/v1/data/token/allow" => Answer::json(&json!({ "result": input.get("authenticationContext").is_some() })),
            "/v1/data/invalid/allow" => Answer::json(&json!({ "result": "maybe" })),
            _ => Answer::status(500),
        }
    });
    let ask = |policy: &str, send_token: &str| {
        let url = format!("{}/v1/data/", agent.url());
        request(vec![using(
            "opaPolicy",
            &[("serverUrl", &url), ("policy", policy), ("sendAccessToken", send_token), ("accessKey", "key")],
        )])
    };
    let backend = Backend::start(show);
    for (policies, foo, status, code) in [
        (ask("pets", "false"), "bar", 200, ""),
        (ask("pets", "false"), "other", 403, "901101"),
        (ask("token", "true"), "bar", 200, ""),
        (ask("token", "false"), "bar", 403, "901101"),
        (ask("invalid", "false"), "bar", 500, "901103"),
        (ask("missing", "false"), "bar", 500, "901102"),
    ] {
        let gateway = TestGateway::start(Setup::of([open_api(&backend, &["GET /a"], policies)]));
        let reply = gateway.client().get("/shop/a?x=1", &[("foo", foo), ("authorization", "secret")]);
        assert_eq!(reply.status, status, "{}", reply.text());
        assert!(reply.text().contains(code), "{code}: {}", reply.text());
        let asked = agent.last();
        assert_eq!(asked.header("authorization"), Some("Bearer key"));
        let input = asked.json()["input"].clone();
        assert_eq!(input["transportHeaders"].get("authorization"), None);
        assert_eq!((&input["method"], &input["path"]), (&json!("GET"), &json!("/shop/a?x=1")));
        assert_eq!(input["apiContext"]["pathTemplate"], json!("/a"));
        assert!(!gateway.log().contains("secret"));
    }
}

/// Instructive test 15: an API without a backend answers from its examples.
#[test]
fn mocked_apis_answer_from_examples() {
    let example = |name: &str, media_type: &str, body: &str| MockExample {
        name: name.into(),
        media_type: media_type.into(),
        body: body.into(),
    };
    let answer = |code: &str, examples| MockResponse {
        code: code.into(),
        headers: vec![("x-mock".into(), code.into())],
        examples,
    };
    let mut api = api("/mock", "http://127.0.0.1:1", &["GET /pets"]);
    api.implementation = Implementation::Mock;
    let operation = Arc::get_mut(&mut api.operations[0]).unwrap();
    operation.secured = false;
    operation.policies = response(vec![using("addHeader", &[("headerName", "x-policy"), ("headerValue", "p")])]);
    operation.mock = vec![
        answer("200", vec![example("", "application/json", r#"{"pets":[]}"#)]),
        answer(
            "50x",
            vec![example("example1", "text/html", "<p>later</p>"), example("example1", "application/json", "{}")],
        ),
    ];
    for style in [ErrorStyle::ChoreoConnect, ErrorStyle::ApiManager] {
        let gateway = TestGateway::start(Setup::of([api.clone()]).configured(|config| config.error_style = style));
        let mut client = gateway.client();
        let reply = client.get("/mock/pets", &[]);
        assert_eq!((reply.status, reply.text().as_str()), (200, r#"{"pets":[]}"#));
        assert_eq!((reply.header("x-mock"), reply.header("x-policy")), (Some("200"), Some("p")));
        let reply = client.get("/mock/pets", &[("Prefer", "code=508, example=example1"), ("Accept", "text/*")]);
        let content_type = reply.header("content-type");
        assert_eq!((reply.status, reply.text().as_str(), content_type), (508, "<p>later</p>", Some("text/html")));
        let reply = client.get("/mock/pets", &[("Prefer", "code=400")]);
        assert_eq!((reply.status, reply.json()["code"].clone()), (501, json!("900871")));
        assert!(reply.text().contains("Preferred code 400 is not supported for this resource."), "{}", reply.text());
        let reply = client.get("/mock/pets", &[("Prefer", "code=x")]);
        assert_eq!((reply.status, reply.json()["code"].clone()), (400, json!("900870")));
    }
}

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

/// The mediation scenario of the published performance tests, when its template lies beside the workspace.
#[test]
fn the_mediation_scenario_runs() {
    const TEMPLATE: &str = "../../../shared/scenarios/api/perf-mediation.j2";
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(TEMPLATE);
    let Ok(template) = std::fs::read_to_string(path) else {
        eprintln!("skipped: {TEMPLATE} is not there");
        return;
    };
    let backend = Backend::start(show);
    let policies = request(vec![defined(using("mediate", &[]), None, Some(&template))]);
    let gateway = TestGateway::start(Setup::of([open_api(&backend, &["POST /*"], policies)]));
    let body = br#"{"size": "3", "payload": "abc"}"#;
    gateway.client().request("POST", "/shop/x", &[("content-type", "application/json")], body);
    assert_eq!(backend.last().json(), json!({ "payload": "abc", "size": "3" }));
}

/// A claim of the token lets requests through, or keeps them out.
#[test]
fn a_claim_decides() {
    let backend = Backend::start(show);
    for (parameters, claims, status) in [
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": "gold" }), 200),
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": "iron" }), 403),
        (vec![("accessVerificationClaimValue", "gold")], json!({}), 403),
        (vec![("accessVerificationClaimValue", "gold")], json!({ "plan": ["iron", "gold"] }), 200),
        (vec![("accessVerificationClaimValueRegex", "g.*")], json!({ "plan": "green" }), 200),
        (
            vec![("accessVerificationClaimValue", "gold"), ("shouldAllowValidation", "false")],
            json!({ "plan": "gold" }),
            403,
        ),
        (
            vec![("accessVerificationClaimValue", "gold"), ("shouldAllowValidation", "false")],
            json!({ "plan": "iron" }),
            200,
        ),
    ] {
        let parameters = [vec![("accessVerificationClaim", "plan")], parameters].concat();
        let mut api =
            open_api(&backend, &["GET /a"], request(vec![using("jwtClaimBasedAccessValidator", &parameters)]));
        Arc::get_mut(&mut api.operations[0]).unwrap().secured = true;
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/shop/a", &[("authorization", &gateway.bearer(&claims))]);
        assert_eq!(reply.status, status, "{claims} {parameters:?} {}", reply.text());
    }
}

/// What was called, and how, is there for sequences.
#[test]
fn sequences_know_the_call() {
    let sequence = r#"<property name="x-seen" scope="transport" expression="fn:concat(get-property('REST_API_CONTEXT'), ' ',
        get-property('api.ut.api'), ' ', get-property('api.ut.resource'), ' ', get-property('REST_SUB_REQUEST_PATH'), ' ',
        get-property('query.param.q'), ' ', get-property('uri.var.id'))"/>
      <property name="REST_URL_POSTFIX" scope="axis2" expression="fn:concat('/moved', get-property('axis2', 'REST_URL_POSTFIX'))"/>
      <property name="HTTP_METHOD" scope="axis2" value="PATCH"/>"#;
    let policies = request(vec![defined(using("look", &[]), None, Some(sequence))]);
    let reply = get(policies, "GET /a/{id}", "/shop/a/7?q=1");
    let expected = "PATCH /v2/moved/a/7?q=1 [x-client=c foo=bar x-seen=/shop shop /a/{id} /a/7?q=1 1 7] ";
    assert_eq!(reply.text(), expected);
}
