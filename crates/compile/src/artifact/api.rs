//! `<api name="…" context="…">`: resources by method and path.

use std::sync::Arc;

use penstock_engine::route::{Api, Pattern, Resource, UriTemplate, Version};
use penstock_message::Method;

use super::sequence;
use crate::{Compiler, Element};

/// Adds the API to the program's routes.
pub(super) fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    let Some(context) = el.required(cx, "context") else { return };
    if !context.starts_with('/') {
        cx.error(el.attribute_place("context"), format!("the context `{context}` must start with `/`"));
        return;
    }
    let version = el.attribute("version").filter(|version| !version.is_empty());
    let version_type = el.attribute("version-type").unwrap_or(if version.is_some() { "url" } else { "" });
    let trimmed = context.trim_end_matches('/');
    let context = match (version, version_type) {
        (Some(version), "context") => trimmed.replace("{version}", version),
        (Some(version), _) => format!("{trimmed}/{version}"),
        (None, _) => trimmed.to_owned(),
    };
    let full_name = version.map_or_else(|| name.to_owned(), |version| format!("{name}:v{version}"));
    let mut api = Api {
        label: format!("{{api:{full_name}}}").into(),
        name: full_name.into(),
        context: if context.is_empty() { "/".into() } else { context.into() },
        version: version.map(|text| Version { text: text.into() }),
        host: el.attribute("hostname").map(Arc::from),
        port: el.attribute("port").and_then(|port| port.trim().parse().ok()),
        at: el.place(),
        ..Api::default()
    };
    let secure = match el.attribute("transports").or_else(|| el.attribute("protocol")) {
        Some("http") => Some(false),
        Some("https") => Some(true),
        _ => None,
    };
    if let Some(path) = el.attribute("publishSwagger") {
        api.swagger = cx.program.resources.get(path).map(|resource| resource.text().into());
    }
    for resource in el.elements("resource") {
        if let Some(mut resource) = build_resource(cx, &resource) {
            resource.secure = resource.secure.or(secure);
            api.resources.push(resource);
        }
    }
    handlers(cx, el, &mut api);
    if let Some(cors) = el.child("cors").filter(|cors| cors.flag("enabled", true)) {
        // The element says what the handler's properties say.
        let kind = cx.registry.handlers.iter().find(|kind| kind.class.ends_with(".CORSRequestHandler"));
        if let Some(mediator) = kind.and_then(|kind| (kind.compile)(&cors, cx)) {
            api.handlers.insert(0, cx.sequence_of_one(mediator, "cors", cors.place()));
        }
        cors.finish(cx);
    }
    el.finish(cx);
    if cx.errors_so_far() == errors {
        cx.program.routes.add_api(api);
    }
}

/// `<handlers>`: Java classes of the original that run before any resource.
fn handlers(cx: &mut Compiler<'_>, el: &Element<'_>, api: &mut Api) {
    for handler in el.elements("handlers").flat_map(|handlers| handlers.elements("handler").collect::<Vec<_>>()) {
        let Some(class) = handler.required(cx, "class") else { continue };
        match cx.registry.handlers.iter().find(|kind| kind.class == class) {
            Some(kind) => {
                let at = handler.place();
                if let Some(mediator) = (kind.compile)(&handler, cx) {
                    api.handlers.push(cx.sequence_of_one(mediator, "handler", at));
                }
                handler.finish(cx);
            }
            None => {
                handler.accept_all();
                // Serving an API without the check its handler makes would open a door.
                cx.error(
                    handler.place(),
                    format!("the API handler `{class}` is a Java class that has no counterpart here"),
                );
            }
        }
    }
}

fn build_resource(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Resource> {
    let methods = el.attribute("methods").unwrap_or_default();
    let methods = methods
        .split([' ', ','])
        .filter(|method| !method.is_empty())
        .map(|method| Method::parse(&method.to_uppercase()));
    let secure = match el.attribute("protocol") {
        Some("http") => Some(false),
        Some("https") => Some(true),
        _ => None,
    };
    el.attribute("content-type");
    el.attribute("user-agent");
    let pattern = match (el.attribute("uri-template"), el.attribute("url-mapping")) {
        (Some(template), _) => match UriTemplate::parse(template) {
            Ok(template) => Pattern::Template(template),
            Err(error) => {
                cx.error(el.attribute_place("uri-template"), error.to_string());
                return None;
            }
        },
        (None, Some(mapping)) => Pattern::Mapping(mapping.into()),
        (None, None) => Pattern::Default,
    };
    let resource = Resource {
        methods: methods.collect(),
        pattern,
        in_sequence: sequence::part(cx, el, "inSequence"),
        out_sequence: sequence::part(cx, el, "outSequence"),
        fault_sequence: sequence::part(cx, el, "faultSequence"),
        secure,
        at: el.place(),
    };
    el.finish(cx);
    Some(resource)
}
