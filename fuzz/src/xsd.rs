//! XML Schema: compiling any bytes ends with a schema or errors, and a schema has a verdict for any
//! document.

use penstock_xml::{Document, ParseOptions};
use penstock_xsd::{NoResolver, Schema, SchemaSource};

/// Pieces of schemas.
pub const DICTIONARY: &[&str] = &[
    "<xs:element name=\"r\">",
    "<xs:element ref=\"r\"/>",
    "</xs:element>",
    "<xs:complexType name=\"t\">",
    "</xs:complexType>",
    "<xs:sequence minOccurs=\"0\" maxOccurs=\"unbounded\">",
    "</xs:sequence>",
    "<xs:choice>",
    "</xs:choice>",
    "<xs:all>",
    "<xs:any processContents=\"lax\"/>",
    "<xs:anyAttribute/>",
    "<xs:group ref=\"g\"/>",
    "<xs:extension base=\"t\">",
    "<xs:restriction base=\"xs:decimal\">",
    "<xs:pattern value=\"[a-z-[b]]{1,9}\\p{IsGreek}\"/>",
    "<xs:minInclusive value=\"-1.50\"/>",
    "<xs:length value=\"2\"/>",
    "<xs:enumeration value=\"a\"/>",
    "<xs:list itemType=\"xs:date\"/>",
    "<xs:union memberTypes=\"xs:duration xs:QName\"/>",
    "substitutionGroup=\"r\"",
    "<xs:key name=\"k\"><xs:selector xpath=\".//a\"/><xs:field xpath=\"@b\"/></xs:key>",
    "<xs:redefine schemaLocation=\"x\">",
    "maxOccurs=\"4294967295\"",
    "type=\"xs:dateTime\"",
];

const DOCUMENTS: [&str; 3] = [
    "<r><a b=\"1\">2024-02-29</a><a b=\"1\"/>text<c>P1Y</c></r>",
    "<r xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" i:type=\"t\" i:nil=\"true\"/>",
    "<t:r xmlns:t=\"urn:t\" id=\"x\"><t:a>1</t:a><t:b>αβ</t:b></t:r>",
];

/// Compiles the bytes as a schema; what compiles checks documents, and the schema itself as one.
pub fn schema(data: &[u8]) {
    let Ok(schema) = Schema::compile(&[SchemaSource::new("fuzz.xsd", data.to_vec())], &NoResolver) else { return };
    let own = Document::parse(data.to_vec(), &ParseOptions::default()).ok();
    let documents = DOCUMENTS.iter().filter_map(|text| Document::parse(*text, &ParseOptions::default()).ok());
    for document in documents.chain(own) {
        let Some(root) = document.root_element() else { continue };
        for violation in schema.validate(&document, root) {
            assert!(!violation.message.is_empty());
        }
    }
}
