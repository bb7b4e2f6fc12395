//! `cors`: CORS of the API Platform. A preflight request is answered only when the API has an operation for `OPTIONS`.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Headers, Method};
use regex::Regex;

use super::answer;
use super::headers::is_value;
use super::params::Params;
use crate::CallContext;
use crate::policy::chain::kind::{ChainPhase, ChainPolicy, Made, Making};

/// The policy.
pub(super) const POLICY: ChainPolicy = ChainPolicy { name: "cors", make };

struct Rules {
    /// `None` allows all.
    origins: Option<Vec<Regex>>,
    methods: Option<Vec<Arc<str>>>,
    headers: Option<Vec<Arc<str>>>,
    exposed: Vec<Arc<str>>,
    max_age: Option<u64>,
    credentials: Option<bool>,
    forwards: bool,
    index: usize,
}

struct CorsRequest(Arc<Rules>);

struct CorsAnswer(Arc<Rules>);

/// The CORS headers of the response.
enum Decided {
    /// The origin is allowed.
    Set(Headers),
    /// It is not: the headers of the backend are removed.
    Removed,
}

/// Headers of backends that are removed for origins that are not allowed.
const CORS_HEADERS: [&str; 3] =
    ["Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers"];

fn make(making: &Making<'_>, params: &Params<'_>) -> Option<Made> {
    let star = |list: Vec<Arc<str>>| if list.iter().any(|one| &**one == "*") { None } else { Some(list) };
    let origins = params.list("allowedOrigins");
    let sites: Vec<Arc<str>> = origins.iter().filter_map(|origin| origin.text("allowedOrigins")).collect();
    let all_origins = sites.is_empty() || sites.iter().any(|origin| &**origin == "*");
    let origins = (!all_origins).then(|| origins.iter().filter_map(|origin| origin.regex("allowedOrigins")).collect());
    let methods = match params.texts("allowedMethods") {
        list if list.is_empty() => Some(["GET", "POST", "PUT", "DELETE", "OPTIONS"].map(Arc::from).to_vec()),
        list => star(list),
    };
    let headers = star(params.texts("allowedHeaders"));
    let exposed = params.texts("exposedHeaders");
    let credentials = params.get("allowCredentials").map(|_| params.flag("allowCredentials", false));
    if credentials == Some(true) {
        let stars = [
            ("allowedOrigins", origins.is_none()),
            ("allowedMethods", methods.is_none()),
            ("allowedHeaders", headers.is_none()),
            ("exposedHeaders", exposed.iter().any(|one| &**one == "*")),
        ];
        for (name, _) in stars.iter().filter(|(_, star)| *star) {
            params.error(format!("`{name}` cannot be `*` when `allowCredentials` is true"));
        }
    }
    let mut names = methods.iter().flatten().chain(headers.iter().flatten()).chain(&exposed);
    if let Some(bad) = names.find(|name| !is_value(name)) {
        params.error(format!("`{}` cannot stand in a header field", bad.escape_default()));
    }
    let rules = Arc::new(Rules {
        origins,
        methods,
        headers,
        exposed,
        max_age: params.whole("maxAge", 0, 86_400),
        credentials,
        forwards: params.flag("forwardPreflight", false),
        index: making.index,
    });
    Some(Made::request(ChainPhase::Head, CorsRequest(rules.clone())).and_response(ChainPhase::Head, CorsAnswer(rules)))
}

impl Rules {
    /// The value of `Access-Control-Allow-Origin`; `None` for an origin that is not allowed.
    fn origin<'o>(&self, origin: Option<&'o str>) -> Option<&'o str> {
        match &self.origins {
            None => Some("*"),
            Some(patterns) => origin.filter(|origin| patterns.iter().any(|pattern| pattern.is_match(origin))),
        }
    }

    fn preflight(&self, sent: &Headers) -> Option<Headers> {
        let mut headers = Headers::new();
        headers.append("Access-Control-Allow-Origin", self.origin(sent.get("Origin"))?);
        if self.origins.is_some() {
            headers.append("Vary", "Origin");
        }
        match &self.methods {
            None => headers.append("Access-Control-Allow-Methods", "*"),
            Some(methods) => {
                let wanted = sent.get("Access-Control-Request-Method")?;
                methods.iter().find(|method| &***method == wanted)?;
                headers.append("Access-Control-Allow-Methods", methods.join(","));
            }
        }
        if let Some(wanted) = sent.get("Access-Control-Request-Headers") {
            match &self.headers {
                None => headers.append("Access-Control-Allow-Headers", wanted),
                Some(allowed) => {
                    let wanted: Vec<&str> = wanted.split(',').map(str::trim).collect();
                    let of = |name: &Arc<str>| wanted.iter().any(|wanted| wanted.eq_ignore_ascii_case(name.trim()));
                    let fitting: Vec<&str> = allowed.iter().filter(|name| of(name)).map(|name| &**name).collect();
                    if fitting.len() != wanted.len() {
                        return None;
                    }
                    headers.append("Access-Control-Allow-Headers", fitting.join(","));
                }
            }
        }
        if let Some(seconds) = self.max_age {
            headers.append("Access-Control-Max-Age", seconds.to_string());
        }
        self.credentials(&mut headers);
        Some(headers)
    }

    fn credentials(&self, headers: &mut Headers) {
        if let Some(credentials) = self.credentials {
            headers.append("Access-Control-Allow-Credentials", if credentials { "true" } else { "false" });
        }
    }

    fn answer(&self, origin: Option<&str>) -> Option<Decided> {
        let Some(allowed) = self.origin(origin) else { return origin.map(|_| Decided::Removed) };
        let mut headers = Headers::new();
        headers.append("Access-Control-Allow-Origin", allowed);
        if !self.exposed.is_empty() {
            headers.append("Access-Control-Expose-Headers", self.exposed.join(","));
        }
        self.credentials(&mut headers);
        Some(Decided::Set(headers))
    }
}

impl Mediator for CorsRequest {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let rules = &self.0;
        let sent = &exchange.message.headers;
        if exchange.client.line.method == Method::Options {
            return Ok(match rules.preflight(sent) {
                None if rules.forwards => Flow::Next,
                allowed => answer::immediately(exchange, 204, allowed.unwrap_or_default(), ""),
            });
        }
        if let Some(decided) = rules.answer(sent.get("Origin")) {
            CallContext::of(exchange)?.chain.borrow_mut().keep(rules.index, decided);
        }
        Ok(Flow::Next)
    }
}

impl Mediator for CorsAnswer {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let decided = CallContext::of(exchange)?.chain.borrow_mut().take::<Decided>(self.0.index);
        let headers = &mut exchange.message.headers;
        match decided {
            Some(Decided::Set(fields)) => {
                headers.set_all(fields);
                if self.0.origins.is_some() {
                    // In addition to the `Vary` of the backend.
                    headers.append("Vary", "Origin");
                }
            }
            Some(Decided::Removed) => {
                for name in CORS_HEADERS {
                    headers.remove(name);
                }
            }
            None => {}
        }
        Ok(Flow::Next)
    }
}
