//! Documents in, documents out: what is parsed is written again in one canonical way.

use penstock_xml::{Document, ParseOptions, WriteOptions, to_vec};

fn round(source: &str) -> String {
    match Document::parse(source.to_owned(), &ParseOptions::default()) {
        Ok(document) => String::from_utf8(to_vec(&document, Document::ROOT, &WriteOptions::default()))
            .expect("what is written is UTF-8"),
        Err(error) => format!("{error}"),
    }
}

fn check(source: &str, expected: &str) {
    assert_eq!(round(source), expected, "from {source}");
}

#[test]
fn elements_and_text() {
    check("<a/>", "<a/>");
    check("<a></a >", "<a/>");
    check("<?xml version='1.0'?>\n<a>x<b>y</b>z</a>\n", "<a>x<b>y</b>z</a>");
    check("<a>1 &lt; 2 &amp;&#38; &#x41;</a>", "<a>1 &lt; 2 &amp;&amp; A</a>");
    check("<a>x<![CDATA[<y>]]>z</a>", "<a>x&lt;y&gt;z</a>");
    check("<a>l1\r\nl2\rl3</a>", "<a>l1\nl2\nl3</a>");
    check("<!--c--><a><!--d--><?p q?></a><?e?>", "<!--c--><a><!--d--><?p q?></a><?e?>");
    check("<é à='ü'>ß</é>", "<é à=\"ü\">ß</é>");
}

#[test]
fn attributes() {
    check("<a b='1' c=\"2\" />", "<a b=\"1\" c=\"2\"/>");
    check("<a b=' x\n\ty&#10;z '/>", "<a b=\" x  y&#10;z \"/>");
    check("<a b='&lt;&quot;&apos;'/>", "<a b=\"&lt;&quot;'\"/>");
}

#[test]
fn namespaces() {
    check("<p:a xmlns:p='urn:p' p:b='1' b='2'/>", "<p:a xmlns:p=\"urn:p\" p:b=\"1\" b=\"2\"/>");
    check("<a xmlns='urn:a'><b xmlns=''/></a>", "<a xmlns=\"urn:a\"><b xmlns=\"\"/></a>");
}

#[test]
fn entities() {
    check("<!DOCTYPE a [<!ENTITY e 'x'>]><a>1&e;2</a>", "<a>1x2</a>");
    check("<!DOCTYPE a [<!ENTITY e '<b>&f;</b>'><!ENTITY f 'y&#38;amp;'>]><a>1&e;2</a>", "<a>1<b>y&amp;</b>2</a>");
    check("<!DOCTYPE a [<!ATTLIST a x CDATA 'd' y NMTOKENS #IMPLIED>]><a y=' p  q '/>", "<a y=\"p q\" x=\"d\"/>");
    check(
        "<!DOCTYPE a [<!ENTITY e '&f;'><!ENTITY f '&e;'>]><a>&e;</a>",
        "1:53: in the entity `e`: in the entity `f`: the entity `e` contains itself, or is nested too deeply",
    );
}

#[test]
fn mistakes() {
    check("<a><b></a>", "1:7: `</a>` does not match `<b>`");
    check("<a", "1:3: the document ends before its first element");
    check("<a><b>", "1:7: the document ends inside `<b>`, which is never closed");
    check("<a>]]></a>", "1:4: `]]>` may not stand in text, write `]]&gt;`");
    check("<a b='1' b='2'/>", "1:10: the attribute `b` is given twice");
    check("<a b='1' ='2'/>", "1:10: a name is expected here, it cannot begin with `=`");
    check("<p:a/>", "1:2: the prefix `p` is not declared");
}
