//! Topics: from files to the backend's path.

use penstock_testkit::gateway::{Backend, Setup, TestGateway};

use crate::open_api;
use crate::sockets::{EchoBackend, connect, connect_tls, echoes, run};

fn api_yaml(context: &str, backend: &str, more: &str) -> String {
    format!(
        "type: api\nversion: v4.3.0\ndata:\n  name: Chats\n  context: {context}\n  version: 1.0.0\n  type: WS\n\
         \x20 endpointConfig:\n    endpoint_type: http\n    production_endpoints:\n      url: {backend}\n{more}"
    )
}

const TOPICS: &str = "\
asyncapi: 2.0.0
info: { title: Chats, version: 1.0.0 }
channels:
  /rooms/{room}:
    publish:
      x-uri-mapping: '/rooms?room={uri.var.room}'
    x-auth-type: None
  /noMapping:
    subscribe: {}
    x-wso2-disable-security: true
  seats/{row}/{seat}:
    subscribe:
      x-uri-mapping: /{row}-{seat}
      x-auth-type: None
";

#[test]
fn a_topic_is_another_path_at_the_backend() {
    let backend = EchoBackend::start();
    let gateway = TestGateway::start(Setup::project(&[
        ("api.yaml", &api_yaml("/chats", &backend.url(), "")),
        ("Definitions/asyncapi.yaml", TOPICS),
    ]));
    assert_eq!(gateway.diagnostics, [""; 0]);
    run(async {
        for (path, target) in [
            ("/chats/1.0.0/rooms/room1", "/rooms?room=room1"),
            ("/chats/1.0.0/rooms/a&b?x=1", "/rooms?room=a%26b&x=1"),
            ("/chats/1.0.0/noMapping", "/"),
            ("/chats/1.0.0/noMapping?x=1", "/?x=1"),
            ("/chats/1.0.0/seats/7/b", "/7-b"),
        ] {
            let mut socket = connect(&gateway, path, &[]).await.unwrap();
            echoes(&mut socket, path).await;
            assert_eq!(backend.last().target, target, "{path}");
        }
        let refused = connect(&gateway, "/chats/1.0.0/elsewhere", &[]).await.unwrap_err();
        assert_eq!(refused.status, 404);
    });
}

#[test]
fn topics_of_a_descriptor_and_an_api_without_topics() {
    let backend = EchoBackend::start();
    let operations = "  operations:\n  - { target: /news, verb: SUBSCRIBE, authType: None, uriMapping: /all/news }\n\
                      \x20 - { target: /news, verb: PUBLISH, authType: None }\n";
    for (more, path, target) in [
        (operations, "/chats/1.0.0/news", "/base/all/news"),
        ("  transport: [ws, wss]\n  lifeCycleStatus: PROTOTYPED\n", "/chats/1.0.0/any/thing", "/base"),
    ] {
        let url = format!("{}/base", backend.url());
        let gateway = TestGateway::start(Setup::project(&[("api.yaml", &api_yaml("/chats", &url, more))]));
        run(async {
            echoes(&mut connect(&gateway, path, &[]).await.unwrap(), "hi").await;
            assert_eq!(backend.last().target, target);
        });
    }
}

#[test]
fn a_definition_by_itself_has_its_backend_in_servers() {
    let (production, sandbox) = (EchoBackend::start(), EchoBackend::start());
    let definition = format!(
        "asyncapi: '2.6.0'\ninfo: {{ title: Alone, version: '1' }}\nx-wso2-basePath: /alone/{{version}}\n\
         servers:\n  production: {{ url: '{}', protocol: ws }}\n  sandbox: {{ url: '{}/try', protocol: ws }}\n\
         channels:\n  /*:\n    publish: {{}}\n",
        production.url().trim_start_matches("ws://"),
        sandbox.url(),
    );
    let gateway = TestGateway::start(Setup::project(&[("", &definition)]));
    run(async {
        for (kind, backend, target) in [("PRODUCTION", &production, "/"), ("SANDBOX", &sandbox, "/try")] {
            let bearer = gateway.bearer(&serde_json::json!({ "keytype": kind }));
            let mut socket = connect(&gateway, "/alone/1/x/y", &[("authorization", &bearer)]).await.unwrap();
            echoes(&mut socket, kind).await;
            assert_eq!(backend.last().target, target);
        }
        assert_eq!((production.seen().len(), sandbox.seen().len()), (1, 1));
    });
}

#[test]
fn version_3_has_operations_beside_its_channels() {
    let backend = EchoBackend::start();
    let host = backend.url().replace("ws://", "");
    let definition = format!(
        "asyncapi: 3.0.0\ninfo: {{ title: Three, version: '1' }}\nx-wso2-basePath: /three\n\
         servers:\n  production: {{ host: '{host}', pathname: /base, protocol: ws }}\n\
         channels:\n  room:\n    address: rooms/{{room}}\n    x-auth-type: None\n  silent: {{ address: /silent }}\n\
         operations:\n  say:\n    action: receive\n    channel: {{ $ref: '#/channels/room' }}\n\
         \x20   x-uri-mapping: /in/{{room}}\n\
         \x20 hear:\n    action: send\n    channel: {{ $ref: '#/channels/room' }}\n    x-uri-mapping: /out/{{room}}\n"
    );
    let gateway = TestGateway::start(Setup::project(&[("", &definition)]));
    run(async {
        echoes(&mut connect(&gateway, "/three/rooms/7", &[]).await.unwrap(), "hi").await;
        assert_eq!(backend.last().target, "/base/in/7");
        assert_eq!(connect(&gateway, "/three/silent", &[]).await.unwrap_err().status, 404);
    });
    let bad = definition
        .replace("action: send", "action: shout")
        .replace("#/channels/room' }\n    x-uri-mapping: /in", "#/channels/rom' }\n    x-uri-mapping: /in");
    let (gateway, _) = TestGateway::try_start(Setup::project(&[("", &bad)]));
    let told = gateway.diagnostics.join("\n");
    assert!(told.contains("project/:16:3: error: the operation `hear` needs `action`, `send` or `receive`"), "{told}");
    assert!(told.contains("project/:14:22: error: `#/channels/rom` cannot be resolved"), "{told}");
}

#[test]
fn requests_without_a_handshake_get_426() {
    let backend = EchoBackend::start();
    let gateway = TestGateway::start(Setup::of([open_api("/ws", &backend.url(), &["/*"])]));
    for headers in [&[][..], &[("Upgrade", "websocket")], &[("Upgrade", "h2c"), ("Connection", "Upgrade")]] {
        let reply = gateway.client().get("/ws/x", headers);
        assert_eq!((reply.status, reply.header("upgrade")), (426, Some("websocket")), "{headers:?}");
        assert_eq!(reply.json()["code"], "426");
    }
    let reply = gateway.client().request("POST", "/ws/x", &[], b"body");
    assert_eq!(reply.status, 405);
    // A proxy in between would switch protocols at 101 while the data is still read as requests.
    let asks = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let eager = Backend::start(|_| penstock_testkit::gateway::Answer {
        instead: Some(b"HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n".to_vec()),
        ..penstock_testkit::gateway::Answer::status(200)
    });
    let gateway = TestGateway::start(Setup::of([open_api("/eager", &eager.url(), &["/*"])]));
    let reply = gateway.client().request("GET", "/eager/x", &asks, b"body");
    assert_eq!((reply.status, reply.header("upgrade")), (426, Some("websocket")));
    assert!(backend.seen().is_empty() && eager.received().is_empty());
}

#[test]
fn a_backend_that_does_not_agree_answers_for_itself_or_is_away() {
    let agreed = EchoBackend::start();
    let other = Backend::start(|_| penstock_testkit::gateway::Answer::new(404, "text/plain", b"no such room".to_vec()));
    let away = open_api("/away", "ws://127.0.0.1:1", &["/*"]);
    let odd = Backend::start(|_| penstock_testkit::gateway::Answer {
        instead: Some(b"HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: irc\r\n\r\n".to_vec()),
        ..penstock_testkit::gateway::Answer::status(200)
    });
    let gateway = TestGateway::start(Setup::of([
        away,
        open_api("/other", &other.url(), &["/*"]),
        open_api("/odd", &odd.url(), &["/*"]),
        open_api("/good", &agreed.url(), &["/*"]),
    ]));
    run(async {
        let refused = connect(&gateway, "/away/x", &[]).await.unwrap_err();
        assert_eq!(refused.status, 503);
        assert!(refused.body.contains("102503"), "{}", refused.body);
        let refused = connect(&gateway, "/other/x", &[]).await.unwrap_err();
        assert_eq!((refused.status, refused.body.as_str()), (404, "no such room"));
        let refused = connect(&gateway, "/odd/x", &[]).await.unwrap_err();
        assert_eq!(refused.status, 500);
        assert!(refused.body.contains("102515"), "{}", refused.body);
        echoes(&mut connect(&gateway, "/good/x", &[]).await.unwrap(), "hi").await;
    });
}

#[test]
fn the_first_backend_that_is_there_is_taken() {
    let backend = EchoBackend::start();
    let more = format!(
        "    production_failovers:\n    - url: {}\n    failOver: true\n  lifeCycleStatus: PROTOTYPED\n",
        backend.url()
    );
    let gateway = TestGateway::start(Setup::project(&[("api.yaml", &api_yaml("/f", "ws://127.0.0.1:1", &more))]));
    run(async { echoes(&mut connect(&gateway, "/f/1.0.0", &[]).await.unwrap(), "hi").await });
}

#[test]
fn tls_on_either_side() {
    let backend = EchoBackend::start_tls();
    let mut setup = Setup::of([open_api("/tls", &backend.url(), &["/*"])]);
    setup.trust.extend(backend.certificate.clone());
    let gateway = TestGateway::start(setup);
    run(async {
        let mut secure = connect_tls(&gateway, "/tls/x").await;
        let mut plain = connect(&gateway, "/tls/x", &[]).await.unwrap();
        for round in 0..20 {
            echoes(&mut secure, &"x".repeat(round * 3000)).await;
            echoes(&mut plain, &format!("{round}")).await;
        }
        secure.close(None).await.unwrap();
        assert_eq!(backend.ends(1).await, [None]);
    });
}

#[test]
fn ignored_members_are_reported_with_their_place() {
    let backend = EchoBackend::start();
    let more = "  enableSchemaValidation: true\n  apiPolicies:\n    request:\n    - { policyName: addHeader }\n";
    let servers =
        "servers:\n  queue: { url: 'q:1', protocol: mqtt }\n  odd: { url: 'ws://a b' }\n  none: { protocol: ws }\n";
    let topics = TOPICS.replace("x-auth-type: None\n  /noMapping", "x-wso2-colour: red\n  /empty: {}\n  /noMapping");
    let definition = topics + servers;
    let descriptor = api_yaml("/chats", &backend.url(), more);
    let files = [("api.yaml", &*descriptor), ("Definitions/asyncapi.yaml", &*definition)];
    let (_, faulty) = TestGateway::try_start(Setup::project(&files));
    assert_eq!(faulty[0], "Chats:1.0.0");
    let gateway = TestGateway::start(Setup::project(&files).serving_unprotected(&["Chats"]));
    let told = gateway.diagnostics.join("\n");
    for wanted in [
        "project/api.yaml:15:7: warning: the policies of the API are ignored: policies do not run on the frames of a WebSocket API; \
         `Chats:1.0.0` is served without it",
        "project/api.yaml:4:3: warning: `enableSchemaValidation` is ignored",
        "project/Definitions/asyncapi.yaml:7:5: warning: unknown extension `x-wso2-colour` is ignored",
        "asyncapi.yaml:17:17: warning: the server `queue` is ignored: it speaks `mqtt`",
        "asyncapi.yaml:18:15: warning: the server `odd` is ignored: `ws://a b` is not an address",
        "asyncapi.yaml:19:3: warning: the server `none` is ignored: it has no `url`",
        "project/Definitions/asyncapi.yaml:8:3: warning: the channel `/empty` is ignored: it has neither",
    ] {
        assert!(told.contains(wanted), "{wanted}\n{told}");
    }
    for (topics, wanted) in [
        (
            TOPICS.replace("uri.var.room", "uri.var.rom"),
            "asyncapi.yaml:5:5: error: `x-uri-mapping` names `rom`, which is not a parameter of `/rooms/{room}`, did you mean `room`?",
        ),
        (
            TOPICS.replace("2.0.0", "1.2.0"),
            "asyncapi.yaml:1:1: error: AsyncAPI `1.2.0` is not supported; versions 2 and 3 are",
        ),
        ("openapi: 3.0.1".to_owned(), "asyncapi.yaml:1:1: warning: ignored: the topics of an API of the type `WS`"),
    ] {
        let (gateway, _) = TestGateway::try_start(Setup::project(&[
            ("api.yaml", &api_yaml("/chats", &backend.url(), "")),
            ("Definitions/asyncapi.yaml", &topics),
        ]));
        let told = gateway.diagnostics.join("\n");
        assert!(told.contains(wanted), "{wanted}\n{told}");
    }
}
