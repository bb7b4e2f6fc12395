//! Classes that come with Micro Integrator, and those of its documented samples, written again.

use std::sync::atomic::{AtomicI64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use penstock_compile::{Compiler, Element};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs};
use penstock_message::{Form, Value, double_to_text};

use super::Properties;
use penstock_message::tree::{Change, Changes, Content, edit};

/// A class.
pub(super) struct NativeClass {
    /// As artifacts name it.
    pub name: &'static str,
    pub compile: fn(&Element<'_>, &mut Compiler<'_>, Properties) -> Option<Box<dyn Mediator>>,
}

/// The classes there are.
pub(super) const CLASSES: &[NativeClass] = &[
    NativeClass { name: "samples.mediators.BinaryExtractMediator", compile: BinaryExtract::compile },
    NativeClass { name: "samples.mediators.DiscountQuoteMediator", compile: DiscountQuote::compile },
    NativeClass { name: "samples.mediators.SimpleClassMediator", compile: nothing },
    NativeClass { name: "org.wso2.carbon.apimgt.gateway.handlers.analytics.APIMgtFaultHandler", compile: reports },
    NativeClass { name: "org.wso2.carbon.apimgt.usage.publisher.APIMgtFaultHandler", compile: reports },
    NativeClass { name: "org.wso2.carbon.apimgt.usage.publisher.APIMgtResponseHandler", compile: reports },
];

/// A class that changes nothing.
struct Nothing;

impl Mediator for Nothing {
    fn run(&self, _exchange: &mut Exchange) -> Result<Flow, Fault> {
        Ok(Flow::Next)
    }
}

fn nothing(_el: &Element<'_>, _cx: &mut Compiler<'_>, _properties: Properties) -> Option<Box<dyn Mediator>> {
    Some(Box::new(Nothing))
}

/// A class that reports to a server of the maker.
fn reports(el: &Element<'_>, cx: &mut Compiler<'_>, _properties: Properties) -> Option<Box<dyn Mediator>> {
    cx.warn(
        el.place(),
        "the class reports to an analytics server of the maker; here requests are counted on the metrics port",
    );
    Some(Box::new(Nothing))
}

/// A whole number in a property.
fn number(el: &Element<'_>, cx: &mut Compiler<'_>, properties: &Properties, name: &str, default: i64) -> Option<i64> {
    match properties.constant(name).map(str::parse) {
        None => Some(default),
        Some(Ok(number)) => Some(number),
        Some(Err(_)) => {
            cx.error(el.place(), format!("the property `{name}` of the class must be a whole number"));
            None
        }
    }
}

/// Takes a discount off the price of a quote, and five in a hundred more off the first ones.
struct DiscountQuote {
    discount: f64,
    bonus_for: i64,
    bonus_count: AtomicI64,
}

const QUOTES: &str = "http://services.samples/xsd";

impl DiscountQuote {
    fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, properties: Properties) -> Option<Box<dyn Mediator>> {
        let discount = number(el, cx, &properties, "discountFactor", 10)? as f64;
        let bonus_for = number(el, cx, &properties, "bonusFor", 10)?;
        Some(Box::new(DiscountQuote { discount, bonus_for, bonus_count: AtomicI64::new(0) }))
    }
}

impl Mediator for DiscountQuote {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let envelope = exchange.xml()?;
        let document = &envelope.document;
        let element = |parent| document.children(parent).find(|node| document.is_element(*node));
        let last = envelope.payload().and_then(element).and_then(|quote| {
            document.children(quote).find(|node| {
                document.is_element(*node)
                    && document.local_name(*node) == "last"
                    && document.namespace(*node) == QUOTES
            })
        });
        let Some(last) = last else {
            return Err(Fault::new(
                "DiscountQuoteMediator finds no price: the body has no quote with an element `last`",
            ));
        };
        let text = document.string_value(last);
        let price: f64 = text.trim().parse().map_err(|_| Fault::new(format!("`{text}` is not a price")))?;
        let mut price = price - price * self.discount / 100.0;
        if self.bonus_count.fetch_add(1, Ordering::Relaxed) <= self.bonus_for {
            price -= price * 0.05;
        }
        let text = Content::Text(double_to_text(price).into());
        let mut changes: Changes = document.children(last).map(|node| (node, Change::Replace(Vec::new()))).collect();
        changes.insert(last, Change::Append(vec![text]));
        let edited = std::sync::Arc::new(edit(document, &changes));
        let changed =
            penstock_message::Envelope::find(edited).ok_or_else(|| Fault::new("the body is not an envelope"))?;
        exchange.message.body.set(Form::Xml(std::sync::Arc::new(changed)));
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}

/// Takes some bytes out of a binary body and makes them a property.
struct BinaryExtract {
    skip: usize,
    length: usize,
    property: std::sync::Arc<str>,
}

impl BinaryExtract {
    fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, properties: Properties) -> Option<Box<dyn Mediator>> {
        let offset = number(el, cx, &properties, "offset", 0)?;
        let length = number(el, cx, &properties, "length", 0)?;
        let encoding = properties.constant("binaryEncoding").unwrap_or("utf-8");
        if !matches!(encoding.to_ascii_lowercase().as_str(), "utf-8" | "utf8" | "us-ascii" | "ascii") {
            cx.error(el.place(), format!("the property `binaryEncoding` must be `utf-8`, not `{encoding}`"));
            return None;
        }
        let property = properties.constant("variableName").unwrap_or_default().into();
        // The class counts from 1.
        let skip = usize::try_from(offset - 1).unwrap_or_default();
        Some(Box::new(BinaryExtract { skip, length: usize::try_from(length).unwrap_or_default(), property }))
    }
}

impl Mediator for BinaryExtract {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let envelope = exchange.xml()?;
        let text = envelope.payload().map(|node| envelope.document.string_value(node).into_owned()).unwrap_or_default();
        let compact: String = text.split_ascii_whitespace().collect();
        let bytes =
            STANDARD.decode(compact).map_err(|_| Fault::new("BinaryExtractMediator finds no binary in the body"))?;
        let end = self.skip.saturating_add(self.length).min(bytes.len());
        let part = bytes.get(self.skip..end).unwrap_or_default();
        exchange.message.properties.set(self.property.clone(), Value::string(String::from_utf8_lossy(part)));
        Ok(Flow::Next)
    }

    fn needs(&self) -> Needs {
        Needs::Whole
    }
}
