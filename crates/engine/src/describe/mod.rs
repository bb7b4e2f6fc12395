//! What services say of themselves: the list of proxies, `?wsdl` and its like of one, `?swagger.json` and `?swagger.yaml`
//! of an API.

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
