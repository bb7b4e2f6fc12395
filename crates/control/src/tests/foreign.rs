//! Objects of another organization are not found by any operation, and no operation changes them. Uploads that are too large are
//! refused before any operation runs.

use super::*;
use crate::identity::SUPER_ORGANIZATION;
use crate::store::{Filter, Kind, Object};

/// What path parameters name, and the objects of the first organization that stand for them.
const NAMED: &[(&str, Kind)] = &[
    ("apiId", Kind::Api),
    ("mcpServerId", Kind::Api),
    ("apiProductId", Kind::Api),
    ("applicationId", Kind::Application),
    ("documentId", Kind::Document),
    ("commentId", Kind::Comment),
    ("keyMappingId", Kind::KeyMapping),
    ("policyId", Kind::Throttling),
    ("revisionId", Kind::Revision),
    ("keyManagerId", Kind::KeyManager),
    ("subscriptionId", Kind::Subscription),
    ("operationPolicyId", Kind::OperationPolicy),
    ("serviceId", Kind::Service),
    ("scopeId", Kind::Scope),
    ("environmentId", Kind::Environment),
    ("labelId", Kind::Label),
    ("conditionId", Kind::Deny),
    ("apiCategoryId", Kind::Category),
];

impl Server {
    /// A token of the administrator of an organization, with all scopes.
    fn all_scopes(&self, user: &str) -> String {
        let routes = Routes::new();
        let mut scopes: Vec<&str> = routes.scopes().collect();
        scopes.sort_unstable();
        scopes.dedup();
        self.token(user, "admin", &scopes.join(" "))
    }

    fn add_organization(&self, domain: &str) {
        let body = format!(
            "<e><tenantDomain>{domain}</tenantDomain><admin>admin</admin><adminPassword>admin</adminPassword></e>"
        );
        let response = self.control.respond(&Request {
            method: "POST".to_owned(),
            path: "/services/TenantMgtAdminService".to_owned(),
            query: String::new(),
            headers: vec![
                ("Authorization".to_owned(), basic("admin", "admin")),
                ("SOAPAction".to_owned(), "urn:addSkeletonTenant".to_owned()),
            ],
            body: body.into(),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        });
        assert_eq!(response.status, 200);
    }

    /// One object of every kind that a path can name.
    fn fill(&self, token: &str) {
        let (publisher, portal, admin) = ("/api/am/publisher/v4", "/api/am/devportal/v3", "/api/am/admin/v4");
        let post = |path: String, body: Value| self.expect(201, "POST", &path, token, &body);
        let id = self.published(token, "Orders", "/orders");
        let of_api = format!("{publisher}/apis/{id}");
        let document = json!({"name": "Guide", "type": "HOWTO", "sourceType": "INLINE", "visibility": "API_LEVEL"});
        post(format!("{of_api}/documents"), document);
        post(format!("{of_api}/comments"), json!({"content": "good"}));
        let application =
            post(format!("{portal}/applications"), json!({"name": "Shop", "throttlingPolicy": "Unlimited"}));
        let application = text(&application["applicationId"]);
        let keys = json!({"keyType": "PRODUCTION", "grantTypesToBeSupported": ["client_credentials"]});
        self.expect(200, "POST", &format!("{portal}/applications/{application}/generate-keys"), token, &keys);
        let subscription = json!({"apiId": id, "applicationId": application, "throttlingPolicy": "Gold"});
        post(format!("{portal}/subscriptions"), subscription);
        post(
            format!("{publisher}/scopes"),
            json!({"name": "orders:read", "displayName": "Read", "bindings": ["admin"]}),
        );
        post(format!("{admin}/labels"), json!({"name": "old"}));
        post(format!("{admin}/api-categories"), json!({"name": "Trade", "description": ""}));
        let hosts =
            json!([{"host": "eu.example", "httpPort": 8280, "httpsPort": 8243, "wsPort": 9099, "wssPort": 8099}]);
        post(format!("{admin}/environments"), json!({"name": "EU", "displayName": "EU", "vhosts": hosts}));
        post(format!("{admin}/key-managers"), key_managers::manager());
        let deny = json!({"conditionType": "IP", "conditionValue": {"fixedIp": "10.0.0.1", "invert": false}});
        post(format!("{admin}/throttling/deny-policies"), deny);
        self.insert_rest();
    }

    /// Kinds whose creation needs forms of several files.
    fn insert_rest(&self) {
        let kinds = [(Kind::Service, "Stock"), (Kind::OperationPolicy, "addTag")];
        let add = |(kind, name)| {
            let object = Object::new(kind, SUPER_ORGANIZATION, name, serde_json::Map::new()).owned("admin");
            self.control.store.change(|tx| tx.insert(&object)).unwrap().unwrap();
        };
        kinds.into_iter().for_each(add);
    }

    fn objects(&self, kind: Kind) -> Vec<Object> {
        self.control.store.read(|tx| tx.list(&Filter::new(kind, SUPER_ORGANIZATION))).unwrap()
    }
}

#[test]
fn no_operation_finds_or_changes_objects_of_another_organization() {
    let server = Server::start();
    server.add_organization("test.com");
    let (own, foreign) = (server.all_scopes("admin"), server.all_scopes("admin@test.com"));
    server.fill(&own);
    let ids: Vec<(&str, String)> = NAMED
        .iter()
        .map(|(parameter, kind)| {
            let objects = server.objects(*kind);
            let found = objects.iter().find(|object| object.name != "DefaultApplication");
            (*parameter, found.unwrap_or_else(|| panic!("there is no {kind:?}")).id.clone())
        })
        .collect();
    let dump = || NAMED.iter().map(|(_, kind)| format!("{:?}\n", server.objects(*kind))).collect::<String>();
    let before = dump();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for operation in Routes::new().operations() {
        let base = match operation.api {
            route::Api::Publisher => "/api/am/publisher/v4",
            route::Api::Devportal => "/api/am/devportal/v3",
            route::Api::Admin => "/api/am/admin/v4",
            route::Api::ServiceCatalog => "/api/am/service-catalog/v1",
            route::Api::Gateway | route::Api::Devops | route::Api::Internal => continue,
        };
        let named = ids.iter().any(|(parameter, _)| operation.path.contains(&format!("{{{parameter}}}")));
        if operation.handler.is_none() || !named {
            continue;
        }
        let mut path = format!("{base}{}", operation.path);
        for (parameter, id) in &ids {
            path = path.replace(&format!("{{{parameter}}}"), id);
        }
        let path = path.replace("{keyType}", "PRODUCTION").replace("{policyLevel}", "subscription");
        let path = path.replace(['{', '}'], "");
        // What its owner reads is a valid body of most changes.
        let body = match operation.method {
            "GET" | "DELETE" => Value::Null,
            _ => Some(server.call("GET", &path, &own, &Value::Null).1).filter(Value::is_object).unwrap_or(json!({})),
        };
        tried += 1;
        let (status, _) = server.call(operation.method, &path, &foreign, &body);
        let is_expected_500 = status == 500 && operation.method == "POST" && path.ends_with("/revisions");
        let is_right = match operation.method {
            "GET" => status == 404,
            _ => (400..500).contains(&status) || is_expected_500,
        };
        if !is_right {
            wrong.push(format!("{} {path}: {status}", operation.method));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 150, "only {tried} operations were called");
    assert_eq!(dump(), before, "another organization changed an object");
}

#[test]
fn a_body_cannot_name_an_object_of_another_organization() {
    let server = Server::start();
    server.add_organization("test.com");
    let foreign = server.all_scopes("admin@test.com");
    let id = server.published(&server.admin(), "Orders", "/orders");
    let portal = "/api/am/devportal/v3";
    let application = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let application = server.expect(201, "POST", &format!("{portal}/applications"), &foreign, &application);
    let wanted = json!({"apiId": id, "applicationId": application["applicationId"], "throttlingPolicy": "Gold"});
    server.expect(404, "POST", &format!("{portal}/subscriptions"), &foreign, &wanted);
    let product = json!({"name": "All", "context": "/all", "version": "1", "policies": ["Gold"],
        "apis": [{"apiId": id, "operations": [{"target": "/*", "verb": "POST"}]}]});
    let (status, _) = server.call("POST", "/api/am/publisher/v4/api-products", &foreign, &product);
    assert!((400..500).contains(&status), "{status}");
    let copy = format!("/api/am/publisher/v4/apis/copy-api?apiId={id}&newVersion=2");
    server.expect(404, "POST", &copy, &foreign, &Value::Null);
}

#[test]
fn every_operation_refuses_an_upload_that_is_too_large() {
    let server = Server::start();
    let token = server.all_scopes("admin");
    let mut request = Request {
        method: String::new(),
        path: String::new(),
        query: String::new(),
        headers: vec![
            ("Authorization".to_owned(), format!("Bearer {token}")),
            ("Content-Type".to_owned(), "multipart/form-data; boundary=b".to_owned()),
        ],
        body: Bytes::from(vec![b'x'; crate::BODY_BYTES_MAX + 1]),
        client: IpAddr::V4(Ipv4Addr::LOCALHOST),
    };
    for operation in Routes::new().operations() {
        request.method = operation.method.to_owned();
        request.path = format!("/api/am/publisher/v4{}", operation.path.replace(['{', '}'], ""));
        assert_eq!(server.control.respond(&request).status, 413, "{} {}", request.method, request.path);
    }
    request.path = "/oauth2/token".to_owned();
    assert_eq!(server.control.respond(&request).status, 413);
}
