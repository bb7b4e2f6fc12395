//! What subscribers get, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use penstock_catalog::PlanLevel;
use penstock_gateway::parse_plan;
use penstock_testkit::gateway::Gate;

use super::*;

#[test]
fn events_of_a_topic_go_to_its_subscribers_signed_with_their_secrets() {
    let gateway = served(json!({}));
    let (first, second) = (subscriber(), subscriber());
    let mut talk = Talk::with(&gateway, json!({ "sub": "ann" }));
    talk.subscribe("issues", &format!("{}/cb?from=hub", first.url()), "&hub.secret=mine&hub.lease_seconds=600");
    talk.subscribe("/Issues", &second.url(), "");
    talk.subscribe("pulls", &second.url(), "");
    let mut publisher = gateway.client();
    assert_eq!(publish(&mut publisher, "/issues", "{\"number\":1}"), 202);
    assert_eq!(publish(&mut publisher, "pulls", "{\"number\":2}"), 202);
    until("both topics arrive", || first.received().len() == 1 && second.received().len() == 2);
    let got = first.last();
    assert_eq!(
        (got.method.as_str(), got.target.as_str(), got.text().as_str()),
        ("POST", "/cb?from=hub", "{\"number\":1}")
    );
    assert_eq!(got.header("content-type"), Some("application/json"));
    assert_eq!(got.header("x-hub-signature"), Some(signed("mine", b"{\"number\":1}").as_str()));
    assert_eq!(got.header("authorization"), None);
    let unsigned = second.received();
    assert!(unsigned.iter().all(|one| one.header("x-hub-signature").is_none()), "who has no secret gets no signature");
    let mut all = bodies(&second);
    all.sort();
    assert_eq!(all, ["{\"number\":1}", "{\"number\":2}"]);
    // A form says the same as a query.
    let third = subscriber();
    let form = asking("subscribe", "issues", &third.url(), "");
    let fields: &[(&str, &str)] =
        &[("Authorization", &talk.bearer), ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(talk.client.request("POST", HUB, fields, form.as_bytes()).status, 202);
    assert_eq!(talk.ask(&asking("unsubscribe", "issues", &second.url(), "")).status, 202);
    let path = format!("{HUB}/webhooks_events_receiver_resource?topic=issues");
    let signature = signed(SECRET, b"3");
    let packed = [("Content-Encoding", "gzip"), ("X-Hub-Signature", signature.as_str())];
    assert_eq!(publisher.request("POST", &path, &packed, b"3").status, 202);
    until("the third arrives", || bodies(&third) == ["3"] && bodies(&first).len() == 2);
    assert_eq!(second.received().len(), 2);
    assert_eq!(third.last().header("content-encoding"), Some("gzip"), "the compression is named");
}

#[test]
fn a_topic_says_where_its_hub_is_and_its_events_say_it_too() {
    let gateway = served(json!({}));
    let other = subscriber();
    let mut talk = Talk::with(&gateway, json!({}));
    let at = |bearer: &str| {
        let fields = [("Host", "events.example.com"), ("Authorization", bearer)];
        gateway.client().get(&format!("{HUB}/Issues"), &fields)
    };
    let found = at(&talk.bearer);
    let own = "http://events.example.com/repo/1.0.0";
    let link = format!("<{own}>; rel=\"hub\", <{own}/issues>; rel=\"self\"");
    assert_eq!((found.status, found.header("link")), (200, Some(&*link)));
    assert_eq!(gateway.client().get(&format!("{HUB}/stars"), &[("Authorization", &talk.bearer)]).status, 404);
    assert_eq!(at("").status, 401);
    // A discovered topic is requested by its URL.
    talk.subscribe(&format!("{}%2Fissues", own.replace(':', "%3A").replace('/', "%2F")), &other.url(), "");
    assert_eq!(publish(&mut gateway.client(), "issues", "1"), 202);
    until("it arrives", || bodies(&other) == ["1"]);
    let link = other.last().header("link").unwrap().to_owned();
    assert!(link.starts_with("<http://") && link.ends_with("/repo/1.0.0/issues>; rel=\"self\""), "{link}");
}

#[test]
fn a_hub_that_is_its_own_subscriber_stops() {
    let gateway = served(json!({ "websubSubscriptionConfiguration": { "enable": false } }));
    let other = subscriber();
    let mut talk = Talk::with(&gateway, json!({}));
    let receiver =
        |topic: &str| format!("http://127.0.0.1:{}{HUB}/webhooks_events_receiver_resource?topic={topic}", gateway.http);
    // Round about.
    talk.subscribe("issues", &receiver("pulls"), "");
    talk.subscribe("pulls", &receiver("issues"), "");
    talk.subscribe("pulls", &other.url(), "");
    assert_eq!(publish(&mut gateway.client(), "issues", "1"), 202);
    until("it arrives", || bodies(&other) == ["1"]);
    assert_eq!(publish(&mut gateway.client(), "issues", "2"), 202);
    assert_eq!(publish(&mut gateway.client(), "pulls", "3"), 202);
    until("the third arrives", || bodies(&other).iter().any(|body| body == "3"));
    assert_eq!(bodies(&other), ["1", "2", "3"]);
}

#[test]
fn hubs_on_other_hosts_have_other_subscribers() {
    let on = |host: &str| {
        let environments = json!({
            "type": "deployment_environments", "version": "v4.7.0",
            "data": [{ "deploymentEnvironment": "Default", "deploymentVhost": host }],
        });
        let files = [
            ("api.yaml", &*descriptor(json!({ "name": host }))),
            ("deployment_environments.yaml", &*environments.to_string()),
        ];
        project(host, &files)
    };
    let inputs = [on("a.example.com"), on("b.example.com")].concat();
    let gateway = TestGateway::start(Setup { inputs, ..Setup::of([]) });
    let other = subscriber();
    let bearer = gateway.bearer(&json!({}));
    let path = format!("{HUB}?{}", asking("subscribe", "issues", &other.url(), ""));
    let at = |host| [("Host", host), ("Authorization", bearer.as_str())];
    assert_eq!(gateway.client().request("POST", &path, &at("a.example.com"), b"").status, 202);
    let event = |host, body: &str| {
        let path = format!("{HUB}/webhooks_events_receiver_resource?topic=issues");
        let signature = signed(SECRET, body.as_bytes());
        let fields = [("Host", host), ("X-Hub-Signature", signature.as_str())];
        assert_eq!(gateway.client().request("POST", &path, &fields, body.as_bytes()).status, 202);
    };
    event("b.example.com", "theirs");
    event("a.example.com", "ours");
    until("an event arrives", || !bodies(&other).is_empty());
    assert_eq!(bodies(&other), ["ours"]);
}

#[test]
fn a_lease_ends() {
    let gateway = served(json!({}));
    let (short, long) = (subscriber(), subscriber());
    let mut talk = Talk::with(&gateway, json!({}));
    talk.subscribe("issues", &short.url(), "&hub.lease_seconds=1");
    talk.subscribe("issues", &long.url(), "&hub.lease_seconds=1");
    // Asking again is what prolongs it.
    talk.subscribe("issues", &long.url(), "&hub.lease_seconds=600");
    let mut publisher = gateway.client();
    publish(&mut publisher, "issues", "1");
    until("both get the first", || bodies(&short) == ["1"] && bodies(&long) == ["1"]);
    std::thread::sleep(Duration::from_millis(2100));
    publish(&mut publisher, "issues", "2");
    until("one gets the second", || bodies(&long) == ["1", "2"]);
    assert_eq!(bodies(&short), ["1"]);
}

#[test]
fn a_slow_or_failing_subscriber_delays_no_others_and_keeps_order() {
    let gateway = served(json!({}));
    let gate = Gate::default();
    let held = gate.clone();
    let slow = Backend::start(move |request| {
        if request.method == "POST" {
            held.wait();
        }
        Answer::status(200)
    });
    let failures = Arc::new(AtomicUsize::new(0));
    let counted = failures.clone();
    let failing = Backend::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::status(500),
        _ => Answer::status(200),
    });
    let quick = subscriber();
    let mut talk = Talk::with(&gateway, json!({}));
    for one in [&slow, &failing, &quick] {
        talk.subscribe("issues", &one.url(), "");
    }
    talk.subscribe("issues", NOWHERE, "");
    let mut publisher = gateway.client();
    for number in 0..5 {
        assert_eq!(publish(&mut publisher, "issues", &number.to_string()), 202);
    }
    until("the quick one has all", || quick.received().len() == 5);
    gate.open();
    until("the others have all", || slow.received().len() == 5 && failing.received().len() == 6);
    assert_eq!(bodies(&slow), ["0", "1", "2", "3", "4"]);
    // The first was sent again before those behind it.
    assert_eq!(bodies(&failing), ["0", "0", "1", "2", "3", "4"]);
}

#[test]
fn who_is_gone_is_not_sent_to_again() {
    let gateway = served(json!({}));
    let gone = Backend::start(|_| Answer::status(410));
    let other = subscriber();
    let mut talk = Talk::with(&gateway, json!({}));
    talk.subscribe("issues", &gone.url(), "");
    talk.subscribe("issues", &other.url(), "");
    let mut publisher = gateway.client();
    publish(&mut publisher, "issues", "1");
    until("both were sent to", || gone.received().len() == 1 && other.received().len() == 1);
    publish(&mut publisher, "issues", "2");
    until("one gets more", || other.received().len() == 2);
    assert_eq!(gone.received().len(), 1);
}

#[test]
fn events_count_in_the_plan_of_each_subscriber() {
    let setup = Setup { inputs: hub(json!({})), ..Setup::of([]) }.configured(|config| {
        config.limits.plans = vec![parse_plan(PlanLevel::Subscription, "Three", "3/1h").unwrap()];
    });
    let gateway = TestGateway::start(setup);
    let with_tier = |application: &str, tier: &str| {
        json!({
            "application": { "uuid": application, "name": application },
            "subscribedAPIs": [{ "name": "Repo", "version": "1.0.0", "subscriptionTier": tier }],
        })
    };
    let (limited, unlimited) = (subscriber(), subscriber());
    Talk::with(&gateway, with_tier("a", "Three")).subscribe("issues", &limited.url(), "");
    Talk::with(&gateway, with_tier("b", "Unlimited")).subscribe("issues", &unlimited.url(), "");
    let mut publisher = gateway.client();
    for number in 0..6 {
        assert_eq!(publish(&mut publisher, "issues", &number.to_string()), 202);
    }
    until("the other gets all", || unlimited.received().len() == 6);
    until("three arrive", || limited.received().len() == 3);
    assert_eq!(bodies(&limited), ["0", "1", "2"]);
}

#[test]
fn a_subscriber_that_did_not_mean_it_gets_nothing() {
    let gateway = served(json!({ "enableSubscriberVerification": true }));
    let asked = |request: &Received, means: bool| {
        let challenge = request.target.split("hub.challenge=").nth(1).and_then(|rest| rest.split('&').next());
        match challenge {
            Some(challenge) if means => Answer::new(200, "text/plain", challenge),
            Some(_) => Answer::new(200, "text/plain", "no"),
            None => Answer::status(204),
        }
    };
    let (means, does_not) = (Backend::start(move |one| asked(one, true)), Backend::start(move |one| asked(one, false)));
    let mut talk = Talk::with(&gateway, json!({}));
    talk.subscribe("%2FIssues", &format!("{}/a?b=c", means.url()), "&hub.lease_seconds=60");
    talk.subscribe("issues", &does_not.url(), "");
    until("both are asked", || means.received().len() == 1 && does_not.received().len() == 1);
    let question = means.last();
    assert_eq!(question.method, "GET");
    // The topic is what the subscriber knows it by.
    let start = "/a?b=c&hub.mode=subscribe&hub.topic=%2FIssues&hub.challenge=";
    assert!(
        question.target.starts_with(start) && question.target.ends_with("&hub.lease_seconds=60"),
        "{}",
        question.target
    );
    let mut publisher = gateway.client();
    until("an event arrives", || {
        publish(&mut gateway.client(), "issues", "x");
        means.received().len() > 1
    });
    publish(&mut publisher, "issues", "y");
    until("another one", || bodies(&means).contains(&"y".to_owned()));
    assert_eq!(does_not.received().len(), 1);
    talk.ask(&asking("unsubscribe", "issues", &format!("{}/a?b=c", means.url()), ""));
    until("it is verified again", || means.received().iter().any(|one| one.target.contains("hub.mode=unsubscribe")));
}
