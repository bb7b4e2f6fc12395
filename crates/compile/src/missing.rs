//! What stands where a configuration defines nothing: a name that means nothing faults when a
//! message gets there, and `fault` and `main` do what the original's own do.

use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator};
use penstock_message::{Scope, Value};

/// A thing that is defined nowhere.
pub struct Missing {
    message: Arc<str>,
}

impl Missing {
    /// A missing `noun` called `name`.
    pub fn new(noun: &str, name: &str) -> Missing {
        let message = match noun {
            // The words of the original, which artifacts put into their answers.
            "sequence" => format!("Sequence named Value {{name ='null', keyValue ='{name}'}} cannot be found"),
            _ => format!("no {noun} is named `{name}`"),
        };
        Missing { message: message.into() }
    }
}

impl Mediator for Missing {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Err(Fault::new(self.message.clone()))
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
