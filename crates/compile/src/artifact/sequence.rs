//! `<sequence name="…" onError="…">`.

use penstock_engine::SequenceId;

use crate::{Compiler, Element};

/// Fills a reserved sequence from its element.
pub(crate) fn fill(cx: &mut Compiler<'_>, el: &Element<'_>, id: SequenceId) {
    el.attribute("name");
    el.attribute("key");
    if let Some(key) = el.attribute("onError") {
        let handler = cx.sequence_ref(key, el.attribute_place("onError"));
        cx.program.sequences[id.0 as usize].on_error = Some(handler);
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
