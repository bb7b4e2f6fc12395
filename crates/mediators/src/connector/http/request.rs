//! What an operation sends: header fields, the body, and properties of the transport.

use penstock_compile::expression::synapse::Escape;
use penstock_compile::{Compiler, Element, Parameter};
use penstock_engine::{Exchange, Fault, Needs};
use penstock_message::{Scope, Value};
use serde_json::Value as Json;

use penstock_compile::connector::parameter;
use penstock_engine::payload;
use penstock_message::tree::Content;

/// Parameters that set a property of the scope `axis2`.
const TRANSPORT: [(&str, &str); 13] = [
    ("postToUri", "POST_TO_URI"),
    ("forceScAccepted", "FORCE_SC_ACCEPTED"),
    ("disableChunking", "DISABLE_CHUNKING"),
    ("noEntityBody", "NO_ENTITY_BODY"),
    ("forceHttp10", "FORCE_HTTP_1.0"),
    ("httpSc", "HTTP_SC"),
    ("nonErrorHttpStatusCodes", "non.error.http.status.codes"),
    ("httpScDesc", "HTTP_SC_DESC"),
    ("faultsAsHttp200", "FAULTS_AS_HTTP_200"),
    ("noKeepAlive", "NO_KEEPALIVE"),
    ("requestHostHeader", "REQUEST_HOST_HEADER"),
    ("forceHttpContentLength", "FORCE_HTTP_CONTENT_LENGTH"),
    ("copyContentLengthFromIncoming", "COPY_CONTENT_LENGTH_FROM_INCOMING"),
];

/// The parameters with a body, in the order in which Micro Integrator looks for one.
const BODIES: [(&str, Escape); 3] =
    [("requestBodyJson", Escape::Json), ("requestBodyXml", Escape::Xml), ("requestBodyText", Escape::None)];

/// What an operation sends.
pub(super) struct Request {
    headers: Option<Parameter>,
    body_type: Option<Parameter>,
    bodies: Vec<Parameter>,
    transport: Vec<(&'static str, Parameter)>,
    /// `forcePostPutNobody`: the body stays here.
    without_body: Option<Parameter>,
}

/// The same for one message, evaluated before any of it changes the message.
pub(super) struct Prepared {
    headers: Vec<(String, String)>,
    body: Option<(BodyType, Value)>,
    transport: Vec<(&'static str, Value)>,
}

#[derive(Clone, Copy)]
enum BodyType {
    Json,
    Xml,
    Text,
}

impl Request {
    pub(super) fn compile(el: &Element<'_>, cx: &mut Compiler<'_>, takes_body: bool) -> Option<Request> {
        let headers = match el.child("headers").filter(|child| !matches!(child.text().as_str(), "" | "[]")) {
            Some(child) => Some(headers(&child, cx)?),
            None => None,
        };
        let mut transport = Vec::new();
        for (name, property) in TRANSPORT {
            if let Some(parameter) = parameter(el, cx, name)? {
                transport.push((property, parameter));
            }
        }
        // The path of the connection takes the place of the postfix; the parameter has no effect in Micro Integrator either.
        el.child("restUrlPostfix");
        let without_body = parameter(el, cx, "forcePostPutNobody")?;
        let mut request = Request { headers, body_type: None, bodies: Vec::new(), transport, without_body };
        if takes_body {
            request.body(el, cx)?;
        }
        Some(request)
    }

    fn body(&mut self, el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<()> {
        self.body_type = parameter(el, cx, "requestBodyType")?;
        if let Some(text) = self.body_type.as_ref().and_then(Parameter::constant)
            && BodyType::parse(&text).is_none()
        {
            cx.error(el.place(), format!("the `requestBodyType` `{text}` is not one of JSON, XML, TEXT"));
            return None;
        }
        for (name, escape) in BODIES {
            let Some(child) = el.child(name) else { continue };
            if self.body_type.is_none() {
                cx.warn(child.place(), format!("<{name}> is not sent without <requestBodyType>"));
                continue;
            }
            if let Some(inside) = child.children().next() {
                self.bodies.push(Parameter::Constant(crate::typed::inline_xml(&inside)));
                continue;
            }
            let text = child.text();
            // The editor writes single quotes around JSON, since braces around a parameter mean an expression.
            let quoted = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
            let text = quoted.filter(|_| escape == Escape::Json).unwrap_or(&text);
            if !text.is_empty() {
                self.bodies.push(Parameter::compile_text(cx, &child, text, escape)?);
            }
        }
        Some(())
    }

    pub(super) fn needs(&self) -> Needs {
        let parameters = self.headers.iter().chain(&self.body_type).chain(&self.bodies).chain(&self.without_body);
        let transport = self.transport.iter().map(|(_, parameter)| parameter);
        let needs = parameters.chain(transport).map(Parameter::needs).max().unwrap_or_default();
        // The envelope around a body is kept when there is one.
        if self.body_type.is_some() { needs.max(Needs::Whole) } else { needs }
    }

    /// Evaluates the parameters.
    pub(super) fn evaluate(&self, exchange: &mut Exchange) -> Result<Prepared, Fault> {
        let headers = match &self.headers {
            Some(headers) => header_fields(&headers.text(exchange)?)?,
            None => Vec::new(),
        };
        let body = match &self.body_type {
            Some(body_type) => self.body_of(&body_type.text(exchange)?, exchange)?,
            None => None,
        };
        let mut transport = Vec::with_capacity(self.transport.len());
        for (property, parameter) in &self.transport {
            let text = parameter.text(exchange)?;
            transport.push((*property, typed(text)));
        }
        if let Some(without_body) = &self.without_body
            && without_body.value(exchange)?.is_true()
        {
            transport.push(("NO_ENTITY_BODY", Value::Boolean(true)));
        }
        Ok(Prepared { headers, body, transport })
    }

    fn body_of(&self, body_type: &str, exchange: &mut Exchange) -> Result<Option<(BodyType, Value)>, Fault> {
        if body_type.is_empty() {
            return Ok(None);
        }
        let body_type = BodyType::parse(body_type)
            .ok_or_else(|| Fault::new(format!("the request body type `{body_type}` is not one of JSON, XML, TEXT")))?;
        for body in &self.bodies {
            let value = body.value(exchange)?;
            if !matches!(&value, Value::String(text) if text.is_empty()) {
                return Ok(Some((body_type, value)));
            }
        }
        Ok(Some((body_type, Value::string(""))))
    }
}

/// `true` and `false` are flags.
fn typed(text: String) -> Value {
    match text.as_str() {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        _ => Value::string(text),
    }
}

/// Compiles `<headers>`: JSON in which values may be expressions.
fn headers(el: &Element<'_>, cx: &mut Compiler<'_>) -> Option<Parameter> {
    let parameter = Parameter::compile_text(cx, el, &el.text(), Escape::Json)?;
    if let Some(text) = parameter.constant()
        && let Err(fault) = header_fields(&text)
    {
        cx.error(el.place(), fault.message.to_string());
        return None;
    }
    Some(parameter)
}

/// The fields of `[["name","value"],…]`, `[{"name":"value"},…]` or `{"name":"value",…}`.
fn header_fields(text: &str) -> Result<Vec<(String, String)>, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = || Fault::new("the headers of the HTTP connector are a list of pairs: `[[\"name\", \"value\"]]`");
    let json = match serde_json::from_str(text) {
        Ok(json) => json,
        // A comma at the end, or names without quotes, as Micro Integrator takes them.
        Err(_) => penstock_json::lenient::parse(text).ok_or_else(wrong)?,
    };
    let mut fields = Vec::new();
    match json {
        Json::Object(object) => fields.extend(object.iter().map(|(name, value)| field(name, value))),
        Json::Array(items) => {
            for item in items {
                match item {
                    Json::Array(pair) => match pair.as_slice() {
                        [Json::String(name), value] => fields.push(field(name, value)),
                        [] => {}
                        _ => return Err(wrong()),
                    },
                    Json::Object(object) => fields.extend(object.iter().map(|(name, value)| field(name, value))),
                    Json::Null => {}
                    _ => return Err(wrong()),
                }
            }
        }
        _ => return Err(wrong()),
    }
    fields.retain(|(name, _)| !name.is_empty());
    Ok(fields)
}

fn field(name: &str, value: &Json) -> (String, String) {
    let value = match value {
        Json::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    (name.trim().to_owned(), value)
}

impl BodyType {
    fn parse(text: &str) -> Option<BodyType> {
        match text.trim().to_ascii_uppercase().as_str() {
            "JSON" => Some(BodyType::Json),
            "XML" => Some(BodyType::Xml),
            "TEXT" => Some(BodyType::Text),
            _ => None,
        }
    }
}

impl Prepared {
    /// Changes the message.
    pub(super) fn apply(self, exchange: &mut Exchange) -> Result<(), Fault> {
        for (name, value) in self.headers {
            exchange.set_property(Scope::Transport, &name, Value::string(value));
        }
        if let Some((body_type, value)) = self.body {
            set_body(exchange, body_type, &value)?;
        }
        for (property, value) in self.transport {
            exchange.set_property(Scope::Axis2, property, value);
        }
        Ok(())
    }
}

fn set_body(exchange: &mut Exchange, body_type: BodyType, value: &Value) -> Result<(), Fault> {
    match body_type {
        BodyType::Json => {
            payload::set_media_type(exchange, "application/json");
            match value {
                Value::Json(json) if json.is_object() || json.is_array() => payload::set_json(exchange, json.clone()),
                _ => payload::set_json_text(exchange, value.to_text().into_owned()),
            }
        }
        BodyType::Xml => {
            let contents = payload::contents_of(value);
            if !matches!(contents.first(), Some(Content::Node(..))) {
                return Err(Fault::new("the request body of the HTTP connector is not XML"));
            }
            payload::ensure_media_type(exchange, "application/xml");
            payload::replace_by_nodes(exchange, &contents)?;
        }
        BodyType::Text => payload::set_text(exchange, value.to_text().into_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::header_fields;

    #[test]
    fn headers_are_pairs_in_any_of_their_forms() {
        let pairs = |text: &str| header_fields(text).map_err(|fault| fault.message.to_string());
        let expected = Ok(vec![("A".to_owned(), "1".to_owned()), ("B".to_owned(), "x y".to_owned())]);
        for text in [
            r#"[["A","1"],["B"," x y "]]"#,
            r#"[["A", 1],["B","x y"],]"#,
            r#"[{"A":"1"},{"B":"x y"}]"#,
            r#"[{"A":"1","B":"x y"}]"#,
            r#"{"A":"1","B":"x y"}"#,
            "[['A',1],['B','x y']]",
        ] {
            assert_eq!(pairs(text), expected, "{text}");
        }
        assert_eq!(pairs("[]"), Ok(Vec::new()));
        assert!(pairs("[1]").is_err());
        assert!(pairs("{A: [").is_err());
    }
}
