//! `penstock compare`: sends the same requests to two servers and compares the responses: the proof that a migration
//! changes nothing.
//!
//! Start reading at [`run`], then `difference.rs` (what counts as different) and `traffic.rs` (recorded requests).

mod difference;
mod traffic;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use penstock_engine::ports::{Outbound, Outgoing, SendOptions};
use penstock_message::{Body, Form, Headers, Message, Method};
use penstock_transports::http::tls::TlsClient;
use penstock_transports::http::{HttpSender, PerCore, SenderConfig};
use serde_json::{Value, json};

pub use difference::{Mask, Response};
pub use traffic::{Recorded, read};

/// A response is compared up to this size.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Differences that are shown for one request.
const SHOWN_MAX: usize = 20;

/// What is compared with what.
pub struct Comparison {
    /// The address of the server that is trusted to be right.
    pub reference: String,
    /// The address of the server that is to behave alike.
    pub candidate: String,
    /// How long a response may take.
    pub timeout: Duration,
    /// What may differ.
    pub masks: Vec<Mask>,
    /// TLS towards both.
    pub tls: Arc<TlsClient>,
}

/// One request whose responses differ.
#[derive(Debug)]
pub struct Different {
    /// The method and path.
    pub request: String,
    /// What differs.
    pub differences: Vec<String>,
}

/// What the comparison found.
#[derive(Debug)]
pub struct Outcome {
    /// Requests sent.
    pub requests: usize,
    /// Those whose responses differ.
    pub different: Vec<Different>,
}

/// Sends each request to both servers, one after the other as they were recorded, because later ones may depend on
/// earlier ones.
pub async fn run(comparison: &Comparison, requests: &[Recorded]) -> Outcome {
    let config = SenderConfig { tls: comparison.tls.clone(), ..SenderConfig::default() };
    let sender = HttpSender::new(&PerCore::start(), config);
    let sender: Rc<dyn Outbound> = Rc::new(sender);
    let mut different = Vec::new();
    for request in requests {
        let (reference, candidate) = tokio::join!(
            send(&*sender, &comparison.reference, request, comparison.timeout),
            send(&*sender, &comparison.candidate, request, comparison.timeout),
        );
        let mut differences = match (reference, candidate) {
            (Ok(reference), Ok(candidate)) => difference::between(&reference, &candidate, &comparison.masks),
            // Two servers that are both away are not alike.
            (Err(one), Err(other)) => vec![format!("no response from either server: {one}; {other}")],
            (Ok(_), Err(why)) => vec![format!("the second server: {why}")],
            (Err(why), Ok(_)) => vec![format!("the first server: {why}")],
        };
        if !differences.is_empty() {
            differences.truncate(SHOWN_MAX);
            let request = format!("{} {}", request.method.as_str(), request.target);
            different.push(Different { request, differences });
        }
    }
    Outcome { requests: requests.len(), different }
}

async fn send(sender: &dyn Outbound, server: &str, request: &Recorded, timeout: Duration) -> Result<Response, String> {
    let mut headers = Headers::new();
    for (name, value) in &request.headers {
        headers.append(name, value);
    }
    let body = if request.body.is_empty() { Body::default() } else { Body::bytes(request.body.clone()) };
    let outgoing = Outgoing {
        url: format!("{}{}", server.trim_end_matches('/'), request.target).into(),
        method: request.method.clone(),
        message: Message { headers, body, method: request.method.clone(), ..Message::default() },
        options: SendOptions::within(timeout),
    };
    let mut message = sender.send(outgoing).await.map_err(|fault| fault.message.to_string())?;
    let pulled = std::future::poll_fn(|cx| message.body.poll_pull(cx, usize::MAX, BODY_BYTES_MAX));
    match tokio::time::timeout(timeout, pulled).await {
        Err(_) => return Err("the response does not end".to_owned()),
        Ok(Err(_)) => return Err("the response breaks off or is too large".to_owned()),
        Ok(Ok(_)) => {}
    }
    let body = match message.body.take() {
        Form::Bytes(bytes) => bytes,
        _ => bytes::Bytes::new(),
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = message.headers.iter().map(|(name, value)| (text(name).to_ascii_lowercase(), text(value))).collect();
    Ok(Response { status: message.status, headers, body })
}

impl Outcome {
    /// For a terminal.
    pub fn as_text(&self) -> String {
        let mut out = String::new();
        for different in &self.different {
            out.push_str(&different.request);
            out.push('\n');
            for difference in &different.differences {
                out.push_str(&format!("    {difference}\n"));
            }
        }
        out.push_str(&format!("{} requests, {} with differences\n", self.requests, self.different.len()));
        out
    }

    /// For programs.
    pub fn as_json(&self) -> String {
        let different = self.different.iter();
        let different = different.map(|one| json!({ "request": one.request, "differences": one.differences }));
        let report = json!({
            "requests": self.requests,
            "different": different.collect::<Value>(),
        });
        format!("{report:#}\n")
    }
}

/// The method of a recorded request.
fn method(text: &str) -> Method {
    Method::parse(text)
}
