//! `<proxy name="…">`: a service at `/services/NAME`.

use std::sync::Arc;
use std::time::Duration;

use penstock_engine::background::{BackgroundService, Pace, RunService};
use penstock_engine::route::{Proxy, Switch};
use penstock_xml::{Document, ParseOptions};

use super::kind::{ArtifactKind, ArtifactName, withdraw_nothing};
use super::sequence;
use crate::compiler::NameKind;
use crate::inbound::{self, Feed, LISTENER, ListenerKind, ProxyListener};
use crate::{Compiler, Element, Parameters, content_hash, endpoint};

/// The kind. One with errors is not added to the routes, so nothing is withdrawn.
pub(super) const KIND: ArtifactKind = ArtifactKind {
    element: "proxy",
    name: ArtifactName::Attribute("name"),
    declare,
    build,
    withdraw: withdraw_nothing,
};

fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    cx.declare(NameKind::PROXY, name, el.place());
}

/// Adds the proxy service to the program's routes.
fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if cx.program.routes.proxy(name).is_some() {
        // Reported when it was declared.
        return el.accept_all();
    }
    let errors = cx.errors_so_far();
    for unused in ["pinnedServers", "serviceGroup"] {
        el.attribute(unused);
    }
    let transports = el.attribute("transports").unwrap_or("http https");
    let offers = |wanted: &str| transports.split([' ', ',']).any(|transport| transport.trim() == wanted);
    let mut listeners = Vec::new();
    for transport in transports.split([' ', ',']).map(str::trim) {
        if matches!(transport, "" | "http" | "https" | "local") {
            continue;
        }
        match cx.registry.listeners().find(|kind| kind.transport == transport) {
            Some(kind) => listeners.push(kind),
            None => {
                let message =
                    format!("the transport `{transport}` is not supported yet; the service is not offered over it");
                cx.warn(el.attribute_place("transports"), message);
            }
        }
    }
    let mut proxy = Proxy {
        name: name.into(),
        label: format!("{{proxy:{name}}}").into(),
        http: offers("http"),
        https: offers("https"),
        local: offers("local"),
        is_stopped: Switch::new(!el.flag("startOnLoad", true)),
        at: el.place(),
        ..Proxy::default()
    };
    if let Some(target) = el.child("target") {
        proxy.in_sequence = sequence::part(cx, &target, "inSequence");
        proxy.out_sequence = sequence::part(cx, &target, "outSequence");
        proxy.fault_sequence = sequence::part(cx, &target, "faultSequence");
        if let Some(key) = target.attribute("endpoint") {
            proxy.endpoint = Some(cx.endpoint_ref(key, target.attribute_place("endpoint")));
        } else if let Some(inline) = target.child("endpoint") {
            proxy.endpoint = Some(endpoint::destination(cx, &inline));
        }
        target.finish_knowing(cx, &["inSequence", "outSequence", "faultSequence", "endpoint"]);
    }
    if let Some(publish) = el.child("publishWSDL") {
        publish_wsdl(cx, &publish, &mut proxy);
    }
    for parameter in el.elements("parameter") {
        if let Some(key) = parameter.attribute("name") {
            proxy.parameters.push((key.into(), parameter.text().into()));
        }
        parameter.accept_all();
    }
    let feeds = listen(cx, name, el, &listeners);
    security(cx, el, &mut proxy);
    if let Some(addressing) = el.child("enableAddressing") {
        addressing.accept_all();
        let message =
            "<enableAddressing> of a proxy service is not supported; its responses have no header of WS-Addressing";
        cx.warn(addressing.place(), message);
    }
    el.finish_knowing(cx, &["target", "publishWSDL", "parameter", "policy", "enableSec", "enableAddressing"]);
    if cx.errors_so_far() == errors {
        for (transport, runner) in feeds {
            cx.add_service(BackgroundService {
                kind: LISTENER,
                name: format!("{name}/{transport}").into(),
                content: content_hash(el),
                at: el.place(),
                starts_paused: proxy.is_stopped.is_on(),
                // Several nodes may listen side by side.
                is_coordinated: false,
                runner,
            });
        }
        cx.add_proxy(Arc::new(proxy));
    }
}

/// The services that bring messages in over transports other than HTTP.
fn listen(
    cx: &mut Compiler<'_>,
    name: &str,
    el: &Element<'_>,
    kinds: &[&ListenerKind],
) -> Vec<(&'static str, Arc<dyn RunService>)> {
    let mut feeds = Vec::new();
    if kinds.is_empty() {
        return feeds;
    }
    let parameters = Parameters::read(el, cx, true);
    for kind in kinds {
        let listener = ProxyListener::new(*el, name, kind.transport);
        if let Some(feed) = (kind.build)(&listener, &parameters, cx) {
            let pace = match &feed {
                Feed::Polled(_) => inbound::poll_interval(&parameters, el, cx),
                Feed::Service(_) => Duration::ZERO,
            };
            feeds.push((kind.transport, feed.into_service(Pace::Every(pace))));
        }
    }
    feeds
}

fn publish_wsdl(cx: &mut Compiler<'_>, publish: &Element<'_>, proxy: &mut Proxy) {
    publish.attribute("preservePolicy");
    let inline = publish.children().find(|child| child.name() != "resource");
    if let Some(key) = publish.attribute("key") {
        match cx.resource(key) {
            Some(resource) => proxy.wsdl = Some(resource.clone()),
            None => cx.unknown(NameKind::RESOURCE, key, publish.attribute_place("key")),
        }
    } else if let Some(inline) = inline {
        proxy.wsdl = Some(Arc::new(penstock_engine::Resource {
            bytes: inline.to_xml().into(),
            media_type: None,
            is_xml: true,
            at: inline.place(),
            properties: Vec::new(),
        }));
    } else if let Some(uri) = publish.attribute("uri").or_else(|| publish.attribute("endpoint")) {
        let message = format!("the WSDL at `{uri}` is not fetched; `?wsdl` answers with a generated one");
        cx.warn(publish.place(), message);
    }
    for resource in publish.elements("resource") {
        let (Some(location), Some(key)) = (resource.required(cx, "location"), resource.required(cx, "key")) else {
            continue;
        };
        match cx.resource(key) {
            Some(found) => proxy.wsdl_imports.push((location.into(), found.clone())),
            None => cx.unknown(NameKind::RESOURCE, key, resource.attribute_place("key")),
        }
        resource.finish(cx);
    }
    proxy.operations = proxy.wsdl.as_ref().map(|wsdl| operations(wsdl)).unwrap_or_default();
    publish.finish(cx);
}

/// The names of the operations of all port types.
fn operations(wsdl: &penstock_engine::Resource) -> Vec<Arc<str>> {
    let Ok(document) = Document::parse(wsdl.bytes.clone(), &ParseOptions::default()) else { return Vec::new() };
    let Some(root) = document.root_element() else { return Vec::new() };
    let children = |node, name: &'static str| {
        let document = &document;
        document.children(node).filter(move |child| document.is_element(*child) && document.local_name(*child) == name)
    };
    let mut names: Vec<Arc<str>> = Vec::new();
    for operation in children(root, "portType").flat_map(|kind| children(kind, "operation")) {
        let name = document.attribute(operation, "", "name").unwrap_or_default();
        if !name.is_empty() && !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
    names
}

/// `enableSec` and `policy`. Without `enableSec` a policy has no effect, as in Micro Integrator.
fn security(cx: &mut Compiler<'_>, el: &Element<'_>, proxy: &mut Proxy) {
    let policies: Vec<Element<'_>> = el.elements("policy").collect();
    let Some(enable) = el.child("enableSec") else {
        for policy in policies {
            policy.accept_all();
        }
        return;
    };
    let [policy] = policies.as_slice() else {
        for policy in &policies {
            policy.accept_all();
        }
        let message = match policies.len() {
            0 => "<enableSec> has no <policy>",
            _ => "more than one <policy> for <enableSec> is not supported",
        };
        cx.unprotected(enable.place(), message);
        return;
    };
    if policy.attribute("type").is_some_and(|kind| !kind.is_empty()) {
        cx.unprotected(policy.attribute_place("type"), "a security policy for one direction is not supported");
        return;
    }
    let Some(key) = policy.attribute("key") else {
        cx.unprotected(policy.place(), "the security policy has no `key`");
        return;
    };
    let Some(resource) = cx.resource(key) else {
        cx.unprotected(policy.attribute_place("key"), format!("the security policy `{key}` is not found"));
        return;
    };
    if let Some(secured) = (cx.registry.security)(&resource, &policy.place(), cx) {
        proxy.gate = Some(cx.sequence_of_one(secured.gate, "policy", policy.place()));
        proxy.seal = secured.seal;
        proxy.http &= !secured.needs_tls;
    }
}
