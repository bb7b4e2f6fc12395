//! Multipart bodies: fields of a form as child elements of `mediate`, and the first part of a
//! `multipart/related`. The other content of a part stays in the bytes of the body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_json::mapping::{element_name, member_name};
use penstock_xml::{Document, NodeId, TreeBuilder};

use super::{charset, form};
use crate::{BodyError, MediaType};

/// More parts than this are an attack, not a form.
const PARTS_MAX: usize = 1_000;

/// One part.
#[derive(Debug, PartialEq)]
pub(super) struct FormPart {
    pub name: Option<String>,
    pub file: bool,
    pub id: Option<String>,
    pub content_type: Option<String>,
    pub content: Bytes,
}

/// The parts of a body (RFC 2046 §5.1).
pub(super) fn parts(bytes: &Bytes, content_type: &str) -> Result<Vec<FormPart>, BodyError> {
    let malformed = |why: &str| BodyError::Malformed(format!("the multipart body {why}"));
    let boundary = MediaType::parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty());
    let boundary = boundary.ok_or_else(|| malformed("has no boundary in its Content-Type"))?;
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut at = next_delimiter(bytes, 0, &delimiter).ok_or_else(|| malformed("does not contain its boundary"))?.1;
    loop {
        if bytes[at..].starts_with(b"--") {
            return Ok(parts);
        }
        let start = line_end(bytes, at);
        let (end, after) = next_delimiter(bytes, start, &delimiter).ok_or_else(|| malformed("ends inside a part"))?;
        if parts.len() == PARTS_MAX {
            return Err(malformed(&format!("has more than {PARTS_MAX} parts")));
        }
        parts.push(part(bytes, start, end).ok_or_else(|| malformed("has a part without an empty line"))?);
        at = after;
    }
}

/// Where the delimiter line after `from` begins (with the line break before it) and where it ends.
fn next_delimiter(bytes: &Bytes, from: usize, delimiter: &str) -> Option<(usize, usize)> {
    let mut at = from;
    loop {
        let found = at + memchr::memmem::find(bytes.get(at..)?, delimiter.as_bytes())?;
        let before = &bytes[from..found];
        let line_break = if before.ends_with(b"\r\n") { 2 } else { usize::from(before.ends_with(b"\n")) };
        if line_break > 0 || found == from {
            return Some((found - line_break, found + delimiter.len()));
        }
        at = found + 1;
    }
}

fn line_end(bytes: &Bytes, at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length + 1)
}

fn part(bytes: &Bytes, start: usize, end: usize) -> Option<FormPart> {
    let mut part = FormPart { name: None, file: false, id: None, content_type: None, content: Bytes::new() };
    let mut at = start;
    while at < end {
        let next = line_end(bytes, at).min(end);
        let line = String::from_utf8_lossy(&bytes[at..next]);
        let line = line.trim_end();
        at = next;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        match name.trim().to_ascii_lowercase().as_str() {
            "content-disposition" => {
                part.name = MediaType::parameter(value, "name").map(str::to_owned);
                part.file = MediaType::parameter(value, "filename").is_some();
            }
            "content-type" => part.content_type = Some(value.trim().to_owned()),
            "content-id" => part.id = Some(value.trim().trim_matches(['<', '>']).to_owned()),
            _ => {}
        }
    }
    part.content = bytes.slice(at.min(end)..end);
    Some(part)
}

/// Adds the fields of a form to the tree. Text is text; files are base64.
pub(super) fn build(builder: &mut TreeBuilder, bytes: &Bytes, content_type: &str) -> Result<(), BodyError> {
    builder.start_element("", form::ROOT, "");
    for part in parts(bytes, content_type)? {
        builder.start_element("", &element_name(part.name.as_deref().unwrap_or("part")), "");
        let charset = part.content_type.as_deref().and_then(MediaType::charset);
        match charset::decode(&part.content, charset) {
            Ok(text) if !part.file => builder.text(&text),
            _ => builder.text(&STANDARD.encode(&part.content)),
        }
        builder.end_element();
    }
    builder.end_element();
    Ok(())
}

/// The part of a `multipart/related` that the others belong to: the one `start` names, else the first.
pub(super) fn root_part(bytes: &Bytes, content_type: &str) -> Result<FormPart, BodyError> {
    let mut parts = parts(bytes, content_type)?;
    let start = MediaType::parameter(content_type, "start").map(|start| start.trim_matches(['<', '>']));
    let index = start.and_then(|start| parts.iter().position(|part| part.id.as_deref() == Some(start))).unwrap_or(0);
    if parts.is_empty() {
        return Err(BodyError::Malformed("the multipart body has no part".into()));
    }
    Ok(parts.swap_remove(index))
}

/// The child elements of `payload` as a form, with the boundary that is in none of them.
pub(super) fn format(document: &Document, payload: NodeId) -> (Vec<u8>, String) {
    let fields: Vec<_> = document
        .children(payload)
        .filter(|child| document.is_element(*child))
        .map(|field| (member_name(document.local_name(field)), document.string_value(field)))
        .collect();
    let boundary = (0..)
        .map(|number: u64| format!("penstock-part-{number}"))
        .find(|boundary| !fields.iter().any(|(_, value)| value.contains(boundary.as_str())))
        .unwrap_or_default();
    let mut out = String::new();
    for (name, value) in fields {
        // RFC 7578 §2 and the HTML standard: quotes and line breaks in names are percent-encoded.
        let name = name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
        out.push_str(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    out.push_str(&format!("--{boundary}--\r\n"));
    (out.into_bytes(), boundary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_and_distinguished() {
        let body = Bytes::from_static(
            b"preamble\r\n--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none --x two\r\n--x\r\n\
              Content-Disposition: form-data; name=\"f\"; filename=\"f.bin\"\r\nContent-Type: image/png\r\n\r\n\0\xff\r\n--x--\r\n",
        );
        let parts = parts(&body, "multipart/form-data; boundary=x").unwrap();
        let found: Vec<_> = parts.iter().map(|part| (part.name.as_deref(), part.file, &part.content[..])).collect();
        assert_eq!(found, [(Some("a"), false, &b"one --x two"[..]), (Some("f"), true, b"\0\xff")]);
        let mut builder = TreeBuilder::new();
        build(&mut builder, &body, "multipart/form-data; boundary=\"x\"").unwrap();
        let document = builder.finish();
        let root = document.root_element().unwrap();
        let again = format(&document, root);
        assert!(String::from_utf8(again.0).unwrap().contains("name=\"f\"\r\n\r\nAP8=\r\n--penstock-part-0--"));
    }

    #[test]
    fn broken_bodies_are_refused() {
        for (body, content_type) in [
            ("--x\r\n\r\na\r\n--x--", "multipart/form-data"),
            ("nothing", "multipart/form-data; boundary=x"),
            ("--x\r\n\r\na", "multipart/form-data; boundary=x"),
            ("--x\r\nno colon\r\n\r\na\r\n--x--", "multipart/form-data; boundary=x"),
        ] {
            assert!(parts(&Bytes::from_static(body.as_bytes()), content_type).is_err(), "{body}");
        }
    }
}
