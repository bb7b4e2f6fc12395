//! `/data-services`

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, unknown};
use super::super::inventory::Deployed;
use super::{masked, read_artifacts};

/// The root element of a `.dbs` file.
const KIND: &str = "data";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "dataServiceName",
        |_| unknown(),
        |found| {
            let (wsdl1, wsdl2) = addresses(call, &found.artifact.name);
            json!({ "name": found.artifact.name, "wsdl1_1": wsdl1, "wsdl2_0": wsdl2 })
        },
        |found| detail(call, found),
    )
}

fn addresses(call: &Call<'_>, name: &str) -> (String, String) {
    let state = call.api.state();
    let address = format!("http://{}:{}/services/{name}", state.hostname, state.served.http);
    (format!("{address}?wsdl"), format!("{address}?wsdl2"))
}

fn detail(call: &Call<'_>, found: &Deployed<'_>) -> Value {
    let (name, element) = (&found.artifact.name, &found.element);
    let (wsdl1, wsdl2) = addresses(call, name);
    let attribute =
        |element: &penstock_compile::Element<'_>, name: &str| element.attribute(name).unwrap_or_default().to_owned();
    let namespace = element.attribute("serviceNamespace").unwrap_or("http://ws.wso2.org/dataservice");
    let queries = element.elements("query").map(|query| {
        json!({
            "id": attribute(&query, "id"),
            "namespace": query.child("result").and_then(|result| result.attribute("defaultNamespace")).unwrap_or(namespace),
            "configId": attribute(&query, "useConfig"),
        })
    });
    let called = |holder: &penstock_compile::Element<'_>| {
        holder.child("call-query").map(|query| attribute(&query, "href")).unwrap_or_default()
    };
    let operations = element
        .elements("operation")
        .map(|operation| json!({ "operationName": attribute(&operation, "name"), "queryName": called(&operation) }));
    let resources = element.elements("resource").map(|resource| {
        json!({
            "resourcePath": attribute(&resource, "path"),
            "resourceMethod": attribute(&resource, "method"),
            "resourceQuery": called(&resource),
        })
    });
    let sources = element.elements("config").map(|config| json!({ "dataSourceId": attribute(&config, "id") }));
    json!({
        "serviceName": name,
        "serviceDescription": element.child_text("description").unwrap_or_default(),
        "serviceGroupName": element.attribute("serviceGroup").unwrap_or(name),
        "wsdl1_1": wsdl1,
        "wsdl2_0": wsdl2,
        "swagger_url": wsdl1.replace("?wsdl", "?swagger.json"),
        "queries": queries.collect::<Vec<_>>(),
        "operations": operations.collect::<Vec<_>>(),
        "resources": resources.collect::<Vec<_>>(),
        "dataSources": sources.collect::<Vec<_>>(),
        "configuration": masked(found),
    })
}
