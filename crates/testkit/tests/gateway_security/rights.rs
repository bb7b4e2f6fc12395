//! What a caller may do: scopes, kinds of keys, subscriptions.

use super::*;

#[test]
fn scopes_decide_over_operations() {
    let backend = Backend::echo();
    let mut scoped = secured_api("/scoped", &backend.url(), &["GET /pet/{id}", "GET /by-definition"]);
    operation(&mut scoped, 0).scopes = vec!["read".into(), "admin".into()];
    operation(&mut scoped, 1).requirements =
        vec![Requirement::OAuth2(Vec::new()), Requirement::OAuth2(vec!["read".into()])];
    let gateway = TestGateway::start(Setup::of([scoped]));
    let mut client = gateway.client();
    for (scope, status) in [
        (json!("read"), 204),
        (json!("x admin y"), 204),
        (json!(["x", "read"]), 204),
        (json!("reader"), 403),
        (json!(["x"]), 403),
        (json!(7), 403),
    ] {
        let bearer = gateway.bearer(&json!({"scope": scope}));
        for path in ["/scoped/pet/1", "/scoped/by-definition"] {
            let expected = if path.contains("definition") && scope == json!("x admin y") { 403 } else { status };
            assert_eq!(client.get(path, &[("Authorization", &bearer)]).status, expected, "{path} {scope}");
        }
    }
    let reply = client.get("/scoped/pet/1", &[("Authorization", &gateway.bearer(&json!({})))]);
    refused(&reply, 403, "900910");
    let text = "User is NOT authorized to access the Resource: /pet/{id}. Scope validation failed.";
    assert_eq!(reply.json()["error_description"], text);
}

#[test]
fn keys_are_for_production_or_for_the_sandbox() {
    let (production, sandbox) = (Backend::echo(), Backend::echo());
    let mut both = secured_api("/both", &production.url(), &["GET /x"]);
    let cluster = Cluster { urls: vec![sandbox.url().as_str().into()], ..Cluster::default() };
    both.endpoints.sandbox = Some(Arc::new(cluster));
    let gateway = TestGateway::start(Setup::of([both, pets(&production)]));
    let mut client = gateway.client();
    let keys = ["PRODUCTION", "SANDBOX"].map(|kind| gateway.bearer(&json!({"keytype": kind})));
    assert_eq!(client.get("/both/x", &[("Authorization", &keys[0])]).status, 204);
    assert_eq!((production.received().len(), sandbox.received().len()), (1, 0));
    assert_eq!(client.get("/both/x", &[("Authorization", &keys[1])]).status, 204);
    assert_eq!((production.received().len(), sandbox.received().len()), (1, 1));
    let reply = ask(&mut client, &keys[1]);
    refused(&reply, 401, "900901");
    let description = "Sandbox key offered to an API with no sandbox endpoint. Make sure you have provided the correct \
                       security credentials";
    assert_eq!(reply.json()["error_description"], description);
    assert!(reply.header("www-authenticate").is_some());
}

#[test]
fn subscriptions_decide_by_the_catalog_or_by_the_token() {
    let backend = Backend::echo();
    let signer = signer();
    let gateway = TestGateway::start(Setup::of([pets(&backend)]).configured(|config| {
        config.security.issuers = vec![Issuer { validate_subscription: true, ..issuer("idp", &signer) }];
    }));
    let mut client = gateway.client();
    let bearer = |claims: Value| {
        let mut all = json!({"iss": "https://idp", "azp": "key"});
        for (name, value) in claims.as_object().unwrap() {
            all[name] = value.clone();
        }
        format!("Bearer {}", signed(&signer, &all))
    };
    let token = bearer(json!({}));
    refused(&ask(&mut client, &token), 403, "900908");
    let by_token = |version: &str| bearer(json!({"subscribedAPIs": [{"name": "pets", "version": version}]}));
    assert_eq!(ask(&mut client, &by_token("1.0.0")).status, 204);
    refused(&ask(&mut client, &by_token("2.0.0")), 403, "900908");

    let application =
        Application { id: "7".into(), name: "app".into(), keys: vec![("key".into(), true)], ..Application::default() };
    let mut subscribe = |state: Option<SubscriptionState>| {
        let subscription = state.map(|state| Subscription {
            application: "7".into(),
            api: "pets".into(),
            version: "1.0.0".into(),
            tier: "Gold".into(),
            state,
        });
        let list = AccessList::new(std::slice::from_ref(&application), subscription.as_slice());
        gateway.state().security.set_access(list);
        ask(&mut client, &token)
    };
    refused(&subscribe(None), 403, "900908");
    assert_eq!(subscribe(Some(SubscriptionState::Unblocked)).status, 204);
    refused(&subscribe(Some(SubscriptionState::Blocked)), 401, "900907");
    refused(&subscribe(Some(SubscriptionState::ProductionBlocked)), 401, "900907");
    refused(&subscribe(Some(SubscriptionState::OnHold)), 403, "900909");
    refused(&subscribe(Some(SubscriptionState::Rejected)), 403, "900909");
    assert_eq!(subscribe(Some(SubscriptionState::Unblocked)).status, 204);
}

#[test]
fn projects_and_definitions_say_who_may_call() {
    let backend = Backend::echo();
    let app = ClientIdentity::new("app");
    let descriptor = format!(
        "type: api\nversion: v4.3.0\ndata:\n  name: Shop\n  context: /shop\n  version: 1.0.0\n  lifeCycleStatus: PUBLISHED\n  \
         securityScheme: [oauth2, api_key, mutualssl]\n  apiKeyHeader: X-Shop-Key\n  authorizationHeader: X-Shop-Token\n  \
         endpointConfig:\n    endpoint_type: http\n    production_endpoints: {{url: '{}'}}\n  operations:\n  \
         - {{target: /orders, verb: GET, authType: Application & Application User, scopes: [read]}}\n  \
         - {{target: /open, verb: GET, authType: None}}\n",
        backend.url()
    );
    let definition = "openapi: 3.0.1\ninfo: {title: Shop, version: 1.0.0}\npaths:\n  /orders: {get: {responses: {'200': \
        {description: ok}}}}\n  /open: {get: {x-auth-type: None, responses: {'200': {description: ok}}}}\n";
    let certificates =
        "type: client_certificates\nversion: v4.3.0\ndata:\n- {alias: app, certificate: app.crt, tierName: Gold}\n";
    let mut setup = Setup::project(&[
        ("api.yaml", &descriptor),
        ("Definitions/swagger.yaml", definition),
        ("Client-certificates/client_certificates.yaml", certificates),
        ("Client-certificates/app.crt", &app.pem),
    ]);
    let bare = format!(
        "openapi: 3.0.1\ninfo: {{title: Bare, version: '2'}}\nx-wso2-basePath: /bare\n\
         x-wso2-production-endpoints: {{urls: ['{}']}}\nsecurity: [{{key: []}}]\ncomponents: {{securitySchemes: \
         {{key: {{type: apiKey, in: header, name: X-Bare}}}}}}\npaths:\n  /x: {{get: {{responses: {{'200': {{description: ok}}}}}}}}\n  \
         /free: {{get: {{x-wso2-disable-security: true, responses: {{'200': {{description: ok}}}}}}}}\n",
        backend.url()
    );
    setup.inputs.push(penstock_compile::Input {
        file: "bare.yaml".into(),
        bytes: bare.into_bytes().into(),
        kind: penstock_compile::InputKind::Api { project: "bare.yaml".into(), path: String::new() },
    });
    let gateway = TestGateway::start(setup);
    let key = |name: &str, version: &str| {
        let subscribed = json!([{"name": name, "version": version}]);
        gateway.token(&json!({"token_type": "apiKey", "subscribedAPIs": subscribed}))
    };
    let (shop_key, bare_key) = (key("Shop", "1.0.0"), key("Bare", "2"));
    let (may, may_not) = (gateway.bearer(&json!({"scope": "read"})), gateway.bearer(&json!({})));
    let mut plain = gateway.tls_client();
    let mut certified = gateway.certified_client(&app);
    for (path, header, status) in [
        ("/shop/1.0.0/orders", ("X-Shop-Token", may.as_str()), 204),
        ("/shop/1.0.0/orders", ("X-Shop-Token", &may_not), 403),
        ("/shop/1.0.0/orders", ("Authorization", &may), 401),
        ("/shop/1.0.0/orders", ("x-shop-key", &shop_key), 204),
        ("/shop/1.0.0/orders", ("x-shop-key", &bare_key), 403),
        ("/shop/1.0.0/orders", ("apikey", &shop_key), 401),
        ("/shop/1.0.0/open", ("X-Nothing", "x"), 204),
        ("/bare/x", ("X-Bare", &bare_key), 204),
        ("/bare/x", ("Authorization", &may), 401),
        ("/bare/free", ("X-Nothing", "x"), 204),
    ] {
        let reply = plain.get(path, &[header]);
        assert_eq!(reply.status, status, "{path} {}: {}", header.0, reply.text());
    }
    assert_eq!(plain.get("/shop/1.0.0/orders", &[]).status, 401);
    assert_eq!(certified.get("/shop/1.0.0/orders", &[]).status, 204);
    assert_eq!(certified.get("/bare/x", &[]).status, 401);
}
