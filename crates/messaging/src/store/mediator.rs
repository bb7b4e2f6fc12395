//! `<store messageStore="…" sequence="…"/>`: puts the message into a store and goes on.

use penstock_compile::{Compiler, Element, MediatorKind, Text};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume, SequenceId, Step};
use penstock_message::Value;

use super::{MESSAGE_STORE, find, put};
use crate::stored;

/// The kind.
pub(crate) const KIND: MediatorKind = MediatorKind { name: "store", compile };

struct Store {
    name: Text,
}

/// Runs the sequence of `sequence`, then the store: both on the same message.
struct Prepared(SequenceId);

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let text = el.required(cx, "messageStore")?;
    let name = Text::compile(cx, el, text, el.value_place("messageStore"))?;
    if matches!(name, Text::Constant(_)) && !cx.is_declared(MESSAGE_STORE, text) {
        cx.unknown(MESSAGE_STORE, text, el.attribute_place("messageStore"));
    }
    let store: Box<dyn Mediator> = Box::new(Store { name });
    let Some(key) = el.attribute("sequence").filter(|key| !key.is_empty()) else { return Some(store) };
    let on_store = cx.sequence_ref(key, el.attribute_place("sequence"));
    let step = |mediator, kind| Step { mediator, kind, at: el.place() };
    Some(Box::new(Prepared(
        cx.add_sequence(vec![step(Box::new(Prepared(on_store)), "sequence"), step(store, "store")]),
    )))
}

impl Mediator for Prepared {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Enter(self.0))
    }
}

impl Mediator for Store {
    fn needs(&self) -> Needs {
        Needs::Whole
    }

    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let name = self.name.text(exchange)?;
        let program = exchange.program().clone();
        let Some(store) = find(&program, &name) else { return Err(Fault::new("Message Store does not exist.")) };
        let failover = store.failover.as_deref().filter(|_| store.guaranteed).and_then(|name| find(&program, name));
        let expression =
            [Some(&store), failover.as_ref()].into_iter().flatten().find_map(|store| store.sequence.as_ref());
        let sequence = match expression {
            None => None,
            Some(expression) => {
                let text = expression.text(exchange)?;
                match text.trim().parse::<i64>() {
                    Ok(number) => Some(number),
                    Err(_) => {
                        let reason = format!("the sequence number `{text}` is not a whole number");
                        return Err(failed(exchange, &name, &reason));
                    }
                }
            }
        };
        let bytes = stored::encode(exchange, sequence)?;
        let priority = exchange.message.axis2.get("JMS_PRIORITY").and_then(|value| value.to_text().trim().parse().ok());
        let core = exchange.core().clone();
        let outcome = async move {
            let mut outcome = put(&core, &store, bytes.clone(), priority).await;
            if let (Err(_), Some(failover)) = (&outcome, failover) {
                outcome = put(&core, &failover, bytes, priority).await;
            }
            Resume::new(move |exchange: &mut Exchange, ()| match outcome {
                Ok(()) => {
                    exchange.message.operation.set("RESPONSE_WRITTEN", Value::string("SKIP"));
                    Ok(Flow::Next)
                }
                Err(error) => Err(failed(exchange, &name, &error.message)),
            })
        };
        Ok(Flow::Wait(Box::pin(outcome)))
    }
}

/// The fault and the properties that Micro Integrator sets for it. The reason is for the log only.
fn failed(exchange: &mut Exchange, name: &str, reason: &str) -> Fault {
    exchange.log(penstock_engine::ports::Level::Error, "MessageStore", &format!("`{name}`: {reason}"));
    let id = exchange.message_id();
    let text = format!("Failed to store message [{id}] in store [{name}].");
    exchange.message.axis2.set("HTTP_SC", Value::Integer(500));
    let mut fault = Fault::new(text);
    fault.detail = Some("Failed to store message.".into());
    fault
}
