//! The mapping between JSON and XML, with its flags.

use penstock_json::mapping::{Options, to_json, to_xml, write_json};
use penstock_xml::{Document, ParseOptions, TreeBuilder, WriteOptions, to_vec};

fn xml(json: &str, options: &Options) -> String {
    let value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    let mut builder = TreeBuilder::new();
    to_xml(&value, &mut builder, options).unwrap_or_else(|error| panic!("{json}: {error}"));
    let document = builder.finish();
    String::from_utf8(to_vec(&document, Document::ROOT, &WriteOptions::default())).expect("the writer writes UTF-8")
}

fn json(xml: &str, options: &Options) -> Result<String, String> {
    let document = Document::parse(xml.as_bytes().to_vec(), &ParseOptions::default())
        .unwrap_or_else(|error| panic!("{xml}: {error}"));
    let root = document.root_element().expect("a document has a root");
    let mut out = Vec::new();
    write_json(&mut out, &document, root, options).map_err(|error| error.message)?;
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

fn with(flags: &[(&str, &str)]) -> Options {
    let mut options = Options::default();
    for (name, value) in flags {
        assert_eq!(options.set(name, value), Ok(true), "{name}");
    }
    options
}

#[test]
fn json_becomes_elements() {
    let options = Options::default();
    for (json, expected) in [
        ("{}", "<jsonObject/>"),
        ("[]", "<jsonArray/>"),
        (r#""x""#, "<jsonValue>x</jsonValue>"),
        (
            r#"{"a":1.50,"b":true,"c":null,"d":"","e":{}}"#,
            "<jsonObject><a>1.50</a><b>true</b><c/><d/><e/></jsonObject>",
        ),
        (r#"{"a":[1,2]}"#, "<jsonObject><a>1</a><a>2</a></jsonObject>"),
        (r#"{"a":[]}"#, "<jsonObject><?xml-multiple a?></jsonObject>"),
        (
            r#"{"a":[[1],[]]}"#,
            "<jsonObject><a><jsonArray><jsonElement>1</jsonElement></jsonArray></a><a><jsonArray/></a></jsonObject>",
        ),
        (r#"[{"a":1},null]"#, "<jsonArray><jsonElement><a>1</a></jsonElement><jsonElement/></jsonArray>"),
        (
            r#"{"x":"<&>","@id":7,"@xmlns:p":"urn:p","$":"text"}"#,
            r#"<jsonObject xmlns:p="urn:p" id="7"><x>&lt;&amp;&gt;</x>text</jsonObject>"#,
        ),
        (r#"{"v":{"@unit":"kg","$":5}}"#, r#"<jsonObject><v unit="kg">5</v></jsonObject>"#),
        (
            r#"{"1a":1,"$b":2,"c d":3}"#,
            "<jsonObject><_JsonReader_PD_1a>1</_JsonReader_PD_1a><_JsonReader_PS_b>2</_JsonReader_PS_b><c_JsonReader_32_d>3</c_JsonReader_32_d></jsonObject>",
        ),
        (r#"{"c":"\u0001\t"}"#, "<jsonObject><c>\\u0001\t</c></jsonObject>"),
    ] {
        assert_eq!(xml(json, &options), expected, "{json}");
    }
    let options = with(&[("synapse.json.to.xml.processing.instruction.enabled", "true")]);
    assert_eq!(
        xml(r#"{"a":[1],"b":[[]]}"#, &options),
        "<jsonObject><?xml-multiple a?><a>1</a><?xml-multiple b?><b><jsonArray><?xml-multiple jsonElement?></jsonArray></b></jsonObject>"
    );
    let options = with(&[("synapse.commons.enableXmlNilReadWrite", "true")]);
    assert_eq!(xml(r#"{"a":null,"b":""}"#, &options), r#"<jsonObject><a nil="true"/><b/></jsonObject>"#);
    let options = with(&[("synapse.commons.json.buildValidNCNames", "true")]);
    assert_eq!(xml(r#"{"a:b":1}"#, &options), "<jsonObject><a_JsonReader_58_b>1</a_JsonReader_58_b></jsonObject>");
}

#[test]
fn elements_become_json() {
    let options = Options::default();
    for (xml, expected) in [
        ("<a/>", r#"{"a":null}"#),
        ("<jsonObject/>", "{}"),
        ("<jsonArray/>", "[]"),
        ("<jsonObject>5</jsonObject>", "5"),
        ("<a> x </a>", r#"{"a":" x "}"#),
        ("<a>00123</a>", r#"{"a":"00123"}"#),
        ("<a>25.0000</a>", r#"{"a":25.0000}"#),
        ("<a>x<!-- c -->y<![CDATA[<]]></a>", r#"{"a":"xy<"}"#),
        ("<a i='1'/>", r#"{"a":{"@i":"1"}}"#),
        ("<a i='1'>true</a>", r#"{"a":{"@i":"1","$":true}}"#),
        ("<a i='1'><b>2</b></a>", r#"{"a":{"@i":"1","b":2}}"#),
        ("<a><b/><b>1</b></a>", r#"{"a":{"b":[null,1]}}"#),
        ("<a><b>1</b><c/><b>2</b></a>", r#"{"a":{"b":[1,2],"c":null}}"#),
        ("<a><?xml-multiple b?><b>1</b></a>", r#"{"a":{"b":[1]}}"#),
        ("<a><?xml-multiple b?></a>", r#"{"a":{"b":[]}}"#),
        ("<a><?xml-multiple?><b>1</b><c/></a>", r#"{"a":{"b":[1],"c":null}}"#),
        ("<a><jsonArray><jsonElement>1</jsonElement></jsonArray></a>", r#"{"a":[1]}"#),
        ("<a><jsonObject><b>1</b></jsonObject></a>", r#"{"a":{"b":1}}"#),
        ("<a><jsonObject><b>1</b></jsonObject><jsonObject/></a>", r#"{"a":[{"b":1},null]}"#),
        ("<a><jsonObject><b>1</b></jsonObject><c/></a>", r#"{"a":{"jsonObject":{"b":1},"c":null}}"#),
        ("<jsonObject><jsonObject><b>1</b></jsonObject></jsonObject>", r#"{"jsonObject":{"b":1}}"#),
        ("<p:a xmlns:p='urn:p' p:i='1'><p:b/></p:a>", r#"{"a":{"@i":"1","b":null}}"#),
        ("<a xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:nil='true'/>", r#"{"a":null}"#),
        ("<a nil='true'/>", r#"{"a":{"@nil":"true"}}"#),
        ("<_JsonReader_PD_1a>1</_JsonReader_PD_1a>", r#"{"1a":1}"#),
    ] {
        assert_eq!(json(xml, &options).as_deref(), Ok(expected), "{xml}");
    }
    assert!(json("<a>text<b/></a>", &options).is_err());
}

#[test]
fn flags_change_what_elements_become() {
    let namespaced = "<n:a xmlns:n='urn:n'><n:b>1</n:b></n:a>";
    let twice = "<a><b>1</b><b>2</b></a>";
    let nil = "<a><b xmlns:x='http://www.w3.org/2001/XMLSchema-instance' x:nil='true'/><c/></a>";
    for (flags, xml, expected) in [
        (&[("synapse.commons.json.output.autoPrimitive", "false")][..], "<a>1</a>", r#"{"a":"1"}"#),
        (
            &[("synapse.commons.json.output.disableAutoPrimitive.regex", "[0-9]{2}")],
            "<a><b>12</b><c>123</c></a>",
            r#"{"a":{"b":"12","c":123}}"#,
        ),
        (
            &[
                ("synapse.commons.json.json.output.disableAutoPrimitive.customReplaceRegex", "@@"),
                ("synapse.commons.json.json.output.disableAutoPrimitive.customReplaceSequence", ""),
            ],
            "<a><b>@@12</b><c>12</c></a>",
            r#"{"a":{"b":"12","c":12}}"#,
        ),
        (&[("synapse.commons.json.output.jsonoutAutoArray", "false")], twice, r#"{"a":{"b":1,"b":2}}"#),
        (
            &[("synapse.commons.json.output.jsonoutMultiplePI", "false")],
            "<a><?xml-multiple b?><b/></a>",
            r#"{"a":{"b":null}}"#,
        ),
        (&[("synapse.commons.json.preserve.namespace", "true")], namespaced, r#"{"n_a":{"n_b":1}}"#),
        (
            &[
                ("synapse.commons.json.preserve.namespace", "true"),
                ("synapse.commons.json.output.enableNSDeclarations", "true"),
                ("synapse.commons.json.output.namespaceSepChar", "^"),
            ],
            namespaced,
            r#"{"n^a":{"@xmlns^n":"urn:n","n^b":1}}"#,
        ),
        (&[("synapse.commons.enableXmlNilReadWrite", "true")], nil, r#"{"a":{"b":null,"c":null}}"#),
        (
            &[
                ("synapse.commons.enableXmlNilReadWrite", "true"),
                ("synapse.commons.enableXmlNullForEmptyElement", "false"),
            ],
            nil,
            r#"{"a":{"b":null,"c":""}}"#,
        ),
    ] {
        assert_eq!(json(xml, &with(flags)).as_deref(), Ok(expected), "{xml}");
    }
    assert_eq!(Options::default().set("synapse.unknown", "x"), Ok(false));
    assert!(Options::default().set("synapse.commons.json.output.disableAutoPrimitive.regex", "(").is_err());
}

#[test]
fn depth_and_width_are_bounded_or_cheap() {
    let depth = 1_000;
    let deep = "<a>".repeat(depth) + &"</a>".repeat(depth);
    assert!(json(&deep, &Options::default()).is_err());
    let mut value = serde_json::Value::Null;
    for _ in 0..depth {
        value = serde_json::Value::Array(vec![value]);
    }
    assert!(to_xml(&value, &mut TreeBuilder::new(), &Options::default()).is_err());
    let wide: String = (0..50_000).map(|index| format!("<e{index}/>")).collect();
    let document = Document::parse(format!("<a>{wide}</a>"), &ParseOptions::default()).expect("it is well-formed");
    let root = document.root_element().expect("a document has a root");
    let value = to_json(&document, root, &Options::default()).expect("it can be mapped");
    assert_eq!(value["a"].as_object().map(serde_json::Map::len), Some(50_000));
}
