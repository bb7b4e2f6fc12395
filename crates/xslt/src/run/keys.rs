//! `xsl:key` and `key()`: an index per document and key, built on first use.

use std::collections::HashMap;
use std::rc::Rc;

use penstock_xml::{Document, NodeKind};
use penstock_xpath::collation::Collation;
use penstock_xpath::{Atomic, AtomicKey, DynamicContext, ItemRef, Node, Sequence, XPathError};

use super::{Machine, Run};
use crate::program::{Key, KeyUse};

/// Nodes by the value of a key.
pub(crate) type KeyIndex = HashMap<AtomicKey, Vec<Node>>;

impl<'a> Run<'a> {
    /// The nodes in the subtree of a node whose key has one of the values.
    pub fn key(&self, name: u32, values: &Sequence, top: Node) -> Result<Sequence, XPathError> {
        let document = top.document;
        let known = self.keys.borrow().get(&(document, name)).cloned();
        let index = match known {
            Some(index) => index,
            None => {
                // While it is being built the key is empty: a key that uses itself is an error of the stylesheet.
                self.keys.borrow_mut().insert((document, name), Rc::default());
                let index = Rc::new(self.build_key(name, document)?);
                self.keys.borrow_mut().insert((document, name), Rc::clone(&index));
                index
            }
        };
        let collation = self.key_collation(name);
        let mut nodes: Vec<Node> = Vec::new();
        for value in values.iter() {
            nodes.extend(index.get(&self.key_of(value, &collation)).into_iter().flatten());
        }
        let subtree = self.session.document(document).subtree(top.id);
        nodes.retain(|node| subtree.contains(&node.id.index()));
        nodes.sort_unstable();
        nodes.dedup();
        Ok(Sequence::from_nodes(&nodes))
    }

    /// Nodes are untyped, and in XSLT 1.0 everything is compared as text.
    fn key_of(&self, item: ItemRef<'_>, collation: &Collation) -> AtomicKey {
        let text = match item {
            ItemRef::Atomic(atomic) if self.program.version_two => return AtomicKey::collated(atomic, collation),
            ItemRef::Node(node) => self.session.string_value(node).into(),
            ItemRef::Atomic(atomic) => atomic.to_text(true).into(),
        };
        match collation {
            Collation::Codepoint => AtomicKey::Text(text),
            other => AtomicKey::collated(&Atomic::Untyped(text), other),
        }
    }

    /// The collation of the declarations of a key, which must agree (XTSE1220).
    fn key_collation(&self, name: u32) -> Collation {
        let declarations = self.program.key_names.get(&name);
        let first = declarations.and_then(|keys| keys.first());
        first.map(|number| self.program.keys[*number as usize].collation).unwrap_or_default()
    }

    fn build_key(&self, name: u32, document: u32) -> Result<KeyIndex, XPathError> {
        let mut index = KeyIndex::new();
        let tree = self.session.document(document);
        let Some(keys) = self.program.key_names.get(&name) else { return Ok(index) };
        for number in keys {
            let key = &self.program.keys[*number as usize];
            for id in std::iter::once(Document::ROOT).chain(tree.descendants(Document::ROOT)) {
                self.session.charge(1)?;
                self.add_to_key(&mut index, key, Node { document, id })?;
                if tree.kind(id) == NodeKind::Element {
                    for id in tree.attributes(id) {
                        self.add_to_key(&mut index, key, Node { document, id })?;
                    }
                }
            }
        }
        Ok(index)
    }

    fn add_to_key(&self, index: &mut KeyIndex, key: &Key, node: Node) -> Result<(), XPathError> {
        let context = DynamicContext::new(self.session, self).with_node(node);
        if !self.program.patterns[key.pattern as usize].matches(node, &context)? {
            return Ok(());
        }
        let value = match &key.usage {
            KeyUse::Expr(expr) => self.program.expressions[*expr as usize].evaluate(&context)?,
            KeyUse::Body(block, slot) => {
                Machine::value(self, *block, *slot, Some(node)).map_err(|failure| self.smuggle(failure))?
            }
        };
        for item in value.iter() {
            let nodes = index.entry(self.key_of(item, &key.collation)).or_default();
            if nodes.last() != Some(&node) {
                nodes.push(node);
            }
        }
        Ok(())
    }
}
