//! `mediationPolicies`: sequences that surround all operations of an API, as versions before 4 wrote them. Their texts
//! lie in `Sequences/`.

use std::sync::Arc;

use penstock_catalog::{Api, At, PolicyDefinition, PolicyUse};

use crate::document::Item;
use crate::{Import, Project, hint};

/// A sequence of an API.
pub(crate) struct NamedSequence {
    name: Arc<str>,
    /// `in`, `out` or `fault`.
    flow: Arc<str>,
    at: At,
}

const FLOWS: [&str; 3] = ["in", "out", "fault"];

/// Reads the list.
pub(super) fn read(import: &mut Import<'_>, data: &Item<'_>) -> Vec<NamedSequence> {
    let mut found = Vec::new();
    for item in data.get("mediationPolicies").iter().flat_map(|list| list.items()) {
        // Exports name flows that have no sequence.
        let Some(name) = import.some_text_of(&item, "name") else { continue };
        let flow: Arc<str> = import.some_text_of(&item, "type").unwrap_or_default().to_ascii_lowercase().into();
        if !FLOWS.contains(&&*flow) {
            let meant = hint(&flow, FLOWS.into_iter());
            import.error(
                &item.at(),
                format!("the `type` of a mediation policy must be `in`, `out` or `fault`, not `{flow}`{meant}"),
            );
            continue;
        }
        found.push(NamedSequence { name, flow, at: item.at() });
    }
    found
}

impl Import<'_> {
    /// Puts the sequences of an API before its policies.
    pub(crate) fn sequences(&mut self, project: &Project, named: Vec<NamedSequence>, api: &mut Api) {
        for NamedSequence { name, flow, at } in named {
            let file_name = if name.ends_with(".xml") { name.to_string() } else { format!("{name}.xml") };
            let folder = format!("Sequences/{flow}-sequence");
            let paths = [format!("{folder}/Custom/{file_name}"), format!("{folder}/{file_name}")];
            let Some(file) = paths.iter().find_map(|path| project.file(path)) else {
                let message =
                    format!("the mediation policy `{name}` is ignored: `{folder}/{file_name}` is not in the project");
                self.unprotected(&at, message);
                continue;
            };
            let begin = At { file: file.file.clone(), line: 1, column: 1 };
            // It is not a template, even with braces.
            let text = format!("{{% raw %}}{}{{% endraw %}}", String::from_utf8_lossy(&file.bytes));
            let definition = PolicyDefinition { synapse: Some((text.into(), begin)), ..PolicyDefinition::default() };
            let used = PolicyUse {
                name,
                version: "v1".into(),
                definition: Some(Arc::new(definition)),
                at,
                ..PolicyUse::default()
            };
            match &*flow {
                "in" => api.policies.request.push(used),
                "out" => api.policies.response.push(used),
                _ => api.policies.fault.push(used),
            }
        }
    }
}
