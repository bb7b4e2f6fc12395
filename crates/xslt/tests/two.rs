//! What XSLT 2.0 adds and where it differs: types, sequences, sorting, white space. One row each.

mod common;

use common::transform;

const SOURCE: &str = "<d><a>5</a><b/></d>";

fn check(version: &str, rows: &[(&str, &str)]) {
    for (body, expected) in rows {
        assert_eq!(transform(version, body, SOURCE), *expected, "{body}");
    }
}

fn template(content: &str) -> String {
    format!(r#"<xsl:template match="/"><o>{content}</o></xsl:template>"#)
}

fn check_content(version: &str, rows: &[(&str, &str)]) {
    for (content, expected) in rows {
        let found = transform(version, &template(content), SOURCE);
        let shown = found.strip_prefix("<o>").and_then(|rest| rest.strip_suffix("</o>")).unwrap_or(&found);
        assert_eq!(shown, *expected, "{content}");
    }
}

#[test]
fn parameters_and_results_have_types() {
    let function = r#"<xsl:function name="f:t"><xsl:param name="n" as="xs:integer"/><xsl:sequence select="$n instance of xs:integer, $n + 1"/></xsl:function>"#;
    let called = r#"<xsl:template name="t"><xsl:param name="p" as="xs:integer"/><xsl:value-of select="$p instance of xs:integer"/></xsl:template>"#;
    let call = |value: &str| {
        template(&format!(
            r#"<xsl:call-template name="t"><xsl:with-param name="p" select="{value}"/></xsl:call-template>"#
        ))
    };
    let typed = |result: &str| {
        format!(
            r#"<xsl:template match="/"><o><xsl:apply-templates select="d/a"/></o></xsl:template><xsl:template match="a" as="xs:integer"><xsl:sequence select="{result}"/></xsl:template>"#
        )
    };
    check(
        "2.0",
        &[
            (&format!("{function}{}", template(r#"<xsl:value-of select="f:t(d/a)"/>"#)), "<o>true 6</o>"),
            (&format!("{function}{}", template(r#"<xsl:value-of select="f:t('banana')"/>"#)), "XTTE0790"),
            (&format!("{called}{}", call("d/a")), "<o>true</o>"),
            (&format!("{called}{}", call("'x'")), "XTTE0590"),
            (&typed("."), "<o>5</o>"),
            (&typed("'z'"), "XTTE0505"),
            (&typed("1, 2"), "XTTE0505"),
            (&template(r#"<xsl:variable name="v" as="xs:date" select="'2001'"/>"#), "XTTE0570"),
            (&template(r#"<xsl:value-of select="fn:true()"/>"#), "XPST0081"),
        ],
    );
}

#[test]
fn functions_recurse_as_deep_as_lists_are_long() {
    let sum = r#"<xsl:function name="f:s" as="xs:integer"><xsl:param name="n" as="xs:integer"/><xsl:sequence select="if ($n = 0) then 0 else 1 + f:s($n - 1)"/></xsl:function>"#;
    check(
        "2.0",
        &[
            (&format!("{sum}{}", template(r#"<xsl:value-of select="f:s(5000)"/>"#)), "<o>5000</o>"),
            (&format!("{sum}{}", template(r#"<xsl:value-of select="f:s(-1)"/>"#)), "PSXT0001"),
        ],
    );
}

#[test]
fn sequences_become_text() {
    check_content(
        "2.0",
        &[
            (r#"<xsl:sequence select="1"/><xsl:sequence select="2"/>"#, "1 2"),
            (r#"<xsl:sequence select="1"/><x/><xsl:sequence select="2"/>"#, "1<x/>2"),
            (r#"<xsl:for-each select="1 to 3"><xsl:sequence select="."/></xsl:for-each>"#, "1 2 3"),
            (r#"<xsl:sequence select="1"/><xsl:value-of select="2"/><xsl:sequence select="3"/>"#, "123"),
            (r#"<x><xsl:sequence select="1"/></x><xsl:sequence select="2"/>"#, "<x>1</x>2"),
            (r#"<xsl:value-of separator="_"><xsl:sequence select="1 to 3"/></xsl:value-of>"#, "1_2_3"),
            (r#"<xsl:value-of><xsl:sequence select="1 to 3"/></xsl:value-of>"#, "123"),
            (r#"<xsl:value-of separator="-">a<xsl:text>b</xsl:text><xsl:sequence select="1"/></xsl:value-of>"#, "ab-1"),
            (
                r#"<e><xsl:attribute name="b" separator="-"><xsl:sequence select="1, 2"/></xsl:attribute></e>"#,
                r#"<e b="1-2"/>"#,
            ),
            (r#"<xsl:comment><xsl:sequence select="1, 2"/></xsl:comment>"#, "<!--1 2-->"),
        ],
    );
}

#[test]
fn nodes_without_a_parent() {
    let variable = |content: &str| format!(r#"<xsl:variable name="v" as="item()*">{content}</xsl:variable>"#);
    for (content, select, expected) in [
        ("<a><b/></a>", "count($v/..), count(root($v)/self::document-node())", "0 0"),
        ("<a><b/></a>", "name(root($v/b)), count($v/b/ancestor::node())", "a 1"),
        ("<a><b/></a>", "$v/b/(/)", "XPDY0050"),
        (r#"<xsl:attribute name="x">1</xsl:attribute>"#, "count($v/..), string($v)", "0 1"),
        ("<a/><b/>", "count($v[1]/following-sibling::*), count($v[2]/preceding::*)", "0 0"),
        (r#"<xsl:value-of select="''"/>"#, "count($v)", "1"),
        (r#"<xsl:copy-of select="d/a"/>"#, "count($v/..), string($v)", "0 5"),
    ] {
        let content = format!(r#"{}<xsl:value-of select="{select}"/>"#, variable(content));
        check_content("2.0", &[(&content, expected)]);
    }
}

#[test]
fn sort_keys() {
    let sorted = |select: &str, sort: &str| {
        format!(r#"<xsl:for-each select="{select}">{sort}<xsl:value-of select="."/>;</xsl:for-each>"#)
    };
    let codepoint = "http://www.w3.org/2005/xpath-functions/collation/codepoint";
    for (select, sort, expected) in [
        ("1 to 3", r#"<xsl:sort><xsl:sequence select="-."/></xsl:sort>"#, "3;2;1;"),
        ("10, 9, 1.5", r#"<xsl:sort select="."/>"#, "1.5;9;10;"),
        ("'b', 'B', 'a'", &format!(r#"<xsl:sort select="." collation="{codepoint}"/>"#), "B;a;b;"),
        ("'b', 'a'", r#"<xsl:sort select="." collation="urn:unknown"/>"#, "XTDE1035"),
        (
            "xs:dateTime('2001-01-01T12:00:00+05:00'), xs:dateTime('2001-01-01T06:00:00Z')",
            r#"<xsl:sort select="." order="descending"/>"#,
            "2001-01-01T12:00:00+05:00;2001-01-01T06:00:00Z;",
        ),
        ("1, 'a'", r#"<xsl:sort select="."/>"#, "XTDE1030"),
        ("1, 2", r#"<xsl:sort select="., ."/>"#, "XTTE1020"),
    ] {
        check_content("2.0", &[(&sorted(select, sort), expected)]);
    }
}

#[test]
fn grouping_and_keys_compare_values() {
    let key = r#"<xsl:key name="k" match="*" use="name()"/>"#;
    let number = r#"<xsl:key name="n" match="a" use="xs:integer(.)"/>"#;
    check(
        "2.0",
        &[
            (
                &template(
                    r#"<xsl:for-each-group select="'2001-01-01T12:00:00+02:00', '2001-01-01T10:00:00Z'" group-by="xs:dateTime(.)"><g/></xsl:for-each-group>"#,
                ),
                "<o><g/></o>",
            ),
            (
                &template(
                    r#"<xsl:for-each-group select="1, '1', 1.0" group-by="."><g n="{count(current-group())}"/></xsl:for-each-group>"#,
                ),
                r#"<o><g n="2"/><g n="1"/></o>"#,
            ),
            (
                &format!(
                    "{key}{}",
                    template(r#"<xsl:value-of select="count(key('k', 'b', d/a)), count(key('k', 'b', d))"/>"#)
                ),
                "<o>0 1</o>",
            ),
            (
                &format!(
                    "{number}{}",
                    template(r#"<xsl:value-of select="count(key('n', 5.0)), count(key('n', '5'))"/>"#)
                ),
                "<o>1 0</o>",
            ),
        ],
    );
}

#[test]
fn captured_substrings() {
    let matching = |regex: &str, content: &str| {
        format!(
            r#"<xsl:analyze-string select="'abab'" regex="{regex}"><xsl:matching-substring>[{content}]</xsl:matching-substring></xsl:analyze-string>"#
        )
    };
    let group = r#"<xsl:function name="f:g"><xsl:sequence select="regex-group(0)"/></xsl:function>"#;
    check(
        "2.0",
        &[
            (&template(&matching(r"(a)(b)\1", r#"<xsl:value-of select="."/>"#)), "<o>[aba]</o>"),
            (&format!("{group}{}", template(&matching("b", r#"<xsl:value-of select="f:g()"/>"#))), "<o>[][]</o>"),
            (&template(&matching("(", "")), "XTDE1140"),
        ],
    );
}

#[test]
fn numbers_count_from_the_node_that_matches() {
    for (level, from, expected) in [
        ("any", "a", "2"),
        ("multiple", "d", "1.2"),
        ("single", "d", "2"),
        ("any", "zz", "3"),
        ("single", "zz", "<o/>"),
    ] {
        let content = format!(
            r#"<xsl:for-each select="d/b"><xsl:number level="{level}" count="*" from="{from}"/></xsl:for-each>"#
        );
        check_content("2.0", &[(&content, expected)]);
    }
    check_content(
        "1.0",
        &[(r#"<xsl:for-each select="d/b"><xsl:number level="any" count="*" from="a"/></xsl:for-each>"#, "1")],
    );
    check_content("2.0", &[(r#"<x xsl:version="1.0"><xsl:number value="1 to 3"/></x>"#, "<x>1</x>")]);
}

#[test]
fn identifiers_and_patterns() {
    check(
        "2.0",
        &[
            (
                r#"<xsl:variable name="l"><c xml:id=" a ">A</c></xsl:variable><xsl:template match="/"><o><xsl:value-of select="id('a', $l)"/></o></xsl:template>"#,
                "<o>A</o>",
            ),
            (
                r#"<xsl:template match="child::document-node()"><x/></xsl:template><xsl:template match="*"><o/></xsl:template>"#,
                "<o/>",
            ),
            (r#"<xsl:template match="document-node()"><x/></xsl:template>"#, "<x/>"),
            (r#"<xsl:template match="document-node(element(d))"><x/></xsl:template><xsl:template match="d"/>"#, "<x/>"),
        ],
    );
}

#[test]
fn white_space_of_stylesheets() {
    check_content(
        "1.0",
        &[
            (r#"<xsl:choose xml:space="preserve"> <xsl:when test="true()">x</xsl:when> </xsl:choose>"#, "x"),
            ("\n<!-- c -->\nx", "\n\nx"),
            ("\n<!-- c -->\n<x/>", "<x/>"),
        ],
    );
    let whole = r#"<xsl:stylesheet version="1.0" xml:space="preserve" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"> <xsl:template name="n"> <xsl:param name="p"/><xsl:value-of select="$p"/></xsl:template> <xsl:template match="/"><o><xsl:call-template name="n"> <xsl:with-param name="p" select="1"/> </xsl:call-template></o></xsl:template></xsl:stylesheet>"#;
    let found = common::transform_with(whole, SOURCE, &penstock_xslt::NoResolver);
    assert!(found.ends_with("<o>1</o>"), "{found}");
}

#[test]
fn extension_functions_fail_when_called() {
    let guarded = r#"<xsl:if test="function-available('f:foo')"><xsl:value-of select="f:foo()"/></xsl:if>"#;
    check_content("1.0", &[(guarded, "<o/>"), (r#"<xsl:value-of select="f:foo()"/>"#, "XTDE1425")]);
    check_content("2.0", &[(guarded, "XPST0017")]);
}

#[test]
fn collations() {
    const ASCII: &str = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive";
    const UCA: &str = "http://www.w3.org/2013/collation/UCA";
    let sorted = |collation: &str| {
        format!(
            r#"<xsl:for-each select="'b', 'é', 'B', 'z', 'f'"><xsl:sort select="." collation="{collation}"/><xsl:value-of select="."/></xsl:for-each>"#
        )
    };
    let scoped = |content: &str| format!(r#"<x xsl:default-collation="http://example.org/none {ASCII}">{content}</x>"#);
    check_content(
        "2.0",
        &[
            (&sorted(UCA), "bBéfz"),
            (&sorted(&format!("{UCA}?caseFirst=upper")), "Bbéfz"),
            (&sorted(ASCII), "bBfzé"),
            (&sorted("http://example.org/none"), "XTDE1035"),
            (
                &scoped(
                    r#"<xsl:value-of select="'a' eq 'A', 'a' = ('b', 'A'), contains('a', 'A'), default-collation()"/>"#,
                ),
                &format!("<x>true true true {ASCII}</x>"),
            ),
            (
                &scoped(
                    r#"<xsl:for-each-group select="'a', 'A', 'b'" group-by="."><xsl:value-of select="."/></xsl:for-each-group>"#,
                ),
                "<x>ab</x>",
            ),
            (
                &scoped(
                    r#"<xsl:for-each select="'b', 'C', 'a'"><xsl:sort select="."/><xsl:value-of select="."/></xsl:for-each>"#,
                ),
                "<x>abC</x>",
            ),
            (
                &format!(
                    r#"<xsl:for-each-group select="'é', 'E', 'f'" group-adjacent="." collation="{UCA}?strength=primary"><xsl:value-of select="."/></xsl:for-each-group>"#
                ),
                "éf",
            ),
        ],
    );
    let key = |collation: &str| {
        format!(
            r#"<xsl:key name="k" match="*" use="name()" collation="{collation}"/>{}"#,
            template(r#"<xsl:value-of select="count(key('k', 'A'))"/>"#)
        )
    };
    check(
        "2.0",
        &[
            (&key(ASCII), "<o>1</o>"),
            (&format!(r#"<xsl:key name="k" match="b" use="."/>{}"#, key(ASCII)), "XTSE1220"),
            (&key("http://example.org/none"), "XTSE1210"),
        ],
    );
}

#[test]
fn a_required_parameter_must_be_given() {
    check("2.0", &[(&format!(r#"<xsl:param name="p" required="yes"/>{}"#, template("")), "XTDE0050")]);
}

#[test]
fn adjacent_text_nodes_are_one_item() {
    check(
        "2.0",
        &[(
            r#"<xsl:function name="f:t"><xsl:text>t</xsl:text></xsl:function><xsl:template match="/"><o a="{f:t(), f:t()}"><xsl:value-of select="f:t(), f:t(), 1, f:t()" separator="-"/></o></xsl:template>"#,
            r#"<o a="tt">tt-1-t</o>"#,
        )],
    );
    check_content("2.0", &[(r#"<xsl:value-of select="d/a/text(), d/a/text(), d/b/text()"/>"#, "55")]);
}

#[test]
fn analyzed_text_is_one_string() {
    let analyzed = |select: &str| {
        format!(
            r#"<xsl:analyze-string select="{select}" regex="5"><xsl:matching-substring>m</xsl:matching-substring></xsl:analyze-string>"#
        )
    };
    check_content(
        "2.0",
        &[
            (&*analyzed("d/a"), "m"),
            (&analyzed("'5'"), "m"),
            (&analyzed("5"), "XPTY0004"),
            (&analyzed("()"), "XPTY0004"),
        ],
    );
}

#[test]
fn line_ends_that_are_no_line_ends_of_xml_1_0_are_references() {
    check_content(
        "2.0",
        &[("<i a=\"\u{85}\u{2028}\">\u{85}é\u{2028}\u{2029}</i>", "<i a=\"&#133;&#8232;\">&#133;é&#8232;\u{2029}</i>")],
    );
}

#[test]
fn identifiers_are_normalized() {
    check_content(
        "2.0",
        &[
            (r#"<i xml:id=" x "/>"#, r#"<i xml:id="x"/>"#),
            (r#"<i><xsl:attribute name="xml:id"> a  b </xsl:attribute></i>"#, r#"<i xml:id="a b"/>"#),
            (r#"<i xml:id=" {d/a} "/>"#, r#"<i xml:id="5"/>"#),
        ],
    );
}

#[test]
fn a_document_of_an_element_and_text_is_no_document_of_an_element() {
    let of_element = |content: &str| {
        format!(
            r#"<xsl:variable name="v">{content}</xsl:variable><xsl:value-of select="$v instance of document-node(element(x))"/>"#
        )
    };
    check_content(
        "2.0",
        &[
            (&*of_element("<x/><xsl:comment/>"), "true"),
            (&of_element("<x/>t"), "false"),
            (&of_element("<x/><x/>"), "false"),
            (&of_element("<y/>"), "false"),
        ],
    );
}

#[test]
fn keys_in_patterns_have_literals_or_variables() {
    let key = |arguments: &str| {
        format!(
            r#"<xsl:key name="k" match="a" use="."/><xsl:variable name="v" select="'5'"/><xsl:template match="key({arguments})">K</xsl:template><xsl:template match="/"><xsl:apply-templates select="d/a"/></xsl:template>"#
        )
    };
    check("2.0", &[(&*key("'k', '5'"), "K"), (&key("'k', $v"), "K"), (&key("'k', concat('5', '')"), "XTSE0340")]);
}

#[test]
fn namespaces_that_children_do_not_inherit() {
    let prefixes = |element: &str| {
        format!(
            r#"<xsl:variable name="v" as="element()">{element}</xsl:variable><xsl:value-of select="in-scope-prefixes($v/*)[. != 'xml']"/>"#
        )
    };
    check_content(
        "2.0",
        &[
            (&*prefixes(r#"<a xmlns:q="urn:q"><xsl:copy-of select="d/b"/></a>"#), "q"),
            (&prefixes(r#"<a xmlns:q="urn:q" xsl:inherit-namespaces="no"><xsl:copy-of select="d/b"/></a>"#), "<o/>"),
            // A literal result element has the namespaces in scope in the stylesheet itself.
            (&prefixes(r#"<a xmlns:q="urn:q" xsl:inherit-namespaces="no"><b/></a>"#), "q"),
            (
                &prefixes(
                    r#"<xsl:element name="q:a" namespace="urn:q" inherit-namespaces="no"><b xmlns:r="urn:r"/></xsl:element>"#,
                ),
                "r",
            ),
            (
                &prefixes(
                    r#"<xsl:element name="q:a" namespace="urn:q" inherit-namespaces="no"><xsl:element name="q:b" namespace="urn:q"/></xsl:element>"#,
                ),
                "q",
            ),
        ],
    );
}

#[test]
fn undeclared_prefixes_are_written_in_xml_1_1() {
    let element = r#"<xsl:element name="q:a" namespace="urn:q" inherit-namespaces="no"><b>t<c/></b><q:d xmlns:q="urn:q"/></xsl:element>"#;
    let plain = r#"<o><q:a xmlns:q="urn:q"><b>t<c/></b><q:d/></q:a></o>"#;
    let undeclared = r#"<o><q:a xmlns:q="urn:q"><b xmlns:q="">t<c/></b><q:d/></q:a></o>"#;
    let copied = format!(r#"<xsl:variable name="v">{element}</xsl:variable><xsl:copy-of select="$v"/>"#);
    let output = r#"<xsl:output version="1.1" undeclare-prefixes="yes" omit-xml-declaration="yes"/>"#;
    check(
        "2.0",
        &[
            (&*template(element), plain),
            (&template(&copied), plain),
            (&format!("{output}{}", template(element)), undeclared),
            (&format!("{output}{}", template(&copied)), undeclared),
        ],
    );
}
