//! What native connectors share: the parameters of an operation, the connection that it uses, and where its result goes.

use std::any::Any;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::Value;
use serde_json::{Map, Value as Json};

use crate::expression::braced;
use crate::expression::synapse::Escape;
use crate::{Compiler, Element, NameKind, Parameter, Text};

/// Parameters by name. Empty elements are absent.
pub struct Arguments(Vec<(&'static str, Parameter)>);

impl Arguments {
    /// Compiles the child elements of these names. `None` after an error was reported.
    pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, names: &[&'static str]) -> Option<Arguments> {
        let mut arguments = Vec::new();
        for name in names {
            if let Some(parameter) = parameter(el, cx, name)? {
                arguments.push((*name, parameter));
            }
        }
        Some(Arguments(arguments))
    }

    /// The same for a connection, in which `$SYSTEM:NAME` and `$FILE:NAME` are replaced.
    pub fn compile_configured(el: &Element<'_>, cx: &mut Compiler<'_>, names: &[&'static str]) -> Option<Arguments> {
        let mut arguments = Vec::new();
        for name in names {
            let Some(child) = el.child(name).filter(|child| !child.text().is_empty()) else { continue };
            let text = cx.configured(&child.text(), &child.place());
            arguments.push((*name, Parameter::compile_text(cx, &child, &text, Escape::None)?));
        }
        Some(Arguments(arguments))
    }

    fn find(&self, name: &str) -> Option<&Parameter> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, parameter)| parameter)
    }

    /// Whether the element is there and not empty.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The value of a parameter that is constant.
    pub fn constant(&self, name: &str) -> Option<String> {
        self.find(name)?.constant().map(|text| text.into_owned()).filter(|text| !text.trim().is_empty())
    }

    /// The value for a message; a blank one is absent.
    pub fn text(&self, name: &str, exchange: &mut Exchange) -> Result<Option<String>, Fault> {
        let Some(parameter) = self.find(name) else { return Ok(None) };
        let text = parameter.text(exchange)?;
        Ok((!text.trim().is_empty()).then_some(text))
    }

    /// The value for a message without its conversion to text.
    pub fn value(&self, name: &str, exchange: &mut Exchange) -> Result<Option<Value>, Fault> {
        self.find(name).map(|parameter| parameter.value(exchange)).transpose()
    }

    /// Whether the value is `true`.
    pub fn flag(&self, name: &str, default: bool, exchange: &mut Exchange) -> Result<bool, Fault> {
        let value = self.value(name, exchange)?;
        Ok(value.filter(|value| !value.to_text().trim().is_empty()).map_or(default, |value| value.is_true()))
    }

    /// The value as a number. `Err` is the text that is none.
    pub fn number<T: FromStr>(&self, name: &str, exchange: &mut Exchange) -> Result<Result<Option<T>, String>, Fault> {
        let Some(text) = self.text(name, exchange)? else { return Ok(Ok(None)) };
        Ok(text.trim().parse().map(Some).map_err(|_| text))
    }

    /// What the parameters do with the body.
    pub fn needs(&self) -> Needs {
        self.0.iter().map(|(_, parameter)| parameter.needs()).max().unwrap_or_default()
    }
}

/// A child element that holds a parameter. `None` after an error was reported; an empty element is absent.
pub fn parameter(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<Option<Parameter>> {
    match el.child(name).filter(|child| child.children().next().is_some() || !child.text().is_empty()) {
        Some(child) => Parameter::compile(cx, &child).map(Some),
        None => Some(None),
    }
}

/// The connection of an operation, which the connector declared as a `T` ([`Compiler::declare_connection`]).
pub enum Connection<T> {
    /// A local entry.
    Fixed(Arc<T>),
    /// The key is computed per message.
    Computed(Text, HashMap<Arc<str>, Arc<T>>),
    /// No key: the last `<NAME.init>` of the flow.
    Current,
    /// There is no such entry.
    Missing(Arc<str>),
}

impl<T: Any + Send + Sync> Connection<T> {
    /// Reads `configKey`. `None` after an error was reported.
    pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, connector: &str) -> Option<Connection<T>> {
        // Drafts of the editor write `configRef`.
        let Some(name) = ["configKey", "configRef"].into_iter().find(|name| el.attribute(name).is_some()) else {
            return Some(Connection::Current);
        };
        let key = el.attribute(name)?;
        let at = el.attribute_place(name);
        if braced(key).is_some() {
            let known = cx.connections().filter_map(|(key, any)| Some((key.clone(), any.clone().downcast().ok()?)));
            let known = known.collect();
            return Some(Connection::Computed(Text::compile(cx, el, key, at)?, known));
        }
        match cx.connection(key).map(|any| any.downcast()) {
            Some(Ok(declared)) => Some(Connection::Fixed(declared)),
            Some(Err(_)) => {
                cx.error(at, format!("the local entry `{key}` is a connection of another connector"));
                None
            }
            None if cx.is_declared(NameKind::RESOURCE, key) => {
                cx.error(at, format!("the local entry `{key}` has no <{connector}.init>"));
                None
            }
            None => {
                cx.unknown(NameKind::RESOURCE, key, at);
                Some(Connection::Missing(key.into()))
            }
        }
    }

    /// The connection for a message; `None` when it is that of the flow.
    pub fn of(&self, exchange: &mut Exchange) -> Result<Option<Arc<T>>, Fault> {
        let unknown = |key: &str| Fault::new(format!("no connection is named `{key}`"));
        match self {
            Connection::Fixed(declared) => Ok(Some(declared.clone())),
            Connection::Computed(key, known) => {
                let key = key.text(exchange)?;
                known.get(&key).cloned().map(Some).ok_or_else(|| unknown(&key))
            }
            Connection::Missing(key) => Err(unknown(key)),
            Connection::Current => Ok(None),
        }
    }

    /// The connections that it can be.
    pub fn candidates(&self) -> Vec<&T> {
        match self {
            Connection::Fixed(declared) => vec![&**declared],
            Connection::Computed(_, known) => known.values().map(|declared| &**declared).collect(),
            Connection::Current | Connection::Missing(_) => Vec::new(),
        }
    }

    /// What the key does with the body.
    pub fn needs(&self) -> Needs {
        match self {
            Connection::Computed(key, _) => key.needs(),
            _ => Needs::Nothing,
        }
    }
}

/// Makes a connection that of the flow.
pub fn set_current<T: Any>(exchange: &mut Exchange, connector: &'static str, connection: Arc<T>) {
    let mut held = exchange.held.borrow_mut();
    held.retain(|(name, _)| **name != *connector);
    held.push((connector.into(), Box::new(connection)));
}

/// The connection of the flow.
pub fn current<T: Any>(exchange: &Exchange, connector: &str) -> Result<Arc<T>, Fault> {
    let held = exchange.held.borrow();
    let found = held.iter().find(|(name, _)| **name == *connector);
    found.and_then(|(_, any)| any.downcast_ref::<Arc<T>>()).cloned().ok_or_else(|| {
        Fault::new(format!(
            "the connector `{connector}` needs a connection: `configKey`, or <{connector}.init> before the operation"
        ))
    })
}

/// Where the result of an operation goes: `responseVariable` and `overwriteBody`.
pub struct Output {
    variable: Option<Parameter>,
    overwrite: Option<Parameter>,
}

/// The same for one message.
pub struct Place {
    variable: Arc<str>,
    /// Whether the result becomes the body; the variable has no payload then.
    pub overwrites_body: bool,
}

impl Output {
    /// Compiles the two parameters. `None` after an error was reported.
    pub fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Output> {
        let overwrite = parameter(el, cx, "overwriteBody")?;
        Some(Output { variable: parameter(el, cx, "responseVariable")?, overwrite })
    }

    /// Whether a variable is named.
    pub fn has_variable(&self) -> bool {
        self.variable.is_some()
    }

    /// Whether the result may leave the body of the message as it is.
    pub fn may_keep_body(&self) -> bool {
        let overwrites = self.overwrite.as_ref().and_then(Parameter::constant);
        self.variable.is_some() && !overwrites.is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// `None` when no variable is named, or its name is empty.
    pub fn place(&self, exchange: &mut Exchange) -> Result<Option<Place>, Fault> {
        let Some(variable) = &self.variable else { return Ok(None) };
        let variable = variable.text(exchange)?;
        let overwrites_body = match &self.overwrite {
            Some(overwrite) => overwrite.value(exchange)?.is_true(),
            None => false,
        };
        Ok((!variable.is_empty()).then(|| Place { variable: variable.into(), overwrites_body }))
    }

    /// What the two parameters do with the body.
    pub fn needs(&self) -> Needs {
        let parameters = self.variable.iter().chain(&self.overwrite);
        parameters.map(Parameter::needs).max().unwrap_or_default()
    }
}

impl Place {
    /// Sets the variable. It has the members `payload`, `headers` and `attributes`, each when it is given.
    pub fn set(
        &self,
        exchange: &mut Exchange,
        payload: Option<Json>,
        headers: Option<Map<String, Json>>,
        attributes: Option<Map<String, Json>>,
    ) {
        let mut variable = Map::new();
        variable.extend(payload.map(|payload| ("payload".to_owned(), payload)));
        variable.extend(headers.map(|headers| ("headers".to_owned(), Json::Object(headers))));
        variable.extend(attributes.map(|attributes| ("attributes".to_owned(), Json::Object(attributes))));
        exchange.message.variables.set(self.variable.clone(), Value::Json(Arc::new(Json::Object(variable))));
    }
}
