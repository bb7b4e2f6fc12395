//! Sequence types at run time: `instance of`, `treat as`, and the conversions of parameters and results.

use super::{Evaluator, Focus, only_element};
use crate::ast::{ItemType, KindTest, Name, Occurrence, SequenceType};
use crate::code::Code;
use crate::error::{Result, XPathError, type_error};
use crate::session::Session;
use crate::value::{Atomic, AtomicType, Item, ItemRef, Node, Sequence, cast};

impl<'a> Evaluator<'a> {
    pub(super) fn treat(&self, parts: &'a (Code, SequenceType), focus: &Focus<'_>) -> Result<Sequence> {
        let value = self.eval(&parts.0, focus)?;
        if matches_type(&value, &parts.1, self.session) {
            return Ok(value);
        }
        Err(XPathError::new("XPDY0050", "the value does not have the type it is to be treated as"))
    }
}

/// Whether a value is an instance of a type.
pub(crate) fn matches_type(value: &Sequence, wanted: &SequenceType, session: &Session) -> bool {
    let Some(item_type) = &wanted.item else { return value.is_empty() };
    occurs(value.len(), wanted.occurrence) && value.iter().all(|item| matches_item(item, item_type, session))
}

fn occurs(items: usize, occurrence: Occurrence) -> bool {
    match occurrence {
        Occurrence::One => items == 1,
        Occurrence::ZeroOrOne => items <= 1,
        Occurrence::ZeroOrMore => true,
        Occurrence::OneOrMore => items >= 1,
    }
}

fn matches_item(item: ItemRef<'_>, wanted: &ItemType, session: &Session) -> bool {
    match (item, wanted) {
        (_, ItemType::Any) => true,
        (ItemRef::Node(node), ItemType::Node(kind)) => matches_kind(node, kind, session),
        (ItemRef::Atomic(atomic), ItemType::Atomic(wanted)) => atomic.atomic_type().derives_from(*wanted),
        _ => false,
    }
}

fn matches_kind(node: Node, kind: &KindTest, session: &Session) -> bool {
    use penstock_xml::NodeKind as K;
    let document = session.document_of(node);
    let named = |name: &Option<Name>| {
        name.as_ref().is_none_or(|name| {
            document.local_name(node.id) == &*name.local
                && document.namespace(node.id) == name.namespace.as_deref().unwrap_or("")
        })
    };
    let found = document.kind(node.id);
    match kind {
        KindTest::Any => true,
        KindTest::Text => found == K::Text,
        KindTest::Comment => found == K::Comment,
        KindTest::Document => found == K::Document,
        KindTest::DocumentOf(inner) => {
            let only = (found == K::Document).then(|| only_element(document)).flatten();
            only.is_some_and(|id| matches_kind(Node { id, ..node }, inner, session))
        }
        KindTest::Nothing => false,
        KindTest::ProcessingInstruction(target) => {
            found == K::ProcessingInstruction
                && target.as_ref().is_none_or(|target| document.local_name(node.id) == &**target)
        }
        KindTest::Element(name) => found == K::Element && named(name),
        KindTest::Attribute(name) => found == K::Attribute && named(name),
    }
}

impl SequenceType {
    /// Whether a value is an instance of this type.
    pub fn matches(&self, value: &Sequence, session: &Session) -> bool {
        matches_type(value, self, session)
    }

    /// Converts a value to this type by the function conversion rules: nodes are atomized where an atomic value is
    /// wanted, untyped values are cast, numbers are promoted. `compat` converts more, as XPath 1.0 does.
    pub fn convert(&self, value: &Sequence, session: &Session, compat: bool) -> Result<Sequence> {
        let Some(ItemType::Atomic(wanted)) = self.item else {
            return if matches_type(value, self, session) { Ok(value.clone()) } else { Err(self.mismatch(value)) };
        };
        if matches_type(value, self, session) {
            return Ok(value.clone());
        }
        let mut items = Vec::with_capacity(value.len());
        for item in value.iter() {
            let atomic = match item {
                ItemRef::Atomic(atomic) => atomic.clone(),
                ItemRef::Node(node) => Atomic::Untyped(session.string_value(node).into()),
            };
            items.push(Item::Atomic(convert_atomic(atomic, wanted, compat)?));
        }
        if !occurs(items.len(), self.occurrence) {
            return Err(self.mismatch(value));
        }
        Ok(Sequence::from_items(items))
    }

    fn mismatch(&self, value: &Sequence) -> XPathError {
        let found = match (value.len(), value.first()) {
            (0, _) => "the empty sequence".to_string(),
            (1, Some(ItemRef::Node(_))) => "a node".to_string(),
            (1, Some(ItemRef::Atomic(atomic))) => format!("a value of type {}", atomic.atomic_type().name()),
            (items, _) => format!("a sequence of {items} items"),
        };
        type_error(format!("{found} does not have the required type"))
    }
}

fn convert_atomic(atomic: Atomic, wanted: AtomicType, compat: bool) -> Result<Atomic> {
    use AtomicType as T;
    let found = atomic.atomic_type();
    if found.derives_from(wanted) {
        return Ok(atomic);
    }
    let promotes = match (found, wanted) {
        (T::Untyped, T::Numeric) => return cast::cast(&atomic, T::Double, false),
        (T::Untyped, _) => true,
        (_, T::Double) if found == T::Float || found.derives_from(T::Decimal) => true,
        (_, T::Float) if found.derives_from(T::Decimal) => true,
        (T::Uri, T::String) => true,
        _ => compat && matches!(wanted, T::String | T::Double),
    };
    if promotes {
        return cast::cast(&atomic, wanted, compat);
    }
    Err(type_error(format!("a value of type {} cannot be used as {}", found.name(), wanted.name())))
}
