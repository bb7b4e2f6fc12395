//! Attributes and namespace declarations of the open start tag.

use percent_encoding::{AsciiSet, utf8_percent_encode};

use super::super::{escape, html};
use super::{Method, Writer, Written};

/// Escapes nothing of ASCII; characters beyond it are always escaped.
const BEYOND_ASCII: &AsciiSet = &AsciiSet::EMPTY;

impl Writer<'_> {
    /// Declares a namespace on the element just opened, unless it is in scope or would change a name on it.
    pub fn declare(&mut self, prefix: &str, namespace: &str) {
        let undeclares = namespace.is_empty() && !prefix.is_empty();
        if !self.tag_open || prefix == "xml" || (undeclares && !self.undeclares()) {
            return;
        }
        if let Some(own) = &mut self.settles {
            own.push(prefix.to_owned());
        }
        let namespaces = &self.buffers.namespaces;
        if namespaces.lookup(prefix) == namespace || namespaces.bound_here(prefix, self.depth) {
            return;
        }
        // The element's own name, and its attributes, keep the meaning they have.
        if self.own_prefix() == prefix.as_bytes() {
            return;
        }
        if !prefix.is_empty() && self.attribute_uses(prefix) {
            return;
        }
        self.write_declaration(prefix, namespace);
    }

    /// Whether prefixes can be undeclared in the result.
    pub(super) fn undeclares(&self) -> bool {
        self.method == Some(Method::Xml) && self.properties.undeclare_prefixes == Some(true)
    }

    /// Children of the open element do not inherit its namespaces.
    pub fn isolate_namespaces(&mut self) {
        if self.undeclares() {
            self.isolated.push(self.depth);
        }
    }

    /// Undeclares what the open start tag inherits, neither declares nor uses, and must not inherit.
    pub(super) fn undeclare_inherited(&mut self) {
        let Some(own) = self.settles.take() else { return };
        for prefix in self.buffers.namespaces.inherited(self.depth) {
            let used = self.own_prefix() == prefix.as_bytes() || self.attribute_uses(&prefix);
            if !used && !own.contains(&prefix) {
                self.write_declaration(&prefix, "");
            }
        }
    }

    /// Whether the open element cannot have this namespace: it has another one with the prefix that neither its name
    /// nor an attribute uses, or it is in no namespace and this would be its default namespace.
    pub fn namespace_conflicts(&self, prefix: &str, namespace: &str) -> bool {
        let namespaces = &self.buffers.namespaces;
        if !self.tag_open || namespaces.lookup(prefix) == namespace {
            return false;
        }
        if prefix.is_empty() {
            return self.own_prefix().is_empty() && namespaces.lookup("").is_empty();
        }
        namespaces.bound_here(prefix, self.depth)
            && self.own_prefix() != prefix.as_bytes()
            && !self.attribute_uses(prefix)
    }

    /// The prefix of the open start tag's name. The tag may come from a fragment, so it is read from the output.
    pub(super) fn own_prefix(&self) -> &[u8] {
        let Some(start) = self.out.iter().rposition(|byte| *byte == b'<') else { return b"" };
        let name = &self.out[start + 1..];
        let end = name.iter().position(|byte| *byte == b' ').unwrap_or(name.len());
        name[..end].iter().position(|byte| *byte == b':').map_or(b"", |colon| &name[..colon])
    }

    pub(super) fn attribute_uses(&self, prefix: &str) -> bool {
        self.buffers.attributes.iter().any(|written| {
            let name = &self.out[written.start + 1..written.local];
            name.strip_suffix(b":") == Some(prefix.as_bytes())
        })
    }

    pub(super) fn write_declaration(&mut self, prefix: &str, namespace: &str) {
        self.buffers.namespaces.bind(prefix, namespace, self.depth);
        if self.method == Some(Method::Html) && namespace.is_empty() {
            return;
        }
        self.out.extend_from_slice(b" xmlns");
        if !prefix.is_empty() {
            self.out.push(b':');
            self.out.extend_from_slice(prefix.as_bytes());
        }
        self.out.extend_from_slice(b"=\"");
        escape::attribute(self.out, namespace);
        self.out.push(b'"');
    }

    /// Adds an attribute to the element just opened, or replaces it; ignored when there is none.
    pub fn attribute(&mut self, prefix: &str, local: &str, namespace: &str, value: &str) {
        if !self.tag_open {
            return;
        }
        if !self.buffers.attributes.is_empty() {
            self.remove_attribute(local, namespace);
        }
        let made;
        let prefix = if namespace.is_empty() {
            ""
        } else if namespace == penstock_xml::XML_NAMESPACE {
            "xml"
        } else {
            made = self.attribute_prefix(prefix, namespace);
            &made
        };
        let start = self.out.len();
        self.out.push(b' ');
        if !prefix.is_empty() {
            self.out.extend_from_slice(prefix.as_bytes());
            self.out.push(b':');
        }
        let local_start = self.out.len();
        self.out.extend_from_slice(local.as_bytes());
        let name_end = self.out.len();
        if self.method == Some(Method::Html) {
            self.html_value(local, value);
        } else if self.method == Some(Method::Xhtml) && self.escapes_uri(local) {
            self.out.extend_from_slice(b"=\"");
            let value = utf8_percent_encode(value, BEYOND_ASCII).to_string();
            self.slow_text(&value, true);
            self.out.push(b'"');
        } else {
            self.out.extend_from_slice(b"=\"");
            if self.properties.character_map.is_empty() && self.last_character == char::MAX {
                escape::attribute(self.out, value);
            } else {
                self.slow_text(value, true);
            }
            self.out.push(b'"');
        }
        let end = self.out.len();
        self.buffers.attributes.push(Written { start, name_end, end, local: local_start });
    }

    pub(super) fn remove_attribute(&mut self, local: &str, namespace: &str) {
        let position = self.buffers.attributes.iter().position(|written| {
            &self.out[written.local..written.name_end] == local.as_bytes() && {
                let prefix = self.out[written.start + 1..written.local].strip_suffix(b":").unwrap_or_default();
                let bound = if prefix.is_empty() {
                    ""
                } else {
                    self.buffers.namespaces.lookup(std::str::from_utf8(prefix).unwrap_or_default())
                };
                bound == namespace
            }
        });
        let Some(position) = position else { return };
        let Written { start, end, .. } = self.buffers.attributes.remove(position);
        self.out.drain(start..end);
        let gone = end - start;
        for later in self.buffers.attributes.iter_mut().filter(|written| written.start >= end) {
            later.start -= gone;
            later.name_end -= gone;
            later.end -= gone;
            later.local -= gone;
        }
    }

    /// A prefix that is bound to the namespace here, declared if need be.
    pub(super) fn attribute_prefix(&mut self, wish: &str, namespace: &str) -> String {
        let namespaces = &self.buffers.namespaces;
        if !wish.is_empty() && namespaces.lookup(wish) == namespace {
            return wish.to_owned();
        }
        let free = |prefix: &str| {
            self.own_prefix() != prefix.as_bytes()
                && !namespaces.bound_here(prefix, self.depth)
                && !self.attribute_uses(prefix)
        };
        if !matches!(wish, "" | "xml" | "xmlns") && free(wish) {
            self.write_declaration(wish, namespace);
            return wish.to_owned();
        }
        if let Some(prefix) = namespaces.prefix_of(namespace) {
            return prefix.to_owned();
        }
        let mut number = 0;
        let made = loop {
            let candidate = format!("ns{number}");
            if namespaces.lookup(&candidate).is_empty() && free(&candidate) {
                break candidate;
            }
            number += 1;
        };
        self.write_declaration(&made, namespace);
        made
    }

    fn escapes_uri(&self, name: &str) -> bool {
        html::is_uri(name) && self.properties.escape_uri_attributes.unwrap_or(true)
    }

    pub(super) fn html_value(&mut self, name: &str, value: &str) {
        if html::is_boolean(name) && value.eq_ignore_ascii_case(name) {
            return;
        }
        self.out.extend_from_slice(b"=\"");
        let uri = self.escapes_uri(name);
        let mut chars = value.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '"' if uri => self.out.extend_from_slice(b"%22"),
                '"' => self.out.extend_from_slice(b"&quot;"),
                '&' if chars.peek() != Some(&'{') => self.out.extend_from_slice(b"&amp;"),
                c if uri && !c.is_ascii() => {
                    let mut buffer = [0; 4];
                    for escape in utf8_percent_encode(c.encode_utf8(&mut buffer), BEYOND_ASCII) {
                        self.out.extend_from_slice(escape.as_bytes());
                    }
                }
                c => self.html_character(c),
            }
        }
        self.out.push(b'"');
    }
}
