//! Basic authentication of an API's clients: 401 for those who say no name, 403 for those whose password is wrong, as in
//! the original.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Scope, Value};

struct BasicAuth;

/// Reads the handler's properties, of which none changes what it does here.
pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    for property in el.elements("property") {
        property.accept_all();
        cx.warn(property.place(), "properties of the handler for basic authentication are not used");
    }
    Some(Box::new(BasicAuth))
}

/// Whether two secrets are the same; the time it takes does not say how far they are.
fn same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && left.iter().zip(right).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// The name and the password of the Authorization field (RFC 7617 §2).
fn credentials(field: &str) -> Option<(String, String)> {
    let (scheme, encoded) = field.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let pair = String::from_utf8(BASE64.decode(encoded.trim()).ok()?).ok()?;
    let (name, password) = pair.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

impl Mediator for BasicAuth {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let given = exchange.message.headers.get("Authorization").and_then(credentials);
        let status = match given {
            None => 401,
            Some((name, password)) => match exchange.core().environment.users.get(&name) {
                Some(known) if same(known.as_bytes(), password.as_bytes()) => return Ok(Flow::Next),
                _ => 403,
            },
        };
        exchange.message.headers.clear();
        exchange.message.body.take();
        if status == 401 {
            exchange.reply_headers.push(("WWW-Authenticate".into(), "Basic realm=\"Penstock\"".into()));
        }
        exchange.set_property(Scope::Axis2, "HTTP_SC", Value::Integer(status));
        Ok(Flow::Respond)
    }
}
