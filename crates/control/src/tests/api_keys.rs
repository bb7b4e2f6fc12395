//! API keys of applications and of APIs, and opaque access tokens, as the gateway asks for them.

use serde_json::json;

use super::*;

const APPLICATIONS: &str = "/api/am/devportal/v3/applications";

/// An application that subscribed to a published API: their ids.
fn subscribed(server: &Server, token: &str, token_type: &str) -> (String, String) {
    let api = server.published(token, "Echo", "/echo");
    let body = json!({"name": "Shop", "throttlingPolicy": "Unlimited", "tokenType": token_type});
    let application = text(&server.expect(201, "POST", APPLICATIONS, token, &body)["applicationId"]);
    let body = json!({"apiId": api, "applicationId": application, "throttlingPolicy": "Gold"});
    server.expect(201, "POST", "/api/am/devportal/v3/subscriptions", token, &body);
    (application, api)
}

#[test]
fn the_gateway_is_given_the_claims_of_api_keys() {
    let server = Server::start();
    let token = server.admin();
    let (application, _) = subscribed(&server, &token, "JWT");
    let path = format!("{APPLICATIONS}/{application}/api-keys/SANDBOX");
    let body = json!({
        "keyName": "web", "validityPeriod": 600,
        "additionalProperties": {"permittedIP": "10.0.0.0/8,::1", "permittedReferer": ["a.org/*", "b.org"]},
    });
    let key = server.expect(200, "POST", &format!("{path}/generate"), &token, &body);
    let secret = text(&key["apikey"]);
    let claims = server.control.opaque_claims(&secret).unwrap();
    assert_eq!((&claims["token_type"], &claims["keytype"]), (&json!("apiKey"), &json!("SANDBOX")));
    assert_eq!(claims["application"]["uuid"], application.as_str());
    assert_eq!(claims["permittedIP"], "10.0.0.0/8,::1");
    assert_eq!(claims["permittedReferer"], "a.org/*,b.org");
    assert!(claims["exp"].as_u64().unwrap() > claims["iat"].as_u64().unwrap());
    let list = server.expect(200, "GET", &path, &token, &Value::Null);
    assert_eq!((&list["count"], &list["list"][0]["keyName"]), (&json!(1), &json!("web")));
    assert_eq!(list["list"][0].get("apikey"), None, "a key is shown once");
    let other = format!("{APPLICATIONS}/{application}/api-keys/PRODUCTION");
    assert_eq!(server.expect(200, "GET", &other, &token, &Value::Null)["count"], 0);

    let named = json!({"keyUUID": key["keyUUID"]});
    let renewed = server.expect(200, "POST", &format!("{path}/regenerate"), &token, &named);
    assert!(server.control.opaque_claims(&secret).is_none());
    assert_eq!(server.gateway.revoked.lock().unwrap().as_slice(), [text(&claims["jti"])]);
    let renewed = text(&renewed["apikey"]);
    assert_ne!(server.control.opaque_claims(&renewed).unwrap()["jti"], claims["jti"]);
    server.expect(200, "POST", &format!("{path}/revoke"), &token, &json!({"apikey": renewed}));
    assert!(server.control.opaque_claims(&renewed).is_none());
    server.expect(404, "POST", &format!("{path}/revoke"), &token, &named);
}

#[test]
fn what_is_no_key_is_refused() {
    let server = Server::start();
    let token = server.admin();
    let (application, _) = subscribed(&server, &token, "JWT");
    let path = format!("{APPLICATIONS}/{application}/api-keys/PRODUCTION/generate");
    for body in [
        json!({"additionalProperties": {"permittedIP": "10.0.0.300"}}),
        json!({"validityPeriod": 0}),
        json!({"validityPeriod": "long"}),
        json!({"unknown": 1}),
    ] {
        server.expect(400, "POST", &path, &token, &body);
    }
    let wrong = format!("{APPLICATIONS}/{application}/api-keys/TEST/generate");
    server.expect(400, "POST", &wrong, &token, &json!({}));
    server.add_user("stranger", "Internal/subscriber");
    let stranger = server.token("stranger", "password", "apim:subscribe apim:app_manage apim:api_key");
    server.expect(403, "POST", &path, &stranger, &json!({}));
    assert!(server.control.opaque_claims("nothing").is_none());
    let ended = json!({"validityPeriod": 1});
    let key = text(&server.expect(200, "POST", &path, &token, &ended)["apikey"]);
    let hash = crate::random::sha256(key.as_bytes());
    server
        .control
        .store
        .change(|tx| {
            let mut kept = tx.get_of_any_organization(crate::store::Kind::ApiKey, &hash)?.unwrap();
            kept.set("ends", 1);
            tx.update(&mut kept)
        })
        .unwrap();
    assert!(server.control.opaque_claims(&key).is_none(), "the key has ended");
}

#[test]
fn a_key_of_an_api_is_valid_with_an_application() {
    let server = Server::start();
    let token = server.admin();
    let (application, api) = subscribed(&server, &token, "JWT");
    let of_api = format!("/api/am/devportal/v3/apis/{api}/api-keys");
    let body = json!({"keyName": "one", "keyType": "PRODUCTION", "validityPeriod": -1});
    let key = server.expect(200, "POST", &format!("{of_api}/generate"), &token, &body);
    let secret = text(&key["apikey"]);
    assert!(server.control.opaque_claims(&secret).is_none(), "no application calls with it");
    let path = format!("{APPLICATIONS}/{application}/api-keys/PRODUCTION");
    let open = server.expect(200, "GET", &format!("{path}/subscriptions"), &token, &Value::Null);
    assert_eq!((&open["list"][0]["apiName"], &open["list"][0]["keyUUID"]), (&json!("Echo"), &key["keyUUID"]));
    let body = json!({"keyUUID": key["keyUUID"], "apiUUID": api});
    let made = server.expect(200, "POST", &format!("{path}/associate"), &token, &body);
    assert_eq!(made["applicationName"], "Shop");
    let claims = server.control.opaque_claims(&secret).unwrap();
    assert_eq!(claims["subscribedAPIs"][0]["name"], "Echo");
    assert_eq!(claims.get("exp"), None);
    let list = server.expect(200, "GET", &of_api, &token, &Value::Null);
    assert_eq!(list["list"][0]["associatedApp"], "Shop");
    let associations = server.expect(200, "GET", &format!("{path}/associations"), &token, &Value::Null);
    assert_eq!(associations["list"][0]["apiUUID"], api.as_str());
    assert_eq!(server.expect(200, "GET", &path, &token, &Value::Null)["count"], 0);
    let all = server.expect(200, "GET", "/api/am/admin/v4/api-keys", &token, &Value::Null);
    assert_eq!((&all["list"][0]["applicationName"], &all["list"][0]["user"]), (&json!("Shop"), &json!("admin")));
    server.expect(200, "POST", &format!("{of_api}/dissociate"), &token, &json!({"keyUUID": key["keyUUID"]}));
    assert!(server.control.opaque_claims(&secret).is_none());
    let body = json!({"keyUUID": key["keyUUID"]});
    server.expect(200, "POST", "/api/am/admin/v4/api-keys/revoke", &token, &body);
    assert_eq!(server.expect(200, "GET", &of_api, &token, &Value::Null)["count"], 0);
    server.expect(200, "POST", &format!("{of_api}/generate"), &token, &json!({}));
    server.expect(200, "DELETE", &format!("{APPLICATIONS}/{application}"), &token, &Value::Null);
    server.expect(200, "DELETE", &format!("/api/am/publisher/v4/apis/{api}"), &token, &Value::Null);
    let all = server.expect(200, "GET", "/api/am/admin/v4/api-keys", &token, &Value::Null);
    assert_eq!(all["count"], 0, "keys end with their API");
}

#[test]
fn an_application_may_have_opaque_tokens() {
    let server = Server::start();
    let token = server.admin();
    let (application, _) = subscribed(&server, &token, "DEFAULT");
    let wanted = json!({"keyType": "PRODUCTION", "grantTypesToBeSupported": ["client_credentials"]});
    let keys = server.expect(200, "POST", &format!("{APPLICATIONS}/{application}/generate-keys"), &token, &wanted);
    let client = (text(&keys["consumerKey"]), text(&keys["consumerSecret"]));
    assert!(!text(&keys["token"]["accessToken"]).contains('.'));
    let (_, issued) = server.token_response(&client, "grant_type=client_credentials");
    let opaque = text(&issued["access_token"]);
    let claims = server.control.opaque_claims(&opaque).unwrap();
    assert_eq!((&claims["azp"], &claims["iss"]), (&json!(client.0), &json!(server.control.issuer())));
    let form = format!("token={opaque}");
    assert_eq!(server.send("POST", "/oauth2/revoke", &basic(&client.0, &client.1), "", &form).status, 200);
    assert!(server.control.opaque_claims(&opaque).is_none());
    assert!(server.gateway.revoked.lock().unwrap().contains(&text(&claims["jti"])));
}
