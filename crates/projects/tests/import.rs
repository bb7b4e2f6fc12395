//! What importing makes of projects and definitions, and what it says.

#![expect(clippy::unwrap_used, reason = "a test may fail anywhere")]

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, ClusterKind, EndpointSecurity, Lifecycle, Requirement, SecurityMode};
use penstock_projects::{Import, ImportConfig, Project, ProjectFile};

/// The API of some files, and everything that was said.
fn import(files: &[(&str, &str)]) -> (Option<Arc<Api>>, Vec<String>) {
    import_into("", files)
}

/// The same for a gateway that is one of several environments.
fn import_into(environment: &str, files: &[(&str, &str)]) -> (Option<Arc<Api>>, Vec<String>) {
    let vhosts = vec![("Europe".into(), "eu.example.com".into())];
    let config = ImportConfig { vhosts, environment: environment.into(), ..ImportConfig::default() };
    let variables =
        [("BACKEND", "backend:9000"), ("PART", "AB")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = HashMap::from(variables);
    let mut import = Import::new(&config, &variables);
    let files = files.iter().map(|(path, text)| ProjectFile {
        file: if path.is_empty() { "api".into() } else { (*path).into() },
        path: (*path).to_owned(),
        bytes: text.as_bytes().to_vec().into(),
    });
    let project = Project { name: "project".into(), files: files.collect(), more: None };
    let api = import.project(&project).and_then(|imported| imported.api);
    (api, import.notes.iter().map(ToString::to_string).collect())
}

/// The API of a definition about which there is nothing to say.
#[track_caller]
fn definition(text: &str) -> Arc<Api> {
    let (api, notes) = import(&[("", text)]);
    assert_eq!(notes, Vec::<String>::new());
    api.unwrap()
}

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    assert_eq!(import(&[("", text)]).1, expected, "{text}");
}

const HEAD: &str = "openapi: 3.0.1\ninfo: {title: Books, version: 1.0.0}\nservers: [{url: 'http://b/books'}]\n";

#[test]
fn base_paths_and_backends() {
    let paths = "paths: {/x: {get: {}}}\n";
    for (text, base_path, production, sandbox) in [
        (HEAD.to_owned(), "/books", Some("http://b/books"), None),
        (format!("{HEAD}x-wso2-basePath: /b/{{version}}\n"), "/b/1.0.0", Some("http://b/books"), None),
        (format!("{HEAD}x-wso2-production-endpoints: {{urls: [http://p/x]}}\n"), "/books", Some("http://p/x"), None),
        // A sandbox alone means there is no production.
        (format!("{HEAD}x-wso2-sandbox-endpoints: {{urls: [http://s/x]}}\n"), "/books", None, Some("http://s/x")),
        (
            "swagger: '2.0'\ninfo: {title: B, version: '1'}\nhost: h:80\nbasePath: /v1/\nschemes: [http, https]\n".into(),
            "/v1",
            Some("https://h:80/v1"),
            None,
        ),
        (
            format!("{HEAD}x-wso2-endpoints: [{{e: {{urls: [http://n]}}}}]\nx-wso2-production-endpoints: '#/x-wso2-endpoints/e'\n"),
            "/books",
            Some("http://n"),
            None,
        ),
        // Without a scheme it is plain HTTP.
        (
            "openapi: 3.0.0\ninfo: {title: B, version: '1'}\nservers: [{url: 'pets.example.com/v2'}]\nx-wso2-sandbox-endpoints: {urls: ['sand:80/v2']}\nx-wso2-production-endpoints: {urls: [prod]}\n".into(),
            "/v2",
            Some("http://prod"),
            Some("http://sand:80/v2"),
        ),
        (
            "openapi: 3.1.0\ninfo: {title: B, version: '1'}\nservers: [{url: '/rel'}, {url: 'http://{h}/abs', variables: {h: {default: q}}}]\n".into(),
            "/abs",
            Some("http://q/abs"),
            None,
        ),
    ] {
        let api = definition(&format!("{text}{paths}"));
        let first = |cluster: &Option<Arc<penstock_catalog::Cluster>>| cluster.as_ref().map(|cluster| cluster.urls[0].to_string());
        assert_eq!(&*api.base_path, base_path, "{text}");
        assert_eq!(first(&api.endpoints.production).as_deref(), production, "{text}");
        assert_eq!(first(&api.endpoints.sandbox).as_deref(), sandbox, "{text}");
    }
}

#[test]
fn the_nearest_level_wins() {
    let api = definition(&format!(
        "{HEAD}x-wso2-disable-security: true
x-wso2-request-interceptor: {{serviceURL: 'http://api:1', includes: [request_body]}}
x-throttling-tier: Gold
x-wso2-production-endpoints: {{urls: [http://api]}}
paths:
  /a:
    x-wso2-disable-security: false
    x-wso2-request-interceptor: {{serviceURL: 'http://path:1'}}
    x-wso2-production-endpoints: {{urls: [http://path]}}
    get: {{x-auth-type: None}}
    post: {{x-wso2-request-interceptor: {{serviceURL: 'http://operation:1', requestTimeout: 3}}}}
  /b:
    servers: [{{url: http://server}}]
    get: {{}}
  /c:
    get: {{x-throttling-tier: Unlimited}}
"
    ));
    let shown: Vec<String> = api
        .operations
        .iter()
        .map(|operation| {
            let interceptor = operation.request_interceptor.as_ref().map_or("-", |found| &found.service_url);
            let endpoints = operation.endpoints.as_ref().and_then(|own| own.production.as_ref());
            let backend = endpoints.map_or("-", |cluster| &cluster.urls[0]);
            format!("{} {} {} {interceptor} {backend}", operation.method, operation.path, operation.secured)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "GET /a false http://path:1 http://path",
            "POST /a true http://operation:1 http://path",
            "GET /b false http://api:1 http://server",
            "GET /c false http://api:1 -",
        ]
    );
    assert_eq!(api.tier.as_deref(), Some("Gold"));
    assert!(api.operations.iter().all(|operation| operation.tier.is_none()));
}

#[test]
fn a_path_with_backends_for_one_kind_of_key_leaves_the_others_to_the_api() {
    let api = definition(&format!(
        "{HEAD}x-wso2-production-endpoints: {{urls: [http://prod]}}
x-wso2-sandbox-endpoints: {{urls: [http://sand]}}
paths:
  /p: {{x-wso2-production-endpoints: {{urls: [http://own]}}, get: {{}}}}
  /s: {{x-wso2-sandbox-endpoints: {{urls: [http://own]}}, get: {{}}}}
  /v: {{servers: [{{url: 'own:81/x'}}], get: {{}}}}
"
    ));
    let shown: Vec<[String; 2]> = api
        .operations
        .iter()
        .map(|operation| {
            let own = operation.endpoints.as_ref().unwrap();
            [&own.production, &own.sandbox].map(|cluster| cluster.as_ref().unwrap().urls[0].to_string())
        })
        .collect();
    assert_eq!(
        shown,
        [["http://own", "http://sand"], ["http://prod", "http://own"], ["http://own:81/x", "http://sand"]]
    );
    // The same backends, so that limits of both are counted together.
    let own = api.operations[1].endpoints.as_ref().unwrap().production.as_ref().unwrap();
    assert!(Arc::ptr_eq(own, api.endpoints.production.as_ref().unwrap()));
}

#[test]
fn only_none_of_x_auth_type_has_a_meaning() {
    let api = definition(&format!(
        "{HEAD}x-wso2-disable-security: true
paths:
  /a:
    get: {{x-auth-type: Application & Application User}}
    put: {{x-auth-type: Any, x-wso2-disable-security: false}}
    post: {{x-auth-type: None, x-wso2-disable-security: false}}
"
    ));
    let secured: Vec<bool> = api.operations.iter().map(|operation| operation.secured).collect();
    assert_eq!(secured, [false, true, false]);
}

#[test]
fn security_of_definitions() {
    let api = definition(&format!(
        "{HEAD}security: [{{key: []}}]
components:
  securitySchemes:
    key: {{type: apiKey, in: header, name: X-Key}}
    asked: {{type: apiKey, in: query, name: k}}
    login: {{type: oauth2, flows: {{}}}}
    password: {{type: http, scheme: Basic}}
paths:
  /a:
    get: {{}}
    post: {{security: [{{asked: []}}, {{login: [write, admin]}}]}}
    put: {{security: [{{password: []}}]}}
    delete: {{security: [{{default: []}}]}}
"
    ));
    let all: Vec<&[Requirement]> = api.operations.iter().map(|operation| &operation.requirements[..]).collect();
    let scopes = || vec!["write".into(), "admin".into()];
    assert_eq!(
        all,
        [
            &[Requirement::ApiKeyHeader("X-Key".into())][..],
            &[Requirement::ApiKeyQuery("k".into()), Requirement::OAuth2(scopes())],
            &[Requirement::Basic],
            &[Requirement::OAuth2(Vec::new())],
        ]
    );
    assert_eq!(api.operations[1].scopes, scopes());
}

#[test]
fn references_are_followed() {
    let api = definition(&format!(
        "{HEAD}paths:
  /a: {{$ref: '#/components/pathItems/shared'}}
  /b: {{$ref: '#/paths/~1a'}}
components: {{pathItems: {{shared: {{get: {{operationId: s}}}}}}}}
"
    ));
    let ids: Vec<_> = api.operations.iter().map(|operation| (&*operation.path, operation.id.as_deref())).collect();
    assert_eq!(ids, [("/a", Some("s")), ("/b", Some("s"))]);
    let circle = format!("{HEAD}paths: {{/a: {{$ref: '#/paths/~1b'}}, /b: {{$ref: '#/paths/~1a'}}}}");
    let (api, notes) = import(&[("", &circle)]);
    assert!(api.is_none());
    assert!(notes[0].ends_with("references lead to each other more than 16 times"), "{notes:?}");
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let paths = "paths: {/x: {get: {}}}\n";
    says("openapi: 2.9\n", &["api:1:1: error: OpenAPI `2.9` is not supported; versions 2.0, 3.0 and 3.1 are"]);
    says(
        &format!("{HEAD}x-wso2-production-endpoint: {{urls: [http://p]}}\n{paths}"),
        &[
            "api:4:1: warning: unknown extension `x-wso2-production-endpoint` is ignored, did you mean `x-wso2-production-endpoints`?",
        ],
    );
    says(
        &format!("{HEAD}x-wso2-production-endpoints:\n  urls: [/relative]\n{paths}"),
        &["api:5:10: error: an address must be absolute and begin with http:// or https://, not `/relative`"],
    );
    says(
        &format!(
            "{HEAD}x-wso2-production-endpoints: '#/x-wso2-endpoints/mian'\nx-wso2-endpoints: [{{main: {{urls: [http://p]}}}}]\n{paths}"
        ),
        &["api:4:30: error: `x-wso2-endpoints` has no `mian`, did you mean `main`?"],
    );
    says(
        &format!("{HEAD}x-wso2-basePath: no/slash\n{paths}"),
        &["api:4:18: error: a base path begins with `/` and is letters, digits and `~ _ . -`, not `no/slash`"],
    );
    says(
        &format!("{HEAD}x-wso2-production-endpoints:\n  urls: [http://p]\n  securityConfig: {{type: NTLM}}\n{paths}"),
        &[
            "api:6:26: error: endpoint security of the type `NTLM` is not supported; `BASIC`, `DIGEST`, `OAUTH`, `APIKEY` are",
        ],
    );
    let secured = |config: &str| {
        format!("{HEAD}x-wso2-production-endpoints:\n  urls: [http://p]\n  securityConfig: {config}\n{paths}")
    };
    says(
        &secured("{type: oauth, grantType: client_credential, tokenUrl: x}"),
        &[
            "api:6:44: error: `grantType` must be `CLIENT_CREDENTIALS` or `PASSWORD`, not `client_credential`, did you mean `CLIENT_CREDENTIALS`?",
        ],
    );
    says(
        &secured("{type: OAUTH, tokenUrl: ftp://t}"),
        &["api:6:19: error: endpoint security of the type `OAUTH` needs `clientId`"],
    );
    says(
        &secured("{type: OAUTH, clientId: c, tokenUrl: 'ftp://t'}"),
        &["api:6:56: error: `tokenUrl` must begin with http:// or https://, not `ftp://t`"],
    );
    says(
        &secured("{type: OAUTH, clientId: c, tokenUrl: 'http://t', customParameters: '{'}"),
        &[
            "api:6:19: warning: endpoint security without a `clientSecret`; an empty one is sent",
            "api:6:86: error: `customParameters` is not JSON: a member name in quotes is expected",
        ],
    );
    says(
        &secured("{type: apikey, apiKeyIdentifier: 'a b', apiKeyValue: v}"),
        &["api:6:52: error: `a b` is not a header name"],
    );
    says(
        &format!("{HEAD}paths:\n  /x:\n    gett: {{}}\n    get: {{x-wso2-cors: {{}}}}\n"),
        &[
            "api:6:5: warning: `gett` is not a method; it is ignored, did you mean `get`?",
            "api:7:11: warning: `x-wso2-cors` is ignored at an operation; it is read at the API",
        ],
    );
    says(
        &format!("{HEAD}paths:\n  /x:\n    get: {{security: []}}\n    put: {{security: [{{}}, {{a: [], b: []}}]}}\n"),
        &[
            "api:7:22: warning: an empty alternative does not open the operation; `x-wso2-disable-security: true` does",
            "api:7:27: warning: the security scheme `a` is not defined; a token is required",
            "api:7:26: error: security schemes are supported as alternatives only; of this combination `a` would be \
             required alone; `Books:1.0.0` is not served, unless `security.serve_unprotected` in penstock.toml lists it",
        ],
    );
    says(
        "asyncapi: 2.0.0\n",
        &[
            "api:1:1: error: a definition needs `info` with `title` and `version`",
            "api:1:1: error: the API has no name",
        ],
    );
}

const DESCRIPTOR: &str = "type: api
version: v4.7.0
data:
  name: Books
  context: /books
  version: 1.0.0
  isDefaultVersion: true
  lifeCycleStatus: PROTOTYPED
  securityScheme: [oauth2, api_key, mutualssl]
  endpointConfig:
    endpoint_type: failover
    production_endpoints: {url: 'http://${BACKEND}/a', config: {actionDuration: '7000'}}
    production_failovers: [{url: 'http://other/a'}]
    endpoint_security: {production: {enabled: true, type: BASIC, username: u, password: $ecret}}
  operations:
    - {target: /list, verb: get, authType: None, throttlingPolicy: Gold}
    - target: /add
      verb: POST
      scopes: [write]
      operationPolicies:
        request: [{policyName: stamp, policyVersion: v2, parameters: {on: true, header: X-Stamp}}]
";

#[test]
fn a_descriptor_alone() {
    let (api, notes) = import(&[("api.yaml", DESCRIPTOR)]);
    assert_eq!(notes, Vec::<String>::new());
    let api = api.unwrap();
    assert_eq!((&*api.base_path, api.default_path.as_deref()), ("/books/1.0.0", Some("/books")));
    assert_eq!(api.lifecycle, Lifecycle::Prototyped);
    let production = api.endpoints.production.as_ref().unwrap();
    let urls: Vec<&str> = production.urls.iter().map(|url| &**url).collect();
    assert_eq!(urls, ["http://backend:9000/a", "http://other/a"]);
    assert_eq!(production.kind, ClusterKind::Failover);
    assert_eq!(production.timeout, Some(std::time::Duration::from_secs(7)));
    let Some(EndpointSecurity::Basic(credentials)) = &production.security else { panic!("no credentials") };
    assert_eq!((&*credentials.username, &*credentials.password), ("u", "$ecret"));
    assert_eq!((api.security.mutual_tls, api.security.application), (SecurityMode::Optional, SecurityMode::Optional));
    assert!(!api.operations[0].secured && api.operations[1].secured);
    assert_eq!(
        api.operations[1].requirements,
        [
            Requirement::OAuth2(vec!["write".into()]),
            Requirement::ApiKeyHeader("apikey".into()),
            Requirement::ApiKeyQuery("apikey".into())
        ]
    );
    let policy = &api.operations[1].policies.request[0];
    assert_eq!((&*policy.name, &*policy.version), ("stamp", "v2"));
    assert_eq!(policy.parameters, [("on".into(), "true".into()), ("header".into(), "X-Stamp".into())]);
}

#[test]
fn a_whole_project() {
    let swagger = "{\"openapi\": \"3.0.1\", \"info\": {\"title\": \"B\", \"version\": \"1\"},
        \"x-wso2-production-endpoints\": {\"urls\": [\"http://chosen\"]},
        \"paths\": {\"/list\": {\"get\": {}}, \"/add/\": {\"post\": {}}}}";
    let policy = "type: operation_policy_specification\ndata:\n  name: stamp\n  version: v2\n  policyAttributes:\n    - {name: header, required: true, validationRegex: '^X'}\n";
    let (api, notes) = import(&[
        ("api.yaml", DESCRIPTOR),
        ("Definitions/swagger.json", swagger),
        ("Policies/stamp_v2.yaml", policy),
        ("Policies/stamp_v2.j2", "<log/>"),
        ("Policies/stamp_v2.gotmpl", "definition: {}"),
        ("Client-certificates/client_certificates.yaml", "data: [{alias: a, certificate: a.crt, tierName: Gold}]"),
        ("Client-certificates/a.crt", "-----BEGIN CERTIFICATE-----"),
        ("Endpoint-certificates/b.crt", "-----BEGIN CERTIFICATE-----"),
        ("Endpoint-certificates/interceptors/c.crt", "nothing of the kind"),
        (
            "deployment_environments.yaml",
            "data: [{deploymentEnvironment: Europe}, {deploymentEnvironment: Default, deploymentVhost: US.example.com}]",
        ),
    ]);
    assert_eq!(notes, ["Endpoint-certificates/interceptors/c.crt:1:1: warning: ignored: not a certificate"]);
    let api = api.unwrap();
    let hosts: Vec<&str> = api.vhosts.iter().map(|host| &**host).collect();
    assert_eq!(hosts, ["eu.example.com", "us.example.com"]);
    assert_eq!(&*api.endpoints.production.as_ref().unwrap().urls[0], "http://chosen");
    assert_eq!(api.client_certificates[0].tier.as_deref(), Some("Gold"));
    assert_eq!((api.endpoint_certificates.len(), api.interceptor_certificates.len()), (1, 0));
    let policy = &api.operations[1].policies.request[0];
    let definition = policy.definition.as_ref().unwrap();
    assert_eq!(&*definition.synapse.as_ref().unwrap().0, "<log/>");
    assert!(definition.actions.is_some() && definition.attributes[0].required);
    assert!(!api.operations[0].secured);
}

#[test]
fn descriptors_with_mistakes() {
    for (text, expected) in [
        ("type: api\ndata: {name: A, version: 1}\n", "api.yaml:2:7: error: an API needs `context`"),
        ("type: api_product\n", "api.yaml:1:1: error: a descriptor needs `data`, a mapping"),
        ("type: application\n", "api.yaml:1:1: error: descriptors of the type `application` are not supported yet"),
        ("type: appi\n", "api.yaml:1:1: error: `type` must be `api`, not `appi`, did you mean `api`?"),
        (
            "type: api\ndata: {name: A, context: /a, version: 1, type: WEBSUB}\n",
            "api.yaml:2:7: error: the hub has no topic: give `operations` or `Definitions/asyncapi.yaml`",
        ),
        (
            "type: api\ndata: {name: A, context: /a, version: 1, type: ASYNC}\n",
            "api.yaml:2:48: error: APIs of the type `ASYNC` are not supported yet",
        ),
        (
            "type: api\ndata: {name: A, context: /a, version: 1, isDefaultVersoin: true}\n",
            "api.yaml:2:42: warning: unknown member `isDefaultVersoin` is ignored, did you mean `isDefaultVersion`?",
        ),
        ("type: [\n", "api.yaml:2:1: error: while parsing a node, did not find expected node content"),
    ] {
        let (_, notes) = import(&[("api.yaml", text)]);
        assert_eq!(notes.first().map(String::as_str), Some(expected), "{text}");
    }
}

const PARAMETERS: &str = "environments:
  - name: dev
    configs:
      endpoints:
        production: {url: 'http://${BACKEND}/dev', config: {actionDuration: 3000}}
      security:
        production: {enabled: false}
      policies: [Bronze]
      deploymentEnvironments:
        - {deploymentEnvironment: Europe}
  - name: balanced
    configs:
      endpointRoutingPolicy: load_balanced
      loadBalanceEndpoints:
        production: [{url: 'http://one/b'}, {url: 'http://two/b'}]
        sandbox: [{url: 'http://three/b'}]
      mutualSslCerts: [{tierName: Gold, alias: a, path: a.crt}]
  - name: failing-over
    configs:
      failoverEndpoints:
        production: {url: 'http://one/f'}
        productionFailovers: [{url: 'http://two/f'}]
      security:
        production: {enabled: true, type: digest, username: d, password: p}
  - name: unset
    configs:
      endpoints: {production: {url: 'http://${NOT_SET}/'}}
      endpoint: {}
";

/// Addresses, kind and proof of an API's production, and its hosts.
#[test]
fn products_with_mistakes() {
    let api = "type: api\ndata: {name: A B, version: '1', context: /a, endpointConfig: {endpoint_type: http, \
               production_endpoints: {url: 'http://b'}}, operations: [{verb: GET, target: /x}, {verb: GET, target: /y}]}";
    let product = |apis: &str| format!("type: api_product\ndata:\n  name: P\n  context: /p\n  apis:\n{apis}");
    let read = |apis: &str, more: &[(&str, &str)]| {
        let text = product(apis);
        let mut files = vec![("api_product.yaml", &*text), ("APIs/AB-1/api.yaml", api)];
        files.extend_from_slice(more);
        import(&files)
    };
    let parameters = "dependentAPIs: {'${PART}-1': {endpoints: {production: {url: 'http://there'}}}}";
    let one = "  - {name: AB, version: '1', operations: [{verb: get, target: /x}]}\n";
    let (found, notes) = read(one, &[("Deployment/params.yaml", parameters)]);
    let found = found.unwrap_or_else(|| panic!("{notes:?}"));
    assert_eq!((&*found.base_path, found.operations.len(), notes), ("/p/1.0.0", 1, vec![]));
    let backends = found.operations[0].endpoints.as_ref().and_then(|endpoints| endpoints.production.clone());
    assert_eq!(*backends.expect("a backend").urls, ["http://there".into()]);
    let (_, notes) = read("  - {name: AB, operations: [{verb: GET, target: /x, authType: None, scopes: [s]}]}\n", &[]);
    let expected = [
        "api_product.yaml:6:63: warning: `authType` is ignored: that of the operation in `APIs` applies",
        "api_product.yaml:6:77: error: `scopes` is ignored: that of the operation in `APIs` applies; `P:1.0.0` is not \
         served, unless `security.serve_unprotected` in penstock.toml lists it",
    ];
    assert_eq!(notes, expected);
    let nested = ("APIs/P-1/api_product.yaml", "type: api_product\ndata: {name: P, context: /p}");
    let broken = ("APIs/C-1/api.yaml", "type: api\ndata: {name: C}");
    for (apis, more, expected) in [
        ("  - {name: C}\n", &[][..], "api_product.yaml:6:5: error: the project has no API `C` in `APIs`"),
        ("  - {name: AB, version: '2'}\n", &[], "api_product.yaml:6:5: error: the project has no API `AB` 2 in `APIs`"),
        (
            "  - {name: AB, operations: [{verb: POST, target: /x}]}\n",
            &[],
            "api_product.yaml:6:29: error: `A B` has no operation POST /x",
        ),
        (
            "  - {name: AB, operations: [{verb: GET, target: /x}, {verb: GET, target: /x}]}\n",
            &[],
            "api_product.yaml:6:54: error: two APIs of the product have GET /x",
        ),
        ("  - {name: AB}\n", &[nested], "project/APIs/P-1:1:1: error: a product is made of APIs, not of products"),
        ("  - {name: AB}\n", &[broken], "APIs/C-1/api.yaml:2:7: error: an API needs `context`"),
    ] {
        let (found, notes) = read(apis, more);
        assert!(found.is_none() && notes.iter().any(|note| note == expected), "{apis}: {notes:#?}");
    }
}

fn described(api: &Api) -> String {
    let one = |cluster: &Option<Arc<penstock_catalog::Cluster>>| match cluster {
        None => "nothing".to_owned(),
        Some(cluster) => format!("{:?} {} {:?}", cluster.kind, cluster.urls.join("+"), cluster.security),
    };
    let Api { endpoints, vhosts, .. } = api;
    format!("{} | {} | {}", one(&endpoints.production), one(&endpoints.sandbox), vhosts.join("+"))
}

#[test]
fn parameters_of_the_environment_replace_what_the_project_says() {
    let check = |environment: &str, path: &str, parameters: &str, expected: &str, said: &[&str]| {
        let definition = "openapi: 3.0.1\ninfo: {title: B, version: 1}\nx-wso2-production-endpoints: {urls: [http://d]}\n\
                          paths: {/x: {get: {}}}\n";
        let descriptor = DESCRIPTOR.split("  operations:").next().unwrap();
        let files = [("api.yaml", descriptor), ("Definitions/swagger.yaml", definition), (path, parameters)];
        let (api, notes) = import_into(environment, &files);
        let notes: Vec<&String> = notes.iter().filter(|note| note.starts_with(path)).collect();
        assert_eq!(notes, said, "{environment}");
        assert_eq!(described(&api.unwrap()), expected, "{environment}");
    };
    let before = "LoadBalance http://d None | nothing | ";
    check(
        "dev",
        "api_params.yaml",
        PARAMETERS,
        "LoadBalance http://backend:9000/dev None | nothing | eu.example.com",
        &[],
    );
    check(
        "balanced",
        "params.yaml",
        PARAMETERS,
        "LoadBalance http://one/b+http://two/b None | LoadBalance http://three/b None | ",
        &["params.yaml:17:7: warning: `mutualSslCerts` is ignored: certificates are read from `Client-certificates`"],
    );
    check(
        "failing-over",
        "api_params.yaml",
        PARAMETERS,
        "Failover http://one/f+http://two/f Some(Digest(d:***)) | nothing | ",
        &[],
    );
    check(
        "unset",
        "api_params.yaml",
        PARAMETERS,
        "LoadBalance http://${NOT_SET}/ None | nothing | ",
        &[
            "api_params.yaml:27:37: warning: `${NOT_SET}` stays as it is: the environment variable `NOT_SET` is not set",
            "api_params.yaml:28:7: warning: unknown key `endpoint` is ignored, did you mean `endpoints`?",
        ],
    );
    let names = "ignored: there are parameters for `dev`, `balanced`, `failing-over`, `unset`";
    check(
        "",
        "api_params.yaml",
        PARAMETERS,
        before,
        &[&format!("api_params.yaml:2:3: warning: {names}; `gateway.environment` selects one")],
    );
    check(
        "dve",
        "api_params.yaml",
        PARAMETERS,
        before,
        &[&format!("api_params.yaml:2:3: warning: {names}, and not for `dve`, did you mean `dev`?")],
    );
    // What `apictl` sends along belongs to one environment, with any name of the gateway.
    check(
        "",
        "Deployment/intermediate_params.yaml",
        "endpoints: {production: {url: http://sent}}\n",
        "LoadBalance http://sent None | nothing | ",
        &[],
    );
}

#[test]
fn large_apis_are_imported_in_a_moment() {
    let names: Vec<String> = (0..20_000).map(|number| format!("askForSomethingRatherLong{number}")).collect();
    let descriptor = |kind: &str, operations: Vec<String>| {
        let head = r#"{"type": "api", "data": {"name": "A", "context": "/a", "version": "1", "type": "#;
        let backend = r#""endpointConfig": {"endpoint_type": "http", "production_endpoints": {"url": "http://b"}}"#;
        format!("{head} \"{kind}\", {backend}, \"operations\": [{}]}}}}", operations.join(","))
    };
    let operation = |verb: &str, name: &String| format!(r#"{{"target": "{name}", "verb": "{verb}"}}"#);
    let schema = format!("type Query {{ {}: Int }}", names.join(": Int "));
    let queries = descriptor("GRAPHQL", names.iter().map(|name| operation("QUERY", name)).collect());
    let topics = descriptor("SSE", names.iter().map(|name| operation("SUBSCRIBE", name)).collect());
    let channels: Vec<String> = names.iter().map(|name| format!("\"{name}\": {{\"subscribe\": {{}}}}")).collect();
    let definition = format!(
        r#"{{"asyncapi": "2.0.0", "info": {{"title": "A", "version": "1"}}, "channels": {{{}}}}}"#,
        channels.join(",")
    );
    let projects = [
        [("api.json", queries), ("Definitions/schema.graphql", schema)],
        [("api.json", topics), ("Definitions/asyncapi.json", definition)],
    ];
    for files in projects {
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let started = std::time::Instant::now();
        let (api, notes) = import(&files);
        assert_eq!(api.map(|api| api.operations.len()), Some(20_000), "{:?}", notes.first());
        assert!(started.elapsed().as_secs() < 10, "it does not take long because there are many");
    }
}

#[test]
fn operations_that_no_request_can_reach_are_reported() {
    let with = |paths: &str| format!("{HEAD}paths:\n{paths}");
    for (paths, expected) in [
        ("  /x: {get: {}}\n  /x/: {get: {}}\n  /y/{a}: {get: {}}\n  /y/{b}: {post: {}}\n", vec![]),
        (
            "  /#Action=List: {post: {}}\n",
            vec!["api:5:19: warning: `POST /#Action=List` can never be reached: clients do not send what follows `#`"],
        ),
        (
            "  /a/../b: {get: {}}\n",
            vec!["api:5:13: warning: `GET /a/../b` can never be reached: paths with `.` or `..` are refused"],
        ),
        (
            "  /rest?method=a: {get: {}}\n  /rest?method=b: {get: {}}\n",
            vec![
                "api:6:20: warning: `GET /rest?method=b` can never be reached: `GET /rest?method=a` in line 5 takes the \
                 same paths, and queries take no part in routing",
            ],
        ),
        (
            "  /y/{a}: {get: {}}\n  /y/{b}: {get: {x-wso2-disable-security: true}}\n",
            vec![
                "api:6:12: warning: `GET /y/{b}` can never be reached: `GET /y/{a}` in line 5 takes the same paths; its \
                 security is another",
            ],
        ),
    ] {
        says(&with(paths), &expected);
    }
}

#[test]
fn references_lead_to_other_files_of_the_project() {
    let definition = format!(
        "{HEAD}paths:\n  /a: {{get: {{$ref: 'ops/a.yaml'}}}}\n  /b: {{$ref: 'ops/b.yaml'}}\n  \
         /c: {{$ref: './ops/all.yaml#/c~1d'}}\n"
    );
    let files = [
        ("", definition.as_str()),
        ("ops/a.yaml", "x-wso2-disable-security: true\n"),
        ("ops/b.yaml", "get: {$ref: '#/shared'}\npost: {$ref: '../ops/a.yaml'}\nshared: {operationId: b}\n"),
        ("ops/all.yaml", "c/d: {put: {operationId: c}}\n"),
    ];
    let (api, notes) = import(&files);
    assert_eq!(notes, ["api:6:7: warning: `shared` is not a method; it is ignored"]);
    let api = api.unwrap();
    let operations: Vec<_> = api
        .operations
        .iter()
        .map(|operation| {
            (&*operation.method, &*operation.path, operation.secured, operation.id.as_deref().unwrap_or_default())
        })
        .collect();
    assert_eq!(
        operations,
        [("GET", "/a", false, ""), ("GET", "/b", true, "b"), ("POST", "/b", false, ""), ("PUT", "/c", true, "c")]
    );
}

#[test]
fn references_stay_inside_the_project() {
    for (reference, expected) in [
        ("../other.yaml", "error: `../other.yaml` leads out of the folder of the project"),
        ("/etc/passwd", "error: `/etc/passwd` leads out of the folder of the project"),
        ("ops/none.yaml", "error: `ops/none.yaml` cannot be resolved: the project has no file `ops/none.yaml`"),
        ("ops/a.yaml#/x", "error: `ops/a.yaml#/x` cannot be resolved"),
        ("ops/circle.yaml", "error: references lead to each other more than 16 times"),
    ] {
        let definition = format!("{HEAD}paths:\n  /a: {{$ref: '{reference}'}}\n");
        let files =
            [("", definition.as_str()), ("ops/a.yaml", "get: {}\n"), ("ops/circle.yaml", "$ref: circle.yaml\n")];
        let (api, notes) = import(&files);
        assert!(api.is_none());
        assert!(notes.iter().any(|note| note.ends_with(expected)), "{reference}: {notes:?}");
    }
}

const OLD_NOTE: &str = ":1:1: warning: an export of API Manager 2 or 3: its descriptor is converted to the form of version 4; \
                        check the API before use";

#[test]
fn exports_of_api_manager_3_are_converted() {
    let descriptor = r#"id:
  providerName: admin
  apiName: Shop
  version: 2.0.0
type: HTTP
context: /shop/2.0.0
contextTemplate: /shop/{version}
status: PUBLISHED
implementation: ENDPOINT
isDefaultVersion: true
transports: http,https
apiSecurity: api_key,oauth_basic_auth_api_key_mandatory
authorizationHeader: X-Auth
apiLevelPolicy: 10KPerMin
endpointSecured: true
endpointAuthDigest: false
endpointUTUsername: shop
endpointUTPassword: secret
endpointConfig: '{"endpoint_type":"http","production_endpoints":{"url":"http://prod:81/s"},"sandbox_endpoints":{"url":"http://sand:81/s"}}'
availableTiers: [{name: Gold}, {name: Bronze}]
corsConfiguration: {corsConfigurationEnabled: true, accessControlAllowOrigins: ['https://a']}
uriTemplates:
- {uriTemplate: /orders/{id}, httpVerb: GET, authType: Any, throttlingTier: Unlimited, scopes: [{key: read}]}
- {uriTemplate: /open, httpVerb: POST, authType: None}
"#
    .replace("/orders/{id}", "'/orders/{id}'");
    let definition = "openapi: 3.0.1\ninfo: {title: Shop, version: 2.0.0}\npaths:\n  '/orders/{id}': {get: {}}\n  /open: {post: {}}\n";
    let files = [("Meta-information/api.yaml", &*descriptor), ("Meta-information/swagger.yaml", definition)];
    let (api, notes) = import(&files);
    assert_eq!(notes, [format!("Meta-information/api.yaml{OLD_NOTE}")]);
    let api = api.unwrap();
    assert_eq!((&*api.name, &*api.base_path, api.default_path.as_deref()), ("Shop", "/shop/2.0.0", Some("/shop")));
    assert_eq!((api.security.oauth2, api.security.api_key), (false, true));
    assert_eq!((api.authorization_header.as_deref(), api.tier.as_deref()), (Some("X-Auth"), Some("10KPerMin")));
    let (production, sandbox) = (api.endpoints.production.as_ref().unwrap(), api.endpoints.sandbox.as_ref().unwrap());
    assert_eq!((&*production.urls[0], &*sandbox.urls[0]), ("http://prod:81/s", "http://sand:81/s"));
    assert!(matches!(production.security, Some(EndpointSecurity::Basic(_))));
    assert_eq!(api.subscription_plans.len(), 2);
    let of = |path: &str| api.operations.iter().find(|operation| &*operation.path == path).unwrap();
    assert_eq!((of("/orders/{id}").secured, of("/open").secured), (true, false));
    assert_eq!(&*of("/orders/{id}").scopes[0], "read");
}

#[test]
fn exports_of_api_manager_2_are_converted_and_never_served_by_their_definition_alone() {
    let descriptor = r#"{"id": {"providerName": "admin", "apiName": "Shop", "version": "1.0"}, "context": "/shop/1.0",
        "type": "HTTP", "status": "PUBLISHED", "transports": "https", "apiSecurity": "oauth2",
        "endpointConfig": "{\"production_endpoints\":{\"url\":\"http://p\"},\"endpoint_type\":\"http\"}",
        "uriTemplates": [{"uriTemplate": "/x", "httpVerb": "GET", "authType": "Any"}]}"#;
    let definition = r#"{"swagger": "2.0", "info": {"title": "Shop", "version": "1.0"}, "paths": {"/x": {"get": {}}}}"#;
    let of = |descriptor: &str| {
        import(&[("Meta-information/api.json", descriptor), ("Meta-information/swagger.json", definition)])
    };
    let (api, notes) = of(descriptor);
    assert_eq!(notes, [format!("Meta-information/api.json{OLD_NOTE}")]);
    let api = api.unwrap();
    assert_eq!((&*api.base_path, api.transports.len(), api.operations[0].secured), ("/shop/1.0", 1, true));
    for broken in [
        descriptor.replace("http://p", "ftp://p"),
        descriptor.replace("\"{\\\"production", "\"{production"),
        descriptor.replace("\"apiSecurity\": \"oauth2\"", "\"inSequence\": \"guard\""),
        descriptor.replace("\"context\": \"/shop/1.0\",", ""),
        "{".to_owned(),
    ] {
        assert!(of(&broken).0.is_none(), "{broken}");
    }
}

#[test]
fn servers_without_a_scheme_and_relative_ones() {
    let of = |base: Option<&str>, servers: &str| {
        let config = ImportConfig { servers_base: base.map(Into::into), ..ImportConfig::default() };
        let variables = HashMap::new();
        let mut import = Import::new(&config, &variables);
        let text = format!(
            "openapi: 3.0.1\ninfo: {{title: B, version: '1'}}\nservers: [{servers}]\npaths: {{/x: {{get: {{}}}}}}\n"
        );
        let file = ProjectFile { file: "api".into(), path: String::new(), bytes: text.into_bytes().into() };
        let imported = import.project(&Project { name: "project".into(), files: vec![file], more: None });
        let Some(api) = imported.and_then(|imported| imported.api) else { return Default::default() };
        let url = api.endpoints.production.as_ref().map_or_else(String::new, |cluster| cluster.urls[0].to_string());
        (api.base_path.to_string(), url)
    };
    let found = |base: &str, url: &str| (base.to_owned(), url.to_owned());
    assert_eq!(of(None, "{url: '//h:81/v1'}"), found("/v1", "http://h:81/v1"));
    assert_eq!(of(Some("https://b"), "{url: '//h:81/v1'}"), found("/v1", "https://h:81/v1"));
    assert_eq!(of(Some("https://b/root"), "{url: /v1}"), found("/v1", "https://b/v1"));
    assert_eq!(of(Some("https://b/root"), "{url: v1}"), found("/v1", "https://b/root/v1"));
    assert_eq!(of(Some("https://b/root"), "{url: 'https://other/v2'}"), found("/v2", "https://other/v2"));
    // Without a base it names no backend, and the API has no other.
    assert_eq!(of(None, "{url: /v1}"), found("", ""));
}
