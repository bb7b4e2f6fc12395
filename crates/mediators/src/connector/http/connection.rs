//! Which connection an operation uses: the local entry that `configKey` names, an `<http.init>` inside it, or the last
//! `<http.init>` of the flow.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Parameter, connector, endpoint};
use penstock_engine::{Destination, EndpointId, Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Scope, Value};

/// The properties that the connector of Micro Integrator leaves for the operations after `init`.
const BASE: &str = "HTTP_CONN_BASE_PATH";
const ENDPOINT: &str = "httpConnectorConnectionEndpointName";

/// A connection that was declared.
pub(super) struct Declared {
    endpoint: EndpointId,
    name: Arc<str>,
    base: Option<Parameter>,
}

/// The connection of an operation.
pub(super) struct Connection(connector::Connection<Declared>);

struct Init(Arc<Declared>);

/// Compiles the connection of a local entry.
pub(super) fn declare(key: &str, el: &Element<'_>, cx: &mut Compiler<'_>) {
    let declared = read(key, el, cx);
    cx.declare_connection(key, Arc::new(declared));
}

/// Compiles `<http.init>` as a step of a flow.
pub(super) fn init(el: &Element<'_>, cx: &mut Compiler<'_>) -> Box<dyn Mediator> {
    let declared = read(&format!("http.init at {}", el.place()), el, cx);
    el.accept_all();
    Box::new(Init(Arc::new(declared)))
}

fn read(key: &str, el: &Element<'_>, cx: &mut Compiler<'_>) -> Declared {
    let base = el.child("baseUrl").filter(|child| !child.text().is_empty()).and_then(|child| {
        let text = cx.configured(&child.text(), &child.place());
        Parameter::compile_text(cx, &child, &text, penstock_compile::expression::synapse::Escape::None)
    });
    if base.is_none() {
        cx.error(el.place(), "<http.init> needs <baseUrl>");
    }
    let endpoint = endpoint::connection(cx, key, el);
    let name = cx.endpoint(endpoint).label().into();
    Declared { endpoint, name, base }
}

impl Connection {
    /// Reads `configKey` or the `<http.init>` inside an operation.
    pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Connection> {
        if let Some(inner) = el.child("http.init") {
            let declared = read(&format!("http.init at {}", inner.place()), &inner, cx);
            inner.accept_all();
            return Some(Connection(connector::Connection::Fixed(Arc::new(declared))));
        }
        connector::Connection::compile(el, cx, "http").map(Connection)
    }

    /// Where a message goes, and the base URL.
    pub(super) fn of(&self, exchange: &mut Exchange) -> Result<(Destination, String), Fault> {
        if let Some(declared) = self.0.of(exchange)? {
            return declared.of(exchange);
        }
        let endpoint = exchange.property(Scope::Default, ENDPOINT);
        let base = exchange.property(Scope::Default, BASE);
        let (Some(endpoint), Some(base)) = (endpoint, base) else {
            return Err(Fault::new("the HTTP connector needs a connection: `configKey`, or <http.init> before it"));
        };
        let destination = Destination::Named(endpoint.to_text().into());
        Ok((destination, base.to_text().into_owned()))
    }

    pub(super) fn needs(&self) -> Needs {
        let candidates = self.0.candidates();
        let bases = candidates.iter().filter_map(|declared| declared.base.as_ref()).map(Parameter::needs);
        bases.max().unwrap_or_default().max(self.0.needs())
    }
}

impl Declared {
    fn of(&self, exchange: &mut Exchange) -> Result<(Destination, String), Fault> {
        let base = self.base.as_ref().map_or(Ok(String::new()), |base| base.text(exchange))?;
        Ok((Destination::Endpoint(self.endpoint), base))
    }
}

impl Mediator for Init {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let (_, base) = self.0.of(exchange)?;
        exchange.set_property(Scope::Default, BASE, Value::string(base));
        exchange.set_property(Scope::Default, ENDPOINT, Value::String(self.0.name.clone()));
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        match self.0.base.as_ref().map(Parameter::needs) {
            None | Some(Needs::Nothing) => Needs::Nothing,
            Some(_) => Needs::Whole,
        }
    }
}
