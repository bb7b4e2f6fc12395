//! What XSLT 2.0 forbids in a stylesheet: each mistake has its code, and nothing runs.

#![allow(clippy::unwrap_used, reason = "a panic here is the report")]

mod common;

use common::{Files, compile, stylesheet, transform, transform_with};

/// Top-level elements and the code they lead to, beside a template for the document.
fn check_declarations(cases: &[(&str, &str)]) {
    for (declarations, expected) in cases {
        let body = format!("{declarations}<xsl:template match='/'><o/></xsl:template>");
        assert_eq!(transform("2.0", &body, "<in/>"), *expected, "{declarations}");
    }
}

/// The content of a template and the code it leads to.
fn check_content(cases: &[(&str, &str)]) {
    for (content, expected) in cases {
        let body = format!("<xsl:template match='/'><o>{content}</o></xsl:template>");
        assert_eq!(transform("2.0", &body, "<in/>"), *expected, "{content}");
    }
}

#[test]
fn values_of_attributes() {
    check_content(&[
        ("<xsl:copy copy-namespaces='perhaps'/>", "XTSE0020"),
        ("<xsl:element name='a' inherit-namespaces='x'/>", "XTSE0020"),
        ("<xsl:number level='some'/>", "XTSE0020"),
        ("<xsl:text disable-output-escaping='both'>x</xsl:text>", "XTSE0020"),
        ("<xsl:copy validation='loose'/>", "XTSE0020"),
        ("<xsl:for-each select='1'><xsl:sort order='up'/></xsl:for-each>", "XTSE0020"),
        ("<xsl:for-each select='1'><xsl:sort data-type='date'/></xsl:for-each>", "XTSE0020"),
        ("<xsl:for-each select='1'><xsl:sort order=\"{'up'}\"/></xsl:for-each>", "XTDE0030"),
        ("<xsl:message terminate=\"{'later'}\">m</xsl:message>", "XTDE0030"),
    ]);
    check_declarations(&[
        ("<xsl:output indent='a bit'/>", "XTSE0020"),
        ("<xsl:output standalone='none'/>", "XTSE0020"),
        ("<xsl:param name='p' required='perhaps'/>", "XTSE0020"),
        ("<xsl:decimal-format digit='ab'/>", "XTSE0020"),
    ]);
}

#[test]
fn content_and_its_order() {
    check_content(&[
        ("<xsl:copy-of select='.'>x</xsl:copy-of>", "XTSE0260"),
        ("<xsl:number>x</xsl:number>", "XTSE0260"),
        ("<xsl:value-of select='1'>x</xsl:value-of>", "XTSE0870"),
        ("<xsl:value-of/>", "XTSE0870"),
        ("<xsl:attribute name='a' select='1'>x</xsl:attribute>", "XTSE0840"),
        ("<xsl:comment select='1'>x</xsl:comment>", "XTSE0940"),
        ("<xsl:processing-instruction name='a' select='1'>x</xsl:processing-instruction>", "XTSE0880"),
        ("<xsl:namespace name='a'/>", "XTSE0910"),
        ("<xsl:perform-sort select='1'/>", "XTSE0010"),
        ("<xsl:perform-sort select='1'><xsl:sort/>x</xsl:perform-sort>", "XTSE1040"),
        ("<xsl:for-each select='1'>x<xsl:sort/></xsl:for-each>", "XTSE0010"),
        ("<xsl:for-each select='1'><xsl:sort select='.'>x</xsl:sort></xsl:for-each>", "XTSE1015"),
        ("<xsl:for-each select='1'><xsl:sort/><xsl:sort stable='yes'/></xsl:for-each>", "XTSE1017"),
        ("<xsl:for-each-group select='*' group-starting-with='*' collation='urn:x'/>", "XTSE1090"),
        ("<xsl:number value='1' level='any'/>", "XTSE0975"),
        (
            "<xsl:analyze-string select='1' regex='1'><xsl:non-matching-substring/><xsl:matching-substring/>\
             </xsl:analyze-string>",
            "XTSE0010",
        ),
    ]);
    check_declarations(&[
        ("<xsl:output>x</xsl:output>", "XTSE0260"),
        ("<xsl:template name='t'>x<xsl:param name='p'/></xsl:template>", "XTSE0010"),
        ("<xsl:template name='t'><xsl:param name='p' required='yes' select='1'/></xsl:template>", "XTSE0010"),
        ("<xsl:function name='f:f'><xsl:param name='p'/><xsl:param name='p'/></xsl:function>", "XTSE0580"),
        ("<xsl:key name='k' match='a'/>", "XTSE1205"),
        ("<xsl:key name='k' match='a' use='.' collation='urn:x'/>", "XTSE1210"),
        ("<xsl:character-map name='m'><a/></xsl:character-map>", "XTSE0010"),
    ]);
}

#[test]
fn names_and_modes() {
    check_declarations(&[
        ("<xsl:template name='xsl:t'/>", "XTSE0080"),
        ("<xsl:function name='xs:f'/>", "XTSE0080"),
        ("<xsl:template match='a' mode='xsl:m'/>", "XTSE0080"),
        ("<xsl:template match='a' mode='m m'/>", "XTSE0550"),
        ("<xsl:template match='a' mode='#all m'/>", "XTSE0550"),
        ("<xsl:template match='a' mode=''/>", "XTSE0550"),
        ("<xsl:template match='a['/>", "XTSE0340"),
        ("<xsl:template match='a[current-group()]'/>", "XTSE1060"),
        ("<xsl:variable name='v' select='$v'/>", "XPST0008"),
        (
            "<xsl:template name='t'><xsl:param name='p' required='yes'/></xsl:template>\
          <xsl:template name='u'><xsl:call-template name='t'/></xsl:template>",
            "XTSE0690",
        ),
    ]);
}

#[test]
fn declarations_that_contradict_each_other() {
    check_declarations(&[
        ("<xsl:output indent='yes'/><xsl:output indent='no'/>", "XTSE1560"),
        ("<xsl:character-map name='m'/><xsl:character-map name='m'/>", "XTSE1580"),
        ("<xsl:output use-character-maps='m'/>", "XTSE1590"),
        ("<xsl:character-map name='m' use-character-maps='m'/>", "XTSE1600"),
        ("<xsl:decimal-format NaN='a'/><xsl:decimal-format NaN='b'/>", "XTSE1290"),
        ("<xsl:decimal-format zero-digit='a'/>", "XTSE1295"),
        ("<xsl:decimal-format decimal-separator=','/>", "XTSE1300"),
        (
            "<xsl:namespace-alias stylesheet-prefix='f' result-prefix='xs'/>\
             <xsl:namespace-alias stylesheet-prefix='f' result-prefix='e'/>",
            "XTSE0810",
        ),
        ("<xsl:decimal-format name='d' NaN='a'/><xsl:decimal-format name='d' infinity='b'/>", "<o/>"),
    ]);
    // A declaration of higher precedence settles what imported ones contradict.
    let text = stylesheet("2.0", "<xsl:output indent='no'/><xsl:template match='/'><o><p/></o></xsl:template>")
        .replacen("<xsl:output", "<xsl:import href='two.xsl'/><xsl:output", 1);
    let files = Files(&[(
        "two.xsl",
        "<xsl:stylesheet version='2.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'>\
         <xsl:output indent='yes'/><xsl:output indent='no'/></xsl:stylesheet>",
    )]);
    assert_eq!(transform_with(&text, "<in/>", &files), "<o><p/></o>");
}

#[test]
fn validation_is_for_schema_aware_processors() {
    check_content(&[
        ("<a xsl:validation='strict'/>", "XTSE1660"),
        ("<xsl:element name='a' type='xs:integer'/>", "XTSE1660"),
        ("<xsl:element name='a' type='xs:integer' validation='strip'/>", "XTSE1505"),
        ("<a xsl:validation='strip'/><xsl:copy-of select='in' validation='preserve'/>", "<o><a/><in/></o>"),
    ]);
}

#[test]
fn the_stylesheet_element() {
    let with = |attributes: &str| {
        let text = stylesheet("2.0", "<xsl:template match='/'><o/></xsl:template>");
        transform_with(&text.replacen("xmlns:f=", &format!("{attributes} xmlns:f="), 1), "<in/>", &Files(&[]))
    };
    assert_eq!(with("id='s'"), "<o/>");
    assert_eq!(with("colour='red'"), "XTSE0090");
    assert_eq!(with("default-collation='urn:unknown'"), "XTSE0125");
    assert_eq!(with("default-validation='strict'"), "XTSE0020 XTSE1660");
    assert_eq!(with("extension-element-prefixes='nope'"), "XTSE1430");
    let codes = |version: &str| {
        let errors = compile(&stylesheet(version, ""), &Files(&[])).unwrap_err();
        errors.into_iter().map(|error| error.code.into_owned()).collect::<Vec<_>>()
    };
    assert_eq!(codes("two"), ["XTSE0110"]);
}
