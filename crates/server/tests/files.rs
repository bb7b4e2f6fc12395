//! Files as messages: polled by inbound endpoints and proxy services, written by endpoints.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use support::{Folder, Server};

/// Nothing that is waited for here takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait_until(server: &Server, what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The content of a file that appears.
fn wait_for_file(server: &Server, path: &Path) -> String {
    wait_until(server, &path.display().to_string(), || path.exists());
    std::fs::read_to_string(path).unwrap()
}

/// Puts a file into place as writers should: under another name first.
fn put(folder: &Folder, path: &str, text: &str) -> PathBuf {
    let (parent, name) = path.rsplit_once('/').unwrap();
    let partial = folder.write(&format!("{parent}-partial/{name}"), text);
    let path = folder.0.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::rename(partial, &path).unwrap();
    path
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// An inbound endpoint on `in` that writes each message to `out` under its name, and its artifacts.
fn artifacts(dir: &str, attributes: &str, parameters: &str) -> String {
    format!(
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <inboundEndpoint name="Files" protocol="file" sequence="take" {attributes}><parameters>
    <parameter name="interval">20</parameter>
    <parameter name="transport.vfs.FileURI">file://{dir}/in</parameter>
    {parameters}
  </parameters></inboundEndpoint>
  <sequence name="take">
    <filter source="$trp:FILE_NAME" regex="bad.*"><then><throwError type="MINE" errorMessage="it broke"/></then></filter>
    <filter source="$trp:FILE_NAME" regex="back.*"><then><property name="SET_ROLLBACK_ONLY" value="true"/></then></filter>
    <property name="OUT_ONLY" value="true"/>
    <header name="transport.vfs.ReplyFileName" scope="transport" expression="$trp:FILE_NAME"/>
    <call><endpoint><address uri="vfs:file://{dir}/out/"/></endpoint></call>
  </sequence>
  <sequence name="handle"><log><property name="handled" expression="$trp:FILE_NAME"/></log></sequence>
</definitions>"#
    )
}

const PLAIN: &str = r#"<parameter name="transport.vfs.ContentType">text/plain</parameter>"#;

#[test]
fn a_file_is_moved_when_its_flow_ended_well_and_elsewhere_when_it_did_not() {
    let folder = Folder::new("files-moved");
    let dir = folder.0.display().to_string();
    let parameters = format!(
        r#"{PLAIN}<parameter name="transport.vfs.FileNamePattern">.*\.txt</parameter>
    <parameter name="transport.vfs.ActionAfterProcess">MOVE</parameter>
    <parameter name="transport.vfs.MoveAfterProcess">file://{dir}/done</parameter>
    <parameter name="transport.vfs.ActionAfterFailure">MOVE</parameter>
    <parameter name="transport.vfs.MoveAfterFailure">file://{dir}/failed</parameter>
    <parameter name="transport.vfs.MoveTimestampFormat">yyyy-</parameter>"#
    );
    folder.write("artifacts/a.xml", artifacts(&dir, "", &parameters));
    put(&folder, "in/a.txt", "one");
    put(&folder, "in/bad.txt", "two");
    put(&folder, "in/back.txt", "three");
    put(&folder, "in/other.csv", "four");
    let server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(wait_for_file(&server, &folder.0.join("out/a.txt")), "one");
    wait_until(&server, "three files moved", || names(&folder.0.join("failed")).len() == 2);
    wait_until(&server, "only the file that does not fit is left", || names(&folder.0.join("in")) == ["other.csv"]);
    let year = |name: &str| names(&folder.0.join(name)).iter().map(|name| name[5..].to_owned()).collect::<Vec<_>>();
    assert_eq!(year("done"), ["a.txt"]);
    assert_eq!(year("failed"), ["back.txt", "bad.txt"]);
    let metrics = server.admin("/metric-service/metrics").body;
    let failed =
        r#"penstock_background_service_messages_total{kind="inboundEndpoint",name="Files",outcome="failed"} 2"#;
    assert!(metrics.contains(failed), "{metrics}");
}

#[test]
fn a_handled_fault_is_a_success_and_none_deletes() {
    let folder = Folder::new("files-handled");
    let dir = folder.0.display().to_string();
    let parameters = format!(r#"{PLAIN}<parameter name="transport.vfs.ActionAfterProcess">NONE</parameter>"#);
    folder.write("artifacts/a.xml", artifacts(&dir, r#"onError="handle""#, &parameters));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log(&format!("Provided file uri: file://{dir}/in is invalid. File does not exist"));
    let health = server.admin("/healthz").body;
    assert!(health.contains("Files"), "{health}");
    put(&folder, "in/bad.txt", "two");
    server.wait_for_log("handled = bad.txt");
    wait_until(&server, "the file is deleted", || names(&folder.0.join("in")).is_empty());
}

#[test]
fn text_xml_is_soap_and_what_is_not_fails() {
    let folder = Folder::new("files-soap");
    let dir = folder.0.display().to_string();
    let parameters = r#"<parameter name="transport.vfs.ContentType">text/xml</parameter>
    <parameter name="transport.vfs.ActionAfterFailure">NONE</parameter>"#;
    folder.write("artifacts/a.xml", artifacts(&dir, "", parameters));
    put(&folder, "in/plain.xml", "<plain/>");
    let soap = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a/></s:Body></s:Envelope>";
    put(&folder, "in/soap.xml", soap);
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(wait_for_file(&server, &folder.0.join("out/soap.xml")), soap);
    server.wait_for_log("in/plain.xml: the content type is `text/xml` and the file has no SOAP envelope");
    wait_until(&server, "the failed file is kept", || names(&folder.0.join("in")) == ["plain.xml"]);
    assert_eq!(names(&folder.0.join("out")), ["soap.xml"]);
}

#[test]
fn a_proxy_service_polls_a_folder_and_writes_its_response() {
    let folder = Folder::new("files-proxy");
    let dir = folder.0.display().to_string();
    folder.write(
        "artifacts/a.xml",
        format!(
            r#"<proxy xmlns="http://ws.apache.org/ns/synapse" name="Polled" transports="vfs">
  <parameter name="transport.vfs.FileURI">{dir}/in/*</parameter>
  <parameter name="transport.vfs.ContentType">application/json</parameter>
  <parameter name="transport.vfs.FileNamePattern">.*\.json</parameter>
  <parameter name="transport.PollInterval">20ms</parameter>
  <parameter name="transport.vfs.ActionAfterProcess">NONE</parameter>
  <parameter name="transport.vfs.ReplyFileURI">file://{dir}/replies/</parameter>
  <parameter name="transport.vfs.ReplyFileName">reply.json</parameter>
  <target><inSequence>
    <payloadFactory media-type="json"><format>{{"got": $1}}</format><args><arg evaluator="json" expression="$.n"/></args></payloadFactory>
    <respond/>
  </inSequence></target>
</proxy>"#
        ),
    );
    put(&folder, "in/below/a.json", "{\"n\": 1}");
    let server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(wait_for_file(&server, &folder.0.join("replies/reply.json")), "{\"got\": 1}");
    // A kept file is processed again when it changes.
    put(&folder, "in/below/a.json", "{\"n\": 22}");
    let reply = folder.0.join("replies/reply.json");
    wait_until(&server, "the second response", || std::fs::read_to_string(&reply).unwrap() == "{\"got\": 22}");
    wait_until(&server, "the file is kept", || names(&folder.0.join("in/below")) == ["a.json"]);
    // It is not offered over HTTP.
    assert_eq!(server.post("/services/Polled", "application/json", "{}").status, 500);
}

#[test]
fn a_file_that_is_being_written_waits() {
    let folder = Folder::new("files-growing");
    let dir = folder.0.display().to_string();
    folder.write("artifacts/a.xml", artifacts(&dir, "", PLAIN));
    std::fs::create_dir_all(folder.0.join("in")).unwrap();
    let server = Server::start(&folder, &["run", "artifacts"], "");
    let mut expected = String::new();
    let path = folder.0.join("in/grows.txt");
    for line in 0..40 {
        expected.push_str(&format!("line {line}\n"));
        std::fs::write(&path, &expected).unwrap();
        std::thread::sleep(Duration::from_millis(25));
    }
    assert_eq!(wait_for_file(&server, &folder.0.join("out/grows.txt")), expected);
}

#[test]
fn a_lock_keeps_a_file_until_its_process_ended() {
    let folder = Folder::new("files-locked");
    let dir = folder.0.display().to_string();
    folder.write("artifacts/a.xml", artifacts(&dir, "", PLAIN));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    // The kernel gives no process this number.
    folder.write("in/left.txt.lock", format!("4194305-1-ff:{}:127.0.0.1:1", host.trim()));
    folder.write("in/held.txt.lock", "123:elsewhere:10.0.0.1:1");
    put(&folder, "in/left.txt", "left");
    put(&folder, "in/held.txt", "held");
    let server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(wait_for_file(&server, &folder.0.join("out/left.txt")), "left");
    wait_until(&server, "the lock is gone", || names(&folder.0.join("in")) == ["held.txt", "held.txt.lock"]);
    assert!(!folder.0.join("out/held.txt").exists());
    std::fs::remove_file(folder.0.join("in/held.txt.lock")).unwrap();
    assert_eq!(wait_for_file(&server, &folder.0.join("out/held.txt")), "held");
}

#[test]
fn a_move_that_fails_does_not_repeat_the_flow() {
    let folder = Folder::new("files-unmovable");
    let dir = folder.0.display().to_string();
    // The target folder is a file.
    folder.write("done", "");
    let parameters = format!(
        r#"{PLAIN}<parameter name="transport.vfs.ActionAfterProcess">MOVE</parameter>
    <parameter name="transport.vfs.MoveAfterProcess">file://{dir}/done</parameter>"#
    );
    folder.write("artifacts/a.xml", artifacts(&dir, "", &parameters));
    put(&folder, "in/a.txt", "one");
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("was processed and cannot be moved or deleted");
    wait_until(&server, "the marker", || names(&folder.0.join("in")) == ["a.txt", "a.txt.fail"]);
    std::fs::remove_file(folder.0.join("out/a.txt")).unwrap();
    drop(server);
    // Another process knows it by the marker, and moves it once that is possible.
    std::fs::remove_file(folder.0.join("done")).unwrap();
    let server = Server::start(&folder, &["run", "artifacts"], "");
    assert_eq!(wait_for_file(&server, &folder.0.join("done/a.txt")), "one");
    wait_until(&server, "the marker is gone", || names(&folder.0.join("in")).is_empty());
    assert!(!folder.0.join("out/a.txt").exists(), "the flow ran again");
}

#[test]
fn an_endpoint_appends_and_replaces() {
    let folder = Folder::new("files-written");
    let dir = folder.0.display().to_string();
    folder.write(
        "artifacts/a.xml",
        format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
<api name="append" context="/append"><resource methods="POST"><inSequence>
    <property name="OUT_ONLY" value="true"/>
    <call><endpoint><address uri="vfs:file://{dir}/out/all.txt?transport.vfs.Append=true"/></endpoint></call>
</inSequence></resource></api>
<api name="replace" context="/replace"><resource methods="POST"><inSequence>
    <call><endpoint><address uri="vfs:file://{dir}/out/one%20file.txt"/></endpoint></call>
    <respond/>
</inSequence></resource></api>
<api name="escape" context="/escape"><resource methods="POST"><inSequence>
    <header name="transport.vfs.ReplyFileName" scope="transport" value="../escaped.txt"/>
    <call><endpoint><address uri="vfs:file://{dir}/out/"/></endpoint></call>
    <respond/>
</inSequence></resource></api>
</definitions>"#
        ),
    );
    let server = Server::start(&folder, &["run", "artifacts"], "");
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let port = server.http;
            std::thread::spawn(move || {
                for line in 0..10 {
                    let body = format!("{client}-{line}\n");
                    let reply = support::Connection::open(port).request(
                        "POST",
                        "/append",
                        &[("Content-Type", "text/plain")],
                        body.as_bytes(),
                    );
                    assert_eq!(reply.status, 202);
                }
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let text = std::fs::read_to_string(folder.0.join("out/all.txt")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 40, "{text}");
    for body in ["first", "second"] {
        assert_eq!(server.post("/replace", "text/plain", body).status, 202);
        assert_eq!(std::fs::read_to_string(folder.0.join("out/one file.txt")).unwrap(), body);
    }
    assert_eq!(server.post("/escape", "text/plain", "x").status, 502);
    assert_eq!(names(&folder.0.join("out")), ["all.txt", "one file.txt"]);
    assert!(!folder.0.join("escaped.txt").exists());
}

#[test]
fn no_file_is_lost_when_the_process_is_killed() {
    let folder = Folder::new("files-killed");
    let dir = folder.0.display().to_string();
    folder.write("artifacts/a.xml", artifacts(&dir, "", PLAIN));
    const FILES: usize = 600;
    for number in 0..FILES {
        put(&folder, &format!("in/{number:04}.txt"), &format!("message {number}"));
    }
    let done = || names(&folder.0.join("out")).iter().filter(|name| name.ends_with(".txt")).count();
    for round in 0..8_u64 {
        let mut server = Server::start(&folder, &["run", "artifacts"], "");
        std::thread::sleep(Duration::from_millis(17 * (round + 1) % 90));
        server.signal(Signal::KILL);
        server.wait();
        if done() == FILES {
            break;
        }
    }
    let server = Server::start(&folder, &["run", "artifacts"], "");
    wait_until(&server, "all files processed", || names(&folder.0.join("in")).is_empty());
    for number in 0..FILES {
        let text = std::fs::read_to_string(folder.0.join(format!("out/{number:04}.txt"))).unwrap();
        assert_eq!(text, format!("message {number}"));
    }
}
