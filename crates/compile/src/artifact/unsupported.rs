//! Artifacts of Micro Integrator that are recognised and not served: what each is, and what follows for the rest.

use crate::{Compiler, Element};

pub(super) struct Unsupported {
    element: &'static str,
    noun: &'static str,
    /// What follows from its absence.
    consequence: &'static str,
}

const fn unsupported(element: &'static str, noun: &'static str, consequence: &'static str) -> Unsupported {
    Unsupported { element, noun, consequence }
}

const TABLE: [Unsupported; 3] = [
    unsupported("eventSource", "event source", "Micro Integrator has no eventing either"),
    unsupported("priorityExecutor", "priority executor", "messages are served in the order of their arrival"),
    unsupported("library", "library", "connectors are taken from their archives"),
];

/// The entry of an element.
pub(super) fn find(element: &str) -> Option<&'static Unsupported> {
    TABLE.iter().find(|entry| entry.element == element)
}

/// Warns that an artifact is not served; `false` when it is none of the table.
pub(super) fn report(cx: &mut Compiler<'_>, el: &Element<'_>) -> bool {
    let Some(found) = find(el.name()) else { return false };
    let name = el.attribute("name").map_or_else(String::new, |name| format!(" `{name}`"));
    let message = format!("the {}{name} is not supported yet and is not served: {}", found.noun, found.consequence);
    cx.warn(el.place(), message);
    true
}
