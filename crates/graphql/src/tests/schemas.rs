//! Schemas: what is none, and what is written in other ways.

use super::*;

#[track_caller]
fn wrong(text: &str, expected: &[&str]) {
    let problems = Schema::parse(text).expect_err("it is wrong");
    let told = |problem: &Malformed| {
        let (line, column) = position(text, problem.offset);
        format!("{line}:{column}: {}", problem.message)
    };
    assert_eq!(problems.iter().map(told).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn mistakes_of_schemas_are_reported_with_their_places() {
    wrong(
        "type Query { a: Strin b: [Bok] }\ntype Book { id: ID }",
        &["1:17: unknown type `Strin`, did you mean `String`?", "1:27: unknown type `Bok`, did you mean `Book`?"],
    );
    wrong(
        "type Query { a: Int a: Int }\nenum Query { A }\nextend enum Query { B }",
        &[
            "2:6: the type `Query` is defined twice",
            "1:21: the field `a` is defined twice",
            "3:13: `Query` is defined as something else",
        ],
    );
    wrong(
        "type Query { a(b: Query): In }\ninput In { c: Int c: Int }",
        &["1:27: `In` is for arguments, no field can have it", "2:19: `c` is defined twice"],
    );
    wrong(
        "type Query implements X & Y { a: Int }\ntype Y { a: Int }\nunion U = Y | E\nenum E { A }",
        &[
            "1:23: unknown type `X`, did you mean `E`?",
            "1:27: `Y` is not an interface",
            "3:15: `E` is not a type with fields",
        ],
    );
    wrong("type A { a: Int }", &["1:1: a schema needs a type `Query`, or `schema { query: … }`"]);
    wrong(
        "schema { query: E }\nenum E { A }\ntype __X { a: Int }",
        &["3:6: `__X` begins with `__`, as no type may", "1:17: `E` must be a type with fields"],
    );
    wrong("type Query { a: Int", &["1:20: a name is expected, not the end"]);
    wrong("type Query { a Int }", &["1:16: `:` is expected, not `Int`"]);
    wrong(
        "query { a }",
        &[
            "1:1: `type`, `interface`, `union`, `enum`, `input`, `scalar`, `schema` or `directive` is expected, not `query`",
        ],
    );
}

#[test]
fn schemas_written_in_other_ways_are_read() {
    let schema = Schema::parse(
        "type Query implements A, B { a: Int } interface A { a: Int } interface B { a: Int } type Empty \
         type Mutation { set(to: String = \"x\" @x): Empty } extend schema @link(url: \"y\") \
         extend type Query { b: [Int!]! } scalar ID directive @x(y: Int) repeatable on | FIELD | SCHEMA",
    );
    let schema = schema.expect("a schema");
    let mut names: Vec<&str> = schema.operations(OperationKind::Query).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(schema.operations(OperationKind::Mutation).collect::<Vec<_>>(), ["set"]);
    assert_eq!(schema.operations(OperationKind::Subscription).count(), 0);
}

#[test]
fn costs_are_of_fields_that_are_there() {
    let mut schema = schema();
    assert_eq!(schema.set_cost("Nope", "a", 1), Err("the schema has no type `Nope` with fields".to_owned()));
    assert_eq!(schema.set_cost("Kind", "a", 1), Err("the schema has no type `Kind` with fields".to_owned()));
    assert_eq!(schema.set_cost("Book", "a", 1), Err("the type `Book` has no field `a`".to_owned()));
}
