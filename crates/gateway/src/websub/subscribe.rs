//! Subscribing and unsubscribing: `POST <context>/<version>?hub.mode=…&hub.topic=…&hub.callback=…`, or the same as a form.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_catalog::{Secret, WebSub, topic_name};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};
use penstock_message::{Form, Message};

use super::Hub;
use super::book::now;
use super::subscription::{Full, Question, Subscription};
use crate::error::{GatewayError, codes};
use crate::policy::limits::{Plans, Subscriber};
use crate::security::TokenKind;
use crate::text::percent_decoded;
use crate::{CallContext, Site, client_request};

/// WebSub §5.1: a secret is less than 200 bytes.
const SECRET_BYTES_MAX: usize = 199;

/// The longest address of a subscriber.
const CALLBACK_BYTES_MAX: usize = 2048;

/// The longest lease: a year.
const LEASE_SECONDS_MAX: u64 = 366 * 24 * 3600;

/// Takes subscriptions.
pub(super) struct Subscribe {
    pub hub: Arc<Hub>,
    pub plans: Arc<Plans>,
    pub api: Arc<str>,
    pub websub: Arc<WebSub>,
    /// Whether a proxy says how the client knows the hub.
    pub trusts_forwarded: bool,
}

/// The request.
#[derive(Debug, Default, PartialEq, Eq)]
struct SubscriptionRequest {
    subscribes: bool,
    /// As it was written.
    topic: String,
    callback: String,
    secret: Option<String>,
    lease_seconds: Option<u64>,
}

impl SubscriptionRequest {
    /// Reads parameters; the error says what is wrong.
    fn read(query: &str, form: &str) -> Result<SubscriptionRequest, String> {
        // Those of the form come last, and win.
        let pairs = query.split('&').chain(form.split('&')).filter_map(|pair| pair.split_once('='));
        let mut wanted = SubscriptionRequest::default();
        let (mut mode, mut lease) = (String::new(), String::new());
        for (name, value) in pairs {
            let value = percent_decoded(value, true).into_owned();
            match &*percent_decoded(name, true) {
                "hub.mode" => mode = value,
                "hub.topic" => wanted.topic = value,
                "hub.callback" => wanted.callback = value,
                "hub.secret" => wanted.secret = Some(value).filter(|secret| !secret.is_empty()),
                "hub.lease_seconds" => lease = value,
                _ => {}
            }
        }
        if topic_name(&wanted.topic).is_empty() {
            return Err("Topic name not found for web hook subscription request".to_owned());
        }
        if wanted.callback.is_empty() {
            return Err("Callback URL cannot be empty".to_owned());
        }
        if !is_callback(&wanted.callback) {
            return Err("Callback URL must be absolute and begin with http:// or https://".to_owned());
        }
        wanted.subscribes = match mode.trim().to_ascii_lowercase().as_str() {
            "subscribe" => true,
            "unsubscribe" => false,
            "" => return Err("Mode cannot be empty".to_owned()),
            _ => return Err("Invalid Entry for hub.mode".to_owned()),
        };
        if wanted.secret.as_ref().is_some_and(|secret| secret.len() > SECRET_BYTES_MAX) {
            return Err(format!("hub.secret has more than {SECRET_BYTES_MAX} bytes"));
        }
        if !lease.is_empty() {
            let seconds = lease.trim().parse().ok().filter(|seconds| (1..=LEASE_SECONDS_MAX).contains(seconds));
            let wrong = || format!("hub.lease_seconds must be a number from 1 to {LEASE_SECONDS_MAX}");
            wanted.lease_seconds = Some(seconds.ok_or_else(wrong)?);
        }
        Ok(wanted)
    }
}

/// Topic and callback of the request.
pub(crate) fn requested(query: &str, form: &str) -> Option<(String, String)> {
    SubscriptionRequest::read(query, form).ok().map(|wanted| (topic_name(&wanted.topic), wanted.callback))
}

/// Whether events can be sent to an address.
fn is_callback(text: &str) -> bool {
    let scheme = ["http://", "https://"]
        .iter()
        .find(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let Some(rest) = scheme.and_then(|scheme| text.get(scheme.len()..)) else { return false };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'\\' | b'"' | b'<' | b'>'));
    plain && !host.is_empty() && !authority.contains('@') && text.len() <= CALLBACK_BYTES_MAX
}

/// The address of a hub, as a client knows it.
pub(super) fn hub_address(exchange: &Exchange, site: &Site, trusts_forwarded: bool) -> String {
    format!("{}{}", client_request::origin(exchange, trusts_forwarded), site.base_path.trim_end_matches('/'))
}

/// A topic's name, also from its URL.
fn at_hub<'t>(topic: &'t str, base_path: &str) -> Cow<'t, str> {
    let path = topic.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
    let below = path.and_then(|path| path.strip_prefix(base_path.trim_end_matches('/')));
    match below.and_then(|below| below.strip_prefix('/')) {
        Some(name) => percent_decoded(name, false),
        None => Cow::Borrowed(topic),
    }
}

fn refuse(why: String) -> Fault {
    GatewayError::described(codes::SCHEMA_REQUEST, why).into()
}

impl Mediator for Subscribe {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let content_type = exchange.message.headers.get("content-type").unwrap_or_default();
        let is_form = content_type.to_ascii_lowercase().starts_with("application/x-www-form-urlencoded");
        if is_form && exchange.message.body.is_stream() {
            return Ok(Flow::Buffer);
        }
        let form = match exchange.message.body.form() {
            Form::Bytes(bytes) if is_form => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        };
        let wanted =
            SubscriptionRequest::read(exchange.client.line.query().unwrap_or_default(), &form).map_err(refuse)?;
        let context = CallContext::of(exchange)?;
        let topic = topic_name(&at_hub(&wanted.topic, &context.site.base_path));
        self.may(&context, &topic)?;
        let who = subscriber(&context);
        let most = self.plans.subscribers(&who.subscription_tier);
        let subscription = Subscription {
            api: self.api.clone(),
            topic: topic.into(),
            callback: wanted.callback.into(),
            hub: hub_address(exchange, &context.site, self.trusts_forwarded).into(),
            secret: wanted.secret.map(|secret| Secret(secret.into())),
            algorithm: self.websub.algorithm,
            ends: wanted.lease_seconds.map(|seconds| now() + seconds),
            who,
        };
        let hub = &self.hub;
        if self.websub.verifies {
            let SubscriptionRequest { topic, subscribes, lease_seconds, .. } = wanted;
            if subscribes && !hub.has_room(&subscription, most) {
                return Err(GatewayError::new(codes::SUBSCRIBERS_LIMIT).into());
            }
            if !hub.ask(Question { subscription, topic, subscribes, lease_seconds, most }) {
                return Ok(answer(exchange, 503));
            }
            return Ok(answer(exchange, 202));
        }
        let kept = match wanted.subscribes {
            false => hub.unsubscribe(&subscription),
            true => match hub.subscribe(subscription, most) {
                Ok(kept) => kept,
                Err(Full::Plan) => return Err(GatewayError::new(codes::SUBSCRIBERS_LIMIT).into()),
                Err(Full::All) => return Ok(answer(exchange, 503)),
            },
        };
        // An acknowledged subscription survives a restart.
        Ok(Flow::Wait(Box::pin(async move {
            let status = if kept.await.unwrap_or(false) { 202 } else { 500 };
            Resume::new(move |exchange, ()| Ok(answer(exchange, status)))
        })))
    }
}

/// Answers with a status alone.
pub(super) fn answer(exchange: &mut Exchange, status: u16) -> Flow {
    exchange.message = Message { status, ..Message::default() };
    Flow::Respond
}

/// Whose plans count the events of a caller's subscription.
fn subscriber(context: &CallContext) -> Subscriber {
    let caller = context.caller.borrow();
    let named =
        [&caller.application_id, &caller.consumer_key, &caller.subject].into_iter().find(|name| !name.is_empty());
    Subscriber {
        application: named.cloned().unwrap_or_default(),
        subject: caller.subject.clone(),
        application_tier: caller.application_tier.clone(),
        subscription_tier: caller.subscription_tier.clone(),
    }
}

impl Subscribe {
    /// Whether there is such a topic, and the caller may have its events.
    fn may(&self, context: &CallContext, topic: &str) -> Result<(), Fault> {
        let Some(found) = self.websub.topics.iter().find(|known| &*known.name == topic) else {
            return Err(GatewayError::new(codes::NO_MATCHING_RESOURCE).because("there is no such topic").into());
        };
        let credential = context.credential.borrow();
        let token = credential.as_ref().filter(|token| token.kind == TokenKind::Jwt);
        let has_scope = || token.is_none_or(|token| token.scopes.iter().any(|scope| found.scopes.contains(scope)));
        if found.scopes.is_empty() || has_scope() {
            return Ok(());
        }
        let text = format!("User is NOT authorized to access the Resource: {topic}. Scope validation failed.");
        Err(GatewayError::described(codes::SCOPE, text).because("the token has none of the scopes").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_query_and_form() {
        let wanted = SubscriptionRequest::read(
            "hub.mode=Subscribe&hub.topic=%2FIssues&hub.callback=http%3A%2F%2Fa%3A1%2Fx%3Fy%3D1",
            "hub.secret=a+b&hub.lease_seconds=60",
        );
        let expected = SubscriptionRequest {
            subscribes: true,
            topic: "/Issues".to_owned(),
            callback: "http://a:1/x?y=1".to_owned(),
            secret: Some("a b".to_owned()),
            lease_seconds: Some(60),
        };
        assert_eq!(wanted, Ok(expected));
        let whole = "hub.mode=subscribe&hub.topic=t&hub.callback=http://a/";
        for (query, problem) in [
            ("", "Topic name not found"),
            ("hub.topic=/", "Topic name not found"),
            ("hub.topic=t", "Callback URL cannot be empty"),
            ("hub.topic=t&hub.callback=a", "Callback URL must be absolute"),
            ("hub.topic=t&hub.callback=http://a/", "Mode cannot be empty"),
            ("hub.topic=t&hub.callback=http://a/&hub.mode=publish", "Invalid Entry for hub.mode"),
            (&format!("{whole}&hub.lease_seconds=0"), "hub.lease_seconds must be"),
            (&format!("{whole}&hub.lease_seconds=-5"), "hub.lease_seconds must be"),
            (&format!("{whole}&hub.lease_seconds=99999999999999999999"), "hub.lease_seconds must be"),
            (&format!("{whole}&hub.secret={}", "s".repeat(200)), "hub.secret has more than"),
        ] {
            let error = SubscriptionRequest::read(query, "").expect_err(query);
            assert!(error.starts_with(problem), "{query}: {error}");
        }
    }

    #[test]
    fn a_topic_may_be_written_as_its_address() {
        for (topic, name) in [
            ("issues", "issues"),
            ("/a/b", "/a/b"),
            ("https://any.host/news/1.0.0/a%20b/c", "a b/c"),
            ("https://any.host/other/issues", "https://any.host/other/issues"),
            ("https://any.host", "https://any.host"),
            ("https://any.host/news/1.0.00/x", "https://any.host/news/1.0.00/x"),
        ] {
            assert_eq!(at_hub(topic, "/news/1.0.0"), name);
        }
    }

    #[test]
    fn events_only_go_to_addresses() {
        for good in ["http://a", "https://a.b:1/c?d", "HTTP://[::1]:9/"] {
            assert!(is_callback(good), "{good}");
        }
        let long = format!("http://a/{}", "x".repeat(CALLBACK_BYTES_MAX));
        for bad in [
            "",
            "a",
            "/a",
            "ftp://a/",
            "http://",
            "http:///a",
            "http://:1/",
            "http://u:p@a/",
            "http://a b/",
            "http://a/#f",
            "http://a/\r\nx",
            "http://ä/",
            &long,
        ] {
            assert!(!is_callback(bad), "{bad}");
        }
    }
}
