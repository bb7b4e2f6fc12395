//! Mediators that replace undefined names: an unknown name faults when a message reaches it;
//! `fault` and `main` do what those of Micro Integrator do by default.

use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Scope, Value};

/// A mediator that always faults. It replaces one that cannot run, so that the rest of the artifact is served.
pub struct AlwaysFaults(Arc<str>);

impl AlwaysFaults {
    /// It faults with this text.
    pub fn new(message: impl Into<Arc<str>>) -> AlwaysFaults {
        AlwaysFaults(message.into())
    }

    /// No `noun` called `name` is defined.
    pub fn missing(noun: &str, name: &str) -> AlwaysFaults {
        AlwaysFaults::new(match noun {
            // The text of Micro Integrator, which artifacts put into their responses.
            "sequence" => format!("Sequence named Value {{name ='null', keyValue ='{name}'}} cannot be found"),
            _ => format!("no {noun} is named `{name}`"),
        })
    }
}

impl Mediator for AlwaysFaults {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Err(Fault::new(self.0.clone()))
    }
}

/// The `fault` sequence of a configuration that has none: a line in the log, and the end.
pub struct DefaultFault;

impl Mediator for DefaultFault {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut text = |name: &str| {
            exchange.property(Scope::Default, name).map_or_else(String::new, |value| value.to_text().into_owned())
        };
        let (code, message) = (text("ERROR_CODE"), text("ERROR_MESSAGE"));
        let line =
            format!("MESSAGE = Executing default 'fault' sequence, ERROR_CODE = {code}, ERROR_MESSAGE = {message}");
        exchange.log(Level::Info, "LogMediator", &line);
        Ok(Flow::Stop)
    }
}

/// The `main` sequence of a configuration that has none: nothing is served here.
pub struct DefaultMain;

impl Mediator for DefaultMain {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        exchange.set_property(Scope::Axis2, "NO_ENTITY_BODY", Value::Boolean(true));
        exchange.set_property(Scope::Axis2, "HTTP_SC", Value::Integer(404));
        Ok(Flow::Respond)
    }
}
