//! Requests and answers are checked against the API's definition, when the API enables it.
//!
//! `definition.rs` finds what the definition says of an operation, `convert.rs` makes JSON Schema of OpenAPI's own
//! dialect, `body.rs` and `parameters.rs` look at messages. Everything is compiled with the API; a request costs the
//! reading of its body and the schema's checks.
//!
//! As in API Manager a request is checked as the client sent it, before operation policies, and an answer as the
//! backend sent it.

mod body;
mod convert;
mod definition;
mod parameters;

use std::fmt::Write;
use std::sync::Arc;

use penstock_compile::Compiler;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_projects::place;

use self::body::BodyCheck;
use self::definition::{Definition, LastDefinition};
use self::parameters::{ParameterCheck, RequestParts};
use crate::error::{GatewayError, codes};
use crate::policy::{ApiKinds, Phase, PolicyKind};
use crate::{CallContext, Gateway, Site, client_request};

/// The kind for requests.
pub const REQUESTS: PolicyKind = PolicyKind {
    name: "schema-validation",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Message,
    request: Some(compile_request),
    response: None,
};

/// The kind for answers, which has its place beside the backend.
pub const ANSWERS: PolicyKind = PolicyKind {
    name: "schema-validation",
    applies_to: ApiKinds::MESSAGES,
    phase: Phase::Message,
    request: None,
    response: Some(compile_response),
};

/// Maximum length of the description: a body can violate a schema in many places, and messages repeat values.
const DESCRIPTION_BYTES_MAX: usize = 2048;

/// Refuses requests that the definition does not allow.
struct CheckRequest {
    /// The path template, for messages.
    path: Arc<str>,
    parameters: Vec<ParameterCheck>,
    body: Option<BodyCheck>,
}

/// Replaces answers that the definition does not allow.
struct CheckAnswer {
    /// By `200`, `4XX`, `default`.
    by_status: Vec<(String, BodyCheck)>,
}

/// The definition to check against; `None` when the site does not ask for it, or after it was said that there is none.
fn definition_of(gateway: &Gateway, site: &Site, cx: &mut Compiler<'_>) -> Option<Arc<Definition>> {
    if !site.api.schema_validation {
        return None;
    }
    let bytes = site.api.definition.as_ref();
    let found = bytes.and_then(|bytes| LastDefinition::get(gateway, bytes));
    if found.is_none() {
        let message = "the API has no definition to validate messages against (`enableSchemaValidation`)";
        cx.unprotected(place(&site.api.at), message);
    }
    found
}

fn compile_request(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let definition = definition_of(gateway, site, cx)?;
    let mut problems = Vec::new();
    let operation = definition.operation(&site.operation)?;
    let parameters = operation.parameters(site, &mut problems);
    let body = operation.request_body(&mut problems);
    tell(site, problems, cx);
    if parameters.is_empty() && body.is_none() {
        return None;
    }
    Some(Box::new(CheckRequest { path: site.operation.path.clone(), parameters, body }))
}

fn compile_response(gateway: &Gateway, site: &Arc<Site>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    if !site.api.schema_validation || &*site.operation.method == "HEAD" {
        return None;
    }
    // That there is no definition was said for the request.
    let definition = LastDefinition::get(gateway, site.api.definition.as_ref()?)?;
    let mut problems = Vec::new();
    let by_status = definition.operation(&site.operation)?.answers(&mut problems);
    tell(site, problems, cx);
    if by_status.is_empty() {
        return None;
    }
    Some(Box::new(CheckAnswer { by_status }))
}

fn tell(site: &Site, problems: Vec<String>, cx: &mut Compiler<'_>) {
    for problem in problems {
        cx.unprotected(place(&site.operation.at), format!("{problem}: it cannot be validated"));
    }
}

impl Mediator for CheckRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut wrong = Vec::new();
        if !self.parameters.is_empty() {
            let context = CallContext::of(exchange)?;
            // The request of a tool differs from that of its client.
            let target = match context.mcp.get() {
                None => exchange.client.line.target(),
                Some(_) => client_request::below_now(exchange, &context.site),
            };
            let parts = RequestParts::new(&exchange.message.headers, target, &context.path_values);
            self.parameters.iter().for_each(|parameter| parameter.check(&parts, &self.path, &mut wrong));
        }
        if let Some(body) = &self.body {
            body.check(exchange, "request", &mut wrong);
        }
        verdict(codes::SCHEMA_REQUEST, "Request", &wrong)
    }

    fn needs(&self) -> Needs {
        if self.body.as_ref().is_some_and(BodyCheck::reads) { Needs::Whole } else { Needs::Nothing }
    }
}

impl Mediator for CheckAnswer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let status = exchange.message.status;
        let Some(check) = self.check_of(status) else { return Ok(Flow::Next) };
        // RFC 9110 §15.3.5, §15.4.5: these have no body, even if the definition has one.
        if matches!(status, 204 | 304) {
            return Ok(Flow::Next);
        }
        let mut wrong = Vec::new();
        check.check(exchange, "response", &mut wrong);
        verdict(codes::SCHEMA_RESPONSE, "Response", &wrong)
    }

    fn needs(&self) -> Needs {
        if self.by_status.iter().any(|(_, check)| check.reads()) { Needs::Whole } else { Needs::Nothing }
    }
}

impl CheckAnswer {
    /// The check of a status, else of its hundred, else of `default`.
    fn check_of(&self, status: u16) -> Option<&BodyCheck> {
        let (exact, hundred) = (status.to_string(), format!("{}XX", status / 100));
        let of = |code: &str| self.by_status.iter().find(|(known, _)| known.eq_ignore_ascii_case(code));
        of(&exact).or_else(|| of(&hundred)).or_else(|| of("default")).map(|(_, check)| check)
    }
}

/// Nothing wrong is nothing to say.
fn verdict(code: u32, what: &str, wrong: &[String]) -> Result<Flow, Fault> {
    if wrong.is_empty() {
        return Ok(Flow::Next);
    }
    let mut text = format!("Schema validation failed in the {what}: ");
    for (index, message) in wrong.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{separator}{message}");
    }
    if text.len() > DESCRIPTION_BYTES_MAX {
        let end = (0..=DESCRIPTION_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    Err(GatewayError::described(code, text).into())
}
