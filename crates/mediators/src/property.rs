//! `<property>` and `<propertyGroup>`: sets or removes properties of any scope.

use penstock_compile::{Compiler, Element, MediatorKind, Text};
use penstock_engine::ports::LocalFuture;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::{Scope, Value};
use regex::Regex;

use crate::typed::{Type, ValueSource};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "property", compile };
/// The kind of `<propertyGroup>`.
pub const GROUP: MediatorKind = MediatorKind { name: "propertyGroup", compile: compile_group };

struct Property {
    scope: Scope,
    /// Often computed when properties are set in a loop: `{fn:concat('item_', $ctx:index)}`.
    name: Text,
    action: Action,
}

enum Action {
    Set { source: ValueSource, declared: Type, pattern: Option<(Regex, usize)> },
    Remove,
}

/// Resolves when a resource of the registry is kept.
type Kept = LocalFuture<'static, Result<(), String>>;

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    Some(Box::new(property(el, cx)?))
}

fn property(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Property> {
    let name = el.required(cx, "name")?;
    let scope = scope(el, cx)?;
    let optimizes = matches!(name, "enableMTOM" | "enableSwA") && scope == Scope::Axis2;
    if optimizes && el.attribute("value").is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
        cx.warn(el.place(), format!("`{name}` is not supported; attachments stay inside the XML"));
    }
    let name = Text::compile(cx, el, name, el.attribute_place("name"))?;
    if el.attribute("action") == Some("remove") {
        // What was to be set is often left in place when an action becomes `remove`.
        for unused in ["value", "expression", "type"] {
            el.attribute(unused);
        }
        return Some(Property { scope, name, action: Action::Remove });
    }
    if matches!(scope, Scope::Environment | Scope::File) {
        cx.warn(el.attribute_place("scope"), "properties of this scope cannot be set and the value is lost");
    }
    let declared = match el.attribute("type") {
        None | Some("") => Type::String,
        Some(text) => match Type::parse(text) {
            Some(declared) => declared,
            None => {
                cx.error(
                    el.attribute_place("type"),
                    format!("`{text}` is not a type: STRING, BOOLEAN, INTEGER, LONG, SHORT, FLOAT, DOUBLE, OM, JSON"),
                );
                return None;
            }
        },
    };
    let pattern = pattern(el, cx)?;
    let has_source =
        el.attribute("value").is_some() || el.attribute("expression").is_some() || el.children().next().is_some();
    if !has_source {
        cx.error(el.place(), "<property> needs `value`, `expression` or an element inside");
        return None;
    }
    let source = ValueSource::compile(cx, el, Some(declared))?;
    Some(Property { scope, name, action: Action::Set { source, declared, pattern } })
}

fn scope(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Scope> {
    let text = el.attribute("scope").unwrap_or_default();
    let scope = Scope::parse(text);
    if scope.is_none() {
        cx.error(
            el.attribute_place("scope"),
            format!("`{text}` is not a scope: default, transport, axis2, axis2-client, operation, registry, system"),
        );
    }
    scope
}

/// `pattern` and `group`; the outer `None` after an error.
fn pattern(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Option<(Regex, usize)>> {
    let group = el.attribute("group").and_then(|group| group.trim().parse().ok()).unwrap_or(0);
    let Some(pattern) = el.attribute("pattern") else { return Some(None) };
    match whole(pattern) {
        Ok(regex) => Some(Some((regex, group))),
        Err(error) => {
            cx.error(
                el.attribute_place("pattern"),
                format!("the regular expression `{pattern}` is not valid: {error}"),
            );
            None
        }
    }
}

/// The expression for a text as a whole.
fn whole(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{pattern})$"))
}

impl Property {
    /// Sets or removes the property. What has to be kept comes back to be waited for.
    fn apply(&self, exchange: &mut Exchange) -> Result<Option<Kept>, Fault> {
        let name = self.name.text(exchange)?;
        let Action::Set { source, declared, pattern } = &self.action else {
            exchange.remove_property(self.scope, &name);
            return Ok(None);
        };
        let value = value(source, *declared, pattern.as_ref(), exchange)?;
        if self.scope == Scope::Registry {
            let value = value.as_ref().map(Value::to_text).unwrap_or_default();
            let kept = exchange.core().environment.registry.put(&name, &value, &exchange.program().resources);
            return kept.map(Some).map_err(Fault::new);
        }
        match value {
            Some(value) => exchange.set_property(self.scope, &name, value),
            // What is not there changes nothing in this scope, is an empty header, and unsets elsewhere.
            None => match self.scope {
                Scope::Default => {}
                Scope::Transport => exchange.set_property(self.scope, &name, Value::string("")),
                _ => exchange.remove_property(self.scope, &name),
            },
        }
        Ok(None)
    }
}

fn value(
    source: &ValueSource,
    declared: Type,
    pattern: Option<&(Regex, usize)>,
    exchange: &mut Exchange,
) -> Result<Option<Value>, Fault> {
    match declared {
        // An element inside stays an element, for any `type`.
        _ if matches!(source, ValueSource::Constant(value) if !matches!(value, Value::String(_))) => {
            source.value(exchange)
        }
        Type::Xml | Type::Json => source.value(exchange)?.map(|value| declared.coerce(value)).transpose(),
        Type::String => Ok(source.text(exchange)?.map(|text| Value::string(matched(pattern, text)))),
        // Numbers are required; what is not there is not true.
        _ => declared.coerce(Value::string(source.text(exchange)?.unwrap_or_default())).map(Some),
    }
}

/// A group of the whole text's match; nothing when the text as a whole does not match.
fn matched(pattern: Option<&(Regex, usize)>, text: String) -> String {
    let Some((regex, group)) = pattern else { return text };
    let found = regex.captures(&text).and_then(|captures| captures.get(*group));
    found.map(|found| found.as_str().to_owned()).unwrap_or_default()
}

/// Waits until everything is kept.
fn wait(kept: Vec<Kept>) -> Flow {
    if kept.is_empty() {
        return Flow::Next;
    }
    Flow::Wait(Box::pin(async move {
        let mut outcome = Ok(());
        for one in kept {
            outcome = outcome.and(one.await);
        }
        Resume::new(move |_: &mut Exchange, ()| {
            outcome.map(|()| Flow::Next).map_err(|why| Fault::new(format!("the registry cannot be written: {why}")))
        })
    }))
}

impl Mediator for Property {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        self.apply(exchange).map(|kept| wait(kept.into_iter().collect()))
    }

    fn needs(&self) -> Needs {
        match &self.action {
            Action::Set { source, .. } => source.needs().max(self.name.needs()),
            Action::Remove => self.name.needs(),
        }
    }
}

struct Group {
    properties: Vec<Property>,
}

fn compile_group(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let mut properties = Vec::new();
    for child in el.elements("property") {
        properties.push(property(&child, cx)?);
        child.finish(cx);
    }
    Some(Box::new(Group { properties }))
}

impl Mediator for Group {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let mut kept = Vec::new();
        for property in &self.properties {
            kept.extend(property.apply(exchange)?);
        }
        Ok(wait(kept))
    }

    fn needs(&self) -> Needs {
        // One expression that peeks may ask for more of the body after others have been set already;
        // reading the whole first keeps every property evaluated once.
        let strongest = self.properties.iter().map(Mediator::needs).max().unwrap_or_default();
        if strongest == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, group, text, expected) in [
            ("a(b+)c", 1, "abbc", "bb"),
            ("a(b+)c", 0, "abbc", "abbc"),
            ("a(b+)c", 2, "abbc", ""),
            ("b", 0, "abbc", ""),
            ("a|abbc", 0, "abbc", "abbc"),
        ] {
            let pattern = (whole(pattern).unwrap(), group);
            assert_eq!(matched(Some(&pattern), text.to_owned()), expected, "{text}");
        }
    }
}
