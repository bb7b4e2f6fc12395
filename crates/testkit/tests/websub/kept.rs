//! Subscriptions outlive deployments and restarts.

use std::sync::{Arc, Mutex};

use penstock_gateway::GatewayState;

use super::*;

type Kept = Arc<Mutex<Option<Vec<u8>>>>;

/// A state that keeps subscriptions where a test can see them, and begins with those.
fn state(kept: &Kept) -> Arc<GatewayState> {
    let state = Arc::<GatewayState>::default();
    let before = kept.lock().unwrap().clone();
    let target = kept.clone();
    let keeper = move |bytes: &[u8]| {
        *target.lock().unwrap() = Some(bytes.to_vec());
        Ok(())
    };
    state.keep_subscriptions(keeper, before.as_deref()).unwrap();
    state
}

#[test]
fn acknowledged_subscriptions_survive_a_restart() {
    let kept = Kept::default();
    let other = subscriber();
    {
        let gateway = TestGateway::start(Setup { inputs: hub(json!({})), state: state(&kept), ..Setup::of([]) });
        let mut talk = Talk::with(&gateway, json!({}));
        talk.subscribe("issues", &other.url(), "&hub.secret=mine");
        assert!(kept.lock().unwrap().is_some(), "kept before the answer");
        talk.subscribe("pulls", &other.url(), "");
        assert_eq!(talk.ask(&asking("unsubscribe", "pulls", &other.url(), "")).status, 202);
    }
    let mut gateway = TestGateway::start(Setup { inputs: hub(json!({})), state: state(&kept), ..Setup::of([]) });
    let mut publisher = gateway.client();
    publish(&mut publisher, "pulls", "0");
    publish(&mut publisher, "issues", "1");
    until("it arrives", || bodies(&other) == ["1"]);
    assert_eq!(other.last().header("x-hub-signature"), Some(signed("mine", b"1").as_str()));
    assert_eq!(gateway.deploy(&hub(json!({})), &[]), Vec::<String>::new());
    publish(&mut publisher, "issues", "2");
    until("it arrives after a deployment", || bodies(&other) == ["1", "2"]);
}

struct Full;

impl penstock_gateway::EventFile for Full {
    fn append(&mut self, _: &[u8]) -> Result<(), String> {
        Err("the disk is full".to_owned())
    }

    fn replace(&mut self, _: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), String> {
        Err("the disk is full".to_owned())
    }
}

#[test]
fn an_event_that_cannot_be_kept_is_not_promised() {
    let state = state(&Kept::default());
    state.keep_events(Box::new(Full), b"").unwrap();
    let gateway = TestGateway::start(Setup { inputs: hub(json!({})), state, ..Setup::of([]) });
    let mut publisher = gateway.client();
    assert_eq!(publish(&mut publisher, "issues", "no subscriber"), 202);
    let other = subscriber();
    Talk::with(&gateway, json!({})).subscribe("issues", &other.url(), "");
    assert_eq!(publish(&mut publisher, "issues", "1"), 500);
    until("it is sent all the same", || bodies(&other) == ["1"]);
}

#[test]
fn what_cannot_be_kept_is_not_promised() {
    let state = Arc::<GatewayState>::default();
    state.keep_subscriptions(|_| Err("the disk is full".to_owned()), None).unwrap();
    let gateway = TestGateway::start(Setup { inputs: hub(json!({})), state, ..Setup::of([]) });
    let reply = Talk::with(&gateway, json!({})).ask(&asking("subscribe", "issues", "http://127.0.0.1:1/", ""));
    assert_eq!(reply.status, 500);
    let error = GatewayState::default().keep_subscriptions(|_| Ok(()), Some(b"{\"version\":9}"));
    assert!(error.is_err());
}
