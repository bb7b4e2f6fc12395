//! OAuth 2 towards backends: a token is requested once, cached until it expires, and renewed once when a backend
//! rejects it. Neither tokens nor token requests are logged.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use penstock_message::{Body, Form, Headers, Message, Method};

use super::Computed;
use crate::ports::{Outgoing, SendOptions, TlsProfile};
use crate::{Exchange, Fault, Side, codes, wait};

/// How long a token is kept when its server does not say.
const LIFETIME_USUAL: Duration = Duration::from_secs(300);

/// Maximum time in the cache: servers write any number for a token that never expires.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A token is not used when it is about to expire: the request that carries it takes time too.
const MARGIN: Duration = Duration::from_secs(5);

/// Tokens of one endpoint. More than one occurs only where credentials are computed per message.
const TOKENS_MAX: usize = 1_000;

/// An answer of a token server is a few hundred bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// How long rejections are forwarded after a backend rejected a new token: a new token for each request
/// keeps the token server busy for nothing.
const IN_VAIN: Duration = Duration::from_secs(10);

/// Where an endpoint's tokens come from. Shared by all cores.
pub struct TokenSource(TokenCache);

enum TokenCache {
    /// Every message has the same token.
    Shared(Arc<TokenRequest>, Slot),
    /// The token request is computed for each message; equal requests share a token.
    PerRequest(Computed<TokenRequest>, Mutex<HashMap<String, Arc<Slot>>>),
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
    /// Trusted certificates of the endpoint, if it has its own.
    pub tls: Option<Arc<TlsProfile>>,
}

/// One token. A slow token server delays only requests that need its token.
#[derive(Default)]
struct Slot {
    known: Mutex<Known>,
    /// Held while a token is fetched, so that it is fetched once however many wait for it.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    token: Option<Token>,
    /// The last failure: requests that waited for that attempt do not each make another one.
    failed: Option<(Instant, Fault)>,
    /// Until when refusals are the backend's own.
    in_vain: Option<Instant>,
}

#[derive(Clone)]
struct Token {
    value: Arc<str>,
    since: Instant,
    until: Instant,
}

impl TokenSource {
    /// A source whose request is computed for each message.
    pub fn new(request: Computed<TokenRequest>) -> TokenSource {
        TokenSource(TokenCache::PerRequest(request, Mutex::default()))
    }

    /// A source of one token for all messages.
    pub fn alike(request: TokenRequest) -> TokenSource {
        TokenSource(TokenCache::Shared(Arc::new(request), Slot::default()))
    }

    /// The token for a message.
    pub async fn token(&self, exchange: &mut Exchange) -> Result<Arc<str>, Fault> {
        match &self.0 {
            TokenCache::Shared(request, slot) => slot.token(exchange, request, None).await,
            TokenCache::PerRequest(..) => {
                let (request, slot) = self.of_message(exchange)?;
                slot.token(exchange, &request, None).await
            }
        }
    }

    /// Another token in place of one that a backend did not take; nothing when another one was of no use lately.
    pub async fn renewed(&self, exchange: &mut Exchange, refused: &str) -> Result<Option<Arc<str>>, Fault> {
        match &self.0 {
            TokenCache::Shared(request, slot) => slot.renewed(exchange, request, refused).await,
            TokenCache::PerRequest(..) => {
                let (request, slot) = self.of_message(exchange)?;
                slot.renewed(exchange, &request, refused).await
            }
        }
    }

    /// Forgets a token that a backend did not take from a request that cannot be sent again.
    pub fn refused(&self, refused: &str) {
        if let TokenCache::Shared(_, slot) = &self.0 {
            let mut known = lock(&slot.known);
            if known.in_vain.is_none_or(|until| until <= Instant::now()) {
                known.token.take_if(|token| *token.value == *refused);
            }
        }
    }

    /// Notes that a backend did not take a token that was new.
    pub fn refused_again(&self, exchange: &mut Exchange) {
        let until = Some(Instant::now() + IN_VAIN);
        match &self.0 {
            TokenCache::Shared(_, slot) => lock(&slot.known).in_vain = until,
            TokenCache::PerRequest(..) => {
                if let Ok((_, slot)) = self.of_message(exchange) {
                    lock(&slot.known).in_vain = until;
                }
            }
        }
    }

    fn of_message(&self, exchange: &mut Exchange) -> Result<(TokenRequest, Arc<Slot>), Fault> {
        let TokenCache::PerRequest(compute, slots) = &self.0 else {
            return Err(Fault::new("every message has one token"));
        };
        let request = compute(exchange)?;
        let fields = request.headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect::<String>();
        let key = format!("{}\n{}\n{fields}", request.url, request.form);
        let mut slots = lock(slots);
        if slots.len() >= TOKENS_MAX && !slots.contains_key(&key) {
            slots.retain(|_, slot| slot.fresh(None, Instant::now()).is_some());
            if slots.len() >= TOKENS_MAX {
                slots.clear();
            }
        }
        Ok((request, slots.entry(key).or_default().clone()))
    }
}

impl Slot {
    /// The token, when it still holds and is not `refused`. One that came after `began` is as new as any: servers give
    /// the same token out until it expires, and requests that wait must not fetch it one after the other.
    fn fresh(&self, refused: Option<&str>, began: Instant) -> Option<Arc<str>> {
        let known = lock(&self.known);
        let token = known.token.as_ref()?;
        let is_other = refused != Some(&*token.value) || token.since > began;
        (token.until > Instant::now() && is_other).then(|| token.value.clone())
    }

    async fn token(
        &self,
        exchange: &mut Exchange,
        request: &TokenRequest,
        refused: Option<&str>,
    ) -> Result<Arc<str>, Fault> {
        let began = Instant::now();
        if let Some(value) = self.fresh(refused, began) {
            return Ok(value);
        }
        let _fetching = self.fetching.lock().await;
        if let Some(value) = self.fresh(refused, began) {
            return Ok(value);
        }
        if let Some((at, fault)) = &lock(&self.known).failed
            && *at > began
        {
            return Err(fault.clone());
        }
        exchange.sent = true;
        let fetched = fetch(exchange, request).await;
        let mut known = lock(&self.known);
        match fetched {
            Ok(token) => {
                let value = token.value.clone();
                *known = Known { token: Some(token), failed: None, in_vain: known.in_vain };
                Ok(value)
            }
            Err(fault) => {
                known.failed = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }

    async fn renewed(
        &self,
        exchange: &mut Exchange,
        request: &TokenRequest,
        refused: &str,
    ) -> Result<Option<Arc<str>>, Fault> {
        if lock(&self.known).in_vain.is_some_and(|until| Instant::now() < until) {
            return Ok(None);
        }
        self.token(exchange, request, Some(refused)).await.map(Some)
    }
}

/// What a panic left behind is whole: every change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn fetch(exchange: &Exchange, request: &TokenRequest) -> Result<Token, Fault> {
    // The address without its query, which may contain secrets.
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
    let message = Message { headers, body: Body::bytes(request.form.clone()), ..Message::default() };
    let remaining = exchange.deadline.saturating_duration_since(Instant::now());
    let options = SendOptions { tls: request.tls.clone(), ..SendOptions::within(request.timeout.min(remaining)) };
    let outgoing = Outgoing { url: request.url.clone(), method: Method::Post, message, options };
    let mut reply = exchange.core.outbound.send(outgoing).await.map_err(|fault| failed(&fault.message))?;
    wait::buffer(&mut reply.body, ANSWER_BYTES_MAX).await.map_err(|error| failed(&error.to_string()))?;
    if !(200..300).contains(&reply.status) {
        return Err(failed(&format!("it answered {}", reply.status)));
    }
    let Form::Bytes(bytes) = reply.body.form() else { return Err(failed("its response is empty")) };
    let answer: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| failed("its response is not JSON"))?;
    let value = answer.get("access_token").and_then(serde_json::Value::as_str);
    let value = value.ok_or_else(|| failed("its response has no `access_token`"))?;
    // Some servers write the number as a text.
    let seconds = answer.get("expires_in").and_then(|given| given.as_u64().or_else(|| given.as_str()?.parse().ok()));
    let lifetime = seconds.map_or(LIFETIME_USUAL, Duration::from_secs).min(LIFETIME_MAX);
    let since = Instant::now();
    let until = since + lifetime.saturating_sub(MARGIN.min(lifetime / 2));
    Ok(Token { value: value.into(), since, until })
}
