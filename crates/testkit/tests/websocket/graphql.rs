//! Subscriptions of GraphQL APIs: an operation on a connection needs the credentials of a query.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use penstock_catalog::{Api, ApiKind, GraphQl, Limit, LimitUnit, Operation, Plan, PlanLevel};
use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Setup, TestGateway, api};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use crate::sockets::{
    EchoBackend, Plain, close_code, connect, connect_with, echoes, masked, next_text, raw, raw_backend, rest, run,
};

const SCHEMA: &str = "type Query { hello: String } type Mutation { add: Int }
    type Subscription { lift(id: ID!): Lift secret: Lift few: Lift unlisted: Int }
    type Lift { name: String next: Lift }";

const HOUR: Duration = Duration::from_secs(3600);

fn lifts(backend: &EchoBackend, secured: bool) -> Api {
    at(&backend.url(), secured)
}

fn at(url: &str, secured: bool) -> Api {
    let operation = |(method, path, scope, tier): (&str, &str, Option<&str>, Option<&str>)| {
        Arc::new(Operation {
            method: method.into(),
            path: path.into(),
            secured,
            scopes: scope.iter().map(|scope| (*scope).into()).collect(),
            tier: tier.map(Into::into),
            ..Operation::default()
        })
    };
    let operations = [
        ("QUERY", "hello", None, None),
        ("SUBSCRIPTION", "lift", None, None),
        ("SUBSCRIPTION", "secret", Some("spy"), None),
        ("SUBSCRIPTION", "few", None, Some("Few")),
    ];
    let graphql = GraphQl { schema: SCHEMA.into(), ..GraphQl::default() };
    Api {
        kind: ApiKind::GraphQl,
        graphql: Some(Arc::new(graphql)),
        operations: operations.map(operation).to_vec(),
        ..api("/lifts", url, &[])
    }
}

fn limited(amount: u64, level: PlanLevel) -> Plan {
    let limit = Some(Limit { amount, unit: LimitUnit::Requests, window: HOUR });
    Plan { name: "Few".into(), level, limit, stop_on_quota: true, ..Plan::default() }
}

fn start(setup: Setup) -> TestGateway {
    TestGateway::start(setup.serving_unprotected(&["lifts"]).configured(|config| {
        config.error_style = ErrorStyle::ApiManager;
        config.graphql.depth_max = Some(3);
        config.graphql.complexity_max = Some(10);
        config.limits.plans = vec![limited(3, PlanLevel::Api)];
    }))
}

const NEWER: (&str, &str) = ("sec-websocket-protocol", "graphql-transport-ws");
const OLDER: (&str, &str) = ("sec-websocket-protocol", "graphql-ws");

fn subscribe(kind: &str, id: &str, query: &str) -> String {
    json!({ "id": id, "type": kind, "payload": { "query": query } }).to_string()
}

/// Sends a subscription and gets back what is not that.
async fn refusal(socket: &mut Plain, message: &str) -> Value {
    socket.send(Message::text(message)).await.unwrap();
    serde_json::from_str(&next_text(socket).await).unwrap()
}

#[test]
fn subscriptions_are_validated_like_queries() {
    let backend = EchoBackend::start();
    let gateway = start(Setup::of([lifts(&backend, true)]));
    run(async {
        let refused = connect(&gateway, "/lifts", &[NEWER]).await.unwrap_err();
        assert_eq!(refused.status, 401);
        let bearer = gateway.bearer(&json!({ "scope": "reader" }));
        for (protocol, kind) in [(OLDER, "start"), (NEWER, "subscribe")] {
            let headers =
                [protocol, ("authorization", bearer.as_str()), ("sec-websocket-extensions", "permessage-deflate")];
            let (mut socket, answer) = connect_with(&gateway, "/lifts/?trace=1", &headers).await.unwrap();
            assert_eq!(answer.headers().get("sec-websocket-protocol").unwrap(), protocol.1);
            let seen = backend.last();
            assert_eq!((&*seen.target, seen.header("authorization")), ("/?trace=1", None));
            assert_eq!(seen.header("sec-websocket-extensions"), None);
            echoes(&mut socket, r#"{"type":"connection_init","payload":{"token":"x"}}"#).await;
            echoes(&mut socket, &subscribe(kind, "1", "subscription { lift(id: 1) { name } }")).await;
            let deep = "subscription { lift(id: 1) { next { next { name } } } }";
            let complex = "subscription { lift(id: 1) { name a: name b: name c: name d: name e: name f: name g: name \
                           h: name i: name j: name } }";
            for (query, code, message) in [
                ("subscription { secret { name } }", 4002, "User NOT authorized to access the resource secret"),
                (deep, 4020, "QUERY TOO DEEP : [maximum query depth exceeded 4 > 3]"),
                (complex, 4021, "QUERY TOO COMPLEX : [maximum query complexity exceeded]"),
                ("subscription { lift { name } }", 4022, "INVALID QUERY : Missing"),
                ("subscription {", 4022, "INVALID QUERY : "),
                ("{ hello }", 4005, "Invalid operation. Only allowed Subscription type operations"),
                ("mutation { add }", 4005, "Invalid operation. Only allowed Subscription type operations"),
                ("subscription { unlisted }", 4005, "The API has no operation unlisted"),
                ("", 4005, "Operation definition cannot be empty"),
            ] {
                let told = refusal(&mut socket, &subscribe(kind, "2", query)).await;
                assert_eq!((&told["id"], &told["type"]), (&json!("2"), &json!("error")), "{told}");
                let (told_code, told_message) = match kind {
                    "start" => (&told["payload"]["code"], &told["payload"]["message"]),
                    _ => (&told["payload"][0]["extensions"]["code"], &told["payload"][0]["message"]),
                };
                assert_eq!(*told_code, code, "{told}");
                assert!(told_message.as_str().unwrap().starts_with(message), "{told}");
            }
            // The connection stays.
            echoes(&mut socket, &subscribe(kind, "3", "subscription { lift(id: 1) { name } }")).await;
            echoes(&mut socket, r#"{"id":"3","type":"complete"}"#).await;
        }
    });
}

#[test]
fn each_message_of_a_subscription_counts() {
    let backend = EchoBackend::start();
    let gateway = start(Setup::of([lifts(&backend, false)]));
    let asks = |id: &str, of: &str, say: Value| {
        let payload = json!({ "query": format!("subscription {{ {of} {{ name }} }}"), "extensions": { "say": say } });
        json!({ "id": id, "type": "start", "payload": payload }).to_string()
    };
    let data = |id: &str| json!({ "id": id, "type": "data", "payload": { "data": {} } });
    run(async {
        let mut socket = connect(&gateway, "/lifts", &[OLDER]).await.unwrap();
        let ack = json!({ "type": "connection_ack" });
        // The subscription counts, and each message with data; messages without a subscription are dropped.
        let message = asks("a", "few", json!([ack, data("a"), data("other"), data("a"), data("a"), ack]));
        socket.send(Message::text(message.clone())).await.unwrap();
        assert_eq!(next_text(&mut socket).await, message);
        let throttled = json!({ "id": "a", "type": "error", "payload": { "message": "Websocket frame throttled out", "code": 4003 } });
        for expected in [&ack, &data("a"), &data("a"), &throttled, &ack] {
            let got: Value = serde_json::from_str(&next_text(&mut socket).await).unwrap();
            assert_eq!(got, *expected);
        }
        let told = refusal(&mut socket, &asks("b", "few", json!([]))).await;
        assert_eq!(told["payload"]["code"], 4003);
        // The plan is that of one operation.
        let free = asks("c", "lift(id: 1)", json!([data("c")]));
        socket.send(Message::text(free.clone())).await.unwrap();
        assert_eq!(next_text(&mut socket).await, free);
        assert_eq!(next_text(&mut socket).await, data("c").to_string());
        // Another connection is counted with it.
        let mut other = connect(&gateway, "/lifts", &[OLDER]).await.unwrap();
        assert_eq!(refusal(&mut other, &asks("a", "few", json!([]))).await["payload"]["code"], 4003);
    });
}

#[test]
fn a_plan_of_the_subscription_counts_what_is_said_on_its_connections() {
    let backend = EchoBackend::start();
    let setup = Setup::of([lifts(&backend, true)]).serving_unprotected(&["lifts"]);
    let gateway =
        TestGateway::start(setup.configured(|config| config.limits.plans = vec![limited(2, PlanLevel::Subscription)]));
    let subscribed = json!([{ "name": "lifts", "version": "1.0.0", "context": "/lifts", "subscriptionTier": "Few" }]);
    let token = gateway.token(&json!({ "subscribedAPIs": subscribed }));
    run(async {
        let mut socket = connect(&gateway, &format!("/lifts?access_token={token}"), &[NEWER]).await.unwrap();
        for id in ["1", "2"] {
            echoes(&mut socket, r#"{"type":"ping"}"#).await;
            echoes(&mut socket, &subscribe("subscribe", id, "subscription { lift(id: 1) { name } }")).await;
        }
        let told = refusal(&mut socket, &subscribe("subscribe", "3", "subscription { lift(id: 1) { name } }")).await;
        assert_eq!(told["payload"][0]["extensions"]["code"], 4003);
        assert_eq!(gateway.state().limits_used("subscription")[0].used, 2);
    });
}

#[test]
fn what_could_be_read_in_two_ways_ends_the_connection() {
    let backend = EchoBackend::start();
    let gateway = start(Setup::of([lifts(&backend, false)]));
    run(async {
        for message in [
            "subscription { lift(id: 1) { name } }",
            "[]",
            r#"{"type":"ping","type":"start","id":"1","payload":{"query":"{ hello }"}}"#,
            r#"{"Type":"start","id":"1","payload":{"query":"{ hello }"}}"#,
            r#"{"type":"subscription_start","id":"1","query":"subscription { secret { name } }"}"#,
            r#"{"type":"next","id":"1","payload":{}}"#,
        ] {
            let mut socket = connect(&gateway, "/lifts", &[NEWER]).await.unwrap();
            socket.send(Message::text(message)).await.unwrap();
            assert_eq!(close_code(&mut socket).await, 4400, "{message}");
        }
        let mut socket = connect(&gateway, "/lifts", &[NEWER]).await.unwrap();
        let twice =
            r#"{"type":"subscribe","id":"1","payload":{"query":"subscription { lift(id: 1) { name } }","QUERY":""}}"#;
        assert_eq!(refusal(&mut socket, twice).await["payload"][0]["extensions"]["code"], 4005);
        // A backend may take bytes for a text.
        socket.send(Message::binary(r#"{"type":"ping"}"#)).await.unwrap();
        assert_eq!(close_code(&mut socket).await, 1003);
        // Binary messages are not forwarded.
        let mut socket = raw(&gateway, "/lifts").await;
        socket.write_all(&masked(0x81, b"\xff")).await.unwrap();
        assert_eq!(rest(&mut socket).await, b"\x88\x02\x03\xef");
        // A query in the address would be answered by a backend that does not speak WebSocket.
        let refused = connect(&gateway, "/lifts?query=%7Bhello%7D", &[NEWER]).await.unwrap_err();
        assert!(refused.status == 422 && refused.body.contains("when the connection is open"), "{refused:?}");
        assert!(backend.seen().iter().all(|seen| seen.target == "/"));
    });
}

#[test]
fn a_token_that_is_revoked_ends_its_connection() {
    let backend = EchoBackend::start();
    let gateway = start(Setup::of([lifts(&backend, true)]));
    let bearer = gateway.bearer(&json!({ "jti": "lost" }));
    run(async {
        let mut socket = connect(&gateway, "/lifts", &[NEWER, ("authorization", &bearer)]).await.unwrap();
        echoes(&mut socket, r#"{"type":"ping"}"#).await;
        gateway.state().security.revocations.add_watched("lost");
        socket.send(Message::text(r#"{"type":"ping"}"#)).await.unwrap();
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => {
                assert_eq!((u16::from(frame.code), frame.reason.as_str()), (4001, "Invalid Credentials"));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(backend.ends(1).await, [Some(1001)]);
    });
}

#[test]
fn pages_of_other_sites_may_not_connect_and_requests_are_answered_beside() {
    let backend = EchoBackend::start();
    let cors = penstock_catalog::Cors {
        enabled: true,
        origins: vec!["http://good.example".into()],
        ..penstock_catalog::Cors::default()
    };
    let api = Api { cors: Some(cors), ..lifts(&backend, false) };
    let gateway = start(Setup::of([api]));
    run(async {
        let refused = connect(&gateway, "/lifts", &[("origin", "http://evil.example")]).await.unwrap_err();
        assert_eq!(refused.status, 403);
        assert!(connect(&gateway, "/lifts", &[("origin", "http://good.example")]).await.is_ok());
    });
    let asked = gateway.client().request("POST", "/lifts", &[("Origin", "http://evil.example")], b"{\"query\":\"\"}");
    assert_eq!(asked.status, 422, "a request is held against the rules of requests");
}

#[test]
fn clients_get_whole_messages_of_backends() {
    run(async {
        for (sent, to_client, to_backend) in [
            // Not JSON, in pieces, with a ping between: it passes as one message.
            (&b"\x01\x02he\x89\x00\x80\x03llo"[..], &b"\x89\x00\x81\x05hello"[..], None),
            (b"\x82\x02{}", b"\x88\x02\x03\xe9", Some(1003_u16)),
            (b"\x81\x82\0\0\0\0{}", b"\x88\x02\x03\xe9", Some(1002)),
            (b"\x81\x7f\0\0\0\0\x10\0\0\0", b"\x88\x02\x03\xe9", Some(1009)),
        ] {
            let (url, got) = raw_backend(sent).await;
            let gateway = start(Setup::of([at(&url, false)]));
            let mut socket = raw(&gateway, "/lifts").await;
            match to_backend {
                None => {
                    let mut whole = vec![0; to_client.len()];
                    tokio::io::AsyncReadExt::read_exact(&mut socket, &mut whole).await.unwrap();
                    assert_eq!(whole, to_client, "{sent:02x?}");
                }
                Some(code) => {
                    assert_eq!(rest(&mut socket).await, to_client, "{sent:02x?}");
                    let frame = got.await.unwrap();
                    let unmasked: Vec<u8> = (0..2).map(|at| frame[6 + at] ^ frame[2 + at]).collect();
                    assert_eq!((&frame[..2], unmasked), (&[0x88, 0x82][..], code.to_be_bytes().to_vec()));
                }
            }
        }
    });
}
