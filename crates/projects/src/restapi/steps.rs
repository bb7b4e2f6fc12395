//! `policies` of an API or an operation.

use std::sync::Arc;

use penstock_catalog::{ChainStep, Setting, SettingValue};

use super::known_keys;
use crate::document::{Item, Node, Value};
use crate::{Import, hint};

/// Policies in one row. The longest chains of the API Platform have a dozen.
const STEPS_MAX: usize = 200;

/// Reads a row. A policy that is not known is a mistake: it may be what guards the API.
pub(super) fn read(import: &mut Import<'_>, map: &Item<'_>, of_api: bool) -> Vec<Arc<ChainStep>> {
    let Some(policies) = map.get("policies") else { return Vec::new() };
    if !policies.is_list() {
        import.error(&policies.at(), format!("`policies` must be a list, not {}", policies.kind()));
        return Vec::new();
    }
    if policies.items().count() > STEPS_MAX {
        import.error(&policies.at(), format!("more than {STEPS_MAX} policies"));
        return Vec::new();
    }
    let items: Vec<Item<'_>> = policies.items().collect();
    items.iter().filter_map(|item| step(import, item, of_api)).map(Arc::new).collect()
}

fn step(import: &mut Import<'_>, item: &Item<'_>, of_api: bool) -> Option<ChainStep> {
    if !item.is_map() {
        import.error(&item.at(), format!("a policy must be a mapping, not {}", item.kind()));
        return None;
    }
    known_keys(import, item, &["name", "version", "executionCondition", "params"]);
    let Some(name) = import.some_text_of(item, "name") else {
        import.error(&item.at(), "a policy needs `name`");
        return None;
    };
    let at = item.get("name").map_or_else(|| item.at(), |name| name.at());
    let known = import.config.chain_policies.as_deref();
    if let Some(known) = known.filter(|known| !known.contains(&&*name)) {
        let meant = hint(&name, known.iter().copied());
        import.error(
            &at,
            format!("the policy `{name}` is not supported{meant}; an API is not served without one of its policies"),
        );
    }
    let version = match import.some_text_of(item, "version") {
        None => {
            import.error(&item.at(), format!("the policy `{name}` needs `version`, as `v1`"));
            0
        }
        Some(text) => match text.strip_prefix('v').and_then(|number| number.parse().ok()) {
            Some(number) => number,
            None => {
                let at = item.get("version").map_or_else(|| item.at(), |version| version.at());
                import.error(&at, format!("`version` of a policy is its major version alone, as `v1`, not `{text}`"));
                0
            }
        },
    };
    let condition = item.get("executionCondition").and_then(|condition| {
        let text = import.text(&condition, "executionCondition")?;
        Some((text, condition.at())).filter(|(text, _)| !text.trim().is_empty())
    });
    let parameters = item.get("params").map(|params| setting(&params, params.node())).unwrap_or_default();
    if !matches!(parameters.value, SettingValue::Nothing | SettingValue::Map(_)) {
        import.error(&parameters.at, "`params` must be a mapping");
    }
    let parameters = Setting { at: item.get("params").map_or_else(|| at.clone(), |params| params.at()), ..parameters };
    Some(ChainStep { name, version, condition, parameters, of_api, at })
}

/// A value as the catalog keeps it.
fn setting(file: &Item<'_>, node: &Node) -> Setting {
    let item = file.sibling(node);
    let value = match &node.value {
        _ if item.is_null() => SettingValue::Nothing,
        Value::Scalar(scalar) if scalar.quoted => SettingValue::Text(scalar.text.clone()),
        Value::Scalar(scalar) => SettingValue::Plain(scalar.text.clone()),
        Value::List(items) => SettingValue::List(items.iter().map(|node| setting(file, node)).collect()),
        Value::Map(_) => SettingValue::Map(
            item.entries().map(|(key, at, value)| (key.clone(), at, setting(file, value.node()))).collect(),
        ),
    };
    Setting { value, at: item.at() }
}
