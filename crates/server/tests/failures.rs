//! Who is blamed for a request that fails, and what its client gets: over real sockets, with backends that misbehave and
//! with clients that do.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use support::{Folder, Server};

const PATIENCE: Duration = Duration::from_secs(30);

/// A backend that does as the path says.
struct Backend {
    port: u16,
    /// A word for each request whose head has arrived.
    heads: Receiver<()>,
    /// Lets `/held` and `/events` go on.
    go_on: Sender<()>,
}

impl Backend {
    fn start() -> Backend {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (head, heads) = channel();
        let (go_on, going_on) = channel();
        let going_on = std::sync::Arc::new(std::sync::Mutex::new(going_on));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let (head, going_on) = (head.clone(), going_on.clone());
                std::thread::spawn(move || while answer(&socket, &head, &going_on).is_some() {});
            }
        });
        Backend { port, heads, go_on }
    }
}

/// Reads a request and answers it; `None` when the connection is over.
fn answer(mut socket: &TcpStream, head: &Sender<()>, going_on: &std::sync::Mutex<Receiver<()>>) -> Option<()> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).ok()?;
        request.push(byte[0]);
    }
    head.send(()).ok()?;
    let text = String::from_utf8(request).unwrap().to_ascii_lowercase();
    let path = text.split(' ').nth(1)?.to_owned();
    if path.contains("/closes") {
        return None;
    }
    let length = text.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    socket.read_exact(&mut vec![0; length]).ok()?;
    let wait = || going_on.lock().unwrap().recv_timeout(PATIENCE).ok();
    if path.contains("/silent") {
        wait()?;
    } else if path.contains("/held") {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf").ok()?;
        wait()?;
        socket.write_all(b"half").ok()?;
    } else if path.contains("/events") {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").ok()?;
        wait()?;
        socket.write_all(b"data: 2\n\n").ok()?;
        return None;
    } else {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").ok()?;
    }
    Some(())
}

fn forwarding(port: u16, policy: &str) -> String {
    format!(
        "<api xmlns='http://ws.apache.org/ns/synapse' name='f' context='/f'><resource methods='POST GET' url-mapping='/*'>\
         <inSequence><call><endpoint name='target'><address uri='http://127.0.0.1:{port}'>{policy}</address></endpoint></call>\
         <respond/></inSequence></resource></api>"
    )
}

fn start(name: &str, artifacts: &str, toml: &str) -> (Folder, Server) {
    let folder = Folder::new(name);
    folder.write("artifacts/all.xml", artifacts);
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    (folder, server)
}

/// Opens a connection and sends a head that announces so many bytes of a body.
fn begin(server: &Server, path: &str, length: usize) -> TcpStream {
    let mut socket = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

fn status(socket: &mut TcpStream) -> u16 {
    let mut line = [0; 12];
    socket.read_exact(&mut line).unwrap();
    std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
}

fn works(server: &Server) {
    assert_eq!(server.post("/f", "text/plain", "abc").status, 200, "{}", server.log());
    assert!(!server.log().contains("is suspended"), "{}", server.log());
}

/// Pauses within a body for several times the timeout of the endpoint; the clock of the server counts in 50 ms.
fn upload_slowly(server: &Server, backend: &Backend) {
    let mut client = begin(server, "/f", 6);
    client.write_all(b"abc").unwrap();
    backend.heads.recv_timeout(PATIENCE).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    client.write_all(b"def").unwrap();
    assert_eq!(status(&mut client), 200, "{}", server.log());
    works(server);
}

#[test]
fn the_timeout_of_an_endpoint_begins_when_the_request_is_sent() {
    let backend = Backend::start();
    let policy = "<timeout><duration>100</duration><responseAction>fault</responseAction></timeout>";
    let (_folder, server) = start("upload", &forwarding(backend.port, policy), "");
    upload_slowly(&server, &backend);
    // The timeout still counts for the backend.
    assert_eq!(server.post("/f/silent", "text/plain", "abc").status, 504, "{}", server.log());
}

#[test]
fn the_time_of_a_local_service_does_not_run_while_it_waits_for_the_client() {
    let backend = Backend::start();
    let artifacts = format!(
        "<definitions xmlns='http://ws.apache.org/ns/synapse'>\
         <api name='f' context='/f'><resource methods='POST' url-mapping='/*'><inSequence><call><endpoint name='target'>\
         <address uri='local:///services/Inner'><timeout><duration>100</duration></timeout></address></endpoint></call>\
         <respond/></inSequence></resource></api>\
         <api name='silent' context='/silent'><resource methods='POST'><inSequence><call><endpoint>\
         <address uri='local:///services/Silent'><timeout><duration>100</duration></timeout></address></endpoint></call>\
         <respond/></inSequence></resource></api>\
         <proxy name='Inner' transports='local'><target><endpoint><address uri='http://127.0.0.1:{0}'/></endpoint>\
         <outSequence><send/></outSequence></target></proxy>\
         <proxy name='Silent' transports='local'><target><endpoint><address uri='http://127.0.0.1:{0}/silent'/></endpoint>\
         <outSequence><send/></outSequence></target></proxy></definitions>",
        backend.port
    );
    let (_folder, server) = start("local", &artifacts, "");
    upload_slowly(&server, &backend);
    assert_eq!(server.post("/silent", "text/plain", "abc").status, 504, "{}", server.log());
}

#[test]
fn a_body_that_breaks_off_does_not_count_against_the_file_it_is_written_to() {
    let folder = Folder::new("broken-file");
    let out = folder.0.join("out");
    let artifacts = format!(
        "<api xmlns='http://ws.apache.org/ns/synapse' name='f' context='/f'><resource methods='POST'><inSequence>\
         <call><endpoint name='target'><address uri='vfs:file://{}/all.txt?transport.vfs.Append=true'/></endpoint></call>\
         <property name='HTTP_SC' value='200' scope='axis2'/><respond/></inSequence></resource></api>",
        out.display()
    );
    folder.write("artifacts/all.xml", &artifacts);
    let toml = "timeouts.body = \"10s\"\ntimeouts.deadline = \"500ms\"";
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    let mut client = begin(&server, "/f", 6);
    client.write_all(b"xyz").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(status(&mut client), 400, "{}", server.log());
    works(&server);
    let mut client = begin(&server, "/f", 6);
    client.write_all(b"xyz").unwrap();
    assert_eq!(status(&mut client), 408, "{}", server.log());
    works(&server);
    assert_eq!(std::fs::read_to_string(out.join("all.txt")).unwrap(), "abcabc");
}

#[test]
fn what_a_client_does_to_its_body_does_not_count_against_an_endpoint() {
    let backend = Backend::start();
    let toml = "timeouts.body = \"200ms\"";
    let (_folder, mut server) = start("client", &forwarding(backend.port, ""), toml);
    // It stops sending.
    let mut client = begin(&server, "/f", 6);
    client.write_all(b"abc").unwrap();
    assert_eq!(status(&mut client), 408);
    works(&server);
    // It ends its side.
    let mut client = begin(&server, "/f", 6);
    client.write_all(b"abc").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(status(&mut client), 400);
    works(&server);
    // Its chunks are malformed.
    let mut client = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
    client.write_all(b"POST /f HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n").unwrap();
    assert_eq!(status(&mut client), 400);
    works(&server);
    // The backend loses patience with it and closes the connection.
    let mut client = begin(&server, "/f/closes", 6);
    client.write_all(b"abc").unwrap();
    assert_eq!(status(&mut client), 502);
    works(&server);
    // A backend that closes the connection of a whole request is at fault.
    assert_eq!(server.post("/f/closes", "text/plain", "abc").status, 502);
    server.wait_for_log("is suspended");
    assert_eq!(server.post("/f", "text/plain", "abc").status, 503);
}

#[test]
fn a_client_that_sends_until_the_deadline_gets_408() {
    let backend = Backend::start();
    let (_folder, server) = start("drip", &forwarding(backend.port, ""), "timeouts.deadline = \"500ms\"");
    let mut client = begin(&server, "/f", 1_000_000);
    let mut writer = client.try_clone().unwrap();
    let dripping = std::thread::spawn(move || {
        while writer.write_all(b"a").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(status(&mut client), 408, "{}", server.log());
    let _ = client.shutdown(Shutdown::Both);
    dripping.join().unwrap();
    works(&server);
    // A deadline that leaves a backend less than its endpoint does says nothing about it.
    assert_eq!(server.post("/f/silent", "text/plain", "abc").status, 504);
    works(&server);
}

#[test]
fn a_trial_that_its_client_gives_up_decides_nothing() {
    let backend = Backend::start();
    let policy = "<suspendOnFailure><initialDuration>300</initialDuration><progressionFactor>1000</progressionFactor>\
                  </suspendOnFailure>";
    let (_folder, server) = start("trial", &forwarding(backend.port, policy), "");
    assert_eq!(server.post("/f/closes", "text/plain", "abc").status, 502);
    let reply = server.post("/f", "text/plain", "abc");
    assert_eq!(reply.status, 503);
    assert!(reply.head.contains("\r\nRetry-After: 1\r\n"), "{}", reply.head);
    let end = Instant::now() + PATIENCE;
    // The first one that is let through is a client's that gives up.
    loop {
        let mut client = begin(&server, "/f", 6);
        client.write_all(b"abc").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        match status(&mut client) {
            503 => assert!(Instant::now() < end, "the suspension does not end"),
            400 => break,
            other => panic!("{other}: {}", server.log()),
        }
    }
    assert_eq!(server.post("/f", "text/plain", "abc").status, 200, "{}", server.log());
}

#[test]
fn the_deadline_ends_replies_that_still_stream_but_not_events() {
    let backend = Backend::start();
    let (_folder, server) = start("reply", &forwarding(backend.port, ""), "timeouts.deadline = \"500ms\"");
    let mut client = begin(&server, "/f/held", 0);
    let mut reply = Vec::new();
    let error = client.read_to_end(&mut reply).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert!(String::from_utf8_lossy(&reply).ends_with("\r\n\r\nhalf"), "{reply:?}");
    backend.go_on.send(()).unwrap();

    let mut client = begin(&server, "/f/events", 0);
    let mut reply = Vec::new();
    let mut byte = [0];
    while !reply.ends_with(b"data: 1\n\n") {
        client.read_exact(&mut byte).unwrap();
        reply.push(byte[0]);
    }
    std::thread::sleep(Duration::from_millis(900));
    backend.go_on.send(()).unwrap();
    while !reply.ends_with(b"data: 2\n\n") {
        client.read_exact(&mut byte).unwrap();
        reply.push(byte[0]);
    }
}

/// Services that fail in all ways that need no backend but one that is not there.
const FAILING: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <api name="reads" context="/reads"><resource methods="POST"><inSequence>
    <property name="a" expression="json-eval($.a)"/><log level="full"/><respond/>
  </inSequence></resource></api>
  <proxy name="Reads"><target>
    <inSequence><property name="first" expression="local-name(//*[1])"/><respond/></inSequence>
    <faultSequence><log level="custom"><property name="seen" value="yes"/></log></faultSequence>
  </target></proxy>
  <proxy name="Expressions"><target><inSequence><variable name="a" expression="${payload.a}"/><respond/></inSequence></target></proxy>
  <proxy name="Logs"><target><inSequence><log level="full"/><respond/></inSequence></target></proxy>
  <api name="gone" context="/gone"><resource methods="GET"><inSequence>
    <call><endpoint><address uri="http://127.0.0.1:1"/></endpoint></call><respond/>
  </inSequence></resource></api>
  <sequence name="around"><sequence key="around"/></sequence>
  <api name="deep" context="/deep"><resource methods="GET"><inSequence><sequence key="around"/></inSequence></resource></api>
  <api name="many" context="/many"><resource methods="POST"><inSequence>
    <iterate expression="//i"><target><sequence><drop/></sequence></target></iterate>
  </inSequence></resource></api>
  <api name="branch" context="/branch"><resource methods="GET"><inSequence>
    <clone id="c">
      <target><sequence><call><endpoint><address uri="http://127.0.0.1:1"/></endpoint></call></sequence></target>
      <target><sequence><payloadFactory media-type="json"><format>{"x": 1}</format><args/></payloadFactory></sequence></target>
    </clone>
    <aggregate id="c"><completeCondition><messageCount min="-1" max="-1"/></completeCondition>
      <onComplete expression="json-eval($)"><respond/></onComplete></aggregate>
  </inSequence></resource></api>
  <api name="store" context="/store"><resource methods="POST"><inSequence>
    <store messageStore="Orders"/>
  </inSequence></resource></api>
  <api name="thrown" context="/thrown"><resource methods="GET"><inSequence>
    <throwError type="MINE" errorMessage="10.1.2.3 is down"/>
  </inSequence></resource></api>
  <api name="kept" context="/kept"><resource methods="GET"><inSequence>
    <throwError type="MINE" errorMessage="it broke"/>
  </inSequence></resource></api>
  <api name="limited" context="/limited"><resource methods="GET"><inSequence>
    <throttle id="limited"><policy>
      <wsp:Policy xmlns:wsp="http://schemas.xmlsoap.org/ws/2004/09/policy" xmlns:t="http://www.wso2.org/products/wso2commons/throttle">
        <t:MediatorThrottleAssertion><wsp:Policy><t:ID t:type="IP">other</t:ID><wsp:Policy><t:Control><wsp:Policy>
          <t:Deny/>
        </wsp:Policy></t:Control></wsp:Policy></wsp:Policy></t:MediatorThrottleAssertion>
      </wsp:Policy>
    </policy></throttle>
  </inSequence></resource></api>
  <api name="gathers" context="/gathers"><resource methods="POST"><inSequence>
    <scatter-gather target="body" result-content-type="JSON">
      <aggregation expression="${payload.a}"/>
      <sequence><log level="custom"><property name="seen" value="yes"/></log></sequence>
    </scatter-gather>
    <respond/>
  </inSequence></resource></api>
  <api name="parts" context="/parts"><resource methods="POST"><inSequence>
    <scatter-gather target="variable" target-variable="found" result-content-type="JSON">
      <aggregation expression="${payload.a}"/>
      <sequence><variable name="a" expression="${payload.a}"/></sequence>
      <sequence><payloadFactory media-type="json"><format>{"a": 2}</format></payloadFactory></sequence>
    </scatter-gather>
    <respond/>
  </inSequence></resource></api>
  <api name="addressed" context="/addressed"><resource methods="POST"><inSequence>
    <property name="uri.var.id" expression="${payload.id}"/>
    <call><endpoint><http uri-template="http://127.0.0.1:1/{uri.var.id}"/></endpoint></call><respond/>
  </inSequence></resource></api>
  <api name="built" context="/built"><resource methods="POST"><inSequence><builder/></inSequence></resource></api>
  <api name="dropped" context="/dropped"><resource methods="GET"><inSequence><drop/></inSequence></resource></api>
</definitions>"#;

#[test]
fn a_failure_is_never_acknowledged() {
    let toml = "[limits]\nbuffered_body = \"16KiB\"\nbranches = 2\n[mediation]\naccepted_after_fault = [\"kept\"]";
    let (_folder, server) = start("failing", FAILING, toml);
    let json = "application/json";
    let large = format!("{{\"a\": \"{}\"}}", "x".repeat(100_000));
    for (path, content_type, body, expected) in [
        ("/reads", json, "{\"a\":", 400),
        ("/reads", json, large.as_str(), 413),
        ("/services/Reads", json, "{\"a\":", 400),
        ("/services/Reads", "application/xml", "<a><b></a>", 400),
        ("/services/Expressions", json, "{\"a\":", 400),
        ("/services/Expressions", "application/xml", "<a><b></a>", 400),
        ("/services/Expressions", json, "", 200),
        ("/services/Logs", json, "{\"a\":", 400),
        ("/services/Logs", json, "{\"a\": 1}", 200),
        ("/services/Logs", json, " \n", 200),
        ("/services/Logs", "application/xml", "<a><b></a>", 400),
        ("/gathers", json, "{\"a\":", 400),
        ("/gathers", json, "{\"a\": 1}", 200),
        ("/parts", json, "{\"a\":", 400),
        ("/parts", json, "{\"a\": 1}", 200),
        ("/addressed", json, "{\"id\":", 400),
        ("/built", json, "{\"a\":", 400),
        ("/built", "multipart/related; boundary=b", "--b\r\nContent-Type: text/xml\r\n\r\n<a>\r\n--b--", 400),
        ("/built", "multipart/form-data; boundary=b", "--b\r\n\r\n1", 400),
        ("/built", "application/octet-stream", "<a", 202),
        ("/many", "application/xml", "<l><i/><i/><i/></l>", 500),
        ("/store", json, "{}", 500),
    ] {
        let reply = server.post(path, content_type, body);
        assert_eq!(reply.status, expected, "{path} {content_type}: {}", reply.body);
    }
    let gzip = &[("Content-Type", json), ("Content-Encoding", "gzip")];
    let reply = support::Connection::open(server.http).request("POST", "/reads", gzip, b"this is not gzip");
    assert_eq!(reply.status, 400, "{}", reply.body);
    for content_type in ["text/plain", "application/octet-stream", "application/xml", json] {
        let headers = &[("Content-Type", content_type), ("Content-Encoding", "gzip")];
        let reply = support::Connection::open(server.http).request("POST", "/built", headers, b"this is not gzip");
        assert_eq!(reply.status, 400, "{content_type}: {}", reply.body);
    }
    assert_eq!(server.get("/limited").status, 429);
    for (path, expected) in [("/branch", 502), ("/deep", 500), ("/thrown", 500), ("/kept", 202), ("/dropped", 202)] {
        assert_eq!(server.get(path).status, expected, "{path}: {}", server.log());
    }
    assert_eq!(server.get("/gone").status, 502);
    let reply = server.get("/gone");
    assert_eq!(reply.status, 503);
    assert!(reply.head.contains("\r\nRetry-After: 30\r\n"), "{}", reply.head);
}

#[test]
fn a_body_that_does_not_arrive_whole_is_never_acknowledged() {
    let (_folder, server) = start("parts", FAILING, "timeouts.body = \"200ms\"");
    let send = |path: &str, framing: &str, body: &str, ends: bool| {
        let mut client = TcpStream::connect(("127.0.0.1", server.http)).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n{framing}\r\n\r\n{body}");
        client.write_all(head.as_bytes()).unwrap();
        if ends {
            client.shutdown(Shutdown::Write).unwrap();
        }
        status(&mut client)
    };
    for path in ["/reads", "/services/Reads", "/services/Logs", "/store"] {
        assert_eq!(send(path, "Content-Length: 100", "{\"a\":", false), 408, "{path}: the rest does not come");
        assert_eq!(send(path, "Content-Length: 100", "{\"a\":", true), 400, "{path}: the client ends its side");
        assert_eq!(
            send(path, "Transfer-Encoding: chunked", "zz\r\n{}\r\n0\r\n\r\n", false),
            400,
            "{path}: a bad chunk"
        );
        assert_eq!(send(path, "Transfer-Encoding: chunked", "5\r\n{\"a\":\r\n", true), 400, "{path}: no last chunk");
    }
}

#[test]
fn an_aggregate_that_cannot_complete_is_a_failure() {
    let backend = Backend::start();
    let call = format!(
        "<call><endpoint><address uri='http://127.0.0.1:{}'/></endpoint></call><payloadFactory media-type='json'>\
         <format>{{\"a\": 1}}</format><args/></payloadFactory>",
        backend.port
    );
    let no_call = "<payloadFactory media-type='json'><format>{\"b\": 2}</format><args/></payloadFactory>";
    let aggregate = "<aggregate id='c'><completeCondition><messageCount min='-1' max='-1'/></completeCondition>\
                     <onComplete expression='json-eval($)'><respond/></onComplete></aggregate>";
    let api = |name: &str, branches: &[&str], after: &str| {
        let targets: String =
            branches.iter().map(|branch| format!("<target><sequence>{branch}</sequence></target>")).collect();
        format!(
            "<api name='{name}' context='/{name}'><resource methods='GET'><inSequence><clone id='c'>{targets}</clone>{after}\
             </inSequence></resource></api>"
        )
    };
    let out_path = |name: &str, out: &str| {
        let target =
            format!("<target><endpoint><address uri='http://127.0.0.1:{}'/></endpoint></target>", backend.port);
        format!(
            "<api name='{name}' context='/{name}'><resource methods='GET'><inSequence><clone id='c'>{target}{target}</clone>\
             </inSequence><outSequence>{out}</outSequence></resource></api>"
        )
    };
    let gathered = |name: &str, branch: &str| {
        format!(
            "<api name='{name}' context='/{name}'><resource methods='GET'><inSequence><scatter-gather target='body' \
             result-content-type='JSON'><aggregation expression='${{payload}}'/><sequence>{branch}</sequence></scatter-gather>\
             <respond/></inSequence></resource></api>"
        )
    };
    let in_sequence = "<sequence key='joining'/>";
    let artifacts = [
        format!("<sequence name='joining'>{aggregate}</sequence>"),
        api("both", &[&call, &call], aggregate),
        // The second branch ends with its own sequence, as in Micro Integrator: only one that called a backend goes on.
        api("one", &[&call, no_call], aggregate),
        api("dropped", &[&call, "<drop/>"], aggregate),
        api("none", &[no_call, no_call], aggregate),
        api("inside", &[no_call, no_call], in_sequence),
        api("acknowledged", &[no_call, no_call], aggregate),
        api("all-dropped", &["<drop/>", "<drop/>"], aggregate),
        api("alone", &[no_call, no_call], ""),
        // No branch gets to the aggregate, whether it called a backend or not.
        api("filtered", &[no_call, no_call], &format!("<filter xpath='true()'><then>{aggregate}</then></filter>")),
        api(
            "other-case",
            &[&call, &call],
            &format!("<switch source='get-property(&quot;axis2&quot;, &quot;HTTP_SC&quot;)'><case regex='204'>{aggregate}</case></switch>"),
        ),
        api("else", &[&call], &format!("<filter xpath='true()'><then><log/></then><else>{aggregate}</else></filter>")),
        api("deeper", &[no_call], "<filter xpath='true()'><then><call-template target='joins'/></then></filter>"),
        format!("<template name='joins'><sequence>{aggregate}</sequence></template>"),
        out_path("sent", &format!("<filter xpath='false()'><then>{aggregate}</then></filter>")),
        out_path("forgotten", "<log/>"),
        // One message was enough.
        api("enough", &[&call, no_call], &aggregate.replace("-1", "1").replace("<respond/>", "<log/>")),
        gathered("lost-branch", "<clone><target><sequence><throwError type='T' errorMessage='the aggregate is incomplete'/></sequence></target></clone>"),
        gathered("found-branch", no_call),
    ]
    .concat();
    let artifacts = format!("<definitions xmlns='http://ws.apache.org/ns/synapse'>{artifacts}</definitions>");
    let toml = "mediation.accepted_after_fault = [\"acknowledged\"]";
    let (_folder, server) = start("incomplete", &artifacts, toml);
    for (path, expected) in [
        ("/both", 200),
        ("/one", 500),
        ("/dropped", 500),
        ("/none", 500),
        ("/inside", 500),
        ("/acknowledged", 202),
        ("/all-dropped", 202),
        ("/alone", 202),
        ("/filtered", 500),
        ("/other-case", 500),
        ("/else", 500),
        ("/deeper", 500),
        ("/sent", 500),
        ("/forgotten", 202),
        ("/enough", 202),
        ("/lost-branch", 500),
        ("/found-branch", 200),
    ] {
        let reply = server.get(path);
        assert_eq!(reply.status, expected, "{path}: {}\n{}", reply.body, server.log());
        let names_it = reply.body.contains("the aggregate is incomplete");
        assert_eq!(names_it, expected == 500 && path != "/lost-branch", "{path}: {}", reply.body);
    }
}

#[test]
fn errors_name_no_address_but_the_id_under_which_the_log_has_it() {
    let (_folder, mut server) = start("errors", FAILING, "");
    for (path, secret) in [("/gone", "127.0.0.1:1"), ("/branch", "127.0.0.1:1"), ("/thrown", "10.1.2.3")] {
        for accept in ["application/json", "application/xml"] {
            let mut client = support::Connection::open(server.http);
            let body = client.request("GET", path, &[("Accept", accept)], b"").body;
            assert!(!body.contains("127.0.0.1") && !body.contains("10.1.2.3") && !body.contains("os error"), "{body}");
            let (_, rest) = body.split_once("correlation_id").unwrap_or_else(|| panic!("{path}: {body}"));
            let id: String = rest
                .trim_start_matches(['"', ':', '>', ' '])
                .chars()
                .take_while(|letter| letter.is_ascii_hexdigit() || *letter == '-')
                .collect();
            assert_eq!(id.len(), 36, "{body}");
            server.wait_until_logged(&format!("a line of {id} with its reason"), |log| {
                log.lines().any(|line| line.contains(&id) && (line.contains(secret) || line.contains("SUSPENDED")))
            });
        }
    }
}
