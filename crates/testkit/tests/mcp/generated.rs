//! Tools generated from the definition of their backend.

use super::*;

const DEFINITION: &str = r##"
openapi: 3.0.1
info: {title: Zoo, version: "1"}
paths:
  /animals/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: animal
      summary: One animal
    put:
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Animal"}}}
components:
  schemas:
    Animal: {type: object, properties: {name: {type: string}}}
"##;

fn with_definition(url: &str, operations: Value) -> Vec<Input> {
    let mut described = backend("b1", url);
    described["definition"] = DEFINITION.into();
    let (server, list) = (descriptor("DIRECT_BACKEND", json!({}), operations), backends(json!([described])));
    project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &list)])
}

#[test]
fn a_server_without_tools_has_one_for_each_operation() {
    let backend = telling();
    let gateway = served(with_definition(&backend.url(), json!([])));
    let mut talk = Talk::with(&gateway, json!({}));
    let listed = talk.ask("tools/list", json!({}))["result"]["tools"].clone();
    let id = json!({ "type": "integer" });
    assert_eq!(
        listed[0],
        json!({
            "name": "animal", "description": "One animal",
            "inputSchema": { "type": "object", "properties": { "id": id }, "required": ["id"] },
        })
    );
    assert_eq!(listed[1]["name"], "put_animals_id");
    assert_eq!(told(&talk.call("animal", json!({ "id": 5 })))["target"], "/animals/5");
    let got = told(&talk.call("put_animals_id", json!({ "id": 5, "requestBody": { "name": "Leo" } })));
    assert_eq!((&got["method"], &got["body"]), (&json!("PUT"), &json!("{\"name\":\"Leo\"}")));
}

#[test]
fn operations_that_are_called_the_same_are_one_tool() {
    let (first, second) = (telling(), telling());
    let described = |url: &str, id: &str, path: &str| {
        let mut described = backend(id, url);
        described["definition"] = format!("paths: {{{path}: {{get: {{operationId: animal}}}}}}").into();
        described
    };
    let list = json!([described(&first.url(), "b1", "/first"), described(&second.url(), "b2", "/second")]);
    let server = descriptor("DIRECT_BACKEND", json!({}), json!([]));
    let gateway = served(project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &backends(list))]));
    let mut talk = Talk::with(&gateway, json!({}));
    assert_eq!(talk.tools(), ["animal"]);
    assert_eq!(told(&talk.call("animal", json!({})))["target"], "/first");
    let told = gateway.diagnostics.join("\n");
    assert!(told.contains("warning: GET /second is ignored: there is a tool `animal` already"), "{told}");
}

#[test]
fn a_tool_without_a_schema_takes_what_its_operation_takes() {
    let backend = telling();
    let mut one = getting();
    one.as_object_mut().unwrap().remove("schemaDefinition");
    one["backendOperationMapping"]["backendOperation"]["target"] = "/animals/{id}".into();
    let gateway = served(with_definition(&backend.url(), json!([one])));
    let mut talk = Talk::with(&gateway, json!({}));
    let listed = talk.ask("tools/list", json!({}))["result"]["tools"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["inputSchema"]["required"], json!(["id"]));
    assert_eq!(told(&talk.call("getPet", json!({ "id": 5 })))["target"], "/animals/5");
}

#[test]
fn what_a_project_lacks_is_said() {
    let name = |operations: Value, more: Value| {
        let (server, list) =
            (descriptor("DIRECT_BACKEND", more, operations), backends(json!([backend("b1", "http://127.0.0.1:1")])));
        project("pets", &[("mcp_server.yaml", &server), ("backends.yaml", &list)])
    };
    let with = |change: fn(&mut Value)| {
        let mut tool = getting();
        change(&mut tool);
        name(json!([tool]), json!({}))
    };
    let proxy = descriptor("SERVER_PROXY", json!({}), json!([getting()]));
    for (inputs, problem) in [
        (with(|tool| tool["feature"] = "PROMPT".into()), "the feature `PROMPT` is not supported"),
        (with(|tool| tool["schemaDefinition"] = "{".into()), "`schemaDefinition` is not JSON"),
        (with(|tool| tool["schemaDefinition"] = "[]".into()), "`schemaDefinition` must be a JSON object"),
        (with(|tool| drop(tool.as_object_mut().unwrap().remove("target"))), "a tool needs `target`"),
        (
            with(|tool| drop(tool.as_object_mut().unwrap().remove("backendOperationMapping"))),
            "a tool needs `backendOperationMapping`",
        ),
        (
            with(|tool| tool["backendOperationMapping"]["backendOperation"]["verb"] = "FETCH".into()),
            "unknown method `FETCH`",
        ),
        (name(json!([getting(), getting()]), json!({})), "there are two tools `getPet`"),
        (name(json!([getting()]), json!({ "subtypeConfiguration": { "subtype": "DIRECT" } })), "unknown subtype"),
        (project("pets", &[("mcp_server.yaml", &proxy)]), "the MCP server behind this one is not described"),
        (project("pets", &[("mcp_server.yaml", "type: mcp_server\n")]), "a descriptor needs `data`"),
    ] {
        let (_, faulty) = TestGateway::try_start(Setup { inputs, ..Setup::of([]) });
        assert!(faulty.iter().any(|one| one.contains(problem)), "{problem}: {faulty:?}");
    }
}
