//! Whether two texts are the same answer.
//!
//! Micro Integrator strips every line and compares text, so its suites contain payloads laid out by hand. Here JSON is
//! compared as JSON and XML as XML; what is neither is compared as Micro Integrator does.

use serde_json::Value;

use penstock_xml::{Document, NodeId, NodeKind, ParseOptions};

/// Whether an actual text is what was expected.
pub fn same(expected: &str, actual: &str) -> bool {
    if stripped(expected) == stripped(actual) {
        return true;
    }
    let json = |text: &str| serde_json::from_str::<Value>(text.trim()).ok();
    if let (Some(left), Some(right)) = (json(expected), json(actual)) {
        return same_json(&left, &right);
    }
    let xml = |text: &str| Document::parse(text.trim().as_bytes().to_vec(), &ParseOptions::default()).ok();
    match (xml(expected), xml(actual)) {
        (Some(left), Some(right)) => same_document(&left, &right),
        _ => false,
    }
}

/// Every line without the white space around it, all in one.
fn stripped(text: &str) -> String {
    text.trim_start_matches('\u{feff}').lines().map(str::trim).collect()
}

fn same_json(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_json(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same_json(value, other)))
        }
        // `1.0` and `1` are one number, however they are written.
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn same_document(left: &Document, right: &Document) -> bool {
    let (Some(left_root), Some(right_root)) = (left.root_element(), right.root_element()) else { return false };
    if same_element(left, left_root, right, right_root) {
        return true;
    }
    // A suite may say the payload where the message has an envelope, and the other way round.
    match (payload(left, left_root), payload(right, right_root)) {
        (Some(inner), None) => same_element(left, inner, right, right_root),
        (None, Some(inner)) => same_element(left, left_root, right, inner),
        _ => false,
    }
}

/// The first element in the body of an envelope.
fn payload(document: &Document, root: NodeId) -> Option<NodeId> {
    let is_envelope = document.local_name(root) == "Envelope" && document.namespace(root).contains("soap");
    let body = children(document, root).into_iter().find(|child| document.local_name(*child) == "Body");
    body.filter(|_| is_envelope).and_then(|body| children(document, body).into_iter().next())
}

fn children(document: &Document, node: NodeId) -> Vec<NodeId> {
    document.children(node).filter(|child| document.is_element(*child)).collect()
}

fn text(document: &Document, node: NodeId) -> String {
    let texts = document.children(node).filter(|child| document.kind(*child) == NodeKind::Text);
    texts.map(|child| document.text(child).trim()).collect()
}

fn attributes(document: &Document, node: NodeId) -> Vec<(&str, &str, &str)> {
    let mut found: Vec<_> = document
        .attributes(node)
        .map(|attribute| (document.namespace(attribute), document.local_name(attribute), document.text(attribute)))
        .collect();
    found.sort_unstable();
    found
}

/// Prefixes, the order of attributes and white space between elements say nothing.
fn same_element(left: &Document, left_node: NodeId, right: &Document, right_node: NodeId) -> bool {
    if left.local_name(left_node) != right.local_name(right_node)
        || left.namespace(left_node) != right.namespace(right_node)
        || attributes(left, left_node) != attributes(right, right_node)
        || text(left, left_node) != text(right, right_node)
    {
        return false;
    }
    // An empty SOAP header is no header.
    let parts = |document: &Document, node: NodeId| -> Vec<NodeId> {
        let is_empty_header = |child: &NodeId| {
            document.local_name(*child) == "Header"
                && document.namespace(*child).contains("soap")
                && document.children(*child).next().is_none()
        };
        children(document, node).into_iter().filter(|child| !is_empty_header(child)).collect()
    };
    let (left_parts, right_parts) = (parts(left, left_node), parts(right, right_node));
    left_parts.len() == right_parts.len()
        && left_parts.iter().zip(&right_parts).all(|(one, other)| same_element(left, *one, right, *other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_says_nothing_and_content_everything() {
        const ENVELOPE: &str = "<s:Envelope xmlns:s='http://schemas.xmlsoap.org/soap/envelope/'><s:Header/><s:Body><a/></s:Body></s:Envelope>";
        for (expected, actual, same_answer) in [
            ("  a\n   b ", "a\nb", true),
            ("a", "b", false),
            ("{\"a\": 1,\n \"b\": [1.0]}", "{\"b\":[1],\"a\":1}", true),
            ("{\"a\": 1}", "{\"a\": \"1\"}", false),
            (
                "<?xml version='1.0'?><p:a xmlns:p='u' y='2' x='1'>\n <p:b/></p:a>",
                "<a xmlns='u' x='1' y='2'><b></b></a>",
                true,
            ),
            ("<a><b/></a>", "<a><c/></a>", false),
            ("<a>1</a>", "<a>2</a>", false),
            ("<a/>", ENVELOPE, true),
            (ENVELOPE, "<b/>", false),
        ] {
            assert_eq!(same(expected, actual), same_answer, "{expected} | {actual}");
        }
    }
}
