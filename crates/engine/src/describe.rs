//! What a service says of itself: `?wsdl` of a proxy, `?swagger.json` of an API.

use std::rc::Rc;

use penstock_message::{Body, Headers, Message, RequestLine};

use crate::core::Core;
use crate::route::{Api, Proxy};

/// The answer to `?wsdl` and `?wsdl2`. `None` for any other query.
pub(crate) fn proxy(core: &Rc<Core>, proxy: &Proxy, query: Option<&str>) -> Option<Message> {
    let query = query?;
    if !matches!(query.to_ascii_lowercase().as_str(), "wsdl" | "wsdl2" | "singlewsdl") {
        return None;
    }
    let environment = &core.environment;
    let address = |scheme: &str, port: u16| format!("{scheme}://{}:{port}/services/{}", environment.host, proxy.name);
    let text = match &proxy.wsdl {
        Some(resource) => rewrite_addresses(&resource.text(), |secure| {
            if secure { address("https", environment.https_port) } else { address("http", environment.http_port) }
        }),
        None => generated(&proxy.name, &address("http", environment.http_port)),
    };
    Some(answer("text/xml; charset=UTF-8", text))
}

/// The answer to `?swagger.json` when the API publishes a definition.
pub(crate) fn api(api: &Api, line: &RequestLine) -> Option<Message> {
    let swagger = api.swagger.as_ref()?;
    let context_only = line.path().trim_end_matches('/') == &*api.context;
    (context_only && line.query() == Some("swagger.json")).then(|| answer("application/json", swagger.to_string()))
}

fn answer(content_type: &str, text: String) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(text), status: 200, ..Message::default() }
}

/// Replaces the location of every `address` element; the rest of the document stays as written.
fn rewrite_addresses(wsdl: &str, address: impl Fn(bool) -> String) -> String {
    let mut out = String::with_capacity(wsdl.len());
    let mut rest = wsdl;
    while let Some(at) = rest.find("address") {
        let (before, after) = rest.split_at(at + "address".len());
        out.push_str(before);
        rest = after;
        let opens = before.trim_end_matches("address").ends_with([':', '<']) && after.starts_with(|next: char| next.is_whitespace());
        let end = after.find('>').unwrap_or(0);
        if !opens || end == 0 {
            continue;
        }
        let tag = &after[..end];
        let Some(location) = tag.find("location=") else { continue };
        let value_at = location + "location=".len();
        let Some(quote) = tag[value_at..].chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some(length) = tag[value_at + 1..].find(quote) else { continue };
        let old = &tag[value_at + 1..value_at + 1 + length];
        out.push_str(&tag[..=value_at]);
        out.push_str(&address(old.starts_with("https")));
        rest = &after[value_at + 1 + length..];
    }
    out.push_str(rest);
    out
}

/// The WSDL of a proxy that publishes none: one operation, `mediate`, that takes anything.
fn generated(name: &str, address: &str) -> String {
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:tns="urn:penstock:{name}" targetNamespace="urn:penstock:{name}">
  <wsdl:types><xsd:schema targetNamespace="urn:penstock:{name}"><xsd:element name="mediate" type="xsd:anyType"/></xsd:schema></wsdl:types>
  <wsdl:message name="mediate"><wsdl:part name="parameters" element="tns:mediate"/></wsdl:message>
  <wsdl:portType name="{name}PortType"><wsdl:operation name="mediate"><wsdl:input message="tns:mediate"/><wsdl:output message="tns:mediate"/></wsdl:operation></wsdl:portType>
  <wsdl:binding name="{name}Soap11Binding" type="tns:{name}PortType"><soap:binding transport="http://schemas.xmlsoap.org/soap/http" style="document"/><wsdl:operation name="mediate"><soap:operation soapAction="urn:mediate" style="document"/><wsdl:input><soap:body use="literal"/></wsdl:input><wsdl:output><soap:body use="literal"/></wsdl:output></wsdl:operation></wsdl:binding>
  <wsdl:service name="{name}"><wsdl:port name="{name}HttpSoap11Endpoint" binding="tns:{name}Soap11Binding"><soap:address location="{address}"/></wsdl:port></wsdl:service>
</wsdl:definitions>
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_address_locations_are_rewritten() {
        let wsdl = r#"<w><!-- address --><soap:address location="http://old:1/a"/><s:address  location='https://old/b'/><x address="k"/></w>"#;
        let expected = r#"<w><!-- address --><soap:address location="http://new"/><s:address  location='https://new'/><x address="k"/></w>"#;
        let rewritten = rewrite_addresses(wsdl, |secure| if secure { "https://new".into() } else { "http://new".into() });
        assert_eq!(rewritten, expected);
    }
}
