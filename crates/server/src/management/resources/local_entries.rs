//! `/local-entries`

use serde_json::{Value, json};

use super::super::call::{Call, Outcome, refuse};
use super::super::inventory::Deployed;
use super::{masked, read_artifacts};

const KIND: &str = "localEntry";

pub(crate) fn read(call: &Call<'_>) -> Outcome {
    read_artifacts(
        call,
        KIND,
        "name",
        |name| refuse(404, format!("Reference for {name} could not be resolved")),
        |found| json!({ "name": found.artifact.name, "type": entry_type(found) }),
        detail,
    )
}

fn entry_type(found: &Deployed<'_>) -> &'static str {
    if found.element.attribute("src").is_some() {
        "Source URL"
    } else if content(found).is_some() {
        "Inline XML"
    } else {
        "Inline Text"
    }
}

/// The element that an entry holds.
fn content<'i>(found: &Deployed<'i>) -> Option<penstock_compile::Element<'i>> {
    found.element.children().find(|child| child.name() != "description")
}

fn detail(found: &Deployed<'_>) -> Value {
    let value = match (found.element.attribute("src"), content(found)) {
        (Some(source), _) => source.to_owned(),
        (None, Some(element)) => masked(&Deployed { element, ..*found }),
        (None, None) => found.element.text(),
    };
    json!({
        "name": found.artifact.name,
        "type": entry_type(found),
        "value": value,
        "description": found.element.child_text("description").unwrap_or_default(),
    })
}
