//! No input may exhaust the stack, the memory or the patience of a server.
#![allow(clippy::unwrap_used, reason = "a panic is the report")]

mod common;

use common::{context, parse};
use penstock_xpath::{DynamicContext, Session, Version, XPath};

/// Compiles and, if that worked, evaluates on a thread with a small stack.
fn survive(text: String) -> String {
    let run = move || {
        let compiled = match XPath::compile(&text, &context(Version::Two)) {
            Ok(compiled) => compiled,
            Err(error) => return error.code().to_string(),
        };
        let (session, root) = Session::with_document(parse(common::ORDERS));
        session.set_fuel(500_000);
        let cx = DynamicContext::new(&session, &common::TestHost).with_node(root);
        match compiled.evaluate(&cx) {
            Ok(value) => format!("{} items", value.len()),
            Err(error) => error.code().to_string(),
        }
    };
    // What a thread of the test harness has, and of a typical runtime.
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap()
}

#[test]
fn deep_and_long_inputs() {
    let deep = 100_000;
    for (text, expected) in [
        (format!("{}1{}", "(".repeat(deep), ")".repeat(deep)), "XPST0003"),
        ("a[".repeat(deep), "XPST0003"),
        ("-".repeat(deep) + "1", "1 items"),
        ("not(".repeat(deep), "XPST0003"),
        (format!("1{}", "+1".repeat(deep)), "XPST0003"),
        (format!("1{}", "+1".repeat(300)), "1 items"),
        (format!("1{}", " or 1".repeat(deep)), "1 items"),
        (format!("a{}", "|a".repeat(10_000)), "0 items"),
        (format!("a{}", "/a".repeat(deep)), "XPST0003"),
        (format!("/*{}", "/*".repeat(300)), "0 items"),
        (format!("//*{}", "/..//*".repeat(50)), "PENS0001"),
        (format!("a{}", "[1]".repeat(10_000)), "0 items"),
        ("for $a in 1 to 2 return ".repeat(deep), "XPST0003"),
        (format!("{}1", "for $a in (1, 2) return ".repeat(40)), "PENS0001"),
        (format!("{}1", "if (1) then 1 else ".repeat(deep)), "XPST0003"),
        (format!("{}1{}", "not(".repeat(50), ")".repeat(50)), "1 items"),
        (format!("1{}", "=1".repeat(deep)), "XPST0003"),
        (format!("1{}", " ! 1".repeat(deep)), "XPST0003"),
        (format!("1{}", ", 1".repeat(deep)), "100001 items"),
        (format!("{}1{}", "(: ".repeat(deep), " :)".repeat(deep)), "XPST0003"),
        ("'".repeat(2_000_001), "XPST0003"),
        ("1 to 9223372036854775807".to_string(), "PENS0001"),
        ("count(for $i in 1 to 1000000000 return $i)".to_string(), "PENS0001"),
        ("string-join(for $i in 1 to 1000000 return string(/), '')".to_string(), "PENS0001"),
        ("for $a in //*, $b in //*, $c in //*, $d in //*, $e in //* return 1".to_string(), "PENS0001"),
        ("some $i in 1 to 9223372036854775807 satisfies $i < 0".to_string(), "PENS0001"),
        ("replace('a', '((a{1000}){1000}){1000}', 'b')".to_string(), "FORX0002"),
        ("distinct-values(1 to 100000)".to_string(), "100000 items"),
        ("let $x := 1 to 100000 return for $i in $x return count(reverse($x))".to_string(), "PENS0001"),
        ("let $x := //* return for $i in 1 to 1000000 return count($x | $x)".to_string(), "PENS0001"),
    ] {
        let shown: String = text.chars().take(40).collect();
        assert_eq!(survive(text), expected, "{shown}…");
    }
}

/// Every way of cutting and corrupting these must end in a value or an error.
#[test]
fn fragments() {
    let context = context(Version::One);
    let whole = "for $x in //a[@b = 'c'][last()] return if ($x/p:d is .) then concat(-1.5e3, \"é\") else (1 to 2)[. instance of xs:integer?]";
    for (start, _) in whole.char_indices() {
        for (end, _) in whole[start..].char_indices() {
            let _ = XPath::compile(&whole[start..start + end], &context);
        }
    }
    for symbol in ["(", ")", "[", "]", "/", "//", "::", "@", "$", "*", ":", ",", "-", "'", ".", "..", "!", "=>", "{"] {
        for (at, _) in whole.char_indices() {
            let _ = XPath::compile(&format!("{}{symbol}{}", &whole[..at], &whole[at..]), &context);
        }
    }
}
