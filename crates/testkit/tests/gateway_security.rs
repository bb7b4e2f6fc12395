//! Who is let in: tokens, keys, passwords and certificates over real sockets and real TLS.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use penstock_catalog::{
    Api, Application, ClientCertificate, Cluster, Lifecycle, Operation, Requirement, SecurityMode, Subscription,
    SubscriptionState,
};
use penstock_gateway::ErrorStyle;
use penstock_gateway::security::{
    AccessList, BackendJwt, Claims, Encoding, Issuer, PublicKey, Secret, Signer, TrustedKey, User, issue,
};
use penstock_testkit::gateway::{Answer, Backend, Client, ClientIdentity, Reply, Setup, TestGateway, api, secured_api};
use serde_json::{Value, json};

/// What Choreo Connect says to whoever has no valid credential.
const INVALID: &str = "{\"error_message\":\"Invalid Credentials\",\"code\":\"900901\",\
    \"error_description\":\"Make sure you have provided the correct security credentials\"}";

fn operation(api: &mut Api, index: usize) -> &mut Operation {
    Arc::make_mut(&mut api.operations[index])
}

fn pets(backend: &Backend) -> Api {
    secured_api("/pets", &backend.url(), &["GET /pet/{id}", "POST /pet"])
}

/// Asks for a pet with this `Authorization`.
fn ask(client: &mut Client, authorization: &str) -> Reply {
    client.get("/pets/pet/2", &[("Authorization", authorization)])
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str) {
    assert_eq!((reply.status, reply.json()["code"].as_str()), (status, Some(code)), "{}", reply.text());
}

/// A token with claims, signed by a key, with `iat`, `exp` and `jti` unless they are among them.
fn signed(signer: &Signer, claims: &Value) -> String {
    let mut all = Claims::lasting(600);
    for (name, value) in claims.as_object().unwrap() {
        all.set(name, value.clone());
    }
    issue(signer, &all, Encoding::Base64Url).unwrap()
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn signer() -> Signer {
    Signer::generate().unwrap().0
}

fn issuer(name: &str, signer: &Signer) -> Issuer {
    let keys = vec![TrustedKey { kid: None, key: signer.public().clone() }];
    Issuer { name: name.into(), issuer: format!("https://{name}").into(), keys, ..Issuer::default() }
}

#[test]
fn what_is_no_token_is_refused_in_the_words_of_the_original() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(Setup::of([pets(&backend)]));
    let mut client = gateway.tls_client();
    let reply = ask(&mut client, "Bearer aaa.bbb.ccc");
    let undecodable = "{\"error_message\":\"Invalid Credentials\",\"code\":\"900901\",\"error_description\":\"Not a JWT \
        token. Failed to decode the token header. Make sure you have provided the correct security credentials\"}";
    assert_eq!((reply.status, reply.text().as_str()), (401, undecodable));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let challenge = "Bearer realm=\"Choreo Connect\", error=\"invalid_token\", \
        error_description=\"The provided token is invalid\"";
    assert_eq!(reply.header("www-authenticate"), Some(challenge));

    let token = gateway.token(&json!({}));
    for wrong in [format!("Bearer Bearer {token}"), format!("Something {token}"), token.clone(), "Bearer".to_owned()] {
        let reply = ask(&mut client, &wrong);
        assert_eq!((reply.status, reply.text().as_str()), (401, INVALID), "{wrong:.30}");
    }
    assert_eq!(client.get("/pets/pet/2", &[]).text(), INVALID);
    assert!(backend.received().is_empty());
    for good in [format!("Bearer {token}"), format!("bearer {token}"), gateway.bearer(&json!({"realm": {}}))] {
        assert_eq!(ask(&mut client, &good).status, 204);
    }
    assert_eq!(backend.last().header("authorization"), None, "a backend does not get the client's token");
}

#[test]
fn bad_tokens_are_refused_and_leave_no_trace_in_the_log() {
    let backend = Backend::echo();
    let (known, stranger) = (signer(), signer());
    let open = api("/open", &backend.url(), &["GET /x"]);
    let setup = Setup::of([pets(&backend), open]).configured(|config| {
        config.security.issuers = vec![Issuer { audiences: vec!["us".into()], ..issuer("idp", &known) }];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let iss = "https://idp";
    let good = json!({"iss": iss, "aud": "us", "sub": "anna"});
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    assert_eq!(ask(&mut client, &format!("Bearer {}", signed(&known, &good))).status, 204);
    assert_eq!(ask(&mut client, &format!("Bearer {}", signed(&known, &with("aud", json!(["x", "us"]))))).status, 204);
    // A clock may be five seconds wrong.
    assert_eq!(ask(&mut client, &format!("Bearer {}", signed(&known, &with("exp", json!(now() - 2))))).status, 204);

    let [head, payload, signature] =
        signed(&known, &good).split('.').map(str::to_owned).collect::<Vec<_>>().try_into().unwrap();
    let header = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let public = known.public().to_jwk().to_string();
    let confused = format!("{}.{payload}", header("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let tag = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, confused.as_bytes()));
    let other_payload = URL_SAFE_NO_PAD.encode(with("sub", json!("root")).to_string());
    let big = signed(&known, &with("big", json!("x".repeat(40_000))));
    for (what, token) in [
        ("expired", signed(&known, &with("exp", json!(now() - 60)))),
        ("not yet valid", signed(&known, &with("nbf", json!(now() + 60)))),
        ("without an end", signed(&known, &with("exp", json!("soon")))),
        ("of an unknown issuer", signed(&known, &with("iss", json!("https://elsewhere")))),
        ("without an issuer", signed(&known, &with("iss", Value::Null))),
        ("by another key", signed(&stranger, &good)),
        ("of our issuer by another key", signed(&stranger, &with("iss", json!("https://localhost:9095/testkey")))),
        ("alg none", format!("{}.{payload}.", header("{\"alg\":\"none\"}"))),
        ("alg none with a signature", format!("{}.{payload}.{signature}", header("{\"alg\":\"none\"}"))),
        ("key confusion", format!("{confused}.{tag}")),
        ("another algorithm", format!("{}.{payload}.{signature}", header("{\"alg\":\"RS256\"}"))),
        ("a critical extension", format!("{}.{payload}.{signature}", header("{\"alg\":\"ES256\",\"crit\":[\"exp\"]}"))),
        ("changed claims", format!("{head}.{other_payload}.{signature}")),
        ("a cut signature", format!("{head}.{payload}.{}", &signature[..40])),
        ("padding", format!("{head}=.{payload}.{signature}")),
        ("too large", big),
        ("an API key", signed(&known, &with("token_type", json!("apiKey")))),
        ("two tokens", format!("{head}.{payload}.{signature},{head}")),
        ("blanks", "..".to_owned()),
    ] {
        let reply = ask(&mut client, &format!("Bearer {token}"));
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("900901")), "{what}: {}", reply.text());
        assert_eq!(client.get("/open/x", &[]).status, 204, "{what}");
    }
    refused(&ask(&mut client, &format!("Bearer {}", signed(&known, &with("aud", json!("them"))))), 403, "900914");

    let log = gateway.log();
    for reason in
        ["the token expired", "not good yet", "no issuer `https://elsewhere`", "the signature of the token is wrong"]
    {
        assert!(log.contains(reason), "{reason} is not in\n{log}");
    }
    for secret in [&payload, &signature, &tag, &other_payload] {
        assert!(!log.contains(&secret[..secret.len().min(24)]), "{secret} is in the log");
    }
}

#[test]
fn every_algorithm_is_known_by_its_key() {
    let backend = Backend::echo();
    let rsa = Signer::from_pem(include_bytes!("keys/rsa.pem")).unwrap();
    let p384 = Signer::from_pem(include_bytes!("keys/p384.pem")).unwrap();
    let ed25519 = Signer::from_pem(include_bytes!("keys/ed25519.pem")).unwrap();
    let by_certificate = PublicKey::parse(include_bytes!("keys/rsa.crt")).unwrap();
    assert_eq!(&by_certificate, rsa.public());
    let gateway = TestGateway::start(Setup::of([pets(&backend)]).configured(|config| {
        config.security.issuers = vec![issuer("rsa", &rsa), issuer("p384", &p384), issuer("ed25519", &ed25519)];
    }));
    let mut client = gateway.client();
    for (name, signer, algorithm) in [("rsa", &rsa, "RS256"), ("p384", &p384, "ES384"), ("ed25519", &ed25519, "EdDSA")]
    {
        assert_eq!(signer.algorithm().name(), algorithm);
        let claims = json!({"iss": format!("https://{name}")});
        assert_eq!(ask(&mut client, &format!("Bearer {}", signed(signer, &claims))).status, 204, "{name}");
        let claims = json!({"iss": "https://other"});
        assert_eq!(ask(&mut client, &format!("Bearer {}", signed(signer, &claims))).status, 401, "{name}");
    }
}

fn jwks_issuer(name: &str, url: &str) -> Issuer {
    let address = format!("{url}/keys").as_str().into();
    Issuer { name: name.into(), issuer: format!("https://{name}").into(), jwks_url: Some(address), ..Issuer::default() }
}

#[test]
fn published_keys_are_fetched_once_and_again_when_a_key_is_new() {
    let backend = Backend::echo();
    let (first, stranger) = (Arc::new(signer()), signer());
    let published = first.clone();
    let keys = Backend::start_tls(move |_| Answer::json(&published.jwks()), None);
    let setup = Setup::of([pets(&backend)])
        .configured(|config| config.security.issuers = vec![jwks_issuer("idp", &keys.url())])
        .trusting(&keys);
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let claims = json!({"iss": "https://idp"});
    for _ in 0..3 {
        assert_eq!(ask(&mut client, &format!("Bearer {}", signed(&first, &claims))).status, 204);
    }
    assert_eq!(keys.received().len(), 1);
    // Made-up keys must not make the gateway ask again and again.
    for _ in 0..5 {
        refused(&ask(&mut client, &format!("Bearer {}", signed(&stranger, &claims))), 401, "900901");
    }
    assert!(keys.received().len() <= 2, "{} requests for keys", keys.received().len());
    let stop = keys.received().len();
    drop(keys);
    assert_eq!(ask(&mut client, &format!("Bearer {}", signed(&first, &claims))).status, 204, "keys stay");
    assert!(stop >= 1);
}

#[test]
fn an_issuer_that_is_away_slow_or_hostile_is_an_error_of_its_own_and_of_nobody_else() {
    let backend = Backend::echo();
    let away = {
        let gone = Backend::echo();
        gone.url()
    };
    let slow = Backend::start(|_| Answer::status(200).after(Duration::from_secs(20)));
    let text = Backend::start(|_| Answer::new(200, "text/html", "<html>login</html>"));
    let failing = Backend::start(|_| Answer::status(500));
    let garbage = Backend::start(|_| Answer::garbage("\u{1}\u{2}\u{3} not HTTP\r\n\r\n"));
    let huge = Backend::start(|_| Answer::new(200, "application/json", vec![b' '; 1 << 20]));
    let secret = Backend::start(|_| Answer::json(&json!({"keys": [{"kty": "oct", "k": "c2VjcmV0", "alg": "HS256"}]})));
    let issuers = [
        ("away", away),
        ("slow", slow.url()),
        ("text", text.url()),
        ("failing", failing.url()),
        ("garbage", garbage.url()),
        ("huge", huge.url()),
        ("secret", secret.url()),
    ];
    let setup = Setup::of([pets(&backend), api("/open", &backend.url(), &["GET /x"])]).configured(|config| {
        config.security.issuers = issuers.iter().map(|(name, url)| jwks_issuer(name, url)).collect();
    });
    let gateway = TestGateway::start(setup);
    let signer = signer();
    let hanging = {
        let token = format!("Bearer {}", signed(&signer, &json!({"iss": "https://slow"})));
        let mut client = gateway.client();
        std::thread::spawn(move || (Instant::now(), ask(&mut client, &token)))
    };
    let mut client = gateway.client();
    for (name, _) in issuers.iter().filter(|(name, _)| *name != "slow") {
        let token = signed(&signer, &json!({"iss": format!("https://{name}")}));
        let reply = ask(&mut client, &format!("Bearer {token}"));
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("900900")), "{name}");
        let started = Instant::now();
        assert_eq!(client.get("/open/x", &[]).status, 204);
        assert_eq!(ask(&mut client, &gateway.bearer(&json!({}))).status, 204);
        assert!(started.elapsed() < Duration::from_secs(2), "{name} held others up");
    }
    let (started, reply) = hanging.join().unwrap();
    refused(&reply, 401, "900900");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert!(gateway.log().contains("the keys of the token's issuer cannot be fetched"), "{}", gateway.log());
}

#[test]
fn a_revoked_token_is_refused_from_the_next_request_on() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(Setup::of([pets(&backend)]));
    let mut client = gateway.client();
    let (one, other) = (gateway.bearer(&json!({"jti": "one"})), gateway.bearer(&json!({"jti": "other"})));
    assert_eq!((ask(&mut client, &one).status, ask(&mut client, &other).status), (204, 204));
    gateway.state().security.revoke("one");
    refused(&ask(&mut client, &one), 401, "900901");
    assert_eq!(ask(&mut client, &other).status, 204);
    gateway.state().security.set_revoked([]);
    assert_eq!(ask(&mut client, &one).status, 204);
}

#[test]
fn tokens_may_have_a_header_of_their_own_and_operations_may_be_open() {
    let backend = Backend::echo();
    let mut own = secured_api("/own", &backend.url(), &["GET /x", "GET /open", "GET /none"]);
    own.authorization_header = Some("X-Token".into());
    operation(&mut own, 1).secured = false;
    operation(&mut own, 2).requirements = vec![Requirement::Nothing];
    let mut prototype = secured_api("/proto", &backend.url(), &["GET /x"]);
    prototype.lifecycle = Lifecycle::Prototyped;
    let mut blocked = secured_api("/blocked", &backend.url(), &["GET /x"]);
    blocked.lifecycle = Lifecycle::Blocked;
    let gateway = TestGateway::start(Setup::of([own, prototype, blocked]));
    let mut client = gateway.client();
    let bearer = gateway.bearer(&json!({}));
    assert_eq!(client.get("/own/x", &[("x-token", &bearer)]).status, 204);
    assert_eq!(backend.last().header("x-token"), None);
    refused(&client.get("/own/x", &[("Authorization", &bearer)]), 401, "900901");
    for open in ["/own/open", "/own/none", "/proto/x"] {
        assert_eq!(client.get(open, &[]).status, 204, "{open}");
    }
    refused(&client.get("/blocked/x", &[("Authorization", &bearer)]), 503, "700700");
}

/// The claims of an API key for the API `keyed`.
fn key_claims() -> Value {
    json!({
        "token_type": "apiKey", "keytype": "PRODUCTION",
        "application": {"id": 7, "name": "app", "tier": "Unlimited", "owner": "anna"},
        "subscribedAPIs": [{"name": "keyed", "version": "1.0.0", "context": "/keyed", "subscriptionTier": "Gold"}],
    })
}

#[test]
fn api_keys_count_where_the_definition_says_and_nowhere_else() {
    let backend = Backend::echo();
    let mut keyed = secured_api("/keyed", &backend.url(), &["GET /query", "GET /header", "GET /token", "GET /any"]);
    operation(&mut keyed, 0).requirements = vec![Requirement::ApiKeyQuery("X-Key-Q".into())];
    operation(&mut keyed, 1).requirements = vec![Requirement::ApiKeyHeader("X-Key".into())];
    operation(&mut keyed, 2).requirements = vec![Requirement::OAuth2(Vec::new())];
    keyed.security.api_key = true;
    let mut other = secured_api("/other", &backend.url(), &["GET /any"]);
    other.security.api_key = true;
    let setup =
        Setup::of([keyed, other]).configured(|config| config.security.backend_jwt = Some(BackendJwt::default()));
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    let key = gateway.token(&key_claims());
    assert_eq!(client.get(&format!("/keyed/query?a=1&X-Key-Q={key}&b=2"), &[]).status, 204);
    assert_eq!(backend.last().target, "/query?a=1&b=2", "the key stays here");
    assert!(backend.last().header("x-jwt-assertion").is_some());
    refused(&client.get("/keyed/query", &[("X-Key-Q", &key)]), 401, "900901");
    refused(&client.get(&format!("/keyed/query?x-key-q={key}"), &[]), 401, "900901");
    assert_eq!(client.get("/keyed/header", &[("X-KEY", &key)]).status, 204);
    assert_eq!(backend.last().header("x-key"), None);
    refused(&client.get(&format!("/keyed/header?X-Key={key}"), &[]), 401, "900901");
    refused(&client.get("/keyed/token", &[("apikey", &key)]), 401, "900901");
    refused(&client.get("/keyed/token", &[("Authorization", &format!("Bearer {key}"))]), 401, "900901");
    assert_eq!(client.get("/keyed/any", &[("ApiKey", &key)]).status, 204);
    assert_eq!(client.get(&format!("/keyed/any?apikey={key}"), &[]).status, 204);
    refused(&client.get("/other/any", &[("apikey", &key)]), 403, "900908");
    refused(&client.get("/keyed/any", &[("apikey", &gateway.token(&json!({})))]), 401, "900901");
    refused(&client.get("/keyed/any", &[("apikey", "nonsense")]), 401, "900901");
}

#[test]
fn api_keys_may_be_bound_to_addresses_and_pages() {
    let backend = Backend::echo();
    let mut keyed = secured_api("/keyed", &backend.url(), &["GET /any"]);
    keyed.security.api_key = true;
    keyed.api_key_header = Some("X-My-Key".into());
    let gateway = TestGateway::start(Setup::of([keyed]));
    let mut client = gateway.client();
    let key = |name: &str, value: &str| {
        let mut claims = key_claims();
        claims[name] = value.into();
        gateway.token(&claims)
    };
    let mut ask = |key: &str, headers: &[(&str, &str)]| {
        let mut all = vec![("x-my-key", key)];
        all.extend_from_slice(headers);
        client.get("/keyed/any", &all)
    };
    assert_eq!(ask(&key("jti", "plain"), &[]).status, 204);
    let by_address = key("permittedIP", "203.0.113.0/24, 2001:db8::/32");
    for (address, status) in
        [("203.0.113.9", 204), ("203.0.113.9, 10.0.0.1", 204), ("2001:db8::7", 204), ("198.51.100.1", 403), ("x", 403)]
    {
        assert_eq!(ask(&by_address, &[("X-Forwarded-For", address)]).status, status, "{address}");
    }
    refused(&ask(&by_address, &[]), 403, "900908");
    assert_eq!(ask(&key("permittedIP", "127.0.0.1"), &[]).status, 204);
    let by_page = key("permittedReferer", "www.example.com/*,https://*.example.org/x");
    for (page, status) in [("www.example.com/a", 204), ("https://a.example.org/x", 204), ("www.example.net/a", 403)] {
        assert_eq!(ask(&by_page, &[("Referer", page)]).status, status, "{page}");
    }
    assert_eq!(ask(&by_page, &[]).status, 403);
    let revoked = key("jti", "revoked");
    assert_eq!(ask(&revoked, &[]).status, 204);
    gateway.state().security.revoke("revoked");
    refused(&ask(&revoked, &[]), 401, "900901");
}

#[test]
fn internal_keys_open_every_secured_operation_of_their_api() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(Setup::of([pets(&backend), secured_api("/cats", &backend.url(), &["GET /x"])]));
    let mut client = gateway.client();
    let key = gateway.token(&json!({
        "token_type": "InternalKey", "keytype": "PRODUCTION",
        "subscribedAPIs": [{"name": "pets", "version": "1.0.0", "context": "/pets"}],
    }));
    assert_eq!(client.get("/pets/pet/1", &[("internal-key", &key)]).status, 204);
    refused(&client.get("/cats/x", &[("Internal-Key", &key)]), 403, "900908");
    refused(&client.get("/pets/pet/1", &[("Internal-Key", &gateway.token(&json!({})))]), 401, "900901");
    refused(&client.get("/pets/pet/1", &[("Authorization", &format!("Bearer {key}"))]), 401, "900901");
}

#[test]
fn names_and_passwords_count_where_basic_is_taken() {
    let backend = Backend::echo();
    let mut by_password = secured_api("/basic", &backend.url(), &["GET /x"]);
    by_password.security.basic = true;
    by_password.security.oauth2 = false;
    let setup = Setup::of([by_password, pets(&backend)]).configured(|config| {
        config.security.users = vec![User { name: "anna".into(), password: Secret::new("s:3cret") }];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    assert_eq!(client.get("/basic/x", &[("Authorization", &basic("anna:s:3cret"))]).status, 204);
    assert_eq!(backend.last().header("authorization"), None);
    for wrong in [basic("anna:S:3cret"), basic("anna:"), basic("bert:s:3cret"), basic("anna"), "Basic !!".to_owned()] {
        refused(&client.get("/basic/x", &[("Authorization", &wrong)]), 401, "900901");
    }
    refused(&ask(&mut client, &basic("anna:s:3cret")), 401, "900901");
    assert!(!gateway.log().contains("3cret"));
}

#[test]
fn api_manager_tells_missing_credentials_from_wrong_ones() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(
        Setup::of([pets(&backend)]).configured(|config| config.error_style = ErrorStyle::ApiManager),
    );
    let mut client = gateway.client();
    let basic = format!("Basic {}", STANDARD.encode("a:b"));
    for headers in [&[][..], &[("Authorization", basic.as_str())]] {
        refused(&client.get("/pets/pet/1", headers), 401, "900902");
    }
    let reply = ask(&mut client, "Bearer a.b.c");
    refused(&reply, 401, "900901");
    assert_eq!(reply.json()["message"], "Invalid Credentials");
    assert_eq!(reply.header("www-authenticate").map(|value| value.starts_with("OAuth2 realm=")), Some(true));
    let opaque = ask(&mut client, "Bearer 1234-5678");
    assert_eq!(
        opaque.text(),
        "{\"code\":\"900901\",\"message\":\"Invalid Credentials\",\"description\":\"Invalid Credentials. Make sure you \
         have provided the correct security credentials\"}"
    );
    let xml = client.get("/pets/pet/1", &[("Accept", "application/xml"), ("Authorization", "Bearer x")]);
    assert_eq!(xml.header("content-type"), Some("application/xml"));
    assert_eq!(
        xml.text(),
        "<ams:fault xmlns:ams=\"http://wso2.org/apimanager/security\"><ams:code>900901</ams:code><ams:message>Invalid \
         Credentials</ams:message><ams:description>Invalid Credentials. Make sure you have provided the correct security \
         credentials</ams:description></ams:fault>"
    );
}

#[test]
fn soap_clients_get_faults_of_their_version() {
    let backend = Backend::start(|request| Answer::new(200, "text/xml", request.body.clone()));
    let mut soap = secured_api("/soap", &backend.url(), &["POST /"]);
    soap.security.api_key = true;
    let gateway = TestGateway::start(Setup::of([soap]).configured(|config| config.soap_errors = true));
    let mut client = gateway.client();
    let soap11 = [("Content-Type", "text/xml; charset=utf-8"), ("SOAPAction", "\"\""), ("apikey", "wrong")];
    let reply = client.request("POST", "/soap", &soap11, b"<a/>");
    assert_eq!((reply.status, reply.header("content-type")), (401, Some("text/xml")));
    let text = reply.text();
    for part in [
        "http://schemas.xmlsoap.org/soap/envelope/",
        "<faultcode>Server</faultcode><faultstring>Invalid Credentials</faultstring>",
        "<detail>900901:Make sure you have provided the correct security credentials</detail>",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let soap12 = [("Content-Type", "application/soap+xml; action=\"x\"")];
    let reply = client.request("POST", "/nowhere", &soap12, b"<a/>");
    assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/soap+xml")));
    assert!(reply.text().contains("<env:Value>env:Receiver</env:Value>"), "{}", reply.text());
    assert!(reply.text().contains("404:The requested resource is not available."), "{}", reply.text());
    assert_eq!(client.request("POST", "/nowhere", &[("Content-Type", "text/xml")], b"<a/>").json()["code"], "404");
    let bearer = gateway.bearer(&json!({}));
    let good = [("Content-Type", "text/xml"), ("SOAPAction", "\"\""), ("Authorization", &*bearer)];
    assert_eq!(client.request("POST", "/soap", &good, b"<a/>").text(), "<a/>");
}

#[test]
fn certificates_of_clients_are_asked_for_and_looked_at() {
    let backend = Backend::echo();
    let (app, stranger) = (ClientIdentity::new("app"), ClientIdentity::new("stranger"));
    let listed = |mode: SecurityMode, application: SecurityMode, base: &str| {
        let mut api = secured_api(base, &backend.url(), &["GET /x"]);
        api.security.mutual_tls = mode;
        api.security.application = application;
        api.client_certificates = vec![ClientCertificate {
            alias: "app".into(),
            certificate: app.pem.as_bytes().into(),
            tier: Some("Gold".into()),
        }];
        api
    };
    let setup = Setup::of([
        listed(SecurityMode::Mandatory, SecurityMode::Off, "/only"),
        listed(SecurityMode::Mandatory, SecurityMode::Mandatory, "/both"),
        listed(SecurityMode::Optional, SecurityMode::Optional, "/either"),
        pets(&backend),
    ]);
    let gateway = TestGateway::start(setup);
    let bearer = gateway.bearer(&json!({}));
    let with_token = [("Authorization", bearer.as_str())];
    let mut known = gateway.certified_client(&app);
    let mut unknown = gateway.certified_client(&stranger);
    let mut none = gateway.tls_client();
    for (path, headers, statuses) in [
        ("/only/x", &[][..], [204, 401, 401]),
        ("/only/x", &with_token, [204, 401, 401]),
        ("/both/x", &[], [401, 401, 401]),
        ("/both/x", &with_token, [204, 401, 401]),
        ("/either/x", &[], [204, 401, 401]),
        ("/either/x", &with_token, [204, 204, 204]),
        ("/pets/pet/1", &with_token, [204, 204, 204]),
        ("/pets/pet/1", &[], [401, 401, 401]),
    ] {
        let got = [&mut known, &mut unknown, &mut none].map(|client| client.get(path, headers).status);
        assert_eq!(got, statuses, "{path} {headers:?}");
    }
    // Nobody may claim a certificate in a header field unless the configuration trusts whoever is before us.
    let encoded = app.pem.replace('\n', "%0A").replace(' ', "%20");
    assert_eq!(none.get("/only/x", &[("X-WSO2-CLIENT-CERTIFICATE", &encoded)]).status, 401);
}

#[test]
fn a_certificate_may_be_passed_on_in_a_header_field_when_it_is_configured() {
    let backend = Backend::echo();
    let app = ClientIdentity::new("app");
    let mut only = secured_api("/only", &backend.url(), &["GET /x"]);
    only.security.mutual_tls = SecurityMode::Mandatory;
    only.security.application = SecurityMode::Off;
    let certificate = app.pem.as_bytes().into();
    only.client_certificates = vec![ClientCertificate { alias: "app".into(), certificate, tier: None }];
    let name = "X-WSO2-CLIENT-CERTIFICATE";
    let gateway = TestGateway::start(
        Setup::of([only]).configured(|config| config.security.certificate_header = Some(name.into())),
    );
    let mut client = gateway.client();
    let one_line: String = app.pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let encoded = app.pem.replace('\n', "%0A").replace(' ', "%20");
    for value in [&one_line, &encoded] {
        assert_eq!(client.get("/only/x", &[(name, value)]).status, 204);
        assert_eq!(backend.last().header(name), None);
    }
    for value in [ClientIdentity::new("app").pem.replace('\n', "%0A"), "nonsense".to_owned(), "%".to_owned()] {
        refused(&client.get("/only/x", &[(name, &value)]), 401, "900901");
    }
}

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
    assert_eq!(reply.json()["error_description"], "Sandbox key offered to an API with no sandbox endpoint");
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
fn backends_are_told_who_calls_in_a_token_that_can_be_checked() {
    let backend = Backend::echo();
    let setup = Setup::of([pets(&backend)]).configured(|config| {
        config.security.backend_jwt = Some(BackendJwt { encoding: Encoding::Base64Url, ..BackendJwt::default() });
        config.security.jwks_rate = (5, Duration::from_secs(60));
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    let mut told = |bearer: &str| {
        assert_eq!(ask(&mut client, bearer).status, 204);
        backend.last().header("X-JWT-Assertion").unwrap().to_owned()
    };
    let one = gateway.bearer(&json!({"sub": "anna", "color": "red", "keytype": "PRODUCTION"}));
    let first = told(&one);
    assert_eq!(told(&one), first, "the same caller is told about in the same way");
    assert_ne!(told(&gateway.bearer(&json!({"sub": "anna"}))), first);

    let payload = first.split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap();
    assert_eq!(claims["iss"], "wso2.org/products/am");
    assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
    for (name, value) in [
        ("http://wso2.org/claims/keytype", "PRODUCTION"),
        ("http://wso2.org/claims/enduser", "anna"),
        ("http://wso2.org/claims/apiname", "pets"),
        ("http://wso2.org/claims/apicontext", "/pets"),
        ("http://wso2.org/claims/version", "1.0.0"),
        ("color", "red"),
    ] {
        assert_eq!(claims[name], value, "{name}");
    }
    let mut client = gateway.client();
    let keys = client.get("/.wellknown/jwks", &[]).json();
    let key = &keys["keys"][0];
    assert_eq!((&key["use"], &key["alg"]), (&json!("sig"), &json!("ES256")));
    let (text, signature) = first.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    let algorithm = gateway.state().security.signer().algorithm();
    assert!(PublicKey::from_jwk(key).unwrap().verifies(algorithm, text.as_bytes(), &signature));
    let statuses: Vec<u16> = (0..10).map(|_| client.get("/.wellknown/jwks", &[]).status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
}

#[test]
fn the_system_host_gives_tokens_to_those_it_knows() {
    let backend = Backend::echo();
    let mut scoped = pets(&backend);
    operation(&mut scoped, 0).scopes = vec!["read:pets".into()];
    let setup = Setup::of([scoped]).configured(|config| {
        config.security.test_key_users = vec![User { name: "dev".into(), password: Secret::new("pw") }];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.tls_client();
    assert_eq!(client.get("/health", &[]).text(), "{\"status\": \"healthy\"}");
    assert_eq!(client.get("/ready", &[]).text(), "{\"status\": \"ready\"}");
    assert_eq!(client.get("/health", &[("Host", "api.example.com")]).status, 404);
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let mut token = |user: &str, form: &str| {
        let headers = [("Authorization", &*basic(user)), ("Content-Type", "application/x-www-form-urlencoded")];
        client.request("POST", "/testkey", &headers, form.as_bytes())
    };
    let refusal = token("dev:wrong", "");
    refused(&refusal, 401, "900901");
    assert!(refusal.header("www-authenticate").is_some());
    let (plain, scoped) = (token("dev:pw", "").text(), token("dev:pw", "scope=read%3Apets+x").text());
    assert_eq!(ask(&mut client, &format!("Bearer {plain}")).status, 403);
    assert_eq!(ask(&mut client, &format!("Bearer {scoped}")).status, 204);
    assert_eq!(client.get("/testkey", &[]).status, 405);
}

#[test]
fn explanations_are_for_those_who_have_the_key() {
    let backend = Backend::echo();
    let key = "an explanation key";
    let setup = Setup::of([pets(&backend)]).configured(|config| config.security.explain_key = Some(Secret::new(key)));
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let name = "x-penstock-explain";
    let bearer = gateway.bearer(&json!({"sub": "anna@example.com"}));
    for headers in [&[][..], &[(name, "another key here")], &[(name, "")]] {
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        let reply = client.get("/pets/pet/2", &all);
        assert_eq!((reply.status, reply.header(name)), (204, None));
        assert_eq!(backend.last().header(name), None);
    }
    let explained = |reply: &Reply| -> Value { serde_json::from_str(reply.header(name).unwrap()).unwrap() };
    let reply = client.get("/pets/pet/2", &[("Authorization", &bearer), (name, key)]);
    let told = explained(&reply);
    assert_eq!(told["route"], "GET /pets/pet/{id} of pets:1.0.0");
    let steps: Vec<&str> = told["steps"].as_array().unwrap().iter().map(|step| step[0].as_str().unwrap()).collect();
    for step in ["authenticate", "subscription", "upstream"] {
        assert!(steps.contains(&step), "{step} is not in {steps:?}");
    }
    assert!(told["total_us"].as_f64().unwrap() > 0.0);
    let text = told.to_string();
    assert!(!text.contains("anna") && !text.contains(&bearer[..20]) && !text.contains(key), "{text}");

    let told = explained(&client.get("/pets/pet/2", &[("Authorization", "Bearer a.b.c"), (name, key)]));
    assert_eq!(told["refused"], "900901: the header of the token cannot be decoded");
    let told = explained(&client.get("/nowhere", &[(name, key)]));
    assert_eq!((&told["route"], &told["refused"]), (&json!("none"), &json!("404: Not Found")));
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
