//! Which backend a request gets to, how often, and for how long.

use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use penstock_catalog::{BasicCredentials, CircuitBreakers, ClusterKind, EndpointSecurity, Endpoints, Retry};
use penstock_engine::ports::{LocalFuture, Request, Service};
use penstock_gateway::{ErrorStyle, GatewayConfig};
use penstock_message::{Body, Message};
use penstock_testkit::gateway::{Answer, Backend, ClientIdentity, NOWHERE, Setup, TestGateway};
use penstock_transports::http::tls::Identity;
use penstock_transports::http::{HttpListener, ListenerConfig, PerCore};

use crate::{at_once, open_api, with_cluster};

fn named(name: &'static str) -> Backend {
    Backend::start(move |_| Answer::new(200, "text/plain", name))
}

#[test]
fn the_base_path_is_mapped_to_the_endpoints_path() {
    let backend = Backend::start(|request| Answer::new(200, "text/plain", request.target.clone()));
    for (endpoint, request, target) in [
        ("", "/a/x?q=1", "/x?q=1"),
        ("/", "/a/x", "/x"),
        ("/v2", "/a/x/y?q=%20", "/v2/x/y?q=%20"),
        ("/v2/", "/a/", "/v2/"),
        ("/v2", "/a", "/v2"),
        ("", "/a", "/"),
        ("/v2?k=v", "/a/x?q=1", "/v2/x?k=v&q=1"),
        ("/v2?k=v", "/a/x", "/v2/x?k=v"),
    ] {
        let api =
            with_cluster("/a", &backend, |cluster| cluster.urls = vec![format!("{}{endpoint}", backend.url()).into()]);
        let gateway = TestGateway::start(Setup::of([api]));
        assert_eq!(gateway.client().get(request, &[]).text(), target, "{endpoint} {request}");
    }
}

#[test]
fn a_slash_at_the_end_reaches_the_backend_as_the_template_has_it() {
    let backend = Backend::start(|request| Answer::new(200, "text/plain", request.target.clone()));
    let paths = ["GET /pet/{id}", "GET /list/", "GET /files/*", "GET /"];
    for (style, expected) in [
        (ErrorStyle::ChoreoConnect, ["/pet/7", "/pet/7?a=/", "/list/?x=1", "/list/", "/files/a/", "/files/", "/", "/"]),
        (ErrorStyle::ApiManager, ["/pet/7", "/pet/7/?a=/", "/list?x=1", "/list/", "/files/a/", "/files/", "/", "/"]),
    ] {
        let setup = Setup::of([open_api("/a", &backend, &paths)]).configured(|config| config.error_style = style);
        let gateway = TestGateway::start(setup);
        let mut client = gateway.client();
        let asked = ["/pet/7", "/pet/7/?a=/", "/list?x=1", "/list/", "/files/a/", "/files/", "", "/"];
        let got = asked.map(|path| client.get(&format!("/a{path}"), &[]).text());
        assert_eq!(got, expected);
    }
}

#[test]
fn backends_get_the_clients_fields_but_for_those_that_steer() {
    let backend = Backend::echo();
    let api = with_cluster("/a", &backend, |cluster| {
        let basic = BasicCredentials { username: "me".into(), password: "abcd-+={}[]|:;'<,>.?/x".into() };
        cluster.security = Some(EndpointSecurity::Basic(basic));
    });
    let gateway = TestGateway::start(Setup::of([api]));
    let fields = [
        ("User-Agent", "test"),
        ("X-Envoy-Max-Retries", "10"),
        ("X-A", "1"),
        ("X-A", "2"),
        ("Connection", "x-b"),
        ("X-B", "3"),
    ];
    assert_eq!(gateway.client().request("POST", "/a/x", &fields, b"body").text(), "body");
    let got = backend.last();
    let values: Vec<_> =
        got.headers.iter().filter(|(name, _)| name == "X-A").map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(got.header("user-agent"), Some("test"));
    assert_eq!(got.header("host"), Some(format!("127.0.0.1:{}", backend.port).as_str()));
    assert_eq!(got.header("x-envoy-max-retries").or(got.header("x-b")), None);
    assert_eq!(got.header("authorization"), Some("Basic bWU6YWJjZC0rPXt9W118OjsnPCw+Lj8veA=="));
}

#[test]
fn an_api_with_a_sandbox_only_sends_there() {
    let backend = named("sandbox");
    let mut api = open_api("/a", &backend, &["GET /*"]);
    api.endpoints = Endpoints { sandbox: api.endpoints.production.take(), ..Endpoints::default() };
    let gateway = TestGateway::start(Setup::of([api]));
    assert_eq!(gateway.client().get("/a/x", &[]).text(), "sandbox");
}

#[test]
fn balanced_backends_take_turns_and_failover_keeps_to_the_first() {
    let (one, two) = (named("one"), named("two"));
    let urls = [one.url().into(), two.url().into()];
    for (kind, expected) in [(ClusterKind::LoadBalance, 10), (ClusterKind::Failover, 20)] {
        let api = with_cluster("/a", &one, |cluster| {
            cluster.urls = urls.to_vec();
            cluster.kind = kind;
        });
        let gateway = TestGateway::start(Setup::of([api]));
        let mut client = gateway.client();
        let got = (0..20).filter(|_| client.get("/a/x", &[]).text() == "one").count();
        assert_eq!(got, expected, "{kind:?}");
    }
}

#[test]
fn who_is_down_is_passed_over_until_it_is_back() {
    let second = named("two");
    // The port is taken now and opened later.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = closed.local_addr().unwrap();
    let api = with_cluster("/a", &second, |cluster| {
        cluster.urls = vec![format!("http://{address}").into(), second.url().into()];
        cluster.kind = ClusterKind::Failover;
    });
    let gateway = TestGateway::start(Setup::of([api]).configured(|config: &mut GatewayConfig| {
        config.upstream.health.interval = Duration::from_millis(100);
    }));
    let mut client = gateway.client();
    for body in ["", "kept for the second"] {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let reply = client.request(method, "/a/x", &[], body.as_bytes());
        assert_eq!((reply.status, reply.text().as_str()), (200, "two"), "the first request already gets an answer");
    }
    let listener = {
        let _entered = runtime.enter();
        closed.listen(16).unwrap().into_std().unwrap()
    };
    listener.set_nonblocking(false).unwrap();
    let patience = Instant::now() + Duration::from_secs(10);
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                if socket.read(&mut buffer).is_ok_and(|count| count > 0) {
                    let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none");
                }
            });
        }
    });
    while client.get("/a/x", &[]).text() != "one" {
        assert!(Instant::now() < patience, "the first backend is back and gets nothing");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_unreachable_backend_is_a_503() {
    let backend = Backend::echo();
    for urls in [vec![NOWHERE.to_owned()], vec![NOWHERE.to_owned(); 2]] {
        let api =
            with_cluster("/a", &backend, |cluster| cluster.urls = urls.iter().map(|url| url.as_str().into()).collect());
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().get("/a/x", &[]);
        assert_eq!(reply.status, 503, "{}", reply.text());
        assert!(reply.text().contains("102503"), "{}", reply.text());
        assert!(!reply.text().contains("127.0.0.1"), "clients are not told where backends are");
    }
}

/// Fails so often, then answers.
fn failing(times: usize, status: u16) -> (Backend, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let backend = Backend::start(move |request| match counter.fetch_add(1, Ordering::Relaxed) {
        count if count < times => Answer::status(status),
        _ => Answer::new(200, "text/plain", request.text()),
    });
    (backend, asked)
}

#[test]
fn requests_are_repeated_as_often_as_the_api_says() {
    for (count, statuses, fails, status, expected, asked) in [
        (1, vec![502], 1, 502, 200, 2),
        (1, vec![402], 1, 402, 200, 2),
        (3, vec![504], 4, 504, 504, 4),
        // Neither a client's wish nor a count out of range brings more than five.
        (9, vec![504], 9, 504, 504, 6),
        // No status that counts: the gateway's own.
        (1, vec![400, 700], 1, 504, 200, 2),
        (1, vec![502], 1, 503, 503, 1),
    ] {
        let (backend, count_of) = failing(fails, status);
        let api = with_cluster("/a", &backend, |cluster| {
            cluster.retry = Some(Retry { count, statuses: statuses.clone() });
        });
        let gateway = TestGateway::start(Setup::of([api]));
        let reply = gateway.client().request("POST", "/a/retry", &[("x-envoy-max-retries", "10")], b"again");
        let label = format!("{count} {statuses:?} {fails}");
        assert_eq!((reply.status, count_of.load(Ordering::Relaxed)), (expected, asked), "{label}");
        assert!(expected != 200 || reply.text() == "again", "{label}: the body is sent again");
    }
}

#[test]
fn a_body_too_large_to_keep_is_sent_once() {
    let (backend, asked) = failing(1, 504);
    let api = with_cluster("/a", &backend, |cluster| cluster.retry = Some(Retry { count: 3, statuses: vec![504] }));
    let gateway = TestGateway::start(Setup::of([api]).configured(|config| config.upstream.replay_bytes_max = 1000));
    let mut client = gateway.client();
    assert_eq!(client.request("POST", "/a/x", &[], &[b'x'; 100_000]).status, 504);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(client.request("POST", "/a/x", &[], &[b'x'; 900]).body.len(), 900);
}

#[test]
fn every_level_has_its_timeout_and_none_exceeds_the_gateways() {
    let backend = Backend::start(|request| {
        let millis = request.target.rsplit('/').next().unwrap().parse().unwrap();
        Answer::new(200, "text/plain", "late").after(Duration::from_millis(millis))
    });
    let limited = |base: &str, timeout: Option<u64>| {
        with_cluster(base, &backend, |cluster| cluster.timeout = timeout.map(Duration::from_millis))
    };
    let mut own = limited("/own", Some(5000));
    let mut operation = (*own.operations[0]).clone();
    let cluster = limited("/x", Some(300)).endpoints.production;
    operation.endpoints = Some(Endpoints { production: cluster, ..Endpoints::default() });
    own.operations[0] = Arc::new(operation);
    let apis = [limited("/global", None), limited("/more", Some(60_000)), limited("/less", Some(300)), own];
    let gateway =
        TestGateway::start(Setup::of(apis).configured(|config| config.route_timeout = Duration::from_millis(1000)));
    for (path, status) in [
        ("/global/300", 200),
        ("/global/3000", 504),
        ("/more/3000", 504),
        ("/less/1", 200),
        ("/less/900", 504),
        ("/own/900", 504),
    ] {
        let reply = gateway.client().get(path, &[]);
        assert_eq!(reply.status, status, "{path} {}", reply.text());
        assert!(status == 200 || reply.text().contains("102504"), "{}", reply.text());
    }
}

#[test]
fn circuit_breakers_let_through_what_they_say() {
    let slow = |_: &_| Answer::new(200, "text/plain", "done").after(Duration::from_millis(400));
    for (limits, requests, expected) in [
        (CircuitBreakers { requests_max: Some(1), ..CircuitBreakers::default() }, 2, vec![200, 503]),
        (CircuitBreakers { requests_max: Some(2), ..CircuitBreakers::default() }, 3, vec![200, 200, 503]),
        (
            CircuitBreakers { connections_max: Some(1), pending_max: Some(1), ..CircuitBreakers::default() },
            3,
            vec![200, 200, 503],
        ),
        (CircuitBreakers { connections_max: Some(1), ..CircuitBreakers::default() }, 3, vec![200, 200, 200]),
    ] {
        let backend = Backend::start(slow);
        let api = with_cluster("/a", &backend, |cluster| cluster.circuit_breakers = Some(limits));
        // Two gateways with one state are two cores of one process.
        let state = Arc::default();
        let start = || TestGateway::start(Setup { state: Arc::clone(&state), ..Setup::of([api.clone()]) });
        let gateway = start();
        let statuses = at_once(requests, || gateway.client().get("/a/x", &[]).status);
        assert_eq!(statuses, expected, "{limits:?}");
        // What was refused or is over counts no more.
        assert_eq!(gateway.client().get("/a/x", &[]).status, 200, "{limits:?}");
    }
    let backend = Backend::start(slow);
    let limits = CircuitBreakers { requests_max: Some(1), ..CircuitBreakers::default() };
    let api = with_cluster("/a", &backend, |cluster| cluster.circuit_breakers = Some(limits));
    let gateway = TestGateway::start(Setup::of([api]));
    let bodies = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| gateway.client().get("/a/x", &[]).text())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<String>()
    });
    assert!(bodies.contains("102505"), "{bodies}");
}

/// A body that is collected is collected before its request counts.
#[test]
fn a_slow_client_does_not_occupy_the_circuit_breaker() {
    let backend = Backend::echo();
    let api = with_cluster("/a", &backend, |cluster| {
        cluster.circuit_breakers = Some(CircuitBreakers { requests_max: Some(1), ..CircuitBreakers::default() });
        cluster.retry = Some(Retry { count: 1, statuses: Vec::new() });
    });
    let gateway = TestGateway::start(Setup::of([api]));
    let mut slow = std::net::TcpStream::connect(("127.0.0.1", gateway.http)).unwrap();
    slow.write_all(b"POST /a/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\nab").unwrap();
    let mut client = gateway.client();
    for _ in 0..20 {
        assert_eq!(client.request("POST", "/a/x", &[], b"body").status, 200);
        std::thread::sleep(Duration::from_millis(5));
    }
    slow.write_all(b"cd").unwrap();
    let mut reply = String::new();
    slow.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("abcd"), "{reply}");
}

#[test]
fn backends_are_trusted_by_api_and_see_who_we_are() {
    let own = ClientIdentity::new("penstock");
    let key = rcgen_identity();
    let backend = Backend::start_tls(|_| Answer::new(200, "text/plain", "secret"), Some(&key.0));
    let certificate: Arc<[u8]> = backend.certificate().unwrap().as_ref().into();
    let api = |certificates: Vec<Arc<[u8]>>| {
        let mut api = open_api("/a", &backend, &["GET /*"]);
        api.endpoint_certificates = certificates;
        api
    };
    let status = |certificates, identity| {
        let setup = Setup { identity, ..Setup::of([api(certificates)]) };
        TestGateway::start(setup).client().get("/a/x", &[]).status
    };
    assert_eq!(status(vec![certificate.clone()], Some(key.1.clone())), 200);
    assert_eq!(status(vec![], Some(key.1)), 503, "not trusted");
    assert_eq!(status(vec![certificate], None), 503, "not known there");
    drop(own);
}

/// A certificate and the identity it belongs to.
fn rcgen_identity() -> (rustls::pki_types::CertificateDer<'static>, Identity) {
    let identity = Identity::self_signed(&["penstock".to_owned()]).unwrap();
    (identity.certificate_der().unwrap().to_vec().into(), identity)
}

/// Returns the protocol of the request.
struct Protocol;

impl Service for Protocol {
    fn answer<'a>(&'a self, request: Request) -> LocalFuture<'a, Message> {
        let text = format!("{} {}", request.client.protocol, request.client.line.target());
        Box::pin(async move { Message { status: 200, body: Body::bytes(text), ..Message::default() } })
    }
}

#[test]
fn backends_are_called_over_http_2_when_the_api_enables_it() {
    let listener = HttpListener::bind("127.0.0.1:0".parse().unwrap(), ListenerConfig::default()).unwrap();
    let address = listener.local_addr();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
        let (_trigger, stop) = penstock_transports::http::shutdown();
        runtime.block_on(async { listener.serve(PerCore::start(), Rc::new(Protocol), None, stop).await.unwrap() });
    });
    let other = Backend::echo();
    for (http2, expected) in [(true, "HTTP/2 /x?y"), (false, "HTTP/1.1 /x?y")] {
        let api = with_cluster("/a", &other, |cluster| {
            cluster.urls = vec![format!("http://{address}").into()];
            cluster.http2 = http2;
        });
        let gateway = TestGateway::start(Setup::of([api]));
        let mut client = gateway.client();
        for _ in 0..3 {
            assert_eq!(client.get("/a/x?y", &[]).text(), expected);
        }
    }
}
