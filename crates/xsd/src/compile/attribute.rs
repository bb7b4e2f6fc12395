//! Attributes, attribute groups and their wildcards.

use super::consistency::DeclaredValue;
use super::{Builder, Outcome};
use crate::XSI;
use crate::load::{ComponentKind, Place};
use crate::model::{AttributeUse, Inexpressible, Namespaces, Process, ValueConstraint, Wildcard};
use crate::names::Symbol;
use crate::simple::Builtin;

/// What a type or an attribute group says about attributes.
#[derive(Default, Clone)]
pub(super) struct Attributes {
    pub(super) uses: Vec<AttributeUse>,
    pub(super) prohibited: Vec<Symbol>,
    pub(super) wildcard: Option<Wildcard>,
}

impl Builder<'_> {
    /// The attributes declared inside an element.
    pub(super) fn attributes(&mut self, place: Place) -> Outcome<Attributes> {
        let mut all = Attributes::default();
        for child in self.children(place) {
            match self.document(child).name(child.node) {
                "attribute" => self.attribute(child, &mut all)?,
                "attributeGroup" => {
                    let Some(name) = self.document(child).attribute(child.node, "ref") else {
                        return self.fail(child, "<attributeGroup> needs the attribute `ref` here");
                    };
                    let symbol = self.symbol(child, name)?;
                    if self.is_unknown(ComponentKind::AttributeGroup, symbol) {
                        all.wildcard = Some(Wildcard { namespaces: Namespaces::Any, process: Process::Lax });
                        continue;
                    }
                    let definition = self.named(ComponentKind::AttributeGroup, symbol, child)?;
                    let group = self.nested(child, |builder| builder.attribute_group(definition))?;
                    for one in group.uses {
                        if all.uses.iter().any(|other| other.name == one.name) {
                            let name = self.names.show(one.name);
                            return self.fail(child, format!("the attribute `{name}` is declared twice"));
                        }
                        put(&mut all.uses, one);
                    }
                    all.prohibited.extend(group.prohibited);
                    all.wildcard = self.both(child, all.wildcard.take(), group.wildcard)?;
                }
                "anyAttribute" => {
                    let wildcard = self.wildcard(child);
                    all.wildcard = self.both(child, all.wildcard.take(), Some(wildcard))?;
                }
                _ => {}
            }
        }
        Ok(all)
    }

    pub(super) fn attribute_group(&mut self, place: Place) -> Outcome<Attributes> {
        if self.open.contains(&place) {
            return self.fail(place, "the attribute group contains itself");
        }
        self.open.push(place);
        let found = self.attributes(place);
        self.open.pop();
        let found = found?;
        self.id_uses.push((place, found.uses.iter().map(|one| one.kind).collect()));
        Ok(found)
    }

    fn attribute(&mut self, place: Place, all: &mut Attributes) -> Outcome<()> {
        let document = self.document(place);
        let usage = document.attribute(place.node, "use").unwrap_or("optional");
        let value = value_constraint(document, place);
        let mut declared = match document.attribute(place.node, "ref") {
            Some(name) => {
                let symbol = self.symbol(place, name)?;
                match self.attributes.get(&symbol) {
                    Some(found) if !self.index.contains_key(&(ComponentKind::Attribute, symbol)) => found.clone(),
                    None if self.is_unknown(ComponentKind::Attribute, symbol) => {
                        let kind = self.builtins[&Builtin::AnySimple];
                        AttributeUse { name: symbol, kind, required: false, value: None }
                    }
                    _ => {
                        let found = self.named(ComponentKind::Attribute, symbol, place)?;
                        self.global_attribute(symbol, found)?
                    }
                }
            }
            None => {
                let Some(name) = document.attribute(place.node, "name") else {
                    return self.fail(place, "<attribute> needs the attribute `name` or `ref`");
                };
                let qualified = match document.attribute(place.node, "form") {
                    Some(form) => form == "qualified",
                    None => document.attributes_qualified,
                };
                let symbol = self.names.intern(if qualified { &document.target } else { "" }, name.trim());
                self.attribute_declaration(symbol, place)?
            }
        };
        if usage == "prohibited" {
            all.prohibited.push(declared.name);
            return Ok(());
        }
        let fixed = declared.value.as_ref().filter(|value| value.fixed);
        let kept = |fixed: &ValueConstraint| {
            value.as_ref().is_none_or(|value| value.fixed && value.text.trim() == fixed.text.trim())
        };
        if fixed.is_some_and(|fixed| !kept(fixed)) {
            return self.fail(place, "the value of the attribute is fixed where it is declared");
        }
        declared.required = usage == "required";
        declared.value = value.or(declared.value);
        if all.uses.iter().any(|other| other.name == declared.name) {
            let name = self.names.show(declared.name);
            return self.fail(place, format!("the attribute `{name}` is declared twice"));
        }
        put(&mut all.uses, declared);
        Ok(())
    }

    pub(super) fn global_attribute(&mut self, symbol: Symbol, place: Place) -> Outcome<AttributeUse> {
        if let Some(found) = self.attributes.get(&symbol)
            && **self.names.namespace(symbol) != *penstock_xml::XML_NAMESPACE
        {
            return Ok(found.clone());
        }
        let declared = self.attribute_declaration(symbol, place)?;
        self.attributes.insert(symbol, declared.clone());
        Ok(declared)
    }

    fn attribute_declaration(&mut self, name: Symbol, place: Place) -> Outcome<AttributeUse> {
        let document = self.document(place);
        if **self.names.namespace(name) == *XSI {
            return self.fail(place, "attributes of the namespace of schema instances cannot be declared");
        }
        let kind = match document.attribute(place.node, "type") {
            Some(text) => {
                let symbol = self.symbol(place, text)?;
                self.type_ref(symbol, place)?
            }
            None => match self.child(place, &["simpleType"]) {
                Some(child) => {
                    let owner = self.names.local(name).clone();
                    self.anonymous(child, &owner)?
                }
                None => self.builtins[&Builtin::AnySimple],
            },
        };
        let value = value_constraint(document, place);
        self.attribute_types.push((place, kind));
        if let Some(value) = value.clone() {
            self.values.push(DeclaredValue { place, kind, value });
        }
        Ok(AttributeUse { name, kind, required: false, value })
    }

    /// What two wildcards of one type allow together; the nearer one says how it is processed.
    fn both(&mut self, place: Place, left: Option<Wildcard>, right: Option<Wildcard>) -> Outcome<Option<Wildcard>> {
        let (Some(left), Some(right)) = (&left, &right) else { return Ok(left.or(right)) };
        match left.namespaces.intersection(&right.namespaces) {
            Ok(namespaces) => Ok(Some(Wildcard { namespaces, process: left.process })),
            Err(Inexpressible) => self.fail(place, "no wildcard allows just what these wildcards both allow"),
        }
    }

    /// `<any>` and `<anyAttribute>`.
    pub(super) fn wildcard(&mut self, place: Place) -> Wildcard {
        let document = self.document(place);
        let namespaces = match document.attribute(place.node, "namespace").unwrap_or("##any").trim() {
            "##any" => Namespaces::Any,
            "##other" => Namespaces::Other(document.target.clone()),
            list => Namespaces::List(
                list.split_ascii_whitespace()
                    .map(|one| match one {
                        "##targetNamespace" => document.target.clone(),
                        "##local" => "".into(),
                        other => other.into(),
                    })
                    .collect(),
            ),
        };
        let process = match document.attribute(place.node, "processContents") {
            Some("lax") => Process::Lax,
            Some("skip") => Process::Skip,
            _ => Process::Strict,
        };
        Wildcard { namespaces, process }
    }
}

/// `default` and `fixed`.
pub(super) fn value_constraint(document: &crate::load::SchemaDocument, place: Place) -> Option<ValueConstraint> {
    let text = |name| document.attribute(place.node, name);
    match (text("fixed"), text("default")) {
        (Some(fixed), _) => Some(ValueConstraint { fixed: true, text: fixed.into() }),
        (None, Some(default)) => Some(ValueConstraint { fixed: false, text: default.into() }),
        (None, None) => None,
    }
}

/// Adds a use; one of the same name is replaced.
pub(super) fn put(uses: &mut Vec<AttributeUse>, one: AttributeUse) {
    match uses.iter_mut().find(|other| other.name == one.name) {
        Some(other) => *other = one,
        None => uses.push(one),
    }
}
