//! Files on SFTP and FTP servers. The servers are those of `tools/with-file-servers`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::{Folder, Server};

/// Nothing that is waited for here takes longer on any machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// More than a file that is read at once.
const LARGE_BYTES: usize = 3_000_000;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set: run `tools/with-file-servers cargo test …`"))
}

fn wait_until(server: &Server, what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}\n{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder on a server that each account may write.
fn folder_of(root: &str, name: &str) -> PathBuf {
    let folder = PathBuf::from(root).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    folder
}

/// A file of the server that its account may remove and rename.
fn put(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// Polls `in` of a server and writes each file to `out`, and what fails to `failed`.
fn artifacts(address: &str, options: &str, parameters: &str) -> String {
    let query = if options.is_empty() { String::new() } else { format!("?{options}") };
    let query = query.replace('&', "&amp;");
    format!(
        r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <inboundEndpoint name="Remote" protocol="file" sequence="take"><parameters>
    <parameter name="interval">50</parameter>
    <parameter name="transport.vfs.FileURI">{address}/in{query}</parameter>
    <parameter name="transport.vfs.ContentType">text/plain</parameter>
    <parameter name="transport.vfs.ActionAfterProcess">MOVE</parameter>
    <parameter name="transport.vfs.MoveAfterProcess">{address}/in/done{query}</parameter>
    <parameter name="transport.vfs.ActionAfterFailure">MOVE</parameter>
    <parameter name="transport.vfs.MoveAfterFailure">{address}/in/failed{query}</parameter>
    {parameters}
  </parameters></inboundEndpoint>
  <sequence name="take">
    <filter source="$trp:FILE_NAME" regex="bad.*"><then><throwError type="MINE" errorMessage="it broke"/></then></filter>
    <property name="OUT_ONLY" value="true"/>
    <header name="transport.vfs.ReplyFileName" scope="transport" expression="$trp:FILE_NAME"/>
    <call><endpoint><address uri="vfs:{address}/out/{query}"/></endpoint></call>
    <payloadFactory media-type="text"><format>line</format><args/></payloadFactory>
    <call><endpoint><address uri="vfs:{address}/out/all.log{append}"/></endpoint></call>
  </sequence>
</definitions>"#,
        append = if query.is_empty() {
            "?transport.vfs.Append=true".to_owned()
        } else {
            format!("{query}&amp;transport.vfs.Append=true")
        },
    )
}

/// Small, large, empty and failing files pass through the server behind the address.
fn check(name: &str, address: &str, root: &str, options: &str, parameters: &str) {
    let folder = Folder::new(name);
    let top = folder_of(root, name);
    let (incoming, out) = (folder_of(root, &format!("{name}/in")), folder_of(root, &format!("{name}/out")));
    folder.write("artifacts/a.xml", artifacts(&format!("{address}/{name}"), options, parameters));
    let large: Vec<u8> = (0..LARGE_BYTES).map(|at| b'a' + (at / 1000 % 26) as u8).collect();
    put(&incoming, "small one.txt", b"small");
    put(&incoming, "large.txt", &large);
    put(&incoming, "bad.txt", b"bad");
    let server = Server::start(&folder, &["run", "artifacts"], "");
    wait_until(&server, "the files are processed", || names(&incoming) == ["done", "failed"]);
    assert_eq!(names(&incoming.join("done")), ["large.txt", "small one.txt"], "{}", server.log());
    assert_eq!(names(&incoming.join("failed")), ["bad.txt"]);
    assert_eq!(std::fs::read(out.join("small one.txt")).unwrap(), b"small");
    assert!(std::fs::read(out.join("large.txt")).unwrap() == large, "the large file differs");
    assert_eq!(std::fs::read_to_string(out.join("all.log")).unwrap(), "lineline");
    assert_eq!(names(&out), ["all.log", "large.txt", "small one.txt"]);
    // A file of the same name replaces the one that was moved before.
    put(&incoming, "small one.txt", b"again");
    let (moved, written) = (incoming.join("done/small one.txt"), out.join("small one.txt"));
    wait_until(&server, "the second file is moved", || std::fs::read(&moved).unwrap() == b"again");
    assert_eq!(std::fs::read(&written).unwrap(), b"again");
    drop(server);
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn files_pass_over_sftp() {
    let options = format!(
        "transport.vfs.SFTPIdentities={}&transport.vfs.SFTPUserDirIsRoot=false",
        variable("PENSTOCK_TEST_SFTP_KEY")
    );
    let known = variable("PENSTOCK_TEST_SFTP_KNOWN");
    let parameters = format!(r#"<parameter name="transport.vfs.SFTPKnownHosts">{known}</parameter>"#);
    check("sftp", &variable("PENSTOCK_TEST_SFTP"), &variable("PENSTOCK_TEST_SFTP_FOLDER"), &options, &parameters);
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn a_server_with_another_key_is_refused() {
    let folder = Folder::new("sftp-refused");
    let options = format!(
        "transport.vfs.SFTPIdentities={}&transport.vfs.SFTPKnownHosts={}",
        variable("PENSTOCK_TEST_SFTP_KEY"),
        variable("PENSTOCK_TEST_SFTP_WRONG")
    );
    folder.write("artifacts/a.xml", artifacts(&variable("PENSTOCK_TEST_SFTP"), &options, ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log("the key of the server is not the known one");
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn files_pass_over_ftp() {
    check("ftp", &variable("PENSTOCK_TEST_FTP"), &variable("PENSTOCK_TEST_FTP_FOLDER"), "", "");
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn files_pass_over_ftps() {
    let options = format!("vfs.ssl.truststore={}", variable("PENSTOCK_TEST_FTPS_TRUST"));
    check("ftps", &variable("PENSTOCK_TEST_FTPS"), &variable("PENSTOCK_TEST_FTP_FOLDER"), &options, "");
}

#[test]
fn a_server_that_is_away_makes_the_endpoint_faulty_without_its_password() {
    let folder = Folder::new("remote-away");
    let port = support::ports::CLOSED;
    folder.write("artifacts/a.xml", artifacts(&format!("sftp://me:hidden@127.0.0.1:{port}"), "", ""));
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    server.wait_for_log(&format!("Remote: sftp://me:***@127.0.0.1:{port}/in: "));
    let health = server.admin("/healthz").body;
    assert!(health.contains("Remote"), "{health}");
    assert!(!server.log().contains("hidden"), "{}", server.log());
}

/// The file connector writes, lists, copies, moves, reads and deletes in a folder of the server behind the address.
fn check_connector(name: &str, address: &str, root: &str, options: &str) {
    let folder = Folder::new(name);
    let top = folder_of(root, name);
    let (scheme, rest) = address.split_once("://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let (host, port) = host.split_once(':').unwrap();
    let kind = scheme.to_uppercase();
    folder.write(
        "artifacts/a.xml",
        format!(
            r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <localEntry key="Remote"><file.init><connectionType>{kind}</connectionType><host>{host}</host><port>{port}</port>
    <workingDir>/{path}/{name}</workingDir>{options}</file.init></localEntry>
  <api name="A" context="/a"><resource methods="POST"><inSequence>
    <file.write configKey="Remote"><filePath>in/deep/a.txt</filePath><responseVariable>r</responseVariable></file.write>
    <file.copy configKey="Remote"><sourcePath>in</sourcePath><targetPath>copy</targetPath><responseVariable>r</responseVariable></file.copy>
    <file.move configKey="Remote"><sourcePath>in</sourcePath><targetPath>moved</targetPath>
      <createParentDirectories>true</createParentDirectories><responseVariable>r</responseVariable></file.move>
    <file.delete configKey="Remote"><path>copy</path><responseVariable>deleted</responseVariable></file.delete>
    <file.listFiles configKey="Remote"><directoryPath>/</directoryPath><recursive>true</recursive>
      <responseVariable>list</responseVariable></file.listFiles>
    <log><message>${{vars.list.payload}} ${{vars.deleted.payload.numOfDeletedFiles}}</message></log>
    <file.read configKey="Remote"><path>moved/deep/a.txt</path><responseVariable>r</responseVariable>
      <overwriteBody>true</overwriteBody></file.read>
    <respond/>
  </inSequence></resource></api>
</definitions>"#
        ),
    );
    let mut server = Server::start(&folder, &["run", "artifacts"], "");
    let reply = server.post("/a", "text/plain", "content");
    assert_eq!((reply.status, reply.body.as_str()), (200, "content"), "{}", server.log());
    let nested = r#"[{"name":"deep","file":["a.txt"]}]"#;
    server.wait_for_log(&format!(r#""directory":[{{"name":"moved","directory":{nested}}}]}}}} 3"#));
    assert_eq!(names(&top), ["moved"]);
    drop(server);
    std::fs::remove_dir_all(top).unwrap();
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn the_connector_works_over_ftp() {
    check_connector("ftp-connector", &variable("PENSTOCK_TEST_FTP"), &variable("PENSTOCK_TEST_FTP_FOLDER"), "");
}

#[test]
#[ignore = "needs the servers of tools/with-file-servers"]
fn the_connector_works_over_ftps() {
    let trust = format!("<trustStorePath>{}</trustStorePath>", variable("PENSTOCK_TEST_FTPS_TRUST"));
    check_connector("ftps-connector", &variable("PENSTOCK_TEST_FTPS"), &variable("PENSTOCK_TEST_FTP_FOLDER"), &trust);
}
