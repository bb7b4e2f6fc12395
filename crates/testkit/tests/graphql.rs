//! GraphQL APIs over real sockets: the fields of a query decide the credentials it needs and its limits.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "graphql/limits.rs"]
mod limits;
#[path = "graphql/projects.rs"]
mod projects;
#[path = "graphql/requests.rs"]
mod requests;
#[path = "graphql/rights.rs"]
mod rights;

use penstock_gateway::ErrorStyle;
use penstock_testkit::gateway::{Answer, Backend, Client, Reply, Setup, TestGateway};
use serde_json::{Value, json};

const SCHEMA: &str = "
type Query {
  hello: String
  book(id: ID!): Book
  books(first: Int, author: ID): [Book!]!
  stock(limit: Int): [Int]
  unlisted: Int
}
type Mutation { addBook(title: String!): Book removeBook(id: ID!): Boolean }
type Subscription { bookAdded: Book }
interface Node { id: ID! }
type Book implements Node { id: ID! title: String! author: Author similar(first: Int): [Book!] }
type Author implements Node { id: ID! name: String! books: [Book!] }
";

const COMPLEXITY: &str = "
type: graphql-complexity
version: v4.1.0
data:
  list:
    - { type: Book, field: similar, complexityValue: 10 }
    - { type: Author, field: name, complexityValue: 3 }
";

const OPERATIONS: &str = "
    - { target: hello, verb: QUERY, authType: None, throttlingPolicy: Unlimited }
    - { target: book, verb: QUERY, throttlingPolicy: Unlimited }
    - { target: books, verb: QUERY, throttlingPolicy: Unlimited, scopes: [read, admin] }
    - { target: stock, verb: QUERY, throttlingPolicy: Small, authType: None }
    - { target: addBook, verb: MUTATION, throttlingPolicy: Unlimited, scopes: [write] }
    - { target: removeBook, verb: MUTATION, throttlingPolicy: Unlimited, scopes: [admin] }
";

fn descriptor(backend: &Backend, more: &str) -> String {
    format!(
        "type: api\nversion: v4.2.0\ndata:\n  name: Books\n  version: 1.0.0\n  context: /books\n  type: GRAPHQL\n  \
         endpointConfig:\n    endpoint_type: http\n    production_endpoints: {{ url: '{}/graphql' }}\n  \
         operations:{OPERATIONS}{more}\n",
        backend.url()
    )
}

fn setup(backend: &Backend, more: &str) -> Setup {
    Setup::project(&[
        ("api.yaml", &descriptor(backend, more)),
        ("Definitions/schema.graphql", SCHEMA),
        ("Definitions/graphql-complexity.yaml", COMPLEXITY),
    ])
    .serving_unprotected(&["Books"])
}

/// A backend that answers everything with the same data.
fn backend() -> Backend {
    Backend::start(|_| Answer::json(&json!({"data": {"hello": "world"}})))
}

fn start(backend: &Backend) -> TestGateway {
    TestGateway::start(setup(backend, ""))
}

fn in_style_of_api_manager(backend: &Backend) -> TestGateway {
    TestGateway::start(setup(backend, "").configured(|config| config.error_style = ErrorStyle::ApiManager))
}

/// Sends a query without credentials.
fn ask(client: &mut Client, query: &str) -> Reply {
    ask_with(client, &json!({"query": query}), "")
}

/// Sends what a body says, with this value of `Authorization` unless it is empty.
fn ask_with(client: &mut Client, body: &Value, authorization: &str) -> Reply {
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend((!authorization.is_empty()).then_some(("Authorization", authorization)));
    client.request("POST", "/books/1.0.0", &headers, body.to_string().as_bytes())
}

#[track_caller]
fn refused(reply: &Reply, status: u16, code: &str, description: &str) {
    let body = reply.json();
    let text = body["error_description"].as_str().or(body["description"].as_str()).unwrap_or_default();
    assert_eq!((reply.status, body["code"].as_str(), text), (status, Some(code), description), "{}", reply.text());
}
