//! Recorded requests: HAR files of browsers and proxies, and lines of JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use penstock_message::Method;
use serde_json::Value;

/// Requests of one file; more is a load test.
const REQUESTS_MAX: usize = 1_000_000;

/// Fields that belong to the connection that was recorded.
const NOT_SENT: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "keep-alive",
    "upgrade",
    "http2-settings",
];

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The method.
    pub method: Method,
    /// The path and the query.
    pub target: String,
    /// Header fields, those of the connection excepted.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// Reads the requests of a HAR file, or of lines of JSON: `{"method": "GET", "path": "/a?b", "headers": {…}, "body": "…"}`.
pub fn read(text: &str) -> Result<Vec<Recorded>, String> {
    let har = serde_json::from_str::<Value>(text).ok().filter(|value| value["log"]["entries"].is_array());
    let requests: Vec<Recorded> = match har {
        Some(har) => {
            let entries = har["log"]["entries"].as_array().into_iter().flatten();
            entries.enumerate().map(|(index, entry)| of_har(entry, index + 1)).collect::<Result<_, _>>()?
        }
        None => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines.map(|(index, line)| of_line(line, index + 1)).collect::<Result<_, _>>()?
        }
    };
    if requests.len() > REQUESTS_MAX {
        return Err(format!("{} requests; the limit is {REQUESTS_MAX}", requests.len()));
    }
    Ok(requests)
}

fn of_har(entry: &Value, number: usize) -> Result<Recorded, String> {
    let request = &entry["request"];
    let wrong = |what: &str| format!("entry {number}: {what}");
    let method = request["method"].as_str().ok_or_else(|| wrong("`request.method` is missing"))?;
    let url = request["url"].as_str().ok_or_else(|| wrong("`request.url` is missing"))?;
    let fields = request["headers"].as_array().into_iter().flatten();
    let pair = |field: &Value| Some((field["name"].as_str()?.to_owned(), field["value"].as_str()?.to_owned()));
    let body = &request["postData"];
    let text = body["text"].as_str().unwrap_or_default();
    let body = match body["encoding"].as_str() {
        Some("base64") => STANDARD.decode(text).map_err(|_| wrong("the body is not base64"))?,
        _ => text.as_bytes().to_vec(),
    };
    let headers = fields.filter_map(pair).filter(|(name, _)| is_sent(name)).collect();
    Ok(Recorded { method: super::method(method), target: target(url), headers, body: body.into() })
}

fn of_line(line: &str, number: usize) -> Result<Recorded, String> {
    let wrong = |what: &str| format!("line {number}: {what}");
    let request: Value = serde_json::from_str(line).map_err(|error| wrong(&format!("not JSON: {error}")))?;
    let path = request["path"].as_str().ok_or_else(|| wrong("`path` is missing"))?;
    let headers = request["headers"].as_object().into_iter().flatten();
    let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let body = match &request["body"] {
        Value::Null => Vec::new(),
        Value::String(text) => text.as_bytes().to_vec(),
        other => other.to_string().into_bytes(),
    };
    Ok(Recorded {
        method: super::method(request["method"].as_str().unwrap_or("GET")),
        target: target(path),
        headers: headers.filter(|(name, _)| is_sent(name)).collect(),
        body: body.into(),
    })
}

/// HTTP/2 writes the parts of the request line as fields that begin with a colon.
fn is_sent(name: &str) -> bool {
    !name.starts_with(':') && !NOT_SENT.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The path and query of an address, without its fragment.
fn target(url: &str) -> String {
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        None => url,
    };
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let har = r#"{"log": {"entries": [{"request": {"method": "POST", "url": "http://old:8290/a/b?c=1#d",
            "headers": [{"name": "Host", "value": "old"}, {"name": ":path", "value": "/"}, {"name": "X-A", "value": "1"}],
            "postData": {"text": "eA==", "encoding": "base64"}}}]}}"#;
        let expected = Recorded {
            method: Method::Post,
            target: "/a/b?c=1".to_owned(),
            headers: vec![("X-A".to_owned(), "1".to_owned())],
            body: "x".into(),
        };
        assert_eq!(read(har).unwrap(), std::slice::from_ref(&expected));
        let line =
            r#"{"method": "POST", "path": "/a/b?c=1", "headers": {"X-A": "1", "Content-Length": "1"}, "body": "x"}"#;
        assert_eq!(read(&format!("\n{line}\n{line}\n")).unwrap(), [expected.clone(), expected]);
        assert_eq!(read("{\"path\": \"a\", \"body\": {\"b\": 1}}").unwrap()[0].body, "{\"b\":1}");
        for (text, why) in [("x", "line 1: not JSON"), ("{}", "line 1: `path` is missing")] {
            assert!(read(text).unwrap_err().starts_with(why), "{text}");
        }
        assert!(read("{\"log\": {\"entries\": [{}]}}").unwrap_err().contains("entry 1"));
    }
}
