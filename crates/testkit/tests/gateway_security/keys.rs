//! API keys, internal keys, names and passwords.

use super::*;

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
    let gateway = TestGateway::start(Setup::of([keyed]).behind(&["127.0.0.1", "10.0.0.0/8"]));
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
    gateway.state().security.revocations.add_watched("revoked");
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
