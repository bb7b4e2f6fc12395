//! WSDL 1.1 of the operations and resources: document/literal, with bindings for SOAP 1.1, SOAP 1.2 and HTTP.
//!
//! The names of ports and messages are those of Micro Integrator, because clients that were generated use them. Addresses are
//! those of a local host; the server replaces them when it sends the description.

use std::sync::Arc;

use super::parameters;
use super::schema::{ANYTHING, Schemas, attribute};
use crate::model::{DataService, Operation, QueryCall, Returns};

/// What a fault contains.
const FAULT: &str = "<xs:complexType><xs:sequence>\
    <xs:element name=\"current_params\" type=\"xs:string\"/><xs:element name=\"current_request_name\" type=\"xs:string\"/>\
    <xs:element name=\"nested_exception\" type=\"xs:string\"/><xs:element name=\"source_data_service\"><xs:complexType>\
    <xs:sequence><xs:element name=\"location\" type=\"xs:string\"/><xs:element name=\"default_namespace\" type=\"xs:string\"/>\
    <xs:element name=\"description\" type=\"xs:string\"/><xs:element name=\"data_service_name\" type=\"xs:string\"/>\
    </xs:sequence></xs:complexType></xs:element><xs:element name=\"ds_code\" type=\"xs:string\"/>\
    </xs:sequence></xs:complexType>";

/// An acknowledgement.
const STATUS: &str = "<xs:simpleType><xs:restriction base=\"xs:string\"/></xs:simpleType>";

/// The bindings: their names, the namespace prefix of their elements, and the ports over HTTP and HTTPS.
const BINDINGS: [(&str, &str, &str, &str); 3] = [
    ("SOAP11Binding", "soap", "SOAP11Endpoint", "SecureSOAP11Endpoint"),
    ("SOAP12Binding", "soap12", "SOAP12Endpoint", "SecureSOAP12Endpoint"),
    ("HTTPBinding", "http", "HTTPEndpoint", "SecureHTTPEndpoint"),
];

/// An operation as the description has it.
struct Described {
    name: String,
    input: String,
    /// The element of the response; none for one that is only accepted.
    output: Option<String>,
}

/// The description.
pub fn wsdl(service: &DataService, over_http: bool, over_https: bool) -> String {
    let mut schemas = Schemas::new(service);
    let operations = described(service, &mut schemas);
    let fault = schemas.own("DataServiceFault", FAULT);
    let name = attribute(&service.name);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\
         <wsdl:definitions xmlns:wsdl=\"http://schemas.xmlsoap.org/wsdl/\" xmlns:xs=\"http://www.w3.org/2001/XMLSchema\" \
         xmlns:soap=\"http://schemas.xmlsoap.org/wsdl/soap/\" xmlns:soap12=\"http://schemas.xmlsoap.org/wsdl/soap12/\" \
         xmlns:http=\"http://schemas.xmlsoap.org/wsdl/http/\" xmlns:mime=\"http://schemas.xmlsoap.org/wsdl/mime/\"{} \
         xmlns:tns=\"{1}\" targetNamespace=\"{1}\">",
        schemas.prefixes(),
        attribute(&service.namespace),
    );
    if &*service.description != "N/A" {
        let text = crate::fault::escaped(&service.description);
        out.push_str(&format!("<wsdl:documentation>{text}</wsdl:documentation>"));
    }
    out.push_str(&format!("<wsdl:types>{}</wsdl:types>", schemas.text()));
    for operation in &operations {
        out.push_str(&message(&format!("{}Request", operation.name), &operation.input));
        if let Some(output) = &operation.output {
            out.push_str(&message(&format!("{}Response", operation.name), output));
        }
    }
    out.push_str(&message("DataServiceFault", &fault));
    out.push_str(&port_type(&name, &operations));
    for (binding, prefix, _, _) in BINDINGS {
        out.push_str(&format!("<wsdl:binding name=\"{name}{binding}\" type=\"tns:{name}PortType\">"));
        out.push_str(&match prefix {
            "http" => "<http:binding verb=\"POST\"/>".to_owned(),
            soap => format!("<{soap}:binding style=\"document\" transport=\"http://schemas.xmlsoap.org/soap/http\"/>"),
        });
        operations.iter().for_each(|operation| out.push_str(&bound(operation, prefix)));
        out.push_str("</wsdl:binding>");
    }
    out.push_str(&format!("<wsdl:service name=\"{name}\">"));
    for (binding, prefix, port, secure_port) in BINDINGS {
        let ports = [(over_http, port, "http"), (over_https, secure_port, "https")];
        for (_, port, scheme) in ports.into_iter().filter(|(is_offered, ..)| *is_offered) {
            out.push_str(&format!(
                "<wsdl:port name=\"{port}\" binding=\"tns:{name}{binding}\">\
                 <{prefix}:address location=\"{scheme}://localhost/services/{name}\"/></wsdl:port>"
            ));
        }
    }
    out.push_str("</wsdl:service></wsdl:definitions>");
    out
}

/// The operations whose names can be those of elements, then batches and boxes.
fn described(service: &DataService, schemas: &mut Schemas<'_>) -> Vec<Described> {
    let mut all = Vec::new();
    let named = |operation: &&Operation| penstock_xml::is_ncname(&operation.name);
    for operation in service.operations.iter().filter(named) {
        let name = operation.name.to_string();
        let parameters = parameters(service, operation);
        let input = schemas.request(&name, &parameters);
        let output = output(service, operation, schemas);
        // Micro Integrator offers batches of operations that take something and return no rows.
        let returns_keys = |call: &Arc<QueryCall>| matches!(service.queries[call.query].returns, Returns::Keys(_));
        let is_batched = service.has_batches
            && !parameters.is_empty()
            && (service.result_of(operation).is_none() || operation.calls.last().is_some_and(returns_keys));
        all.push(Described { name: name.clone(), input, output: output.clone() });
        if is_batched {
            let batch = format!("{name}_batch_req");
            let input = schemas.container(&batch, &[&name]);
            all.push(Described { name: batch, input, output });
        }
    }
    if service.has_boxes {
        let names: Vec<&str> = service.operations.iter().filter(named).map(|operation| &*operation.name).collect();
        let input = schemas.container("request_box", &names);
        let output = Some(schemas.own("DATA_SERVICE_REQUEST_BOX_RESPONSE", ANYTHING));
        all.push(Described { name: "request_box".to_owned(), input, output });
    }
    if service.boxcars.is_some() {
        for name in ["begin_boxcar", "end_boxcar", "abort_boxcar"] {
            all.push(Described { name: name.to_owned(), input: schemas.request(name, &[]), output: None });
        }
    }
    all
}

fn output(service: &DataService, operation: &Operation, schemas: &mut Schemas<'_>) -> Option<String> {
    match operation.calls.last().filter(|_| service.result_of(operation).is_some()) {
        Some(call) => schemas.result(call.query),
        None => operation.returns_status.then(|| schemas.own("REQUEST_STATUS", STATUS)),
    }
}

fn message(name: &str, element: &str) -> String {
    format!("<wsdl:message name=\"{name}\"><wsdl:part name=\"parameters\" element=\"{element}\"/></wsdl:message>")
}

fn port_type(service: &str, operations: &[Described]) -> String {
    let mut out = format!("<wsdl:portType name=\"{service}PortType\">");
    for Described { name, output, .. } in operations {
        out.push_str(&format!("<wsdl:operation name=\"{name}\"><wsdl:input message=\"tns:{name}Request\"/>"));
        if output.is_some() {
            out.push_str(&format!("<wsdl:output message=\"tns:{name}Response\"/>"));
            out.push_str("<wsdl:fault name=\"DataServiceFault\" message=\"tns:DataServiceFault\"/>");
        }
        out.push_str("</wsdl:operation>");
    }
    out + "</wsdl:portType>"
}

fn bound(operation: &Described, prefix: &str) -> String {
    let name = &operation.name;
    let (action, body) = match prefix {
        "http" => (format!("<http:operation location=\"{name}\"/>"), "<mime:content type=\"text/xml\"/>".to_owned()),
        soap => (
            format!("<{soap}:operation soapAction=\"urn:{name}\" style=\"document\"/>"),
            format!("<{soap}:body use=\"literal\"/>"),
        ),
    };
    let mut out = format!("<wsdl:operation name=\"{name}\">{action}<wsdl:input>{body}</wsdl:input>");
    if operation.output.is_some() {
        out.push_str(&format!("<wsdl:output>{body}</wsdl:output>"));
        if prefix != "http" {
            let fault = format!("<{prefix}:fault use=\"literal\" name=\"DataServiceFault\"/>");
            out.push_str(&format!("<wsdl:fault name=\"DataServiceFault\">{fault}</wsdl:fault>"));
        }
    }
    out + "</wsdl:operation>"
}
