//! Classes of API Manager that a project's templates name.

use std::sync::Arc;

use penstock_catalog::PolicyUse;
use penstock_testkit::gateway::{Backend, Client, Setup, TestGateway};
use serde_json::{Value, json};

use crate::{defined, get, open_api, request, show, using};

/// A policy that is one class.
pub(crate) fn class(name: &str, properties: &[(&str, &str)]) -> PolicyUse {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let property = |(name, value): &(&str, &str)| {
        format!("<property action=\"set\" type=\"STRING\" name=\"{name}\" value=\"{}\"/>", escaped(value))
    };
    let properties: String = properties.iter().map(property).collect();
    defined(using("own", &[]), None, Some(&format!("<class name=\"{name}\">{properties}</class>")))
}

const PACKAGE: &str = "org.wso2.carbon.apimgt.gateway.mediators";

/// A gateway with a secured operation and a policy, and a way to call it with claims.
fn secured(policy: PolicyUse) -> (TestGateway, Backend) {
    let backend = Backend::start(show);
    let mut api = open_api(&backend, &["GET /a"], request(vec![policy]));
    Arc::get_mut(&mut api.operations[0]).unwrap().secured = true;
    (TestGateway::start(Setup::of([api])), backend)
}

fn call(client: &mut Client, bearer: &str, cookie: &str) -> (u16, Value) {
    let reply = client.get("/shop/a", &[("authorization", bearer), ("cookie", cookie)]);
    let code = if reply.status == 200 { Value::Null } else { reply.json()["code"].clone() };
    (reply.status, code)
}

/// The template of API Manager's claim policy, with the codes that its clients know.
#[test]
fn a_claim_is_validated() {
    let name = format!("{PACKAGE}.ClaimBasedResourceAccessValidationMediator");
    let settings = |value: &'static str, pattern: &'static str, allow: &'static str| {
        [
            ("accessVerificationClaim", "plan"),
            ("accessVerificationClaimValue", value),
            ("accessVerificationClaimValueRegex", pattern),
            ("shouldAllowValidation", allow),
        ]
    };
    for (properties, claims, expected) in [
        (settings("gold", "", "true"), json!({ "plan": "gold" }), (200, Value::Null)),
        (settings("gold", "", "true"), json!({ "plan": "iron" }), (403, json!("900912"))),
        (settings("gold", "", "true"), json!({}), (403, json!("900913"))),
        (settings("gold", "g.*", "true"), json!({ "plan": ["green"] }), (200, Value::Null)),
        // The value of the policy itself does not fit its pattern.
        (settings("iron", "g.*", "true"), json!({ "plan": "green" }), (403, json!("900912"))),
        (settings("gold", "", "false"), json!({ "plan": "iron" }), (200, Value::Null)),
    ] {
        let (gateway, _backend) = secured(class(&name, &properties));
        let bearer = gateway.bearer(&claims);
        assert_eq!(call(&mut gateway.client(), &bearer, ""), expected, "{properties:?} {claims}");
    }
}

/// A token that is bound to a cookie is refused without it; the claim is the digest of the cookie's value.
#[test]
fn a_token_is_bound_to_a_cookie() {
    let name = format!("{PACKAGE}.CrossSiteRequestForgeryValidationMediator");
    let (gateway, _backend) = secured(class(&name, &[("csrfCookieName", "mine")]));
    // The MD5 of `secret`.
    let bound = gateway.bearer(&json!({ "binding_type": "cookie", "binding_ref": "5ebe2294ecd0e0f08eab7690d2a6ee69" }));
    let free = gateway.bearer(&json!({ "other": 1 }));
    let mut client = gateway.client();
    for (bearer, cookie, expected) in [
        (&bound, "x=1; mine=secret; y=2", (200, Value::Null)),
        (&bound, "mine=other", (401, json!("900901"))),
        (&bound, "", (401, json!("900901"))),
        (&free, "", (200, Value::Null)),
    ] {
        assert_eq!(call(&mut client, bearer, cookie), expected, "{cookie}");
    }
}

/// A token with the scope is good once, also when it is sent twice at once; others are good until they end.
#[test]
fn a_token_is_good_once() {
    let name = format!("{PACKAGE}.OneTimeTokenRevocationMediator");
    let (gateway, _backend) = secured(class(&name, &[("scope", "once")]));
    let once = gateway.bearer(&json!({ "scope": "read once", "jti": "one" }));
    let often = gateway.bearer(&json!({ "scope": "read", "jti": "other" }));
    let mut clients: Vec<Client> = (0..4).map(|_| gateway.client()).collect();
    let statuses = std::thread::scope(|scope| {
        let calls = clients.iter_mut().map(|client| scope.spawn(|| call(client, &once, "").0));
        let calls: Vec<_> = calls.collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<u16>>()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    let mut client = gateway.client();
    assert_eq!(call(&mut client, &once, ""), (401, json!("900901")));
    assert_eq!([call(&mut client, &often, "").0, call(&mut client, &often, "").0], [200, 200]);
}

/// Classes that change the address.
#[test]
fn addresses_are_changed() {
    for (name, properties, expected) in [
        ("QueryParamMediator", vec![("queryParamToRemove", "q")], "GET /v2/a/7?r=2"),
        ("ResourcePathRewriteMediator", vec![("resourcePath", "/b/{id}")], "GET /v2/b/7?q=1&r=2"),
        ("ResourcePathRewriteMediator", vec![("resourcePath", "/b"), ("includeQueryParams", "false")], "GET /v2/b"),
    ] {
        let policies = request(vec![class(&format!("{PACKAGE}.{name}"), &properties)]);
        let reply = get(policies, "GET /a/{id}", "/shop/a/7?q=1&r=2");
        assert_eq!(reply.text().split(" [").next(), Some(expected), "{name} {properties:?}");
    }
}

/// A class without a native implementation and invalid settings keep the API from being deployed.
#[test]
fn what_a_class_cannot_do_is_said() {
    let guardrail = "org.wso2.apim.policies.mediation.ai.word.count.guardrail.WordCountGuardrail";
    for (policy, expected) in [
        (class("com.example.Own", &[]), "the class `com.example.Own` is Java and is not among those written again"),
        (class(guardrail, &[("name", "w"), ("min", "3"), ("max", "2")]), "`min` is greater than `max`"),
        (class(guardrail, &[("name", "w"), ("min", "few"), ("max", "2")]), "`min` is `few`, not a whole number"),
        (class(guardrail, &[("min", "1"), ("max", "2")]), "it needs the property `name`"),
    ] {
        let backend = Backend::start(show);
        let api = open_api(&backend, &["GET /a"], request(vec![policy]));
        let (_, faulty) = TestGateway::try_start(Setup::of([api]));
        assert!(faulty.iter().any(|text| text.contains(expected)), "{expected} is not in {faulty:?}");
    }
}
