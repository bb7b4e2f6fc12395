//! Rate limits and deny conditions.

use std::sync::Arc;
use std::time::Duration;

use penstock_catalog::{
    Api, Condition, ConditionalGroup, Denial, IpRange, Limit, LimitUnit, Operation, Plan, PlanLevel, Subject,
};
use penstock_gateway::{CustomLimit, GatewayConfig};
use penstock_testkit::gateway::{Answer, Backend, Reply, Setup, TestGateway};

use crate::{at_once, open_api};

/// Long enough for no test to see the next window.
const HOUR: Duration = Duration::from_secs(3600);

fn requests(amount: u64) -> Limit {
    Limit { amount, unit: LimitUnit::Requests, window: HOUR }
}

fn plan(name: &str, limit: Limit) -> Plan {
    Plan { name: name.into(), level: PlanLevel::Api, limit: Some(limit), stop_on_quota: true, ..Plan::default() }
}

fn with_plans(plans: Vec<Plan>) -> impl FnOnce(&mut GatewayConfig) {
    move |config| config.limits.plans = plans
}

fn tiered(base: &str, backend: &Backend, tier: Option<&str>, operation_tiers: &[(&str, Option<&str>)]) -> Api {
    let mut api = open_api(base, backend, &[]);
    api.tier = tier.map(Into::into);
    let operation = |(path, tier): &(&str, Option<&str>)| {
        let (path, tier) = ((*path).into(), tier.map(Into::into));
        Arc::new(Operation { method: "GET".into(), path, tier, ..Operation::default() })
    };
    api.operations = operation_tiers.iter().map(operation).collect();
    api
}

fn code(reply: &Reply) -> (u16, String) {
    let body = reply.text();
    let code = body.split('"').find(|part| part.len() == 6 && part.bytes().all(|byte| byte.is_ascii_digit()));
    (reply.status, code.unwrap_or_default().to_owned())
}

#[test]
fn a_limit_is_exact_and_says_what_is_left() {
    let backend = Backend::echo();
    let api = tiered("/a", &backend, Some("Three"), &[("/x", None), ("/y", None)]);
    let gateway = TestGateway::start(Setup::of([api]).configured(with_plans(vec![plan("Three", requests(3))])));
    let mut client = gateway.client();
    for (path, left) in [("/a/x", "2"), ("/a/y", "1"), ("/a/x", "0")] {
        let reply = client.get(path, &[]);
        assert_eq!((reply.status, reply.header("ratelimit-remaining")), (204, Some(left)));
        assert_eq!(reply.header("ratelimit-limit"), Some("3"));
        assert!(reply.header("ratelimit-reset").unwrap().parse::<u64>().unwrap() <= 3600);
    }
    for _ in 0..2 {
        let reply = client.get("/a/x", &[]);
        assert_eq!(code(&reply), (429, "900800".into()), "{}", reply.text());
        assert_eq!(reply.header("x-ratelimit-remaining"), Some("0"));
        assert!(reply.header("retry-after").unwrap().ends_with(" GMT"), "{:?}", reply.header("retry-after"));
    }
    assert_eq!(backend.received().len(), 3);
    let used = gateway.state().limits_used("api:/a:1.0.0");
    assert_eq!((used.len(), used[0].used, used[0].limit), (1, 3, 3));
    assert_eq!(gateway.state().reset_limits("/a"), 1);
    assert_eq!(client.get("/a/x", &[]).status, 204);
}

#[test]
fn a_plan_of_the_api_makes_those_of_operations_mean_nothing() {
    let backend = Backend::echo();
    let plans = || vec![plan("One", requests(1)), plan("Two", requests(2))];
    let operations = [("/x", Some("One")), ("/y", Some("One")), ("/z", None)];
    let gateway = TestGateway::start(
        Setup::of([tiered("/o", &backend, None, &operations), tiered("/a", &backend, Some("Two"), &operations)])
            .configured(with_plans(plans())),
    );
    let mut client = gateway.client();
    let mut got = |path: &str| code(&client.get(path, &[]));
    let (ok, resource, api) = ((204, String::new()), (429, "900802".into()), (429, "900800".into()));
    assert_eq!(
        [got("/o/x"), got("/o/y"), got("/o/x"), got("/o/y")],
        [ok.clone(), ok.clone(), resource.clone(), resource]
    );
    assert_eq!([got("/o/z"), got("/o/z"), got("/o/z")], [ok.clone(), ok.clone(), ok.clone()]);
    assert_eq!([got("/a/x"), got("/a/x"), got("/a/y")], [ok.clone(), ok, api]);
}

#[test]
fn cores_that_ask_at_once_get_exactly_the_limit() {
    let backend = Backend::echo();
    let api = tiered("/a", &backend, Some("Fifty"), &[("/x", None)]);
    // Gateways with one state count as the cores of one process do.
    let state = Arc::default();
    let gateways: Vec<TestGateway> = (0..3)
        .map(|_| {
            let setup = Setup { state: Arc::clone(&state), ..Setup::of([api.clone()]) };
            TestGateway::start(setup.configured(with_plans(vec![plan("Fifty", requests(50))])))
        })
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let granted = std::sync::atomic::AtomicUsize::new(0);
    use std::sync::atomic::Ordering::Relaxed;
    at_once(6, || {
        let mut client = gateways[next.fetch_add(1, Relaxed) % gateways.len()].client();
        let good = (0..30).filter(|_| client.get("/a/x", &[]).status == 204).count();
        granted.fetch_add(good, Relaxed);
        0
    });
    assert_eq!(granted.load(Relaxed), 50);
}

#[test]
fn bursts_and_the_backends_own_limit_have_their_codes() {
    let backend = Backend::echo();
    let burst = Plan { burst: Some(requests(1)), ..plan("Burst", requests(100)) };
    let mut guarded = tiered("/b", &backend, None, &[("/x", None)]);
    guarded.backend_limit = (Some(Limit { window: Duration::from_secs(1), ..requests(2) }), None);
    let gateway = TestGateway::start(
        Setup::of([tiered("/a", &backend, Some("Burst"), &[("/x", None)]), guarded])
            .configured(with_plans(vec![burst])),
    );
    let mut client = gateway.client();
    assert_eq!(client.get("/a/x", &[]).status, 204);
    assert_eq!(code(&client.get("/a/x", &[])), (429, "900807".into()));
    // What the burst refused is not taken from the plan.
    assert_eq!(gateway.state().limits_used("api:/a:1.0.0:requests")[0].used, 1);
    let codes: Vec<_> = (0..5).map(|_| code(&client.get("/b/x", &[]))).collect();
    let refused = codes.iter().filter(|code| **code == (503, "900801".to_owned())).count();
    // Five requests may fall into two seconds.
    assert!((1..=3).contains(&refused), "{codes:?}");
}

#[test]
fn bandwidth_counts_both_ways() {
    let backend = Backend::start(|_| Answer::new(200, "text/plain", vec![b'x'; 400]));
    let bytes = Limit { amount: 1000, unit: LimitUnit::Bytes, window: HOUR };
    let mut api = open_api("/a", &backend, &["POST /x"]);
    api.tier = Some("Kilobyte".into());
    let gateway = TestGateway::start(Setup::of([api]).configured(with_plans(vec![plan("Kilobyte", bytes)])));
    let mut client = gateway.client();
    let mut send = || client.request("POST", "/a/x", &[], &[b'y'; 100]).status;
    assert_eq!([send(), send(), send()], [200, 200, 429]);
}

fn condition(subject: Subject, inverted: bool) -> Vec<Condition> {
    vec![Condition { subject, inverted }]
}

fn header(name: &str, pattern: &str) -> Subject {
    Subject::Header { name: name.into(), pattern: pattern.into() }
}

#[test]
fn conditional_groups_limit_what_fits_them() {
    let backend = Backend::echo();
    let range = |text: &str| Subject::Ip(IpRange::parse(text).unwrap());
    let query = |name: &str, pattern: &str| Subject::Query { name: name.into(), pattern: pattern.into() };
    for (subject, inverted, matching, other) in [
        (header("X-Tier", "gold"), false, ("/a/x", [("X-Tier", "gold")]), ("/a/x", [("X-Tier", "silver")])),
        (header("X-Tier", "gold"), true, ("/a/x", [("X-Tier", "silver")]), ("/a/x", [("X-Tier", "gold")])),
        (
            range("10.100.1.22"),
            false,
            ("/a/x", [("X-Forwarded-For", "7.7.7.7, 10.100.1.22")]),
            ("/a/x", [("X-Forwarded-For", "10.100.1.23")]),
        ),
        (range("10.0.0.0/8"), false, ("/a/x", [("X-Forwarded-For", "10.1.2.3")]), ("/a/x", [("X-Other", "1")])),
        (query("name", "admin"), false, ("/a/x?b=1&name=adm%69n", [("A", "b")]), ("/a/x?name=user", [("A", "b")])),
    ] {
        let group = ConditionalGroup { conditions: condition(subject.clone(), inverted), limit: Some(requests(1)) };
        let plan = Plan { groups: vec![group], ..plan("Conditional", requests(100)) };
        let api = tiered("/a", &backend, Some("Conditional"), &[("/x", None)]);
        let setup = Setup::of([api]).configured(with_plans(vec![plan])).behind(&["127.0.0.1"]);
        let gateway = TestGateway::start(setup);
        let mut client = gateway.client();
        let mut send = |(path, fields): &(&str, [(&str, &str); 1])| client.get(path, fields).status;
        let got = [send(&matching), send(&matching), send(&other), send(&other), send(&matching)];
        assert_eq!(got, [204, 429, 204, 204, 429], "{subject:?}");
    }
}

#[test]
fn requests_that_match_a_deny_condition_are_rejected() {
    let backend = Backend::echo();
    let denials = vec![
        Denial {
            name: "range".into(),
            conditions: condition(Subject::Ip(IpRange::parse("10.0.0.1-10.0.0.9").unwrap()), false),
        },
        Denial { name: "agent".into(), conditions: condition(header("User-Agent", "bad.*"), false) },
        Denial { name: "api".into(), conditions: condition(Subject::Api("/closed:1.0.0".into()), false) },
    ];
    let apis = [tiered("/a", &backend, None, &[("/x", None)]), tiered("/closed", &backend, None, &[("/x", None)])];
    let setup = Setup::of(apis).configured(|config| config.limits.denials = denials).behind(&["127.0.0.1"]);
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    for (path, fields, denied) in [
        ("/a/x", ("X-Forwarded-For", "10.0.0.5"), true),
        ("/a/x", ("X-Forwarded-For", "10.0.0.10"), false),
        ("/a/x", ("User-Agent", "badbot/1"), true),
        ("/a/x", ("User-Agent", "good"), false),
        ("/closed/x", ("User-Agent", "good"), true),
    ] {
        let reply = client.get(path, &[fields]);
        let expected = if denied { (403, "900805".to_owned()) } else { (204, String::new()) };
        assert_eq!(code(&reply), expected, "{path} {fields:?}");
    }
}

#[test]
fn clients_do_not_choose_their_address() {
    let backend = Backend::echo();
    let range = Subject::Ip(IpRange::parse("10.0.0.0/8").unwrap());
    let open_to_range = vec![Denial { name: "outside".into(), conditions: condition(range, true) }];
    let custom = CustomLimit { name: "by-ip".into(), key: "$clientIp".into(), limit: requests(1) };
    let start = |denials: &Vec<Denial>, limits: &[CustomLimit]| {
        let api = tiered("/a", &backend, None, &[("/x", None)]);
        TestGateway::start(Setup::of([api]).configured(|config| {
            config.limits.denials = denials.clone();
            config.limits.custom = limits.to_vec();
        }))
    };
    let statuses = |gateway: TestGateway, name: &str, values: &[&str]| -> Vec<u16> {
        let mut client = gateway.client();
        values.iter().map(|value| client.get("/a/x", &[(name, value)]).status).collect()
    };
    for (name, first, second) in [
        ("X-Forwarded-For", "10.1.1.1", "10.1.1.2"),
        ("Forwarded", "for=10.1.1.1", "for=10.1.1.2"),
        ("X-Real-IP", "10.1.1.1", "10.1.1.2"),
    ] {
        assert_eq!(statuses(start(&open_to_range, &[]), name, &[first]), [403], "{name}");
        let limited = start(&Vec::new(), std::slice::from_ref(&custom));
        assert_eq!(statuses(limited, name, &[first, second]), [204, 429], "{name}");
    }
}

#[test]
fn custom_limits_count_by_their_key() {
    let backend = Backend::echo();
    let custom = CustomLimit { name: "by-ip".into(), key: "$clientIp:$apiContext".into(), limit: requests(1) };
    let apis = [tiered("/a", &backend, None, &[("/x", None)]), tiered("/b", &backend, None, &[("/x", None)])];
    let setup = Setup::of(apis).configured(|config| config.limits.custom = vec![custom]).behind(&["127.0.0.1"]);
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let mut send = |path: &str, address: &str| code(&client.get(path, &[("X-Forwarded-For", address)]));
    let (ok, refused) = ((204, String::new()), (429, "900806".to_owned()));
    assert_eq!(send("/a/x", "1.1.1.1"), ok);
    assert_eq!(send("/a/x", "1.1.1.1"), refused);
    assert_eq!([send("/a/x", "1.1.1.2"), send("/b/x", "1.1.1.1")], [ok.clone(), ok]);
}

#[test]
fn built_in_plans_are_known_and_others_are_reported() {
    let backend = Backend::echo();
    let apis = || {
        Setup::of([
            tiered("/a", &backend, Some("10KPerMin"), &[("/x", None)]),
            tiered("/b", &backend, Some("Unlimited"), &[("/x", None)]),
            tiered("/c", &backend, Some("10KPerMinn"), &[("/x", None)]),
        ])
    };
    let (closed, faulty) = TestGateway::try_start(apis());
    assert_eq!(faulty[0], "c");
    assert_eq!(["/a/x", "/c/x"].map(|path| closed.client().get(path, &[]).status), [204, 404]);
    let gateway = TestGateway::start(apis().serving_unprotected(&["c"]));
    let mut client = gateway.client();
    let mut limit = |path: &str| client.get(path, &[]).header("ratelimit-limit").map(str::to_owned);
    assert_eq!([limit("/a/x"), limit("/b/x"), limit("/c/x")], [Some("10000".into()), None, None]);
    let said = gateway.diagnostics.join("\n");
    assert!(said.contains("no plan is called `10KPerMinn` (did you mean `10KPerMin`?)"), "{said}");
}
