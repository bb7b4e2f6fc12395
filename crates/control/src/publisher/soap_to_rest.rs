//! APIs of the type `SOAPTOREST`: operations of a SOAP backend as resources that take and return JSON.
//!
//! An operation becomes a resource and two templates of operation policies, which are kept with the API: one makes the SOAP
//! request of the JSON body or of the query, one makes JSON of the response. The gateway serves such an API as one of the type
//! `HTTP` with these policies ([`serve`]).

use bytes::Bytes;
use penstock_xml::escaped;
use serde_json::{Map, Value, json};

use super::wsdl::{SoapElement, SoapOperation, Wsdl};
use super::{api, definition, members};
use crate::problem::Problem;
use crate::store::{File, Object, Transaction};

/// The folder of the templates in a project.
pub(super) const FOLDER: &str = "SoapToRest/";

/// What a description becomes.
pub(super) struct Converted {
    pub(super) operations: Vec<Value>,
    /// The OpenAPI definition.
    pub(super) file: File,
    /// The templates.
    pub(super) templates: Vec<File>,
}

/// The resources of a description.
pub(super) fn convert(wsdl: &Wsdl) -> Result<Converted, Problem> {
    if wsdl.operations.is_empty() {
        let text = "The WSDL has no operation of a SOAP binding that could become a resource";
        return Err(Problem::rejected(900_676, "Invalid WSDL", text));
    }
    let (mut operations, mut paths, mut templates) = (Vec::new(), Map::new(), Vec::new());
    for operation in &wsdl.operations {
        let (target, verb) = (format!("/{}", operation.name), verb(operation));
        let mut given = Map::new();
        given.insert("target".into(), target.as_str().into());
        given.insert("verb".into(), verb.into());
        operations.push(Value::Object(members::operation(&given)));
        let mut item = Map::new();
        item.insert(verb.to_lowercase(), described(operation, verb));
        paths.insert(target, Value::Object(item));
        let file = |flow: &str, text: String| {
            File::new(format!("{FOLDER}{}.{flow}.j2", operation.name), "application/xml", text)
        };
        templates.push(file("request", request_template(operation, verb)));
        templates.push(file("response", RESPONSE.to_owned()));
    }
    let definition = json!({"openapi": "3.0.1", "info": {"title": "", "version": ""}, "paths": paths});
    let file = File::new(definition::FILE, "application/json", definition.to_string());
    Ok(Converted { operations, file, templates })
}

/// Operations that read and whose parameters fit into a query.
fn verb(operation: &SoapOperation) -> &'static str {
    let is_flat = operation.request.children.iter().all(|child| child.children.is_empty() && !child.is_list);
    match operation.name.to_lowercase().starts_with("get") && is_flat {
        true => "GET",
        false => "POST",
    }
}

fn described(operation: &SoapOperation, verb: &str) -> Value {
    let responses =
        json!({"200": {"description": "OK", "content": {"application/json": {"schema": {"type": "object"}}}}});
    if verb == "GET" {
        let parameter = |child: &SoapElement| json!({"name": child.name, "in": "query", "required": false, "schema": {"type": json_type(&child.kind)}});
        let parameters: Vec<Value> = operation.request.children.iter().map(parameter).collect();
        return json!({"operationId": operation.name, "parameters": parameters, "responses": responses});
    }
    let mut properties = Map::new();
    properties.insert(operation.request.name.clone(), schema(&operation.request));
    let body = json!({"type": "object", "properties": properties});
    json!({
        "operationId": operation.name, "responses": responses,
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
    })
}

fn schema(element: &SoapElement) -> Value {
    let one = match element.children.is_empty() {
        true if element.kind.is_empty() => json!({"type": "object"}),
        true => json!({"type": json_type(&element.kind)}),
        false => {
            let properties: Map<String, Value> =
                element.children.iter().map(|child| (child.name.clone(), schema(child))).collect();
            json!({"type": "object", "properties": properties})
        }
    };
    if element.is_list { json!({"type": "array", "items": one}) } else { one }
}

fn json_type(kind: &str) -> &'static str {
    match kind {
        "int" | "integer" | "long" | "short" | "byte" | "unsignedInt" | "unsignedLong" | "positiveInteger"
        | "nonNegativeInteger" => "integer",
        "decimal" | "double" | "float" => "number",
        "boolean" => "boolean",
        _ => "string",
    }
}

/// The response's body as JSON.
const RESPONSE: &str = r#"<property name="messageType" scope="axis2" value="application/json"/>
"#;

const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";

/// What makes the SOAP request of an operation.
fn request_template(operation: &SoapOperation, verb: &str) -> String {
    let (envelope, media_type) = match operation.is_soap_12 {
        true => (SOAP_12, "application/soap+xml"),
        false => (SOAP_11, "text/xml"),
    };
    let mut body = String::new();
    let mut arguments = String::new();
    let request = &operation.request;
    let attribute = escaped(&request.namespace);
    match verb {
        "GET" => {
            body.push_str(&format!("<{0} xmlns=\"{attribute}\">", request.name));
            for (index, child) in request.children.iter().enumerate() {
                let place = format!("args.arg{}", index + 1);
                let namespace = namespace_of(child, &request.namespace);
                body.push_str(&format!(
                    "<#if {place}?has_content><{0}{namespace}>${{{place}?xml}}</{0}></#if>",
                    child.name
                ));
                arguments.push_str(&format!("<arg expression=\"$url:{}\"/>", child.name));
            }
            body.push_str(&format!("</{}>", request.name));
        }
        _ => {
            body.push_str("<#macro value x><#if x?is_number || x?is_boolean>${x?c}<#else>${x?xml}</#if></#macro>");
            let place = format!("payload[\"{}\"]", request.name);
            write_element(&mut body, request, &place, "", 0);
        }
    }
    format!(
        "<payloadFactory media-type=\"xml\" template-type=\"freemarker\"><format><![CDATA[\
         <soapenv:Envelope xmlns:soapenv=\"{envelope}\"><soapenv:Header/><soapenv:Body>{body}</soapenv:Body>\
         </soapenv:Envelope>]]></format><args>{arguments}</args></payloadFactory>\n\
         <header name=\"SOAPAction\" scope=\"transport\" value=\"{0}\"/>\n\
         <property name=\"messageType\" scope=\"axis2\" value=\"{media_type}\"/>\n\
         <property name=\"REST_URL_POSTFIX\" scope=\"axis2\" value=\"\"/>\n\
         <property name=\"HTTP_METHOD\" scope=\"axis2\" value=\"POST\"/>\n",
        escaped(&operation.action)
    )
}

/// The declaration of a namespace that differs from the one around an element.
fn namespace_of(element: &SoapElement, around: &str) -> String {
    match element.namespace == around {
        true => String::new(),
        false => format!(" xmlns=\"{}\"", escaped(&element.namespace)),
    }
}

/// An element of the value at a place of the body; what the body does not have is left out, apart from the element around all.
fn write_element(out: &mut String, element: &SoapElement, place: &str, around: &str, depth: usize) {
    let open = format!("<{}{}>", element.name, namespace_of(element, around));
    let close = format!("</{}>", element.name);
    let is_optional = depth > 0;
    if is_optional {
        out.push_str(&format!("<#if ({place})??>"));
    }
    let item = format!("item{depth}");
    let value = if element.is_list { item.as_str() } else { place };
    if element.is_list {
        out.push_str(&format!("<#list {place} as {item}>"));
    }
    out.push_str(&open);
    match element.children.is_empty() {
        true if is_optional => out.push_str(&format!("<@value x={value}/>")),
        true => {}
        false => {
            for child in &element.children {
                write_element(out, child, &format!("{value}[\"{}\"]", child.name), &element.namespace, depth + 1);
            }
        }
    }
    out.push_str(&close);
    if element.is_list {
        out.push_str("</#list>");
    }
    if is_optional {
        out.push_str("</#if>");
    }
}

/// Makes the files of an API that converts what the gateway serves: an API of the type `HTTP` with the templates as policies.
pub(super) fn serve(
    tx: &Transaction<'_>,
    api: &Object,
    data: &mut Map<String, Value>,
) -> Result<Vec<(String, Bytes)>, Problem> {
    data.insert("type".into(), "HTTP".into());
    let mut files = Vec::new();
    let templates = tx.files(&api.id, FOLDER)?;
    let operations = data.get_mut("operations").and_then(Value::as_array_mut).into_iter().flatten();
    for operation in operations.filter_map(Value::as_object_mut) {
        let name = api::text(operation, "target").trim_start_matches('/').to_owned();
        for flow in ["request", "response"] {
            let path = format!("{FOLDER}{name}.{flow}.j2");
            let Some(template) = templates.iter().find(|template| template.path == path) else { continue };
            let policy = format!("soapToRest_{name}_{flow}");
            let specification = json!({"type": "operation_policy_specification", "version": "v4.7.0", "data": {
                "category": "Mediation", "name": policy, "displayName": policy, "version": "v1",
                "applicableFlows": [flow], "supportedGateways": ["Synapse"], "supportedApiTypes": ["HTTP"],
                "policyAttributes": [],
            }});
            files.push((format!("Policies/{policy}_v1.yaml"), specification.to_string().into()));
            files.push((format!("Policies/{policy}_v1.j2"), template.content.clone()));
            let uses = operation.get_mut("operationPolicies").and_then(|policies| policies.get_mut(flow));
            if let Some(uses) = uses.and_then(Value::as_array_mut) {
                let one = json!({"policyName": policy, "policyVersion": "v1", "parameters": {}});
                // Policies of the publisher see JSON in both directions.
                let at = if flow == "request" { uses.len() } else { 0 };
                uses.insert(at, one);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::super::wsdl;
    use super::*;

    #[test]
    fn an_operation_becomes_a_resource_with_templates() {
        let wsdl = wsdl::read(wsdl::tests::QUOTES.as_bytes(), &[]).unwrap();
        let converted = convert(&wsdl).unwrap();
        assert_eq!(
            (&converted.operations[0]["target"], &converted.operations[0]["verb"]),
            (&json!("/getQuote"), &json!("POST"))
        );
        let definition: Value = serde_json::from_slice(&converted.file.content).unwrap();
        let body = &definition["paths"]["/getQuote"]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body["properties"]["getQuote"]["properties"]["symbol"]["type"], "string");
        assert_eq!(body["properties"]["getQuote"]["properties"]["option"]["type"], "array");
        let template = String::from_utf8_lossy(&converted.templates[0].content).into_owned();
        assert!(
            template.contains("<getQuote xmlns=\"urn:q\">") && template.contains("value=\"urn:getQuote\""),
            "{template}"
        );
        assert!(convert(&Wsdl::default()).is_err());
    }

    #[test]
    fn a_flat_operation_that_reads_takes_a_query() {
        let child =
            |name: &str| SoapElement { name: name.to_owned(), kind: "int".to_owned(), ..SoapElement::default() };
        let request = SoapElement { name: "getA".to_owned(), children: vec![child("b")], ..SoapElement::default() };
        let operation = SoapOperation { name: "getA".to_owned(), action: String::new(), is_soap_12: true, request };
        let converted = convert(&Wsdl { version: "1.1", endpoints: Vec::new(), operations: vec![operation] }).unwrap();
        assert_eq!(converted.operations[0]["verb"], "GET");
        let template = String::from_utf8_lossy(&converted.templates[0].content).into_owned();
        assert!(template.contains("<arg expression=\"$url:b\"/>"), "{template}");
    }
}
