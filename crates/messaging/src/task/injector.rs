//! `MessageInjector`: what a task puts into a flow.

use std::sync::Arc;

use bytes::Bytes;
use penstock_compile::{Compiler, Element, NameKind};
use penstock_engine::inject::{InjectTarget, Injection, Source};
use penstock_message::{Body, Message, Method};

/// What is injected, and into what.
pub(super) struct Injector {
    target: InjectTarget,
    source: Arc<Source>,
    body: Bytes,
    format: Format,
    soap_action: Option<Arc<str>>,
    to: Option<Arc<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Soap11,
    Soap12,
    Pox,
    /// The message is no body.
    Get,
}

/// The properties a task may have.
#[derive(Default)]
struct Given {
    inject_to: Option<String>,
    sequence: Option<String>,
    proxy: Option<String>,
    body: Option<Bytes>,
    format: Option<String>,
    soap_action: Option<Arc<str>>,
    to: Option<Arc<str>>,
}

impl Injector {
    pub(super) fn compile(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) -> Option<Injector> {
        let mut given = Given::default();
        for property in el.elements("property") {
            read(cx, &property, &mut given)?;
        }
        let target = target(cx, el, &given)?;
        let format = match given.format.as_deref().unwrap_or("soap11") {
            "soap11" => Format::Soap11,
            "soap12" => Format::Soap12,
            "pox" => Format::Pox,
            "get" => Format::Get,
            other => {
                // Micro Integrator logs "incorrect format specified" and injects the message in an envelope of SOAP 1.1.
                cx.warn(el.place(), format!("the format `{other}` is not soap11, soap12, pox or get; soap11 is used"));
                Format::Soap11
            }
        };
        let Some(body) = given.body else {
            cx.error(el.place(), "message or registry-key not set: the task has nothing to inject");
            return None;
        };
        let source = Source {
            kind: super::ELEMENT,
            name: name.into(),
            label: format!("{{task:{name}}}").into(),
            transport: "task",
            on_error: None,
        };
        let Given { soap_action, to, .. } = given;
        Some(Injector { target, source: Arc::new(source), body, format, soap_action, to })
    }

    /// A message for the next run.
    pub(super) fn injection(&self) -> Injection {
        let mut message = Message { method: Method::Post, ..Message::default() };
        let (content_type, envelope) = match self.format {
            Format::Soap11 => ("text/xml; charset=UTF-8", Some("http://schemas.xmlsoap.org/soap/envelope/")),
            Format::Soap12 => ("application/soap+xml; charset=UTF-8", Some("http://www.w3.org/2003/05/soap-envelope")),
            Format::Pox => ("application/xml; charset=UTF-8", None),
            Format::Get => ("", None),
        };
        if self.format == Format::Get {
            message.method = Method::Get;
        } else {
            message.headers.set("Content-Type", content_type);
            message.body = Body::bytes(match envelope {
                Some(namespace) => enveloped(namespace, &self.body),
                None => self.body.clone(),
            });
        }
        if self.soap_action.is_some() || self.to.is_some() {
            let addressing = message.addressing_mut();
            addressing.action = self.soap_action.clone();
            addressing.to = self.to.clone();
        }
        Injection { target: self.target.clone(), message, source: self.source.clone() }
    }
}

fn enveloped(namespace: &str, body: &[u8]) -> Bytes {
    let start = format!("<soapenv:Envelope xmlns:soapenv=\"{namespace}\"><soapenv:Body>");
    let end = b"</soapenv:Body></soapenv:Envelope>";
    [start.as_bytes(), body, end].concat().into()
}

fn read(cx: &mut Compiler<'_>, property: &Element<'_>, given: &mut Given) -> Option<()> {
    let name = property.required(cx, "name")?;
    if property.attribute("key").is_some() {
        cx.error(property.attribute_place("key"), "a task does not support dynamic properties");
        return None;
    }
    let value = property.attribute("value").map(str::to_owned);
    let text = value.clone().unwrap_or_else(|| property.text());
    match name {
        "injectTo" => given.inject_to = Some(text),
        "sequenceName" => given.sequence = Some(text),
        "proxyName" => given.proxy = Some(text),
        "format" => given.format = Some(text),
        "soapAction" => given.soap_action = Some(text.into()),
        "to" => given.to = Some(text.into()),
        "message" => {
            let inline = property.children().next().map(|child| child.to_xml());
            given.body = Some(inline.unwrap_or_else(|| text.into_bytes()).into());
        }
        "registryKey" => match cx.resource(&text) {
            Some(resource) => given.body = Some(resource.bytes.clone()),
            None => {
                cx.unknown(NameKind::RESOURCE, &text, property.place());
                given.body = Some(Bytes::new());
            }
        },
        // One thread runs a task and its flow here; there are no environment handlers.
        "sequential" | "invokeHandlers" => {}
        other => {
            cx.error(property.place(), format!("a MessageInjector has no property `{other}`"));
            return None;
        }
    }
    property.accept_all();
    Some(())
}

fn target(cx: &mut Compiler<'_>, el: &Element<'_>, given: &Given) -> Option<InjectTarget> {
    match given.inject_to.as_deref().unwrap_or("main") {
        "sequence" => match given.sequence.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => {
                cx.sequence_ref(name, el.place());
                Some(InjectTarget::Sequence(name.into()))
            }
            None => {
                cx.error(el.place(), "Sequence name not specified: `injectTo` is `sequence`");
                None
            }
        },
        "proxy" => match given.proxy.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => {
                if !cx.is_declared(NameKind::PROXY, name) {
                    cx.unknown(NameKind::PROXY, name, el.place());
                }
                Some(InjectTarget::Proxy(name.into()))
            }
            None => {
                cx.error(el.place(), "Proxy service name not specified: `injectTo` is `proxy`");
                None
            }
        },
        _ => Some(InjectTarget::Main),
    }
}
