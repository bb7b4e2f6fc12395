//! Actions of Choreo Connect.

use std::sync::Arc;

use penstock_catalog::PolicyAttribute;
use penstock_testkit::gateway::{Backend, Setup, TestGateway};

use crate::{action, defined, get, open_api, request, response, show, using};

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
fn unsupported_policies_are_errors_unless_the_configuration_allows_them() {
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
    let apis = || Setup::of([open_api(&backend, &["GET /a"], policies.clone())]);
    let (closed, _) = TestGateway::try_start(apis());
    assert_eq!(closed.client().get("/shop/a", &[]).status, 404);
    let gateway = TestGateway::start(apis().serving_unprotected(&["shop"]));
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
