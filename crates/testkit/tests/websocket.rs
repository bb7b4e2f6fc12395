//! WebSocket APIs over real sockets: a real client, a gateway, a real backend, and raw bytes where a real one would
//! not do what is needed.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "websocket/browsers.rs"]
mod browsers;
#[path = "websocket/callers.rs"]
mod callers;
#[path = "websocket/frames.rs"]
mod frames;
#[path = "websocket/graphql.rs"]
mod graphql;
#[path = "websocket/limits.rs"]
mod limits;
#[path = "websocket/sockets.rs"]
mod sockets;
#[path = "websocket/topics.rs"]
mod topics;

use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, Operation};
use penstock_testkit::gateway::api;

/// A WebSocket API without authentication.
fn open_api(base: &str, backend: &str, topics: &[&str]) -> Api {
    let mut api = Api { kind: ApiKind::WebSocket, ..api(base, backend, &[]) };
    let topic = |path: &&str| {
        Arc::new(Operation { method: "GET".into(), path: (*path).into(), secured: false, ..Operation::default() })
    };
    api.operations = topics.iter().map(topic).collect();
    api
}

/// The same with authentication.
fn secured_api(base: &str, backend: &str, topics: &[&str]) -> Api {
    let mut api = open_api(base, backend, topics);
    for operation in &mut api.operations {
        Arc::make_mut(operation).secured = true;
    }
    api
}
