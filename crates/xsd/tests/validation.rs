//! Schemas, documents and what is wrong with them, as data.
#![expect(clippy::unwrap_used, reason = "a test fails where it stands")]

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{NoResolver, Resolver, Schema, SchemaSource};

const OPEN: &str = r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns="urn:t" targetNamespace="urn:t" elementFormDefault="qualified">"#;

fn schema(inner: &str) -> Schema {
    match Schema::compile(&[SchemaSource::new("t.xsd", format!("{OPEN}{inner}</xs:schema>"))], &NoResolver) {
        Ok(schema) => schema,
        Err(errors) => panic!("{}", errors[0]),
    }
}

/// Codes of the violations of a document in the namespace `urn:t`.
fn codes(schema: &Schema, document: &str) -> Vec<String> {
    let document = Document::parse(document.to_owned(), &ParseOptions::default()).unwrap();
    let violations = schema.validate(&document, document.root_element().unwrap());
    violations.iter().map(|one| one.message.split(':').next().unwrap_or_default().to_owned()).collect()
}

fn check(inner: &str, cases: &[(&str, &[&str])]) {
    let schema = schema(inner);
    for (document, expected) in cases {
        assert_eq!(codes(&schema, document), *expected, "{document}");
    }
}

#[test]
fn sequences_choices_and_counts() {
    check(
        r#"<xs:element name="r"><xs:complexType><xs:sequence>
             <xs:element name="a" maxOccurs="2"/>
             <xs:choice minOccurs="0" maxOccurs="unbounded"><xs:element name="b"/><xs:sequence><xs:element name="c"/><xs:element name="d" minOccurs="0"/></xs:sequence></xs:choice>
             <xs:element name="e" minOccurs="0"/>
           </xs:sequence></xs:complexType></xs:element>"#,
        &[
            (r#"<r xmlns="urn:t"><a/></r>"#, &[]),
            (r#"<r xmlns="urn:t"><a/><a/><b/><c/><d/><c/><b/><e/></r>"#, &[]),
            (r#"<r xmlns="urn:t"/>"#, &["cvc-complex-type.2.4.b"]),
            (r#"<r xmlns="urn:t"><a/><a/><a/></r>"#, &["cvc-complex-type.2.4.a"]),
            (r#"<r xmlns="urn:t"><a/><d/></r>"#, &["cvc-complex-type.2.4.a"]),
            (r#"<r xmlns="urn:t"><a/><e/><e/></r>"#, &["cvc-complex-type.2.4.d"]),
            (r#"<r xmlns="urn:t">x<a/></r>"#, &["cvc-complex-type.2.3"]),
            (r#"<r xmlns="urn:t" k="1"><a/></r>"#, &["cvc-complex-type.3.2.2"]),
            (r#"<r><a/></r>"#, &["cvc-elt.1.a"]),
        ],
    );
}

#[test]
fn large_counts_cost_nothing() {
    check(
        r#"<xs:element name="r"><xs:complexType><xs:sequence minOccurs="2" maxOccurs="1000000000"><xs:element name="a" maxOccurs="999999999"/><xs:element name="b"/></xs:sequence></xs:complexType></xs:element>"#,
        &[
            (r#"<r xmlns="urn:t"><a/><a/><b/><a/><b/></r>"#, &[]),
            (r#"<r xmlns="urn:t"><a/><b/></r>"#, &["cvc-complex-type.2.4.b"]),
        ],
    );
}

#[test]
fn all_groups_and_named_groups() {
    check(
        r#"<xs:group name="g"><xs:sequence><xs:element name="x"/><xs:element name="y"/></xs:sequence></xs:group>
           <xs:element name="r"><xs:complexType><xs:all><xs:element name="a"/><xs:element name="b" minOccurs="0"/></xs:all></xs:complexType></xs:element>
           <xs:element name="s"><xs:complexType><xs:group ref="g" minOccurs="0" maxOccurs="2"/></xs:complexType></xs:element>"#,
        &[
            (r#"<r xmlns="urn:t"><b/><a/></r>"#, &[]),
            (r#"<r xmlns="urn:t"><b/></r>"#, &["cvc-complex-type.2.4.b"]),
            (r#"<r xmlns="urn:t"><a/><a/></r>"#, &["cvc-complex-type.2.4.a"]),
            (r#"<s xmlns="urn:t"><x/><y/><x/><y/></s>"#, &[]),
            (r#"<s xmlns="urn:t"><x/><x/></s>"#, &["cvc-complex-type.2.4.a"]),
        ],
    );
}

#[test]
fn simple_types_and_facets() {
    check(
        r#"<xs:simpleType name="code"><xs:restriction base="xs:string"><xs:pattern value="[A-Z]{2}"/><xs:pattern value="\d"/></xs:restriction></xs:simpleType>
           <xs:simpleType name="short"><xs:restriction base="code"><xs:maxLength value="1"/></xs:restriction></xs:simpleType>
           <xs:simpleType name="many"><xs:list itemType="xs:int"/></xs:simpleType>
           <xs:simpleType name="two"><xs:restriction base="many"><xs:length value="2"/></xs:restriction></xs:simpleType>
           <xs:simpleType name="either"><xs:union memberTypes="xs:int code"/></xs:simpleType>
           <xs:simpleType name="price"><xs:restriction base="xs:decimal"><xs:fractionDigits value="2"/><xs:totalDigits value="5"/><xs:minExclusive value="0"/></xs:restriction></xs:simpleType>
           <xs:simpleType name="colour"><xs:restriction base="xs:token"><xs:enumeration value="red"/><xs:enumeration value="sky blue"/></xs:restriction></xs:simpleType>
           <xs:simpleType name="late"><xs:restriction base="xs:date"><xs:minInclusive value="2024-01-01"/></xs:restriction></xs:simpleType>
           <xs:element name="code" type="code"/><xs:element name="short" type="short"/><xs:element name="two" type="two"/>
           <xs:element name="either" type="either"/><xs:element name="price" type="price"/><xs:element name="colour" type="colour"/>
           <xs:element name="late" type="late"/>"#,
        &[
            (r#"<code xmlns="urn:t">AB</code>"#, &[]),
            (r#"<code xmlns="urn:t">7</code>"#, &[]),
            (r#"<code xmlns="urn:t">A</code>"#, &["cvc-pattern-valid", "cvc-type.3.1.3"]),
            (r#"<short xmlns="urn:t">AB</short>"#, &["cvc-maxLength-valid", "cvc-type.3.1.3"]),
            (r#"<two xmlns="urn:t"> 1  2 </two>"#, &[]),
            (r#"<two xmlns="urn:t">1</two>"#, &["cvc-length-valid", "cvc-type.3.1.3"]),
            (r#"<either xmlns="urn:t">AB</either>"#, &[]),
            (r#"<either xmlns="urn:t">ab</either>"#, &["cvc-datatype-valid.1.2.3", "cvc-type.3.1.3"]),
            (r#"<price xmlns="urn:t">123.40</price>"#, &[]),
            (r#"<price xmlns="urn:t">1.234</price>"#, &["cvc-fractionDigits-valid", "cvc-type.3.1.3"]),
            (r#"<price xmlns="urn:t">123456</price>"#, &["cvc-totalDigits-valid", "cvc-type.3.1.3"]),
            (r#"<price xmlns="urn:t">0.00</price>"#, &["cvc-minExclusive-valid", "cvc-type.3.1.3"]),
            (r#"<colour xmlns="urn:t"> sky   blue </colour>"#, &[]),
            (r#"<colour xmlns="urn:t">green</colour>"#, &["cvc-enumeration-valid", "cvc-type.3.1.3"]),
            (r#"<late xmlns="urn:t">2023-12-31</late>"#, &["cvc-minInclusive-valid", "cvc-type.3.1.3"]),
            (r#"<late xmlns="urn:t"><b/></late>"#, &["cvc-type.3.1.2"]),
            (r#"<late xmlns="urn:t" k="">2024-12-31</late>"#, &["cvc-type.3.1.1"]),
        ],
    );
}

#[test]
fn attributes_and_their_groups() {
    check(
        r#"<xs:attribute name="g" type="xs:int"/>
           <xs:attributeGroup name="common"><xs:attribute name="id" type="xs:ID" use="required"/><xs:attribute name="to" type="xs:IDREF"/></xs:attributeGroup>
           <xs:complexType name="base"><xs:attributeGroup ref="common"/><xs:attribute name="n" type="xs:int" fixed="5"/></xs:complexType>
           <xs:complexType name="less"><xs:complexContent><xs:restriction base="base"><xs:attribute name="to" use="prohibited"/></xs:restriction></xs:complexContent></xs:complexType>
           <xs:complexType name="more"><xs:complexContent><xs:extension base="base"><xs:anyAttribute namespace='##other' processContents="lax"/></xs:extension></xs:complexContent></xs:complexType>
           <xs:element name="b" type="base"/><xs:element name="l" type="less"/><xs:element name="m" type="more"/>
           <xs:element name="w"><xs:complexType><xs:anyAttribute/></xs:complexType></xs:element>"#,
        &[
            (r#"<b xmlns="urn:t" id="x" to="x" n="+5"/>"#, &[]),
            (r#"<b xmlns="urn:t"/>"#, &["cvc-complex-type.4"]),
            (r#"<b xmlns="urn:t" id="x" n="6"/>"#, &["cvc-attribute.4"]),
            (r#"<b xmlns="urn:t" id="1"/>"#, &["cvc-datatype-valid.1.2.1", "cvc-attribute.3"]),
            (r#"<b xmlns="urn:t" id="x" to="y"/>"#, &["cvc-id.1"]),
            (r#"<l xmlns="urn:t" id="x" to="x"/>"#, &["cvc-complex-type.3.2.2"]),
            (r#"<m xmlns="urn:t" id="x" o:z="1" xmlns:o="urn:o"/>"#, &[]),
            (r#"<m xmlns="urn:t" id="x" z="1"/>"#, &["cvc-complex-type.3.2.2"]),
            (r#"<w xmlns="urn:t" t:g="1" xmlns:t="urn:t" xml:lang="en"/>"#, &[]),
            (r#"<w xmlns="urn:t" t:g="x" xmlns:t="urn:t"/>"#, &["cvc-datatype-valid.1.2.1", "cvc-attribute.3"]),
            (r#"<w xmlns="urn:t" h="1"/>"#, &["cvc-complex-type.3.2.2"]),
        ],
    );
}

#[test]
fn derivation_substitution_and_instance_types() {
    check(
        r#"<xs:complexType name="animal" abstract="true"><xs:sequence><xs:element name="name" type="xs:string"/></xs:sequence></xs:complexType>
           <xs:complexType name="dog"><xs:complexContent><xs:extension base="animal"><xs:sequence><xs:element name="breed" type="xs:string"/></xs:sequence></xs:extension></xs:complexContent></xs:complexType>
           <xs:complexType name="rock"/>
           <xs:element name="animal" type="animal" abstract="true"/>
           <xs:element name="dog" type="dog" substitutionGroup="animal"/>
           <xs:element name="pet" type="animal"/>
           <xs:element name="zoo"><xs:complexType><xs:sequence><xs:element ref="animal" maxOccurs="unbounded"/></xs:sequence></xs:complexType></xs:element>
           <xs:complexType name="priced"><xs:simpleContent><xs:extension base="xs:decimal"><xs:attribute name="unit" use="required"/></xs:extension></xs:simpleContent></xs:complexType>
           <xs:complexType name="cheap"><xs:simpleContent><xs:restriction base="priced"><xs:maxInclusive value="10"/></xs:restriction></xs:simpleContent></xs:complexType>
           <xs:element name="cost" type="cheap"/><xs:element name="any"/>
           <xs:element name="gone" type="xs:int" nillable="true"/><xs:element name="here" type="xs:int"/>"#,
        &[
            (r#"<zoo xmlns="urn:t"><dog><name>a</name><breed>b</breed></dog></zoo>"#, &[]),
            (r#"<zoo xmlns="urn:t"><animal><name/></animal></zoo>"#, &["cvc-elt.2"]),
            (r#"<pet xmlns="urn:t"><name>a</name></pet>"#, &["cvc-type.2"]),
            (
                r#"<pet xmlns="urn:t" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="dog"><name>a</name><breed>b</breed></pet>"#,
                &[],
            ),
            (
                r#"<pet xmlns="urn:t" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:type="rock"><name>a</name></pet>"#,
                &["cvc-elt.4.3", "cvc-type.2"],
            ),
            (r#"<cost xmlns="urn:t" unit="EUR"> 9.5 </cost>"#, &[]),
            (r#"<cost xmlns="urn:t" unit="EUR">11</cost>"#, &["cvc-maxInclusive-valid", "cvc-complex-type.2.2"]),
            (r#"<cost xmlns="urn:t">9</cost>"#, &["cvc-complex-type.4"]),
            (
                r#"<any xmlns="urn:t" k="1">text<b><here>x</here></b></any>"#,
                &["cvc-datatype-valid.1.2.1", "cvc-type.3.1.3"],
            ),
            (r#"<gone xmlns="urn:t" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>"#, &[]),
            (r#"<gone xmlns="urn:t"/>"#, &["cvc-datatype-valid.1.2.1", "cvc-type.3.1.3"]),
            (
                r#"<here xmlns="urn:t" xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:nil="true"/>"#,
                &["cvc-elt.3.1", "cvc-datatype-valid.1.2.1", "cvc-type.3.1.3"],
            ),
        ],
    );
}

#[test]
fn keys_and_references() {
    check(
        r#"<xs:element name="r"><xs:complexType><xs:sequence>
             <xs:element name="item" maxOccurs="unbounded"><xs:complexType><xs:attribute name="id" type="xs:int"/></xs:complexType></xs:element>
             <xs:element name="use" minOccurs="0" maxOccurs="unbounded" type="xs:int"/>
           </xs:sequence></xs:complexType>
           <xs:key name="k"><xs:selector xpath="t:item" xmlns:t="urn:t"/><xs:field xpath="@id"/></xs:key>
           <xs:keyref name="kr" refer="k"><xs:selector xpath=".//t:use" xmlns:t="urn:t"/><xs:field xpath="."/></xs:keyref></xs:element>"#,
        &[
            (r#"<r xmlns="urn:t"><item id="1"/><item id="2"/><use>02</use></r>"#, &[]),
            (r#"<r xmlns="urn:t"><item id="1"/><item id="01"/></r>"#, &["cvc-identity-constraint.4.2.2"]),
            (r#"<r xmlns="urn:t"><item/></r>"#, &["cvc-identity-constraint.4.2.1.a"]),
            (r#"<r xmlns="urn:t"><item id="1"/><use>3</use></r>"#, &["cvc-identity-constraint.4.3"]),
        ],
    );
}

#[test]
fn messages_and_positions() {
    let schema = schema(
        r#"<xs:element name="r"><xs:complexType><xs:sequence><xs:element name="a"/><xs:element name="b"/></xs:sequence></xs:complexType></xs:element>"#,
    );
    let document = Document::parse("<r xmlns='urn:t'>\n  <a/>\n  <c/>\n</r>", &ParseOptions::default()).unwrap();
    let violations = schema.validate(&document, document.root_element().unwrap());
    assert_eq!(
        violations[0].to_string(),
        "3:3: cvc-complex-type.2.4.a: Invalid content was found starting with element '{\"urn:t\":c}'. One of '{\"urn:t\":b}' is expected."
    );
}

/// Documents by their location.
struct Table(&'static [(&'static str, &'static str)]);

impl Resolver for Table {
    fn resolve(&self, location: &str, _base: &str, _namespace: Option<&str>) -> Option<SchemaSource> {
        self.0.iter().find(|(name, _)| *name == location).map(|(name, text)| SchemaSource::new(*name, *text))
    }
}

const TABLE: Table = Table(&[
    (
        "common.xsd",
        r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="common.xsd"/><xs:simpleType name="age"><xs:restriction base="xs:int"><xs:maxInclusive value="150"/></xs:restriction></xs:simpleType></xs:schema>"#,
    ),
    (
        "other.xsd",
        r#"<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:o"><xs:element name="o" type="xs:boolean"/></xs:schema>"#,
    ),
]);

#[test]
fn includes_imports_and_redefinitions() {
    for (inner, document, expected) in [
        (
            r#"<xs:include schemaLocation="common.xsd"/><xs:element name="r" type="age"/>"#,
            r#"<r xmlns="urn:t">151</r>"#,
            2,
        ),
        (
            r#"<xs:include schemaLocation="common.xsd"/><xs:element name="r" type="age"/>"#,
            r#"<r xmlns="urn:t">15</r>"#,
            0,
        ),
        (
            r#"<xs:redefine schemaLocation="common.xsd"><xs:simpleType name="age"><xs:restriction base="age"><xs:minInclusive value="18"/></xs:restriction></xs:simpleType></xs:redefine><xs:element name="r" type="age"/>"#,
            r#"<r xmlns="urn:t">17</r>"#,
            2,
        ),
        (
            r#"<xs:import namespace="urn:o" schemaLocation="other.xsd"/><xs:element name="r"><xs:complexType><xs:sequence><xs:element xmlns:o="urn:o" ref="o:o"/></xs:sequence></xs:complexType></xs:element>"#,
            r#"<r xmlns="urn:t"><o xmlns="urn:o">maybe</o></r>"#,
            2,
        ),
        // What is not fetched is accepted unchecked.
        (
            r#"<xs:import namespace="urn:q" schemaLocation="http://example.org/q.xsd"/><xs:element name="r"><xs:complexType><xs:sequence><xs:element xmlns:o="urn:q" ref="o:o"/></xs:sequence></xs:complexType></xs:element>"#,
            r#"<r xmlns="urn:t"><o xmlns="urn:q">maybe</o></r>"#,
            0,
        ),
    ] {
        let schema = Schema::compile(&[SchemaSource::new("t.xsd", format!("{OPEN}{inner}</xs:schema>"))], &TABLE);
        let schema = schema.unwrap_or_else(|errors| panic!("{}", errors[0]));
        let document = Document::parse(document, &ParseOptions::default()).unwrap();
        assert_eq!(schema.validate(&document, document.root_element().unwrap()).len(), expected, "{inner}");
    }
}

/// A content model with these members of a sequence, and the two ambiguous particles.
fn ambiguous(members: &str, expected: Option<(&str, &str)>) {
    let text = format!(
        "{OPEN}<xs:element name='h'/><xs:element name='m' substitutionGroup='h'/><xs:element name='n' substitutionGroup='m'/>\n\
         <xs:group name='g'><xs:sequence><xs:element name='x' minOccurs='0'/></xs:sequence></xs:group>\n\
         <xs:complexType name='b'><xs:sequence><xs:element name='x' minOccurs='0' maxOccurs='2'/></xs:sequence></xs:complexType>\n\
         <xs:complexType name='t'><xs:sequence>{members}</xs:sequence></xs:complexType></xs:schema>"
    );
    let errors = Schema::compile(&[SchemaSource::new("t.xsd", text)], &NoResolver).err().unwrap_or_default();
    let expected = expected.map(|(one, other)| {
        format!("the content model is ambiguous: one element may belong to {one} or to {other}, and only what follows could tell")
    });
    assert_eq!(errors.first().map(|error| error.message.clone()), expected, "{members}");
    assert!(errors.iter().all(|error| error.position.line == 4 && error.position.column == 1), "{members}");
}

#[test]
fn ambiguous_content_models_are_refused() {
    let (x, any) = ("the particle `x`", "a wildcard");
    for members in [
        "<xs:element name='x' minOccurs='0'/><xs:element name='x'/>",
        "<xs:element name='x' maxOccurs='unbounded'/><xs:element name='x'/>",
        "<xs:element name='x' minOccurs='2' maxOccurs='3'/><xs:element name='x'/>",
        "<xs:choice><xs:element name='x'/><xs:sequence><xs:element name='x'/><xs:element name='y'/></xs:sequence></xs:choice>",
        "<xs:choice maxOccurs='unbounded'><xs:element name='x'/><xs:element name='y'/></xs:choice><xs:element name='x'/>",
        "<xs:element name='x' minOccurs='0'/><xs:element name='y' minOccurs='0'/><xs:element name='x'/>",
        "<xs:sequence maxOccurs='2'><xs:element name='x'/><xs:element name='x' minOccurs='0'/></xs:sequence>",
        "<xs:sequence minOccurs='2' maxOccurs='2'><xs:element name='y'/><xs:element name='x' minOccurs='0'/></xs:sequence><xs:element name='x'/>",
        "<xs:group ref='g'/><xs:group ref='g'/>",
        "<xs:group ref='g'/><xs:element name='x'/>",
    ] {
        ambiguous(members, Some((x, x)));
    }
    ambiguous("<xs:element name='x' minOccurs='0'/><xs:any/>", Some((x, any)));
    ambiguous("<xs:any minOccurs='0' namespace='##targetNamespace'/><xs:element name='x'/>", Some((any, x)));
    ambiguous(
        "<xs:any minOccurs='0' maxOccurs='9' namespace='##other'/><xs:any namespace='urn:a urn:b'/>",
        Some((any, any)),
    );
    ambiguous("<xs:choice><xs:any namespace='##other'/><xs:any namespace='##other'/></xs:choice>", Some((any, any)));
    ambiguous(
        "<xs:element ref='h' minOccurs='0'/><xs:element ref='n'/>",
        Some(("the particle `h`", "the particle `n`")),
    );
    ambiguous(
        "<xs:element ref='m' minOccurs='0'/><xs:element ref='h'/>",
        Some(("the particle `m`", "the particle `h`")),
    );
}

#[test]
fn content_models_that_only_look_ambiguous_are_accepted() {
    for members in [
        "<xs:element name='x'/><xs:element name='x'/>",
        "<xs:element name='x' minOccurs='2' maxOccurs='2'/><xs:element name='x'/>",
        "<xs:sequence minOccurs='3' maxOccurs='3'><xs:element name='x'/><xs:element name='y'/></xs:sequence><xs:element name='x'/>",
        "<xs:element name='x' minOccurs='0' maxOccurs='unbounded'/><xs:element name='y'/><xs:element name='x'/>",
        "<xs:sequence maxOccurs='unbounded'><xs:element name='x' maxOccurs='3'/></xs:sequence>",
        "<xs:sequence maxOccurs='unbounded'><xs:element name='x' minOccurs='0' maxOccurs='3'/></xs:sequence><xs:element name='y'/>",
        "<xs:choice minOccurs='0' maxOccurs='unbounded'><xs:element name='x'/><xs:sequence><xs:element name='y'/><xs:element name='x' minOccurs='0'/><xs:element name='z'/></xs:sequence></xs:choice>",
        "<xs:element name='x' minOccurs='0'/><xs:any namespace='##other'/>",
        "<xs:any minOccurs='0' namespace='##local'/><xs:element name='x'/><xs:any minOccurs='0' maxOccurs='unbounded' namespace='##other'/>",
        "<xs:any minOccurs='0' namespace='urn:a'/><xs:any namespace='urn:b ##local'/>",
        "<xs:element ref='m' minOccurs='0'/><xs:element name='x'/><xs:element ref='h'/>",
        "<xs:element name='y'/><xs:group ref='g'/><xs:element name='z'/><xs:group ref='g'/>",
        "<xs:choice><xs:element name='x'/><xs:element name='y'/></xs:choice><xs:element name='x'/>",
    ] {
        ambiguous(members, None);
    }
}

/// What an extension adds comes after what its base has.
#[test]
fn extensions_may_be_ambiguous() {
    let extension = |members: &str| {
        let text = format!(
            "{OPEN}<xs:complexType name='b'><xs:sequence><xs:element name='x' minOccurs='0'/></xs:sequence></xs:complexType>\
             <xs:complexType name='t'><xs:complexContent><xs:extension base='b'><xs:sequence>{members}</xs:sequence></xs:extension></xs:complexContent></xs:complexType></xs:schema>"
        );
        Schema::compile(&[SchemaSource::new("t.xsd", text)], &NoResolver).is_ok()
    };
    assert!(extension("<xs:element name='y'/><xs:element name='x'/>"));
    assert!(!extension("<xs:element name='x'/>"));
}

#[test]
fn large_content_models_are_checked_in_no_time() {
    let all = |separator: &str| (0..800).map(|n| format!("<xs:element name='e{n}' {separator}/>")).collect::<String>();
    ambiguous(&format!("<xs:choice maxOccurs='unbounded'>{}</xs:choice>", all("")), None);
    ambiguous(&all("minOccurs='0'"), None);
}

#[test]
fn mistakes_of_schemas_have_places() {
    for (inner, expected) in [
        ("<xs:element name='a' type='nope'/>", "no type is declared as `\"urn:t\":nope`"),
        (
            "<xs:complexType name='a'><xs:complexContent><xs:extension base='a'/></xs:complexContent></xs:complexType>",
            "the type is derived from itself",
        ),
        ("<xs:group name='g'><xs:sequence><xs:group ref='g'/></xs:sequence></xs:group>", "the group contains itself"),
        (
            "<xs:element name='a'><xs:element name='b'/></xs:element>",
            "<element> does not contain these elements in this order: element",
        ),
        ("<xs:include schemaLocation='gone.xsd'/>", "the schema document `gone.xsd` cannot be found"),
        (
            "<xs:simpleType name='s'><xs:restriction base='xs:int'><xs:minInclusive value='x'/></xs:restriction></xs:simpleType>",
            "the value is not one of the base type: cvc-datatype-valid.1.2.1: 'x' is not a valid value for 'int'.",
        ),
        ("<xs:element name='a'/><xs:element name='a'/>", "`a` is declared twice"),
    ] {
        let errors = Schema::compile(&[SchemaSource::new("t.xsd", format!("{OPEN}{inner}</xs:schema>"))], &NoResolver);
        let errors = errors.err().unwrap_or_else(|| panic!("{inner} compiles"));
        assert_eq!(errors[0].message, expected, "{inner}");
        assert_eq!(errors[0].position.line, 1);
    }
}
