//! Tokens: what counts, what does not, and what is said then.

use super::*;

#[test]
fn what_is_no_token_is_refused_in_the_synapse_message() {
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
        ("valid from a text", signed(&known, &with("nbf", json!("0")))),
        ("valid from nothing", signed(&known, &with("nbf", Value::Null))),
        ("valid from a list", signed(&known, &with("nbf", json!([1])))),
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
    let rsa = Signer::from_pem(include_bytes!("../keys/rsa.pem")).unwrap();
    let p384 = Signer::from_pem(include_bytes!("../keys/p384.pem")).unwrap();
    let ed25519 = Signer::from_pem(include_bytes!("../keys/ed25519.pem")).unwrap();
    let by_certificate = PublicKey::parse(include_bytes!("../keys/rsa.crt")).unwrap();
    assert_eq!(&by_certificate, rsa.public());
    let mut p521 = issuer("p521", &p384);
    let key = PublicKey::parse(include_bytes!("../keys/p521.pub.pem")).unwrap();
    p521.keys = vec![TrustedKey { kid: Some("p521".into()), key }];
    let gateway = TestGateway::start(Setup::of([pets(&backend)]).configured(|config| {
        config.security.issuers = vec![issuer("rsa", &rsa), issuer("p384", &p384), issuer("ed25519", &ed25519), p521];
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
    // Made with OpenSSL; it is good until 2100.
    let token = include_str!("../keys/p521.jwt").trim();
    assert_eq!(ask(&mut client, &format!("Bearer {token}")).status, 204);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    assert_eq!(ask(&mut client, &format!("Bearer {signed}.B{}", &signature[1..])).status, 401);
}

#[test]
fn a_revoked_token_is_refused_from_the_next_request_on() {
    let backend = Backend::echo();
    let gateway = TestGateway::start(Setup::of([pets(&backend)]));
    let mut client = gateway.client();
    let (one, other) = (gateway.bearer(&json!({"jti": "one"})), gateway.bearer(&json!({"jti": "other"})));
    assert_eq!((ask(&mut client, &one).status, ask(&mut client, &other).status), (204, 204));
    gateway.state().security.revocations.add_watched("one");
    refused(&ask(&mut client, &one), 401, "900901");
    assert_eq!(ask(&mut client, &other).status, 204);
    gateway.state().security.revocations.set_watched([]);
    assert_eq!(ask(&mut client, &one).status, 204);
}

/// A control plane tells what is revoked there, in the form of API Manager; while it is away that stays so.
#[test]
fn a_list_of_revoked_tokens_is_fetched() {
    let away = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_away = away.clone();
    let plane = Backend::start(move |request| match request.header("authorization") {
        Some("Basic eDp5") if !is_away.load(std::sync::atomic::Ordering::Relaxed) => {
            Answer::json(&json!([{ "jwt_signature": "one", "expiry_time": 1 }]))
        }
        _ => Answer::status(401),
    });
    let backend = Backend::echo();
    let setup = Setup::of([pets(&backend)]);
    let (tell, told) = std::sync::mpsc::channel();
    let source = penstock_gateway::security::RevokedSource {
        url: format!("{}/internal/data/v1/revokedjwt", plane.url()).into(),
        authorization: Some(penstock_catalog::Secret("Basic eDp5".into())),
        every: Duration::from_secs(1),
    };
    setup.state.security.revocations.ask(source, move |outcome| drop(tell.send(outcome)));
    let gateway = TestGateway::start(setup);
    let patience = Duration::from_secs(20);
    assert_eq!(told.recv_timeout(patience), Ok(Ok(1)));
    let mut client = gateway.client();
    refused(&ask(&mut client, &gateway.bearer(&json!({"jti": "one"}))), 401, "900901");
    away.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(std::iter::repeat_with(|| told.recv_timeout(patience).unwrap()).take(3).any(|outcome| outcome.is_err()));
    refused(&ask(&mut client, &gateway.bearer(&json!({"jti": "one"}))), 401, "900901");
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
