//! `jwt-auth`, `basic-auth` and `api-key-auth`.

use penstock_gateway::security::{Claims, Encoding, Issuer, Signer, TrustedKey, issue};
use penstock_testkit::gateway::{Answer, Backend, Reply, TestGateway};
use serde_json::{Value, json};

use crate::{api, setup};

/// Two issuers, of which the gateway trusts both, and one it does not know.
struct World {
    backend: Backend,
    gateway: TestGateway,
    signers: [Signer; 3],
}

const ISSUERS: [(&str, &str); 3] = [
    ("first", "https://first.example.com"),
    ("second", "https://second.example.com"),
    ("none", "https://x.example.com"),
];

impl World {
    fn new(version: &str, params: &str) -> World {
        let policy = format!("- {{name: jwt-auth, version: {version}, params: {{{params}}}}}");
        World::of(&|backend| api(backend, &policy))
    }

    fn of(text: &dyn Fn(&Backend) -> String) -> World {
        let backend = Backend::echo();
        let signers = [0; 3].map(|_| Signer::generate().unwrap().0);
        let text = text(&backend);
        let issuers = ISSUERS.iter().zip(&signers).take(2).map(|((name, issuer), signer)| Issuer {
            name: (*name).into(),
            issuer: (*issuer).into(),
            keys: vec![TrustedKey { kid: None, key: signer.public().clone() }],
            ..Issuer::default()
        });
        let issuers = issuers.collect();
        let gateway = TestGateway::start(setup(&text).configured(|config| config.security.issuers = issuers));
        World { backend, gateway, signers }
    }

    /// A token of one of the issuers, good for an hour unless the claims say otherwise.
    fn token(&self, issuer: usize, claims: &Value) -> String {
        let mut all = Claims::lasting(3600);
        all.set("iss", ISSUERS[issuer].1);
        for (name, value) in claims.as_object().into_iter().flatten() {
            all.set(name, value.clone());
        }
        issue(&self.signers[issuer], &all, Encoding::Base64Url).unwrap()
    }

    fn get(&self, headers: &[(&str, &str)]) -> Reply {
        self.gateway.client().get("/books/list", headers)
    }

    fn with(&self, issuer: usize, claims: &Value) -> u16 {
        let bearer = format!("Bearer {}", self.token(issuer, claims));
        self.get(&[("Authorization", &bearer)]).status
    }
}

/// What becomes of tokens with these claims under these parameters.
#[track_caller]
fn statuses(version: &str, params: &str, cases: &[(Value, u16)]) {
    let world = World::new(version, params);
    for (claims, expected) in cases {
        assert_eq!(world.with(0, claims), *expected, "{version} {params} {claims}\n{}", world.gateway.log());
    }
}

#[test]
fn callers_need_a_token_that_holds() {
    let world = World::new("v1", "");
    let reply = world.get(&[]);
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json(), json!({"error": "Unauthorized", "message": "Authentication failed"}));
    assert_eq!(world.with(0, &json!({})), 204);
    assert_eq!(world.with(1, &json!({})), 204);
    // Of an unknown issuer; of a known one with another's key; at its end; before its time.
    assert_eq!(world.with(2, &json!({})), 401);
    assert_eq!(world.with(2, &json!({"iss": ISSUERS[0].1})), 401);
    assert_eq!(world.with(0, &json!({"exp": 1_600_000_000})), 401);
    assert_eq!(world.with(0, &json!({"nbf": 4_000_000_000_u64})), 401);
    let token = world.token(0, &json!({}));
    for sent in
        [format!("Basic {token}"), token.clone(), format!("Bearer {token}x"), "Bearer".into(), "Bearer a.b".into()]
    {
        assert_eq!(world.get(&[("Authorization", &sent)]).status, 401, "{sent}");
    }
    // The claims of one under the signature of another.
    let other = world.token(0, &json!({"sub": "mallory"}));
    let mut parts: Vec<&str> = token.split('.').collect();
    parts[1] = other.split('.').nth(1).unwrap();
    assert_eq!(world.get(&[("Authorization", &format!("Bearer {}", parts.join(".")))]).status, 401);
    assert_eq!(world.backend.received().len(), 2);
}

#[test]
fn keys_are_fetched_where_the_issuer_publishes_them() {
    let signer = Signer::generate().unwrap().0;
    let keys = signer.jwks();
    let published = Backend::start(move |_| Answer::json(&keys));
    let backend = Backend::echo();
    let url = format!("{}/jwks", published.url());
    let setup =
        setup(&api(&backend, "- {name: jwt-auth, version: v1, params: {issuers: [idp]}}")).configured(|config| {
            config.security.issuers = vec![Issuer {
                name: "idp".into(),
                issuer: "https://idp".into(),
                jwks_url: Some(url.into()),
                ..Issuer::default()
            }];
        });
    let gateway = TestGateway::start(setup);
    let mut claims = Claims::lasting(3600);
    claims.set("iss", "https://idp");
    let token = |signer: &Signer| format!("Bearer {}", issue(signer, &claims, Encoding::Base64Url).unwrap());
    let status = |token: &str| gateway.client().get("/books/list", &[("Authorization", token)]).status;
    let good = token(&signer);
    assert_eq!((status(&good), status(&good), status(&token(&Signer::generate().unwrap().0))), (204, 204, 401));
    assert!((1..=2).contains(&published.received().len()));
}

#[test]
fn issuers_can_be_named() {
    let world = World::new("v1", "issuers: [second]");
    assert_eq!((world.with(0, &json!({})), world.with(1, &json!({}))), (401, 204));
    let world = World::new("v1", "issuers: ['https://first.example.com']");
    assert_eq!((world.with(0, &json!({})), world.with(1, &json!({}))), (204, 401));
}

/// What was found out for one operation does not decide for another.
#[test]
fn operations_may_take_different_issuers() {
    let world = World::of(&|backend| {
        let of =
            |issuer: &str| format!("policies: [{{name: jwt-auth, version: v1, params: {{issuers: [{issuer}]}}}}]}}");
        let text = api(backend, "").replacen("path: /list}", &format!("path: /list, {}", of("first")), 1);
        text.replace("'/one/{id}'}", &format!("'/one/{{id}}', {}", of("second")))
    });
    for _ in 0..2 {
        for (issuer, expected) in [(0, [204, 401]), (1, [401, 204])] {
            let bearer = format!("Bearer {}", world.token(issuer, &json!({"sub": "same"})));
            let statuses = ["/books/list", "/books/one/1"]
                .map(|path| world.gateway.client().get(path, &[("Authorization", &bearer)]).status);
            assert_eq!(statuses, expected);
            let statuses = ["/books/one/1", "/books/list"]
                .map(|path| world.gateway.client().get(path, &[("Authorization", &bearer)]).status);
            assert_eq!(statuses, [expected[1], expected[0]]);
        }
    }
}

/// Whose key signed a token of no known issuer matters to one operation and not to the other.
#[test]
fn the_issuer_of_a_cached_token_is_checked() {
    let world = World::of(&|backend| {
        let of = |checks: bool| {
            format!("policies: [{{name: jwt-auth, version: v1, params: {{validateIssuer: {checks}}}}}]}}")
        };
        let text = api(backend, "").replacen("path: /list}", &format!("path: /list, {}", of(false)), 1);
        text.replace("'/one/{id}'}", &format!("'/one/{{id}}', {}", of(true)))
    });
    let bearer = format!("Bearer {}", world.token(0, &json!({"iss": "https://nobody.example.com"})));
    for _ in 0..2 {
        let statuses = ["/books/one/1", "/books/list", "/books/one/1"]
            .map(|path| world.gateway.client().get(path, &[("Authorization", &bearer)]).status);
        assert_eq!(statuses, [401, 204, 401]);
    }
}

#[test]
fn audiences() {
    statuses(
        "v1",
        "audiences: [books, shelves]",
        &[
            (json!({"aud": "books"}), 204),
            (json!({"aud": ["other", "shelves"]}), 204),
            (json!({"aud": "other"}), 401),
            (json!({}), 401),
        ],
    );
}

#[test]
fn scopes() {
    // All of them in the first version, one of them later.
    for (version, one) in [("v0", 401), ("v1", 204)] {
        statuses(
            version,
            "requiredScopes: [read, write]",
            &[
                (json!({"scope": "write read more"}), 204),
                (json!({"scope": ["read", "write"]}), 204),
                (json!({"scope": "read"}), one),
                (json!({"scp": ["read"]}), one),
                (json!({"scope": "rea"}), 401),
                (json!({}), 401),
            ],
        );
    }
    statuses(
        "v1",
        "scopes: {allOf: [read, write], anyOf: [x, y]}",
        &[
            (json!({"scope": "read write y"}), 204),
            (json!({"scope": "read write"}), 401),
            (json!({"scope": "read x y"}), 401),
        ],
    );
}

#[test]
fn claims() {
    statuses(
        "v1",
        "requiredClaims: {role: admin, team: a}",
        &[
            (json!({"role": "admin", "team": "a"}), 204),
            (json!({"role": "admin", "team": "b"}), 401),
            (json!({"role": "admin"}), 401),
            (json!({"role": ["admin"], "team": "a"}), 401),
        ],
    );
    statuses(
        "v1",
        "claims: {anyOf: [{claim: role, values: [admin, owner]}, {claim: level, values: ['7']}]}",
        &[
            (json!({"role": ["guest", "owner"]}), 204),
            (json!({"level": 7}), 204),
            (json!({"role": "guest", "level": 8}), 401),
        ],
    );
}

#[test]
fn claims_become_fields_and_the_token_goes_on() {
    let world = World::new("v1", "claimMappings: {sub: X-User, level: X-Level, none: X-None}");
    let token = world.token(0, &json!({"sub": "ann", "level": 7}));
    let bearer = format!("Bearer {token}");
    // Missing claims remove their headers.
    let made_up = [("X-User", "mallory"), ("X-None", "mallory"), ("X-Forwarded-Authorization", "Bearer mallory")];
    assert_eq!(world.get(&[&[("Authorization", &*bearer)], &made_up[..]].concat()).status, 204);
    let received = world.backend.last();
    assert_eq!((received.header("x-user"), received.header("x-level")), (Some("ann"), Some("7")));
    assert_eq!(received.header("x-none"), None);
    assert_eq!(
        (received.header("authorization"), received.header("x-forwarded-authorization")),
        (None, Some(&*bearer))
    );

    let world = World::new("v0", "");
    let bearer = format!("Bearer {}", world.token(0, &json!({})));
    world.get(&[("Authorization", &bearer)]);
    assert_eq!(world.backend.last().header("authorization"), Some(&*bearer));

    let world = World::new("v1", "forwardToken: false");
    let bearer = format!("Bearer {}", world.token(0, &json!({})));
    world.get(&[("Authorization", &bearer), ("X-Forwarded-Authorization", "Bearer mallory")]);
    let received = world.backend.last();
    assert_eq!((received.header("authorization"), received.header("x-forwarded-authorization")), (None, None));

    let world = World::new("v1", "forwardedTokenHeader: X-Token, forwardTokenStripScheme: true");
    let token = world.token(0, &json!({}));
    world.get(&[("Authorization", &format!("Bearer {token}"))]);
    assert_eq!(world.backend.last().header("x-token"), Some(&*token));
}

#[test]
fn another_field_and_scheme() {
    let world = World::new("v1", "headerName: X-Auth, authHeaderPrefix: JWT");
    let token = world.token(0, &json!({}));
    assert_eq!(world.get(&[("X-Auth", &format!("JWT {token}"))]).status, 204);
    assert_eq!(world.get(&[("X-Auth", &format!("Bearer {token}"))]).status, 401);
    assert_eq!(world.get(&[("Authorization", &format!("JWT {token}"))]).status, 401);
}

#[test]
fn refusals_as_the_api_wants_them() {
    for (params, content_type, body) in [
        ("errorMessageFormat: plain, errorMessage: 'go \"away\"'", "text/plain", "go \"away\""),
        ("errorMessageFormat: minimal", "application/json", "Unauthorized"),
        ("errorMessage: 'go \"away\"'", "application/json", r#"{"error":"Unauthorized","message":"go \"away\""}"#),
    ] {
        let world = World::new("v1", &format!("onFailureStatusCode: 403, {params}"));
        let reply = world.get(&[]);
        assert_eq!(
            (reply.status, reply.header("content-type"), &*reply.text()),
            (403, Some(content_type), body),
            "{params}"
        );
    }
}

#[test]
fn basic_credentials() {
    let backend = Backend::echo();
    let text =
        api(&backend, "- {name: basic-auth, version: v1, params: {username: ann, password: 's:t', realm: Library}}");
    let gateway = crate::start(&text);
    // `ann:s:t`, `ann:x`, no Base64, another scheme.
    for (sent, expected) in
        [("Basic YW5uOnM6dA==", 204), ("Basic YW5uOng=", 401), ("Basic ?", 401), ("Bearer YW5uOnM6dA==", 401)]
    {
        assert_eq!(gateway.client().get("/books/list", &[("Authorization", sent)]).status, expected, "{sent}");
    }
    let reply = gateway.client().get("/books/list", &[]);
    assert_eq!(reply.header("www-authenticate"), Some("Basic realm=\"Library\""));
    assert_eq!(reply.json(), json!({"error": "Unauthorized", "message": "Authentication required"}));
}

#[test]
fn keys_of_callers() {
    let backend = Backend::echo();
    let text = api(&backend, "- {name: api-key-auth, version: v1, params: {key: X-Key, in: header}}");
    let gateway = crate::start(&text);
    let reply = gateway.client().get("/books/list", &[("X-Key", "nothing")]);
    assert_eq!((reply.status, reply.json()["message"].clone()), (401, json!("Valid API key required")));
    assert_eq!(backend.received().len(), 0);
    // A key of the gateway counts for the API it names alone.
    for (name, version, expected) in [("Books", "v1.0", 204), ("Books", "v2.0", 401), ("Other", "v1.0", 401)] {
        let subscribed = json!([{"name": name, "version": version, "context": "/books", "subscriptionTier": "Gold"}]);
        let key =
            gateway.token(&json!({"token_type": "apiKey", "keytype": "PRODUCTION", "subscribedAPIs": subscribed}));
        assert_eq!(gateway.client().get("/books/list", &[("X-Key", &key)]).status, expected, "{name} {version}");
    }
    assert_eq!(gateway.client().get("/books/list", &[("X-Key", &gateway.token(&json!({})))]).status, 401);
}
