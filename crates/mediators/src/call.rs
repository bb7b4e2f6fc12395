//! `<call>`: sends the message and goes on with the answer in the same sequence.

use std::sync::Arc;

use penstock_compile::{Compiler, Element, Expression, MediatorKind};
use penstock_engine::{Decision, Destination, Exchange, Fault, Flow, Mediator, Needs, RequestHead, Resume};
use penstock_message::{MediaType, Value};

use crate::reply::{Kept, reply_value};
use crate::template::Template;
use crate::typed::inline_xml;
use penstock_engine::payload;
use penstock_message::tree::Content;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "call", compile };

struct Call {
    destination: Destination,
    source: Option<CallPayload>,
    target: Target,
}

/// What is sent instead of the message's own body.
struct CallPayload {
    content: CallContent,
    content_type: Option<Arc<str>>,
}

enum CallContent {
    Body,
    Property(Arc<str>),
    Inline(Template),
    Element(Value),
    Custom(Expression),
}

/// Where the answer goes.
#[derive(Clone)]
enum Target {
    Body,
    Property(Arc<str>),
    Variable(Arc<str>),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    // Blocking or not, the exchange waits and nothing else does.
    for unused in ["blocking", "initAxis2ClientOptions"] {
        el.attribute(unused);
    }
    let source = match el.child("source") {
        Some(source) => Some(source_of(&source, cx)?),
        None => None,
    };
    let target = match el.child("target") {
        Some(target) => target_of(&target, cx)?,
        None => Target::Body,
    };
    Some(Box::new(Call { destination: cx.destination_of(el), source, target }))
}

fn source_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<CallPayload> {
    let content_type = el.attribute("contentType").map(Arc::from);
    for unused in ["clone", "isExpression"] {
        el.attribute(unused);
    }
    let text = el.attribute("property").map_or_else(|| el.text(), str::to_owned);
    let content = match el.attribute("type").unwrap_or("body") {
        "body" => CallContent::Body,
        "property" => CallContent::Property(text.into()),
        "custom" => {
            let expression = el.attribute("xpath").map_or(text, str::to_owned);
            let bare = penstock_compile::expression::braced(&expression).unwrap_or(&expression);
            CallContent::Custom(Expression::compile(cx, el, bare, el.place())?)
        }
        "inline" => match el.children().next() {
            Some(child) => CallContent::Element(inline_xml(&child)),
            None => CallContent::Inline(Template::compile(cx, el, &text, el.place())?),
        },
        other => {
            cx.error(el.attribute_place("type"), format!("`{other}` is not a source: body, property, inline, custom"));
            return None;
        }
    };
    el.finish(cx);
    Some(CallPayload { content, content_type })
}

fn target_of(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Target> {
    let name: Arc<str> = match el.attribute("name").or_else(|| el.attribute("property")) {
        Some(name) => name.into(),
        None => el.text().into(),
    };
    let target = match el.attribute("type").unwrap_or("body") {
        "body" => Target::Body,
        "property" => Target::Property(name),
        "variable" => Target::Variable(name),
        other => {
            cx.error(el.attribute_place("type"), format!("`{other}` is not a target: body, property, variable"));
            return None;
        }
    };
    el.finish(cx);
    Some(target)
}

impl CallPayload {
    fn apply(&self, exchange: &mut Exchange) -> Result<(), Fault> {
        let value = match &self.content {
            CallContent::Body => None,
            CallContent::Property(name) => exchange.property(penstock_message::Scope::Default, name),
            CallContent::Inline(template) => Some(Value::string(template.text(exchange)?)),
            CallContent::Element(value) => Some(value.clone()),
            CallContent::Custom(expression) => expression.value(exchange)?,
        };
        let Some(value) = value else {
            if let Some(content_type) = &self.content_type {
                payload::set_media_type(exchange, content_type);
            }
            return Ok(());
        };
        let implied = match value {
            Value::Json(_) => Some("application/json"),
            Value::Xml(..) => Some("application/xml"),
            _ => None,
        };
        if let Some(content_type) = self.content_type.as_deref().or(implied) {
            payload::ensure_media_type(exchange, content_type);
        }
        let kind = self.content_type.as_deref().map(MediaType::parse);
        match (kind, &value) {
            (Some(MediaType::Json), Value::Json(json)) | (None, Value::Json(json)) => {
                payload::set_json(exchange, json.clone())
            }
            (Some(MediaType::Json), _) => payload::set_json_text(exchange, value.to_text().into_owned()),
            (Some(kind), _) if kind.is_xml() => payload::replace_by_nodes(exchange, &payload::contents_of(&value))?,
            (None, Value::Xml(document, nodes)) => {
                let contents: Vec<Content> = nodes.iter().map(|node| Content::Node(document.clone(), *node)).collect();
                payload::replace_by_nodes(exchange, &contents)?;
            }
            _ => payload::set_text(exchange, value.to_text().into_owned()),
        }
        if let Some(content_type) = &self.content_type
            && MediaType::parse(content_type) != exchange.message.media_type()
        {
            payload::set_media_type(exchange, content_type);
        }
        Ok(())
    }
}

/// Stores the answer and puts the message back as it was.
fn store(exchange: &mut Exchange, target: &Target, kept: Kept) -> Result<(), Fault> {
    let value = reply_value(exchange)?;
    kept.restore(exchange);
    match target {
        Target::Property(name) => exchange.message.properties.set(name.clone(), value),
        Target::Variable(name) => exchange.message.variables.set(name.clone(), value),
        Target::Body => {}
    }
    Ok(())
}

impl Mediator for Call {
    fn decide(&self, _head: &RequestHead<'_>) -> Decision<'_> {
        match (&self.source, &self.target) {
            (None, Target::Body) => Decision::Call(&self.destination),
            _ => Decision::Unknown,
        }
    }

    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let kept = match self.target {
            Target::Body => None,
            _ => Some(Kept::from_exchange(exchange)),
        };
        if let Some(source) = &self.source {
            source.apply(exchange)?;
        }
        let Some(kept) = kept else { return Ok(Flow::Call(self.destination.clone())) };
        let target = self.target.clone();
        Ok(Flow::CallWith(
            self.destination.clone(),
            Resume::new(move |exchange, reply: Result<_, Fault>| {
                let reply = reply?;
                exchange.message.replace_by_reply(reply);
                store(exchange, &target, kept)?;
                Ok(Flow::Next)
            }),
        ))
    }

    fn needs(&self) -> Needs {
        match (&self.source, &self.target) {
            (None, Target::Body) => Needs::Nothing,
            _ => Needs::Whole,
        }
    }
}
