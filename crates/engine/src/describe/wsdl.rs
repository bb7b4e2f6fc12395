//! The WSDL of a proxy service: the published one with its addresses rewritten, or a generated one.

/// Replaces the location of every `address` element; the rest of the document stays as written.
pub(super) fn rewrite_addresses(wsdl: &str, address: impl Fn(bool) -> String) -> String {
    let mut out = String::with_capacity(wsdl.len());
    let mut rest = wsdl;
    while let Some(at) = rest.find("address") {
        let (before, after) = rest.split_at(at + "address".len());
        out.push_str(before);
        rest = after;
        let opens = before.trim_end_matches("address").ends_with([':', '<'])
            && after.starts_with(|next: char| next.is_whitespace());
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

/// Replaces the values of `schemaLocation` (an `xsd`) and `location` (a `wsdl`) for which there is another one.
pub(super) fn rewrite_imports(wsdl: &str, other: impl Fn(&str, &str) -> Option<String>) -> String {
    let mut out = String::with_capacity(wsdl.len());
    let mut rest = wsdl;
    while let Some(at) = rest.find("ocation=") {
        let (before, after) = rest.split_at(at + "ocation=".len());
        out.push_str(before);
        rest = after;
        let Some(quote) = after.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        let Some((value, behind)) = after[1..].split_once(quote) else { continue };
        let kind = if before.ends_with("schemaLocation=") { "xsd" } else { "wsdl" };
        if let Some(other) = other(kind, &value.replace("&amp;", "&")) {
            out.push(quote);
            out.push_str(&other);
            out.push(quote);
            rest = behind;
        }
    }
    out.push_str(rest);
    out
}

/// The WSDL of a proxy that publishes none: one operation, `mediate`, that takes anything.
pub(super) fn generated(name: &str, address: &str) -> String {
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
    fn imports_are_rewritten() {
        let wsdl = r#"<w><i location="a.wsdl"/><x:import namespace='n' schemaLocation='b.xsd'/><i location="c"/> location=</w>"#;
        let rewritten =
            rewrite_imports(wsdl, |kind, location| (location != "c").then(|| format!("?{kind}={location}")));
        assert_eq!(
            rewritten,
            r#"<w><i location="?wsdl=a.wsdl"/><x:import namespace='n' schemaLocation='?xsd=b.xsd'/><i location="c"/> location=</w>"#
        );
    }

    #[test]
    fn only_address_locations_are_rewritten() {
        let wsdl = r#"<w><!-- address --><soap:address location="http://old:1/a"/><s:address  location='https://old/b'/><x address="k"/></w>"#;
        let expected = r#"<w><!-- address --><soap:address location="http://new"/><s:address  location='https://new'/><x address="k"/></w>"#;
        let rewritten =
            rewrite_addresses(wsdl, |secure| if secure { "https://new".into() } else { "http://new".into() });
        assert_eq!(rewritten, expected);
    }
}
