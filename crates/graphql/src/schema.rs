//! A schema for queries: types by number, fields by name.

use std::collections::{HashMap, HashSet};

use super::Malformed;
use super::build;
use super::document::OperationKind;
use super::sdl::Source;

/// A type's place in [`Schema::types`].
pub(super) type TypeId = usize;

/// The operations of an API and their complexity.
#[derive(Debug)]
pub struct Schema {
    pub(super) types: Vec<Type>,
    pub(super) by_name: HashMap<Box<str>, TypeId>,
    pub(super) directives: HashMap<Box<str>, Inputs>,
    /// By [`OperationKind`].
    pub(super) roots: [Option<TypeId>; 3],
}

#[derive(Debug)]
pub(super) struct Type {
    pub name: Box<str>,
    pub kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Whether a literal of some sort may be one.
    Scalar(fn(Literal) -> bool),
    Object(Fields),
    Interface(Fields),
    /// Without fields of its own.
    Union(Fields),
    Enum(HashSet<Box<str>>),
    Input(Inputs),
}

/// The sorts of literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Literal {
    Int,
    Float,
    Text,
    Flag,
    Other,
}

/// The fields of a type.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub by_name: HashMap<Box<str>, Field>,
    /// The types of objects its values may have; an object's own for objects.
    pub possible: HashSet<TypeId>,
}

#[derive(Debug)]
pub(super) struct Field {
    pub arguments: Inputs,
    pub kind: TypeRef,
    /// What it counts for the complexity of a query.
    pub cost: u64,
}

/// Arguments, or the fields of an input type.
pub(super) type Inputs = HashMap<Box<str>, Input>;

#[derive(Debug)]
pub(super) struct Input {
    pub kind: TypeRef,
    pub has_default: bool,
}

impl Input {
    pub(super) fn is_required(&self) -> bool {
        !self.has_default && matches!(self.kind, TypeRef::NonNull(_))
    }
}

#[derive(Debug)]
pub(super) enum TypeRef {
    Named(TypeId),
    List(Box<TypeRef>),
    NonNull(Box<TypeRef>),
}

impl TypeRef {
    pub(super) fn named(&self) -> TypeId {
        match self {
            TypeRef::Named(id) => *id,
            TypeRef::List(inner) | TypeRef::NonNull(inner) => inner.named(),
        }
    }
}

impl Schema {
    /// Reads a schema; everything that is wrong with it when something is.
    pub fn parse(text: &str) -> Result<Schema, Vec<Malformed>> {
        let source = Source::parse(text).map_err(|error| vec![error])?;
        build::schema(&source)
    }

    /// The names of what operations of a kind can ask for; none when there are no such operations.
    pub fn operations(&self, kind: OperationKind) -> impl Iterator<Item = &str> {
        let fields = self.root(kind).and_then(|root| self.fields(root));
        let names = fields.into_iter().flat_map(|fields| fields.by_name.keys());
        names.map(|name| &**name).filter(|name| !is_introspection(name))
    }

    /// Whether operations of a kind can ask for something of that name.
    pub fn has_operation(&self, kind: OperationKind, name: &str) -> bool {
        let fields = self.root(kind).and_then(|root| self.fields(root));
        !is_introspection(name) && fields.is_some_and(|fields| fields.by_name.contains_key(name))
    }

    /// The object types of the schema with the names of their fields, both in alphabetical order.
    pub fn object_types(&self) -> Vec<(&str, Vec<&str>)> {
        let objects = self.types.iter().filter_map(|kind| match &kind.kind {
            Kind::Object(fields) if !is_introspection(&kind.name) => Some((&*kind.name, fields)),
            _ => None,
        });
        let mut types = Vec::new();
        for (name, fields) in objects {
            let names = fields.by_name.keys().map(|name| &**name).filter(|name| !is_introspection(name));
            let mut names: Vec<&str> = names.collect();
            names.sort_unstable();
            types.push((name, names));
        }
        types.sort_unstable();
        types
    }

    /// Says what a field counts. An error names what is not there: the type, or the field.
    pub fn set_cost(&mut self, kind: &str, field: &str, cost: u64) -> Result<(), String> {
        let found = self.by_name.get(kind).map(|id| &mut self.types[*id].kind);
        let Some(Kind::Object(fields) | Kind::Interface(fields)) = found else {
            return Err(format!("the schema has no type `{kind}` with fields"));
        };
        match fields.by_name.get_mut(field) {
            Some(found) => found.cost = cost,
            None => return Err(format!("the type `{kind}` has no field `{field}`")),
        }
        Ok(())
    }

    pub(super) fn root(&self, kind: OperationKind) -> Option<TypeId> {
        self.roots[kind as usize]
    }

    /// The fields of a type that has any.
    pub(super) fn fields(&self, id: TypeId) -> Option<&Fields> {
        match &self.types[id].kind {
            Kind::Object(fields) | Kind::Interface(fields) | Kind::Union(fields) => Some(fields),
            Kind::Scalar(_) | Kind::Enum(_) | Kind::Input(_) => None,
        }
    }

    /// Whether a value may be of both types.
    pub(super) fn overlap(&self, left: TypeId, right: TypeId) -> bool {
        let (Some(of_left), Some(of_right)) = (self.fields(left), self.fields(right)) else { return false };
        let (few, many) = match of_left.possible.len() <= of_right.possible.len() {
            true => (of_left, of_right),
            false => (of_right, of_left),
        };
        left == right || few.possible.iter().any(|id| many.possible.contains(id))
    }
}

/// Whether a field is an introspection field: no schema may define such names.
pub(super) fn is_introspection(name: &str) -> bool {
    name.starts_with("__")
}
