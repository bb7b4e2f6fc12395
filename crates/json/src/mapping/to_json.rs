//! XML to JSON.
//!
//! The text is written directly, not by way of a value: members of one name may be wanted twice,
//! which a value cannot hold, and numbers keep their digits without being looked at.

use std::borrow::Cow;
use std::collections::HashMap;

use penstock_xml::{Document, NodeId, NodeKind};
use serde_json::Value;

use super::primitive::{self, Primitive};
use super::to_xml::LIST_INSTRUCTION;
use super::{DEPTH_MAX, MappingError, Options, names};

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// The value an element becomes. `jsonObject`, `jsonArray` and `jsonValue` are their content, any
/// other element is an object with itself as the only member.
pub fn to_json(document: &Document, element: NodeId, options: &Options) -> Result<Value, MappingError> {
    let mut out = Vec::new();
    write_json(&mut out, document, element, options)?;
    let text = std::str::from_utf8(&out).map_err(|error| MappingError::new(error.to_string()))?;
    crate::text::parse(text).map_err(|error| MappingError::new(error.to_string()))
}

/// As [`to_json`], as text at the end of a buffer.
pub fn write_json(
    out: &mut Vec<u8>,
    document: &Document,
    element: NodeId,
    options: &Options,
) -> Result<(), MappingError> {
    let mut writer = Writer { out, document, options, depth: 0 };
    match document.local_name(element) {
        "jsonObject" if document.first_child(element).is_none() && document.attributes(element).next().is_none() => {
            writer.out.extend_from_slice(b"{}");
            Ok(())
        }
        "jsonObject" | "jsonValue" => writer.value(element),
        "jsonArray" => writer.unnamed_list(element),
        _ => {
            writer.out.push(b'{');
            writer.name(&writer.element_name(element));
            writer.value(element)?;
            writer.out.push(b'}');
            Ok(())
        }
    }
}

struct Writer<'o, 'd> {
    out: &'o mut Vec<u8>,
    document: &'d Document,
    options: &'o Options,
    depth: usize,
}

/// Children that become one member.
struct Member<'d> {
    name: Cow<'d, str>,
    elements: Vec<NodeId>,
    list: bool,
}

/// What an element holds.
struct Content<'d> {
    members: Vec<Member<'d>>,
    text: Cow<'d, str>,
}

impl<'d> Writer<'_, 'd> {
    fn value(&mut self, element: NodeId) -> Result<(), MappingError> {
        penstock_budget::step();
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(MappingError::too_deep());
        }
        let content = self.content(element)?;
        let attributes = self.attributes(element);
        match (attributes, content.members.as_slice()) {
            (Some(attributes), []) if attributes.is_empty() => self.text_or_nothing(&content.text),
            // The element that stands for a list inside a list, or inside anything else.
            (Some(attributes), [only]) if attributes.is_empty() && only.name == "jsonArray" && !only.list => {
                self.unnamed_list(only.elements[0])?;
            }
            // Bodies of JSON that were put into an element: as in Micro Integrator they are its value.
            (Some(attributes), [only])
                if attributes.is_empty()
                    && only.name == "jsonObject"
                    && content.text.is_empty()
                    && self.document.local_name(element) != "jsonObject" =>
            {
                self.member(only)?;
            }
            (Some(attributes), members) => self.object(&attributes, members, &content.text)?,
            (None, _) => self.out.extend_from_slice(b"null"),
        }
        self.depth -= 1;
        Ok(())
    }

    fn object(
        &mut self,
        attributes: &[(String, &'d str)],
        members: &[Member<'d>],
        text: &str,
    ) -> Result<(), MappingError> {
        self.out.push(b'{');
        let start = self.out.len();
        for (name, value) in attributes {
            self.separate(start);
            self.name(name);
            self.string(value);
        }
        for member in members {
            self.separate(start);
            self.name(&member.name);
            self.member(member)?;
        }
        if !text.is_empty() {
            self.separate(start);
            self.name("$");
            self.primitive(text);
        }
        self.out.push(b'}');
        Ok(())
    }

    fn member(&mut self, member: &Member<'_>) -> Result<(), MappingError> {
        match member.elements.as_slice() {
            [only] if !member.list => self.value(*only),
            elements => self.list(elements),
        }
    }

    fn list(&mut self, elements: &[NodeId]) -> Result<(), MappingError> {
        self.out.push(b'[');
        let start = self.out.len();
        for element in elements {
            self.separate(start);
            self.value(*element)?;
        }
        self.out.push(b']');
        Ok(())
    }

    /// The children of `jsonArray`.
    fn unnamed_list(&mut self, element: NodeId) -> Result<(), MappingError> {
        let document = self.document;
        let elements: Vec<NodeId> = document.children(element).filter(|child| document.is_element(*child)).collect();
        self.list(&elements)
    }

    /// Text alone, or an element with nothing in it.
    fn text_or_nothing(&mut self, text: &str) {
        if !text.is_empty() {
            self.primitive(text);
        } else if self.options.nil && !self.options.null_for_empty {
            self.out.extend_from_slice(b"\"\"");
        } else {
            self.out.extend_from_slice(b"null");
        }
    }

    fn content(&self, element: NodeId) -> Result<Content<'d>, MappingError> {
        let document = self.document;
        let mut groups = Groups::default();
        let mut text = Cow::Borrowed("");
        for child in document.children(element) {
            penstock_budget::step();
            match document.kind(child) {
                NodeKind::Element => groups.add(self.element_name(child), child, self.options.auto_array),
                NodeKind::Text if text.is_empty() => text = Cow::Borrowed(document.text(child)),
                NodeKind::Text => text.to_mut().push_str(document.text(child)),
                NodeKind::ProcessingInstruction
                    if self.options.read_array_instructions && document.local_name(child) == LIST_INSTRUCTION =>
                {
                    groups.announce(names::to_member(document.text(child).trim()));
                }
                _ => {}
            }
        }
        if text.chars().all(char::is_whitespace) {
            text = Cow::Borrowed("");
        } else if !groups.members.is_empty() {
            let name = document.local_name(element);
            return Err(MappingError::new(format!(
                "`{name}` has text between its elements, for which JSON has no place"
            )));
        }
        Ok(Content { members: groups.members, text })
    }

    /// Attributes as members; `None` when one of them says that the value is null.
    fn attributes(&self, element: NodeId) -> Option<Vec<(String, &'d str)>> {
        let (document, options) = (self.document, self.options);
        let mut members = Vec::new();
        if options.preserve_namespaces && options.namespace_declarations {
            for declaration in document.namespace_declarations(element) {
                let name = match document.local_name(declaration) {
                    "" => "@xmlns".to_owned(),
                    prefix => format!("@xmlns{}{prefix}", options.namespace_separator),
                };
                members.push((name, document.text(declaration)));
            }
        }
        for attribute in document.attributes(element) {
            let (name, value) = (document.name(attribute), document.text(attribute));
            if name.local == "nil" && value == "true" {
                if options.nil && matches!(name.namespace, XSI | "") {
                    return None;
                }
                if name.namespace == XSI && !options.preserve_namespaces {
                    continue;
                }
            }
            members.push((format!("@{}", self.qualified(name.prefix, name.local)), value));
        }
        Some(members)
    }

    fn element_name(&self, element: NodeId) -> Cow<'d, str> {
        let name = self.document.name(element);
        self.qualified(name.prefix, name.local)
    }

    fn qualified<'n>(&self, prefix: &str, local: &'n str) -> Cow<'n, str> {
        let local = names::to_member(local);
        if prefix.is_empty() || !self.options.preserve_namespaces {
            return local;
        }
        Cow::Owned(format!("{prefix}{}{local}", self.options.namespace_separator))
    }

    fn separate(&mut self, start: usize) {
        if self.out.len() > start {
            self.out.push(b',');
        }
    }

    fn name(&mut self, name: &str) {
        self.string(name);
        self.out.push(b':');
    }

    fn primitive(&mut self, text: &str) {
        match primitive::parse(text, self.options) {
            Primitive::Literal(literal) => self.out.extend_from_slice(literal.as_bytes()),
            Primitive::Text(text) => self.string(&text),
        }
    }

    fn string(&mut self, text: &str) {
        // Room for what is written around it as well; escapes make it longer, at most six times.
        penstock_budget::make_room(self.out, text.len() + 16);
        serde_json::to_writer(&mut *self.out, text).expect("writing a string into memory cannot fail");
    }
}

/// So many members are found faster by looking at each than by a table.
const LINEAR_MAX: usize = 16;

#[derive(Default)]
struct Groups<'d> {
    members: Vec<Member<'d>>,
    /// Where the member of a name is, once there are more than [`LINEAR_MAX`].
    positions: HashMap<Cow<'d, str>, usize>,
    /// `<?xml-multiple?>` without a name: the next element starts a list.
    next_is_list: bool,
}

impl<'d> Groups<'d> {
    fn add(&mut self, name: Cow<'d, str>, element: NodeId, join: bool) {
        let list = std::mem::take(&mut self.next_is_list);
        // Most often it is one more of the last.
        let last = self.members.last().filter(|member| member.name == name).map(|_| self.members.len() - 1);
        match last.or_else(|| self.position(&name)) {
            Some(position) if join || self.members[position].list => self.members[position].elements.push(element),
            _ => self.push(Member { name, elements: vec![element], list }),
        }
    }

    /// A list of that name begins, and may stay empty.
    fn announce(&mut self, name: Cow<'d, str>) {
        if name.is_empty() {
            self.next_is_list = true;
        } else if let Some(position) = self.position(&name) {
            self.members[position].list = true;
        } else {
            self.push(Member { name, elements: Vec::new(), list: true });
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        if self.members.len() <= LINEAR_MAX {
            return self.members.iter().rposition(|member| member.name == name);
        }
        self.positions.get(name).copied()
    }

    fn push(&mut self, member: Member<'d>) {
        if self.members.len() == LINEAR_MAX {
            let earlier = self.members.iter().enumerate();
            self.positions = earlier.map(|(position, member)| (member.name.clone(), position)).collect();
        }
        if self.members.len() >= LINEAR_MAX {
            self.positions.insert(member.name.clone(), self.members.len());
        }
        self.members.push(member);
    }
}
