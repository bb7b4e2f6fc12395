//! SCIM 2: users and groups.

use serde_json::json;

use super::*;

impl Server {
    fn scim(&self, user: &str, password: &str, method: &str, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let path = format!("/scim2{path}");
        let response = self.send(method, &path, &basic(user, password), "application/scim+json", &body);
        (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
    }

    fn as_admin(&self, status: u16, method: &str, path: &str, body: Value) -> Value {
        let (got, response) = self.scim("admin", "admin", method, path, body);
        assert_eq!(got, status, "{method} {path}: {response}");
        response
    }
}

#[test]
fn users_and_groups_are_managed() {
    let server = Server::start();
    let body =
        json!({"userName": "anna", "password": "secret1", "name": {"familyName": "Berg"}, "emails": ["a@b.org"]});
    let anna = server.as_admin(201, "POST", "/Users", body.clone());
    assert_eq!(server.as_admin(409, "POST", "/Users", body)["scimType"], "uniqueness");
    server.as_admin(400, "POST", "/Users", json!({"userName": "short", "password": "1234"}));
    let path = format!("/Users/{}", text(&anna["id"]));
    let ops = |operations: Value| json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations});
    let changed = server.as_admin(
        200,
        "PATCH",
        &path,
        ops(json!([
            {"op": "replace", "path": "name.givenName", "value": "Anna"}, {"op": "remove", "path": "emails"},
            {"op": "add", "value": {"title": "Dr"}},
        ])),
    );
    assert_eq!(changed["name"], json!({"familyName": "Berg", "givenName": "Anna"}));
    assert_eq!((changed.get("emails"), &changed["title"]), (None, &json!("Dr")));

    let group = json!({"displayName": "readers", "members": [{"value": anna["id"]}]});
    let group = server.as_admin(201, "POST", "/Groups", group);
    assert_eq!(group["members"][0]["display"], "anna");
    assert_eq!(server.as_admin(200, "GET", &path, Value::Null)["groups"][0]["display"], "readers");
    let of_group = format!("/Groups/{}", text(&group["id"]));
    let remove = ops(json!([{"op": "remove", "path": format!("members[value eq \"{}\"]", text(&anna["id"]))}]));
    assert_eq!(server.as_admin(200, "PATCH", &of_group, remove)["members"], json!([]));
    server.as_admin(409, "POST", "/Groups", json!({"displayName": "Internal/Creator"}));
    server.as_admin(204, "DELETE", &of_group, Value::Null);
    server.as_admin(404, "GET", &of_group, Value::Null);
    server.as_admin(400, "PATCH", &path, ops(json!([{"op": "add", "path": "secret", "value": 1}])));
}

#[test]
fn lists_are_filtered_and_paged() {
    let server = Server::start();
    for number in 1..=5 {
        server.as_admin(201, "POST", "/Users", json!({"userName": format!("user{number}"), "password": "secret1"}));
    }
    let page = server.as_admin(200, "GET", "/Users?startIndex=2&count=2", Value::Null);
    assert_eq!((&page["totalResults"], &page["itemsPerPage"], &page["startIndex"]), (&json!(6), &json!(2), &json!(2)));
    let filter = |text: &str| format!("/Users?filter={}", encode(text));
    assert_eq!(server.as_admin(200, "GET", &filter("userName sw user"), Value::Null)["totalResults"], 5);
    assert_eq!(
        server.as_admin(200, "GET", &filter("userName eq \"user3\""), Value::Null)["Resources"][0]["userName"],
        "user3"
    );
    let search = json!({"filter": "userName co 4"});
    assert_eq!(server.as_admin(200, "POST", "/Users/.search", search)["totalResults"], 1);
    assert_eq!(server.as_admin(400, "GET", &filter("userName like x"), Value::Null)["scimType"], "invalidFilter");
}

#[test]
fn a_disabled_account_ends_and_users_change_only_themselves() {
    let server = Server::start();
    server.add_user("anna", "Internal/creator");
    let token = server.token("anna", "password", "apim:api_view");
    let (status, me) = server.scim("anna", "password", "GET", "/Me", Value::Null);
    assert_eq!((status, &me["userName"]), (200, &json!("anna")));
    assert_eq!(server.scim("anna", "password", "GET", "/Users", Value::Null).0, 403);
    assert_eq!(server.scim("anna", "wrong", "GET", "/Me", Value::Null).0, 401);
    let promote = json!({"roles": [{"value": "admin"}], "groups": [], "active": false, "title": "Dr"});
    let (_, changed) = server.scim("anna", "password", "PUT", "/Me", promote);
    assert_eq!((&changed["active"], &changed["title"]), (&json!(true), &json!("Dr")));
    assert_eq!(changed["roles"][0]["value"], "Internal/creator");
    let path = format!("/Users/{}", text(&me["id"]));
    let off = json!({"Operations": [{"op": "replace", "path": "active", "value": false}]});
    assert_eq!(server.as_admin(200, "PATCH", &path, off)["active"], false);
    server.expect(401, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    assert_eq!(server.scim("anna", "password", "GET", "/Me", Value::Null).0, 401);
    server.as_admin(200, "PUT", &path, json!({"userName": "anna", "active": true, "password": "changed1"}));
    assert_eq!(server.scim("anna", "changed1", "GET", "/Me", Value::Null).0, 200);
    server.as_admin(204, "DELETE", &path, Value::Null);
    let admin = server.as_admin(200, "GET", "/Me", Value::Null);
    server.as_admin(400, "DELETE", &format!("/Users/{}", text(&admin["id"])), Value::Null);
}
