//! What proxy services say of themselves: the list at `/services/`, and `?wsdl`, `?xsd` and `?info` of one.

use std::borrow::Cow;
use std::rc::Rc;

use penstock_message::{Message, RESERVED, percent_decoded};
use penstock_xml::{Document, NodeId, ParseOptions, WriteOptions, escaped};
use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::{answer, generated, published, wsdl};
use crate::core::Core;
use crate::incoming;
use crate::route::{Definition, Proxy, Routes};

/// What is escaped in a location that is the value of a query.
const LOCATION: &AsciiSet = &RESERVED.remove(b'/').remove(b':');

const XML: &str = "text/xml; charset=UTF-8";
const HTML: &str = "text/html; charset=UTF-8";
const SCHEMAS: &str = "http://www.w3.org/2001/XMLSchema";

/// The list of services, for its path and if there are any.
pub(crate) fn services(core: &Core, routes: &Routes, path: &str) -> Option<Message> {
    if !matches!(path, "/services" | "/services/") || routes.proxies().next().is_none() {
        return None;
    }
    if core.environment.services_hidden {
        return Some(incoming::empty(403));
    }
    let mut proxies: Vec<&Proxy> = routes.proxies().map(|proxy| &**proxy).filter(|proxy| !is_hidden(proxy)).collect();
    proxies.sort_by(|one, other| one.name.cmp(&other.name));
    let mut page = "<html><head><title>Axis2: Services</title></head><body><h2>Deployed services</h2>".to_owned();
    for proxy in proxies {
        let name = escaped(&proxy.name);
        page.push_str(&format!("<h3><a href=\"/services/{name}?wsdl\">{name}</a></h3>"));
        page.push_str(&operations(proxy));
    }
    page.push_str("</body></html>");
    Some(answer(HTML, page))
}

/// What Micro Integrator does not list.
fn is_hidden(proxy: &Proxy) -> bool {
    let is_true = |(name, value): &(std::sync::Arc<str>, std::sync::Arc<str>)| {
        matches!(&**name, "hiddenService" | "adminService") && value.trim().eq_ignore_ascii_case("true")
    };
    proxy.name.starts_with("__") || proxy.parameters.iter().any(is_true)
}

/// The response when the first parameter of a query requests a description. `None` for any other query.
pub(crate) fn proxy(core: &Rc<Core>, proxy: &Proxy, query: Option<&str>) -> Option<Message> {
    let first = query?.split('&').next()?;
    let (item, name) = match first.split_once('=') {
        Some((item, name)) => (item, percent_decoded(name, false)),
        None => (first, Cow::Borrowed("")),
    };
    Some(match item.to_ascii_lowercase().as_str() {
        // Descriptions in the second version of the language are not made.
        "wsdl" | "wsdl2" | "singlewsdl" => document(description(core, proxy, &name)),
        "xsd" => document(schema(core, proxy, &name)),
        "info" => answer(HTML, info(core, proxy)),
        "swagger.json" => definition(core, proxy, true)?,
        "swagger.yaml" => definition(core, proxy, false)?,
        _ => return None,
    })
}

/// The OpenAPI definition. Its server is the one over HTTPS when the service is offered there, as in Micro Integrator.
fn definition(core: &Core, proxy: &Proxy, as_json: bool) -> Option<Message> {
    match proxy.definition.as_ref()? {
        Definition::Published(resource) => published(&resource.text(), as_json),
        Definition::Generated(definition) => {
            let mut definition = (**definition).clone();
            definition["servers"] = serde_json::json!([{ "url": address(core, proxy, proxy.https) }]);
            Some(generated(&definition, as_json))
        }
    }
}

fn document(text: Option<String>) -> Message {
    text.map_or_else(|| incoming::empty(404), |text| answer(XML, text))
}

fn address(core: &Core, proxy: &Proxy, secure: bool) -> String {
    let environment = &core.environment;
    let (scheme, port) = if secure { ("https", environment.https_port) } else { ("http", environment.http_port) };
    format!("{scheme}://{}:{port}/services/{}", environment.host, proxy.name)
}

/// The description itself, or a document it imports by its location.
fn description(core: &Core, proxy: &Proxy, location: &str) -> Option<String> {
    let own = || match &proxy.wsdl {
        Some(resource) => resource.text(),
        None => Cow::Owned(wsdl::generated(&proxy.name, &address(core, proxy, false))),
    };
    let text = if location.is_empty() { own() } else { imported(proxy, location)? };
    Some(located(core, proxy, &text))
}

fn imported<'p>(proxy: &'p Proxy, location: &str) -> Option<Cow<'p, str>> {
    let (_, resource) = proxy.wsdl_imports.iter().find(|(known, _)| **known == *location)?;
    Some(resource.text())
}

/// A document with the addresses of this server: of the service, and of what it imports.
fn located(core: &Core, proxy: &Proxy, text: &str) -> String {
    let text = wsdl::rewrite_addresses(text, |secure| address(core, proxy, secure));
    wsdl::rewrite_imports(&text, |kind, location| {
        let known = proxy.wsdl_imports.iter().any(|(known, _)| **known == *location);
        known.then(|| format!("{}?{kind}={}", address(core, proxy, false), utf8_percent_encode(location, LOCATION)))
    })
}

/// The first schema in the description, the one called `xsd0`, `xsd1`, …, or one it imports by its location.
fn schema(core: &Core, proxy: &Proxy, name: &str) -> Option<String> {
    if let Some(text) = imported(proxy, name) {
        return Some(located(core, proxy, &text));
    }
    let number: usize = match name.split('.').next() {
        None | Some("") => 0,
        Some(name) => name.strip_prefix("xsd")?.parse().ok()?,
    };
    let text = description(core, proxy, "")?;
    let document = Document::parse(text, &ParseOptions::default()).ok()?;
    let is_schema = |node: &NodeId| {
        document.is_element(*node) && document.local_name(*node) == "schema" && document.namespace(*node) == SCHEMAS
    };
    let schema = document.descendants(document.root_element()?).filter(is_schema).nth(number)?;
    String::from_utf8(penstock_xml::to_vec(&document, schema, &WriteOptions::default())).ok()
}

fn info(core: &Core, proxy: &Proxy) -> String {
    let name = escaped(&proxy.name);
    let mut page = format!("<html><head><title>{name}</title></head><body><h2>{name}</h2>");
    for secure in [false, true].into_iter().filter(|secure| if *secure { proxy.https } else { proxy.http }) {
        let address = escaped(&address(core, proxy, secure));
        page.push_str(&format!("<p>Service EPR : {address}</p>"));
    }
    page.push_str(&operations(proxy));
    page.push_str("</body></html>");
    page
}

fn operations(proxy: &Proxy) -> String {
    let items = proxy.operations.iter().map(|name| format!("<li>{}</li>", escaped(name)));
    let items = if proxy.operations.is_empty() { "<li>mediate</li>".to_owned() } else { items.collect() };
    format!("Available operations <ul>{items}</ul>")
}
