//! White space of source documents, as `xsl:strip-space` wants it.

use std::sync::Arc;

use penstock_xml::{Document, NodeId, NodeKind, StripSpace, TreeBuilder};

use crate::program::{Program, SpaceRule};
use crate::read::is_space;

/// The rules, for the reader of documents.
struct Rules(Vec<SpaceRule>);

impl StripSpace for Rules {
    fn strips(&self, namespace: &str, local: &str) -> bool {
        strips(&self.0, namespace, local)
    }
}

fn strips(rules: &[SpaceRule], namespace: &str, local: &str) -> bool {
    let fits = |rule: &&SpaceRule| {
        rule.namespace.as_deref().is_none_or(|n| n == namespace) && rule.local.as_deref().is_none_or(|l| l == local)
    };
    rules.iter().find(fits).is_some_and(|rule| rule.strip)
}

/// What to give the reader so that the tree is stripped as it is built.
pub(crate) fn strip_space(program: &Program) -> Option<Arc<dyn StripSpace>> {
    let any = program.space_rules.iter().any(|rule| rule.strip);
    any.then(|| Arc::new(Rules(program.space_rules.clone())) as Arc<dyn StripSpace>)
}

/// A copy of a document without the white space that is to be stripped; `None` when nothing is.
pub(crate) fn stripped(program: &Program, document: &Document, from: NodeId) -> Option<Document> {
    if !program.space_rules.iter().any(|rule| rule.strip) {
        return None;
    }
    let gone = |id: NodeId| {
        document.kind(id) == NodeKind::Text && is_space(document.text(id)) && {
            let parent = document.parent(id).filter(|parent| document.is_element(*parent));
            parent.is_some_and(|parent| {
                strips(&program.space_rules, document.namespace(parent), document.local_name(parent))
                    && !preserved(document, parent)
            })
        }
    };
    if !document.descendants(from).any(gone) {
        return None;
    }
    Some(copy_without(document, from, gone))
}

fn preserved(document: &Document, element: NodeId) -> bool {
    let nearest = std::iter::once(element)
        .chain(document.ancestors(element))
        .find_map(|node| document.attribute(node, penstock_xml::XML_NAMESPACE, "space"));
    nearest == Some("preserve")
}

fn copy_without(document: &Document, from: NodeId, gone: impl Fn(NodeId) -> bool) -> Document {
    let mut tree = TreeBuilder::with_capacity(document.subtree(from).len());
    if let Some(uri) = document.base_uri() {
        tree.set_base_uri(uri);
    }
    let mut open: Vec<usize> = Vec::new();
    let first = document.is_element(from).then_some(from);
    for id in first.into_iter().chain(document.descendants(from)) {
        while open.last().is_some_and(|end| *end <= id.index()) {
            open.pop();
            tree.end_element();
        }
        match document.kind(id) {
            NodeKind::Element => {
                let name = document.name(id);
                tree.start_element(name.prefix, name.local, name.namespace);
                let scope = document.namespace_declarations(id);
                let all = (id == from).then(|| document.in_scope_namespaces(id)).into_iter().flatten();
                for declaration in all.chain(scope) {
                    tree.declare_namespace(document.local_name(declaration), document.text(declaration));
                }
                document.attributes(id).for_each(|attribute| tree.copy(document, attribute));
                open.push(document.subtree(id).end);
            }
            _ if gone(id) => {}
            _ => tree.copy(document, id),
        }
    }
    tree.finish()
}
