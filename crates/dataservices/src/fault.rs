//! Faults of data services, in the layout of Micro Integrator.

use std::sync::Arc;

use penstock_engine::database::{DatabaseError, DatabaseErrorKind};

use crate::model::{DEFAULT_NAMESPACE, DataService};
use crate::response::ResponseFormat;

/// `ds_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultCode {
    /// A database refused a statement.
    Database,
    /// A database cannot be reached.
    ConnectionUnavailable,
    /// A value does not fulfil a validator.
    Validation,
    /// Parameters of a request do not fit.
    IncompatibleParameters,
    /// Anything else.
    Unknown,
}

impl FaultCode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            FaultCode::Database => "DATABASE_ERROR",
            FaultCode::ConnectionUnavailable => "CONNECTION_UNAVAILABLE_ERROR",
            FaultCode::Validation => "VALIDATION_ERROR",
            FaultCode::IncompatibleParameters => "INCOMPATIBLE_PARAMETERS_ERROR",
            FaultCode::Unknown => "UNKNOWN_ERROR",
        }
    }
}

/// Why a request failed.
#[derive(Debug, Clone)]
pub struct DataServiceFault {
    /// What kind of failure.
    pub code: FaultCode,
    /// `DS Fault Message`.
    pub message: String,
    /// The failure behind it.
    pub nested: Option<String>,
    /// The parameters of the request.
    pub parameters: Option<String>,
    /// The name of the request.
    pub request: Option<Arc<str>>,
    /// The status of the response.
    pub status: u16,
}

impl DataServiceFault {
    /// A fault.
    pub fn new(code: FaultCode, message: impl Into<String>) -> DataServiceFault {
        DataServiceFault { code, message: message.into(), nested: None, parameters: None, request: None, status: 500 }
    }

    /// A value that does not fulfil a validator.
    pub fn invalid(field: &str, value: &str, message: String) -> DataServiceFault {
        let text = format!("Field Name: {field}\nField Value: {value}\nValidation Message: {message}");
        DataServiceFault::new(FaultCode::Validation, text)
    }

    /// A failure of a database in a query.
    pub fn of_database(query: &str, error: &DatabaseError) -> DataServiceFault {
        let code = match error.kind {
            DatabaseErrorKind::Undefined | DatabaseErrorKind::Unreachable | DatabaseErrorKind::Busy => {
                FaultCode::ConnectionUnavailable
            }
            DatabaseErrorKind::Refused | DatabaseErrorKind::TimedOut => FaultCode::Database,
        };
        let nested = Some(error.message.clone());
        DataServiceFault { nested, ..DataServiceFault::new(code, format!("Error in running the query `{query}`.")) }
    }

    /// A request for something that is not there.
    pub fn not_found(what: &str) -> DataServiceFault {
        DataServiceFault { status: 404, ..DataServiceFault::new(FaultCode::Unknown, what) }
    }

    /// The same, with the request that failed.
    #[must_use]
    pub fn of_request(mut self, name: &Arc<str>, parameters: String) -> DataServiceFault {
        self.request.get_or_insert_with(|| name.clone());
        self.parameters.get_or_insert(parameters);
        self
    }

    /// The text of the fault, one fact on a line.
    pub fn text(&self, service: &DataService) -> String {
        let mut text = format!("DS Fault Message: {}\n", self.message);
        let mut line = |name: &str, value: &str| {
            text.push_str(name);
            text.push_str(value);
            text.push('\n');
        };
        if let Some(parameters) = &self.parameters {
            line("Current Params: ", parameters);
        }
        if let Some(request) = &self.request {
            line("Current Request Name: ", request);
        }
        if let Some(nested) = &self.nested {
            line("Nested Exception:-", "");
            line(nested, "");
        }
        line("Source Data Service:-", "");
        line("Name: ", &service.name);
        line("Location: ", &service.location);
        line("Description: ", &service.description);
        line("Default Namespace: ", &service.namespace);
        line("DS Code: ", self.code.name());
        text
    }

    /// The body of the response.
    pub fn body(&self, service: &DataService, format: ResponseFormat) -> String {
        let text = self.text(service);
        match format {
            ResponseFormat::Json => self.json(service, &text),
            ResponseFormat::Soap12 => {
                let fault = format!(
                    "<soapenv:Fault xmlns:axis2ns1=\"{DEFAULT_NAMESPACE}\"><soapenv:Code><soapenv:Value>soapenv:Receiver\
                     </soapenv:Value><soapenv:Subcode><soapenv:Value>axis2ns1:{}</soapenv:Value></soapenv:Subcode>\
                     </soapenv:Code><soapenv:Reason><soapenv:Text xml:lang=\"en-US\">{}</soapenv:Text></soapenv:Reason>\
                     <soapenv:Detail>{}</soapenv:Detail></soapenv:Fault>",
                    self.code.name(),
                    escaped(&text),
                    self.detail(service)
                );
                format!("{}{fault}{}", format.opening(), format.closing())
            }
            ResponseFormat::Soap11 => {
                format!("{}{}{}", format.opening(), self.soap11(service, &text, ""), format.closing())
            }
            ResponseFormat::Xml => {
                self.soap11(service, &text, " xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\"")
            }
        }
    }

    fn soap11(&self, service: &DataService, text: &str, declaration: &str) -> String {
        format!(
            "<soapenv:Fault{declaration}><faultcode xmlns:axis2ns1=\"{DEFAULT_NAMESPACE}\">axis2ns1:{}</faultcode>\
             <faultstring>{}</faultstring><detail>{}</detail></soapenv:Fault>",
            self.code.name(),
            escaped(text),
            self.detail(service)
        )
    }

    fn detail(&self, service: &DataService) -> String {
        let element = |name: &str, text: &str| format!("<axis2ns1:{name}>{}</axis2ns1:{name}>", escaped(text));
        format!(
            "<axis2ns1:DataServiceFault xmlns:axis2ns1=\"{DEFAULT_NAMESPACE}\">{}{}{}<axis2ns1:source_data_service>{}{}{}{}\
             </axis2ns1:source_data_service>{}</axis2ns1:DataServiceFault>",
            element("current_params", self.parameters.as_deref().unwrap_or("{}")),
            element("current_request_name", self.request.as_deref().unwrap_or_default()),
            element("nested_exception", self.nested.as_deref().unwrap_or("N/A")),
            element("location", &service.location),
            element("default_namespace", &service.namespace),
            element("description", &service.description),
            element("data_service_name", &service.name),
            element("ds_code", self.code.name())
        )
    }

    fn json(&self, service: &DataService, text: &str) -> String {
        let fault = serde_json::json!({
            "Fault": {
                "faultcode": format!("axis2ns1:{}", self.code.name()),
                "faultstring": text,
                "detail": { "DataServiceFault": {
                    "current_params": self.parameters.as_deref().unwrap_or("{}"),
                    "current_request_name": self.request.as_deref().unwrap_or_default(),
                    "nested_exception": self.nested.as_deref().unwrap_or("N/A"),
                    "source_data_service": {
                        "location": &*service.location,
                        "default_namespace": &*service.namespace,
                        "description": &*service.description,
                        "data_service_name": &*service.name,
                    },
                    "ds_code": self.code.name(),
                }},
            }
        });
        fault.to_string()
    }
}

/// A text in XML. Characters that XML forbids become question marks.
pub fn escaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    match text.chars().all(crate::node::is_xml_char) {
        true => penstock_xml::escape_text(&mut out, text),
        false => {
            let text: String = text.chars().map(|c| if crate::node::is_xml_char(c) { c } else { '?' }).collect();
            penstock_xml::escape_text(&mut out, &text);
        }
    }
    String::from_utf8(out).unwrap_or_default()
}
