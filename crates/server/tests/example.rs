//! `penstock example`: what it prints to try is what works.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Folder, Server};

#[test]
fn what_it_prints_to_try_works() {
    let folder = Folder::new("example");
    let mut server = Server::start(&folder, &["example"], "");
    server.wait_for_log("Ctrl-C ends it");
    let log = server.log();
    assert!(!log.contains("FAILED") && !log.contains("warning: "), "{log}");
    let order = |quantity: u32| format!("{{\"item\": \"bolt\", \"quantity\": {quantity}}}");
    let known = server.get("/orders/42");
    assert_eq!((known.status, known.body.as_str()), (200, "{\"id\": \"42\", \"status\": \"shipped\"}"));
    let accepted = server.post("/orders", "application/json", &order(3));
    assert_eq!(accepted.status, 200);
    assert_eq!(accepted.body, format!("{{\"accepted\": true, \"warehouse\": {}}}", order(3)));
    let refused = server.post("/orders", "application/json", &order(5000));
    assert_eq!(refused.status, 422);
    assert!(refused.body.starts_with("{\"accepted\": false"), "{}", refused.body);
    let delivery = server.post(
        "/services/Deliveries",
        "application/xml",
        "<order><item>bolt</item><quantity>3</quantity></order>",
    );
    assert_eq!(delivery.status, 200);
    assert!(delivery.body.contains("<delivery><goods amount=\"3\">bolt</goods></delivery>"), "{}", delivery.body);
    assert!(
        server
            .get("/services/Deliveries?wsdl")
            .body
            .contains(&format!("http://localhost:{}/services/Deliveries", server.http))
    );
    let list = server.get("/services/");
    assert!(
        list.status == 200 && list.body.contains("<a href=\"/services/Deliveries?wsdl\">Deliveries</a>"),
        "{}",
        list.body
    );
    // Everything else the example prints is a line of its log.
    server.wait_for_log("INFO {LogMediator} - {api:Orders} item = bolt, quantity = 3");
    assert!(log.contains(&format!("curl -s http://localhost:{}/orders/42", server.http)), "{log}");
}
