//! What a policy is: its definition in the project, or one of those that come with the product.

use std::borrow::Cow;
use std::sync::Arc;

use penstock_catalog::{At, PolicyAttribute, PolicyUse};
use penstock_compile::suggestion;

use super::builtin;
use super::step::ActionCall;
use crate::{ErrorStyle, gotemplate};
use penstock_projects::parse_document;

/// The longest text a parameter may be. A policy's parameters become configuration, not payload.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// Parameters by name.
pub(crate) type Values = Vec<(Arc<str>, Arc<str>)>;

/// A policy with its parameters.
#[derive(Debug)]
pub(crate) enum Resolved {
    /// An action of Choreo Connect.
    Action(ActionCall),
    /// A Synapse sequence.
    Synapse(Sequence),
}

/// A template of a Synapse sequence and what it is filled with.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) template: Arc<str>,
    pub(crate) file: Arc<str>,
    pub(crate) values: Values,
}

/// Finds out what a policy is. The error says why it cannot be used.
pub(crate) fn resolve(one: &PolicyUse, style: ErrorStyle) -> Result<Resolved, String> {
    let Some(definition) = &one.definition else { return resolve_builtin(one) };
    let values = values(&definition.attributes, one)?;
    let prefers_actions = style == ErrorStyle::ChoreoConnect || definition.synapse.is_none();
    match (&definition.actions, &definition.synapse) {
        (Some((template, at)), _) if prefers_actions => {
            let text = gotemplate::render(template, &values).map_err(|error| format!("{}:{error}", at.file))?;
            call_of(&text, at).map(Resolved::Action)
        }
        (_, Some((template, at))) => {
            Ok(Resolved::Synapse(Sequence { template: template.clone(), file: at.file.clone(), values }))
        }
        // A specification alone stands for the policy of that name that comes with the product.
        _ => resolve_builtin(one),
    }
}

fn resolve_builtin(one: &PolicyUse) -> Result<Resolved, String> {
    let Some(builtin) = builtin::find(&one.name) else {
        let hint = suggestion(&one.name, builtin::names());
        let hint = hint.map_or_else(String::new, |meant| format!(", did you mean `{meant}`?"));
        return Err(format!("the project does not define it and the product has none of that name{hint}"));
    };
    let attributes: Vec<PolicyAttribute> = builtin.attributes.iter().map(builtin::Attribute::to_catalog).collect();
    let values = values(&attributes, one)?;
    Ok(match builtin.work {
        builtin::PolicyStep::Action(action, parameters) => {
            let value = |name: &str| values.iter().find(|(key, _)| **key == *name).map(|(_, value)| value.to_string());
            let parameters = parameters
                .iter()
                .filter_map(|(parameter, attribute)| Some(((*parameter).to_owned(), value(attribute)?)))
                .collect();
            Resolved::Action(ActionCall { action: action.to_owned(), parameters, at: one.at.clone() })
        }
        builtin::PolicyStep::Synapse(template) => {
            Resolved::Synapse(Sequence { template: template.into(), file: one.at.file.clone(), values })
        }
        builtin::PolicyStep::Class(class) => {
            let property = |attribute: &PolicyAttribute| {
                format!("<property name=\"{0}\" value=\"{{{{ {0} }}}}\"/>", attribute.name)
            };
            let properties: String = attributes.iter().map(property).collect();
            let template = format!("<class name=\"{class}\">{properties}</class>").into();
            Resolved::Synapse(Sequence { template, file: one.at.file.clone(), values })
        }
    })
}

/// The parameters of a use, completed by defaults and checked against the definition. Parameters that
/// no attribute declares are kept: templates may name them.
fn values(attributes: &[PolicyAttribute], one: &PolicyUse) -> Result<Values, String> {
    let mut values = one.parameters.clone();
    for attribute in attributes {
        let name = &attribute.name;
        let given = values.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        let given = given.filter(|value| !value.is_empty());
        let value = match (given, &attribute.default) {
            (Some(value), _) => value,
            (None, Some(default)) if !default.is_empty() => {
                values.retain(|(key, _)| key != name);
                values.push((name.clone(), default.clone()));
                default.clone()
            }
            (None, _) if attribute.required => return Err(format!("the parameter `{name}` is required")),
            (None, _) => continue,
        };
        if let Some(pattern) = &attribute.validation
            && let Ok(pattern) = regex::Regex::new(&format!("^(?:{pattern})$"))
            && !pattern.is_match(&value)
        {
            return Err(format!("the parameter `{name}` is `{value}`, which its definition does not allow"));
        }
    }
    match values.iter().find(|(_, value)| value.len() > VALUE_BYTES_MAX) {
        Some((name, _)) => Err(format!("the parameter `{name}` is longer than {VALUE_BYTES_MAX} bytes")),
        None => Ok(values),
    }
}

/// Reads `definition: {action, parameters}`.
fn call_of(text: &str, at: &At) -> Result<ActionCall, String> {
    let document = parse_document(&at.file, text.as_bytes()).map_err(|(at, message)| format!("{at}: {message}"))?;
    let root = document.item();
    let definition = root.get("definition").unwrap_or(root);
    let Some(action) = definition.get("action").and_then(|action| action.text().cloned()) else {
        return Err(format!("{}: the definition has no `action`", definition.at()));
    };
    let mut parameters = Vec::new();
    for (name, place, value) in definition.get("parameters").iter().flat_map(|all| all.entries()) {
        let text: Cow<'_, str> = match value.text() {
            Some(text) => Cow::Borrowed(text),
            None if value.is_null() => Cow::Borrowed(""),
            None => return Err(format!("{place}: the parameter `{name}` is not a text")),
        };
        parameters.push((name.to_string(), text.into_owned()));
    }
    Ok(ActionCall { action: action.trim().to_owned(), parameters, at: definition.at() })
}

#[cfg(test)]
mod tests {
    use penstock_catalog::PolicyDefinition;

    use super::*;

    fn using(parameters: &[(&str, &str)], definition: Option<PolicyDefinition>) -> PolicyUse {
        PolicyUse {
            name: "own".into(),
            parameters: parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            definition: definition.map(Arc::new),
            ..PolicyUse::default()
        }
    }

    fn actions(template: &str) -> PolicyDefinition {
        let attribute = |name: &str, required, default: Option<&str>, validation: Option<&str>| PolicyAttribute {
            name: name.into(),
            required,
            default: default.map(Arc::from),
            validation: validation.map(Arc::from),
        };
        PolicyDefinition {
            attributes: vec![
                attribute("name", true, None, Some("[a-z]+")),
                attribute("value", false, Some("none"), None),
            ],
            actions: Some((template.into(), At::default())),
            synapse: None,
        }
    }

    #[test]
    fn actions_are_filled_and_checked() {
        let template = "definition:\n  action: SET_HEADER\n  parameters:\n    headerName: {{ .name }}\n    headerValue: \"{{ .value }}\"\n";
        for (parameters, expected) in [
            (vec![("name", "abc")], Ok("SET_HEADER headerName=abc headerValue=none")),
            (vec![("name", "abc"), ("value", "x y")], Ok("SET_HEADER headerName=abc headerValue=x y")),
            (vec![("value", "x")], Err("the parameter `name` is required")),
            (vec![("name", "ABC")], Err("the parameter `name` is `ABC`, which its definition does not allow")),
        ] {
            let outcome = resolve(&using(&parameters, Some(actions(template))), ErrorStyle::ChoreoConnect);
            let shown = outcome.map(|resolved| match resolved {
                Resolved::Action(call) => call
                    .parameters
                    .iter()
                    .fold(call.action.clone(), |text, (name, value)| format!("{text} {name}={value}")),
                Resolved::Synapse(sequence) => sequence.template.to_string(),
            });
            assert_eq!(shown.as_deref().map_err(String::as_str), expected, "{parameters:?}");
        }
        let unknown =
            resolve(&PolicyUse { name: "adHeader".into(), ..PolicyUse::default() }, ErrorStyle::ChoreoConnect);
        assert!(unknown.is_err_and(|why| why.ends_with("did you mean `addHeader`?")));
    }
}
