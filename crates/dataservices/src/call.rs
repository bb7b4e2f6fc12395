//! `<dataServiceCall serviceName="…">`: calls a data service of this server.

use std::sync::{Arc, OnceLock};

use penstock_compile::{Compiler, Element, MediatorKind, NameKind};
use penstock_engine::{Exchange, Fault, Flow, Mediator, Needs, Resume};
use penstock_message::{Body, Envelope, Form, SoapVersion, Value};
use penstock_xml::{Document, ParseOptions};

use crate::fault::{DataServiceFault, FaultCode};
use crate::mediator::caller;
use crate::model::DataService;
use crate::parameter::GivenParameters;
use crate::request::{self, Payload};
use crate::response::{ResponseFormat, Writer};
use crate::run::{BoxFrame, Run, Work, run};
use crate::stream::{Beginning, Buffer, Generation};

/// The kind.
pub const KIND: MediatorKind = MediatorKind { name: "dataServiceCall", compile };

/// What a name of a data service stands for.
pub const DATA_SERVICE: NameKind = NameKind("data service");

/// A data service that others refer to, filled when it is built.
pub type Slot = OnceLock<Arc<DataService>>;

/// The key of a service among what artifacts share while they are compiled.
pub fn slot_key(name: &str) -> String {
    format!("data service {name}")
}

/// The place of a service that artifacts refer to. Who uses it is compiled again with each program, because a new program has
/// new places.
pub fn slot(cx: &Compiler<'_>, name: &str) -> Option<Arc<Slot>> {
    let key = slot_key(name);
    let found = cx.connections().find(|(known, _)| ***known == *key);
    found.and_then(|(_, slot)| slot.clone().downcast::<Slot>().ok())
}

struct DataServiceCall {
    name: Arc<str>,
    slot: Arc<Slot>,
    source: ArgumentSource,
    /// The property of the result; the body without one.
    property: Option<Arc<str>>,
}

enum ArgumentSource {
    /// The body is the request.
    Body,
    /// Operations with their parameters.
    Inline(Manner, Vec<InlineOperation>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Single,
    Batch,
    Boxed,
}

struct InlineOperation {
    name: Arc<str>,
    parameters: Vec<(Arc<str>, ParameterSource)>,
}

enum ParameterSource {
    Constant(Arc<str>),
    Computed(penstock_compile::Expression),
}

fn compile(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Box<dyn Mediator>> {
    let name = el.required(cx, "serviceName")?;
    let slot = slot(cx, name);
    if slot.is_none() {
        cx.unknown(DATA_SERVICE, name, el.attribute_place("serviceName"));
    }
    let is_body =
        el.child("source").and_then(|source| source.attribute("type").map(str::to_owned)).as_deref() == Some("body");
    let operations = el.child("operations");
    let source = match operations {
        Some(operations) if !is_body => inline(&operations, cx)?,
        Some(operations) => {
            operations.accept_all();
            ArgumentSource::Body
        }
        None if is_body => ArgumentSource::Body,
        None => {
            cx.error(el.place(), "<dataServiceCall> needs <operations>, or <source type=\"body\"/>");
            return None;
        }
    };
    let target = el.child("target");
    let property = match target.as_ref().and_then(|target| target.attribute("type")) {
        Some("property") => {
            let name = target.as_ref().and_then(|target| target.required(cx, "name"))?;
            Some(Arc::from(name))
        }
        _ => {
            if let Some(target) = &target {
                target.attribute("name");
            }
            None
        }
    };
    for part in el.child("source").into_iter().chain(target) {
        part.finish(cx);
    }
    Some(Box::new(DataServiceCall { name: name.into(), slot: slot.unwrap_or_default(), source, property }))
}

fn inline(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<ArgumentSource> {
    let manner = match el.attribute("type").unwrap_or("single").to_ascii_lowercase().as_str() {
        "single" => Manner::Single,
        "batch" => Manner::Batch,
        "request-box" | "request_box" => Manner::Boxed,
        other => {
            cx.error(el.attribute_place("type"), format!("`{other}` is not single, batch or request-box"));
            return None;
        }
    };
    let mut operations = Vec::new();
    for operation in el.elements("operation") {
        let name = operation.required(cx, "name")?;
        let mut parameters = Vec::new();
        for parameter in operation.elements("param") {
            let name = parameter.required(cx, "name")?;
            let source = match parameter.attribute("value") {
                Some(value) => ParameterSource::Constant(value.into()),
                None => {
                    let is_json = parameter.attribute("evaluator") == Some("json");
                    let text = parameter.required(cx, "expression")?;
                    let at = parameter.value_place("expression");
                    // The evaluator says the language; the text may name it again.
                    let text = match is_json && !text.starts_with("json-eval") && !text.starts_with("${") {
                        true => format!("json-eval({text})"),
                        false => text.to_owned(),
                    };
                    ParameterSource::Computed(penstock_compile::Expression::compile(cx, &parameter, &text, at)?)
                }
            };
            parameter.attribute("evaluator");
            parameter.finish(cx);
            parameters.push((name.into(), source));
        }
        operation.finish(cx);
        operations.push(InlineOperation { name: name.into(), parameters });
    }
    el.finish(cx);
    if operations.is_empty() {
        cx.error(el.place(), "<operations> has no <operation>");
        return None;
    }
    Some(ArgumentSource::Inline(manner, operations))
}

impl DataServiceCall {
    fn work(&self, service: &DataService, exchange: &mut Exchange) -> Result<Result<Work, DataServiceFault>, Fault> {
        let (manner, operations) = match &self.source {
            ArgumentSource::Body => {
                let payload = request::payload_of(exchange)?;
                let name = payload_name(&payload);
                return Ok(request::work(service, &name, &payload, ""));
            }
            ArgumentSource::Inline(manner, operations) => (*manner, operations),
        };
        let mut items = Vec::with_capacity(operations.len());
        for operation in operations {
            let Some(found) = service.operation(&operation.name) else {
                let message = format!("the operation `{}` is not found", operation.name);
                return Ok(Err(DataServiceFault::new(FaultCode::Unknown, message)));
            };
            let mut given = GivenParameters::default();
            for (name, source) in &operation.parameters {
                let text = match source {
                    ParameterSource::Constant(text) => text.clone(),
                    ParameterSource::Computed(expression) => expression.text(exchange)?.into(),
                };
                given.add(name, Some(text));
            }
            items.push((found, given));
        }
        Ok(Ok(match manner {
            Manner::Boxed => Work::Boxed(items, BoxFrame::Response),
            Manner::Batch => {
                let operation = items.first().map_or(0, |(operation, _)| *operation);
                Work::Batch(operation, items.into_iter().map(|(_, given)| given).collect())
            }
            Manner::Single => match items.into_iter().next() {
                Some((operation, given)) => Work::Single(operation, given),
                None => Work::Boxed(Vec::new(), BoxFrame::Response),
            },
        }))
    }
}

fn payload_name(payload: &Payload) -> String {
    match payload {
        Payload::Xml(document, node) => document.local_name(*node).to_owned(),
        Payload::Json(value) => {
            value.as_object().and_then(|members| members.keys().next()).cloned().unwrap_or_default()
        }
        Payload::None | Payload::Form(_) => String::new(),
    }
}

impl Mediator for DataServiceCall {
    fn run(&self, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let Some(service) = self.slot.get().cloned() else {
            return Err(Fault::new(format!("the data service `{}` is not deployed", self.name)));
        };
        let work = self.work(&service, exchange)?.map_err(|fault| raised(&service, &fault))?;
        let databases = exchange.core().databases()?.clone();
        let run_of = Run { service: service.clone(), databases, caller: caller(exchange) };
        let buffer = Buffer::default();
        let writer = Writer::new(buffer.clone(), ResponseFormat::Soap11, false);
        let property = self.property.clone();
        // Nothing is sent while the result is made, so no fault can be late.
        let result = Generation::begin(buffer, Box::pin(run(run_of, work, writer)), Box::new(|_| {}));
        Ok(Flow::Wait(Box::pin(async move {
            let result = result.await;
            Resume::new(move |exchange: &mut Exchange, ()| {
                let bytes = match result {
                    Beginning::Failed(fault) => return Err(raised(&service, &fault)),
                    Beginning::Complete(bytes) => bytes,
                    Beginning::Streaming(_) => return Err(Fault::new("the result was not complete")),
                };
                place(exchange, bytes, property)?;
                Ok(Flow::Next)
            })
        })))
    }

    fn needs(&self) -> Needs {
        match &self.source {
            ArgumentSource::Body => Needs::Whole,
            // The body is replaced, or an expression may read it.
            ArgumentSource::Inline(..) => Needs::Whole,
        }
    }
}

fn raised(service: &DataService, fault: &DataServiceFault) -> Fault {
    Fault { detail: Some(fault.text(service).into()), ..Fault::new(fault.message.clone()) }
}

/// Puts a result into the body or a property.
fn place(exchange: &mut Exchange, bytes: bytes::Bytes, property: Option<Arc<str>>) -> Result<(), Fault> {
    let document = Document::parse(bytes, &ParseOptions::default());
    let document = document.map_err(|error| Fault::new(format!("the result is not XML: {error}")))?;
    let speaks_soap = exchange.message.speaks_soap();
    let Some(mut envelope) = Envelope::find(Arc::new(document)) else {
        return Err(Fault::new("the result has no envelope"));
    };
    if let Some(name) = property {
        let nodes = envelope.payload().into_iter().collect();
        exchange.message.properties.set(name.to_string(), Value::Xml(envelope.document.clone(), nodes));
        return Ok(());
    }
    if !speaks_soap {
        envelope.soap = SoapVersion::None;
    }
    exchange.message.body = Body::from_form(Form::Xml(Arc::new(envelope)));
    Ok(())
}
