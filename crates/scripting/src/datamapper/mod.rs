//! `<datamapper>`: a mapping written in JavaScript, from XML, JSON or CSV to one of them.
//!
//! The input becomes a value as the input schema says, the mapping's function makes another value of
//! it, and the output schema says how that one is written.

mod csv;
mod input;
mod output;
mod properties;

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::Value;
use serde_json::{Map, Value as Json};

use crate::script::Embedded;
use penstock_engine::payload;
use properties::Wanted;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "datamapper", compile };

/// Properties by which value and result get in and out of the mapping.
const IN: &str = "penstock.datamapper.in";
const OUT: &str = "penstock.datamapper.out";

struct DataMapper {
    mapping: Mapping,
    input: (Form, Json),
    output: (Form, Json),
    target: Option<Target>,
}

enum Mapping {
    Script(Embedded, Wanted),
    /// What it needs is defined nowhere, or is no JavaScript: a fault when a message gets here.
    Broken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Xml,
    Json,
    Csv,
}

enum Target {
    Property(String),
    Variable(String),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    // The stylesheet is made from the same mapping, which runs in any case.
    el.attribute("xsltStyleSheet");
    let input_form = form(el, cx, "inputType")?;
    let output_form = form(el, cx, "outputType")?;
    let target = match (el.attribute("target-variable"), el.attribute("target")) {
        (Some(name), _) => Some(Target::Variable(name.to_owned())),
        (None, Some(name)) if !matches!(name, "body" | "") => Some(Target::Property(name.to_owned())),
        _ => None,
    };
    let mut missing = None;
    let mut text = |cx: &mut Compiler<'_>, name: &'static str| -> Option<String> {
        let key = el.required(cx, name)?;
        match cx.resource(key) {
            Some(resource) => Some(resource.text().into_owned()),
            None => {
                let at = el.attribute_place(name);
                cx.unknown(penstock_compile::NameKind::RESOURCE, key, at);
                missing.get_or_insert_with(|| format!("no local entry or registry resource is named `{key}`"));
                Some(String::new())
            }
        }
    };
    let config = text(cx, "config")?;
    let schemas = [text(cx, "inputSchema")?, text(cx, "outputSchema")?];
    let mut parsed = schemas.into_iter().map(|text| serde_json::from_str::<Json>(text.trim()));
    let (input, output) = match (parsed.next(), parsed.next()) {
        (Some(Ok(input)), Some(Ok(output))) => (input, output),
        (Some(Err(error)), _) | (_, Some(Err(error))) => {
            missing.get_or_insert_with(|| format!("a schema of the mapping is not valid JSON: {error}"));
            (Json::Null, Json::Null)
        }
        _ => (Json::Null, Json::Null),
    };
    let mapping = match missing {
        Some(why) => Mapping::Broken(why),
        None => match script(&config, &title(&input), el) {
            Ok(script) => Mapping::Script(script, Wanted::parse(&config)),
            Err(why) => {
                cx.warn(el.attribute_place("config"), format!("the mapping is not valid JavaScript: {why}"));
                Mapping::Broken(format!("the mapping is not valid JavaScript: {why}"))
            }
        },
    };
    Some(Box::new(DataMapper { mapping, input: (input_form, input), output: (output_form, output), target }))
}

fn form(el: &Element<'_>, cx: &mut Compiler<'_>, name: &'static str) -> Option<Form> {
    match el.attribute(name).map(|form| form.trim().to_ascii_uppercase()).as_deref() {
        // The newer editors leave it out: what they map is JSON.
        None | Some("" | "JSON") => Some(Form::Json),
        Some("XML") => Some(Form::Xml),
        Some("CSV") => Some(Form::Csv),
        Some(other) => {
            cx.error(el.attribute_place(name), format!("`{other}` is not one of XML, JSON, CSV"));
            None
        }
    }
}

/// The name of the root, as schemas have it.
fn title(schema: &Json) -> String {
    schema.get("title").and_then(Json::as_str).unwrap_or("root").to_owned()
}

/// A name as a part of a name of JavaScript.
fn identifier(name: &str) -> String {
    name.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect()
}

/// The mapping as a library, and what calls it.
fn script(config: &str, title: &str, el: &Element<'_>) -> Result<Embedded, String> {
    // What editors leave of modules means nothing to a script of its own.
    let lines = config.lines().filter(|line| !line.trim_start().starts_with("import "));
    let library: String = lines.map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line))).collect();
    let function = mapping_function(&library).ok_or("it holds no function `map_S_…` or `mapFunction`")?;
    let variable = format!("input{}", identifier(title));
    let entry = format!(
        "var given = JSON.parse(mc.getProperty('{IN}'));\n\
         globalThis.{variable} = given.input;\n\
         globalThis.DM_PROPERTIES = given.properties;\n\
         var made = {function}(given.input);\n\
         mc.setProperty('{OUT}', typeof made === 'string' ? made : JSON.stringify(made === undefined ? null : made));"
    );
    Embedded::new(vec![library.into()], &entry, el.place())
}

/// The name of the function that maps the root.
fn mapping_function(text: &str) -> Option<&str> {
    let name_at = |at: usize| {
        let rest = &text[at..];
        let end =
            rest.find(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '$')).unwrap_or(rest.len());
        &rest[..end]
    };
    text.find("map_S_").map(name_at).or_else(|| text.find("mapFunction").map(name_at))
}

impl DataMapper {
    fn map(&self, exchange: &mut Exchange) -> Result<Json, Fault> {
        let (script, wanted) = match &self.mapping {
            Mapping::Script(script, wanted) => (script, wanted),
            Mapping::Broken(why) => return Err(Fault::new(why.as_str())),
        };
        let (form, schema) = &self.input;
        let input = match form {
            Form::Json => (*exchange.json()?).clone(),
            Form::Xml => {
                let envelope = exchange.xml()?;
                let Some(payload) = envelope.payload() else { return Err(Fault::new("there is no payload to map")) };
                input::of_xml(&envelope.document, payload, schema).map_err(Fault::new)?
            }
            Form::Csv => {
                let program = exchange.program().clone();
                csv::read(&exchange.message.text(&program.conversion)?, schema)
            }
        };
        let given = Json::Object(Map::from_iter([
            ("input".to_owned(), input),
            ("properties".to_owned(), wanted.values(exchange)),
        ]));
        exchange.message.properties.set(IN, Value::string(given.to_string()));
        let outcome = script.run(exchange);
        exchange.message.properties.remove(IN);
        let made = exchange.message.properties.remove(OUT);
        outcome.map_err(|why| Fault::new(format!("the mapping failed: {why}")))?;
        let made = made.map(|made| made.to_text().into_owned()).unwrap_or_default();
        serde_json::from_str(&made).map_err(|error| Fault::new(format!("the mapping gave no JSON: {error}")))
    }

    fn deliver(&self, exchange: &mut Exchange, made: Json) -> Result<(), Fault> {
        let (form, schema) = &self.output;
        let text = match form {
            Form::Json => None,
            Form::Xml => Some(output::to_xml(&made, schema).map_err(Fault::new)?),
            Form::Csv => Some(csv::write(&made).into_bytes()),
        };
        if let Some(target) = &self.target {
            let value = match (text, form) {
                (Some(xml), Form::Xml) => {
                    let (document, root) = payload::parse(xml)?;
                    Value::Xml(document, vec![root])
                }
                (Some(text), _) => Value::string(String::from_utf8_lossy(&text)),
                (None, _) => Value::Json(Arc::new(made)),
            };
            match target {
                Target::Variable(name) => exchange.message.variables.set(name.as_str(), value),
                Target::Property(name) => exchange.message.properties.set(name.as_str(), value),
            }
            return Ok(());
        }
        match (text, form) {
            (Some(xml), Form::Xml) => {
                payload::ensure_media_type(exchange, "application/xml");
                payload::replace_by_bytes(exchange, xml)?;
            }
            (Some(text), _) => {
                payload::set_text(exchange, String::from_utf8_lossy(&text).into_owned());
                payload::set_media_type(exchange, "text/csv");
            }
            (None, _) => {
                payload::ensure_media_type(exchange, "application/json");
                payload::set_json(exchange, Arc::new(made));
            }
        }
        Ok(())
    }
}

impl Mediator for DataMapper {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let made = self.map(exchange)?;
        self.deliver(exchange, made)?;
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_of_a_mapping() {
        for (text, expected) in [
            ("map_S_root_S_out = function() {}", Some("map_S_root_S_out")),
            ("function map_S_a_S_b() { return mapFunction(inputa) }", Some("map_S_a_S_b")),
            ("function mapFunction(input) { return {} }", Some("mapFunction")),
            ("var x = 1", None),
        ] {
            assert_eq!(mapping_function(text), expected);
        }
        assert_eq!(identifier("soapenv:Envelope"), "soapenv_Envelope");
    }
}
