//! Error responses to rejected clients and of failed backends.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use penstock_catalog::{Cluster, Lifecycle, Limit, LimitUnit, Plan, PlanLevel, SecurityMode};
use penstock_gateway::ErrorStyle;
use penstock_gateway::security::{BackendJwt, Encoding};
use penstock_testkit::gateway::{Answer, Backend, Setup, TestGateway, api, secured_api};
use serde_json::{Value, json};

use super::{start, told};

#[test]
fn missing_credentials_are_listed_by_header() {
    let backend = Backend::echo();
    let mut named = secured_api("/named", &backend.url(), &["GET /x"]);
    named.authorization_header = Some("X-Token".into());
    named.api_key_header = Some("X-Key".into());
    named.security.api_key = true;
    named.security.basic = true;
    let gateway = start([secured_api("/plain", &backend.url(), &["GET /x"]), named]);
    let mut client = gateway.client();
    let reply = client.get("/plain/x", &[]);
    told(
        &reply,
        401,
        "{\"code\":\"900902\",\"message\":\"Missing Credentials\",\"description\":\"Invalid Credentials. Make sure your \
         API invocation call has a header: 'Authorization : Bearer ACCESS_TOKEN' or 'Authorization : Basic \
         ACCESS_TOKEN' or 'ApiKey : API_KEY'\"}",
    );
    assert_eq!(
        reply.header("www-authenticate"),
        Some(
            "Internal API Key realm=\"WSO2 API Manager\", Bearer realm=\"WSO2 API Manager\", error=\"invalid_token\", \
             error_description=\"The provided token is invalid\""
        )
    );
    let reply = client.get("/named/x", &[("Authorization", "Bearer x")]);
    let wanted = "'X-Token : Bearer ACCESS_TOKEN' or 'X-Token : Basic ACCESS_TOKEN' or 'X-Key : API_KEY'";
    assert!(reply.text().contains(wanted), "{}", reply.text());
    let challenges = reply.header("www-authenticate").unwrap();
    let order = ["Internal API Key", "Bearer", "Basic Auth", "API Key realm=\"WSO2 API Manager\", error="];
    let places: Vec<_> = order.iter().map(|kind| challenges.rfind(kind)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{challenges}");
}

#[test]
fn unknown_tokens_differ_from_invalid_ones() {
    let backend = Backend::echo();
    let gateway = start([secured_api("/pets/1.0.0", &backend.url(), &["GET /x"])]);
    let mut client = gateway.client();
    let good = gateway.bearer(&json!({}));
    let (rest, signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{rest}.{}", signature.chars().rev().collect::<String>());
    let stranger = gateway.bearer(&json!({"iss": "https://elsewhere.example.com"}));
    let expired = gateway.bearer(&json!({"exp": 1000}));
    let tail = "Make sure you have provided the correct security credentials";
    let unknown = "Access failure for API: /pets/1.0.0, version: 1.0.0 status: (900901) - Invalid Credentials";
    for (sent, wanted) in [
        ("Bearer 1234-5678", unknown),
        ("Bearer a.b.c", unknown),
        (&*stranger, unknown),
        (&*forged, "Invalid Credentials"),
        (&*expired, "Invalid Credentials"),
    ] {
        let body =
            format!("{{\"code\":\"900901\",\"message\":\"Invalid Credentials\",\"description\":\"{wanted}. {tail}\"}}");
        told(&client.get("/pets/1.0.0/x", &[("Authorization", sent)]), 401, &body);
    }
    assert_eq!(client.get("/pets/1.0.0/x", &[("Authorization", &good)]).status, 204);
}

#[test]
fn unknown_apis_resources_and_methods_are_distinguished() {
    let backend = Backend::echo();
    let mut secure = api("/secure", &backend.url(), &["GET /x"]);
    secure.transports = vec!["https".into()];
    let gateway = start([api("/open", &backend.url(), &["GET /x", "POST /x"]), secure]);
    let mut client = gateway.client();
    let runtime = |code: &str, description: &str| {
        format!(
            "{{\"code\":\"{code}\",\"type\":\"Status report\",\"message\":\"Runtime Error\",\"description\":\"{description}\"}}"
        )
    };
    let no_resource = runtime("404", "No matching resource found for given API Request");
    told(&client.get("/open/y", &[]), 404, &no_resource);
    let other_method = runtime("405", "Method not allowed for given API resource");
    for method in ["DELETE", "HEAD", "OPTIONS"] {
        let reply = client.request(method, "/open/x", &[], b"");
        assert_eq!(reply.status, 405, "{method}");
        if method != "HEAD" {
            told(&reply, 405, &other_method);
        }
    }
    let no_api = "{\"code\":\"404\",\"type\":\"Status report\",\"message\":\"Not Found\",\"description\":\"The requested \
                  resource is not available.\"}";
    told(&client.get("/nowhere/x", &[]), 404, no_api);
    let denied = "{\"code\":\"403\",\"type\":\"Status report\",\"message\":\"Forbidden\",\"description\":\"Unsupported \
                  Transport [ http ]. The requested resource is not available.\"}";
    told(&client.get("/secure/x", &[]), 403, denied);
    assert_eq!(gateway.tls_client().get("/secure/x", &[]).status, 204);
}

#[test]
fn keys_of_a_type_without_backends_are_forbidden() {
    let backend = Backend::echo();
    let mut sandbox = secured_api("/sandbox", &backend.url(), &["GET /x"]);
    sandbox.endpoints.sandbox = sandbox.endpoints.production.take();
    let gateway = start([secured_api("/production", &backend.url(), &["GET /x"]), sandbox]);
    let mut client = gateway.client();
    for (path, kind, wanted) in [
        ("/production/x", "SANDBOX", "Sandbox key offered to the API with no sandbox endpoint"),
        ("/sandbox/x", "PRODUCTION", "Production key offered to the API with no production endpoint"),
    ] {
        let bearer = gateway.bearer(&json!({"keytype": kind}));
        let body = format!(
            "{{\"code\":\"900901\",\"type\":\"Status report\",\"message\":\"Runtime Error\",\"description\":\"{wanted}\"}}"
        );
        told(&client.get(path, &[("Authorization", &bearer)]), 403, &body);
    }
}

#[test]
fn backends_that_fail_are_an_error_of_the_gateway_with_their_own_code() {
    let gone = {
        let backend = Backend::echo();
        backend.url()
    };
    let slow = Backend::start(|_| Answer::status(200).after(Duration::from_secs(5)));
    let garbage = Backend::start(|_| Answer::garbage("this is not HTTP\r\n\r\n"));
    let mut late = api("/slow", &slow.url(), &["GET /x"]);
    let cluster =
        Cluster { urls: vec![slow.url().into()], timeout: Some(Duration::from_millis(200)), ..Cluster::default() };
    late.endpoints.production = Some(Arc::new(cluster));
    let gateway = start([api("/gone", &gone, &["GET /x"]), late, api("/garbage", &garbage.url(), &["GET /x"])]);
    let mut client = gateway.client();
    for (path, code, words) in [
        ("/gone/x", "101503", "Error connecting to the back end"),
        ("/slow/x", "101504", "Send timeout"),
        ("/garbage/x", "101506", "Error in Sender"),
    ] {
        let body = format!(
            "{{\"code\":\"{code}\",\"type\":\"Status report\",\"message\":\"Runtime Error\",\"description\":\"{words}\"}}"
        );
        told(&client.get(path, &[]), 500, &body);
    }
}

#[test]
fn rate_limits_have_the_time_of_the_next_access() {
    let backend = Backend::echo();
    let mut limited = api("/limited", &backend.url(), &["GET /x"]);
    limited.tier = Some("One".into());
    let mut guarded = api("/guarded", &backend.url(), &["GET /x"]);
    let a_second = |amount| Limit { amount, unit: LimitUnit::Requests, window: Duration::from_secs(1) };
    guarded.backend_limit = (Some(a_second(1)), None);
    let limit = Limit { amount: 1, unit: LimitUnit::Requests, window: Duration::from_secs(3600) };
    let plan =
        Plan { name: "One".into(), level: PlanLevel::Api, limit: Some(limit), stop_on_quota: true, ..Plan::default() };
    let gateway = TestGateway::start(Setup::of([limited, guarded]).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        config.limits.plans = vec![plan];
    }));
    let mut client = gateway.client();
    assert_eq!(client.get("/limited/x", &[]).status, 204);
    let reply = client.get("/limited/x", &[]);
    // `Tue, 10 Feb 2026 16:20:00 GMT` as `2026-Feb-10 16:20:00+0000 UTC`.
    let again = reply.header("retry-after").unwrap().to_owned();
    let parts: Vec<&str> = again.split(' ').collect();
    let time = format!("{}-{}-{} {}+0000 UTC", parts[3], parts[2], parts[1], parts[4]);
    told(
        &reply,
        429,
        &format!(
            "{{\"code\":\"900800\",\"message\":\"Message throttled out\",\"description\":\"You have exceeded your quota \
             .You can access API after {time}\",\"nextAccessTime\":\"{time}\"}}"
        ),
    );
    let xml = client.get("/limited/x", &[("Accept", "application/xml")]).text();
    assert!(xml.starts_with("<amt:fault xmlns:amt=\"http://wso2.org/apimanager/throttling\">"), "{xml}");
    assert!(xml.contains("UTC</amt:nextAccessTime>"), "{xml}");
    let statuses: Vec<u16> = (0..5).map(|_| client.get("/guarded/x", &[]).status).collect();
    assert!(statuses.contains(&503), "{statuses:?}");
    let refusal = (0..20).map(|_| client.get("/guarded/x", &[])).find(|reply| reply.status == 503).unwrap();
    let body = "{\"code\":\"900801\",\"message\":\"API Limit Reached\",\"description\":\"API not accepting requests\"}";
    told(&refusal, 503, body);
}

#[test]
fn a_blocked_api_is_700700() {
    let backend = Backend::echo();
    let mut blocked = secured_api("/blocked", &backend.url(), &["GET /x"]);
    blocked.lifecycle = Lifecycle::Blocked;
    told(
        &start([blocked]).client().get("/blocked/x", &[]),
        503,
        "{\"code\":\"700700\",\"type\":\"API blocked\",\"message\":\"API blocked\",\"description\":\"This API has been \
         blocked temporarily. Please try again later or contact the system administrators.\"}",
    );
}

#[test]
fn soap_clients_get_soap_faults_by_default() {
    let backend = Backend::echo();
    let gateway = start([secured_api("/soap", &backend.url(), &["POST /"])]);
    let mut client = gateway.client();
    let fault = |inner: &str| {
        format!(
            "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><soapenv:Fault>\
             {inner}</soapenv:Fault></soapenv:Body></soapenv:Envelope>"
        )
    };
    let soap11 = [("Content-Type", "text/xml"), ("SOAPAction", "\"\"")];
    let soap12 = [("Content-Type", "application/soap+xml")];
    for headers in [&soap11[..], &soap12[..]] {
        let reply = client.request("POST", "/soap", headers, b"<a/>");
        assert_eq!((reply.status, reply.header("content-type")), (401, Some("text/xml")));
        let wanted = "<faultcode>soapenv:Client</faultcode><faultstring>Authentication Failure</faultstring>\
                      <detail>Missing Credentials</detail>";
        assert_eq!(reply.text(), fault(wanted));
    }
    let reply = client.request("POST", "/soap/more", &soap11, b"<a/>");
    let wanted = "<faultcode>soapenv:Server</faultcode><faultstring>No matching resource found for given API \
                  Request</faultstring>";
    assert_eq!((reply.status, reply.text()), (404, fault(wanted)));
}

#[test]
fn certificates_are_required_when_nothing_else_is_named() {
    let backend = Backend::echo();
    let mut certified = secured_api("/certified", &backend.url(), &["GET /x"]);
    certified.security.oauth2 = false;
    certified.security.application = SecurityMode::Off;
    certified.security.mutual_tls = SecurityMode::Mandatory;
    let reply = start([certified]).tls_client().get("/certified/x", &[]);
    assert_eq!((reply.status, &reply.json()["code"]), (401, &json!("900901")));
    let challenges = reply.header("www-authenticate").unwrap();
    assert!(challenges.starts_with("Internal API Key realm=\"WSO2 API Manager\", Mutual SSL realm="), "{challenges}");
}

#[test]
fn backend_tokens_have_the_claims_of_api_manager() {
    let backend = Backend::echo();
    let setup = Setup::of([secured_api("/pets/1.0.0", &backend.url(), &["GET /x"])]).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        config.security.backend_jwt = Some(BackendJwt { encoding: Encoding::Base64Url, ..BackendJwt::default() });
    });
    let gateway = TestGateway::start(setup);
    let application = json!({"id": 7, "uuid": "6f0c", "name": "shop", "tier": "Gold", "owner": "anna"});
    let bearer = gateway.bearer(&json!({
        "sub": "ben", "azp": "key", "scope": "read write", "aut": "APPLICATION", "application": application, "color": "red",
    }));
    assert_eq!(gateway.client().get("/pets/1.0.0/x", &[("Authorization", &bearer)]).status, 204);
    let told = backend.last().header("X-JWT-Assertion").unwrap().to_owned();
    let claims = URL_SAFE_NO_PAD.decode(told.split('.').nth(1).unwrap()).unwrap();
    let claims: Value = serde_json::from_slice(&claims).unwrap();
    for (name, value) in [
        ("http://wso2.org/claims/subscriber", "anna"),
        ("http://wso2.org/claims/applicationid", "7"),
        ("http://wso2.org/claims/applicationUUId", "6f0c"),
        ("http://wso2.org/claims/enduserTenantId", "-1234"),
        ("http://wso2.org/claims/usertype", "Application_User"),
        ("http://wso2.org/claims/enduser", "ben"),
        ("sub", "ben"),
        ("azp", "key"),
        ("scope", "read write"),
        ("color", "red"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    assert!(claims.get("aut").is_none() && claims.get("application").is_none(), "{claims}");
}
