//! Artifacts of the original that are recognised and not served: what each is, and what that means for the rest.

use crate::{Compiler, Element};

struct LeftOut {
    element: &'static str,
    noun: &'static str,
    /// What follows from its absence.
    therefore: &'static str,
}

const fn left_out(element: &'static str, noun: &'static str, therefore: &'static str) -> LeftOut {
    LeftOut { element, noun, therefore }
}

const TABLE: [LeftOut; 8] = [
    left_out("messageStore", "message store", "nothing can be stored yet, and <store> into it is a fault"),
    left_out("messageProcessor", "message processor", "nothing takes messages out of stores yet"),
    left_out("task", "scheduled task", "nothing starts by the clock yet"),
    left_out("inboundEndpoint", "inbound endpoint", "messages come in by APIs and proxy services only, so far"),
    left_out("data", "data service", "queries can be made with <dblookup> and <dbreport>"),
    left_out("eventSource", "event source", "the original dropped eventing as well"),
    left_out("priorityExecutor", "priority executor", "messages are served as they come"),
    left_out("library", "library", "connectors are taken from their archives"),
];

/// Says that an artifact is left out; `false` when it is none of those.
pub(super) fn say(cx: &mut Compiler<'_>, el: &Element<'_>) -> bool {
    let Some(found) = TABLE.iter().find(|entry| entry.element == el.name()) else { return false };
    let name = el.attribute("name").map_or_else(String::new, |name| format!(" `{name}`"));
    let message = format!("the {}{name} is recognised and left out: {}", found.noun, found.therefore);
    cx.warn(el.place(), message);
    true
}
