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
fn a_connector_with_java_code_is_reported_once_and_the_rest_of_the_artifact_is_served() {
    let folder = Folder::new("connector-java");
    folder.write("libs/greeter.zip", connector());
    folder.write("libs/imports/greeter.xml", IMPORT);
    folder.write("libs/entry.xml", ENTRY);
    folder.write(
        "libs/calls.xml",
        "<api xmlns='http://ws.apache.org/ns/synapse' name='A' context='/a'>
<resource methods='GET' url-mapping='/shout'><inSequence><greeter.shout/><respond/></inSequence>
<faultSequence><payloadFactory media-type='text'><format>fault: $1</format><args><arg expression='$ctx:ERROR_MESSAGE'/></args>
</payloadFactory><respond/></faultSequence></resource>
<resource methods='GET' url-mapping='/greet'><inSequence><greeter.greet configKey='german'><name>x</name></greeter.greet>
<other.thing/></inSequence></resource>
<resource methods='GET' url-mapping='/ok'><inSequence><greeter.shout/><other.more/><respond/></inSequence></resource></api>",
    );
    let done = penstock(&folder.0, &["check", "libs"]);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!((done.status, lines.len()), (0, 3), "{}", done.stdout);
    assert_eq!(
        lines[0],
        "libs/calls.xml:2:58: warning: the connector `greeter` cannot run: `libs/greeter.zip!connector.xml` has Java code \
         (`lib/shouter.jar`); these operations are faults: `greeter.shout`"
    );
    assert!(lines[1].starts_with("libs/calls.xml:6:1: warning: the connector `other` cannot run"), "{}", lines[1]);
    assert!(lines[1].ends_with("these operations are faults: `other.thing`, `other.more`"), "{}", lines[1]);
    let server = Server::start(&folder, &["run", "libs"], "");
    let reply = server.get("/a/shout");
    assert_eq!(reply.body, "fault: no connector operation that can run is named `greeter.shout`");
    assert_eq!(penstock(&folder.0, &["check", "libs", "--strict"]).status, 1);
}

#[test]
fn an_operation_that_a_loaded_connector_lacks_is_an_error() {
    let folder = Folder::new("connector-operation");
    folder.write(
        "libs/greeter.zip",
        zip(&[("connector.xml", CONNECTOR), ("config/component.xml", CONFIG), ("config/init.xml", INIT)]),
    );
    folder
        .write("libs/s.xml", "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'><greeter.initt/></sequence>");
    let done = penstock(&folder.0, &["check", "libs"]);
    assert!(
        done.stdout.starts_with(
            "libs/s.xml:1:60: error: the connector `greeter` has no operation `initt`, did you mean `greeter.init`?\n"
        ),
        "{}",
        done.stdout
    );
}

/// An API that calls out by the HTTP connector: with a token, and with the response in a variable.
const CALLING: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='H' context='/h'>
  <resource methods='GET' uri-template='/{what}'><inSequence>
    <http.get configKey='Backend'><relativePath>/${params.pathParams.what}</relativePath><headers>[]</headers></http.get>
    <respond/></inSequence></resource>
  <resource methods='POST' url-mapping='/kept'><inSequence>
    <http.post configKey='Backend'><relativePath>x</relativePath><requestBodyType>JSON</requestBodyType>
      <requestBodyJson>'{\"a\": ${payload.a}}'</requestBodyJson><responseVariable>v</responseVariable></http.post>
    <property name='X-Got' expression='${vars.v.payload.body.a}' scope='transport'/><respond/></inSequence></resource></api>";

const CONNECTION: &str = "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='Backend'><http.init>
  <connectionType>HTTP</connectionType><baseUrl>${configs.backend}/b/</baseUrl><authType>OAuth</authType>
  <oauthAuthorizationMode>Payload</oauthAuthorizationMode><oauthGrantType>Client Credentials</oauthGrantType>
  <clientId>me</clientId><clientSecret>mine</clientSecret><tokenUrl>{${configs.backend + '/t/token'}}</tokenUrl>
  <additionalProperties>scope:read write</additionalProperties>
  <timeoutDuration>5000</timeoutDuration><timeoutAction>Fault</timeoutAction><name>Backend</name></http.init></localEntry>";

/// A backend that shows the token it got, and its token service.
const BACKEND: &str = "<definitions xmlns='http://ws.apache.org/ns/synapse'>
<api name='B' context='/b'>
  <resource methods='GET' uri-template='/{x}'><inSequence><payloadFactory media-type='json'>
    <format>{\"path\": \"$1\", \"authorization\": \"$2\"}</format><args><arg expression=\"get-property('uri.var.x')\"/>
    <arg expression='$trp:Authorization'/></args></payloadFactory><respond/></inSequence></resource>
  <resource methods='POST' uri-template='/{x}'><inSequence><payloadFactory media-type='json'>
    <format>{\"body\": ${payload}}</format></payloadFactory><respond/></inSequence></resource></api>
<api name='T' context='/t'><resource methods='POST' url-mapping='/token'><inSequence><payloadFactory media-type='json'>
  <format>{\"access_token\": \"$1-$2-$3\", \"expires_in\": 3600}</format><args><arg expression='//client_id'/>
  <arg expression='//grant_type'/><arg expression='//scope'/></args></payloadFactory><respond/></inSequence></resource></api>
</definitions>";

#[test]
fn the_http_connector_is_native_with_its_archive_named_in_maven_or_absent() {
    let behind = Folder::new("http-connector-backend");
    behind.write("b/b.xml", BACKEND);
    let backend = Server::start(&behind, &["run", "b"], "");
    let java = zip(&[
        (
            "connector.xml",
            b"<connector><component name='http' package='p'><dependency component='functions'/></component></connector>",
        ),
        (
            "functions/component.xml",
            b"<component name='functions' type='synapse/template'><subComponents><component name='get'><file>get.xml</file>\
              </component></subComponents></component>",
        ),
        ("functions/get.xml", b"<template name='get'><sequence><class name='org.example.Url'/></sequence></template>"),
        ("org/example/Url.class", b"x"),
    ]);
    let maven = "<project xmlns='http://maven.apache.org/POM/4.0.0'><dependencies><dependency><groupId>g</groupId>\
                 <artifactId>mi-connector-http</artifactId><version>1</version><type>zip</type></dependency>\
                 </dependencies></project>";
    for (name, file, content) in [
        ("zip", "p/src/main/wso2mi/resources/connectors/http.zip", java.as_slice()),
        ("maven", "p/pom.xml", maven.as_bytes()),
        ("absent", "p/pom.xml", b"<project/>"),
    ] {
        let folder = Folder::new(&format!("http-connector-{name}"));
        folder.write("p/src/main/wso2mi/artifacts/apis/h.xml", CALLING);
        folder.write("p/src/main/wso2mi/artifacts/local-entries/b.xml", CONNECTION);
        folder.write("file.properties", format!("backend=http://127.0.0.1:{}", backend.http));
        folder.write(file, content);
        let done = penstock(&folder.0, &["check", "p"]);
        assert_eq!((done.status, done.stdout.lines().count()), (0, 1), "{name}: {}", done.stdout);
        let server = Server::start(&folder, &["run", "p"], "");
        let reply = server.get("/h/surgery");
        let expected = "{\"path\": \"surgery\", \"authorization\": \"Bearer me-client_credentials-read write\"}";
        assert_eq!((reply.status, reply.body.as_str()), (200, expected), "{name}: {}", server.log());
        let reply = server.post("/h/kept", "application/json", "{\"a\":7,\"own\":1}");
        assert_eq!((reply.status, reply.body.as_str()), (200, "{\"a\":7,\"own\":1}"), "{name}: {}", server.log());
        assert!(reply.head.to_lowercase().contains("x-got: 7"), "{}", reply.head);
    }
}

#[test]
fn archives_named_by_maven_are_distinguished() {
    let folder = Folder::new("connector-maven");
    folder.write(
        "p/pom.xml",
        "<project><dependencies><dependency><artifactId>mi-connector-csv</artifactId><type>zip</type></dependency>\
         </dependencies></project>",
    );
    folder.write(
        "p/src/main/wso2mi/artifacts/sequences/s.xml",
        "<sequence xmlns='http://ws.apache.org/ns/synapse' name='S'><csv.csvToJson/></sequence>",
    );
    let done = penstock(&folder.0, &["check", "p"]);
    assert!(
        done.stdout.contains(
            "the connector `csv` cannot run: `p/pom.xml` names its archive `mi-connector-csv`, which is not in the project; \
             put the zip into `src/main/wso2mi/resources/connectors`; these operations are faults: `csv.csvToJson`"
        ),
        "{}",
        done.stdout
    );
}
