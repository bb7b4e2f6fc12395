//! Services as their clients see them over real sockets: what they answer when nothing in a flow does.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod support;

use support::{Folder, Server};

const SERVICES: &str = r#"<definitions xmlns="http://ws.apache.org/ns/synapse">
  <api name="back" context="/back">
    <resource methods="GET POST" uri-template="/*"><inSequence>
      <payloadFactory media-type="text"><format>$1 $2</format><args>
        <arg expression="get-property('axis2', 'HTTP_METHOD')"/><arg expression="get-property('axis2', 'REST_URL_POSTFIX')"/>
      </args></payloadFactory>
      <respond/>
    </inSequence></resource>
  </api>
  <api name="front" context="/front">
    <resource methods="GET POST"><inSequence>
      <property name="found" expression="json-eval($.a)"/>
      <header name="X-Found" scope="transport" expression="concat('[', $ctx:found, ']')"/>
      <call><endpoint><address uri="local:///back/first"/></endpoint></call>
      <call><endpoint><address uri="local://back/second"/></endpoint></call>
      <respond/>
    </inSequence></resource>
  </api>
  <api name="below" context="/below">
    <resource methods="GET" url-mapping="/*"><inSequence>
      <payloadFactory media-type="text"><format>$1</format><args>
        <arg expression="get-property('REST_SUB_REQUEST_PATH')"/></args></payloadFactory>
      <respond/>
    </inSequence></resource>
  </api>
  <template name="later"><parameter name="x"/><sequence>
    <payloadFactory media-type="json"><format>{"x": "later"}</format><args/></payloadFactory>
    <property name="x" expression="$func:x"/>
    <payloadFactory media-type="text"><format>$1</format><args><arg expression="$ctx:x"/></args></payloadFactory>
    <respond/>
  </sequence></template>
  <api name="late" context="/late">
    <resource methods="POST"><inSequence>
      <call-template target="later"><with-param name="x" value="{{//x/text()}}"/></call-template>
    </inSequence></resource>
  </api>
  <api name="broken" context="/broken">
    <resource methods="GET"><inSequence><throwError type="MINE" errorMessage="it broke"/></inSequence></resource>
  </api>
  <api name="missing" context="/missing">
    <resource methods="GET" uri-template="/{what}">
      <inSequence>
        <switch source="get-property('uri.var.what')">
          <case regex="sequence"><sequence key="nothing"/></case>
          <case regex="template"><call-template target="nothing"/></case>
          <case regex="endpoint"><call><endpoint key="nothing"/></call></case>
          <case regex="computed"><call><endpoint key-expression="'else'"/></call></case>
        </switch>
        <respond/>
      </inSequence>
      <faultSequence>
        <payloadFactory media-type="text"><format>$1 $2</format><args>
          <arg expression="get-property('ERROR_CODE')"/><arg expression="get-property('ERROR_MESSAGE')"/>
        </args></payloadFactory>
        <respond/>
      </faultSequence>
    </resource>
  </api>
  <proxy name="Secure" transports="https"><target><inSequence><respond/></inSequence></target></proxy>
  <proxy name="Stopped" startOnLoad="false"><target><inSequence><respond/></inSequence></target></proxy>
  <proxy name="Rest"><target><inSequence>
    <send><endpoint><address uri="local:///back"/></endpoint></send>
  </inSequence><outSequence><send/></outSequence></target></proxy>
</definitions>"#;

#[test]
fn services_answer_as_their_clients_expect() {
    let folder = Folder::new("services");
    folder.write("artifacts/services.xml", SERVICES);
    let mut server = Server::start(&folder, &["run", "artifacts"], "");

    // The second call is a POST: the method belonged to the client's request.
    let reply = server.get("/front");
    assert_eq!((reply.status, reply.body.as_str()), (200, "POST /second"), "{}", server.log());

    let soap = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Body><a/></s:Body></s:Envelope>";
    assert_eq!(server.post("/services/Rest/more", "application/json", "{}").body, "POST /more");
    assert_eq!(server.post("/services/Rest/more", "text/xml", soap).body, "POST ");

    for (path, expected) in [("", "/"), ("/", "/"), ("/a?b=c", "/a?b=c"), ("?b=c", "?b=c")] {
        assert_eq!(server.get(&format!("/below{path}")).body, expected, "{path}");
    }

    // The body cannot be read where the template is called, and is another where the parameter is used.
    assert_eq!(server.post("/late", "application/xml", "<not closed").body, "later", "{}", server.log());

    for (what, expected) in [
        ("sequence", "0 Sequence named Value {name ='null', keyValue ='nothing'} cannot be found"),
        ("template", "0 Sequence template nothing cannot be found"),
        ("endpoint", "305100 Couldn't find the endpoint with the key : nothing"),
        ("computed", "305100 Couldn't find the endpoint with the key : else"),
    ] {
        assert_eq!(server.get(&format!("/missing/{what}")).body, expected);
    }

    let reply = server.post("/services/Secure", "text/xml", soap);
    assert_eq!(reply.status, 500);
    assert!(
        reply.body.contains("The service cannot be found for the endpoint reference (EPR) /services/Secure"),
        "{}",
        reply.body
    );

    let reply = server.post("/services/Stopped", "text/xml", soap);
    assert_eq!(reply.status, 500);
    assert!(reply.body.contains("attempting to access an inactive service: Stopped"), "{}", reply.body);

    assert_eq!(server.get("/broken").status, 500);
    server.wait_for_log("MESSAGE = Executing default 'fault' sequence, ERROR_CODE = MINE, ERROR_MESSAGE = it broke");
}
