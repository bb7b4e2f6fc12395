//! The fields of a head that still lies where it was read.

use super::Field;

/// Parsed fields of a head, borrowed. Positions outside the bytes read as empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct FieldsView<'h> {
    bytes: &'h [u8],
    fields: &'h [Field],
}

impl<'h> FieldsView<'h> {
    /// The fields that a parser found in `bytes`; see [`super::HeaderBlock`].
    pub fn new(bytes: &'h [u8], fields: &'h [Field]) -> FieldsView<'h> {
        FieldsView { bytes, fields }
    }

    /// The first value of `name` as it was sent.
    pub fn get(&self, name: &str) -> Option<&'h [u8]> {
        let name = name.as_bytes();
        let is_named = |(field, _): &&Field| {
            let part = self.part(field.start, field.end);
            // As in `Headers`: most clients write a name as it is asked for here.
            part.len() == name.len() && (part == name || part.eq_ignore_ascii_case(name))
        };
        self.fields.iter().find(is_named).map(|(_, value)| self.part(value.start, value.end))
    }

    fn part(&self, start: u32, end: u32) -> &'h [u8] {
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }
}
