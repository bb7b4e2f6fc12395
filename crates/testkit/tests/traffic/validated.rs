//! Requests and answers against the definition (instructive test 25).

use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Answer, Backend, Received, Reply, Setup, TestGateway};
use serde_json::json;

const PETS: &str = r##"
openapi: 3.0.3
info: { title: Pets, version: "1.0" }
x-wso2-disable-security: true
paths:
  /pets:
    get:
      parameters:
        - { name: limit, in: query, required: true, schema: { type: integer, maximum: 100 } }
        - { name: tags, in: query, schema: { type: array, items: { type: string, enum: [cat, dog] } } }
        - { name: ids, in: query, explode: false, schema: { type: array, items: { type: integer } } }
      responses: { "200": { description: all } }
    post:
      parameters:
        - $ref: "#/components/parameters/RequestId"
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } }
      responses:
        "200": { description: kept, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
        4XX: { description: not kept, content: { application/json: { schema: { required: [why] } } } }
  /pets/{petId}:
    parameters:
      - { name: petId, in: path, required: true, schema: { type: integer } }
    get:
      responses: { default: { description: one, content: { application/json: { schema: { type: object } } } } }
components:
  parameters:
    RequestId: { name: X-Request-ID, in: header, required: true, schema: { type: string, minLength: 3 } }
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string }
        tag: { type: string, nullable: true }
        parent: { $ref: "#/components/schemas/Pet" }
"##;

fn descriptor(backend: &Backend, more: &str) -> String {
    let endpoint = format!("endpointConfig:\n    production_endpoints: {{ url: {} }}", backend.url());
    format!(
        "type: api\nversion: v4.2.0\ndata:\n  name: Pets\n  version: '1.0'\n  context: /p\n  {endpoint}\n  {more}\n"
    )
}

fn start(backend: &Backend, definition: &str, more: &str, style: ErrorStyle) -> TestGateway {
    let descriptor = descriptor(backend, more);
    let setup = Setup::project(&[("api.yaml", &descriptor), ("Definitions/swagger.yaml", definition)]);
    TestGateway::start(setup.serving_unprotected(&["Pets"]).configured(|config| config.error_style = style))
}

fn validating(backend: &Backend, definition: &str) -> TestGateway {
    start(backend, definition, "enableSchemaValidation: true", ErrorStyle::ApiManager)
}

/// Answers with what the request's query says, or with a good pet.
fn pets(request: &Received) -> Answer {
    let answer = |status: u16, body: &str| Answer::new(status, "application/json", body.to_owned());
    match request.target.split_once('?').map(|(_, query)| query) {
        Some("bad") => answer(200, r#"{"id":"7"}"#),
        Some("refused") => answer(409, r#"{"why":"known"}"#),
        Some("vague") => answer(409, "{}"),
        Some("other") => answer(201, "[]"),
        Some("html") => Answer::new(200, "text/html", "<p/>"),
        Some("broken") => answer(200, r#"{"id":"#),
        Some("empty") => answer(200, ""),
        _ => answer(200, r#"{"id":7,"name":"Tom","tag":null,"parent":{"id":1,"name":"Eve"}}"#),
    }
}

fn description(reply: &Reply) -> String {
    reply.json()["description"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn requests_that_the_definition_does_not_allow_are_refused() {
    let backend = Backend::start(pets);
    let gateway = validating(&backend, PETS);
    let mut client = gateway.client();
    let json = ("Content-Type", "application/json");
    let mut post =
        |headers: &[(&str, &str)], body: &str| client.request("POST", "/p/1.0/pets", headers, body.as_bytes());
    let reply = post(&[json, ("X-Request-ID", "abc")], r#"{"tag":"x"}"#);
    assert_eq!(reply.status, 400);
    let text = "Schema validation failed in the Request: Object has missing required properties ([\"name\"])";
    let expected = json!({ "code": "400", "message": "Bad Request", "description": text });
    assert_eq!(reply.json(), expected);
    let good = r#"{ "name": "Tom" ,"tag":null, "parent":{"name":"Eve"}}"#;
    for (headers, body, told) in [
        (&[json][..], good, "Header parameter 'X-Request-ID' is required on path '/pets' but not found in request."),
        (&[json, ("X-Request-ID", "a")], good, "Header parameter 'X-Request-ID': "),
        (&[json, ("x-request-id", "abc")], r#"{"name":1}"#, "[Path '/name'] Instance type (integer) does not match"),
        (&[json, ("x-request-id", "abc")], r#"{"name":"a","parent":{}}"#, "[Path '/parent'] Object has missing"),
        (&[json, ("x-request-id", "abc")], r#"{"name":"#, "Unable to parse JSON"),
        // A forgiving reader would take it, and the backend may read it in another way.
        (&[json, ("x-request-id", "abc")], r#"{"name":"a" /* , "tag":"b" */}"#, "Unable to parse JSON"),
        (&[json, ("x-request-id", "abc")], "", "A request body is required but none found."),
        (&[("x-request-id", "abc")], "{}", "Object has missing required properties"),
        (&[("x-request-id", "abc"), ("Content-Type", "text/plain")], good, "Request Content-Type header 'text/plain'"),
    ] {
        let reply = post(headers, body);
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
        let text = description(&reply);
        let text = text.strip_prefix("Schema validation failed in the Request: ").unwrap_or_default();
        assert!(text.starts_with(told), "{text}\nis not\n{told}");
    }
    assert_eq!(backend.received().len(), 0, "the backend hears nothing of it");
    for name in ["X-Request-ID", "x-request-id", "X-REQUEST-id"] {
        assert_eq!(post(&[json, (name, "abc")], good).status, 200, "{name}");
        assert_eq!(backend.last().text(), good, "sent on as it came");
    }
}

#[test]
fn parameters_have_the_types_of_the_definition() {
    let backend = Backend::start(pets);
    let gateway = validating(&backend, PETS);
    let mut client = gateway.client();
    for (target, status) in [
        ("/pets?limit=10", 200),
        ("/pets?limit=%31%30", 200),
        ("/pets", 400),
        ("/pets?limit=", 400),
        ("/pets?limit=ten", 400),
        ("/pets?limit=1.5", 400),
        ("/pets?limit=101", 400),
        ("/pets?limit=1&tags=cat&tags=dog", 200),
        ("/pets?limit=1&tags=cat&tags=cow", 400),
        ("/pets?limit=1&ids=1,2,3", 200),
        ("/pets?limit=1&ids=1,b", 400),
        ("/pets?limit=1&unknown=1", 200),
        ("/pets/7", 200),
        ("/pets/seven", 400),
    ] {
        let reply = client.get(&format!("/p/1.0{target}"), &[]);
        assert_eq!(reply.status, status, "{target}: {}", reply.text());
    }
}

#[test]
fn answers_that_the_definition_does_not_allow_are_replaced() {
    let backend = Backend::start(pets);
    let gateway = validating(&backend, PETS);
    let mut client = gateway.client();
    let fields = [("Content-Type", "application/json"), ("X-Request-ID", "abc")];
    let mut post = |query: &str| client.request("POST", &format!("/p/1.0/pets?{query}"), &fields, br#"{"name":"Tom"}"#);
    for (query, told) in [
        ("bad", ""),
        ("vague", "Object has missing required properties ([\"why\"])"),
        ("html", "Response Content-Type header 'text/html' does not match any allowed types."),
        ("broken", "Unable to parse JSON"),
        ("empty", "A response body is expected but none found."),
    ] {
        let reply = post(query);
        assert_eq!((reply.status, reply.json()["code"].as_str()), (500, Some("500")), "{query}: {}", reply.text());
        let told = format!("Schema validation failed in the Response: {told}");
        assert!(description(&reply).starts_with(&told), "{}", description(&reply));
    }
    // The order of keywords is unspecified.
    let both = description(&post("bad"));
    assert!(both.contains("Object has missing required properties ([\"name\"])"), "{both}");
    assert!(both.contains("[Path '/id'] Instance type (string) does not match any allowed primitive type"), "{both}");
    assert_eq!(post("good").status, 200);
    assert_eq!(post("good").json()["parent"]["name"], "Eve");
    assert_eq!((post("refused").status, post("other").status), (409, 201));
}

#[test]
fn swagger_bodies_and_version_3_1_are_read_in_their_own_words() {
    let swagger = r##"
swagger: "2.0"
info: { title: Pets, version: "1.0" }
x-wso2-disable-security: true
consumes: [application/json]
paths:
  /pets:
    post:
      parameters:
        - { name: pet, in: body, required: true, schema: { $ref: "#/definitions/Pet" } }
        - { name: kinds, in: query, type: array, items: { type: string, enum: [a, b] } }
      responses: { 200: { description: kept, schema: { type: object, required: [id] } } }
definitions:
  Pet: { type: object, required: [name], properties: { name: { type: string } } }
"##;
    let latest = r##"{ "openapi": "3.1.0", "info": { "title": "Pets", "version": "1.0" }, "x-wso2-disable-security": true,
      "paths": { "/pets": { "post": {
        "parameters": [{ "name": "kinds", "in": "query", "explode": false,
                         "schema": { "type": "array", "items": { "enum": ["a", "b"], "type": "string" } } }],
        "requestBody": { "content": { "application/json": { "schema": {
          "type": "object", "properties": { "name": { "type": ["string"] } }, "required": ["name"] } } } },
        "responses": { "200": { "description": "kept", "content": { "application/*": { "schema": { "required": ["id"] } } } } } } } } }"##;
    for definition in [swagger, latest] {
        let backend = Backend::start(pets);
        let gateway = validating(&backend, definition);
        let mut client = gateway.client();
        for (target, body, status) in [
            ("/pets", r#"{"name":"Tom"}"#, 200),
            ("/pets", r#"{"name":7}"#, 400),
            ("/pets", "{}", 400),
            ("/pets?kinds=a,b", r#"{"name":"Tom"}"#, 200),
            ("/pets?kinds=a,c", r#"{"name":"Tom"}"#, 400),
        ] {
            let fields = [("Content-Type", "application/json; charset=utf-8")];
            let reply = client.request("POST", &format!("/p/1.0{target}"), &fields, body.as_bytes());
            assert_eq!(reply.status, status, "{target} {body}: {} {definition}", reply.text());
        }
    }
}

#[test]
fn only_authorized_callers_get_validation_errors() {
    let backend = Backend::start(pets);
    let secured = PETS.replace("x-wso2-disable-security: true", "x-wso2-schema-validation: true");
    let gateway = start(&backend, &secured, "lifeCycleStatus: PUBLISHED", ErrorStyle::ChoreoConnect);
    let mut client = gateway.client();
    assert_eq!(client.get("/p/1.0/pets", &[]).status, 401);
    let bearer = gateway.bearer(&json!({ "sub": "ann" }));
    let reply = client.get("/p/1.0/pets", &[("Authorization", &bearer)]);
    assert_eq!((reply.status, reply.json()["error_message"].as_str()), (400, Some("Bad Request")), "{}", reply.text());
    assert_eq!(
        reply.json()["error_description"],
        "Schema validation failed in the Request: Query parameter 'limit' is required on path '/pets' but not found in request."
    );
}

#[test]
fn validation_is_optional_and_unusable_schemas_are_reported() {
    let backend = Backend::start(pets);
    let gateway = start(&backend, PETS, "enableSchemaValidation: false", ErrorStyle::ApiManager);
    assert_eq!(gateway.client().get("/p/1.0/pets?limit=ten", &[]).status, 200);
    let broken = PETS.replace("maximum: 100", "maximum: ten");
    let gateway = validating(&backend, &broken);
    let told = gateway.diagnostics.join("\n");
    assert!(
        told.contains("the schema of the parameter `limit`: ") && told.contains("it cannot be validated"),
        "{told}"
    );
    assert_eq!(gateway.client().get("/p/1.0/pets?limit=ten", &[]).status, 200);
    assert_eq!(gateway.client().get("/p/1.0/pets", &[]).status, 400);
}
