//! Rules for browsers as API Manager keeps them: every answer says which origin may see it, a preflight request is
//! answered for the resource it is about, and what the backend says of origins comes before what the gateway says.
//!
//! Which resource that is, and that there is none without `Access-Control-Request-Method`, the router decides.

use std::sync::Arc;

use penstock_catalog::Cors as Rules;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Headers, Message};

use super::origin::fits;
use crate::Site;

const ORIGIN: &str = "Access-Control-Allow-Origin";
const CREDENTIALS: &str = "Access-Control-Allow-Credentials";
const EXPOSE: &str = "Access-Control-Expose-Headers";

/// The CORS headers of a resource.
pub(super) struct OfResource {
    /// Whether scripts of every site may see answers.
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

/// Whether a site is what answers for browsers, since its path has no such operation.
fn answers_preflight(site: &Site) -> Option<bool> {
    let is_options = &*site.operation.method == "OPTIONS";
    let is_own = is_options && site.methods.split(' ').any(|method| method == "OPTIONS");
    // What the API answers itself is between the browser and its backend.
    (!is_own).then_some(is_options)
}

/// The policy of a site; `None` when there is nothing to say.
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
    Some(Box::new(OfResource {
        every: origins.iter().any(|origin| &**origin == "*"),
        origins,
        credentials: rules.credentials,
        expose: trimmed(&rules.expose_headers).join(","),
        preflight,
    }))
}

impl Mediator for OfResource {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let headers = &exchange.message.headers;
        let origin = match headers.get("Origin") {
            _ if self.every => Some("*"),
            Some(origin) if self.origins.iter().any(|pattern| fits(pattern, origin)) => Some(origin),
            _ => None,
        };
        let fields = &mut exchange.reply_headers;
        if let Some(origin) = origin {
            fields.set(ORIGIN, origin);
            if !self.every {
                // A cache must not give this answer to another origin (Fetch §3.2.5).
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
        let asked = headers.get("Access-Control-Request-Headers").filter(|_| preflight.every_header);
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                fields.set(name, value);
            }
        };
        put("Access-Control-Allow-Methods", &preflight.methods);
        put("Access-Control-Allow-Headers", asked.unwrap_or(&preflight.headers));
        exchange.message = Message { headers: Headers::new(), status: 200, ..Message::default() };
        Ok(Flow::Respond)
    }
}

/// Leaves what the backend says of origins.
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
