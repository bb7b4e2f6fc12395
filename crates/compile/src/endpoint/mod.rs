//! `<endpoint>`: addresses, groups, references and templates.

mod address;
mod expand;
mod http;
mod policy;
mod template;

pub(crate) use policy::configured;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use penstock_engine::endpoint::{Endpoint, EndpointKind, EndpointPolicy, EndpointState, Leaf, Target};
use penstock_engine::{Destination, EndpointId, Exchange, Fault, Place, Resource, codes};

use crate::{Compiler, Element};

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
    cx.program.endpoint_names.insert(name.into(), id);
    id
}

/// Fills a reserved endpoint. One with errors keeps answering with a fault.
pub(crate) fn fill(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let Some(id) = cx.program.endpoint_names.get(name).copied() else { return };
    let errors = cx.errors_so_far();
    if let Some(endpoint) = compile(cx, el)
        && cx.errors_so_far() == errors
    {
        cx.program.endpoints[id.0 as usize] = Arc::new(endpoint);
    }
}

/// An endpoint that is a registry resource or local entry.
pub(crate) fn from_resource(cx: &mut Compiler<'_>, key: &str, resource: &Arc<Resource>) -> Option<Destination> {
    let options = penstock_xml::ParseOptions::default();
    let document = penstock_xml::Document::parse(resource.bytes.clone(), &options).ok()?;
    let source = crate::Source::new(resource.at.file.clone(), Arc::new(document));
    let root = source.root().filter(|root| root.name() == "endpoint")?;
    let id = reserve(cx, key, resource.at.clone());
    fill(cx, key, &root);
    Some(Destination::Endpoint(id))
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
            return Err(Fault::coded(
                codes::INDIRECT_MISSING,
                penstock_engine::Side::Us,
                "the endpoint's key is empty",
            ));
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
    for child in el.children() {
        let found = match child.name() {
            "address" => leaf(address::compile(cx, &child), &child, &mut policy, cx),
            "http" => leaf(http::compile(cx, &child), &child, &mut policy, cx),
            "default" => leaf(Some(Box::new(ImplicitLeaf::read(&child, cx)) as Box<dyn Leaf>), &child, &mut policy, cx),
            "wsdl" => leaf(address::compile_wsdl(cx, &child), &child, &mut policy, cx),
            "failover" => {
                let dynamic = child.flag("dynamic", true);
                child.attribute("buildMessage");
                Some(EndpointKind::Failover { members: members(cx, &child), dynamic })
            }
            "loadbalance" => {
                let failover = child.flag("failover", true);
                for known in ["algorithm", "policy", "buildMessage"] {
                    child.attribute(known);
                }
                Some(EndpointKind::LoadBalance { members: members(cx, &child), failover, next: AtomicUsize::new(0) })
            }
            "recipientlist" => Some(EndpointKind::Recipients { members: members(cx, &child) }),
            "session" => {
                cx.warn(child.place(), "<session> affinity is not supported yet; members take turns");
                child.accept_all();
                continue;
            }
            "property" | "description" | "parameter" => {
                child.accept_all();
                continue;
            }
            "dynamicLoadbalance" | "class" => {
                cx.error(child.place(), format!("endpoint <{}> is not supported yet", child.name()));
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
        cx.error(el.place(), "<endpoint> says no address: it needs <address>, <http>, <default> or a group");
        return None;
    };
    el.finish(cx);
    Some(Endpoint { name: name.map(Arc::from), at, kind, policy, state: EndpointState::default() })
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

fn members(cx: &mut Compiler<'_>, group: &Element<'_>) -> Vec<Destination> {
    let mut found = Vec::new();
    for member in group.elements("endpoint") {
        found.push(destination(cx, &member));
    }
    for member in group.elements("member") {
        member.accept_all();
        cx.warn(member.place(), "<member> of the application-level kind is not supported yet; use <endpoint>");
    }
    if found.is_empty() {
        cx.error(group.place(), format!("<{}> has no <endpoint>", group.name()));
    }
    found
}

/// `<default>`: the message's own `To`.
struct ImplicitLeaf {
    format: penstock_engine::endpoint::Format,
}

impl ImplicitLeaf {
    fn read(el: &Element<'_>, cx: &mut Compiler<'_>) -> ImplicitLeaf {
        ImplicitLeaf { format: address::format(cx, el) }
    }
}

impl Leaf for ImplicitLeaf {
    fn target(&self, exchange: &mut Exchange) -> Result<Target, Fault> {
        let to = exchange.message.addressing.as_ref().and_then(|addressing| addressing.to.clone());
        let url = to.ok_or_else(|| Fault::new("a <default> endpoint sends to the message's `To`, which is not set"))?;
        Ok(Target { url, method: None, format: self.format, append_postfix: false, headers: Vec::new() })
    }
}
