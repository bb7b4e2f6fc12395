//! Keys that issuers publish: fetched, kept, away, slow, hostile.

use super::*;

pub(super) fn jwks_issuer(name: &str, url: &str) -> Issuer {
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
fn a_failing_issuer_affects_only_its_own_tokens() {
    let backend = Backend::echo();
    let away = {
        let gone = Backend::echo();
        gone.url()
    };
    let (slow, gate) = Backend::start_held(|_| Answer::status(200));
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
        std::thread::spawn(move || ask(&mut client, &token))
    };
    let mut client = gateway.client();
    for (name, _) in issuers.iter().filter(|(name, _)| *name != "slow") {
        let token = signed(&signer, &json!({"iss": format!("https://{name}")}));
        let reply = ask(&mut client, &format!("Bearer {token}"));
        assert_eq!((reply.status, reply.json()["code"].as_str()), (401, Some("900900")), "{name}");
        assert_eq!(client.get("/open/x", &[]).status, 204);
        assert_eq!(ask(&mut client, &gateway.bearer(&json!({}))).status, 204);
    }
    // The time for fetching keys ends while the issuer still holds its answer.
    refused(&hanging.join().unwrap(), 401, "900900");
    gate.open();
    assert!(gateway.log().contains("the keys of the token's issuer cannot be fetched"), "{}", gateway.log());
}
