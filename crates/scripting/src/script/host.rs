//! What `mc` reads and writes: the message of the exchange that is running.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault};
use penstock_message::{Scope, Value};
use penstock_xpath::{DynamicContext, ItemRef, NoHost, Session, StaticContext, XPath};
use rquickjs::{Ctx, Exception, Object};

use super::sandbox::{Times, host_function};
use penstock_engine::payload;
use penstock_message::tree::lean_copy;

/// The exchange that a script works on, while it runs.
#[derive(Clone, Default)]
pub(super) struct Slot(Rc<RefCell<Option<Exchange>>>);

impl Slot {
    pub(super) fn replace(&self, exchange: Option<Exchange>) {
        *self.0.borrow_mut() = exchange;
    }

    pub(super) fn take(&self) -> Option<Exchange> {
        self.0.borrow_mut().take()
    }

    /// Works on the exchange; a fault becomes an exception of the script.
    fn with<T>(&self, ctx: &Ctx<'_>, work: impl FnOnce(&mut Exchange) -> Result<T, Fault>) -> rquickjs::Result<T> {
        // A script that does little itself may still have much done.
        penstock_budget::pause();
        let mut slot = self.0.borrow_mut();
        let Some(exchange) = slot.as_mut() else {
            return Err(Exception::throw_message(ctx, "there is no message here"));
        };
        work(exchange).map_err(|fault| Exception::throw_message(ctx, &fault.message))
    }
}

/// The object the prelude builds `mc` from.
pub(super) fn object<'js>(ctx: &Ctx<'js>, slot: &Slot, times: &Times) -> rquickjs::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    payload_functions(ctx, &object, slot)?;
    property_functions(ctx, &object, slot)?;
    let own = slot.clone();
    host_function(ctx, &object, "log", move |ctx: Ctx<'js>, level: String, text: String| {
        own.with(&ctx, |exchange| {
            let level = match level.as_str() {
                "trace" => Level::Trace,
                "debug" => Level::Debug,
                "warn" => Level::Warn,
                "error" | "fatal" => Level::Error,
                _ => Level::Info,
            };
            exchange.log(level, "ScriptMediator", &text);
            Ok(())
        })
    })?;
    host_function(ctx, &object, "uuid", penstock_engine::clock::uuid)?;
    let times = times.clone();
    host_function(ctx, &object, "sleep", move |milliseconds: f64| times.sleep(milliseconds))?;
    let own = slot.clone();
    host_function(ctx, &object, "isResponse", move |ctx: Ctx<'js>| {
        own.with(&ctx, |exchange| Ok(exchange.is_response()))
    })?;
    Ok(object)
}

fn payload_functions<'js>(ctx: &Ctx<'js>, object: &Object<'js>, slot: &Slot) -> rquickjs::Result<()> {
    let own = slot.clone();
    host_function(ctx, object, "payloadJson", move |ctx: Ctx<'js>| {
        own.with(&ctx, |exchange| Ok(exchange.json()?.to_string()))
    })?;
    let own = slot.clone();
    host_function(ctx, object, "setPayloadJson", move |ctx: Ctx<'js>, text: String| {
        own.with(&ctx, |exchange| {
            let json = serde_json::from_str(&text).map_err(|error| Fault::new(format!("not JSON: {error}")))?;
            payload::set_json(exchange, Arc::new(json));
            Ok(())
        })
    })?;
    let own = slot.clone();
    host_function(ctx, object, "payloadText", move |ctx: Ctx<'js>| {
        own.with(&ctx, |exchange| {
            let program = exchange.program().clone();
            Ok(exchange.message.text(&program.conversion)?.to_string())
        })
    })?;
    let own = slot.clone();
    host_function(ctx, object, "payloadXml", move |ctx: Ctx<'js>| {
        own.with(&ctx, |exchange| {
            let envelope = exchange.xml()?;
            // Without the declarations of the envelope, which the payload has no use for.
            Ok(envelope.payload().map_or_else(String::new, |node| {
                let payload = lean_copy(&envelope.document, node);
                payload.root_element().map_or_else(String::new, |root| written(&payload, root))
            }))
        })
    })?;
    let own = slot.clone();
    host_function(ctx, object, "setPayloadXml", move |ctx: Ctx<'js>, text: String| {
        own.with(&ctx, |exchange| {
            // Parsed here so that a mistake is reported for the script, not for the next reader of the body.
            payload::parse(text.clone())?;
            payload::replace_by_bytes(exchange, text.into_bytes())
        })
    })?;
    let own = slot.clone();
    host_function(ctx, object, "envelope", move |ctx: Ctx<'js>| {
        own.with(&ctx, |exchange| {
            let envelope = exchange.xml()?;
            Ok(written(&envelope.document, envelope.envelope))
        })
    })?;
    let own = slot.clone();
    host_function(ctx, object, "setEnvelope", move |ctx: Ctx<'js>, text: String| {
        own.with(&ctx, |exchange| payload::replace_envelope(exchange, text))
    })?;
    host_function(ctx, object, "xpath", |ctx: Ctx<'js>, expression: String, text: String| {
        selected(&expression, text).map_err(|why| Exception::throw_message(&ctx, &why))
    })
}

/// What a path selects in a text of XML, each item with its kind.
fn selected(expression: &str, text: String) -> Result<Vec<Vec<String>>, String> {
    let context = StaticContext::new().allow_undeclared_prefixes(true);
    let compiled = XPath::compile(expression, &context).map_err(|error| error.message().to_owned())?;
    let (document, root) = payload::parse(text).map_err(|fault| fault.message.to_string())?;
    let (session, start) = Session::with_document(document.clone());
    let start = Session::sibling(start, root);
    let context = DynamicContext::new(&session, &NoHost).with_node(start);
    let found = compiled.evaluate(&context).map_err(|error| error.message().to_owned())?;
    let item = |item: ItemRef<'_>| match item {
        ItemRef::Node(node) if document.is_element(node.id) => ("element", written(&document, node.id)),
        ItemRef::Node(node) => ("text", session.string_value(node).into_owned()),
        ItemRef::Atomic(atomic) => ("value", atomic.to_text(true).into_owned()),
    };
    Ok(found.iter().map(item).map(|(kind, value)| vec![kind.to_owned(), value]).collect())
}

fn property_functions<'js>(ctx: &Ctx<'js>, object: &Object<'js>, slot: &Slot) -> rquickjs::Result<()> {
    let own = slot.clone();
    host_function(ctx, object, "property", move |ctx: Ctx<'js>, scope: String, name: String| {
        let value = own.with(&ctx, |exchange| {
            Ok(match scope.as_str() {
                "variable" => exchange.message.variables.get(&name).cloned(),
                scope => exchange.property(scope_of(scope)?, &name),
            })
        })?;
        let Some(value) = value else { return Ok(None) };
        let kind = match &value {
            Value::Xml(..) => "xml",
            Value::Json(_) => "json",
            _ => "plain",
        };
        let found = Object::new(ctx)?;
        found.set("kind", kind)?;
        match &value {
            Value::Boolean(flag) => found.set("value", *flag)?,
            Value::Integer(number) => found.set("value", *number as f64)?,
            Value::Double(number) => found.set("value", *number)?,
            Value::Json(json) => found.set("value", json.to_string())?,
            other => found.set("value", other.to_text().as_ref())?,
        }
        Ok::<_, rquickjs::Error>(Some(found))
    })?;
    let own = slot.clone();
    let set = move |ctx: Ctx<'js>, scope: String, name: String, kind: String, text: String| {
        own.with(&ctx, |exchange| {
            let Some(value) = value_of(&kind, text)? else {
                return remove(exchange, &scope, &name);
            };
            match scope.as_str() {
                "variable" => exchange.message.variables.set(name.as_str(), value),
                scope => exchange.set_property(scope_of(scope)?, &name, value),
            }
            Ok(())
        })
    };
    host_function(ctx, object, "setProperty", set)?;
    let own = slot.clone();
    host_function(ctx, object, "removeProperty", move |ctx: Ctx<'js>, scope: String, name: String| {
        own.with(&ctx, |exchange| remove(exchange, &scope, &name))
    })?;
    let own = slot.clone();
    host_function(ctx, object, "setAddressing", move |ctx: Ctx<'js>, name: String, value: Option<String>| {
        own.with(&ctx, |exchange| {
            let addressing = exchange.message.addressing_mut();
            let part = match name.as_str() {
                "To" => &mut addressing.to,
                "From" => &mut addressing.from,
                "ReplyTo" => &mut addressing.reply_to,
                "FaultTo" => &mut addressing.fault_to,
                "RelatesTo" => &mut addressing.relates_to,
                "MessageID" => &mut addressing.message_id,
                _ => &mut addressing.action,
            };
            *part = value.map(Arc::from);
            Ok(())
        })
    })?;
    Ok(())
}

fn written(document: &penstock_xml::Document, node: penstock_xml::NodeId) -> String {
    let bytes = penstock_xml::to_vec(document, node, &penstock_xml::WriteOptions::default());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn scope_of(name: &str) -> Result<Scope, Fault> {
    Scope::parse(name).ok_or_else(|| Fault::new(format!("there is no property scope `{name}`")))
}

fn remove(exchange: &mut Exchange, scope: &str, name: &str) -> Result<(), Fault> {
    match scope {
        "variable" => {
            exchange.message.variables.remove(name);
        }
        scope => exchange.remove_property(scope_of(scope)?, name),
    }
    Ok(())
}

/// What the prelude hands over as kind and text. `None` for null.
fn value_of(kind: &str, text: String) -> Result<Option<Value>, Fault> {
    Ok(match kind {
        "null" => None,
        "boolean" => Some(Value::Boolean(text == "true")),
        "integer" => Some(text.parse().map_or_else(|_| Value::string(text.as_str()), Value::Integer)),
        "double" => Some(Value::Double(text.parse().unwrap_or(f64::NAN))),
        "json" => {
            let json = serde_json::from_str(&text).map_err(|error| Fault::new(format!("not JSON: {error}")))?;
            Some(Value::Json(Arc::new(json)))
        }
        "xml" => {
            let (document, root) = payload::parse(text)?;
            Some(Value::Xml(document, vec![root]))
        }
        _ => Some(Value::string(text)),
    })
}
