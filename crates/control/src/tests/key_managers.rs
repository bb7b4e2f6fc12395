//! Key managers of other products.

use serde_json::json;

use super::*;

pub(super) fn manager() -> Value {
    json!({
        "name": "Keycloak", "type": "KeyCloak", "issuer": "https://idp/realms/one", "enabled": true,
        "certificates": {"type": "JWKS", "value": "https://idp/certs"}, "consumerKeyClaim": "azp",
        "additionalProperties": {"client_id": "gateway", "client_secret": "hidden", "self_validate_jwt": true},
        "claimMapping": [{"remoteClaim": "mail", "localClaim": "email"}],
    })
}

#[test]
fn the_gateway_is_given_registered_key_managers() {
    let server = Server::start();
    let token = server.admin();
    let path = "/api/am/admin/v4/key-managers";
    let created = server.expect(201, "POST", path, &token, &manager());
    assert_eq!(created["additionalProperties"]["client_secret"], "*****");
    assert_eq!(created["additionalProperties"]["client_id"], "gateway");
    let issuers = server.gateway.served.lock().unwrap().issuers.clone();
    assert_eq!((issuers[0].name.as_str(), issuers[0].jwks_url.as_deref()), ("Keycloak", Some("https://idp/certs")));
    assert_eq!(issuers[0].claim_mapping, [("mail".to_owned(), "email".to_owned())]);
    assert_eq!(server.expect(409, "POST", path, &token, &manager())["code"], 901_402);
    let one = format!("{path}/{}", text(&created["id"]));
    let mut changed = created.clone();
    changed["description"] = "changed".into();
    server.expect(200, "PUT", &one, &token, &changed);
    let kept = server.control.store.read(|tx| {
        let found = tx.find(crate::store::Kind::KeyManager, "carbon.super", "keycloak")?.unwrap();
        Ok(found.document["additionalProperties"]["client_secret"].clone())
    });
    assert_eq!(kept.unwrap(), "hidden", "a masked secret is kept");
    changed["type"] = "Okta".into();
    server.expect(400, "PUT", &one, &token, &changed);
    changed["type"] = "KeyCloak".into();
    changed["enabled"] = false.into();
    server.expect(200, "PUT", &one, &token, &changed);
    assert!(server.gateway.served.lock().unwrap().issuers.is_empty());
    let list = server.expect(200, "GET", path, &token, &Value::Null);
    assert_eq!(list["count"], 2);
    let portal = server.expect(200, "GET", "/api/am/devportal/v3/key-managers", &token, &Value::Null);
    assert_eq!(portal["count"], 1, "portals show what is enabled");
    server.expect(200, "DELETE", &one, &token, &Value::Null);
    server.expect(404, "GET", &one, &token, &Value::Null);
}

#[test]
fn a_key_manager_needs_the_properties_of_its_connector() {
    let server = Server::start();
    let token = server.admin();
    let path = "/api/am/admin/v4/key-managers";
    for (member, value, code) in [
        ("additionalProperties", json!({"client_id": "gateway"}), 901_401),
        ("type", json!("Unheard"), 901_400),
        ("name", json!("resident key manager"), 901_402),
    ] {
        let mut given = manager();
        given[member] = value;
        let (status, body) = server.call("POST", path, &token, &given);
        assert_eq!((status >= 400, &body["code"]), (true, &json!(code)), "{member}");
    }
}

#[test]
fn a_client_of_another_key_manager_belongs_to_an_application() {
    let server = Server::start();
    let token = server.admin();
    let path = "/api/am/admin/v4/key-managers";
    let id = text(&server.expect(201, "POST", path, &token, &manager())["id"]);
    let applications = "/api/am/devportal/v3/applications";
    let body = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let application = text(&server.expect(201, "POST", applications, &token, &body)["applicationId"]);
    let keys = format!("{applications}/{application}/map-keys");
    let body = json!({"consumerKey": "shop-web", "keyType": "PRODUCTION", "keyManager": "Keycloak"});
    assert_eq!(server.expect(200, "POST", &keys, &token, &body)["keyManager"], "Keycloak");
    let access = server.gateway.access.lock().unwrap().clone();
    let shop = &access.applications.iter().find(|known| *known.name == *"Shop").unwrap().id;
    assert!(access.keys.iter().any(|key| key.application == *shop && *key.key == *"shop-web" && key.production));
    assert_eq!(server.token_response(&("shop-web".to_owned(), String::new()), "grant_type=password").0, 401);
    assert_eq!(server.expect(409, "POST", &keys, &token, &body)["code"], 901_408);
    server.expect(412, "DELETE", &format!("{path}/{id}"), &token, &Value::Null);
    let unknown = json!({"consumerKey": "x", "keyType": "PRODUCTION", "keyManager": "Unheard"});
    assert_eq!(server.expect(400, "POST", &keys, &token, &unknown)["code"], 901_403);
}

#[test]
fn clients_are_registered_at_another_key_manager() {
    let server = Server::start();
    let token = server.admin();
    let at = |path: &str, body: Value| (format!("https://idp{path}"), body.to_string());
    *server.gateway.web.lock().unwrap() = vec![
        at("/token", json!({"access_token": "for-registration", "scope": "a b", "expires_in": 60})),
        at(
            "/clients",
            json!({
                "client_id": "made-there", "client_secret": "theirs", "registration_client_uri": "https://idp/clients/1",
                "registration_access_token": "for-this-client",
            }),
        ),
        at("/clients/1", json!({})),
    ];
    let mut given = manager();
    given["tokenEndpoint"] = "https://idp/token".into();
    given["clientRegistrationEndpoint"] = "https://idp/clients".into();
    server.expect(201, "POST", "/api/am/admin/v4/key-managers", &token, &given);
    let applications = "/api/am/devportal/v3/applications";
    let body = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let application = text(&server.expect(201, "POST", applications, &token, &body)["applicationId"]);
    let path = format!("{applications}/{application}");
    let body = json!({
        "keyType": "SANDBOX", "keyManager": "Keycloak", "grantTypesToBeSupported": ["client_credentials", "authorization_code"],
        "callbackUrl": "https://shop/back",
    });
    let keys = server.expect(200, "POST", &format!("{path}/generate-keys"), &token, &body);
    assert_eq!((&keys["consumerKey"], &keys["consumerSecret"]), (&json!("made-there"), &json!("theirs")));
    assert_eq!(server.expect(409, "POST", &format!("{path}/generate-keys"), &token, &body)["code"], 901_409);
    let one = format!("{path}/oauth-keys/{}", text(&keys["keyMappingId"]));
    let issued = server.expect(200, "POST", &format!("{one}/generate-token"), &token, &json!({"scopes": ["a"]}));
    assert_eq!((&issued["accessToken"], &issued["tokenScopes"]), (&json!("for-registration"), &json!(["a", "b"])));
    server.expect(200, "DELETE", &one, &token, &Value::Null);
    let fetched = server.gateway.fetched.lock().unwrap().clone();
    let credentials = STANDARD.encode("gateway:hidden");
    assert_eq!(fetched[0], format!("POST https://idp/token Basic {credentials} grant_type=client_credentials"));
    assert!(
        fetched[1]
            .starts_with("POST https://idp/clients Bearer for-registration {\"client_name\":\"admin_Shop_SANDBOX\"")
    );
    assert!(fetched[1].contains("[\"https://shop/back\"]"), "{}", fetched[1]);
    assert_eq!(fetched.last().unwrap(), "DELETE https://idp/clients/1 Bearer for-this-client ");
    server.gateway.web.lock().unwrap().clear();
    assert_eq!(server.expect(500, "POST", &format!("{path}/generate-keys"), &token, &body)["code"], 901_406);
}

#[test]
fn a_key_manager_is_discovered_and_its_use_is_listed() {
    let server = Server::start();
    let token = server.admin();
    let document = json!({"issuer": "https://idp", "token_endpoint": "https://idp/token", "jwks_uri": "https://idp/keys",
        "grant_types_supported": ["client_credentials"]});
    let url = "https://idp/.well-known/openid-configuration";
    server.gateway.web.lock().unwrap().push((url.to_owned(), document.to_string()));
    let discover = |url: &str| {
        let part = |name: &str, value: &str| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let body = format!("{}{}--b--\r\n", part("url", url), part("type", "KeyCloak"));
        let path = "/api/am/admin/v4/key-managers/discover";
        let response = server.send("POST", path, &format!("Bearer {token}"), "multipart/form-data; boundary=b", &body);
        serde_json::from_slice::<Value>(&response.body).unwrap()
    };
    let found = discover(url);
    assert_eq!((&found["valid"], &found["value"]["tokenEndpoint"]), (&json!(true), &json!("https://idp/token")));
    assert_eq!(found["value"]["certificates"], json!({"type": "JWKS", "value": "https://idp/keys"}));
    assert_eq!(discover("https://nothing")["valid"], false);
    let body = json!({"name": "Shop", "throttlingPolicy": "Unlimited"});
    let application = server.expect(201, "POST", "/api/am/devportal/v3/applications", &token, &body);
    let keys = format!("/api/am/devportal/v3/applications/{}/generate-keys", text(&application["applicationId"]));
    let wanted = json!({"keyType": "PRODUCTION", "grantTypesToBeSupported": ["client_credentials"]});
    server.expect(200, "POST", &keys, &token, &wanted);
    let used = server.expect(200, "GET", "/api/am/admin/v4/key-managers/resident/app-usages", &token, &Value::Null);
    assert_eq!((&used["applicationCount"], &used["applications"][0]["name"]), (&json!(1), &json!("Shop")));
    let apis = server.expect(200, "GET", "/api/am/admin/v4/key-managers/resident/api-usages", &token, &Value::Null);
    assert_eq!(apis["apiCount"], 0);
}
