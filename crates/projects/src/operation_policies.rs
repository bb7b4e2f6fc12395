//! `Policies/`: what operation policies are, a specification and its template each.

use std::collections::HashMap;
use std::sync::Arc;

use penstock_catalog::{Api, At, PolicyAttribute, PolicyDefinition, PolicyUse};

use super::document::{Item, parse};
use super::{Import, Project, ProjectFile, hint};

const FOLDER: &str = "Policies";

/// Name and version.
type Key = (Arc<str>, Arc<str>);

/// A definition, and the flows it is for; without any it is for all.
type Definitions = HashMap<Key, (Arc<PolicyDefinition>, Vec<Arc<str>>)>;

/// The flows, as specifications call them.
const FLOWS: [&str; 3] = ["request", "response", "fault"];

impl Import<'_> {
    /// Gives every use of a policy its definition, when the project has one.
    pub(super) fn policies_of(&mut self, project: &Project, api: &mut Api) {
        let definitions = self.definitions(project);
        if definitions.is_empty() {
            return;
        }
        let mut of_api = std::mem::take(&mut api.policies);
        self.give(&definitions, [&mut of_api.request, &mut of_api.response, &mut of_api.fault]);
        api.policies = of_api;
        for operation in &mut api.operations {
            let flows = &operation.policies;
            if flows.request.is_empty() && flows.response.is_empty() && flows.fault.is_empty() {
                continue;
            }
            let flows = &mut Arc::make_mut(operation).policies;
            self.give(&definitions, [&mut flows.request, &mut flows.response, &mut flows.fault]);
        }
    }

    /// Gives uses their definitions. One in a flow that its policy is not for is left out, as by Choreo Connect.
    fn give(&mut self, definitions: &Definitions, flows: [&mut Vec<PolicyUse>; 3]) {
        for (flow, uses) in FLOWS.into_iter().zip(flows) {
            uses.retain_mut(|one| {
                let Some((definition, applicable)) = definitions.get(&(one.name.clone(), one.version.clone())) else {
                    return true;
                };
                one.definition = Some(definition.clone());
                let applies = applicable.is_empty() || applicable.iter().any(|known| known.eq_ignore_ascii_case(flow));
                if !applies {
                    let message = format!(
                        "the policy `{}` does not run in the {flow} flow: its `applicableFlows` are {}",
                        one.name,
                        applicable.join(", ")
                    );
                    self.unprotected(&one.at, message);
                }
                applies
            });
        }
    }

    fn definitions(&mut self, project: &Project) -> Definitions {
        let mut found = Definitions::new();
        for (name, file) in project.folder(FOLDER) {
            let Some(stem) = [".yaml", ".yml", ".json"].iter().find_map(|ending| name.strip_suffix(ending)) else {
                continue;
            };
            let Some((key, mut definition, flows)) = self.specification(file) else { continue };
            definition.synapse = template(project, stem, "j2");
            definition.actions = template(project, stem, "gotmpl");
            found.insert(key, (Arc::new(definition), flows));
        }
        found
    }

    /// A specification: name, version, attributes and flows.
    fn specification(&mut self, file: &ProjectFile) -> Option<(Key, PolicyDefinition, Vec<Arc<str>>)> {
        let document = match parse(&file.file, &file.bytes) {
            Ok(document) => document,
            Err((at, message)) => {
                self.error(&at, message);
                return None;
            }
        };
        let root = document.item();
        let data = root.get("data").unwrap_or(root);
        let (Some(name), version) = (self.some_text_of(&data, "name"), self.some_text_of(&data, "version")) else {
            self.warn(&root.at(), "ignored: a policy needs `name`");
            return None;
        };
        let mut definition = PolicyDefinition::default();
        for item in data.get("policyAttributes").iter().flat_map(|list| list.items()) {
            definition.attributes.extend(self.attribute(&item));
        }
        let flows = data.get("applicableFlows");
        let flows = flows.iter().flat_map(|list| list.items()).filter_map(|item| item.text().cloned()).collect();
        Some(((name, version.unwrap_or_else(|| "v1".into())), definition, flows))
    }

    fn attribute(&mut self, item: &Item<'_>) -> Option<PolicyAttribute> {
        let name = self.some_text_of(item, "name");
        if name.is_none() {
            let meant =
                item.entries().find_map(|(key, _, _)| (!hint(key, ["name"].into_iter()).is_empty()).then_some(key));
            let meant = meant.map_or_else(String::new, |key| format!("; `{key}` is not it"));
            self.warn(&item.at(), format!("an attribute needs `name`{meant}"));
        }
        Some(PolicyAttribute {
            name: name?,
            required: self.flag_of(item, "required").unwrap_or(false),
            default: self.some_text_of(item, "defaultValue"),
            validation: self.some_text_of(item, "validationRegex"),
        })
    }
}

/// The template beside a specification.
fn template(project: &Project, stem: &str, ending: &str) -> Option<(Arc<str>, At)> {
    let file = project.file(&format!("{FOLDER}/{stem}.{ending}"))?;
    let text = String::from_utf8_lossy(&file.bytes);
    Some((text.as_ref().into(), At { file: file.file.clone(), line: 1, column: 1 }))
}
