//! What came of an operation: its result in the body, a variable or a property, or a fault with the codes of the connector of
//! Micro Integrator.

use std::io;

use penstock_compile::connector::{Arguments, Output, Place};
use penstock_engine::{Exchange, Fault, Flow, Side, payload};
use penstock_message::{Body, Form, MediaType, Scope, Value};
use penstock_xml::TreeBuilder;
use serde_json::{Map, Value as Json};

/// Where a result goes.
pub(super) enum Target {
    Variable(Place),
    Body,
    Property(String),
}

impl Target {
    pub(super) fn read(output: &Output, arguments: &Arguments, exchange: &mut Exchange) -> Result<Target, Fault> {
        if let Some(place) = output.place(exchange)? {
            return Ok(Target::Variable(place));
        }
        let property = arguments.text("resultPropertyName", exchange)?;
        let goes_to = arguments.text("includeResultTo", exchange)?;
        let is_property = goes_to.is_some_and(|word| word.eq_ignore_ascii_case("Message Property"));
        Ok(property.filter(|_| is_property).map_or(Target::Body, Target::Property))
    }

    /// Whether content may be read while the message travels.
    pub(super) fn takes_streams(&self) -> bool {
        match self {
            Target::Variable(place) => place.overwrites_body,
            Target::Body => true,
            Target::Property(_) => false,
        }
    }
}

/// What an operation did.
pub(super) enum Done {
    /// `success` and what else is said of it.
    Report(Map<String, Json>),
    /// The content of a file.
    Content { body: Body, content_type: String, attributes: Map<String, Json> },
}

/// The names of the elements around results, which differ from those of the operations.
fn result_name(operation: &str) -> &str {
    match operation {
        "copy" => "copyFiles",
        "move" => "moveFiles",
        "rename" => "renameFile",
        "delete" => "deleteFile",
        other => other,
    }
}

impl Done {
    /// `success`.
    pub(super) fn report(members: impl IntoIterator<Item = (&'static str, Json)>) -> Done {
        let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
        Done::Report([("success".to_owned(), Json::Bool(true))].into_iter().chain(members).collect())
    }

    pub(super) fn put(self, operation: &str, target: &Target, exchange: &mut Exchange) -> Result<(), Fault> {
        match self {
            Done::Report(report) => put_report(report, operation, target, exchange),
            Done::Content { body, content_type, attributes } => {
                put_content(body, &content_type, attributes, target, exchange)
            }
        }
    }
}

fn put_report(
    report: Map<String, Json>,
    operation: &str,
    target: &Target,
    exchange: &mut Exchange,
) -> Result<(), Fault> {
    match target {
        Target::Variable(place) if place.overwrites_body => {
            payload::set_media_type(exchange, "application/json");
            payload::set_json(exchange, Json::Object(report).into());
            place.set(exchange, None, None, None);
        }
        Target::Variable(place) => place.set(exchange, Some(Json::Object(report)), None, None),
        Target::Body => {
            let value = xml(&report, operation);
            payload::ensure_media_type(exchange, "application/xml");
            payload::replace_by_nodes(exchange, &payload::contents_of(&value))?;
        }
        Target::Property(name) => exchange.set_property(Scope::Default, name, xml(&report, operation)),
    }
    Ok(())
}

/// `<readResult><success>true</success>…</readResult>`.
fn xml(report: &Map<String, Json>, operation: &str) -> Value {
    let mut builder = TreeBuilder::new();
    builder.start_element("", &format!("{}Result", result_name(operation)), "");
    for (name, value) in report {
        element(&mut builder, name, value);
    }
    builder.end_element();
    let document = builder.finish();
    let nodes = document.root_element().into_iter().collect();
    Value::Xml(document.into(), nodes)
}

/// A member as an element, and an array as one for each item. The name of a folder is an attribute.
fn element(builder: &mut TreeBuilder, name: &str, value: &Json) {
    // The report has lists by the name of their items, and the list of a flat listing around it.
    let name = if name == "files" && value.is_array() { "file" } else { name };
    match value {
        Json::Array(items) => items.iter().for_each(|item| element(builder, name, item)),
        Json::Object(members) => {
            builder.start_element("", name, "");
            let attribute = members.get("name").filter(|_| name == "directory").and_then(Json::as_str);
            if let Some(text) = attribute {
                builder.attribute("", "name", "", text);
            }
            let rest = members.iter().filter(|(member, _)| attribute.is_none() || *member != "name");
            rest.for_each(|(member, value)| element(builder, member, value));
            builder.end_element();
        }
        other => {
            builder.start_element("", name, "");
            match other {
                Json::String(text) => builder.text(text),
                other => builder.text(&other.to_string()),
            }
            builder.end_element();
        }
    }
}

fn put_content(
    body: Body,
    content_type: &str,
    attributes: Map<String, Json>,
    target: &Target,
    exchange: &mut Exchange,
) -> Result<(), Fault> {
    let text = |body: &Body| match body.form() {
        Form::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    match target {
        Target::Variable(place) if !place.overwrites_body => {
            let text = text(&body);
            let json = (MediaType::parse(content_type) == MediaType::Json).then(|| serde_json::from_str(&text).ok());
            place.set(exchange, Some(json.flatten().unwrap_or(Json::String(text))), None, Some(attributes));
            return Ok(());
        }
        Target::Variable(place) => place.set(exchange, None, None, Some(attributes)),
        Target::Body | Target::Property(_) => {
            for (name, value) in attributes {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                exchange.set_property(Scope::Default, &name, Value::string(text));
            }
        }
    }
    if let Target::Property(name) = target {
        exchange.set_property(Scope::Default, name, Value::string(text(&body)));
        return Ok(());
    }
    exchange.message.headers.remove("Content-Encoding");
    exchange.message.headers.set("Content-Type", content_type);
    payload::set_media_type(exchange, content_type);
    exchange.message.body = body;
    Ok(())
}

/// The codes of the connector of Micro Integrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    Connection,
    IllegalPath,
    AlreadyExists,
    AccessDenied,
    Locking,
    InvalidConfiguration,
    Operation,
}

impl Code {
    fn number_and_word(self) -> (u32, &'static str) {
        match self {
            Code::Connection => (700_101, "FILE:CONNECTION_ERROR"),
            Code::IllegalPath => (700_102, "FILE:ILLEGAL_PATH"),
            Code::AlreadyExists => (700_103, "FILE:FILE_ALREADY_EXISTS"),
            Code::AccessDenied => (700_105, "FILE:ACCESS_DENIED"),
            Code::Locking => (700_106, "FILE:FILE_LOCKING_ERROR"),
            Code::InvalidConfiguration => (700_107, "FILE:INVALID_CONFIGURATION"),
            Code::Operation => (700_108, "FILE:OPERATION_ERROR"),
        }
    }
}

/// Why an operation failed.
#[derive(Debug)]
pub(super) struct Failure {
    code: Code,
    detail: String,
}

impl Failure {
    pub(super) fn new(code: Code, detail: impl Into<String>) -> Failure {
        Failure { code, detail: detail.into() }
    }

    /// Puts a result without success where the result goes, and raises the fault.
    pub(super) fn report(self, operation: &str, target: &Target, exchange: &mut Exchange) -> Result<Flow, Fault> {
        let (number, word) = self.code.number_and_word();
        let error = [("code", number.to_string()), ("message", word.to_owned()), ("detail", self.detail.clone())];
        let error: Map<String, Json> =
            error.into_iter().map(|(name, text)| (name.to_owned(), Json::String(text))).collect();
        let report = match target {
            Target::Variable(_) => {
                Map::from_iter([("success".to_owned(), Json::Bool(false)), ("error".to_owned(), Json::Object(error))])
            }
            _ => {
                let success = [("success".to_owned(), Json::Bool(false))];
                success.into_iter().chain(error.into_iter().filter(|(name, _)| name != "message")).collect()
            }
        };
        put_report(report, operation, target, exchange)?;
        exchange.set_property(Scope::Axis2, "HTTP_SC", Value::Integer(500));
        Err(Fault { detail: Some(self.detail.into()), ..Fault::coded(number, Side::Us, word) })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::IllegalPath,
            io::ErrorKind::PermissionDenied => Code::AccessDenied,
            io::ErrorKind::AlreadyExists => Code::AlreadyExists,
            _ => Code::Operation,
        };
        Failure::new(code, error.to_string())
    }
}
