//! The namespaces in scope while a result is written.

/// Bindings of the open elements, innermost last. Prefix and namespace live in one buffer that shrinks with them.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    text: String,
    bindings: Vec<Binding>,
    /// Whether a default namespace is in scope.
    pub default_bound: bool,
}

#[derive(Debug, Clone, Copy)]
struct Binding {
    depth: u32,
    start: u32,
    middle: u32,
    end: u32,
}

impl Namespaces {
    pub fn clear(&mut self) {
        self.text.clear();
        self.bindings.clear();
        self.default_bound = false;
    }

    fn prefix(&self, binding: Binding) -> &str {
        &self.text[binding.start as usize..binding.middle as usize]
    }

    fn namespace(&self, binding: Binding) -> &str {
        &self.text[binding.middle as usize..binding.end as usize]
    }

    /// The namespace a prefix is bound to; the empty string for none.
    #[inline]
    pub fn lookup(&self, prefix: &str) -> &str {
        if prefix == "xml" {
            return penstock_xml::XML_NAMESPACE;
        }
        let found = self.bindings.iter().rev().find(|binding| self.prefix(**binding) == prefix);
        found.map_or("", |binding| self.namespace(*binding))
    }

    /// Whether the innermost element itself binds the prefix.
    pub fn bound_here(&self, prefix: &str, depth: u32) -> bool {
        self.bindings.iter().rev().take_while(|b| b.depth == depth).any(|b| self.prefix(*b) == prefix)
    }

    /// Prefixes that an element at a depth has from the elements around it.
    pub fn inherited(&self, depth: u32) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for binding in self.bindings.iter().filter(|binding| binding.depth < depth) {
            let prefix = self.prefix(*binding);
            let is_visible = !self.bound_here(prefix, depth) && !self.lookup(prefix).is_empty();
            if is_visible && !found.iter().any(|known| known == prefix) {
                found.push(prefix.to_owned());
            }
        }
        found
    }

    /// A prefix, other than the empty one, that is bound to a namespace and not hidden.
    pub fn prefix_of(&self, namespace: &str) -> Option<&str> {
        self.bindings
            .iter()
            .rev()
            .filter(|binding| self.namespace(**binding) == namespace)
            .map(|binding| self.prefix(*binding))
            .find(|prefix| !prefix.is_empty() && self.lookup(prefix) == namespace)
    }

    pub fn bind(&mut self, prefix: &str, namespace: &str, depth: u32) {
        let start = self.text.len() as u32;
        self.text.push_str(prefix);
        let middle = self.text.len() as u32;
        self.text.push_str(namespace);
        self.bindings.push(Binding { depth, start, middle, end: self.text.len() as u32 });
        if prefix.is_empty() {
            self.default_bound = !namespace.is_empty();
        }
    }

    /// Forgets the bindings of elements deeper than this.
    #[inline]
    pub fn close_to(&mut self, depth: u32) {
        while let Some(binding) = self.bindings.last().copied().filter(|binding| binding.depth > depth) {
            self.bindings.pop();
            let default = binding.start == binding.middle;
            self.text.truncate(binding.start as usize);
            if default {
                self.default_bound = !self.lookup("").is_empty();
            }
        }
    }
}
