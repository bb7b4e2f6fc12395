//! The HTTP connector: `<http.get>`, `<http.post>`, … send a request to a connection, which a local entry with
//! `<http.init>` defines. The reply replaces the body, or goes to a variable.

mod connection;
mod request;
mod response;

use penstock_compile::connector::{Output, parameter};
use penstock_compile::endpoint::{CONNECTION_URL, request_url};
use penstock_compile::{Compiler, ConnectorKind, Element, Parameter};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::{Method, Scope, Value};

use crate::reply::Kept;
use connection::Connection;
use request::Request;

/// The kind.
pub const KIND: ConnectorKind = ConnectorKind {
    name: "http",
    operations: &["init", "get", "post", "put", "patch", "delete", "head", "options"],
    compile,
    connection: connection::declare,
};

struct Operation {
    method: Method,
    connection: Connection,
    path: Option<Parameter>,
    request: Request,
    output: Output,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.name().strip_prefix("http.").unwrap_or_default();
    if name == "init" {
        return Some(connection::init(el, cx));
    }
    let connection = Connection::compile(el, cx)?;
    let path = parameter(el, cx, "relativePath")?;
    // The connector gives these two no body of their own; what the message has goes with a DELETE.
    let takes_body = !matches!(name, "get" | "delete");
    let request = Request::compile(el, cx, takes_body)?;
    let output = Output::compile(el, cx)?;
    Some(Box::new(Operation { method: Method::parse(&name.to_uppercase()), connection, path, request, output }))
}

impl Mediator for Operation {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let (destination, base) = self.connection.of(exchange)?;
        let path = self.path.as_ref().map_or(Ok(String::new()), |path| path.text(exchange))?;
        let output = self.output.place(exchange)?;
        let prepared = self.request.evaluate(exchange)?;
        let kept = output.as_ref().filter(|place| !place.overwrites_body).map(|_| Kept::from_exchange(exchange));
        prepared.apply(exchange)?;
        exchange.set_property(Scope::Default, CONNECTION_URL, Value::string(request_url(&base, &path)));
        exchange.message.method = self.method.clone();
        exchange.message.url_postfix = None;
        let Some(place) = output else { return Ok(Flow::Call(destination)) };
        let then = Resume::new(move |exchange: &mut Exchange, reply: Result<_, Fault>| {
            exchange.message.replace_by_reply(reply?);
            response::put(&place, exchange)?;
            if let Some(kept) = kept {
                kept.restore(exchange);
            }
            Ok(Flow::Next)
        });
        Ok(Flow::CallWith(destination, then))
    }

    fn needs(&self) -> Needs {
        let parameters = self.connection.needs().max(self.path.as_ref().map_or(Needs::Nothing, Parameter::needs));
        // A message that gets its body back is kept whole.
        let keeps = if self.output.may_keep_body() { Needs::Whole } else { self.output.needs() };
        match parameters.max(self.request.needs()).max(keeps) {
            Needs::Nothing => Needs::Nothing,
            _ => Needs::Whole,
        }
    }
}
