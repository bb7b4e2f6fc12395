//! The parts of a `multipart/mixed` body (RFC 2046 §5.1), which `$batch` consists of.

use super::Refusal;

/// Parts of a body: more is a load of data, which is a task for tools of the database.
pub const PARTS_MAX: usize = 1_000;

/// Header fields of a part.
const FIELDS_MAX: usize = 64;

/// A part.
#[derive(Debug, PartialEq, Eq)]
pub struct BatchPart<'b> {
    /// Its header fields, names in lower case.
    pub fields: Vec<(String, String)>,
    /// What follows the empty line.
    pub content: &'b [u8],
}

impl BatchPart<'_> {
    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// `boundary` of a Content-Type that is `multipart/mixed`.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, _) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    penstock_message::MediaType::parameter(content_type, "boundary").filter(|boundary| !boundary.is_empty())
}

/// The parts between the delimiters of a boundary.
pub fn parts<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<BatchPart<'b>>, Refusal> {
    let delimiter = format!("--{boundary}");
    let mut parts = Vec::new();
    let mut begun: Option<usize> = None;
    let mut at = 0;
    while at < body.len() {
        let end = line_end(body, at);
        let line = trimmed(&body[at..end]);
        let is_last = line.strip_suffix(b"--").is_some_and(|line| line == delimiter.as_bytes());
        if is_last || line == delimiter.as_bytes() {
            if let Some(from) = begun {
                if parts.len() == PARTS_MAX {
                    return Err(Refusal::invalid(format!("the batch has more than {PARTS_MAX} parts")));
                }
                parts.push(part(without_line_break(&body[from..at]))?);
            }
            if is_last {
                return Ok(parts);
            }
            begun = Some(end);
        }
        at = end;
    }
    Err(Refusal::invalid("the batch does not end with its boundary"))
}

/// Header fields up to an empty line, and what follows.
pub fn part(bytes: &[u8]) -> Result<BatchPart<'_>, Refusal> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let end = line_end(bytes, at);
        let line = trimmed(&bytes[at..end]);
        at = end;
        if line.is_empty() {
            break;
        }
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once(':') else {
            return Err(Refusal::invalid("a part of the batch has no empty line after its header fields"));
        };
        if fields.len() == FIELDS_MAX {
            return Err(Refusal::invalid(format!("a part of the batch has more than {FIELDS_MAX} header fields")));
        }
        fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(BatchPart { fields, content: &bytes[at..] })
}

/// The first line, and what follows it.
pub fn first_line(bytes: &[u8]) -> (String, &[u8]) {
    let end = line_end(bytes, 0);
    (String::from_utf8_lossy(trimmed(&bytes[..end])).into_owned(), &bytes[end..])
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length + 1)
}

fn without_line_break(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.trim_ascii_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_between_delimiters() {
        let body = b"preamble\r\n--b\r\nContent-Type: application/http\r\n\r\nGET A HTTP/1.1\r\n\r\n--b  \n\nx\n--bb\n\n--b--\r\nrest";
        let found = parts(body, "b").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].field("content-type"), Some("application/http"));
        assert_eq!(found[0].content, b"GET A HTTP/1.1\r\n");
        assert_eq!(found[1].content, b"x\n--bb\n");
        for wrong in ["", "--b\r\n\r\n", "--b\r\nno field\r\n--b--"] {
            assert!(parts(wrong.as_bytes(), "b").is_err(), "{wrong}");
        }
        assert!(parts("--b\n\n".repeat(PARTS_MAX + 2).as_bytes(), "b").is_err());
    }

    #[test]
    fn the_boundary_is_a_parameter() {
        assert_eq!(boundary("multipart/mixed; boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary("multipart/mixed;boundary=x"), Some("x"));
        assert_eq!(boundary("multipart/form-data; boundary=x"), None);
        assert_eq!(boundary("multipart/mixed"), None);
    }
}
