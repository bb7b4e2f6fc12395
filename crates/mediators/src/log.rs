//! `<log>`: writes a line about the message.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::ports::Level;
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Form, MediaType, Scope};

use crate::template::Template;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "log", compile };

/// Who says it, in the log.
const LOGGER: &str = "LogMediator";

struct Log {
    level: Level,
    detail: Detail,
    separator: String,
    template: Option<Template>,
    properties: Vec<(Arc<str>, Printed)>,
    message_id: bool,
    payload: bool,
}

/// How much of the message is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    Custom,
    Simple,
    Headers,
    Full,
}

enum Printed {
    Constant(Arc<str>),
    Computed(Expression),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let template = match el.child("message") {
        Some(message) => {
            let text = message.text();
            message.accept_all();
            Some(Template::compile(cx, &message, &text, message.place())?)
        }
        None => None,
    };
    let detail = match el.attribute("level").map(str::trim) {
        Some("custom") => Detail::Custom,
        Some("headers") => Detail::Headers,
        Some("full") => Detail::Full,
        // With a text of its own a line says what the text says.
        None if template.is_some() => Detail::Custom,
        None | Some("simple" | "") => Detail::Simple,
        Some(other) => {
            cx.warn(
                el.attribute_place("level"),
                format!("`{other}` is not a level (simple, headers, full, custom); `custom` is used"),
            );
            Detail::Custom
        }
    };
    let separator = el.attribute("separator").unwrap_or(", ");
    let mut properties = Vec::new();
    for property in el.elements("property") {
        let name: Arc<str> = property.required(cx, "name")?.into();
        let printed = match property.attribute("value") {
            Some(value) => Printed::Constant(value.into()),
            None => Printed::Computed(cx.required_expression(&property, "expression")?),
        };
        for unused in ["scope", "type", "action"] {
            property.attribute(unused);
        }
        property.finish(cx);
        properties.push((name, printed));
    }
    Some(Box::new(Log {
        level: level(el, cx),
        detail,
        // Attributes cannot hold a line break or tab any other way.
        separator: separator.replace("\\n", "\n").replace("\\t", "\t"),
        template,
        properties,
        message_id: el.flag("logMessageID", true),
        payload: el.flag("logFullPayload", false),
    }))
}

fn level(el: &Element<'_>, cx: &mut Compiler<'_>) -> Level {
    match el.attribute("category").map(|category| category.trim().to_ascii_uppercase()).as_deref() {
        None | Some("INFO" | "") => Level::Info,
        Some("TRACE") => Level::Trace,
        Some("DEBUG") => Level::Debug,
        Some("WARN") => Level::Warn,
        Some("ERROR") => Level::Error,
        Some("FATAL") => Level::Fatal,
        Some(other) => {
            cx.warn(
                el.attribute_place("category"),
                format!("`{other}` is not a category (TRACE, DEBUG, INFO, WARN, ERROR, FATAL); `INFO` is used"),
            );
            Level::Info
        }
    }
}

impl Log {
    fn text(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        let mut line = Line { text: String::new(), separator: &self.separator };
        if let Some(template) = &self.template {
            line.add(&template.text(exchange)?);
        }
        match self.detail {
            Detail::Custom => {}
            Detail::Headers => headers(&mut line, exchange)?,
            Detail::Simple | Detail::Full => self.summary(&mut line, exchange),
        }
        for (name, printed) in &self.properties {
            let value = match printed {
                Printed::Constant(text) => text.to_string(),
                // Micro Integrator prints what Java prints for an absent property, and nothing for a path without a match.
                Printed::Computed(expression) => expression.text_if_any(exchange)?.unwrap_or_else(|| "null".to_owned()),
            };
            line.add(&format!("{name} = {value}"));
        }
        if self.detail == Detail::Full || self.payload {
            line.add(&body(exchange)?);
        }
        Ok(line.text)
    }

    fn summary(&self, line: &mut Line<'_>, exchange: &mut Exchange) {
        let mut property =
            |name: &str| exchange.property(Scope::Default, name).map(|value| value.to_text().into_owned());
        line.add(&format!("To: {}", property("To").unwrap_or_default()));
        if let Some(from) = property("From") {
            line.add(&format!("From: {from}"));
        }
        if let Some(action) = property("WSAction").or_else(|| property("SOAPAction")) {
            line.add(&format!("WSAction: {action}"));
        } else {
            line.add("WSAction: ");
        }
        line.add(&format!("SOAPAction: {}", property("SOAPAction").unwrap_or_default()));
        if let Some(reply_to) = property("ReplyTo") {
            line.add(&format!("ReplyTo: {reply_to}"));
        }
        if self.message_id {
            line.add(&format!("MessageID: {}", property("MessageID").unwrap_or_default()));
        }
        let correlation = exchange.correlation_id();
        line.add(&format!("correlation_id: {correlation}"));
        let direction = if exchange.is_response() { "response" } else { "request" };
        line.add(&format!("Direction: {direction}"));
    }
}

struct Line<'s> {
    text: String,
    separator: &'s str,
}

impl Line<'_> {
    fn add(&mut self, part: &str) {
        if !self.text.is_empty() {
            self.text.push_str(self.separator);
        }
        self.text.push_str(part);
    }
}

/// The SOAP header blocks: `name : text`.
fn headers(line: &mut Line<'_>, exchange: &mut Exchange) -> Result<(), Fault> {
    let envelope = exchange.xml()?;
    let document = &envelope.document;
    let Some(header) = envelope.header else { return Ok(()) };
    for block in document.children(header).filter(|block| document.is_element(*block)) {
        line.add(&format!("{} : {}", document.local_name(block), document.string_value(block)));
    }
    Ok(())
}

/// The body as it is: JSON as JSON, everything else as the envelope it is read as.
fn body(exchange: &mut Exchange) -> Result<String, Fault> {
    if exchange.message.media_type() == MediaType::Json {
        let text = match exchange.message.body.form() {
            Form::Empty => String::new(),
            Form::Bytes(bytes) if bytes.trim_ascii().is_empty() => String::new(),
            Form::Bytes(_) => {
                // Written as it came, and read all the same: what is malformed is a fault for all that read a body.
                exchange.json()?;
                let program = exchange.program().clone();
                exchange.message.text(&program.conversion)?.to_string()
            }
            _ => exchange.json()?.to_string(),
        };
        return Ok(format!("Payload: {text}"));
    }
    let envelope = exchange.xml()?;
    let text = penstock_xml::to_vec(&envelope.document, envelope.envelope, &penstock_xml::WriteOptions::default());
    Ok(format!("Envelope: {}", String::from_utf8_lossy(&text)))
}

impl Mediator for Log {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        if exchange.core().log.enabled(self.level) {
            let text = self.text(exchange)?;
            exchange.log(self.level, LOGGER, &text);
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        if self.payload || matches!(self.detail, Detail::Full | Detail::Headers) {
            return Needs::Whole;
        }
        let computed = self.properties.iter().filter_map(|(_, printed)| match printed {
            Printed::Computed(expression) => Some(expression.needs()),
            Printed::Constant(_) => None,
        });
        let strongest = computed.chain(self.template.as_ref().map(Template::needs)).max().unwrap_or_default();
        // Several expressions on one line are evaluated together.
        if strongest == Needs::Nothing { Needs::Nothing } else { Needs::Whole }
    }
}
