//! Issuers that are discovered, keys that are withdrawn, tokens that only their issuer can read.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use penstock_gateway::security::Introspection;

use super::*;

/// An issuer that publishes its keys and says where; the keys can be changed.
struct Idp {
    backend: Backend,
    keys: Arc<Mutex<Value>>,
    away: Arc<AtomicBool>,
}

impl Idp {
    fn start(keys: Value) -> Idp {
        let (keys, away) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicBool::new(false)));
        let (published, is_away) = (keys.clone(), away.clone());
        let backend = Backend::start(move |request| {
            if is_away.load(Ordering::Relaxed) {
                return Answer::status(503);
            }
            let base = format!("http://{}", request.header("host").unwrap_or_default());
            match &*request.target {
                "/t/.well-known/openid-configuration" => {
                    Answer::json(&json!({"issuer": format!("{base}/t"), "jwks_uri": format!("{base}/keys")}))
                }
                "/keys" => Answer::json(&published.lock().unwrap()),
                _ => Answer::status(404),
            }
        });
        Idp { backend, keys, away }
    }

    fn issuer(&self) -> String {
        format!("{}/t", self.backend.url())
    }

    fn asked(&self, target: &str) -> usize {
        self.backend.received().iter().filter(|request| *request.target == *target).count()
    }
}

/// A gateway whose issuer has a name and no keys; fetched keys are stale at once.
fn discovering(backend: &Backend, issuer: &str, refresh: Duration) -> TestGateway {
    TestGateway::start(Setup::of([pets(backend)]).configured(|config| {
        config.security.keys_refresh = refresh;
        config.security.issuers = vec![Issuer { name: "idp".into(), issuer: issuer.into(), ..Issuer::default() }];
    }))
}

#[test]
fn the_keys_of_an_issuer_are_discovered_and_kept_while_it_is_away() {
    let backend = Backend::echo();
    let signer = signer();
    let idp = Idp::start(signer.jwks());
    let gateway = discovering(&backend, &idp.issuer(), Duration::from_secs(3600));
    let mut client = gateway.client();
    let token = |number: u64| format!("Bearer {}", signed(&signer, &json!({"iss": idp.issuer(), "n": number})));
    assert_eq!(ask(&mut client, &token(1)).status, 204);
    assert_eq!((idp.asked("/t/.well-known/openid-configuration"), idp.asked("/keys")), (1, 1));
    idp.away.store(true, Ordering::Relaxed);
    assert_eq!(ask(&mut client, &token(2)).status, 204, "keys stay");
}

#[test]
fn tokens_of_an_undiscovered_issuer_are_rejected() {
    let backend = Backend::echo();
    let signer = signer();
    let idp = Idp::start(signer.jwks());
    // The document is of `/t`, so it says nothing about `/other` and about an issuer that only ends alike.
    idp.away.store(true, Ordering::Relaxed);
    let gateway = discovering(&backend, &idp.issuer(), Duration::from_secs(3600));
    let mut client = gateway.client();
    let token = format!("Bearer {}", signed(&signer, &json!({"iss": idp.issuer()})));
    refused(&ask(&mut client, &token), 401, "900900");
    let lying =
        Backend::start(|_| Answer::json(&json!({"issuer": "https://other", "jwks_uri": "http://127.0.0.1:1/"})));
    let gateway = discovering(&backend, &lying.url(), Duration::from_secs(3600));
    let token = format!("Bearer {}", signed(&signer, &json!({"iss": lying.url()})));
    refused(&ask(&mut gateway.client(), &token), 401, "900900");
    assert_eq!(backend.received().len(), 0);
}

#[test]
fn a_token_ends_when_its_key_is_withdrawn() {
    let backend = Backend::echo();
    let (old, new) = (signer(), signer());
    let idp = Idp::start(old.jwks());
    let gateway = discovering(&backend, &idp.issuer(), Duration::from_millis(1));
    let mut client = gateway.client();
    let token = |signer: &Signer| format!("Bearer {}", signed(signer, &json!({"iss": idp.issuer()})));
    let remembered = token(&old);
    assert_eq!(ask(&mut client, &remembered).status, 204);
    assert_eq!(ask(&mut client, &remembered).status, 204);
    *idp.keys.lock().unwrap() = new.jwks();
    // A token of the new key makes the gateway look at the keys again.
    assert_eq!(ask(&mut client, &token(&new)).status, 204);
    refused(&ask(&mut client, &remembered), 401, "900901");
    assert_eq!(ask(&mut client, &token(&new)).status, 204);
}

/// A service that knows one token.
fn introspecting(claims: Value) -> Backend {
    Backend::start(move |request| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let active = body.contains("token=good.Token_7%7E") || body.contains("token=other");
        let mut answer = json!({"active": active});
        if active {
            answer.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        }
        Answer::json(&answer)
    })
}

fn asking(service: &str, cache: Duration) -> Issuer {
    let introspection = Introspection {
        url: format!("{service}/introspect").as_str().into(),
        client_id: "gate way".into(),
        client_secret: penstock_catalog::Secret("s&cret".into()),
        cache,
    };
    let introspection = Some(introspection);
    Issuer { name: "opaque".into(), issuer: "https://opaque".into(), introspection, ..Issuer::default() }
}

#[test]
fn opaque_tokens_are_introspected_once() {
    let backend = Backend::echo();
    let service = introspecting(json!({"scope": "read:pets other", "sub": "anna", "client_id": "shop"}));
    let setup = |scope: &str| {
        let mut api = pets(&backend);
        operation(&mut api, 0).scopes = vec![scope.into()];
        Setup::of([api])
            .configured(|config| config.security.issuers = vec![asking(&service.url(), Duration::from_secs(60))])
    };
    let gateway = TestGateway::start(setup("read:pets"));
    let mut client = gateway.client();
    for _ in 0..3 {
        assert_eq!(ask(&mut client, "Bearer good.Token_7~").status, 204);
    }
    assert_eq!(service.received().len(), 1);
    let request = service.last();
    assert_eq!(String::from_utf8_lossy(&request.body), "token=good.Token_7%7E&token_type_hint=access_token");
    let credentials = STANDARD.encode("gate+way:s%26cret");
    assert_eq!(request.header("authorization"), Some(&*format!("Basic {credentials}")));
    // One that is not active is refused, and asked about once too.
    for _ in 0..3 {
        refused(&ask(&mut client, "Bearer made-up"), 401, "900901");
    }
    assert_eq!(service.received().len(), 2);
    // What cannot be a token is not asked about.
    refused(&ask(&mut client, "Bearer two words"), 401, "900901");
    assert_eq!(service.received().len(), 2);
    let gateway = TestGateway::start(setup("write:pets"));
    refused(&ask(&mut gateway.client(), "Bearer good.Token_7~"), 403, "900910");
}

#[test]
fn tokens_are_rejected_when_introspection_fails() {
    let backend = Backend::echo();
    let answers = [
        Answer::status(500),
        Answer::new(200, "text/html", "<html>active</html>"),
        Answer::json(&json!({"active": "true"})),
        Answer::json(&json!([true])),
    ];
    for answer in answers {
        let text = format!("{answer:?}");
        let service = Backend::start(move |_| answer.clone());
        let gateway = TestGateway::start(Setup::of([pets(&backend)]).configured(|config| {
            config.security.issuers = vec![asking(&service.url(), Duration::from_secs(60))];
        }));
        let reply = ask(&mut gateway.client(), "Bearer good.Token_7~");
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("900900")), "{text}");
    }
    for claims in [json!({"exp": now() - 3600}), json!({"nbf": now() + 3600}), json!({"iss": "https://another"})] {
        let service = introspecting(claims.clone());
        let gateway = TestGateway::start(Setup::of([pets(&backend)]).configured(|config| {
            config.security.issuers = vec![asking(&service.url(), Duration::from_secs(60))];
        }));
        assert_eq!(ask(&mut gateway.client(), "Bearer good.Token_7~").status, 401, "{claims}");
    }
    assert_eq!(backend.received().len(), 0);
}

#[test]
fn scopes_are_read_from_both_claims() {
    let backend = Backend::echo();
    let signer = signer();
    let mut api = pets(&backend);
    operation(&mut api, 0).scopes = vec!["read:pets".into()];
    let gateway = TestGateway::start(
        Setup::of([api]).configured(|config| config.security.issuers = vec![issuer("idp", &signer)]),
    );
    let mut client = gateway.client();
    for (claims, status) in [
        (json!({"scp": "a read:pets"}), 204),
        (json!({"scp": ["a", "read:pets"]}), 204),
        (json!({"scope": "a", "scp": ["read:pets"]}), 204),
        (json!({"scope": ["read:pets"]}), 204),
        (json!({"scp": ["read:pets2"], "scope": "read"}), 403),
        (json!({"scp": {"read:pets": true}}), 403),
    ] {
        let mut all = claims.clone();
        all["iss"] = "https://idp".into();
        let reply = ask(&mut client, &format!("Bearer {}", signed(&signer, &all)));
        assert_eq!(reply.status, status, "{claims}");
    }
}

#[test]
fn an_api_key_lets_in_what_a_token_without_scope_may_not() {
    let backend = Backend::echo();
    let mut pets = pets(&backend);
    pets.security.api_key = true;
    operation(&mut pets, 0).scopes = vec!["read:pets".into()];
    let (name, version) = (pets.name.to_string(), pets.version.to_string());
    let gateway = TestGateway::start(Setup::of([pets]));
    let mut client = gateway.client();
    let bearer = gateway.bearer(&json!({}));
    let of_api = json!({"token_type": "apiKey", "subscribedAPIs": [{"name": name, "version": version}]});
    let key = gateway.token(&of_api);
    let mut get = |headers: &[(&str, &str)]| client.get("/pets/pet/2", headers).status;
    assert_eq!(get(&[("Authorization", &bearer)]), 403);
    assert_eq!(get(&[("Authorization", &bearer), ("apikey", &key)]), 204);
    assert_eq!(get(&[("Authorization", &bearer), ("apikey", "wrong")]), 403);
}

#[test]
fn clients_of_grpc_get_their_status_in_fields() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(Setup::of([pets(&backend)]));
    let mut client = gateway.client();
    for (path, status) in [("/pets/pet", "16"), ("/none", "12")] {
        let reply = client.request("POST", path, &[("Content-Type", "application/grpc+proto")], b"");
        assert_eq!((reply.status, reply.header("grpc-status")), (200, Some(status)), "{path}");
        assert_eq!((reply.header("content-type"), &*reply.text()), (Some("application/grpc"), ""));
        assert!(reply.header("grpc-message").is_some_and(|message| !message.is_empty()));
    }
    let web = client.request("POST", "/pets/pet", &[("Content-Type", "application/grpc-web")], b"");
    assert_eq!((web.status, web.header("grpc-status")), (401, None));
}
