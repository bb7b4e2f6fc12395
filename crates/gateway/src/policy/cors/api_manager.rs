//! CORS as in API Manager: each response names the allowed origin, a preflight request is answered for its resource, and CORS
//! headers of the backend win over those of the gateway.
//!
//! The router finds the resource of a preflight request by `Access-Control-Request-Method`.

use std::sync::Arc;

use penstock_catalog::Cors as Rules;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Headers, Message};

use super::origin::matches_origin;
use crate::Site;

const ORIGIN: &str = "Access-Control-Allow-Origin";
const CREDENTIALS: &str = "Access-Control-Allow-Credentials";
const EXPOSE: &str = "Access-Control-Expose-Headers";

/// The CORS headers of a resource.
pub(super) struct ResourceCors {
    /// Whether all origins are allowed.
    every: bool,
    origins: Vec<Arc<str>>,
    credentials: bool,
    expose: String,
    /// For a preflight request.
    preflight: Option<Preflight>,
}

struct Preflight {
    methods: String,
    headers: String,
    /// Whether all requested headers are allowed.
    every_header: bool,
}

/// Whether the site answers preflight requests; `None` when the API has an OPTIONS operation of its own.
fn answers_preflight(site: &Site) -> Option<bool> {
    let is_options = &*site.operation.method == "OPTIONS";
    let is_own = is_options && site.methods.split(' ').any(|method| method == "OPTIONS");
    (!is_own).then_some(is_options)
}

/// The policy of a site; `None` when it adds no header.
pub(super) fn compile(rules: Option<&Rules>, site: &Site, authorization: &str) -> Option<Box<dyn Mediator>> {
    let is_preflight = answers_preflight(site)?;
    let off = Rules::default();
    let rules = match rules {
        Some(rules) => rules,
        None if is_preflight => &off,
        None => return None,
    };
    let trimmed = |values: &[Arc<str>]| values.iter().map(|value| value.trim().to_owned()).collect::<Vec<_>>();
    let allowed = trimmed(&rules.methods);
    let mut headers = trimmed(&rules.headers);
    let every_header = headers == ["*"];
    // The API's own header for tokens is always allowed.
    if !headers.is_empty() && !every_header && !headers.iter().any(|name| name.eq_ignore_ascii_case(authorization)) {
        headers.push(authorization.to_owned());
    }
    let methods = site.methods.split(' ').filter(|method| allowed.iter().any(|allowed| allowed == method));
    let preflight = is_preflight.then(|| Preflight {
        methods: methods.collect::<Vec<_>>().join(","),
        headers: headers.join(","),
        every_header,
    });
    let origins: Vec<Arc<str>> = rules.origins.iter().map(|origin| origin.trim().into()).collect();
    Some(Box::new(ResourceCors {
        every: origins.iter().any(|origin| &**origin == "*"),
        origins,
        credentials: rules.credentials,
        expose: trimmed(&rules.expose_headers).join(","),
        preflight,
    }))
}

impl Mediator for ResourceCors {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &exchange.message.headers;
        let origin = match headers.get("Origin") {
            _ if self.every => Some("*"),
            Some(origin) if self.origins.iter().any(|pattern| matches_origin(pattern, origin)) => Some(origin),
            _ => None,
        };
        let fields = &mut exchange.reply_headers;
        if let Some(origin) = origin {
            fields.set(ORIGIN, origin);
            if !self.every {
                // A cache must not return this response to another origin (Fetch §3.2.5).
                fields.append("Vary", "Origin");
            }
            // Browsers refuse both together.
            if self.credentials && !self.every {
                fields.set(CREDENTIALS, "true");
            }
            if !self.expose.is_empty() {
                fields.set(EXPOSE, &*self.expose);
            }
        }
        let Some(preflight) = &self.preflight else { return Ok(Flow::Next) };
        let requested = headers.get("Access-Control-Request-Headers").filter(|_| preflight.every_header);
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                fields.set(name, value);
            }
        };
        put("Access-Control-Allow-Methods", &preflight.methods);
        put("Access-Control-Allow-Headers", requested.unwrap_or(&preflight.headers));
        exchange.message = Message { headers: Headers::new(), status: 200, ..Message::default() };
        Ok(Flow::Respond)
    }
}

/// Keeps the CORS headers of the backend.
pub(super) struct BackendFirst;

impl Mediator for BackendFirst {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        for name in [ORIGIN, CREDENTIALS, EXPOSE] {
            if exchange.message.headers.contains(name) {
                exchange.reply_headers.remove(name);
            }
        }
        Ok(Flow::Next)
    }
}
