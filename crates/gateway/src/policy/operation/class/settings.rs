//! What classes are compiled from: their properties, and the operation they are for.

use std::sync::Arc;

use penstock_compile::Element;
use penstock_engine::{Exchange, Fault, Mediator};
use penstock_json::lenient;
use serde::de::DeserializeOwned;

use super::super::action;
use super::super::step::{ActionCall, Problem, Stage};
use crate::error::{GatewayError, codes};
use crate::{Gateway, Site};

/// The mediator, or what is wrong with the settings.
pub(super) type Compiled = Result<Box<dyn Mediator>, String>;

/// The classes for the policies of one operation.
pub(in crate::policy) struct PolicyClasses {
    pub(super) gateway: Gateway,
    pub(super) site: Arc<Site>,
}

impl PolicyClasses {
    pub(in crate::policy) fn new(gateway: &Gateway, site: &Arc<Site>) -> PolicyClasses {
        PolicyClasses { gateway: gateway.clone(), site: site.clone() }
    }

    /// A class that does what an action does.
    pub(super) fn action(&self, call: &ActionCall) -> Compiled {
        match action::compile(&self.gateway, &self.site, Stage::Request, call) {
            Ok(Some(work)) => Ok(work.mediator),
            Ok(None) => Err(format!("`{}` is no step of its own", call.action)),
            Err(Problem::Skip(why) | Problem::Unprotected(why) | Problem::Refuse(why)) => Err(why),
        }
    }
}

/// The `<property>`s of a class. They come from a template, so they are known when it is compiled.
pub(super) struct Settings(Vec<(String, String)>);

impl Settings {
    pub(super) fn read(el: &Element<'_>) -> Result<Settings, String> {
        let mut all = Vec::new();
        for property in el.elements("property") {
            let name = property.attribute("name").unwrap_or_default();
            match property.attribute("value") {
                Some(value) => all.push((name.to_owned(), value.to_owned())),
                None if property.attribute("expression").is_some() => {
                    return Err(format!("`{name}` must have a `value`, not an expression"));
                }
                None => all.push((name.to_owned(), property.text())),
            }
        }
        Ok(Settings(all))
    }

    /// A setting that is not empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.trim().is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, String> {
        self.text(name).ok_or_else(|| format!("it needs the property `{name}`"))
    }

    /// A property written in JSON. Publishers' portals write single quotes for double ones, so that the JSON can stand
    /// in an attribute: what is not JSON is read as a forgiving reader takes it.
    pub(super) fn json<T: DeserializeOwned>(&self, name: &str) -> Result<T, String> {
        let text = self.required(name)?;
        serde_json::from_str(text).or_else(|strict| {
            let lenient = text.trim_start().starts_with(['{', '[']).then(|| lenient::parse(text)).flatten();
            lenient
                .and_then(|value| serde_json::from_value(value).ok())
                .ok_or_else(|| format!("`{name}` is not the JSON it is to be: {strict}"))
        })
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
    }

    pub(super) fn number(&self, name: &str) -> Result<usize, String> {
        let text = self.required(name)?;
        text.trim().parse().map_err(|_| format!("`{name}` is `{text}`, not a whole number"))
    }
}

/// The response to a rejected message.
pub(super) fn threat(description: impl Into<Arc<str>>) -> Fault {
    GatewayError::described(codes::SCHEMA_REQUEST, description).into()
}

/// A limit that the template sets as a property of the message.
pub(super) fn limit(exchange: &Exchange, name: &str) -> Result<usize, Fault> {
    let text = exchange.message.property_text(name);
    let number = text.as_deref().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| threat(format!("The limit {name} of the policy is missing or not a number")))
}

/// Whether a property of the message is the word `true`; `otherwise` when it is not there.
pub(super) fn is_on(exchange: &Exchange, name: &str, otherwise: bool) -> bool {
    exchange.message.property_text(name).map_or(otherwise, |text| text.trim().eq_ignore_ascii_case("true"))
}
