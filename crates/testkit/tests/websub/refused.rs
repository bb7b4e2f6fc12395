//! What a hub does not take.

use penstock_catalog::PlanLevel;
use penstock_gateway::parse_plan;

use super::*;

#[test]
fn a_subscriber_says_everything_and_who_it_is() {
    let gateway = served(json!({}));
    let other = subscriber();
    let mut talk = Talk::with(&gateway, json!({}));
    let url = other.url();
    for (parameters, status) in [
        (String::new(), 400),
        (asking("subscribe", "", &url, ""), 400),
        (asking("subscribe", "issues", "", ""), 400),
        (asking("", "issues", &url, ""), 400),
        (asking("steal", "issues", &url, ""), 400),
        (asking("subscribe", "issues", "ftp://a/", ""), 400),
        (asking("subscribe", "issues", "http://user:word@a/", ""), 400),
        (asking("subscribe", "issues", &url, "&hub.lease_seconds=soon"), 400),
        (asking("subscribe", "issues", &url, "&hub.lease_seconds=-1"), 400),
        (asking("subscribe", "stars", &url, ""), 404),
        (asking("subscribe", "secrets", &url, ""), 403),
    ] {
        assert_eq!(talk.ask(&parameters).status, status, "{parameters}");
    }
    let good = asking("subscribe", "issues", &url, "");
    for bearer in ["", "Bearer a.b.c", "Basic YTpi"] {
        talk.bearer = bearer.to_owned();
        assert_eq!(talk.ask(&good).status, 401, "{bearer}");
    }
    talk.bearer = gateway.bearer(&json!({ "scope": "inside" }));
    talk.subscribe("secrets", &url, "");
    assert_eq!(gateway.client().get(HUB, &[]).status, 401);
    assert_eq!(gateway.client().request("PUT", HUB, &[], b"").status, 405);
    let mut publisher = gateway.client();
    publish(&mut publisher, "issues", "1");
    publish(&mut publisher, "secrets", "2");
    until("the one that was taken", || other.received().len() == 1);
    assert_eq!(bodies(&other), ["2"]);
    let log = gateway.log();
    assert!(!log.contains(SECRET) && !log.contains("hub.secret"), "{log}");
}

#[test]
fn only_the_publisher_publishes() {
    let gateway = served(json!({}));
    let other = subscriber();
    Talk::with(&gateway, json!({})).subscribe("issues", &other.url(), "");
    let path = format!("{HUB}/webhooks_events_receiver_resource");
    let mut client = gateway.client();
    let good = signed(SECRET, b"event");
    for (query, signature, status) in [
        ("?topic=issues", Some(good.as_str()), 202),
        ("?topic=issues", None, 401),
        ("?topic=issues", Some("sha1="), 401),
        ("?topic=issues", Some(&good[5..]), 401),
        ("?topic=issues", Some(&signed("other", b"event")), 401),
        ("?topic=issues", Some(&signed(SECRET, b"other")), 401),
        ("?topic=issues", Some(&good.replace("sha1", "sha256")), 401),
        ("", Some(&good), 400),
        ("?topic=", Some(&good), 400),
        ("?topic=stars", Some(&good), 404),
    ] {
        let fields: Vec<(&str, &str)> = signature.iter().map(|signature| ("X-Hub-Signature", *signature)).collect();
        let reply = client.request("POST", &format!("{path}{query}"), &fields, b"event");
        assert_eq!(reply.status, status, "{query} {signature:?}");
    }
    until("one arrives", || other.received().len() == 1);
    let large = vec![b'x'; (1 << 20) + 1];
    let reply = gateway.client().try_request("POST", &format!("{path}?topic=issues"), &[], &large);
    assert!(reply.map_or(true, |reply| reply.status == 413));
    // Without a Content-Length: the form of a subscriber, which may have 16 KiB.
    let chunked = [b"4e20\r\n".as_slice(), &[b'x'; 20_000], b"\r\n0\r\n\r\n"].concat();
    let bearer = gateway.bearer(&json!({}));
    let fields = [
        ("Transfer-Encoding", "chunked"),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Authorization", &bearer),
    ];
    assert_eq!(gateway.client().request("POST", HUB, &fields, &chunked).status, 413);
    assert_eq!(other.received().len(), 1);
}

#[test]
fn without_a_secret_anybody_publishes_and_that_is_said() {
    let gateway = served(json!({ "websubSubscriptionConfiguration": { "enable": false, "secret": "x" } }));
    assert!(
        gateway.diagnostics.iter().any(|note| note.contains("publishers are not authenticated")),
        "{:?}",
        gateway.diagnostics
    );
    let other = subscriber();
    Talk::with(&gateway, json!({})).subscribe("issues", &other.url(), "");
    let path = format!("{HUB}/webhooks_events_receiver_resource?topic=issues");
    assert_eq!(gateway.client().request("POST", &path, &[("Content-Type", "text/plain")], b"hi").status, 202);
    until("it arrives", || bodies(&other) == ["hi"]);
}

#[test]
fn a_plan_says_how_many_topics_an_application_subscribes_to() {
    let setup = Setup { inputs: hub(json!({})), ..Setup::of([]) }.configured(|config| {
        config.limits.plans = vec![parse_plan(PlanLevel::Subscription, "Two", "unlimited subscribers 2").unwrap()];
    });
    let gateway = TestGateway::start(setup);
    let of = |application: &str| {
        json!({
            "application": { "uuid": application, "name": application },
            "subscribedAPIs": [{ "name": "Repo", "version": "1.0.0", "subscriptionTier": "Two" }],
        })
    };
    let other = subscriber();
    let mut talk = Talk::with(&gateway, of("a"));
    let callback = |number: usize| format!("{}/{number}", other.url());
    talk.subscribe("issues", &callback(1), "");
    talk.subscribe("pulls", &callback(1), "");
    let third = asking("subscribe", "issues", &callback(2), "");
    let reply = talk.ask(&third);
    assert_eq!((reply.status, reply.json()["code"].as_str()), (429, Some("900808")), "{}", reply.text());
    // The same again is no third one, and another application has its own.
    talk.subscribe("issues", &callback(1), "&hub.lease_seconds=60");
    Talk::with(&gateway, of("b")).subscribe("issues", &callback(3), "");
    assert_eq!(talk.ask(&asking("unsubscribe", "pulls", &callback(1), "")).status, 202);
    assert_eq!(talk.ask(&third).status, 202);
}

#[test]
fn a_hub_needs_topics() {
    let (_, faulty) = TestGateway::try_start(Setup { inputs: hub(json!({ "operations": [] })), ..Setup::of([]) });
    assert!(faulty.iter().any(|one| one.contains("the hub has no topic")), "{faulty:?}");
    let bad =
        json!({ "websubSubscriptionConfiguration": { "enable": true, "secret": "x", "signingAlgorithm": "MD5" } });
    let (_, faulty) = TestGateway::try_start(Setup { inputs: hub(bad), ..Setup::of([]) });
    assert!(faulty.iter().any(|one| one.contains("unknown `signingAlgorithm` `MD5`")), "{faulty:?}");
    // Topics may stand in a definition.
    let mut inputs = hub(json!({ "operations": [] }));
    let definition = "asyncapi: 2.0.0\nchannels:\n  /stars: {subscribe: {}}\n";
    inputs.extend(project("repo", &[("Definitions/asyncapi.yaml", definition)]));
    let gateway = TestGateway::start(Setup { inputs, ..Setup::of([]) });
    let other = subscriber();
    Talk::with(&gateway, json!({})).subscribe("stars", &other.url(), "");
}
