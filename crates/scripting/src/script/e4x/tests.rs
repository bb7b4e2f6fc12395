use super::*;

fn check(script: &str, expected: &str) {
    assert_eq!(translate(script).unwrap(), expected, "{script}");
}

#[test]
fn operators() {
    check("x..*::Code.toString()", r#"x.__descendants("Code", "*").toString()"#);
    check("x..item", r#"x.__descendants("item")"#);
    check("x.a.@id + x.@*", r#"x.a["@id"] + x.__children("@*")"#);
    check("x.@n::id", r#"x.__children("@id", n)"#);
    check("x.ns::a.*", r#"x.__children("a", ns).__children("*")"#);
    check("f(...list)", "f(...list)");
    check("1.5 + x.in", "1.5 + x.in");
    check("x.a.(@id == 1)", r#"x.a.__filter(function () { with (this) { return (__children("@id") == 1); } })"#);
}

#[test]
fn appending() {
    check("r.a += <b/>;", r#"r.a = __add(r.a, __xml(["<b/>"]));"#);
    check("r.a[i].b += x\nf()", "r.a[i].b = __add(r.a[i].b, x)\nf()");
    check("if (c) { l += <b/> }", r#"if (c) { l = __add(l, __xml(["<b/>"]) )}"#);
    check("x = a.b + <c/> + <d/>;", r#"x = __add(__add(a.b,  __xml(["<c/>"])),  __xml(["<d/>"]));"#);
    check("i += 1; s += 'x'; f(g() + 1)", "i += 1; s += 'x'; f(g() + 1)");
}

#[test]
fn loops() {
    check("for each (var i in x..a) { f(i in y) }", r#"for (var i of x.__descendants("a")) { f(i in y) }"#);
    check("for (var i in x) {}", "for (var i in x) {}");
}

#[test]
fn literals() {
    check("f(<a/>)", r#"f(__xml(["<a/>"]))"#);
    check(
        "var x = <a b={c}>{d + '}'}</a>;",
        r#"var x = __xml(["<a b=", "attribute", (c), ">", "text", (d + '}'), "</a>"]);"#,
    );
    check(
        "return <><a/>\n<b>{<c/>}</b></>",
        "return __xml([\"<><a/>\\n<b>\", \"text\", (__xml([\"<c/>\"])), \"</b></>\"\n])",
    );
}

#[test]
fn what_only_looks_like_it() {
    for same in [
        "a < b && c > d",
        "i++ < n",
        "x = a[0]<b",
        "/<a>..@/.test(s)",
        "'<a>' + \"..*::b\"",
        "// x..*::y",
        "`<a>`",
        "é < ü",
    ] {
        check(same, same);
    }
}

#[test]
fn what_has_no_end() {
    for broken in ["<a>", "<a", "<a>{b</a>", "<a b='", "x..", "/* "] {
        assert!(translate(broken).is_err(), "{broken}");
    }
    assert!(translate(&"<a>{".repeat(1000)).is_err());
}
