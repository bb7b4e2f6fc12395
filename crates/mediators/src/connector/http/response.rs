//! The variable that `responseVariable` names, set from a response.

use penstock_compile::connector::Place;
use penstock_engine::{Exchange, Fault};
use penstock_message::Value;
use serde_json::{Map, Value as Json};

use crate::reply::reply_value;

/// Sets the variable from the response, which is the message at hand.
pub(super) fn put(place: &Place, exchange: &mut Exchange) -> Result<(), Fault> {
    let mut payload = None;
    if !place.overwrites_body {
        payload = Some(match reply_value(exchange)? {
            Value::Json(json) => (*json).clone(),
            other => Json::String(other.to_text().into_owned()),
        });
    }
    let mut headers = Map::new();
    for (name, value) in exchange.message.headers.iter() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        headers.insert(text(name), Json::String(text(value)));
    }
    let attributes = Map::from_iter([("statusCode".to_owned(), exchange.message.status.into())]);
    place.set(exchange, payload, Some(headers), Some(attributes));
    Ok(())
}
