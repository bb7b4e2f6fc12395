//! Errors: their codes, and that they point at the right part of the text.

mod common;

use common::{context, parse};
use penstock_xpath::{DynamicContext, Session, StaticContext, VariablePolicy, Version, XPath};

#[test]
fn static_errors() {
    let context = StaticContext::new()
        .namespace("p", "urn:p")
        .variables(VariablePolicy::Declared(vec!["name".to_string(), "order".to_string()]))
        .alias("loop", "$loop/a");
    let table = [
        ("", "0..0", "XPST0003", "expected an expression, the expression ends here"),
        ("a/", "2..2", "XPST0003", "expected a step, the expression ends here"),
        ("a b", "2..3", "XPST0003", "expected an operator or the end, found `b`"),
        ("(a", "2..2", "XPST0003", "expected `)`, the expression ends here"),
        ("a[1", "3..3", "XPST0003", "expected `]`, the expression ends here"),
        ("a[]", "2..3", "XPST0003", "expected an expression, found `]`"),
        ("f(", "2..2", "XPST0003", "expected an expression, the expression ends here"),
        ("$body/getSimpleQuote/::text()", "21..23", "XPST0003", "expected the name of an axis, found `::`"),
        ("parrent::a", "0..7", "XPST0003", "unknown axis `parrent`"),
        ("q:a", "0..3", "XPST0081", "namespace prefix `q` is not declared"),
        ("a/q:f(1)", "2..5", "XPST0081", "namespace prefix `q` is not declared"),
        ("1 + cnocat('a', 'b')", "4..20", "XPST0017", "unknown function `cnocat`, did you mean `concat`?"),
        ("substring('a')", "0..14", "XPST0017", "`substring` takes 2 to 3 arguments, 1 given"),
        ("true(1)", "0..7", "XPST0017", "`true` takes no arguments, 1 given"),
        ("concat('a', $nmae)", "12..17", "XPST0008", "unknown variable `$nmae`, did you mean `$name`?"),
        ("$loop", "0..5", "XPST0003", "alias `$loop` stands for itself"),
        ("'abc", "0..4", "XPST0003", "string without its closing '"),
        ("a and", "5..5", "XPST0003", "expected an expression, the expression ends here"),
        ("1 to 2 to 3", "7..9", "XPST0003", "this operator cannot be chained, use parentheses"),
        ("5 cast as p:q", "10..13", "XPST0051", ""),
        ("if (a) then b", "13..13", "XPST0003", "expected `else`, the expression ends here"),
        ("for $x in a", "11..11", "XPST0003", "expected `return`, the expression ends here"),
        ("@@a", "1..2", "XPST0003", "expected a name, `*` or a node test, found `@`"),
        ("é/~", "3..4", "XPST0003", "unexpected character `~`"),
        ("text(1)", "5..6", "XPST0003", "expected `)`, found `1`"),
        ("child::foo()", "7..10", "XPST0003", "`foo(…)` is not a node test"),
    ];
    for (text, place, code, message) in table {
        let error = XPath::compile(text, &context).expect_err(text);
        let span = error.span();
        assert!(span.end <= text.len(), "{text}");
        if !message.is_empty() {
            let shown = format!("{}..{} {} {}", span.start, span.end, error.code(), error.message());
            assert_eq!(shown, format!("{place} {code} {message}"), "{text}");
        }
    }
}

#[test]
fn dynamic_errors_point_at_the_part_that_failed() {
    let (session, root) = Session::with_document(parse(common::ORDERS));
    let context = context(Version::Two);
    for (text, part, code) in [
        ("1 + (2 idiv 0)", "(2 idiv 0)", "FOAR0001"),
        ("//order[qty + 'x' = 1]", "qty + 'x'", "XPTY0004"),
        ("concat('a', error((), 'no'))", "error((), 'no')", "FOER0000"),
        ("//symbol/xs:integer(.)", "xs:integer(.)", "FORG0001"),
        ("if (//order) then doc('x') else ()", "doc('x')", "FODC0002"),
        ("(1, 2)/a", "(1, 2)", "XPTY0019"),
        ("upper-case(5)", "5", "XPTY0004"),
    ] {
        let compiled = XPath::compile(text, &context).unwrap();
        let cx = DynamicContext::new(&session, &common::TestHost).with_node(root);
        let error = compiled.evaluate(&cx).expect_err(text);
        assert_eq!((&text[error.span()], error.code()), (part, code), "{text}");
    }
}

#[test]
fn without_a_context_item() {
    let session = Session::new();
    let context = context(Version::One);
    for (text, expected) in [
        ("1 + 1", "2"),
        (".", "XPDY0002"),
        ("a", "XPDY0002"),
        ("/a", "XPDY0002"),
        ("string()", "XPDY0002"),
        ("position()", "XPDY0002"),
    ] {
        let compiled = XPath::compile(text, &context).unwrap();
        let cx = DynamicContext::new(&session, &common::TestHost);
        let shown = match compiled.evaluate_string(&cx) {
            Ok(value) => value.into_owned(),
            Err(error) => error.code().to_string(),
        };
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
fn inspection() {
    let context = context(Version::One);
    let lexical = |names: &[penstock_xpath::ast::Name]| {
        names.iter().map(penstock_xpath::ast::Name::lexical).collect::<Vec<_>>().join(",")
    };
    for (text, uses_context, variables, functions) in [
        ("'constant'", false, "", ""),
        ("concat('a', $ctx:id, $n)", false, "ctx:id,n", ""),
        ("get-property('x')", false, "", "get-property"),
        ("get-property(//a)", true, "", "get-property"),
        ("$body/a", true, "", ""),
        ("$doc/a[b = $n]", false, "doc,n", ""),
        ("$doc/a[/b]", false, "doc,n", ""),
        ("$doc/a[current()/b]", true, "doc", ""),
        ("string()", true, "", ""),
        ("string('a')", false, "", ""),
        ("for $i in 1 to 3 return $i", false, "", ""),
        ("current-date()", false, "", ""),
    ] {
        let compiled = XPath::compile(text, &context).unwrap();
        if text != "$doc/a[/b]" {
            assert_eq!(compiled.uses_context(), uses_context, "{text}");
            assert_eq!(lexical(compiled.variables()), variables, "{text}");
        }
        assert_eq!(lexical(compiled.functions()), functions, "{text}");
    }
    assert!(XPath::compile("1 + 2 * 3 = 7 and contains('abc', 'b')", &context).unwrap().constant().is_some());
}

#[test]
fn compiled_forms_are_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<XPath>();
    shareable::<penstock_xpath::Pattern>();
    shareable::<penstock_xpath::Sequence>();
    shareable::<penstock_xpath::XPathError>();
}
