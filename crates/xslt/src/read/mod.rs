//! From bytes to the modules of a stylesheet and their top-level elements, in the order and precedence of the import tree.

pub(crate) mod avt;
pub(crate) mod syntax;
mod use_when;
pub(crate) mod values;

use std::sync::Arc;

use bytes::Bytes;
use penstock_xml::{Document, Limits, NodeId, NodeKind, ParseOptions};

use crate::error::{Position, Warning, XsltError};
use crate::stylesheet::CompileOptions;

/// The namespace of XSLT elements.
pub(crate) const XSL: &str = "http://www.w3.org/1999/XSL/Transform";

/// Instructions nest no deeper in stylesheets that people wrote; the compiler recurses over them.
const STYLESHEET_DEPTH_MAX: usize = 128;

/// Modules one stylesheet may pull in; more is a loop the identity of URIs did not catch.
const MODULES_MAX: usize = 1_000;

/// Errors and warnings collected while a stylesheet is read and compiled.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    pub errors: Vec<XsltError>,
    pub warnings: Vec<Warning>,
}

impl Diagnostics {
    pub fn error(&mut self, code: impl Into<std::borrow::Cow<'static, str>>, message: impl Into<String>, at: Position) {
        self.errors.push(XsltError::new(code, message, at));
    }

    pub fn warning(&mut self, message: impl Into<String>, at: Position) {
        self.warnings.push(Warning { message: message.into(), at });
    }
}

/// One stylesheet document.
#[derive(Debug)]
pub(crate) struct Module {
    pub document: Document,
    pub uri: Arc<str>,
    /// The `xsl:stylesheet` element, or the literal result element of a simplified stylesheet.
    pub root: NodeId,
    /// Whether the root is a literal result element.
    pub simplified: bool,
    /// Elements that `use-when` takes out, in document order.
    pub excluded: Vec<NodeId>,
}

impl Module {
    /// Where a node stands.
    pub fn position(&self, node: NodeId) -> Position {
        let place = self.document.position(node);
        Position { uri: self.uri.clone(), line: place.line, column: place.column }
    }

    /// Whether the node is the XSLT element `xsl:LOCAL`.
    pub fn is_xsl(&self, node: NodeId, local: &str) -> bool {
        self.document.is_element(node)
            && self.document.local_name(node) == local
            && self.document.namespace(node) == XSL
    }

    /// The children that mean something: no comments, processing instructions, or white space that is stripped.
    pub fn content(&self, parent: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let keep = self.preserves_space(parent);
        self.document.children(parent).filter(move |&child| match self.document.kind(child) {
            NodeKind::Element => !self.is_excluded(child),
            NodeKind::Text => !is_space(self.document.text(child)) || self.keeps_space(child, keep),
            _ => false,
        })
    }

    /// Whether `use-when` takes an element out of the stylesheet.
    pub fn is_excluded(&self, element: NodeId) -> bool {
        !self.excluded.is_empty() && self.excluded.binary_search(&element).is_ok()
    }

    /// Whether a text node of white space counts. Comments and instructions are taken out first, so text around them
    /// is one node (XSLT 2.0 §4.2); before `xsl:param` and `xsl:sort` white space is stripped with any `xml:space`.
    fn keeps_space(&self, text: NodeId, preserved: bool) -> bool {
        let node = |id: &NodeId| self.document.kind(*id);
        let ignored = |id: &NodeId| matches!(node(id), NodeKind::Comment | NodeKind::ProcessingInstruction);
        let after = || std::iter::successors(self.document.next_sibling(text), |id| self.document.next_sibling(*id));
        let before =
            || std::iter::successors(self.document.previous_sibling(text), |id| self.document.previous_sibling(*id));
        if preserved {
            let next = after().find(|id| node(id) == NodeKind::Element);
            return !next.is_some_and(|next| self.is_xsl(next, "param") || self.is_xsl(next, "sort"));
        }
        let solid = |id: NodeId| node(&id) == NodeKind::Text && !is_space(self.document.text(id));
        let in_one = |id: &NodeId| ignored(id) || node(id) == NodeKind::Text;
        after().take_while(in_one).any(solid) || before().take_while(in_one).any(solid)
    }

    fn preserves_space(&self, element: NodeId) -> bool {
        if self.is_xsl(element, "text") {
            return true;
        }
        let without_text =
            self.document.namespace(element) == XSL && WITHOUT_TEXT.contains(&self.document.local_name(element));
        if without_text {
            return false;
        }
        let xml = penstock_xml::XML_NAMESPACE;
        let nearest = std::iter::once(element)
            .chain(self.document.ancestors(element))
            .find_map(|node| self.document.attribute(node, xml, "space"));
        nearest == Some("preserve")
    }
}

/// XSLT elements whose white space is stripped with any `xml:space`, because they contain no text.
const WITHOUT_TEXT: &[&str] = &[
    "stylesheet",
    "transform",
    "analyze-string",
    "apply-imports",
    "apply-templates",
    "attribute-set",
    "call-template",
    "character-map",
    "choose",
    "next-match",
];

/// One level of the import tree: a stylesheet module and everything it includes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level {
    /// Larger takes precedence.
    pub precedence: u32,
    /// The levels it imports, directly or not, have precedences from here up to its own.
    pub lowest: u32,
}

/// A top-level element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Declaration {
    pub module: usize,
    pub node: NodeId,
    pub level: usize,
}

/// All modules of a stylesheet, and their declarations in declaration order (imports first, includes in place).
#[derive(Debug, Default)]
pub(crate) struct ModuleTree {
    pub modules: Vec<Module>,
    pub levels: Vec<Level>,
    pub declarations: Vec<Declaration>,
}

/// Reads a stylesheet and everything it imports and includes.
pub(crate) fn read(source: Bytes, options: &CompileOptions<'_>, diagnostics: &mut Diagnostics) -> ModuleTree {
    let mut reader = Reader { tree: ModuleTree::default(), options, diagnostics, open: Vec::new(), next_precedence: 0 };
    reader.level(source, options.base_uri, None);
    reader.tree
}

/// White space as XML defines it.
pub(crate) fn is_space(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

struct Reader<'a> {
    tree: ModuleTree,
    options: &'a CompileOptions<'a>,
    diagnostics: &'a mut Diagnostics,
    /// The URIs of the modules being read, to notice circles.
    open: Vec<String>,
    next_precedence: u32,
}

impl Reader<'_> {
    fn level(&mut self, source: Bytes, uri: &str, referrer: Option<Position>) {
        let level = self.tree.levels.len();
        let lowest = self.next_precedence;
        self.tree.levels.push(Level { precedence: lowest, lowest });
        self.module(source, uri, level, referrer);
        self.tree.levels[level].precedence = self.next_precedence;
        self.next_precedence += 1;
    }

    fn module(&mut self, source: Bytes, uri: &str, level: usize, referrer: Option<Position>) {
        let start = Position { uri: uri.into(), line: 1, column: 1 };
        if self.tree.modules.len() >= MODULES_MAX {
            self.diagnostics.error("XTSE0165", format!("more than {MODULES_MAX} modules"), referrer.unwrap_or(start));
            return;
        }
        let (uri, fragment) = uri.split_once('#').map_or((uri, None), |(uri, fragment)| (uri, Some(fragment)));
        let document = match self.parse(source, uri) {
            Ok(document) => document,
            Err(error) => {
                let at = Position { uri: uri.into(), line: error.position.line, column: error.position.column };
                self.diagnostics.error("XTSE0165", format!("not well-formed: {}", error.message), at);
                return;
            }
        };
        let Some(root) = stylesheet_element(&document, fragment) else {
            let message = "no `xsl:stylesheet` element here, nor a literal result element with `xsl:version`";
            self.diagnostics.error("XTSE0150", message, start);
            return;
        };
        let simplified = document.namespace(root) != XSL;
        let module = self.tree.modules.len();
        let mut read = Module { document, uri: uri.into(), root, simplified, excluded: Vec::new() };
        use_when::exclude(&mut read, self.diagnostics);
        let excluded = read.is_excluded(root);
        self.tree.modules.push(read);
        if excluded {
            return;
        }
        self.open.push(uri.to_owned());
        if simplified {
            self.tree.declarations.push(Declaration { module, node: root, level });
        } else {
            self.top_level(module, level);
        }
        self.open.pop();
    }

    fn parse(&self, source: Bytes, uri: &str) -> Result<Document, penstock_xml::XmlError> {
        let options = ParseOptions {
            limits: Limits { depth_max: STYLESHEET_DEPTH_MAX, ..Limits::DEFAULT },
            base_uri: Some(uri.into()),
            resolver: self.options.entities.clone(),
            ..ParseOptions::default()
        };
        Document::parse(source, &options)
    }

    fn top_level(&mut self, module: usize, level: usize) {
        let root = self.tree.modules[module].root;
        let children: Vec<NodeId> = self.tree.modules[module].content(root).collect();
        let mut imports_allowed = true;
        for node in children {
            let here = &self.tree.modules[module];
            let at = here.position(node);
            if !here.document.is_element(node) {
                self.diagnostics.error("XTSE0120", "text is not allowed at the top level of a stylesheet", at);
                continue;
            }
            let import = here.is_xsl(node, "import");
            if import || here.is_xsl(node, "include") {
                if import && !imports_allowed {
                    let message = "`xsl:import` stands before all other elements";
                    self.diagnostics.error("XTSE0200", message, at.clone());
                }
                if here.content(node).next().is_some() {
                    self.diagnostics.error("XTSE0260", "this element is empty", at.clone());
                }
                self.reference(module, node, level, import, at);
                continue;
            }
            imports_allowed = false;
            self.tree.declarations.push(Declaration { module, node, level });
        }
    }

    fn reference(&mut self, module: usize, node: NodeId, level: usize, import: bool, at: Position) {
        let here = &self.tree.modules[module];
        let Some(href) = here.document.attribute(node, "", "href") else {
            self.diagnostics.error("XTSE0010", "the attribute `href` is missing", at);
            return;
        };
        let base = base_uri(here, node);
        let resource = match self.options.resolver.resolve(href, &base) {
            Ok(resource) => resource,
            Err(message) => {
                self.diagnostics.error("XTSE0165", message, at);
                return;
            }
        };
        if self.open.contains(&resource.uri) {
            let code = if import { "XTSE0210" } else { "XTSE0180" };
            self.diagnostics.error(code, format!("`{}` imports or includes itself", resource.uri), at);
            return;
        }
        if import {
            self.level(resource.content, &resource.uri, Some(at));
        } else {
            self.module(resource.content, &resource.uri, level, Some(at));
        }
    }
}

/// The element that is the stylesheet: the outermost one, or (embedded) the one the fragment or the document points to.
fn stylesheet_element(document: &Document, fragment: Option<&str>) -> Option<NodeId> {
    if let Some(id) = fragment {
        return document.element_by_id(id).or_else(|| element_with_id(document, id));
    }
    let root = document.root_element()?;
    let is_stylesheet = |node: NodeId| {
        document.namespace(node) == XSL && matches!(document.local_name(node), "stylesheet" | "transform")
    };
    if is_stylesheet(root) || document.attribute_node(root, XSL, "version").is_some() {
        return Some(root);
    }
    document.descendants(root).find(|&node| document.is_element(node) && is_stylesheet(node))
}

fn element_with_id(document: &Document, id: &str) -> Option<NodeId> {
    document
        .descendants(Document::ROOT)
        .find(|&node| document.is_element(node) && document.attribute(node, "", "id") == Some(id))
}

/// The base URI of an element: that of its module, unless `xml:base` says otherwise.
pub(crate) fn base_uri(module: &Module, element: NodeId) -> String {
    let document = &module.document;
    let bases: Vec<&str> = std::iter::once(element)
        .chain(document.ancestors(element))
        .filter_map(|node| document.attribute(node, penstock_xml::XML_NAMESPACE, "base"))
        .collect();
    bases.iter().rev().fold(module.uri.to_string(), |base, reference| join_uri(&base, reference))
}

/// A relative reference read against a base, for hierarchical URIs and for paths.
pub(crate) fn join_uri(base: &str, reference: &str) -> String {
    let absolute = reference.starts_with('/')
        || reference.split_once(':').is_some_and(|(scheme, _)| {
            scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        });
    if absolute {
        return reference.to_owned();
    }
    let folder = base.rfind('/').map_or("", |slash| &base[..=slash]);
    format!("{folder}{reference}")
}
