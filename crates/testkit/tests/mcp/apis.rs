//! Tools that are operations of APIs that are served here.

use super::*;

const ZOO: &str = r#"
type: api
version: v4.7.0
data:
  name: Zoo
  version: 2.0.0
  context: /zoo
  type: HTTP
  maxTps: {production: 3}
  endpointConfig:
    endpoint_type: http
    production_endpoints: {url: "URL"}
  operations:
    - target: /animals/{id}
      verb: GET
      authType: Any
      scopes: [zoo]
      operationPolicies:
        request:
          - policyName: addHeader
            policyVersion: v1
            parameters: {headerName: x-policy, headerValue: zoo}
"#;

fn mapped(name: &str, reference: Value, target: &str) -> Value {
    let mut tool =
        tool(name, "GET", target, json!({ "properties": { "path_id": {} }, "required": ["path_id"] }), json!({}));
    let mut mapping = reference;
    mapping["backendOperation"] = json!({ "target": target, "verb": "GET" });
    tool.as_object_mut().unwrap().remove("backendOperationMapping");
    tool["apiOperationMapping"] = mapping;
    tool
}

fn files(url: &str, operations: Value) -> Vec<Input> {
    let server = descriptor("EXISTING_API", json!({}), operations);
    let mut inputs = project("zoo", &[("api.yaml", &ZOO.replace("URL", url))]);
    inputs.extend(project("pets", &[("mcp_server.yaml", &server)]));
    inputs
}

#[test]
fn a_tool_runs_through_the_policies_of_its_api_and_not_through_its_gate() {
    let backend = telling();
    let by_name = json!({ "apiId": "1", "apiName": "Zoo", "apiVersion": "2.0.0", "apiContext": "/other" });
    let operations = json!([
        mapped("animal", by_name, "/animals/{id}"),
        mapped("beast", json!({ "apiName": "", "apiContext": "/zoo/2.0.0" }), "/animals/{id}"),
    ]);
    let gateway = served(files(&backend.url(), operations));
    let mut talk = Talk::with(&gateway, json!({ "sub": "ann" }));
    talk.initialize();
    // The token lacks the scope of the API's operation.
    let got = told(&talk.call("animal", json!({ "id": "7" })));
    assert_eq!((&got["target"], &got["fields"]["x-policy"]), (&json!("/animals/7"), &json!("zoo")));
    assert_eq!(got["fields"].get("authorization"), None);
    assert_eq!(told(&talk.call("beast", json!({ "id": "8" })))["target"], "/animals/8");
    let direct = gateway.client().get("/zoo/2.0.0/animals/7", &[("Authorization", &talk.bearer)]);
    assert_eq!(direct.status, 403);
}

#[test]
fn what_protects_the_apis_backend_counts_calls_of_tools_too() {
    let backend = telling();
    let reference = json!({ "apiName": "Zoo", "apiVersion": "2.0.0" });
    let gateway = served(files(&backend.url(), json!([mapped("animal", reference, "/animals/{id}")])));
    let mut talk = Talk::with(&gateway, json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "animal", "arguments": { "id": "1" } } });
    let statuses: Vec<u16> = (0..20).map(|_| talk.send(&call).status).collect();
    assert!(statuses.contains(&200) && statuses.contains(&503), "{statuses:?}");
    assert!(backend.received().len() < 20);
}

#[test]
fn a_tool_of_an_api_that_is_not_served_is_an_error() {
    let backend = telling();
    let reference = json!({ "apiName": "Zoo", "apiVersion": "2.0.0" });
    let inputs = files(&backend.url(), json!([mapped("animal", reference, "/animals/{id}")]));
    let mut gateway = served(inputs[1..].to_vec());
    assert!(gateway.diagnostics.iter().any(|note| note.contains("which is not served")), "{:?}", gateway.diagnostics);
    let mut talk = Talk::with(&gateway, json!({}));
    let call = json!({ "name": "animal", "arguments": { "id": "1" } });
    let error = talk.ask("tools/call", call.clone())["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]),
        (&json!(-32603), &json!("The operation behind the tool is not served"))
    );
    assert_eq!(gateway.deploy(&inputs, &[]), Vec::<String>::new());
    assert_eq!(told(&talk.ask("tools/call", call)["result"])["target"], "/animals/1");
}
