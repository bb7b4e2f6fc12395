//! What the gateway answers itself on its system host: whether it lives, its keys, tokens for development.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use penstock_compile::Compiler;
use penstock_engine::ports::Client;
use penstock_engine::route::Operation;
use penstock_engine::{Exchange, Fault, Flow, Login, Mediator, Realm, Step, basic_credentials};
use penstock_message::{Body, Form, Headers, Message, Method};

use crate::error::{GatewayError, codes};
use crate::router::without_port;
use crate::security::{Claims, Encoding, SecurityState, issue, knows};
use crate::steps::AnswerError;
use crate::text::percent_decoded;
use crate::{GatewayConfig, GatewayState};

/// `aud` of a development token.
const TEST_TOKEN_AUDIENCE: &str = "http://org.wso2.apimgt/gateway";

/// What is said at `/testkey` without credentials, and with wrong ones. Choreo Connect says it in plain text.
const NO_CREDENTIALS: &str =
    "User is NOT authorized to generate a token. Please provide a valid Authorization header to continue.";
const WRONG_CREDENTIALS: &str = "Wrong username or password. Please provide valid credentials.";

/// The operations of the system host.
#[derive(Default)]
pub(crate) struct System {
    config: Arc<GatewayConfig>,
    pages: Vec<(&'static str, Arc<Operation>)>,
}

/// One of them.
struct Page {
    path: &'static str,
    config: Arc<GatewayConfig>,
    state: Arc<SecurityState>,
}

impl System {
    /// Compiles them.
    pub(crate) fn new(config: &Arc<GatewayConfig>, state: &GatewayState, cx: &mut Compiler<'_>) -> System {
        let step = |mediator, kind| Step { mediator, kind, at: Default::default() };
        let answer = AnswerError { config: config.clone() };
        let fault_sequence = Some(cx.add_sequence(vec![step(Box::new(answer), "error")]));
        let mut pages = Vec::new();
        for path in ["/health", "/ready", "/testkey", "/.wellknown/jwks", "/.well-known/jwks"] {
            let page = Page { path, config: config.clone(), state: state.security.clone() };
            let in_sequence = Some(cx.add_sequence(vec![step(Box::new(page), "system")]));
            let operation = Operation { name: "system".into(), in_sequence, fault_sequence, ..Operation::default() };
            pages.push((path, Arc::new(operation)));
        }
        System { config: config.clone(), pages }
    }

    /// The operation a request is for, when it came by the system host. APIs come first.
    pub(crate) fn find(&self, client: &Client, message: &Message) -> Option<Arc<Operation>> {
        let path = client.line.path();
        let (_, operation) = self.pages.iter().find(|(known, _)| *known == path)?;
        let host = message.headers.get("host").unwrap_or_default();
        let name = without_port(host);
        name.eq_ignore_ascii_case(&self.config.security.system_host).then(|| operation.clone())
    }
}

impl Mediator for Page {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let method = &exchange.client.line.method;
        let wanted = if self.path == "/testkey" { Method::Post } else { Method::Get };
        if *method != wanted {
            return Err(GatewayError::new(codes::METHOD_NOT_ALLOWED).into());
        }
        let (content_type, text) = match self.path {
            "/health" => ("application/json", "{\"status\": \"healthy\"}".to_owned()),
            "/ready" => ("application/json", "{\"status\": \"ready\"}".to_owned()),
            "/testkey" => {
                let user = match self.user(exchange) {
                    Ok(user) => user,
                    Err((why, retry_after)) => {
                        if let Some(seconds) = retry_after {
                            exchange.reply_headers.append("Retry-After", seconds.to_string());
                        }
                        exchange.reply_headers.append("WWW-Authenticate", "Basic realm=\"Choreo Connect\"");
                        return Ok(respond(exchange, 401, "text/plain", why));
                    }
                };
                // Bodies of unauthenticated clients are not read.
                if exchange.message.body.is_stream() {
                    return Ok(Flow::Buffer);
                }
                ("text/plain", self.test_key(exchange, user)?)
            }
            _ => {
                if !self.may_ask_for_keys() {
                    return Ok(respond(exchange, 429, "application/json", "{\"error\": \"too many requests\"}"));
                }
                ("application/json", self.state.signer().jwks().to_string())
            }
        };
        Ok(respond(exchange, 200, content_type, text))
    }
}

fn respond(exchange: &mut Exchange, status: u16, content_type: &str, text: impl Into<bytes::Bytes>) -> Flow {
    let mut headers = Headers::new();
    headers.set("content-type", content_type);
    exchange.message = Message { headers, body: Body::bytes(text), status, ..Message::default() };
    Flow::Respond
}

impl Page {
    /// The user of a request for a token; else the text of the answer, and when another attempt counts.
    fn user(&self, exchange: &Exchange) -> Result<String, (&'static str, Option<u64>)> {
        let users = &self.config.security.test_key_users;
        let sent = exchange.message.headers.get("authorization").ok_or((NO_CREDENTIALS, None))?;
        let (user, password) = basic_credentials(sent).ok_or((WRONG_CREDENTIALS, None))?;
        let logins = &exchange.core().environment.users.logins;
        let verify = || knows(users, &user, &password);
        match logins.attempt(Realm::TestKeys, &user, exchange.client.address, verify) {
            Login::Accepted => Ok(user),
            login => Err((WRONG_CREDENTIALS, login.retry_after_seconds())),
        }
    }

    /// A token for a user; `scope` of a form requests scopes, `keytype` for the kind of key.
    fn test_key(&self, exchange: &Exchange, user: String) -> Result<String, Fault> {
        let security = &self.config.security;
        let mut claims = Claims::lasting(security.test_key_lifetime.as_secs());
        claims.set("iss", &*security.own_issuer);
        claims.set("aud", TEST_TOKEN_AUDIENCE);
        claims.set("sub", user);
        claims.set("keytype", "PRODUCTION");
        if let Form::Bytes(form) = exchange.message.body.form() {
            let form = String::from_utf8_lossy(form).into_owned();
            for (name, value) in form.split('&').filter_map(|pair| pair.split_once('=')) {
                if matches!(name, "scope" | "keytype") {
                    claims.set(name, &*percent_decoded(value, true));
                }
            }
        }
        let token = issue(&self.state.signer(), &claims, Encoding::Base64Url);
        token.map_err(|error| Fault::new(format!("no token: {error}")))
    }

    /// Counts in a fixed window; the keys are public, this only keeps a client's mistake from costing much.
    fn may_ask_for_keys(&self) -> bool {
        let (most, time) = self.config.security.jwks_rate;
        let mut window = self.state.jwks_window.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *window {
            Some((since, count)) if since.elapsed() < time => {
                *count += 1;
                *count <= most
            }
            _ => {
                *window = Some((Instant::now(), 1));
                most > 0
            }
        }
    }
}
