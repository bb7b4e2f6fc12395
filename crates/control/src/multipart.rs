//! Bodies of `multipart/form-data` (RFC 7578).

use bytes::Bytes;

/// Header fields of one part. A browser sends two.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Parts of one body. Forms of the REST APIs have at most five.
const PARTS_MAX: usize = 64;

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    /// Its name.
    pub name: String,
    /// The name of the file, when it is one.
    pub file_name: Option<String>,
    /// Its media type, when it is given.
    pub media_type: Option<String>,
    /// The content.
    pub content: Bytes,
}

/// The parts of a body.
pub fn parse(content_type: &str, body: &Bytes) -> Result<Vec<FormPart>, &'static str> {
    let (kind, parameters) = content_type.split_once(';').ok_or("the body must be multipart/form-data")?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err("the body must be multipart/form-data");
    }
    let boundary = parameter(parameters, "boundary").filter(|boundary| !boundary.is_empty() && boundary.len() <= 70);
    let delimiter = format!("--{}", boundary.ok_or("the content type has no boundary")?);
    let next = format!("\r\n{delimiter}");
    let mut at = find(body, delimiter.as_bytes(), 0).ok_or("the body has no part")? + delimiter.len();
    let mut parts = Vec::new();
    while !body[at..].starts_with(b"--") {
        if parts.len() == PARTS_MAX {
            return Err("the body has too many parts");
        }
        let head_start = find(body, b"\r\n", at).ok_or("a part has no head")? + 2;
        let limit = body.len().min(head_start + HEAD_BYTES_MAX);
        // A part without header fields begins with the empty line.
        let head_end = match body[head_start..].starts_with(b"\r\n") {
            true => head_start,
            false => find(&body[..limit], b"\r\n\r\n", head_start).ok_or("the head of a part never ends")? + 2,
        };
        let start = head_end + 2;
        let end = find(body, next.as_bytes(), start.saturating_sub(2)).ok_or("a part never ends")?;
        let head = String::from_utf8_lossy(&body[head_start..head_end]);
        let disposition = field(&head, "content-disposition");
        let of_disposition = |name| disposition.and_then(|value| parameter(value.split_once(';')?.1, name));
        parts.push(FormPart {
            name: of_disposition("name").unwrap_or_default(),
            file_name: of_disposition("filename"),
            media_type: field(&head, "content-type").map(str::to_owned),
            content: body.slice(start.min(end)..end),
        });
        at = end + next.len();
    }
    Ok(parts)
}

/// The value of a header field of a part.
fn field<'h>(head: &'h str, wanted: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim())
    })
}

/// A parameter of a header field; a quoted value may contain semicolons.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    let mut rest = parameters;
    loop {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let (value, behind) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.find(';').map_or((value, ""), |end| value.split_at(end)),
        };
        if name.trim_matches([' ', ';', '\t']).eq_ignore_ascii_case(wanted) {
            return Some(value.trim().to_owned());
        }
        rest = behind;
    }
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let searched = bytes.get(from..)?;
    let first = *wanted.first()?;
    let mut at = 0;
    while let Some(step) = searched.get(at..)?.iter().position(|byte| *byte == first) {
        at += step;
        if searched[at..].starts_with(wanted) {
            return Some(from + at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=b1";

    /// Name, file name and content.
    type Expected<'e> = (&'e str, Option<&'e str>, &'e str);

    fn check(content_type: &str, body: &str, expected: Result<&[Expected<'_>], &'static str>) {
        let got = parse(content_type, &Bytes::copy_from_slice(body.as_bytes()));
        let expected = expected.map(|parts| parts.to_vec());
        let got = got.as_ref().map_err(|why| *why).map(|parts| {
            let text = |part: &FormPart| String::from_utf8_lossy(&part.content).into_owned();
            parts.iter().map(|part| (part.name.clone(), part.file_name.clone(), text(part))).collect::<Vec<_>>()
        });
        let expected = expected.map(|parts| {
            let owned = |(name, file, text): (&str, Option<&str>, &str)| {
                (name.to_owned(), file.map(str::to_owned), text.to_owned())
            };
            parts.into_iter().map(owned).collect::<Vec<_>>()
        });
        assert_eq!(got, expected, "{body:?}");
    }

    #[test]
    fn parts_have_names_and_content() {
        let file = "Content-Disposition: form-data; name=\"file\"; filename=\"a;b.zip\"\r\nContent-Type: x/y\r\n\r\n";
        let plain = "content-disposition: form-data; name=override\r\n\r\ntrue";
        let both = format!("--b1\r\n{plain}\r\n--b1\r\n{file}PK\r\n--x\r\n--b1--\r\n");
        check(KIND, &both, Ok(&[("override", None, "true"), ("file", Some("a;b.zip"), "PK\r\n--x")]));
        check(
            "Multipart/Form-Data; boundary=\"b1\"",
            &format!("preamble\r\n--b1\r\n{file}\r\n--b1--"),
            Ok(&[("file", Some("a;b.zip"), "")]),
        );
    }

    #[test]
    fn broken_bodies_are_rejected() {
        check(KIND, "--b1\r\nno: end", Err("the head of a part never ends"));
        check(KIND, "--b1\r\na: b\r\n\r\nPK", Err("a part never ends"));
        check(KIND, "--b1", Err("a part has no head"));
        check(KIND, "", Err("the body has no part"));
        check("multipart/form-data", "", Err("the body must be multipart/form-data"));
        check("application/zip; a=b", "PK", Err("the body must be multipart/form-data"));
        check(KIND, &format!("{}--b1--", "--b1\r\n\r\n\r\n".repeat(65)), Err("the body has too many parts"));
    }
}
