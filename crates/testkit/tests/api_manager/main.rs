//! What API Manager's gateway answers, byte for byte where it was recorded (`error_style = "apim"`), over real sockets.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod answers;
mod browsers;
mod projects;

use penstock_catalog::Api;
use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Reply, Setup, TestGateway};

fn start(apis: impl IntoIterator<Item = Api>) -> TestGateway {
    TestGateway::start(Setup::of(apis).configured(|config| config.error_style = ErrorStyle::ApiManager))
}

#[track_caller]
fn told(reply: &Reply, status: u16, body: &str) {
    assert_eq!((reply.status, reply.text().as_str()), (status, body));
    assert_eq!(reply.header("content-type"), Some("application/json; charset=UTF-8"));
}
