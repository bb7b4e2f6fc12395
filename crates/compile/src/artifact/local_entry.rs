//! `<localEntry key="…">`: text, XML, or the address of a file.

use std::sync::Arc;

use bytes::Bytes;
use penstock_engine::Resource;

use super::kind::{ArtifactKind, ArtifactName, withdraw_nothing};
use crate::compiler::NameKind;
use crate::{Compiler, Element};

/// The kind. Entries are read when they are declared, because other artifacts need them to compile.
pub(super) const KIND: ArtifactKind = ArtifactKind {
    element: "localEntry",
    name: ArtifactName::Attribute("key"),
    declare,
    build: |_, _, _| {},
    withdraw: withdraw_nothing,
};

fn declare(cx: &mut Compiler<'_>, key: &str, el: &Element<'_>) {
    if cx.declare(NameKind::RESOURCE, key, el.place()) {
        read(cx, key, el);
    }
}

/// Adds the entry to the program's resources.
fn read(cx: &mut Compiler<'_>, key: &str, el: &Element<'_>) {
    let inline = el.children().find(|child| child.name() != "description");
    let mut at = inline.map_or_else(|| el.place(), |child| child.place());
    let (bytes, is_xml) = match (&inline, el.attribute("src")) {
        (Some(child), _) => (child.to_xml(), true),
        (None, Some(source)) => {
            // What `src` names is a resource of the configuration; nothing is fetched.
            let name = source.trim_start_matches("file:");
            match cx.program.resources.get(name).or_else(|| cx.program.resources.get(source)) {
                Some(found) => {
                    at = found.at.clone();
                    (found.bytes.to_vec(), found.is_xml)
                }
                None => {
                    // Without the entry, what uses it is reported as missing it, and not as broken content.
                    let message = format!("`{source}` is not among the files; there is no local entry `{key}`");
                    cx.warn(el.attribute_place("src"), message);
                    return el.finish(cx);
                }
            }
        }
        (None, None) => (el.text().into_bytes(), false),
    };
    let resource = Resource { bytes: Bytes::from(bytes), media_type: None, is_xml, at, properties: Vec::new() };
    cx.program.resources.insert(Arc::<str>::from(key), resource);
    el.finish(cx);
}
