//! What a step can be tested against: an element of the reader, or a virtual one.

use std::borrow::Cow;

use penstock_xml::{RawName, Reader, XmlError};

use super::super::plan::{Test, Value};
use super::super::scalar::Facts;

/// A start tag just read.
pub(super) struct Tag<'r, 'a> {
    pub(super) reader: &'r Reader<'a>,
    pub(super) name: RawName<'a>,
}

/// An element around the document.
pub(super) struct VirtualTag<'v> {
    pub(super) namespace: &'v str,
    pub(super) local: &'v str,
}

/// The name of an element, its namespace looked up only when it matters.
pub(super) trait Named {
    fn local(&self) -> &str;
    fn namespace(&self) -> Option<&str>;

    #[inline]
    fn passes(&self, test: &Test) -> bool {
        match test {
            Test::Any => true,
            Test::Local(local) => self.local() == &**local,
            Test::Namespace(namespace) => self.namespace() == Some(namespace),
            Test::Name { local, namespace } => self.local() == &**local && self.namespace() == namespace.as_deref(),
        }
    }
}

impl Test {
    /// Whether a name with this local part can pass at all.
    pub(super) fn allows(&self, found: &str) -> bool {
        match self {
            Test::Any | Test::Namespace(_) => true,
            Test::Local(local) | Test::Name { local, .. } => **local == *found,
        }
    }
}

impl Named for Tag<'_, '_> {
    #[inline]
    fn local(&self) -> &str {
        self.name.local()
    }

    fn namespace(&self) -> Option<&str> {
        self.reader.namespace(self.name.prefix())
    }
}

impl Named for VirtualTag<'_> {
    fn local(&self) -> &str {
        self.local
    }

    fn namespace(&self) -> Option<&str> {
        Some(self.namespace).filter(|namespace| !namespace.is_empty())
    }
}

/// An attribute's name; without a prefix it is in no namespace.
struct AttributeName<'r, 'a> {
    reader: &'r Reader<'a>,
    name: RawName<'a>,
}

impl Named for AttributeName<'_, '_> {
    fn local(&self) -> &str {
        self.name.local()
    }

    fn namespace(&self) -> Option<&str> {
        if self.name.prefix().is_empty() { None } else { self.reader.namespace(self.name.prefix()) }
    }
}

impl<'a> Tag<'_, 'a> {
    /// The values of the attributes that pass a test, in the order written.
    pub(super) fn attributes(&self, test: &Test) -> Result<Vec<Cow<'a, str>>, XmlError> {
        let mut values = Vec::new();
        for attribute in self.reader.attributes() {
            let attribute = attribute?;
            let is_declaration = attribute.name.as_str() == "xmlns" || attribute.name.prefix() == "xmlns";
            if !is_declaration && (AttributeName { reader: self.reader, name: attribute.name }).passes(test) {
                values.push(attribute.value);
            }
        }
        Ok(values)
    }
}

/// The facts of a predicate: the element, and what looking into it answered.
pub(super) struct TagFacts<'f, 'r, 'a> {
    pub(super) tag: &'f Tag<'r, 'a>,
    pub(super) answers: &'f [Value],
}

impl Facts for TagFacts<'_, '_, '_> {
    fn answer(&self, question: usize) -> Value {
        self.answers[question].clone()
    }

    fn attribute(&self, test: &Test) -> Option<String> {
        let values = self.tag.attributes(test).ok()?;
        values.into_iter().next().map(Cow::into_owned)
    }

    fn name(&self) -> (Cow<'_, str>, Cow<'_, str>, Cow<'_, str>) {
        let namespace = self.tag.namespace().unwrap_or_default();
        (self.tag.local().into(), namespace.into(), self.tag.name.as_str().into())
    }
}
