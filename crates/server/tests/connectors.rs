//! Connectors that are made of templates, as a user has them: a zip in a Carbon application, or beside a suite.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use std::io::{Cursor, Write};

use support::{Folder, Server, penstock};

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

const CONNECTOR: &[u8] = b"<connector><component name='greeter' package='org.example.connector'>
    <dependency component='config'/><dependency component='words'/><description>Greets.</description></component></connector>";
const CONFIG: &[u8] = b"<component name='config' type='synapse/template'><subComponents>
    <component name='init'><file>init.xml</file></component></subComponents></component>";
const WORDS: &[u8] = b"<component name='words' type='synapse/template'><subComponents>
    <component name='greet'><file>greet.xml</file></component>
    <component name='shout'><file>shout.xml</file></component></subComponents></component>";
const INIT: &[u8] =
    b"<template xmlns='http://ws.apache.org/ns/synapse' name='init'><parameter name='language'/><sequence>
    <property name='greeter.language' expression='$func:language'/></sequence></template>";
const GREET: &[u8] = b"<template xmlns='http://ws.apache.org/ns/synapse' name='greet'><parameter name='name'/>
    <parameter name='sign' defaultValue='!'/><sequence>
    <switch source='$ctx:greeter.language'><case regex='de'><property name='word' value='Hallo'/></case>
      <default><property name='word' value='Hello'/></default></switch>
    <payloadFactory media-type='json'><format>{\"text\": \"$1 $2$3\"}</format><args><arg expression='$ctx:word'/>
      <arg expression='$func:name'/><arg expression='$func:sign'/></args></payloadFactory></sequence></template>";
const SHOUT: &[u8] = b"<template xmlns='http://ws.apache.org/ns/synapse' name='shout'><sequence>
    <class name='org.example.Shouter'/></sequence></template>";

const API: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='G' context='/greet'>
  <resource methods='GET' uri-template='/{who}'><inSequence>
    <greeter.greet configKey='german'><name>{get-property('uri.var.who')}</name></greeter.greet><respond/>
  </inSequence></resource>
  <resource methods='POST' url-mapping='/english'><inSequence>
    <greeter.init><language>en</language></greeter.init>
    <greeter.greet><name>Ms ${payload.name}</name><sign>?</sign></greeter.greet><respond/>
  </inSequence></resource></api>";
const ENTRY: &str = "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='german'><greeter.init><language>de</language></greeter.init></localEntry>";
const IMPORT: &str =
    "<import xmlns='http://ws.apache.org/ns/synapse' name='greeter' package='org.example.connector' status='enabled'/>";

fn connector() -> Vec<u8> {
    zip(&[
        ("connector.xml", CONNECTOR),
        ("config/component.xml", CONFIG),
        ("config/init.xml", INIT),
        ("words/component.xml", WORDS),
        ("words/greet.xml", GREET),
        ("words/shout.xml", SHOUT),
        ("lib/shouter.jar", b"PK"),
        ("icon/icon-small.png", b"x"),
    ])
}

fn application() -> Vec<u8> {
    let parts = [
        ("api", "synapse/api", "g.xml"),
        ("entry", "synapse/local-entry", "e.xml"),
        ("lib", "synapse/lib", "greeter-1.0.zip"),
    ];
    let artifact = |name: &str, kind: &str, file: &str| {
        format!("<artifact name='{name}' version='1.0' type='{kind}'><file>{file}</file></artifact>")
    };
    let list: String = parts
        .iter()
        .map(|(name, ..)| format!("<dependency artifact='{name}' version='1.0' include='true'/>"))
        .collect();
    let list = format!(
        "<artifacts><artifact name='app' version='1.0' type='carbon/application'>{list}</artifact></artifacts>"
    );
    let described: Vec<String> = parts.iter().map(|(name, kind, file)| artifact(name, kind, file)).collect();
    zip(&[
        ("artifacts.xml", list.as_bytes()),
        ("api_1.0/artifact.xml", described[0].as_bytes()),
        ("api_1.0/g.xml", API.as_bytes()),
        ("entry_1.0/artifact.xml", described[1].as_bytes()),
        ("entry_1.0/e.xml", ENTRY.as_bytes()),
        ("lib_1.0/artifact.xml", described[2].as_bytes()),
        ("lib_1.0/greeter-1.0.zip", &connector()),
    ])
}

#[test]
fn a_connector_in_an_application_runs() {
    let folder = Folder::new("connector-car");
    folder.write("app.car", application());
    let server = Server::start(&folder, &["run", "app.car"], "");
    let reply = server.get("/greet/Anna");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"text\": \"Hallo Anna!\"}"), "{}", server.log());
    let reply = server.post("/greet/english", "application/json", "{\"name\": \"Smith\"}");
    assert_eq!((reply.status, reply.body.as_str()), (200, "{\"text\": \"Hello Ms Smith?\"}"), "{}", server.log());
}

#[test]
fn what_needs_java_is_said_once_and_where_it_is_called() {
    let folder = Folder::new("connector-java");
    folder.write("libs/greeter.zip", connector());
    folder.write("libs/imports/greeter.xml", IMPORT);
    folder.write("libs/entry.xml", ENTRY);
    folder.write(
        "libs/calls.xml",
        "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'>\n<greeter.shout/>\n<other.thing/>\n<greeter.greet><name>x</name></greeter.greet></sequence>",
    );
    let done = penstock(&folder.0, &["check", "libs"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(done.status, 1, "{}", done.stdout);
    assert_eq!(lines.len(), 4, "{}", done.stdout);
    assert_eq!(
        lines[0],
        "libs/calls.xml:2:1: error: the operation `greeter.shout` cannot run: the connector `greeter` has Java code \
         (`lib/shouter.jar`), which cannot be run"
    );
    assert!(
        lines[1].starts_with("libs/calls.xml:3:1: error: no connector has the operation `other.thing`"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("libs/greeter.zip!connector.xml:1:1: warning: the connector `greeter` has Java code"),
        "{}",
        lines[2]
    );
}
