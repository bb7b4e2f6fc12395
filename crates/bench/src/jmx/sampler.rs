//! The HTTP request of a JMeter plan.
use super::Reading;
use super::tree::Element;
use crate::error::Error;
use crate::http::request::Request;
use crate::http::url::Url;
use bytes::Bytes;
use std::time::Duration;

/// A request with what JMeter keeps beside it.
#[derive(Debug)]
pub struct Sampler {
    pub name: String,
    pub request: Request,
    /// Media type of the file or form that is sent, unless a header says otherwise.
    pub content_type: Option<String>,
    pub connect_timeout: Duration,
    pub response_timeout: Duration,
}

/// Properties that change nothing here: how JMeter sends, or what it does with pages for people.
const WITHOUT_EFFECT: [&str; 10] = [
    "HTTPSampler.contentEncoding",
    "HTTPSampler.follow_redirects",
    "HTTPSampler.auto_redirects",
    "HTTPSampler.embedded_url_re",
    "HTTPSampler.implementation",
    "HTTPSampler.concurrentPool",
    "HTTPSampler.BROWSER_COMPATIBLE_MULTIPART",
    "HTTPSampler.ipSourceType",
    "TestPlan.comments",
    "HTTPSampler.monitor",
];

const KNOWN: [&str; 11] = [
    "HTTPsampler.Files",
    "HTTPsampler.Arguments",
    "HTTPSampler.domain",
    "HTTPSampler.port",
    "HTTPSampler.protocol",
    "HTTPSampler.path",
    "HTTPSampler.method",
    "HTTPSampler.use_keepalive",
    "HTTPSampler.connect_timeout",
    "HTTPSampler.response_timeout",
    "HTTPSampler.postBodyRaw",
];

/// How long JMeter would wait without a limit; a load must end.
const TIMEOUT_MS_DEFAULT: u64 = 600_000;

pub fn read(reading: &Reading<'_>, element: &Element) -> Result<Sampler, Error> {
    for property in &element.children {
        let name = property.attribute("name").unwrap_or_default();
        let idle = matches!(property.text.trim(), "" | "false") && property.children.is_empty();
        if !idle && !KNOWN.contains(&name) && !WITHOUT_EFFECT.contains(&name) {
            return Err(reading.wrong(property, &format!("`{name}` of an HTTP request is not supported")));
        }
    }
    let url = url(reading, element)?;
    let method = reading.text(element, "HTTPSampler.method")?;
    let method = if method.is_empty() { "GET".to_owned() } else { method };
    let mut request = Request {
        method,
        url,
        headers: Vec::new(),
        body: Bytes::new(),
        keep_alive: reading.flag(element, "HTTPSampler.use_keepalive")?,
    };
    let content_type = body(reading, element, &mut request)?;
    let timeout = |name| reading.number(element, name, TIMEOUT_MS_DEFAULT).map(Duration::from_millis);
    Ok(Sampler {
        name: element.attribute("testname").unwrap_or("HTTP Request").to_owned(),
        request,
        content_type,
        connect_timeout: timeout("HTTPSampler.connect_timeout")?,
        response_timeout: timeout("HTTPSampler.response_timeout")?,
    })
}

fn url(reading: &Reading<'_>, element: &Element) -> Result<Url, Error> {
    let text = |name| reading.text(element, name);
    let (protocol, domain) = (text("HTTPSampler.protocol")?, text("HTTPSampler.domain")?);
    let (port, path) = (text("HTTPSampler.port")?, text("HTTPSampler.path")?);
    let protocol = if protocol.is_empty() { "http".to_owned() } else { protocol.to_ascii_lowercase() };
    let port = if port.is_empty() { port } else { format!(":{port}") };
    let slash = if path.starts_with('/') || path.is_empty() { "" } else { "/" };
    let url = Url::parse(&format!("{protocol}://{domain}{port}{slash}{path}"));
    url.map_err(|error| reading.wrong(element, &error.to_string()))
}

/// Sets the body, or for a request without body the query; answers its media type.
fn body(reading: &Reading<'_>, element: &Element, request: &mut Request) -> Result<Option<String>, Error> {
    let list = |name: &str, inner: &str| {
        let outer = element.property(name).and_then(|outer| outer.property(inner));
        outer.map(|list| list.children.as_slice()).unwrap_or_default()
    };
    let files = list("HTTPsampler.Files", "HTTPFileArgs.files");
    let arguments = list("HTTPsampler.Arguments", "Arguments.arguments");
    match files {
        [] => {}
        [file] => {
            if !reading.text(file, "File.paramname")?.is_empty() || !arguments.is_empty() {
                return Err(reading.wrong(file, "a file in a form is not supported, only a file as the whole body is"));
            }
            let path = reading.path(&reading.text(file, "File.path")?);
            request.body = std::fs::read(&path).map_err(|error| Error::file(&path, &error))?.into();
            let kind = reading.text(file, "File.mimetype")?;
            return Ok(Some(kind).filter(|kind| !kind.is_empty()));
        }
        [_, second, ..] => return Err(reading.wrong(second, "a request with several files is not supported")),
    }
    if reading.flag(element, "HTTPSampler.postBodyRaw")? {
        let mut body = String::new();
        for argument in arguments {
            body.push_str(&reading.text(argument, "Argument.value")?);
        }
        request.body = body.into();
        return Ok(None);
    }
    let mut form = String::new();
    for argument in arguments {
        let (name, value) = (reading.text(argument, "Argument.name")?, reading.text(argument, "Argument.value")?);
        let encode = reading.flag(argument, "HTTPArgument.always_encode")?;
        let (name, value) = if encode { (percent_encode(&name), percent_encode(&value)) } else { (name, value) };
        form.push_str(&format!("{}{name}={value}", if form.is_empty() { "" } else { "&" }));
    }
    if form.is_empty() {
        return Ok(None);
    }
    if matches!(request.method.as_str(), "POST" | "PUT" | "PATCH") {
        request.body = form.into();
        return Ok(Some("application/x-www-form-urlencoded".to_owned()));
    }
    let separator = if request.url.path.contains('?') { '&' } else { '?' };
    request.url.path = format!("{}{separator}{form}", request.url.path);
    Ok(None)
}

fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}
