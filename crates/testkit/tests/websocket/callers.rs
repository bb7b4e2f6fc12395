//! Who may connect: tokens, keys, scopes, subscriptions.

use std::sync::Arc;

use penstock_catalog::Requirement;
use penstock_testkit::gateway::{Setup, TestGateway};
use serde_json::json;

use crate::secured_api;
use crate::sockets::{EchoBackend, connect, connect_with, echoes, run};

#[test]
fn a_token_is_required_before_the_backend_is_called() {
    let backend = EchoBackend::start();
    let gateway = TestGateway::start(Setup::of([secured_api("/ws", &backend.url(), &["/*"])]));
    let token = gateway.token(&json!({}));
    let expired = gateway.token(&json!({ "exp": 1000 }));
    run(async {
        for (path, authorization, code) in [
            ("/ws/x".to_owned(), None, "900901"),
            ("/ws/x".to_owned(), Some("Bearer a.b.c".to_owned()), "900901"),
            ("/ws/x".to_owned(), Some(format!("Bearer {expired}")), "900901"),
            (format!("/ws/x?access_token={expired}"), None, "900901"),
        ] {
            let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
            let refused = connect(&gateway, &path, &headers).await.unwrap_err();
            assert_eq!(refused.status, 401);
            assert!(refused.body.contains(code), "{}", refused.body);
        }
        assert!(backend.seen().is_empty());
        let bearer = format!("Bearer {token}");
        echoes(&mut connect(&gateway, "/ws/x", &[("authorization", &bearer)]).await.unwrap(), "hi").await;
        assert_eq!(backend.last().header("authorization"), None);
    });
}

#[test]
fn in_the_style_of_api_manager_a_connection_ends_with_its_token() {
    let backend = EchoBackend::start();
    let setup = Setup::of([secured_api("/ws", &backend.url(), &["/*"])]);
    let gateway = TestGateway::start(setup.configured(|config| {
        config.error_style = penstock_gateway::ErrorStyle::ApiManager;
        config.security.clock_skew = std::time::Duration::ZERO;
    }));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let bearer = gateway.bearer(&json!({ "exp": now + 2 }));
    let lasting = gateway.bearer(&json!({}));
    run(async {
        let mut socket = connect(&gateway, "/ws/x", &[("authorization", &bearer)]).await.unwrap();
        let mut other = connect(&gateway, "/ws/x", &[("authorization", &lasting)]).await.unwrap();
        echoes(&mut socket, "hi").await;
        tokio::time::sleep(std::time::Duration::from_millis(3100)).await;
        futures_util::SinkExt::send(&mut socket, "still here?".into()).await.unwrap();
        assert_eq!(crate::sockets::close_code(&mut socket).await, 4001);
        assert_eq!(backend.ends(1).await, [Some(1001)]);
        echoes(&mut other, "hi").await;
    });
}

#[test]
fn a_browser_sends_credentials_in_the_address_or_among_the_protocols() {
    let backend = EchoBackend::start();
    let mut api = secured_api("/ws", &backend.url(), &["/*"]);
    api.security.api_key = true;
    for operation in &mut api.operations {
        Arc::make_mut(operation).requirements =
            vec![Requirement::OAuth2(Vec::new()), Requirement::ApiKeyQuery("apikey".into())];
    }
    let gateway = TestGateway::start(Setup::of([api]));
    let token = gateway.token(&json!({}));
    run(async {
        let mut socket = connect(&gateway, &format!("/ws/x?a=1&access_token={token}&b=2"), &[]).await.unwrap();
        echoes(&mut socket, "hi").await;
        assert_eq!(backend.last().target, "/?a=1&b=2");
        assert_eq!(backend.last().header("authorization"), None);

        for (protocols, to_backend, answered) in [
            (format!("choreo-oauth2-token, {token}, chat, other"), Some("chat, other"), "chat"),
            (format!("chat, choreo-oauth2-token, {token}"), Some("chat"), "chat"),
            (format!("choreo-oauth2-token, {token}"), None, "choreo-oauth2-token"),
        ] {
            let headers = [("sec-websocket-protocol", protocols.as_str())];
            let (mut socket, answer) = connect_with(&gateway, "/ws/x", &headers).await.unwrap();
            assert_eq!(answer.headers().get("sec-websocket-protocol").unwrap(), answered);
            echoes(&mut socket, "hi").await;
            assert_eq!(backend.last().header("sec-websocket-protocol"), to_backend);
        }
        let refused = connect(&gateway, "/ws/x", &[("sec-websocket-protocol", "choreo-oauth2-token, a.b.c")]).await;
        assert_eq!(refused.unwrap_err().status, 401);
        let refused = connect(&gateway, "/ws/x?apikey=a.b.c", &[]).await.unwrap_err();
        assert_eq!(refused.status, 401);
    });
    assert!(!gateway.log().contains(&token));
}

#[test]
fn scopes_of_a_topic_are_checked_at_the_handshake() {
    let backend = EchoBackend::start();
    let definition = format!(
        "asyncapi: 2.0.0\ninfo: {{ title: Scoped, version: '1' }}\nx-wso2-basePath: /scoped\n\
         servers:\n  production: {{ url: '{}', protocol: ws }}\n\
         channels:\n  /read:\n    subscribe:\n      x-scopes:\n        - reader\n    x-auth-type: Any\n\
         \x20 /write:\n    publish:\n      x-scopes:\n        \"0\": writer\n    subscribe: {{}}\n",
        backend.url()
    );
    let gateway = TestGateway::start(Setup::project(&[("", &definition)]));
    run(async {
        let connect_as = |path: &'static str, scope: &'static str| {
            let bearer = gateway.bearer(&json!({ "scope": scope }));
            let gateway = &gateway;
            async move { connect(gateway, path, &[("authorization", &bearer)]).await.map(drop) }
        };
        assert!(connect_as("/scoped/read", "other reader").await.is_ok());
        assert!(connect_as("/scoped/write", "writer").await.is_ok());
        for (path, scope) in [("/scoped/read", "writer"), ("/scoped/write", ""), ("/scoped/write", "reader")] {
            let refused = connect_as(path, scope).await.unwrap_err();
            assert_eq!(refused.status, 403, "{path} {scope}");
            assert!(refused.body.contains("900910"), "{}", refused.body);
        }
    });
}
