//! `<simpleType>`: restriction, list, union.

use std::sync::Arc;

use penstock_xpath::regex::Regex;

use super::{Builder, Outcome, facets};
use crate::load::{ComponentKind, Place};
use crate::model::{SimpleType, Type, TypeId, Types, Variety};
use crate::simple::{self, Builtin, Facet, Ordered, WhiteSpace};

impl Builder<'_> {
    pub(super) fn build_simple(&mut self, place: Place, label: Arc<str>) -> Outcome<SimpleType> {
        let Some(inner) = self.child(place, &["restriction", "list", "union"]) else {
            return self.fail(place, "<simpleType> needs a <restriction>, <list> or <union>");
        };
        match self.document(inner).name(inner.node) {
            "restriction" => {
                let base = self.base_of_restriction(inner, &label)?;
                if base == self.any_type || base == self.builtins[&Builtin::AnySimple] {
                    return self.fail(inner, "a simple type restricts another one than `anySimpleType`");
                }
                self.restricted(inner, base, label)
            }
            "list" => {
                let item = self.type_or_inline(inner, "itemType", &label)?;
                if let Some(name) = self.document(inner).attribute(inner.node, "itemType") {
                    self.check_simple_final(inner, name, "list")?;
                }
                self.ensure(item, inner)?;
                if matches!(self.get(item), Type::Complex(_)) {
                    return self.fail(inner, "the items of a list have a simple type");
                }
                if self.is_list(item) {
                    return self.fail(inner, "the items of a list are no lists");
                }
                self.simple_variety(Variety::List(item), label)
            }
            _ => {
                let mut members = Vec::new();
                let named = self.document(inner).attribute(inner.node, "memberTypes").unwrap_or_default();
                for name in named.split_ascii_whitespace() {
                    let symbol = self.symbol(inner, name)?;
                    self.check_simple_final(inner, name, "union")?;
                    members.push(self.type_ref(symbol, inner)?);
                }
                for child in self.children(inner) {
                    members.push(self.anonymous(child, &label)?);
                }
                for member in &members {
                    self.ensure(*member, inner)?;
                    if matches!(self.get(*member), Type::Complex(_)) && *member != self.any_type {
                        return self.fail(inner, "the members of a union are simple types");
                    }
                }
                self.simple_variety(Variety::Union(members), label)
            }
        }
    }

    /// Whether a named type excludes a way of deriving from it.
    fn check_simple_final(&mut self, place: Place, name: &str, way: &str) -> Outcome<()> {
        let symbol = self.symbol(place, name)?;
        let Some(found) = self.index.get(&(ComponentKind::Type, symbol)).copied() else { return Ok(()) };
        let document = self.document(found);
        let own = document.attribute(found.node, "final");
        let text = own.or_else(|| document.attribute(document.root, "finalDefault")).unwrap_or_default();
        if text.split_ascii_whitespace().any(|one| one == "#all" || one == way) {
            return self.fail(place, format!("`{name}` excludes this derivation by `final`"));
        }
        Ok(())
    }

    fn is_list(&self, id: TypeId) -> bool {
        match self.get(id) {
            Type::Simple(simple) => match &simple.variety {
                Variety::List(_) => true,
                Variety::Union(members) => members.iter().any(|member| self.is_list(*member)),
                Variety::Atomic(_) => false,
            },
            Type::Complex(_) => false,
        }
    }

    fn simple_variety(&mut self, variety: Variety, label: Arc<str>) -> Outcome<SimpleType> {
        let white_space = match variety {
            Variety::Union(_) => WhiteSpace::Preserve,
            _ => WhiteSpace::Collapse,
        };
        let base = Some(self.builtins[&Builtin::AnySimple]);
        Ok(SimpleType { label, base, variety, white_space, facets: Vec::new(), fixed: Vec::new() })
    }

    /// The type an attribute names or a child defines.
    fn type_or_inline(&mut self, place: Place, attribute: &str, label: &str) -> Outcome<TypeId> {
        if let Some(name) = self.document(place).attribute(place.node, attribute) {
            let symbol = self.symbol(place, name)?;
            return self.type_ref(symbol, place);
        }
        match self.child(place, &["simpleType"]) {
            Some(child) => self.anonymous(child, label.trim_start_matches("#AnonType_")),
            None => self.fail(place, format!("<{}> names no type", self.document(place).name(place.node))),
        }
    }

    fn base_of_restriction(&mut self, place: Place, label: &str) -> Outcome<TypeId> {
        let base = self.type_or_inline(place, "base", label)?;
        if let Some(name) = self.document(place).attribute(place.node, "base") {
            self.check_simple_final(place, name, "restriction")?;
        }
        self.ensure(base, place)?;
        Ok(base)
    }

    /// A simple type restricted by the facets inside `place`.
    pub(super) fn restricted(&mut self, place: Place, base: TypeId, label: Arc<str>) -> Outcome<SimpleType> {
        let base = if base == self.any_type { self.builtins[&Builtin::AnySimple] } else { base };
        let Type::Simple(parent) = self.get(base) else {
            return self.fail(place, "the base of a simple type must be a simple type");
        };
        let mut made = SimpleType { label, base: Some(base), ..parent.clone() };
        let (inherited, inherited_space) = (made.facets.len(), made.white_space);
        let (mut patterns, mut values) = (Vec::new(), Vec::new());
        for child in self.children(place) {
            let name = self.document(child).name(child.node);
            let Some(text) = self.document(child).attribute(child.node, "value") else {
                if !matches!(name, "simpleType" | "attribute" | "attributeGroup" | "anyAttribute") {
                    self.fail::<()>(child, format!("<{name}> needs the attribute `value`"))?;
                }
                continue;
            };
            if !facets::applies(name, &made) {
                return self.fail(child, format!("<{name}> means nothing for the type that is restricted"));
            }
            let whole = matches!(made.variety, Variety::Atomic(builtin) if builtin.is_integer());
            if whole && name == "fractionDigits" && !text.trim().trim_start_matches('0').is_empty() {
                return self.fail(child, "whole numbers have no fraction digits");
            }
            match name {
                "pattern" => patterns.push((self.pattern(child, text)?, text.to_owned())),
                "enumeration" => {
                    let value = self.facet_value(child, base, text)?;
                    self.check_notation_name(child, &made, &value)?;
                    values.push((value, text.to_owned()));
                }
                "whiteSpace" => {
                    made.white_space = match text {
                        "preserve" => WhiteSpace::Preserve,
                        "replace" => WhiteSpace::Replace,
                        _ => WhiteSpace::Collapse,
                    };
                    if made.white_space < inherited_space {
                        return self.fail(child, "the base treats white space in a stricter way");
                    }
                }
                _ => {
                    let facet = self.facet(child, name, base, text)?;
                    made.facets.push(facet);
                }
            }
        }
        let (of_base, own) = made.facets.split_at(inherited);
        let changed = own.iter().find(|facet| made.fixed.contains(&facet.name()) && !facets::is_kept(facet, of_base));
        let changed = changed.map(Facet::name);
        let spaced = made.white_space != inherited_space && made.fixed.contains(&"whiteSpace");
        if let Some(name) = changed.or(spaced.then_some("whiteSpace")) {
            return self.fail(place, format!("the base fixes <{name}>"));
        }
        if let Some(message) = facets::contradiction(own, of_base) {
            return self.fail(place, message);
        }
        made.fixed.extend(self.fixed_facets(place));
        if !patterns.is_empty() {
            made.facets.push(Facet::Pattern(patterns.into()));
        }
        if !values.is_empty() {
            made.facets.push(Facet::Enumeration(values.into()));
        }
        Ok(made)
    }

    /// The facets inside an element that types restricted from this one cannot change.
    fn fixed_facets(&self, place: Place) -> Vec<&'static str> {
        let document = self.document(place);
        let is_fixed = |node| matches!(document.attribute(node, "fixed").map(str::trim), Some("true" | "1"));
        let known = |node| facets::FIXABLE.iter().copied().find(|name| *name == document.name(node));
        document.children(place.node).filter(|node| is_fixed(*node)).filter_map(known).collect()
    }

    /// An enumerated notation must be declared.
    fn check_notation_name(&mut self, place: Place, made: &SimpleType, value: &simple::Value<'_>) -> Outcome<()> {
        let (Variety::Atomic(Builtin::Notation), simple::Value::Name(namespace, local)) = (&made.variety, value) else {
            return Ok(());
        };
        let symbol = self.names.intern(namespace, local);
        if self.is_unknown(ComponentKind::Notation, symbol) {
            return Ok(());
        }
        self.named(ComponentKind::Notation, symbol, place).map(drop)
    }

    fn facet(&mut self, place: Place, name: &str, base: TypeId, text: &str) -> Outcome<Facet> {
        let ordered = match name {
            "minInclusive" => Ordered::MinInclusive,
            "minExclusive" => Ordered::MinExclusive,
            "maxInclusive" => Ordered::MaxInclusive,
            "maxExclusive" => Ordered::MaxExclusive,
            _ => return self.counted(place, name, text),
        };
        // An exclusive bound is not a value of its own type, and may still be given again.
        if let Type::Simple(parent) = self.get(base) {
            let again = parent.facets.iter().find(
                |facet| matches!(facet, Facet::Bound(known, _, written) if *known == ordered && written == text.trim()),
            );
            if let Some(again) = again {
                return Ok(again.clone());
            }
        }
        Ok(Facet::Bound(ordered, self.facet_value(place, base, text)?, text.trim().to_owned()))
    }

    fn counted(&mut self, place: Place, name: &str, text: &str) -> Outcome<Facet> {
        let Ok(count) = text.trim().parse::<usize>() else {
            return self.fail(place, format!("`{text}` is not a number for <{name}>"));
        };
        Ok(match name {
            "length" => Facet::Length(count),
            "minLength" => Facet::MinLength(count),
            "maxLength" => Facet::MaxLength(count),
            "totalDigits" => Facet::TotalDigits(count),
            "fractionDigits" => Facet::FractionDigits(count),
            _ => return self.fail(place, format!("<{name}> is not a facet")),
        })
    }

    /// The value of a facet must be one of the base type.
    fn facet_value(&mut self, place: Place, base: TypeId, text: &str) -> Outcome<simple::Value<'static>> {
        let document = self.document(place);
        let context = |prefix: &str| document.document.lookup_namespace(place.node, prefix).map(str::to_owned);
        match simple::check(self, base, text, &context) {
            Ok(value) => Ok(value.into_owned()),
            Err(message) => self.fail(place, format!("the value is not one of the base type: {message}")),
        }
    }

    fn pattern(&mut self, place: Place, text: &str) -> Outcome<Regex> {
        match Regex::for_schema(text) {
            Ok(regex) => Ok(regex),
            Err(error) => self.fail(place, error.to_string()),
        }
    }
}
