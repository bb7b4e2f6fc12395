//! Schemas that are right or wrong, as data: what the recommendation does not allow is refused when a schema is compiled.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use penstock_xsd::{NoResolver, Schema, SchemaSource};

const OPEN: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:t" xmlns:t="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">"#;

/// The first mistake of a schema, or `ok`.
fn mistake(inner: &str) -> String {
    match Schema::compile(&[SchemaSource::new("t.xsd", format!("{OPEN}{inner}</xs:schema>"))], &NoResolver) {
        Ok(_) => "ok".to_owned(),
        Err(errors) => errors.first().unwrap().message.clone(),
    }
}

/// Each schema with the beginning of what is wrong with it.
fn check(cases: &[(&str, &str)]) {
    for (inner, expected) in cases {
        let found = mistake(inner);
        assert!(found.starts_with(expected), "{inner}\n  expected: {expected}\n  found:    {found}");
    }
}

fn restriction(base: &str, made: &str) -> String {
    mistake(&format!(
        r#"<xs:complexType name="Longer"><xs:simpleContent><xs:extension base="xs:string"/></xs:simpleContent></xs:complexType><xs:complexType name="B">{base}</xs:complexType><xs:complexType name="D"><xs:complexContent><xs:restriction base="B">{made}</xs:restriction></xs:complexContent></xs:complexType>"#
    ))
}

const A: &str = r#"<xs:element name="a" type="xs:string"/>"#;
const B: &str = r#"<xs:element name="b" type="xs:string"/>"#;

#[test]
fn a_restriction_matches_nothing_new() {
    let sequence = |inner: &str| format!("<xs:sequence>{inner}</xs:sequence>");
    let choice = |inner: &str| format!("<xs:choice>{inner}</xs:choice>");
    let counted =
        |min: u32, max: &str| format!(r#"<xs:element name="a" type="xs:string" minOccurs="{min}" maxOccurs="{max}"/>"#);
    let both = format!("{A}{B}");
    for (base, made, fits) in [
        (sequence(&both), sequence(&both), true),
        (sequence(&both), sequence(B), false),
        (sequence(&both), sequence(&format!("{B}{A}")), false),
        (sequence(&format!("{}{B}", counted(0, "1"))), sequence(B), true),
        (choice(&both), choice(A), true),
        (choice(&both), sequence(A), true),
        (choice(&both), choice(&format!("{B}{A}")), false),
        (choice(A), choice(&both), false),
        (sequence(&counted(2, "4")), sequence(&counted(2, "3")), true),
        (sequence(&counted(2, "4")), sequence(&counted(1, "3")), false),
        (sequence(&counted(2, "4")), sequence(&counted(2, "unbounded")), false),
        (format!("<xs:all>{both}</xs:all>"), sequence(&format!("{B}{A}")), true),
        (format!("<xs:all>{both}</xs:all>"), sequence(A), false),
        (sequence(r#"<xs:any maxOccurs="2"/>"#), sequence(&both), true),
        (sequence(r###"<xs:any namespace="##other" maxOccurs="2"/>"###), sequence(&both), false),
        (sequence("<xs:any/>"), sequence(r#"<xs:any processContents="skip"/>"#), false),
        (sequence(A), sequence(r#"<xs:element name="a" type="xs:token"/>"#), true),
        (sequence(A), sequence(r#"<xs:element name="a" type="xs:int"/>"#), false),
        (sequence(A), sequence(r#"<xs:element name="a" type="xs:string" nillable="true"/>"#), false),
        (sequence(A), String::new(), false),
        (sequence(&counted(0, "1")), String::new(), true),
        // Groups that add nothing do not count; those that occur otherwise than once do.
        (sequence(&format!("{}{}", sequence(A), sequence(B))), sequence(&both), true),
        (choice(&format!("{A}{}", choice(B))), choice(B), true),
        (sequence(&format!("{A}<xs:sequence/>")), sequence(&format!("<xs:sequence/>{A}")), true),
        (sequence(&counted(0, "unbounded")), format!(r#"<xs:sequence maxOccurs="2">{A}</xs:sequence>"#), false),
        ("<xs:all/>".to_owned(), r#"<xs:choice minOccurs="0"/>"#.to_owned(), true),
        (sequence(A), sequence(r#"<xs:element name="a" type="Longer"/>"#), false),
        (sequence(&A.replace("/>", r#" fixed="x"/>"#)), sequence(A), false),
        (
            sequence(r#"<xs:element name="a" type="xs:int" fixed="1"/>"#),
            sequence(r#"<xs:element name="a" type="xs:int" fixed="01"/>"#),
            true,
        ),
        (sequence(&A.replace("/>", r#" block="extension"/>"#)), sequence(A), false),
    ] {
        let found = restriction(&base, &made);
        let expected = if fits { "ok" } else { "the content is not a restriction of that of `B`" };
        assert_eq!(found, expected, "{made} from {base}");
    }
    let attribute = |more: &str| format!(r#"<xs:attribute name="k" type="xs:string"{more}/>"#);
    for (base, made, expected) in [
        (attribute(""), attribute(r#" use="required""#), "ok"),
        (attribute(r#" use="required""#), attribute(""), "the attribute `k` is required by `B`"),
        (attribute(r#" use="required""#), attribute(r#" use="prohibited""#), "`k` is required by `B`"),
        (attribute(r#" fixed="1""#), attribute(r#" fixed="2""#), "the attribute `k` is fixed in `B`"),
        (String::new(), attribute(""), "`B` has no attribute `k`"),
        ("<xs:anyAttribute/>".to_owned(), attribute(""), "ok"),
        (
            r###"<xs:anyAttribute namespace="##other"/>"###.to_owned(),
            "<xs:anyAttribute/>".to_owned(),
            "<anyAttribute> allows",
        ),
    ] {
        let found = restriction(&base, &made);
        assert!(found.starts_with(expected), "{made} from {base}: {found}");
    }
}

#[test]
fn derivation() {
    let derived = |base: &str, made: &str| {
        format!(r#"<xs:complexType name="B"{base}</xs:complexType><xs:complexType name="D">{made}</xs:complexType>"#)
    };
    let extension = |inner: &str| {
        format!(r#"<xs:complexContent><xs:extension base="B">{inner}</xs:extension></xs:complexContent>"#)
    };
    let more = extension("<xs:sequence><xs:element name='z'/></xs:sequence>");
    check(&[
        (&derived(&format!("><xs:sequence>{A}</xs:sequence>"), &more), "ok"),
        (&derived(&format!(r#" final="extension"><xs:sequence>{A}</xs:sequence>"#), &more), "the base excludes"),
        (&derived(&format!(r#" mixed="true"><xs:sequence>{A}</xs:sequence>"#), &more), "mixed content extends"),
        (&derived(&format!("><xs:all>{A}</xs:all>"), &more), "<all> is not part"),
        (
            &derived(r#"><xs:attribute name="k"/>"#, &extension(r#"<xs:attribute name="k"/>"#)),
            "the base has the attribute",
        ),
        (
            &derived("><xs:sequence/>", r#"<xs:simpleContent><xs:restriction base="xs:int"/></xs:simpleContent>"#),
            "a simple type is extended here",
        ),
        (
            r#"<xs:complexType name="T"><xs:attribute name="a" type="xs:ID"/><xs:attribute name="b" type="xs:ID"/></xs:complexType>"#,
            "a type or group has one attribute of type ID",
        ),
        (
            &format!(
                r#"<xs:complexType name="T"><xs:sequence>{A}{B}<xs:element name="a" type="xs:int"/></xs:sequence></xs:complexType>"#
            ),
            "elements named",
        ),
        (
            r#"<xs:element name="h" type="xs:int"/><xs:element name="m" type="xs:string" substitutionGroup="h"/>"#,
            "the type is not derived",
        ),
        (
            r#"<xs:element name="h" type="xs:decimal" final="restriction"/><xs:element name="m" type="xs:int" substitutionGroup="h"/>"#,
            "`\"urn:t\":h` excludes",
        ),
        (r#"<xs:element name="h" type="xs:decimal"/><xs:element name="m" type="xs:int" substitutionGroup="h"/>"#, "ok"),
        (r#"<xs:element name="e" type="xs:int" default="x"/>"#, "the default is not of the type"),
        (
            r#"<xs:attributeGroup name="G"><xs:attribute name="a" type="xs:ID"/><xs:attribute name="b" type="xs:ID"/></xs:attributeGroup>"#,
            "a type or group has one attribute of type ID",
        ),
        (
            &derived(
                "><xs:simpleContent><xs:extension base='xs:int'/></xs:simpleContent>",
                "<xs:simpleContent><xs:restriction base='B'><xs:simpleType><xs:restriction base='xs:string'/></xs:simpleType></xs:restriction></xs:simpleContent>",
            ),
            "the content is not a restriction",
        ),
        (
            &derived(
                "><xs:sequence/>",
                "<xs:complexContent mixed='true'><xs:restriction base='B'/></xs:complexContent>",
            ),
            "the content is mixed",
        ),
        (
            &derived(
                "><xs:anyAttribute namespace='##other'/>",
                "<xs:complexContent><xs:extension base='B'><xs:anyAttribute namespace='##local'/></xs:extension></xs:complexContent>",
            ),
            "no wildcard allows",
        ),
        (r#"<xs:element name="e" type="xs:NOTATION"/>"#, "a type that enumerates notations"),
        (
            r#"<xs:simpleType name="N"><xs:restriction base="xs:NOTATION"><xs:enumeration value="t:none"/></xs:restriction></xs:simpleType>"#,
            "no notation is declared",
        ),
        (r#"<xs:notation name="n" public="a"/><xs:notation name="n" public="b"/>"#, "`n` is declared twice"),
        (
            r#"<xs:complexType name="C"/><xs:simpleType name="L"><xs:list itemType="C"/></xs:simpleType>"#,
            "the items of a list have a simple type",
        ),
        (
            r#"<xs:complexType name="C"/><xs:simpleType name="U"><xs:union memberTypes="C"/></xs:simpleType>"#,
            "the members of a union are simple types",
        ),
    ]);
}

#[test]
fn facets_go_together() {
    let simple = |base: &str, facets: &str| {
        format!(r#"<xs:simpleType name="S"><xs:restriction base="{base}">{facets}</xs:restriction></xs:simpleType>"#)
    };
    let chained = |first: &str, second: &str| {
        format!(
            r#"<xs:simpleType name="A"><xs:restriction base="xs:decimal">{first}</xs:restriction></xs:simpleType><xs:simpleType name="S"><xs:restriction base="A">{second}</xs:restriction></xs:simpleType>"#
        )
    };
    check(&[
        (&simple("xs:string", r#"<xs:minLength value="3"/><xs:maxLength value="2"/>"#), "<minLength> contradicts"),
        (&simple("xs:string", r#"<xs:length value="3"/><xs:maxLength value="5"/>"#), "<length> and <maxLength>"),
        (&simple("xs:string", r#"<xs:totalDigits value="3"/>"#), "<totalDigits> means nothing"),
        (&simple("xs:boolean", r#"<xs:enumeration value="true"/>"#), "<enumeration> means nothing"),
        (
            &simple("xs:decimal", r#"<xs:minInclusive value="5"/><xs:maxInclusive value="3"/>"#),
            "<minInclusive> contradicts",
        ),
        (
            &simple("xs:decimal", r#"<xs:minExclusive value="5"/><xs:maxInclusive value="5"/>"#),
            "<minExclusive> contradicts",
        ),
        (&simple("xs:decimal", r#"<xs:minInclusive value="5"/><xs:maxInclusive value="5"/>"#), "ok"),
        (&simple("xs:integer", r#"<xs:fractionDigits value="1"/>"#), "whole numbers have no fraction"),
        (&simple("xs:token", r#"<xs:whiteSpace value="preserve"/>"#), "the base treats white space"),
        (&simple("xs:string", r#"<xs:pattern value="a**"/>"#), "invalid regular expression"),
        (&simple("xs:string", r#"<xs:pattern value="[\p{IsGreek}-[α]]"/>"#), "ok"),
        (&simple("xs:anySimpleType", ""), "a simple type restricts another"),
        (&chained(r#"<xs:totalDigits value="3"/>"#, r#"<xs:totalDigits value="4"/>"#), "<totalDigits> contradicts"),
        (&chained(r#"<xs:minExclusive value="2"/>"#, r#"<xs:minExclusive value="2"/>"#), "ok"),
        (
            &chained(r#"<xs:minInclusive value="2"/>"#, r#"<xs:minInclusive value="1"/>"#),
            "the value is not one of the base",
        ),
        (
            &chained(r#"<xs:totalDigits value="3" fixed="true"/>"#, r#"<xs:totalDigits value="2"/>"#),
            "the base fixes <totalDigits>",
        ),
        (&chained(r#"<xs:totalDigits value="3" fixed="true"/>"#, r#"<xs:totalDigits value="3"/>"#), "ok"),
        (&chained(r#"<xs:maxInclusive value="3" fixed="true"/>"#, r#"<xs:maxInclusive value="3.0"/>"#), "ok"),
        (
            r#"<xs:simpleType name="A"><xs:restriction base="xs:string"><xs:length value="3"/></xs:restriction></xs:simpleType><xs:simpleType name="S"><xs:restriction base="A"><xs:minLength value="1"/></xs:restriction></xs:simpleType>"#,
            "the base has <length>",
        ),
        (
            &simple("xs:duration", r#"<xs:minInclusive value="P31D"/><xs:maxInclusive value="P1M"/>"#),
            "<minInclusive> contradicts",
        ),
        (r#"<xs:simpleType name="L"><xs:list itemType="xs:NMTOKENS"/></xs:simpleType>"#, "the items of a list"),
        (
            r#"<xs:simpleType name="A" final="list"><xs:restriction base="xs:int"/></xs:simpleType><xs:simpleType name="S"><xs:list itemType="A"/></xs:simpleType>"#,
            "`A` excludes",
        ),
    ]);
}

#[test]
fn keys_and_what_refers_to_them() {
    let key = r#"<xs:key name="k"><xs:selector xpath="t:i"/><xs:field xpath="@k"/></xs:key>"#;
    let element = |constraints: &str| format!(r#"<xs:element name="r"><xs:complexType/>{constraints}</xs:element>"#);
    let keyref = |name: &str, fields: &str| {
        element(&format!(r#"{key}<xs:keyref name="q" refer="{name}"><xs:selector xpath="t:i"/>{fields}</xs:keyref>"#))
    };
    let field = r#"<xs:field xpath="@k"/>"#;
    check(&[
        (&element(key), "ok"),
        (&element(&format!("{key}{key}")), "an identity constraint of this name"),
        (&keyref("t:k", field), "ok"),
        (&keyref("t:zz", field), "there is no key named"),
        (&keyref("t:k", &format!("{field}{field}")), "the key has 1 fields, not 2"),
        (&element(&key.replace("t:i", "t:i/@k")), "a selector leads to elements"),
        (&element(&key.replace("t:i", "t:i[1]")), "`t:i[1]` is not a name"),
        (&element(&key.replace("t:i", "t:i t:j")), "the path `t:i t:j` is not one"),
        (&element(&key.replace("t:i", " t:i / child :: t:j ")), "ok"),
        (&element(&key.replace("@k", "@t:*")), "ok"),
    ]);
}

#[test]
fn the_syntax_of_schemas() {
    let local = |inner: &str| {
        format!(r#"<xs:element name="g"/><xs:complexType name="T"><xs:sequence>{inner}</xs:sequence></xs:complexType>"#)
    };
    check(&[
        (r#"<xs:element name="a" colour="red"/>"#, "<element> has no attribute `colour`"),
        (r#"<xs:element name="a" x:colour="red" xmlns:x="urn:x"/>"#, "ok"),
        (r#"<xs:element name="a" minOccurs="0"/>"#, "<element> has no attribute `minOccurs`"),
        (r#"<xs:element name="a" nillable="yes"/>"#, "`yes` is not a value of the attribute `nillable`"),
        (r#"<xs:element name="a b"/>"#, "`a b` is not a value of the attribute `name`"),
        (r#"<xs:element name="a" default="1" fixed="1"/>"#, "`default` and `fixed` exclude"),
        (r#"<xs:element name="a" id="x"/><xs:element name="b" id="x"/>"#, "the id `x` is given twice"),
        (
            r#"<xs:complexType name="T"><xs:attribute name="a"/><xs:sequence/></xs:complexType>"#,
            "<complexType> does not contain",
        ),
        (r#"<xs:complexType name="T">text</xs:complexType>"#, "text is not allowed"),
        (r#"<xs:attribute name="xmlns"/>"#, "an attribute cannot be named"),
        (r#"<xs:simpleType name="U"><xs:union/></xs:simpleType>"#, "a union has member types"),
        (r#"<xs:import namespace="urn:t"/>"#, "a document imports other namespaces"),
        (&local(r#"<xs:element ref="g" type="xs:int"/>"#), "`ref` and `type` exclude"),
        (&local(r#"<xs:element name="a" ref="g"/>"#), "exactly one of `name` and `ref`"),
        (&local(r###"<xs:any namespace="##nothing"/>"###), "`##nothing` is not a value"),
        (
            r#"<xs:complexType name="T"><xs:all><xs:element name="a" maxOccurs="2"/></xs:all></xs:complexType>"#,
            "an element of <all>",
        ),
        (
            r#"<xs:group name="g"><xs:all/></xs:group><xs:complexType name="T"><xs:sequence><xs:group ref="g"/></xs:sequence></xs:complexType>"#,
            "<all> is not part",
        ),
    ]);
}
