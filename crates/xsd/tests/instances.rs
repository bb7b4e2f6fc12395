//! Documents against their schemas: values that are fixed or nil, and what identity constraints compare.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{NoResolver, Schema, SchemaSource};

const OPEN: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">"#;

/// Bodies of `<r>` (its attributes, `>`, its content) and the first code of their violations, empty when there is none.
fn check(declarations: &str, cases: &[(&str, &str)]) {
    let text = format!("{OPEN}{declarations}</xs:schema>");
    let schema = Schema::compile(&[SchemaSource::new("t.xsd", text)], &NoResolver).unwrap();
    for (body, expected) in cases {
        let document = format!("<r xmlns='urn:t' xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'{body}</r>");
        let document = Document::parse(document, &ParseOptions::default()).unwrap();
        let violations = schema.validate(&document, document.root_element().unwrap());
        let code = violations.first().map_or("", |violation| violation.message.split(':').next().unwrap_or_default());
        assert_eq!(code, *expected, "{body}");
    }
}

#[test]
fn nil_elements() {
    check(
        "<xs:element name='r' type='xs:int' nillable='true'/>",
        &[
            (" xsi:nil='true'>", ""),
            (" xsi:nil='false'>1", ""),
            (" xsi:nil='perhaps'>1", "cvc-datatype-valid.1.2.1"),
            (" xsi:nil='true' a='1'>", "cvc-type.3.1.1"),
            (" xsi:nil='true'>1", "cvc-elt.3.2.1"),
            (" xsi:other='1'>1", "cvc-type.3.1.1"),
            (" xsi:schemaLocation='urn:t t.xsd'>1", ""),
        ],
    );
    check(
        "<xs:element name='r' type='xs:int' nillable='true' fixed='1'/>",
        &[(" xsi:nil='true'>", "cvc-elt.3.2.2"), (">1", ""), (">", "")],
    );
}

#[test]
fn fixed_values_of_mixed_content() {
    check(
        "<xs:element name='r' fixed='ab'><xs:complexType mixed='true'><xs:sequence minOccurs='0'>\
         <xs:element name='q'/></xs:sequence></xs:complexType></xs:element>",
        &[(">ab", ""), (">", ""), (">ba", "cvc-elt.5.2.2.2.1"), (">a<q/>b", "cvc-elt.5.2.2.1")],
    );
}

#[test]
fn types_named_in_lax_content_exist() {
    check(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:any processContents='lax'/></xs:sequence></xs:complexType>\
         </xs:element>",
        &[("><q>1</q>", ""), ("><q xsi:type='nope'>1</q>", "cvc-elt.4.2")],
    );
}

/// An element with items; each has an attribute `k` and perhaps an element `e` that may be nil.
fn items(kind: &str, constraint: &str) -> String {
    format!(
        "<xs:element name='r'><xs:complexType><xs:sequence><xs:element name='i' maxOccurs='unbounded'><xs:complexType>\
         <xs:sequence><xs:element name='e' type='{kind}' minOccurs='0' nillable='true'/></xs:sequence>\
         <xs:attribute name='k' type='{kind}'/></xs:complexType></xs:element></xs:sequence></xs:complexType>{constraint}\
         </xs:element>"
    )
}

#[test]
fn fields_of_keys() {
    check(
        &items("xs:int", "<xs:key name='c'><xs:selector xpath='t:i'/><xs:field xpath='t:e'/></xs:key>"),
        &[("><i><e>1</e></i>", "cvc-identity-constraint.4.2.3"), ("><i/>", "cvc-identity-constraint.4.2.1.a")],
    );
    check(
        &items("xs:int", "<xs:unique name='c'><xs:selector xpath='t:i'/><xs:field xpath='t:e'/></xs:unique>"),
        &[
            ("><i><e>1</e></i><i><e>2</e></i>", ""),
            ("><i><e>1</e></i><i><e>01</e></i>", "cvc-identity-constraint.4.1"),
            ("><i/><i/>", ""),
        ],
    );
    check(
        &items("xs:int", "<xs:unique name='c'><xs:selector xpath='t:i'/><xs:field xpath='.'/></xs:unique>"),
        &[("><i k='1'/>", "cvc-identity-constraint.3")],
    );
}

#[test]
fn moments_with_and_without_a_zone_differ() {
    check(
        &items("xs:date", "<xs:unique name='c'><xs:selector xpath='t:i'/><xs:field xpath='@k'/></xs:unique>"),
        &[
            ("><i k='2026-01-31'/><i k='2026-01-31Z'/>", ""),
            ("><i k='2026-01-31Z'/><i k='2026-01-31+00:00'/>", "cvc-identity-constraint.4.1"),
        ],
    );
}

#[test]
fn blocked_members_of_substitution_groups() {
    let head = |block: &str| {
        format!(
            "<xs:element name='r'><xs:complexType><xs:sequence><xs:element ref='t:h'/></xs:sequence></xs:complexType></xs:element>\
             <xs:element name='h' type='xs:decimal' {block}/><xs:element name='whole' substitutionGroup='t:h' type='xs:int'/>\
             <xs:element name='same' substitutionGroup='t:h'/>"
        )
    };
    check(&head(""), &[("><h>1</h>", ""), ("><whole>1</whole>", ""), ("><same>1</same>", "")]);
    check(
        &head("block='restriction'"),
        &[("><h>1</h>", ""), ("><whole>1</whole>", "cvc-complex-type.2.4.a"), ("><same>1</same>", "")],
    );
}

#[test]
fn an_extension_keeps_attributes_it_prohibits() {
    check(
        "<xs:complexType name='B'><xs:attribute name='a'/></xs:complexType><xs:element name='r'><xs:complexType>\
         <xs:complexContent><xs:extension base='t:B'><xs:attribute name='a' use='prohibited'/></xs:extension>\
         </xs:complexContent></xs:complexType></xs:element>",
        &[(" a='1'>", ""), (" b='1'>", "cvc-complex-type.3.2.2")],
    );
}

#[test]
fn months_of_the_first_edition() {
    check(
        "<xs:element name='r' type='xs:gMonth'/>",
        &[(">--05", ""), (">--05--", ""), (">--05-", "cvc-datatype-valid.1.2.1")],
    );
}

#[test]
fn counts_within_counts() {
    let model = |inner: &str| format!("<xs:element name='r'><xs:complexType>{inner}</xs:complexType></xs:element>");
    check(
        &model(
            "<xs:sequence minOccurs='0' maxOccurs='3'><xs:element name='a' minOccurs='2' maxOccurs='3'/></xs:sequence>",
        ),
        &[
            (">", ""),
            ("><a/>", "cvc-complex-type.2.4.b"),
            ("><a/><a/><a/><a/>", ""),
            ("><a/><a/><a/><a/><a/><a/><a/><a/><a/>", ""),
            ("><a/><a/><a/><a/><a/><a/><a/><a/><a/><a/>", "cvc-complex-type.2.4.d"),
        ],
    );
    check(
        &model(
            "<xs:choice minOccurs='2' maxOccurs='3'><xs:element name='a' type='xs:int' maxOccurs='unbounded'/>\
             <xs:element name='b'/></xs:choice>",
        ),
        &[
            ("><a>1</a><a>2</a><a>3</a>", ""),
            ("><a>1</a><a>x</a>", "cvc-datatype-valid.1.2.1"),
            ("><a>1</a>", "cvc-complex-type.2.4.b"),
            ("><b/><a>1</a><a>2</a><b/>", ""),
            ("><b/><a>1</a><b/><a>1</a>", "cvc-complex-type.2.4.d"),
        ],
    );
}
