//! What projects say, as `apictl` writes them, and what becomes of it.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_gateway::ErrorStyle;
use penstock_gateway::security::{Claims, Encoding, Issuer, Signer, TrustedKey, issue};
use penstock_testkit::gateway::{Answer, Backend, ClientIdentity, Setup, TestGateway};
use serde_json::json;

/// A descriptor: `more` are further members of `data`.
fn descriptor(backend: &Backend, more: &str) -> String {
    let url = backend.url();
    format!(
        "type: api\nversion: v4.3.0\ndata:\n  name: Pets\n  version: '1.0'\n  context: /pets\n  endpointConfig:\n    \
         endpoint_type: http\n    production_endpoints: {{url: '{url}'}}\n  operations:\n  - {{target: /x, verb: GET, \
         throttlingPolicy: One}}\n{more}"
    )
}

fn started(files: &[(&str, &str)]) -> TestGateway {
    let setup = Setup::project(files).serving_unprotected(&["Pets:1.0"]);
    TestGateway::start(setup.configured(|config| config.error_style = ErrorStyle::ApiManager))
}

#[test]
fn members_that_make_no_difference_are_named_and_others_are_not() {
    let backend = Backend::echo();
    let quiet = "  audience: PUBLIC\n  gatewayVendor: wso2\n  gatewayType: wso2/synapse\n  egress: 0\n  \
                 subtypeConfiguration: {subtype: DEFAULT, configuration: null}\n  threatProtectionPolicies: {list: []}\n  \
                 enableSubscriberVerification: false\n  mediationPolicies: []\n  keyManagers: [all]\n  visibility: \
                 PRIVATE\n";
    let gateway = started(&[("api.yaml", &descriptor(&backend, quiet))]);
    assert!(gateway.diagnostics.iter().all(|line| !line.contains("is ignored")), "{:?}", gateway.diagnostics);
    let bearer = gateway.bearer(&json!({}));
    let reply = gateway.client().get("/pets/1.0/x", &[("Authorization", &bearer)]);
    assert_eq!(reply.status, 204, "`audience` is not whom tokens must be for");
    let gateway = started(&[("api.yaml", &descriptor(&backend, "  audiences: [them]\n"))]);
    let bearer = gateway.bearer(&json!({}));
    let reply = gateway.client().get("/pets/1.0/x", &[("Authorization", &bearer)]);
    assert_eq!(reply.status, 403);
    let told = json!({"code": "900914", "message": "Access Denied", "description": "The access token does not allow you \
                      to access the requested resource"});
    assert_eq!(reply.json(), told);

    let loud = "  gatewayType: AWS\n  subtypeConfiguration: {subtype: AIAPI}\n  asyncTransportProtocols: [ws]\n  primaryProductionEndpointId: 4711\n  \
                threatProtectionPolicies: {list: [{policyId: a, priority: 1}]}\n  keyManagers: [Elsewhere]\n  \
                mediationPolicies: [{name: gone, type: in}]\n";
    let gateway = started(&[("api.yaml", &descriptor(&backend, loud))]);
    for name in [
        "`gatewayType: AWS` is ignored",
        "`subtypeConfiguration` is ignored",
        "`primaryProductionEndpointId: 4711` is ignored",
        "`asyncTransportProtocols` is ignored",
        "`threatProtectionPolicies` is ignored",
        "`keyManagers` names `Elsewhere`, and no issuer of that name is configured",
        "the mediation policy `gone` is ignored: `Sequences/in-sequence/gone.xml` is not in the project",
    ] {
        let said = gateway.diagnostics.iter().filter(|line| line.contains(name)).count();
        assert_eq!(said, 1, "{name}: {:#?}", gateway.diagnostics);
    }
}

#[test]
fn an_api_without_a_limit_of_its_own_has_those_of_its_operations() {
    let backend = Backend::echo();
    let text = descriptor(&backend, "  apiThrottlingPolicy: Unlimited\n  securityScheme: []\n");
    let setup = Setup::project(&[("api.yaml", &text)]).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        let plan = penstock_gateway::parse_plan(penstock_catalog::PlanLevel::Api, "One", "1/1h").unwrap();
        config.limits.plans = vec![plan];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let bearer = gateway.bearer(&json!({}));
    let mut ask = || client.get("/pets/1.0/x", &[("Authorization", &*bearer)]);
    assert_eq!(ask().status, 204);
    assert_eq!(ask().json()["code"], "900802");
}

#[test]
fn tokens_count_of_the_key_managers_that_an_api_names() {
    let backend = Backend::echo();
    let (signer, _) = Signer::generate().unwrap();
    let issuer = |name: &str| Issuer {
        name: name.into(),
        issuer: format!("https://{name}.example.com").into(),
        keys: vec![TrustedKey { kid: None, key: signer.public().clone() }],
        ..Issuer::default()
    };
    for (named, expected) in [("[Okta]", [204, 401, 401]), ("[Resident Key Manager, Okta]", [204, 401, 204])] {
        let text = descriptor(&backend, &format!("  keyManagers: {named}\n"));
        let setup = Setup::project(&[("api.yaml", &text)]).serving_unprotected(&["Pets"]).configured(|config| {
            config.error_style = ErrorStyle::ApiManager;
            config.security.issuers = vec![issuer("Okta"), issuer("Other")];
        });
        let gateway = TestGateway::start(setup);
        let token = |name: &str| {
            let mut claims = Claims::lasting(60);
            claims.set("iss", format!("https://{name}.example.com"));
            format!("Bearer {}", issue(&signer, &claims, Encoding::Base64Url).unwrap())
        };
        let mut client = gateway.client();
        let bearers = [token("Okta"), token("Other"), gateway.bearer(&json!({}))];
        let statuses = bearers.map(|bearer| client.get("/pets/1.0/x", &[("Authorization", &bearer)]).status);
        assert_eq!(statuses, expected, "{named}");
    }
}

#[test]
fn sequences_of_older_exports_surround_all_operations() {
    let backend = Backend::start(|_| Answer::new(200, "text/plain", "pet"));
    let policies = "  mediationPolicies:\n  - {name: mark, type: in, shared: false}\n  - {name: log_out, type: OUT, \
                    shared: true}\n  - {name: '', type: fault}\n";
    let mark = "<?xml version=\"1.0\"?>\n<sequence xmlns=\"http://ws.apache.org/ns/synapse\" name=\"mark\">\n  <header \
                name=\"x-mark\" scope=\"transport\" value=\"{{braces}}\"/>\n</sequence>";
    let out = "<sequence xmlns=\"http://ws.apache.org/ns/synapse\" name=\"log_out\"><header name=\"x-out\" \
               scope=\"transport\" value=\"yes\"/></sequence>";
    let gateway = started(&[
        ("api.yaml", &descriptor(&backend, policies)),
        ("Sequences/in-sequence/Custom/mark.xml", mark),
        ("Sequences/out-sequence/log_out.xml", out),
    ]);
    let bearer = gateway.bearer(&json!({}));
    let reply = gateway.client().get("/pets/1.0/x", &[("Authorization", &bearer)]);
    assert_eq!((reply.status, reply.header("x-out")), (200, Some("yes")), "{}", reply.text());
    assert_eq!(backend.last().header("x-mark"), Some("{{braces}}"));
}

#[test]
fn certificates_lie_in_a_folder_for_each_kind_of_key() {
    let (production, sandbox) = (Backend::start(|_| Answer::status(201)), Backend::start(|_| Answer::status(202)));
    let text = format!(
        "type: api\nversion: v4.3.0\ndata:\n  name: Pets\n  version: '1.0'\n  context: /pets\n  securityScheme: \
         [mutualssl, mutualssl_mandatory]\n  endpointConfig:\n    endpoint_type: http\n    production_endpoints: {{url: \
         '{}'}}\n    sandbox_endpoints: {{url: '{}'}}\n  operations:\n  - {{target: /x, verb: GET}}\n",
        production.url(),
        sandbox.url()
    );
    let identities = ["one", "two"].map(ClientIdentity::new);
    let [one, two] = &identities;
    let listed = "type: client_certificates\ndata:\n- {alias: c, certificate: c.crt, tierName: Unlimited}\n";
    let gateway = started(&[
        ("api.yaml", &text),
        ("Client-certificates/PRODUCTION/client_certificates.yaml", listed),
        ("Client-certificates/PRODUCTION/c.crt", &one.pem),
        ("Client-certificates/SANDBOX/client_certificates.yaml", listed),
        ("Client-certificates/SANDBOX/c.crt", &two.pem),
    ]);
    for (identity, status) in [(one, 201), (two, 202)] {
        assert_eq!(gateway.certified_client(identity).get("/pets/1.0/x", &[]).status, status);
    }
    assert_eq!(gateway.tls_client().get("/pets/1.0/x", &[]).json()["code"], "900901");
}

#[test]
fn backends_have_the_time_their_api_says_and_requests_are_not_repeated() {
    let backend = Backend::start(|_| Answer::status(504).after(Duration::from_millis(300)));
    let url = backend.url();
    let text = format!(
        "type: api\nversion: v4.3.0\ndata:\n  name: Pets\n  version: '1.0'\n  context: /pets\n  endpointConfig:\n    \
         endpoint_type: load_balance\n    failOver: 'True'\n    production_endpoints:\n    - {{url: '{url}', config: \
         {{actionDuration: '5000', retryTimeOut: '3', actionSelect: discard, suspendDuration: '100'}}}}\n  operations:\n  \
         - {{target: /x, verb: GET}}\n"
    );
    let setup = Setup::project(&[("api.yaml", &text)]).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        config.route_timeout = Duration::from_millis(100);
    });
    let gateway = TestGateway::start(setup);
    for said in ["`actionSelect: discard` is ignored", "ignored: retryTimeOut, suspendDuration"] {
        assert!(gateway.diagnostics.iter().any(|line| line.contains(said)), "{said}: {:#?}", gateway.diagnostics);
    }
    let bearer = gateway.bearer(&json!({}));
    assert_eq!(gateway.client().get("/pets/1.0/x", &[("Authorization", &bearer)]).status, 504);
    assert_eq!(backend.received().len(), 1);
}

#[test]
fn limits_of_backends_have_a_time_of_their_own() {
    let backend = Backend::echo();
    let text = descriptor(&backend, "  maxTps: {production: 2, productionTimeUnit: HOUR}\n");
    let gateway = started(&[("api.yaml", &text)]);
    let bearer = gateway.bearer(&json!({}));
    let mut client = gateway.client();
    let statuses: Vec<u16> = (0..3).map(|_| client.get("/pets/1.0/x", &[("Authorization", &*bearer)]).status).collect();
    assert_eq!(statuses, [204, 204, 503]);
}

#[test]
fn passwords_are_sent_as_they_are() {
    let backend = Backend::echo();
    let password = "p-+={}[]|:;'<,>.?/\u{e4}";
    let security = format!(
        "  endpointConfig:\n    endpoint_type: http\n    production_endpoints: {{url: '{}'}}\n    endpoint_security:\n      \
         production: {{enabled: true, type: BASIC, username: anna, password: {}}}\n      sandbox: {{enabled: false, type: \
         NONE}}\n  operations:\n  - {{target: /x, verb: GET}}\n",
        backend.url(),
        json!(password)
    );
    let text =
        format!("type: api\nversion: v4.3.0\ndata:\n  name: Pets\n  version: '1.0'\n  context: /pets\n{security}");
    let gateway = started(&[("api.yaml", &text)]);
    let bearer = gateway.bearer(&json!({}));
    assert_eq!(gateway.client().get("/pets/1.0/x", &[("Authorization", &bearer)]).status, 204);
    let wanted = format!("Basic {}", STANDARD.encode(format!("anna:{password}")));
    assert_eq!(backend.last().header("authorization"), Some(&*wanted));
}

#[test]
fn a_product_offers_operations_of_several_apis() {
    let (pets, shops, elsewhere) = (Backend::echo(), Backend::echo(), Backend::echo());
    let api = |name: &str, backend: &Backend, operations: &str| {
        let url = backend.url();
        format!(
            "type: api\nversion: v4.3.0\ndata:\n  name: {name}\n  version: '1.0'\n  context: /{name}\n  endpointConfig:\n    \
             endpoint_type: http\n    production_endpoints: {{url: '{url}/base'}}\n  operations:\n{operations}"
        )
    };
    let of_pets = "  - {target: '/pets/{id}', verb: GET, throttlingPolicy: One}\n  - {target: /pets, verb: POST}\n";
    let product = "type: api_product\nversion: v4.3.0\ndata:\n  name: Market\n  context: /market\n  apiType: \
                   APIProduct\n  state: PUBLISHED\n  policies: [Gold]\n  securityScheme: [oauth2, \
                   oauth_basic_auth_api_key_mandatory]\n  apis:\n  - name: Pets\n    apiId: a\n    version: '1.0'\n    \
                   operations:\n    - {target: '/pets/{id}', verb: GET, authType: Application & Application User, \
                   throttlingPolicy: One, scopes: []}\n  - name: Pet Shops\n    operations:\n    - {target: /shops, verb: \
                   GET, authType: None}\n";
    let parameters = format!(
        "environments:\n- name: here\n  configs:\n    dependentAPIs:\n      PetShops-1.0:\n        endpoints:\n          \
         production: {{url: '{}/there'}}\n",
        elsewhere.url()
    );
    let files = [
        ("api_product.yaml", product),
        ("APIs/Pets-1.0/api.yaml", &api("Pets", &pets, of_pets)),
        ("APIs/PetShops-1.0/api.yaml", &api("PetShops", &shops, "  - {target: /shops, verb: GET, authType: None}\n")),
        ("api_params.yaml", &parameters),
    ];
    let setup = Setup::project(&files).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        config.environment = "here".into();
        let plan = penstock_gateway::parse_plan(penstock_catalog::PlanLevel::Api, "One", "1/1h").unwrap();
        config.limits.plans = vec![plan];
    });
    let gateway = TestGateway::start(setup);
    let bearer = gateway.bearer(&json!({}));
    let mut client = gateway.client();
    let mut ask = |method: &str, path: &str, fields: &[(&str, &str)]| client.request(method, path, fields, b"");
    assert_eq!(ask("GET", "/market/1.0.0/pets/7", &[]).json()["code"], "900902");
    assert_eq!(ask("GET", "/market/1.0.0/pets/7", &[("Authorization", &bearer)]).status, 204);
    assert_eq!(pets.last().target, "/base/pets/7");
    assert_eq!(
        ask("GET", "/market/1.0.0/pets/7", &[("Authorization", &bearer)]).json()["code"],
        "900802",
        "the plan of its API"
    );
    assert_eq!(ask("GET", "/market/1.0.0/shops", &[]).status, 204, "the API decides whether credentials are required");
    assert_eq!(elsewhere.last().target, "/there/shops");
    assert_eq!(ask("POST", "/market/1.0.0/pets", &[("Authorization", &bearer)]).status, 404, "not in the product");
    assert_eq!(ask("GET", "/Pets/1.0/pets/7", &[("Authorization", &bearer)]).status, 404, "no API by itself");
    assert_eq!(shops.received().len(), 0);
}
