//! The compiled components: elements, attributes, types, particles.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::names::{Names, Symbol};
use crate::simple::{Builtin, Facet, WhiteSpace};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TypeId(pub(crate) u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ElementId(pub(crate) u32);

/// Everything a schema declares.
pub(crate) struct Components {
    pub(crate) names: Names,
    pub(crate) types: Vec<Type>,
    pub(crate) elements: Vec<ElementDeclaration>,
    pub(crate) global_elements: HashMap<Symbol, ElementId>,
    pub(crate) global_types: HashMap<Symbol, TypeId>,
    pub(crate) global_attributes: HashMap<Symbol, AttributeUse>,
    /// Heads of substitution groups with members that `block` keeps from standing in for them.
    pub(crate) blocked: HashSet<(ElementId, ElementId)>,
    /// Whether any element has identity constraints: then the types of nodes are kept while validating.
    pub(crate) has_identity: bool,
}

/// Types by number: of a finished schema, or of one that is being compiled.
pub(crate) trait Types {
    fn get(&self, id: TypeId) -> &Type;
}

impl Types for Components {
    fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}

impl Components {
    pub(crate) fn type_of(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }

    pub(crate) fn element(&self, id: ElementId) -> &ElementDeclaration {
        &self.elements[id.0 as usize]
    }
}

pub(crate) struct ElementDeclaration {
    pub(crate) kind: TypeId,
    pub(crate) nillable: bool,
    pub(crate) is_abstract: bool,
    pub(crate) value: Option<ValueConstraint>,
    pub(crate) block: Derivations,
    pub(crate) identity: Vec<Identity>,
}

/// `default` or `fixed`.
#[derive(Debug, Clone)]
pub(crate) struct ValueConstraint {
    pub(crate) fixed: bool,
    pub(crate) text: Arc<str>,
}

#[derive(Debug, Clone)]
pub(crate) struct AttributeUse {
    pub(crate) name: Symbol,
    pub(crate) kind: TypeId,
    pub(crate) required: bool,
    pub(crate) value: Option<ValueConstraint>,
}

/// Ways to derive, as `block` and `final` list them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Derivations {
    pub(crate) extension: bool,
    pub(crate) restriction: bool,
    pub(crate) substitution: bool,
}

impl Derivations {
    pub(crate) fn parse(text: &str) -> Derivations {
        let all = text.contains("#all");
        let has = |word: &str| all || text.split_ascii_whitespace().any(|part| part == word);
        Derivations { extension: has("extension"), restriction: has("restriction"), substitution: has("substitution") }
    }
}

pub(crate) enum Type {
    Simple(SimpleType),
    Complex(ComplexType),
}

impl Type {
    pub(crate) fn label(&self) -> &str {
        match self {
            Type::Simple(simple) => &simple.label,
            Type::Complex(complex) => &complex.label,
        }
    }

    pub(crate) fn base(&self) -> Option<TypeId> {
        match self {
            Type::Simple(simple) => simple.base,
            Type::Complex(complex) => complex.base,
        }
    }
}

/// A simple type. `facets` holds those of the types it was restricted from too.
#[derive(Clone)]
pub(crate) struct SimpleType {
    /// The name messages call it by.
    pub(crate) label: Arc<str>,
    pub(crate) base: Option<TypeId>,
    pub(crate) variety: Variety,
    pub(crate) white_space: WhiteSpace,
    pub(crate) facets: Vec<Facet>,
    /// Facets that types restricted from this one keep as they are.
    pub(crate) fixed: Vec<&'static str>,
}

#[derive(Clone)]
pub(crate) enum Variety {
    Atomic(Builtin),
    List(TypeId),
    Union(Vec<TypeId>),
}

#[derive(Clone)]
pub(crate) struct ComplexType {
    pub(crate) label: Arc<str>,
    pub(crate) base: Option<TypeId>,
    pub(crate) by_extension: bool,
    pub(crate) is_abstract: bool,
    pub(crate) block: Derivations,
    pub(crate) attributes: Vec<AttributeUse>,
    pub(crate) any_attribute: Option<Wildcard>,
    pub(crate) content: Content,
    /// The content model as written, for types that are derived from this one; dropped when all are compiled.
    pub(crate) written: Option<Particle>,
    pub(crate) mixed: bool,
}

#[derive(Clone)]
pub(crate) enum Content {
    Empty,
    Simple(TypeId),
    Elements(Particle),
}

/// A term and how often it occurs.
#[derive(Clone)]
pub(crate) struct Particle {
    pub(crate) min: u32,
    pub(crate) max: u32,
    pub(crate) term: Term,
}

/// `maxOccurs="unbounded"`.
pub(crate) const UNBOUNDED: u32 = u32::MAX;

#[derive(Clone)]
pub(crate) enum Term {
    /// The element, then those that may be substituted for it.
    Element(Arc<[(Symbol, ElementId)]>),
    Any(Arc<Wildcard>),
    Group(Arc<Group>),
}

/// A model group with what it can begin with, so that matching looks at one child only.
pub(crate) struct Group {
    pub(crate) kind: GroupKind,
    pub(crate) particles: Vec<Particle>,
    /// Names it can begin with and the particle each belongs to, sorted.
    pub(crate) first: Vec<(Symbol, u32)>,
    /// Particles it can begin with that (may) begin with a wildcard.
    pub(crate) first_wild: Vec<u32>,
    /// Whether it matches nothing at all.
    pub(crate) nullable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    Sequence,
    Choice,
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wildcard {
    pub(crate) namespaces: Namespaces,
    pub(crate) process: Process,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Namespaces {
    Any,
    /// Any but this one, and but none.
    Other(Arc<str>),
    /// These; the empty one is no namespace.
    List(Vec<Arc<str>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    Strict,
    Lax,
    Skip,
}

/// No wildcard of XML Schema 1.0 allows this.
#[derive(Debug)]
pub(crate) struct Inexpressible;

impl Namespaces {
    pub(crate) fn allow(&self, namespace: &str) -> bool {
        match self {
            Namespaces::Any => true,
            Namespaces::Other(not) => !namespace.is_empty() && **not != *namespace,
            Namespaces::List(list) => list.iter().any(|one| **one == *namespace),
        }
    }

    /// What both allow (XML Schema part 1 §3.10.6, Attribute Wildcard Intersection).
    pub(crate) fn intersection(&self, other: &Namespaces) -> Result<Namespaces, Inexpressible> {
        Ok(match (self, other) {
            (Namespaces::Any, one) | (one, Namespaces::Any) => one.clone(),
            (Namespaces::List(list), one) | (one, Namespaces::List(list)) => {
                Namespaces::List(list.iter().filter(|namespace| one.allow(namespace)).cloned().collect())
            }
            (Namespaces::Other(one), Namespaces::Other(other)) => match (&**one, &**other) {
                (left, right) if left == right => Namespaces::Other(one.clone()),
                // No namespace is excluded by each of them.
                ("", _) => Namespaces::Other(other.clone()),
                (_, "") => Namespaces::Other(one.clone()),
                _ => return Err(Inexpressible),
            },
        })
    }

    /// What one of them allows (XML Schema part 1 §3.10.6, Attribute Wildcard Union).
    pub(crate) fn union(&self, other: &Namespaces) -> Result<Namespaces, Inexpressible> {
        Ok(match (self, other) {
            (Namespaces::Any, _) | (_, Namespaces::Any) => Namespaces::Any,
            (Namespaces::List(left), Namespaces::List(right)) => {
                let mut all = left.clone();
                all.extend(right.iter().filter(|namespace| !left.contains(namespace)).cloned());
                Namespaces::List(all)
            }
            (Namespaces::Other(not), Namespaces::List(list)) | (Namespaces::List(list), Namespaces::Other(not)) => {
                let with_none = list.iter().any(|namespace| namespace.is_empty());
                match (list.contains(not), with_none) {
                    (true, true) => Namespaces::Any,
                    (true, false) => Namespaces::Other("".into()),
                    (false, true) if !not.is_empty() => return Err(Inexpressible),
                    (false, _) => Namespaces::Other(not.clone()),
                }
            }
            (Namespaces::Other(left), Namespaces::Other(right)) if left == right => Namespaces::Other(left.clone()),
            (Namespaces::Other(_), Namespaces::Other(_)) => Namespaces::Other("".into()),
        })
    }
}

/// `unique`, `key` or `keyref`.
pub(crate) struct Identity {
    pub(crate) name: Symbol,
    pub(crate) kind: IdentityKind,
    pub(crate) selector: Vec<Path>,
    pub(crate) fields: Vec<Vec<Path>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdentityKind {
    Unique,
    Key,
    /// With the key it refers to.
    KeyRef(Symbol),
}

/// A path of the subset that selectors and fields are written in.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    /// It begins with `.//`.
    pub(crate) descendant: bool,
    pub(crate) steps: Vec<NameTest>,
    /// The attribute it ends with.
    pub(crate) attribute: Option<NameTest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameTest {
    Any,
    Namespace(Arc<str>),
    Name(Arc<str>, Arc<str>),
}

impl NameTest {
    pub(crate) fn matches(&self, namespace: &str, local: &str) -> bool {
        match self {
            NameTest::Any => true,
            NameTest::Namespace(wanted) => **wanted == *namespace,
            NameTest::Name(wanted, name) => **wanted == *namespace && **name == *local,
        }
    }
}
