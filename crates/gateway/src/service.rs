//! Asking a service beside the way of a message: an interceptor service, a policy agent.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use penstock_catalog::Api;
use penstock_engine::Exchange;
use penstock_engine::ports::{Outbound, Outgoing, SendOptions, TlsProfile};
use penstock_message::{Body, Form, Headers, Message, Method};

/// A service that is called by POST with JSON.
pub(crate) struct Service {
    /// The absolute address, its port always written: so it is in the `Host` field that the sender takes from it.
    pub url: Arc<str>,
    /// For the whole answer.
    pub timeout: Duration,
    /// Whom to trust, when the service speaks TLS.
    pub tls: Option<Arc<TlsProfile>>,
    /// The fields of the request.
    pub headers: Headers,
    /// The largest answer.
    pub reply_bytes_max: usize,
}

/// What a service answered.
pub(crate) struct Answer {
    /// The status.
    pub status: u16,
    /// The fields.
    pub headers: Headers,
    /// The body.
    pub body: Bytes,
}

/// A call in progress, which outlives the mediator that began it.
pub(crate) struct Question {
    outbound: Rc<dyn Outbound>,
    outgoing: Outgoing,
    deadline: Instant,
    reply_bytes_max: usize,
}

/// The fields of a request with JSON that wants JSON, and what it has besides.
pub(crate) fn json_fields(more: Option<(&str, String)>) -> Headers {
    let mut headers = Headers::new();
    headers.append("content-type", "application/json");
    headers.append("accept", "application/json");
    if let Some((name, value)) = more {
        headers.append(name, value);
    }
    headers
}

impl Service {
    /// Prepares a question. It ends with the exchange's deadline at the latest.
    pub(crate) fn ask(&self, exchange: &Exchange, body: Bytes) -> Question {
        self.ask_with(exchange, self.headers.clone(), body)
    }

    /// The same with fields that are not those of every question.
    pub(crate) fn ask_with(&self, exchange: &Exchange, headers: Headers, body: Bytes) -> Question {
        let now = Instant::now();
        // Bounded before it is added: files may say any number.
        let timeout = self.timeout.min(exchange.deadline.saturating_duration_since(now));
        let options = SendOptions { tls: self.tls.clone(), ..SendOptions::within(timeout) };
        Question {
            outbound: exchange.core().outbound.clone(),
            outgoing: Outgoing {
                url: self.url.clone(),
                method: Method::Post,
                message: Message { headers, body: Body::bytes(body), ..Message::default() },
                options,
            },
            deadline: now + timeout,
            reply_bytes_max: self.reply_bytes_max,
        }
    }
}

impl Question {
    /// Calls the service. The error is the reason of a failure.
    pub(crate) async fn answer(self) -> Result<Answer, String> {
        let Question { outbound, outgoing, deadline, reply_bytes_max } = self;
        let url = outgoing.url.clone();
        let whole = async {
            let mut reply = outbound.send(outgoing).await.map_err(|fault| fault.to_string())?;
            let body = &mut reply.body;
            poll_fn(|cx| body.poll_pull(cx, usize::MAX, reply_bytes_max)).await.map_err(|error| error.to_string())?;
            let body = match reply.body.take() {
                Form::Bytes(bytes) => bytes,
                _ => Bytes::new(),
            };
            Ok(Answer { status: reply.status, headers: reply.headers, body })
        };
        match tokio::time::timeout_at(deadline.into(), whole).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("`{url}` did not respond in time")),
        }
    }
}

/// Scheme, host and port of an address, its path left out; `None` when it is none.
pub(crate) fn origin(address: &str) -> Option<String> {
    let (scheme, rest) = address.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let port = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    let authority = authority.rsplit('@').next()?;
    let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
    });
    Some(if has_port { format!("{scheme}://{authority}") } else { format!("{scheme}://{authority}:{port}") })
}

/// Trusted certificates for services of an API: those of its project.
pub(crate) fn trust_of(api: &Api) -> Option<Arc<TlsProfile>> {
    if api.interceptor_certificates.is_empty() {
        return None;
    }
    Some(Arc::new(TlsProfile::trusting(api.interceptor_certificates.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_port_and_no_path() {
        for (address, expected) in [
            ("http://h:9081/x", Some("http://h:9081")),
            ("https://h", Some("https://h:443")),
            ("HTTP://u:p@h/x?y", Some("http://h:80")),
            ("http://[::1]:8/", Some("http://[::1]:8")),
            ("ftp://h", None),
            ("h:80", None),
            ("http://", None),
        ] {
            assert_eq!(origin(address).as_deref(), expected, "{address}");
        }
    }
}
