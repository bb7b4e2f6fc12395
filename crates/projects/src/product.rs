//! `api_product.yaml`: operations of several APIs below one context, with plans and credentials of their own. The APIs
//! lie in `APIs/`, a project each.
//!
//! Start reading at [`Import::product`].

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use penstock_catalog::{Api, ApiKind, At, Implementation, Operation, Policies};

use super::descriptor::{self, Descriptor};
use super::document::{Document, Entry, Item, Node, Scalar, Value};
use super::project::{DEFINITIONS, apply_schemes, without_version};
use super::{Import, Project, ProjectFile, hint};

/// The names the descriptor of a product may have.
pub(super) const DESCRIPTORS: [&str; 3] = ["api_product.yaml", "api_product.yml", "api_product.json"];

/// Where the APIs of a product are.
const FOLDER: &str = "APIs/";

/// The version of those that were exported before products had versions.
const VERSION: &str = "1.0.0";

/// Method and path of an operation.
type Key = (Arc<str>, Arc<str>);

/// An API of the product.
struct ProductMember {
    /// Its folder in `APIs/`.
    folder: String,
    api: Api,
}

impl Import<'_> {
    /// Reads a project of the type `api_product`.
    pub(super) fn product(&mut self, project: &Project, data: &Item<'_>) -> Option<Api> {
        for name in ["endpointConfig", "operations"] {
            if let Some(item) = data.get(name) {
                self.warn(&item.at(), format!("`{name}` is ignored: a product has that of its APIs"));
            }
        }
        let described = Document { file: data.at().file, root: as_api(data) };
        let descriptor = descriptor::read_without_operations(self, &described.item())?;
        let Descriptor { mut api, schemes, context, is_default, .. } = descriptor;
        let mut parts = self.parts(project)?;
        let parameters = self.parameters_of_environment(project);
        if let Some(of_parts) = parameters.as_ref().and_then(|document| document.item().get("dependentAPIs")) {
            self.parameters_of_parts(&of_parts, &mut parts);
        }
        let mut taken = HashSet::new();
        for wanted in data.get("apis").iter().flat_map(|list| list.items()) {
            self.part(&wanted, &parts, &mut api, &mut taken);
        }
        api.base_path = context.base_path(&api.version);
        if is_default {
            api.default_path = without_version(&api.base_path, &api.version);
        }
        let definition = DEFINITIONS.iter().find_map(|path| project.file(path));
        api.definition = definition.map(|file| file.bytes.as_ref().into());
        self.certificates(project, &mut api);
        for part in &parts {
            api.endpoint_certificates.extend(part.api.endpoint_certificates.iter().cloned());
            api.interceptor_certificates.extend(part.api.interceptor_certificates.iter().cloned());
        }
        self.deployments(project, &mut api);
        if let Some(parameters) = &parameters {
            self.apply_parameters(&parameters.item(), &mut api);
        }
        apply_schemes(&mut api, schemes.unwrap_or_default());
        self.finish(&mut api, false);
        Some(api)
    }

    /// The APIs in `APIs/`; `None` when one has a mistake.
    fn parts(&mut self, project: &Project) -> Option<Vec<ProductMember>> {
        let mut projects: Vec<(&str, Project)> = Vec::new();
        for file in &project.files {
            let Some((folder, path)) = file.path.strip_prefix(FOLDER).and_then(|path| path.split_once('/')) else {
                continue;
            };
            let file = ProjectFile { path: path.to_owned(), ..file.clone() };
            match projects.iter_mut().find(|(name, _)| *name == folder) {
                Some((_, part)) => part.files.push(file),
                None => {
                    let name = format!("{}/{FOLDER}{folder}", project.name);
                    projects.push((folder, Project { name: name.into(), files: vec![file], more: None }));
                }
            }
        }
        let mut parts = Vec::new();
        for (folder, project) in &projects {
            if DESCRIPTORS.iter().any(|name| project.file(name).is_some()) {
                let at = At { file: project.name.clone(), line: 1, column: 1 };
                self.error(&at, "a product is made of APIs, not of products");
            } else if let Some(api) = self.project(project)?.api {
                parts.push(ProductMember { folder: (*folder).to_owned(), api: Arc::unwrap_or_clone(api) });
            }
        }
        (!self.failed()).then_some(parts)
    }

    /// Adds the operations of one API that the product has.
    fn part(&mut self, wanted: &Item<'_>, parts: &[ProductMember], product: &mut Api, taken: &mut HashSet<Key>) {
        let Some(name) = self.some_text_of(wanted, "name") else {
            return self.error(&wanted.at(), "an API of a product needs `name`");
        };
        let version = self.some_text_of(wanted, "version");
        let is_it = |part: &&ProductMember| {
            same_name(&part.api.name, &name) && version.as_ref().is_none_or(|version| part.api.version == *version)
        };
        let Some(ProductMember { api, .. }) = parts.iter().find(is_it) else {
            let version = version.map_or_else(String::new, |version| format!(" {version}"));
            return self.error(&wanted.at(), format!("the project has no API `{name}`{version} in `APIs`"));
        };
        if api.kind != ApiKind::Http || api.implementation != Implementation::Endpoint || api.lambda.is_some() {
            let message = format!("`{name}` cannot be part of a product: only HTTP APIs with backends can");
            return self.error(&wanted.at(), message);
        }
        let key = |operation: &Arc<Operation>| (operation.method.clone(), operation.path.clone());
        let places: HashMap<Key, &Operation> =
            api.operations.iter().map(|operation| (key(operation), &**operation)).collect();
        for item in wanted.get("operations").iter().flat_map(|list| list.items()) {
            if let Some(operation) = self.operation_of_part(&item, api, &places) {
                if !taken.insert((operation.method.clone(), operation.path.clone())) {
                    let message = format!("two APIs of the product have {} {}", operation.method, operation.path);
                    self.error(&item.at(), message);
                    continue;
                }
                product.operations.push(Arc::new(operation));
            }
        }
    }

    /// The operation of an API that an entry means, as the product offers it.
    fn operation_of_part(
        &mut self,
        item: &Item<'_>,
        api: &Api,
        places: &HashMap<Key, &Operation>,
    ) -> Option<Operation> {
        let (verb, target) = (self.some_text_of(item, "verb"), self.some_text_of(item, "target"));
        let (Some(verb), Some(target)) = (verb, target) else {
            self.error(&item.at(), "an operation needs `verb` and `target`");
            return None;
        };
        let key = (verb.to_ascii_uppercase().into(), target.clone());
        let Some(&found) = places.get(&key) else {
            let of_verb = api.operations.iter().filter(|operation| operation.method == key.0);
            let meant = hint(&target, of_verb.map(|operation| &*operation.path));
            self.error(&item.at(), format!("`{}` has no operation {verb} {target}{meant}", api.name));
            return None;
        };
        let mut operation = Operation::clone(found);
        operation.at = item.at();
        operation.endpoints.get_or_insert_with(|| api.endpoints.clone());
        operation.policies = policies_of(api, found);
        self.tell_of_others(item, found);
        Some(operation)
    }

    /// Says where an entry differs from the operation it means: an import takes the operation as it is.
    fn tell_of_others(&mut self, item: &Item<'_>, operation: &Operation) {
        let kind = self.some_text_of(item, "authType");
        let tier = self.some_text_of(item, "throttlingPolicy");
        let scopes = self.texts_of(item, "scopes");
        let other = [
            ("authType", kind.is_some_and(|kind| kind.eq_ignore_ascii_case("None") == operation.secured)),
            ("throttlingPolicy", tier.is_some() && operation.tier.is_some() && tier != operation.tier),
            ("scopes", scopes.iter().any(|scope| !operation.scopes.contains(scope))),
        ];
        for (name, _) in other.iter().filter(|(_, is_other)| *is_other) {
            let at = item.get(name).map_or_else(|| item.at(), |found| found.at());
            let message = format!("`{name}` is ignored: that of the operation in `APIs` applies");
            // Fewer rights than the product names would keep clients out; more would let them in.
            match *name {
                "authType" if operation.secured => self.warn(&at, message),
                _ => self.unprotected(&at, message),
            }
        }
    }

    /// `dependentAPIs` of the parameters: what the environment says of the APIs.
    fn parameters_of_parts(&mut self, of_parts: &Item<'_>, parts: &mut [ProductMember]) {
        for (name, at, configs) in of_parts.entries() {
            match parts.iter_mut().find(|part| part.folder == **name) {
                Some(part) => self.apply_parameters(&configs, &mut part.api),
                None => {
                    let meant = hint(name, parts.iter().map(|part| &*part.folder));
                    self.warn(&at, format!("ignored: `APIs` has no folder `{name}`{meant}"));
                }
            }
        }
    }
}

/// What describes a product, in the words that describe an API.
fn as_api(data: &Item<'_>) -> Node {
    let mut node = data.node().clone();
    if let Value::Map(entries) = &mut node.value {
        let others = ["apis", "apiType", "type", "lifeCycleStatus", "endpointConfig", "operations"];
        entries.retain(|entry| !others.contains(&&*entry.key) && !entry.key.starts_with("revisionedApi"));
        for entry in entries.iter_mut().filter(|entry| &*entry.key == "state") {
            entry.key = "lifeCycleStatus".into();
        }
        if data.get("version").is_none() {
            entries.retain(|entry| &*entry.key != "version");
            let value = Value::Scalar(Scalar { text: VERSION.into(), quoted: true });
            let value = Node { line: node.line, column: node.column, value };
            entries.push(Entry { key: "version".into(), line: node.line, column: node.column, value });
        }
    }
    node
}

/// Names are the same however they are spaced: exports leave blanks out.
fn same_name(left: &str, right: &str) -> bool {
    let letters = |name: &str| name.chars().filter(|letter| *letter != ' ').collect::<String>();
    letters(left) == letters(right)
}

/// The policies of an operation with those of its API around them.
fn policies_of(api: &Api, operation: &Operation) -> Policies {
    let (outer, inner) = (&api.policies, &operation.policies);
    Policies {
        request: outer.request.iter().chain(&inner.request).cloned().collect(),
        response: inner.response.iter().chain(&outer.response).cloned().collect(),
        fault: inner.fault.iter().chain(&outer.fault).cloned().collect(),
    }
}
