//! Expressions as data: our own table, templates, and the published pairs when they are there.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use penstock_json::mapping::Options;
use penstock_message::Value;
use penstock_xml::{Document, ParseOptions};
use penstock_xpath::{DynamicContext, ItemRef, NoHost, Session, StaticContext, XPath};
use serde_json::json;

use super::{Escape, EvaluationError, NamedScope, Scope, SynapseExpression, Template, Vault};

const NAMESPACE: &str = "urn:test:people";

#[derive(Default)]
struct Fake {
    payload: Option<serde_json::Value>,
    variables: HashMap<String, Value>,
    failures: Vec<String>,
}

fn xml(text: &str) -> Value {
    let document = Document::parse(text.as_bytes().to_vec(), &ParseOptions::default()).unwrap();
    let root = document.root_element().unwrap();
    Value::Xml(Arc::new(document), vec![root])
}

fn whole(text: &str) -> Value {
    let Value::Xml(document, _) = xml(text) else { unreachable!("it is XML") };
    Value::Xml(document, vec![Document::ROOT])
}

impl Scope for Fake {
    fn payload(&mut self) -> Result<Arc<serde_json::Value>, EvaluationError> {
        self.payload.clone().map(Arc::new).ok_or_else(|| EvaluationError::new("the payload is empty"))
    }

    fn named(&mut self, source: NamedScope, name: &str) -> Option<Value> {
        match source {
            NamedScope::Variable => self.variables.get(name).cloned(),
            NamedScope::Header if name.eq_ignore_ascii_case("count") => Some(Value::string("12")),
            NamedScope::Header if name == "zip" => Some(Value::string("007")),
            NamedScope::QueryParameter | NamedScope::PathParameter | NamedScope::FunctionParameter => {
                Some(Value::string(format!("{source:?} {name}")))
            }
            NamedScope::Config => Some(Value::string(format!("config {name}"))),
            NamedScope::Axis2Property => Some(Value::Integer(200)),
            NamedScope::Property => (name == "flag").then_some(Value::Boolean(true)),
            NamedScope::Header => None,
        }
    }

    fn xpath(&mut self, expression: &str, variable: Option<&str>) -> Result<Value, EvaluationError> {
        let name = variable.unwrap_or("body");
        let Some(Value::Xml(document, _)) = self.variables.get(name) else {
            return Err(EvaluationError::new(format!("`{name}` is not XML")));
        };
        let context = StaticContext::new().namespace("ns", NAMESPACE);
        let failed = |error: penstock_xpath::XPathError| EvaluationError::new(error.message());
        let compiled = XPath::compile(expression, &context).map_err(failed)?;
        let (session, root) = Session::with_document(document.clone());
        let found = compiled.evaluate(&DynamicContext::new(&session, &NoHost).with_node(root)).map_err(failed)?;
        let nodes = found.iter().filter_map(|item| match item {
            ItemRef::Node(node) => Some(node.id),
            ItemRef::Atomic(_) => None,
        });
        Ok(Value::Xml(document.clone(), nodes.collect()))
    }

    fn registry(&mut self, path: &str, property: Option<&str>) -> Option<String> {
        match (path, property) {
            ("conf:a.json", None) => Some(r#"{"b":[1,2]}"#.into()),
            ("conf:a.json", Some("owner")) => Some("me".into()),
            _ => None,
        }
    }

    fn secret(&mut self, vault: Vault, path: &[String]) -> Result<String, EvaluationError> {
        Ok(format!("{vault:?}:{}", path.join("/")))
    }

    fn now_ms(&mut self) -> i64 {
        1_700_000_000_123
    }

    fn failed(&mut self, expression: &str, error: &EvaluationError) {
        self.failures.push(format!("{expression}: {error}"));
    }
}

fn fake() -> Fake {
    let payload = r#"{
        "name": "Ada", "count": 3, "price": 2.50, "none": null, "tags": ["x", "y", "z"],
        "items": [{"id": 1, "cost": 10}, {"id": 2, "cost": 20.0}], "headers": {"a b": 1}, "path": "C:\\x", "paths": {"p": "\\"}, "quote": "say \"hi\"\n"
    }"#;
    let variables = [
        ("limit", Value::Integer(15)),
        ("ratio", Value::Double(0.5)),
        ("yes", Value::Boolean(true)),
        ("text", Value::string(r#"{"k":{"m":"v"}}"#)),
        ("raw", Value::string("a<b\\n")),
        ("list", Value::Json(Arc::new(json!([3, 4])))),
        ("document", whole("<d>1</d>")),
        ("body", xml("<r><p><q>1</q></p><p>2</p><e/></r>")),
    ];
    Fake {
        payload: Some(serde_json::from_str(payload).unwrap()),
        variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        failures: Vec::new(),
    }
}

/// The text, or why there is none.
fn evaluate(expression: &str, scope: &mut Fake) -> Result<String, String> {
    let compiled = SynapseExpression::parse(expression).map_err(|error| error.to_string())?;
    compiled.evaluate_text(scope).map(Option::unwrap_or_default).map_err(|error| error.to_string())
}

#[test]
fn expressions_have_values() {
    for (expression, expected) in [
        ("payload.name", "Ada"),
        ("$.price", "2.50"),
        ("payload[\"headers\"]['a b']", "1"),
        ("payload.tags[payload.count - 2]", "y"),
        ("$.tags[-1:]", r#"["z"]"#),
        ("$.tags[::2]", r#"["x","z"]"#),
        ("$.items[?(@.cost > vars.limit)].id", "[2]"),
        ("$.items[?(@.cost > vars.limit && @.id in [2,3])].id", "[2]"),
        ("$.items[?(@.id == length(payload.name) - 1)].id", "[2]"),
        ("$..id.max()", "2.0"),
        ("vars.text.k.m", "v"),
        ("var.list[0] + vars[\"limit\"]", "18"),
        ("vars.list.length()", "2"),
        ("headers.count + 1", "13"),
        ("headers['zip']", "007"),
        ("headers.nothing", ""),
        ("params.queryParams.q", "QueryParameter q"),
        ("params.uriParams[\"a-b\"]", "PathParameter a-b"),
        ("params.functionParams.f", "FunctionParameter f"),
        ("props.axis2.HTTP_SC + 1", "201"),
        ("properties.synapse.flag ? 'on' : 'off'", "on"),
        ("config.x + configs[\"y\"]", "config xconfig y"),
        ("registry('conf:a.json').b[1]", "2"),
        ("registry('conf:a.json').property('owner')", "me"),
        ("wso2-vault('a') + hashicorp-vault('p', 'f')", "Wso2:aHashiCorp:p/f"),
        ("formatDateTime(now(), 'yyyy-MM-dd HH:mm:ss.SSS')", "2023-11-14 22:13:20.123"),
        ("object(\"{\\\"a\\\": [1, 2.0]}\").a[1]", "2.0"),
        ("5-3", "2"),
        ("-payload.count * -2", "6"),
        ("!vars.yes", "false"),
        ("payload.count > 1 && payload.price < 3", "true"),
        ("payload.count == 3 and payload.price == 2.5", "false"),
        ("payload.count == 3 and payload.name == 'Ada'", "true"),
        ("false == true and false", "true"),
        ("false and false or true", "false"),
        ("vars.limit > 10 ? 'big' : vars.limit > 5 ? 'some' : 'few'", "big"),
        ("length('😀')", "2"),
        ("subString('größer', 2, 4)", "öß"),
        ("[1, 'a', true, null, payload.price]", r#"[1,"a",true,null,2.50]"#),
        ("exists(payload.none)", "false"),
        ("exists(payload.name)", "true"),
        ("payload.none == null", "true"),
        ("xpath('//p[2]')", "2"),
        ("xpath('//p[1]')", "<p><q>1</q></p>"),
        ("xpath('count(//missing)')", ""),
        ("'it\\'s \\u0041'", "it's A"),
    ] {
        assert_eq!(evaluate(expression, &mut fake()).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn evaluations_fail_with_a_reason() {
    for (expression, reason) in [
        ("payload.missing", "the path finds nothing"),
        ("vars.missing", "the variable `missing` is not set"),
        ("payload.name + 1", "`+` needs numbers, not `Ada` and `1`"),
        ("payload.count && true", "`and` needs booleans, not `3` and `true`"),
        ("1 / 0", "division by zero"),
        ("payload.count ? 1 : 2", "`?` needs a boolean, not `3`"),
        ("toUpper(null)", "`toUpper` got null for an argument"),
        ("charAt('abc', 3)", "`charAt` needs a position inside the string, not `abc`, `3`"),
        ("vars.limit[0]", "the path finds nothing"),
        ("vars.body.p", "the value is not JSON, so it has no members"),
        ("registry('conf:b')", "the registry resource `conf:b` is not there"),
        ("$.items[(@.length-1)]", "`[(@.length-1)]` cannot be evaluated"),
    ] {
        assert_eq!(evaluate(expression, &mut fake()), Err(reason.to_owned()), "{expression}");
    }
}

#[test]
fn syntax_errors_say_where() {
    for (expression, expected) in [
        ("", "the end is not expected here (at character 1 of the expression)"),
        ("1 +", "the end is not expected here (at character 4 of the expression)"),
        ("toUper('a')", "unknown function `toUper`, did you mean `toUpper`? (at character 1 of the expression)"),
        ("payloads.a", "unknown name `payloads`, did you mean `payload`? (at character 1 of the expression)"),
        ("subString('a')", "`subString` takes 2 to 3 arguments, not 1 (at character 1 of the expression)"),
        (
            "params.foo.x",
            "`queryParams` or `pathParams` or `uriParams` or `functionParams` is expected here (at character 8 of the expression)",
        ),
        ("payload.a b", "`b` is not expected here (at character 11 of the expression)"),
        ("'abc", "the string is never closed (at character 1 of the expression)"),
        ("(1", "`)` is expected here, not the end (at character 3 of the expression)"),
        ("$.a[?(@.b ==)]", "`@`, `$`, a literal or a function is expected here (at character 13 of the expression)"),
        ("$.a[?(@.b == vars.)]", "`.name` or `[\"name\"]` is expected here (at character 19 of the expression)"),
        ("1 # 2", "`#` is not expected here (at character 3 of the expression)"),
    ] {
        assert_eq!(evaluate(expression, &mut fake()), Err(expected.to_owned()), "{expression}");
    }
    assert!(SynapseExpression::parse(&"(".repeat(100_000)).is_err());
    assert!(SynapseExpression::parse(&"-".repeat(100_000)).is_err());
}

#[test]
fn lints_tell_what_surprises() {
    let lints = |text: &str| SynapseExpression::parse(text).unwrap().lints().len();
    for (expression, expected) in [
        ("1 < 2", 0),
        ("(1 < 2) and (2 < 3)", 0),
        ("1 < 2 and 2 < 3", 1),
        ("true and false or true", 1),
        ("5-3", 1),
        ("5 - 3", 0),
        ("$.a[(@.length-1)]", 1),
    ] {
        assert_eq!(lints(expression), expected, "{expression}");
    }
    assert!(SynapseExpression::parse("vars.a == length(payload.b)").unwrap().reads_payload());
    assert!(SynapseExpression::parse("xpath('//a')").unwrap().reads_payload());
    assert!(!SynapseExpression::parse("xpath('//a', 'v') + vars.b[0]").unwrap().reads_payload());
}

#[test]
fn templates_escape_by_what_they_are() {
    for (template, escape, expected) in [
        ("a ${payload.name} b ${1 + 1}", Escape::None, "a Ada b 2"),
        ("no expression $ {x}", Escape::None, "no expression $ {x}"),
        ("${'}' + \"{\"}", Escape::None, "}{"),
        ("${$.tags[?(@ =~ /[\"xy]/)]}", Escape::None, r#"["x","y"]"#),
        (r#"{"n": "${payload.name}", "c": ${payload.count}}"#, Escape::Json, r#"{"n": "Ada", "c": 3}"#),
        (r#"{"q": "<${payload.quote}>"}"#, Escape::Json, r#"{"q": "<say \"hi\"\n>"}"#),
        (
            r#"{"o": ${payload.items[0]}, "s": "${payload.items[0]}"}"#,
            Escape::Json,
            r#"{"o": {"id":1,"cost":10}, "s": "{\"id\":1,\"cost\":10}"}"#,
        ),
        (r#"{"own": "${vars.raw}"}"#, Escape::Json, r#"{"own": "a<b\n"}"#),
        (
            r#"{"x": ${xpath('//p[1]')}, "t": "${xpath('//q')}"}"#,
            Escape::Json,
            r#"{"x": {"p":{"q":1}}, "t": "<q>1</q>"}"#,
        ),
        ("{\"n\": ${payload.none}, \"m\": [${payload.missing}]}", Escape::Json, "{\"n\": null, \"m\": []}"),
        ("<a>${vars.raw}</a>", Escape::Xml, "<a>a&lt;b\\n</a>"),
        (
            "<a>${payload.items}</a>",
            Escape::Xml,
            "<a><jsonElement><id>1</id><cost>10</cost></jsonElement><jsonElement><id>2</id><cost>20.0</cost></jsonElement></a>",
        ),
        ("<a>${payload.items[1]}</a>", Escape::Xml, "<a><id>2</id><cost>20.0</cost></a>"),
        ("<a>${xpath('//p')}</a>", Escape::Xml, "<a><p><q>1</q></p><p>2</p></a>"),
        ("<a>${xpath('//q/text()')}</a>", Escape::Xml, "<a>1</a>"),
        ("<a>${vars.document}</a>", Escape::Xml, "<a><d>1</d></a>"),
        ("<a>${payload.path}${payload.paths}</a>", Escape::Xml, r"<a>C:\\x<p>\\</p></a>"),
        (r#"{"d": ${vars.document}}"#, Escape::Json, r#"{"d": {"d":1}}"#),
        ("<a>${'<b/>'}${'<b>'}</a>", Escape::Xml, "<a><b/>&lt;b&gt;</a>"),
    ] {
        let compiled = Template::parse(template).unwrap_or_else(|error| panic!("{template}: {error}"));
        assert_eq!(compiled.render(&mut fake(), escape, &Options::default()), expected, "{template}");
    }
    let mut scope = fake();
    Template::parse("${payload.missing}").unwrap().render(&mut scope, Escape::None, &Options::default());
    assert_eq!(scope.failures, ["payload.missing: the path finds nothing"]);
    let error = Template::parse("ab ${1 +} c").unwrap_err();
    assert_eq!((error.span.start, error.message.as_str()), (8, "the end is not expected here"));
    assert!(Template::parse("${payload.a").is_err());
}

/// The published pairs: expression and text, with payloads and variables beside them.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_pairs_have_the_published_values() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi/expression-tests");
    let table = std::fs::read_to_string(folder.join("synapse_expression_cases.csv")).unwrap();
    let rows = rows(&table);
    let failures: Vec<String> = rows[1..].iter().filter_map(|row| published(&folder, row).err()).collect();
    println!("{} of {} pairs", rows.len() - 1 - failures.len(), rows.len() - 1);
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

fn published(folder: &Path, row: &[String]) -> Result<(), String> {
    let [_, _, expression, expected, payload, variables, ..] = row else { return Err(format!("odd row {row:?}")) };
    let text = |number: &str| std::fs::read_to_string(folder.join(format!("PAYLOAD{number}.json"))).ok();
    let payload = text(payload).map(|text| serde_json::from_str(&text).unwrap());
    let mut scope = Fake { payload, variables: published_variables(folder, variables), failures: Vec::new() };
    if expression.contains("ns:") {
        scope.variables = published_variables(folder, "4");
    }
    // A failure is a warning and no text.
    let actual = evaluate(expression, &mut scope);
    let why = actual.as_ref().err().cloned().unwrap_or_default();
    let actual = actual.unwrap_or_default();
    if actual == *expected {
        Ok(())
    } else {
        Err(format!("{expression}\n  expected `{expected}`, got `{actual}` {why}"))
    }
}

/// Variables by the number a row names. The first two sets are listed beside the pairs; of the others
/// only names are, so documents of our own stand in for them.
fn published_variables(folder: &Path, number: &str) -> HashMap<String, Value> {
    let payload = |number: &str| std::fs::read_to_string(folder.join(format!("PAYLOAD{number}.json"))).unwrap();
    let json = |value: serde_json::Value| Value::Json(Arc::new(value));
    let person = "<person><name>John</name><age>30</age><address><city>Colombo</city><country>Sri Lanka</country></address></person>";
    let order = r#"<order id="ORD-001"><item quantity="3"><price>9.99</price></item></order>"#;
    let people =
        format!(r#"<p:a xmlns:p="{NAMESPACE}"><p:name>Jane</p:name><p:department>Engineering</p:department></p:a>"#);
    let entries = match number {
        "1" | "2" => return listed_variables(folder, number, payload),
        "3" => {
            let payload: serde_json::Value = serde_json::from_str(&payload("2")).unwrap();
            let result =
                json!({"headers": {"Content-Length": 101}, "attributes": {"statusCode": 201}, "payload": payload});
            vec![("fileRead_1", json(result))]
        }
        "4" => vec![
            ("personVar.payload", xml(person)),
            ("personVar.headers", json(json!({}))),
            ("orderVar.payload", xml(order)),
            ("nsVar.payload", xml(&people)),
            ("plainXmlVar", xml("<root><value>42</value></root>")),
        ],
        _ => Vec::new(),
    };
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Lines of `variableMap1.put("name", value);`, where a value is a Java literal, a payload or parsed JSON.
fn listed_variables(folder: &Path, number: &str, payload: impl Fn(&str) -> String) -> HashMap<String, Value> {
    let list = std::fs::read_to_string(folder.join("VARIABLES.txt")).unwrap();
    let start = format!("variableMap{number}.put(\"");
    let literal = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let value = |text: &str| match (text.strip_prefix("PAYLOAD"), text.strip_prefix("JsonParser.parseString(")) {
        (Some(number), _) => Value::string(payload(number)),
        (_, Some(parsed)) => {
            let inner = &parsed[..=parsed.rfind('"').unwrap()];
            Value::Json(Arc::new(literal(literal(inner).as_str().unwrap())))
        }
        _ => match literal(text) {
            serde_json::Value::String(text) => Value::string(text),
            number if number.is_i64() => Value::Integer(number.as_i64().unwrap()),
            number => Value::Double(number.as_f64().unwrap()),
        },
    };
    let lines = list.lines().filter_map(|line| line.strip_prefix(&start)?.strip_suffix(");"));
    lines.filter_map(|line| line.split_once("\", ")).map(|(name, text)| (name.to_owned(), value(text))).collect()
}

/// Comma-separated values with quotes, as spreadsheets write them.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = text.trim_end().chars().filter(|character| *character != '\r').peekable();
    while let Some(character) = characters.next() {
        let row = rows.last_mut().unwrap();
        match character {
            '"' if quoted && characters.next_if_eq(&'"').is_some() => row.last_mut().unwrap().push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            other => row.last_mut().unwrap().push(other),
        }
    }
    rows
}
