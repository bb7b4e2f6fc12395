//! From schema elements to components. Global components are compiled when they are first named, and
//! unreferenced ones at the end, so that every mistake is found.

mod attribute;
mod attribution;
mod builtins;
mod complex;
mod consistency;
mod element;
mod facets;
mod identity;
mod particle;
mod particle_restriction;
mod restriction;
mod simple;

use std::collections::HashMap;
use std::sync::Arc;

use penstock_xml::NodeId;

use crate::SchemaError;
use crate::load::{ComponentKind, ERRORS_MAX, Loaded, Place, SchemaDocument};
use crate::model::{
    AttributeUse, Components, Content, ElementDeclaration, ElementId, Particle, SimpleType, Type, TypeId, Types,
    Variety,
};
use crate::names::{Names, Symbol};
use crate::simple::{Builtin, WhiteSpace};

/// Types derived from types derived from types, and groups inside groups: deeper is a mistake.
const DEPTH_MAX: usize = 200;
/// Particles of a schema once group references are followed.
const PARTICLES_MAX: usize = 500_000;

/// What there is to say went to the list of errors.
pub(crate) struct Reported;

type Outcome<T> = Result<T, Reported>;

enum Slot {
    Waiting(Place, Arc<str>),
    Building,
    Done(Type),
}

pub(super) struct Builder<'l> {
    loaded: &'l Loaded,
    names: Names,
    index: HashMap<(ComponentKind, Symbol), Place>,
    types: Vec<Slot>,
    type_ids: HashMap<Symbol, TypeId>,
    elements: Vec<Option<ElementDeclaration>>,
    element_ids: HashMap<Symbol, ElementId>,
    waiting_elements: Vec<(ElementId, Place, bool)>,
    /// Elements by the head they name in `substitutionGroup`.
    members: HashMap<Symbol, Vec<Symbol>>,
    groups: HashMap<Place, Option<Particle>>,
    open: Vec<Place>,
    attributes: HashMap<Symbol, AttributeUse>,
    builtins: HashMap<Builtin, TypeId>,
    restrictions: Vec<restriction::Restriction>,
    identities: Vec<consistency::DeclaredIdentity>,
    values: Vec<consistency::DeclaredValue>,
    /// Content of each complex type.
    models: Vec<(Place, Content)>,
    /// Types of the attributes of each complex type and attribute group.
    id_uses: Vec<(Place, Vec<TypeId>)>,
    /// Types of attributes, which must be simple.
    attribute_types: Vec<(Place, TypeId)>,
    /// Types of elements.
    element_types: Vec<(Place, TypeId)>,
    any_type: TypeId,
    /// Stands for types that are not ready.
    any_simple: Type,
    depth: usize,
    particles: usize,
    errors: Vec<SchemaError>,
}

/// Compiles what was loaded.
pub(crate) fn compile(loaded: &Loaded) -> Result<Components, Vec<SchemaError>> {
    let mut builder = Builder::new(loaded);
    for document in &loaded.documents {
        for error in crate::syntax::check(document) {
            // The mistake is in the list of errors.
            let _ = builder.report::<()>(error);
        }
    }
    builder.all();
    // Components that failed to compile are stood in for, and would only bring mistakes of their own.
    if builder.errors.is_empty() {
        builder.check_restrictions();
        builder.check_models();
        builder.check_attribute_types();
        builder.check_element_types();
        builder.check_identities();
        builder.check_substitutions();
        builder.check_values();
    }
    if !builder.errors.is_empty() {
        return Err(builder.errors);
    }
    let blocked = builder.blocked_substitutions();
    let types = builder.types.into_iter().map(|slot| match slot {
        Slot::Done(mut done) => {
            if let Type::Complex(complex) = &mut done {
                complex.written = None;
            }
            done
        }
        Slot::Waiting(..) | Slot::Building => builder.any_simple.shallow(),
    });
    let elements: Vec<ElementDeclaration> = builder.elements.into_iter().flatten().collect();
    Ok(Components {
        has_identity: elements.iter().any(|element| !element.identity.is_empty()),
        types: types.collect(),
        elements,
        global_elements: builder.element_ids,
        global_types: builder.type_ids,
        global_attributes: builder.attributes,
        blocked,
        names: builder.names,
    })
}

impl Type {
    /// A simple type again; for what has no other use than to stand for something.
    fn shallow(&self) -> Type {
        match self {
            Type::Simple(simple) => Type::Simple(simple.clone()),
            Type::Complex(complex) => Type::Complex(complex.clone()),
        }
    }
}

impl Types for Builder<'_> {
    fn get(&self, id: TypeId) -> &Type {
        match &self.types[id.0 as usize] {
            Slot::Done(done) => done,
            Slot::Waiting(..) | Slot::Building => &self.any_simple,
        }
    }
}

impl<'l> Builder<'l> {
    fn new(loaded: &'l Loaded) -> Builder<'l> {
        let mut names = Names::default();
        let index = loaded.intern_all(&mut names).into_iter().map(|(kind, symbol, place)| ((kind, symbol), place));
        let index = index.collect();
        let any_simple = SimpleType {
            label: "anySimpleType".into(),
            base: None,
            variety: Variety::Atomic(Builtin::AnySimple),
            white_space: WhiteSpace::Preserve,
            facets: Vec::new(),
            fixed: Vec::new(),
        };
        let mut builder = Builder {
            loaded,
            names,
            index,
            types: Vec::new(),
            type_ids: HashMap::new(),
            elements: Vec::new(),
            element_ids: HashMap::new(),
            waiting_elements: Vec::new(),
            members: HashMap::new(),
            groups: HashMap::new(),
            open: Vec::new(),
            attributes: HashMap::new(),
            builtins: HashMap::new(),
            restrictions: Vec::new(),
            identities: Vec::new(),
            values: Vec::new(),
            models: Vec::new(),
            id_uses: Vec::new(),
            attribute_types: Vec::new(),
            element_types: Vec::new(),
            any_type: TypeId(0),
            any_simple: Type::Simple(any_simple),
            depth: 0,
            particles: 0,
            errors: Vec::new(),
        };
        builder.add_builtins();
        builder
    }

    /// Compiles every global component.
    fn all(&mut self) {
        let mut order: Vec<(ComponentKind, Symbol, Place)> =
            self.index.iter().map(|((kind, symbol), place)| (*kind, *symbol, *place)).collect();
        order.sort_by_key(|(kind, symbol, _)| (*kind, *symbol));
        for (kind, symbol, place) in &order {
            if *kind == ComponentKind::Element {
                self.note_substitution(*symbol, *place);
            }
        }
        for (kind, symbol, place) in order {
            // What fails is in the list of errors; the others are looked at all the same.
            let _ = match kind {
                ComponentKind::Element => self.element_ref(symbol, place).map(drop),
                ComponentKind::Attribute => self.global_attribute(symbol, place).map(drop),
                ComponentKind::Type => self.type_ref(symbol, place).map(|id| self.ensure(id, place)).map(drop),
                ComponentKind::Group => self.group_definition(place).map(drop),
                ComponentKind::AttributeGroup => self.attribute_group(place).map(drop),
                ComponentKind::Notation => Ok(()),
            };
            self.drain();
        }
    }

    /// Compiles what was named and not yet compiled.
    fn drain(&mut self) {
        // Types name elements and elements types; each is compiled once, so this comes to an end.
        let mut looked_at = 0;
        loop {
            while let Some((id, place, global)) = self.waiting_elements.pop() {
                let _ = self.build_element(id, place, global);
            }
            while let Some(slot) = self.types.get(looked_at) {
                if let Slot::Waiting(place, _) = slot {
                    let place = *place;
                    let _ = self.ensure(TypeId(looked_at as u32), place);
                }
                looked_at += 1;
            }
            if self.waiting_elements.is_empty() {
                return;
            }
        }
    }

    fn document(&self, place: Place) -> &'l SchemaDocument {
        &self.loaded.documents[place.document]
    }

    /// Reports a mistake.
    fn fail<T>(&mut self, place: Place, message: impl Into<String>) -> Outcome<T> {
        let error = self.document(place).error(place.node, message);
        self.report(error)
    }

    fn report<T>(&mut self, error: SchemaError) -> Outcome<T> {
        if self.errors.len() < ERRORS_MAX && !self.errors.contains(&error) {
            self.errors.push(error);
        }
        Err(Reported)
    }

    fn at(&self, place: Place, node: NodeId) -> Place {
        Place { node, ..place }
    }

    /// The symbol a prefixed name stands for.
    fn symbol(&mut self, place: Place, text: &str) -> Outcome<Symbol> {
        match self.document(place).expand(place.node, text) {
            Ok((namespace, local)) => Ok(self.names.intern(namespace, local)),
            Err(error) => self.report(error),
        }
    }

    /// Whether a name is in a namespace whose document was not found.
    fn is_unknown(&self, kind: ComponentKind, symbol: Symbol) -> bool {
        !self.index.contains_key(&(kind, symbol)) && self.loaded.unknown.contains(self.names.namespace(symbol))
    }

    /// The component a name stands for, for the element at `place`. A redefinition that names itself
    /// means what it redefines.
    fn named(&mut self, kind: ComponentKind, symbol: Symbol, place: Place) -> Outcome<Place> {
        match self.index.get(&(kind, symbol)).copied() {
            Some(found) => match self.loaded.originals.get(&found) {
                Some(original) if self.is_inside(place, found) => Ok(*original),
                _ => Ok(found),
            },
            None => {
                let noun = match kind {
                    ComponentKind::Element => "element",
                    ComponentKind::Attribute => "attribute",
                    ComponentKind::Type => "type",
                    ComponentKind::Group => "group",
                    ComponentKind::AttributeGroup => "attribute group",
                    ComponentKind::Notation => "notation",
                };
                let shown = self.names.show(symbol);
                self.fail(place, format!("no {noun} is declared as `{shown}`"))
            }
        }
    }

    fn is_inside(&self, inner: Place, outer: Place) -> bool {
        inner.document == outer.document
            && self.document(outer).document.subtree(outer.node).contains(&inner.node.index())
    }

    fn add_type(&mut self, kind: Type) -> TypeId {
        self.types.push(Slot::Done(kind));
        TypeId(self.types.len() as u32 - 1)
    }

    /// The number of the type a symbol names; it is compiled later.
    fn type_ref(&mut self, symbol: Symbol, at: Place) -> Outcome<TypeId> {
        if let Some(id) = self.type_ids.get(&symbol)
            && !self.index.get(&(ComponentKind::Type, symbol)).is_some_and(|found| {
                self.loaded.originals.contains_key(found) && self.is_inside(at, *found) && at != *found
            })
        {
            return Ok(*id);
        }
        if self.is_unknown(ComponentKind::Type, symbol) {
            return Ok(self.any_type);
        }
        let place = self.named(ComponentKind::Type, symbol, at)?;
        let label = self.names.local(symbol).clone();
        self.types.push(Slot::Waiting(place, label));
        let id = TypeId(self.types.len() as u32 - 1);
        // An original that was redefined has no name any more.
        if self.index.get(&(ComponentKind::Type, symbol)) == Some(&place) {
            self.type_ids.insert(symbol, id);
        }
        Ok(id)
    }

    /// Compiles a type now: what is derived from it needs its parts.
    fn ensure(&mut self, id: TypeId, at: Place) -> Outcome<()> {
        let slot = &mut self.types[id.0 as usize];
        let (place, label) = match slot {
            Slot::Done(_) => return Ok(()),
            Slot::Building => return self.fail(at, "the type is derived from itself"),
            Slot::Waiting(place, label) => (*place, label.clone()),
        };
        *slot = Slot::Building;
        let built = self.nested(at, |builder| builder.build_type(place, label));
        let (done, outcome) = match built {
            Ok(done) => (done, Ok(())),
            Err(reported) => (self.any_simple.shallow(), Err(reported)),
        };
        self.types[id.0 as usize] = Slot::Done(done);
        outcome
    }

    /// Goes one level deeper.
    fn nested<T>(&mut self, at: Place, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= DEPTH_MAX {
            return self.fail(at, format!("components are nested deeper than {DEPTH_MAX}"));
        }
        self.depth += 1;
        let outcome = work(self);
        self.depth -= 1;
        outcome
    }

    fn build_type(&mut self, place: Place, label: Arc<str>) -> Outcome<Type> {
        match self.document(place).name(place.node) {
            "simpleType" => Ok(Type::Simple(self.build_simple(place, label)?)),
            _ => Ok(Type::Complex(self.build_complex(place, label)?)),
        }
    }

    /// A type written where it is used.
    fn anonymous(&mut self, place: Place, owner: &str) -> Outcome<TypeId> {
        let label = Arc::from(format!("#AnonType_{owner}"));
        let built = self.nested(place, |builder| builder.build_type(place, label))?;
        Ok(self.add_type(built))
    }

    /// The first schema element inside with one of these names.
    fn child(&self, place: Place, wanted: &[&str]) -> Option<Place> {
        let document = self.document(place);
        let node = document.children(place.node).find(|child| wanted.contains(&document.name(*child)))?;
        Some(self.at(place, node))
    }

    fn children(&self, place: Place) -> Vec<Place> {
        self.document(place).children(place.node).map(|node| self.at(place, node)).collect()
    }
}
