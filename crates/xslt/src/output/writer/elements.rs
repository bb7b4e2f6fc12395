//! Start tags and end tags, with what stands before the first: the document type.

use super::super::html;

/// The namespace of XHTML.
const XHTML: &str = "http://www.w3.org/1999/xhtml";

use super::{CDATA, HAS_ELEMENTS, HAS_TEXT, HTML, KEEP, Method, Open, Prolog, RAW, Writer};

impl Writer<'_> {
    /// Opens an element and declares its prefix if that is needed. `namespace` may be empty.
    pub fn start_element(&mut self, prefix: &str, local: &str, namespace: &str) {
        if self.method.is_none() {
            let html = namespace.is_empty()
                && local.eq_ignore_ascii_case("html")
                && self.prolog.iter().all(|item| !matches!(item, Prolog::Text(text, _) if !text.trim().is_empty()));
            let xhtml = self.properties.version_two && local == "html" && namespace == XHTML;
            self.decide(match (html, xhtml) {
                (true, _) => Method::Html,
                (_, true) => Method::Xhtml,
                _ => Method::Xml,
            });
        }
        if self.method == Some(Method::Text) {
            self.depth += 1;
            self.buffers.open.push(Open { name: 0, name_end: 0, flags: 0 });
            return;
        }
        self.close_tag();
        if !self.doctype_done {
            self.doctype(prefix, local);
        }
        let html = (self.method == Some(Method::Html) && namespace.is_empty())
            || (self.method == Some(Method::Xhtml) && namespace == XHTML);
        if self.indent {
            self.indent_before(html && html::is_inline(local));
        }
        self.out.push(b'<');
        let name = self.buffers.names.len() as u32;
        // In no namespace a prefix has no meaning.
        if !prefix.is_empty() && !namespace.is_empty() {
            self.buffers.names.push_str(prefix);
            self.buffers.names.push(':');
        }
        self.buffers.names.push_str(local);
        let name_end = self.buffers.names.len() as u32;
        self.out.extend_from_slice(&self.buffers.names.as_bytes()[name as usize..]);
        let flags = self.flags(local, namespace, html);
        self.buffers.open.push(Open { name, name_end, flags });
        self.depth += 1;
        self.tag_open = true;
        self.wrote_anything = true;
        self.buffers.attributes.clear();
        let prefix = if namespace.is_empty() { "" } else { prefix };
        if self.buffers.namespaces.lookup(prefix) != namespace {
            self.write_declaration(prefix, namespace);
        }
        self.settles = self.isolated.last().is_some_and(|depth| depth + 1 == self.depth).then(Vec::new);
    }

    fn flags(&self, local: &str, namespace: &str, html: bool) -> u8 {
        let mut flags = self.buffers.open.last().map_or(0, |open| open.flags & KEEP);
        if html {
            flags |= HTML;
            if html::is_raw_text(local) && self.method == Some(Method::Html) {
                flags |= RAW;
            }
            if html::keeps_space(local) {
                flags |= KEEP;
            }
        }
        if !self.properties.cdata_section_elements.is_empty()
            && matches!(self.method, Some(Method::Xml | Method::Xhtml))
            && self.properties.cdata_section_elements.iter().any(|(n, l)| **n == *namespace && **l == *local)
        {
            flags |= CDATA;
        }
        flags
    }

    fn doctype(&mut self, prefix: &str, local: &str) {
        self.doctype_done = true;
        let html = self.method == Some(Method::Html);
        let (public, system) = (self.properties.doctype_public.as_deref(), self.properties.doctype_system.as_deref());
        // XML needs a system identifier, HTML either.
        if system.is_none() && !(html && public.is_some()) {
            return;
        }
        self.out.extend_from_slice(b"<!DOCTYPE ");
        if html {
            self.out.extend_from_slice(b"HTML");
        } else {
            if !prefix.is_empty() {
                self.out.extend_from_slice(prefix.as_bytes());
                self.out.push(b':');
            }
            self.out.extend_from_slice(local.as_bytes());
        }
        if let Some(public) = public {
            self.out.extend_from_slice(b" PUBLIC \"");
            self.out.extend_from_slice(public.as_bytes());
            self.out.push(b'"');
        } else {
            self.out.extend_from_slice(b" SYSTEM");
        }
        if let Some(system) = system {
            self.out.extend_from_slice(b" \"");
            self.out.extend_from_slice(system.as_bytes());
            self.out.push(b'"');
        }
        self.out.extend_from_slice(b">\n");
    }

    /// Closes the innermost element that was opened by [`Writer::start_element`].
    #[inline]
    pub fn end_element(&mut self) {
        let Some(open) = self.buffers.open.pop() else { return };
        self.depth -= 1;
        if self.method == Some(Method::Text) {
            return;
        }
        if open.flags & HTML != 0 {
            self.end_html(open);
        } else if self.tag_open {
            // The start tag belongs to the element until it is written.
            self.depth += 1;
            self.undeclare_inherited();
            self.depth -= 1;
            self.tag_open = false;
            self.out.extend_from_slice(b"/>");
        } else {
            if self.indent && open.flags & (HAS_TEXT | HAS_ELEMENTS | KEEP) == HAS_ELEMENTS {
                self.out.push(b'\n');
            }
            self.end_tag(open);
        }
        self.isolated.pop_if(|depth| *depth > self.depth);
        self.buffers.names.truncate(open.name as usize);
        self.buffers.namespaces.close_to(self.depth);
    }

    fn end_tag(&mut self, open: Open) {
        self.out.extend_from_slice(b"</");
        self.out.extend_from_slice(&self.buffers.names.as_bytes()[open.name as usize..open.name_end as usize]);
        self.out.push(b'>');
    }

    fn end_html(&mut self, open: Open) {
        // The start tag is closed while the element counts as open, for what follows a `<head>`.
        let empty = self.tag_open;
        if self.tag_open {
            self.buffers.open.push(open);
            self.close_tag();
            self.buffers.open.pop();
        }
        let name = &self.buffers.names[open.name as usize..open.name_end as usize];
        if html::is_empty_element(name) {
            // The tag was closed as that of any element; XHTML marks it as empty.
            if self.method == Some(Method::Xhtml) && empty {
                self.out.truncate(self.out.len() - 1);
                self.out.extend_from_slice(b" />");
            }
            if self.method == Some(Method::Html) || empty {
                return;
            }
        }
        if self.indent && open.flags & (HAS_TEXT | HAS_ELEMENTS | KEEP) == HAS_ELEMENTS && !html::is_inline(name) {
            self.out.push(b'\n');
        }
        self.end_tag(open);
    }
}
