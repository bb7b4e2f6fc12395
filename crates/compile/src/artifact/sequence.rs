//! `<sequence name="…" onError="…">`.

use penstock_engine::{SequenceId, Step};

use super::kind::{ArtifactKind, ArtifactName};
use crate::compiler::NameKind;
use crate::{Compiler, Element};

/// The kind.
pub(super) const KIND: ArtifactKind =
    ArtifactKind { element: "sequence", name: ArtifactName::Attribute("name"), declare, build, withdraw };

/// Reserves the sequence that others refer to by name.
pub(super) fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if cx.declare(NameKind::SEQUENCE, name, el.place()) {
        let id = cx.reserve_sequence(Some(name.into()));
        cx.program.sequence_names.insert(name.into(), id);
    }
}

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    match cx.program.sequence_names.get(name).copied() {
        Some(id) if cx.is_compiling(id) => fill(cx, el, id),
        _ => el.accept_all(),
    }
}

/// A sequence with errors responds with a fault. `main` and `fault` are served as if they were not defined.
pub(super) fn withdraw(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let Some(id) = cx.program.sequence_names.get(name).copied().filter(|id| cx.is_compiling(*id)) else { return };
    replace_by_fault(cx, id, name, el);
    if name == "main" || name == "fault" {
        cx.program.sequence_names.remove(name);
    }
}

/// Makes a sequence respond with a fault that names it.
pub(super) fn replace_by_fault(cx: &mut Compiler<'_>, id: SequenceId, name: &str, el: &Element<'_>) {
    if !cx.is_compiling(id) {
        return;
    }
    let mediator = Box::new(crate::missing::AlwaysFaults::missing("working sequence", name));
    cx.sequence_mut(id).steps = vec![Step { mediator, kind: "sequence", at: el.place() }];
}

/// Fills a reserved sequence from its element.
pub(crate) fn fill(cx: &mut Compiler<'_>, el: &Element<'_>, id: SequenceId) {
    el.attribute("name");
    el.attribute("key");
    if let Some(key) = el.attribute("onError") {
        let handler = cx.sequence_ref(key, el.attribute_place("onError"));
        cx.sequence_mut(id).on_error = Some(handler);
    }
    let children: Vec<Element<'_>> = el.children().collect();
    cx.fill_sequence(id, &children);
    el.finish(cx);
}

/// A part of a service that is written inside it or named by an attribute: `inSequence` and its kin.
pub(crate) fn part(cx: &mut Compiler<'_>, el: &Element<'_>, name: &'static str) -> Option<SequenceId> {
    if let Some(key) = el.attribute(name).filter(|key| !key.is_empty()) {
        return Some(cx.sequence_ref(key, el.attribute_place(name)));
    }
    let inline = el.child(name)?;
    if let Some(key) = inline.attribute("key") {
        return Some(cx.sequence_ref(key, inline.attribute_place("key")));
    }
    let id = cx.reserve_sequence(None);
    fill(cx, &inline, id);
    Some(id)
}
