//! The parts of a `multipart/form-data` body (RFC 7578): what a deployment uploads.

use bytes::Bytes;

/// Fields of the head of one part. A browser sends two.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// Parts of one body; an upload has one or two.
const PARTS_MAX: usize = 100;

/// A part.
#[derive(Debug)]
pub struct FormPart {
    /// The name of the field.
    name: Option<String>,
    /// The name of the file, when the part has one.
    pub file_name: Option<String>,
    /// The content.
    pub content: Bytes,
}

/// The content of the field of a name; the only file when there is just one.
pub fn file(content_type: &str, body: &Bytes, field: &str) -> Result<Bytes, &'static str> {
    let mut parts = parts(content_type, body)?;
    if let Some(found) = parts.iter().position(|part| part.name.as_deref() == Some(field)) {
        return Ok(parts.swap_remove(found).content);
    }
    parts.retain(|part| part.file_name.is_some());
    match parts.as_slice() {
        [only] => Ok(only.content.clone()),
        _ => Err("the body has no field `file`"),
    }
}

/// All parts.
pub fn parts(content_type: &str, body: &Bytes) -> Result<Vec<FormPart>, &'static str> {
    let (kind, parameters) = content_type.split_once(';').ok_or("the body must be multipart/form-data")?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err("the body must be multipart/form-data");
    }
    let boundary = parameter(parameters, "boundary").filter(|boundary| !boundary.is_empty() && boundary.len() <= 70);
    let delimiter = format!("--{}", boundary.ok_or("the content type has no boundary")?);
    let mut at = find(body, delimiter.as_bytes(), 0).ok_or("the body has no part")? + delimiter.len();
    let mut parts = Vec::new();
    loop {
        let rest = &body[at..];
        if rest.starts_with(b"--") {
            break;
        }
        let head_start = at + find(rest, b"\r\n", 0).ok_or("a part has no head")? + 2;
        let limit = body.len().min(head_start + HEAD_BYTES_MAX);
        // A part without fields begins with the empty line.
        let head_end = if body[head_start..].starts_with(b"\r\n") {
            head_start
        } else {
            find(&body[..limit], b"\r\n\r\n", head_start).ok_or("a part's head never ends")? + 2
        };
        let start = head_end + 2;
        let end =
            find(body, format!("\r\n{delimiter}").as_bytes(), start.saturating_sub(2)).ok_or("a part never ends")?;
        let content = body.slice(start.min(end)..end);
        let head = String::from_utf8_lossy(&body[head_start..head_end]);
        let disposition = disposition(&head).unwrap_or_default();
        let (name, file_name) = (parameter(disposition, "name"), parameter(disposition, "filename"));
        if parts.len() >= PARTS_MAX {
            return Err("the body has more than 100 parts");
        }
        parts.push(FormPart { name, file_name, content });
        at = end + 2 + delimiter.len();
    }
    Ok(parts)
}

/// The parameters of the Content-Disposition of a part.
fn disposition(head: &str) -> Option<&str> {
    let disposition = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    Some(disposition.split_once(';')?.1)
}

/// A parameter of a header field.
fn parameter(parameters: &str, wanted: &str) -> Option<String> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case(wanted).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let searched = bytes.get(from..)?;
    searched.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, body: &str, expected: Result<&str, &'static str>) {
        let got = file(content_type, &Bytes::copy_from_slice(body.as_bytes()), "file");
        assert_eq!(
            got.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            expected.map(str::to_owned),
            "{body:?}"
        );
    }

    #[test]
    fn finds_the_file() {
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a.zip\"\r\nContent-Type: application/zip\r\n\r\n";
        let kind = "multipart/form-data; boundary=b1";
        check(kind, &format!("--b1\r\n{head}PK\r\n--x\r\n--b1--\r\n"), Ok("PK\r\n--x"));
        check("Multipart/Form-Data; boundary=\"b1\"", &format!("preamble\r\n--b1\r\n{head}PK\r\n--b1--"), Ok("PK"));
        let other = "--b1\r\ncontent-disposition: form-data; name=override\r\n\r\ntrue\r\n";
        check(kind, &format!("{other}--b1\r\n{head}\r\n--b1--"), Ok(""));
        check(kind, &format!("--b1\r\n{}PK\r\n--b1--", head.replace("\"file\"", "\"api\"")), Ok("PK"));
        check(kind, &format!("{other}--b1--"), Err("the body has no field `file`"));
        check(kind, &format!("--b1\r\n{head}PK"), Err("a part never ends"));
        check(kind, "--b1\r\nno: end", Err("a part's head never ends"));
        check(kind, "--b1", Err("a part has no head"));
        check(kind, "", Err("the body has no part"));
        check("multipart/form-data", "", Err("the body must be multipart/form-data"));
        check("application/zip; a=b", "PK", Err("the body must be multipart/form-data"));
    }
}
