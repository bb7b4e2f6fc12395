//! `<endpoint>`: addresses, groups, references and templates.

mod address;
mod connection;
mod expand;
mod group;
mod http;
mod oauth;
mod policy;
mod template;
mod url_check;

pub(crate) use policy::configured;

use std::sync::Arc;

use penstock_engine::endpoint::{Computed, Endpoint, EndpointKind, EndpointPolicy, EndpointState, Leaf, Target};
use penstock_engine::{Destination, EndpointId, Exchange, Fault, Place, Resource, codes};
use penstock_message::{Scope, Value};

use crate::{Compiler, Element};

pub use connection::{CONNECTION_URL, connection, request_url};
pub use expand::UrlTemplate;

/// Reserves a place for a named endpoint, so that others may refer to it before it is compiled.
pub(crate) fn reserve(cx: &mut Compiler<'_>, name: &str, at: Place) -> EndpointId {
    let text: Arc<str> = format!("endpoint `{name}` has errors and is not served").into();
    let kind = EndpointKind::Indirect(Box::new(move |_: &mut Exchange| Err(Fault::new(text.clone()))));
    let id = cx.add_endpoint(Endpoint {
        name: Some(name.into()),
        at,
        kind,
        policy: EndpointPolicy::default(),
        state: EndpointState::default(),
    });
    cx.name_endpoint(name, id);
    id
}

/// Fills a reserved endpoint. One with errors keeps answering with a fault.
pub(crate) fn fill(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let Some(id) = cx.program.endpoint_names.get(name).copied() else { return };
    let errors = cx.errors_so_far();
    if let Some(endpoint) = compile(cx, el)
        && cx.errors_so_far() == errors
    {
        cx.set_endpoint(id, endpoint);
    }
}

/// An endpoint that is a registry resource or local entry.
pub(crate) fn from_resource(cx: &mut Compiler<'_>, key: &str, resource: &Arc<Resource>) -> Option<EndpointId> {
    let options = penstock_xml::ParseOptions::default();
    let document = penstock_xml::Document::parse(resource.bytes.clone(), &options).ok()?;
    let source = crate::SourceDocument::new(resource.at.file.clone(), Arc::new(document));
    let root = source.root().filter(|root| root.name() == "endpoint")?;
    let id = reserve(cx, key, resource.at.clone());
    fill(cx, key, &root);
    Some(id)
}

/// Where an `<endpoint>` inside a mediator or service sends: a reference, or an endpoint of its own.
pub fn destination(cx: &mut Compiler<'_>, el: &Element<'_>) -> Destination {
    if let Some(key) = el.attribute("key") {
        if let Some(dynamic) = crate::expression::braced(key) {
            let place = el.attribute_place("key");
            return computed(cx, el, dynamic, place).unwrap_or(Destination::Implicit);
        }
        return cx.endpoint_ref(key, el.attribute_place("key"));
    }
    if let Some(expression) = el.attribute("key-expression") {
        let place = el.attribute_place("key-expression");
        return computed(cx, el, expression, place).unwrap_or(Destination::Implicit);
    }
    if el.children().next().is_none() && el.attribute("template").is_none() {
        return Destination::Implicit;
    }
    match compile(cx, el) {
        Some(endpoint) => Destination::Endpoint(cx.add_endpoint(endpoint)),
        None => Destination::Implicit,
    }
}

/// An endpoint whose key is computed per message.
fn computed(cx: &mut Compiler<'_>, el: &Element<'_>, text: &str, at: Place) -> Option<Destination> {
    let expression = crate::Expression::compile(cx, el, text, at.clone())?;
    let kind = EndpointKind::Indirect(Box::new(move |exchange: &mut Exchange| {
        let key = expression.text(exchange)?;
        if key.is_empty() {
            let text = "Couldn't find the endpoint with the key : ";
            return Err(Fault::coded(codes::INDIRECT_MISSING, penstock_engine::Side::Us, text));
        }
        Ok(Destination::Named(key.into()))
    }));
    let endpoint =
        Endpoint { name: None, at, kind, policy: EndpointPolicy::default(), state: EndpointState::default() };
    Some(Destination::Endpoint(cx.add_endpoint(endpoint)))
}

/// Compiles an endpoint with a definition of its own.
pub fn compile(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Endpoint> {
    let name = el.attribute("name").filter(|name| !name.is_empty());
    if let Some(template) = el.attribute("template") {
        return template::instantiate(cx, el, template, name);
    }
    let at = el.place();
    let mut policy = EndpointPolicy::default();
    let mut kind = None;
    let session = el.child("session");
    for child in el.children() {
        let found = match child.name() {
            "address" => leaf(address::compile(cx, &child), &child, &mut policy, cx),
            "http" => {
                let (http, token) = http::compile(cx, &child)?;
                let kind = leaf(Some(http), &child, &mut policy, cx);
                policy.token = token;
                kind
            }
            "default" => leaf(Some(Box::new(ImplicitLeaf::read(&child, cx)) as Box<dyn Leaf>), &child, &mut policy, cx),
            "wsdl" => leaf(address::compile_wsdl(cx, &child), &child, &mut policy, cx),
            "failover" => Some(group::failover(cx, &child)),
            "loadbalance" => Some(group::load_balance(cx, &child, session.as_ref())),
            "recipientlist" => Some(group::recipients(cx, &child)),
            "endpoint" => {
                // A definition that is wrapped once more.
                let inner = compile(cx, &child)?;
                policy = inner.policy;
                Some(inner.kind)
            }
            "property" => continue,
            "session" | "description" | "parameter" => {
                child.accept_all();
                continue;
            }
            "dynamicLoadbalance" => {
                let handler = child.child("membershipHandler").and_then(|handler| handler.attribute("class"));
                let handler = handler.unwrap_or("its membership handler").to_owned();
                cx.error(
                    child.place(),
                    format!("<dynamicLoadbalance> needs the Java class `{handler}`, which cannot be run"),
                );
                child.accept_all();
                return None;
            }
            "class" => {
                let class = child.attribute("name").unwrap_or_default().to_owned();
                cx.error(child.place(), format!("the endpoint is the Java class `{class}`, which cannot be run"));
                child.accept_all();
                return None;
            }
            other => {
                cx.warn(child.place(), format!("<endpoint> does not know the element <{other}>"));
                child.accept_all();
                continue;
            }
        };
        child.finish(cx);
        kind = kind.or(Some(found?));
    }
    let Some(kind) = kind else {
        cx.error(el.place(), "<endpoint> needs <address>, <http>, <default> or a group");
        return None;
    };
    if let Some(prepare) = properties(cx, el) {
        policy.prepare = Some(prepare);
    }
    el.finish(cx);
    Some(Endpoint { name: name.map(Arc::from), at, kind, policy, state: EndpointState::default() })
}

/// The endpoint's own properties, which a message gets before it is sent.
fn properties(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Computed<()>> {
    let mut set: Vec<(Scope, Arc<str>, crate::expression::Text)> = Vec::new();
    for property in el.elements("property") {
        let Some(name) = property.required(cx, "name") else { continue };
        let scope = property.attribute("scope").unwrap_or_default();
        let scope = if scope.is_empty() { Some(Scope::Default) } else { Scope::parse(scope) };
        let Some(scope) = scope else {
            cx.error(
                property.attribute_place("scope"),
                "the scope is not one of default, axis2, axis2-client, transport",
            );
            continue;
        };
        let text = match (property.attribute("value"), property.attribute("expression")) {
            (Some(value), _) => {
                let value = configured(cx, value, &property.attribute_place("value"));
                crate::expression::Text::compile(cx, &property, &value, property.value_place("value"))
            }
            (None, Some(expression)) => {
                crate::Expression::compile(cx, &property, expression, property.value_place("expression"))
                    .map(crate::expression::Text::Computed)
            }
            (None, None) => None,
        };
        property.finish(cx);
        if let Some(text) = text {
            set.push((scope, name.into(), text));
        }
    }
    if set.is_empty() {
        return None;
    }
    Some(Box::new(move |exchange: &mut Exchange| {
        for (scope, name, text) in &set {
            let value = text.text(exchange)?;
            exchange.set_property(*scope, name, Value::String(value));
        }
        Ok(())
    }))
}

fn leaf(
    leaf: Option<Box<dyn Leaf>>,
    el: &Element<'_>,
    policy: &mut EndpointPolicy,
    cx: &mut Compiler<'_>,
) -> Option<EndpointKind> {
    *policy = policy::read(cx, el);
    leaf.map(EndpointKind::Leaf)
}

/// `<default>`: the message's own `To`.
struct ImplicitLeaf {
    format: penstock_engine::endpoint::Format,
}

impl ImplicitLeaf {
    fn read(el: &Element<'_>, cx: &mut Compiler<'_>) -> ImplicitLeaf {
        address::unsupported_form(cx, el);
        ImplicitLeaf { format: address::format(cx, el) }
    }
}

impl Leaf for ImplicitLeaf {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let to = exchange.message.addressing.as_ref().and_then(|addressing| addressing.to.clone());
        let url = to.ok_or_else(|| Fault::new("a <default> endpoint sends to the message's `To`, which is not set"))?;
        Ok(Target {
            url,
            method: None,
            format: self.format,
            append_postfix: true,
            headers: Vec::new(),
            tls: None,
            addressing: None,
        })
    }
}
