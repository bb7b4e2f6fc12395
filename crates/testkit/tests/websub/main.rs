//! Hubs of WebSub over real sockets: real publishers, real subscribers.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod delivered;
mod example;
mod kept;
mod refused;

use std::time::{Duration, Instant};

use penstock_compile::Input;
use penstock_testkit::gateway::{Answer, Backend, Client, NOWHERE, Received, Reply, Setup, TestGateway, project};
use serde_json::{Value, json};

/// Where the hub of these tests is.
const HUB: &str = "/repo/1.0.0";

/// What publishers sign with.
const SECRET: &str = "publisher's secret";

/// A hub of the topics `issues` and `pulls`.
fn hub(more: Value) -> Vec<Input> {
    project("repo", &[("api.yaml", &descriptor(more))])
}

fn descriptor(more: Value) -> String {
    let topic = |name: &str, scopes: Value| json!({ "target": name, "verb": "SUBSCRIBE", "scopes": scopes });
    let mut data = json!({
        "name": "Repo", "version": "1.0.0", "context": "/repo", "type": "WEBSUB",
        "operations": [topic("/issues", json!([])), topic("Pulls", json!([])), topic("secrets", json!(["inside"]))],
        "websubSubscriptionConfiguration": {
            "enable": true, "secret": SECRET, "signingAlgorithm": "SHA1", "signatureHeader": "x-hub-signature",
        },
    });
    data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "type": "api", "version": "v4.7.0", "data": data }).to_string()
}

fn served(more: Value) -> TestGateway {
    TestGateway::start(Setup { inputs: hub(more), ..Setup::of([]) })
}

/// A subscriber that takes everything.
fn subscriber() -> Backend {
    Backend::start(|_| Answer::status(204))
}

/// Waits until something holds.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The bodies a subscriber got.
fn bodies(subscriber: &Backend) -> Vec<String> {
    subscriber.received().iter().map(Received::text).collect()
}

struct Talk {
    client: Client,
    bearer: String,
}

impl Talk {
    fn with(gateway: &TestGateway, claims: Value) -> Talk {
        Talk { client: gateway.client(), bearer: gateway.bearer(&claims) }
    }

    /// Asks the hub with the parameters of a query.
    fn ask(&mut self, parameters: &str) -> Reply {
        let path = format!("{HUB}?{parameters}");
        self.client.request("POST", &path, &[("Authorization", &self.bearer)], b"")
    }

    #[track_caller]
    fn subscribe(&mut self, topic: &str, callback: &str, more: &str) {
        let reply = self.ask(&asking("subscribe", topic, callback, more));
        assert_eq!(reply.status, 202, "{}", reply.text());
    }
}

fn asking(mode: &str, topic: &str, callback: &str, more: &str) -> String {
    let callback = callback.replace(':', "%3A").replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
    format!("hub.mode={mode}&hub.topic={topic}&hub.callback={callback}{more}")
}

/// `sha1=…` of a body.
fn signed(secret: &str, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    let digits: String = ring::hmac::sign(&key, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha1={digits}")
}

/// Publishes an event as its publisher does.
fn publish(client: &mut Client, topic: &str, body: &str) -> u16 {
    let path = format!("{HUB}/webhooks_events_receiver_resource?topic={topic}");
    let signature = signed(SECRET, body.as_bytes());
    let fields = [("Content-Type", "application/json"), ("X-Hub-Signature", signature.as_str())];
    client.request("POST", &path, &fields, body.as_bytes()).status
}
