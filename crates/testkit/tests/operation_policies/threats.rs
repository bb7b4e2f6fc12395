//! Threat protectors: what a message may look like.

use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Backend, Setup, TestGateway};
use serde_json::json;

use crate::classes::class;
use crate::{defined, open_api, request, show, using};

const JSON: (&str, &str) = ("content-type", "application/json");
const XML: (&str, &str) = ("content-type", "application/xml");

fn gateway(policy: penstock_catalog::PolicyUse) -> (TestGateway, Backend) {
    let backend = Backend::start(show);
    let api = open_api(&backend, &["POST /a/*"], request(vec![policy]));
    (TestGateway::start(Setup::of([api])), backend)
}

/// Limits of a template of API Manager's form: properties, then the class.
#[test]
fn json_has_limits() {
    let template = r#"<property name="maxPropertyCount" value="3"/><property name="maxStringLength" value="{{ longest }}"/>
      <property name="maxArrayElementCount" value="2"/><property name="maxKeyLength" value="5"/>
      <property name="maxJsonDepth" value="2"/>
      <class name="org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator"/>"#;
    let (gateway, backend) = gateway(defined(using("json", &[("longest", "4")]), None, Some(template)));
    let mut client = gateway.client();
    let prefix = "Request is failed due to JSON schema validation failure: ";
    for (body, why) in [
        (r#"{"a": {"b": [1, "four"]}}"#, None),
        ("", None),
        (r#"{"a": {"b": {"c": 1}}}"#, Some("Depth Limit Reached")),
        (r#"{"a": "fives"}"#, Some("Max String Length Reached")),
        (r#"[1, 2, 3]"#, Some("Max Array Length Reached")),
        (r#"{"sixsix": 1}"#, Some("Max Key Length Reached")),
        (r#"{"a": 1, "b": 2, "c": 3, "d": 4}"#, Some("Max Property Count Reached")),
        (r#"{"a": "#, Some("Error occurred while parsing the JSON payload")),
    ] {
        let reply = client.request("POST", "/shop/a/x", &[JSON], body.as_bytes());
        match why {
            None => {
                assert_eq!((reply.status, backend.last().text()), (200, body.to_owned()));
            }
            Some(why) => {
                assert_eq!((reply.status, &reply.json()["code"]), (400, &json!("400")), "{body}");
                assert_eq!(reply.json()["error_description"], json!(format!("{prefix}{why}")), "{body}");
            }
        }
    }
    let without = class("org.wso2.carbon.apimgt.gateway.mediators.JsonSchemaValidator", &[]);
    let (gateway, _backend) = self::gateway(without);
    let reply = gateway.client().request("POST", "/shop/a/x", &[JSON], b"{}");
    assert!(reply.status == 400 && reply.text().contains("maxPropertyCount"), "{}", reply.text());
}

#[test]
fn xml_has_limits() {
    let limits = [("maxXMLDepth", "2"), ("maxElementCount", "4"), ("maxChildrenPerElement", "2")];
    let more = [("maxAttributeCount", "1"), ("maxAttributeLength", "3")];
    let (gateway, backend) = gateway(using("xmlValidator", &[&limits[..], &more[..]].concat()));
    let mut client = gateway.client();
    for (body, why) in [
        ("<a><b x='123'/><c/></a>", None),
        ("<a><b><c/></b></a>", Some("Depth limit")),
        ("<a><b/><c/><d/></a>", Some("Child Elements limit")),
        ("<a x='1' y='2'/>", Some("number of attributes")),
        ("<a x='1234'/>", Some("attribute size")),
        ("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", Some("document type declaration")),
        ("<a>", Some("XML Validation Failed")),
    ] {
        let reply = client.request("POST", "/shop/a/x", &[XML], body.as_bytes());
        match why {
            None => assert_eq!((reply.status, backend.last().text()), (200, body.to_owned())),
            Some(why) => assert!(reply.status == 400 && reply.text().contains(why), "{body}: {}", reply.text()),
        }
    }
    // What is no XML is not let through either.
    assert_eq!(client.request("POST", "/shop/a/x", &[JSON], b"{}").status, 400);
}

/// A pattern is looked for in body, address and fields, also behind escapes.
#[test]
fn patterns_keep_messages_out() {
    let (gateway, _backend) = gateway(using("regexPolicy", &[]));
    let mut client = gateway.client();
    let mut sent = |target: &str, field: &str, body: &str| {
        let reply = client.request("POST", target, &[JSON, ("x-client", field)], body.as_bytes());
        let text = reply.text();
        let found = ["Payload", "Query Parameters", "HTTP Headers"].into_iter().find(|place| text.contains(place));
        (reply.status, found)
    };
    for (target, field, body, expected) in [
        ("/shop/a/x?q=selection", "from", r#"{"a": "b"}"#, (200, None)),
        ("/shop/a/x", "", r#"{"a": "DROP  Table pets"}"#, (400, Some("Payload"))),
        ("/shop/a/x", "", r#"{"a": "dr\u006fp table pets"}"#, (400, Some("Payload"))),
        ("/shop/a/x?q=1%27", "", "{}", (400, Some("Query Parameters"))),
        ("/shop/a/x?q=delete+from+pets", "", "{}", (400, Some("Query Parameters"))),
        ("/shop/a/x", "select a from b", "{}", (400, Some("HTTP Headers"))),
    ] {
        assert_eq!(sent(target, field, body), expected, "{target} {field} {body}");
    }
}

/// API Manager's template names the pattern as a value beside an expression that finds nothing, over several lines.
#[test]
fn patterns_of_a_template_are_taken() {
    let template = r#"<property name="threatType" expression="get-property('threatType')" value="Words"/>
      <property name="regex" expression="get-property('regex')" value=".*bad\s*word.*|
        .*worse.*"/>
      <property name="enabledCheckHeaders" expression="get-property('enabledCheckHeaders')" value="false"/>
      <class name="org.wso2.carbon.apimgt.gateway.mediators.RegularExpressionProtector"/>"#;
    let backend = Backend::start(show);
    let api = open_api(&backend, &["POST /a/*"], request(vec![defined(using("own", &[]), None, Some(template))]));
    let setup = Setup::of([api]).configured(|config| config.error_style = ErrorStyle::ApiManager);
    let gateway = TestGateway::start(setup);
    let mut client = gateway.client();
    let reply = client.request("POST", "/shop/a/x", &[JSON, ("x-client", "BadWord")], b"{}");
    assert_eq!(reply.status, 200, "{}", reply.text());
    let reply = client.request("POST", "/shop/a/x", &[JSON], b"\"a BadWord\"");
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(reply.json()["description"], json!("Words Threat detected in Payload"));
}
