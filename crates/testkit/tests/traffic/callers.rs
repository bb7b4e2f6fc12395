//! What depends on who calls: the backend of a key's type, and the plans of subscriptions and applications.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{Api, Cluster, Endpoints, Plan, PlanLevel};
use penstock_gateway::parse_plan;
use penstock_testkit::gateway::{Answer, Backend, Reply, Setup, TestGateway, secured_api};
use serde_json::{Value, json};

fn named(name: &'static str) -> Backend {
    Backend::start(move |_| Answer::new(200, "text/plain", name))
}

fn cluster(backend: &Backend) -> Option<Arc<Cluster>> {
    Some(Arc::new(Cluster { urls: vec![backend.url().into()], ..Cluster::default() }))
}

fn code(reply: &Reply) -> (u16, String) {
    let body = reply.text();
    let code = body.split('"').find(|part| part.len() == 6 && part.bytes().all(|byte| byte.is_ascii_digit()));
    (reply.status, code.unwrap_or_default().to_owned())
}

#[test]
fn the_type_of_the_key_chooses_the_backend() {
    let (production, sandbox) = (named("production"), named("sandbox"));
    let with = |production, sandbox| {
        let mut api = secured_api("/a", "http://unused", &["GET /x"]);
        api.endpoints = Endpoints { production, sandbox, ..Endpoints::default() };
        api
    };
    let (p, s) = (|| cluster(&production), || cluster(&sandbox));
    for (api, claims, expected) in [
        (with(p(), s()), json!({ "keytype": "PRODUCTION" }), "production"),
        (with(p(), s()), json!({ "keytype": "SANDBOX" }), "sandbox"),
        (with(p(), s()), json!({}), "production"),
        (with(None, s()), json!({}), "sandbox"),
        (with(p(), None), json!({ "keytype": "SANDBOX" }), "Sandbox key offered to an API with no sandbox endpoint"),
        (
            with(None, s()),
            json!({ "keytype": "PRODUCTION" }),
            "Production key offered to an API with no production endpoint",
        ),
    ] {
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/a/x", &[("Authorization", &gateway.bearer(&claims))]);
        assert!(reply.text().contains(expected), "{claims} {}", reply.text());
        let refused = expected.contains("offered");
        assert_eq!(code(&reply), if refused { (401, "900901".into()) } else { (200, String::new()) }, "{claims}");
    }
}

#[test]
fn timeouts_and_retries_are_those_of_the_keys_backend() {
    let slow = Backend::start(|_| Answer::new(200, "text/plain", "slow").after(Duration::from_millis(600)));
    let limited = |millis| {
        let cluster = Cluster { timeout: Some(Duration::from_millis(millis)), ..(*cluster(&slow).unwrap()).clone() };
        Some(Arc::new(cluster))
    };
    let mut api = secured_api("/a", "http://unused", &["GET /x"]);
    api.endpoints = Endpoints { production: limited(5000), sandbox: limited(100), ..Endpoints::default() };
    let gateway = TestGateway::start(Setup::of([api]));
    for (key_type, status) in [("PRODUCTION", 200), ("SANDBOX", 504)] {
        let bearer = gateway.bearer(&json!({ "keytype": key_type }));
        assert_eq!(gateway.client().get("/a/x", &[("Authorization", &bearer)]).status, status, "{key_type}");
    }
}

fn plan(level: PlanLevel, name: &str, text: &str) -> Plan {
    parse_plan(level, name, text).unwrap()
}

fn limited(apis: &[&str], backend: &Backend, plans: Vec<Plan>) -> TestGateway {
    let apis: Vec<Api> = apis.iter().map(|base| secured_api(base, &backend.url(), &["GET /x"])).collect();
    TestGateway::start(Setup::of(apis).configured(|config| config.limits.plans = plans))
}

/// A token of an application and a user.
fn token(gateway: &TestGateway, application: &str, user: &str, tier: &str, subscription: &str) -> String {
    let subscribed = |name: &str| json!({ "name": name, "version": "1.0.0", "subscriptionTier": subscription });
    let claims: Value = json!({
        "sub": user,
        "application": { "uuid": application, "name": application, "tier": tier },
        "subscribedAPIs": [subscribed("a"), subscribed("b")],
    });
    gateway.bearer(&claims)
}

#[test]
fn an_application_has_its_limit_for_each_user_over_all_apis() {
    let backend = Backend::echo();
    let gateway = limited(&["/a", "/b"], &backend, vec![plan(PlanLevel::Application, "Two", "2/1h")]);
    let mut client = gateway.client();
    let mut get = |path: &str, bearer: &str| code(&client.get(path, &[("Authorization", bearer)]));
    let (ok, refused) = ((204, String::new()), (429, "900804".to_owned()));
    let bearer = |application, user| token(&gateway, application, user, "Two", "Unlimited");
    let own = bearer("app", "ann");
    assert_eq!([get("/a/x", &own), get("/b/x", &own), get("/a/x", &own)], [ok.clone(), ok.clone(), refused.clone()]);
    // Another token of the same application and user counts with it, another user or application does not.
    assert_eq!(get("/a/x", &bearer("app", "ann")), refused);
    assert_eq!([get("/a/x", &bearer("app", "bob")), get("/a/x", &bearer("other", "ann"))], [ok.clone(), ok]);
}

#[test]
fn a_subscription_has_its_limit_for_each_api() {
    let backend = Backend::echo();
    let plans = vec![plan(PlanLevel::Subscription, "One", "1/1h"), plan(PlanLevel::Subscription, "Soft", "1/1h soft")];
    let gateway = limited(&["/a", "/b"], &backend, plans);
    let mut client = gateway.client();
    let mut get = |path: &str, bearer: &str| code(&client.get(path, &[("Authorization", bearer)]));
    let (ok, refused) = ((204, String::new()), (429, "900803".to_owned()));
    let ann = token(&gateway, "app", "ann", "Unlimited", "One");
    let bob = token(&gateway, "app", "bob", "Unlimited", "One");
    assert_eq!([get("/a/x", &ann), get("/a/x", &bob), get("/b/x", &ann)], [ok.clone(), refused.clone(), ok.clone()]);
    assert_eq!(get("/b/x", &bob), refused);
    // A soft quota may be exceeded.
    let soft = token(&gateway, "soft", "ann", "Unlimited", "Soft");
    assert_eq!([get("/a/x", &soft), get("/a/x", &soft), get("/a/x", &soft)], [ok.clone(), ok.clone(), ok]);
}

#[test]
fn claims_choose_a_conditional_limit_and_users_are_denied() {
    let backend = Backend::echo();
    let mut api = secured_api("/a", &backend.url(), &["GET /x"]);
    api.tier = Some("Conditional".into());
    let setup = Setup::of([api]).configured(|config| {
        config.limits.plans = vec![plan(PlanLevel::Api, "Conditional", "100/1h; claim team=red|blue: 1/1h")];
        config.limits.denials = vec![
            penstock_gateway::parse_denial("user mallory").unwrap(),
            penstock_gateway::parse_denial("application ann:banned").unwrap(),
        ];
    });
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let mut get = |claims: Value| code(&client.get("/a/x", &[("Authorization", &gateway.bearer(&claims))]));
    let ok = (204, String::new());
    assert_eq!(get(json!({ "sub": "ann", "team": "red" })), ok);
    assert_eq!(get(json!({ "sub": "bob", "team": "blue" })), (429, "900800".into()));
    assert_eq!(get(json!({ "sub": "bob", "team": "green" })), ok);
    assert_eq!(get(json!({ "sub": "mallory" })), (403, "900805".into()));
    assert_eq!(get(json!({ "sub": "ann", "application": { "name": "banned" } })), (403, "900805".into()));
    // Rejected requests do not count.
    assert_eq!(client_without_token(&gateway), 401);
    assert_eq!(gateway.state().limits_used("api:/a:1.0.0:requests").iter().map(|one| one.used).sum::<u64>(), 1);
}

fn client_without_token(gateway: &TestGateway) -> u16 {
    gateway.client().get("/a/x", &[]).status
}
