//! `<unique>`, `<key>`, `<keyref>` and the paths they are written in.

use super::consistency::DeclaredIdentity;
use super::{Builder, Outcome};
use crate::load::Place;
use crate::model::{Identity, IdentityKind, NameTest, Path};

impl Builder<'_> {
    pub(super) fn identity_constraints(&mut self, place: Place) -> Outcome<Vec<Identity>> {
        let mut all = Vec::new();
        for child in self.children(place) {
            let document = self.document(child);
            let kind = match document.name(child.node) {
                "unique" => IdentityKind::Unique,
                "key" => IdentityKind::Key,
                "keyref" => {
                    let Some(refer) = document.attribute(child.node, "refer") else {
                        return self.fail(child, "<keyref> needs the attribute `refer`");
                    };
                    IdentityKind::KeyRef(self.symbol(child, refer)?)
                }
                _ => continue,
            };
            let name = document.attribute(child.node, "name").unwrap_or_default();
            let name = self.names.intern(&document.target, name.trim());
            let (mut selector, mut fields) = (Vec::new(), Vec::new());
            for part in self.children(child) {
                let Some(text) = self.document(part).attribute(part.node, "xpath") else {
                    return self.fail(part, "the attribute `xpath` is missing");
                };
                let paths = self.paths(part, text)?;
                match self.document(part).name(part.node) {
                    "selector" if paths.iter().any(|path| path.attribute.is_some()) => {
                        return self.fail(part, "a selector leads to elements");
                    }
                    "selector" => selector = paths,
                    _ => fields.push(paths),
                }
            }
            if selector.is_empty() || fields.is_empty() {
                return self.fail(child, "an identity constraint needs a <selector> and a <field>");
            }
            let refers_to = match kind {
                IdentityKind::KeyRef(key) => Some(key),
                _ => None,
            };
            self.identities.push(DeclaredIdentity { place: child, name, fields: fields.len(), refers_to });
            all.push(Identity { name, kind, selector, fields });
        }
        Ok(all)
    }

    fn paths(&mut self, place: Place, text: &str) -> Outcome<Vec<Path>> {
        text.split('|').map(|path| self.path(place, path.trim())).collect()
    }

    fn path(&mut self, place: Place, text: &str) -> Outcome<Path> {
        let Some(compact) = without_blanks(text) else {
            return self.fail(place, format!("the path `{text}` is not one of those allowed here"));
        };
        let (descendant, rest) = match compact.strip_prefix(".//") {
            Some(rest) => (true, rest),
            None => (false, compact.as_str()),
        };
        let mut path = Path { descendant, steps: Vec::new(), attribute: None };
        for step in rest.split('/') {
            let step = step.strip_prefix("child::").unwrap_or(step);
            let attribute = step.strip_prefix('@').or_else(|| step.strip_prefix("attribute::"));
            if path.attribute.is_some() || step.is_empty() {
                return self.fail(place, format!("the path `{text}` is not one of those allowed here"));
            }
            match attribute {
                Some(name) => path.attribute = Some(self.name_test(place, name)?),
                None if step == "." => {}
                None => path.steps.push(self.name_test(place, step)?),
            }
        }
        Ok(path)
    }

    fn name_test(&mut self, place: Place, text: &str) -> Outcome<NameTest> {
        if text == "*" {
            return Ok(NameTest::Any);
        }
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let document = self.document(place);
        // In a path a name without a prefix is in no namespace.
        let namespace = match document.document.lookup_namespace(place.node, prefix) {
            Some(namespace) if !prefix.is_empty() => namespace,
            _ if prefix.is_empty() => "",
            _ => return self.fail(place, format!("the prefix of `{text}` is not declared")),
        };
        if local == "*" {
            return Ok(NameTest::Namespace(namespace.into()));
        }
        if !penstock_xml::is_ncname(local) {
            return self.fail(place, format!("`{text}` is not a name"));
        }
        Ok(NameTest::Name(namespace.into(), local.into()))
    }
}

/// A path without white space, which may stand between tokens but not within or between names.
fn without_blanks(text: &str) -> Option<String> {
    let is_name = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '*') || !letter.is_ascii();
    let mut compact = String::with_capacity(text.len());
    for word in text.split_ascii_whitespace() {
        let joins_names = compact.ends_with(is_name) && word.starts_with(is_name);
        let splits_name = (compact.ends_with(':') && !compact.ends_with("::"))
            || (word.starts_with(':') && !word.starts_with("::"))
            || (compact.ends_with('/') && word.starts_with('/'));
        if joins_names || splits_name {
            return None;
        }
        compact.push_str(word);
    }
    Some(compact)
}
