//! `<payloadFactory>`: builds a new body from a format with `$1` arguments and `${…}` expressions, or from a
//! FreeMarker template.

mod argument;
mod format;
mod insert;
mod model;
mod sample;

use std::sync::Arc;

use penstock_compile::{Compiler, Element, MediatorKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};

use argument::Argument;
use format::{Format, Piece};
use penstock_engine::payload;
use penstock_message::tree::Content;

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "payloadFactory", compile };

/// The property that puts strings in quotes where the format has none.
const QUOTE_STRINGS: &str = "QUOTE_STRING_IN_PAYLOAD_FACTORY_JSON";

struct PayloadFactory {
    media: Media,
    format: Format,
    arguments: Vec<Argument>,
}

/// What is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Xml,
    Json,
    Text,
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let media = match el.attribute("media-type").map(str::trim) {
        None | Some("" | "xml" | "application/xml" | "text/xml") => Media::Xml,
        Some("json" | "application/json") => Media::Json,
        Some("text" | "text/plain") => Media::Text,
        Some(other) => {
            cx.error(
                el.attribute_place("media-type"),
                format!("`{other}` is not a media type of <payloadFactory>: xml, json, text"),
            );
            return None;
        }
    };
    // Values are escaped for JSON here.
    el.attribute("escapeXmlChars");
    let freemarker = el.attribute("template-type").is_some_and(|kind| kind.eq_ignore_ascii_case("freemarker"));
    let mut arguments = Vec::new();
    if let Some(list) = el.child("args") {
        for arg in list.elements("arg") {
            arguments.push(argument::compile(&arg, cx)?);
            arg.finish(cx);
        }
        list.finish(cx);
    }
    let Some(element) = el.child("format") else {
        cx.error(el.place(), "<payloadFactory> needs a <format>");
        return None;
    };
    let format = format::compile(&element, cx, media, freemarker, arguments.len())?;
    Some(Box::new(PayloadFactory { media, format, arguments }))
}

impl PayloadFactory {
    fn build(&self, exchange: &mut Exchange) -> Result<String, Fault> {
        if let Some(template) = &self.format.template {
            return model::render(template, &self.arguments, self.media, exchange);
        }
        let mut values: Vec<Option<Arc<argument::Given>>> = vec![None; self.arguments.len()];
        let mut out = String::with_capacity(self.format.length_hint);
        let mut text_end = 0;
        for piece in &self.format.pieces {
            match piece {
                Piece::Text(text) => {
                    let nothing_between = self.media == Media::Xml && out.len() == text_end;
                    let rest = if nothing_between { insert::close_empty(&mut out, text) } else { text };
                    out.push_str(rest);
                    text_end = out.len();
                }
                Piece::Argument { index, quoted, attribute } => {
                    let given = match &values[*index] {
                        Some(given) => given.clone(),
                        None => {
                            let given = Arc::new(self.arguments[*index].evaluate(exchange)?);
                            values[*index] = Some(given.clone());
                            given
                        }
                    };
                    // A switch of Micro Integrator's for formats that say `{"name": $1}`.
                    if self.media == Media::Json && !quoted && exchange.message.properties.is_true(QUOTE_STRINGS) {
                        insert::quoted_argument(&mut out, &given);
                    } else {
                        insert::argument(&mut out, &given, self.media, *quoted, *attribute);
                    }
                }
                Piece::Inline(text) => out.push_str(&text.text(exchange)),
                Piece::Expression { expression, quoted, attribute } => {
                    let value = expression.value(exchange)?;
                    let path = expression.text.contains("xpath(");
                    insert::expression(&mut out, value.as_ref(), path, (self.media, *quoted, *attribute))?;
                }
            }
        }
        Ok(out)
    }
}

impl Mediator for PayloadFactory {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let built = self.build(exchange)?;
        match self.media {
            Media::Xml => payload::ensure_media_type(exchange, "application/xml"),
            Media::Json => payload::ensure_media_type(exchange, "application/json"),
            Media::Text => {}
        }
        match self.media {
            // A format that is an envelope replaces header and body of the message.
            Media::Xml if self.format.is_envelope => {
                let (document, root) = payload::parse(built.into_bytes())?;
                payload::replace_by_nodes(exchange, &[Content::Node(document, root)])?;
            }
            Media::Xml => payload::replace_by_bytes(exchange, built.into_bytes())?,
            Media::Json => payload::set_json_text(exchange, built),
            Media::Text => payload::set_text(exchange, built),
        }
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        // The envelope around an XML payload is kept, so the old body has to be there.
        match self.media {
            Media::Xml => Needs::Whole,
            _ if self.arguments.iter().any(Argument::reads_body) || self.format.reads_body() => Needs::Whole,
            _ => Needs::Nothing,
        }
    }
}
