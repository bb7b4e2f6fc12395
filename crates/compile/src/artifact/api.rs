//! `<api name="…" context="…">`: resources by method and path.

use std::sync::Arc;

use penstock_engine::route::{Api, Pattern, Resource, TextTest, UriTemplate, Version};
use penstock_message::Method;

use super::kind::{ArtifactKind, ArtifactName, withdraw_nothing};
use super::sequence;
use crate::compiler::NameKind;
use crate::diagnostic::suggestion;
use crate::{Compiler, Element};

/// The methods of the registry of RFC 9110 §16.1.1 that a client may send.
const METHODS: [&str; 18] = [
    "GET",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "HEAD",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "SEARCH",
    "REPORT",
];

/// The kind. One with errors is not added to the routes, so nothing is withdrawn.
pub(super) const KIND: ArtifactKind =
    ArtifactKind { element: "api", name: ArtifactName::Attribute("name"), declare, build, withdraw: withdraw_nothing };

fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    cx.declare(NameKind::API, &full_name(name, version(el)), el.place());
}

fn version<'a>(el: &Element<'a>) -> Option<&'a str> {
    el.attribute("version").filter(|version| !version.is_empty())
}

/// `NAME` or `NAME:vVERSION`: versions of an API share its name.
fn full_name(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}:v{version}"))
}

/// Adds the API to the program's routes.
fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    let Some(context) = el.required(cx, "context") else { return };
    if !context.starts_with('/') {
        cx.error(el.attribute_place("context"), format!("the context `{context}` must start with `/`"));
        return;
    }
    let version = version(el);
    let version_type = el.attribute("version-type").unwrap_or(if version.is_some() { "url" } else { "" });
    let trimmed = context.trim_end_matches('/');
    let context = match (version, version_type) {
        (Some(version), "context") => trimmed.replace("{version}", version),
        (Some(version), _) => format!("{trimmed}/{version}"),
        (None, _) => trimmed.to_owned(),
    };
    let full_name = full_name(name, version);
    let mut api = Api {
        label: format!("{{api:{full_name}}}").into(),
        name: full_name.into(),
        context: if context.is_empty() { "/".into() } else { context.into() },
        version: version.map(|text| Version { text: text.into() }),
        host: el.attribute("hostname").filter(|host| !host.is_empty()).map(Arc::from),
        port: el.attribute("port").and_then(|port| port.trim().parse().ok()),
        secure: protocol(cx, el, "transports"),
        binds_to: bindings(el),
        at: el.place(),
        ..Api::default()
    };
    if let Some(path) = el.attribute("publishSwagger") {
        api.swagger = cx.resource(path).map(|resource| resource.text().into());
    }
    for resource in el.elements("resource") {
        let at = resource.place();
        if let Some(resource) = build_resource(cx, &resource) {
            if let Some(why) = conflict(&api, &resource) {
                cx.error(at, why);
            }
            api.resources.push(resource);
        }
    }
    if api.resources.is_empty() && cx.errors_so_far() == errors {
        cx.error(el.place(), format!("the API `{name}` has no resource"));
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
    el.finish_knowing(cx, &["resource", "handlers", "cors"]);
    if let Some(other) = hidden_by(cx, &api) {
        // A second API of the same name has been reported when it was declared.
        if other.name != api.name {
            let message = format!(
                "the context `{}` is already registered by the API `{}` at {}",
                api.context, other.name, other.at
            );
            cx.error(el.attribute_place("context"), message);
        }
        return;
    }
    if cx.errors_so_far() == errors {
        cx.add_api(Arc::new(api));
    }
}

/// The API of the program whose routes hide those of another.
pub(super) fn hidden_by<'c>(cx: &'c Compiler<'_>, api: &Api) -> Option<&'c Arc<Api>> {
    cx.program.routes.apis().iter().find(|other| is_same_address(other, api))
}

/// `binds-to`: inbound endpoints, separated by commas.
fn bindings(el: &Element<'_>) -> Vec<Arc<str>> {
    let names = el.attribute("binds-to").unwrap_or_default().split(',');
    names.map(str::trim).filter(|name| !name.is_empty()).map(Arc::from).collect()
}

/// Whether the routes of one API hide those of the other.
fn is_same_address(left: &Api, right: &Api) -> bool {
    let version = |api: &Api| api.version.as_ref().map(|version| version.text.clone());
    left.context == right.context
        && version(left) == version(right)
        && left.host == right.host
        && left.port == right.port
        && left.binds_to == right.binds_to
        && (left.secure == right.secure || left.secure.is_none() || right.secure.is_none())
}

/// `<handlers>`: Java classes of Micro Integrator that run before any resource.
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

/// `http` or `https`, where that is all.
fn protocol(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Option<bool> {
    match el.attribute(name).filter(|value| !value.is_empty())? {
        "http" => Some(false),
        "https" => Some(true),
        other => {
            cx.warn(el.attribute_place(name), format!("the protocol `{other}` is neither http nor https"));
            None
        }
    }
}

/// Why a resource cannot stand beside those the API has.
fn conflict(api: &Api, resource: &Resource) -> Option<&'static str> {
    let shares_a_method = |other: &Resource| other.methods.iter().any(|method| resource.methods.contains(method));
    let path = |resource: &Resource| match &resource.pattern {
        Pattern::Default => None,
        Pattern::Mapping(mapping) => Some(mapping.to_string()),
        Pattern::Template(template) => Some(template.text().to_owned()),
    };
    match path(resource) {
        None => api
            .resources
            .iter()
            .any(|other| matches!(other.pattern, Pattern::Default))
            .then_some("an API has one resource without a path, and this one has two"),
        own => api
            .resources
            .iter()
            .any(|other| path(other) == own && shares_a_method(other))
            .then_some("another resource has the same path and method"),
    }
}

/// `user-agent`: a regular expression for the whole name.
fn agent_test(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<TextTest> {
    let pattern = el.attribute("user-agent").filter(|pattern| !pattern.is_empty())?;
    match regex::Regex::new(&format!("^(?:{pattern})$")) {
        Ok(regex) => Some(Box::new(move |name| regex.is_match(name))),
        Err(error) => {
            cx.error(el.attribute_place("user-agent"), format!("`{pattern}` is not a regular expression: {error}"));
            None
        }
    }
}

/// The methods of a resource. Micro Integrator refuses an API with others.
fn methods(cx: &mut Compiler<'_>, el: &Element<'_>) -> Vec<Method> {
    let names = el.attribute("methods").unwrap_or_default();
    let mut methods = Vec::new();
    for name in names.split([' ', ',']).filter(|name| !name.is_empty()) {
        let upper = name.to_uppercase();
        if !METHODS.contains(&upper.as_str()) {
            let meant = suggestion(&upper, METHODS.into_iter());
            let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
            cx.error(el.attribute_place("methods"), format!("unknown HTTP method `{name}`{hint}"));
        }
        methods.push(Method::parse(&upper));
    }
    methods
}

fn build_resource(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Resource> {
    let methods = methods(cx, el);
    let secure = protocol(cx, el, "protocol");
    let path = |name| el.attribute(name).filter(|path| !path.is_empty());
    let pattern = match (path("url-mapping"), path("uri-template")) {
        (Some(mapping), _) => Pattern::Mapping(mapping.into()),
        (None, Some(template)) => match UriTemplate::parse(template) {
            Ok(template) => Pattern::Template(template),
            Err(error) => {
                cx.error(el.attribute_place("uri-template"), error.to_string());
                return None;
            }
        },
        (None, None) => Pattern::Default,
    };
    let resource = Resource {
        methods: methods.into_iter().collect(),
        pattern,
        in_sequence: sequence::part(cx, el, "inSequence"),
        out_sequence: sequence::part(cx, el, "outSequence"),
        fault_sequence: sequence::part(cx, el, "faultSequence"),
        secure,
        content_type: el.attribute("content-type").filter(|kind| !kind.is_empty()).map(Arc::from),
        user_agent: agent_test(cx, el),
        at: el.place(),
    };
    el.finish_knowing(cx, &["inSequence", "outSequence", "faultSequence"]);
    Some(resource)
}
