//! `<definitions>`: a whole configuration in one file. Mediators at its top are the `main` sequence of old configurations.

use super::kind::{ArtifactKind, ArtifactName};
use super::sequence;
use crate::{Compiler, Element};

/// The kind; it is built only where mediators stand at the top.
pub(super) const KIND: ArtifactKind = ArtifactKind {
    element: "definitions",
    name: ArtifactName::Fixed("main"),
    declare: sequence::declare,
    build,
    withdraw: sequence::withdraw,
};

/// The mediators at the top, and the other children, which are artifacts.
pub(super) fn divide<'s>(cx: &Compiler<'_>, root: &Element<'s>) -> (Vec<Element<'s>>, Vec<Element<'s>>) {
    let is_loose = |child: &Element<'_>| {
        cx.registry.mediator(child.name()).is_some() && cx.registry.artifact(child.name()).is_none()
    };
    root.children().partition(is_loose)
}

fn build(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    let (loose, _) = divide(cx, el);
    if let Some(id) = cx.program.sequence_names.get(name).copied().filter(|id| cx.is_compiling(*id)) {
        cx.fill_sequence(id, &loose);
    }
}
