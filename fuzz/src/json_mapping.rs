//! JSON text and the mapping: our parser agrees with `serde_json`, the forgiving one with ours, what is mapped can be mapped
//! back.

use penstock_json::mapping::{Options, to_json, to_xml, write_json};
use penstock_json::{lenient, text};
use penstock_xml::{Document, ParseOptions, TreeBuilder, WriteOptions, to_vec};
use serde_json::Value;

/// Pieces of JSON and of XML that the mapping treats specially.
pub const DICTIONARY: &[&str] = &[
    "{\"",
    "\":",
    "[]",
    "{}",
    "null",
    "true",
    "1.50",
    "1e9",
    "\"@",
    "\"$\"",
    "\\u0000",
    "\\ud83d\\ude00",
    "\"a b\"",
    "\"1\"",
    "<jsonObject>",
    "</jsonObject>",
    "<jsonArray/>",
    "<jsonElement>",
    "<?xml-multiple a?>",
    " nil=\"true\"",
    "_JsonReader_PD_",
    "_JsonReader_32_",
    "xmlns:p=\"urn:p\"",
    "<a>",
    "</a>",
];

/// Any bytes, as JSON and as XML.
pub fn mapping(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        json(text);
    }
    let Ok(document) = Document::parse(data.to_vec(), &ParseOptions::default()) else { return };
    let Some(root) = document.root_element() else { return };
    for options in options() {
        let mut out = Vec::new();
        if write_json(&mut out, &document, root, &options).is_ok() {
            let text = std::str::from_utf8(&out).expect("JSON is written as UTF-8");
            if let Err(error) = text::parse(text) {
                assert_eq!(error.message, "lists and objects nest too deep", "{text}");
            }
        }
    }
}

fn options() -> [Options; 2] {
    let other = Options {
        auto_array: false,
        preserve_namespaces: true,
        namespace_declarations: true,
        write_array_instructions: true,
        valid_names: true,
        nil: true,
        null_for_empty: false,
        ..Options::default()
    };
    [Options::default(), other]
}

fn json(text: &str) {
    let ours = text::parse(text);
    match (serde_json::from_str::<Value>(text), &ours) {
        (Ok(theirs), Ok(ours)) => assert_eq!(theirs.to_string(), ours.to_string()),
        (Ok(_), Err(error)) => panic!("`serde_json` reads it: {error}"),
        // What it refuses is read for the sake of control characters only.
        (Err(_), Ok(_)) => assert!(text.bytes().any(|byte| byte < b' ')),
        (Err(_), Err(_)) => {}
    }
    // The forgiving reader reads more, and what is JSON as what it is.
    let forgiven = lenient::parse(text);
    let Ok(value) = ours else { return };
    assert_eq!(forgiven.as_ref(), Some(&value));
    for options in options() {
        let mut builder = TreeBuilder::new();
        if to_xml(&value, &mut builder, &options).is_err() {
            continue;
        }
        let document = builder.finish();
        let _ = document.root_element().map(|root| to_json(&document, root, &options).is_ok());
        if options.valid_names {
            // Members that begin with a colon or a prefix make names no parser takes otherwise.
            let written = to_vec(&document, Document::ROOT, &WriteOptions::default());
            let again = Document::parse(written.clone(), &ParseOptions::default());
            assert!(again.is_ok(), "{:?}: {}", again.err(), String::from_utf8_lossy(&written));
        }
    }
}
