//! `penstock run HOME`: the home of a Micro Integrator as it stands on a disk.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Connection, Folder, Server, penstock};

const SYNAPSE: &str = "repository/deployment/server/synapse-configs/default";

const SECURED: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='S' context='/s'>
  <resource methods='GET' url-mapping='/user'><inSequence><payloadFactory media-type='text'><format>$1</format>
    <args><arg expression=\"get-property('file', 'word')\"/></args></payloadFactory><respond/></inSequence></resource>
  <handlers><handler class='org.wso2.micro.integrator.security.handler.RESTBasicAuthHandler'/></handlers></api>";

const STYLED: &str = "<api xmlns='http://ws.apache.org/ns/synapse' name='X' context='/x'>
  <resource methods='POST' url-mapping='/style'><inSequence><xslt key='style'/><respond/></inSequence></resource>
  <resource methods='GET' url-mapping='/db'><inSequence><dblookup><connection><pool><dsName>Orders</dsName></pool></connection>
    <statement><sql>select 'from a database' as word</sql><result name='word' column='word'/></statement></dblookup>
    <payloadFactory media-type='text'><format>$1</format><args><arg expression='$ctx:word'/></args></payloadFactory>
    <respond/></inSequence></resource></api>";

const STYLESHEET: &str = "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>
  <xsl:template match='/'><styled/></xsl:template></xsl:stylesheet>";

const DATA_SOURCES: &str = "<datasources-configuration><providers/><datasources><datasource><name>Orders</name>
  <jndiConfig><name>Orders</name></jndiConfig><definition type='RDBMS'><configuration><url>jdbc:h2:mem:orders</url>
  <username>sa</username><password></password></configuration></definition></datasource></datasources></datasources-configuration>";

/// The ports of a Micro Integrator: HTTP, HTTPS, management.
const PORTS: [u16; 3] = [8280, 8243, 9154];

fn home(folder: &Folder, toml: &str) {
    folder.write("mi/conf/deployment.toml", toml);
    folder.write("mi/conf/file.properties", "word=of the home\n");
    folder.write("mi/conf/datasources/orders-datasources.xml", DATA_SOURCES);
    folder.write(&format!("mi/{SYNAPSE}/api/s.xml"), SECURED);
    folder.write(&format!("mi/{SYNAPSE}/api/x.xml"), STYLED);
    folder.write(
        &format!("mi/{SYNAPSE}/local-entries/style.xml"),
        "<localEntry xmlns='http://ws.apache.org/ns/synapse' key='style' src='file:samples/style.xslt'/>",
    );
    folder.write("mi/samples/style.xslt", STYLESHEET);
}

#[test]
fn a_home_is_served_with_its_own_configuration() {
    let folder = Folder::new("home");
    let offset = support::ports::offset(&PORTS);
    home(
        &folder,
        &format!(
            "[server]\noffset = {offset}\n[super_admin]\nusername = \"admin\"\npassword = \"$secret{{admin}}\"\n\
             [[internal_apis.file_user_store.users]]\nuser.name = \"anna\"\nuser.password = \"$env{{PENSTOCK_NO_WORD}}\"\n\
             [secrets]\nadmin = \"[pa55]\"\n"
        ),
    );
    let done = penstock(&folder.0, &["check", "mi"]);
    assert!(
        done.stderr.contains("mi/conf/deployment.toml:8:17: error: `$env{PENSTOCK_NO_WORD}`: the environment variable"),
        "{}",
        done.stderr
    );
    let toml = std::fs::read_to_string(folder.0.join("mi/conf/deployment.toml")).unwrap();
    folder.write("mi/conf/deployment.toml", toml.replace("$env{PENSTOCK_NO_WORD}", "word"));
    let mut server = Server::start_plain(&folder, &["run", "mi"]);
    let http = server.http;
    assert_eq!(http, 8280 + offset);
    let mut client = Connection::open(http);
    let mut ask = |credentials: Option<&str>| {
        use base64::Engine as _;
        let value = credentials.map(|pair| format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair)));
        let headers: Vec<(&str, &str)> = value.iter().map(|value| ("Authorization", value.as_str())).collect();
        let reply = client.request("GET", "/s/user", &headers, b"");
        (reply.status, reply.body)
    };
    let good = (200, "of the home".to_owned());
    assert_eq!(ask(Some("admin:pa55")), good, "{}", server.log());
    assert_eq!(ask(Some("anna:word")), good);
    assert_eq!((ask(Some("anna:pa55")).0, ask(None).0), (403, 401));
    let styled = Connection::open(http).request("POST", "/x/style", &[("Content-Type", "application/xml")], b"<a/>");
    assert!(styled.body.contains("<styled/>"), "{styled:?}\n{}", server.log());
    let looked_up = Connection::open(http).request("GET", "/x/db", &[], b"");
    assert_eq!(looked_up.body, "from a database", "{}", server.log());
    server.signal(rustix::process::Signal::TERM);
    assert!(server.wait().success());
}

#[test]
fn what_has_no_meaning_here_is_reported_once_and_keystores_are_relative_to_the_home() {
    let folder = Folder::new("home-report");
    home(
        &folder,
        "[server]\noffset = 3\n[keystore.primary]\nfile_name = \"repository/resources/security/none.jks\"\npassword = \"x\"\n\
         [truststore]\nfile_name = \"trust.jks\"\npassword = \"x\"\n[secrets]\ndb = \"bm90IHBsYWlu\"\n",
    );
    folder.write("mi/repository/resources/security/trust.jks", "not read by `check`");
    for (file, content) in [
        ("conf/log4j2.properties", "rootLogger.level = DEBUG"),
        ("conf/synapse.properties", "synapse.x=1"),
        ("lib/driver.jar", "x"),
        ("lib/other.jar", "x"),
        ("dropins/mediator.jar", "x"),
        ("repository/deployment/server/axis2services/s.aar", "x"),
    ] {
        folder.write(&format!("mi/{file}"), content);
    }
    let done = penstock(&folder.0, &["check", "mi"]);
    assert_eq!(
        done.stderr.lines().collect::<Vec<_>>(),
        [
            "mi/conf/deployment.toml:4:13: warning: `keystore.primary.file_name`: \
             `mi/repository/resources/security/none.jks` does not exist",
            "mi/conf/deployment.toml:10:6: warning: `secrets.db` is encrypted by Micro Integrator's cipher tool, which is not supported; write `[value]`, `env:NAME` or `file:PATH`",
        ],
        "{}",
        done.stdout
    );
    let lines: Vec<&str> = done.stdout.lines().filter(|line| line.starts_with("mi:")).collect();
    assert_eq!(lines.len(), 1, "{}", done.stdout);
    for part in
        ["`conf/log4j2.properties`", "`conf/synapse.properties`", "`lib/*.jar` (2;", "`dropins/*.jar` (1;", "/*.aar`"]
    {
        assert!(lines[0].contains(part), "{part}: {}", lines[0]);
    }
    assert!(
        done.stdout.contains("basic authentication refuses every request: no user is configured"),
        "{}",
        done.stdout
    );
    // Named on the command line, a keystore that is not there is a mistake.
    let named = penstock(&folder.0, &["check", "mi", "--config", "mi/conf/deployment.toml"]);
    assert_eq!(named.status, 1, "{}", named.stderr);
    assert!(named.stderr.contains("deployment.toml:4:13: error: `keystore.primary.file_name`"), "{}", named.stderr);
}

#[test]
fn a_local_entry_without_its_file_is_missing_and_nothing_else_is_blamed() {
    let folder = Folder::new("home-entry");
    home(&folder, "[server]\noffset = 3\n");
    std::fs::remove_file(folder.0.join("mi/samples/style.xslt")).unwrap();
    let done = penstock(&folder.0, &["check", "mi"]);
    assert!(done.stdout.contains("`file:samples/style.xslt` is not among the files; there is no local entry `style`"));
    assert!(!done.stdout.contains("not well-formed"), "{}", done.stdout);
}
