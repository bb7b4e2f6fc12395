//! `<class name="…">`: a class of Java in Micro Integrator. Here it is a WebAssembly module that the configuration names for
//! it, or one of the classes that are written again in `native.rs`.

mod host;
mod module;
mod native;

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Exchange, Fault, Mediator, Needs};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "class", compile };

/// A `<property>` of the class.
struct Property {
    name: Arc<str>,
    value: PropertyValue,
}

enum PropertyValue {
    Constant(Arc<str>),
    Computed(Expression),
}

/// The name and the value of a property for one message.
type Setting = (Arc<str>, Arc<str>);

/// The settings of the class.
struct Properties(Vec<Property>);

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.required(cx, "name")?.trim();
    let properties = Properties::compile(el, cx)?;
    if let Some(bytes) = cx.options.modules.get(name).cloned() {
        return match module::compile(name, &bytes, properties) {
            Ok(mediator) => Some(mediator),
            Err(why) => {
                cx.error(el.attribute_place("name"), format!("the module of the class `{name}` cannot be used: {why}"));
                None
            }
        };
    }
    if let Some(classes) = cx.classes.clone()
        && let Some(compiled) = classes.compile(name, el, cx)
    {
        return compiled;
    }
    if let Some(class) = native::CLASSES.iter().find(|class| class.name == name) {
        return (class.compile)(el, cx, properties);
    }
    cx.error(
        el.attribute_place("name"),
        format!(
            "the class `{name}` is Java and is not among those written again here: write it as <script>, or as a WebAssembly \
             module and name that in [classes] of penstock.toml"
        ),
    );
    None
}

impl Properties {
    fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Properties> {
        let mut properties = Vec::new();
        for property in el.elements("property") {
            let name = property.required(cx, "name")?;
            let value = match (property.attribute("value"), property.attribute("expression")) {
                (Some(value), _) => PropertyValue::Constant(value.into()),
                (None, Some(_)) => PropertyValue::Computed(cx.expression(&property, "expression")?),
                (None, None) => match property.children().next() {
                    Some(child) => PropertyValue::Constant(String::from_utf8_lossy(&child.to_xml()).into()),
                    None => PropertyValue::Constant(property.text().into()),
                },
            };
            // The class takes texts for all types.
            for unread in ["action", "type", "scope"] {
                property.attribute(unread);
            }
            property.finish(cx);
            properties.push(Property { name: name.into(), value });
        }
        Some(Properties(properties))
    }

    /// A property that does not depend on the message.
    fn constant(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|property| *property.name == *name).and_then(|property| match &property.value {
            PropertyValue::Constant(text) => Some(&**text),
            PropertyValue::Computed(_) => None,
        })
    }

    /// The values for a message.
    fn values(&self, exchange: &mut Exchange) -> Result<Vec<Setting>, Fault> {
        let value = |property: &Property| {
            Ok(match &property.value {
                PropertyValue::Constant(text) => (property.name.clone(), text.clone()),
                PropertyValue::Computed(expression) => (property.name.clone(), expression.text(exchange)?.into()),
            })
        };
        self.0.iter().map(value).collect()
    }

    fn needs(&self) -> Needs {
        let needs = |property: &Property| match &property.value {
            PropertyValue::Constant(_) => Needs::Nothing,
            PropertyValue::Computed(expression) => expression.needs(),
        };
        self.0.iter().map(needs).max().unwrap_or_default()
    }
}
