//! From a request to the operation it is for and its parameters.

use std::sync::Arc;

use penstock_engine::{Exchange, Fault};
use penstock_message::{MediaType, Method, SoapVersion, percent_decoded};
use penstock_xml::{Document, NodeId};
use serde_json::Value as Json;

use crate::boxcar::BoxcarStep;
use crate::fault::{DataServiceFault, FaultCode};
use crate::model::{DataService, Segment};
use crate::parameter::GivenParameters;
use crate::response::ResponseFormat;
use crate::run::{BoxFrame, Work};

/// What a batch operation is called after.
const BATCH: &str = "_batch_req";

/// The operation that runs others.
const BOX: &str = "request_box";

const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Requests of one box or batch: more is a load of data, which is a task for tools of the database.
const ITEMS_MAX: usize = 100_000;

/// A request as it was read.
pub struct Request {
    /// What it requests, or why it is refused.
    pub action: Result<Action, DataServiceFault>,
    /// In which format the response is written.
    pub format: ResponseFormat,
}

/// What a request does.
pub enum Action {
    /// It runs operations.
    Run(Work),
    /// It begins or ends a boxcar.
    Boxcar(BoxcarStep),
}

/// A body: the element or member that wraps the parameters.
pub enum Payload {
    /// There is none.
    None,
    /// An element.
    Xml(Arc<Document>, NodeId),
    /// A value.
    Json(Arc<Json>),
    /// Fields of a form.
    Form(String),
}

/// Reads a request of a client.
pub fn read(service: &DataService, exchange: &mut Exchange) -> Result<Request, Fault> {
    let media = exchange.message.content_type().map(MediaType::parse);
    let accept = exchange.message.headers.get("Accept").map(str::to_owned);
    let (payload, soap) = payload(exchange, media)?;
    let format = ResponseFormat::choose(accept.as_deref(), media, soap);
    let target = exchange.message.url_postfix.clone().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = match path.strip_prefix('.') {
        // The name of an endpoint: `Name.SOAP11Endpoint/operation`.
        Some(rest) => rest.find('/').map_or("", |slash| &rest[slash..]),
        None => path,
    };
    let action = exchange.message.action().map(str::to_owned);
    let method = exchange.client.line.method.clone();
    let action = find(service, &method, path, query, action.as_deref(), &payload);
    Ok(Request { action, format })
}

fn payload(exchange: &mut Exchange, media: Option<MediaType>) -> Result<(Payload, bool), Fault> {
    if exchange.message.body.is_empty() {
        return Ok((Payload::None, false));
    }
    Ok(match media {
        Some(MediaType::Json) => (Payload::Json(exchange.json()?), false),
        Some(MediaType::Form) => {
            let conversion = exchange.program().clone();
            let bytes = exchange.message.decoded_bytes(&conversion.conversion)?;
            (Payload::Form(String::from_utf8_lossy(&bytes).into_owned()), false)
        }
        Some(kind) if kind.is_xml() => {
            let envelope = exchange.xml()?;
            let is_soap = envelope.soap != SoapVersion::None;
            match envelope.payload() {
                Some(payload) => (Payload::Xml(envelope.document.clone(), payload), is_soap),
                None => (Payload::None, is_soap),
            }
        }
        _ => (Payload::None, false),
    })
}

/// The payload of a message, whatever its form.
pub fn payload_of(exchange: &mut Exchange) -> Result<Payload, Fault> {
    if exchange.message.source_media() == MediaType::Json {
        return Ok(Payload::Json(exchange.json()?));
    }
    let envelope = exchange.xml()?;
    let payload = envelope.payload();
    Ok(payload.map_or(Payload::None, |payload| Payload::Xml(envelope.document.clone(), payload)))
}

fn find(
    service: &DataService,
    method: &Method,
    path: &str,
    query: &str,
    action: Option<&str>,
    payload: &Payload,
) -> Result<Action, DataServiceFault> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.is_empty() {
        let by_action = action.map(|action| action.strip_prefix("urn:").unwrap_or(action)).map(last_segment);
        let by_action = by_action.filter(|name| is_operation(service, name)).map(str::to_owned);
        let name = by_action.or_else(|| payload.name()).unwrap_or_default();
        return by_name(service, &name, payload, query);
    }
    let mut other_methods = false;
    for resource in &service.resources {
        let batch = method == &Method::Post || method == &Method::Put || method == &Method::Delete;
        let Some((variables, is_batch)) = matched(&resource.path, &segments, batch && service.has_batches) else {
            continue;
        };
        if resource.method != *method {
            other_methods = true;
            continue;
        }
        if is_batch {
            return batch_of(service, resource.operation, payload).map(Action::Run);
        }
        let mut given = GivenParameters::default();
        add_query(&mut given, query);
        for (name, value) in variables {
            given.add(&name, Some(value.into()));
        }
        payload.add_parameters(&mut given);
        return Ok(Action::Run(Work::Single(resource.operation, given)));
    }
    if is_operation(service, segments[0]) && segments.len() == 1 {
        return by_name(service, segments[0], payload, query);
    }
    let mut fault =
        DataServiceFault::not_found(&format!("no operation or resource `{path}` takes {}", method.as_str()));
    if other_methods {
        fault.status = 405;
    }
    Err(fault)
}

fn last_segment(action: &str) -> &str {
    action.rsplit(['/', '#']).next().unwrap_or(action)
}

fn is_operation(service: &DataService, name: &str) -> bool {
    service.operation(name).is_some()
        || (service.boxcars.is_some() && BoxcarStep::parse(name).is_some())
        || (service.has_boxes && name == BOX)
        || (service.has_batches && name.strip_suffix(BATCH).is_some_and(|name| service.operation(name).is_some()))
}

fn by_name(service: &DataService, name: &str, payload: &Payload, query: &str) -> Result<Action, DataServiceFault> {
    match BoxcarStep::parse(name).filter(|_| service.boxcars.is_some()) {
        Some(step) => Ok(Action::Boxcar(step)),
        None => work(service, name, payload, query).map(Action::Run),
    }
}

/// The work of an operation by its name.
pub fn work(service: &DataService, name: &str, payload: &Payload, query: &str) -> Result<Work, DataServiceFault> {
    if service.has_boxes && name == BOX {
        return boxed(service, payload);
    }
    if let Some(operation) = service.operation(name) {
        let mut given = GivenParameters::default();
        add_query(&mut given, query);
        payload.add_parameters(&mut given);
        return Ok(Work::Single(operation, given));
    }
    let batch = name.strip_suffix(BATCH).filter(|_| service.has_batches).and_then(|name| service.operation(name));
    match batch {
        Some(operation) => batch_of(service, operation, payload),
        None => Err(DataServiceFault {
            status: if name.is_empty() { 404 } else { 500 },
            ..DataServiceFault::not_found(&format!("the operation `{name}` is not found"))
        }),
    }
}

fn batch_of(service: &DataService, operation: usize, payload: &Payload) -> Result<Work, DataServiceFault> {
    let items = payload.items()?;
    if items.is_empty() {
        let name = &service.operations[operation].name;
        let fault = DataServiceFault::new(FaultCode::IncompatibleParameters, "the batch has no requests");
        return Err(fault.of_request(name, "{}".to_owned()));
    }
    Ok(Work::Batch(operation, items.into_iter().map(|(_, given)| given).collect()))
}

fn boxed(service: &DataService, payload: &Payload) -> Result<Work, DataServiceFault> {
    let mut items = Vec::new();
    for (name, given) in payload.items()? {
        let Some(operation) = service.operation(&name) else {
            let message = format!("the operation `{name}` of the request box is not found");
            return Err(DataServiceFault::new(FaultCode::Unknown, message));
        };
        items.push((operation, given));
    }
    Ok(Work::Boxed(items, BoxFrame::Response))
}

/// The values of the variables of a path by their names.
type Variables = Vec<(Arc<str>, String)>;

/// The values of variables when a path fits, and whether its end asks for a batch.
fn matched(pattern: &[Segment], segments: &[&str], may_be_batch: bool) -> Option<(Variables, bool)> {
    if pattern.len() != segments.len() {
        return None;
    }
    let mut variables = Vec::new();
    let mut is_batch = false;
    for (index, (expected, segment)) in pattern.iter().zip(segments).enumerate() {
        let segment = percent_decoded(segment, false);
        match expected {
            Segment::Text(text) if *text == segment => {}
            Segment::Text(text)
                if may_be_batch && index + 1 == pattern.len() && segment.strip_suffix(BATCH) == Some(text) =>
            {
                is_batch = true;
            }
            Segment::Text(_) => return None,
            Segment::Variable(name) => variables.push((name.clone(), segment.into_owned())),
        }
    }
    Some((variables, is_batch))
}

impl Payload {
    /// The name of the root element, or of the only member.
    fn name(&self) -> Option<String> {
        match self {
            Payload::Xml(document, node) => Some(document.local_name(*node).to_owned()),
            Payload::Json(value) => value.as_object()?.keys().next().cloned(),
            Payload::None | Payload::Form(_) => None,
        }
    }

    /// Adds the children of the root, whatever its name is.
    fn add_parameters(&self, given: &mut GivenParameters) {
        match self {
            Payload::None => {}
            Payload::Form(text) => add_query(given, text),
            Payload::Xml(document, node) => add_children(given, document, *node),
            Payload::Json(value) => {
                let inner =
                    value.as_object().filter(|members| members.len() == 1).and_then(|members| members.values().next());
                match inner.filter(|inner| inner.is_object()) {
                    Some(inner) => add_members(given, inner),
                    None => add_members(given, value),
                }
            }
        }
    }

    /// The requests inside: the children of the root, with their names.
    fn items(&self) -> Result<Vec<(String, GivenParameters)>, DataServiceFault> {
        let mut items = Vec::new();
        match self {
            Payload::None | Payload::Form(_) => {}
            Payload::Xml(document, node) => {
                for child in document.children(*node).filter(|child| document.is_element(*child)) {
                    let mut given = GivenParameters::default();
                    add_children(&mut given, document, child);
                    items.push((document.local_name(child).to_owned(), given));
                }
            }
            Payload::Json(value) => {
                let root = value.as_object().and_then(|members| members.values().next());
                for (name, value) in root.and_then(Json::as_object).into_iter().flatten() {
                    let all = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
                    for value in all {
                        let mut given = GivenParameters::default();
                        add_members(&mut given, value);
                        items.push((name.clone(), given));
                    }
                }
            }
        }
        if items.len() > ITEMS_MAX {
            let message = format!("more than {ITEMS_MAX} requests at once");
            return Err(DataServiceFault::new(FaultCode::IncompatibleParameters, message));
        }
        Ok(items)
    }
}

fn add_children(given: &mut GivenParameters, document: &Document, node: NodeId) {
    for child in document.children(node).filter(|child| document.is_element(*child)) {
        let is_nil = matches!(document.attribute(child, SCHEMA_INSTANCE, "nil"), Some("true" | "1"));
        let value = (!is_nil).then(|| Arc::<str>::from(document.string_value(child)));
        given.add(document.local_name(child), value);
    }
}

fn add_members(given: &mut GivenParameters, value: &Json) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let name = name.rsplit(':').next().unwrap_or(name);
        match value {
            Json::Array(values) => values.iter().for_each(|value| given.add(name, json_text(value))),
            value => given.add(name, json_text(value)),
        }
    }
}

fn json_text(value: &Json) -> Option<Arc<str>> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text.as_str().into()),
        // A nil element that became JSON.
        Json::Object(members) if matches!(members.get("@nil"), Some(Json::String(nil)) if nil == "true") => None,
        other => Some(other.to_string().into()),
    }
}

fn add_query(given: &mut GivenParameters, query: &str) {
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        given.add(&percent_decoded(name, true), Some(percent_decoded(value, true).into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<Segment> {
        let segment = |segment: &str| match segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => Segment::Variable(name.into()),
            None => Segment::Text(segment.to_owned()),
        };
        text.split('/').map(segment).collect()
    }

    #[test]
    fn paths_fit_patterns() {
        for (pattern, segments, expected) in [
            ("product/{code}", vec!["product", "S1%200"], Some((vec!["S1 0"], false))),
            ("product/{code}", vec!["product"], None),
            ("product", vec!["product_batch_req"], Some((vec![], true))),
            ("product", vec!["products"], None),
        ] {
            let found = matched(&path(pattern), &segments, true);
            let found =
                found.map(|(values, batch)| (values.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), batch));
            let expected =
                expected.map(|(values, batch)| (values.into_iter().map(str::to_owned).collect::<Vec<_>>(), batch));
            assert_eq!(found, expected, "{pattern} {segments:?}");
        }
        assert_eq!(matched(&path("product"), &["product_batch_req"], false), None);
    }

    #[test]
    fn parameters_come_from_queries_and_json() {
        let mut given = GivenParameters::default();
        add_query(&mut given, "a=x+y&B=%41&b=2&c");
        assert_eq!(given.describe(), "{a=x y, b=[A, 2], c=}");
        let mut given = GivenParameters::default();
        let value = serde_json::json!({"any": {"A": 1.50, "b": null, "c": ["x", true]}});
        Payload::Json(Arc::new(value)).add_parameters(&mut given);
        assert_eq!(given.describe(), "{a=1.5, b=null, c=[x, true]}");
    }
}
