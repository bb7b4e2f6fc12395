//! The key manager: codes, sessions, devices, assertions, registration.

use serde_json::json;

use super::*;

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
const BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// A browser: it keeps cookies.
struct Browser<'s> {
    server: &'s Server,
    cookies: Vec<(String, String)>,
}

impl Browser<'_> {
    fn of(server: &Server) -> Browser<'_> {
        Browser { server, cookies: Vec::new() }
    }

    fn send(&mut self, method: &str, target: &str, form: &str) -> Response {
        let target = target.strip_prefix("https://localhost:9443").unwrap_or(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let response = self.server.control.respond(&Request {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: vec![("Cookie".to_owned(), cookies.join("; "))],
            body: Bytes::copy_from_slice(form.as_bytes()),
            client: IpAddr::V4(Ipv4Addr::LOCALHOST),
        });
        for (name, value) in response.headers.iter().filter(|(name, _)| *name == "Set-Cookie") {
            assert!(value.contains("Secure") && value.contains("HttpOnly"), "{name}: {value}");
            let (name, rest) = value.split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            self.cookies.push((name.to_owned(), rest.split(';').next().unwrap().to_owned()));
        }
        response
    }

    /// Logs in at the login page of a redirect; the place where it leads to.
    fn log_in(&mut self, login_page: &str, user: &str, password: &str) -> String {
        let page = self.send("GET", login_page, "");
        assert_eq!(page.status, 200);
        let sealed = value_of(&page, "sessionDataKey");
        let form = format!("tocommonauth=true&username={user}&password={password}&sessionDataKey={}", encode(&sealed));
        location(&self.send("POST", "/commonauth", &form))
    }

    /// Decides on a consent page; the place where it leads to.
    fn decide(&mut self, consent_page: &str, decision: &str) -> Response {
        let page = self.send("GET", consent_page, "");
        assert_eq!(page.status, 200, "{}", String::from_utf8_lossy(&page.body));
        let sealed = value_of(&page, "sessionDataKeyConsent");
        self.send("POST", "/oauth2/authorize", &format!("consent={decision}&sessionDataKeyConsent={}", encode(&sealed)))
    }
}

fn location(response: &Response) -> String {
    assert_eq!(response.status, 302, "{}", String::from_utf8_lossy(&response.body));
    response.headers.iter().find(|(name, _)| *name == "Location").unwrap().1.clone()
}

/// The value of a hidden field of a page.
fn value_of(page: &Response, field: &str) -> String {
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let (_, behind) = text.split_once(&format!("name=\"{field}\" value=\"")).unwrap();
    behind.split('"').next().unwrap().to_owned()
}

/// A parameter of an address.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').unwrap().1;
    crate::http::Parameters::parse(query).get(name).unwrap_or_default().to_owned()
}

fn register(server: &Server, metadata: &Value) -> (String, String) {
    let body = metadata.to_string();
    let path = "/api/identity/oauth2/dcr/v1.1/register";
    let response = server.send("POST", path, &basic("admin", "admin"), "application/json", &body);
    let body: Value = serde_json::from_slice(&response.body).unwrap();
    assert_eq!(response.status, 201, "{body}");
    (text(&body["client_id"]), text(&body["client_secret"]))
}

fn code_client(server: &Server) -> (String, String) {
    register(
        server,
        &json!({
            "client_name": "portal", "grant_types": ["authorization_code", "refresh_token"],
            "redirect_uris": ["https://portal/in", "https://portal/out"],
        }),
    )
}

fn request_for(client: &(String, String), more: &str) -> String {
    format!(
        "/oauth2/authorize?response_type=code&client_id={}&redirect_uri=https%3A%2F%2Fportal%2Fin&scope=openid&state=a%26b{more}",
        client.0
    )
}

#[test]
fn a_code_is_exchanged_once_and_its_replay_ends_what_came_of_it() {
    let server = Server::start();
    let client = code_client(&server);
    let mut browser = Browser::of(&server);
    let pkce = format!("&code_challenge={CHALLENGE}&code_challenge_method=S256&nonce=n1");
    let silent = location(&browser.send("GET", &request_for(&client, "&prompt=none"), ""));
    assert_eq!(parameter(&silent, "error"), "login_required");
    let login = location(&browser.send("GET", &request_for(&client, &pkce), ""));
    let again = browser.log_in(&login, "admin", "wrong");
    assert!(again.contains("authFailure=true"));
    let callback = location(&{
        let next = browser.log_in(&again, "admin", "admin");
        browser.send("GET", &next, "")
    });
    assert!(callback.starts_with("https://portal/in?code="), "{callback}");
    assert_eq!(parameter(&callback, "state"), "a&b");
    let form = format!(
        "grant_type=authorization_code&redirect_uri=https%3A%2F%2Fportal%2Fin&code={}",
        encode(&parameter(&callback, "code"))
    );
    let proven = format!("{form}&code_verifier={VERIFIER}");
    let (status, tokens) = server.token_response(&client, &proven);
    assert_eq!(status, 200, "{tokens}");
    let claims = server.control.keys.verified(tokens["id_token"].as_str().unwrap()).unwrap();
    assert_eq!((&claims["nonce"], &claims["sub"]), (&json!("n1"), &json!("admin")));
    let information = server.expect(200, "GET", "/oauth2/userinfo", &text(&tokens["access_token"]), &Value::Null);
    assert_eq!(information["sub"], "admin");
    assert_eq!(server.token_response(&client, &proven).1["error"], "invalid_grant");
    server.expect(401, "GET", "/oauth2/userinfo", &text(&tokens["access_token"]), &Value::Null);
    let refresh = format!("grant_type=refresh_token&refresh_token={}", text(&tokens["refresh_token"]));
    assert_eq!(server.token_response(&client, &refresh).1["error"], "invalid_grant");
    // The session of the browser is used again, without a page; a code without its verifier counts for nothing.
    let callback = location(&browser.send("GET", &request_for(&client, &pkce), ""));
    let form = form.replace(form.rsplit_once("code=").unwrap().1, &encode(&parameter(&callback, "code")));
    assert_eq!(server.token_response(&client, &form).1["error"], "invalid_grant");
}

#[test]
fn a_replayed_refresh_token_ends_its_successors() {
    let server = Server::start();
    let client = server.register("admin", "admin");
    let (_, first) = server.token_response(&client, "grant_type=password&username=admin&password=admin&scope=openid");
    let refresh = |tokens: &Value| format!("grant_type=refresh_token&refresh_token={}", text(&tokens["refresh_token"]));
    let (_, second) = server.token_response(&client, &refresh(&first));
    server.expect(200, "GET", "/oauth2/userinfo", &text(&second["access_token"]), &Value::Null);
    assert_eq!(server.token_response(&client, &refresh(&first)).0, 400);
    server.expect(401, "GET", "/oauth2/userinfo", &text(&second["access_token"]), &Value::Null);
    assert_eq!(server.token_response(&client, &refresh(&second)).1["error"], "invalid_grant");
}

#[test]
fn requests_that_cannot_be_trusted_stay_at_the_server() {
    let server = Server::start();
    let client = code_client(&server);
    let mut browser = Browser::of(&server);
    for target in [
        request_for(&client, "").replace("portal%2Fin", "evil%2Fin"),
        request_for(&("unknown".to_owned(), String::new()), ""),
        "/oauth2/authorize?response_type=code".to_owned(),
    ] {
        assert_eq!(browser.send("GET", &target, "").status, 400, "{target}");
    }
    let token = location(&browser.send("GET", &request_for(&client, "").replace("=code&", "=token&"), ""));
    assert_eq!(parameter(&token, "error"), "unsupported_response_type");
    let plain = location(&browser.send("GET", &request_for(&client, &format!("&code_challenge={VERIFIER}")), ""));
    assert_eq!(parameter(&plain, "error"), "invalid_request");
    // A login that another browser began.
    let login = location(&browser.send("GET", &request_for(&client, ""), ""));
    let mut other = Browser::of(&server);
    let sealed = value_of(&other.send("GET", &login, ""), "sessionDataKey");
    let form = format!("username=admin&password=admin&sessionDataKey={}", encode(&sealed));
    assert_eq!(other.send("POST", "/commonauth", &form).status, 400);
    let page = other.send("GET", "/authenticationendpoint/login.do?sessionDataKey=%22%3E%3Cscript%3E", "");
    assert!(!String::from_utf8_lossy(&page.body).contains("<script>"));
}

#[test]
fn another_user_is_asked_for_consent() {
    let server = Server::start();
    server.add_user("anna", "Internal/subscriber");
    // A client of a user who is no administrator.
    let client = {
        let body = json!({"callbackUrl": "https://portal/in", "clientName": "annas", "owner": "anna",
                          "grantType": "authorization_code"});
        let path = "/client-registration/v0.17/register";
        let response = server.send("POST", path, &basic("anna", "password"), "", &body.to_string());
        let body: Value = serde_json::from_slice(&response.body).unwrap();
        (text(&body["clientId"]), text(&body["clientSecret"]))
    };
    let mut browser = Browser::of(&server);
    let login = location(&browser.send("GET", &request_for(&client, ""), ""));
    let next = browser.log_in(&login, "admin", "admin");
    let consent = location(&browser.send("GET", &next, ""));
    assert!(consent.starts_with("/authenticationendpoint/oauth2_consent.do?application=annas"), "{consent}");
    let denied = location(&browser.decide(&consent, "deny"));
    assert_eq!(parameter(&denied, "error"), "access_denied");
    let silent = location(&browser.send("GET", &request_for(&client, "&prompt=none"), ""));
    assert_eq!(parameter(&silent, "error"), "consent_required");
    assert!(!parameter(&location(&browser.decide(&consent, "approveAlways")), "code").is_empty());
    let silent = location(&browser.send("GET", &request_for(&client, "&prompt=none"), ""));
    assert!(!parameter(&silent, "code").is_empty());
    // The sealed request is of another session.
    let mut other = Browser::of(&server);
    let login = location(&other.send("GET", &request_for(&client, ""), ""));
    other.log_in(&login, "anna", "password");
    assert_eq!(other.decide(&consent, "approve").status, 400);
}

#[test]
fn logout_ends_the_session() {
    let server = Server::start();
    let client = code_client(&server);
    let mut browser = Browser::of(&server);
    let login = location(&browser.send("GET", &request_for(&client, ""), ""));
    let next = browser.log_in(&login, "admin", "admin");
    let callback = location(&browser.send("GET", &next, ""));
    let form = format!(
        "grant_type=authorization_code&redirect_uri=https%3A%2F%2Fportal%2Fin&code={}",
        encode(&parameter(&callback, "code"))
    );
    let (_, tokens) = server.token_response(&client, &form);
    let page = browser.send("GET", "/oidc/logout", "");
    assert!(String::from_utf8_lossy(&page.body).contains("Do you want to log out?"));
    let hint = encode(&text(&tokens["id_token"]));
    let target =
        format!("/oidc/logout?id_token_hint={hint}&state=s&post_logout_redirect_uri=https%3A%2F%2Fportal%2Fout");
    let secret = browser.cookies.iter().find(|(name, _)| name == "commonAuthId").cloned().unwrap();
    assert_eq!(location(&browser.send("GET", &target, "")), "https://portal/out?state=s");
    // The cookie counts for nothing, also when it is kept.
    browser.cookies = vec![secret];
    let silent = location(&browser.send("GET", &request_for(&client, "&prompt=none"), ""));
    assert_eq!(parameter(&silent, "error"), "login_required");
}

#[test]
fn a_device_is_connected() {
    let server = Server::start();
    let metadata = json!({"client_name": "tv", "grant_types": [DEVICE], "token_endpoint_auth_method": "none"});
    let (id, _) = register(&server, &metadata);
    let ask = |path: &str, form: &str| -> Value {
        let response = server.send("POST", path, "", "application/x-www-form-urlencoded", form);
        serde_json::from_slice(&response.body).unwrap()
    };
    let started = ask("/oauth2/device_authorize", &format!("client_id={id}&scope=openid"));
    let poll = || {
        let code = encode(started["device_code"].as_str().unwrap());
        ask("/oauth2/token", &format!("grant_type={DEVICE}&client_id={id}&device_code={code}"))
    };
    assert_eq!(poll()["error"], "authorization_pending");
    assert_eq!(poll()["error"], "slow_down");
    let mut browser = Browser::of(&server);
    let page = browser.send("POST", "/authenticationendpoint/device.do", "user_code=BBBB-BBBB");
    assert!(String::from_utf8_lossy(&page.body).contains("role=\"alert\""));
    let typed = started["user_code"].as_str().unwrap().to_lowercase();
    let login = location(&browser.send("POST", "/authenticationendpoint/device.do", &format!("user_code={typed}")));
    let next = browser.log_in(&login, "admin", "admin");
    let consent = location(&browser.send("GET", &next, ""));
    assert_eq!(browser.decide(&consent, "approve").status, 200);
    let tokens = poll();
    assert_eq!(tokens["scope"], "openid", "{tokens}");
    server.expect(200, "GET", "/oauth2/userinfo", &text(&tokens["access_token"]), &Value::Null);
    assert_eq!(poll()["error"], "invalid_grant");
    let other = ask("/oauth2/token", &format!("grant_type=password&client_id={id}&username=admin&password=admin"));
    assert_eq!(other["error"], "invalid_client", "a public client has no other grants");
}

#[test]
fn a_token_is_exchanged_for_one_with_fewer_scopes() {
    let server = Server::start();
    let client = register(&server, &json!({"client_name": "exchange", "grant_types": [BEARER, EXCHANGE]}));
    let token = encode(&server.token("admin", "admin", "apim:api_view apim:api_create"));
    let exchange = |scope: &str| {
        let kind = "urn:ietf:params:oauth:token-type:jwt";
        let form =
            format!("grant_type={EXCHANGE}&subject_token={token}&subject_token_type={kind}&scope={}", encode(scope));
        server.token_response(&client, &form)
    };
    let (status, body) = exchange("apim:api_view");
    assert_eq!((status, &body["scope"]), (200, &json!("apim:api_view")), "{body}");
    assert_eq!(body["issued_token_type"], "urn:ietf:params:oauth:token-type:access_token");
    assert!(body.get("refresh_token").is_none());
    assert_eq!(exchange("apim:admin").1["error"], "invalid_scope");
    let assertion = format!("grant_type={BEARER}&assertion={token}");
    let (status, body) = server.token_response(&client, &assertion);
    assert_eq!((status, &body["scope"]), (200, &json!("apim:api_view apim:api_create")), "{body}");
    assert_eq!(server.token_response(&client, &assertion).1["error"], "invalid_grant", "an assertion counts once");
    let forged = format!("grant_type={BEARER}&assertion=e30.e30.e30");
    assert_eq!(server.token_response(&client, &forged).1["error"], "invalid_grant");
}

#[test]
fn opaque_tokens_are_known_to_the_server_only() {
    let server = Server::start();
    let metadata = json!({"client_name": "opaque", "grant_types": ["password", "refresh_token"], "token_type_extension": "DEFAULT"});
    let client = register(&server, &metadata);
    let form = "grant_type=password&username=admin&password=admin&scope=apim:api_view";
    let (_, tokens) = server.token_response(&client, form);
    let token = text(&tokens["access_token"]);
    assert!(!token.contains('.'));
    server.expect(200, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
    let ask = |path: &str| server.send("POST", path, &basic(&client.0, &client.1), "", &format!("token={token}"));
    let described: Value = serde_json::from_slice(&ask("/oauth2/introspect").body).unwrap();
    assert_eq!((&described["active"], &described["scope"]), (&json!(true), &json!("apim:api_view")));
    assert_eq!(ask("/oauth2/revoke").status, 200);
    server.expect(401, "GET", "/api/am/publisher/v4/apis", &token, &Value::Null);
}

#[test]
fn a_registration_is_read_changed_and_removed() {
    let server = Server::start();
    let client = code_client(&server);
    let path = format!("/api/identity/oauth2/dcr/v1.1/register/{}", client.0);
    let ask = |method: &str, user: &str, body: &str| {
        let password = if user == "admin" { "admin" } else { "password" };
        server.send(method, &path, &basic(user, password), "application/json", body)
    };
    server.add_user("anna", "Internal/subscriber");
    assert_eq!(ask("GET", "anna", "").status, 401);
    let read: Value = serde_json::from_slice(&ask("GET", "admin", "").body).unwrap();
    assert_eq!(read["redirect_uris"], json!(["https://portal/in", "https://portal/out"]));
    assert_eq!(ask("PUT", "admin", r#"{"client_name":"portal","grant_types":["magic"]}"#).status, 400);
    let changed = ask("PUT", "admin", r#"{"client_name":"portal","grant_types":["client_credentials"]}"#);
    assert_eq!(changed.status, 200);
    assert_eq!(server.token_response(&client, "grant_type=client_credentials").0, 200);
    assert_eq!(ask("DELETE", "admin", "").status, 204);
    assert_eq!(server.token_response(&client, "grant_type=client_credentials").0, 401);
    assert_eq!(ask("GET", "admin", "").status, 401);
}
