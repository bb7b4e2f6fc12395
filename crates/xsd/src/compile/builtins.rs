//! The types and attributes that every schema has without declaring them.

use std::sync::Arc;

use super::Builder;
use crate::XSD;
use crate::model::{
    AttributeUse, ComplexType, Content, Derivations, Namespaces, Particle, Process, SimpleType, Term, Type, UNBOUNDED,
    Variety, Wildcard,
};
use crate::simple::{Builtin, WhiteSpace};

impl Builder<'_> {
    pub(super) fn add_builtins(&mut self) {
        let wildcard = Wildcard { namespaces: Namespaces::Any, process: Process::Lax };
        let any = Particle { min: 0, max: UNBOUNDED, term: Term::Any(Arc::new(wildcard.clone())) };
        let any_type = ComplexType {
            label: "anyType".into(),
            base: None,
            by_extension: false,
            is_abstract: false,
            block: Derivations::default(),
            attributes: Vec::new(),
            any_attribute: Some(wildcard),
            content: Content::Elements(any),
            written: None,
            mixed: true,
        };
        self.any_type = self.add_type(Type::Complex(any_type));
        let symbol = self.names.intern(XSD, "anyType");
        self.type_ids.insert(symbol, self.any_type);
        for builtin in Builtin::ALL {
            let base = if *builtin == Builtin::AnySimple { self.any_type } else { self.builtins[&builtin.base()] };
            let simple = SimpleType {
                label: builtin.name().into(),
                base: Some(base),
                variety: Variety::Atomic(*builtin),
                white_space: builtin.white_space(),
                facets: Vec::new(),
                fixed: Vec::new(),
            };
            let id = self.add_type(Type::Simple(simple));
            self.builtins.insert(*builtin, id);
            let symbol = self.names.intern(XSD, builtin.name());
            self.type_ids.insert(symbol, id);
        }
        for (name, item) in [("NMTOKENS", Builtin::NmToken), ("IDREFS", Builtin::IdRef), ("ENTITIES", Builtin::Entity)]
        {
            let list = SimpleType {
                label: name.into(),
                base: Some(self.builtins[&Builtin::AnySimple]),
                variety: Variety::List(self.builtins[&item]),
                white_space: WhiteSpace::Collapse,
                facets: vec![crate::simple::Facet::MinLength(1)],
                fixed: Vec::new(),
            };
            let id = self.add_type(Type::Simple(list));
            let symbol = self.names.intern(XSD, name);
            self.type_ids.insert(symbol, id);
        }
        for (name, builtin) in
            [("lang", Builtin::String), ("space", Builtin::NcName), ("base", Builtin::AnyUri), ("id", Builtin::Id)]
        {
            let name = self.names.intern(penstock_xml::XML_NAMESPACE, name);
            let kind = self.builtins[&builtin];
            self.attributes.insert(name, AttributeUse { name, kind, required: false, value: None });
        }
    }
}
