//! GraphQL: schemas and queries are refused or read, within the limits. The fields of a query exist, and blanks and
//! comments change nothing.

use penstock_graphql::{Checked, OperationKind, Query, Refused, Schema};

/// Pieces of schemas and queries.
pub const DICTIONARY: &[&str] = &[
    "{ a }",
    "{",
    "}",
    "...",
    "...F",
    "fragment F on T ",
    "... on U { b }",
    "query Q($v: Int = 3) ",
    "mutation ",
    "subscription ",
    "(first: $v)",
    "(last: 1000000)",
    "(in: {n: [1, null]})",
    "@skip(if: true)",
    "@include(if: $v)",
    "__typename",
    "__schema { types { name } }",
    "b(first: 2) ",
    "x: a",
    "\"\\u00e9\"",
    "\"\"\"",
    "type T ",
    "interface I ",
    "union U = ",
    "enum E { A }",
    "input In { n: Int! }",
    "extend type T ",
    "schema { query: T }",
    "directive @d on FIELD ",
    "implements I & J ",
    ": [T!]!",
    "#",
    "\u{feff}",
];

const SCHEMA: &str = "
type Query { a: Int b(first: Int, in: In, e: E): T u: [U] i: I }
type Mutation { set(to: Int!): T }
interface I { b: I }
type T implements I { a: Int! b(first: Int last: Int): T u: U }
type V { c: String }
union U = T | V
input In { n: Int! m: In l: [E] }
enum E { A B }
";

fn checked<'q>(schema: &Schema, text: &'q str, variables: &'q serde_json::Value) -> Result<Checked<'q>, Refused> {
    Query { text, operation: None, variables: variables.as_object() }.check(schema)
}

/// Takes the bytes for a schema, and for a query of a schema.
pub fn graphql(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(problems) = Schema::parse(text) {
        assert!(!problems.is_empty());
        problems.iter().for_each(|problem| assert!(problem.offset <= text.len(), "{problem:?}"));
    }
    let schema = Schema::parse(SCHEMA).expect("a schema");
    let variables = serde_json::json!({"v": 7, "w": true});
    let first = checked(&schema, text, &variables);
    if let Ok(found) = &first {
        let kind = found.kind;
        assert_ne!(kind, OperationKind::Subscription);
        assert!(found.fields.iter().all(|field| schema.operations(kind).any(|known| known == *field)), "{found:?}");
        assert!(found.depth <= 100, "{found:?}");
        // A valid query has a depth, unless all of it is skipped.
        assert!(found.complexity == 0 || found.depth > 0, "{found:?}");
        let spaced = format!(" ,\n# {{ }}\n{text}\n,");
        assert_eq!(checked(&schema, &spaced, &variables), first);
    }
}
