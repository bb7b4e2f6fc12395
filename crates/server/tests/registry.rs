//! What flows write to the registry, from the running binary: it is there at once, and after the next start.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Folder, Server, penstock};

const API: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='State' context='/state'>\
    <resource methods='POST' url-mapping='/write'><inSequence>\
      <property name='{$url:key}' scope='registry' expression='$url:value'/><respond/></inSequence>\
      <faultSequence><property name='HTTP_SC' value='400' scope='axis2'/><respond/></faultSequence></resource>\
    <resource methods='GET' url-mapping='/read'><inSequence>\
      <payloadFactory media-type='text'><format>$1</format><args>\
        <arg expression=\"get-property('registry', $url:key)\"/></args></payloadFactory><respond/></inSequence></resource>\
    <resource methods='GET' url-mapping='/entries'><inSequence>\
      <enrich><source type='inline' key='note'/><target type='property' property='note'/></enrich>\
      <enrich><source type='inline' key='gov:note'/><target type='property' property='written'/></enrich>\
      <payloadFactory media-type='text'><format>$1 $2</format><args>\
        <arg expression='$ctx:note'/><arg expression='$ctx:written'/></args></payloadFactory><respond/></inSequence></resource></api>";

#[test]
fn what_flows_write_is_there_after_the_next_start() {
    let folder = Folder::new("registry");
    folder.write("artifacts/state.xml", API);
    let entry = "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='note'>local</localEntry>";
    folder.write("artifacts/note.xml", entry);
    let toml = "[registry]\nfolder = \"kept/registry\"";
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    let write = |server: &Server, key: &str, value: &str| {
        server.post(&format!("/state/write?key={key}&value={value}"), "text/plain", "").status
    };
    let read = |server: &Server, key: &str| server.get(&format!("/state/read?key={key}")).body;
    for (key, value) in [("conf:a/b", "one"), ("conf:a/b@owner", "anna"), ("conf:a/b", "two"), ("c@x:y", "z")] {
        assert_eq!(write(&server, key, value), 200, "{}", server.log());
        assert_eq!(read(&server, key), value);
    }
    assert_eq!(write(&server, "note", "written"), 200);
    assert_eq!(server.get("/state/entries").body, "local written", "{}", server.log());
    for key in ["conf:../../artifacts/state.xml", "gov:.hidden", "/..", "file:/tmp/x"] {
        assert_eq!(write(&server, key, "x"), 400, "{key}");
    }
    let kept = |name: &str| std::fs::read_to_string(folder.0.join("kept/registry").join(name)).unwrap();
    assert_eq!((kept("config/a/b"), kept("config/a/b.properties")), ("two".into(), "owner=anna\n".into()));
    // A folder becomes a symbolic link: nothing is written there.
    std::os::unix::fs::symlink(&folder.0, folder.0.join("kept/registry/local")).unwrap();
    assert_eq!(write(&server, "local:penstock", "x"), 400);
    assert!(!folder.0.join("penstock").exists());
    drop(server);
    std::fs::remove_file(folder.0.join("kept/registry/local")).unwrap();
    let server = Server::start(&folder, &["run", "artifacts"], toml);
    let found = ["conf:a/b", "conf:a/b@owner", "c@x:y"].map(|key| read(&server, key));
    assert_eq!(found, ["two", "anna", "z"], "{}", server.log());
}

#[test]
fn the_folder_is_none_that_is_watched() {
    let folder = Folder::new("registry-watched");
    folder.write("artifacts/state.xml", API);
    folder.write(
        "penstock.toml",
        "[registry]\nfolder = \"artifacts/registry\"\n[listener]\nhttp_port = 0\nhttps = false\n[admin]\nport = 0",
    );
    let ended = penstock(&folder.0, &["run", "artifacts"]);
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("which is watched"), "{}", ended.stderr);
}
