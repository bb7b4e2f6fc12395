//! A tree against compiled components.

mod attributes;
mod children;
mod counted;
mod identity;
mod text;

use std::collections::{HashMap, HashSet};

use penstock_xml::{Document, NameId, NodeId, NodeKind};

use crate::model::{
    ComplexType, Components, Content, Derivations, ElementDeclaration, ElementId, Type, TypeId, Variety,
};
use crate::names::Symbol;
use crate::{Violation, XSI};

/// More are not useful, and a broken document has one for every node.
const VIOLATIONS_MAX: usize = 100;
/// Elements inside one another. The walk recurses, and real messages stay far below.
const DEPTH_MAX: usize = 256;

/// Checks an element and everything in it.
pub(crate) fn validate(components: &Components, document: &Document, element: NodeId) -> Vec<Violation> {
    let mut validator = Validator {
        components,
        document,
        symbols: vec![Known::Unasked; document.name_count()],
        xsi_type: document.find_name(XSI, "type"),
        xsi_nil: document.find_name(XSI, "nil"),
        violations: Vec::new(),
        ids: HashSet::new(),
        references: Vec::new(),
        types: HashMap::new(),
        nillable: HashSet::new(),
        structured: HashSet::new(),
        keys: Vec::new(),
        spare: Vec::new(),
    };
    validator.root(element);
    validator.references();
    validator.violations
}

/// Whether the schema knows a name of the document.
#[derive(Debug, Clone, Copy)]
enum Known {
    Unasked,
    No,
    Yes(Symbol),
}

struct Validator<'v> {
    components: &'v Components,
    document: &'v Document,
    /// By the number of a name.
    symbols: Vec<Known>,
    /// The names of `xsi:type` and `xsi:nil` in the document, if it has them.
    xsi_type: Option<NameId>,
    xsi_nil: Option<NameId>,
    violations: Vec<Violation>,
    ids: HashSet<String>,
    references: Vec<(String, NodeId)>,
    /// The types of elements with text and of attributes, when identity constraints will ask.
    types: HashMap<NodeId, TypeId>,
    /// Elements that may be nil, and elements that hold more than a simple value: neither is a field of a key.
    nillable: HashSet<NodeId>,
    structured: HashSet<NodeId>,
    keys: Vec<identity::KeyTable>,
    spare: Vec<children::Buffers<'v>>,
}

impl<'v> Validator<'v> {
    fn report(&mut self, node: NodeId, message: String) {
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(Violation { position: self.document.position(node), message });
        }
    }

    fn is_full(&self) -> bool {
        self.violations.len() >= VIOLATIONS_MAX
    }

    /// The schema's symbol for the name of a node.
    fn symbol(&mut self, node: NodeId) -> Option<Symbol> {
        let slot = &mut self.symbols[self.document.name_id(node).index()];
        if let Known::Unasked = slot {
            let name = self.document.name(node);
            *slot = self.components.names.find(name.namespace, name.local).map_or(Known::No, Known::Yes);
        }
        match slot {
            Known::Yes(symbol) => Some(*symbol),
            Known::No | Known::Unasked => None,
        }
    }

    /// The name of a node as it is written.
    fn written(&self, node: NodeId) -> String {
        let name = self.document.name(node);
        if name.prefix.is_empty() { name.local.to_owned() } else { format!("{}:{}", name.prefix, name.local) }
    }

    fn root(&mut self, element: NodeId) {
        let global = self.global_element(element);
        match (global, self.instance_type(element)) {
            (Some(declared), _) => self.element(element, Some(declared), 0),
            (None, Some(Ok(_))) => self.element(element, None, 0),
            _ => {
                let name = self.written(element);
                self.report(element, format!("cvc-elt.1.a: Cannot find the declaration of element '{name}'."));
            }
        }
    }

    fn global_element(&mut self, element: NodeId) -> Option<ElementId> {
        let symbol = self.symbol(element)?;
        self.components.global_elements.get(&symbol).copied()
    }

    /// An attribute of the namespace of schema instances.
    fn instance(&self, element: NodeId, name: Option<NameId>) -> Option<&'v str> {
        let (document, name) = (self.document, name?);
        let found = document.attributes(element).find(|attribute| document.name_id(*attribute) == name)?;
        Some(document.text(found))
    }

    /// What `xsi:type` names; the message when it names nothing.
    fn instance_type(&self, element: NodeId) -> Option<Result<TypeId, String>> {
        let text = self.instance(element, self.xsi_type)?.trim();
        let (prefix, local) = text.split_once(':').unwrap_or(("", text));
        let namespace = self.document.lookup_namespace(element, prefix).unwrap_or_default();
        let found = self.components.names.find(namespace, local);
        let found = found.and_then(|symbol| self.components.global_types.get(&symbol));
        Some(found.copied().ok_or_else(|| {
            let name = self.written(element);
            format!("cvc-elt.4.2: Cannot resolve '{text}' to a type definition for element '{name}'.")
        }))
    }

    /// Checks an element against its declaration; without one `xsi:type` says what it is.
    fn element(&mut self, node: NodeId, declared: Option<ElementId>, depth: usize) {
        if self.is_full() {
            return;
        }
        if depth > DEPTH_MAX {
            self.report(node, format!("elements are nested deeper than {DEPTH_MAX}"));
            return;
        }
        let components = self.components;
        let declaration = declared.map(|id| components.element(id));
        if declaration.is_some_and(|declaration| declaration.is_abstract) {
            let name = self.written(node);
            self.report(
                node,
                format!("cvc-elt.2: The value of {{abstract}} in the element declaration for '{name}' must be false."),
            );
            return;
        }
        let Some(id) = self.type_of(node, declaration) else { return };
        if components.has_identity && declaration.is_some_and(|declaration| declaration.nillable) {
            self.nillable.insert(node);
        }
        if self.is_nil(node, declaration) {
            match components.type_of(id) {
                Type::Complex(complex) => self.attributes(node, complex),
                Type::Simple(_) => self.no_attributes(node),
            }
            return;
        }
        match components.type_of(id) {
            Type::Simple(_) => {
                self.no_attributes(node);
                self.text(node, id, declaration, "cvc-type.3.1.2");
            }
            Type::Complex(complex) => {
                if complex.is_abstract {
                    let name = self.written(node);
                    self.report(
                        node,
                        format!("cvc-type.2: The type definition cannot be abstract for element {name}."),
                    );
                }
                self.attributes(node, complex);
                self.content(node, complex, declaration, depth);
            }
        }
        if let Some(declaration) = declaration
            && !declaration.identity.is_empty()
        {
            self.identity(node, declaration);
        }
    }

    /// The type an element has: of its declaration, or of `xsi:type` when that is derived from it.
    fn type_of(&mut self, node: NodeId, declaration: Option<&'v ElementDeclaration>) -> Option<TypeId> {
        let said = self.instance_type(node);
        let Some(declaration) = declaration else { return said?.ok() };
        let id = match said {
            None => return Some(declaration.kind),
            Some(Err(message)) => {
                self.report(node, message);
                return Some(declaration.kind);
            }
            Some(Ok(id)) => id,
        };
        if self.derives(id, declaration.kind, declaration.block) {
            return Some(id);
        }
        let (name, said) = (self.written(node), self.components.type_of(id).label());
        let wanted = self.components.type_of(declaration.kind).label();
        self.report(
            node,
            format!("cvc-elt.4.3: Type '{said}' is not validly derived from the type definition, '{wanted}', of element '{name}'."),
        );
        Some(declaration.kind)
    }

    fn derives(&self, id: TypeId, wanted: TypeId, block: Derivations) -> bool {
        let block_of = |id| match self.components.type_of(id) {
            Type::Complex(complex) => complex.block,
            Type::Simple(_) => Derivations::default(),
        };
        let wanted_block = block_of(wanted);
        let mut at = id;
        while at != wanted {
            let step = self.components.type_of(at);
            let blocked = match step {
                Type::Complex(complex) if complex.by_extension => block.extension || wanted_block.extension,
                _ => block.restriction || wanted_block.restriction,
            };
            match step.base() {
                Some(base) if !blocked => at = base,
                _ => return self.is_member(id, wanted),
            }
        }
        true
    }

    /// A member type stands for its union.
    fn is_member(&self, id: TypeId, wanted: TypeId) -> bool {
        match self.components.type_of(wanted) {
            Type::Simple(simple) => matches!(&simple.variety, Variety::Union(members) if members.contains(&id)),
            Type::Complex(_) => false,
        }
    }

    /// Whether the element is nil, and may be.
    fn is_nil(&mut self, node: NodeId, declaration: Option<&ElementDeclaration>) -> bool {
        let Some(said) = self.instance(node, self.xsi_nil) else { return false };
        let said = said.trim();
        let nil = matches!(said, "true" | "1");
        if !nil && !matches!(said, "false" | "0") {
            self.report(node, format!("cvc-datatype-valid.1.2.1: '{said}' is not a valid value for 'boolean'."));
        }
        if declaration.is_some_and(|declaration| !declaration.nillable) {
            let name = self.written(node);
            self.report(
                node,
                format!("cvc-elt.3.1: Attribute 'http://www.w3.org/2001/XMLSchema-instance,nil' must not appear on element '{name}', because the {{nillable}} property of '{name}' is false."),
            );
            return false;
        }
        if nil && self.has_children(node) {
            let name = self.written(node);
            self.report(
                node,
                format!("cvc-elt.3.2.1: Element '{name}' must have no character or element information [children], because 'http://www.w3.org/2001/XMLSchema-instance,nil' is specified."),
            );
        }
        let fixed = declaration.and_then(|declaration| declaration.value.as_ref()).is_some_and(|value| value.fixed);
        if nil && fixed {
            let name = self.written(node);
            self.report(
                node,
                format!("cvc-elt.3.2.2: There must be no fixed {{value constraint}} for element '{name}', because 'http://www.w3.org/2001/XMLSchema-instance,nil' is specified."),
            );
        }
        nil
    }

    /// Whether it has elements or text inside.
    fn has_children(&self, node: NodeId) -> bool {
        let counts = |child| matches!(self.document.kind(child), NodeKind::Element | NodeKind::Text);
        self.document.children(node).any(counts)
    }

    fn content(
        &mut self,
        node: NodeId,
        complex: &'v ComplexType,
        declaration: Option<&'v ElementDeclaration>,
        depth: usize,
    ) {
        if self.components.has_identity && !matches!(complex.content, Content::Simple(_)) {
            self.structured.insert(node);
        }
        match &complex.content {
            Content::Simple(id) => self.text(node, *id, declaration, "cvc-complex-type.2.2"),
            Content::Empty => {
                if self.has_children(node) {
                    let name = self.written(node);
                    self.report(node, format!("cvc-complex-type.2.1: Element '{name}' must have no character or element information item [children], because the type's content type is empty."));
                }
            }
            Content::Elements(particle) => {
                if !complex.mixed && self.has_text(node) {
                    let name = self.written(node);
                    self.report(node, format!("cvc-complex-type.2.3: Element '{name}' cannot have character [children], because the type's content type is element-only."));
                }
                self.children(node, particle, depth);
                if complex.mixed {
                    self.mixed_value(node, declaration);
                }
            }
        }
    }

    /// Mixed content whose declaration fixes a value is that text and nothing else.
    fn mixed_value(&mut self, node: NodeId, declaration: Option<&'v ElementDeclaration>) {
        let constraint = declaration.and_then(|declaration| declaration.value.as_ref());
        let Some(constraint) = constraint.filter(|constraint| constraint.fixed && self.has_children(node)) else {
            return;
        };
        let elements = self.document.children(node).any(|child| self.document.is_element(child));
        let name = self.written(node);
        if elements {
            self.report(
                node,
                format!("cvc-elt.5.2.2.1: Element '{name}' must have no element information item [children]."),
            );
        } else if self.document.string_value(node) != *constraint.text {
            self.report(
                node,
                format!("cvc-elt.5.2.2.2.1: The value of element '{name}' does not match the fixed {{value constraint}} value '{}'.", constraint.text),
            );
        }
    }
}
