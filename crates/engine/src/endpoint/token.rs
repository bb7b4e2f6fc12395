//! OAuth 2 towards backends: a token is asked for once, kept until it expires, and asked for once more when a backend
//! refuses it. Neither tokens nor what they are asked with is ever logged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use penstock_message::{Body, Form, Headers, Message, Method};
use tokio::sync::Mutex;

use super::Computed;
use crate::ports::{Outgoing, SendOptions};
use crate::{Exchange, Fault, Side, codes, wait};

/// How long a token is kept when its server does not say.
const LIFETIME_USUAL: Duration = Duration::from_secs(300);

/// Servers write any number for a token that never expires; it is asked for again after this long.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A token is not used when it is about to expire: the request that carries it takes time too.
const MARGIN: Duration = Duration::from_secs(5);

/// Tokens of one endpoint. More than one occurs only where credentials are computed per message.
const TOKENS_MAX: usize = 1_000;

/// An answer of a token server is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// Where an endpoint's tokens come from. Shared by all cores.
pub struct TokenSource {
    request: Computed<TokenRequest>,
    /// Held while a token is fetched, so that it is fetched once however many wait for it.
    tokens: Mutex<HashMap<String, Token>>,
}

/// A request for a token. It holds secrets, so it has no `Debug`.
pub struct TokenRequest {
    /// The address of the token server.
    pub url: Arc<str>,
    /// The form that is sent.
    pub form: String,
    /// Header fields besides the content type.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// How long the server may take.
    pub timeout: Duration,
}

struct Token {
    value: Arc<str>,
    until: Instant,
}

impl TokenSource {
    /// A source that asks with what `request` makes for a message.
    pub fn new(request: Computed<TokenRequest>) -> TokenSource {
        TokenSource { request, tokens: Mutex::default() }
    }

    /// The token for a message, but not `refused`, which a backend did not take.
    pub(super) async fn token(&self, exchange: &mut Exchange, refused: Option<&str>) -> Result<Arc<str>, Fault> {
        let request = (self.request)(exchange)?;
        let fields = request.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect::<String>();
        let key = format!("{}\n{}\n{fields}", request.url, request.form);
        let mut tokens = self.tokens.lock().await;
        if let Some(token) = tokens.get(&key)
            && token.until > Instant::now()
            && refused != Some(&*token.value)
        {
            return Ok(token.value.clone());
        }
        exchange.sent = true;
        let token = fetch(exchange, request).await?;
        if tokens.len() >= TOKENS_MAX {
            let now = Instant::now();
            tokens.retain(|_, token| token.until > now);
            if tokens.len() >= TOKENS_MAX {
                tokens.clear();
            }
        }
        let value = token.value.clone();
        tokens.insert(key, token);
        Ok(value)
    }
}

async fn fetch(exchange: &Exchange, request: TokenRequest) -> Result<Token, Fault> {
    // The address without its query, which may hold what nobody should read in a log.
    let server = request.url.split('?').next().unwrap_or_default().to_owned();
    let failed = |why: &str| {
        let text = format!("no token from `{server}`: {why}");
        // The endpoint itself did not fail, so it is not suspended.
        Fault::coded(codes::ENDPOINT_AUTHENTICATION, Side::Us, text)
    };
    let mut headers = Headers::new();
    headers.set("Content-Type", "application/x-www-form-urlencoded");
    headers.set("Accept", "application/json");
    for (name, value) in &request.headers {
        headers.set(name, value.as_bytes());
    }
    let message = Message { headers, body: Body::bytes(request.form), ..Message::default() };
    let remaining = exchange.deadline.saturating_duration_since(Instant::now());
    let options = SendOptions::within(request.timeout.min(remaining));
    let outgoing = Outgoing { url: request.url, method: Method::Post, message, options };
    let mut reply = exchange.core.outbound.send(outgoing).await.map_err(|fault| failed(&fault.message))?;
    wait::buffer(&mut reply.body, ANSWER_BYTES_MAX).await.map_err(|error| failed(&error.to_string()))?;
    if !(200..300).contains(&reply.status) {
        return Err(failed(&format!("it answered {}", reply.status)));
    }
    let Form::Bytes(bytes) = reply.body.form() else { return Err(failed("its answer is empty")) };
    let answer: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| failed("its answer is not JSON"))?;
    let value = answer.get("access_token").and_then(serde_json::Value::as_str);
    let value = value.ok_or_else(|| failed("its answer has no `access_token`"))?;
    // Some servers write the number as a text.
    let seconds = answer.get("expires_in").and_then(|given| given.as_u64().or_else(|| given.as_str()?.parse().ok()));
    let lifetime = seconds.map_or(LIFETIME_USUAL, Duration::from_secs).min(LIFETIME_MAX);
    let until = Instant::now() + lifetime.saturating_sub(MARGIN.min(lifetime / 2));
    Ok(Token { value: value.into(), until })
}
