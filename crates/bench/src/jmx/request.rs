//! A request of a plan with the values of one user filled in.
use super::context::Context;
use super::cookies::Jar;
use super::script::{Body, Parameter, RequestParts};
use super::urlencoded;
use crate::http::request::Request;
use crate::http::url::Url;
use base64::Engine as _;
use bytes::Bytes;

/// Fills in the values. An error is why the request cannot be sent.
pub fn fill(parts: &RequestParts, context: &mut Context, jar: &Jar) -> Result<Request, String> {
    let method = parts.method.evaluate(context).trim().to_owned();
    let method = if method.is_empty() { "GET".to_owned() } else { method };
    let mut url = address(parts, context)?;
    let mut headers = Vec::new();
    for (name, value) in &parts.headers {
        let (name, value) = (name.evaluate(context).trim().to_owned(), value.evaluate(context).trim().to_owned());
        headers.push((name, value));
    }
    let mut media_type = None;
    let body: Bytes = match &parts.body {
        Body::None => Bytes::new(),
        Body::File { bytes, media_type: given } => {
            media_type = given.as_ref().map(|text| text.evaluate(context));
            bytes.clone()
        }
        Body::Raw { texts, latin1 } => {
            let mut body = String::new();
            texts.iter().for_each(|text| text.evaluate_into(context, &mut body));
            if *latin1 { latin1_bytes(&body)?.into() } else { body.into() }
        }
        Body::Parameters(parameters) => {
            // The methods whose parameters JMeter puts into the address.
            let query = matches!(method.as_str(), "GET" | "HEAD" | "DELETE" | "OPTIONS");
            let text = form(parameters, query, context);
            if query {
                let separator = if url.path.contains('?') { '&' } else { '?' };
                url.path = format!("{}{separator}{text}", url.path);
                check_path(&url.path)?;
                Bytes::new()
            } else {
                media_type = Some("application/x-www-form-urlencoded".to_owned());
                text.into()
            }
        }
    };
    let has = |headers: &[(String, String)], name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
    if let Some(media_type) = media_type.filter(|_| !has(&headers, "content-type")) {
        headers.push(("Content-Type".to_owned(), media_type));
    }
    if let Some(cookies) = jar.field(&url) {
        headers.push(("Cookie".to_owned(), cookies));
    }
    if let Some(value) = authorization(parts, &url, context).filter(|_| !has(&headers, "authorization")) {
        headers.push(("Authorization".to_owned(), value));
    }
    Ok(Request { method, url, headers, body, keep_alive: parts.keep_alive })
}

fn address(parts: &RequestParts, context: &mut Context) -> Result<Url, String> {
    let path = parts.path.evaluate(context);
    let path = path.trim();
    if path.starts_with("http://") || path.starts_with("https://") {
        return Url::parse(path).map_err(|error| error.to_string());
    }
    let protocol = parts.protocol.evaluate(context).trim().to_ascii_lowercase();
    let protocol = if protocol.is_empty() { "http" } else { &protocol };
    let (domain, port) = (parts.domain.evaluate(context), parts.port.evaluate(context));
    let port = if port.trim().is_empty() { String::new() } else { format!(":{}", port.trim()) };
    let slash = if path.starts_with('/') || path.is_empty() { "" } else { "/" };
    Url::parse(&format!("{protocol}://{}{port}{slash}{path}", domain.trim())).map_err(|error| error.to_string())
}

fn check_path(path: &str) -> Result<(), String> {
    let wrong = path.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
    if wrong { Err(format!("the address `{path}` holds a space or a control character")) } else { Ok(()) }
}

/// Names and values, as a query or as a form.
fn form(parameters: &[Parameter], query: bool, context: &mut Context) -> String {
    let mut text = String::new();
    for parameter in parameters {
        let (name, value) = (parameter.name.evaluate(context), parameter.value.evaluate(context));
        // In a form, JMeter decodes what the plan holds encoded, and encodes it again.
        let coded = |text: &str| match (parameter.encode, query) {
            (true, _) => urlencoded::encode(text),
            (false, true) => text.to_owned(),
            (false, false) => urlencoded::encode(&urlencoded::decode(text)),
        };
        let equals = if parameter.equals_sign { "=" } else { "" };
        let separator = if text.is_empty() { "" } else { "&" };
        text.push_str(&format!("{separator}{}{equals}{}", coded(&name), coded(&value)));
    }
    text
}

fn latin1_bytes(text: &str) -> Result<Vec<u8>, String> {
    let byte = |letter: char| u8::try_from(u32::from(letter)).map_err(|_| format!("`{letter}` is not in ISO-8859-1"));
    text.chars().map(byte).collect()
}

fn authorization(parts: &RequestParts, url: &Url, context: &mut Context) -> Option<String> {
    let address = url.to_string();
    for one in &parts.authorizations {
        if address.starts_with(one.prefix.evaluate(context).trim()) {
            let credentials = format!("{}:{}", one.user.evaluate(context), one.password.evaluate(context));
            return Some(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(credentials)));
        }
    }
    None
}
