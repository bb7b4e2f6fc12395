//! The ways in and out: modules, documents, parameters, subtrees, trees, output methods.

mod common;

use common::{Files, compile, parse, stylesheet, transform, transform_with};
use penstock_xml::{Document, WriteOptions, to_vec};
use penstock_xslt::{Method, NoResolver, TransformOptions};

#[test]
fn imports_have_less_precedence_than_includes() {
    const FILES: Files = Files(&[
        (
            "low.xsl",
            r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
            <xsl:template match="a">low<xsl:value-of select="$v"/></xsl:template><xsl:variable name="v" select="'l'"/>
            </xsl:stylesheet>"#,
        ),
        (
            "same.xsl",
            r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
            <xsl:template match="b">same</xsl:template></xsl:stylesheet>"#,
        ),
    ]);
    let text = r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
        <xsl:import href="low.xsl"/><xsl:include href="same.xsl"/><xsl:output method="text"/>
        <xsl:variable name="v" select="'t'"/>
        <xsl:template match="a">top(<xsl:apply-imports/>)</xsl:template>
        <xsl:template match="b" priority="-9">never</xsl:template></xsl:stylesheet>"#;
    assert_eq!(transform_with(text, "<r><a/><b/></r>", &FILES), "top(lowt)same");
}

#[test]
fn a_module_that_imports_itself_is_refused() {
    const FILES: Files = Files(&[(
        "main.xsl",
        r#"<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
        <xsl:import href="main.xsl"/></xsl:stylesheet>"#,
    )]);
    assert_eq!(transform_with(FILES.0[0].1, "<a/>", &FILES), "XTSE0210");
}

#[test]
fn documents_come_from_the_resolver() {
    const FILES: Files = Files(&[("codes.xml", "<c><k v='1'>one</k></c>")]);
    let body = "<xsl:template match='/'><xsl:value-of select=\"document('codes.xml')//k[@v = current()/a]\"/>\
                <xsl:value-of select=\"count(document('nope.xml'))\"/></xsl:template>";
    assert_eq!(transform_with(&stylesheet("1.0", body), "<a>1</a>", &FILES), "one0");
    assert_eq!(transform("1.0", body, "<a>1</a>"), "0");
}

#[test]
fn simplified_and_embedded_stylesheets() {
    let simplified =
        r#"<o xsl:version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:value-of select="a"/></o>"#;
    let declaration = r#"<?xml version="1.0" encoding="UTF-8"?>"#;
    assert_eq!(transform_with(simplified, "<a>1</a>", &NoResolver), format!("{declaration}<o>1</o>"));
    let embedded = format!("<entry>{}</entry>", stylesheet("1.0", "<xsl:template match='/'>e</xsl:template>"));
    assert_eq!(transform_with(&embedded, "<a/>", &NoResolver), "e");
}

#[test]
fn parameters_templates_and_modes_from_outside() {
    let body = "<xsl:param name='p' select=\"'default'\"/><xsl:template match='/'><xsl:value-of select='$p'/></xsl:template>\
                <xsl:template name='t'>t</xsl:template><xsl:template match='/' mode='m'>m</xsl:template>";
    let stylesheet = compile(&stylesheet("1.0", body), &NoResolver).unwrap();
    assert_eq!(stylesheet.parameters().collect::<Vec<_>>(), ["p"]);
    let run = |options: &TransformOptions<'_>| {
        let mut out = Vec::new();
        let result = stylesheet.transform(&parse("<a/>"), Document::ROOT, options, &mut out);
        result.map(|_| String::from_utf8(out).unwrap()).map_err(|error| error.code)
    };
    let mut options = TransformOptions::default();
    assert_eq!(run(&options).unwrap(), "default");
    options.string_param("p", "given");
    assert_eq!(run(&options).unwrap(), "given");
    options.initial_template = Some("t");
    assert_eq!(run(&options).unwrap(), "t");
    let options = TransformOptions { initial_mode: Some("m"), ..Default::default() };
    assert_eq!(run(&options).unwrap(), "m");
    let options = TransformOptions { initial_template: Some("x"), ..Default::default() };
    assert_eq!(run(&options).unwrap_err(), "XTDE0040");
}

#[test]
fn a_subtree_is_a_document_of_its_own() {
    let source = parse("<env xmlns:n='urn:n'><head/><body><a n:x='1'><b>t</b></a></body></env>");
    let a = source.descendants(Document::ROOT).find(|node| source.local_name(*node) == "a").unwrap();
    for (body, expected) in [
        // Looks up: the subtree is copied.
        ("<xsl:template match='/'><o n='{count(//*)}' r='{name(/*)}'/></xsl:template>", r#"<o n="2" r="a"/>"#),
        ("<xsl:template match='b'><o n='{count(ancestor::*)}'/></xsl:template>", r#"<o n="1"/>"#),
        ("<xsl:template match='body/a'><no/></xsl:template><xsl:template match='a[1]'><o/></xsl:template>", "<o/>"),
        ("<xsl:variable name='v' select='a/b'/><xsl:template match='a'><o v='{$v}'/></xsl:template>", r#"<o v="t"/>"#),
        // Looks down only: it is used where it stands.
        ("<xsl:template match='a'><o><xsl:value-of select='b'/></o></xsl:template>", "<o>t</o>"),
        (
            "<xsl:template match='@*|node()'><xsl:copy><xsl:apply-templates select='@*|node()'/></xsl:copy></xsl:template>",
            r#"<a xmlns:n="urn:n" n:x="1"><b>t</b></a>"#,
        ),
    ] {
        let stylesheet = compile(&stylesheet("1.0", body), &NoResolver).unwrap();
        let mut out = Vec::new();
        stylesheet.transform(&source, a, &TransformOptions::default(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected, "{body}");
        let tree = stylesheet.transform_to_tree(&source, a, &TransformOptions::default()).unwrap();
        assert_eq!(String::from_utf8(to_vec(&tree, Document::ROOT, &WriteOptions::default())).unwrap(), expected);
    }
}

#[test]
fn output_methods() {
    let output = |declaration: &str, body: &str| {
        let text = format!(
            "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'><xsl:output {declaration}/>\
             <xsl:template match='/'>{body}</xsl:template></xsl:stylesheet>"
        );
        let stylesheet = compile(&text, &NoResolver).unwrap();
        let mut out = Vec::new();
        let info =
            stylesheet.transform(&parse("<a/>"), Document::ROOT, &TransformOptions::default(), &mut out).unwrap();
        (info, out)
    };
    let text = |declaration: &str, body: &str| String::from_utf8(output(declaration, body).1).unwrap();
    let plain = "omit-xml-declaration='yes'";
    assert_eq!(text("method='text'", "<a>x &lt; y</a>"), "x < y");
    assert_eq!(
        text(&format!("{plain} cdata-section-elements='c'"), "<o><c>a&lt;]]&gt;b</c></o>"),
        "<o><c><![CDATA[a<]]]]><![CDATA[>b]]></c></o>"
    );
    assert_eq!(text(&format!("{plain} encoding='US-ASCII'"), "<o a='é'>ü</o>"), "<o a=\"&#233;\">&#252;</o>");
    assert_eq!(output(&format!("{plain} encoding='ISO-8859-1'"), "<o>ü€</o>").1, b"<o>\xfc&#8364;</o>");
    assert_eq!(output(&format!("{plain} encoding='UTF-16'"), "<o/>").1, b"\xfe\xff\0<\0o\0/\0>");
    assert_eq!(text(&format!("{plain} indent='yes'"), "<o><p>t<q/></p><r/></o>"), "<o>\n<p>t<q/></p>\n<r/>\n</o>");
    assert_eq!(
        text("doctype-system='d.dtd' standalone='yes'", "<o/>"),
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><!DOCTYPE o SYSTEM \"d.dtd\">\n<o/>"
    );
    assert_eq!(
        text("method='html' indent='no'", "<html><head/><br/><p a='&lt;'>&#160;</p><script>a&lt;b</script></html>"),
        "<html><head><META http-equiv=\"Content-Type\" content=\"text/html; charset=UTF-8\"></head><br>\
         <p a=\"<\">&nbsp;</p><script>a<b</script></html>"
    );
    // A result whose first element is `html` is HTML unless the stylesheet says otherwise.
    assert_eq!(output("indent='no'", "<html/>").0.method, Method::Html);
    assert_eq!(output("indent='no'", "<o/>").0.media_type, "application/xml");
}

#[test]
fn attributes_replace_and_namespaces_follow() {
    for (body, expected) in [
        ("<o a='1' b='2'><xsl:attribute name='a'>3</xsl:attribute></o>", r#"<o b="2" a="3"/>"#),
        ("<o>t<xsl:attribute name='a'>3</xsl:attribute></o>", "<o>t</o>"),
        (
            "<o><p><xsl:attribute name='x:a' namespace='urn:x'>1</xsl:attribute></p></o>",
            r#"<o><p xmlns:x="urn:x" x:a="1"/></o>"#,
        ),
        (
            "<o xmlns:x='urn:y'><x:p><xsl:attribute name='x:a' namespace='urn:x'>1</xsl:attribute></x:p></o>",
            r#"<o xmlns:x="urn:y"><x:p xmlns:ns0="urn:x" ns0:a="1"/></o>"#,
        ),
        ("<xsl:element name='o' namespace='urn:o'><p/></xsl:element>", r#"<o xmlns="urn:o"><p xmlns=""/></o>"#),
        (
            "<x:o xmlns:x='urn:x'><xsl:for-each select='a'><p><q><xsl:value-of select='b'/></q></p></xsl:for-each></x:o>",
            r#"<x:o xmlns:x="urn:x"><p><q/></p></x:o>"#,
        ),
        (
            "<o xmlns='urn:d'><xsl:for-each select='a'><p xmlns=''><q/></p></xsl:for-each></o>",
            r#"<o xmlns="urn:d"><p xmlns=""><q/></p></o>"#,
        ),
    ] {
        let body = format!("<xsl:template match='/'>{body}</xsl:template>");
        assert_eq!(transform("1.0", &body, "<a/>"), expected, "{body}");
    }
}

#[test]
fn literal_elements_in_no_namespace_under_a_default_one() {
    let body = "<xsl:template match='/'><o xmlns='urn:d'><xsl:apply-templates select='r/a'/></o></xsl:template>\
                <xsl:template match='a'><p:w xmlns:p='urn:p'><i><j><xsl:value-of select='b'/></j><xsl:apply-templates \
                select='c'/></i></p:w></xsl:template><xsl:template match='c'><k><l/></k></xsl:template>";
    assert_eq!(
        transform("1.0", body, "<r><a><b>1</b><c/></a><a/></r>"),
        "<o xmlns=\"urn:d\"><p:w xmlns:p=\"urn:p\"><i xmlns=\"\"><j>1</j><k><l/></k></i></p:w>\
         <p:w xmlns:p=\"urn:p\"><i xmlns=\"\"><j/></i></p:w></o>"
    );
}

#[test]
fn messages_reach_the_caller() {
    let body = "<xsl:template match='/'><xsl:message>a<b/></xsl:message></xsl:template>";
    let stylesheet = compile(&stylesheet("1.0", body), &NoResolver).unwrap();
    let heard = std::cell::RefCell::new(Vec::new());
    let messages = |text: &str| heard.borrow_mut().push(text.to_owned());
    let options = TransformOptions { messages: &messages, ..TransformOptions::default() };
    stylesheet.transform(&parse("<a/>"), Document::ROOT, &options, &mut Vec::new()).unwrap();
    assert_eq!(*heard.borrow(), ["a<b/>"]);
}

/// Published stylesheets compile.
#[test]
#[ignore = "reads ../shared; .ci/run runs it where the folder is"]
fn corpus_stylesheets_compile() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/mi/xslt");
    let files = std::fs::read_dir(&folder).unwrap();
    let mut seen = 0;
    for file in files {
        let path = file.unwrap().path();
        let text = std::fs::read(&path).unwrap();
        let compiled = penstock_xslt::Stylesheet::compile(text, &penstock_xslt::CompileOptions::default());
        assert!(compiled.is_ok(), "{}: {}", path.display(), compiled.unwrap_err()[0]);
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn stylesheets_are_shared_between_threads() {
    fn shared<T: Send + Sync>(value: T) -> T {
        value
    }
    let body = "<xsl:template match='/'><o><xsl:value-of select='a'/></o></xsl:template>";
    let stylesheet = shared(compile(&stylesheet("1.0", body), &NoResolver).unwrap());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let stylesheet = &stylesheet;
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut out = Vec::new();
                    let source = parse(&format!("<a>{number}</a>"));
                    stylesheet.transform(&source, Document::ROOT, &TransformOptions::default(), &mut out).unwrap();
                    assert_eq!(out, format!("<o>{number}</o>").as_bytes());
                }
            });
        }
    });
}

/// Runs leave tables of names to the next run. Documents with the same names, others, and children that repeat must all
/// give what a run of its own gives.
#[test]
fn what_a_run_leaves_to_the_next_changes_nothing() {
    let body = "<xsl:template match='@*|node()'><xsl:copy><xsl:apply-templates select='@*|node()'/></xsl:copy></xsl:template>\
                <xsl:template match='r'><r><xsl:value-of select='b'/>-<xsl:value-of select='a'/>-<xsl:value-of select='b'/>\
                <xsl:apply-templates select='c' mode='m'/></r></xsl:template>\
                <xsl:template match='c' mode='m'><m/></xsl:template>";
    let documents = [
        "<r><a>1</a><b>2</b></r>",
        "<r><a>1</a><b>2</b><a>3</a><b/><b>4</b></r>",
        "<q><r><b>2</b><c/></r><r/><r><x/><b>3</b><y><b>no</b></y><a>1</a></r></q>",
        "<r xmlns='urn:other'><a>1</a></r>",
        "<q><c/><r><c/><b>5</b></r></q>",
        "<r><a>1</a><b>2</b></r>",
    ];
    for version in ["1.0", "2.0"] {
        let text = stylesheet(version, body);
        let shared = compile(&text, &NoResolver).unwrap();
        for document in documents.iter().chain(documents.iter().rev()) {
            let mut out = Vec::new();
            shared.transform(&parse(document), Document::ROOT, &TransformOptions::default(), &mut out).unwrap();
            let alone = transform_with(&text, document, &NoResolver);
            assert_eq!(String::from_utf8(out).unwrap(), alone, "{version} {document}");
        }
    }
    let two = transform("2.0", body, documents[1]);
    assert_eq!(two, "<r>2  4-1 3-2  4</r>");
    assert_eq!(transform("1.0", body, documents[1]), "<r>2-1-2</r>");
}
