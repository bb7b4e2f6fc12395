//! Basic authentication of an API's clients: 401 without credentials, 403 for a wrong password, as in
//! Micro Integrator.

use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault, Flow, Login, Mediator, basic_credentials};
use penstock_message::{Scope, Value};

struct BasicAuth;

/// Reads the handler's properties, of which none changes what it does here.
pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    for property in el.elements("property") {
        property.accept_all();
        cx.unprotected(property.place(), "properties of the handler for basic authentication are not supported");
    }
    if cx.options.without_users {
        let message = "basic authentication refuses every request: no user is configured (`[users]` of penstock.toml, \
                       `[super_admin]` or the file user store of deployment.toml)";
        cx.warn(el.place(), message);
    }
    Some(Box::new(BasicAuth))
}

impl Mediator for BasicAuth {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let given = exchange.message.headers.get("Authorization").and_then(basic_credentials);
        let login = given
            .map(|(name, password)| exchange.core().environment.users.login(&name, &password, exchange.client.address));
        let status = match login {
            Some(Login::Accepted) => return Ok(Flow::Next),
            None => 401,
            Some(Login::Refused | Login::BackOff(_)) => 403,
        };
        exchange.message.headers.clear();
        exchange.message.body.take();
        if let Some(seconds) = login.and_then(Login::retry_after_seconds) {
            exchange.reply_headers.append("Retry-After", seconds.to_string());
        }
        if status == 401 {
            exchange.reply_headers.append("WWW-Authenticate", "Basic realm=\"Penstock\"");
        }
        exchange.set_property(Scope::Axis2, "HTTP_SC", Value::Integer(status));
        Ok(Flow::Respond)
    }
}
