//! `<data name="…">`: from the artifact to a service.

mod query;
mod result;
mod source;
mod template;

use std::collections::HashMap;
use std::sync::Arc;

use penstock_compile::{ArtifactKind, ArtifactName, Compiler, Element, NameKind, withdraw_nothing};
use penstock_engine::route::{Definition, Proxy, Switch};
use penstock_engine::{Resource, Step};
use penstock_message::Method;

use crate::boxcar::Boxcars;
use crate::call::{DATA_SERVICE, Slot, slot, slot_key};
use crate::describe;
use crate::mediator::Serve;
use crate::model::{Argument, DEFAULT_NAMESPACE, DataService, Operation, QueryCall, RestResource, Segment};

/// The kind.
pub const KIND: ArtifactKind =
    ArtifactKind { element: "data", name: ArtifactName::Attribute("name"), declare, build, withdraw: withdraw_nothing };

fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    cx.declare(DATA_SERVICE, name, el.place());
    cx.declare(NameKind::PROXY, name, el.place());
    cx.declare_connection(&slot_key(name), Arc::new(Slot::new()));
}

/// The indexes of sources and queries by their names.
#[derive(Default)]
struct Names {
    /// Sources with errors have no index.
    sources: HashMap<String, Option<usize>>,
    queries: HashMap<String, usize>,
}

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let errors = cx.errors_so_far();
    let attribute = |name: &str| el.attribute(name).filter(|text| !text.is_empty());
    let namespace = attribute("serviceNamespace").or_else(|| attribute("baseURI")).unwrap_or(DEFAULT_NAMESPACE);
    el.attribute("baseURI");
    for unused in ["serviceGroup", "txManagerJNDIName"] {
        el.attribute(unused);
    }
    let is_buffered = el.flag("disableStreaming", false);
    let mut names = Names::default();
    let mut sources = Vec::new();
    for config in el.elements("config") {
        let id = config.attribute("id").unwrap_or(source::DEFAULT_ID);
        let source = source::read(cx, &config, name, id);
        names.sources.insert(id.to_owned(), source.is_some().then_some(sources.len()));
        sources.extend(source);
    }
    let elements: Vec<Element<'_>> = el.elements("query").collect();
    for (index, query) in elements.iter().enumerate() {
        if let Some(id) = query.required(cx, "id")
            && names.queries.insert(id.to_owned(), index).is_some()
        {
            cx.error(query.attribute_place("id"), format!("the query `{id}` is defined twice"));
        }
    }
    let mut queries = Vec::new();
    for query in &elements {
        queries.extend(query::read(cx, query, &names, &sources));
    }
    let mut operations = Vec::new();
    for operation in el.elements("operation") {
        let Some(name) = operation.required(cx, "name") else { continue };
        operations.push(read_operation(cx, &operation, name.into(), &names, is_buffered));
    }
    let mut resources = Vec::new();
    for resource in el.elements("resource") {
        let (Some(path), Some(method)) = (resource.required(cx, "path"), resource.required(cx, "method")) else {
            continue;
        };
        let name = request_name(method, path);
        let operation = read_operation(cx, &resource, name.into(), &names, is_buffered);
        resources.push(RestResource {
            method: Method::parse(method),
            written: path.into(),
            path: segments(path),
            operation: operations.len(),
        });
        operations.push(operation);
    }
    // A text fits before a variable does.
    resources.sort_by_key(|resource: &RestResource| {
        resource.path.iter().filter(|segment| matches!(segment, Segment::Variable(_))).count()
    });
    unsupported(cx, el);
    let has_boxes = el.flag("enableBoxcarring", false);
    let has_sessions = has_boxes && !el.flag("disableLegacyBoxcarringMode", false);
    let service = DataService {
        name: name.into(),
        namespace: namespace.into(),
        location: el.place().file,
        description: el.child_text("description").filter(|text| !text.is_empty()).unwrap_or("N/A".into()).into(),
        sources,
        queries,
        operations,
        resources,
        has_batches: el.flag("enableBatchRequests", false),
        has_boxes,
        boxcars: has_sessions.then(Boxcars::default),
    };
    let mut proxy = proxy(cx, el, name);
    let published = published_definition(cx, el);
    let is_inactive = el.attribute("serviceStatus").is_some_and(|status| status.eq_ignore_ascii_case("inactive"));
    proxy.is_stopped = Switch::new(is_inactive);
    el.finish_knowing(cx, &["config", "query", "operation", "resource", "description"]);
    if cx.errors_so_far() > errors {
        return;
    }
    // Only a service without errors can be described: its operations refer to queries that were read.
    let service = Arc::new(service);
    let generated = || Definition::Generated(Arc::new(describe::openapi(&service)));
    proxy.definition = Some(published.map_or_else(generated, Definition::Published));
    proxy.wsdl = Some(Arc::new(Resource {
        bytes: describe::wsdl(&service, proxy.http, proxy.https).into(),
        media_type: None,
        is_xml: true,
        at: el.place(),
        properties: Vec::new(),
    }));
    proxy.operations = service.operations.iter().map(|operation| operation.name.clone()).collect();
    let mediator = Box::new(Serve { service: service.clone() });
    proxy.in_sequence = Some(cx.add_sequence(vec![Step { mediator, kind: "data", at: el.place() }]));
    if let Some(slot) = slot(cx, name) {
        // A second service of the name is not served; what refers to the name means the first.
        let _ = slot.set(service);
    }
    cx.add_proxy(Arc::new(proxy));
}

/// The OpenAPI definition that `publishSwagger` names in the registry.
fn published_definition(cx: &mut Compiler<'_>, el: &Element<'_>) -> Option<Arc<Resource>> {
    let key = el.attribute("publishSwagger").map(str::trim).filter(|key| !key.is_empty())?;
    // The names of registries in paths: `gov:` is `governance/`.
    let path = |prefix: &str, short: &str| {
        key.trim_start_matches('/').strip_prefix(prefix).map(|rest| format!("{short}:{rest}"))
    };
    let short = path("governance/", "gov").or_else(|| path("config/", "conf"));
    let found = cx.resource(key).or_else(|| cx.resource(&short?));
    if found.is_none() {
        let message = format!("the registry has no `{key}`: the definition is generated from the resources");
        cx.warn(el.attribute_place("publishSwagger"), message);
    }
    found
}

fn proxy(cx: &mut Compiler<'_>, el: &Element<'_>, name: &str) -> Proxy {
    let transports = el.attribute("transports").unwrap_or("http https local").to_owned();
    let offers = |wanted: &str| transports.split([' ', ',']).any(|transport| transport == wanted);
    let known = ["http", "https", "local", ""];
    if let Some(other) = transports.split([' ', ',']).find(|transport| !known.contains(transport)) {
        let message = format!("the transport `{other}` is not supported for data services");
        cx.warn(el.attribute_place("transports"), message);
    }
    Proxy {
        name: name.into(),
        label: format!("{{dataservice:{name}}}").into(),
        http: offers("http"),
        https: offers("https"),
        local: offers("local"),
        at: el.place(),
        ..Proxy::default()
    }
}

/// Parts that Penstock does not run. Those that protect keep the service from being served.
fn unsupported(cx: &mut Compiler<'_>, el: &Element<'_>) {
    for trigger in el.elements("event-trigger") {
        trigger.accept_all();
        cx.warn(trigger.place(), "<event-trigger> is not supported: no events are sent");
    }
    for policy in el.elements("policy").chain(el.elements("enableSec")) {
        policy.accept_all();
        cx.unprotected(policy.place(), "WS-Security of data services is not supported");
    }
    for provider in el.elements("authorization_provider") {
        provider.accept_all();
        cx.unprotected(provider.place(), "an <authorization_provider> is a Java class, which Penstock does not run");
    }
}

fn read_operation(
    cx: &mut Compiler<'_>,
    el: &Element<'_>,
    name: Arc<str>,
    names: &Names,
    is_buffered: bool,
) -> Operation {
    let calls = el.elements("call-query").collect::<Vec<_>>();
    let calls = calls.iter().filter_map(|call| read_call(cx, call, names)).map(Arc::new).collect::<Vec<_>>();
    if calls.is_empty() {
        cx.error(el.place(), format!("<{}> needs <call-query>", el.name()));
    }
    let operation = Operation {
        name,
        calls,
        returns_status: el.flag("returnRequestStatus", false),
        is_buffered: el.flag("disableStreaming", is_buffered),
    };
    el.finish_knowing(cx, &["call-query", "description"]);
    operation
}

/// Reads `<call-query>`.
fn read_call(cx: &mut Compiler<'_>, el: &Element<'_>, names: &Names) -> Option<QueryCall> {
    let href = el.required(cx, "href")?;
    let mut arguments = Vec::new();
    for argument in el.elements("with-param") {
        let Some(name) = argument.required(cx, "name") else { continue };
        let (from, kind) = match (argument.attribute("query-param"), argument.attribute("column")) {
            (Some(from), _) => (from, "query-param"),
            (None, Some(from)) => (from, "column"),
            (None, None) => (name, "query-param"),
        };
        arguments.push(Argument {
            parameter: name.trim().to_lowercase().into(),
            written: from.trim().into(),
            from: from.trim().to_lowercase().into(),
            kind,
        });
        argument.finish(cx);
    }
    let roles = result::roles(el);
    el.finish_knowing(cx, &["with-param"]);
    let Some(query) = names.queries.get(href) else {
        let hint = penstock_compile::suggestion(href, names.queries.keys().map(String::as_str));
        let hint = hint.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        cx.error(el.attribute_place("href"), format!("unknown query `{href}`{hint}"));
        return None;
    };
    Some(QueryCall { query: *query, arguments, roles })
}

/// What Micro Integrator calls the request of a resource: `_getproduct_code` for `GET product/{code}`.
fn request_name(method: &str, path: &str) -> String {
    let path: String = path.chars().filter(|letter| !matches!(letter, '{' | '}')).collect();
    format!("_{}{}", method.to_lowercase(), path.replace('/', "_").to_lowercase())
}

fn segments(path: &str) -> Vec<Segment> {
    let segment = |text: &str| match text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) {
        Some(name) => Segment::Variable(name.trim().to_lowercase().into()),
        None => Segment::Text(text.to_owned()),
    };
    path.split('/').filter(|text| !text.is_empty()).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_resources_have_names() {
        for (method, path, expected) in [
            ("GET", "product/{code}", "_getproduct_code"),
            ("POST", "/Employee", "_post_employee"),
            ("POST", "employee", "_postemployee"),
        ] {
            assert_eq!(request_name(method, path), expected);
        }
    }
}
