//! Mistakes and limits: every one has its code, and static ones their place.

#![expect(clippy::unwrap_used, reason = "a panic here is the report")]

mod common;

use common::{compile, parse, stylesheet, transform};
use penstock_xml::Document;
use penstock_xslt::{Limits, NoResolver, TransformOptions};

#[test]
fn static_errors_have_codes() {
    for (body, expected) in [
        ("<xsl:templat match='/'/>", "XTSE0010"),
        ("<xsl:template match='/'><xsl:valeu-of select='1'/></xsl:template>", "XTSE0010"),
        ("<xsl:template match='/'><xsl:value-of selct='1' select='1'/></xsl:template>", "XTSE0090"),
        ("<xsl:template match='/'><xsl:for-each/></xsl:template>", "XTSE0010"),
        ("<xsl:template match='/'><xsl:value-of select='1 +'/></xsl:template>", "XPST0003"),
        ("<xsl:template match='/'><xsl:value-of select='$nope'/></xsl:template>", "XPST0008"),
        ("<xsl:template match='/'><xsl:value-of select='nope()'/></xsl:template>", "XPST0017"),
        ("<xsl:template match='/'><xsl:call-template name='nope'/></xsl:template>", "XTSE0650"),
        ("<xsl:template match='..'/>", "XTSE0340"),
        ("<xsl:template/>", "XTSE0500"),
        ("<xsl:template name='a'/><xsl:template name='a'/>", "XTSE0660"),
        ("<xsl:variable name='a'/><xsl:variable name='a'/>", "XTSE0630"),
        ("<xsl:template match='/' priority='high'/>", "XTSE0530"),
        ("<xsl:template match='/'><a b='{'/></xsl:template>", "XTSE0350"),
        ("<xsl:template match='/'><a b='}'/></xsl:template>", "XTSE0370"),
        ("<xsl:template match='/'><a xsl:use-attribute-sets='nope'/></xsl:template>", "XTSE0710"),
        (
            "<xsl:attribute-set name='a' use-attribute-sets='b'/><xsl:attribute-set name='b' use-attribute-sets='a'/>",
            "XTSE0720 XTSE0720",
        ),
        ("<xsl:function name='f'/>", "XTSE0740"),
        ("<xsl:template match='/'><xsl:choose/></xsl:template>", "XTSE0010"),
        ("<xsl:template match='/'><xsl:sort/></xsl:template>", "XTSE0010"),
        ("<xsl:output method='json'/>", "XTSE1570"),
        ("<xsl:import href='nowhere.xsl'/>", "XTSE0165"),
        ("<element/>", "XTSE0130"),
        // All mistakes are reported at once.
        (
            "<xsl:template match='/'><xsl:value-of select='$a'/><xsl:value-of select='b('/></xsl:template>",
            "XPST0008 XPST0003",
        ),
    ] {
        let got = transform("2.0", &format!("<!-- -->{body}"), "<a/>");
        // The import stands after `xsl:output` here, which is a mistake of its own.
        assert_eq!(got.replace("XTSE0200 ", ""), expected, "{body}");
    }
}

#[test]
fn static_errors_have_places_and_hints() {
    let text = "<xsl:stylesheet version=\"1.0\" xmlns:xsl=\"http://www.w3.org/1999/XSL/Transform\">\n  \
                <xsl:template match=\"/\">\n    <xsl:aply-templates/>\n  </xsl:template>\n</xsl:stylesheet>";
    let errors = compile(text, &NoResolver).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "main.xsl:3:5: XTSE0010: unknown instruction `xsl:aply-templates`, did you mean `xsl:apply-templates`?"
    );
}

#[test]
fn what_is_not_a_stylesheet() {
    for (text, code) in [("<a/>", "XTSE0150"), ("<a", "XTSE0165"), ("", "XTSE0165")] {
        assert_eq!(compile(text, &NoResolver).unwrap_err()[0].code, code, "{text}");
    }
}

#[test]
fn dynamic_errors() {
    for (version, body, expected) in [
        ("1.0", "<xsl:template match='/'><xsl:message terminate='yes'>x</xsl:message></xsl:template>", "XTMM9000"),
        ("2.0", "<xsl:template match='/'><xsl:element name='1'/></xsl:template>", "XTDE0820"),
        ("1.0", "<xsl:template match='/'><o><xsl:element name='1'>x</xsl:element></o></xsl:template>", "<o>x</o>"),
        (
            "1.0",
            "<xsl:variable name='a' select='$b'/><xsl:variable name='b' select='$a'/><xsl:template match='/'><xsl:value-of select='$a'/></xsl:template>",
            "XTDE0640",
        ),
        ("2.0", "<xsl:template match='/'><xsl:result-document href='x.xml'/></xsl:template>", "XTDE1490"),
        ("2.0", "<xsl:template match='/'><xsl:value-of select='error()'/></xsl:template>", "FOER0000"),
        (
            "2.0",
            "<xsl:param name='p' required='yes'/><xsl:template match='/'><xsl:value-of select='$p'/></xsl:template>",
            "XTDE0050",
        ),
        ("9.0", "<xsl:template match='/'><xsl:new-thing/></xsl:template>", "XTDE1450"),
        (
            "9.0",
            "<xsl:template match='/'><xsl:new-thing><xsl:fallback>f</xsl:fallback></xsl:new-thing></xsl:template>",
            "f",
        ),
        (
            "2.0",
            "<xsl:template match='/'><xsl:variable name='v' as='xs:integer' select=\"'x'\"/><xsl:value-of select='$v'/></xsl:template>",
            "XTTE0570",
        ),
    ] {
        assert_eq!(transform(version, body, "<a/>"), expected, "{body}");
    }
}

fn limited(body: &str, limits: Limits) -> String {
    let stylesheet = compile(&stylesheet("2.0", body), &NoResolver).unwrap();
    let options = TransformOptions { limits, ..TransformOptions::default() };
    let mut out = b"kept".to_vec();
    let error = stylesheet.transform(&parse("<a/>"), Document::ROOT, &options, &mut out).unwrap_err();
    assert_eq!(out, b"kept", "a failed transformation leaves nothing behind");
    assert!(error.at.line > 0, "{error}");
    error.code.into_owned()
}

#[test]
fn limits_end_what_would_not() {
    let endless = "<xsl:template match='/' name='t'><xsl:call-template name='t'/></xsl:template>";
    assert_eq!(limited(endless, Limits::DEFAULT), "PSXT0001");
    let loud = "<xsl:template match='/' name='t'>text<xsl:call-template name='t'/></xsl:template>";
    assert_eq!(limited(loud, Limits { output_bytes_max: 1000, ..Limits::DEFAULT }), "PSXT0002");
    let hoard = "<xsl:template match='/'><xsl:for-each select='1 to 1000000'><xsl:variable name='v'><a/></xsl:variable>\
                 </xsl:for-each></xsl:template>";
    assert_eq!(limited(hoard, Limits { output_bytes_max: 100_000, ..Limits::DEFAULT }), "PSXT0002");
    let endless = "<xsl:template match='/'><xsl:variable name='v'><xsl:for-each select='1 to 1000000'>text</xsl:for-each>\
                   </xsl:variable><xsl:copy-of select='$v'/></xsl:template>";
    assert_eq!(limited(endless, Limits { output_bytes_max: 100_000, ..Limits::DEFAULT }), "PSXT0002");
    let long = "<xsl:template match='/'><xsl:for-each select='1 to 1000000'><xsl:if test='.=0'/></xsl:for-each></xsl:template>";
    assert_eq!(limited(long, Limits { fuel: 10_000, ..Limits::DEFAULT }), "PENS0001");
    let slow = "<xsl:template match='/'><xsl:for-each select='1 to 1000000'>x</xsl:for-each></xsl:template>";
    let no_time = Limits { time_max: Some(std::time::Duration::ZERO), ..Limits::DEFAULT };
    assert_eq!(limited(slow, no_time), "PSXT0004");
}

/// Functions recurse on the thread's stack: the limit must hold on the smallest stack that is usual.
#[test]
fn functions_do_not_exhaust_the_stack() {
    let body = "<xsl:function name='f:f'><xsl:param name='n'/><a><xsl:copy-of select='f:f(f:g($n))'/></a></xsl:function>\
                <xsl:function name='f:g'><xsl:param name='n'/><xsl:sequence select='$n + 1'/></xsl:function>\
                <xsl:template match='/'><xsl:copy-of select='f:f(1)'/></xsl:template>";
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let code = thread.spawn(move || limited(body, Limits::DEFAULT)).unwrap().join().unwrap();
    assert_eq!(code, "PSXT0001");
}

#[test]
fn templates_may_be_deep() {
    let body = "<xsl:template match='/'><o><xsl:call-template name='t'><xsl:with-param name='n' select='20000'/>\
                </xsl:call-template></o></xsl:template><xsl:template name='t'><xsl:param name='n'/>\
                <xsl:if test='$n > 0'><xsl:call-template name='t'><xsl:with-param name='n' select='$n - 1'/>\
                </xsl:call-template></xsl:if></xsl:template>";
    assert_eq!(transform("1.0", body, "<a/>"), "<o/>");
}

#[test]
fn stylesheets_nest_within_a_limit() {
    let nested = |levels: usize| {
        let body = format!("<xsl:template match='/'>{}{}</xsl:template>", "<a>".repeat(levels), "</a>".repeat(levels));
        transform("1.0", &body, "<a/>")
    };
    assert!(nested(120).starts_with("<a><a>"));
    assert_eq!(nested(1000), "XTSE0165");
}
