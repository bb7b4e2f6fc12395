//! How a value stands in a format: by what it is, what is built and whether it stands in quotes.

use std::fmt::Write;

use penstock_budget::{self as budget, append, make_room_for_text};
use penstock_engine::Fault;
use penstock_message::Value;
use penstock_xml::{Document, NodeId};
use serde_json::Value as Json;

use super::Media;
use super::argument::{Given, GivenValue};
use penstock_engine::payload;

use crate::typed;

/// An element that got nothing is written as `<a/>`, as a tree would write it: closes the tag that is open at the end and
/// gives back what follows the element in the text.
pub fn close_empty<'t>(out: &mut String, text: &'t str) -> &'t str {
    let is_start_tag = out.ends_with('>')
        && !out.ends_with("/>")
        && out.rfind('<').is_some_and(|at| !out[at + 1..].starts_with(['/', '!', '?']));
    match text.strip_prefix("</").and_then(|rest| rest.split_once('>')) {
        Some((_, rest)) if is_start_tag => {
            out.pop();
            out.push_str("/>");
            rest
        }
        _ => text,
    }
}

/// Whether a string that stands in no quotes is JSON as it is: a literal or a number.
fn is_bare(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(Json::Bool(_) | Json::Null | Json::Number(_)))
}

/// Inserts an argument as [`argument`] does; a string that stands in no quotes gets them.
pub fn quoted_argument(out: &mut String, given: &Given) {
    let text = match &given.value {
        GivenValue::Text(text) => text.as_str(),
        GivenValue::Json(json, _) => match json.as_str() {
            Some(text) => text,
            None => return argument(out, given, Media::Json, false, false),
        },
        GivenValue::Nothing => "",
    };
    let composed = !given.literal && text.trim_start().starts_with(['<', '{', '[']);
    if composed || is_bare(text.trim()) {
        return argument(out, given, Media::Json, false, false);
    }
    out.push('"');
    escape_json(out, text);
    out.push('"');
}

/// Inserts an argument.
pub fn argument(out: &mut String, given: &Given, media: Media, quoted: bool, attribute: bool) {
    match (&given.value, media) {
        // Nothing at all would make the whole body no JSON any more. Texts that are empty leave nothing all the same.
        (GivenValue::Nothing, Media::Json) if !quoted => append(out, "null"),
        (GivenValue::Nothing, _) => {}
        (GivenValue::Text(text), Media::Text) => append(out, text),
        (GivenValue::Json(json, raw), Media::Text) => append(out, &json_text(json, raw.as_deref())),
        (GivenValue::Text(text), Media::Xml) => xml(out, text, given.literal, attribute),
        (GivenValue::Json(json, raw), Media::Xml) => {
            match payload::json_elements(json).filter(|_| !given.literal && !attribute) {
                Some((document, nodes)) => inside(out, &document, &nodes),
                None => xml(out, &json_text(json, raw.as_deref()), given.literal, attribute),
            }
        }
        (GivenValue::Text(text), Media::Json) => text_in_json(out, text, given.literal, quoted),
        (GivenValue::Json(json, raw), Media::Json) => {
            let composed = json.is_object() || json.is_array();
            let text = json_text(json, raw.as_deref());
            if composed && !quoted && !given.literal { append(out, &text) } else { escape_json(out, &text) }
        }
    }
}

/// JSON as text: a string without its quotes, anything else as it was written or would be.
fn json_text(json: &serde_json::Value, raw: Option<&str>) -> String {
    match (json, raw) {
        (serde_json::Value::String(text), _) => text.clone(),
        (_, Some(raw)) => raw.to_owned(),
        (other, None) => other.to_string(),
    }
}

/// Text that is an object, a list or XML goes in as JSON; between quotes, and with `literal`, it is text. (Micro Integrator
/// puts objects between quotes as they are, which is not valid JSON.)
fn text_in_json(out: &mut String, text: &str, literal: bool, quoted: bool) {
    let trimmed = text.trim();
    if literal {
        return escape_json(out, text);
    }
    if trimmed.starts_with('<')
        && let Ok((document, root)) = payload::parse(trimmed.as_bytes().to_vec())
        && let Ok(json) = typed::xml_to_json(&document, &[root])
    {
        let json = json.to_string();
        return if quoted { escape_json(out, &json) } else { append(out, &json) };
    }
    if !quoted && trimmed.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(trimmed).is_ok() {
        return append(out, trimmed);
    }
    escape_json(out, text);
}

/// Text that is XML, one element or several, goes in as XML, unless it is to be text.
fn xml(out: &mut String, text: &str, literal: bool, attribute: bool) {
    let trimmed = text.trim();
    if !literal && !attribute && trimmed.starts_with('<') && trimmed.ends_with('>') {
        let content = without_declaration(trimmed);
        // Several nodes of a path stand one after another: inside an element they are a document.
        if payload::parse(format!("<r>{content}</r>").into_bytes()).is_ok() {
            append(out, content);
            return;
        }
    }
    escape_xml(out, text, attribute);
}

fn without_declaration(xml: &str) -> &str {
    match xml.strip_prefix("<?xml").and_then(|rest| rest.split_once("?>")) {
        Some((_, rest)) => rest,
        None => xml,
    }
}

fn escape_xml(out: &mut String, text: &str, attribute: bool) {
    budget::reserve(text.len());
    let mut escaped = Vec::with_capacity(text.len() + 16);
    if attribute {
        penstock_xml::escape_attribute(&mut escaped, text)
    } else {
        penstock_xml::escape_text(&mut escaped, text)
    }
    append(out, &String::from_utf8_lossy(&escaped));
}

/// Everything inside the root: `<jsonObject>` itself is only a hull.
fn inside(out: &mut String, document: &Document, nodes: &[NodeId]) {
    for node in nodes {
        for child in document.children(*node) {
            write(out, document, child);
        }
    }
}

fn write(out: &mut String, document: &Document, node: NodeId) {
    let mut bytes = Vec::new();
    penstock_message::write_fragment(&mut bytes, document, node);
    append(out, &String::from_utf8_lossy(&bytes));
}

/// Text as the inside of a JSON string.
pub fn escape_json(out: &mut String, text: &str) {
    make_room_for_text(out, text.len());
    for letter in text.chars() {
        budget::step();
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
}

/// Inserts the value of a `${…}`.
/// `path` says that it is an XPath, whose nodes stand for their text when they have no other content;
/// XML of a variable stays XML. `place` is what is built, and whether it stands in quotes or in a tag.
pub fn expression(
    out: &mut String,
    value: Option<&Value>,
    path: bool,
    place: (Media, bool, bool),
) -> Result<(), Fault> {
    let (media, quoted, attribute) = place;
    let Some(value) = value else {
        if media == Media::Json && !quoted {
            append(out, "null");
        }
        return Ok(());
    };
    if path
        && let Value::Xml(document, nodes) = value
        && let Some(text) = only_text(document, nodes)
    {
        match media {
            Media::Xml => escape_xml(out, &text, attribute),
            Media::Json if quoted => escape_json(out, &text),
            Media::Json => string_in_json(out, &text),
            Media::Text => append(out, &text),
        }
        return Ok(());
    }
    match (media, value) {
        (Media::Text, _) => append(out, &value.to_text()),
        (Media::Json, _) if quoted => escape_json(out, &value.to_text()),
        (Media::Json, Value::Xml(document, nodes)) => append(out, &typed::xml_to_json(document, nodes)?.to_string()),
        (Media::Json, Value::String(text)) => string_in_json(out, text),
        (Media::Json, Value::Json(json)) => append(out, &json.to_string()),
        (Media::Json, other) => append(out, &other.to_text()),
        (Media::Xml, _) if attribute => escape_xml(out, &value.to_text(), true),
        (Media::Xml, Value::Xml(document, nodes)) => {
            for node in nodes {
                match document.kind(*node) {
                    penstock_xml::NodeKind::Attribute => escape_xml(out, document.text(*node), false),
                    _ => write(out, document, *node),
                }
            }
        }
        (Media::Xml, Value::Json(json)) => match payload::json_elements(json) {
            Some((document, nodes)) => inside(out, &document, &nodes),
            None => escape_xml(out, &value.to_text(), false),
        },
        (Media::Xml, other) => escape_xml(out, &other.to_text(), false),
    }
    Ok(())
}

/// The text of nodes that are text, or elements with nothing but text: those stand for what they say.
fn only_text(document: &Document, nodes: &[NodeId]) -> Option<String> {
    let mut text = String::new();
    for node in nodes {
        let plain = !document.is_element(*node)
            || document.descendants(*node).all(|inside| document.kind(inside) == penstock_xml::NodeKind::Text);
        let own = document.string_value(*node);
        if !plain || (document.is_element(*node) && own.trim().is_empty()) {
            return None;
        }
        text.push_str(&own);
    }
    Some(text)
}

/// A string without quotes around its place: JSON when it is JSON, else a string of JSON.
fn string_in_json(out: &mut String, text: &str) {
    let trimmed = text.trim();
    if trimmed.starts_with(['{', '[']) && serde_json::from_str::<serde_json::Value>(trimmed).is_ok() {
        append(out, trimmed);
        return;
    }
    out.push('"');
    escape_json(out, text);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn elements_that_got_nothing_are_written_short() {
        for (before, after, expected) in [
            ("<r><a>", "</a></r>", "<r><a/></r>"),
            ("<r><a x=\"1>2\">", "</a></r>", "<r><a x=\"1>2\"/></r>"),
            ("<r><a/>", "</r>", "<r><a/></r>"),
            ("<r><a>t</a>", "</r>", "<r><a>t</a></r>"),
            ("<r>t", "</r>", "<r>t</r>"),
            ("<r>", "<a/></r>", "<r><a/></r>"),
        ] {
            let mut out = before.to_owned();
            let rest = close_empty(&mut out, after);
            assert_eq!(out + rest, expected);
        }
    }

    fn check(value: &str, media: Media, quoted: bool, literal: bool, expected: &str) {
        let mut out = String::new();
        let given = Given { value: GivenValue::Text(value.into()), literal };
        argument(&mut out, &given, media, quoted, false);
        assert_eq!(out, expected, "{value}");
    }

    #[test]
    fn texts_stand_as_what_they_are() {
        check("a & \"b\"", Media::Xml, false, false, "a &amp; \"b\"");
        check("<a>1</a>", Media::Xml, false, false, "<a>1</a>");
        check("<a>1</a>", Media::Xml, false, true, "&lt;a&gt;1&lt;/a&gt;");
        check("<a>1", Media::Xml, false, false, "&lt;a&gt;1");
        check("<a/><b/>", Media::Xml, false, false, "<a/><b/>");
        check("{\"a\":1}", Media::Xml, false, false, "{\"a\":1}");
        check("a \"b\"\n", Media::Json, true, false, "a \\\"b\\\"\\n");
        check("{\"a\":1}", Media::Json, false, false, "{\"a\":1}");
        check("{\"a\":1}", Media::Json, true, true, "{\\\"a\\\":1}");
        check("{\"a\":1}", Media::Json, true, false, "{\\\"a\\\":1}");
        check("{a}", Media::Json, false, false, "{a}");
        check("<&\n", Media::Text, false, false, "<&\n");
    }

    #[test]
    fn strings_get_quotes_where_the_switch_is_on() {
        for (value, literal, expected) in [
            ("a \"b\"", false, r#""a \"b\"""#),
            ("1.50", false, "1.50"),
            ("null", false, "null"),
            (r#"{"a":1}"#, false, r#"{"a":1}"#),
            (r#"{"a":1}"#, true, r#""{\"a\":1}""#),
        ] {
            let mut out = String::new();
            quoted_argument(&mut out, &Given { value: GivenValue::Text(value.into()), literal });
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn json_arguments_keep_their_kind() {
        for (json, media, quoted, expected) in [
            (r#"{"a":[1,2]}"#, Media::Json, false, r#"{"a":[1,2]}"#),
            (r#"{"a":1}"#, Media::Json, true, r#"{\"a\":1}"#),
            (r#""x""#, Media::Json, true, "x"),
            ("1.50", Media::Json, false, "1.50"),
            (r#"{"a":"x<"}"#, Media::Xml, false, "<a>x&lt;</a>"),
        ] {
            let mut out = String::new();
            let value = GivenValue::Json(Arc::new(serde_json::from_str(json).unwrap()), None);
            argument(&mut out, &Given { value, literal: false }, media, quoted, false);
            assert_eq!(out, expected);
        }
    }
}
