//! Declarations of namespaces that are in force.

use super::{Reader, Step};

/// A namespace declaration that is in force.
pub(super) struct Binding {
    pub(super) prefix: (u32, u32),
    pub(super) namespace: Box<str>,
    pub(super) depth: usize,
}

impl Reader<'_> {
    /// The namespace a prefix is bound to at the last event; the empty prefix is the default namespace.
    pub fn namespace(&self, prefix: &str) -> Option<&str> {
        if prefix == "xml" {
            return Some(crate::names::XML_NAMESPACE);
        }
        let found = self.state.bindings.iter().rev().find(|binding| {
            let (start, len) = binding.prefix;
            self.text.get(start as usize..(start + len) as usize) == Some(prefix)
        })?;
        Some(&*found.namespace).filter(|namespace| !namespace.is_empty())
    }

    /// Remembers the namespace declarations of the last start tag, which opened an element at `depth`.
    #[cold]
    pub(super) fn bind_namespaces(&mut self, depth: usize) -> Step<()> {
        for index in 0..self.state.attributes.len() {
            let attribute = self.state.attributes[index];
            let name = self.raw_name(attribute.name);
            let prefix = match (name.prefix(), name.local()) {
                ("", "xmlns") => (0, 0),
                ("xmlns", local) => (attribute.name.start + attribute.name.colon + 1, local.len() as u32),
                _ => continue,
            };
            let namespace = match self.attribute_value(&attribute) {
                Ok(namespace) => namespace,
                Err(error) => return self.fail(error.kind, attribute.start as usize, &error.message),
            };
            self.state.bindings.push(Binding { prefix, namespace: namespace.into(), depth });
        }
        Ok(())
    }

    #[inline]
    pub(super) fn drop_bindings(&mut self) {
        let depth = self.state.open.len();
        while self.state.bindings.last().is_some_and(|binding| binding.depth > depth) {
            self.state.bindings.pop();
        }
    }
}

/// Whether an attribute's name makes it a namespace declaration.
#[inline]
pub(crate) fn declares_namespace(name: &str) -> bool {
    name.starts_with("xmlns") && matches!(name.as_bytes().get(5), None | Some(b':'))
}
