//! `<address uri="…" format="…">` and `<wsdl>`.

use std::sync::Arc;

use penstock_engine::endpoint::{Format, Leaf, Target};
use penstock_engine::{Exchange, Fault, FixedAddress};
use penstock_xml::{Document, ParseOptions};

use super::{UrlTemplate, url_check};
use crate::{Compiler, Element, SourceDocument};

struct Address {
    uri: Uri,
    format: Format,
}

enum Uri {
    Constant(FixedAddress),
    Computed(UrlTemplate),
}

/// Compiles an address.
pub(super) fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Box<dyn Leaf>> {
    let uri = el.required(cx, "uri")?;
    let uri = super::policy::configured(cx, uri, &el.attribute_place("uri"));
    url_check::report(cx, &uri, &el.attribute_place("uri"));
    let format = format(cx, el);
    el.attribute("statistics");
    unsupported_form(cx, el);
    let uri = if uri.contains('{') {
        Uri::Computed(UrlTemplate::compile_address(cx, el, &uri, el.attribute_place("uri"))?)
    } else {
        Uri::Constant(FixedAddress::new(uri.into()))
    };
    Some(Box::new(Address { uri, format }))
}

/// `<wsdl uri service port>`: the address is what the WSDL says, when the WSDL is inside.
pub(super) fn compile_wsdl(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Box<dyn Leaf>> {
    let (uri, service, port) = (el.attribute("uri"), el.attribute("service"), el.attribute("port"));
    let format = format(cx, el);
    unsupported_form(cx, el);
    let inline = el.children().find(|child| child.name() == "definitions");
    if let Some(definitions) = inline {
        definitions.accept_all();
        if let Some(address) = address_of(&definitions, service, port) {
            return Some(Box::new(Address { uri: Uri::Constant(FixedAddress::new(address)), format }));
        }
    }
    if let Some(address) = uri.and_then(|uri| address_in(cx, uri, service, port)) {
        return Some(Box::new(Address { uri: Uri::Constant(FixedAddress::new(address)), format }));
    }
    // The service's WSDL lives beside the service: its address without the query.
    let uri = uri.map(|uri| super::policy::configured(cx, uri, &el.attribute_place("uri")))?;
    let base = uri.split_once('?').map_or(uri.as_str(), |(base, _)| base).trim_end_matches(".wsdl");
    cx.warn(el.place(), format!("the WSDL at `{uri}` is not fetched; messages go to `{base}`"));
    Some(Box::new(Address { uri: Uri::Constant(FixedAddress::new(base.into())), format }))
}

/// The address in a WSDL that is a resource of the configuration.
fn address_in(cx: &Compiler<'_>, uri: &str, service: Option<&str>, port: Option<&str>) -> Option<Arc<str>> {
    let resource = cx.resource(uri).or_else(|| cx.resource(uri.trim_start_matches("file:")))?;
    let document = Document::parse(resource.bytes.clone(), &ParseOptions::default()).ok()?;
    let source = SourceDocument::new(resource.at.file.clone(), Arc::new(document));
    address_of(&source.root()?, service, port)
}

/// The address of a service's port.
fn address_of(definitions: &Element<'_>, service: Option<&str>, port: Option<&str>) -> Option<Arc<str>> {
    definitions
        .elements("service")
        .filter(|found| service.is_none_or(|wanted| found.attribute("name") == Some(wanted)))
        .flat_map(|found| found.elements("port").collect::<Vec<_>>())
        .filter(|found| port.is_none_or(|wanted| found.attribute("name") == Some(wanted)))
        .find_map(|found| found.child("address")?.attribute("location"))
        .map(Arc::from)
}

/// `optimize` and `encoding` of an address or default endpoint.
pub(super) fn unsupported_form(cx: &mut Compiler<'_>, el: &Element<'_>) {
    if let Some(optimize) = el.attribute("optimize").filter(|optimize| !optimize.is_empty()) {
        let message = format!("`optimize=\"{optimize}\"` is not supported; attachments stay inside the XML");
        cx.warn(el.attribute_place("optimize"), message);
    }
    if let Some(encoding) = el.attribute("encoding").filter(|encoding| !encoding.is_empty())
        && !encoding.eq_ignore_ascii_case("UTF-8")
    {
        let message = format!("the encoding `{encoding}` is not supported; what is written here is UTF-8");
        cx.warn(el.attribute_place("encoding"), message);
    }
}

/// `format` of an address or default endpoint.
pub(super) fn format(cx: &mut Compiler<'_>, el: &Element<'_>) -> Format {
    match el.attribute("format") {
        None | Some("" | "leave-as-is") => Format::Same,
        Some("soap11") => Format::Soap11,
        Some("soap12") => Format::Soap12,
        Some("pox") => Format::Pox,
        Some("get") => Format::Get,
        Some("rest") => Format::Rest,
        Some(other) => {
            cx.warn(
                el.attribute_place("format"),
                format!("the format `{other}` is not one of soap11, soap12, pox, get, rest"),
            );
            Format::Same
        }
    }
}

impl Leaf for Address {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let url = match &self.uri {
            Uri::Constant(address) => address.url.clone(),
            Uri::Computed(template) => template.expand(exchange)?.into(),
        };
        Ok(Target {
            url,
            method: None,
            format: self.format,
            append_postfix: true,
            headers: Vec::new(),
            tls: None,
            addressing: None,
        })
    }

    fn fixed(&self) -> Option<&FixedAddress> {
        match &self.uri {
            Uri::Constant(address) if self.format == Format::Same => Some(address),
            _ => None,
        }
    }
}
