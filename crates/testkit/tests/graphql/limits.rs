//! How deep and how much a query may ask, and how often.

use penstock_catalog::{Application, PlanLevel, Subscription, SubscriptionState};
use penstock_gateway::parse_plan;
use penstock_gateway::security::AccessList;

use super::*;

const DEEP: &str = "[maximum query depth exceeded 4 > 3]";
const COMPLEX: &str = "[maximum query complexity exceeded]";

#[test]
fn the_plan_of_a_subscription_bounds_queries() {
    let backend = backend();
    let setup = setup(&backend, "").configured(|config| {
        let plans = &mut config.limits.plans;
        plans.push(parse_plan(PlanLevel::Subscription, "Shallow", "unlimited depth 3 complexity 20").unwrap());
    });
    let application = Application {
        id: "7".into(),
        name: "shop".into(),
        owner: "ann".into(),
        tier: "Unlimited".into(),
        keys: vec![("key".into(), true)],
        ..Application::default()
    };
    let subscription = Subscription {
        application: "7".into(),
        api: "Books".into(),
        version: "1.0.0".into(),
        tier: "Shallow".into(),
        state: SubscriptionState::Unblocked,
    };
    setup.state.security.set_access(AccessList::new(&[application], &[subscription]));
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let token = gateway.bearer(&json!({"azp": "key", "scope": "read"}));
    let mut ask = |query: &str| ask_with(&mut client, &json!({"query": query}), &token);
    assert_eq!(ask("{ book(id: 1) { author { name } } }").status, 200);
    let reply = ask("{ book(id: 1) { author { books { id } } } }");
    refused(&reply, 400, "900820", DEEP);
    assert_eq!(reply.json()["error_message"], "QUERY TOO DEEP");
    // 10 + 1 for what is similar, once and twice.
    assert_eq!(ask("{ book(id: 1) { similar { id } } }").status, 200);
    let reply = ask("{ book(id: 1) { similar(first: 2) { id } } }");
    refused(&reply, 400, "900821", COMPLEX);
    assert_eq!(reply.json()["error_message"], "QUERY TOO COMPLEX");
    assert_eq!(ask("{ books(first: 19) { id } }").status, 400);
    // Both: depth is looked at first. A missing scope comes before either.
    refused(&ask("{ book(id: 1) { similar { similar { id } } } }"), 400, "900820", DEEP);
    assert_eq!(ask("mutation { removeBook(id: 1) addBook(title: \"x\") { author { books { id } } } }").status, 403);
    let sized = json!({"query": "query($n: Int) { books(first: $n) { id } }", "variables": {"n": 100}});
    assert_eq!(ask_with(&mut gateway.client(), &sized, &token).status, 400);
    let sized = json!({"query": "query($n: Int) { books(first: $n) { id } }", "variables": {"n": 3}});
    assert_eq!(ask_with(&mut gateway.client(), &sized, &token).status, 200);
}

#[test]
fn plans_of_apis_and_the_gateway_bound_every_query() {
    let backend = backend();
    let shallow = |config: &mut penstock_gateway::GatewayConfig| {
        config.graphql.depth_max = Some(3);
        config.error_style = ErrorStyle::ApiManager;
        config.limits.plans.push(parse_plan(PlanLevel::Api, "Cheap", "1000/1m complexity 4").unwrap());
    };
    let gateway = TestGateway::start(setup(&backend, "\n  apiThrottlingPolicy: Cheap").configured(shallow));
    let mut client = gateway.client();
    let token = gateway.bearer(&json!({}));
    let reply = ask_with(&mut client, &json!({"query": "{ book(id: 1) { author { books { id } } } }"}), &token);
    let body = json!({"code": "900820", "message": "QUERY TOO DEEP", "description": DEEP});
    assert_eq!((reply.status, reply.json()), (400, body));
    let reply = ask(&mut client, "{ a: hello b: hello c: hello d: hello e: hello }");
    let body = json!({"code": "900821", "message": "QUERY TOO COMPLEX", "description": COMPLEX});
    assert_eq!((reply.status, reply.json()), (400, body));
    assert_eq!(ask(&mut client, "{ a: hello b: hello c: hello d: hello }").status, 200);
}

#[test]
fn the_plan_of_each_operation_counts_once() {
    let backend = backend();
    let small = |config: &mut penstock_gateway::GatewayConfig| {
        config.limits.plans.push(parse_plan(PlanLevel::Api, "Small", "2/1h").unwrap());
    };
    let gateway = TestGateway::start(setup(&backend, "").configured(small));
    let mut client = gateway.client();
    assert_eq!(ask(&mut client, "{ hello }").header("RateLimit-Remaining"), None);
    let first = ask(&mut client, "{ hello a: stock b: stock c: stock(limit: 3) }");
    assert_eq!((first.status, first.header("RateLimit-Remaining")), (200, Some("1")));
    assert_eq!(ask(&mut client, "{ stock }").status, 200);
    let over = ask(&mut client, "{ hello stock }");
    assert_eq!((over.status, over.json()["code"].as_str()), (429, Some("900802")));
    assert!(over.header("Retry-After").is_some());
    assert_eq!(ask(&mut client, "{ hello }").status, 200);
    let used = gateway.state().limits_used("stock:QUERY");
    assert_eq!(used.iter().map(|one| (one.used, one.limit)).collect::<Vec<_>>(), [(2, 2)]);
}
