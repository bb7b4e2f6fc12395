//! `[classes]`: WebAssembly modules from files that replace Java classes.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Folder, Server, penstock};

/// A module whose `mediate` gives 1, byte by byte: a type, a function, a memory, two exports and the code.
const GOES_ON: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x05\x01\x60\0\x01\x7f\
    \x03\x02\x01\0\
    \x05\x03\x01\0\x01\
    \x07\x14\x02\x06memory\x02\0\x07mediate\0\0\
    \x0a\x06\x01\x04\0\x41\x01\x0b";

#[test]
fn a_class_is_a_module_of_the_configuration() {
    let folder = Folder::new("classes");
    folder.write("good.wasm", GOES_ON);
    folder.write(
        "artifacts/a.xml",
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'><resource methods='GET'><inSequence>\
         <class name='com.example.Good'/><payloadFactory media-type='text'><format>went on</format><args/></payloadFactory>\
         <respond/></inSequence></resource></api>",
    );
    let server = Server::start(&folder, &["run", "artifacts"], "[classes]\n\"com.example.Good\" = \"good.wasm\"");
    assert_eq!(server.get("/a").body, "went on", "{}", server.log());
    drop(server);

    folder.write("penstock.toml", "[classes]\n\"com.example.Good\" = \"gone.wasm\"\n");
    let checked = penstock(&folder.0, &["check", "artifacts"]);
    assert_eq!(checked.status, 1);
    let why = "gone.wasm:1:1: error: the module of the class `com.example.Good` cannot be read";
    assert!(checked.stdout.contains(why), "{}", checked.stdout);
}
