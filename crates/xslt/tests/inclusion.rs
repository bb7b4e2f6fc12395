//! `use-when`, what the processor says of itself, result documents, namespaces of copies, output methods.

#![allow(clippy::unwrap_used, reason = "a panic here is the report")]

mod common;

use std::cell::RefCell;

use common::{Files, compile, parse, stylesheet, transform, transform_with};
use penstock_xml::Document;
use penstock_xslt::{NoResolver, TransformOptions};

fn content(content: &str, source: &str) -> String {
    transform("2.0", &format!("<xsl:template match='/'><o>{content}</o></xsl:template>"), source)
}

#[test]
fn use_when_takes_elements_out() {
    for (body, expected) in [
        ("<a xsl:use-when='false()'><xsl:nonsense/></a><b/>", "<o><b/></o>"),
        ("<xsl:if test='true()' use-when='1 = 2'>x</xsl:if>y", "<o>y</o>"),
        ("<xsl:value-of select='nope()' use-when=\"function-available('nope')\"/>", "<o/>"),
        ("<a xsl:use-when=\"element-available('xsl:sequence')\"/>", "<o><a/></o>"),
        ("<a xsl:use-when=\"type-available('xs:integer')\"/>", "<o><a/></o>"),
        ("<a xsl:use-when=\"xs:decimal(system-property('xsl:version')) ge 2.0\"/>", "<o><a/></o>"),
        ("<a xsl:use-when='$v'/>", "XPST0008"),
        ("<a xsl:use-when='//in'/>", "XPDY0002"),
        ("<a xsl:use-when=''/>", "XPST0003"),
        (
            "<xsl:for-each select='2, 1'><xsl:sort use-when='false()'/><xsl:value-of select='.'/></xsl:for-each>",
            "<o>21</o>",
        ),
    ] {
        assert_eq!(content(body, "<in/>"), expected, "{body}");
    }
    let declarations = "<xsl:include href='missing.xsl' use-when='false()'/>\
        <xsl:template match='/' use-when='true()'><o/></xsl:template>\
        <xsl:template match='/' use-when='false()'><p/></xsl:template>";
    assert_eq!(transform("2.0", declarations, "<in/>"), "<o/>");
}

#[test]
fn names_in_arguments_have_the_namespaces_of_their_place() {
    for (select, expected) in [
        ("function-available('f:own')", "<o>true</o>"),
        ("function-available('f:own', 2)", "<o>false</o>"),
        ("function-available('xs:date')", "<o>true</o>"),
        ("type-available('xs:nope')", "<o>false</o>"),
        ("function-available('no:prefix')", "XTDE1400"),
        ("element-available('no:prefix')", "XTDE1440"),
        ("type-available('no:prefix')", "XTDE1428"),
        ("system-property('1')", "XTDE1390"),
        ("key('no:prefix', 1)", "XTDE1260"),
    ] {
        let body = format!(
            "<xsl:function name='f:own'><xsl:sequence select='1'/></xsl:function>\
             <xsl:template match='/'><o><xsl:value-of select=\"{select}\"/></o></xsl:template>"
        );
        assert_eq!(transform("2.0", &body, "<in/>"), expected, "{select}");
    }
}

#[test]
fn expressions_that_are_computed() {
    let evaluated = |expression: &str| {
        let body = format!(
            "<xsl:template match='in'><o><xsl:value-of select=\"dyn:evaluate({expression})\"
             xmlns:dyn='http://exslt.org/dynamic' xmlns:p='urn:p'/></o></xsl:template>"
        );
        transform("1.0", &body, "<in><a>1</a><p:a xmlns:p='urn:p'>2</p:a></in>")
    };
    assert_eq!(evaluated("'a + 1'"), "<o>2</o>");
    assert_eq!(evaluated("concat('p', ':a')"), "<o>2</o>");
    assert_eq!(evaluated("'a +'"), "<o/>");
    assert_eq!(evaluated("'$v'"), "<o/>");
}

#[test]
fn attributes_and_namespaces_have_their_place() {
    for (body, expected) in [
        ("<a/><xsl:attribute name='x'/>", "XTDE0410"),
        ("text<xsl:copy-of select='in/@a'/>", "XTDE0410"),
        ("<xsl:variable name='v'><xsl:attribute name='x'/></xsl:variable><xsl:copy-of select='$v'/>", "XTDE0420"),
        ("<xsl:namespace name='p'>urn:1</xsl:namespace><xsl:namespace name='p'>urn:2</xsl:namespace>", "XTDE0430"),
        ("<xsl:namespace name=''>urn:1</xsl:namespace>", "XTDE0440"),
        ("<xsl:namespace name='1'>urn:1</xsl:namespace>", "XTDE0920"),
        ("<xsl:namespace name='xml'>urn:1</xsl:namespace>", "XTDE0925"),
        ("<xsl:namespace name='p' select=\"''\"/>", "XTDE0930"),
        ("<xsl:namespace name='p'>urn:1</xsl:namespace>", "<o xmlns:p=\"urn:1\"/>"),
    ] {
        assert_eq!(content(body, "<in a='1'/>"), expected, "{body}");
    }
    // XSLT 1.0 lets a processor leave the attribute out.
    let late = "<xsl:template match='/'><o><a/><xsl:attribute name='x'/></o></xsl:template>";
    assert_eq!(transform("1.0", late, "<in/>"), "<o><a/></o>");
}

#[test]
fn copies_without_their_namespaces() {
    let source = "<n xmlns='urn:n' xmlns:q='urn:q' q:a='1'><m/></n>";
    let copies = |instruction: &str| content(instruction, source);
    assert_eq!(
        copies("<xsl:copy-of select='*' copy-namespaces='no'/>"),
        "<o><n xmlns=\"urn:n\" xmlns:q=\"urn:q\" q:a=\"1\"><m/></n></o>"
    );
    assert_eq!(
        copies("<xsl:for-each select='*/*'><xsl:copy copy-namespaces='no'/></xsl:for-each>"),
        "<o><m xmlns=\"urn:n\"/></o>"
    );
    assert_eq!(
        copies("<xsl:for-each select='*/*'><xsl:copy/></xsl:for-each>"),
        "<o><m xmlns=\"urn:n\" xmlns:q=\"urn:q\"/></o>"
    );
}

#[test]
fn result_documents() {
    let body = "<xsl:output name='t' method='text'/>\
        <xsl:template match='/'><o/>\
        <xsl:result-document href='a.txt' format='t'>a &amp; b</xsl:result-document>\
        <xsl:for-each select='1 to 2'><xsl:result-document href='p{.}.xml' omit-xml-declaration='{\"yes\"}'>\
        <p><xsl:value-of select='.'/></p></xsl:result-document></xsl:for-each></xsl:template>";
    let compiled = compile(&stylesheet("2.0", body), &NoResolver).unwrap();
    let written = RefCell::new(Vec::new());
    let documents = |href: &str, content: &[u8]| {
        written.borrow_mut().push((href.to_owned(), String::from_utf8_lossy(content).into_owned()));
        Ok(())
    };
    let options = TransformOptions { documents: Some(&documents), ..TransformOptions::default() };
    let mut out = Vec::new();
    compiled.transform(&parse("<in/>"), Document::ROOT, &options, &mut out).unwrap();
    assert_eq!(out, b"<o/>");
    let expected = [("a.txt", "a & b"), ("p1.xml", "<p>1</p>"), ("p2.xml", "<p>2</p>")];
    assert_eq!(written.take(), expected.map(|(href, text)| (href.to_owned(), text.to_owned())));

    let whole = |body: &str| transform("2.0", &format!("<xsl:template match='/'>{body}</xsl:template>"), "<in/>");
    assert_eq!(whole("<xsl:result-document method='text'>a &amp; b</xsl:result-document>"), "a & b");
    assert_eq!(whole("<o/><xsl:result-document><p/></xsl:result-document>"), "XTDE1490");
    assert_eq!(whole("<xsl:result-document><p/></xsl:result-document><o/>"), "XTDE1490");
    assert_eq!(whole("<xsl:result-document format='nope'><p/></xsl:result-document>"), "XTDE1460");
    let temporary = "<xsl:variable name='v'><xsl:result-document href='x'/></xsl:variable><o a='{$v}'/>";
    assert_eq!(whole(temporary), "XTDE1480");
    // Where the caller takes no further documents.
    assert_eq!(whole("<xsl:result-document href='x'><p/></xsl:result-document>"), "XTDE1490");
}

#[test]
fn xhtml_is_xml_for_browsers() {
    let page = "<xsl:template match='/'><html xmlns='http://www.w3.org/1999/xhtml'><head/><body><p/><br/>\
        <a href='/é'>x</a></body></html></xsl:template>";
    let text = stylesheet("2.0", page).replacen("<xsl:output ", "<xsl:output method='xhtml' indent='no' ", 1);
    assert_eq!(
        transform_with(&text, "<in/>", &NoResolver),
        "<html xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta http-equiv=\"Content-Type\" content=\"text/html; \
         charset=UTF-8\" /></head><body><p></p><br /><a href=\"/%C3%A9\">x</a></body></html>"
    );
}

#[test]
fn output_properties_that_cannot_be_followed() {
    let with = |properties: &str| {
        let text = stylesheet("2.0", "<xsl:template match='/'><o>e\u{301}</o></xsl:template>");
        transform_with(&text.replacen("omit-xml-declaration=\"yes\"", properties, 1), "<in/>", &NoResolver)
    };
    assert_eq!(with("encoding='made-up'"), "SESU0007");
    assert_eq!(with("version='7'"), "SESU0013");
    assert_eq!(with("normalization-form='NFX'"), "SESU0011");
    assert_eq!(with("omit-xml-declaration='yes' standalone='yes'"), "SEPM0009");
    assert_eq!(with("undeclare-prefixes='yes'"), "SEPM0010");
    assert_eq!(with("omit-xml-declaration='yes' normalization-form='NFC'"), "<o>\u{e9}</o>");
    assert_eq!(with("omit-xml-declaration='yes' byte-order-mark='yes'"), "\u{feff}<o>e\u{301}</o>");
}

#[test]
fn numbers_in_words() {
    for (attributes, expected) in [
        ("format='w'", "<o>twenty one</o>"),
        ("format='Ww'", "<o>Twenty One</o>"),
        ("format='w' ordinal='yes'", "<o>twenty-first</o>"),
        ("format='1' ordinal='yes'", "<o>21st</o>"),
        ("format='001'", "<o>021</o>"),
    ] {
        assert_eq!(content(&format!("<xsl:number value='21' {attributes}/>"), "<in/>"), expected, "{attributes}");
    }
    assert_eq!(content("<xsl:number value='2' format='(①)'/>", "<in/>"), "<o>(②)</o>");
    assert_eq!(content("<xsl:number value='-1'/>", "<in/>"), "XTDE0980");
    assert_eq!(content("<xsl:number select='1, 2'/>", "<in/>"), "XTTE1000");
}

#[test]
fn texts_and_documents_from_outside() {
    let files = Files(&[("t.txt", "caf\u{e9}")]);
    let run = |select: &str| {
        let body = format!("<xsl:template match='/'><o><xsl:value-of select=\"{select}\"/></o></xsl:template>");
        transform_with(&stylesheet("2.0", &body), "<in/>", &files)
    };
    assert_eq!(run("unparsed-text('t.txt')"), "<o>caf\u{e9}</o>");
    assert_eq!(run("unparsed-text('t.txt', 'iso-8859-1')"), "<o>caf\u{c3}\u{a9}</o>");
    assert_eq!(run("unparsed-text('t.txt', 'made-up')"), "XTDE1190");
    assert_eq!(run("unparsed-text('t.txt', 'us-ascii')"), "XTDE1190");
    assert_eq!(run("unparsed-text('none.txt')"), "XTDE1170");
    assert_eq!(run("unparsed-text-available('t.txt')"), "<o>true</o>");
    assert_eq!(run("unparsed-text-available(())"), "<o>false</o>");
    assert_eq!(run("document('none.xml')"), "FODC0002");
}
