//! The action `OPA`: a policy agent authorizes a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use penstock_engine::ports::{Level, TlsProfile};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Resume};

use super::step::{ActionCall, Problem};
use crate::error::{GatewayError, codes};
use crate::json_writer::JsonObject;
use crate::service::{Answer, Service, json_fields, origin};
use crate::{CallContext, Gateway, Site, client_request};

/// For an answer, when the policy does not say.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An answer is a result and perhaps metrics.
const REPLY_BYTES_MAX: usize = 1024 * 1024;

const LOGGER: &str = "OPA";

/// Calls a policy agent.
struct AskAgent {
    service: Arc<Service>,
    sends_token: bool,
    /// Properties of the message that are sent to the agent.
    properties: Vec<String>,
    /// The field whose value is a secret.
    authorization_header: Arc<str>,
}

/// Compiles the action.
pub(super) fn compile(_gateway: &Gateway, site: &Arc<Site>, call: &ActionCall) -> Result<Box<dyn Mediator>, Problem> {
    let server = call.required("serverURL")?.trim_end_matches('/');
    let Some(origin) = origin(server) else {
        return Err(Problem::Unprotected(format!("`serverURL` is `{server}`, not an http or https URL")));
    };
    let path = server.splitn(4, '/').nth(3).map_or_else(String::new, |path| format!("/{path}"));
    let mut url = format!("{origin}{path}/{}", call.required("policy")?);
    if let Some(rule) = call.get("rule") {
        url = format!("{url}/{rule}");
    }
    let generator = call.get("requestGenerator").unwrap_or_default();
    if !generator.is_empty() && !generator.ends_with("OPADefaultRequestGenerator") {
        return Err(Problem::Refuse(format!(
            "the request generator `{generator}` is a Java class; only the default is known"
        )));
    }
    let key = call.get("accessKey");
    let certificates: Vec<Arc<[u8]>> =
        site.api.endpoint_certificates.iter().chain(&site.api.interceptor_certificates).cloned().collect();
    let tls = (!certificates.is_empty()).then(|| {
        let mut profile = TlsProfile::trusting(certificates);
        profile.also_common = true;
        Arc::new(profile)
    });
    let seconds = call.get("connectionTimeout").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    let properties = call.get("additionalProperties").unwrap_or_default().split(',').map(str::trim);
    Ok(Box::new(AskAgent {
        service: Arc::new(Service {
            url: url.into(),
            timeout: seconds.filter(|timeout| !timeout.is_zero()).unwrap_or(TIMEOUT),
            tls,
            headers: json_fields(key.map(|key| ("Authorization", format!("Bearer {key}")))),
            reply_bytes_max: REPLY_BYTES_MAX,
        }),
        sends_token: call.get("sendAccessToken").is_some_and(|flag| flag.eq_ignore_ascii_case("true")),
        properties: properties.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        authorization_header: site.api.authorization_header.clone().unwrap_or_else(|| "authorization".into()),
    }))
}

impl Mediator for AskAgent {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let input = self.input(exchange)?;
        let question = self.service.ask(exchange, input);
        let url = self.service.url.clone();
        Ok(Flow::WaitBounded(Box::pin(async move {
            let answer = question.answer().await;
            Resume::new(move |exchange, ()| decide(exchange, &url, answer))
        })))
    }
}

/// Lets the request go on, or refuses it.
fn decide(exchange: &mut Exchange, url: &str, answer: Result<Answer, String>) -> Result<Flow, Fault> {
    let (code, why) = match answer {
        Err(why) => (codes::OPA_CALL, why),
        Ok(answer) if answer.status != 200 => {
            (codes::OPA_CALL, format!("it answered with the status {}", answer.status))
        }
        Ok(answer) => match result(&answer.body) {
            Some(true) => return Ok(Flow::Next),
            Some(false) => return Err(GatewayError::new(codes::OPA_REFUSED).into()),
            None => (codes::OPA_REPLY, "its response has no boolean `result`".into()),
        },
    };
    exchange.log(Level::Warn, LOGGER, &format!("the policy agent `{url}` failed: {why}; the request is refused"));
    Err(GatewayError::new(code).into())
}

fn result(body: &[u8]) -> Option<bool> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    value.get("result")?.as_bool()
}

impl AskAgent {
    /// The input of the agent.
    fn input(&self, exchange: &mut Exchange) -> Result<Bytes, Fault> {
        let context = CallContext::of(exchange)?;
        let mut object = JsonObject::new(1024);
        object.object("input", |input| {
            input.object("transportHeaders", |fields| {
                for (index, (name, value)) in exchange.message.headers.iter().enumerate() {
                    let earlier = exchange.message.headers.iter().take(index);
                    let is_secret = name.eq_ignore_ascii_case(self.authorization_header.as_bytes());
                    if !is_secret && !earlier.into_iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                        fields.field(name, std::iter::once(value));
                    }
                }
            });
            input.text("requestOrigin", &exchange.client.address.to_string());
            input.text("method", exchange.client.line.method.as_str());
            input.text("path", exchange.client.line.target());
            input.object("apiContext", |about| {
                let api = &context.site.api;
                about.text("apiName", &api.name);
                about.text("apiVersion", &api.version);
                about.text("orgId", &api.organization);
                let vhost = client_request::vhost(exchange, api);
                about.text("vhost", vhost);
                about.text("pathTemplate", &context.site.operation.path);
                about.text("prodClusterName", &client_request::cluster_name(&context.site, vhost, false));
                about.text("sandClusterName", &client_request::cluster_name(&context.site, vhost, true));
            });
            if self.sends_token {
                let caller = context.caller.borrow();
                input.object("authenticationContext", |about| {
                    about.text("token", &caller.token);
                    about.text("tokenType", caller.token_type);
                    about.text("keyType", if caller.sandbox { "SANDBOX" } else { "PRODUCTION" });
                });
            }
            for name in &self.properties {
                match exchange.message.properties.get(name) {
                    Some(value) => input.text_of(name, &value.to_text()),
                    None => input.raw_of(name, b"null"),
                }
            }
        });
        Ok(object.end().into())
    }
}
