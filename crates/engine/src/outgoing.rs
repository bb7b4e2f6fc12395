//! From an exchange's message to the request a backend gets: method, address, headers, body.

use std::sync::Arc;

use penstock_message::{MediaType, Message, Method, Shape};

use crate::addressing;
use crate::endpoint::{Format, Target};
use crate::ports::{Outgoing, SendOptions};
use crate::{Exchange, Fault};

/// Whether a field may travel on: it does not belong to one hop and is not made anew by the sender. Micro Integrator does not
/// forward `User-Agent` and `Server`, either. `connection` is the value of the Connection field, whose members stay behind too
/// (RFC 9110 §7.6.1).
pub(crate) fn travels(name: &[u8], connection: &[u8]) -> bool {
    let is = |field: &[u8]| name.eq_ignore_ascii_case(field);
    // Most names have a length that none of these has.
    let stays = match name.len() {
        2 => is(b"TE"),
        4 => is(b"Host") || is(b"Date"),
        6 => is(b"Server") || is(b"Expect"),
        7 => is(b"Upgrade"),
        10 => is(b"Connection") || is(b"Keep-Alive") || is(b"User-Agent"),
        14 => is(b"Content-Length"),
        16 => is(b"Proxy-Connection"),
        17 => is(b"Transfer-Encoding"),
        _ => false,
    };
    !stays
        && (connection.is_empty()
            || !connection.split(|byte| *byte == b',').any(|member| member.trim_ascii().eq_ignore_ascii_case(name)))
}

/// Builds the request. The exchange's message keeps its headers and, unless it streams, its body.
pub(crate) fn prepare(exchange: &mut Exchange, target: Target, options: SendOptions) -> Result<Outgoing, Fault> {
    let method = method_of(exchange, &target);
    let mut url = url_of(exchange, &target)?;
    let fields_in_query = has_fields_in_query(exchange, &target);
    if fields_in_query {
        url = with_fields(exchange, url)?;
    }
    let bodiless = matches!(method, Method::Get | Method::Head) || fields_in_query;
    let mut addressed = match bodiless {
        true => None,
        false => addressing::addressed(exchange, &url, &target)?,
    };
    let loaded = exchange.loaded.clone();
    let message = &mut exchange.message;

    let connection = message.headers.get_bytes("Connection").unwrap_or_default();
    let mut headers = message.headers.filtered(|name, _| travels(name, connection));
    let host = message.axis2.get("REQUEST_HOST_HEADER").map(|value| value.to_text().into_owned());
    if let Some(host) = host {
        headers.set("Host", host);
    }
    for (name, value) in &target.headers {
        headers.set(name, value.as_bytes());
    }

    let mut body = penstock_message::Body::empty();
    let no_entity = message.axis2.is_true("NO_ENTITY_BODY");
    if bodiless || no_entity {
        headers.remove("Content-Type");
    } else {
        let sent = addressed.as_mut().unwrap_or(message);
        let output = sent.output(&loaded.program.conversion, shape_of(target.format))?;
        if let Some(content_type) = &output.content_type {
            headers.set("Content-Type", content_type);
        }
        if output.decoded {
            headers.remove("Content-Encoding");
        }
        body = output.into_body();
    }
    soap_action(message, &target, &mut headers);
    let mut outgoing = Message { headers, body, ..Message::default() };
    if !url.starts_with("http") {
        // The senders of other transports are directed by properties (`JMS_PRIORITY`, `OUT_ONLY`).
        outgoing.properties = message.properties.clone();
        outgoing.axis2 = message.axis2.clone();
    }
    Ok(Outgoing { url, method, message: outgoing, options })
}

/// Whether a URL names its scheme: `http://host`, `jms:/queue`, `mailto:a@example.com`.
pub(crate) fn is_absolute(url: &str) -> bool {
    // RFC 3986 §3.1
    url.split_once(':').is_some_and(|(scheme, rest)| {
        // `localhost:8080` is a host with its port.
        !rest.starts_with(|first: char| first.is_ascii_digit())
            && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
    })
}

/// Whether the fields of the body go into the query: with `format="get"`, and for a GET or DELETE whose message type was
/// set to that of forms.
pub(crate) fn has_fields_in_query(exchange: &Exchange, target: &Target) -> bool {
    let is_form = || {
        let message_type = exchange.message.axis2.get("messageType");
        message_type.is_some_and(|text| MediaType::parse(&text.to_text()) == MediaType::Form)
    };
    target.format == Format::Get || matches!(method_of(exchange, target), Method::Get | Method::Delete) && is_form()
}

/// The address with the fields of the body in its query.
fn with_fields(exchange: &mut Exchange, url: Arc<str>) -> Result<Arc<str>, Fault> {
    if exchange.message.body.is_empty() {
        return Ok(url);
    }
    let loaded = exchange.loaded.clone();
    let fields = exchange.message.query_fields(&loaded.program.conversion)?;
    Ok(if fields.is_empty() { url } else { join(&url, &format!("?{fields}")).into() })
}

/// The shape of an endpoint's format.
pub(crate) fn shape_of(format: Format) -> Shape {
    match format {
        Format::Soap11 => Shape::Soap11,
        Format::Soap12 => Shape::Soap12,
        Format::Pox => Shape::Pox,
        Format::Same | Format::Rest | Format::Get => Shape::Same,
    }
}

fn method_of(exchange: &Exchange, target: &Target) -> Method {
    match (&target.method, target.format) {
        (Some(method), _) => method.clone(),
        (None, Format::Soap11 | Format::Soap12) => Method::Post,
        (None, Format::Get) => Method::Get,
        (None, _) => exchange.message.method.clone(),
    }
}

fn url_of(exchange: &Exchange, target: &Target) -> Result<Arc<str>, Fault> {
    if !is_absolute(&target.url) {
        return Err(Fault::new(format!("`{}` is not an absolute URL", target.url)));
    }
    let url = target.url.clone();
    match &exchange.message.url_postfix {
        Some(postfix) if target.append_postfix && !postfix.is_empty() && takes_postfix(exchange, target.format) => {
            Ok(join(&url, postfix).into())
        }
        _ => Ok(url),
    }
}

/// What follows the service in a path goes to the backend with REST calls only. A call of SOAP is a POST to one address.
fn takes_postfix(exchange: &Exchange, format: Format) -> bool {
    match format {
        Format::Rest => true,
        Format::Soap11 | Format::Soap12 => false,
        Format::Same | Format::Pox | Format::Get => {
            exchange.message.method != Method::Post || !exchange.message.speaks_soap()
        }
    }
}

/// Appends a postfix: one slash between, queries merged.
fn join(url: &str, postfix: &str) -> String {
    let (base, base_query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let (path, query) = postfix.split_once('?').map_or((postfix, None), |(path, query)| (path, Some(query)));
    let mut joined = match (base.ends_with('/'), path.starts_with('/')) {
        (true, true) => format!("{base}{}", &path[1..]),
        (false, false) if !path.is_empty() => format!("{base}/{path}"),
        _ => format!("{base}{path}"),
    };
    for (index, part) in [base_query, query].into_iter().flatten().enumerate() {
        joined.push(if index == 0 { '?' } else { '&' });
        joined.push_str(part);
    }
    joined
}

/// SOAP 1.1 carries its action in a header of its own.
fn soap_action(message: &Message, target: &Target, headers: &mut penstock_message::Headers) {
    let action = message.addressing.as_ref().and_then(|addressing| addressing.action.clone());
    match (target.format, action) {
        (Format::Soap12, _) => {
            headers.remove("SOAPAction");
        }
        (Format::Soap11, Some(action)) => headers.set("SOAPAction", format!("\"{action}\"")),
        (Format::Soap11, None) if !headers.contains("SOAPAction") => {
            headers.set("SOAPAction", format!("\"{}\"", message.action().unwrap_or_default()));
        }
        (_, Some(action)) if headers.contains("SOAPAction") => headers.set("SOAPAction", format!("\"{action}\"")),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_postfix_is_joined_with_one_slash_and_merged_queries() {
        for (url, postfix, expected) in [
            ("http://h/a", "/b", "http://h/a/b"),
            ("http://h/a/", "/b?x=1", "http://h/a/b?x=1"),
            ("http://h/a?y=2", "b?x=1", "http://h/a/b?y=2&x=1"),
            ("http://h/a", "?x=1", "http://h/a?x=1"),
        ] {
            assert_eq!(join(url, postfix), expected);
        }
    }

    #[test]
    fn an_absolute_url_begins_with_its_scheme() {
        for url in ["http://h", "jms:/Orders?a=b", "mailto:a@example.com", "vfs:file:///tmp", "local:///services/A"] {
            assert!(is_absolute(url), "{url}");
        }
        for url in ["/a", "localhost:8080/a", "a/b:c", ":x", ""] {
            assert!(!is_absolute(url), "{url}");
        }
    }

    #[test]
    fn hop_by_hop_fields_stay_behind() {
        assert!(!travels(b"keep-alive", b""));
        assert!(!travels(b"X-Private", b"close, x-private"));
        assert!(travels(b"X-Public", b"close"));
    }
}
