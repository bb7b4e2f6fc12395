//! JSONPath as the artifacts write it: what a path yields, as text and as items, and edits.

use penstock_json::path::{Dialect, JsonPath, insert_child, remove, replace};
use serde_json::{Value, json};

const SHOP: &str = r#"{
  "name": "Corner", "open": true, "none": null, "code": "7",
  "shelf": [
    {"kind": "tea", "title": "Assam", "price": 4.50, "tags": ["black", "strong"]},
    {"kind": "tea", "title": "Sencha", "price": 6, "tags": []},
    {"kind": "cup", "title": "Mug", "price": 12.99, "stock": 3}
  ],
  "a key": {"x.y": 1},
  "wrapped": {"members": [1, 2]}
}"#;

fn shop() -> Value {
    serde_json::from_str(SHOP).expect("the document is JSON")
}

fn path(text: &str) -> JsonPath {
    JsonPath::parse(text, Dialect::Artifacts).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn text_follows_what_the_artifacts_expect() {
    let shop = shop();
    for (expression, expected) in [
        ("$.name", "Corner"),
        ("name", "Corner"),
        ("shelf[0].title", "Assam"),
        ("$.shelf[0].price", "4.50"),
        ("$['a key']['x.y']", "1"),
        ("$.missing", ""),
        ("$.missing.deeper", ""),
        ("$.name.deeper", ""),
        ("$.shelf[9]", ""),
        ("$.none", "null"),
        ("$.open", "true"),
        ("$.shelf[-1].title", "Mug"),
        ("$.shelf.[1].title", "Sencha"),
        ("$.shelf[*].title", r#"["Assam","Sencha","Mug"]"#),
        ("$.shelf[0,2].title", r#"["Assam","Mug"]"#),
        ("$.shelf[:2].title", r#"["Assam","Sencha"]"#),
        ("$..price", "[4.50,6,12.99]"),
        ("$.shelf[9:]", "[]"),
        ("$.shelf[0]['kind','title']", r#"{"kind":"tea","title":"Assam"}"#),
        ("$.wrapped", "[1,2]"),
        ("$.shelf.length()", "3"),
        ("$.shelf.size()", "3"),
        ("$..price.max()", "12.99"),
        ("$..price.min()", "4.5"),
        ("$.wrapped.members.sum()", "3.0"),
        ("$.wrapped.members.avg()", "1.5"),
        ("$.wrapped.members.stddev()", "0.5"),
        ("$.shelf[2].keys()", r#"["kind","title","price","stock"]"#),
        ("$.shelf.first()", r#"{"kind":"tea","title":"Assam","price":4.50,"tags":["black","strong"]}"#),
        ("$.wrapped.members.last()", "2"),
        ("$.wrapped.members.index(-2)", "1"),
    ] {
        assert_eq!(path(expression).text(&shop), expected, "{expression}");
    }
    assert_eq!(path("$.").text(&json!({"a": 1})), r#"{"a":1}"#);
    assert_eq!(path("").text(&json!("x")), r#""x""#);
}

#[test]
fn filters_know_more_than_the_standard() {
    let shop = shop();
    for (filter, expected) in [
        ("@.kind == 'tea'", r#"["Assam","Sencha"]"#),
        ("@.kind=='tea'&&@.price>5", r#"["Sencha"]"#),
        ("(@.kind == \"cup\" || @.price < 5)", r#"["Assam","Mug"]"#),
        ("!(@.kind == 'cup')", r#"["Assam","Sencha"]"#),
        ("@.stock", r#"["Mug"]"#),
        ("!@.stock", r#"["Assam","Sencha"]"#),
        ("@.title =~ /.*se.*/i", r#"["Sencha"]"#),
        ("@.title =~ /se/i", "[]"),
        ("@.kind in ['cup', 'pot']", r#"["Mug"]"#),
        ("@.kind nin ['cup']", r#"["Assam","Sencha"]"#),
        ("@.tags subsetof ['black','strong','hot']", r#"["Assam","Sencha"]"#),
        ("@.tags anyof ['strong']", r#"["Assam"]"#),
        ("@.tags noneof ['strong']", r#"["Sencha"]"#),
        ("@.tags size 2", r#"["Assam"]"#),
        ("@.tags empty true", r#"["Sencha"]"#),
        ("@.tags contains 'black'", r#"["Assam"]"#),
        ("@.tags.length() > 1", r#"["Assam"]"#),
        ("@.price == '6'", r#"["Sencha"]"#),
        ("@.price == 6.0", r#"["Sencha"]"#),
        ("@.price > $.shelf[1].price", r#"["Mug"]"#),
        ("@.stock != 3", r#"["Assam","Sencha"]"#),
    ] {
        let expression = format!("$.shelf[?({filter})].title");
        assert_eq!(path(&expression).text(&shop), expected, "{expression}");
    }
}

#[test]
fn items_are_the_elements_of_a_list_or_the_value() {
    let items = |expression: &str| path(expression).items(&shop()).map(Value::Array);
    assert_eq!(items("$.shelf[0].tags"), Some(json!(["black", "strong"])));
    assert_eq!(items("$.shelf[?(@.stock)].title"), Some(json!(["Mug"])));
    assert_eq!(items("$.name"), Some(json!(["Corner"])));
    assert_eq!(items("$.missing"), None);
    assert_eq!(items("$.none"), Some(json!([])));
}

#[test]
fn definite_paths_find_one_value_at_most() {
    for (expression, expected) in [
        ("$", true),
        ("$.a[0]['b']", true),
        ("$['a','b']", true),
        ("$.a[0,1]", false),
        ("$.a[1:]", false),
        ("$..a", false),
        ("$.*", false),
        ("$.a[?(@.b)]", false),
    ] {
        assert_eq!(path(expression).is_definite(), expected, "{expression}");
    }
}

#[test]
fn edits_touch_every_place_found() {
    let mut document = json!({"a": [1, 2, 3, 4], "b": {"c": 1}});
    assert_eq!(replace(&mut document, &path("$.b.c"), &json!("new")), 1);
    assert_eq!(remove(&mut document, &path("$.a[0,2]")), 2);
    assert_eq!(insert_child(&mut document, &path("$.a"), &json!(5)), 1);
    assert_eq!(insert_child(&mut document, &path("$.b"), &json!({"d": 2})), 1);
    assert_eq!(insert_child(&mut document, &path("$.b.c"), &json!(1)), 0);
    assert_eq!(replace(&mut document, &path("$.missing"), &json!(1)), 0);
    assert_eq!(document, json!({"a": [2, 4, 5], "b": {"c": "new", "d": 2}}));
    assert_eq!(replace(&mut document, &path("$"), &json!([])), 1);
    assert_eq!(document, json!([]));
    assert_eq!(path("$.a.b").parent().map(|parent| parent.text(&json!({"a": 1})).into_owned()), Some("1".into()));
    assert_eq!(path("$.a.b").last_name(), Some("b"));
}

#[test]
fn mistakes_say_where_they_are() {
    for (expression, at, message) in [
        ("$.a[", 4, "a name in quotes, an index, a slice, `*` or a filter is expected here"),
        ("$.a['b", 4, "the string is never closed"),
        ("$.a[1", 3, "`[` is never closed"),
        ("$.a b", 3, "` b` is not expected here"),
        ("$.a[?(@.b ==)]", 12, "`@`, `$`, a literal or a function is expected here"),
        ("$.a[?(@.b =~ /[/)]", 13, "not a regular expression: unclosed character class"),
        ("$.a.total()", 4, "unknown function `total()`"),
        ("$..", 3, "a member name is expected here"),
        ("$.a[99999999999999999999]", 4, "`99999999999999999999` is not an integer"),
    ] {
        let error = JsonPath::parse(expression, Dialect::Artifacts).map(|_| ()).unwrap_err();
        assert_eq!((error.span.start, error.message.as_str()), (at, message), "{expression}");
    }
    let deep = format!("$[?{}@.a{}]", "(".repeat(10_000), ")".repeat(10_000));
    assert!(JsonPath::parse(&deep, Dialect::Artifacts).is_err());
    let descendants = "$..*".to_owned() + &"..*".repeat(20);
    assert!(JsonPath::parse(&descendants, Dialect::Artifacts).is_err());
}

#[test]
fn the_tolerant_rules_take_any_text_for_a_name() {
    let shop = json!({"list": [1], "a&b": 2, "o": {"x": 3, "x)": 4}});
    for (expression, expected) in
        [("$.list[0])", ""), ("$.list[0]]", ""), ("$.a&b", "2"), ("$.o.x)", "4"), ("$.o.x", "3")]
    {
        let path = JsonPath::parse_tolerantly(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert_eq!(path.text(&shop), expected, "{expression}");
    }
    for broken in ["$.a b", "$.list[", "$.list[0", "$..", "$.list[?(@.x ==)]"] {
        assert!(JsonPath::parse_tolerantly(broken).is_err(), "{broken}");
    }
}
