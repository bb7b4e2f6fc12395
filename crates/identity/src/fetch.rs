//! Asking an issuer: JSON over the engine's outbound port, within a time and a size.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use serde_json::Value;

/// From the request to the last byte; a request of a client waits for it.
pub(super) const FETCH_TIME_MAX: Duration = Duration::from_secs(5);

/// Real documents take a few kilobytes.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// Gets a document.
pub(super) async fn get(outbound: &dyn Outbound, url: Arc<str>) -> Result<Value, String> {
    ask(outbound, url, Method::Get, Headers::new(), Body::default()).await
}

/// Sends a form with the credentials of this gateway.
pub(super) async fn post_form(
    outbound: &dyn Outbound,
    url: Arc<str>,
    authorization: &str,
    form: String,
) -> Result<Value, String> {
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/x-www-form-urlencoded");
    headers.set("Authorization", authorization);
    ask(outbound, url, Method::Post, headers, Body::bytes(form)).await
}

async fn ask(
    outbound: &dyn Outbound,
    url: Arc<str>,
    method: Method,
    mut headers: Headers,
    body: Body,
) -> Result<Value, String> {
    headers.set("Accept", "application/json");
    let message = Message { headers, body, ..Message::default() };
    let outgoing = Outgoing { url, method, message, options: SendOptions::within(FETCH_TIME_MAX) };
    let whole = async {
        let mut reply = outbound.send(outgoing).await.map_err(|fault| fault.to_string())?;
        if reply.status != 200 {
            return Err(format!("status {}", reply.status));
        }
        let body = &mut reply.body;
        let pulled = poll_fn(|cx| body.poll_pull(cx, usize::MAX, DOCUMENT_BYTES_MAX)).await;
        pulled.map_err(|error| error.to_string())?;
        match body.form() {
            Form::Bytes(bytes) => serde_json::from_slice(bytes).map_err(|_| "the response is not JSON".to_owned()),
            _ => Err("the response is empty".to_owned()),
        }
    };
    let late = |_| Err(format!("no response within {} s", FETCH_TIME_MAX.as_secs()));
    tokio::time::timeout(FETCH_TIME_MAX, whole).await.unwrap_or_else(late)
}
