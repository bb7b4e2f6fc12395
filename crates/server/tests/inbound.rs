//! Inbound endpoints of the running program: ports of their own.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Connection, Folder, Server, tls};

/// An endpoint on a free port, and what it may dispatch to.
fn endpoint(name: &str, attributes: &str, parameters: &str) -> String {
    format!(
        r#"<inboundEndpoint xmlns="http://ws.apache.org/ns/synapse" name="{name}" protocol="http" {attributes}>
  <parameters><parameter name="inbound.http.port">0</parameter>{parameters}</parameters>
</inboundEndpoint>"#
    )
}

const SERVICES: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <sequence name="main"><payloadFactory media-type="text"><format>main</format><args/></payloadFactory><respond/></sequence>
  <sequence name="take">
    <payloadFactory media-type="text"><format>take $1</format><args>
      <arg expression="get-property('inbound.endpoint.name')"/></args></payloadFactory>
    <respond/>
  </sequence>
  <sequence name="break"><throwError type="MINE" errorMessage="it broke"/></sequence>
  <sequence name="handle">
    <payloadFactory media-type="text"><format>handled $1</format><args>
      <arg expression="get-property('ERROR_MESSAGE')"/></args></payloadFactory>
    <respond/>
  </sequence>
  <proxy name="Echo"><target><inSequence><respond/></inSequence></target></proxy>
  <api name="open" context="/open"><resource methods="GET"><inSequence>
    <payloadFactory media-type="text"><format>open</format><args/></payloadFactory><respond/></inSequence></resource></api>
  <api name="bound" context="/bound" binds-to="Plain"><resource methods="GET"><inSequence>
    <payloadFactory media-type="text"><format>bound</format><args/></payloadFactory><respond/></inSequence></resource></api>
</definitions>"#;

fn port(server: &mut Server, name: &str) -> u16 {
    let line = format!("{name}: listening on port ");
    server.wait_for_log(&line);
    server.port_after(&line)
}

fn get(port: u16, path: &str) -> String {
    Connection::open(port).request("GET", path, &[], b"").body
}

#[test]
fn an_http_endpoint_dispatches_by_its_sequence_its_pattern_and_its_apis() {
    let folder = Folder::new("inbound-http");
    folder.write("artifacts/services.xml", SERVICES);
    folder.write("artifacts/plain.xml", endpoint("Plain", r#"sequence="take""#, ""));
    folder.write("artifacts/broken.xml", endpoint("Broken", r#"sequence="break" onError="handle""#, ""));
    let pattern = r#"<parameter name="dispatch.filter.pattern">/services/.*|/open</parameter>"#;
    folder.write("artifacts/pattern.xml", endpoint("Pattern", r#"sequence="take""#, pattern));
    let offers = r#"<parameter name="api.dispatching.enabled">true</parameter>"#;
    folder.write("artifacts/apis.xml", endpoint("Apis", r#"sequence="take""#, offers));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let [plain, broken, pattern, apis] = ["Plain", "Broken", "Pattern", "Apis"].map(|name| port(&mut server, name));

    assert_eq!(get(plain, "/any/path"), "take Plain");
    assert_eq!(get(plain, "/open"), "take Plain");
    assert_eq!(get(plain, "/bound"), "bound");
    // An API that is bound to an endpoint is not offered over the HTTP port.
    assert_eq!(get(server.http, "/bound"), "main");
    assert_eq!(get(broken, "/"), "handled it broke");
    assert_eq!(get(pattern, "/open"), "open");
    assert_eq!(get(pattern, "/other"), "main");
    let echoed = Connection::open(pattern).request("POST", "/services/Echo", &[("Content-Type", "text/plain")], b"hi");
    assert_eq!((echoed.status, echoed.body.as_str()), (200, "hi"));
    assert_eq!(get(apis, "/open"), "open");
    assert_eq!(get(apis, "/else"), "take Apis");
    let metrics = server.admin("/metric-service/metrics").body;
    assert!(metrics.contains(r#"penstock_background_service_up{kind="inboundEndpoint",name="Plain"} 1"#), "{metrics}");
}

#[test]
fn a_reload_keeps_the_connections_of_an_endpoint_that_it_leaves_alone() {
    let folder = Folder::new("inbound-reload");
    folder.write("artifacts/services.xml", SERVICES);
    folder.write("artifacts/kept.xml", endpoint("Kept", r#"sequence="take""#, ""));
    let file = folder.write("artifacts/gone.xml", endpoint("Gone", r#"sequence="take""#, ""));
    folder.write("artifacts/asleep.xml", endpoint("Asleep", r#"sequence="take" suspend="true""#, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let (kept, gone) = (port(&mut server, "Kept"), port(&mut server, "Gone"));
    let mut connection = Connection::open(kept);
    assert_eq!(connection.request("GET", "/", &[], b"").body, "take Kept");
    assert_eq!(get(gone, "/"), "take Gone");
    std::fs::remove_file(file).unwrap();
    folder.write("artifacts/services.xml", SERVICES.replace("take $1", "took $1"));
    server.wait_for_log("artifacts are served now");
    // The connection is the same one, and the flow is the new one.
    let mut taken = connection.request("GET", "/", &[], b"").body;
    while taken == "take Kept" {
        taken = connection.request("GET", "/", &[], b"").body;
    }
    assert_eq!(taken, "took Kept");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.1", gone)).is_ok() {
        assert!(std::time::Instant::now() < end, "the port of a removed endpoint stays open:\n{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!server.log().contains("Asleep: listening"), "{}", server.log());
}

#[test]
fn a_taken_port_makes_the_endpoint_faulty_until_it_is_free() {
    let folder = Folder::new("inbound-taken");
    let taken = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
    let number = taken.local_addr().unwrap().port();
    folder.write("artifacts/services.xml", SERVICES);
    let artifact = endpoint("Late", r#"sequence="take""#, "").replace(">0<", &format!(">{number}<"));
    folder.write("artifacts/late.xml", artifact);
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log(&format!("port {number} of 0.0.0.0 is taken"));
    let health = server.admin("/healthz").body;
    assert!(health.contains("Late"), "{health}");
    drop(taken);
    server.wait_for_log(&format!("Late: listening on port {number}"));
    assert_eq!(get(number, "/"), "take Late");
}

#[test]
fn an_https_endpoint_has_a_certificate_of_its_own() {
    let folder = Folder::new("inbound-https");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let pem = folder.write("keys.pem", format!("{}{}", made.cert.pem(), made.signing_key.serialize_pem()));
    let keystore = format!(
        r#"<parameter name="keystore"><KeyStore><Location>{}</Location><Type>PEM</Type></KeyStore></parameter>"#,
        pem.display()
    );
    let artifact =
        endpoint("Tls", r#"sequence="take""#, &keystore).replace(r#"protocol="http""#, r#"protocol="https""#);
    folder.write("artifacts/services.xml", SERVICES);
    folder.write("artifacts/tls.xml", artifact);
    let missing = endpoint("Keyless", r#"sequence="take""#, &keystore.replace("keys.pem", "missing.pem"));
    folder.write("artifacts/keyless.xml", missing.replace(r#"protocol="http""#, r#"protocol="https""#));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let port = port(&mut server, "Tls");
    assert_eq!(tls::certificate(port, "localhost"), made.cert.der().to_vec());
    let reply = tls::request(port, "GET", "/", &[]);
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("take Tls"), "{reply}");
    server.wait_for_log("missing.pem` cannot be read");
}
