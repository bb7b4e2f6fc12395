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
        if !cors.set(name, value) {
            cx.warn(property.place(), format!("the CORS handler does not know the property `{name}`"));
        }
    }
    // `<cors>` of an API says the same in elements of its own.
    for child in el.children().filter(|child| el.name() == "cors" && child.name() != "property") {
        if !cors.set(child.name(), &child.text()) {
            cx.warn(child.place(), format!("<cors> does not know the element <{}>", child.name()));
        }
    }
    Some(Box::new(cors))
}

impl Cors {
    /// Sets a property, however its name is written: `allowedOrigins`, `allow-origins`.
    fn set(&mut self, name: &str, value: &str) -> bool {
        let plain = name.replace(['-', '_'], "").to_ascii_lowercase().replace("allowed", "allow");
        match plain.strip_prefix("accesscontrol").unwrap_or(&plain) {
            "alloworigins" | "alloworigin" => {
                let origins = value.split(',').map(|origin| origin.trim().to_owned());
                self.origins = origins.filter(|origin| !origin.is_empty()).collect();
            }
            "allowmethods" => self.methods = value.into(),
            "allowheaders" => self.headers = value.into(),
            "allowcredentials" => self.credentials = value.trim().eq_ignore_ascii_case("true"),
            "maxage" => self.max_age = Some(value.trim().into()),
            _ => return false,
        }
        true
    }
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
                fields.append("Vary", "Origin");
            }
            fields.append("Access-Control-Allow-Origin", &*allowed);
            fields.append("Access-Control-Allow-Methods", &*self.methods);
            fields.append("Access-Control-Allow-Headers", &*self.headers);
            if self.credentials {
                fields.append("Access-Control-Allow-Credentials", "true");
            }
        }
        if exchange.client.line.method != Method::Options {
            return Ok(Flow::Next);
        }
        if let Some(max_age) = &self.max_age {
            exchange.reply_headers.append("Access-Control-Max-Age", &**max_age);
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
