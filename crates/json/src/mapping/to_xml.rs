//! JSON to XML.

use std::borrow::Cow;

use penstock_xml::{TreeBuilder, XML_NAMESPACE, XMLNS_NAMESPACE, is_ncname};
use serde_json::{Map, Value};

use super::{DEPTH_MAX, MappingError, Options, names};

/// The processing instruction that marks a list.
pub(super) const LIST_INSTRUCTION: &str = "xml-multiple";

/// The element for what has no name: an element of a list.
pub(super) const UNNAMED: &str = "jsonElement";

/// As many as XML that is read may have: each is compared with those before it.
const ATTRIBUTES_MAX: usize = 10_000;

/// Adds the element a value becomes: `jsonObject`, `jsonArray`, or `jsonValue` for anything else.
pub fn to_xml(value: &Value, builder: &mut TreeBuilder, options: &Options) -> Result<(), MappingError> {
    let name = match value {
        Value::Object(_) => "jsonObject",
        Value::Array(_) => "jsonArray",
        _ => "jsonValue",
    };
    let mut writer = Writer { builder, options, depth: 0 };
    writer.builder.start_element("", name, "");
    match value {
        Value::Array(elements) => writer.elements(UNNAMED, elements)?,
        other => writer.content(other)?,
    }
    writer.builder.end_element();
    Ok(())
}

struct Writer<'b> {
    builder: &'b mut TreeBuilder,
    options: &'b Options,
    depth: usize,
}

impl Writer<'_> {
    /// What stands inside the open element of a value.
    fn content(&mut self, value: &Value) -> Result<(), MappingError> {
        penstock_budget::step();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(MappingError::too_deep());
        }
        match value {
            Value::Null if self.options.nil => self.builder.attribute("", "nil", "", "true"),
            Value::Null => {}
            Value::Bool(truth) => self.builder.text(if *truth { "true" } else { "false" }),
            Value::Number(number) => self.builder.text(&number.to_string()),
            Value::String(text) => self.builder.text(&characters(text)),
            Value::Object(members) => self.members(members)?,
            Value::Array(elements) => {
                self.builder.start_element("", "jsonArray", "");
                self.elements(UNNAMED, elements)?;
                self.builder.end_element();
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Members: attributes first, wherever they stand, because XML has them there.
    fn members(&mut self, members: &Map<String, Value>) -> Result<(), MappingError> {
        let mut attributes = 0;
        for (name, value) in members {
            if let Some(text) = attribute_text(name, value) {
                attributes += 1;
                if attributes > ATTRIBUTES_MAX {
                    return Err(MappingError::new(format!("an object has more than {ATTRIBUTES_MAX} attributes")));
                }
                self.attribute(&name[1..], &characters(&text));
            }
        }
        for (name, value) in members {
            match value {
                _ if attribute_text(name, value).is_some() => {}
                Value::Array(elements) => self.elements(name, elements)?,
                Value::Object(_) => self.element(name, value)?,
                scalar if name == "$" => self.content(scalar)?,
                scalar => self.element(name, scalar)?,
            }
        }
        Ok(())
    }

    fn attribute(&mut self, name: &str, value: &str) {
        let reserved = matches!(value, XML_NAMESPACE | XMLNS_NAMESPACE);
        match name.strip_prefix("xmlns") {
            Some("") if !reserved => self.builder.declare_namespace("", value),
            Some(prefixed) if !reserved && prefixed.strip_prefix(':').is_some_and(is_ncname) => {
                self.builder.declare_namespace(&prefixed[1..], value);
            }
            _ => self.builder.attribute("", &names::to_element(name, self.options.valid_names), "", value),
        }
    }

    fn element(&mut self, name: &str, value: &Value) -> Result<(), MappingError> {
        self.builder.start_element("", &names::to_element(name, self.options.valid_names), "");
        self.content(value)?;
        self.builder.end_element();
        Ok(())
    }

    /// A list: the element of its member once per value.
    fn elements(&mut self, member: &str, elements: &[Value]) -> Result<(), MappingError> {
        let name = names::to_element(member, self.options.valid_names);
        if self.options.write_array_instructions || (elements.is_empty() && member != UNNAMED) {
            array_instruction(self.builder, member, &name);
        }
        for value in elements {
            self.builder.start_element("", &name, "");
            self.content(value)?;
            self.builder.end_element();
        }
        Ok(())
    }
}

/// Marks a list. The instruction names the member, not the element, unless an instruction cannot hold that.
pub(super) fn array_instruction(builder: &mut TreeBuilder, member: &str, element: &str) {
    let held = member == member.trim() && !member.contains("?>") && member.chars().all(is_carried);
    builder.processing_instruction(LIST_INSTRUCTION, if held { member } else { element });
}

/// The value of a member that becomes an attribute: `@name` with anything but an object or a list.
fn attribute_text<'v>(name: &str, value: &'v Value) -> Option<Cow<'v, str>> {
    if name.len() < 2 || !name.starts_with('@') {
        return None;
    }
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Null => Some(Cow::Borrowed("")),
        Value::Array(_) | Value::Object(_) => None,
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// XML 1.0 §2.2.
fn is_carried(character: char) -> bool {
    !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// Text in which characters that XML cannot carry are written as JSON escapes them.
pub(super) fn characters(text: &str) -> Cow<'_, str> {
    let carried = |character: char| !matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    if text.chars().all(carried) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_carried(character) {
            out.push(character);
        } else {
            out.push_str(&format!("\\u{:04x}", character as u32));
        }
    }
    Cow::Owned(out)
}
