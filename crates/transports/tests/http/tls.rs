//! TLS on both sides, from every kind of keystore, and HTTP/2 above it.

use std::rc::Rc;
use std::sync::Arc;

use crate::common::{Obedient, Server, collect, get, run, serve};
use bytes::Bytes;
use penstock_engine::ports::{Outbound, TlsProfile};
use penstock_transports::http::tls::{
    ClientCertificates, ClientTrust, Identity, TlsClient, TlsError, TlsServer, read_certificates,
};
use penstock_transports::http::{HttpSender, ListenerConfig, PerCore, SenderConfig};
use tokio::net::TcpStream;

const JKS: &[u8] = include_bytes!("data/localhost.jks");
const P12: &[u8] = include_bytes!("data/localhost.p12");
const JKS_EC: &[u8] = include_bytes!("data/localhost-ec.jks");
const P12_EC: &[u8] = include_bytes!("data/localhost-ec.p12");
const CERTIFICATE: &[u8] = include_bytes!("data/localhost.pem");
const KEY: &[u8] = include_bytes!("data/localhost.key");

fn self_signed() -> Identity {
    Identity::self_signed(&["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap()
}

fn https(identity: &Identity, clients: &ClientCertificates) -> Server {
    let tls = Arc::new(TlsServer::new(identity, clients, true).unwrap());
    serve(Rc::new(Obedient), ListenerConfig { tls: Some(tls), ..ListenerConfig::default() })
}

/// A GET over TLS: its body, or the number of the fault.
async fn fetch(server: &Server, trust: ClientTrust) -> Result<String, Option<u32>> {
    let core = PerCore::start();
    let config = SenderConfig { tls: Arc::new(TlsClient::new(trust)), ..SenderConfig::default() };
    let sender = HttpSender::new(&core, config);
    let mut outgoing = get(server.address, "/");
    outgoing.url = format!("https://{}/a", server.address).into();
    outgoing.message.headers.set("Host", "h");
    let mut last = String::new();
    // Twice, so that a pooled connection is used, too.
    for _ in 0..2 {
        let again = penstock_engine::ports::Outgoing {
            url: outgoing.url.clone(),
            method: outgoing.method.clone(),
            message: penstock_message::Message { headers: outgoing.message.headers.clone(), ..Default::default() },
            options: outgoing.options.clone(),
        };
        let mut reply = sender.send(again).await.map_err(|fault| fault.number())?;
        last = String::from_utf8_lossy(&collect(&mut reply.body).await.unwrap()).into_owned();
    }
    assert_eq!(core.counters.connects.get(), 1);
    Ok(last)
}

fn trusting(identity: &Identity) -> ClientTrust {
    let root = identity.certificate_der().unwrap().to_vec().into();
    ClientTrust { extra_roots: vec![root], only_extra_roots: true, ..ClientTrust::default() }
}

#[test]
fn every_kind_of_keystore_serves() {
    for identity in [
        self_signed(),
        Identity::from_pem(CERTIFICATE, KEY).unwrap(),
        Identity::from_keystore(P12, "changeit", None, None).unwrap(),
        Identity::from_keystore(P12, "changeit", None, Some("LocalHost")).unwrap(),
        Identity::from_keystore(JKS, "changeit", Some("changekey"), Some("localhost")).unwrap(),
        // Java leaves the public key out of keys on elliptic curves.
        Identity::from_keystore(JKS_EC, "changeit", Some("changekey"), None).unwrap(),
        Identity::from_keystore(P12_EC, "changeit", None, None).unwrap(),
    ] {
        let answer = run(async {
            let server = https(&identity, &ClientCertificates::None);
            fetch(&server, ClientTrust { trust_everything: true, ..ClientTrust::default() }).await
        });
        assert_eq!(answer, Ok("GET /a h []".to_owned()));
    }
}

#[test]
fn keystores_say_why_they_do_not_open() {
    let open = |bytes: &[u8], password: &str, key: Option<&str>, alias: Option<&str>| {
        Identity::from_keystore(bytes, password, key, alias).map(drop)
    };
    let missing = TlsError::Alias { wanted: "other".into(), present: vec!["localhost".into()] };
    assert_eq!(open(JKS, "wrong", None, None), Err(TlsError::Password));
    assert_eq!(open(JKS, "changeit", None, None), Err(TlsError::Password));
    assert_eq!(open(JKS, "changeit", None, Some("other")), Err(missing.clone()));
    assert_eq!(open(P12, "wrong", None, None), Err(TlsError::Password));
    assert_eq!(open(P12, "changeit", None, Some("other")), Err(missing));
    for cut in [0, 3, 4, 30, 200, P12.len() - 1] {
        assert!(open(&P12[..cut], "changeit", None, None).is_err());
    }
    for cut in [0, 3, 4, 30, 200, JKS.len() - 1] {
        assert!(open(&JKS[..cut], "changeit", None, None).is_err());
    }
    assert!(Identity::from_pem(KEY, KEY).is_err());
    assert!(Identity::from_pem(CERTIFICATE, CERTIFICATE).is_err());
}

#[test]
fn truststores_open() {
    for store in [include_bytes!("data/trust.jks").as_slice(), include_bytes!("data/trust.p12"), CERTIFICATE] {
        assert_eq!(read_certificates(store, "changeit").map(|found| found.len()), Ok(1));
    }
}

#[test]
fn backends_are_verified_unless_the_user_says_otherwise() {
    run(async {
        let identity = self_signed();
        let server = https(&identity, &ClientCertificates::None);
        let other = ClientTrust { only_extra_roots: true, ..trusting(&Identity::from_pem(CERTIFICATE, KEY).unwrap()) };
        assert_eq!(fetch(&server, ClientTrust::default()).await, Err(Some(101_503)));
        assert_eq!(fetch(&server, other).await, Err(Some(101_503)));
        assert_eq!(fetch(&server, trusting(&identity)).await, Ok("GET /a h []".to_owned()));
    });
}

#[test]
fn a_certificate_that_is_trusted_itself_may_be_that_of_an_authority() {
    run(async {
        let made = |name: &str| {
            let mut parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
            parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
        };
        for (name, expected) in [("127.0.0.1", Ok("GET /a h []".to_owned())), ("other", Err(Some(101_503)))] {
            let identity = made(name);
            let server = https(&identity, &ClientCertificates::None);
            assert_eq!(fetch(&server, trusting(&identity)).await, expected, "{name}");
            assert_eq!(fetch(&server, trusting(&made(name))).await, Err(Some(101_503)), "another one of that name");
        }
    });
}

#[test]
fn clients_show_who_they_are_where_it_is_required() {
    run(async {
        let identity = self_signed();
        let client = self_signed();
        let authority = client.certificate_der().unwrap().to_vec().into();
        let server = https(&identity, &ClientCertificates::Required(vec![authority]));
        assert!(fetch(&server, trusting(&identity)).await.is_err());
        let known = ClientTrust { identity: Some(client), ..trusting(&identity) };
        assert_eq!(fetch(&server, known).await, Ok("GET /a h []".to_owned()));
    });
}

#[test]
fn a_certificate_can_be_replaced_while_it_serves() {
    run(async {
        let (old, new) = (self_signed(), self_signed());
        let tls = Arc::new(TlsServer::new(&old, &ClientCertificates::None, true).unwrap());
        let server = serve(Rc::new(Obedient), ListenerConfig { tls: Some(tls.clone()), ..ListenerConfig::default() });
        assert!(fetch(&server, trusting(&old)).await.is_ok());
        tls.replace(&new, &ClientCertificates::None, true).unwrap();
        assert!(fetch(&server, trusting(&old)).await.is_err());
        assert!(fetch(&server, trusting(&new)).await.is_ok());
    });
}

/// Sends requests over one HTTP/2 connection and returns status, length field and body of each.
async fn over_http2<T>(io: T, requests: Vec<(&str, &str, Bytes)>) -> Vec<(u16, Option<String>, String)>
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + 'static,
{
    let (mut client, connection) = h2::client::handshake(io).await.unwrap();
    tokio::task::spawn_local(connection);
    let mut answers = Vec::new();
    for (method, path, body) in requests {
        let request = http::Request::builder().method(method).uri(format!("http://h{path}")).body(()).unwrap();
        client = client.ready().await.unwrap();
        let (response, mut sink) = client.send_request(request, body.is_empty()).unwrap();
        let mut rest = body;
        while !rest.is_empty() {
            sink.reserve_capacity(rest.len());
            let room = std::future::poll_fn(|cx| sink.poll_capacity(cx)).await.unwrap().unwrap();
            let piece = rest.split_to(room.min(rest.len()));
            sink.send_data(piece, rest.is_empty()).unwrap();
        }
        let (parts, mut stream) = response.await.unwrap().into_parts();
        let mut bytes = Vec::new();
        while let Some(chunk) = stream.data().await {
            let chunk = chunk.unwrap();
            stream.flow_control().release_capacity(chunk.len()).unwrap();
            bytes.extend_from_slice(&chunk);
        }
        if let Some(trailers) = stream.trailers().await.unwrap() {
            bytes.extend_from_slice(format!("{trailers:?}").as_bytes());
        }
        let length = parts.headers.get("content-length").map(|length| length.to_str().unwrap().to_owned());
        answers.push((parts.status.as_u16(), length, String::from_utf8(bytes).unwrap()));
    }
    answers
}

fn answer(status: u16, length: Option<usize>, body: &str) -> (u16, Option<String>, String) {
    (status, length.map(|length| length.to_string()), body.to_owned())
}

#[test]
fn http2_reaches_the_same_service() {
    let big = Bytes::from(vec![b'x'; 200_000]);
    let requests = vec![
        ("GET", "/a?b", Bytes::new()),
        ("POST", "/a", Bytes::from_static(b"body")),
        ("HEAD", "/exact", Bytes::new()),
        ("GET", "/chunks", Bytes::new()),
        ("GET", "/trailers", Bytes::new()),
        ("GET", "/status/204", Bytes::new()),
        ("POST", "/unread", Bytes::from_static(b"body")),
        ("GET", "/evil", Bytes::new()),
        ("POST", "/back", big.clone()),
    ];
    let answers = run(async move {
        let server = serve(Rc::new(Obedient), ListenerConfig::default());
        over_http2(TcpStream::connect(server.address).await.unwrap(), requests).await
    });
    let text = String::from_utf8(big.to_vec()).unwrap();
    assert_eq!(
        answers,
        [
            answer(200, Some(13), "GET /a?b h []"),
            answer(200, Some(16), "POST /a h [body]"),
            answer(200, Some(6), ""),
            answer(200, None, "onetwo"),
            answer(200, None, "one{\"x-sum\": \"3\"}"),
            answer(204, None, ""),
            answer(200, Some(6), "unread"),
            answer(200, Some(4), "evil"),
            answer(200, None, &text),
        ]
    );
}

#[test]
fn http2_is_agreed_on_over_tls() {
    run(async {
        let identity = self_signed();
        let server = https(&identity, &ClientCertificates::None);
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity.certificate_der().unwrap().to_vec().into()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let tcp = TcpStream::connect(server.address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
        let answers = over_http2(tls, vec![("GET", "/a", Bytes::new())]).await;
        assert_eq!(answers, [answer(200, Some(11), "GET /a h []")]);

        // Draining ends the connection once nothing runs on it.
        server.trigger.stop();
        server.ended.await.unwrap().unwrap();
    });
}

/// A route may trust certificates of its own; its connections are not those of others.
#[test]
fn a_profile_trusts_its_own_certificates() {
    run(async {
        let identity = self_signed();
        let server = https(&identity, &ClientCertificates::default());
        let core = PerCore::start();
        let trust = ClientTrust { only_extra_roots: true, ..ClientTrust::default() };
        let config = SenderConfig { tls: Arc::new(TlsClient::new(trust)), ..SenderConfig::default() };
        let sender = HttpSender::new(&core, config);
        let der: Arc<[u8]> = identity.certificate_der().unwrap().to_vec().into();
        let request = |profile: Option<TlsProfile>| {
            let mut outgoing = get(server.address, "/");
            outgoing.url = format!("https://{}/a", server.address).into();
            outgoing.options.tls = profile.map(Arc::new);
            outgoing
        };
        let profile = || Some(TlsProfile::trusting(vec![der.clone()]));
        for _ in 0..2 {
            let mut reply = sender.send(request(profile())).await.unwrap();
            collect(&mut reply.body).await.unwrap();
        }
        assert_eq!(core.counters.connects.get(), 1, "profiles with the same content share connections");
        let other = sender.send(request(None)).await.map(|reply| reply.status);
        assert_eq!(other.map_err(|fault| fault.number()), Err(Some(101_503)));
        let broken = Some(TlsProfile::trusting(vec![b"no certificate".as_slice().into()]));
        assert!(sender.send(request(broken)).await.is_err());
    });
}
