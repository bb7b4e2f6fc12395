//! What differs between two responses: status, header fields, bodies. JSON and XML are compared by their content, so
//! that layout, the order of members and attributes, and prefixes are no differences.

use std::collections::BTreeMap;

use bytes::Bytes;
use penstock_engine::clock;
use penstock_xml::{Document, NodeId, NodeKind, ParseOptions};
use serde_json::Value;

/// Fields of a connection, of a server, or of the moment.
const NOT_COMPARED: [&str; 9] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "activityid",
    "set-cookie",
    "age",
];

/// A value is shown up to this length.
const SHOWN_CHARS: usize = 120;

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// Header fields with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// A rule for what may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mask {
    /// A header field, by its lower-case name.
    Header(String),
    /// A member of JSON by its path; `*` stands for any name or index.
    Json(Vec<String>),
    /// An element or attribute of XML by its local name.
    Xml(String),
}

impl Mask {
    /// Reads `header:NAME`, `json:$.a.*.b` or `xml:NAME`.
    pub fn parse(text: &str) -> Result<Mask, String> {
        match text.split_once(':') {
            Some(("header", name)) if !name.is_empty() => Ok(Mask::Header(name.to_ascii_lowercase())),
            Some(("json", path)) if path.starts_with("$.") => {
                Ok(Mask::Json(path[2..].split('.').map(str::to_owned).collect()))
            }
            Some(("xml", name)) if !name.is_empty() => Ok(Mask::Xml(name.to_owned())),
            _ => Err(format!("`{text}` is not `header:NAME`, `json:$.a.*.b` or `xml:NAME`")),
        }
    }
}

/// What differs, a line each.
pub fn between(reference: &Response, candidate: &Response, masks: &[Mask]) -> Vec<String> {
    let mut differences = Differences { masks, found: Vec::new() };
    if reference.status != candidate.status {
        differences.add("status", &reference.status.to_string(), &candidate.status.to_string());
    }
    differences.headers(reference, candidate);
    differences.bodies(&reference.body, &candidate.body);
    differences.found
}

struct Differences<'m> {
    masks: &'m [Mask],
    found: Vec<String>,
}

impl Differences<'_> {
    fn add(&mut self, what: &str, reference: &str, candidate: &str) {
        self.found.push(format!("{what}: {} and {}", shown(reference), shown(candidate)));
    }

    fn value(&mut self, what: &str, reference: &str, candidate: &str) {
        if reference != candidate && !is_volatile(reference, candidate) {
            self.add(what, reference, candidate);
        }
    }

    fn headers(&mut self, reference: &Response, candidate: &Response) {
        let masks = self.masks;
        let is_compared = |name: &str| {
            !NOT_COMPARED.contains(&name)
                && !masks.iter().any(|mask| matches!(mask, Mask::Header(known) if known == name))
        };
        let gather = |response: &Response| {
            let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (name, value) in response.headers.iter().filter(|(name, _)| is_compared(name)) {
                let value = if name == "content-type" { content_type(value) } else { value.trim().to_owned() };
                fields.entry(name.clone()).or_default().push(value);
            }
            fields
        };
        let (ours, theirs) = (gather(reference), gather(candidate));
        for name in ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name))) {
            let text = |fields: &BTreeMap<String, Vec<String>>| {
                fields.get(name).map_or_else(|| "none".to_owned(), |values| values.join(", "))
            };
            self.value(&format!("header {name}"), &text(&ours), &text(&theirs));
        }
    }

    fn bodies(&mut self, reference: &Bytes, candidate: &Bytes) {
        if reference == candidate {
            return;
        }
        let json = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).ok();
        if let (Some(ours), Some(theirs)) = (json(reference), json(candidate)) {
            return self.json(&mut Vec::new(), &ours, &theirs);
        }
        let xml = |bytes: &Bytes| Document::parse(bytes.clone(), &ParseOptions::default()).ok();
        if let (Some(ours), Some(theirs)) = (xml(reference), xml(candidate))
            && let (Some(our_root), Some(their_root)) = (ours.root_element(), theirs.root_element())
        {
            return self.element("", (&ours, our_root), (&theirs, their_root));
        }
        self.value("body", &String::from_utf8_lossy(reference), &String::from_utf8_lossy(candidate));
        if self.found.is_empty() && std::str::from_utf8(reference).is_err() {
            self.add("body", &format!("{} bytes", reference.len()), &format!("{} other bytes", candidate.len()));
        }
    }

    fn json(&mut self, path: &mut Vec<String>, ours: &Value, theirs: &Value) {
        let is_masked = |mask: &Mask| match mask {
            Mask::Json(masked) => {
                masked.len() == path.len() && masked.iter().zip(&*path).all(|(mask, name)| mask == "*" || mask == name)
            }
            Mask::Header(_) | Mask::Xml(_) => false,
        };
        if self.masks.iter().any(is_masked) {
            return;
        }
        let at = || format!("body ${}", path.iter().map(|name| format!(".{name}")).collect::<String>());
        match (ours, theirs) {
            (Value::Object(ours), Value::Object(theirs)) => {
                for name in ours.keys().chain(theirs.keys().filter(|name| !ours.contains_key(*name))) {
                    path.push(name.clone());
                    match (ours.get(name), theirs.get(name)) {
                        (Some(one), Some(other)) => self.json(path, one, other),
                        (one, other) => self.missing(path, one, other),
                    }
                    path.pop();
                }
            }
            (Value::Array(ours), Value::Array(theirs)) => {
                for index in 0..ours.len().max(theirs.len()) {
                    path.push(index.to_string());
                    match (ours.get(index), theirs.get(index)) {
                        (Some(one), Some(other)) => self.json(path, one, other),
                        (one, other) => self.missing(path, one, other),
                    }
                    path.pop();
                }
            }
            (Value::String(one), Value::String(other)) => self.value(&at(), one, other),
            // `1.0` and `1` are one number; digits beyond those of a double must be the same.
            (Value::Number(one), Value::Number(other)) => {
                let same = one == other || one.to_string().len() < 16 && one.as_f64() == other.as_f64();
                if !same {
                    self.add(&at(), &one.to_string(), &other.to_string());
                }
            }
            (one, other) if one != other => self.add(&at(), &one.to_string(), &other.to_string()),
            _ => {}
        }
    }

    /// A member that one side does not have.
    fn missing(&mut self, path: &mut Vec<String>, ours: Option<&Value>, theirs: Option<&Value>) {
        let before = self.found.len();
        // Masks apply to a member that is missing, too.
        self.json(path, &Value::Null, &Value::from("?"));
        if self.found.len() > before {
            self.found.truncate(before);
            let text = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
            let at = path.iter().map(|name| format!(".{name}")).collect::<String>();
            self.add(&format!("body ${at}"), &text(ours), &text(theirs));
        }
    }

    fn masks_xml(&self, name: &str) -> bool {
        self.masks.iter().any(|mask| matches!(mask, Mask::Xml(masked) if masked == name))
    }

    fn element(&mut self, path: &str, ours: (&Document, NodeId), theirs: (&Document, NodeId)) {
        let name = |(document, node): (&Document, NodeId)| {
            format!("{{{}}}{}", document.namespace(node), document.local_name(node))
        };
        let path = format!("{path}/{}", ours.0.local_name(ours.1));
        if self.masks_xml(ours.0.local_name(ours.1)) {
            return;
        }
        if name(ours) != name(theirs) {
            return self.add(&format!("body {path}"), &name(ours), &name(theirs));
        }
        let (our_attributes, their_attributes) = (attributes(ours), attributes(theirs));
        let names =
            our_attributes.keys().chain(their_attributes.keys().filter(|name| !our_attributes.contains_key(*name)));
        for name in names {
            if self.masks_xml(name.rsplit('}').next().unwrap_or(name)) {
                continue;
            }
            let text =
                |attributes: &BTreeMap<String, String>| attributes.get(name).cloned().unwrap_or_else(|| "none".into());
            self.value(&format!("body {path}/@{name}"), &text(&our_attributes), &text(&their_attributes));
        }
        self.value(&format!("body {path}"), &own_text(ours), &own_text(theirs));
        let (our_children, their_children) = (children(ours), children(theirs));
        for index in 0..our_children.len().max(their_children.len()) {
            match (our_children.get(index), their_children.get(index)) {
                (Some(one), Some(other)) => self.element(&path, (ours.0, *one), (theirs.0, *other)),
                (Some(one), None) if !self.masks_xml(ours.0.local_name(*one)) => {
                    self.add(&format!("body {path}/*[{}]", index + 1), &name((ours.0, *one)), "none");
                }
                (None, Some(other)) if !self.masks_xml(theirs.0.local_name(*other)) => {
                    self.add(&format!("body {path}/*[{}]", index + 1), "none", &name((theirs.0, *other)));
                }
                _ => {}
            }
        }
    }
}

fn attributes((document, node): (&Document, NodeId)) -> BTreeMap<String, String> {
    let attributes = document.attributes(node);
    attributes
        .map(|one| {
            (format!("{{{}}}{}", document.namespace(one), document.local_name(one)), document.text(one).to_owned())
        })
        .collect()
}

fn children((document, node): (&Document, NodeId)) -> Vec<NodeId> {
    document.children(node).filter(|child| document.is_element(*child)).collect()
}

/// The text of an element, without the white space around each part of it when there are elements beside it.
fn own_text((document, node): (&Document, NodeId)) -> String {
    let parts = document.children(node).filter(|child| document.kind(*child) == NodeKind::Text);
    let has_elements = document.children(node).any(|child| document.is_element(child));
    parts.map(|part| if has_elements { document.text(part).trim() } else { document.text(part) }).collect()
}

/// A media type with its parameters in a fixed order and without quotes and case.
fn content_type(value: &str) -> String {
    let mut parts = value.split(';').map(|part| part.trim().replace('"', "").to_ascii_lowercase());
    let media_type = parts.next().unwrap_or_default();
    let mut parameters: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parameters.sort();
    std::iter::once(media_type).chain(parameters).collect::<Vec<_>>().join(";")
}

/// Whether two values are of a kind that is new for each response: identifiers, and times of now.
fn is_volatile(one: &str, other: &str) -> bool {
    (is_uuid(one) && is_uuid(other)) || (is_time_of_now(one) && is_time_of_now(other))
}

fn is_uuid(text: &str) -> bool {
    let text = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// `2026-11-22T19:05:00…`, yesterday to tomorrow: a date that is data differs by more, or is no time of a day.
fn is_time_of_now(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else { return false };
    let numbers: Vec<i64> = date.split('-').filter_map(|part| part.parse().ok()).collect();
    let [year, month, day] = numbers.as_slice() else { return false };
    if !(1..=12).contains(month) || !(1..=31).contains(day) || !(0..=9999).contains(year) {
        return false;
    }
    let has_time = time.as_bytes().get(2) == Some(&b':') && time.as_bytes().get(5) == Some(&b':');
    let today = (clock::epoch_ms() / 86_400_000) as i64;
    has_time && (clock::days_of(*year, *month as u32, *day as u32) - today).abs() <= 1
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests;
