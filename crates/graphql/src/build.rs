//! Builds a schema for queries from its syntax tree.

use std::collections::{HashMap, HashSet};

use super::Malformed;
use super::document::OperationKind;
use super::lexer::short;
use super::schema::{Field, Fields, Input, Inputs, Kind, Literal, Schema, Type, TypeId, TypeRef, is_introspection};
use super::sdl::{FieldSource, InputSource, KindSource, Source, TypeSource};
use super::syntax::{Name, TypeName};

/// Problems of a schema that are reported at once.
const PROBLEMS_MAX: usize = 50;

/// What every schema has: the scalars and directives of the specification, and what queries can ask about a schema
/// (section 4.2).
const COMMON: &str = "
scalar Int scalar Float scalar String scalar Boolean scalar ID
directive @skip(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
directive @include(if: Boolean!) on FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
type __Query { __schema: __Schema! __type(name: String!): __Type }
type __Schema {
  description: String types: [__Type!]! queryType: __Type! mutationType: __Type subscriptionType: __Type
  directives: [__Directive!]!
}
type __Type {
  kind: __TypeKind! name: String description: String specifiedByURL: String specifiedByUrl: String isOneOf: Boolean
  fields(includeDeprecated: Boolean = false): [__Field!] interfaces: [__Type!] possibleTypes: [__Type!]
  enumValues(includeDeprecated: Boolean = false): [__EnumValue!]
  inputFields(includeDeprecated: Boolean = false): [__InputValue!] ofType: __Type
}
type __Field {
  name: String! description: String args(includeDeprecated: Boolean = false): [__InputValue!]! type: __Type!
  isDeprecated: Boolean! deprecationReason: String
}
type __InputValue {
  name: String! description: String type: __Type! defaultValue: String isDeprecated: Boolean! deprecationReason: String
}
type __EnumValue { name: String! description: String isDeprecated: Boolean! deprecationReason: String }
type __Directive {
  name: String! description: String isRepeatable: Boolean! locations: [__DirectiveLocation!]!
  args(includeDeprecated: Boolean = false): [__InputValue!]! onOperation: Boolean onFragment: Boolean onField: Boolean
}
enum __TypeKind { SCALAR OBJECT INTERFACE UNION ENUM INPUT_OBJECT LIST NON_NULL }
enum __DirectiveLocation {
  QUERY MUTATION SUBSCRIPTION FIELD FRAGMENT_DEFINITION FRAGMENT_SPREAD INLINE_FRAGMENT VARIABLE_DEFINITION SCHEMA
  SCALAR OBJECT FIELD_DEFINITION ARGUMENT_DEFINITION INTERFACE UNION ENUM ENUM_VALUE INPUT_OBJECT
  INPUT_FIELD_DEFINITION
}";

/// What a schema says, and everything that is wrong with it.
pub(super) fn schema(source: &Source<'_>) -> Result<Schema, Vec<Malformed>> {
    let common = Source::parse(COMMON).expect("it is written here, and every test reads it");
    let mut build = Build { by_name: HashMap::new(), kinds: Vec::new(), problems: Vec::new() };
    build.declare(&source.types, false);
    let own = build.kinds.len();
    build.declare(&common.types, true);
    let mut types: Vec<Type> = build.kinds.iter().map(|(name, kind)| empty(name, kind)).collect();
    // A schema may redefine built-in types.
    let added = common.types.iter().filter(|part| build.by_name.get(part.name.text).is_some_and(|id| *id >= own));
    let parts: Vec<&TypeSource<'_>> = added.chain(&source.types).collect();
    for part in parts {
        if let Some(id) = build.by_name.get(part.name.text).copied() {
            build.fill(&mut types[id].kind, part);
        }
    }
    let mut directives = HashMap::new();
    for directive in common.directives.iter().chain(&source.directives) {
        directives.insert(directive.name.text.into(), build.inputs(&directive.arguments));
    }
    let roots = build.roots(source, &types);
    build.possible(&common.types, &mut types);
    build.possible(&source.types, &mut types);
    ask_about_schema(&build.by_name, roots[OperationKind::Query as usize], &mut types);
    if !build.problems.is_empty() {
        return Err(build.problems);
    }
    let by_name = build.by_name.into_iter().map(|(name, id)| (name.into(), id)).collect();
    Ok(Schema { types, by_name, directives, roots })
}

/// A type that nothing was said of yet.
fn empty(name: &str, kind: &KindSource<'_>) -> Type {
    let kind = match kind {
        KindSource::Object { .. } => Kind::Object(Fields::default()),
        KindSource::Interface { .. } => Kind::Interface(Fields::default()),
        KindSource::Union(_) => Kind::Union(Fields::default()),
        KindSource::Enum(_) => Kind::Enum(HashSet::new()),
        KindSource::Input(_) => Kind::Input(Inputs::new()),
        KindSource::Scalar => Kind::Scalar(match name {
            "Int" => |literal| literal == Literal::Int,
            "Float" => |literal| matches!(literal, Literal::Int | Literal::Float),
            "String" => |literal| literal == Literal::Text,
            "Boolean" => |literal| literal == Literal::Flag,
            "ID" => |literal| matches!(literal, Literal::Int | Literal::Text),
            _ => |_| true,
        }),
    };
    Type { name: name.into(), kind }
}

/// The query type gets the two fields that ask about the schema.
fn ask_about_schema(by_name: &HashMap<&str, TypeId>, query: Option<TypeId>, types: &mut [Type]) {
    let (Some(query), Some(from)) = (query, by_name.get("__Query")) else { return };
    let Kind::Object(asking) = &mut types[*from].kind else { return };
    let asking = std::mem::take(asking).by_name;
    if let Kind::Object(fields) = &mut types[query].kind {
        fields.by_name.extend(asking);
    }
}

struct Build<'s, 't> {
    by_name: HashMap<&'t str, TypeId>,
    kinds: Vec<(&'t str, &'s KindSource<'t>)>,
    problems: Vec<Malformed>,
}

impl<'s, 't> Build<'s, 't> {
    fn problem(&mut self, at: Name<'_>, message: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Malformed::new(at.offset, message));
        }
    }

    /// Gives every type its number. Built-in types may be defined again.
    fn declare(&mut self, types: &'s [TypeSource<'t>], common: bool) {
        // An extension of what is not defined defines it: schemas that are parts of a larger one are written so.
        for extends in [false, true] {
            for part in types.iter().filter(|part| part.extends == extends) {
                let name = part.name.text;
                match self.by_name.get(name) {
                    None => {
                        if !common && is_introspection(name) {
                            self.problem(part.name, format!("`{}` begins with `__`, as no type may", short(name)));
                        }
                        self.by_name.insert(name, self.kinds.len());
                        self.kinds.push((name, &part.kind));
                    }
                    Some(_) if extends || common => {}
                    Some(_) => self.problem(part.name, format!("the type `{}` is defined twice", short(name))),
                }
            }
        }
    }

    fn fill(&mut self, kind: &mut Kind, part: &TypeSource<'t>) {
        match (kind, &part.kind) {
            (Kind::Object(fields), KindSource::Object { fields: more, .. })
            | (Kind::Interface(fields), KindSource::Interface { fields: more, .. }) => {
                for field in more {
                    self.field(fields, field);
                }
            }
            (Kind::Enum(values), KindSource::Enum(more)) => {
                values.extend(more.iter().map(|value| Box::from(value.text)));
            }
            (Kind::Input(inputs), KindSource::Input(more)) => inputs.extend(self.inputs(more)),
            (Kind::Union(_), KindSource::Union(_)) | (Kind::Scalar(_), KindSource::Scalar) => {}
            _ if part.extends => {
                self.problem(part.name, format!("`{}` is defined as something else", short(part.name.text)));
            }
            // It is defined twice, which was said.
            _ => {}
        }
    }

    fn field(&mut self, fields: &mut Fields, source: &FieldSource<'t>) {
        let name = source.name.text;
        if fields.by_name.contains_key(name) {
            return self.problem(source.name, format!("the field `{}` is defined twice", short(name)));
        }
        let Some(kind) = self.type_ref(&source.kind) else { return };
        if matches!(self.kinds[kind.named()].1, KindSource::Input(_)) {
            let message = format!("`{}` is for arguments, no field can have it", short(source.kind.named().text));
            return self.problem(source.kind.named(), message);
        }
        let arguments = self.inputs(&source.arguments);
        fields.by_name.insert(name.into(), Field { arguments, kind, cost: 1 });
    }

    fn inputs(&mut self, sources: &[InputSource<'t>]) -> Inputs {
        let mut inputs = Inputs::new();
        for source in sources {
            let Some(kind) = self.type_ref(&source.kind) else { continue };
            let named = source.kind.named();
            if !matches!(self.kinds[kind.named()].1, KindSource::Scalar | KindSource::Enum(_) | KindSource::Input(_)) {
                self.problem(named, format!("`{}` is not a type of a value that can be sent", short(named.text)));
            }
            let input = Input { kind, has_default: source.has_default };
            if inputs.insert(source.name.text.into(), input).is_some() {
                self.problem(source.name, format!("`{}` is defined twice", short(source.name.text)));
            }
        }
        inputs
    }

    fn type_ref(&mut self, name: &TypeName<'t>) -> Option<TypeRef> {
        Some(match name {
            TypeName::Named(name) => TypeRef::Named(self.type_of(*name)?),
            TypeName::List(inner) => TypeRef::List(Box::new(self.type_ref(inner)?)),
            TypeName::NonNull(inner) => TypeRef::NonNull(Box::new(self.type_ref(inner)?)),
        })
    }

    /// The known type that an unknown name was probably meant to be: at most a third of its letters differ.
    fn similar_type(&self, name: &str) -> Option<&'t str> {
        let edits_max = (name.chars().count() / 3).max(1);
        let lower = name.to_lowercase();
        let edits = |known: &str| strsim::osa_distance(&lower, &known.to_lowercase());
        let near = self.by_name.keys().map(|known| (edits(known), *known)).filter(|(edits, _)| *edits <= edits_max);
        near.min().map(|(_, known)| known)
    }

    fn type_of(&mut self, name: Name<'t>) -> Option<TypeId> {
        let found = self.by_name.get(name.text).copied();
        if found.is_none() {
            let meant = self.similar_type(name.text);
            let hint = meant.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
            self.problem(name, format!("unknown type `{}`{hint}", short(name.text)));
        }
        found
    }

    fn roots(&mut self, source: &Source<'t>, types: &[Type]) -> [Option<TypeId>; 3] {
        let mut roots = [None; 3];
        for (kind, name) in &source.roots {
            let found = self.type_of(*name);
            if found.is_some_and(|id| !matches!(types[id].kind, Kind::Object(_))) {
                self.problem(*name, format!("`{}` must be a type with fields", short(name.text)));
                continue;
            }
            roots[*kind as usize] = found;
        }
        if source.roots.is_empty() {
            for (kind, name) in OperationKind::ALL.into_iter().zip(["Query", "Mutation", "Subscription"]) {
                let found = self.by_name.get(name).copied();
                roots[kind as usize] = found.filter(|id| matches!(types[*id].kind, Kind::Object(_)));
            }
        }
        if roots[OperationKind::Query as usize].is_none() && self.problems.is_empty() {
            let start = Name { text: "", offset: 0 };
            self.problem(start, "a schema needs a type `Query`, or `schema { query: … }`".to_owned());
        }
        roots
    }

    /// Notes which objects each interface and union stands for.
    fn possible(&mut self, sources: &[TypeSource<'t>], types: &mut [Type]) {
        for part in sources {
            let Some(id) = self.by_name.get(part.name.text).copied() else { continue };
            match &part.kind {
                KindSource::Object { interfaces, .. } => {
                    self.belongs(id, id, types);
                    for interface in interfaces {
                        let Some(of) = self.type_of(*interface) else { continue };
                        if !matches!(types[of].kind, Kind::Interface(_)) {
                            self.problem(*interface, format!("`{}` is not an interface", short(interface.text)));
                        }
                        self.belongs(of, id, types);
                    }
                }
                KindSource::Interface { interfaces, .. } => {
                    // Objects name all their interfaces, those of interfaces too (section 3.6).
                    for interface in interfaces {
                        self.type_of(*interface);
                    }
                }
                KindSource::Union(members) => {
                    for member in members {
                        let Some(of) = self.type_of(*member) else { continue };
                        if !matches!(types[of].kind, Kind::Object(_)) {
                            self.problem(*member, format!("`{}` is not a type with fields", short(member.text)));
                        }
                        self.belongs(id, of, types);
                    }
                }
                KindSource::Scalar | KindSource::Enum(_) | KindSource::Input(_) => {}
            }
        }
    }

    fn belongs(&self, to: TypeId, object: TypeId, types: &mut [Type]) {
        if let Kind::Object(fields) | Kind::Interface(fields) | Kind::Union(fields) = &mut types[to].kind {
            fields.possible.insert(object);
        }
    }
}
