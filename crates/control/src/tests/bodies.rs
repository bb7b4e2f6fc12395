//! Every implemented operation with a body refuses one that is not of its form.

use super::*;

/// The configuration of an organization has members of its own.
const CONFIGURATION: &str = "/tenant-config";

/// A revision of an unknown API is answered with 500, which API Manager's own tests expect; its body is optional.
const REVISIONS: &str = "/revisions";

#[test]
fn every_operation_refuses_a_malformed_body() {
    let server = Server::start();
    let routes = Routes::new();
    let mut scopes: Vec<&str> = routes.scopes().collect();
    scopes.sort_unstable();
    scopes.dedup();
    let token = format!("Bearer {}", server.token("admin", "admin", &scopes.join(" ")));
    let mut wrong = Vec::new();
    let mut tried = 0;
    for operation in routes.operations() {
        let has_body = matches!(operation.method, "POST" | "PUT" | "PATCH") && operation.handler.is_some();
        if !has_body {
            continue;
        }
        let (base, authorization) = match operation.api {
            route::Api::Publisher => ("/api/am/publisher/v4", token.clone()),
            route::Api::Devportal => ("/api/am/devportal/v3", token.clone()),
            route::Api::Admin => ("/api/am/admin/v4", token.clone()),
            route::Api::ServiceCatalog => ("/api/am/service-catalog/v1", token.clone()),
            route::Api::Gateway => ("/api/am/gateway/v2", basic("admin", "admin")),
            route::Api::Devops | route::Api::Internal => continue,
        };
        let path = format!("{base}{}", operation.path.replace(['{', '}'], ""));
        for (kind, body) in [
            ("application/json", "{\"name\": "),
            ("application/json", "[[1]]"),
            ("application/json", "{\"no-such-member\": {}}"),
            ("multipart/form-data; boundary=b", "--b\r\nno end"),
        ] {
            if operation.path == CONFIGURATION && body.contains("no-such-member") {
                continue;
            }
            tried += 1;
            let response = server.send(operation.method, &path, &authorization, kind, body);
            let is_expected_500 = response.status == 500 && operation.path.ends_with(REVISIONS);
            if !(400..500).contains(&response.status) && !is_expected_500 {
                wrong.push(format!("{} {path} {kind} {body}: {}", operation.method, response.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 400, "only {tried} requests were sent");
}
