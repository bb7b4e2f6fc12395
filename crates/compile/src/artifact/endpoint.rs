//! `<endpoint name="…">` as an artifact of its own.

use super::kind::{ArtifactKind, ArtifactName, withdraw_nothing};
use crate::compiler::NameKind;
use crate::{Compiler, Element, endpoint};

/// The kind. An endpoint with errors keeps responding with a fault, so nothing is withdrawn.
pub(super) const KIND: ArtifactKind = ArtifactKind {
    element: "endpoint",
    name: ArtifactName::Attribute("name"),
    declare,
    build: endpoint::fill,
    withdraw: withdraw_nothing,
};

fn declare(cx: &mut Compiler<'_>, name: &str, el: &Element<'_>) {
    if cx.declare(NameKind::ENDPOINT, name, el.place()) {
        endpoint::reserve(cx, name, el.place());
    }
}
