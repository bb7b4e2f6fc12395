//! What the gateway proves itself with to backends: tokens of a token service, answers to challenges, keys
//! (instructive test 24).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Answer, Received, Setup, TestGateway};
use serde_json::json;

use super::*;

/// A token service that gives numbered tokens, and counts.
fn token_service(lifetime: u64) -> Backend {
    let count = AtomicUsize::new(0);
    Backend::start(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst) + 1;
        Answer::json(&json!({"access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": lifetime}))
    })
}

/// A backend that lets these values of `Authorization` in and tells what it was sent.
fn backend_for(allowed: &'static [&'static str]) -> Backend {
    Backend::start(move |request: &Received| {
        let shown = request.header("authorization").unwrap_or_default().to_owned();
        let status = if allowed.contains(&&*shown) { 200 } else { 401 };
        Answer::new(status, "text/plain", format!("{shown} {}", String::from_utf8_lossy(&request.body)))
    })
}

/// A project whose endpoints have this `endpoint_security`.
fn project(production: &Backend, sandbox: &Backend, security: &str) -> Setup {
    let descriptor = format!(
        "type: api\nversion: v4.2.0\ndata:\n  name: A\n  version: 1.0.0\n  context: /a\n  endpointConfig:\n    \
         endpoint_type: http\n    production_endpoints: {{url: '{}'}}\n    sandbox_endpoints: {{url: '{}'}}\n    \
         endpoint_security:\n{security}\n  operations:\n    - {{target: '/*', verb: GET, authType: None}}\n    \
         - {{target: '/*', verb: POST, authType: None}}\n    - {{target: /keyed, verb: GET}}\n",
        production.url(),
        sandbox.url()
    );
    Setup::project(&[("api.yaml", &descriptor)])
}

fn client_credentials(tokens: &Backend, more: &str) -> String {
    format!(
        "      production: {{enabled: true, type: OAUTH, grantType: CLIENT_CREDENTIALS, tokenUrl: '{}/token', \
         clientId: me, clientSecret: 's:e&cret'{more}}}",
        tokens.url()
    )
}

#[test]
fn a_token_is_requested_once_and_sent_with_every_request() {
    let (tokens, backend) = (token_service(3600), backend_for(&["Bearer t1"]));
    let security = client_credentials(&tokens, ", customParameters: {scope: 'a b', audience: x}");
    let gateway = TestGateway::start(project(&backend, &backend, &security));
    let mut client = gateway.client();
    for _ in 0..3 {
        // What the client sent is not what the backend is to see.
        let reply = client.get("/a/1.0.0/x", &[("Authorization", "Bearer mine")]);
        assert_eq!((reply.status, &*reply.text()), (200, "Bearer t1 "));
    }
    assert_eq!(tokens.received().len(), 1);
    let asked = tokens.last();
    assert_eq!((&*asked.method, &*asked.target), ("POST", "/token"));
    assert_eq!(asked.header("authorization"), Some("Basic bWU6czplJmNyZXQ="));
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(String::from_utf8_lossy(&asked.body), "grant_type=client_credentials&scope=a+b&audience=x");
    assert!(!gateway.log().contains("t1") && !gateway.log().contains("cret"), "{}", gateway.log());
}

#[test]
fn production_and_sandbox_have_tokens_of_their_own() {
    let (first, second) = (token_service(3600), token_service(3600));
    let (production, sandbox) = (backend_for(&["Bearer t1"]), backend_for(&["Bearer t1"]));
    let security = format!(
        "{}\n      sandbox: {{enabled: true, type: oauth, grantType: password, tokenUrl: '{}', clientId: me, \
         clientSecret: c, username: ann, password: 'p&w', customParameters: '{{\"param1\": \"val 1\"}}'}}",
        client_credentials(&first, ""),
        second.url()
    );
    let gateway = TestGateway::start(project(&production, &sandbox, &security));
    for (key_type, asked) in [("PRODUCTION", (1, 0)), ("SANDBOX", (1, 1))] {
        let bearer = gateway.bearer(&json!({"keytype": key_type}));
        assert_eq!(gateway.client().get("/a/1.0.0/keyed", &[("Authorization", &bearer)]).status, 200, "{key_type}");
        assert_eq!((first.received().len(), second.received().len()), asked, "{key_type}");
    }
    let form = String::from_utf8_lossy(&second.last().body).into_owned();
    assert_eq!(form, "grant_type=password&username=ann&password=p%26w&param1=val+1");
}

#[test]
fn a_rejected_token_is_renewed_once() {
    let (tokens, backend) = (token_service(3600), backend_for(&["Bearer t2"]));
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&tokens, "")));
    let mut client = gateway.client();
    let reply = client.request("POST", "/a/1.0.0/x", &[], b"body");
    assert_eq!((reply.status, &*reply.text()), (200, "Bearer t2 body"));
    assert_eq!(client.get("/a/1.0.0/x", &[]).status, 200);
    assert_eq!((tokens.received().len(), backend.received().len()), (2, 3));
}

#[test]
fn a_backend_that_refuses_every_token_does_not_wear_the_token_service_out() {
    let (tokens, backend) = (token_service(3600), backend_for(&[]));
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&tokens, "")));
    let mut client = gateway.client();
    for _ in 0..5 {
        assert_eq!(client.get("/a/1.0.0/x", &[]).status, 401);
    }
    assert_eq!(tokens.received().len(), 2);
}

#[test]
fn those_who_wait_for_another_token_do_not_ask_for_the_same_one_each() {
    let same = json!({"access_token": "t1", "expires_in": 3600});
    let tokens = Backend::start(move |_| Answer::json(&same).after(Duration::from_millis(300)));
    let backend = backend_for(&[]);
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&tokens, "")));
    assert_eq!(at_once(20, || gateway.client().get("/a/1.0.0/x", &[]).status), vec![401; 20]);
    assert!(tokens.received().len() < 5, "{}", tokens.received().len());
}

#[test]
fn a_request_too_large_to_keep_is_sent_once_and_the_next_one_has_another_token() {
    let (tokens, backend) = (token_service(3600), backend_for(&["Bearer t2"]));
    let setup = project(&backend, &backend, &client_credentials(&tokens, ""));
    let gateway = TestGateway::start(setup.configured(|config| config.upstream.replay_bytes_max = 1_000));
    let mut client = gateway.client();
    assert_eq!(client.request("POST", "/a/1.0.0/x", &[], &[b'x'; 100_000]).status, 401);
    assert_eq!(client.request("POST", "/a/1.0.0/x", &[], &[b'x'; 100_000]).status, 200);
    assert_eq!((tokens.received().len(), backend.received().len()), (2, 2));
}

#[test]
fn an_expired_token_is_renewed() {
    let (tokens, backend) = (token_service(1), backend_for(&["Bearer t1", "Bearer t2"]));
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&tokens, "")));
    let mut client = gateway.client();
    assert_eq!(client.get("/a/1.0.0/x", &[]).text(), "Bearer t1 ");
    let end = Instant::now() + Duration::from_secs(20);
    while client.get("/a/1.0.0/x", &[]).text() != "Bearer t2 " {
        assert!(Instant::now() < end, "the token never ends");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn many_at_once_wait_for_one_token_and_for_one_failure() {
    let (tokens, backend) = (token_service(3600), backend_for(&["Bearer t1"]));
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&tokens, "")));
    assert_eq!(at_once(20, || gateway.client().get("/a/1.0.0/x", &[]).status), vec![200; 20]);
    assert_eq!(tokens.received().len(), 1);
    let failing = Backend::start(|_| Answer::status(500).after(Duration::from_millis(400)));
    let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(&failing, "")));
    assert_eq!(at_once(20, || gateway.client().get("/a/1.0.0/x", &[]).status), vec![503; 20]);
    assert!(failing.received().len() < 5, "{}", failing.received().len());
}

#[test]
fn without_a_token_the_client_gets_503() {
    let backend = backend_for(&["Bearer t1"]);
    let answer = |body: &'static str| Backend::start(move |_| Answer::new(200, "application/json", body));
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let services = [
        Backend::start(|_| Answer::status(401)),
        Backend::start(|_| Answer::garbage("what?")),
        Backend::start(|_| Answer::new(200, "application/json", vec![b'x'; 200_000])),
        answer("not JSON"),
        answer("[]"),
        answer("{\"access_token\": 7}"),
    ];
    for service in &services {
        let gateway = TestGateway::start(project(&backend, &backend, &client_credentials(service, "")));
        let reply = gateway.client().get("/a/1.0.0/x", &[]);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (503, Some("102503")), "{}", reply.text());
        assert!(gateway.log().contains("no token from `http://127.0.0.1"), "{}", gateway.log());
        assert!(!gateway.log().contains("cret"), "{}", gateway.log());
    }
    assert_eq!(backend.received().len(), 0);
    let security =
        client_credentials(&services[0], "").replace(&services[0].url(), &format!("http://127.0.0.1:{gone}"));
    let setup = project(&backend, &backend, &security).configured(|config| config.error_style = ErrorStyle::ApiManager);
    let reply = TestGateway::start(setup).client().get("/a/1.0.0/x", &[]);
    assert_eq!((reply.status, reply.json()["description"].as_str()), (500, Some("No token for the back end")));
}

#[test]
fn a_slow_token_service_holds_up_its_own_api_only_and_not_for_ever() {
    let ((slow, gate), quick) = (Backend::start_held(|_| Answer::status(200)), token_service(3600));
    let backend = backend_for(&["Bearer t1"]);
    let security = format!(
        "{}\n      sandbox: {{enabled: true, type: OAUTH, tokenUrl: '{}', clientId: me, clientSecret: c}}",
        client_credentials(&slow, ", connectionRequestTimeoutDuration: 2"),
        quick.url()
    );
    let gateway = TestGateway::start(project(&backend, &backend, &security));
    let bearer = |key_type: &str| gateway.bearer(&json!({"keytype": key_type}));
    let (production, sandbox) = (bearer("PRODUCTION"), bearer("SANDBOX"));
    let ask = |bearer: &str| gateway.client().get("/a/1.0.0/keyed", &[("Authorization", bearer)]).status;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| ask(&production));
        assert_eq!(ask(&sandbox), 200);
        assert_eq!(waiting.join().unwrap(), 503);
    });
    gate.open();
}

#[test]
fn challenges_are_answered_with_a_digest() {
    // Counts are checked here and the digest itself in the gateway's own tests.
    let nonce = AtomicUsize::new(1);
    let backend = Backend::start(move |request: &Received| {
        let shown = request.header("authorization").unwrap_or_default().to_owned();
        let current = format!("nonce=\"n{}\"", nonce.load(Ordering::SeqCst));
        if !shown.starts_with("Digest username=\"me\"") || !shown.contains(&current) {
            let challenge = format!("Digest realm=\"r\", {current}, qop=\"auth\", algorithm=SHA-256");
            return Answer::status(401).with("WWW-Authenticate", &challenge);
        }
        if request.target.ends_with("change") {
            nonce.fetch_add(1, Ordering::SeqCst);
        }
        Answer::new(200, "text/plain", format!("{shown} {}", String::from_utf8_lossy(&request.body)))
    });
    let security = "      production: {enabled: true, type: DIGEST, username: me, password: secret}";
    let gateway = TestGateway::start(project(&backend, &backend, security));
    let mut client = gateway.client();
    // What the client sent is not what the backend is to see, also before it asks.
    let reply = client.request("POST", "/a/1.0.0/x?y=1", &[("Authorization", "Bearer mine")], b"body");
    assert_eq!(backend.received()[0].header("authorization"), None);
    assert!(reply.text().contains("uri=\"/x?y=1\"") && reply.text().ends_with(" body"), "{}", reply.text());
    assert!(reply.text().contains("nc=00000001"), "{}", reply.text());
    assert!(client.get("/a/1.0.0/change", &[]).text().contains("nc=00000002"));
    assert_eq!(backend.received().len(), 3);
    // The nonce is over: the request is sent once more, with the new one.
    assert!(client.get("/a/1.0.0/x", &[]).text().contains("nonce=\"n2\""));
    assert_eq!(backend.received().len(), 5);
    let refusing =
        Backend::start(|_| Answer::status(401).with("WWW-Authenticate", "Digest realm=r, nonce=n, qop=auth"));
    let gateway = TestGateway::start(project(&refusing, &refusing, security));
    assert_eq!(gateway.client().get("/a/1.0.0/x", &[]).status, 401);
    assert_eq!(refusing.received().len(), 2);
}

#[test]
fn keys_go_into_a_field_or_into_the_query() {
    let backend = Backend::start(|request: &Received| {
        let key = request.header("x-key").unwrap_or_default();
        Answer::new(200, "text/plain", format!("{key} {}", request.target))
    });
    let with = |kind: &str, name: &str| {
        let key = format!("apiKeyIdentifierType: {kind}, apiKeyIdentifier: {name}, apiKeyValue: 'k/1'");
        let security = format!("      production: {{enabled: true, type: apikey, {key}}}");
        let gateway = TestGateway::start(project(&backend, &backend, &security));
        gateway.client().get("/a/1.0.0/x?y=1", &[("X-Key", "mine")]).text()
    };
    assert_eq!(with("HEADER", "x-key"), "k/1 /x?y=1");
    assert_eq!(with("QUERY_PARAMETER", "key"), "mine /x?y=1&key=k%2F1");
}
