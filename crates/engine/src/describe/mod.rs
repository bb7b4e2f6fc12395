//! Descriptions of services: the list of proxies, `?wsdl` and its like of one, `?swagger.json` and `?swagger.yaml` of an API
//! and of a data service.

mod openapi;
mod proxy;
mod wsdl;
mod yaml;

use std::rc::Rc;

use penstock_message::{Body, Headers, Message, RequestLine};

use crate::core::Core;
use crate::route::Api;

pub(crate) use proxy::{proxy, services};

/// The answer to `?swagger.json` and `?swagger.yaml`: the published definition, or one made from the
/// resources. `None` for any other request.
pub(crate) fn api(core: &Rc<Core>, api: &Api, line: &RequestLine) -> Option<Message> {
    let query = line.query().filter(|query| matches!(*query, "swagger.json" | "swagger.yaml"))?;
    if line.path().trim_end_matches('/') != api.context.trim_end_matches('/') {
        return None;
    }
    let as_json = query == "swagger.json";
    Some(match api.swagger.as_deref() {
        Some(text) => {
            published(text, as_json).unwrap_or_else(|| generated(&openapi::of(api, &core.environment), as_json))
        }
        None => generated(&openapi::of(api, &core.environment), as_json),
    })
}

/// A published definition, which is JSON or YAML, as JSON or YAML.
fn published(text: &str, as_json: bool) -> Option<Message> {
    match serde_json::from_str(text) {
        Ok(serde_json::Value::Object(_)) if as_json => Some(answer("application/json", text.to_owned())),
        Ok(definition) => Some(generated(&definition, as_json)),
        // A definition that is not JSON is YAML; it is published as it is written.
        Err(_) if !as_json => Some(answer("text/yaml", text.to_owned())),
        Err(_) => None,
    }
}

fn generated(definition: &serde_json::Value, as_json: bool) -> Message {
    match as_json {
        true => answer("application/json", serde_json::to_string_pretty(definition).unwrap_or_default()),
        false => answer("text/yaml", yaml::write(definition)),
    }
}

fn answer(content_type: &str, text: String) -> Message {
    let mut headers = Headers::new();
    headers.set("Content-Type", content_type);
    Message { headers, body: Body::bytes(text), status: 200, ..Message::default() }
}
