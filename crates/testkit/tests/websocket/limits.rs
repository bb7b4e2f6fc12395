//! Limits count frames: what is too much is left out, and the connection stays.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use penstock_catalog::{Api, Limit, LimitUnit, Plan, PlanLevel};
use penstock_testkit::gateway::{Setup, TestGateway};
use tokio_tungstenite::tungstenite::Message;

use crate::open_api;
use crate::sockets::{EchoBackend, Plain, connect, run};

const HOUR: Duration = Duration::from_secs(3600);

fn plan(amount: u64, unit: LimitUnit, window: Duration) -> Plan {
    let limit = Some(Limit { amount, unit, window });
    Plan { name: "Few".into(), level: PlanLevel::Api, limit, stop_on_quota: true, ..Plan::default() }
}

fn limited(backend: &EchoBackend, plan: Plan) -> TestGateway {
    let api = Api { tier: Some("Few".into()), ..open_api("/ws", &backend.url(), &["/*"]) };
    TestGateway::start(Setup::of([api]).configured(|config| config.limits.plans = vec![plan]))
}

/// Sends ten texts, one after the other, and says how many come back. A ping that is answered behind them says that
/// nothing more will come: control frames are never left out.
async fn echoed_of_ten(socket: &mut Plain, size: usize) -> usize {
    let mut echoed = 0;
    for round in 0..10 {
        socket.send(Message::binary(vec![round; size])).await.unwrap();
        socket.send(Message::Ping(vec![round].into())).await.unwrap();
        loop {
            match socket.next().await.unwrap().unwrap() {
                Message::Binary(_) => echoed += 1,
                Message::Pong(_) => break,
                other => panic!("{other:?}"),
            }
        }
    }
    echoed
}

#[test]
fn events_are_counted_both_ways_over_all_connections() {
    let backend = EchoBackend::start();
    let gateway = limited(&backend, plan(12, LimitUnit::Requests, HOUR));
    run(async {
        let mut first = connect(&gateway, "/ws/x", &[]).await.unwrap();
        assert_eq!(echoed_of_ten(&mut first, 5).await, 6);
        assert_eq!(echoed_of_ten(&mut first, 5).await, 0);
        // As in API Manager, a client may connect again, and its messages are dropped.
        let mut second = connect(&gateway, "/ws/y", &[]).await.unwrap();
        assert_eq!(echoed_of_ten(&mut second, 5).await, 0);
        assert_eq!(gateway.state().limits_used("api")[0].used, 12);
        gateway.state().reset_limits("api");
        assert_eq!(echoed_of_ten(&mut first, 5).await, 6);
    });
}

#[test]
fn in_the_style_of_api_manager_dropped_messages_are_reported() {
    let backend = EchoBackend::start();
    let api = Api { tier: Some("Few".into()), ..open_api("/ws", &backend.url(), &["/*"]) };
    let setup = Setup::of([api]).configured(|config| {
        config.limits.plans = vec![plan(3, LimitUnit::Requests, HOUR)];
        config.error_style = penstock_gateway::ErrorStyle::ApiManager;
    });
    let gateway = TestGateway::start(setup);
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        crate::sockets::echoes(&mut socket, "one").await;
        let refused = "Error code: 4003 reason: Websocket frame throttled out";
        // The third message goes up and its echo does not come down; the fourth does not go up.
        for _ in 0..2 {
            socket.send(Message::text("more")).await.unwrap();
            assert_eq!(crate::sockets::next_text(&mut socket).await, refused);
        }
    });
}

#[test]
fn bytes_are_counted_both_ways() {
    let backend = EchoBackend::start();
    // A frame of 1000 bytes has a header of 4, with a mask of 8; the one that goes beyond still passes.
    let gateway = limited(&backend, plan(8 * 1004, LimitUnit::Bytes, HOUR));
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        assert_eq!(echoed_of_ten(&mut socket, 1000).await, 4);
        assert_eq!(echoed_of_ten(&mut socket, 1).await, 0);
    });
}

#[test]
fn a_new_window_lets_messages_pass_again() {
    let backend = EchoBackend::start();
    let gateway = limited(&backend, plan(2, LimitUnit::Requests, Duration::from_secs(2)));
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[]).await.unwrap();
        assert!(echoed_of_ten(&mut socket, 5).await <= 2, "one of a window, and it may end meanwhile");
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert!(echoed_of_ten(&mut socket, 5).await >= 1);
    });
}

#[test]
fn a_plan_of_the_subscription_and_what_is_compressed() {
    let backend = EchoBackend::start();
    let mut api = crate::secured_api("/sub", &backend.url(), &["/*"]);
    (api.name, api.version) = ("Sub".into(), "1".into());
    let subscription = Plan { level: PlanLevel::Subscription, ..plan(4, LimitUnit::Requests, HOUR) };
    let setup = Setup::of([api, open_api("/free", &backend.url(), &["/*"])]);
    let gateway = TestGateway::start(setup.configured(|config| config.limits.plans = vec![subscription]));
    let subscribed =
        serde_json::json!([{ "name": "Sub", "version": "1", "context": "/sub", "subscriptionTier": "Few" }]);
    let bearer = gateway.bearer(&serde_json::json!({ "subscribedAPIs": subscribed }));
    let deflate = ("sec-websocket-extensions", "permessage-deflate");
    run(async {
        let mut socket = connect(&gateway, "/sub/x", &[("authorization", &bearer), deflate]).await.unwrap();
        assert_eq!(echoed_of_ten(&mut socket, 5).await, 2);
        // A dropped message would break the decompression of the next ones.
        assert_eq!(backend.last().header("sec-websocket-extensions"), None);
        connect(&gateway, "/free/x", &[deflate]).await.unwrap();
        assert_eq!(backend.last().header("sec-websocket-extensions"), Some("permessage-deflate"));
    });
}
