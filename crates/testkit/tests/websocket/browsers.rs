//! Pages of other origins, and preflight requests.

use penstock_catalog::Cors;
use penstock_testkit::gateway::{Setup, TestGateway};

use crate::open_api;
use crate::sockets::{EchoBackend, connect, echoes, run};

#[test]
fn a_page_that_may_not_connect_is_refused() {
    let backend = EchoBackend::start();
    let mut api = open_api("/ws", &backend.url(), &["/*"]);
    api.cors = Some(Cors { enabled: true, origins: vec!["https://*.example.com".into()], ..Cors::default() });
    let gateway = TestGateway::start(Setup::of([api, open_api("/any", &backend.url(), &["/*"])]));
    run(async {
        let refused = connect(&gateway, "/ws/x", &[("origin", "https://evil.example")]).await.unwrap_err();
        assert_eq!(refused.status, 403);
        assert!(refused.body.contains("900908"), "{}", refused.body);
        for (path, headers) in [
            ("/ws/x", &[("origin", "https://a.example.com")][..]),
            ("/ws/x", &[]),
            ("/any/x", &[("origin", "https://evil.example")]),
        ] {
            echoes(&mut connect(&gateway, path, headers).await.unwrap(), "hi").await;
        }
        assert_eq!(backend.last().header("origin"), Some("https://evil.example"));
    });
}
