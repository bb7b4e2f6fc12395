//! `application/x-www-form-urlencoded`: fields as child elements of `mediate`, and back.

use penstock_json::mapping::{element_name, member_name};
use penstock_xml::{Document, NodeId, TreeBuilder};

use crate::percent::push_field;

/// The element around the fields.
pub(super) const ROOT: &str = "mediate";

/// Limit of fields: lookups by name are linear.
const FIELDS_MAX: usize = 10_000;

/// Adds the fields in `text` to the tree. Fields beyond the limit are an error.
pub(super) fn build(builder: &mut TreeBuilder, text: &str) -> Result<(), String> {
    builder.start_element("", ROOT, "");
    for (index, (name, value)) in form_urlencoded::parse(text.trim().as_bytes()).enumerate() {
        if index == FIELDS_MAX {
            return Err(format!("the form has more than {FIELDS_MAX} fields"));
        }
        builder.start_element("", &element_name(&name), "");
        builder.text(&value);
        builder.end_element();
    }
    builder.end_element();
    Ok(())
}

/// The child elements of `payload` as fields.
pub(super) fn format(document: &Document, payload: NodeId) -> String {
    let mut out = String::new();
    for field in document.children(payload).filter(|child| document.is_element(*child)) {
        push_field(&mut out, &member_name(document.local_name(field)), &document.string_value(field));
    }
    out
}

#[cfg(test)]
mod tests {
    use penstock_xml::{WriteOptions, to_vec};

    use super::*;

    #[test]
    fn fields_become_elements_and_fields_again() {
        for (text, xml, again) in [
            ("", "<mediate/>", ""),
            ("a=1&b=two+words&c", "<mediate><a>1</a><b>two words</b><c/></mediate>", "a=1&b=two+words&c="),
            ("a=1&a=2", "<mediate><a>1</a><a>2</a></mediate>", "a=1&a=2"),
            ("e=%C3%A9%3D&f=%zz%4", "<mediate><e>é=</e><f>%zz%4</f></mediate>", "e=%C3%A9%3D&f=%25zz%254"),
            (
                "1+x=%FF",
                "<mediate><_JsonReader_PD_1_JsonReader_32_x>\u{fffd}</_JsonReader_PD_1_JsonReader_32_x></mediate>",
                "1+x=%EF%BF%BD",
            ),
        ] {
            let mut builder = TreeBuilder::new();
            build(&mut builder, text).unwrap();
            let document = builder.finish();
            let root = document.root_element().unwrap();
            assert_eq!(String::from_utf8(to_vec(&document, root, &WriteOptions::default())).unwrap(), xml);
            assert_eq!(format(&document, root), again);
        }
    }
}
