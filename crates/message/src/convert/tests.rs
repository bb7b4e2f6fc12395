//! Bodies from media type to media type, as data.

use bytes::Bytes;

use super::{Conversion, Shape};
use crate::{Body, BodyError, Form, Message, Method, SoapVersion, Value};

const ENVELOPE_11: &str =
    "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><a>1</a></s:Body></s:Envelope>";
const ENVELOPE_12: &str =
    "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"><s:Body><a>1</a></s:Body></s:Envelope>";

fn message(content_type: &str, body: impl Into<Bytes>) -> Message {
    let mut message = Message { method: Method::Post, body: Body::bytes(body), ..Message::default() };
    if !content_type.is_empty() {
        message.headers.set("Content-Type", content_type);
    }
    message
}

const DECLARATION: &str = "<?xml version='1.0' encoding='UTF-8'?>";

/// The text and its type; the declaration that envelopes begin with is left out, it has a test of its own.
fn out(message: &mut Message, shape: Shape) -> (String, Option<String>) {
    let (text, content_type) = whole(message, shape);
    (text.strip_prefix(DECLARATION).unwrap_or(&text).to_owned(), content_type)
}

fn whole(message: &mut Message, shape: Shape) -> (String, Option<String>) {
    let output = message.output(&Conversion::default(), shape).unwrap();
    let bytes = match output.form {
        Form::Bytes(bytes) => bytes,
        Form::Empty => Bytes::new(),
        other => panic!("{other:?}"),
    };
    (String::from_utf8(bytes.to_vec()).unwrap(), output.content_type)
}

#[test]
fn message_type_converts_every_kind_into_every_other() {
    let text = "<text xmlns=\"http://ws.apache.org/commons/ns/payload\">hello</text>";
    for (from, body, to, expected) in [
        ("application/json", r#"{"a":[1,2.50]}"#, "application/xml", "<jsonObject><a>1</a><a>2.50</a></jsonObject>"),
        ("application/xml", "<a><b>1</b></a>", "application/json", r#"{"a":{"b":1}}"#),
        ("text/xml", ENVELOPE_11, "application/json", r#"{"a":1}"#),
        ("text/xml", ENVELOPE_11, "application/xml", "<a>1</a>"),
        ("text/xml", ENVELOPE_11, "application/soap+xml", ENVELOPE_12),
        ("application/soap+xml", ENVELOPE_12, "text/xml", ENVELOPE_11),
        (
            "application/xml",
            "<p:a xmlns:p='urn:p' xmlns:q='urn:q'/>",
            "text/xml; charset=utf-8",
            "<p:a xmlns:p=\"urn:p\" xmlns:q=\"urn:q\"/>",
        ),
        ("application/x-www-form-urlencoded", "a=1&b=x+y", "application/json", r#"{"mediate":{"a":1,"b":"x y"}}"#),
        ("application/x-www-form-urlencoded", "a=1", "application/xml", "<mediate><a>1</a></mediate>"),
        ("application/xml", "<m><a>1 2</a></m>", "application/x-www-form-urlencoded", "a=1+2"),
        ("text/plain", "hello", "application/xml", text),
        ("text/plain", "hello", "application/json", r#"{"text":"hello"}"#),
        ("application/xml", text, "text/plain", "hello"),
        (
            "application/octet-stream",
            "hello",
            "application/xml",
            "<binary xmlns=\"http://ws.apache.org/commons/ns/payload\">aGVsbG8=</binary>",
        ),
        (
            "application/xml",
            "<binary xmlns=\"http://ws.apache.org/commons/ns/payload\">aGVs bG8=</binary>",
            "application/octet-stream",
            "hello",
        ),
        ("", "<a/>", "application/json", r#"{"a":null}"#),
        ("", "{\"a\":1}", "application/xml", "<jsonObject><a>1</a></jsonObject>"),
        ("application/vnd.x+json", "[]", "application/xml", "<jsonArray/>"),
    ] {
        let mut message = message(from, body);
        message.set_message_type(to);
        let (bytes, content_type) = out(&mut message, Shape::Same);
        assert_eq!(bytes, expected, "{from} to {to}");
        let said = content_type.unwrap_or_default();
        assert!(said.starts_with(to.split(';').next().unwrap()), "{from} to {to} says {said}");
        assert_eq!(
            said.matches("charset=UTF-8").count(),
            usize::from(crate::MediaType::parse(to).has_charset()),
            "{said}"
        );
    }
}

#[test]
fn unchanged_bodies_keep_their_bytes() {
    let odd = "{ \"a\" : 1.0e0,\n \"a\":2 }";
    let mut untouched = message("application/json; charset=utf-8", odd);
    untouched.json(&Conversion::default()).unwrap();
    untouched.xml(&Conversion::default()).unwrap();
    assert_eq!(out(&mut untouched, Shape::Same), (odd.into(), None));
    untouched.set_message_type("application/json");
    assert_eq!(out(&mut untouched, Shape::Same), (odd.into(), Some("application/json; charset=utf-8".into())));

    for (content_type, body, shape) in [
        ("text/xml", ENVELOPE_11, Shape::Soap11),
        ("application/soap+xml", ENVELOPE_12, Shape::Soap12),
        ("application/xml", "<a />", Shape::Pox),
        ("text/xml", "<?xml version='1.0'?><!-- x --><a />", Shape::Pox),
        ("image/png", "\u{1}", Shape::Reply),
    ] {
        assert_eq!(out(&mut message(content_type, body), shape), (body.into(), None), "{content_type}");
    }
}

#[test]
fn shapes_make_envelopes_or_take_them_off() {
    for (content_type, body, shape, expected, said) in [
        ("text/xml", ENVELOPE_11, Shape::Soap12, ENVELOPE_12, "application/soap+xml; charset=UTF-8"),
        ("application/soap+xml", ENVELOPE_12, Shape::Soap11, ENVELOPE_11, "text/xml; charset=UTF-8"),
        ("text/xml", ENVELOPE_11, Shape::Pox, "<a>1</a>", "application/xml; charset=UTF-8"),
        (
            "application/json",
            "{\"a\":1}",
            Shape::Pox,
            "<jsonObject><a>1</a></jsonObject>",
            "application/xml; charset=UTF-8",
        ),
        (
            "",
            "",
            Shape::Soap11,
            "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body/></soapenv:Envelope>",
            "text/xml; charset=UTF-8",
        ),
    ] {
        let (bytes, content_type) = out(&mut message(content_type, body), shape);
        assert_eq!((bytes.as_str(), content_type.as_deref()), (expected, Some(said)));
    }
    let mut json = message("application/json", "");
    assert_eq!(out(&mut json, Shape::Same), (String::new(), None));
}

#[test]
fn faults_change_with_the_version_and_for_plain_clients() {
    let fault_11 = "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header><h:b xmlns:h=\"urn:h\" s:mustUnderstand=\"1\" s:actor=\"http://schemas.xmlsoap.org/soap/actor/next\">x</h:b></s:Header><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>broken</faultstring><faultactor>urn:a</faultactor><detail><d>1</d></detail></s:Fault></s:Body></s:Envelope>";
    let fault_12 = "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\"><s:Header><h:b xmlns:h=\"urn:h\" s:mustUnderstand=\"true\" s:role=\"http://www.w3.org/2003/05/soap-envelope/role/next\">x</h:b></s:Header><s:Body><s:Fault><s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text xml:lang=\"en-US\">broken</s:Text></s:Reason><s:Role>urn:a</s:Role><s:Detail><d>1</d></s:Detail></s:Fault></s:Body></s:Envelope>";
    assert_eq!(out(&mut message("text/xml", fault_11), Shape::Soap12).0, fault_12);
    assert_eq!(out(&mut message("application/soap+xml", fault_12), Shape::Soap11).0, fault_11);

    let mut own_code = message("text/xml", fault_11.replace("s:Server", "x:Own"));
    assert!(
        out(&mut own_code, Shape::Soap12)
            .0
            .contains("<s:Value>s:Receiver</s:Value><s:Subcode><s:Value>x:Own</s:Value></s:Subcode>")
    );

    // The answer of a flow to a client that spoke no SOAP, and to one that did.
    for (content_type, expected) in [
        ("", "<Exception>broken</Exception>"),
        ("application/xml", "<Exception>broken</Exception>"),
        ("application/json", r#"{"Exception":"broken"}"#),
        ("text/xml", "<Exception>broken</Exception>"),
        ("application/soap+xml", fault_12),
    ] {
        let envelope = message("text/xml", fault_11).xml(&Conversion::default()).unwrap();
        let mut answer = message(content_type, "");
        answer.body.set(Form::Xml(envelope));
        let output = answer.output(&Conversion::default(), Shape::Reply).unwrap();
        assert!(output.soap_fault, "{content_type}");
        let Form::Bytes(bytes) = output.form else { panic!("{content_type}: {:?}", output.form) };
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        assert_eq!(text.strip_prefix(DECLARATION).unwrap_or(&text), expected, "{content_type}");
    }
}

#[test]
fn envelopes_that_are_built_begin_with_a_declaration_and_nothing_else_does() {
    for (content_type, body, shape, declared) in [
        ("text/xml", ENVELOPE_11, Shape::Soap12, true),
        ("application/json", "{\"a\":1}", Shape::Soap11, true),
        ("application/json", "{\"a\":1}", Shape::Pox, false),
        ("text/xml", ENVELOPE_11, Shape::Pox, false),
        ("text/xml", ENVELOPE_11, Shape::Same, false),
    ] {
        let (text, _) = whole(&mut message(content_type, body), shape);
        assert_eq!(text.starts_with(DECLARATION), declared, "{content_type} {shape:?}");
    }
}

#[test]
fn a_client_that_spoke_soap_gets_envelopes() {
    let conversion = Conversion::default();
    for (action, expected) in [
        (
            true,
            "<soapenv:Envelope xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"><soapenv:Body><jsonObject><a>1</a></jsonObject></soapenv:Body></soapenv:Envelope>",
        ),
        (false, "<jsonObject><a>1</a></jsonObject>"),
    ] {
        let mut flow = message("text/xml", "<a/>");
        if action {
            flow.headers.set("soapaction", "urn:a");
        }
        flow.set_message_type("application/json");
        flow.output(&conversion, Shape::Same).unwrap();
        flow.replace_by_reply(message("application/json", "{\"a\":1}"));
        flow.set_message_type("text/xml");
        assert_eq!(out(&mut flow, Shape::Reply).0, expected);
    }
}

#[test]
fn an_action_survives_the_other_soap() {
    let envelope =
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><a/></s:Body></s:Envelope>";
    let mut flow = message("text/xml", envelope);
    flow.headers.set("SOAPAction", "\"urn:a\"");
    let output = flow.output(&Conversion::default(), Shape::Soap12).unwrap();
    assert_eq!(output.content_type.as_deref(), Some("application/soap+xml; charset=UTF-8; action=\"urn:a\""));
    assert_eq!(message("application/soap+xml; action=\"urn:b\"", "").action(), Some("urn:b"));
    assert_eq!(message("text/xml; action=\"urn:b\"", "").action(), None);
}

#[test]
fn encodings_and_charsets_are_decoded_when_read() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"{\"a\":1}").unwrap();
    let packed = gzip.finish().unwrap();
    let mut message = message("application/json", packed.clone());
    message.headers.set("Content-Encoding", "gzip");
    assert_eq!(message.json(&Conversion::default()).unwrap()["a"], 1);
    let output = message.output(&Conversion::default(), Shape::Same).unwrap();
    assert!(matches!(output.form, Form::Bytes(bytes) if bytes == packed) && !output.decoded);
    message.set_message_type("application/xml");
    let output = message.output(&Conversion::default(), Shape::Same).unwrap();
    assert!(output.decoded);

    let mut latin = self::message("application/xml; charset=ISO-8859-1", &b"<a>\xe9</a>"[..]);
    assert_eq!(&*latin.text(&Conversion::default()).unwrap(), "<a>é</a>");
    latin.set_message_type("application/xml");
    assert_eq!(out(&mut latin, Shape::Same), ("<a>é</a>".into(), Some("application/xml; charset=UTF-8".into())));
}

#[test]
fn a_form_that_was_set_decides_and_says_its_type() {
    let mut message = message("application/json", "{}");
    message.body.set(Form::Json(std::sync::Arc::new(serde_json::json!({"b": 1}))));
    assert_eq!(out(&mut message, Shape::Same), (r#"{"b":1}"#.into(), None));
    message.headers.remove("Content-Type");
    assert_eq!(out(&mut message, Shape::Same).1.as_deref(), Some("application/json; charset=UTF-8"));
    message.axis2.set("ContentType", Value::string("application/x"));
    assert_eq!(out(&mut message, Shape::Same).1.as_deref(), Some("application/x"));
    assert_eq!(message.xml(&Conversion::default()).unwrap().soap, SoapVersion::None);
}

#[test]
fn a_body_is_read_as_its_type_and_encoding_say() {
    let part =
        |content_type: &str, content: &str| format!("--x\r\nContent-Type: {content_type}\r\n\r\n{content}\r\n--x--");
    for (content_type, body, is_valid) in [
        ("application/json", "{\"a\": 1}".to_owned(), true),
        ("application/json", "{\"a\": ".to_owned(), false),
        ("text/xml", ENVELOPE_11.to_owned(), true),
        ("text/xml", ENVELOPE_11[..50].to_owned(), false),
        ("multipart/form-data; boundary=x", part("text/plain", "1"), true),
        ("multipart/form-data; boundary=x", "--x\r\n\r\n1".to_owned(), false),
        ("multipart/related; boundary=x", part("text/xml", "<a/>"), true),
        ("multipart/related; boundary=x", part("text/xml", "<a>"), false),
        ("multipart/mixed; boundary=x", part("application/json", "[1]"), true),
        ("multipart/mixed; boundary=x", part("application/json", "[1"), false),
        ("multipart/mixed; boundary=x", part("image/png", "<a>"), true),
        ("multipart/mixed; boundary=x", "--x--".to_owned(), false),
        ("text/csv", "1,2".to_owned(), true),
        ("image/png", "<a>".to_owned(), true),
        ("", "<a>".to_owned(), true),
    ] {
        let mut plain = message(content_type, body.clone());
        let outcome = plain.read_as_sent(&Conversion::default());
        assert_eq!(outcome.is_ok(), is_valid, "{content_type}: {body}: {outcome:?}");
        let mut packed = message(content_type, body.clone());
        packed.headers.set("Content-Encoding", "gzip");
        let outcome = packed.read_as_sent(&Conversion::default());
        assert!(matches!(outcome, Err(BodyError::Malformed(_))), "{content_type}: {body}: {outcome:?}");
    }
    let mut made = message("application/json", "x");
    made.body.set(Form::Text("no json".into()));
    assert_eq!(made.read_as_sent(&Conversion::default()), Ok(()));
}

#[test]
fn what_cannot_be_read_says_where_and_why() {
    let reason = |content_type: &str, body: &str| {
        let mut message = message(content_type, body.to_owned());
        let json = content_type.contains("json");
        let outcome =
            if json { message.json(&Conversion::default()).err() } else { message.xml(&Conversion::default()).err() };
        match outcome {
            Some(BodyError::Malformed(reason)) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason("application/json", "{\n \"a\" 1}"), "2:6: the body is not JSON: `:` is expected here");
    assert!(
        reason("application/xml", "<a>\n<b></a>").starts_with("2:"),
        "{}",
        reason("application/xml", "<a>\n<b></a>")
    );
    assert!(reason("text/xml", "<!DOCTYPE a><a/>").contains("the body is not XML"));
    let deep = "[".repeat(100_000);
    assert!(reason("application/json", &deep).contains("nest too deep"));

    let mut control = message("application/json", "{\"a\":\"x\u{1}y\nz\"}");
    assert_eq!(control.json(&Conversion::default()).unwrap()["a"], "x\u{1}y\nz");
    let mut forgiven = message("application/json", "{city: Oslo}");
    assert!(matches!(forgiven.xml(&Conversion::default()), Err(BodyError::Malformed(_))));
    assert_eq!(forgiven.json(&Conversion::default()).unwrap()["city"], "Oslo");
    assert!(matches!(forgiven.strict_json(&Conversion::default()), Err(BodyError::Malformed(_))));
    assert_eq!(forgiven.json(&Conversion::default()).unwrap()["city"], "Oslo");
    assert!(matches!(forgiven.xml(&Conversion::default()), Err(BodyError::Malformed(_))));
    // Malformed JSON is tolerated, a broken compression is not.
    let mut packed = message("application/json", "{city: Oslo}");
    packed.headers.set("Content-Encoding", "gzip");
    assert!(matches!(packed.json(&Conversion::default()), Err(BodyError::Malformed(_))));
    let mut empty = message("application/json", "");
    assert!(matches!(empty.json(&Conversion::default()), Err(BodyError::Unsupported { from: "empty", .. })));
    let mut form = message(
        "multipart/form-data; boundary=x",
        "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--",
    );
    assert_eq!(
        &*form
            .xml(&Conversion::default())
            .map(|envelope| envelope.document.string_value(envelope.body).into_owned())
            .unwrap(),
        "1"
    );
    let mut related = message(
        "multipart/related; boundary=x; start=\"<r>\"",
        format!(
            "--x\r\nContent-ID: <o>\r\n\r\nother\r\n--x\r\nContent-ID: <r>\r\nContent-Type: text/xml\r\n\r\n{ENVELOPE_11}\r\n--x--"
        ),
    );
    assert_eq!(related.xml(&Conversion::default()).unwrap().soap, SoapVersion::Soap11);
}
