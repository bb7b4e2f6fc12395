//! Cross-origin requests to an API: preflight answers and the `Access-Control-*` fields.

use std::sync::Arc;

use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Method, Scope, Value};

struct Cors {
    origins: Vec<String>,
    methods: Arc<str>,
    headers: Arc<str>,
    credentials: bool,
    max_age: Option<Arc<str>>,
}

/// Reads the handler's properties.
pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut cors = Cors {
        origins: vec!["*".to_owned()],
        methods: "GET, POST, PUT, DELETE, PATCH, OPTIONS".into(),
        headers: "*".into(),
        credentials: false,
        max_age: None,
    };
    for property in el.elements("property") {
        let (Some(name), Some(value)) = (property.required(cx, "name"), property.attribute("value")) else { continue };
        match name {
            "allowedOrigins" | "allowOrigins" => {
                cors.origins = value
                    .split(',')
                    .map(|origin| origin.trim().to_owned())
                    .filter(|origin| !origin.is_empty())
                    .collect();
            }
            "allowedMethods" | "allowMethods" => cors.methods = value.into(),
            "allowHeaders" | "allowedHeaders" => cors.headers = value.into(),
            "allowCredentials" => cors.credentials = value.trim().eq_ignore_ascii_case("true"),
            "maxAge" => cors.max_age = Some(value.trim().into()),
            other => cx.warn(property.place(), format!("the CORS handler does not know the property `{other}`")),
        }
    }
    Some(Box::new(cors))
}

impl Cors {
    /// What `Access-Control-Allow-Origin` says to an origin; `None` when it is not allowed.
    fn allowed(&self, origin: &str) -> Option<Arc<str>> {
        let fits = |pattern: &String| match pattern.strip_prefix('*') {
            Some("") => true,
            // `*.example.com` is every host below it, under any scheme.
            Some(suffix) => origin.split_once("://").is_some_and(|(_, host)| host.ends_with(suffix)),
            None => pattern == origin,
        };
        if !self.origins.iter().any(fits) {
            return None;
        }
        // With credentials a wildcard is not allowed (Fetch §3.2.5), so the origin is named.
        let any = self.origins.iter().any(|pattern| pattern == "*") && !self.credentials;
        Some(if any { "*".into() } else { origin.into() })
    }
}

impl Mediator for Cors {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(origin) = exchange.message.headers.get("Origin").map(str::to_owned) else {
            return Ok(if exchange.client.line.method == Method::Options {
                self.preflight(exchange)
            } else {
                Flow::Next
            });
        };
        if let Some(allowed) = self.allowed(&origin) {
            let fields = &mut exchange.reply_headers;
            if *allowed != *"*" {
                fields.push(("Vary".into(), "Origin".into()));
            }
            fields.push(("Access-Control-Allow-Origin".into(), allowed));
            fields.push(("Access-Control-Allow-Methods".into(), self.methods.clone()));
            fields.push(("Access-Control-Allow-Headers".into(), self.headers.clone()));
            if self.credentials {
                fields.push(("Access-Control-Allow-Credentials".into(), "true".into()));
            }
        }
        if exchange.client.line.method != Method::Options {
            return Ok(Flow::Next);
        }
        if let Some(max_age) = &self.max_age {
            exchange.reply_headers.push(("Access-Control-Max-Age".into(), max_age.clone()));
        }
        Ok(self.preflight(exchange))
    }
}

impl Cors {
    /// OPTIONS never reaches a resource.
    fn preflight(&self, exchange: &mut Exchange) -> Flow {
        exchange.message.headers.clear();
        exchange.message.body.take();
        exchange.set_property(Scope::Axis2, "HTTP_SC", Value::Integer(200));
        Flow::Respond
    }
}
