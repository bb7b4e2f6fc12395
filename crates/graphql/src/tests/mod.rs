//! Queries, held against schemas and measured.

mod schemas;

use serde_json::{Map, json};

use super::*;

const SHOP: &str = r#"
"What is sold, and to whom."
schema { query: Query mutation: Changes }
directive @cached(for: Int = 60) on FIELD | QUERY
scalar Date @specifiedBy(url: "https://example.com/date")
enum Kind { BOOK, MUSIC @deprecated }
interface Node { id: ID! }
interface Sold implements Node { id: ID! price: Float }
type Book implements Node & Sold {
  id: ID!
  price: Float
  title(upper: Boolean = false): String!
  """ those who wrote it """
  authors(first: Int, after: ID): [Author!]!
  out: Date
}
type Author implements Node { id: ID! name: String books(last: Int limit: Int): [Book] }
union Found = | Book | Author
input Range { from: Int! to: Int = 10 kinds: [Kind!] inner: Range }
type Query {
  book(id: ID!): Book
  books(first: Int, in: Range, kind: Kind): [Book!]
  sold: [Sold]
  find(text: String, since: Date): [Found]
  secret: String
}
type Changes { addBook(title: String!, range: Range): Book }
extend type Author @x { born: Date }
"#;

fn schema() -> Schema {
    let mut schema = Schema::parse(SHOP).expect("a schema");
    schema.set_cost("Book", "title", 12).expect("it is there");
    schema
}

fn outcome(text: &str, operation: Option<&str>, variables: &serde_json::Value) -> String {
    let variables = variables.as_object().cloned().unwrap_or_else(Map::new);
    let query = Query { text, operation, variables: Some(&variables) };
    match query.check(&schema()) {
        Ok(Checked { kind, fields, introspects, depth, complexity }) => {
            let asks = if introspects { " and the schema" } else { "" };
            format!("{} {}{asks} {depth} {complexity}", kind.word(), fields.join("+"))
        }
        Err(Refused::Syntax(why)) => format!("syntax: {why}"),
        Err(Refused::Invalid(why)) => why,
        Err(Refused::TooDeep(deepest)) => format!("deeper than {deepest}"),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(outcome(text, None, &json!({})), expected, "{}", text.get(..200).unwrap_or(text));
}

#[test]
fn queries_are_measured() {
    check("{ secret }", "query secret 1 1");
    check("query Q @cached { a: secret b: secret }", "query secret 1 2");
    check("{ book(id: 7) { title } }", "query book 2 13");
    check("{ books { authors { books { title } } } }", "query books 4 15");
    check("{ __typename book(id: 1) { __typename id } }", "query book 2 2");
    check("mutation { addBook(title: \"x\") { id } }", "mutation addBook 2 2");
    check("{ __schema { types { name } } }", "query  and the schema 3 3");
    check("{ __type(name: \"Book\") { fields(includeDeprecated: true) { name } } }", "query  and the schema 3 3");
}

#[test]
fn arguments_that_say_how_many_multiply() {
    check("{ books(first: 10) { id } }", "query books 2 20");
    check("{ books(first: 10, kind: BOOK) { id } }", "query books 2 22");
    check("{ books(first: 10) { authors(first: 5) { books(last: 2 limit: 3) { id } } } }", "query books 4 560");
    check("{ books(first: 0) { id } }", "query books 2 2");
    check("{ books(first: -5) { id } }", "query books 2 2");
    check("{ books(first: 99999999999999999999) { id } }", "query books 2 18446744073709551615");
    let by_variable = |sent| outcome("query($n: Int = 3) { books(first: $n) { id } }", None, &sent);
    assert_eq!(by_variable(json!({"n": 50})), "query books 2 100");
    assert_eq!(by_variable(json!({"n": 1e3})), "query books 2 2000");
    assert_eq!(by_variable(json!({"n": "40"})), "query books 2 80");
    assert_eq!(by_variable(json!({})), "query books 2 6");
    assert_eq!(by_variable(json!({"n": null})), "query books 2 2");
}

#[test]
fn fragments_count_where_they_are_used() {
    check(
        "{ ...Q } fragment Q on Query { book(id: 1) { ...B } secret } fragment B on Book { id out }",
        "query book+secret 2 4",
    );
    check(
        "{ ... { secret } ... on Query @include(if: true) { sold { ... on Book { title } } } }",
        "query secret+sold 2 14",
    );
    check("{ find { ... on Book { id } ... on Author { name born } } }", "query find 2 4");
    check("{ sold { id ... on Node { id } } }", "query sold 2 3");
    let skipped = "query($no: Boolean!) { secret @skip(if: $no) book(id: 1) @include(if: false) { id } }";
    // Rights are required for skippable fields too.
    assert_eq!(outcome(skipped, None, &json!({"no": true})), "query secret+book 0 0");
    assert_eq!(outcome(skipped, None, &json!({"no": false})), "query secret+book 1 1");
}

#[test]
fn the_operation_that_is_meant_is_looked_at() {
    let two = "query A { secret } mutation B { addBook(title: \"x\") { id } }";
    assert_eq!(outcome(two, Some("A"), &json!({})), "query secret 1 1");
    assert_eq!(outcome(two, Some("B"), &json!({})), "mutation addBook 2 2");
    assert_eq!(outcome(two, Some("C"), &json!({})), "Unknown operation named 'C'");
    check(two, "The name of one of the operations must be sent");
    check("query A { secret } query A { secret }", "The name of one of the operations must be sent");
    assert_eq!(
        outcome("query A { secret } query A { secret } { sold }", Some("A"), &json!({})),
        "There can be only one operation named 'A',Anonymous operation with other operations,\
         Sub selection required for type 'Sold' of field 'sold'"
    );
    check("fragment F on Query { secret }", "Operation definition cannot be empty");
    check("subscription { secret }", "Schema is not configured for subscriptions");
}

#[test]
fn violations_of_the_schema_are_reported() {
    check(
        "{ nope book(id: 1) { nope } }",
        "Field 'nope' in type 'Query' is undefined,Field 'nope' in type 'Book' is undefined",
    );
    check("{ book(id: 1) }", "Sub selection required for type 'Book' of field 'book'");
    check("{ secret { x } }", "Sub selection not allowed on leaf type 'String' of field 'secret'");
    check("{ book { id } }", "Missing argument 'id' of 'book'");
    check(
        "{ book(id: 1 id: 2 no: 3) { id } }",
        "There can be only one argument named 'id',Unknown argument 'no' of 'book'",
    );
    check("{ secret @nope }", "Unknown directive 'nope'");
    check("{ secret @skip }", "Missing argument 'if' of 'skip'");
    check("{ ...F }", "Undefined fragment 'F'");
    check("{ secret } fragment F on Book { id }", "Unused fragment 'F'");
    check("{ ...F } fragment F on Nope { id }", "Unknown type 'Nope' of a fragment");
    check(
        "{ ...F } fragment F on Book { id }",
        "Fragment cannot be spread here as objects of type 'Query' can never be of type 'Book'",
    );
    check(
        "{ ...F secret } fragment F on Query { ...G } fragment G on Query { ...F }",
        "Fragment cycles not allowed: 'F'",
    );
    check("query($a: Int) { secret }", "Unused variable 'a'");
    check(
        "{ books(first: $a) { ...F } } fragment F on Book { title(upper: $b) }",
        "Undefined variable 'a',Undefined variable 'b'",
    );
    check("query($a: Book) { find(text: $a) { __typename } }", "Unknown type 'Book' of variable 'a'");
    check("{ find { id } }", "Field 'id' in type 'Found' is undefined");
    check("{ book(id: 1) { __schema { types { name } } } }", "Field '__schema' in type 'Book' is undefined");
}

#[test]
fn values_are_of_the_type_that_is_wanted() {
    let with = |value: &str| outcome(&format!("{{ books(in: {value}) {{ id }} }}"), None, &json!({}));
    assert_eq!(with("{from: 1, kinds: BOOK, inner: {from: 2, kinds: [BOOK MUSIC]}}"), "query books 2 2");
    assert_eq!(with("null"), "query books 2 2");
    for (value, expected) in [
        ("{}", "Missing argument 'from' of 'Range'"),
        ("{from: 1.5}", "A value is not of the expected type 'Int'"),
        ("{from: null}", "A value is not of the expected type 'Int'"),
        ("{from: 1, kinds: [POEM]}", "A value is not of the expected type 'Kind'"),
        ("{from: 1, kinds: [\"BOOK\"]}", "A value is not of the expected type 'Kind'"),
        ("7", "A value is not of the expected type 'Range'"),
        ("{from: 1, no: 2}", "Unknown argument 'no' of 'Range'"),
    ] {
        assert_eq!(with(value), expected, "{value}");
    }
    check("query($d: Date) { find(since: {at: [$d, true]}) { __typename } }", "query find 2 1");
}

#[test]
fn invalid_queries_are_reported_with_their_place() {
    check("{ a(b: [1, }) }", "syntax: a value is expected, not `}` at line 1 column 12");
    check("{\n  a { }\n}", "syntax: a name is expected, not `}` at line 2 column 7");
    check(
        "type X { y: Int }",
        "syntax: `query`, `mutation`, `subscription`, `fragment` or `{` is expected, not `type` at line 1 column 1",
    );
    check("{ a", "syntax: a name is expected, not the end at line 1 column 4");
    check("{ é }", "syntax: unexpected 'é' at line 1 column 3");
    check("fragment on on Book { id }", "syntax: the name of a fragment is expected, not `on` at line 1 column 10");
}

/// A query so many fields deep.
fn deep(levels: usize) -> String {
    let step = |level: usize| if level.is_multiple_of(2) { "{ authors " } else { "{ books " };
    let inner: String = (0..levels - 2).map(step).collect();
    format!("{{ books {inner} {{ id }} {}", "}".repeat(levels - 1))
}

#[test]
fn nothing_is_nested_without_end() {
    check(&deep(100), "query books 100 100");
    check(&deep(101), "deeper than 100");
    check(&deep(5_000), "deeper than 100");
    check(&format!("{{ a(b: {}", "{c: ".repeat(50_000)), "deeper than 100");
    check(&format!("{{ a(b: {}", "[".repeat(50_000)), "deeper than 100");
    check(&format!("query($a: {}", "[".repeat(50_000)), "deeper than 100");
    // Fragments that lead to fragments, each walked once, and one that is deep where another one ends.
    let chain = |count: usize| {
        let link = |n: usize| format!("fragment F{n} on Query {{ ...F{} }} ", n + 1);
        let links: String = (0..count).map(link).collect();
        format!("{{ ...F0 }} {links} fragment F{count} on Query {{ secret }}")
    };
    check(&chain(90), "query secret 1 1");
    check(&chain(500), "deeper than 100");
    let behind = "... { ".repeat(90);
    let closed = "}".repeat(90);
    check(
        &format!("{} query B {{ {behind} ...F0 {closed} }}", chain(90).replacen('{', "query A {", 1)),
        "The name of one of the operations must be sent",
    );
    let both = format!("{} query B {{ {behind} ...F0 {closed} }}", chain(90).replacen('{', "query A {", 1));
    assert_eq!(outcome(&both, Some("A"), &json!({})), "deeper than 100");
}

#[test]
fn what_is_small_cannot_become_large() {
    let bomb = |levels: usize| {
        let doubled = |n: usize| format!("fragment F{n} on Query {{ ...F{0} ...F{0} }} ", n + 1);
        let fragments: String = (0..levels).map(doubled).collect();
        format!("{{ ...F0 }} {fragments} fragment F{levels} on Query {{ secret }}")
    };
    check(&bomb(40), "query secret 1 1099511627776");
    check(&bomb(80), "query secret 1 18446744073709551615");
    let aliases: String = (0..4_999).map(|n| format!("a{n}: secret ")).collect();
    check(&format!("{{ {aliases} }}"), "query secret 1 4999");
    let aliases: String = (0..5_001).map(|n| format!("a{n}: secret ")).collect();
    check(&format!("{{ {aliases} }}"), "syntax: more than 15000 tokens at line 1 column 68886");
    check(&format!("{{ secret {}}}", " ".repeat(1_000_000)), "query secret 1 1");
    check(&format!("{{ secret {}}}", " ".repeat(1_100_000)), "syntax: longer than 1048576 bytes at line 1 column 1");
    let unknown = "ü".repeat(500_000);
    let shown = format!("Unknown operation named 'a{}'", &unknown[..126]);
    assert_eq!(outcome("query q { secret }", Some(&format!("a{unknown}")), &json!({})), shown);
    let long = "x".repeat(500_000);
    check(&format!("{{ {long} }}"), &format!("Field '{}' in type 'Query' is undefined", &long[..64]));
    let many: String = (0..1_000).map(|n| format!("no{n} ")).collect();
    assert_eq!(outcome(&format!("{{ {many} }}"), None, &json!({})).matches("undefined").count(), 20);
}

#[test]
fn variables_of_fragments_are_joined_quickly() {
    let used: String = (0..3_600).map(|n| format!("$v{n} ")).collect();
    let fragment = format!("fragment F on Query {{ find(since: [{used}]) {{ __typename }} }}");
    let started = std::time::Instant::now();
    let spread_often = format!("{{ {} }} {fragment}", "...F ".repeat(3_600));
    assert_eq!(outcome(&spread_often, None, &json!({})).matches("Undefined variable").count(), 20);
    let operations: String = (0..1_200).map(|n| format!("query q{n} {{ ...F }} ")).collect();
    let problems = outcome(&format!("{operations} {fragment}"), Some("q0"), &json!({}));
    assert_eq!(problems.matches("Undefined variable").count(), 20);
    assert!(started.elapsed().as_millis() < 1_000, "not each use looks at each variable: {:?}", started.elapsed());
    let declared: String = (0..100).map(|n| format!("$v{n}: Date ")).collect();
    let used: String = (0..100).map(|n| format!("$v{n} ")).collect();
    let whole =
        format!("query({declared}) {{ ...F }} fragment F on Query {{ find(since: [{used}]) {{ __typename }} }}");
    check(&whole, "query find 2 1");
    check(&whole.replace("$v64: Date", "$w: Date"), "Undefined variable 'v64',Unused variable 'w'");
}
