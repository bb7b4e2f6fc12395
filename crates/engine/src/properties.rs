//! Properties as artifacts name them: scopes, and the names that are not stored but computed.

use std::sync::Arc;

use penstock_message::{Form, MediaType, Scope, SoapVersion, Value, percent_decoded};
use penstock_xml::NodeId;

use crate::ports::Level;
use crate::route::{Entry, Pattern};
use crate::{Direction, Exchange};

/// Where a header that names its namespace is looked for: the namespaces stand at the beginning.
const HEADER_BYTES_MAX: usize = 8 << 10;

fn names_addressing(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(HEADER_BYTES_MAX)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    ADDRESSING.iter().any(|uri| text.contains(uri))
}

/// The receiver of a backend's response.
const ANONYMOUS: &str = "http://www.w3.org/2005/08/addressing/anonymous";

/// Headers that stay when all others are removed: Micro Integrator keeps them apart from its map of headers.
fn says_what_the_body_is(name: &[u8]) -> bool {
    [&b"Content-Type"[..], b"Content-Encoding", b"SOAPAction"].iter().any(|kept| name.eq_ignore_ascii_case(kept))
}

/// The namespaces of WS-Addressing: the recommendation and the submission before it.
const ADDRESSING: [&str; 2] =
    ["http://www.w3.org/2005/08/addressing", "http://schemas.xmlsoap.org/ws/2004/08/addressing"];

impl Exchange {
    /// The value of a property in a scope, special names included.
    pub fn property(&mut self, scope: Scope, name: &str) -> Option<Value> {
        match scope {
            Scope::Default => self.default_property(name),
            Scope::Transport => {
                self.message.headers.get_bytes(name).map(|value| Value::string(String::from_utf8_lossy(value)))
            }
            Scope::Axis2 | Scope::Axis2Client => self.axis2_property(name),
            Scope::Operation => self.message.operation.get(name).cloned(),
            Scope::Trace => None,
            Scope::Function => self.function_parameter(name),
            Scope::Registry => self.registry_property(name),
            Scope::System => {
                let system = self.core().environment.system.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                system.get(name).map(|value| Value::string(value.as_str()))
            }
            Scope::Environment => {
                self.core().environment.variables.get(name).map(|value| Value::string(value.as_str()))
            }
            Scope::File => self.core().environment.file.get(name).map(|value| Value::string(value.as_str())),
        }
    }

    /// Sets a property in a scope.
    pub fn set_property(&mut self, scope: Scope, name: &str, value: Value) {
        match scope {
            Scope::Default => self.message.properties.set(name, value),
            Scope::Transport => {
                if name.eq_ignore_ascii_case("Content-Type") {
                    self.message.remember_source();
                }
                self.message.headers.set(name, value.to_text().as_bytes());
            }
            Scope::Axis2 => self.set_axis2(name, value),
            Scope::Axis2Client => self.message.axis2_client.set(name, value),
            Scope::Operation => self.message.operation.set(name, value),
            Scope::Function => {
                if let Some(scope) = self.functions.last_mut() {
                    scope.late.retain(|(key, _)| **key != *name);
                    scope.parameters.retain(|(key, _)| **key != *name);
                    scope.parameters.push((name.into(), value));
                }
            }
            Scope::System => {
                let mut system =
                    self.core.environment.system.write().unwrap_or_else(std::sync::PoisonError::into_inner);
                system.insert(name.into(), value.to_text().into_owned());
            }
            Scope::Registry | Scope::Environment | Scope::File | Scope::Trace => {}
        }
    }

    /// Removes a property from a scope.
    pub fn remove_property(&mut self, scope: Scope, name: &str) {
        match scope {
            Scope::Default => {
                self.message.properties.remove(name);
            }
            Scope::Transport => {
                self.message.headers.remove(name);
            }
            Scope::Axis2 | Scope::Axis2Client => {
                match name {
                    "REST_URL_POSTFIX" => self.message.url_postfix = None,
                    "HTTP_SC" => self.message.status = 0,
                    "TRANSPORT_HEADERS" => self.message.headers.retain(|name, _| says_what_the_body_is(name)),
                    _ => {}
                }
                self.message.axis2.remove(name);
                self.message.axis2_client.remove(name);
            }
            Scope::Operation => {
                self.message.operation.remove(name);
            }
            Scope::Function => {
                if let Some(scope) = self.functions.last_mut() {
                    scope.late.retain(|(key, _)| **key != *name);
                    scope.parameters.retain(|(key, _)| **key != *name);
                }
            }
            Scope::System | Scope::Registry | Scope::Environment | Scope::File | Scope::Trace => {}
        }
    }

    fn default_property(&mut self, name: &str) -> Option<Value> {
        if let Some(value) = self.message.properties.get(name) {
            return Some(value.clone());
        }
        let addressing = self.message.addressing.as_deref();
        let text = |part: Option<&Arc<str>>| part.map(|text| Value::String(text.clone()));
        match name {
            "To" => match addressing.and_then(|addressing| addressing.to.as_ref()) {
                Some(to) => Some(Value::String(to.clone())),
                None if self.message.is_reply => Some(Value::string(ANONYMOUS)),
                None if self.direction == Direction::Request => Some(match self.address_in_header() {
                    Some(to) => Value::String(to),
                    None => Value::string(self.client.line.target()),
                }),
                None => None,
            },
            "From" => text(addressing.and_then(|addressing| addressing.from.as_ref())),
            "ReplyTo" => text(addressing.and_then(|addressing| addressing.reply_to.as_ref())),
            "FaultTo" => text(addressing.and_then(|addressing| addressing.fault_to.as_ref())),
            "RelatesTo" => text(addressing.and_then(|addressing| addressing.relates_to.as_ref())),
            // One and the same in Micro Integrator.
            "Action" | "WSAction" | "SOAPAction" => self.message.action().map(Value::string),
            "MessageID" => Some(Value::String(self.message_id())),
            "FAULT" => Some(Value::Boolean(self.xml().is_ok_and(|envelope| {
                envelope.soap != SoapVersion::None
                    && envelope.payload().is_some_and(|node| envelope.document.local_name(node) == "Fault")
            }))),
            "MESSAGE_FORMAT" => Some(Value::string(match self.xml().map(|envelope| envelope.soap) {
                Ok(SoapVersion::Soap11) => "soap11",
                Ok(SoapVersion::Soap12) => "soap12",
                _ => "pox",
            })),
            "OperationName" | "OperationNamespace" => {
                let envelope = self.xml().ok()?;
                let payload = envelope.payload()?;
                let document = &envelope.document;
                Some(Value::string(if name == "OperationName" {
                    document.local_name(payload)
                } else {
                    document.namespace(payload)
                }))
            }
            "SYSTEM_DATE" => Some(Value::string(crate::clock::system_date(None))),
            "SYSTEM_TIME" => Some(Value::string(crate::clock::epoch_ms().to_string())),
            "RESPONSE" if self.is_response() => Some(Value::Boolean(true)),
            "REST_FULL_REQUEST_PATH" => Some(Value::string(self.client.line.target())),
            "REST_METHOD" => Some(Value::string(self.client.line.method.as_str())),
            "REST_API_CONTEXT"
            | "REST_API_VERSION"
            | "SYNAPSE_REST_API"
            | "REST_SUB_REQUEST_PATH"
            | "REST_URL_PREFIX"
            | "proxy.name" => self.service_property(name),
            _ => match name.strip_prefix("query.param.").and_then(|name| self.query_parameter(name)) {
                Some(value) => Some(Value::string(value)),
                None => self.program().resources.get(name).map(|resource| resource.to_value()),
            },
        }
    }

    /// `To` of WS-Addressing in the SOAP header, once the message is here: a client that calls a proxy by one address
    /// may name another.
    pub(crate) fn address_in_header(&mut self) -> Option<Arc<str>> {
        if !matches!(self.message.source_media(), MediaType::TextXml | MediaType::SoapXml) {
            return None;
        }
        match self.message.body.form() {
            Form::Xml(_) => {}
            // Most messages have no such header and are not read for it.
            Form::Bytes(bytes) if names_addressing(bytes) => {}
            _ => return None,
        }
        let envelope = self.xml().ok()?;
        let document = &envelope.document;
        let is_to = |node: &NodeId| {
            document.is_element(*node)
                && document.local_name(*node) == "To"
                && ADDRESSING.contains(&document.namespace(*node))
        };
        let to = document.children(envelope.header?).find(is_to)?;
        let address = document.string_value(to);
        address.contains("://").then(|| address.trim().into())
    }

    fn service_property(&self, name: &str) -> Option<Value> {
        let value: Arc<str> = match (&self.entry, name) {
            (Entry::Proxy(proxy), "proxy.name") => proxy.name.clone(),
            (Entry::Resource(api, _) | Entry::Api(api, _), "REST_API_CONTEXT") => api.context.clone(),
            (Entry::Resource(api, _) | Entry::Api(api, _), "REST_API_VERSION") => api.version.as_ref()?.text.clone(),
            (Entry::Resource(api, _) | Entry::Api(api, _), "SYNAPSE_REST_API") => api.name.clone(),
            (Entry::Resource(api, _) | Entry::Api(api, _), "REST_SUB_REQUEST_PATH") => {
                let rest = self.client.line.target().strip_prefix(&*api.context)?;
                if rest.is_empty() { "/".into() } else { rest.into() }
            }
            (_, "REST_URL_PREFIX") => {
                let scheme = if self.client.line.secure { "https" } else { "http" };
                format!("{scheme}://{}", self.client.local).into()
            }
            _ => return None,
        };
        Some(Value::String(value))
    }

    /// Whether the property `uri.var.NAME` still has the value that the client's path gave it.
    pub fn is_path_variable(&self, name: &str, value: &str) -> bool {
        let Entry::Resource(api, index) = &self.entry else { return false };
        let Some(Pattern::Template(template)) = api.resources.get(*index).map(|resource| &resource.pattern) else {
            return false;
        };
        let sub_path = api.sub_path(self.client.line.target());
        let variables = template.matches(sub_path).unwrap_or_default();
        variables.iter().any(|(known, original)| **known == *name && original == value)
    }

    /// A parameter of the client's query as `query.param.NAME` has it: decoded as forms are, so that a `+` is a space; the
    /// last of several. What stands between two `&` without a `=` belongs to the value before it.
    pub fn query_parameter(&self, name: &str) -> Option<String> {
        let (mut value, mut is_open) = (None, false);
        for part in self.client.line.query()?.split('&') {
            match part.split_once('=') {
                Some((key, text)) => {
                    is_open = key == name;
                    if is_open {
                        value = Some(percent_decoded(text, true).into_owned());
                    }
                }
                None if is_open => {
                    if let Some(value) = &mut value {
                        value.push('&');
                        value.push_str(part);
                    }
                }
                None => {}
            }
        }
        value
    }

    /// A parameter of the client's query as `$url:NAME` has it: the first of several, in any case; a `+` stays a `+`.
    pub fn query(&self, name: &str) -> Option<String> {
        let query = self.client.line.query()?;
        query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            percent_decoded(key, false).eq_ignore_ascii_case(name).then(|| percent_decoded(value, false).into_owned())
        })
    }

    fn axis2_property(&mut self, name: &str) -> Option<Value> {
        if let Some(value) = self.message.axis2.get(name).or_else(|| self.message.axis2_client.get(name)) {
            return Some(value.clone());
        }
        match name {
            "HTTP_METHOD" | "HTTP_METHOD_OBJECT" => Some(Value::string(self.message.method.as_str())),
            "REST_URL_POSTFIX" => self.message.url_postfix.clone().map(Value::String),
            "HTTP_SC" if self.message.status != 0 => Some(Value::Integer(i64::from(self.message.status))),
            "HTTP_SC_DESC" => self.message.reason.clone().map(Value::String),
            "ContentType" | "messageType" => self.message.content_type().map(Value::string),
            "TransportInURL" => Some(Value::string(self.client.line.target())),
            "REMOTE_ADDR" | "api.ut.REMOTE_ADDR" => Some(Value::string(self.client.address.to_string())),
            "REMOTE_HOST" => Some(Value::string(self.client.address.to_string())),
            "correlation_id" => Some(Value::String(self.correlation_id())),
            "TRANSPORT_IN_NAME" => Some(Value::string(if self.client.line.secure { "https" } else { "http" })),
            _ => None,
        }
    }

    fn set_axis2(&mut self, name: &str, value: Value) {
        match name {
            "HTTP_METHOD" => self.message.method = penstock_message::Method::parse(value.to_text().trim()),
            "REST_URL_POSTFIX" => self.message.url_postfix = Some(value.to_text().into()),
            "messageType" => self.message.set_message_type(&value.to_text()),
            "ContentType" => {
                self.message.remember_source();
                self.message.headers.set("Content-Type", value.to_text().as_bytes());
                self.message.axis2.set("ContentType", value);
            }
            _ => self.message.axis2.set(name, value),
        }
    }

    /// `gov:/path` or `gov:/path@property`.
    fn registry_property(&self, name: &str) -> Option<Value> {
        match name.rsplit_once('@') {
            Some((path, property)) => {
                let resource = self.registry_resource(path)?;
                resource
                    .properties
                    .iter()
                    .find(|(key, _)| **key == *property)
                    .map(|(_, value)| Value::String(value.clone()))
            }
            None => self.registry_resource(name).map(|resource| resource.to_value()),
        }
    }

    /// A resource of the registry: as flows wrote it, or as artifacts define it.
    pub fn registry_resource(&self, key: &str) -> Option<Arc<crate::Resource>> {
        self.core().environment.registry.get(key).or_else(|| self.program().resources.get(key).cloned())
    }

    /// What elements name by a key: a local entry, or a resource of the registry. Flows write no local entries, so that a
    /// plain name is not theirs where there is one.
    pub fn entry_of_key(&self, key: &str) -> Option<Arc<crate::Resource>> {
        let is_plain = !key.contains(':') && !key.starts_with('/');
        let local = self.program().resources.get(key).filter(|_| is_plain).cloned();
        local.or_else(|| self.registry_resource(key))
    }

    /// The message's id, made on first use.
    pub fn message_id(&mut self) -> Arc<str> {
        self.message
            .addressing_mut()
            .message_id
            .get_or_insert_with(|| format!("urn:uuid:{}", crate::clock::uuid()).into())
            .clone()
    }

    /// The correlation id of the request: what the client sent as `activityid`, or one of ours.
    pub fn correlation_id(&mut self) -> Arc<str> {
        if let Some(Value::String(id)) = self.message.operation.get("correlation_id") {
            return id.clone();
        }
        let sent = self.message.headers.get("activityid").map(Arc::from);
        let id: Arc<str> = sent.unwrap_or_else(|| crate::clock::uuid().into());
        self.message.operation.set("correlation_id", Value::String(id.clone()));
        id
    }

    /// The line Micro Integrator's own `main` sequence writes of a request that nothing serves.
    pub(crate) fn log_simple(&mut self, more: &str) {
        if self.core.log.enabled(Level::Info) {
            let (to, id, correlation) =
                (self.client.line.target().to_owned(), self.message_id(), self.correlation_id());
            let text = format!("To: {to}, MessageID: {id}, correlation_id: {correlation}, Direction: request{more}");
            self.log(Level::Info, "LogMediator", &text);
        }
    }

    /// What Micro Integrator's own `fault` sequence logs, for a fault that no sequence handles.
    pub(crate) fn log_unhandled(&mut self) {
        let property = |name: &str| self.message.properties.get(name).map(|value| value.to_text().into_owned());
        let (code, message) = (property("ERROR_CODE"), property("ERROR_MESSAGE"));
        let (code, message) = (code.unwrap_or_default(), message.unwrap_or_default());
        self.log_simple(&format!(
            ", MESSAGE = Executing default 'fault' sequence, ERROR_CODE = {code}, ERROR_MESSAGE = {message}"
        ));
    }

    /// Writes a log line about this exchange.
    pub fn log(&mut self, level: Level, logger: &str, text: &str) {
        if !self.core.log.enabled(level) {
            return;
        }
        let correlation = self.correlation_id();
        let entry = self.entry.clone();
        self.core.log.write(&crate::ports::Record {
            level,
            logger,
            service: entry.label(),
            correlation: &correlation,
            text,
        });
    }
}

impl crate::Resource {
    /// The entry as a property's value: XML as nodes, the rest as text.
    pub fn to_value(&self) -> Value {
        if self.is_xml
            && let Ok(document) =
                penstock_xml::Document::parse(self.bytes.clone(), &penstock_xml::ParseOptions::default())
            && let Some(root) = document.root_element()
        {
            return Value::Xml(Arc::new(document), vec![root]);
        }
        Value::string(self.text())
    }
}
