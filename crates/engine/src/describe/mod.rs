//! What a service says of itself: `?wsdl` of a proxy, `?swagger.json` and `?swagger.yaml` of an API.

mod openapi;
mod wsdl;
mod yaml;

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
        Some(resource) => wsdl::rewrite_addresses(&resource.text(), |secure| {
            if secure { address("https", environment.https_port) } else { address("http", environment.http_port) }
        }),
        None => wsdl::generated(&proxy.name, &address("http", environment.http_port)),
    };
    Some(answer("text/xml; charset=UTF-8", text))
}

/// The answer to `?swagger.json` and `?swagger.yaml`: the published definition, or one made from the
/// resources. `None` for any other request.
pub(crate) fn api(core: &Rc<Core>, api: &Api, line: &RequestLine) -> Option<Message> {
    let query = line.query().filter(|query| matches!(*query, "swagger.json" | "swagger.yaml"))?;
    if line.path().trim_end_matches('/') != api.context.trim_end_matches('/') {
        return None;
    }
    let as_json = query == "swagger.json";
    let definition = match api.swagger.as_deref().map(|text| (text, serde_json::from_str(text))) {
        Some((text, Ok(_))) if as_json => return Some(answer("application/json", text.to_owned())),
        // A definition that is not JSON is YAML; it is published as it is written.
        Some((text, Err(_))) if !as_json => return Some(answer("text/yaml", text.to_owned())),
        Some((_, Ok(definition))) => definition,
        Some((_, Err(_))) | None => openapi::of(api, &core.environment),
    };
    Some(if as_json {
        answer("application/json", serde_json::to_string_pretty(&definition).unwrap_or_default())
    } else {
        answer("text/yaml", yaml::write(&definition))
    })
}

fn answer(content_type: &str, text: String) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(text), status: 200, ..Message::default() }
}
